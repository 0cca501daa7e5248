//! Build constraints, in comments and in file names, and the builds that satisfy them.

use crate::build::{Build, Constraint};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The tags that are set in one build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GoBuild {
    os: &'static str,
    arch: &'static str,
    /// Whether the compiler is the standard one; otherwise gccgo.
    gc: bool,
    cgo: bool,
    tags: BTreeSet<Box<str>>,
}

/// The build that `go build` uses on a plain Linux machine: linux, amd64, gc, cgo, no custom tags.
pub(super) static DEFAULT: LazyLock<GoBuild> =
    LazyLock::new(|| GoBuild { os: "linux", arch: "amd64", gc: true, cgo: true, tags: BTreeSet::new() });

/// The most common first: when several satisfy a constraint equally well, the first is taken.
const OS: [&str; 20] = [
    "linux",
    "darwin",
    "windows",
    "freebsd",
    "netbsd",
    "openbsd",
    "dragonfly",
    "solaris",
    "illumos",
    "aix",
    "android",
    "ios",
    "js",
    "wasip1",
    "plan9",
    "hurd",
    "nacl",
    "zos",
    "fuchsia",
    "other",
];
const ARCH: [&str; 25] = [
    "amd64",
    "arm64",
    "386",
    "arm",
    "riscv64",
    "ppc64le",
    "s390x",
    "loong64",
    "mips64le",
    "mips64",
    "mipsle",
    "mips",
    "ppc64",
    "wasm",
    "amd64p32",
    "armbe",
    "arm64be",
    "mips64p32",
    "mips64p32le",
    "ppc",
    "riscv",
    "s390",
    "sparc",
    "sparc64",
    "other",
];
const NOT_UNIX: [&str; 8] = ["windows", "js", "wasip1", "plan9", "nacl", "zos", "fuchsia", "other"];

/// Constraints with more tags than this are not solved; the file then counts as part of the usual build.
const MOST_TAGS: usize = 10;

/// The constraint of a file, from its name and the comments above its package clause; `None` if it is part of every
/// build.
pub(super) fn constraint(path: &str, text: &str) -> Option<Constraint> {
    let mut all: Vec<Constraint> = in_name(path).into_iter().map(|tag| Constraint::Tag(tag.into())).collect();
    all.extend(in_comments(text));
    match all.len() {
        0 | 1 => all.pop(),
        _ => Some(Constraint::All(all)),
    }
}

impl Build for GoBuild {
    fn has(&self, tag: &str) -> bool {
        let family = match self.os {
            "android" => "linux",
            "illumos" => "solaris",
            "ios" => "darwin",
            os => os,
        };
        match tag {
            "unix" => !NOT_UNIX.contains(&self.os),
            "cgo" => self.cgo,
            "gc" => self.gc,
            "gccgo" => !self.gc,
            _ if tag == self.os || tag == family || tag == self.arch => true,
            // Tags of Go releases count as set in every build.
            _ if tag.starts_with("go1.") => true,
            _ => self.tags.contains(tag),
        }
    }
}

/// Among the builds that satisfy a constraint, the one that differs least from the default; `None` if there is
/// none.
pub(super) fn nearest(constraint: &Constraint) -> Option<GoBuild> {
    if constraint.holds(&*DEFAULT) {
        return Some(DEFAULT.clone());
    }
    let tags = constraint.tags();
    let of_system = |tag: &&str| OS.contains(tag) || *tag == "unix";
    let systems = if tags.iter().any(of_system) { &OS[..] } else { &OS[..1] };
    let processors = if tags.iter().any(|tag| ARCH.contains(tag)) { &ARCH[..] } else { &ARCH[..1] };
    let known = |tag: &str| {
        of_system(&tag) || ARCH.contains(&tag) || matches!(tag, "cgo" | "gc" | "gccgo") || tag.starts_with("go1.")
    };
    let own: Vec<&str> = tags.iter().copied().filter(|tag| !known(tag)).collect();
    if own.len() > MOST_TAGS {
        return None;
    }
    let mut best: Option<(u32, GoBuild)> = None;
    for set in 0u32..1 << own.len() {
        for (os, arch) in systems.iter().flat_map(|os| processors.iter().map(move |arch| (*os, *arch))) {
            for (gc, cgo) in [(true, true), (true, false), (false, true), (false, false)] {
                let other = [os != "linux", arch != "amd64", !gc, !cgo];
                let cost = set.count_ones() + other.into_iter().map(u32::from).sum::<u32>();
                if best.as_ref().is_some_and(|(least, _)| cost >= *least) {
                    continue;
                }
                let chosen = own.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
                let tags = chosen.map(|(_, tag)| (*tag).into()).collect();
                let build = GoBuild { os, arch, gc, cgo, tags };
                if constraint.holds(&build) {
                    best = Some((cost, build));
                }
            }
        }
    }
    best.map(|(_, build)| build)
}

/// Reads `name_linux_amd64.go`, `name_windows_test.go`: the parts after the first underscore may name a system.
fn in_name(path: &str) -> Vec<&str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.strip_suffix(".go").unwrap_or(name);
    let mut parts: Vec<&str> = name.split('_').skip(1).collect();
    if parts.last() == Some(&"test") {
        parts.pop();
    }
    let is_system = |part: &str| OS.contains(&part) && part != "other";
    let is_processor = |part: &str| ARCH.contains(&part) && part != "other";
    match parts[..] {
        [.., os, arch] if is_system(os) && is_processor(arch) => vec![os, arch],
        [.., last] if is_system(last) || is_processor(last) => vec![last],
        _ => vec![],
    }
}

/// The `//go:build` line, or else the older `// +build` lines, above the package clause.
fn in_comments(text: &str) -> Option<Constraint> {
    let mut older = Vec::new();
    let mut within = false;
    for line in text.lines() {
        let line = line.trim();
        if within || line.starts_with("/*") {
            within = !line.contains("*/");
            continue;
        }
        if let Some(condition) = line.strip_prefix("//go:build ") {
            return Reader { rest: condition }.any();
        }
        match line.strip_prefix("//") {
            Some(comment) => {
                if let Some(options) = comment.trim_start().strip_prefix("+build ") {
                    older.push(options);
                }
            }
            None if line.is_empty() => {}
            None => break,
        }
    }
    let term = |text: &str| match text.strip_prefix('!') {
        Some(tag) => Constraint::Not(Box::new(Constraint::Tag(tag.into()))),
        None => Constraint::Tag(text.into()),
    };
    let option = |text: &str| Constraint::All(text.split(',').map(term).collect());
    let lines: Vec<Constraint> =
        older.iter().map(|line| Constraint::Any(line.split_whitespace().map(option).collect())).collect();
    (!lines.is_empty()).then_some(Constraint::All(lines))
}

/// Parses the condition of a `//go:build` line; a malformed condition is no constraint.
struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn any(&mut self) -> Option<Constraint> {
        let mut all = vec![self.all()?];
        while self.take("||") {
            all.push(self.all()?);
        }
        Some(if all.len() == 1 { all.pop()? } else { Constraint::Any(all) })
    }

    fn all(&mut self) -> Option<Constraint> {
        let mut all = vec![self.term()?];
        while self.take("&&") {
            all.push(self.term()?);
        }
        Some(if all.len() == 1 { all.pop()? } else { Constraint::All(all) })
    }

    fn term(&mut self) -> Option<Constraint> {
        if self.take("!") {
            return Some(Constraint::Not(Box::new(self.term()?)));
        }
        if self.take("(") {
            let inner = self.any()?;
            return self.take(")").then_some(inner);
        }
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(self.rest.len());
        let (tag, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!tag.is_empty()).then(|| Constraint::Tag(tag.into()))
    }

    fn take(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_default(path: &str, text: &str) -> bool {
        constraint(path, text).is_none_or(|c| c.holds(&*DEFAULT))
    }

    #[test]
    fn comments_and_file_names_choose_the_usual_build() {
        for (path, text, part) in [
            ("a.go", "package a\n", true),
            ("a.go", "// Copyright\n\n//go:build linux && !windows\n\npackage a\n", true),
            ("a.go", "//go:build !jsoniter && !(sonic && (linux || windows))\npackage a\n", true),
            ("a.go", "//go:build sonic && (linux || windows)\npackage a\n", false),
            ("a.go", "//go:build ignore\n\npackage main\n", false),
            ("a.go", "//go:build go1.21 && cgo && gc && unix\n\npackage a\n", true),
            ("a.go", "//go:build gccgo || !cgo\n\npackage a\n", false),
            ("a.go", "// +build linux,amd64 windows\n\npackage a\n", true),
            ("a.go", "// +build linux\n// +build !amd64\n\npackage a\n", false),
            ("a.go", "/* long\n//go:build ignore\n*/\npackage a\n", true),
            ("a.go", "package a\n\n//go:build ignore\n", true),
            ("x/a_linux.go", "package a\n", true),
            ("x/a_windows.go", "package a\n", false),
            ("x/a_linux_arm64.go", "package a\n", false),
            ("x/a_linux_amd64_test.go", "package a\n", true),
            ("x/linux.go", "package a\n", true),
            ("x/windows.go", "package a\n", true),
            ("x/a_unix.go", "package a\n", true),
            ("x/a_other.go", "package a\n", true),
        ] {
            assert_eq!(in_default(path, text), part, "{path}: {text}");
        }
    }

    #[test]
    fn a_file_of_another_build_is_read_in_the_nearest_one() {
        let nearest = |path: &str, text: &str| super::nearest(&constraint(path, text).unwrap());
        let windows = nearest("a_windows.go", "package a\n").unwrap();
        assert_eq!((windows.os, windows.arch), ("windows", "amd64"));
        let sonic = nearest("a.go", "//go:build sonic && (linux || windows)\npackage a\n").unwrap();
        assert_eq!((sonic.os, sonic.tags.len()), ("linux", 1));
        let other = nearest("a.go", "//go:build !unix && !windows\npackage a\n").unwrap();
        assert_eq!(other.os, "js");
        assert_eq!(nearest("a_linux.go", "//go:build windows\npackage a\n"), None);
    }
}
