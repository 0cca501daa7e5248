//! From a question to ranked candidates: the recipe that suits what is asked about.

use super::Texts;
use super::texts::ASKS;
use crate::code::symbols::{Kind, Symbols};
use crate::graph::Look;
use lukasa_graph::{Node, Snapshot};
use lukasa_search::code::{self, CodeIndexes, CodeRecipe};
use lukasa_search::expand::Expanded;
use lukasa_search::fuse::{Candidate, Channel, Fusion, best, fuse};
use lukasa_search::intent::{Intent, Template};
use lukasa_search::question::{self, Task};
use lukasa_search::recall::{self, Nearest, RecallIndexes, RecallRecipe, Ties};
use lukasa_search::text::{Scoring, Term, TextIndex};
use lukasa_search::titles;
use lukasa_search::vectors::trust;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;

/// Ways of finding, each for one kind of question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recipe {
    /// Whichever suits what the words are found in.
    #[default]
    Auto,
    /// Any objects: words, meaning and neighbours by the intent's weights.
    Objects,
    /// Symbols and files of a program.
    Code,
    /// Passages, notes and turns that mention or follow one another.
    Recall,
    /// Code and everything else, each by its own recipe, in one list.
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

/// Relationships that recipes know.
const MENTIONS: &str = "MENTIONS";
const NEXT: [&str; 2] = ["NEXT", crate::memory::names::NEXT_EPISODE];
/// Against a mention a walk counts half.
const BACKWARDS: f64 = 0.5;
/// What a file counts whose text is not searched and whose name the question has: as much as the best text.
const NAMED: f64 = 1.0;
/// Best by words that are looked at to tell what is asked about.
const TASTE: usize = 20;

/// What is asked, and what counts.
pub struct Ask<'a> {
    pub text: &'a str,
    pub recipe: Recipe,
    pub lexical: bool,
    pub vector: bool,
    pub intent: Option<Intent>,
    pub fusion: Fusion,
    /// Candidates of each channel.
    pub pool: usize,
    /// Nearest by meaning, where there are vectors.
    pub nearest: Nearest,
    /// Which nodes may be in the answer.
    pub allowed: &'a (dyn Fn(Node) -> bool + Sync),
}

/// What was found, and how.
pub struct Answered {
    pub recipe: Recipe,
    pub fusion: String,
    pub terms: Vec<Term>,
    /// Words as the question has them, by the form they are looked for in.
    pub said: FxHashMap<String, String>,
    /// Best first.
    pub candidates: Vec<Candidate>,
    pub channels: Vec<Channel>,
    /// Files of a program, best first.
    pub files: Vec<Candidate>,
    /// Filled in by who follows relationships.
    pub expanded: Expanded,
}

/// Finds in a view.
pub fn find(look: &Look, texts: &Texts, ask: &Ask<'_>) -> Answered {
    let found = Finding { look, texts, ask, order: &|node| look.snapshot.thing(node), said: OnceCell::new() };
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

/// Relationships of a type around a node: the other end, its weight, whether it leads there.
fn links<'s>(snapshot: &'s Snapshot, node: Node, names: &'s [&'s str]) -> impl Iterator<Item = (Node, f64, bool)> + 's {
    let out = snapshot.outgoing(node).iter().map(|link| (link, true));
    let all = out.chain(snapshot.incoming(node).iter().map(|link| (link, false)));
    all.filter(move |((to, edge, _), _)| {
        let is_named = || names.iter().any(|name| snapshot.edge_type(*edge).eq_ignore_ascii_case(name));
        *to != node && is_named() && !snapshot.is_ended(*to)
    })
    .map(|((to, edge, _), forward)| (to, snapshot.weight(edge).unwrap_or(1.0), forward))
}

struct Finding<'a> {
    look: &'a Look,
    texts: &'a Texts,
    ask: &'a Ask<'a>,
    order: &'a (dyn Fn(Node) -> u64 + Sync),
    /// Objects by the question's words: looked at to tell what is asked about, and again to answer.
    said: OnceCell<Said>,
}

/// The question's words, and the best objects by them.
struct Said {
    terms: Vec<Term>,
    found: Vec<(Node, f64)>,
}

impl Finding<'_> {
    /// The question's words, and the best objects by them.
    fn said(&self) -> &Said {
        self.said.get_or_init(|| {
            let terms = question::prose_terms(self.ask.text);
            let found = best(self.scored(&self.texts.objects, &terms), self.ask.pool.max(TASTE), self.order);
            Said { terms, found }
        })
    }

    /// What may be in the answer, by plain words.
    fn scored(&self, index: &TextIndex, terms: &[Term]) -> Vec<(Node, f64)> {
        let all = index.scores(terms, &Scoring::default()).into_iter().filter(|(node, _)| (self.ask.allowed)(*node));
        all.map(|(node, score)| (node, f64::from(score))).collect()
    }

    fn nearest(&self) -> Nearest {
        if !self.ask.vector {
            return Nearest::default();
        }
        let Nearest { found, base } = &self.ask.nearest;
        let found = found.iter().copied().filter(|(node, _)| !self.texts.is_left_out(*node)).collect();
        Nearest { found, base: *base }
    }

    fn answered(
        &self,
        recipe: Recipe,
        terms: Vec<Term>,
        candidates: Vec<Candidate>,
        channels: Vec<Channel>,
    ) -> Answered {
        let fusion = match recipe {
            Recipe::Code => Fusion::WeightedMax.name(),
            Recipe::Recall => "recall:v1".into(),
            Recipe::Objects | Recipe::Auto | Recipe::Mixed => self.ask.fusion.name(),
        };
        let said = question::said(self.ask.text);
        Answered { recipe, fusion, terms, said, candidates, channels, files: vec![], expanded: Expanded::default() }
    }

    /// Code and everything else by their own recipes, in one list; only one of them where the other has nothing.
    fn mixed(&self, both: bool) -> Answered {
        let terms = question::terms(self.ask.text);
        let Said { terms: prose, found: said } = self.said();
        let mut mixed = self.code();
        let units = mixed.candidates.iter().filter(|candidate| (self.ask.allowed)(candidate.node));
        let units: Vec<(Node, f64)> = units.take(TASTE).map(|c| (c.node, c.score())).collect();
        let symbols = Symbols::new(self.look);
        // What is known by name only speaks for the code that uses it.
        let own = |node: Node| symbols.kind(node).is_none_or(|kind| !kind.outside());
        let own: Vec<(Node, f64)> = said.iter().take(TASTE).copied().filter(|(node, _)| own(*node)).collect();
        let code = covered(&self.texts.units, &units, &terms);
        let others = covered(&self.texts.objects, &own, prose);
        if others == 0.0 && !both {
            // No word of the question occurs anywhere: meaning is all there is to go by.
            let by_meaning = code == 0.0 && !self.nearest().found.is_empty();
            return if by_meaning { self.objects_only() } else { mixed };
        }
        let mut of_others = if self.are_tied(&own) { self.recall() } else { self.objects_only() };
        if code == 0.0 && !both {
            return of_others;
        }
        // Code is in the list already, by a recipe made for it: what only sounds alike is not to take its place.
        of_others.candidates.retain(|candidate| symbols.kind(candidate.node).is_none());
        let most = code.max(others).max(f64::MIN_POSITIVE);
        by_place(&mut mixed.candidates, (code / most).max(CODE_LEAST));
        by_place(&mut of_others.candidates, others / most);
        mixed.candidates.extend(of_others.candidates);
        lukasa_search::fuse::sort(&mut mixed.candidates, self.order);
        mixed.channels.extend(of_others.channels);
        mixed.fusion = format!("{} + {}", mixed.fusion, of_others.fusion);
        mixed.recipe = Recipe::Mixed;
        mixed
    }

    /// Whether most of these mention or follow others.
    fn are_tied(&self, found: &[(Node, f64)]) -> bool {
        let tied = |names: &[&str]| {
            let snapshot = &self.look.snapshot;
            found.iter().filter(|(node, _)| links(snapshot, *node, names).next().is_some()).count() * 2 >= found.len()
        };
        !found.is_empty() && (tied(&NEXT) || tied(&[MENTIONS]))
    }

    fn code(&self) -> Answered {
        let task = Task::read(self.ask.text);
        let symbols = Symbols::new(self.look);
        let Texts { files, paths, units, defined, .. } = self.texts;
        let indexes = CodeIndexes { files, paths, units, defined };
        let recipe = CodeRecipe::default();
        let in_file = |node: Node| self.texts.file(node);
        let named = self.texts.named_all_the_same(self.ask.text).into_iter().map(|node| (node, 1.0)).collect();
        let named = Channel { name: "named", weight: NAMED, found: named };
        let located = code::locate(&indexes, &task, &recipe, vec![named], in_file, self.order);
        let candidates = self.symbols_by_file(&symbols, &located);
        let mut answered = self.answered(Recipe::Code, task.terms(), candidates, located.channels);
        answered.files = located.files;
        answered
    }

    /// Symbols by what they say themselves and by their file.
    fn symbols_by_file(&self, symbols: &Symbols<'_>, located: &code::Located) -> Vec<Candidate> {
        let files: FxHashMap<Node, f64> = located.files.iter().map(|file| (file.node, file.score())).collect();
        let best_file = files.values().copied().fold(f64::MIN_POSITIVE, f64::max);
        let best_unit = located.units.first().map_or(1.0, |(_, score)| *score);
        let mut all: Vec<Candidate> = Vec::new();
        for (node, score) in &located.units {
            let mut candidate = Candidate::new(*node);
            candidate.add("symbol", score / best_unit * likely(symbols.kind(*node)));
            if let Some(score) = self.texts.file(*node).and_then(|file| files.get(&file)) {
                candidate.add("file", score / best_file);
            }
            all.push(candidate);
        }
        // Files of which only the name fits.
        let there: FxHashSet<Node> = located.units.iter().map(|(node, _)| *node).collect();
        for file in located.files.iter().filter(|file| !there.contains(&file.node)) {
            let mut candidate = Candidate::new(file.node);
            candidate.add("file", file.score() / best_file);
            all.push(candidate);
        }
        lukasa_search::fuse::sort(&mut all, self.order);
        all
    }

    /// Whatever is near in meaning, for who wants no words looked for; perhaps code only.
    fn by_meaning(&self, code_only: bool) -> Answered {
        let mut answered = self.objects_only();
        if code_only {
            let symbols = Symbols::new(self.look);
            answered.candidates.retain(|candidate| is_code(&symbols, candidate.node));
        }
        answered
    }

    fn recall(&self) -> Answered {
        let Texts { objects, titles, names, .. } = self.texts;
        let indexes = RecallIndexes { texts: objects, titles, names };
        let terms = question::prose_terms(self.ask.text);
        let mut recipe = RecallRecipe::default();
        if !self.ask.lexical {
            recipe.lexical = 0.0;
        }
        let bonds = Bonds::new(self.look, self.texts, self.ask.text);
        let found = recall::find(&indexes, self.ask.text, &terms, &self.nearest(), &recipe, &bonds, self.order);
        self.answered(Recipe::Recall, terms, found.candidates, found.channels)
    }

    /// Any objects, symbols among them.
    fn objects(&self) -> Answered {
        self.fused(question::terms(self.ask.text))
    }

    /// Objects that are not code.
    fn objects_only(&self) -> Answered {
        self.fused(vec![])
    }

    /// By words and meaning; `terms` are looked for in symbols.
    fn fused(&self, terms: Vec<Term>) -> Answered {
        let default = Template { lexical: 0.5, vector: 0.5, neighbor: 0.15, recency: 0.0 };
        let template = self.ask.intent.map_or(default, Intent::template);
        let mut channels = Vec::new();
        if self.ask.lexical {
            let mut all = self.said().found.clone();
            all.extend(self.scored(&self.texts.units, &terms));
            let found = best(all, self.ask.pool, self.order);
            channels.push(Channel { name: "lexical", weight: template.lexical, found });
        }
        let near: Vec<_> = self.nearest().found.into_iter().filter(|(node, _)| (self.ask.allowed)(*node)).collect();
        let found = best(near, self.ask.pool, self.order);
        let trusted = trust(found.first().map_or(0.0, |(_, likeness)| *likeness));
        channels.push(Channel { name: "vector", weight: template.vector, found });
        channels.retain(|channel| !channel.found.is_empty());
        if let [only] = &mut channels[..] {
            only.weight = 1.0;
        }
        // The nearest of what is not near has a score like any other; what it counts depends on how alike it is.
        channels.iter_mut().filter(|channel| channel.name == "vector").for_each(|channel| channel.weight *= trusted);
        let candidates = fuse(&channels, self.ask.fusion, self.order);
        let mut terms = terms;
        terms.extend(self.said().terms.iter().cloned());
        terms.sort_by(|a, b| a.word.cmp(&b.word));
        terms.dedup_by(|a, b| a.word == b.word);
        self.answered(Recipe::Objects, terms, candidates, channels)
    }
}

/// The largest part of a question that one of these has the words of: scores of two indexes cannot be compared, because
/// what is rare depends on how much there is.
fn covered(index: &TextIndex, found: &[(Node, f64)], terms: &[Term]) -> f64 {
    let all: f32 = terms.iter().map(|term| term.weight).sum();
    let of = |node: Node| f64::from(index.said(node, terms) / all.max(f32::MIN_POSITIVE));
    found.iter().map(|(node, _)| of(*node)).fold(0.0, f64::max)
}

/// What code counts in a mixed list at least: one word that no code has must not put all of it behind everything that is
/// somehow like the question.
const CODE_LEAST: f64 = 0.5;
/// How fast later places of a mixed list count less: a list of half the weight has a place after three of the other, then
/// every third.
const HEAD: f64 = 3.0;

/// Makes a list count by its places, the first so much: scores of two recipes cannot be compared. Reasons keep their
/// shares.
fn by_place(all: &mut Vec<Candidate>, first: f64) {
    all.retain(|candidate| candidate.score() > 0.0);
    for (place, candidate) in all.iter_mut().enumerate() {
        let share = first * HEAD / (HEAD + place as f64) / candidate.score();
        candidate.reasons.iter_mut().for_each(|reason| reason.score *= share);
    }
}

/// How likely a task is about a kind of symbol rather than about what it is part of.
fn likely(kind: Option<Kind>) -> f64 {
    match kind {
        Some(Kind::Variable) => 0.7,
        Some(Kind::File) => 0.8,
        _ => 1.0,
    }
}

/// How things of a view are tied: by NEXT, NEXT_EPISODE and MENTIONS relationships, and by who speaks.
pub struct Bonds<'a> {
    snapshot: &'a Snapshot,
    speakers: &'a TextIndex,
    /// Turns of the one speaker that the question names.
    of_named: Option<FxHashSet<Node>>,
}

impl<'a> Bonds<'a> {
    pub fn new(look: &'a Look, texts: &'a Texts, question: &str) -> Bonds<'a> {
        let mut named = titles::mentions(question, false, |name| texts.speakers.frequency(name) > 0);
        named.sort();
        named.dedup();
        let of_named = match &named[..] {
            [name] => Some(texts.speakers.having(name).into_iter().collect()),
            _ => None,
        };
        Bonds { snapshot: &look.snapshot, speakers: &texts.speakers, of_named }
    }
}

impl Ties for Bonds<'_> {
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
        all.map(|(to, weight, forward)| (to, if forward { weight } else { weight * BACKWARDS })).collect()
    }
}

/// Whether a node is what recipes for code are about.
pub fn is_code(symbols: &Symbols<'_>, node: Node) -> bool {
    symbols.kind(node).is_some_and(|kind| !kind.outside() || kind == Kind::File)
}
