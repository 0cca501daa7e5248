//! Parses keys of symbols: `path::Class::method`, with a suffix if a file has several symbols of one name.

/// The key without the suffix that distinguishes overloads: `a.rs::f~(u8)` becomes `a.rs::f`.
pub fn plain(key: &str) -> &str {
    let Some((path, rest)) = key.split_once("::") else { return key };
    let mut from = 0;
    while let Some(at) = rest[from..].find('~').map(|at| from + at) {
        // `~Class` is a destructor, and `operator~` an operator.
        if at > 0 && !rest[..at].ends_with(':') && !rest[..at].ends_with("operator") {
            return &key[..path.len() + 2 + at];
        }
        from = at + 1;
    }
    key
}

/// The path of a symbol's file. For a file, the whole key.
pub fn path(key: &str) -> &str {
    key.split_once("::").map_or(key, |(path, _)| path)
}

/// The key without the file, with the suffix of overloads. For a file, the whole key.
pub fn local(key: &str) -> &str {
    key.split_once("::").map_or(key, |(_, rest)| rest)
}

/// The name of a symbol: the last part of its key. For a file, its file name.
pub fn name(key: &str) -> &str {
    last(plain(key))
}

/// Like `name`, for a key without a suffix.
pub fn last(key: &str) -> &str {
    match key.rfind("::") {
        Some(at) => &key[at + 2..],
        None => file_name(key),
    }
}

/// The key of the enclosing symbol: `a.rs::Type` of `a.rs::Type::method`. None at the top level of a file.
pub fn above(key: &str) -> Option<&str> {
    plain(key).rsplit_once("::").map(|(above, _)| above).filter(|above| above.contains("::"))
}

fn file_name(path: &str) -> &str {
    let last = path.rsplit('/').next().unwrap_or(path);
    // Package names begin with their ecosystem: `npm:react`.
    last.split_once(':').map_or(last, |(_, name)| name)
}

/// Whether a key ends with a text that begins at one of its parts, with or without the suffix of overloads.
pub fn ends_so(key: &str, text: &str) -> bool {
    ends_at_a_border(key, text) || ends_at_a_border(plain(key), text)
}

/// Whether a key ends with a text that begins at one of its parts.
pub fn ends_at_a_border(key: &str, text: &str) -> bool {
    let before = key.strip_suffix(text).filter(|_| !text.is_empty());
    before.is_some_and(|before| before.is_empty() || before.ends_with(['/', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_names() {
        for (key, expected) in [
            ("src/a.py", "a.py"),
            ("src/a.py::f", "f"),
            ("src/a.py::C::m", "m"),
            ("src/A.java::A::m~(List<a::b>,int)", "m"),
            ("a.cpp::C::~C", "~C"),
            ("a.cpp::C::~C~2", "~C"),
            ("a.cpp::C::operator~", "operator~"),
            ("npm:react", "react"),
            ("npm:@types/node::fs.read", "fs.read"),
        ] {
            assert_eq!(name(key), expected, "{key}");
        }
        assert_eq!((above("a.rs::T::m~(x::Y)"), above("a.rs::f"), above("a.rs")), (Some("a.rs::T"), None, None));
    }

    #[test]
    fn keys_end_at_borders() {
        for (key, text, fits) in [
            ("src/a.py::C::m", "m", true),
            ("src/a.py::C::m", "C::m", true),
            ("src/a.py::C::m", "a.py::C::m", true),
            ("src/a.py::C::m", ".py::C::m", false),
            ("src/a.py::CC::m", "C::m", false),
            ("src/a.java::C::m~(int)", "C::m", true),
            ("src/a.java::C::m~(int)", "C::m~(int)", true),
            ("src/a.py", "a.py", true),
            ("npm:react", "react", true),
            ("src/a.py", "", false),
        ] {
            assert_eq!(ends_so(key, text), fits, "{key} {text}");
        }
    }
}
