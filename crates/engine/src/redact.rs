//! Removes what looks like a secret from text before the text is embedded, sent, logged or cited.

mod value;

use lukasa_model::shown::REDACTED;
use regex::{Captures, Regex};
use std::borrow::Cow;
use std::sync::LazyLock;
use value::{is_given, is_shell_value, secret_word};

pub use value::looks_random;

/// Replaces a secret.
pub const GONE: &str = REDACTED;

/// Replaces keys, tokens and passwords by [`GONE`] and keeps everything else. In doubt, text is replaced: neither a
/// sentence about code nor its vector needs a secret. Redacting redacted text changes nothing.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut left = Cow::Borrowed(text);
    // After one rule has replaced something, another rule may match. Each replacement removes characters that are not
    // part of a mark, so the loop ends.
    while let Some(changed) = pass(&left) {
        left = Cow::Owned(changed);
    }
    left
}

/// Like [`redact`], and returns the number of secrets that were replaced.
pub fn redact_counted(text: &str) -> (Cow<'_, str>, usize) {
    let left = redact(text);
    let gone = match &left {
        Cow::Borrowed(_) => 0,
        // Several rules may replace the same place, so the marks in the result are counted.
        Cow::Owned(changed) => changed.matches(GONE).count().saturating_sub(text.matches(GONE).count()),
    };
    (left, gone)
}

/// Applies every rule once. None if no rule matches.
fn pass(text: &str) -> Option<String> {
    let mut changed: Option<String> = None;
    for rule in &*RULES {
        if let Some(after) = rule.apply(changed.as_deref().unwrap_or(text)) {
            changed = Some(after);
        }
    }
    changed
}

type Secret = fn(&Captures<'_>, &str) -> Option<usize>;

/// A pattern of places where a secret may be, and a function that decides whether there is one.
struct Rule {
    /// The first group that matched is the secret; without groups, the whole match.
    place: Regex,
    /// Returns how many bytes of the text at that place are a secret, given the match and the text.
    secret: Secret,
}

impl Rule {
    fn apply(&self, text: &str) -> Option<String> {
        let (mut at, mut kept) = (0, 0);
        let mut out = String::new();
        while let Some(found) = self.place.captures_at(text, at) {
            let whole = found.get_match();
            let place = (1..found.len()).find_map(|group| found.get(group)).unwrap_or(whole);
            match (self.secret)(&found, place.as_str()).filter(|bytes| place.as_str()[..*bytes] != *GONE) {
                Some(bytes) => {
                    out.push_str(&text[kept..place.start()]);
                    out.push_str(GONE);
                    kept = place.start() + bytes;
                    at = kept;
                }
                // A text that is not a secret may be the name of the next one.
                None => at = place.start().max(whole.start() + first_char(whole.as_str())),
            }
        }
        (kept > 0).then(|| out + &text[kept..])
    }
}

fn first_char(text: &str) -> usize {
    text.chars().next().map_or(1, char::len_utf8)
}

/// Names of secrets, anywhere within a longer name.
const NAME: &str = r"(?:passw(?:or)?d|passphrase|passcode|pwd|(?:api|access|private|secret|auth|signing|encryption|account|shared[ _-]?access)[ _-]?key|secret|token|credentials?)";
/// Settings beside a password in a connection string.
const BESIDE: &str =
    r"(?:host|hostaddr|server|data source|user id|uid|user|username|dbname|database|initial catalog|port|sslmode)";

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let always: Secret = |_, value| Some(value.len());
    let given: Secret = |_, value| is_given(value).then_some(value.len());
    let all: [(String, Secret); 14] = [
        // Private keys, also if the end was cut off.
        (r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*-----|\z)".into(), always),
        // A literal assigned to a name such as `password`: in an assignment, an entry or an argument; also within
        // another literal, with escaped quotes.
        (
            format!(
                r#"(?i){NAME}[\w$]*\\?["'`]?\]?\s*(?::\s*[\w&<>\[\]., ']+=|:=|=>|[=:(,]=?)\s*[rbuf&@]{{0,2}}(?:\\"([^"\\\n]+)\\"|"((?:[^"\\\n]|\\.)+)(?:"|\z)|'((?:[^'\\\n]|\\.)+)'|`((?:[^`\\]|\\.)+)`)"#
            ),
            given,
        ),
        // Connection strings: `host=db user=ann password=…`, `Server=db;Password=…;`, in either order.
        (
            format!(
                r"(?i)\b{BESIDE}\s?=\s?[^\s;,()=]+(?:;\s*|\s+)(?:[a-z][\w ]*?\s?=\s?[^\s;,()=]+(?:;\s*|\s+))*?(?:password|pwd)\s?=\s?([^\s;'\x22]+)"
            ),
            given,
        ),
        (format!(r"(?i)\b(?:password|pwd)=([^\s;,()'\x22]+)(?:;\s*|\s+){BESIDE}="), given),
        // Parameters of a URL.
        (format!(r"(?i)[?&](?:[\w.-]*[_.-])?{NAME}=([^\s&#'\x22`<>)]+)"), given),
        // As in shells and environment files.
        (
            r"\b[A-Z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|PRIVATE_KEY)[A-Z0-9_]*=([^\s'\x22`;]+)"
                .into(),
            |_, value| is_shell_value(value).then_some(value.len()),
        ),
        // As in prose and settings: `password: …`, `client_secret=…`, `the token is …`.
        (
            format!(
                r"(?i){NAME}\d{{0,2}}\\?[\x22'`]?\]?(?:\s*(?::=|=>|=|:)[ \t]*|\s+(?:is|was)\s+)([^\s'\x22`]*[^\s'\x22`,;.)\]}}>:])"
            ),
            secret_word,
        ),
        (format!(r"(?i)--(?:[a-z0-9]+-)*{NAME}[ \t]+([^\s'\x22`-][^\s'\x22`]*)"), secret_word),
        (r"(?i)\blogin\s+\S+\s+password\s+(\S+)".into(), given),
        (r"(?:^|\s)(?:-u|--user)\s+['\x22]?[^\s:'\x22/]+:([^\s'\x22]+)".into(), given),
        (r"(?i)\bauthorization\\?['\x22]?\s*[:=]\s*\\?['\x22]?(?:bearer|basic|token|apikey|digest)\s+([^\s'\x22\\]+)".into(), given),
        // Passwords in URLs.
        (r"://[^\s/:@'\x22]*:([^\s/@'\x22]+)@".into(), always),
        (r"(?i)\b(?:bearer|basic)\s+([A-Za-z0-9+/=._~-]{16,})".into(), always),
        // Literals long enough to be a key.
        (r#"["'`]([A-Za-z0-9+/=_.-]{24,})["'`]"#.into(), |_, value| looks_random(value).then_some(value.len())),
    ];
    // Tokens of well-known services, and JSON web tokens. Of our own access keys, the public prefix is kept.
    let known = r"\blk_[0-9a-f]{16}_([A-Za-z0-9_-]{20,})|\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|\b(?:ghp|gho|ghu|ghs|ghr|github_pat|glpat|npm|hf|pypi|dop_v1|shpat)[-_][A-Za-z0-9_-]{16,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bxox[a-z]-[A-Za-z0-9-]{10,}|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{20,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*";
    all.into_iter()
        .chain([(known.to_owned(), always)])
        .map(|(place, secret)| Rule { place: Regex::new(&place).expect("the rules are written here"), secret })
        .collect()
});

#[cfg(test)]
mod tests;
