//! From a question to ranked candidates, with the recipe that suits the question.

use super::TextIndexes;
use super::code_graph::TaskCode;
use super::texts::ASKS;
use crate::view::ViewGraph;
use crate::view::symbols::{SymbolKind, Symbols};
use lukasa_graph::{Node, Snapshot};
use lukasa_search::pipeline::expand::ExpansionResult;
use lukasa_search::pipeline::fuse::{Candidate, Channel, Fusion, best};
use lukasa_search::pipeline::intent::{Intent, template};
use lukasa_search::pipeline::passages::PassageLinks;
use lukasa_search::pipeline::seeds::{NearestNodes, by_words, covered};
use lukasa_search::pipeline::{self, CodeIndexes, ObjectsQuestion, RecallIndexes};
use lukasa_search::question::{self, TaskText};
use lukasa_search::recipes::{ANY_FIELD, CODE, MIXED, RECALL, RecallRecipe};
use lukasa_search::text::{Term, TextIndex};
use lukasa_search::titles;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;

/// The retrieval recipes that a caller can choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recipe {
    /// The recipe that suits the objects in which the words occur.
    #[default]
    Auto,
    /// Any objects: by words, meaning and neighbors, with the weights of the intent.
    Objects,
    /// Symbols and files of source code.
    Code,
    /// Passages, notes and turns of a conversation that mention or follow one another.
    Recall,
    /// Source code and everything else, each by its own recipe, in one list.
    Mixed,
}

impl Recipe {
    pub fn name(self) -> &'static str {
        match self {
            Recipe::Auto => "auto",
            Recipe::Objects => "objects",
            Recipe::Code => "code",
            Recipe::Recall => "recall",
            Recipe::Mixed => "mixed",
        }
    }
}

/// Relationship types that recipes use.
const MENTIONS: &str = "MENTIONS";
const NEXT: [&str; 2] = ["NEXT", crate::view::memories::names::NEXT_EPISODE];

/// The question and the parameters of a search.
pub struct SearchQuestion<'a> {
    pub text: &'a str,
    pub recipe: Recipe,
    pub lexical: bool,
    pub vector: bool,
    pub intent: Option<Intent>,
    pub fusion: Fusion,
    /// Maximum number of candidates of each channel.
    pub pool: usize,
    /// The nearest nodes by meaning, if there are vectors.
    pub nearest: NearestNodes,
    /// Which nodes may be in the answer.
    pub allowed: &'a (dyn Fn(Node) -> bool + Sync),
}

/// The candidates, and how they were found.
pub struct RankedCandidates {
    pub recipe: Recipe,
    pub fusion: String,
    pub terms: Vec<Term>,
    /// The spelling of each query term in the question, by term.
    pub spelled: FxHashMap<String, String>,
    /// Best first.
    pub candidates: Vec<Candidate>,
    pub channels: Vec<Channel>,
    /// Source files, best first.
    pub files: Vec<Candidate>,
    /// Set by the caller that follows relationships.
    pub expanded: ExpansionResult,
}

/// Searches a view.
pub fn find(look: &ViewGraph, texts: &TextIndexes, ask: &SearchQuestion<'_>) -> RankedCandidates {
    let found = Retrieval { look, texts, ask, order: &|node| look.snapshot.thing(node).0, by_words: OnceCell::new() };
    let mut answered = match ask.recipe {
        Recipe::Recall => found.recall(),
        Recipe::Code | Recipe::Auto | Recipe::Mixed if !ask.lexical => found.by_meaning(ask.recipe == Recipe::Code),
        Recipe::Code => found.code(),
        Recipe::Objects => found.objects(),
        Recipe::Auto | Recipe::Mixed => found.mixed(ask.recipe == Recipe::Mixed),
    };
    answered.candidates.retain(|candidate| (ask.allowed)(candidate.node));
    answered.files.retain(|candidate| (ask.allowed)(candidate.node));
    answered
}

/// Returns the relationships of some types around a node: the other end, the weight, and whether it is outgoing.
fn links<'s>(snapshot: &'s Snapshot, node: Node, names: &'s [&'s str]) -> impl Iterator<Item = (Node, f64, bool)> + 's {
    let out = snapshot.outgoing(node).iter().map(|link| (link, true));
    let all = out.chain(snapshot.incoming(node).iter().map(|link| (link, false)));
    all.filter(move |((to, edge, _), _)| {
        let is_named = || names.iter().any(|name| snapshot.edge_type(*edge).eq_ignore_ascii_case(name));
        *to != node && is_named() && !snapshot.is_ended(*to)
    })
    .map(|((to, edge, _), forward)| (to, snapshot.weight(edge).unwrap_or(1.0), forward))
}

struct Retrieval<'a> {
    look: &'a ViewGraph,
    texts: &'a TextIndexes,
    ask: &'a SearchQuestion<'a>,
    order: &'a (dyn Fn(Node) -> u64 + Sync),
    /// Objects that match the words, computed once: for the choice of the recipe and for the answer.
    by_words: OnceCell<WordMatches>,
}

/// The terms of the question, and the best objects by them.
struct WordMatches {
    terms: Vec<Term>,
    found: Vec<(Node, f64)>,
}

impl Retrieval<'_> {
    /// Returns the terms of the question, and the best objects by them.
    fn by_words(&self) -> &WordMatches {
        self.by_words.get_or_init(|| {
            let terms = question::prose_terms(self.ask.text);
            let found = best(self.scored(&self.texts.objects, &terms), self.ask.pool.max(MIXED.taste), self.order);
            WordMatches { terms, found }
        })
    }

    /// Returns the objects that match plain words and may be in the answer.
    fn scored(&self, index: &TextIndex, terms: &[Term]) -> Vec<(Node, f64)> {
        let mut found = by_words(index, terms, &ANY_FIELD);
        found.retain(|(node, _)| (self.ask.allowed)(*node));
        found
    }

    fn nearest(&self) -> NearestNodes {
        if !self.ask.vector {
            return NearestNodes::default();
        }
        let NearestNodes { found, base } = &self.ask.nearest;
        let found = found.iter().copied().filter(|(node, _)| !self.texts.is_left_out(*node)).collect();
        NearestNodes { found, base: *base }
    }

    fn answered(
        &self,
        recipe: Recipe,
        terms: Vec<Term>,
        candidates: Vec<Candidate>,
        channels: Vec<Channel>,
    ) -> RankedCandidates {
        let fusion = match recipe {
            Recipe::Code => Fusion::WeightedMax.name(),
            Recipe::Recall => Fusion::Sum.name(),
            Recipe::Objects | Recipe::Auto | Recipe::Mixed => self.ask.fusion.name(),
        };
        let spelled = question::written_forms(self.ask.text);
        RankedCandidates {
            recipe,
            fusion,
            terms,
            spelled,
            candidates,
            channels,
            files: vec![],
            expanded: ExpansionResult::default(),
        }
    }

    /// Ranks source code and everything else by their own recipes, in one list; only one of them if the other has no
    /// candidates.
    fn mixed(&self, both: bool) -> RankedCandidates {
        let terms = question::terms(self.ask.text);
        let WordMatches { terms: prose, found: by_words } = self.by_words();
        let mut mixed = self.code();
        let units = mixed.candidates.iter().filter(|candidate| (self.ask.allowed)(candidate.node));
        let units: Vec<(Node, f64)> = units.take(MIXED.taste).map(|c| (c.node, c.score())).collect();
        let symbols = Symbols::new(self.look);
        // Symbols known by name only count for the code that uses them.
        let own = |node: Node| symbols.kind(node).is_none_or(|kind| !kind.outside());
        let own: Vec<(Node, f64)> = by_words.iter().take(MIXED.taste).copied().filter(|(node, _)| own(*node)).collect();
        let code = covered(&self.texts.units, &units, &terms);
        let others = covered(&self.texts.objects, &own, prose);
        if others == 0.0 && !both {
            // No word of the question occurs anywhere, so only meaning can rank.
            let by_meaning = code == 0.0 && !self.nearest().found.is_empty();
            return if by_meaning { self.objects_only() } else { mixed };
        }
        let mut of_others = if self.are_tied(&own) { self.recall() } else { self.objects_only() };
        if code == 0.0 && !both {
            return of_others;
        }
        // Code is ranked by its own recipe; similarity of words alone must not replace it.
        of_others.candidates.retain(|candidate| symbols.kind(candidate.node).is_none());
        let of_code = std::mem::take(&mut mixed.candidates);
        mixed.candidates = pipeline::mixed((of_code, code), (of_others.candidates, others), &MIXED, self.order);
        mixed.channels.extend(of_others.channels);
        mixed.fusion = format!("{} + {}", mixed.fusion, of_others.fusion);
        mixed.recipe = Recipe::Mixed;
        mixed
    }

    /// Whether most of these nodes have relationships of passages: NEXT or MENTIONS.
    fn are_tied(&self, found: &[(Node, f64)]) -> bool {
        let tied = |names: &[&str]| {
            let snapshot = &self.look.snapshot;
            let count = found.iter().filter(|(node, _)| links(snapshot, *node, names).next().is_some()).count();
            count as f64 >= found.len() as f64 * MIXED.tied
        };
        !found.is_empty() && (tied(&NEXT) || tied(&[MENTIONS]))
    }

    fn code(&self) -> RankedCandidates {
        let task = TaskText::read(self.ask.text);
        let TextIndexes { files, paths, units, defined, .. } = self.texts;
        let indexes = CodeIndexes { files, paths, units, defined };
        let named = self.texts.named_all_the_same(self.ask.text).into_iter().map(|node| (node, 1.0)).collect();
        let graph = TaskCode::new(self.look, self.texts, &task);
        let located = pipeline::code(&indexes, &task, &CODE, named, &graph, self.order);
        let mut answered = self.answered(Recipe::Code, task.terms(), located.symbols, located.channels);
        answered.files = located.files;
        answered
    }

    /// Ranks by meaning only, for requests without the lexical channel; optionally only code.
    fn by_meaning(&self, code_only: bool) -> RankedCandidates {
        let mut answered = self.objects_only();
        if code_only {
            let symbols = Symbols::new(self.look);
            answered.candidates.retain(|candidate| is_code(&symbols, candidate.node));
        }
        answered
    }

    fn recall(&self) -> RankedCandidates {
        let TextIndexes { objects, titles, names, .. } = self.texts;
        let indexes = RecallIndexes { texts: objects, titles, names };
        let terms = question::prose_terms(self.ask.text);
        let lexical = if self.ask.lexical { RECALL.lexical } else { 0.0 };
        let recipe = RecallRecipe { lexical, ..RECALL };
        let bonds = RecallTies::new(self.look, self.texts, self.ask.text);
        let found = pipeline::recall(&indexes, self.ask.text, &terms, &self.nearest(), &recipe, &bonds, self.order);
        self.answered(Recipe::Recall, terms, found.candidates, found.channels)
    }

    /// Any objects, symbols included.
    fn objects(&self) -> RankedCandidates {
        self.fused(question::terms(self.ask.text))
    }

    /// Objects that are not code.
    fn objects_only(&self) -> RankedCandidates {
        self.fused(vec![])
    }

    /// Ranks by words and meaning; `terms` are searched for in symbols.
    fn fused(&self, terms: Vec<Term>) -> RankedCandidates {
        let by_words = self.ask.lexical.then(|| {
            let mut all = self.by_words().found.clone();
            all.extend(self.scored(&self.texts.units, &terms));
            all
        });
        let near = self.nearest().found.into_iter().filter(|(node, _)| (self.ask.allowed)(*node));
        let objects = ObjectsQuestion {
            by_words,
            by_meaning: near.collect(),
            template: template(self.ask.intent),
            fusion: self.ask.fusion,
            pool: self.ask.pool,
        };
        let (candidates, channels) = pipeline::objects(objects, self.order);
        let mut terms = terms;
        terms.extend(self.by_words().terms.iter().cloned());
        terms.sort_by(|a, b| a.word.cmp(&b.word));
        terms.dedup_by(|a, b| a.word == b.word);
        self.answered(Recipe::Objects, terms, candidates, channels)
    }
}

/// The relationships of a view that recall uses: NEXT, NEXT_EPISODE and MENTIONS, and the speaker of a turn.
pub struct RecallTies<'a> {
    snapshot: &'a Snapshot,
    speakers: &'a TextIndex,
    /// Turns of the speaker that the question names, if it names exactly one.
    of_named: Option<FxHashSet<Node>>,
}

impl<'a> RecallTies<'a> {
    /// Reads the relationships of a view; `question` decides which speaker is meant.
    pub fn new(look: &'a ViewGraph, texts: &'a TextIndexes, question: &str) -> RecallTies<'a> {
        let mut named = titles::mentions(question, false, |name| texts.speakers.frequency(name) > 0);
        named.sort();
        named.dedup();
        let of_named = match &named[..] {
            [name] => Some(texts.speakers.having(name).into_iter().collect()),
            _ => None,
        };
        RecallTies { snapshot: &look.snapshot, speakers: &texts.speakers, of_named }
    }
}

impl PassageLinks for RecallTies<'_> {
    fn next(&self, node: Node) -> Option<Node> {
        links(self.snapshot, node, &NEXT).find(|(_, _, forward)| *forward).map(|(to, _, _)| to)
    }

    fn previous(&self, node: Node) -> Option<Node> {
        links(self.snapshot, node, &NEXT).find(|(_, _, forward)| !*forward).map(|(to, _, _)| to)
    }

    fn asks(&self, node: Node) -> bool {
        self.speakers.words(node).iter().any(|(word, _)| *word == ASKS)
    }

    fn is_of_another(&self, node: Node) -> bool {
        self.of_named.as_ref().is_some_and(|turns| !turns.contains(&node))
    }

    fn mentions(&self, node: Node) -> Vec<(Node, f64)> {
        let all = links(self.snapshot, node, &[MENTIONS]);
        all.map(|(to, weight, forward)| (to, if forward { weight } else { weight * RECALL.backwards })).collect()
    }
}

/// Whether a node belongs to source code.
pub fn is_code(symbols: &Symbols<'_>, node: Node) -> bool {
    symbols.kind(node).is_some_and(|kind| !kind.outside() || kind == SymbolKind::File)
}
