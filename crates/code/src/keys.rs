//! Keys of definitions: `path::Class::method`, with a suffix where a file has several of the same name.

use crate::facts::{Def, DefId, DefKind, ExprId, FileFacts, ROOT, SourceExpr, flag};
use crate::ids::IdVec;
use crate::type_names;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The object type of a definition; `None` if the definition is not a symbol.
fn object_type(def: &Def) -> Option<&'static str> {
    let is_test_case = def.is(flag::TEST) && !def.is(flag::ONLY_IN_TESTS);
    Some(match def.kind {
        DefKind::Function | DefKind::Method if is_test_case => type_names::TEST,
        DefKind::File => type_names::FILE,
        DefKind::Module => type_names::MODULE,
        DefKind::Class | DefKind::Struct | DefKind::Enum => type_names::CLASS,
        DefKind::Interface => type_names::INTERFACE,
        DefKind::Type => type_names::TYPE,
        DefKind::Function => type_names::FUNCTION,
        DefKind::Method => type_names::METHOD,
        DefKind::Field | DefKind::Variable => type_names::VARIABLE,
        DefKind::Lambda => return None,
    })
}

/// Object type and key of every definition of a file; `None` for lambdas and for keys that would be too long.
pub fn keys(path: &str, facts: &FileFacts) -> IdVec<DefId, Option<(&'static str, String)>> {
    let mut keys: IdVec<DefId, Option<(&'static str, String)>> = vec![None; facts.defs.len()].into();
    let mut paths: IdVec<DefId, Option<String>> = vec![None; facts.defs.len()].into();
    let mut same: FxHashMap<(&'static str, String), Vec<DefId>> = FxHashMap::default();
    keys[ROOT] = Some((type_names::FILE, path.to_owned()));
    paths[ROOT] = Some(path.to_owned());
    for (index, def) in facts.defs.iter_ids().skip(1) {
        let name = &*clean(facts.name(def.name));
        let above = if def.kind == DefKind::Method && def.receiver.is_some() {
            // Written outside its type: the key is the same as if it were inside.
            let parent = named_parent(facts, &paths, def.parent);
            match def.receiver.and_then(|r| type_name(facts, r)) {
                Some(of) => parent.map(|p| format!("{p}::{of}")),
                None => parent,
            }
        } else {
            named_parent(facts, &paths, def.parent)
        };
        let Some(above) = above else { continue };
        let own = format!("{above}::{name}");
        if own.len() > KEY_BYTES {
            continue;
        }
        if let Some(object_type) = object_type(def)
            && !name.is_empty()
            && !name.starts_with('<')
        {
            same.entry((object_type, own.clone())).or_default().push(index);
            keys[index] = Some((object_type, own.clone()));
        }
        paths[index] = if def.kind == DefKind::Lambda { Some(above) } else { Some(own) };
    }
    for ((object_type, key), defs) in same {
        if defs.len() > 1 {
            distinguish_duplicates(facts, object_type, &key, &defs, &mut keys);
        }
    }
    keys
}

/// Normalizes a name for use in a key: one line, of bounded length.
pub fn clean(name: &str) -> Cow<'_, str> {
    let fine = name.len() <= NAME_BYTES && !name.chars().any(char::is_control) && name.trim() == name;
    if fine {
        return Cow::Borrowed(name);
    }
    let one_line: String = name.split(|c: char| c.is_control() || c.is_whitespace()).filter(|w| !w.is_empty()).fold(
        String::new(),
        |mut line, word| {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
            line
        },
    );
    Cow::Owned(crate::tree::cut(&one_line, NAME_BYTES).trim_end().to_owned())
}

/// Longest name in a key. Longer ones are generated or are sentences.
const NAME_BYTES: usize = 120;
/// Longest key, with room for the suffix that distinguishes duplicates.
const KEY_BYTES: usize = 800;

fn named_parent(facts: &FileFacts, paths: &IdVec<DefId, Option<String>>, parent: DefId) -> Option<String> {
    let mut at = parent;
    loop {
        if let Some(path) = &paths[at] {
            return Some(path.clone());
        }
        if at == ROOT {
            return None;
        }
        at = facts.def(at).parent;
    }
}

/// Distinguishes duplicates by the trait they implement, else by their parameters, else by their order.
fn distinguish_duplicates(
    facts: &FileFacts,
    object_type: &'static str,
    key: &str,
    defs: &[DefId],
    keys: &mut IdVec<DefId, Option<(&'static str, String)>>,
) {
    let mut used: FxHashMap<String, u32> = FxHashMap::default();
    for (place, def) in defs.iter().enumerate() {
        let found = facts.def(*def);
        let mark = match found.through.and_then(|t| type_name(facts, t)) {
            Some(of) => format!("~{of}"),
            None if place == 0 => String::new(),
            None if found.kind.callable() => format!("~{}", parameters(&found.signature)),
            None => String::new(),
        };
        let times = used.entry(mark.clone()).or_default();
        *times += 1;
        let own = if *times == 1 { format!("{key}{mark}") } else { format!("{key}{mark}~{times}") };
        keys[*def] = Some((object_type, own));
    }
}

/// The text between the first parentheses of a signature, without spaces.
fn parameters(signature: &str) -> String {
    let inside = signature.split_once('(').map_or("", |(_, rest)| rest);
    let inside = inside.rsplit_once(')').map_or(inside, |(inside, _)| inside);
    let text: String = inside.chars().filter(|c| !c.is_whitespace()).take(80).collect();
    if text.is_empty() { "()".into() } else { format!("({text})") }
}

/// The last name of a type expression.
pub fn type_name(facts: &FileFacts, expr: ExprId) -> Option<&str> {
    match facts.expr(expr) {
        SourceExpr::Free(name) | SourceExpr::Member(_, name) => Some(facts.name(name)),
        SourceExpr::Var(var) => Some(facts.name(facts.vars[var].name)),
        SourceExpr::Generic(of, _) | SourceExpr::InstanceOf(of) => type_name(facts, of),
        SourceExpr::Def(def) => Some(facts.name(facts.def(def).name)),
        _ => None,
    }
}
