//! Recall: finds the memories (episodes, decisions, learnings, facts) that match a question, by similarity, age and entities.

use super::episodes::unseal;
use super::patterns::PastEpisode;
use super::question_time::{self, QuestionTime};
use super::{EpisodeKind, episode_kinds};
use crate::features::memory::ops::episode_recall::EpisodeRecall;
use crate::features::search::{self, ReasonOut, find, round};
use crate::ranges::check_range;
use crate::registry::Op;
use crate::sensitive::is_sensitive;
use crate::view::NodeContents;
use crate::view::ViewGraph;
use crate::view::memories::MemoryEntityOut;
use crate::view::memories::names::{CONTRADICTS, FACT};
use crate::view::memories::{self as links, ChangedCodeOut};
use crate::{Context, Engine, sensitive};
use lukasa_graph::Node;
use lukasa_model::claims::own_key;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Content, Error, ErrorCode, FactNo, Result, Time};
use lukasa_search::fields::begin;
use lukasa_search::pipeline::fuse::{Candidate, Fusion, scale_best};
use lukasa_search::pipeline::{MemoryParts, remembered};
use lukasa_search::recipes::{MEMORY, MemoryRecipe};
use lukasa_search::{question, tokens};
use lukasa_store::ledger::ViewSpec;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum length of a question, in characters.
const LONGEST: usize = 800;
/// Number of contents that are read at a time until enough pass the filters.
const AT_ONCE: usize = 500;
/// Maximum number of branches that are searched.
const BRANCHES: usize = 32;
/// Microseconds of a day.
const DAY: f64 = 86_400e6;

/// Weights of the parts of a score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecallWeights {
    /// Similarity to the question, in words and meaning.
    pub similarity: f64,
    /// Age: exp(-lambda * days).
    pub recency: f64,
    /// Share of entities that the question and the memory have in common.
    pub entities: f64,
    /// Decay per day; 0.05 halves the recency in two weeks.
    pub lambda: f64,
}

impl Default for RecallWeights {
    fn default() -> Self {
        let MemoryRecipe { similarity, recency, entities, lambda, .. } = MEMORY;
        RecallWeights { similarity, recency, entities, lambda }
    }
}

impl RecallWeights {
    /// Weights for questions about decisions, where entities are the most important.
    pub fn of_decisions() -> RecallWeights {
        RecallWeights {
            similarity: MEMORY.decided_similarity,
            recency: MEMORY.decided_recency,
            entities: MEMORY.decided_entities,
            ..RecallWeights::default()
        }
    }

    /// Refuses weights outside of their ranges.
    pub fn check(&self) -> Result<()> {
        for (name, value) in [("similarity", self.similarity), ("recency", self.recency), ("entities", self.entities)] {
            check_range(name, value, 0.0, 1.0)?;
        }
        check_range("lambda", self.lambda, 0.0, 10.0)
    }

    /// `exp(-lambda * days)`; a time in the future counts as now.
    pub fn recent(&self, at: Time, now: Time) -> f64 {
        let days = (now.0.saturating_sub(at.0)).max(0) as f64 / DAY;
        (-self.lambda * days).exp()
    }
}

/// How the parts of a score are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecallScoring {
    /// Similarity by the recall pipeline: words, meaning, titles, neighboring turns. Recency is scaled by similarity, so that a
    /// recent but unrelated note does not come first.
    #[default]
    Fitting,
    /// Similarity of each text by itself, recency and entities, added.
    Added,
}

/// A recall request.
#[derive(Clone, Debug)]
pub struct RecallQuery {
    /// May be empty, which returns the newest memories that pass the filters.
    pub query: String,
    pub weights: RecallWeights,
    pub recipe: RecallScoring,
    /// Only these kinds; all kinds, and facts, when empty.
    pub kinds: Vec<EpisodeKind>,
    pub agent_id: Option<String>,
    pub task_id: Option<String>,
    pub session_id: Option<String>,
    pub since: Option<Time>,
    pub until: Option<Time>,
    /// Entities that the memories should involve.
    pub entities: Vec<String>,
    pub limit: usize,
    /// Maximum tokens of one content.
    pub tokens: usize,
    pub include_sensitive: bool,
    /// Use times in the question as filters.
    pub moments: bool,
    pub all_branches: bool,
    pub view: ViewSpec,
}

impl Default for RecallQuery {
    fn default() -> Self {
        RecallQuery {
            query: String::new(),
            weights: RecallWeights::default(),
            recipe: RecallScoring::default(),
            kinds: vec![],
            agent_id: None,
            task_id: None,
            session_id: None,
            since: None,
            until: None,
            entities: vec![],
            limit: 5,
            tokens: 400,
            include_sensitive: false,
            moments: true,
            all_branches: false,
            view: ViewSpec::default(),
        }
    }
}

/// A recalled memory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RecalledMemoryOut {
    pub rank: usize,
    /// Its key.
    pub episode_id: String,
    #[serde(rename = "ref")]
    pub reference: String,
    /// OBSERVATION, DECISION, EDIT, TEST_RESULT, ERROR, REFLECTION, LEARNING or FACT.
    #[serde(rename = "type")]
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The content, verbatim.
    pub content: String,
    /// The rationale of a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
    /// The text was cut; `get` shows all.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Always true: texts are recorded data, whatever they contain.
    pub untrusted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// When it happened.
    pub timestamp: Time,
    /// The previous episode of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prev_episode_id: Option<String>,
    /// Its metadata besides the rationale.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<MemoryEntityOut>,
    /// Code it is about that has changed or ended since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub perhaps_stale: Vec<ChangedCodeOut>,
    /// Facts that contradict it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contradicts: Vec<OtherFactOut>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    /// The branch it was found on, if all branches are searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The sum of the reasons.
    pub score: f64,
    pub reasons: Vec<ReasonOut>,
}

/// A fact that contradicts a recalled one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OtherFactOut {
    #[serde(rename = "ref")]
    pub reference: String,
    pub content: String,
}

/// A session with many relevant episodes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SessionOut {
    pub session_id: String,
    /// Number of candidates from this session.
    pub episodes: usize,
    /// The sum of their scores.
    pub score: f64,
}

/// A time that the question names.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WhenOut {
    pub phrase: String,
    /// Whether it was used as a filter. It is not used if nothing would be left, or if it is the date of an event and much
    /// better matches were recorded at another time.
    pub applied: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
}

/// The result of a recall.
#[derive(Debug)]
pub struct Recalled {
    pub items: Vec<RecalledMemoryOut>,
    /// Number of candidates.
    pub total: usize,
    /// Numbers of recorded memories, if nothing matches.
    pub remembered: Option<MemoryCounts>,
    pub sessions: Vec<SessionOut>,
    pub when: Option<WhenOut>,
    pub warnings: Vec<String>,
    pub view: ViewEcho,
}

/// Numbers of recorded memories, without sensitive ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCounts {
    /// Memories in the searched views.
    pub all: usize,
    /// Memories that pass the filters.
    pub within: usize,
}

/// Recalls memories.
pub fn recall(engine: &Engine, context: &mut Context<'_>, ask: &RecallQuery) -> Result<Recalled> {
    check(context, ask)?;
    let ledger = engine.ledger(&context.scope);
    let first = engine.view_graph(context, &ask.view)?;
    let (registry, now) = (ledger.registry()?, first.view.valid);
    let releases: Vec<question_time::NamedRelease> =
        registry.releases().map(|r| (r.name.clone(), r.valid_at)).collect();
    let when = if ask.moments { question_time::read(&ask.query, now, &releases) } else { None };
    let mut warnings = Vec::new();
    let mut looks = vec![first];
    if ask.all_branches {
        let names = registry.branches().iter().map(|branch| branch.name.clone()).collect::<Vec<_>>();
        let others: Vec<&String> = names.iter().filter(|name| **name != looks[0].view.branch_name).collect();
        if others.len() > BRANCHES {
            warnings.push(format!("{} branches; the first {BRANCHES} were looked at", names.len()));
        }
        for name in others.into_iter().take(BRANCHES) {
            looks.push(engine.view_graph(context, &ViewSpec { branch: Some(name.clone()), ..ask.view.clone() })?);
        }
    }
    let over = SearchedViews { engine, ask, looks: &looks };
    let mut within = over.run(context, when.as_ref(), &mut warnings)?;
    let mut applied = when.is_some();
    if let Some(when) = &when {
        let doubtful = within.found.is_empty() || when.of_event;
        let without = if doubtful { Some(over.run(context, None, &mut vec![])?) } else { None };
        let is_better = |without: &ViewMatches| {
            let nothing = within.found.is_empty() && !without.found.is_empty();
            nothing || within.best() < without.best() * MEMORY.worth
        };
        if let Some(without) = without.filter(is_better) {
            let why = if within.found.is_empty() {
                "nothing is from then"
            } else {
                "what fits far better is from another time"
            };
            warnings.push(format!("\"{}\" was not taken as a filter: {why}", when.phrase));
            applied = false;
            within = without;
        }
    }
    let ViewMatches { mut found, total } = within;
    found.sort_by(|a, b| {
        let order = |one: &ScoredMemory| looks[one.look].snapshot.thing(one.candidate.node);
        b.candidate.score().total_cmp(&a.candidate.score()).then(order(b).cmp(&order(a)))
    });
    let sessions = sessions(&found);
    found.truncate(ask.limit);
    let mut items = Vec::new();
    for (at, one) in found.iter().enumerate() {
        items.push(one.out(&looks[one.look], ask, at + 1)?);
    }
    mark_stale(&looks, &found, &mut items)?;
    let remembered = if items.is_empty() { Some(over.remembered()?) } else { None };
    let when = when.map(|QuestionTime { phrase, from, to, .. }| WhenOut { phrase, applied, from, to });
    Ok(Recalled { items, total, remembered, sessions, when, warnings, view: looks[0].view.echo() })
}

/// Returns the views to search.
struct SearchedViews<'a> {
    engine: &'a Engine,
    ask: &'a RecallQuery,
    looks: &'a [ViewGraph],
}

/// Matches in the views, and the number of candidates.
struct ViewMatches {
    found: Vec<ScoredMemory>,
    total: usize,
}

impl ViewMatches {
    /// The best similarity.
    fn best(&self) -> f64 {
        self.found.iter().map(|one| one.likeness).fold(0.0, f64::max)
    }
}

impl SearchedViews<'_> {
    fn run(
        &self,
        context: &mut Context<'_>,
        when: Option<&QuestionTime>,
        warnings: &mut Vec<String>,
    ) -> Result<ViewMatches> {
        let (ask, looks) = (self.ask, self.looks);
        let mut within = ViewMatches { found: vec![], total: 0 };
        let mut seen: FxHashSet<FactNo> = FxHashSet::default();
        let mut missing = 0;
        for (at, look) in looks.iter().enumerate() {
            let about = match self.engine.nodes(look, &ask.entities) {
                Ok(about) => about,
                // An entity of the question may be missing on some branches.
                Err(_) if missing + 1 < looks.len() => {
                    missing += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let weighing = MemoryScoring { engine: self.engine, look, ask, when, about: &about };
            let (weighed, all) = weighing.run(context, at, warnings)?;
            within.total += all;
            // Memories inherited from an ancestor branch were found there.
            let fresh = weighed.into_iter().filter(|one| seen.insert(look.snapshot.thing(one.candidate.node)));
            within.found.extend(fresh);
        }
        Ok(within)
    }

    /// Counts memories, ignoring the question.
    fn remembered(&self) -> Result<MemoryCounts> {
        let mut seen: FxHashSet<FactNo> = FxHashSet::default();
        let mut remembered = MemoryCounts::default();
        for look in self.looks {
            let s = &look.snapshot;
            let weighing = MemoryScoring { engine: self.engine, look, ask: self.ask, when: None, about: &[] };
            let mut is_there = |node: &Node| {
                !s.is_ended(*node)
                    && (is_memory(look, *node) || is_fact(look, *node))
                    && !s.labels(*node).iter().any(|label| &**label == crate::view::memories::names::SENSITIVE)
                    && seen.insert(s.thing(*node))
            };
            let all: Vec<Node> = s.nodes().into_iter().filter(|node| is_there(node)).collect();
            remembered.all += all.len();
            let wanted: Vec<Node> = all.into_iter().filter(|node| weighing.is_wanted(*node)).collect();
            if !weighing.is_narrow() {
                remembered.within += wanted.len();
                continue;
            }
            for nodes in wanted.chunks(AT_ONCE) {
                let read = NodeContents::of(look, nodes)?;
                let fits = |node: &&Node| match (read.content(**node), read.stated(**node)) {
                    (Some(content), Some(time)) => weighing.fits(**node, content, time),
                    _ => false,
                };
                remembered.within += nodes.iter().filter(fits).count();
            }
        }
        Ok(remembered)
    }
}

fn check(context: &Context<'_>, ask: &RecallQuery) -> Result<()> {
    check_range("limit", ask.limit, 1, 100)?;
    check_range("entities", ask.entities.len(), 0, 50)?;
    ask.weights.check()?;
    if ask.query.chars().count() > LONGEST {
        return Err(Error::invalid(
            ErrorCode::InvalidQuery,
            format!("query: at most {LONGEST} characters are allowed"),
        ));
    }
    if ask.include_sensitive {
        context.grants.check(EpisodeRecall::META.name, sensitive::SCOPE)?;
    }
    if let (Some(since), Some(until)) = (ask.since, ask.until)
        && since >= until
    {
        return Err(Error::invalid(ErrorCode::InvalidPeriod, format!("since {since} is not before until {until}")));
    }
    Ok(())
}

/// Returns the newest memories that pass the filters, newest first, at most this many, without sensitive ones.
pub fn newest(
    look: &ViewGraph,
    most: usize,
    wanted: impl Fn(&PastEpisode) -> bool,
) -> Result<Vec<(Node, PastEpisode)>> {
    let s = &look.snapshot;
    let mut nodes: Vec<Node> =
        s.nodes().into_iter().filter(|node| is_memory(look, *node) && !s.is_ended(*node)).collect();
    nodes.sort_by_key(|node| std::cmp::Reverse(s.thing(*node)));
    let mut found = Vec::new();
    for nodes in nodes.chunks(AT_ONCE) {
        let read = NodeContents::of(look, nodes)?;
        for node in nodes {
            let Some(content) = read.content(*node).filter(|content| !is_sensitive(content)) else { continue };
            let past = past(look, *node, content, read.stated(*node));
            if wanted(&past) {
                found.push((*node, past));
                if found.len() == most {
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}

/// Converts an object to a memory.
pub fn past(look: &ViewGraph, node: Node, content: &Content, time: Option<Time>) -> PastEpisode {
    let s = &look.snapshot;
    let own = |name: &str| content.properties.get(name).and_then(Value::as_str).map(str::to_owned);
    PastEpisode {
        reference: s.name(node),
        kind: EpisodeKind::of(s.type_name(node), content.subtype.as_deref()).unwrap_or_default(),
        title: content.title.clone(),
        content: own("content").or_else(|| own("text")).or_else(|| content.title.clone()).unwrap_or_default(),
        agent: own("agent_id"),
        session: own("session_id"),
        task: own("task_id"),
        outcome: own("outcome"),
        time,
        entities: links::entities(s, node).into_iter().map(|entity| entity.reference).collect(),
        metadata: metadata(content),
    }
}

fn metadata(content: &Content) -> Map<String, Value> {
    let own = content.properties.iter().filter(|(name, _)| !episode_kinds::RESERVED.contains(&name.as_str()));
    own.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn is_memory(look: &ViewGraph, node: Node) -> bool {
    EpisodeKind::of(look.snapshot.type_name(node), None).is_some()
}

fn is_fact(look: &ViewGraph, node: Node) -> bool {
    look.snapshot.type_name(node).eq_ignore_ascii_case(FACT)
}

/// A candidate with the values that are needed for its score.
struct ScoredMemory {
    look: usize,
    candidate: Candidate,
    /// The similarity part of its score.
    likeness: f64,
    content: Content,
    time: Time,
}

/// Scores the memories of one view.
struct MemoryScoring<'a> {
    engine: &'a Engine,
    look: &'a ViewGraph,
    ask: &'a RecallQuery,
    when: Option<&'a QuestionTime>,
    about: &'a [Node],
}

impl MemoryScoring<'_> {
    /// Maximum number of candidates that are scored.
    fn pool(&self) -> usize {
        MEMORY.pool.max(self.ask.limit * MEMORY.pool_per_result)
    }

    fn run(
        &self,
        context: &mut Context<'_>,
        at: usize,
        warnings: &mut Vec<String>,
    ) -> Result<(Vec<ScoredMemory>, usize)> {
        let candidates = self.candidates(context, warnings)?;
        let narrow = self.is_narrow();
        let most = self.pool();
        let (mut weighed, mut passed) = (Vec::new(), 0);
        let (total, mut looked) = (candidates.len(), 0);
        for part in candidates.chunks(if narrow { AT_ONCE } else { most }) {
            if weighed.len() >= most {
                break;
            }
            looked += part.len();
            let read = NodeContents::of(self.look, &part.iter().map(|candidate| candidate.node).collect::<Vec<_>>())?;
            for candidate in part {
                let (Some(content), Some(time)) = (read.content(candidate.node), read.stated(candidate.node)) else {
                    continue;
                };
                if is_sensitive(content) || !self.fits(candidate.node, content, time) {
                    continue;
                }
                passed += 1;
                weighed.push(self.weigh(at, candidate.clone(), content.clone(), time));
            }
        }
        let mut total = passed + (total - looked);
        if self.ask.include_sensitive {
            let opened = self.sensitive(context, at, warnings)?;
            total += opened.len();
            weighed.extend(opened);
        }
        Ok((weighed, total))
    }

    /// Adds the results of the pipeline, scaled so that the best has the full weight of similarity, and memories linked to
    /// entities.
    fn candidates(&self, context: &mut Context<'_>, warnings: &mut Vec<String>) -> Result<Vec<Candidate>> {
        let (ask, look) = (self.ask, self.look);
        let s = &look.snapshot;
        let order = |node: Node| s.thing(node).0;
        let allowed = |node: Node| self.is_wanted(node);
        let mut candidates = Vec::new();
        if ask.query.trim().is_empty() {
            let mut all: Vec<Node> = s.nodes().into_iter().filter(|node| allowed(*node)).collect();
            // Those recorded last are most likely the newest.
            all.sort_by_key(|node| std::cmp::Reverse(order(*node)));
            candidates.extend(all.into_iter().map(Candidate::new));
        } else {
            let texts = self.engine.texts(context, look)?;
            let meaning = self.engine.nearest(context, look, &ask.query, Some(&allowed))?;
            warnings.extend(meaning.warning);
            let recipe = match ask.recipe {
                RecallScoring::Fitting => search::Recipe::Recall,
                RecallScoring::Added => search::Recipe::Objects,
            };
            let found = find(
                look,
                &texts,
                &search::SearchQuestion {
                    text: &ask.query,
                    recipe,
                    lexical: true,
                    vector: true,
                    intent: None,
                    fusion: Fusion::WeightedSum,
                    pool: self.pool(),
                    nearest: meaning.nearest,
                    allowed: &allowed,
                },
            );
            candidates = found.candidates;
            scale_best(&mut candidates, ask.weights.similarity);
            let there: FxHashSet<Node> = candidates.iter().map(|candidate| candidate.node).collect();
            let mut linked: Vec<Node> = self.about.iter().flat_map(|node| self.linked_to(*node)).collect();
            linked.retain(|node| allowed(*node) && !there.contains(node));
            linked.sort_by_key(|node| order(*node));
            linked.dedup();
            candidates.extend(linked.into_iter().map(Candidate::new));
        }
        Ok(candidates)
    }

    /// Returns the memories of a fact or of its contents, under any name it had.
    fn linked_to(&self, node: Node) -> Vec<Node> {
        let s = &self.look.snapshot;
        let parts = crate::view::symbols::Symbols::new(self.look).whole(node, 1_000).0;
        let about = std::iter::once(node).chain(parts.into_iter().filter(|part| *part != node));
        about.flat_map(|node| links::memories(s, node)).map(|(memory, _)| memory).collect()
    }

    fn is_wanted(&self, node: Node) -> bool {
        let s = &self.look.snapshot;
        if s.is_ended(node) {
            return false;
        }
        if is_fact(self.look, node) {
            return self.ask.kinds.is_empty();
        }
        let Some(kind) = EpisodeKind::of(s.type_name(node), None) else { return false };
        // The kind of an episode is in its content.
        self.ask.kinds.is_empty() || self.ask.kinds.iter().any(|wanted| wanted.type_name() == kind.type_name())
    }

    /// Whether filters need contents, not only the graph.
    fn is_narrow(&self) -> bool {
        let ask = self.ask;
        let named = ask.agent_id.is_some() || ask.task_id.is_some() || ask.session_id.is_some();
        named || !ask.kinds.is_empty() || ask.since.is_some() || ask.until.is_some() || self.when.is_some()
    }

    fn fits(&self, node: Node, content: &Content, time: Time) -> bool {
        let ask = self.ask;
        let own = |name: &str| content.properties.get(name).and_then(Value::as_str);
        let named = [("agent_id", &ask.agent_id), ("session_id", &ask.session_id)];
        let of_task =
            |wanted: &String| own("task_id").is_some_and(|own| own_key("task", own) == own_key("task", wanted));
        let kind = EpisodeKind::of(self.look.snapshot.type_name(node), content.subtype.as_deref());
        named.iter().all(|(name, wanted)| wanted.as_deref().is_none_or(|wanted| own(name) == Some(wanted)))
            && ask.task_id.as_ref().is_none_or(of_task)
            && (ask.kinds.is_empty() || kind.is_some_and(|kind| ask.kinds.contains(&kind)))
            && ask.since.is_none_or(|since| time >= since)
            && ask.until.is_none_or(|until| time < until)
            && self.when.is_none_or(|when| when.holds(time))
    }

    fn weigh(&self, at: usize, mut candidate: Candidate, content: Content, time: Time) -> ScoredMemory {
        let weights = &self.ask.weights;
        let likeness = candidate.score();
        let parts = MemoryParts {
            similarity: weights.similarity,
            recency: weights.recency,
            entities: weights.entities,
            recent: weights.recent(time, self.look.view.valid),
            shared: self.shared(candidate.node),
            recency_in_full: self.ask.recipe == RecallScoring::Added || self.ask.query.trim().is_empty(),
        };
        remembered(&mut candidate, &parts);
        ScoredMemory { look: at, candidate, likeness, content, time }
    }

    /// Jaccard similarity of the entities of the question and of a memory; a part of an entity counts as the entity.
    fn shared(&self, memory: Node) -> f64 {
        if self.about.is_empty() {
            return 0.0;
        }
        let s = &self.look.snapshot;
        let key = |node: Node| s.key(node).unwrap_or("").to_owned();
        let own: FxHashSet<Node> = links::about(s, memory).map(|(to, _)| links::present(s, to)).collect();
        let asked: FxHashSet<Node> = self.about.iter().copied().collect();
        let is_in = |own: Node, whole: Node| {
            own == whole
                || self.ask.recipe == RecallScoring::Fitting && key(own).starts_with(&format!("{}::", key(whole)))
        };
        let matched = asked.iter().filter(|whole| own.iter().any(|own| is_in(*own, **whole))).count();
        let others = own.iter().filter(|own| !asked.iter().any(|whole| is_in(**own, *whole))).count();
        matched as f64 / (asked.len() + others) as f64
    }

    /// Adds sensitive memories of the caller, decrypted; warns about those that cannot be read.
    fn sensitive(&self, context: &Context<'_>, at: usize, warnings: &mut Vec<String>) -> Result<Vec<ScoredMemory>> {
        let s = &self.look.snapshot;
        // An authenticated agent asks for itself, whatever name the request contains.
        let named = self.ask.agent_id.as_deref().filter(|agent| context.agents.cover(agent));
        let asking = context.agent.as_deref().or(named);
        let labelled =
            |node: &Node| s.labels(*node).iter().any(|label| &**label == crate::view::memories::names::SENSITIVE);
        let nodes: Vec<Node> = s.nodes().into_iter().filter(|node| labelled(node) && self.is_wanted(*node)).collect();
        let read = NodeContents::of(self.look, &nodes)?;
        let terms = question::prose_terms(&self.ask.query);
        let all: f32 = terms.iter().map(|term| term.weight).sum();
        let (mut found, mut others) = (Vec::new(), 0);
        let mut closed: FxHashMap<String, usize> = FxHashMap::default();
        for node in nodes {
            let (Some(content), Some(time)) = (read.content(node), read.stated(node)) else { continue };
            if !self.fits(node, content, time) {
                continue;
            }
            if content.properties.get("agent_id").and_then(Value::as_str) != asking {
                others += 1;
                continue;
            }
            let content = match unseal(self.engine, s.key(node).unwrap_or(""), content.clone()) {
                Ok(content) => content,
                Err(error) => {
                    *closed.entry(error.code.to_string()).or_default() += 1;
                    continue;
                }
            };
            let mut candidate = Candidate::new(node);
            let mut words: FxHashSet<String> = FxHashSet::default();
            let mut hear = |text: &str| tokens::prose(text, |word| words.extend([word.to_owned()]));
            search::property_texts(&content, &mut hear);
            content.title.iter().for_each(|title| hear(title));
            let heard: f32 = terms.iter().filter(|term| words.contains(&term.word)).map(|term| term.weight).sum();
            if all > 0.0 {
                if heard == 0.0 {
                    continue;
                }
                candidate.add("lexical", self.ask.weights.similarity * f64::from(heard / all));
            }
            found.push(self.weigh(at, candidate, content, time));
        }
        if others > 0 {
            warnings.push(format!("{others} sensitive of other agents left out"));
        }
        let mut closed: Vec<(String, usize)> = closed.into_iter().collect();
        closed.sort();
        for (code, count) in closed {
            let why = match code.as_str() {
                "no_agent_key" => "no key is configured for their agent",
                _ => "they were encrypted with another key",
            };
            warnings.push(format!("{count} sensitive cannot be read: {why} ({code})"));
        }
        Ok(found)
    }
}

impl ScoredMemory {
    fn out(&self, look: &ViewGraph, ask: &RecallQuery, rank: usize) -> Result<RecalledMemoryOut> {
        let (node, content, s) = (self.candidate.node, &self.content, &look.snapshot);
        let mut past = past(look, node, content, Some(self.time));
        let shortened = begin(&past.content, ask.tokens);
        let rationale = match past.metadata.shift_remove("rationale") {
            Some(Value::String(why)) => Some(why),
            Some(other) => Some(other.to_string()),
            None => None,
        };
        let shorter = rationale.as_deref().and_then(|why| begin(why, ask.tokens));
        let reasons: Vec<ReasonOut> = self
            .candidate
            .reasons
            .iter()
            .map(|reason| ReasonOut { channel: reason.channel.into(), score: round(reason.score) })
            .collect();
        Ok(RecalledMemoryOut {
            rank,
            episode_id: s.key(node).map_or_else(|| s.id(node).to_string(), str::to_owned),
            kind: if is_fact(look, node) { "FACT" } else { past.kind.name() },
            reference: past.reference,
            title: past.title,
            truncated: shortened.is_some() || shorter.is_some(),
            content: shortened.unwrap_or(past.content),
            rationale: shorter.or(rationale),
            untrusted: true,
            agent_id: past.agent,
            session_id: past.session,
            task_id: past.task,
            outcome: past.outcome,
            status: content.status.clone(),
            timestamp: self.time,
            prev_episode_id: links::previous(s, node),
            metadata: past.metadata,
            entities: links::entities(s, node),
            perhaps_stale: vec![],
            contradicts: contradictions(look, node)?,
            sensitive: is_sensitive(content),
            branch: ask.all_branches.then(|| look.view.branch_name.to_string()),
            score: round(self.candidate.score()),
            reasons,
        })
    }
}

/// Returns the facts that a fact contradicts, or that contradict it.
fn contradictions(look: &ViewGraph, node: Node) -> Result<Vec<OtherFactOut>> {
    let s = &look.snapshot;
    if !is_fact(look, node) {
        return Ok(vec![]);
    }
    let links = s.outgoing(node).iter().chain(s.incoming(node).iter());
    let mut others: Vec<Node> = links
        .filter(|(other, edge, _)| s.edge_type(*edge).eq_ignore_ascii_case(CONTRADICTS) && !s.is_ended(*other))
        .map(|(other, _, _)| other)
        .collect();
    others.sort_by_key(|other| s.thing(*other));
    others.dedup();
    let read = NodeContents::of(look, &others)?;
    let out = |other: &Node| OtherFactOut {
        reference: s.name(*other),
        content: read.content(*other).and_then(|content| content.title.clone()).unwrap_or_default(),
    };
    Ok(others.iter().map(out).collect())
}

/// Marks decisions and learnings whose code has changed.
fn mark_stale(looks: &[ViewGraph], found: &[ScoredMemory], items: &mut [RecalledMemoryOut]) -> Result<()> {
    for (at, look) in looks.iter().enumerate() {
        let lasting = |one: &&ScoredMemory| one.look == at && !is_fact(look, one.candidate.node);
        let is_lasting = |one: &&ScoredMemory| {
            let name = look.snapshot.type_name(one.candidate.node);
            [crate::view::memories::names::DECISION, crate::view::memories::names::LEARNING]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
        };
        let nodes: Vec<Node> = found.iter().filter(lasting).filter(is_lasting).map(|one| one.candidate.node).collect();
        let changed = links::changed(look, &nodes)?;
        for (one, item) in found.iter().zip(items.iter_mut()).filter(|(one, _)| one.look == at) {
            if let Some(changed) = changed.get(&one.candidate.node) {
                item.perhaps_stale.clone_from(changed);
            }
        }
    }
    Ok(())
}

/// Ranks sessions by the scores of their episodes.
fn sessions(found: &[ScoredMemory]) -> Vec<SessionOut> {
    let mut all: FxHashMap<&str, (usize, f64)> = FxHashMap::default();
    for one in found {
        if let Some(session) = one.content.properties.get("session_id").and_then(Value::as_str) {
            let (episodes, score) = all.entry(session).or_default();
            *episodes += 1;
            *score += one.candidate.score();
        }
    }
    let mut all: Vec<SessionOut> = all
        .into_iter()
        .map(|(session, (episodes, score))| SessionOut { session_id: session.into(), episodes, score: round(score) })
        .collect();
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.session_id.cmp(&b.session_id)));
    all.truncate(MEMORY.sessions);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_counts_half_after_two_weeks() {
        let (weights, now) = (RecallWeights::default(), Time(1_000 * DAY as i64));
        for (days, share) in [(0.0, 1.0), (13.86, 0.5), (30.0, 0.2231), (-5.0, 1.0)] {
            let at = Time(now.0 - (days * DAY) as i64);
            assert!((weights.recent(at, now) - share).abs() < 1e-3, "{days}");
        }
        assert_eq!(weights.similarity + weights.recency + weights.entities, 1.0);
        assert_eq!(RecallWeights::of_decisions().entities, 0.5);
        assert!(RecallWeights { recency: 1.5, ..weights }.check().is_err());
    }
}
