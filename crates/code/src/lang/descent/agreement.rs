//! Shared by the tests of all hand-written parsers: comparisons with tree-sitter, also for damaged texts.

use super::compare;
use crate::lang::mutations::MutationRng;
use crate::lang::tree;
use crate::languages::LanguageId;

/// The facts of a text by tree-sitter and by our parser; `None` if the latter rejects it.
pub(crate) fn both(text: &str, language: LanguageId) -> (String, Option<String>) {
    let extension = language.get().extensions().first().expect("every language has one");
    let path = &format!("src/file.{extension}");
    let json = |facts| serde_json::to_string(&facts).expect("facts can be written");
    let own = compare::own(text, language).map(|tree| json(compare::facts(path, text, language, &tree)));
    (json(compare::facts_by_tree_sitter(path, text, language)), own)
}

/// Fails for texts that our parser rejects or reads differently.
#[track_caller]
pub(crate) fn same<T: AsRef<str>>(texts: impl IntoIterator<Item = T>, language: LanguageId) {
    let differs = |text: T| {
        let text = text.as_ref();
        let (theirs, ours) = both(text, language);
        match ours {
            Some(ours) if ours == theirs => None,
            Some(ours) => Some(format!("read differently: {text}\n  ours        {ours}\n  tree-sitter {theirs}")),
            None => Some(format!("rejected by our parser: {text}")),
        }
    };
    let wrong: Vec<String> = texts.into_iter().filter_map(differs).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A text with a byte order mark and the line ends of Windows.
pub(crate) fn of_windows(text: impl AsRef<str>) -> String {
    format!("\u{feff}{}", text.as_ref().replace('\n', "\r\n"))
}

/// Fails for texts that our parser accepts.
#[track_caller]
pub(crate) fn left<'a>(texts: impl IntoIterator<Item = &'a str>, language: LanguageId) {
    for text in texts {
        assert!(compare::own(text, language).is_none(), "{}", &text[..text.len().min(80)]);
    }
}

/// A mutation test: whatever is cut out of a text or inserted, our parser does not panic, and if both parsers accept
/// the text, the facts are the same.
pub(crate) struct MutationTest<'a> {
    pub turns: usize,
    /// Texts that are inserted.
    pub pieces: &'a [&'a str],
    /// The test fails unless more than this many texts are accepted and more than this many rejected, because otherwise
    /// it shows nothing.
    pub least: usize,
    /// Whether tree-sitter is known to misread a text.
    pub misread: fn(&str) -> bool,
}

impl MutationTest<'_> {
    /// `texts` returns the language and the undamaged texts of a turn.
    pub(crate) fn is_noticed<'a>(&self, texts: impl Fn(usize) -> (LanguageId, &'a [&'a str])) {
        let mut random = MutationRng::new();
        let (mut plain, mut broken) = (0, 0);
        for turn in 0..self.turns {
            let (language, texts) = texts(turn);
            let text = random.damaged(texts, self.pieces);
            let whole = !tree(&text, language).root_node().has_error();
            let (theirs, ours) = both(&text, language);
            match ours {
                Some(ours) if whole && ours == theirs => plain += 1,
                Some(_) if (self.misread)(&text) => {}
                Some(_) if whole => panic!("read otherwise: {language:?} {text:?}"),
                Some(_) => {}
                None => broken += 1,
            }
        }
        assert!(plain > self.least && broken > self.least, "{plain} {broken}");
    }
}
