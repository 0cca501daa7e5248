//! What languages bring along: builtin names, functions that call what they are given, methods of containers.

use crate::language::Language;

pub fn is_builtin(language: Language, name: &str) -> bool {
    match language {
        Language::Python => PYTHON.contains(&name),
        Language::JavaScript | Language::TypeScript | Language::Tsx => JAVASCRIPT.contains(&name),
        Language::Go => GO.contains(&name),
        Language::Rust => RUST.contains(&name.trim_end_matches('!')),
        Language::Java | Language::Kotlin => JAVA.contains(&name),
        _ => false,
    }
}

/// Functions that call the functions they are given.
pub fn function_calls_argument(language: Language, name: &str) -> bool {
    match language.family() {
        Language::Python => matches!(name, "map" | "filter" | "sorted" | "max" | "min" | "reduce"),
        Language::JavaScript => {
            matches!(name, "setTimeout" | "setInterval" | "setImmediate" | "queueMicrotask" | "requestAnimationFrame")
        }
        _ => false,
    }
}

/// Methods of builtin objects that call the functions they are given.
pub fn method_calls_argument(language: Language, name: &str) -> bool {
    match language.family() {
        Language::Python => matches!(name, "sort"),
        Language::JavaScript => matches!(
            name,
            "forEach" | "map" | "filter" | "reduce" | "reduceRight" | "some" | "every" | "find" | "findIndex"
                | "findLast" | "flatMap" | "sort" | "then" | "catch" | "finally" | "nextTick" | "replace" | "from"
        ),
        Language::Java | Language::Kotlin => matches!(
            name,
            "forEach" | "map" | "filter" | "reduce" | "anyMatch" | "allMatch" | "noneMatch" | "flatMap" | "collect"
                | "computeIfAbsent" | "ifPresent" | "orElseGet" | "thenApply" | "thenAccept" | "thenCompose" | "sorted"
                | "removeIf" | "replaceAll" | "mapToInt" | "mapToObj" | "peek"
        ),
        Language::Rust => matches!(
            name,
            "map" | "for_each" | "filter" | "filter_map" | "flat_map" | "fold" | "any" | "all" | "find" | "position"
                | "map_err" | "and_then" | "or_else" | "unwrap_or_else" | "unwrap_or_default" | "take_while"
                | "skip_while" | "sort_by" | "sort_by_key" | "min_by_key" | "max_by_key" | "then" | "is_some_and"
                | "is_ok_and" | "map_or" | "map_or_else" | "get_or_init" | "get_or_insert_with" | "or_insert_with"
                | "retain" | "inspect" | "partition" | "find_map" | "ok_or_else"
        ),
        _ => false,
    }
}

pub enum Gives {
    Element,
    Itself,
    Nothing,
}

pub fn container_method(name: &str) -> Gives {
    match name {
        "pop" | "popleft" | "shift" | "get" | "setdefault" | "at" | "find" | "unwrap" | "expect" | "unwrap_or"
        | "unwrap_or_default" | "unwrap_or_else" | "first" | "last" | "getFirst" | "getLast" | "orElse" | "orElseThrow"
        | "remove" | "poll" | "peek" | "next" | "element" | "lock" | "read" | "write" | "borrow" | "borrow_mut"
        | "join" | "recv" | "load" | "as_deref" | "as_deref_mut" | "__next__" | "orElseGet" | "get_mut" | "take"
        | "unwrap_unchecked" | "upgrade" => Gives::Element,
        "iter" | "iter_mut" | "into_iter" | "values" | "values_mut" | "copy" | "slice" | "filter" | "concat"
        | "reverse" | "reversed" | "sort" | "sorted" | "stream" | "toList" | "collect" | "cloned" | "clone" | "copied"
        | "as_ref" | "as_mut" | "as_slice" | "skip" | "limit" | "rev" | "chain" | "to_vec" | "to_owned" | "drain"
        | "ok" | "iterator" | "__iter__" | "into_values" | "peekable" | "distinct" | "parallelStream" | "deref"
        | "ok_or" | "ok_or_else" | "context" | "with_context" | "map_err" | "by_ref" | "fuse" | "step_by" | "or"
        | "or_else" | "and" | "inspect" | "peek_mut" | "await" => Gives::Itself,
        _ => Gives::Nothing,
    }
}

/// Method names that so many builtin types have that a lone definition of the program proves nothing.
pub fn is_common_method(name: &str) -> bool {
    COMMON.binary_search(&name).is_ok() || name.len() < 4 || name.starts_with("__")
}

const COMMON: &[&str] = &[
    "accept", "add", "addAll", "all", "any", "append", "apply", "array", "assign", "bind", "bool", "build", "bytes",
    "call", "catch", "chain", "charAt", "check", "clear", "clone", "close", "collect", "commit", "compare",
    "compareTo", "concat", "connect", "contains", "copy", "count", "create", "data", "debug", "decode", "default",
    "delete", "description", "destroy", "dispose", "drop", "each", "emit", "encode", "endsWith", "entries", "entry",
    "equals", "error", "eval", "every", "exec", "execute", "exists", "exit", "extend", "filter", "finally", "find",
    "finish", "first", "flat", "flush", "forEach", "format", "from", "getClass", "getName", "group", "handle",
    "hasNext", "hash", "hashCode", "head", "index", "indexOf", "info", "init", "insert", "into", "isEmpty", "items",
    "iter", "iterator", "join", "json", "keys", "last", "length", "limit", "list", "listen", "load", "lock", "log",
    "lower", "match", "merge", "message", "method", "name", "next", "none", "notify", "observe", "offer", "open",
    "order", "parse", "peek", "poll", "pop", "post", "print", "println", "push", "query", "raise", "range", "read",
    "readline", "reduce", "reject", "release", "remove", "render", "repeat", "replace", "request", "reset", "resolve",
    "result", "resume", "reverse", "rollback", "round", "run", "save", "scan", "schedule", "search", "select", "send",
    "setup", "shift", "size", "skip", "slice", "sleep", "some", "sort", "splice", "split", "start", "startsWith",
    "state", "status", "stop", "store", "stream", "string", "strip", "submit", "subscribe", "substring", "sync",
    "take", "test", "text", "then", "time", "title", "toArray", "toJSON", "toString", "trim", "type", "union",
    "unlock", "unwrap", "update", "upper", "valid", "validate", "value", "valueOf", "values", "verify", "view",
    "wait", "warn", "warning", "watch", "with", "write", "yield",
];

const PYTHON: &[&str] = &[
    "abs", "all", "any", "ascii", "bin", "bool", "breakpoint", "bytearray", "bytes", "callable", "chr", "classmethod",
    "compile", "complex", "delattr", "dict", "dir", "divmod", "enumerate", "eval", "exec", "filter", "float", "format",
    "frozenset", "getattr", "globals", "hasattr", "hash", "help", "hex", "id", "input", "int", "isinstance",
    "issubclass", "iter", "len", "list", "locals", "map", "max", "memoryview", "min", "next", "object", "oct", "open",
    "ord", "pow", "print", "property", "range", "repr", "reversed", "round", "set", "setattr", "slice", "sorted",
    "staticmethod", "str", "sum", "super", "tuple", "type", "vars", "zip", "__import__", "Exception", "BaseException",
    "ValueError", "TypeError", "KeyError", "IndexError", "AttributeError", "RuntimeError", "NotImplementedError",
    "StopIteration", "StopAsyncIteration", "OSError", "IOError", "ImportError", "ModuleNotFoundError", "LookupError",
    "ArithmeticError", "ZeroDivisionError", "OverflowError", "AssertionError", "NameError", "UnicodeError",
    "UnicodeDecodeError", "UnicodeEncodeError", "FileNotFoundError", "FileExistsError", "PermissionError",
    "ConnectionError", "TimeoutError", "EOFError", "MemoryError", "RecursionError", "SystemExit", "KeyboardInterrupt",
    "GeneratorExit", "Warning", "DeprecationWarning", "UserWarning", "RuntimeWarning", "PendingDeprecationWarning",
    "ResourceWarning", "SyntaxWarning", "FutureWarning", "SyntaxError", "BufferError", "aiter", "anext",
    "NotADirectoryError", "IsADirectoryError", "ProcessLookupError", "BrokenPipeError", "ConnectionResetError",
    "ConnectionRefusedError", "ConnectionAbortedError", "InterruptedError", "BlockingIOError", "ChildProcessError",
    "ExceptionGroup", "BaseExceptionGroup",
];

const JAVASCRIPT: &[&str] = &[
    "Array", "ArrayBuffer", "BigInt", "Boolean", "Buffer", "DataView", "Date", "Error", "EvalError", "Float32Array",
    "Float64Array", "Function", "Int16Array", "Int32Array", "Int8Array", "Intl", "JSON", "Map", "Math", "Number",
    "Object", "Promise", "Proxy", "RangeError", "ReferenceError", "Reflect", "RegExp", "Set", "String", "Symbol",
    "SyntaxError", "TypeError", "URIError", "URL", "URLSearchParams", "Uint16Array", "Uint32Array", "Uint8Array",
    "WeakMap", "WeakRef", "WeakSet", "__dirname", "__filename", "alert", "atob", "btoa", "clearImmediate",
    "clearInterval", "clearTimeout", "confirm", "console", "decodeURI", "decodeURIComponent", "document",
    "encodeURI", "encodeURIComponent", "eval", "exports", "fetch", "global", "globalThis", "isFinite", "isNaN",
    "localStorage", "location", "module", "navigator", "parseFloat", "parseInt", "process", "prompt",
    "queueMicrotask", "requestAnimationFrame", "cancelAnimationFrame", "require", "self", "sessionStorage",
    "setImmediate", "setInterval", "setTimeout", "structuredClone", "undefined", "window", "describe", "it", "test",
    "expect", "beforeEach", "afterEach", "beforeAll", "afterAll", "before", "after", "jest", "vi", "AbortController",
    "TextEncoder", "TextDecoder", "Event", "EventTarget", "Headers", "Request", "Response", "FormData", "Blob",
    "AggregateError", "SharedArrayBuffer", "Atomics", "Iterator", "performance",
];

const GO: &[&str] = &[
    "append", "bool", "byte", "cap", "clear", "close", "complex", "complex128", "complex64", "copy", "delete", "error",
    "float32", "float64", "imag", "int", "int16", "int32", "int64", "int8", "len", "make", "max", "min", "new",
    "panic", "print", "println", "real", "recover", "rune", "string", "uint", "uint16", "uint32", "uint64", "uint8",
    "uintptr", "any", "nil", "true", "false", "iota", "comparable",
];

const RUST: &[&str] = &[
    "Some", "None", "Ok", "Err", "Box", "Vec", "String", "Option", "Result", "Default", "Drop", "From", "Into",
    "Iterator", "Clone", "Copy", "Send", "Sync", "ToString", "drop", "println", "print", "eprintln", "eprint",
    "format", "vec", "write", "writeln", "panic", "assert", "assert_eq", "assert_ne", "debug_assert",
    "debug_assert_eq", "debug_assert_ne", "matches", "unreachable", "todo", "unimplemented", "include_str",
    "include_bytes", "include", "concat", "env", "option_env", "line", "file", "column", "module_path", "stringify",
    "cfg", "compile_error", "dbg", "thread_local", "format_args", "u8", "u16", "u32", "u64", "u128", "usize", "i8",
    "i16", "i32", "i64", "i128", "isize", "f32", "f64", "bool", "char", "str", "TryFrom", "TryInto", "AsRef", "AsMut",
    "Fn", "FnMut", "FnOnce", "Eq", "PartialEq", "Ord", "PartialOrd", "Hash", "Debug", "IntoIterator", "Extend",
    "DoubleEndedIterator", "ExactSizeIterator", "Sized", "Unpin", "FromIterator", "ToOwned", "is_x86_feature_detected",
];

const JAVA: &[&str] = &[
    "String", "Object", "Integer", "Long", "Double", "Float", "Boolean", "Byte", "Short", "Character", "Math",
    "System", "Thread", "Runnable", "Exception", "RuntimeException", "Error", "Throwable", "StringBuilder",
    "StringBuffer", "Class", "ClassLoader", "Iterable", "Comparable", "Override", "Deprecated", "Enum", "Void",
    "IllegalArgumentException", "IllegalStateException", "NullPointerException", "UnsupportedOperationException",
    "IndexOutOfBoundsException", "ClassCastException", "InterruptedException", "ArithmeticException", "Number",
    "CharSequence", "AutoCloseable", "Cloneable", "Process", "Runtime", "ThreadLocal", "StackTraceElement",
    "AssertionError", "OutOfMemoryError", "StackOverflowError", "NumberFormatException", "SecurityException",
    "println", "print", "listOf", "mapOf", "setOf", "mutableListOf", "mutableMapOf", "require", "check", "error",
];
