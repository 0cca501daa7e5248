//! Which passages mention which: stated by Lukasa itself, or by the same rule where it cannot yet.

use super::{Passage, TYPE as PASSAGE};
use crate::Fault;
use crate::finding::{Project, has};
use lukasa_model::Write;
use lukasa_model::batch::{PutRelationship, Reference};
use lukasa_search::titles;
use rustc_hash::FxHashMap;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

pub const TYPE: &str = "MENTIONS";

/// States who mentions whom.
pub fn link(project: &Project, passages: &[Passage]) -> Result<(), Fault> {
    if has("link_mentions") {
        return project.call("link_mentions", json!({"types": [PASSAGE]})).map(drop);
    }
    let weights = weights(passages);
    let writes: Vec<Write> = weights
        .into_iter()
        .map(|((from, to), weight)| {
            let end = |at: usize| Reference::exact(PASSAGE, &passages[at].id);
            let link = PutRelationship::new(TYPE, end(from), end(to));
            Write::from(PutRelationship { weight: Some(weight), ..link })
        })
        .collect();
    project.import(&writes)
}

/// A mention counts the less, the more mentions its title has.
fn weights(passages: &[Passage]) -> BTreeMap<(usize, usize), f64> {
    let mut keyed: FxHashMap<String, Vec<usize>> = FxHashMap::default();
    for (at, passage) in passages.iter().enumerate() {
        titles::keys(&passage.title).into_iter().for_each(|key| keyed.entry(key).or_default().push(at));
    }
    keyed.retain(|_, there| there.len() <= titles::AMBIGUOUS);
    let mut by_key: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    for (from, passage) in passages.iter().enumerate() {
        let own = titles::keys(&passage.title);
        let found: BTreeSet<String> =
            titles::mentions(&passage.text, false, |key| keyed.contains_key(key)).into_iter().collect();
        for key in found.into_iter().filter(|key| !own.contains(key)) {
            let links = keyed[&key].iter().filter(|to| **to != from).map(|to| (from, *to)).collect::<Vec<_>>();
            by_key.entry(key).or_default().extend(links);
        }
    }
    let mut weights: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for links in by_key.values() {
        for link in links {
            *weights.entry(*link).or_default() += 1.0 / links.len() as f64;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_mentioned_often_says_less() {
        let passage = |title: &str, text: &str| Passage { id: title.into(), title: title.into(), text: text.into() };
        let passages = [
            passage("Boso", "Boso was a brother of Teutberga, of Arles and of Teutberga."),
            passage("Teutberga", "She lived in Arles."),
            passage("Arles", "A town."),
            passage("Arles (film)", "Boso went to Arles."),
        ];
        let found = weights(&passages);
        // Arles is two passages, mentioned by two others.
        let expected = [((0, 1), 1.0), ((0, 2), 0.25), ((0, 3), 0.25), ((1, 2), 0.25), ((1, 3), 0.25), ((3, 0), 1.0)];
        assert_eq!(found, expected.into());
    }
}
