//! Takes what looks like a secret out of text before it is sent anywhere.

use lukasa_model::shown::{REDACTED, without_credentials};
use regex::{Captures, Regex};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Stands where a secret was.
pub const GONE: &str = REDACTED;

/// Keys, tokens and passwords are replaced. Rather too much than too little: neither a sentence about
/// code nor a vector of it needs any of them.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut text = without_credentials(text);
    for (rule, with) in &*RULES {
        if let Cow::Owned(changed) = rule.replace_all(&text, *with) {
            text = Cow::Owned(changed);
        }
    }
    if let Cow::Owned(changed) = LITERAL.replace_all(&text, |found: &Captures<'_>| {
        let (quote, inside) = (&found[1], &found[2]);
        if looks_random(inside) { format!("{quote}{GONE}{quote}") } else { found[0].to_owned() }
    }) {
        text = Cow::Owned(changed);
    }
    text
}

/// Like [`redact`], with how many secrets went.
pub fn redact_counted(text: &str) -> (Cow<'_, str>, usize) {
    let left = redact(text);
    let gone = match &left {
        Cow::Borrowed(_) => 0,
        // Rules may touch one place twice; what counts is what stands there in the end.
        Cow::Owned(changed) => changed.matches(GONE).count().saturating_sub(text.matches(GONE).count()),
    };
    (left, gone)
}

/// What is replaced, and with what; the order matters only for how much of a place is taken.
static RULES: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        // Private keys, also where the end was cut off.
        (r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----[\s\S]*?(-----END [A-Z0-9 ]*-----|\z)", GONE),
        // Tokens of well-known services, and JSON web tokens.
        (
            r"\b(sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|\b(ghp|gho|ghu|ghs|ghr|github_pat|glpat|npm|hf|pypi|dop_v1|shpat)[-_][A-Za-z0-9_-]{16,}|\b(AKIA|ASIA)[A-Z0-9]{16}\b|\bxox[a-z]-[A-Za-z0-9-]{10,}|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{20,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
            GONE,
        ),
        // Our own access keys; what names them may stay.
        (r"\b(lk_[0-9a-f]{16}_)[A-Za-z0-9_-]{20,}", "${1}[redacted]"),
        (r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{16,}", "$1 [redacted]"),
        // A literal that is given to something called a password: by assignment, as an entry, as an argument.
        (
            r#"(?i)((?:passw(?:or)?d|passphrase|pwd|secret|token|api_?key|access_?key|private_?key|auth_?key|signing_?key|encryption_?key|credentials?)[\w$]*["'`]?\]?\s*(?::\s*[\w&<>\[\]., ']+=|:=|=>|[=:(,]=?)\s*(?:[rbuf&@]{0,2}))("(?:[^"\\\n]|\\.)+"|'(?:[^'\\\n]|\\.)+'|`(?:[^`\\]|\\.)+`)"#,
            "${1}\"[redacted]\"",
        ),
        // The same as shells and environment files write it.
        (r"\b([A-Z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|PRIVATE_KEY)[A-Z0-9_]*=)[^\s'\x22;]+", "${1}[redacted]"),
    ]
    .into_iter()
    .map(|(rule, with)| (Regex::new(rule).expect("the rules are written here"), with))
    .collect()
});

/// Literals long enough to hold a key.
static LITERAL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(["'`])([A-Za-z0-9+/=_.-]{24,})["'`]"#).expect("the rule is written here"));

/// Whether a text looks drawn by lot: long hexadecimal, or digits and letters of both cases without words or paths.
pub fn looks_random(text: &str) -> bool {
    let count = |is: fn(&char) -> bool| text.chars().filter(is).count();
    let digits = count(char::is_ascii_digit);
    if text.len() >= 32 && digits > 0 && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        return true;
    }
    let (upper, lower) = (count(char::is_ascii_uppercase), count(char::is_ascii_lowercase));
    digits * 12 >= text.len() && upper * 8 >= text.len() && lower * 8 >= text.len()
}

#[cfg(test)]
mod tests {
    use super::{redact, redact_counted};

    #[test]
    fn each_secret_counts_once() {
        for (text, gone) in [
            ("nothing to see", 0),
            ("password = \"hidden\"", 1),
            ("token = 'sk-HIDDENHIDDENHIDDENHIDDEN'", 1),
            ("a [redacted] one and API_TOKEN=hidden then\npassword: 'x'", 2),
        ] {
            assert_eq!(redact_counted(text).1, gone, "{text}");
        }
    }

    #[test]
    fn secrets_go() {
        for text in [
            "password = \"HIDDEN\"",
            "PASSWORD: str = 'HIDDEN'",
            "def f(user, password=\"HIDDEN\"): pass",
            "const apiKey: string = `HIDDEN`;",
            "{\"api_key\": \"HIDDEN\"}",
            "config['secret_key'] = 'HIDDEN'",
            "let token := \"HIDDEN\"",
            "client.setPassword(\"HIDDEN\")",
            "os.environ.get(\"DB_PASSWORD\", \"HIDDEN\")",
            "export AWS_SECRET_ACCESS_KEY=HIDDEN",
            "static DB_TOKEN: &str = \"HIDDEN\";",
            "if password == \"HIDDEN\" {",
            "connect(\"postgres://ann:HIDDEN@db.example.org/shop\")",
            "headers = {'Authorization': 'Bearer HIDDENHIDDENHIDDEN12'}",
            "x = 'sk-HIDDENHIDDENHIDDENHIDDEN'",
            "x = 'ghp_HIDDENHIDDENHIDDENHIDDENHIDDEN'",
            "key = \"AKIAHIDDENHIDDEN0000\"",
            "curl -H x-api-key:lk_0123456789abcdef_HIDDENHIDDEN-HIDDEN_HIDDEN",
            "t = \"eyJhbGciOiJIUzI1NiJ9.eyJHIDDENHIDDEN.HIDDEN\"",
            "PEM = \"\"\"-----BEGIN RSA PRIVATE KEY-----\nHIDDEN\n-----END RSA PRIVATE KEY-----\"\"\"",
            "-----BEGIN PRIVATE KEY-----\nHIDDEN and cut off",
            "salt = \"aHIDDEN93kLmQ82xTzR41pWvB7nYc\"",
        ] {
            let shown = redact(text);
            assert!(!shown.contains("HIDDEN") && shown.contains("[redacted]"), "{text}\n{shown}");
        }
        assert!(!redact("seed = '0123456789abcdef0123456789abcdef'").contains("0123456789abcdef"));
    }

    #[test]
    fn code_stays() {
        for text in [
            "token = self.next()",
            "def tokenize(text):\n    return text.split(' ')",
            "let password = read_password(prompt)?;",
            "raise ValueError(\"the password is too short\")",
            "import { something } from './components/TokenList.vue'",
            "url = \"https://example.org/a/long/path/to/some/page.html\"",
            "const NAME: &str = \"a_rather_long_name_of_some_setting\";",
            "fn secret_santa(people: &[Person]) -> Pairs {",
        ] {
            assert_eq!(redact(text), text);
        }
    }
}
