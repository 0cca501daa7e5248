//! Recomputes every hash, chain and count of a project and reports the first error.

use super::views::hash_at;
use super::{Ledger, by_fact};
use crate::{Head, Reader, VersionFields};
use lukasa_model::content::ABSENT;
use lukasa_model::id::{object_id, relationship_id};
use lukasa_model::json::Hash;
use lukasa_model::timeline::timeline;
use lukasa_model::transaction::TransactionHasher;
use lukasa_model::types::{Count, Registry, Release, system};
use lukasa_model::version::{Fact, Version};
use lukasa_model::{Error, ErrorCode, ErrorKind, FactNo, Period, Result, Time, Tx, VersionId, View};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyReport {
    pub transactions: u64,
    pub things: u64,
    pub statements: u64,
    pub provenance: u64,
    pub releases: u64,
    /// The hash of the whole log.
    pub head_hash: String,
    /// Not damage: live child branches on which a write to the parent violated a multiplicity.
    pub warnings: Vec<String>,
}

const CHUNK: usize = 10_000;
/// Versions read per page: few, because their contents may be large.
const STATEMENTS: usize = 1_000;

impl Ledger {
    /// Verifies the whole project. The error `verification_failed` describes the first error found.
    pub fn verify(&self, progress: &mut dyn FnMut(Tx, Tx)) -> Result<VerifyReport> {
        let mut reader = self.store.read(&self.scope)?;
        let head = reader.head()?;
        let mut report =
            VerifyReport { transactions: head.tx.0, head_hash: head.hash.to_string(), ..Default::default() };
        let things = check_facts(&mut *reader, head.next_thing, head.namespace)?;
        let declared = DeclarationCount::count(&mut *reader, head.tx)?;
        report.things = things.len() as u64 - 1;
        let stated = check_log(&mut *reader, &things, &head, &mut report, progress)?;
        if declared != stated || stated.last != head.declared.tx {
            return Err(wrong("branches, releases, tags or types are not all marked as system objects".into()));
        }
        let counts = reader.counts()?;
        // Writers may have continued meanwhile, so there may be more rows than were read, but never fewer.
        for (what, counted, read) in [
            ("things", counts.things, report.things),
            ("statements", counts.statements, report.statements),
            ("provenance rows", counts.provenance, report.provenance),
        ] {
            if counted < read || counted > read && reader.head()?.tx == head.tx {
                return Err(wrong(format!("{counted} {what} are stored, {read} belong to the log")));
            }
        }
        let registry = self.registry_at(&mut *reader, &head, head.tx)?;
        drop(reader);
        for release in registry.releases() {
            self.check_release(&registry, &head, release)?;
            report.releases += 1;
        }
        report.warnings = self.broken_multiplicity(&registry, head.tx)?;
        Ok(report)
    }

    fn check_release(&self, registry: &Arc<Registry>, head: &Head, release: &Release) -> Result<()> {
        let hash = hash_at(&mut *self.store.read(&self.scope)?, head, release.tx)?;
        let view = View {
            branch: release.branch,
            branch_name: registry.branch_name(release.branch).into(),
            known: release.tx,
            hash,
            valid: release.valid_at,
            lineage: registry.lineage(release.branch, release.tx)?,
            release: Some(release.name.clone()),
        };
        if self.digest(&view)? != (release.objects, release.relationships, release.digest) {
            return Err(wrong(format!("release `{}` no longer has the members it was made with", release.name)));
        }
        Ok(())
    }

    /// Multiplicity is only enforced on the branch that is written to; a live child may see two relationships where one
    /// is allowed.
    fn broken_multiplicity(&self, registry: &Registry, known: Tx) -> Result<Vec<String>> {
        let limited: Vec<_> = registry
            .relationship_types()
            .into_iter()
            .filter(|t| t.multiplicity.src == Count::One || t.multiplicity.dst == Count::One)
            .collect();
        let mut warnings = Vec::new();
        if limited.is_empty() {
            return Ok(warnings);
        }
        let mut reader = self.store.read(&self.scope)?;
        let end = reader.head()?.next_thing;
        for branch in registry.branches() {
            let lineage = registry.lineage(branch.number, known)?;
            // When which relationship holds, by type, side and end.
            let mut spans: FxHashMap<_, Vec<(Period, FactNo)>> = FxHashMap::default();
            for range in FactNo::pages(FactNo::FIRST..end, CHUNK) {
                let edges = reader.facts_in(range.clone())?;
                let mut statements = by_fact(reader.versions_in(range, VersionFields::Header)?);
                for edge in edges {
                    let Some(ends) = &edge.ends else { continue };
                    let Some(declared) = limited.iter().find(|t| t.name.eq_ignore_ascii_case(&edge.type_name)) else {
                        continue;
                    };
                    let own = statements.remove(&edge.no).unwrap_or_default();
                    let line = timeline(&own, &lineage, Period::ALWAYS);
                    let periods: Vec<_> =
                        line.iter().filter(|s| !s.statement.absent).map(|s| (s.period, edge.no)).collect();
                    for (side, count, no) in
                        [("src", declared.multiplicity.src, ends.src), ("dst", declared.multiplicity.dst, ends.dst)]
                    {
                        if count == Count::One {
                            spans.entry((declared.name.as_str(), side, no)).or_default().extend(&periods);
                        }
                    }
                }
            }
            for ((type_name, side, no), mut periods) in spans {
                periods.sort();
                if periods.windows(2).any(|w| w[0].0.to > w[1].0.from && w[0].1 != w[1].1) {
                    let object = reader.facts_numbered(&[no])?.pop().map(|t| t.id).unwrap_or_default();
                    warnings.push(format!(
                        "branch `{}`: object {object} has more than one `{type_name}` as {side}",
                        branch.name
                    ));
                }
            }
        }
        warnings.sort();
        Ok(warnings)
    }
}

fn wrong(what: String) -> Error {
    Error::new(ErrorKind::Internal, ErrorCode::VerificationFailed, what)
        .hint("restore a backup made before this happened")
}

/// Versions of system objects: how many, and the last transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DeclarationCount {
    count: usize,
    last: Tx,
}

impl DeclarationCount {
    /// Counts them as the store finds them through its `system` flags.
    fn count(reader: &mut dyn Reader, known: Tx) -> Result<DeclarationCount> {
        let all: Vec<_> = reader.declarations()?.into_iter().filter(|d| d.tx <= known).collect();
        Ok(DeclarationCount { count: all.len(), last: all.last().map_or(Tx::START, |d| d.tx) })
    }
}

/// Ids and types by fact number.
type FactIdentities = Vec<(Uuid, Arc<str>)>;

/// Reads all facts and checks that ids are derived from names and that they can be found by id. Returns ids and types
/// by number.
fn check_facts(reader: &mut dyn Reader, next: FactNo, namespace: Uuid) -> Result<FactIdentities> {
    let mut ids: FactIdentities = vec![(Uuid::nil(), "".into())];
    for range in FactNo::pages(FactNo::FIRST..next, CHUNK) {
        let page = reader.facts_in(range)?;
        let found = reader.facts(&page.iter().map(|t| t.id).collect::<Vec<_>>())?;
        let by_id: FxHashMap<Uuid, FactNo> = found.into_iter().map(|t| (t.id, t.no)).collect();
        for thing in page {
            if thing.no.index() != ids.len() {
                return Err(wrong(format!("fact {} is missing", ids.len())));
            }
            check_identity(&thing, &ids, namespace)?;
            if by_id.get(&thing.id) != Some(&thing.no) {
                return Err(wrong(format!("fact {} is not found by its id", thing.no)));
            }
            ids.push((thing.id, thing.type_name));
        }
    }
    if ids.len() != next.index() {
        return Err(wrong(format!("fact {} is missing", ids.len())));
    }
    Ok(ids)
}

pub(super) fn check_identity(thing: &Fact, ids: &[(Uuid, Arc<str>)], namespace: Uuid) -> Result<()> {
    let derived = match (&thing.ends, &thing.key) {
        (Some(ends), _) => {
            let end = |no: FactNo| ids.get(no.index()).filter(|_| no >= FactNo::FIRST);
            let (Some(src), Some(dst)) = (end(ends.src), end(ends.dst)) else {
                return Err(wrong(format!("relationship {} comes before its ends", thing.id)));
            };
            relationship_id(namespace, &thing.type_name, src.0, dst.0, &ends.discriminator)
        }
        (None, Some(key)) => object_id(namespace, &thing.type_name, key),
        (None, None) => thing.id,
    };
    if derived == thing.id {
        return Ok(());
    }
    let name = thing.key.as_deref().unwrap_or("a relationship");
    Err(wrong(format!("the id of `{}:{name}` (fact {}) does not follow from its name", thing.type_name, thing.no)))
}

fn check_log(
    reader: &mut dyn Reader,
    things: &[(Uuid, Arc<str>)],
    head: &crate::Head,
    report: &mut VerifyReport,
    progress: &mut dyn FnMut(Tx, Tx),
) -> Result<DeclarationCount> {
    let mut stated = DeclarationCount::default();
    let (mut previous, mut recorded_at, mut due) = (TransactionHasher::START, Time::MIN, Tx::FIRST);
    let mut page: Vec<Version> = Vec::new();
    let mut after = VersionId(0);
    while due <= head.tx {
        let transactions = reader.transactions(due, head.tx, 1_000)?;
        if transactions.is_empty() {
            return Err(wrong(format!("transaction {due} is missing")));
        }
        for t in transactions {
            if t.tx != due {
                return Err(wrong(format!("transaction {due} is missing")));
            }
            if t.recorded_at < recorded_at {
                return Err(wrong(format!("transaction {due} is older than the one before it")));
            }
            let mut chain = TransactionHasher::new(previous, t.tx, t.recorded_at, t.branch, &t.header);
            let mut place = 0;
            loop {
                if page.is_empty() {
                    page = reader.versions_after(after, STATEMENTS)?;
                    page.reverse();
                }
                let Some(statement) = page.pop_if(|s| s.version.tx() <= due) else { break };
                after = statement.version;
                let (id, type_name) = check_statement(&statement, things, VersionId::new(due, place), t.recorded_at)?;
                if statement.content.as_deref().is_some_and(|text| !t.header.rule.holds(text)) {
                    let rule = u8::from(t.header.rule);
                    return Err(wrong(format!("the content of version {due} is not canonical text of rule {rule}")));
                }
                chain.add_version(*id, type_name, &statement);
                if system::is(type_name) {
                    stated = DeclarationCount { count: stated.count + 1, last: due };
                }
                place += 1;
            }
            if place != t.objects + t.relationships {
                return Err(wrong(format!(
                    "transaction {due} has {place} versions, {} are expected",
                    t.objects + t.relationships
                )));
            }
            for p in reader.provenance_of(due)? {
                chain.add_provenance(&p);
                report.provenance += 1;
            }
            if chain.finish(t.objects, t.relationships) != t.hash {
                return Err(wrong(format!("transaction {due} does not match its hash")));
            }
            report.statements += u64::from(place);
            (previous, recorded_at) = (t.hash, t.recorded_at);
            progress(due, head.tx);
            due = due.next();
        }
    }
    if previous != head.hash {
        return Err(wrong("the head does not match the last transaction".into()));
    }
    Ok(stated)
}

pub(super) fn check_statement<'a>(
    s: &Version,
    things: &'a [(Uuid, Arc<str>)],
    due: VersionId,
    recorded_at: Time,
) -> Result<&'a (Uuid, Arc<str>)> {
    if s.version != due {
        return Err(wrong(format!("version {due} is missing")));
    }
    let actual = s.content.as_deref().map_or(ABSENT, |text| Hash::of(text.as_bytes()));
    if actual != s.hash {
        return Err(wrong(format!("the content of version {due} does not match its hash")));
    }
    if s.recorded_at != recorded_at || s.period.from >= s.period.to || s.parents.iter().any(|p| *p >= due) {
        return Err(wrong(format!("version {due} has impossible times or parents")));
    }
    things
        .get(s.thing.index())
        .filter(|_| s.thing >= FactNo::FIRST)
        .ok_or_else(|| wrong(format!("version {due} is about a fact that does not exist")))
}
