//! The kinds of nodes and fields of Python, named as tree-sitter's grammar names them.

use crate::tree::Names;
use std::sync::LazyLock;

macro_rules! numbered {
    ($table:ident: $type:ty; $($name:ident $text:literal,)+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr($type)]
        enum $table { $($name,)+ }
        $(pub const $name: $type = $table::$name as $type;)+
        impl $table {
            const TEXTS: &'static [&'static str] = &[$($text,)+];
        }
    };
}

pub mod kind {
    numbered! { Kind: u16;
        MODULE "module",
        BLOCK "block",
        EXPRESSION_STATEMENT "expression_statement",
        ASSIGNMENT "assignment",
        AUGMENTED_ASSIGNMENT "augmented_assignment",
        FUNCTION_DEFINITION "function_definition",
        CLASS_DEFINITION "class_definition",
        DECORATED_DEFINITION "decorated_definition",
        DECORATOR "decorator",
        PARAMETERS "parameters",
        DEFAULT_PARAMETER "default_parameter",
        TYPED_PARAMETER "typed_parameter",
        TYPED_DEFAULT_PARAMETER "typed_default_parameter",
        LIST_SPLAT_PATTERN "list_splat_pattern",
        DICTIONARY_SPLAT_PATTERN "dictionary_splat_pattern",
        ARGUMENT_LIST "argument_list",
        KEYWORD_ARGUMENT "keyword_argument",
        IMPORT_STATEMENT "import_statement",
        IMPORT_FROM_STATEMENT "import_from_statement",
        DOTTED_NAME "dotted_name",
        ALIASED_IMPORT "aliased_import",
        WILDCARD_IMPORT "wildcard_import",
        RETURN_STATEMENT "return_statement",
        RAISE_STATEMENT "raise_statement",
        DELETE_STATEMENT "delete_statement",
        ASSERT_STATEMENT "assert_statement",
        GLOBAL_STATEMENT "global_statement",
        NONLOCAL_STATEMENT "nonlocal_statement",
        PASS_STATEMENT "pass_statement",
        BREAK_STATEMENT "break_statement",
        CONTINUE_STATEMENT "continue_statement",
        TYPE_ALIAS_STATEMENT "type_alias_statement",
        IF_STATEMENT "if_statement",
        ELIF_CLAUSE "elif_clause",
        ELSE_CLAUSE "else_clause",
        FOR_STATEMENT "for_statement",
        WHILE_STATEMENT "while_statement",
        TRY_STATEMENT "try_statement",
        EXCEPT_CLAUSE "except_clause",
        FINALLY_CLAUSE "finally_clause",
        WITH_STATEMENT "with_statement",
        WITH_CLAUSE "with_clause",
        WITH_ITEM "with_item",
        AS_PATTERN "as_pattern",
        AS_PATTERN_TARGET "as_pattern_target",
        MATCH_STATEMENT "match_statement",
        CASE_CLAUSE "case_clause",
        CASE_PATTERN "case_pattern",
        CLASS_PATTERN "class_pattern",
        KEYWORD_PATTERN "keyword_pattern",
        IDENTIFIER "identifier",
        INTEGER "integer",
        FLOAT "float",
        TRUE "true",
        FALSE "false",
        NONE "none",
        ELLIPSIS "ellipsis",
        STRING "string",
        CONCATENATED_STRING "concatenated_string",
        INTERPOLATION "interpolation",
        ATTRIBUTE "attribute",
        CALL "call",
        SUBSCRIPT "subscript",
        SLICE "slice",
        LAMBDA "lambda",
        CONDITIONAL_EXPRESSION "conditional_expression",
        BOOLEAN_OPERATOR "boolean_operator",
        NOT_OPERATOR "not_operator",
        COMPARISON_OPERATOR "comparison_operator",
        BINARY_OPERATOR "binary_operator",
        UNARY_OPERATOR "unary_operator",
        AWAIT "await",
        YIELD "yield",
        NAMED_EXPRESSION "named_expression",
        PARENTHESIZED_EXPRESSION "parenthesized_expression",
        TUPLE "tuple",
        LIST "list",
        SET "set",
        DICTIONARY "dictionary",
        PAIR "pair",
        LIST_SPLAT "list_splat",
        DICTIONARY_SPLAT "dictionary_splat",
        EXPRESSION_LIST "expression_list",
        PATTERN_LIST "pattern_list",
        LIST_COMPREHENSION "list_comprehension",
        SET_COMPREHENSION "set_comprehension",
        DICTIONARY_COMPREHENSION "dictionary_comprehension",
        GENERATOR_EXPRESSION "generator_expression",
        FOR_IN_CLAUSE "for_in_clause",
        IF_CLAUSE "if_clause",
        ASYNC "async",
        FROM "from",
        PLUS "+",
    }
    pub const TEXTS: &[&str] = Kind::TEXTS;
}

pub mod field {
    numbered! { Field: u8;
        NO "",
        NAME "name",
        ALIAS "alias",
        LEFT "left",
        RIGHT "right",
        TYPE "type",
        VALUE "value",
        OPERATOR "operator",
        BODY "body",
        ALTERNATIVE "alternative",
        CONDITION "condition",
        CONSEQUENCE "consequence",
        PARAMETERS "parameters",
        RETURN_TYPE "return_type",
        SUPERCLASSES "superclasses",
        MODULE_NAME "module_name",
        FUNCTION "function",
        ARGUMENTS "arguments",
        OBJECT "object",
        ATTRIBUTE "attribute",
        SUBSCRIPT "subscript",
        KEY "key",
        GUARD "guard",
    }
    pub const TEXTS: &[&str] = Field::TEXTS;
}

pub static NAMES: LazyLock<Names> =
    LazyLock::new(|| Names { kinds: kind::TEXTS.to_vec(), fields: field::TEXTS.to_vec() });
