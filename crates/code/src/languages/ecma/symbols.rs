//! Names of npm packages and modules in SCIP indexes.

use crate::languages::OutsideModule;

pub(super) fn outside_module(package: &str, spaces: &[&str]) -> OutsideModule {
    let package = untyped(package);
    let builtin = package == "typescript" && spaces.first() == Some(&"lib");
    OutsideModule { names: inner_spaces(spaces, &package), package, builtin }
}

/// The package that a package of types describes: `@types/react` is about `react`, `@types/a__b` about `@a/b`.
fn untyped(package: &str) -> String {
    match package.strip_prefix("@types/") {
        Some(name) => match name.split_once("__") {
            Some((scope, name)) => format!("@{scope}/{name}"),
            None => name.to_owned(),
        },
        None => package.to_owned(),
    }
}

/// Namespaces without file paths and without the package's global name (`React` in `react`).
fn inner_spaces(spaces: &[&str], package: &str) -> Vec<String> {
    let file = |name: &str| {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        matches!(extension, "ts" | "tsx" | "mts" | "cts" | "js" | "jsx" | "mjs" | "cjs")
    };
    let begin = spaces.iter().rposition(|s| file(s)).map_or(0, |at| at + 1);
    let inner = spaces[begin..].iter().enumerate();
    inner.filter(|(at, s)| *at > 0 || !s.eq_ignore_ascii_case(package)).map(|(_, s)| (*s).to_owned()).collect()
}
