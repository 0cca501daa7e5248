//! How much each field of an answer matters: what was asked for most, what only programs want least.

/// How much a field matters; the least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Ids, hashes, times, scores: what only programs and the curious want.
    Detail,
    Ordinary,
    /// What the reader must know to use the rest: warnings, notices, counts of lists.
    Kept,
    /// Declared as the operation's answer.
    Answer,
    /// Declared, and beside or within what is given in pages.
    First,
}

/// Kept wherever it stands.
const KEPT: [&str; 7] = ["warnings", "warning", "notice", "hint", "truncated", "total", "next"];
const DETAILS: [&str; 37] = [
    "id",
    "view",
    "debug",
    "meta",
    "evidence",
    "recorded_at",
    "valid_from",
    "valid_to",
    "since",
    "at",
    "time",
    "timestamp",
    "last_seen",
    "change_summary",
    "truncated_fields",
    "discriminator",
    "role_src",
    "role_dst",
    "thing",
    "provenance",
    "timings",
    "costs",
    "next_steps",
    "token_estimate",
    "token_budget",
    "derivation",
    "hash",
    "digest",
    "score",
    "pagerank",
    "rank",
    "role",
    "version",
    "node_ids",
    "from_version",
    "to_version",
    "previous_cursor",
];
/// Ends of names that say the same.
const DETAIL_ENDS: [&str; 7] = ["_id", "_ids", "_hash", "_sha", "_score", "_scores", "_ms"];

/// What an operation declares as its answer, as paths of field names; lists on the way are passed through.
pub struct Declared(Vec<Vec<&'static str>>);

impl Declared {
    pub fn new(answer: &'static [&'static str]) -> Declared {
        Declared(answer.iter().map(|path| path.split('.').collect()).collect())
    }

    pub fn paths(&self) -> impl Iterator<Item = &[&'static str]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Whether the field is declared, lies within what is declared, or contains it.
    fn leads_to(&self, path: &[&str]) -> bool {
        self.0.iter().any(|own| own.iter().zip(path).all(|(a, b)| a == b))
    }

    /// Whether the field lies within what is declared: nothing below it is judged by its name.
    pub fn covers(&self, path: &[&str]) -> bool {
        self.0.iter().any(|own| own.len() <= path.len() && own.iter().zip(path).all(|(a, b)| a == b))
    }

    /// `paged` is the path of what is given in pages; `above` is the weight of what contains the field.
    pub fn weight(&self, path: &[&str], paged: &[&str], above: Weight) -> Weight {
        let name = path.last().copied().unwrap_or_default();
        if self.leads_to(path) {
            return if path.first() == paged.first() { Weight::First } else { Weight::Answer };
        }
        if KEPT.contains(&name) {
            return Weight::Kept;
        }
        let detail = DETAILS.contains(&name) || DETAIL_ENDS.iter().any(|end| name.ends_with(end));
        if detail || above == Weight::Detail { Weight::Detail } else { Weight::Ordinary }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_matters_most_and_what_programs_want_least() {
        let declared = Declared::new(&["items.text", "about"]);
        let weight = |path: &[&str]| declared.weight(path, &["items"], Weight::Ordinary);
        assert_eq!(weight(&["items"]), Weight::First);
        assert_eq!(weight(&["items", "text", "id"]), Weight::First);
        assert_eq!(weight(&["about"]), Weight::Answer);
        assert_eq!(weight(&["items", "warnings"]), Weight::Kept);
        assert_eq!(weight(&["items", "reasons"]), Weight::Ordinary);
        assert_eq!(weight(&["items", "session_id"]), Weight::Detail);
        assert_eq!(declared.weight(&["meta", "recipe"], &["items"], Weight::Detail), Weight::Detail);
        assert_eq!(declared.weight(&["meta", "warnings"], &["items"], Weight::Detail), Weight::Kept);
    }
}
