//! Detects the language of a file from its name or its first line.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Language {
    Python,
    JavaScript,
    TypeScript,
    Tsx,
    Go,
    Rust,
    Java,
    C,
    Cpp,
    CSharp,
    Ruby,
    Php,
    Kotlin,
}

impl Language {
    pub const ALL: [Language; 13] = [
        Language::Python,
        Language::JavaScript,
        Language::TypeScript,
        Language::Tsx,
        Language::Go,
        Language::Rust,
        Language::Java,
        Language::C,
        Language::Cpp,
        Language::CSharp,
        Language::Ruby,
        Language::Php,
        Language::Kotlin,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Language::Python => "python",
            Language::JavaScript => "javascript",
            Language::TypeScript => "typescript",
            Language::Tsx => "tsx",
            Language::Go => "go",
            Language::Rust => "rust",
            Language::Java => "java",
            Language::C => "c",
            Language::Cpp => "cpp",
            Language::CSharp => "csharp",
            Language::Ruby => "ruby",
            Language::Php => "php",
            Language::Kotlin => "kotlin",
        }
    }

    /// Detects the language from the file's name. `head` is the beginning of its text and is used only when the name is
    /// not enough.
    pub fn of(path: &str, head: &str) -> Option<Language> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let extension = name.rsplit_once('.').map_or("", |(_, e)| e);
        Some(match extension {
            "py" | "pyi" | "pyw" => Language::Python,
            "js" | "mjs" | "cjs" | "jsx" => Language::JavaScript,
            "ts" | "mts" | "cts" => Language::TypeScript,
            "tsx" => Language::Tsx,
            "go" => Language::Go,
            "rs" => Language::Rust,
            "java" => Language::Java,
            "c" => Language::C,
            "h" => header(head),
            "cc" | "cpp" | "cxx" | "c++" | "hh" | "hpp" | "hxx" | "ipp" => Language::Cpp,
            "cs" => Language::CSharp,
            "rb" | "rake" | "gemspec" => Language::Ruby,
            "php" => Language::Php,
            "kt" | "kts" => Language::Kotlin,
            "" => return interpreter(head),
            _ => return None,
        })
    }

    /// The representative of a group of languages that import one another's files.
    pub fn family(self) -> Language {
        match self {
            Language::TypeScript | Language::Tsx => Language::JavaScript,
            Language::C => Language::Cpp,
            other => other,
        }
    }
}

/// Distinguishes C++ headers from C headers: a `.h` file is C++ when it uses syntax that C lacks.
fn header(head: &str) -> Language {
    let cpp = head.lines().any(|line| {
        let line = line.trim_start();
        ["class ", "namespace ", "template", "public:", "private:", "using "].iter().any(|w| line.starts_with(w))
    });
    if cpp { Language::Cpp } else { Language::C }
}

fn interpreter(head: &str) -> Option<Language> {
    let line = head.lines().next()?.strip_prefix("#!")?;
    let program = line.split_whitespace().find(|w| !w.ends_with("/env") && !w.starts_with('-'))?;
    let program = program.rsplit('/').next()?;
    Some(match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "python" => Language::Python,
        "node" => Language::JavaScript,
        "ruby" => Language::Ruby,
        "php" => Language::Php,
        _ => return None,
    })
}
