//! Fits a pack to its budget: entries in full or in brief, with an exact token count of the response.

use super::code::{CodeSlice, Dependency, PackCode};
use super::confidence::PackConfidence;
use super::notes::{PackNote, PackNotes};
use crate::convert::{to_count, to_usize};
use crate::response_budget::Profile;
use crate::response_budget::shortened;
use lukasa_graph::Node;
use lukasa_search::count::count;
use lukasa_search::pipeline::pack::{PackUnit, choose, cost, shed, weave};
use lukasa_search::recipes::PACK;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum number of tokens, and the number of entries on earlier pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub profile: Profile,
    pub tokens: usize,
    pub skip: usize,
}

/// Maximum length of a note when there is little room, in characters.
const NOTE: [usize; 4] = [160, 100, 60, 40];
/// Maximum length of texts of the frame when there is little room, in characters.
const NARROW: [usize; 3] = [160, 80, 40];
/// Maximum length of a signature when there is little room, in characters.
const LINE: usize = 80;
/// Number of times that remaining room is filled.
const REFILLS: usize = 3;

/// The answer: a context pack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ContextPackOut {
    /// Where to begin, and what is concerned.
    pub summary: String,
    /// How likely the entry point is what the task means: high, medium or low, as measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<PackConfidence>,
    /// Why the results may not fit the task, or what would help to find better ones; absent if they fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_confidence: Option<String>,
    /// The best symbol to begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_point: Option<String>,
    /// Concerned files without a listed symbol, best first.
    pub files: Vec<String>,
    /// The most relevant code: in full, or by signature and summary if it does not fit.
    pub core_symbols: Vec<SliceOut>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<PackNote>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub learnings: Vec<PackNote>,
    /// Claims of other agents on this code, and tasks about it that cannot proceed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub active_blockers: Vec<PackNote>,
    /// Claims made for the caller with this request, and conflicts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimNote>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PackNote>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub episodes: Vec<PackNote>,
    /// A notice for the texts of decisions, learnings, episodes and plans, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// Branch and transaction, and whether sources have changed since.
    pub freshness: String,
    pub profile: Profile,
    /// Tokens of this answer as JSON.
    pub token_estimate: usize,
    pub token_budget: usize,
    /// Number of entries that were left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// Random walk scores by key, in the debug profile.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ppr_scores: BTreeMap<String, f64>,
    /// Further pages, in the debug profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The outcome of claiming one target.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClaimNote {
    pub target_id: String,
    /// ok, or CONFLICT.
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_id: Option<String>,
    /// The holder, on a conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
}

impl ContextPackOut {
    fn has_notes(&self) -> bool {
        let lists = [&self.decisions, &self.learnings, &self.active_blockers, &self.episodes];
        lists.iter().any(|list| !list.is_empty()) || self.plan.is_some()
    }

    /// Counts the tokens. The count is part of the text, so it is repeated until it is stable.
    pub fn count_again(&mut self) {
        self.token_estimate = 0;
        while tokens(self) > self.token_estimate {
            self.token_estimate = tokens(self);
        }
    }
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// A symbol with its source or its summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SliceOut {
    pub file: String,
    /// Name within its file: `Class::method`.
    pub symbol_name: String,
    pub start_line: u64,
    pub end_line: u64,
    /// Why it is here, in a few words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Exact source lines: all of them, or from `code_start_line` on those that fit the task best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The first line of `code`, if that is only a part of the symbol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_start_line: Option<u64>,
    /// Summary, if the code is not included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Share of a random walk around the task that visits this symbol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ppr_score: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incoming_callers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outgoing_calls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<String>,
    /// References of the decisions about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relevant_decisions: Vec<String>,
    /// References of the learnings about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relevant_learnings: Vec<String>,
    /// Components of the score.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<(String, f64)>,
}

/// An entry of the pack, in its forms.
struct PackEntry {
    slot: usize,
    /// The forms, the fullest first.
    forms: Vec<EntryForm>,
    /// The nodes of the code that it shows or is about.
    nodes: Vec<Node>,
    /// Rank among the entries that are included first: claims, blocked tasks, and notes about the entry point.
    guard: Option<usize>,
}

impl PackEntry {
    fn unit(&self) -> PackUnit {
        let costs = self.forms.iter().map(EntryForm::cost).collect();
        PackUnit { slot: self.slot, costs, at_first: usize::MAX }
    }

    /// The cost of its briefest form with code, if that is at most `most`, otherwise of its briefest form.
    fn least_code(&self, most: usize) -> usize {
        let has_code = |form: &&EntryForm| matches!(form, EntryForm::Slice(slice) if slice.code.is_some());
        let code = self.forms.iter().filter(has_code).map(EntryForm::cost).min().filter(|cost| *cost <= most);
        code.or_else(|| self.forms.last().map(EntryForm::cost)).unwrap_or(0)
    }
}

#[derive(Clone)]
enum EntryForm {
    Slice(SliceOut),
    Dependency(Dependency),
    Decision(PackNote),
    Learning(PackNote),
    Blocker(PackNote),
    Plan(PackNote),
    Episode(PackNote),
}

impl EntryForm {
    fn cost(&self) -> usize {
        let text = match self {
            EntryForm::Slice(part) => serde_json::to_string(part),
            EntryForm::Dependency(part) => serde_json::to_string(part),
            EntryForm::Decision(part)
            | EntryForm::Learning(part)
            | EntryForm::Blocker(part)
            | EntryForm::Plan(part)
            | EntryForm::Episode(part) => serde_json::to_string(part),
        };
        text.map_or(usize::MAX / 4, |text| count(&text) + 1)
    }

    fn put(self, pack: &mut ContextPackOut) {
        match self {
            EntryForm::Slice(part) => pack.core_symbols.push(part),
            EntryForm::Dependency(part) => pack.dependencies.push(part),
            EntryForm::Decision(part) => pack.decisions.push(part),
            EntryForm::Learning(part) => pack.learnings.push(part),
            EntryForm::Blocker(part) => pack.active_blockers.push(part),
            EntryForm::Plan(part) => pack.plan = Some(part),
            EntryForm::Episode(part) => pack.episodes.push(part),
        }
    }
}

/// Chooses what fits. `frame` holds what is always included: summary, entry point, freshness, and the files without a listed
/// symbol. Blockers and notes about the entry point come before related code. Returns `None` if even the frame without
/// files does not fit; otherwise the pack and the number of entries it includes.
pub fn fit(
    frame: ContextPackOut,
    core: &PackCode,
    notes: &PackNotes,
    budget: Budget,
    explain: bool,
) -> Option<(ContextPackOut, usize)> {
    let mut frame = frame;
    frame.profile = budget.profile;
    frame.token_budget = budget.tokens;
    // Reserve room for the figures that are filled in last.
    frame.token_estimate = budget.tokens;
    frame.left_out = 999;
    let offers = offers(core, notes, budget, explain);
    if budget.profile == Profile::Debug {
        narrow(&mut frame, 0, budget.tokens)?;
        return page(frame, core, &offers, budget);
    }
    let mut fitting = PackSelection::new(frame, &offers, budget.tokens)?;
    fitting.choose();
    fitting.show_blockers();
    fitting.pack()
}

/// Shortens the frame to leave this much room, if possible: removes files, then shortens texts. `None` if the frame does not
/// fit.
fn narrow(frame: &mut ContextPackOut, room: usize, budget: usize) -> Option<()> {
    while tokens(frame) + room > budget && frame.files.pop().is_some() {}
    for most in NARROW {
        if tokens(frame) <= budget {
            return Some(());
        }
        for text in [&mut frame.summary, &mut frame.freshness] {
            if let Some(short) = shortened(text, most) {
                *text = short;
            }
        }
    }
    frame.entry_point = None;
    (tokens(frame) <= budget).then_some(())
}

/// A selection in progress.
struct PackSelection<'a> {
    frame: ContextPackOut,
    offers: &'a [PackEntry],
    units: Vec<PackUnit>,
    budget: usize,
    /// Entries that are included in any case, with their form; the most important first.
    guarded: Vec<(usize, usize)>,
    /// The form of every other entry.
    chosen: Vec<Option<usize>>,
}

impl<'a> PackSelection<'a> {
    /// Reserves room for the entries that come first, in brief; in full up to a share of the room.
    fn new(mut frame: ContextPackOut, offers: &'a [PackEntry], budget: usize) -> Option<PackSelection<'a>> {
        let mut units: Vec<PackUnit> = offers.iter().map(PackEntry::unit).collect();
        let least = |unit: &PackUnit| unit.costs.last().copied().unwrap_or(0);
        let mut guarded: Vec<(usize, usize)> = Vec::new();
        let mut order: Vec<usize> = (0..offers.len()).filter(|at| offers[*at].guard.is_some()).collect();
        order.sort_by_key(|at| offers[*at].guard);
        let of_all = to_usize(to_count(budget as f64 * PACK.entry_code));
        let entry = offers.first().filter(|offer| offer.slot == 0).map_or(0, |offer| offer.least_code(of_all));
        let wanted: usize = order.iter().map(|at| least(&units[*at])).sum();
        narrow(&mut frame, wanted + entry, budget)?;
        let briefest = units.first().filter(|unit| unit.slot == 0).map_or(0, least);
        if tokens(&frame) + wanted + briefest > budget {
            frame.confidence = None;
        }
        let room = budget - tokens(&frame);
        for (at, unit) in units.iter_mut().enumerate().filter(|(_, unit)| unit.slot == 0) {
            let share = if at == 0 { PACK.entry_code } else { PACK.other_code };
            unit.at_first = to_usize(to_count(room as f64 * share));
            // Room was made for the code of the entry point, and a brief form of any other is always possible.
            unit.at_first = unit.at_first.max(if at == 0 { entry.min(room) } else { least(unit) });
        }
        let mut left = room;
        for at in order {
            // The first of them comes before the entry point's details, because the summary names the entry point.
            let besides = if guarded.is_empty() { 0 } else { units.first().map_or(0, least) };
            if let Some(rest) = left.checked_sub(least(&units[at]) + besides) {
                left = rest + besides;
                guarded.push((at, units[at].costs.len() - 1));
            }
        }
        let share = to_usize(to_count(room as f64 * PACK.guarded));
        let mut spent: usize = guarded.iter().map(|(at, _)| least(&units[*at])).sum();
        for (at, form) in &mut guarded {
            let costs = &units[*at].costs;
            let fuller = costs.iter().position(|cost| spent - costs[*form] + cost <= share);
            if let Some(fuller) = fuller.filter(|fuller| fuller < form) {
                spent = spent - costs[*form] + costs[fuller];
                *form = fuller;
            }
        }
        // Entries that are included already are not chosen again.
        guarded.iter().for_each(|(at, _)| units[*at].costs.clear());
        Some(PackSelection { frame, offers, chosen: vec![None; units.len()], units, budget, guarded })
    }

    fn guarded_cost(&self) -> usize {
        self.guarded.iter().map(|(at, form)| self.offers[*at].forms[*form].cost()).sum()
    }

    /// Fills the remaining room, slot by slot.
    fn choose(&mut self) {
        let guarded = self.guarded_cost();
        let room = |frame: &ContextPackOut| self.budget.saturating_sub(tokens(frame) + guarded);
        // Files of included symbols need not be listed, which leaves room for more of them.
        let mut without = self.frame.clone();
        let mut chosen = self.within(room(&self.frame));
        for _ in 0..REFILLS {
            without.files = others(&self.frame.files, &given(self.offers, &chosen));
            let again = self.within(room(&without));
            if again == chosen {
                break;
            }
            chosen = again;
        }
        // At least a brief form of the entry point is always included.
        if let Some(entry) = self.units.first().filter(|unit| unit.slot == 0 && chosen[0].is_none()) {
            let least = entry.costs.last().copied().unwrap_or(0);
            while cost(&self.units, &chosen) + least > room(&without)
                && shed(&self.units, &mut chosen, PACK.shares.len())
            {}
            chosen[0] = Some(entry.costs.len() - 1);
        }
        self.chosen = chosen;
    }

    /// Chooses within some room: first the code of the entry point, then the others by slot.
    fn within(&self, room: usize) -> Vec<Option<usize>> {
        let Some(entry) = self.units.first().filter(|unit| unit.slot == 0) else {
            return choose(&self.units, &PACK.shares, room);
        };
        let most = room.min(entry.at_first);
        let Some(form) = entry.costs.iter().position(|cost| *cost <= most) else {
            return choose(&self.units, &PACK.shares, room);
        };
        let left = room - entry.costs[form];
        let mut chosen = vec![Some(form)];
        chosen.extend(choose(&self.units[1..], &PACK.shares, left));
        let spare = left.saturating_sub(cost(&self.units[1..], &chosen[1..]));
        if let Some(fuller) = entry.costs[..form].iter().position(|cost| *cost <= entry.costs[form] + spare) {
            chosen[0] = Some(fuller);
        }
        chosen
    }

    /// Lists what blocks the code that is shown.
    fn show_blockers(&mut self) {
        let shown: Vec<Node> = (0..self.offers.len())
            .filter(|at| self.chosen[*at].is_some() && self.offers[*at].slot == 0)
            .flat_map(|at| self.offers[at].nodes.clone())
            .collect();
        for (at, offer) in self.offers.iter().enumerate() {
            let is_blocker = matches!(offer.forms.first(), Some(EntryForm::Blocker(_)));
            let is_guarded = self.guarded.iter().any(|(own, _)| *own == at);
            if is_blocker && !is_guarded && offer.nodes.iter().any(|node| shown.contains(node)) {
                self.guarded.push((at, self.chosen[at].take().unwrap_or(offer.forms.len() - 1)));
                self.units[at].costs.clear();
            }
        }
    }

    fn all(&self) -> Vec<&'a EntryForm> {
        let forms =
            self.chosen.clone().into_iter().enumerate().map(|(at, form)| {
                form.or_else(|| self.guarded.iter().find(|(own, _)| *own == at).map(|(_, form)| *form))
            });
        given(self.offers, &forms.collect::<Vec<_>>())
    }

    /// Removes the least important entries until the whole fits: entries need slightly more tokens together than alone.
    fn pack(mut self) -> Option<(ContextPackOut, usize)> {
        loop {
            let all = self.all();
            let mut pack = self.frame.clone();
            all.iter().for_each(|form| (*form).clone().put(&mut pack));
            pack.files = others(&self.frame.files, &all);
            pack.left_out = self.offers.len() - all.len();
            pack.notice = pack.notice.filter(|_| pack.has_notes());
            pack.count_again();
            if pack.token_estimate <= self.budget {
                return Some((pack, all.len()));
            }
            let only_entry = self.chosen.iter().skip(1).all(Option::is_none)
                && self.chosen.first().is_none_or(|form| form.is_none_or(|form| form + 1 == self.units[0].costs.len()));
            let went = (!only_entry && shed(&self.units, &mut self.chosen, PACK.shares.len()))
                || self.frame.files.pop().is_some()
                || self.frame.confidence.take().is_some()
                || (self.guarded.len() > 1 && self.guarded.pop().is_some())
                || shed(&self.units, &mut self.chosen, PACK.shares.len())
                || self.guarded.pop().is_some();
            if !went {
                return None;
            }
        }
    }
}

/// Adds the random walk scores, up to a quarter of the room.
fn add_scores(frame: &mut ContextPackOut, core: &PackCode, budget: usize) {
    let (mut most, least) = (core.ppr.len(), tokens(frame));
    while most > 0 {
        let best = core.ppr.iter().take(most);
        frame.ppr_scores = best.map(|(name, score)| (name.clone(), round(*score))).collect();
        if tokens(frame) <= least + budget.saturating_sub(least) / 4 {
            return;
        }
        most /= 2;
    }
    frame.ppr_scores.clear();
}

/// Returns one page of all entries, ordered so that every slot has its share of each page. Entries are in full: one that does
/// not fit moves to the next page, and is in brief only if it would not fit on a page of its own.
fn page(
    frame: ContextPackOut,
    core: &PackCode,
    offers: &[PackEntry],
    budget: Budget,
) -> Option<(ContextPackOut, usize)> {
    let units: Vec<PackUnit> = offers.iter().map(PackEntry::unit).collect();
    let mut order = weave(&units, &PACK.shares);
    // The entry point, then claims and notes about it, then the rest.
    order.sort_by_key(|at| (*at > 0 && offers[*at].guard.is_none(), if *at == 0 { None } else { offers[*at].guard }));
    let left = order.get(budget.skip..).unwrap_or_default();
    let mut frame = frame;
    if budget.skip > 0 {
        frame.files.clear();
    } else {
        add_scores(&mut frame, core, budget.tokens);
    }
    let mut room = budget.tokens.saturating_sub(tokens(&frame));
    let mut chosen = vec![None; units.len()];
    let mut given = 0;
    for unit in left {
        let costs = &units[*unit].costs;
        let Some(form) = costs.iter().position(|cost| *cost <= room).filter(|form| *form == 0 || given == 0) else {
            break;
        };
        chosen[*unit] = Some(form);
        room -= costs[form];
        given += 1;
    }
    loop {
        let mut pack = frame.clone();
        for form in crate::features::search::pack::fit::given(offers, &chosen) {
            form.clone().put(&mut pack);
        }
        pack.files = others(&frame.files, &crate::features::search::pack::fit::given(offers, &chosen));
        pack.left_out = left.len() - given;
        pack.notice = pack.notice.filter(|_| pack.has_notes());
        pack.count_again();
        if pack.token_estimate <= budget.tokens {
            return Some((pack, given));
        }
        // Entries need slightly more tokens together than alone.
        given = given.checked_sub(1)?;
        chosen[left[given]] = None;
    }
}

/// Returns the chosen forms.
fn given<'a>(offers: &'a [PackEntry], chosen: &[Option<usize>]) -> Vec<&'a EntryForm> {
    offers.iter().zip(chosen).filter_map(|(offer, form)| form.map(|form| &offer.forms[form])).collect()
}

/// Returns the files without a chosen symbol.
fn others(files: &[String], given: &[&EntryForm]) -> Vec<String> {
    let shows = |file: &String| given.iter().any(|form| matches!(form, EntryForm::Slice(slice) if slice.file == *file));
    files.iter().filter(|file| !shows(file)).cloned().collect()
}

/// Tokens of the response as compact JSON.
fn tokens(pack: &ContextPackOut) -> usize {
    serde_json::to_string(pack).map_or(usize::MAX / 4, |text| count(&text))
}

fn offers(core: &PackCode, notes: &PackNotes, budget: Budget, explain: bool) -> Vec<PackEntry> {
    let mut all: Vec<PackEntry> = Vec::new();
    for (place, slice) in core.slices.iter().enumerate() {
        let forms = forms(slice, place == 0, notes, budget.profile, explain);
        all.push(PackEntry { slot: 0, forms, nodes: vec![slice.node], guard: None });
    }
    for part in &core.dependencies {
        all.push(PackEntry { slot: 1, forms: vec![EntryForm::Dependency(part.clone())], nodes: vec![], guard: None });
    }
    let entry = core.slices.first().map(|slice| slice.key.as_str());
    let is_near = |note: &PackNote| note.about.iter().any(|node| core.near.contains(node));
    // What blocks now comes before what was recorded earlier; each kind in turn.
    type Kind<'n> = (&'n [PackNote], fn(PackNote) -> EntryForm);
    let kinds: [Kind<'_>; 4] = [
        (&notes.blockers, EntryForm::Blocker),
        (&notes.blocked, EntryForm::Blocker),
        (&notes.decisions, EntryForm::Decision),
        (&notes.learnings, EntryForm::Learning),
    ];
    for (kind, (list, form)) in kinds.into_iter().enumerate() {
        let mut turn = 0;
        for note in list {
            let guard = (is_near(note) && turn < PACK.guarded_each).then(|| {
                turn += 1;
                turn * (kinds.len() + 1) + kind
            });
            all.push(PackEntry { slot: 2, forms: note_forms(note, form, entry), nodes: note.about.clone(), guard });
        }
    }
    if let Some(plan) = &notes.plan {
        // It was requested by name, so it comes after the first entry of each kind.
        let guard = Some(kinds.len() + 1 + kinds.len());
        all.push(PackEntry { slot: 3, forms: note_forms(plan, EntryForm::Plan, entry), nodes: vec![], guard });
    }
    for episode in &notes.episodes {
        all.push(PackEntry { slot: 4, forms: vec![EntryForm::Episode(episode.clone())], nodes: vec![], guard: None });
    }
    all
}

/// A note in full, then with shorter text and fewer details.
fn note_forms(note: &PackNote, form: fn(PackNote) -> EntryForm, entry: Option<&str>) -> Vec<EntryForm> {
    let brief = PackNote { status: None, confidence: None, since: None, ..note.clone() };
    let mut forms = vec![form(note.clone()), form(brief.clone())];
    // The holder of a claim is required information, the author of a note is not.
    let agent = note.agent.clone().filter(|_| matches!(forms[0], EntryForm::Blocker(_)));
    let unnamed = PackNote { reference: String::new(), agent, ..brief };
    let short = |text: &str, most: usize| shortened(text, most).unwrap_or_else(|| text.to_owned());
    for most in NOTE {
        let content = match &note.claim {
            // The entry point is already named. For other targets the name is more important than the intent.
            Some((target, intent)) if Some(target.as_str()) == entry => short(intent, most),
            Some((target, intent)) => short(&format!("{target}: {intent}"), most.max(target.len())),
            None => short(&note.content, most),
        };
        forms.push(form(PackNote { content, ..unnamed.clone() }));
    }
    forms.sort_by_cached_key(|form| usize::MAX - form.cost());
    forms.dedup_by_key(|form| form.cost());
    forms
}

/// In full with its code, then with the part of its code that fits best, then by signature and summary, then by name and
/// place.
fn forms(slice: &CodeSlice, is_entry: bool, notes: &PackNotes, profile: Profile, explain: bool) -> Vec<EntryForm> {
    let rich = profile != Profile::Compact;
    let about = |notes: &[PackNote]| -> Vec<String> {
        let own = notes.iter().filter(|note| rich && note.about.contains(&slice.node));
        own.map(|note| note.reference.clone()).collect()
    };
    let named = SliceOut {
        file: slice.file.clone(),
        symbol_name: slice.name.clone(),
        start_line: slice.start_line,
        end_line: slice.end_line,
        why: slice.why.clone(),
        reasons: match explain {
            true => slice.reasons.iter().map(|(channel, score)| ((*channel).to_owned(), round(*score))).collect(),
            false => vec![],
        },
        ..SliceOut::default()
    };
    // Of the others, what surrounds them costs as much as the code of a further symbol.
    let with_calls = profile == Profile::Debug || (rich && is_entry);
    let full = SliceOut {
        ppr_score: rich.then(|| round(slice.ppr_score)),
        incoming_callers: if with_calls { slice.callers.clone() } else { vec![] },
        outgoing_calls: if with_calls { slice.callees.clone() } else { vec![] },
        valid_from: slice.valid_from.clone().filter(|_| profile == Profile::Debug),
        relevant_decisions: about(&notes.decisions),
        relevant_learnings: about(&notes.learnings),
        ..named.clone()
    };
    let brief = SliceOut { signature: slice.signature.clone(), summary: slice.summary.clone(), ..named.clone() };
    let mut forms = Vec::new();
    let mut code = usize::MAX;
    if slice.code.is_some() {
        forms.push(EntryForm::Slice(SliceOut { code: slice.code.clone(), ..full }));
        forms.push(EntryForm::Slice(SliceOut { code: slice.code.clone(), ..named.clone() }));
        code = forms[1].cost();
    }
    for window in slice.windows.iter().filter(|_| profile != Profile::Debug) {
        // Lines from the middle of a function say little without its signature.
        let signature = slice.signature.clone().filter(|_| window.start_line > slice.start_line);
        let code = Some(window.code.clone());
        let part = SliceOut { code, code_start_line: Some(window.start_line), signature, ..named.clone() };
        forms.push(EntryForm::Slice(part));
    }
    let plain = SliceOut { summary: None, ..brief.clone() };
    let short = |text: &Option<String>| text.as_deref().map(|text| shortened(text, LINE).unwrap_or(text.to_owned()));
    let unexplained = SliceOut { why: String::new(), ..plain.clone() };
    let least = match &brief.signature {
        Some(_) => SliceOut { signature: short(&brief.signature), ..unexplained },
        None => SliceOut { summary: short(&brief.summary), ..unexplained },
    };
    let mut briefs = vec![brief];
    if plain.signature.is_some() {
        briefs.push(plain);
    }
    briefs.push(least);
    // Code that is no longer than its summary is included itself.
    forms.extend(briefs.into_iter().map(EntryForm::Slice).filter(|form| form.cost() < code));
    forms.sort_by_cached_key(|form| usize::MAX - form.cost());
    forms.dedup_by_key(|form| form.cost());
    forms
}

fn round(score: f64) -> f64 {
    (score * 1e4).round() / 1e4
}

/// The pack as a JSON value.
impl ContextPackOut {
    pub fn value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::code::CodeWindow;
    use super::*;
    use proptest::prelude::*;

    fn slice(n: usize, lines: usize) -> CodeSlice {
        CodeSlice {
            node: Node::at(n),
            key: format!("src/module_{n}.py::Class{n}::method_{n}"),
            file: format!("src/module_{n}.py"),
            name: format!("Class{n}::method_{n}"),
            kind: "Method".into(),
            start_line: 10,
            end_line: 10 + lines as u64,
            code: (lines > 0).then(|| "    return self.value(\"é\") + 1\n".repeat(lines)),
            windows: (lines > 12)
                .then(|| CodeWindow { start_line: 14, code: "    return self.value(\"é\") + 1\n".repeat(5) })
                .into_iter()
                .collect(),
            why: "has value".into(),
            signature: Some(format!("def method_{n}(self, value)")),
            summary: Some("Adds one to the value. ".repeat(n % 4)),
            score: 1.0,
            reasons: vec![("symbol", 0.7), ("file", 0.3)],
            ppr_score: 0.1,
            callers: vec!["src/a.py::f".into(); n % 3],
            callees: vec![],
            valid_from: None,
        }
    }

    fn note(text: &str) -> PackNote {
        let (reference, content) = ("DECISION:decision:1".to_owned(), text.to_owned());
        PackNote { reference, content, ..PackNote::default() }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn a_pack_never_exceeds_its_budget(
            sizes in prop::collection::vec(0usize..60, 0..14),
            dependencies in 0usize..20,
            texts in prop::collection::vec("[a-zé \\\\\"]{0,200}", 0..6),
            files in 0usize..8,
            tokens in 60usize..2_000,
            rich: bool,
            explain: bool,
        ) {
            let core = PackCode {
                slices: sizes.iter().enumerate().map(|(n, lines)| slice(n, *lines)).collect(),
                dependencies: (0..dependencies).map(|n| Dependency {
                    from: format!("a.py::f{n}"), relation: "CALLS".into(), to: format!("b/c.py::g{n}"),
                }).collect(),
                ..PackCode::default()
            };
            let notes = PackNotes { decisions: texts.iter().map(|t| note(t)).collect(), plan: Some(note("plan")), ..PackNotes::default() };
            let frame = ContextPackOut {
                summary: "Begin at `x`.".into(),
                files: (0..files).map(|n| format!("src/module_{n}.py")).collect(),
                freshness: "main, tx 3".into(),
                ..ContextPackOut::default()
            };
            let profile = if rich { Profile::Balanced } else { Profile::Compact };
            let budget = Budget { profile, tokens, skip: 0 };
            if let Some((pack, _)) = fit(frame.clone(), &core, &notes, budget, explain) {
                let text = serde_json::to_string(&pack).unwrap();
                prop_assert!(count(&text) <= tokens, "{} of {tokens}", count(&text));
                prop_assert!(count(&text) <= pack.token_estimate);
                prop_assert!(pack.token_estimate <= tokens);
                for given in &pack.core_symbols {
                    let whole = core.slices.iter().find(|s| s.name == given.symbol_name).unwrap();
                    let is_window = |window: &CodeWindow| {
                        (Some(&window.code), Some(window.start_line)) == (given.code.as_ref(), given.code_start_line)
                    };
                    let is_whole = given.code == whole.code && given.code_start_line.is_none();
                    let is_part = whole.windows.iter().any(is_window);
                    prop_assert!(given.code.is_none() || is_whole || is_part, "code is whole, or a window of it");
                }
                let units = core.slices.len() + core.dependencies.len() + notes.decisions.len() + 1;
                let there = pack.core_symbols.len() + pack.dependencies.len() + pack.decisions.len() + usize::from(pack.plan.is_some());
                prop_assert_eq!(pack.left_out, units - there);
            } else {
                let bare = ContextPackOut { files: vec![], entry_point: None, token_estimate: tokens, token_budget: tokens, left_out: 999, profile, ..frame };
                prop_assert!(super::tokens(&bare) > tokens, "only what has no room at all is refused");
            }
        }
    }
}
