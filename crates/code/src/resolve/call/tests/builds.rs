//! Go files of several builds: calls stay within the build of the calling file.

use super::check;

const CODECS: [(&str, &str); 3] = [
    ("json/api.go", "package json\n\ntype Core interface { Marshal(v any) }\n\nvar API Core\n"),
    (
        "json/fast.go",
        "//go:build fast && (linux || windows)\n\npackage json\n\nfunc init() { API = fastApi{} }\n\
         type fastApi struct{}\nfunc (f fastApi) Marshal(v any) { encode(v) }\nfunc encode(v any) {}\n\
         func Name() string { return \"fast\" }\n",
    ),
    (
        "json/std.go",
        "//go:build !fast\n\npackage json\n\nfunc init() { API = stdApi{} }\n\
         type stdApi struct{}\nfunc (s stdApi) Marshal(v any) { encode(v) }\nfunc encode(v any) {}\n\
         func Name() string { return \"std\" }\n",
    ),
];

#[test]
fn tags_choose_the_usual_build() {
    let mut files = CODECS.to_vec();
    files.push(("go.mod", "module m\n"));
    files.push((
        "main.go",
        "package main\n\nimport \"m/json\"\n\nfunc main() {\n\tjson.API.Marshal(1)\n\tprint(json.Name())\n}\n",
    ));
    let found = super::calls(&files);
    let calls = |place: &str| found.iter().filter(|c| c.starts_with(place)).map(String::as_str).collect::<Vec<_>>();
    let run: Vec<&str> = calls("main.go:6").into_iter().filter(|c| !c.contains("api.go")).collect();
    assert_eq!(run.len(), 1, "{found:?}");
    assert_eq!(run[0], "main.go:6 -> json/std.go Marshal:7 0.6", "the only one that is left: {found:?}");
    assert_eq!(calls("main.go:7"), ["main.go:7 -> json/std.go Name:9 0.95"], "{found:?}");
    // A file of another build calls functions of that build.
    assert_eq!(calls("json/fast.go"), ["json/fast.go:7 -> encode:8 0.98"]);
    assert_eq!(calls("json/std.go"), ["json/std.go:7 -> encode:8 0.98"]);
}

#[test]
fn file_names_choose_the_usual_build_and_others_keep_to_theirs() {
    check(
        &[
            ("os/open.go", "package os\n\ntype File struct{}\n\nfunc Open(f *File) {\n\tf.sync()\n\tlock()\n}\n"),
            ("os/a_linux.go", "package os\n\nfunc (f *File) sync() {}\nfunc lock() {}\n"),
            ("os/b_windows.go", "package os\n\nfunc (f *File) sync() {}\nfunc lock() {}\n"),
            ("os/c_windows.go", "package os\n\nfunc reopen(f *File) {\n\tf.sync()\n\tlock()\n}\n"),
        ],
        &[
            "os/c_windows.go:4 -> os/b_windows.go sync:3 0.9",
            "os/c_windows.go:5 -> os/b_windows.go lock:4 0.95",
            "os/open.go:6 -> os/a_linux.go sync:3 0.9",
            "os/open.go:7 -> os/a_linux.go lock:4 0.95",
        ],
    );
}

#[test]
fn what_only_another_build_has_is_still_found() {
    check(
        &[
            ("os/open.go", "package os\n\nfunc Open() { lock() }\n"),
            ("os/b_windows.go", "package os\n\nfunc lock() {}\n"),
        ],
        &["os/open.go:3 -> os/b_windows.go lock:3 0.95"],
    );
}

#[test]
fn a_program_beside_a_package_is_not_the_package() {
    check(
        &[
            ("go.mod", "module m\n"),
            ("lib/gen.go", "//go:build ignore\n\npackage main\n\nfunc Make() {}\n"),
            ("lib/lib.go", "package lib\n\nfunc Make() {}\n"),
            ("main.go", "package main\n\nimport \"m/lib\"\n\nfunc main() { lib.Make() }\n"),
        ],
        &["main.go:5 -> lib/lib.go Make:3 0.95"],
    );
}
