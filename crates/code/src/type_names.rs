//! Names of the types that the code index records; `packs/code.json` declares them, with the other accepted spellings.

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
/// A commit of version control.
pub const COMMIT: &str = "Commit";

/// Label of files, types and functions that are part of the tests. It differs from every type name, so that a query
/// cannot confuse the two.
pub const TEST_CODE: &str = "test_code";
/// The label in earlier versions.
const EARLIER_TEST_CODE: &str = "test";

/// Whether a label marks test code, in this version or an earlier one.
pub fn is_test_label(label: &str) -> bool {
    label == TEST_CODE || label == EARLIER_TEST_CODE
}

/// Types of files, of what they contain, and of what they use from outside the program.
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

/// Types of the relationships between files and symbols.
pub const RELATIONSHIP_TYPES: [&str; 8] =
    [CONTAINS, DEFINED_IN, IMPORTS, CALLS, EXTENDS, IMPLEMENTS, REFERENCES, TESTS];

/// The name of EXTENDS in indexes of earlier versions.
const EARLIER_EXTENDS: &str = "INHERITS";

/// The current name of a relationship type of a code index; `None` for any other type.
pub fn relationship_type(name: &str) -> Option<&'static str> {
    if name.eq_ignore_ascii_case(EARLIER_EXTENDS) {
        return Some(EXTENDS);
    }
    RELATIONSHIP_TYPES.into_iter().find(|known| name.eq_ignore_ascii_case(known))
}
