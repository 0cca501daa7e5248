//! A pack that keeps its budget: whole units in full or in brief, and a count of the tokens of all that is given.

use super::core::{Core, Dependency, Slice};
use super::notes::{Note, Notes};
use crate::tool::Profile;
use crate::tool::shortened;
use lukasa_graph::Node;
use lukasa_search::count::count;
use lukasa_search::pipeline::pack::{Unit, choose, cost, shed, weave};
use lukasa_search::recipes::PACK;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Most tokens, and how much was given on earlier pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub profile: Profile,
    pub tokens: usize,
    pub skip: usize,
}

/// Longest texts of notes that have little room, in characters.
const NOTE: [usize; 4] = [160, 100, 60, 40];
/// Longest texts of a frame that has little room, in characters.
const NARROW: [usize; 3] = [160, 80, 40];
/// Longest signature where there is little room, in characters.
const LINE: usize = 80;
/// Times the room that is left is filled again.
const REFILLS: usize = 3;

/// What is handed out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Pack {
    /// Where to begin and what is concerned.
    pub summary: String,
    /// Nothing found fits the task well; why that is thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_confidence: Option<String>,
    /// The best symbol to begin at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_point: Option<String>,
    /// Files concerned of which no symbol is given, best first.
    pub files: Vec<String>,
    /// The code that matters most: whole, or by signature and summary where it does not fit.
    pub core_symbols: Vec<SliceOut>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Note>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub learnings: Vec<Note>,
    /// What others have claimed of this code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub active_blockers: Vec<Note>,
    /// What was claimed of this code for whoever asked, and what was not to be had.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimNote>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Note>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub episodes: Vec<Note>,
    /// What is said of the texts of decisions, learnings, episodes and plans, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// As of when, and whether sources have changed since.
    pub freshness: String,
    pub profile: Profile,
    /// Tokens of this answer as JSON.
    pub token_estimate: usize,
    pub token_budget: usize,
    /// Things found that are not here.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// Shares of a walk around the task, by what it comes by, in the debug profile.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ppr_scores: BTreeMap<String, f64>,
    /// The rest, of the debug profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What came of claiming something that is handed out.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClaimNote {
    pub target_id: String,
    /// ok, or CONFLICT.
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_id: Option<String>,
    /// Who has it instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
}

impl Pack {
    fn has_notes(&self) -> bool {
        let lists = [&self.decisions, &self.learnings, &self.active_blockers, &self.episodes];
        lists.iter().any(|list| !list.is_empty()) || self.plan.is_some()
    }

    /// Counts its tokens again: the count is part of what is counted, so it grows until it holds.
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

/// A symbol with its source, or what stands for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SliceOut {
    pub file: String,
    /// As its file calls it: `Class::method`.
    pub symbol_name: String,
    pub start_line: u64,
    pub end_line: u64,
    /// Exact lines of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Where the code is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Share of a walk around the task that comes by here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ppr_score: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incoming_callers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outgoing_calls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<String>,
    /// Which of the decisions are about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relevant_decisions: Vec<String>,
    /// Which of the learnings are about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relevant_learnings: Vec<String>,
    /// Why it is here; adds up to its score.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<(String, f64)>,
}

/// One thing that may be given, in its forms.
struct Offer {
    slot: usize,
    /// The fullest first.
    forms: Vec<Form>,
    /// The code it shows, or is about.
    nodes: Vec<Node>,
    /// Its place among what is given before anything else but the entry point: what protects people.
    guard: Option<usize>,
}

#[derive(Clone)]
enum Form {
    Slice(SliceOut),
    Dependency(Dependency),
    Decision(Note),
    Learning(Note),
    Blocker(Note),
    Plan(Note),
    Episode(Note),
}

impl Form {
    fn cost(&self) -> usize {
        let text = match self {
            Form::Slice(part) => serde_json::to_string(part),
            Form::Dependency(part) => serde_json::to_string(part),
            Form::Decision(part)
            | Form::Learning(part)
            | Form::Blocker(part)
            | Form::Plan(part)
            | Form::Episode(part) => serde_json::to_string(part),
        };
        text.map_or(usize::MAX / 4, |text| count(&text) + 1)
    }

    fn put(self, pack: &mut Pack) {
        match self {
            Form::Slice(part) => pack.core_symbols.push(part),
            Form::Dependency(part) => pack.dependencies.push(part),
            Form::Decision(part) => pack.decisions.push(part),
            Form::Learning(part) => pack.learnings.push(part),
            Form::Blocker(part) => pack.active_blockers.push(part),
            Form::Plan(part) => pack.plan = Some(part),
            Form::Episode(part) => pack.episodes.push(part),
        }
    }
}

/// Chooses what fits. `frame` holds what is always given: summary, entry point, freshness, and the files of which no symbol
/// is given. Claims of others and what was decided and learned about the entry point come before everything around it.
/// None when there is no room even for the frame, files being dropped first. Also how many things are given.
pub fn fit(frame: Pack, core: &Core, notes: &Notes, budget: Budget, explain: bool) -> Option<(Pack, usize)> {
    let mut frame = frame;
    frame.profile = budget.profile;
    frame.token_budget = budget.tokens;
    // Room for the figures that are filled in last.
    frame.token_estimate = budget.tokens;
    frame.left_out = 999;
    let offers = offers(core, notes, budget, explain);
    if budget.profile == Profile::Debug {
        narrow(&mut frame, 0, budget.tokens)?;
        return page(frame, core, &offers, budget);
    }
    let mut fitting = Fitting::new(frame, &offers, budget.tokens)?;
    fitting.choose();
    fitting.show_claims();
    fitting.pack()
}

/// Makes the frame leave so much room, if it can: files go first, then the ends of long texts. None if it has no room itself.
fn narrow(frame: &mut Pack, room: usize, budget: usize) -> Option<()> {
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

/// A choice in the making.
struct Fitting<'a> {
    frame: Pack,
    offers: &'a [Offer],
    units: Vec<Unit>,
    budget: usize,
    /// What is given whatever else is not, with the form of each; the most important first.
    guarded: Vec<(usize, usize)>,
    /// The form of everything else.
    chosen: Vec<Option<usize>>,
}

impl<'a> Fitting<'a> {
    /// Reserves room for what comes first, in brief; in full as far as a share of the room allows.
    fn new(mut frame: Pack, offers: &'a [Offer], budget: usize) -> Option<Fitting<'a>> {
        let costs = |offer: &Offer| offer.forms.iter().map(Form::cost).collect::<Vec<_>>();
        let mut units: Vec<Unit> = offers.iter().map(|offer| Unit { slot: offer.slot, costs: costs(offer) }).collect();
        let least = |unit: &Unit| unit.costs.last().copied().unwrap_or(0);
        let mut guarded: Vec<(usize, usize)> = Vec::new();
        let mut order: Vec<usize> = (0..offers.len()).filter(|at| offers[*at].guard.is_some()).collect();
        order.sort_by_key(|at| offers[*at].guard);
        let entry = units.first().filter(|unit| unit.slot == 0).map_or(0, least);
        let wanted: usize = order.iter().map(|at| least(&units[*at])).sum();
        narrow(&mut frame, wanted + entry, budget)?;
        let room = budget - tokens(&frame);
        let mut left = room;
        for at in order {
            // The first comes even before a word of the entry point, which the summary names.
            let besides = if guarded.is_empty() { 0 } else { entry };
            if let Some(rest) = left.checked_sub(least(&units[at]) + besides) {
                left = rest + besides;
                guarded.push((at, units[at].costs.len() - 1));
            }
        }
        let share = (room as f64 * PACK.guarded) as usize;
        let mut spent: usize = guarded.iter().map(|(at, _)| least(&units[*at])).sum();
        for (at, form) in &mut guarded {
            let costs = &units[*at].costs;
            let fuller = costs.iter().position(|cost| spent - costs[*form] + cost <= share);
            if let Some(fuller) = fuller.filter(|fuller| fuller < form) {
                spent = spent - costs[*form] + costs[fuller];
                *form = fuller;
            }
        }
        // What is given already is not to be chosen again.
        guarded.iter().for_each(|(at, _)| units[*at].costs.clear());
        Some(Fitting { frame, offers, chosen: vec![None; units.len()], units, budget, guarded })
    }

    fn guarded_cost(&self) -> usize {
        self.guarded.iter().map(|(at, form)| self.offers[*at].forms[*form].cost()).sum()
    }

    /// Fills the rest of the room, slot by slot.
    fn choose(&mut self) {
        let guarded = self.guarded_cost();
        let room = |frame: &Pack| self.budget.saturating_sub(tokens(frame) + guarded);
        // Files whose symbols are given need not be named again, which leaves room for more of them.
        let mut without = self.frame.clone();
        let mut chosen = choose(&self.units, &PACK.shares, room(&self.frame));
        for _ in 0..REFILLS {
            without.files = others(&self.frame.files, &given(self.offers, &chosen));
            let again = choose(&self.units, &PACK.shares, room(&without));
            if again == chosen {
                break;
            }
            chosen = again;
        }
        // Where to begin is never without a word of it.
        if let Some(entry) = self.units.first().filter(|unit| unit.slot == 0 && chosen[0].is_none()) {
            let least = entry.costs.last().copied().unwrap_or(0);
            while cost(&self.units, &chosen) + least > room(&without)
                && shed(&self.units, &mut chosen, PACK.shares.len())
            {}
            chosen[0] = Some(entry.costs.len() - 1);
        }
        self.chosen = chosen;
    }

    /// Of everything that is shown, who has claimed it.
    fn show_claims(&mut self) {
        let shown: Vec<Node> = (0..self.offers.len())
            .filter(|at| self.chosen[*at].is_some() && self.offers[*at].slot == 0)
            .flat_map(|at| self.offers[at].nodes.clone())
            .collect();
        for (at, offer) in self.offers.iter().enumerate() {
            let is_claim = matches!(offer.forms.first(), Some(Form::Blocker(_)));
            let is_guarded = self.guarded.iter().any(|(own, _)| *own == at);
            if is_claim && !is_guarded && offer.nodes.iter().any(|node| shown.contains(node)) {
                self.guarded.push((at, self.chosen[at].take().unwrap_or(offer.forms.len() - 1)));
                self.units[at].costs.clear();
            }
        }
    }

    fn all(&self) -> Vec<&'a Form> {
        let forms =
            self.chosen.clone().into_iter().enumerate().map(|(at, form)| {
                form.or_else(|| self.guarded.iter().find(|(own, _)| *own == at).map(|(_, form)| *form))
            });
        given(self.offers, &forms.collect::<Vec<_>>())
    }

    /// Takes out the least wanted until the whole fits: parts cost a little more together than alone.
    fn pack(mut self) -> Option<(Pack, usize)> {
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
                || (self.guarded.len() > 1 && self.guarded.pop().is_some())
                || shed(&self.units, &mut self.chosen, PACK.shares.len())
                || self.guarded.pop().is_some();
            if !went {
                return None;
            }
        }
    }
}

/// Tells the scores of the walk, as far as they take no more than a quarter of the room.
fn add_scores(frame: &mut Pack, core: &Core, budget: usize) {
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

/// One page of all there is, in an order that gives every slot its share of each page. All of it in full: what has no room
/// begins the next page, and stands in brief only where a page of its own would not hold it.
fn page(frame: Pack, core: &Core, offers: &[Offer], budget: Budget) -> Option<(Pack, usize)> {
    let costs = |offer: &Offer| offer.forms.iter().map(Form::cost).collect();
    let units: Vec<Unit> = offers.iter().map(|offer| Unit { slot: offer.slot, costs: costs(offer) }).collect();
    let mut order = weave(&units, &PACK.shares);
    // Where to begin, what protects people, then the rest.
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
        // Parts cost a little more together than alone.
        given = given.checked_sub(1)?;
        chosen[left[given]] = None;
    }
}

/// The forms that were chosen.
fn given<'a>(offers: &'a [Offer], chosen: &[Option<usize>]) -> Vec<&'a Form> {
    offers.iter().zip(chosen).filter_map(|(offer, form)| form.map(|form| &offer.forms[form])).collect()
}

/// Files none of these is a symbol of.
fn others(files: &[String], given: &[&Form]) -> Vec<String> {
    let shows = |file: &String| given.iter().any(|form| matches!(form, Form::Slice(slice) if slice.file == *file));
    files.iter().filter(|file| !shows(file)).cloned().collect()
}

/// Tokens of what is sent: compact JSON.
fn tokens(pack: &Pack) -> usize {
    serde_json::to_string(pack).map_or(usize::MAX / 4, |text| count(&text))
}

fn offers(core: &Core, notes: &Notes, budget: Budget, explain: bool) -> Vec<Offer> {
    let mut all: Vec<Offer> = Vec::new();
    for slice in &core.slices {
        let forms = forms(slice, notes, budget.profile, explain);
        all.push(Offer { slot: 0, forms, nodes: vec![slice.node], guard: None });
    }
    for part in &core.dependencies {
        all.push(Offer { slot: 1, forms: vec![Form::Dependency(part.clone())], nodes: vec![], guard: None });
    }
    let entry = core.slices.first().map(|slice| slice.key.as_str());
    let is_near = |note: &Note| note.about.iter().any(|node| core.near.contains(node));
    // What others are doing comes before what was once learned; each kind in turn.
    type Kind<'n> = (&'n [Note], fn(Note) -> Form);
    let kinds: [Kind<'_>; 3] =
        [(&notes.blockers, Form::Blocker), (&notes.decisions, Form::Decision), (&notes.learnings, Form::Learning)];
    for (kind, (list, form)) in kinds.into_iter().enumerate() {
        let mut turn = 0;
        for note in list {
            let guard = (is_near(note) && turn < PACK.guarded_each).then(|| {
                turn += 1;
                turn * (kinds.len() + 1) + kind
            });
            all.push(Offer { slot: 2, forms: note_forms(note, form, entry), nodes: note.about.clone(), guard });
        }
    }
    if let Some(plan) = &notes.plan {
        // It was asked for by name: after the first of each kind.
        let guard = Some(kinds.len() + 1 + kinds.len());
        all.push(Offer { slot: 3, forms: note_forms(plan, Form::Plan, entry), nodes: vec![], guard });
    }
    for episode in &notes.episodes {
        all.push(Offer { slot: 4, forms: vec![Form::Episode(episode.clone())], nodes: vec![], guard: None });
    }
    all
}

/// A note in full, then with less and less of its text and of what is known about it.
fn note_forms(note: &Note, form: fn(Note) -> Form, entry: Option<&str>) -> Vec<Form> {
    let brief = Note { status: None, confidence: None, since: None, ..note.clone() };
    let mut forms = vec![form(note.clone()), form(brief.clone())];
    // Who has claimed something must be known; who wrote a note need not be.
    let agent = note.agent.clone().filter(|_| matches!(forms[0], Form::Blocker(_)));
    let unnamed = Note { reference: String::new(), agent, ..brief };
    let short = |text: &str, most: usize| shortened(text, most).unwrap_or_else(|| text.to_owned());
    for most in NOTE {
        let content = match &note.claim {
            // Where to begin is named already; of anything else its name says more than what for.
            Some((target, intent)) if Some(target.as_str()) == entry => short(intent, most),
            Some((target, intent)) => short(&format!("{target}: {intent}"), most.max(target.len())),
            None => short(&note.content, most),
        };
        forms.push(form(Note { content, ..unnamed.clone() }));
    }
    forms.sort_by_cached_key(|form| usize::MAX - form.cost());
    forms.dedup_by_key(|form| form.cost());
    forms
}

/// In full with its code, then by signature and summary, then by name and place.
fn forms(slice: &Slice, notes: &Notes, profile: Profile, explain: bool) -> Vec<Form> {
    let rich = profile != Profile::Compact;
    let about = |notes: &[Note]| -> Vec<String> {
        let own = notes.iter().filter(|note| rich && note.about.contains(&slice.node));
        own.map(|note| note.reference.clone()).collect()
    };
    let named = SliceOut {
        file: slice.file.clone(),
        symbol_name: slice.name.clone(),
        start_line: slice.start_line,
        end_line: slice.end_line,
        reasons: match explain {
            true => slice.reasons.iter().map(|(channel, score)| ((*channel).to_owned(), round(*score))).collect(),
            false => vec![],
        },
        ..SliceOut::default()
    };
    let told = SliceOut {
        ppr_score: rich.then(|| round(slice.ppr_score)),
        incoming_callers: if rich { slice.callers.clone() } else { vec![] },
        outgoing_calls: if rich { slice.callees.clone() } else { vec![] },
        valid_from: slice.valid_from.clone().filter(|_| profile == Profile::Debug),
        relevant_decisions: about(&notes.decisions),
        relevant_learnings: about(&notes.learnings),
        ..named.clone()
    };
    let brief = SliceOut { signature: slice.signature.clone(), summary: slice.summary.clone(), ..named.clone() };
    let mut forms = Vec::new();
    let mut code = usize::MAX;
    if slice.code.is_some() {
        forms.push(Form::Slice(SliceOut { code: slice.code.clone(), ..told }));
        forms.push(Form::Slice(SliceOut { code: slice.code.clone(), ..named.clone() }));
        code = forms[1].cost();
    }
    let plain = SliceOut { summary: None, ..brief.clone() };
    let short = |text: &Option<String>| text.as_deref().map(|text| shortened(text, LINE).unwrap_or(text.to_owned()));
    let least = match &brief.signature {
        Some(_) => SliceOut { signature: short(&brief.signature), ..plain.clone() },
        None => SliceOut { summary: short(&brief.summary), ..plain.clone() },
    };
    let mut briefs = vec![brief];
    if plain.signature.is_some() {
        briefs.push(plain);
    }
    briefs.push(least);
    // Code that is no longer than what would stand for it is given itself.
    forms.extend(briefs.into_iter().map(Form::Slice).filter(|form| form.cost() < code));
    forms.sort_by_cached_key(|form| usize::MAX - form.cost());
    forms.dedup_by_key(|form| form.cost());
    forms
}

fn round(score: f64) -> f64 {
    (score * 1e4).round() / 1e4
}

/// The pack as a value, for who wants to look into it.
impl Pack {
    pub fn value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slice(n: usize, lines: usize) -> Slice {
        Slice {
            node: Node::at(n),
            key: format!("src/module_{n}.py::Class{n}::method_{n}"),
            file: format!("src/module_{n}.py"),
            name: format!("Class{n}::method_{n}"),
            kind: "Method".into(),
            start_line: 10,
            end_line: 10 + lines as u64,
            code: (lines > 0).then(|| "    return self.value(\"é\") + 1\n".repeat(lines)),
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

    fn note(text: &str) -> Note {
        let (reference, content) = ("DECISION:decision:1".to_owned(), text.to_owned());
        Note { reference, content, ..Note::default() }
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
            let core = Core {
                slices: sizes.iter().enumerate().map(|(n, lines)| slice(n, *lines)).collect(),
                dependencies: (0..dependencies).map(|n| Dependency {
                    from: format!("a.py::f{n}"), relation: "CALLS".into(), to: format!("b/c.py::g{n}"),
                }).collect(),
                ..Core::default()
            };
            let notes = Notes { decisions: texts.iter().map(|t| note(t)).collect(), plan: Some(note("plan")), ..Notes::default() };
            let frame = Pack {
                summary: "Begin at `x`.".into(),
                files: (0..files).map(|n| format!("src/module_{n}.py")).collect(),
                freshness: "main, tx 3".into(),
                ..Pack::default()
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
                    prop_assert!(given.code.is_none() || given.code == whole.code, "code is whole");
                }
                let units = core.slices.len() + core.dependencies.len() + notes.decisions.len() + 1;
                let there = pack.core_symbols.len() + pack.dependencies.len() + pack.decisions.len() + usize::from(pack.plan.is_some());
                prop_assert_eq!(pack.left_out, units - there);
            } else {
                let bare = Pack { files: vec![], entry_point: None, token_estimate: tokens, token_budget: tokens, left_out: 999, profile, ..frame };
                prop_assert!(super::tokens(&bare) > tokens, "only what has no room at all is refused");
            }
        }
    }
}
