//! Which objects have a say in what is embedded: everything visible now, on every branch.

use super::change::significant;
use super::input::{self, Input, InputRules};
use crate::sensitive::is_sensitive;
use lukasa_model::change::ChangeSummary;
use lukasa_model::id::{MAIN, PROJECT_WIDE};
use lukasa_model::statement::Kind;
use lukasa_model::timeline::visible;
use lukasa_model::types::{Embedding, EmbeddingPolicy, Registry, system};
use lukasa_model::{BranchNo, Result, Statement, Thing, ThingNo, Time, Tx, View};
use lukasa_store::ledger::hide;
use lukasa_store::{Fields, Ledger};
use rustc_hash::FxHashMap;

/// Objects looked at together: enough to make queries worth their while, little enough for any memory.
pub const PAGE: usize = 1_024;

/// An object as it stands on a branch now.
pub struct Object {
    pub branch: BranchNo,
    pub thing: Thing,
    pub statement: Statement,
}

impl Object {
    /// Whether and how it is embedded; `None` when it is not.
    pub fn policy(&self, registry: &Registry) -> Option<Embedding> {
        let declared = registry.object_type(&self.thing.type_name).map(|t| t.embedding.clone()).unwrap_or_default();
        let own = self.thing.ends.is_some() || system::is(&self.thing.type_name) || self.is_sensitive();
        (!own && declared.policy != EmbeddingPolicy::Disabled).then_some(declared)
    }

    /// Whether it is kept from everybody but its owner, and so from models.
    fn is_sensitive(&self) -> bool {
        // Most never say the word: only of those that do the content is read for it.
        let says = self.statement.content.as_deref().is_some_and(|text| text.contains("\"sensitive\":true"));
        says && self.statement.parsed().is_ok_and(|content| is_sensitive(&content))
    }

    pub fn input(&self, embedding: &Embedding, rules: &InputRules) -> Result<Input> {
        let content = self.statement.parsed()?;
        Ok(input::build(self.thing.key.as_deref(), &content, &embedding.relevant_paths, rules))
    }
}

/// The view of a branch as it is now.
pub fn view_now(ledger: &Ledger, branch: BranchNo, now: Time) -> Result<View> {
    let head = ledger.head()?;
    // What is stated for the whole project is seen from every branch.
    let branch = if branch == PROJECT_WIDE { MAIN } else { branch };
    ledger.view_fixed(branch, head.tx, now.max(head.recorded_at))
}

/// These things as they stand on a branch now, those that are visible objects; with whether anything of importance was
/// said about them on the branch after a transaction.
pub fn on_branch(
    ledger: &Ledger,
    view: &View,
    registry: &Registry,
    things: &[ThingNo],
    after: Option<Tx>,
) -> Result<Vec<(Object, bool)>> {
    let fields = if after.is_some() { Fields::All } else { Fields::Content };
    let mut reader = ledger.store().read(ledger.scope())?;
    let mut numbered: Vec<Thing> = reader.things_numbered(things)?;
    numbered.retain(|thing| thing.ends.is_none());
    numbered.sort_by_key(|thing| thing.no);
    let numbers: Vec<ThingNo> = numbered.iter().map(|thing| thing.no).collect();
    let mut statements: FxHashMap<ThingNo, Vec<Statement>> = FxHashMap::default();
    for statement in reader.statements(&numbers, fields)? {
        statements.entry(statement.thing).or_default().push(statement);
    }
    drop(reader);
    let mut found = Vec::new();
    for thing in numbered {
        let own = statements.remove(&thing.no).unwrap_or_default();
        let Some(mut now) = visible(&own, &view.lineage, view.valid).filter(|s| !s.absent).cloned() else { continue };
        hide(registry, &thing, &mut now)?;
        let object = Object { branch: view.branch, thing, statement: now };
        let paths = object.policy(registry).map(|embedding| embedding.relevant_paths).unwrap_or_default();
        let told = own.iter().filter(|s| after.is_some_and(|after| s.version.tx() > after));
        let mut weighty = after.is_none();
        for statement in told {
            let change = statement.change.as_deref().map(serde_json::from_str::<ChangeSummary>);
            // A summary that cannot be read is no reason to miss a change.
            weighty |= change.is_none_or(|read| read.map_or(true, |change| significant(Some(&change), &paths)));
        }
        found.push((object, weighty));
    }
    Ok(found)
}

/// Every object that is visible now on the main branch, then what other branches say otherwise, page by page.
pub fn each_page(ledger: &Ledger, now: Time, each: &mut dyn FnMut(Vec<Object>) -> Result<()>) -> Result<()> {
    each_page_of_main(ledger, now, each)?;
    let (registry, head) = (ledger.registry()?, ledger.head()?);
    for branch in registry.branches().iter().map(|branch| branch.number).filter(|number| *number != MAIN) {
        let view = view_now(ledger, branch, now)?;
        let touched = ledger.store().read(ledger.scope())?.touched(branch, 0, head.tx)?;
        for things in touched.chunks(PAGE) {
            let page = on_branch(ledger, &view, &registry, things, None)?;
            each(page.into_iter().map(|(object, _)| object).collect())?;
        }
    }
    Ok(())
}

/// Every object that is visible now on the main branch, page by page.
pub fn each_page_of_main(ledger: &Ledger, now: Time, each: &mut dyn FnMut(Vec<Object>) -> Result<()>) -> Result<()> {
    let view = view_now(ledger, MAIN, now)?;
    let mut rows = ledger.heads(&view, Fields::Content)?.only(Kind::Object);
    let registry = ledger.registry()?;
    while let Some(page) = rows.next_page()? {
        let object = |mut row: lukasa_store::ledger::HeadRow| {
            hide(&registry, &row.thing, &mut row.statement)?;
            Ok(Object { branch: MAIN, thing: row.thing, statement: row.statement })
        };
        each(page.into_iter().filter(|row| !row.is_system()).map(object).collect::<Result<_>>()?)?;
    }
    Ok(())
}
