//! Names of the types that the code index records. `packs/code.json` declares them, with the other spellings accepted.

pub const FILE: &str = "File";
pub const MODULE: &str = "Module";
pub const CLASS: &str = "Class";
pub const INTERFACE: &str = "Interface";
pub const TYPE: &str = "Type";
pub const FUNCTION: &str = "Function";
pub const METHOD: &str = "Method";
pub const VARIABLE: &str = "Variable";
pub const TEST: &str = "Test";
pub const PACKAGE: &str = "Package";
pub const EXTERNAL: &str = "External";
pub const COMMIT: &str = "Commit";

/// Label of files, types and functions that are part of the tests. It is no type's name, so that no query takes one for the other.
pub const TEST_CODE: &str = "test_code";
/// What earlier versions called it.
const EARLIER_TEST_CODE: &str = "test";

pub fn is_test_label(label: &str) -> bool {
    label == TEST_CODE || label == EARLIER_TEST_CODE
}

/// Types of what a file is and contains, and of what it uses from elsewhere.
pub const OBJECT_TYPES: [&str; 11] =
    [FILE, MODULE, CLASS, INTERFACE, TYPE, FUNCTION, METHOD, VARIABLE, TEST, PACKAGE, EXTERNAL];

pub const CONTAINS: &str = "CONTAINS";
pub const DEFINED_IN: &str = "DEFINED_IN";
pub const IMPORTS: &str = "IMPORTS";
pub const CALLS: &str = "CALLS";
pub const EXTENDS: &str = "EXTENDS";
pub const IMPLEMENTS: &str = "IMPLEMENTS";
pub const REFERENCES: &str = "REFERENCES";
pub const TESTS: &str = "TESTS";

pub const RELATIONSHIP_TYPES: [&str; 8] =
    [CONTAINS, DEFINED_IN, IMPORTS, CALLS, EXTENDS, IMPLEMENTS, REFERENCES, TESTS];

/// What EXTENDS was called in indexes of earlier versions.
const EARLIER_EXTENDS: &str = "INHERITS";

/// The name that a relationship type of a code index has today; `None` for any other type.
pub fn relationship_type(name: &str) -> Option<&'static str> {
    if name.eq_ignore_ascii_case(EARLIER_EXTENDS) {
        return Some(EXTENDS);
    }
    RELATIONSHIP_TYPES.into_iter().find(|known| name.eq_ignore_ascii_case(known))
}
