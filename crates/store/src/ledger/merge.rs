//! Merges one branch into another: finds what differs, decides fact by fact, records one transaction.

use super::commit::{CommitTarget, append, check_header, open_branch, retried};
use super::{Ledger, by_fact, end_names, unique};
use crate::{Reader, VersionFields};
use lukasa_model::branch::Lineage;
use lukasa_model::id::PROJECT_WIDE;
use lukasa_model::merge::{MergeClass, merge_fact};
use lukasa_model::plan::{DecidedWrite, Drafts, Plan};
use lukasa_model::transaction::Header;
use lukasa_model::version::Provenance;
use lukasa_model::{Error, ErrorCode, FactNo, Reference, Result, Time, TransactionKind, Tx};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// A request to merge a branch into another.
#[derive(Clone, Debug, Default)]
pub struct MergeRequest {
    pub source: String,
    /// `main` when empty.
    pub target: String,
    /// Only these facts; empty: all.
    pub keys: Vec<Reference>,
    /// Perform every check and write nothing.
    pub dry_run: bool,
    pub header: Header,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergeReport {
    /// The transaction that records the merge; none on a dry run, with conflicts, or when there is nothing to do.
    pub tx: Option<Tx>,
    pub counts: MergeCounts,
    /// Facts that change, in order.
    pub items: Vec<MergeItem>,
    pub conflicts: Vec<MergeConflict>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MergeCounts {
    pub added: usize,
    pub fast_forward: usize,
    pub merged: usize,
    pub conflict: usize,
    pub unchanged: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergeItem {
    pub id: Uuid,
    #[serde(rename = "type")]
    pub type_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Names of the ends of a relationship.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<[String; 2]>,
    pub class: MergeClass,
}

/// A path that both sides changed: `ours` is the target's value, `theirs` the source's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergeConflict {
    pub object: Uuid,
    #[serde(rename = "type")]
    pub type_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Names of the ends of a relationship.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<[String; 2]>,
    /// JSON Pointer into the content; empty for the whole fact.
    pub path: String,
    pub base: Value,
    pub ours: Value,
    pub theirs: Value,
}

impl MergeReport {
    /// The error with which a merge ends when there are conflicts.
    pub fn refusal(&self, source: &str, target: &str) -> Error {
        let count = self.conflicts.len();
        let places = if count == 1 { "1 place".to_string() } else { format!("{count} places") };
        Error::conflict(
            ErrorCode::MergeConflict,
            format!("`{source}` and `{target}` disagree in {places}; nothing was written"),
        )
        .hint("change one side so that they agree, or declare a merge strategy for the path")
        .details(json!({"conflicts": self.conflicts}))
    }
}

/// Facts decided at a time.
const CHUNK: usize = 1_000;

impl Ledger {
    /// Merges a branch. Conflicts are in the report, not an error: see [`MergeReport::refusal`].
    pub fn merge(&self, request: &MergeRequest) -> Result<MergeReport> {
        retried(|| self.merge_once(request))
    }

    fn merge_once(&self, request: &MergeRequest) -> Result<MergeReport> {
        if request.dry_run {
            let mut reader = self.store.read(&self.scope)?;
            return self.merge_plan(&mut *reader, request, self.clock.now()).map(|(report, _)| report);
        }
        check_header(&request.header)?;
        // A merge must not create a project.
        self.head()?;
        let (mut writer, head) = self.open_to_write()?;
        let now = writer.now()?;
        self.clock.check(now)?;
        let (mut report, plan) = self.merge_plan(&mut *writer, request, now)?;
        let Some(mut plan) = plan else { return Ok(report) };
        let registry = self.registry_in(&mut *writer, &head)?;
        let target = open_branch(&registry, &request.target, head, now.max(head.recorded_at))?;
        let mut header = Header { kind: TransactionKind::Merge, ..request.header.clone() };
        header.reason.get_or_insert_with(|| format!("merge of {}", request.source));
        let committed = append(&mut *writer, &mut plan, &target, &header, false, None)?;
        report.tx = committed.tx;
        if let Some(after) = committed.after {
            writer.commit()?;
            self.wrote(committed.before, after);
        }
        Ok(report)
    }

    /// Decides and checks everything. Returns no plan if there is a conflict.
    fn merge_plan(
        &self,
        reader: &mut dyn Reader,
        request: &MergeRequest,
        now: Time,
    ) -> Result<(MergeReport, Option<Plan>)> {
        let head = reader.head()?;
        let registry = self.registry_in(reader, &head)?;
        let source = registry.branch(&request.source)?;
        let target = open_branch(&registry, &request.target, head, now.max(head.recorded_at))?;
        if source.number == target.branch {
            return Err(Error::invalid(
                ErrorCode::MergeIntoItself,
                format!("`{}` cannot be merged into itself", source.name),
            ));
        }
        let line = registry.lineage(source.number, head.tx)?;
        let mut candidates = differing(reader, &line, &target.lineage)?;
        if !request.keys.is_empty() {
            let chosen = self.chosen(reader, request)?;
            candidates.retain(|no| chosen.contains(no));
        }
        let mut decided = MergeProgress::default();
        for chunk in candidates.chunks(CHUNK) {
            decided.chunk(reader, chunk, &line, &target)?;
        }
        if !decided.report.conflicts.is_empty() {
            return Ok((decided.report, None));
        }
        let drafts = Drafts::of_merge(head.namespace, &registry, decided.writes)?;
        let mut plan = self.prepare(reader, drafts, &target)?;
        plan.provenance.extend(decided.record);
        Ok((decided.report, Some(plan)))
    }

    fn chosen(&self, reader: &mut dyn Reader, request: &MergeRequest) -> Result<FxHashSet<FactNo>> {
        let head = reader.head()?;
        let view = self.view_in(reader, head, &super::ViewSpec::on(&request.source))?;
        let mut lookup = self.lookup(reader, &view)?;
        request.keys.iter().map(|reference| Ok(lookup.any(reference)?.no)).collect()
    }
}

/// Returns the facts written where the two lineages see different transactions; a branch in only one of them counts in
/// full.
fn differing(reader: &mut dyn Reader, source: &Lineage, target: &Lineage) -> Result<Vec<FactNo>> {
    let mut found = Vec::new();
    let mut branches: Vec<_> = source.entries().iter().chain(target.entries()).map(|(branch, _)| *branch).collect();
    branches.sort_unstable();
    branches.dedup();
    for branch in branches.into_iter().filter(|b| *b != PROJECT_WIDE) {
        let (a, b) = (source.cap(branch).unwrap_or_default(), target.cap(branch).unwrap_or_default());
        if a != b {
            found.extend(reader.touched(branch, a.min(b).next(), a.max(b))?);
        }
    }
    Ok(unique(found))
}

/// What has been decided so far.
#[derive(Default)]
struct MergeProgress {
    report: MergeReport,
    writes: Vec<DecidedWrite>,
    record: Vec<Provenance>,
}

impl MergeProgress {
    fn chunk(
        &mut self,
        reader: &mut dyn Reader,
        numbers: &[FactNo],
        source: &Lineage,
        target: &CommitTarget<'_>,
    ) -> Result<()> {
        let mut things = reader.facts_numbered(numbers)?;
        things.sort_by_key(|t| t.no);
        let ends: Vec<_> = things.iter().filter_map(|t| t.ends.as_ref()).flat_map(|e| [e.src, e.dst]).collect();
        let ids: FxHashMap<_, _> = reader.facts_numbered(&unique(ends))?.into_iter().map(|t| (t.no, t.id)).collect();
        let mut names = end_names(reader, things.iter())?;
        let mut statements = by_fact(reader.versions(numbers, VersionFields::Content)?);
        let mut provenance: FxHashMap<FactNo, Vec<Provenance>> = FxHashMap::default();
        for row in reader.provenance(numbers)? {
            provenance.entry(row.thing).or_default().push(row);
        }
        for thing in things {
            let own = statements.remove(&thing.no).unwrap_or_default();
            let family = provenance.remove(&thing.no).unwrap_or_default();
            let strategies = target.registry.strategies(&thing.type_name, thing.ends.is_some());
            let outcome = merge_fact(&own, &family, source, &target.lineage, target.now, &strategies);
            self.count(outcome.class);
            let key = thing.key.as_deref().map(str::to_owned);
            let between = names.remove(&thing.no);
            let type_name = thing.type_name.to_string();
            for clash in outcome.conflicts {
                self.report.conflicts.push(MergeConflict {
                    object: thing.id,
                    type_name: type_name.clone(),
                    key: key.clone(),
                    between: between.clone(),
                    path: clash.path,
                    base: clash.base.unwrap_or_default(),
                    ours: clash.ours.unwrap_or_default(),
                    theirs: clash.theirs.unwrap_or_default(),
                });
            }
            if outcome.class != MergeClass::Unchanged {
                self.report.items.push(MergeItem { id: thing.id, type_name, key, between, class: outcome.class });
            }
            let row = |(child, parent, role)| Provenance { thing: thing.no, child, parent, role };
            self.record.extend(outcome.record.into_iter().map(row));
            let ends = match &thing.ends {
                None => None,
                Some(ends) => ids.get(&ends.src).copied().zip(ids.get(&ends.dst).copied()),
            };
            self.writes.extend(outcome.writes.into_iter().map(|write| DecidedWrite {
                thing: thing.clone(),
                ends,
                write,
            }));
        }
        Ok(())
    }

    fn count(&mut self, class: MergeClass) {
        let counts = &mut self.report.counts;
        *match class {
            MergeClass::Added => &mut counts.added,
            MergeClass::FastForward => &mut counts.fast_forward,
            MergeClass::Merged => &mut counts.merged,
            MergeClass::Conflict => &mut counts.conflict,
            MergeClass::Unchanged => &mut counts.unchanged,
        } += 1;
    }
}
