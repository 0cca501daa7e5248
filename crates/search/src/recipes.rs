//! Every number that decides which results there are and in which order: its meaning, its unit, and where it came from.
//!
//! A recipe is the parameters of one kind of retrieval. The stages of [`crate::pipeline`] take recipes as values; no
//! other file declares a weight (`tests/weights.rs` of this crate checks that). Weights and shares have no unit unless
//! one is given. Where a number came from is the last part of its comment:
//!
//! - *specified*: by a section of one of the documents that Lukasa is based on. *Objects* is "Dynamic Object Graph and
//!   Extensible Type System", *agents* is "Agent Context Engine", *hybrid* is "Graph RAG".
//! - *measured*: chosen on the development half of the data of a suite of `lukasa-evals`; `docs/ranking.md` describes how.
//! - *judgement*: chosen by reading answers.

use crate::text::{FIELDS, Scoring};

// Words

/// How words are counted in the fields of a document, by BM25+. Boosts are by field: name, path, text, body.
///
/// `k1`, `b`, `delta` and the boosts of name (3), path (1) and text (2) are specified (agents 8.4). That source text is
/// searched at all, with weight 1, is measured (`locate`).
pub const ANY_FIELD: Scoring =
    Scoring { k1: 1.2, delta: 0.25, b: [0.75; FIELDS], boosts: [3.0, 1.0, 2.0, 1.0], shortest: 0 };

/// Whole texts of files: names and comments count like any other word. Measured (`locate`).
pub const WHOLE_TEXT: Scoring = Scoring { boosts: [0.0, 0.0, 1.0, 1.0], ..ANY_FIELD };

/// Paths: words of the file name count twice, and long paths are not penalised. Measured (`locate`).
pub const PATHS: Scoring = Scoring { boosts: [2.0, 1.0, 0.0, 0.0], b: [0.0; FIELDS], delta: 0.0, ..ANY_FIELD };

/// Passages, notes and turns: a word of the title counts twice. Measured (`multihop`, `recall`).
pub const PASSAGES: Scoring = Scoring { boosts: [2.0, 0.0, 1.0, 1.0], ..ANY_FIELD };

/// How much the words of a question count.
#[derive(Clone, Debug, PartialEq)]
pub struct WordsRecipe {
    /// Each occurrence in the title of a task. Measured (`locate`), like the next four.
    pub title: f32,
    /// Each occurrence in the text of a task.
    pub text: f32,
    /// The component that the title begins with; counts beside the title.
    pub scope: f32,
    /// Each occurrence in blocks of code and output.
    pub fenced: f32,
    /// Each occurrence in backticks; counts beside title and text.
    pub ticked: f32,
    /// A word of total weight `n` counts `limit * n / (n + half)`, so that repetitions add less and less: the limit.
    /// Measured (`locate`), like `half`.
    pub limit: f32,
    /// The total weight at which a word counts half of the limit.
    pub half: f32,
    /// Most occurrences that count in a plain question. Judgement.
    pub most_repeats: f32,
    /// Most words that are looked for; those with the highest weight are kept. Judgement, for speed: issues with stack
    /// traces have thousands.
    pub most: usize,
}

pub const WORDS: WordsRecipe = WordsRecipe {
    title: 2.0,
    text: 0.5,
    scope: 1.0,
    fenced: 0.5,
    ticked: 1.0,
    limit: 3.0,
    half: 2.0,
    most_repeats: 3.0,
    most: 320,
};

// Meaning

/// What vectors count.
#[derive(Clone, Debug, PartialEq)]
pub struct MeaningRecipe {
    /// Nearest vectors that are candidates, and the place of the one that counts as not near. Measured (`multihop`,
    /// `recall`).
    pub near: usize,
    /// Likeness below which texts have nothing to do with each other: of twenty pairs drawn at random, one is more alike.
    /// Measured on questions and passages of `multihop`.
    pub least: f64,
    /// Likeness from which texts are about the same: the nearest vector then counts in full, below in proportion.
    /// Judgement.
    pub sure: f64,
}

pub const MEANING: MeaningRecipe = MeaningRecipe { near: 200, least: 0.15, sure: 0.5 };

// Normalisation and fusion

/// How scores of different channels are made comparable.
#[derive(Clone, Debug, PartialEq)]
pub struct FusionRecipe {
    /// Standard deviations from the mean at which scores are cut off. Specified (objects 8B.3).
    pub clamp: f64,
    /// With fewer scores, shares of the best are used, because the deviation is not meaningful. Specified (objects
    /// 8B.3); shares of the best, where that says shares of the range, because the second of two would get 0.
    pub few: usize,
    /// Added to a standard deviation, so that nothing is divided by zero. Specified (objects 8B.3).
    pub epsilon: f64,
    /// The `k` of reciprocal rank fusion: places count `1 / (k + place)`. Specified (agents 8.3); the value in general
    /// use.
    pub rrf_k: f64,
}

pub const FUSION: FusionRecipe = FusionRecipe { clamp: 4.0, few: 5, epsilon: 1e-9, rrf_k: 60.0 };

// Objects

/// Channel weights for an intent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntentWeights {
    pub lexical: f64,
    pub vector: f64,
    /// The share of a hit's score that an edge with score 1 carries to a neighbour.
    pub neighbor: f64,
    /// The share of a score that decays with age.
    pub recency: f64,
}

/// Any objects, by words and meaning. The weights of templates are specified (objects 8B.9), where `recency` is only
/// called low, medium or high, within 0 to 0.4.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectsRecipe {
    /// Where no intent is detected. Specified (objects A.5; `neighbor` objects A.8).
    pub plain: IntentWeights,
    pub explain: IntentWeights,
    pub locate_config: IntentWeights,
    pub debug_error: IntentWeights,
    pub roadmap: IntentWeights,
    /// The weight of a channel that is alone. Specified (objects A.5).
    pub alone: f64,
    /// Days after which the decaying share of a score counts about a third. Judgement: the same as for edges.
    pub fades_days: f64,
}

pub const OBJECTS: ObjectsRecipe = ObjectsRecipe {
    plain: IntentWeights { lexical: 0.5, vector: 0.5, neighbor: 0.15, recency: 0.0 },
    explain: IntentWeights { lexical: 0.4, vector: 0.5, neighbor: 0.1, recency: 0.05 },
    locate_config: IntentWeights { lexical: 0.7, vector: 0.3, neighbor: 0.0, recency: 0.15 },
    debug_error: IntentWeights { lexical: 0.5, vector: 0.3, neighbor: 0.2, recency: 0.4 },
    roadmap: IntentWeights { lexical: 0.3, vector: 0.5, neighbor: 0.2, recency: 0.05 },
    alone: 1.0,
    fades_days: 30.0,
};

// Code

/// Files and symbols that a programming task concerns.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeRecipe {
    /// The weights of the channels over files: whole text, path, best symbols, names of the task that a file defines.
    /// Measured (`locate`).
    pub body: f64,
    pub path: f64,
    pub symbols: f64,
    pub defined: f64,
    /// The weight of a file whose text is not searched and that the task names: as much as the best text. Judgement.
    pub named: f64,
    /// The weights of the best, second and third symbol of a file. Measured (`locate`).
    pub further: [f64; 3],
    /// Words that a symbol has at least when it is scored: otherwise one-line accessors would rank first. Measured
    /// (`locate`).
    pub shortest: u32,
    /// The factor for a defined name that occurs in the title. Measured (`locate`).
    pub in_title: f64,
    /// Most symbols and files per channel: those beyond score next to nothing, and of a million symbols most contain
    /// some word of the task. Judgement, for speed.
    pub most: usize,
}

pub const CODE: CodeRecipe = CodeRecipe {
    body: 1.0,
    path: 1.0,
    symbols: 1.25,
    defined: 0.4,
    named: 1.0,
    further: [1.0, 0.5, 0.25],
    shortest: 20,
    in_title: 1.5,
    most: 512,
};

/// What the score of a symbol consists of. Measured (`locate --level function`), unless a field says otherwise.
///
/// The weights of words, file and path are of shares of the best symbol or file; a symbol that is best in everything has
/// about 8.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolsRecipe {
    /// Words in its own lines and documentation.
    pub text: f64,
    /// The same for the words of the title alone.
    pub title: f64,
    /// Words in its key: its name, its class and its path.
    pub key: f64,
    /// The score of its file, and of that the path.
    pub file: f64,
    pub path: f64,
    /// Words in the best of its callers, and in the best of what it calls.
    pub callers: f64,
    pub callees: f64,
    /// Most callers, and most callees, that are read. Judgement, for speed.
    pub most_calls: usize,
    /// Its name is in the task: times `ln(1 + namesakes / n)` if `n` symbols have that name.
    pub named: f64,
    pub namesakes: f64,
    /// The task names it together with its class, module or file.
    pub qualified: f64,
    /// The title writes its name as code: called, after a dot, or in backticks. Judgement; on commits and issues, any
    /// weight up to 1.5 gives the same figures.
    pub called: f64,
    /// The task names its file by its path.
    pub in_path: f64,
    /// How much more likely a long symbol is to need a change: times `ln(1 + n)` of `n` words, in units of
    /// `words_per_line` and at most `longest` lines.
    pub length: f64,
    pub words_per_line: f64,
    pub longest: f64,
    /// Tests, and examples and documentation, if the task is not about them. Measured, and judgement.
    pub test: f64,
    pub example: f64,
    pub documentation: f64,
    /// Configuration, translations, generated files and data, if the task is not about them. Judgement.
    pub other_role: f64,
    /// The factor for a variable, and for code outside of symbols: mostly a task is about what they are part of.
    /// Judgement.
    pub variable: f64,
    pub outside: f64,
    /// The factor for a type, unless the task names it: a task is mostly about its members. Judgement.
    pub unnamed_type: f64,
}

pub const SYMBOLS: SymbolsRecipe = SymbolsRecipe {
    text: 2.3,
    title: 1.0,
    key: 1.8,
    file: 1.8,
    path: 0.75,
    callers: 0.5,
    callees: 0.5,
    most_calls: 64,
    named: 0.75,
    namesakes: 3.0,
    qualified: 0.75,
    called: 1.0,
    in_path: 0.6,
    length: 0.45,
    words_per_line: 6.0,
    longest: 200.0,
    test: -2.0,
    example: -1.0,
    documentation: -2.0,
    other_role: -2.0,
    variable: 0.7,
    outside: 0.8,
    unnamed_type: 0.95,
};

impl Default for CodeRecipe {
    fn default() -> Self {
        CODE
    }
}

// Recall

/// Passages, notes and turns that mention or follow one another. Measured (`multihop` and `recall` together), unless a
/// field says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct RecallRecipe {
    pub lexical: f64,
    /// Of the squared likeness.
    pub vector: f64,
    /// Of titles that the question mentions.
    pub keys: f64,
    /// A title shared by more texts than this is too ambiguous to count. Judgement.
    pub ambiguous: usize,
    /// The share of a score that is passed to neighbouring turns per hop; `answer` applies after a turn that asks.
    pub next: f64,
    pub answer: f64,
    pub hops: usize,
    /// The factor for turns of other speakers when the query names one speaker.
    pub others: f64,
    /// The walk starts from this many of the best seeds, weighted by their score to the power of `sharpen`.
    pub seeds: usize,
    pub sharpen: i32,
    /// The probability that a walk goes on instead of back to a seed.
    pub damping: f64,
    pub steps: usize,
    /// The share that a mention counts against its direction.
    pub backwards: f64,
    /// The weight of a bridge, and how many of the best seeds are tried.
    pub bridge: f64,
    pub bridges: usize,
    /// Names in more than this share of all texts make no bridges; those in at most `few_names` texts always do.
    /// Judgement.
    pub common_name: f64,
    pub few_names: usize,
    /// A weight too small to matter, which keeps seeds that the walk does not reach in order. Judgement.
    pub last: f64,
}

pub const RECALL: RecallRecipe = RecallRecipe {
    lexical: 1.0,
    vector: 0.8,
    keys: 2.0,
    ambiguous: 8,
    next: 0.4,
    answer: 0.6,
    hops: 2,
    others: 0.7,
    seeds: 20,
    sharpen: 3,
    damping: 0.5,
    steps: 10,
    backwards: 0.5,
    bridge: 0.4,
    bridges: 5,
    common_name: 0.05,
    few_names: 3,
    last: 1e-6,
};

impl Default for RecallRecipe {
    fn default() -> Self {
        RECALL
    }
}

// Mixed

/// Code and everything else in one list. Judgement, checked with `search`.
#[derive(Clone, Debug, PartialEq)]
pub struct MixedRecipe {
    /// Best hits by words that show what a question is about.
    pub taste: usize,
    /// The weight of code in the list at least: one word that no code has must not put all of it behind everything that
    /// is somehow like the question.
    pub code_least: f64,
    /// Place `p` of a list, from 0, counts `head / (head + p)`: a list of half the weight has a place after three of
    /// the other, then every third.
    pub head: f64,
    /// The factor for what no word of the question found, only its vector.
    pub only_near: f64,
    /// The share of the best hits that must mention or follow others for the recipe for recall to be used.
    pub tied: f64,
}

pub const MIXED: MixedRecipe = MixedRecipe { taste: 20, code_least: 0.5, head: 3.0, only_near: 0.5, tied: 0.5 };

// Neighbours

/// Which relationships of hits are followed, and how much score they carry over. Specified (objects 8C), unless a field
/// says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpansionRecipe {
    /// Best hits whose relationships are followed. Judgement; it does not depend on the number of results that are
    /// requested, so that all pages are parts of one list.
    pub primaries: usize,
    /// Relationships followed per hit, and neighbours in total, where a request does not say otherwise.
    pub per_primary: usize,
    pub neighbors: usize,
    /// Hops, where a request does not say otherwise.
    pub depth: u32,
    /// The relationships of a node with more than this many are sampled by type.
    pub hub: usize,
    /// Slots for each relationship type of a hub, as a multiple of an even share.
    pub stratified: f64,
    /// Most a neighbour can gain, as a share of the score of its hit.
    pub most_boost: f64,
    /// Days after which a relationship that was recorded, not derived, counts about a third.
    pub fades_days: f64,
    /// The weight of a relationship type without a declared ranking.
    pub generic: f64,
    /// The bounds of a relationship's weight times its confidence.
    pub least_confidence: f64,
    pub most_confidence: f64,
    /// The factor for a reciprocal type against its direction.
    pub reciprocal: f64,
}

pub const EXPANSION: ExpansionRecipe = ExpansionRecipe {
    primaries: 10,
    per_primary: 3,
    neighbors: 50,
    depth: 1,
    hub: 500,
    stratified: 1.4,
    most_boost: 0.35,
    fades_days: 30.0,
    generic: 0.6,
    least_confidence: 0.25,
    most_confidence: 2.0,
    reciprocal: 1.15,
};

// Search

/// What `search` adds to a list: nearness to an anchor, a second ranking of the best, and what fits into an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchRecipe {
    /// Candidates per channel. Judgement; 100 are specified (objects A.8).
    pub pool: usize,
    /// The weights of the score and of the nearness where a request has an anchor. Specified (hybrid, `hybrid_search`).
    pub semantic: f64,
    pub graph: f64,
    /// Hops, nodes and relationships around an anchor beyond which nothing counts as near. Judgement, for speed.
    pub anchor_hops: u32,
    pub anchor_nodes: usize,
    pub anchor_edges: usize,
    /// Best hits that are reranked. Judgement.
    pub rerank_pool: usize,
    /// The weight of reranking against the first ranking. Judgement.
    pub rerank: f64,
    /// Words further apart than this are unrelated for the built-in reranking. Judgement.
    pub rerank_window: usize,
    /// Most candidates looked at for one page, because a list may end in repetitions. Judgement, for speed.
    pub looked_at: usize,
    /// Shares of the token budget: hits, neighbours, paths, citations; the rest is for what stands around them.
    /// Judgement; other segments are specified (objects 8B.11).
    pub shares: [f64; 4],
    /// Most path summaries. Specified (objects 8B.12).
    pub paths: usize,
}

pub const SEARCH: SearchRecipe = SearchRecipe {
    pool: 120,
    semantic: 0.6,
    graph: 0.4,
    anchor_hops: 4,
    anchor_nodes: 20_000,
    anchor_edges: 200_000,
    rerank_pool: 60,
    rerank: 0.35,
    rerank_window: 24,
    looked_at: 240,
    shares: [0.55, 0.20, 0.10, 0.10],
    paths: 25,
};

/// When a result only repeats what others contain. Specified (objects 8B.7, 8B.15).
#[derive(Clone, Debug, PartialEq)]
pub struct GainRecipe {
    /// New words per token below which a result is left out.
    pub least: f64,
    /// The first results up to this number are always kept.
    pub floor: usize,
}

pub const GAIN: GainRecipe = GainRecipe { least: 0.02, floor: 5 };

/// Which fields of an object are shown. A field's salience is the share of the question's words that it contains, plus
/// these. Judgement, unless a field says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldsRecipe {
    /// Most fields shown besides the core. Specified (objects 8B.6).
    pub shown: usize,
    /// Longest text of a field, in tokens. Specified (objects 8B.6).
    pub longest: usize,
    /// The field's name is a word of the question.
    pub named: f64,
    /// Titles and summaries.
    pub headline: f64,
    /// Descriptions, contents and the like.
    pub prose: f64,
    /// Path, line and language.
    pub place: f64,
    /// Hashes and ids; a field below 0 is only shown on request.
    pub technical: f64,
    /// Any other field.
    pub other: f64,
}

pub const FIELDS_SHOWN: FieldsRecipe = FieldsRecipe {
    shown: 6,
    longest: 128,
    named: 0.5,
    headline: 1.0,
    prose: 0.8,
    place: 0.3,
    technical: -1.0,
    other: 0.2,
};

/// Which sentences are cited. Judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct CitationsRecipe {
    /// Most citations in one answer.
    pub most: usize,
    /// Longest sentence, in tokens.
    pub longest: usize,
    /// Least share of the question, by the weight of words, that a sentence must cover.
    pub least: f64,
}

pub const CITATIONS: CitationsRecipe = CitationsRecipe { most: 8, longest: 60, least: 0.2 };

/// How much is left of stages that are reduced to meet a time budget. Judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct SheddingRecipe {
    /// The share of candidates, and of hits that are reranked.
    pub pool: f64,
    /// The share of neighbours.
    pub expansion: f64,
    /// The weight of the newest request in the average time of a stage.
    pub newest: f64,
    /// The share of `newest` by which the average of a stage that was left out decays, so that it is tried again.
    pub decay: f64,
    /// The first requests of a process, whose fastest counts and which leave nothing out: they also load indexes.
    pub settling: u32,
}

pub const SHEDDING: SheddingRecipe =
    SheddingRecipe { pool: 0.75, expansion: 0.5, newest: 0.2, decay: 0.25, settling: 3 };

// Packs

/// Which code a context pack contains. Judgement, checked with `pack`, unless a field says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct PackRecipe {
    /// Candidates per channel.
    pub pool: usize,
    /// Symbols, and files from whose symbols they are taken, times the breadth of the profile.
    pub symbols: usize,
    /// Files that are named.
    pub files: usize,
    /// Best symbols from which relationships, implementations and the walk start.
    pub seeds: usize,
    /// The probability that the walk goes on instead of back to a seed. Specified (agents 5.1), like the weights of
    /// relationship types in `lukasa_graph::rank`.
    pub damping: f64,
    /// Mass that the walk leaves unspread per unit of a node's weight: far below the differences between nodes next to
    /// the seeds. Judgement, for speed.
    pub rest: f64,
    /// The factor for files of tests if the task is not about tests.
    pub test: f64,
    /// Implementations that come with an interface or abstract class, and their share of its score. At least one is
    /// specified (agents 5).
    pub implementations: usize,
    pub implements: f64,
    /// Relationships around the seeds, times the breadth of the profile.
    pub dependencies: usize,
    /// How much a relationship says about a task: calls, inheritance, anything else.
    pub calls: f64,
    pub inherits: f64,
    pub other: f64,
    /// Callers and callees named with a symbol.
    pub linked: usize,
    /// Shares of the budget: code, dependencies, decisions and learnings, plan, episodes. Specified (agents 1.1).
    pub shares: [f64; 5],
    /// Most of the room that the code of the entry point takes before the other entries have theirs, and most of it
    /// that any other takes. Measured (`locate --level function`).
    pub entry_code: f64,
    pub other_code: f64,
    /// Lines of the part that is shown of a long function, the largest first. Judgement.
    pub windows: [usize; 3],
    /// How much a further occurrence of a word in such a part counts. Judgement.
    pub repeated: f32,
    /// Most of the room that notes about the entry point may have in full; in brief they have what they need.
    pub guarded: f64,
    /// Claims, decisions and learnings about the entry point that come first, of each.
    pub guarded_each: usize,
    /// How many times as much the profile `debug` chooses from.
    pub debug_breadth: usize,
}

pub const PACK: PackRecipe = PackRecipe {
    pool: 120,
    symbols: 40,
    files: 8,
    seeds: 10,
    damping: 0.85,
    rest: 1e-4,
    test: 0.5,
    implementations: 2,
    implements: 0.9,
    dependencies: 24,
    calls: 1.0,
    inherits: 0.8,
    other: 0.2,
    linked: 5,
    shares: [0.40, 0.25, 0.20, 0.10, 0.05],
    entry_code: 0.75,
    other_code: 0.2,
    windows: [24, 12, 6],
    repeated: 0.1,
    guarded: 0.35,
    guarded_each: 3,
    debug_breadth: 10,
};

/// How likely the entry point of a pack is what a task means.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfidenceRecipe {
    /// The entry point is right with the probability `1 / (1 + exp(-x))`, where `x` is `score` times its score, plus
    /// `lead` times its lead over the next, plus `start`. Measured (`locate --level function`, commits and issues
    /// together).
    pub score: f64,
    pub lead: f64,
    pub start: f64,
    /// The least probability that is called high, and medium. Measured: thirds of the tasks.
    pub high: f64,
    pub medium: f64,
    /// The entry point lacks the rare words of the task if it contains a smaller share of its words, weighted by rarity,
    /// than `least_short` for a task of at most `short` different words, and `least_long` for a whole issue, of which no
    /// symbol has most. Judgement, checked with `pack`, like the next.
    pub short: usize,
    pub least_short: f32,
    pub least_long: f32,
    /// What a word counts that only the file of the entry point has.
    pub in_file: f32,
}

pub const CONFIDENCE: ConfidenceRecipe = ConfidenceRecipe {
    score: 0.4,
    lead: 0.77,
    start: -4.2,
    high: 0.5,
    medium: 0.34,
    short: 16,
    least_short: 0.34,
    least_long: 0.1,
    in_file: 0.4,
};

/// Which decisions, learnings, episodes and claims a pack contains. A note has at most 1 for its words; links come on
/// top. Judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct NotesRecipe {
    /// Most notes of each kind, times the breadth of the profile.
    pub each: usize,
    /// Candidates of all kinds together that are read, as a multiple of `each`: what a note is stands in its content.
    pub read: usize,
    /// For each link to code of the pack, and to the entry point or what contains it: those come first.
    pub linked: f64,
    pub near: f64,
}

pub const NOTES: NotesRecipe = NotesRecipe { each: 8, read: 8, linked: 1.0, near: 100.0 };

// Agent memory

/// Which episodes, decisions, learnings and facts answer a question. The weights are specified (agents 3.3).
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryRecipe {
    /// The weights of likeness, recency and shared entities.
    pub similarity: f64,
    pub recency: f64,
    pub entities: f64,
    /// The same for questions about decisions. `decided_entities` is specified (agents 3.5); the others are judgement:
    /// they make up the rest.
    pub decided_similarity: f64,
    pub decided_recency: f64,
    pub decided_entities: f64,
    /// Recency is `exp(-lambda * days)`: per day; 0.05 halves in two weeks.
    pub lambda: f64,
    /// Candidates that are weighed, at least, and as a multiple of the results that are requested. Judgement, for
    /// speed.
    pub pool: usize,
    pub pool_per_result: usize,
    /// The best within the date of an event must have this share of the likeness of the best of all times, for the date
    /// to be used as a filter. Judgement.
    pub worth: f64,
    /// Sessions that are named. Judgement.
    pub sessions: usize,
}

pub const MEMORY: MemoryRecipe = MemoryRecipe {
    similarity: 0.5,
    recency: 0.3,
    entities: 0.2,
    decided_similarity: 0.3,
    decided_recency: 0.2,
    decided_entities: 0.5,
    lambda: 0.05,
    pool: 200,
    pool_per_result: 4,
    worth: 0.5,
    sessions: 3,
};

// Graphs

/// Which nodes a context graph contains. Judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextGraphRecipe {
    /// Candidates per channel of the mode `semantic`.
    pub pool: usize,
    /// Most nodes that the mode `semantic` adds.
    pub alike: usize,
    /// Nodes reached, as a multiple of those wanted, so that the most central of the last ring can be selected.
    pub reached: usize,
}

pub const CONTEXT_GRAPH: ContextGraphRecipe = ContextGraphRecipe { pool: 100, alike: 20, reached: 16 };

/// How a question in words is answered from the graph. Judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphQueryRecipe {
    /// Candidates per channel, at least.
    pub pool: usize,
    /// Members of a community whose names are searched: the most central.
    pub members: usize,
}

pub const GRAPH_QUERY: GraphQueryRecipe = GraphQueryRecipe { pool: 100, members: 200 };

/// Candidates per channel of operations that rank by a recipe and show only the first: `CALL lukasa.search` of Cypher
/// (at least), `memory_linked_search`, `semantic_slice`. Judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolsRecipe {
    pub cypher: usize,
    pub memory_linked_search: usize,
    pub semantic_slice: usize,
}

pub const POOLS: PoolsRecipe = PoolsRecipe { cypher: 120, memory_linked_search: 100, semantic_slice: 50 };

// Names

/// How well a name fits a name that is looked up, from 0 to 1; an equal name fits by 1. Judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct NamesRecipe {
    /// Equal except for upper and lower case.
    pub case: f64,
    /// All words are in the name or the path; to it are added the next three.
    pub words: f64,
    /// Times the share of the words that are words of the name.
    pub whole: f64,
    /// Times the share of the words that are in the name.
    pub within: f64,
    /// Times the share of the name's letters that the words have.
    pub covers: f64,
    /// Mistyped letters; from it `per_edit` is taken for each.
    pub mistyped: f64,
    pub per_edit: f64,
    /// Letters are left out; to it is added `letters` times the share of letters that are given.
    pub left_out: f64,
    pub letters: f64,
}

pub const NAMES: NamesRecipe = NamesRecipe {
    case: 0.95,
    words: 0.5,
    whole: 0.2,
    within: 0.1,
    covers: 0.1,
    mistyped: 0.5,
    per_edit: 0.05,
    left_out: 0.2,
    letters: 0.2,
};
