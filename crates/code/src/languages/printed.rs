//! Definitions as lines of text, for tests of front ends.

use crate::facts::{Def, DefId, FileFacts, Visibility, flag};

const WORDS: [(u32, &str); 7] = [
    (flag::ASYNC, "async"),
    (flag::ABSTRACT, "abstract"),
    (flag::STATIC, "static"),
    (flag::GETTER, "getter"),
    (flag::CONSTRUCTOR, "constructor"),
    (flag::CONSTANT, "constant"),
    (flag::TEST, "test"),
];

/// Kind, path and line of every definition, its visibility unless it is the usual one, and its flags.
pub(super) fn printed(facts: &FileFacts, usual: Visibility) -> Vec<String> {
    let line = |(at, def): (DefId, &Def)| {
        let mut text = format!("{:?} {} {}", def.kind, facts.path_of(at).join("."), def.span.line);
        if def.visibility != usual {
            text += &format!(" {:?}", def.visibility).to_lowercase();
        }
        for (_, word) in WORDS.iter().filter(|(flag, _)| def.is(*flag)) {
            text += &format!(" {word}");
        }
        text
    };
    facts.defs.iter_ids().skip(1).map(line).collect()
}
