//! Decides whether a value beside a name such as `password` is a secret, or code or prose about one.

use regex::{Captures, Regex};
use std::sync::LazyLock;

fn rule(text: &str) -> Regex {
    Regex::new(text).expect("the rules are written here")
}

/// A placeholder for a value: a variable, a template, a mask.
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    rule(
        r"(?i)^(?:\$[a-z_{(].*|\{.*|<.*|\[.*|%[({a-z].*|\(.*|[*.…_-]+|x{3,}|your[-_ ].*|none|null|nil|undefined|true|false)$",
    )
});

/// Code: a call, a path of names, an index, a type with parameters, an operator.
static CODE: LazyLock<Regex> = LazyLock::new(|| rule(r"\w\(|::|->|=>|==.|!=|\?\.|\w\[|<|&&|\|\||^[=:&*!@~]|://"));

/// Names of a few letters and a number that mean a format, a type or a quantity.
static FORMAT: LazyLock<Regex> = LazyLock::new(|| {
    rule(
        r"(?i)^(?:(?:u?int|float|bytes?|char|varchar|string|str|v|rfc|es|rs|hs|ps|ed)[-_]?\d{1,5}|(?:base|utf|sha|hmac|aes|argon|oauth|md|rsa)[-_]?\d{1,5}[a-z]{0,2}(?:[._-]?[a-z]+)*|\d+[-_]?(?:bits?|bytes?|chars?|characters?|digits?|ms|[smhdx]|days?|hours?|minutes?|seconds?|px|[kmg]i?b|st|nd|rd|th)(?:-\w+)?)$",
    )
});

/// A name of a secret: `new_password2`, `token_1`.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    rule(r"(?i)^(?:[a-z]+_)*[a-z]*(?:passw(?:or)?d|passphrase|pwd|secret|token|key|credentials?)(?:_[a-z]+)*_?\d{1,2}$")
});

static PATH_OF_NAMES: LazyLock<Regex> = LazyLock::new(|| rule(r"^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$"));
static FILE: LazyLock<Regex> = LazyLock::new(|| rule(r"^[~.]{0,2}/|/[\w.-]*\.[A-Za-z]\w{0,4}$"));
static PASSWORD: LazyLock<Regex> =
    LazyLock::new(|| rule(r"(?i)^(?:passw|pwd|passphrase|passcode|--(?:[a-z0-9]+-)*(?:passw|pwd))"));
static TOKEN: LazyLock<Regex> = LazyLock::new(|| rule(r"(?i)^(?:--(?:[a-z0-9]+-)*)?token"));

/// Minimum length of a word with a digit that counts as a secret: shorter ones are mostly variables.
const SHORTEST: usize = 6;
/// Minimum length of a word without a digit that may look random.
const LONG: usize = 16;

/// Whether the value is not just a placeholder.
pub fn is_given(value: &str) -> bool {
    !PLACEHOLDER.is_match(value.trim())
}

/// Whether a shell would read it as a value: neither an expression nor a number.
pub fn is_shell_value(value: &str) -> bool {
    let is_count = value.len() < LONG && is_number(value);
    is_given(value) && !is_count && !CODE.is_match(value) && !FILE.is_match(value)
}

/// The length of the secret in a value without quotes, if it is one: without the parameters that follow it in a URL or
/// a list.
pub fn secret_word(found: &Captures<'_>, given: &str) -> Option<usize> {
    static NEXT: LazyLock<Regex> = LazyLock::new(|| rule(r"[&,;][\w.-]+="));
    let value = NEXT.find(given).map_or(given, |next| &given[..next.start()]);
    is_secret(&found[0], value).then_some(value.len())
}

/// Whether a word without quotes is a secret. A word that may be a variable, a call, a type or prose is none. Words with
/// digits are secrets, and so are words that are unlikely as a variable or in a sentence.
fn is_secret(name: &str, value: &str) -> bool {
    if !is_given(value) || CODE.is_match(value) || FILE.is_match(value) {
        return false;
    }
    if is_number(value) {
        let least = if PASSWORD.is_match(name) {
            4
        } else if TOKEN.is_match(name) {
            LONG
        } else {
            8
        };
        return value.len() >= least && value.bytes().all(|byte| byte.is_ascii_digit());
    }
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    if has_digit {
        let is_name = FORMAT.is_match(value) || NAMED.is_match(value) || PATH_OF_NAMES.is_match(value);
        return value.chars().count() >= SHORTEST && (!is_name || looks_random(value));
    }
    is_drawn(value) || PASSWORD.is_match(name) && has_mark_inside(value)
}

fn is_number(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit() || b".,:-_%".contains(&byte))
}

/// Whether a special character is inside a word, as in passwords but not in names.
fn has_mark_inside(value: &str) -> bool {
    static MARK: LazyLock<Regex> = LazyLock::new(|| rule(r"\w[@!#$%^~]+\w"));
    value.chars().count() >= SHORTEST && MARK.is_match(value)
}

/// Whether the letters form no words: capitals only, capitals inside words, hardly any vowels.
fn is_drawn(value: &str) -> bool {
    if value.len() < LONG || !value.bytes().all(|byte| byte.is_ascii_alphabetic() || b"+/=".contains(&byte)) {
        return false;
    }
    let letters: Vec<u8> = value.bytes().filter(u8::is_ascii_alphabetic).collect();
    let upper = letters.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    let switches =
        letters.windows(2).filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()).count();
    let vowels = letters.iter().filter(|byte| b"aeiouyAEIOUY".contains(byte)).count();
    upper == letters.len() || (switches + 1) * 3 > letters.len() || vowels * 6 < letters.len()
}

/// Whether a text looks random: long hexadecimal, or digits and letters of both cases without words or paths.
pub fn looks_random(text: &str) -> bool {
    let count = |is: fn(&char) -> bool| text.chars().filter(is).count();
    let digits = count(char::is_ascii_digit);
    if text.len() >= 32 && digits > 0 && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        return true;
    }
    let (upper, lower) = (count(char::is_ascii_uppercase), count(char::is_ascii_lowercase));
    digits * 12 >= text.len() && upper * 8 >= text.len() && lower * 8 >= text.len()
}
