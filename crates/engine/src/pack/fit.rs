//! A pack that keeps its budget: whole units in full or in brief, and a count of the tokens of all that is given.

use super::core::{Core, Dependency, Slice};
use super::notes::{Note, Notes};
use lukasa_search::count::count;
use lukasa_search::pack::{Unit, choose, shed, weave};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// How much of everything is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// 300 tokens.
    #[default]
    Compact,
    /// 1,200 tokens.
    Balanced,
    /// Ten times as much as the others choose from, in pages of 25,000 tokens.
    Debug,
}

impl Profile {
    pub fn tokens(self) -> usize {
        match self {
            Profile::Compact => 300,
            Profile::Balanced => 1_200,
            Profile::Debug => 25_000,
        }
    }

    /// How widely is looked for what may be given.
    pub fn breadth(self) -> usize {
        if self == Profile::Debug { 10 } else { 1 }
    }

    pub fn name(self) -> &'static str {
        match self {
            Profile::Compact => "compact",
            Profile::Balanced => "balanced",
            Profile::Debug => "debug",
        }
    }

    /// The next one that gives more.
    pub fn larger(self) -> Option<Profile> {
        match self {
            Profile::Compact => Some(Profile::Balanced),
            Profile::Balanced => Some(Profile::Debug),
            Profile::Debug => None,
        }
    }
}

/// Most tokens, and how much was given on earlier pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub profile: Profile,
    pub tokens: usize,
    pub skip: usize,
}

/// Core code, dependencies, decisions and learnings, plan, episodes.
const SHARES: [f64; 5] = [0.40, 0.25, 0.20, 0.10, 0.05];
/// Times the room that is left is filled again.
const REFILLS: usize = 3;

/// What is handed out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Pack {
    /// Where to begin and what is concerned.
    pub summary: String,
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
    forms: Vec<Form>,
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
/// is given. None when not even that fits, files being dropped first. Also how many things are given.
pub fn fit(frame: Pack, core: &Core, notes: &Notes, budget: Budget, explain: bool) -> Option<(Pack, usize)> {
    let mut frame = frame;
    frame.profile = budget.profile;
    frame.token_budget = budget.tokens;
    // Room for the figures that are filled in last.
    frame.token_estimate = budget.tokens;
    frame.left_out = 999;
    while tokens(&frame) > budget.tokens {
        frame.files.pop()?;
    }
    let offers = offers(core, notes, budget, explain);
    let units: Vec<Unit> = offers
        .iter()
        .map(|offer| Unit { slot: offer.slot, costs: offer.forms.iter().map(Form::cost).collect() })
        .collect();
    if budget.profile == Profile::Debug {
        return page(frame, core, &offers, &units, budget);
    }
    // Files whose symbols are given need not be named again, which leaves room for more of them.
    let mut without = frame.clone();
    let mut chosen = choose(&units, &SHARES, budget.tokens - tokens(&frame));
    for _ in 0..REFILLS {
        without.files = others(&frame.files, &given(&offers, &chosen));
        let again = choose(&units, &SHARES, budget.tokens - tokens(&without));
        if again == chosen {
            break;
        }
        chosen = again;
    }
    loop {
        let mut pack = frame.clone();
        for form in given(&offers, &chosen) {
            form.clone().put(&mut pack);
        }
        pack.files = others(&frame.files, &given(&offers, &chosen));
        pack.left_out = chosen.iter().filter(|form| form.is_none()).count();
        pack.count_again();
        if pack.token_estimate <= budget.tokens {
            let given = chosen.len() - pack.left_out;
            return Some((pack, given));
        }
        // Parts cost a little more together than alone.
        if !shed(&units, &mut chosen, SHARES.len()) {
            return None;
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
fn page(frame: Pack, core: &Core, offers: &[Offer], units: &[Unit], budget: Budget) -> Option<(Pack, usize)> {
    let order = weave(units, &SHARES);
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
        for form in self::given(offers, &chosen) {
            form.clone().put(&mut pack);
        }
        pack.files = others(&frame.files, &self::given(offers, &chosen));
        pack.left_out = left.len() - given;
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
        all.push(Offer { slot: 0, forms: forms(slice, notes, budget.profile, explain) });
    }
    let mut one = |slot: usize, form: Form| all.push(Offer { slot, forms: vec![form] });
    core.dependencies.iter().for_each(|part| one(1, Form::Dependency(part.clone())));
    // What others are doing comes before what was once learned.
    notes.blockers.iter().for_each(|part| one(2, Form::Blocker(part.clone())));
    notes.decisions.iter().for_each(|part| one(2, Form::Decision(part.clone())));
    notes.learnings.iter().for_each(|part| one(2, Form::Learning(part.clone())));
    notes.plan.iter().for_each(|part| one(3, Form::Plan(part.clone())));
    notes.episodes.iter().for_each(|part| one(4, Form::Episode(part.clone())));
    all
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
    if slice.code.is_some() {
        forms.push(Form::Slice(SliceOut { code: slice.code.clone(), ..told }));
        forms.push(Form::Slice(SliceOut { code: slice.code.clone(), ..named.clone() }));
    }
    if brief.signature.is_some() || brief.summary.is_some() {
        forms.push(Form::Slice(brief.clone()));
        forms.push(Form::Slice(SliceOut { summary: None, ..brief }));
    }
    forms.push(Form::Slice(named));
    // The fullest first, by what they cost.
    forms.sort_by_cached_key(|form| usize::MAX - form.cost());
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
            node: n as u32,
            key: format!("src/module_{n}.py::Class{n}::method_{n}"),
            file: format!("src/module_{n}.py"),
            name: format!("Class{n}::method_{n}"),
            kind: "METHOD".into(),
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
                let bare = Pack { files: vec![], token_estimate: tokens, token_budget: tokens, left_out: 999, profile, ..frame };
                prop_assert!(super::tokens(&bare) > tokens, "only what has no room at all is refused");
            }
        }
    }
}
