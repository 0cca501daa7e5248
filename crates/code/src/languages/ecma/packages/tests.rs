//! Small repositories and the files that imports in them resolve to.

use super::EcmaImports;
use crate::languages::LanguageId;
use crate::resolve::Program;
use std::sync::Arc;

/// A repository: manifests with their contents, other files by path only.
fn program(manifests: &[(&str, &str)], files: &[&str]) -> Program {
    let mut program = Program::default();
    for path in files {
        let language = LanguageId::of(path, "").expect("a path with a known extension");
        program.set(path, Arc::new(crate::parse(path, "", language)));
    }
    program.manifests.extend(manifests.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
    program
}

fn packages(program: &Program) -> EcmaImports {
    let manifests: Vec<_> = program.manifests.iter().map(|(path, text)| (path.clone(), text.clone())).collect();
    EcmaImports::read(program, &manifests)
}

/// Each case: the importing file, the module, the expected file or an empty string.
#[track_caller]
fn check(manifests: &[(&str, &str)], files: &[&str], cases: &[(&str, &str, &str)]) {
    let program = program(manifests, files);
    let packages = packages(&program);
    let mut wrong = Vec::new();
    // Twice: the second answer comes from the cache.
    for (from, module, expected) in cases.iter().chain(cases) {
        let file = program.find_file(from).expect("the importing file is part of the repository");
        let found = packages.file(&program, file, module).map(|id| &*program.file(id).path);
        if found.unwrap_or("") != *expected {
            wrong.push(format!("{module} in {from}: {found:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn relative_paths_need_no_manifest() {
    let files =
        ["a/main.ts", "a/one.ts", "a/two/index.tsx", "a/two.ts", "a/three.mts", "a/four.js", "a/four.d.ts", "b.jsx"];
    check(
        &[],
        &files,
        &[
            ("a/main.ts", "./one", "a/one.ts"),
            ("a/main.ts", "./one.js", "a/one.ts"),
            ("a/main.ts", "./one.ts", "a/one.ts"),
            ("a/main.ts", "./three.mjs", "a/three.mts"),
            ("a/main.ts", "./two", "a/two.ts"),
            ("a/main.ts", "./two/", "a/two/index.tsx"),
            ("a/two/index.tsx", "..", ""),
            ("a/two/index.tsx", ".", "a/two/index.tsx"),
            ("a/main.ts", "./four", "a/four.js"),
            ("a/main.ts", "../b", "b.jsx"),
            ("a/main.ts", "./none", ""),
            ("a/main.ts", "react", ""),
        ],
    );
    let program = program(&[], &files);
    assert!(packages(&program).workspace.is_none());
}

#[test]
fn no_resolver_is_created_without_javascript() {
    let program = program(&[("package.json", r#"{"name": "site"}"#)], &["a.py"]);
    assert!(packages(&program).workspace.is_none());
}

#[test]
fn workspaces() {
    check(
        &[
            ("package.json", r#"{"name": "root", "private": true, "workspaces": ["packages/*", "apps/*"]}"#),
            ("packages/ui/package.json", r#"{"name": "@acme/ui", "main": "src/index.tsx"}"#),
            ("packages/core/package.json", r#"{"name": "@acme/core"}"#),
            ("packages/plain/package.json", r#"{"name": "plain", "main": "./lib"}"#),
            ("packages/types/package.json", r#"{"name": "@acme/types", "types": "./all.d.ts"}"#),
            ("packages/web/package.json", r#"{"name": "@acme/web", "browser": "./web.js"}"#),
            ("apps/site/package.json", r#"{"name": "site", "dependencies": {"@acme/ui": "workspace:*"}}"#),
        ],
        &[
            "apps/site/main.tsx",
            "packages/ui/src/index.tsx",
            "packages/ui/src/button.tsx",
            "packages/ui/theme/dark.ts",
            "packages/core/index.ts",
            "packages/core/src/deep/tool.ts",
            "packages/plain/lib/index.js",
            "packages/types/all.d.ts",
            "packages/web/web.js",
        ],
        &[
            ("apps/site/main.tsx", "@acme/ui", "packages/ui/src/index.tsx"),
            ("apps/site/main.tsx", "@acme/ui/src/button", "packages/ui/src/button.tsx"),
            ("apps/site/main.tsx", "@acme/ui/src/button.js", "packages/ui/src/button.tsx"),
            ("apps/site/main.tsx", "@acme/ui/button", "packages/ui/src/button.tsx"),
            ("apps/site/main.tsx", "@acme/ui/theme/dark", "packages/ui/theme/dark.ts"),
            ("apps/site/main.tsx", "@acme/core", "packages/core/index.ts"),
            ("apps/site/main.tsx", "@acme/core/deep/tool", "packages/core/src/deep/tool.ts"),
            ("apps/site/main.tsx", "plain", "packages/plain/lib/index.js"),
            ("apps/site/main.tsx", "@acme/types", "packages/types/all.d.ts"),
            ("apps/site/main.tsx", "@acme/web", "packages/web/web.js"),
            ("packages/ui/src/button.tsx", "@acme/ui", "packages/ui/src/index.tsx"),
            ("apps/site/main.tsx", "@acme/none", ""),
            ("apps/site/main.tsx", "@acme", ""),
            ("apps/site/main.tsx", "react", ""),
            ("apps/site/main.tsx", "fs", ""),
            ("apps/site/main.tsx", "node:fs/promises", ""),
            ("apps/site/main.tsx", "", ""),
            ("apps/site/main.tsx", "https://example.com/x.js", ""),
        ],
    );
}

#[test]
fn paths_and_base_url() {
    check(
        &[(
            "tsconfig.json",
            r##"{
                // Comments and commas at the end are usual here.
                "compilerOptions": {
                    "baseUrl": "./src",
                    "paths": { "@/*": ["./*"], "~lib": ["lib/index"], "#gen/*.js": ["gen/*"], "two/*": ["none/*", "lib/*"], },
                },
            }"##,
        )],
        &["src/main.ts", "src/view/list.tsx", "src/lib/index.ts", "src/gen/api.ts", "src/fs/own.ts", "other.js"],
        &[
            ("src/main.ts", "@/view/list", "src/view/list.tsx"),
            ("src/main.ts", "@/view/list.js", "src/view/list.tsx"),
            ("src/main.ts", "@/lib", "src/lib/index.ts"),
            ("src/main.ts", "~lib", "src/lib/index.ts"),
            ("src/main.ts", "#gen/api.js", "src/gen/api.ts"),
            ("src/main.ts", "two/index", "src/lib/index.ts"),
            ("src/main.ts", "view/list", "src/view/list.tsx"),
            ("src/main.ts", "lib", "src/lib/index.ts"),
            ("other.js", "@/lib", "src/lib/index.ts"),
            ("src/main.ts", "@/none", ""),
            ("src/main.ts", "fs", ""),
            ("src/main.ts", "react", ""),
        ],
    );
}

#[test]
fn extended_configurations() {
    check(
        &[
            ("tsconfig.base.json", r#"{"compilerOptions": {"baseUrl": ".", "paths": {"@lib/*": ["libs/*/src"]}}}"#),
            ("apps/a/tsconfig.json", r#"{"extends": "../../tsconfig.base.json", "compilerOptions": {"strict": true}}"#),
            ("apps/b/tsconfig.json", r#"{"extends": ["@tsconfig/node20/tsconfig.json", "../../tsconfig.base"]}"#),
            ("apps/c/tsconfig.json", r#"{"extends": "@acme/config/tsconfig.web.json"}"#),
            ("config/package.json", r#"{"name": "@acme/config"}"#),
            ("config/tsconfig.web.json", r#"{"compilerOptions": {"paths": {"~/*": ["${configDir}/src/*"]}}}"#),
            (
                "apps/d/tsconfig.json",
                r#"{"extends": "./tsconfig.json", "compilerOptions": {"paths": {"d": ["./d.ts"]}}}"#,
            ),
            ("apps/e/tsconfig.json", r#"{"extends": "./tsconfig.two.json"}"#),
            ("apps/e/tsconfig.two.json", r#"{"extends": "./tsconfig.json"}"#),
        ],
        &[
            "libs/one/src/index.ts",
            "apps/a/main.ts",
            "apps/b/main.ts",
            "apps/c/src/main.ts",
            "apps/c/src/x.ts",
            "apps/d/d.ts",
            "apps/e/e.ts",
        ],
        &[
            ("apps/a/main.ts", "@lib/one", "libs/one/src/index.ts"),
            ("apps/b/main.ts", "@lib/one", "libs/one/src/index.ts"),
            ("apps/c/src/main.ts", "~/x", "apps/c/src/x.ts"),
            ("apps/d/d.ts", "d", "apps/d/d.ts"),
            ("apps/e/e.ts", "@lib/one", "libs/one/src/index.ts"),
            ("apps/e/e.ts", "@lib/none", ""),
        ],
    );
}

#[test]
fn references_and_files_without_a_configuration() {
    check(
        &[
            (
                "tsconfig.json",
                r#"{"files": [], "references": [{"path": "./tsconfig.client.json"}, {"path": "./tsconfig.server.json"}, {"path": "./gone"}]}"#,
            ),
            (
                "tsconfig.client.json",
                r#"{"include": ["client"], "compilerOptions": {"paths": {"@/*": ["./client/*"]}}}"#,
            ),
            (
                "tsconfig.server.json",
                r#"{"include": ["server"], "compilerOptions": {"paths": {"@/*": ["./server/*"], "s/*": ["./server/*"]}}}"#,
            ),
            ("old/jsconfig.json", r#"{"compilerOptions": {"baseUrl": "."}}"#),
            (
                "lib/tsconfig.json",
                r#"{"include": ["src"], "exclude": ["**/*.test.ts"], "compilerOptions": {"paths": {"~/*": ["./src/*"]}}}"#,
            ),
        ],
        &[
            "client/main.ts",
            "client/tool.ts",
            "server/main.js",
            "server/tool.ts",
            "e2e/run.ts",
            "old/a/b.js",
            "old/c.js",
            "lib/src/x.ts",
            "lib/src/x.test.ts",
            "lib/test/y.ts",
        ],
        &[
            ("client/main.ts", "@/tool", "client/tool.ts"),
            ("server/main.js", "@/tool", "server/tool.ts"),
            ("e2e/run.ts", "s/tool", "server/tool.ts"),
            ("old/a/b.js", "c", "old/c.js"),
            ("lib/src/x.test.ts", "~/x", "lib/src/x.ts"),
            ("lib/test/y.ts", "~/x", "lib/src/x.ts"),
        ],
    );
}

#[test]
fn names_of_a_configuration_come_before_packages() {
    check(
        &[
            ("a/package.json", r#"{"name": "a", "exports": {"./*": "./dist/index.js"}}"#),
            ("tsconfig.json", r#"{"exclude": ["**/*.test.ts"], "compilerOptions": {"paths": {"a/*": ["./a/src/*"]}}}"#),
        ],
        &["a/src/index.ts", "a/src/x.ts", "a/src/x.test.ts", "main.ts"],
        &[
            ("main.ts", "a/x", "a/src/x.ts"),
            ("a/src/x.test.ts", "a/x", "a/src/x.ts"),
            ("main.ts", "a/none", "a/src/index.ts"),
        ],
    );
}

#[test]
fn root_folders() {
    check(
        &[("tsconfig.json", r#"{"compilerOptions": {"rootDirs": ["src", "generated"]}}"#)],
        &["src/a/main.ts", "generated/a/api.ts"],
        &[("src/a/main.ts", "./api", "generated/a/api.ts")],
    );
}

#[test]
fn exports() {
    check(
        &[
            (
                "p/package.json",
                r#"{
                    "name": "p",
                    "main": "./old.js",
                    "exports": {
                        ".": { "types": "./index.d.ts", "import": "./esm.mjs", "require": "./cjs.cjs" },
                        "./old": { "require": "./old.js" },
                        "./typed": { "types": "./typed.d.ts" },
                        "./list": ["./none.js", "./list.js"],
                        "./parts/*": "./src/parts/*.ts",
                        "./parts/own/*": { "@p/source": "./src/own/*.ts", "default": "./dist/own/*.js" },
                        "./parts/hidden": null,
                        "./js/*.js": "./src/parts/*.ts"
                    }
                }"#,
            ),
            ("q/package.json", r#"{"name": "q", "exports": "./q.js"}"#),
            (
                "r/package.json",
                r#"{"name": "r", "exports": {"node": {"import": "./node.mjs"}, "default": "./rest.js"}}"#,
            ),
        ],
        &[
            "main.ts",
            "p/index.d.ts",
            "p/esm.mjs",
            "p/cjs.cjs",
            "p/old.js",
            "p/typed.d.ts",
            "p/list.js",
            "p/src/parts/one.ts",
            "p/src/own/two.ts",
            "p/src/parts/hidden.ts",
            "q/q.js",
            "r/node.mjs",
            "r/rest.js",
        ],
        &[
            ("main.ts", "p", "p/esm.mjs"),
            ("main.ts", "p/old", "p/old.js"),
            ("main.ts", "p/typed", "p/typed.d.ts"),
            ("main.ts", "p/list", "p/list.js"),
            ("main.ts", "p/parts/one", "p/src/parts/one.ts"),
            ("main.ts", "p/parts/own/two", "p/src/own/two.ts"),
            ("main.ts", "p/js/one.js", "p/src/parts/one.ts"),
            ("main.ts", "q", "q/q.js"),
            ("main.ts", "r", "r/node.mjs"),
            ("p/src/own/two.ts", "p/parts/one", "p/src/parts/one.ts"),
            ("p/src/own/two.ts", "p", "p/esm.mjs"),
            ("main.ts", "p/none", ""),
        ],
    );
}

#[test]
fn own_imports() {
    check(
        &[
            (
                "a/package.json",
                r##"{
                    "name": "a",
                    "imports": {
                        "#tool": "./src/tool.js",
                        "#in/*": { "development": "./src/in/*.ts", "default": "./dist/in/*.js" },
                        "#built/*": "./dist/in/*.js",
                        "#b": "b",
                        "#react": "react"
                    }
                }"##,
            ),
            ("b/package.json", r#"{"name": "b", "main": "b.ts"}"#),
        ],
        &["a/src/main.ts", "a/src/tool.ts", "a/src/in/x.ts", "b/b.ts"],
        &[
            ("a/src/main.ts", "#tool", "a/src/tool.ts"),
            ("a/src/main.ts", "#in/x", "a/src/in/x.ts"),
            ("a/src/main.ts", "#built/x", "a/src/in/x.ts"),
            ("a/src/main.ts", "#b", "b/b.ts"),
            ("a/src/main.ts", "#react", ""),
            ("a/src/main.ts", "#none", ""),
            ("a/src/main.ts", "#", ""),
            ("b/b.ts", "#tool", ""),
        ],
    );
}

#[test]
fn build_output_resolves_to_its_source() {
    check(
        &[
            ("a/package.json", r#"{"name": "a", "main": "dist/index.js", "types": "dist/index.d.ts"}"#),
            (
                "b/package.json",
                r#"{"name": "b", "exports": {".": {"types": "./dist/types/b.d.ts", "import": "./dist/esm/b.mjs"}, "./*": "./dist/*.js"}}"#,
            ),
            ("c/package.json", r#"{"name": "c", "module": "lib/c.esm.js"}"#),
            ("d/package.json", r#"{"name": "d", "main": "made/somewhere.js"}"#),
            ("e/package.json", r#"{"name": "e", "main": "dist/e.production.min.js"}"#),
            ("f/package.json", r#"{"name": "f", "main": "dist/src/index.js"}"#),
            ("g/package.json", r#"{"name": "g", "main": "dist/index.js"}"#),
            ("h/package.json", r#"{"name": "h", "exports": {".": {"types": "./dist/h.d.ts"}}}"#),
            ("i/package.json", r#"{"name": "i", "main": "build/start.js"}"#),
            ("j/package.json", r#"{"name": "j", "exports": {"./x": "./bundled/x.js"}}"#),
            ("k/package.json", r#"{"name": "k", "exports": {"./*": {"types": "./dist/types/k/src/*.d.ts"}}}"#),
            ("tsconfig.json", r#"{"compilerOptions": {"paths": {"built/*": ["./*/dist"]}}}"#),
        ],
        &[
            "main.ts",
            "a/src/index.ts",
            "a/src/deep/x.tsx",
            "a/bin/cli.js",
            "b/src/b.ts",
            "b/src/more/index.ts",
            "c/src/c.js",
            "d/src/index.ts",
            "d/index.js",
            "e/index.js",
            "f/src/index.ts",
            "g/dist/index.js",
            "g/src/index.ts",
            "h/src/h.ts",
            "i/src/index.ts",
            "i/src/start.ts",
            "j/src/x.ts",
            "k/src/x.ts",
        ],
        &[
            ("main.ts", "a", "a/src/index.ts"),
            ("main.ts", "a/dist/deep/x", "a/src/deep/x.tsx"),
            ("main.ts", "a/dist/deep/x.js", "a/src/deep/x.tsx"),
            ("main.ts", "a/deep/x", "a/src/deep/x.tsx"),
            ("a/bin/cli.js", "../dist/index.js", "a/src/index.ts"),
            ("a/bin/cli.js", "../dist", "a/src/index.ts"),
            ("a/bin/cli.js", "..", "a/src/index.ts"),
            ("main.ts", "b", "b/src/b.ts"),
            ("main.ts", "b/more", "b/src/more/index.ts"),
            ("main.ts", "c", "c/src/c.js"),
            ("main.ts", "d", "d/src/index.ts"),
            ("main.ts", "e", "e/index.js"),
            ("main.ts", "f", "f/src/index.ts"),
            ("main.ts", "g", "g/dist/index.js"),
            ("main.ts", "h", "h/src/h.ts"),
            ("main.ts", "i", "i/src/start.ts"),
            ("main.ts", "j/x", "j/src/x.ts"),
            ("main.ts", "k/x", "k/src/x.ts"),
            ("main.ts", "built/a", "a/src/index.ts"),
        ],
    );
}

#[test]
fn packages_of_one_name() {
    check(
        &[
            ("package.json", r#"{"name": "root", "devDependencies": {"lodash": "^4.0.0"}}"#),
            ("packages/core/package.json", r#"{"name": "core", "main": "core.ts"}"#),
            ("examples/one/package.json", r#"{"name": "one"}"#),
            ("examples/one/core/package.json", r#"{"name": "core", "main": "core.ts"}"#),
            ("test/fixtures/lodash/package.json", r#"{"name": "lodash", "main": "l.js"}"#),
            ("test/kit/package.json", r#"{"name": "kit", "main": "kit.js"}"#),
        ],
        &[
            "main.ts",
            "packages/core/core.ts",
            "examples/one/core/core.ts",
            "examples/one/main.ts",
            "test/fixtures/lodash/l.js",
            "test/run.js",
            "test/kit/kit.js",
            "own/self.ts",
        ],
        &[
            ("main.ts", "core", "packages/core/core.ts"),
            ("examples/one/main.ts", "core", "examples/one/core/core.ts"),
            ("main.ts", "lodash", ""),
            ("test/run.js", "lodash", "test/fixtures/lodash/l.js"),
            ("main.ts", "kit", "test/kit/kit.js"),
            ("own/self.ts", "root/main", "main.ts"),
        ],
    );
}

#[test]
fn committed_modules() {
    check(
        &[
            ("node_modules/dep/package.json", r#"{"name": "dep", "main": "d.js"}"#),
            ("package.json", r#"{"name": "root"}"#),
        ],
        &["main.js", "node_modules/dep/d.js"],
        &[("main.js", "dep", "node_modules/dep/d.js"), ("main.js", "other", "")],
    );
}

#[test]
fn malformed_manifests_are_ignored() {
    let deep = format!("{{\"name\": \"deep\", \"exports\": {}{}}}", "[".repeat(4000), "]".repeat(4000));
    check(
        &[
            ("package.json", "{ not json"),
            ("tsconfig.json", "{ \"compilerOptions\": 3"),
            ("a/package.json", "[]"),
            (
                "b/package.json",
                "\u{feff}{\"name\": \"b\", \"main\": 3, \"exports\": {\"./*/*\": \"./*\", \"x\": 1, \".\": {}}}",
            ),
            ("c/package.json", ""),
            ("d/package.json", &deep),
            ("e/package.json", r#"{"name": "", "exports": {".": "../../up.js"}, "imports": []}"#),
            ("f/package.json", r#"{"name": "../up", "main": "/etc/passwd"}"#),
            (
                "a/tsconfig.json",
                r#"{"extends": "", "references": [{"path": ""}], "compilerOptions": {"paths": {"*": ["*"], "a*b*": ["*"]}}}"#,
            ),
            ("b/tsconfig.json", r#"{"compilerOptions": {"paths": {"x": []}, "baseUrl": "../../../.."}}"#),
        ],
        &["main.ts", "a/one.ts", "a/two.ts", "b/src/index.ts", "e/e.ts", "f/f.ts"],
        &[
            ("a/one.ts", "./two", "a/two.ts"),
            ("a/one.ts", "two", "a/two.ts"),
            ("main.ts", "b", "b/src/index.ts"),
            ("main.ts", "deep", ""),
            ("e/e.ts", "#x", ""),
            ("f/f.ts", "../up", ""),
            ("f/f.ts", "../up/..", ""),
            ("b/src/index.ts", "x", ""),
            ("b/src/index.ts", "ü/\u{0}?#", ""),
            ("main.ts", "@", ""),
            ("main.ts", "/", ""),
            ("main.ts", "?", ""),
            ("main.ts", "a//b/../../..", ""),
            ("main.ts", "/a/one", "a/one.ts"),
            ("a/one.ts", "./two?raw", "a/two.ts"),
        ],
    );
}

#[test]
fn counts_are_the_same_from_many_threads() {
    use rayon::prelude::*;
    let mut files: Vec<String> = (0..200).map(|n| format!("packages/p{n}/src/index.ts")).collect();
    files.extend((0..200).map(|n| format!("packages/p{n}/src/f.ts")));
    let manifests: Vec<(String, String)> = (0..200)
        .map(|n| (format!("packages/p{n}/package.json"), format!(r#"{{"name": "p{n}", "main": "dist/index.js"}}"#)))
        .collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let manifests: Vec<(&str, &str)> = manifests.iter().map(|(path, text)| (&**path, &**text)).collect();
    let program = program(&manifests, &files);
    let packages = packages(&program);
    (0..200 * 200).into_par_iter().for_each(|n| {
        let (from, to) = (n / 200, n % 200);
        let file = program.find_file(&format!("packages/p{from}/src/f.ts")).expect("it was set");
        let found = packages.file(&program, file, &format!("p{to}"));
        assert_eq!(found, program.find_file(&format!("packages/p{to}/src/index.ts")));
    });
}
