//! The objects whose texts are embedded: everything visible now, on every branch.

use super::change::significant;
use super::input::{self, EmbeddingInput, InputRules};
use crate::sensitive::is_sensitive;
use lukasa_model::change::ChangeSummary;
use lukasa_model::id::{MAIN, PROJECT_WIDE};
use lukasa_model::timeline::visible;
use lukasa_model::types::{EmbeddingPolicy, Registry, TypeEmbedding, system};
use lukasa_model::version::FactKind;
use lukasa_model::{BranchNo, Fact, FactNo, Result, Time, Tx, Version, View};
use lukasa_store::ledger::hide;
use lukasa_store::{Ledger, VersionFields};
use rustc_hash::FxHashMap;

/// Objects per page: large enough for efficient queries, small enough for memory.
pub const PAGE: usize = 1_024;

/// The current version of an object on a branch.
pub struct EmbeddableObject {
    pub branch: BranchNo,
    pub thing: Fact,
    pub statement: Version,
}

impl EmbeddableObject {
    /// How it is embedded; `None` if it is not.
    pub fn policy(&self, registry: &Registry) -> Option<TypeEmbedding> {
        let declared = registry.object_type(&self.thing.type_name).map(|t| t.embedding.clone()).unwrap_or_default();
        let own = self.thing.ends.is_some() || system::is(&self.thing.type_name) || self.is_sensitive();
        (!own && declared.policy != EmbeddingPolicy::Disabled).then_some(declared)
    }

    /// Whether it is sensitive and therefore must not be sent to a model.
    fn is_sensitive(&self) -> bool {
        // Content is parsed only if its text contains the word.
        let says = self.statement.content.as_deref().is_some_and(|text| text.contains("\"sensitive\":true"));
        says && self.statement.parsed().is_ok_and(|content| is_sensitive(&content))
    }

    /// Builds the text to embed for the object.
    pub fn input(&self, embedding: &TypeEmbedding, rules: &InputRules) -> Result<EmbeddingInput> {
        let content = self.statement.parsed()?;
        Ok(input::build(self.thing.key.as_deref(), &content, &embedding.relevant_paths, rules))
    }
}

/// Returns the view of a branch now.
pub fn view_now(ledger: &Ledger, branch: BranchNo, now: Time) -> Result<View> {
    let head = ledger.head()?;
    // Project-wide facts are visible on every branch.
    let branch = if branch == PROJECT_WIDE { MAIN } else { branch };
    ledger.view_fixed(branch, head.tx, now.max(head.recorded_at))
}

/// Returns the facts of this list that are visible objects on a branch now, and for each whether one of its versions after a
/// transaction is a significant change.
pub fn on_branch(
    ledger: &Ledger,
    view: &View,
    registry: &Registry,
    things: &[FactNo],
    after: Option<Tx>,
) -> Result<Vec<(EmbeddableObject, bool)>> {
    let fields = if after.is_some() { VersionFields::All } else { VersionFields::Content };
    let mut reader = ledger.store().read(ledger.scope())?;
    let mut numbered: Vec<Fact> = reader.facts_numbered(things)?;
    numbered.retain(|thing| thing.ends.is_none());
    numbered.sort_by_key(|thing| thing.no);
    let numbers: Vec<FactNo> = numbered.iter().map(|thing| thing.no).collect();
    let mut statements: FxHashMap<FactNo, Vec<Version>> = FxHashMap::default();
    for statement in reader.versions(&numbers, fields)? {
        statements.entry(statement.thing).or_default().push(statement);
    }
    drop(reader);
    let mut found = Vec::new();
    for thing in numbered {
        let own = statements.remove(&thing.no).unwrap_or_default();
        let Some(mut now) = visible(&own, &view.lineage, view.valid).filter(|s| !s.absent).cloned() else { continue };
        hide(registry, &thing, &mut now)?;
        let object = EmbeddableObject { branch: view.branch, thing, statement: now };
        let paths = object.policy(registry).map(|embedding| embedding.relevant_paths).unwrap_or_default();
        let later = own.iter().filter(|s| after.is_some_and(|after| s.version.tx() > after));
        let mut weighty = after.is_none();
        for statement in later {
            let change = statement.change.as_deref().map(serde_json::from_str::<ChangeSummary>);
            // An unreadable summary counts as a significant change.
            weighty |= change.is_none_or(|read| read.map_or(true, |change| significant(Some(&change), &paths)));
        }
        found.push((object, weighty));
    }
    Ok(found)
}

/// Calls `each` with the objects visible now on the main branch, then with those that other branches change, page by page.
pub fn each_page(ledger: &Ledger, now: Time, each: &mut dyn FnMut(Vec<EmbeddableObject>) -> Result<()>) -> Result<()> {
    each_page_of_main(ledger, now, each)?;
    let (registry, head) = (ledger.registry()?, ledger.head()?);
    for branch in registry.branches().iter().map(|branch| branch.number).filter(|number| *number != MAIN) {
        let view = view_now(ledger, branch, now)?;
        let touched = ledger.store().read(ledger.scope())?.touched(branch, Tx::START, head.tx)?;
        for things in touched.chunks(PAGE) {
            let page = on_branch(ledger, &view, &registry, things, None)?;
            each(page.into_iter().map(|(object, _)| object).collect())?;
        }
    }
    Ok(())
}

/// Calls `each` with the objects visible now on the main branch, page by page.
pub fn each_page_of_main(
    ledger: &Ledger,
    now: Time,
    each: &mut dyn FnMut(Vec<EmbeddableObject>) -> Result<()>,
) -> Result<()> {
    let view = view_now(ledger, MAIN, now)?;
    let mut rows = ledger.stream_view(&view, VersionFields::Content)?.only(FactKind::Object);
    let registry = ledger.registry()?;
    while let Some(page) = rows.next_page()? {
        let object = |mut row: lukasa_store::ledger::ViewRow| {
            hide(&registry, &row.thing, &mut row.statement)?;
            Ok(EmbeddableObject { branch: MAIN, thing: row.thing, statement: row.statement })
        };
        each(page.into_iter().filter(|row| !row.is_system()).map(object).collect::<Result<_>>()?)?;
    }
    Ok(())
}
