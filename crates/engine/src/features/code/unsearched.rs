//! Recognizes files and folders that are not handwritten: their facts count, but their text is not searched.

use serde::Serialize;

/// Why the text of a file is not searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnsearchedReason {
    /// Written by a program from other files.
    Generated,
    /// Locked versions of dependencies.
    Lock,
    Minified,
    SourceMap,
    VectorGraphics,
}

impl UnsearchedReason {
    /// The name used in counts.
    pub fn name(self) -> &'static str {
        match self {
            UnsearchedReason::Generated => "generated",
            UnsearchedReason::Lock => "lock",
            UnsearchedReason::Minified => "minified",
            UnsearchedReason::SourceMap => "source map",
            UnsearchedReason::VectorGraphics => "vector graphics",
        }
    }
}

const LOCKS: [&str; 9] = [
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "packages.lock.json",
    "gradle.lockfile",
    "package.resolved",
    "go.sum",
    "go.work.sum",
    "module.bazel.lock",
];
/// Suffixes of the names of such files.
const ENDINGS: [(&str, UnsearchedReason); 21] = [
    (".lock", UnsearchedReason::Lock),
    (".min.js", UnsearchedReason::Minified),
    (".min.mjs", UnsearchedReason::Minified),
    (".min.css", UnsearchedReason::Minified),
    (".map", UnsearchedReason::SourceMap),
    (".svg", UnsearchedReason::VectorGraphics),
    (".pb.go", UnsearchedReason::Generated),
    (".pb.gw.go", UnsearchedReason::Generated),
    (".pb.cc", UnsearchedReason::Generated),
    (".pb.h", UnsearchedReason::Generated),
    (".pb.swift", UnsearchedReason::Generated),
    ("_pb2.py", UnsearchedReason::Generated),
    ("_pb2.pyi", UnsearchedReason::Generated),
    ("_pb2_grpc.py", UnsearchedReason::Generated),
    ("_pb.js", UnsearchedReason::Generated),
    ("_pb.d.ts", UnsearchedReason::Generated),
    (".g.dart", UnsearchedReason::Generated),
    (".freezed.dart", UnsearchedReason::Generated),
    (".g.cs", UnsearchedReason::Generated),
    (".designer.cs", UnsearchedReason::Generated),
    (".eps", UnsearchedReason::VectorGraphics),
];
/// Lines in which a generator's mark is expected; it may follow a licence.
const FIRST_LINES: usize = 40;
const COMMENTS: [&str; 11] = ["//", "#", "/*", "*", "--", ";", "%", "<!--", "(*", "\"\"\"", "{-"];

/// Why the text of a file is left out, by its name and, if available, its text.
pub fn file(path: &str, text: Option<&str>) -> Option<UnsearchedReason> {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    if LOCKS.contains(&name.as_str()) {
        return Some(UnsearchedReason::Lock);
    }
    if let Some((_, why)) = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)) {
        return Some(*why);
    }
    let stem = name.split_once('.').map_or(name.as_str(), |(stem, _)| stem);
    let named = stem.ends_with("_generated") || name.contains(".generated.") || name.starts_with("zz_generated.");
    let says = || text.is_some_and(|text| text.lines().take(FIRST_LINES).any(says_generated));
    (named || says()).then_some(UnsearchedReason::Generated)
}

/// Whether a line is a comment with which generators mark their output.
fn says_generated(line: &str) -> bool {
    let line = line.trim();
    let Some(comment) = COMMENTS.iter().find_map(|mark| line.strip_prefix(mark)) else { return false };
    let marked = comment.match_indices("@generated").any(|(at, _)| {
        let before = comment[..at].chars().next_back();
        before.is_none_or(|c| c.is_whitespace() || c == '*' || c == '/')
    });
    if marked {
        return true;
    }
    let comment = comment.to_ascii_lowercase();
    comment.contains("generated")
        && ["do not edit", "do not modify", "don't edit"].iter().any(|no| comment.contains(no))
}

/// Folders of dependencies or build output, at any depth.
const ALWAYS: [&str; 9] =
    ["node_modules", "bower_components", "dist", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".gradle"];
/// Folders left out only at the root or beside one of these files; elsewhere the name may mean anything.
const BESIDE: [(&str, &[&str]); 2] = [
    ("target", &["Cargo.toml", "pom.xml", "build.sbt"]),
    ("vendor", &["go.mod", "composer.json", "Gemfile", "Cargo.toml", "package.json"]),
];

/// Whether a folder is left out unless `.lukasaignore` includes it, by its name, its depth and the files beside it.
pub fn folder(name: &str, at_root: bool, is_beside: impl Fn(&str) -> bool) -> bool {
    ALWAYS.contains(&name)
        || BESIDE.iter().any(|(other, files)| *other == name && (at_root || files.iter().any(|file| is_beside(file))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_left_out_by_name_or_by_what_they_say() {
        for (path, why) in [
            ("package-lock.json", UnsearchedReason::Lock),
            ("web/yarn.lock", UnsearchedReason::Lock),
            ("go.sum", UnsearchedReason::Lock),
            ("static/jquery.min.js", UnsearchedReason::Minified),
            ("static/app.js.map", UnsearchedReason::SourceMap),
            ("docs/Logo.SVG", UnsearchedReason::VectorGraphics),
            ("api/user.pb.go", UnsearchedReason::Generated),
            ("src/schema_generated.rs", UnsearchedReason::Generated),
            ("src/schema.generated.ts", UnsearchedReason::Generated),
        ] {
            assert_eq!(file(path, None), Some(why), "{path}");
        }
        for path in ["lock.rs", "src/min.js", "map.go", "generated.py", "src/generated/hand.py", "svg.rs", "a/clock.py"]
        {
            assert_eq!(file(path, None), None, "{path}");
        }
        for text in [
            "// Code generated by stringer; DO NOT EDIT.\n\npackage a\n",
            "// Copyright\n// Licence\n\n// Code generated by protoc-gen-go. DO NOT EDIT.\n",
            "# @generated by a tool\nx = 1\n",
            "/**\n * @generated SignedSource<<abc>>\n */\n",
            "<!-- GENERATED FILE - DO NOT MODIFY BY HAND -->\n<a/>\n",
        ] {
            assert_eq!(file("x.go", Some(text)), Some(UnsearchedReason::Generated), "{text}");
        }
        for text in [
            "// Writes code; what it writes is generated.\npackage a\n",
            "const head = \"// Code generated by us. DO NOT EDIT.\"\n",
            "// Looks for the mark `@generated`.\n",
            "package a\n",
        ] {
            assert_eq!(file("x.go", Some(text)), None, "{text}");
        }
    }

    #[test]
    fn folders_of_builds_are_distinguished_from_others_of_the_same_name() {
        let nothing = |_: &str| false;
        assert!(folder("node_modules", false, nothing) && folder("dist", false, nothing));
        assert!(folder("target", true, nothing) && folder("vendor", true, nothing));
        assert!(!folder("target", false, nothing) && !folder("src", true, nothing));
        assert!(
            folder("target", false, |file| file == "Cargo.toml") && !folder("target", false, |file| file == "go.mod")
        );
    }
}
