//! Unresolved calls are counted under the called name.

use crate::languages::LanguageId;
use crate::resolve::{FileId, Program, resolve};
use std::sync::Arc;

/// The unresolved calls of all files as `path name:line`.
fn unresolved(files: &[(&str, &str)]) -> Vec<String> {
    let mut program = Program::default();
    for (path, text) in files {
        let language = LanguageId::of(path, text).expect("a path with a known extension");
        program.set(path, Arc::new(crate::parse(path, text, language)));
    }
    let links = resolve(&mut program);
    let sites = |id: FileId| links[id].unresolved_names.iter().map(move |(name, line)| (id, name, line));
    program.ids().flat_map(sites).map(|(id, name, line)| format!("{} {name}:{line}", program.file(id).path)).collect()
}

#[test]
fn receivers_that_rust_macros_bind_are_counted_as_unresolved() {
    let files = [
        (
            "src/door.rs",
            "pub struct Door;\nimpl Door { pub fn shut(&self) {} pub fn open(&self) {} }\npub struct Gate;\nimpl Gate { pub fn shut(&self) {} }\n",
        ),
        (
            "src/use.rs",
            "use outside::held;\n\
             macro_rules! close { ($door:expr) => { $door.shut() } }\n\
             macro_rules! find { () => { todo!() } }\n\
             fn a() { let door = outside::lock!(1); door.shut(); }\n\
             fn b() { held!(2).shut(); }\n\
             fn c() { let door = find!(); door.shut(); }\n\
             fn d() { unknown_macro! { bind door; door.shut() } }\n\
             fn e(text: &str) { text.len(); }\n",
        ),
    ];
    let found = unresolved(&files);
    for line in [2, 4, 5, 6, 7] {
        assert!(found.contains(&format!("src/use.rs shut:{line}")), "line {line}: {found:?}");
    }
    // Names without a function in the program are not listed.
    assert!(!found.iter().any(|site| site.contains("len")), "{found:?}");
}

#[test]
fn a_name_comes_and_goes_with_the_functions_that_have_it() {
    let call = ("a.py", "def run(x):\n    x.close()\n    x.flush()\n");
    let two = "class A:\n    def close(self): pass\nclass B:\n    def close(self): pass\n";
    assert_eq!(unresolved(&[call, ("b.py", two)]), ["a.py close:2"]);
    assert_eq!(unresolved(&[call]), [""; 0]);
}
