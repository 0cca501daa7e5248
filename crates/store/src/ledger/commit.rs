//! Commits a batch: load what it touches, plan it, append it, all inside one write transaction.

use super::observe::CommitStatsCollector;
use super::{Ledger, unique};
use crate::{ClientBatch, Entry, Head, Reader, VersionFields, Writer};
use lukasa_model::json::rule::CanonicalRule;
use lukasa_model::json::{FrozenFloats, Hash};
use lukasa_model::plan::{self, Drafts, LoadedFacts, Plan, PlanContext, ResolvedBatch, WriteResult};
use lukasa_model::transaction::{Header, TransactionHasher};
use lukasa_model::types::Registry;
use lukasa_model::{
    Batch, BranchNo, Error, ErrorCode, ErrorKind, Fact, FactNo, Lineage, Position, Result, Time, Transaction, Tx,
};
use serde::Serialize;
use std::time::Duration;
use uuid::Uuid;

/// Attempts per transaction, and the first pause between two of them; the pause doubles each time.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Retries a whole transaction that the store aborted.
pub(super) fn retried<T>(work: impl Fn() -> Result<T>) -> Result<T> {
    for again in 0..TRIES - 1 {
        match work() {
            Err(error) if error.code == ErrorCode::StoreConflict => std::thread::sleep(PAUSE * 2_u32.pow(again)),
            done => return done,
        }
    }
    work()
}

/// The result of a commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    /// `None` when the batch changed nothing, so that no transaction was recorded.
    pub tx: Option<Tx>,
    /// The position of the log when the batch was planned.
    pub before: Position,
    /// The position after the recorded transaction.
    pub after: Option<Position>,
    /// The recording time of the transaction, or the time of the batch if it recorded none.
    pub recorded_at: Time,
    /// The number of versions of objects that were recorded.
    pub objects: u32,
    /// The number of versions of relationships that were recorded.
    pub relationships: u32,
    /// The number of writes that changed nothing.
    pub unchanged: usize,
    /// The batch was sent before under the same client id; this is the first result.
    pub repeated: bool,
    pub warnings: Vec<String>,
    /// In the order of the batch; empty when repeated.
    pub written: Vec<WriteResult>,
}

impl Committed {
    pub(super) fn nothing(before: Position, recorded_at: Time) -> Committed {
        Committed {
            tx: None,
            before,
            after: None,
            recorded_at,
            objects: 0,
            relationships: 0,
            unchanged: 0,
            repeated: false,
            warnings: vec![],
            written: vec![],
        }
    }
}

/// Where a batch is written, as read inside the transaction.
pub(super) struct CommitTarget<'a> {
    pub head: Head,
    /// The recording time, never before that of the last transaction.
    pub now: Time,
    pub registry: &'a Registry,
    /// The branch that is written to.
    pub branch: BranchNo,
    pub lineage: Lineage,
}

impl CommitTarget<'_> {
    /// The place of the next versions.
    pub fn place(&self, next_thing: FactNo, first_place: u32) -> PlanContext<'_> {
        PlanContext {
            registry: self.registry,
            branch: self.branch,
            lineage: &self.lineage,
            tx: self.head.tx.next(),
            now: self.now,
            next_thing,
            first_place,
        }
    }
}

impl Ledger {
    /// Records a batch, all or nothing. It is durable when this returns.
    pub fn commit(&self, batch: &Batch) -> Result<Committed> {
        retried(|| self.commit_once(batch))
    }

    fn commit_once(&self, batch: &Batch) -> Result<Committed> {
        let (mut writer, head) = self.open_to_write()?;
        let (committed, plan) = self.commit_in(&mut *writer, head, batch)?;
        if committed.tx.is_some() || batch.header.client_id.is_some() && !committed.repeated {
            writer.commit()?;
        }
        if let Some(after) = committed.after {
            let before = committed.before;
            self.wrote(before, after);
            let mut observed = CommitStatsCollector::new(&self.scope, &batch.header);
            observed.add(&plan.things, &plan.statements);
            observed.done();
            self.tail.lock().add(before, after, &plan.things, &plan.statements);
            self.recent.lock().add(before, after, plan.things, plan.statements);
        }
        Ok(committed)
    }

    pub(super) fn commit_in(&self, writer: &mut dyn Writer, head: Head, batch: &Batch) -> Result<(Committed, Plan)> {
        let digest = batch.header.client_id.as_ref().map(|_| digest(batch));
        if let (Some(client_id), Some(digest)) = (&batch.header.client_id, digest)
            && let Some(earlier) = writer.client_batch(client_id)?
        {
            return Ok((repeated(writer, head, client_id, digest, earlier)?, Plan::default()));
        }
        check_header(&batch.header)?;
        let now = self.time_of(writer, &head)?;
        let registry = self.registry_in(writer, &head)?;
        let target = open_branch(&registry, &batch.branch, head, now)?;
        let drafts = Drafts::read(batch, &registry, head.namespace, now, &mut || self.clock.new_id())?;
        let mut plan = self.prepare(writer, drafts, &target)?;
        let client_batch = batch.header.client_id.as_deref().zip(digest);
        let committed = append(writer, &mut plan, &target, &batch.header, batch.system, client_batch)?;
        Ok((committed, plan))
    }

    /// The recording time of a transaction that begins now: never before the last one. Fails if the clock is
    /// implausible.
    pub(super) fn time_of(&self, writer: &mut dyn Writer, head: &Head) -> Result<Time> {
        let now = writer.now()?;
        self.clock.check(now)?;
        Ok(now.max(head.recorded_at))
    }

    /// Loads what the drafts touch and plans them.
    pub(super) fn prepare(&self, reader: &mut dyn Reader, drafts: Drafts, target: &CommitTarget<'_>) -> Result<Plan> {
        let mut known = LoadedFacts::default();
        let unknown = self.recent.lock().fill(target.head.position(), unique(drafts.ids.clone()), &mut known);
        load_named(reader, &mut known, &unknown, &drafts)?;
        let resolved = drafts.resolve(&known, &target.lineage, target.now)?;
        load_targets(reader, &mut known, &resolved, target)?;
        for (type_name, side, end) in resolved.limited_ends(target.registry) {
            let Some(number) = known.things.get(&end).map(|t| t.no) else { continue };
            let mut rivals = reader.relationships(&[(number, side)])?;
            rivals.retain(|t| t.type_name.eq_ignore_ascii_case(&type_name));
            known.rivals.extend(rivals.iter().map(|t| t.id));
            load_facts(reader, &mut known, rivals)?;
        }
        plan::plan(resolved, &known, &target.place(target.head.next_thing, 0))
    }
}

/// Returns the branch to write to. Fails if it is closed.
pub(super) fn open_branch<'a>(registry: &'a Registry, name: &str, head: Head, now: Time) -> Result<CommitTarget<'a>> {
    let branch = registry.branch(if name.is_empty() { "main" } else { name })?;
    if branch.closed {
        return Err(Error::conflict(ErrorCode::BranchClosed, format!("branch `{}` is closed", branch.name))
            .hint("open it again with `lukasa branch open`, or write to another"));
    }
    let lineage = registry.lineage(branch.number, head.tx)?;
    Ok(CommitTarget { head, now, registry, branch: branch.number, lineage })
}

/// Loads the facts that drafts name, by id and by key.
pub(super) fn load_named(
    reader: &mut dyn Reader,
    known: &mut LoadedFacts<'_>,
    ids: &[Uuid],
    drafts: &Drafts,
) -> Result<()> {
    let things = reader.facts(ids)?;
    load_facts(reader, known, things)?;
    let keys = drafts.keys_to_find(known);
    if !keys.is_empty() {
        let keyed = reader.objects_keyed(&keys)?;
        for thing in &keyed {
            known.by_key.entry(thing.key.clone().unwrap_or_default()).or_default().push(thing.id);
        }
        load_facts(reader, known, keyed)?;
    }
    Ok(())
}

/// Loads the facts to write. Only existing ones need their content, to compute what changed.
pub(super) fn load_targets(
    reader: &mut dyn Reader,
    known: &mut LoadedFacts<'_>,
    resolved: &ResolvedBatch,
    target: &CommitTarget<'_>,
) -> Result<()> {
    let things = reader.facts(&unique(resolved.ids.clone()))?;
    load_facts(reader, known, things)?;
    let again = resolved.targets().filter_map(|id| known.things.get(&id)).map(|t| t.no);
    let again = unique(again.filter(|no| *no < target.head.next_thing).collect());
    for number in &again {
        known.statements.remove(number);
    }
    for statement in reader.versions(&again, VersionFields::Content)? {
        known.statements.entry(statement.thing).or_default().push(statement);
    }
    Ok(())
}

pub(super) fn load_facts(reader: &mut dyn Reader, known: &mut LoadedFacts<'_>, things: Vec<Fact>) -> Result<()> {
    let new: Vec<_> = things.iter().filter(|t| !known.things.contains_key(&t.id)).map(|t| t.no).collect();
    for statement in reader.versions(&new, VersionFields::Header)? {
        known.statements.entry(statement.thing).or_default().push(statement);
    }
    known.things.extend(things.into_iter().map(|t| (t.id, t)));
    Ok(())
}

/// Records a plan as the next transaction; a plan without changes records none.
pub(super) fn append(
    writer: &mut dyn Writer,
    plan: &mut Plan,
    target: &CommitTarget<'_>,
    header: &Header,
    declares: bool,
    client_batch: Option<(&str, Hash)>,
) -> Result<Committed> {
    let header = &of_present_rule(header);
    let says_nothing = plan.statements.is_empty() && plan.provenance.is_empty();
    let unchanged = u32::try_from(plan.unchanged).unwrap_or(u32::MAX);
    let remember = |tx| client_batch.map(|(id, digest)| (id, ClientBatch { digest, tx, unchanged }));
    let mut committed = Committed {
        tx: None,
        before: target.head.position(),
        after: None,
        recorded_at: target.now,
        objects: plan.objects,
        relationships: plan.relationships,
        unchanged: plan.unchanged,
        repeated: false,
        warnings: std::mem::take(&mut plan.warnings),
        written: std::mem::take(&mut plan.results),
    };
    if says_nothing {
        if client_batch.is_some() {
            let (things, statements, provenance) = (&[][..], &[][..], &[][..]);
            let client_batch = remember(None);
            let head = target.head;
            writer.append(&Entry { transaction: None, things, statements, provenance, client_batch, head })?;
        }
        return Ok(committed);
    }
    let tx = target.head.tx.next();
    plan.provenance.sort();
    plan.provenance.dedup();
    let hash = chain_hash(writer, target, header, plan, tx)?;
    let transaction = Transaction {
        tx,
        recorded_at: target.now,
        branch: target.branch,
        header: header.clone(),
        objects: plan.objects,
        relationships: plan.relationships,
        hash,
    };
    let head = Head {
        tx,
        recorded_at: target.now,
        hash,
        next_thing: target.head.next_thing.plus(plan.things.len()),
        declared: if declares { Position { tx, hash } } else { target.head.declared },
        namespace: target.head.namespace,
    };
    writer.append(&Entry {
        transaction: Some(&transaction),
        things: &plan.things,
        statements: &plan.statements,
        provenance: &plan.provenance,
        client_batch: remember(Some(tx)),
        head,
    })?;
    committed.tx = Some(tx);
    committed.after = Some(Position { tx, hash });
    Ok(committed)
}

/// Everything written now uses the current rule of canonical text, whatever the client's header contains.
pub(super) fn of_present_rule(header: &Header) -> Header {
    Header { rule: CanonicalRule::PRESENT, ..header.clone() }
}

fn chain_hash(
    reader: &mut dyn Reader,
    target: &CommitTarget<'_>,
    header: &Header,
    plan: &Plan,
    tx: Tx,
) -> Result<Hash> {
    let first_new = target.head.next_thing;
    let old = unique(plan.statements.iter().map(|s| s.thing).filter(|no| *no < first_new).collect());
    let mut old = reader.facts_numbered(&old)?;
    old.sort_unstable_by_key(|t| t.no);
    let mut chain = TransactionHasher::new(target.head.hash, tx, target.now, target.branch, header);
    for statement in &plan.statements {
        let thing = match statement.thing.index_from(first_new) {
            Some(at) => plan.things.get(at),
            None => old.binary_search_by_key(&statement.thing, |t| t.no).ok().map(|i| &old[i]),
        };
        let thing = thing.ok_or_else(|| Error::internal("a version was planned without its fact"))?;
        chain.add_version(thing.id, &thing.type_name, statement);
    }
    plan.provenance.iter().for_each(|p| chain.add_provenance(p));
    Ok(chain.finish(plan.objects, plan.relationships))
}

fn repeated(
    writer: &mut dyn Writer,
    head: Head,
    client_id: &str,
    digest: Hash,
    earlier: ClientBatch,
) -> Result<Committed> {
    if digest != earlier.digest {
        return Err(Error::conflict(
            ErrorCode::ClientIdReused,
            format!("another batch was sent as `{client_id}` before"),
        )
        .hint("give every new batch an id of its own"));
    }
    let first = match earlier.tx {
        Some(tx) => writer.transactions(tx, tx, 1)?.pop(),
        None => None,
    };
    Ok(Committed {
        tx: earlier.tx,
        before: head.position(),
        after: None,
        recorded_at: first.as_ref().map_or(head.recorded_at, |t| t.recorded_at),
        objects: first.as_ref().map_or(0, |t| t.objects),
        relationships: first.as_ref().map_or(0, |t| t.relationships),
        unchanged: earlier.unchanged as usize,
        repeated: true,
        warnings: vec![],
        written: vec![],
    })
}

fn digest(batch: &Batch) -> Hash {
    let mut text = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut text, FrozenFloats);
    (&batch.branch, &batch.header, &batch.writes, &batch.preconditions)
        .serialize(&mut writer)
        .expect("a batch is plain data");
    Hash::of(&text)
}

pub(super) fn check_header(header: &Header) -> Result<()> {
    use lukasa_model::id::check_text;
    use lukasa_model::limits::{KEY_BYTES, NAME_BYTES, TITLE_BYTES};
    for (what, text, max) in [
        ("author", &header.author, NAME_BYTES),
        ("agent", &header.agent, NAME_BYTES),
        ("session", &header.session, NAME_BYTES),
        ("reason", &header.reason, TITLE_BYTES),
        ("client_id", &header.client_id, NAME_BYTES),
    ] {
        if let Some(text) = text {
            check_text(what, text, max)?;
        }
    }
    header.files.iter().try_for_each(|file| check_text("file", file, KEY_BYTES))?;
    if let Some(commit) = &header.git_commit
        && !(commit.chars().all(|c| c.is_ascii_hexdigit()) && (7..=64).contains(&commit.len()))
    {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            ErrorCode::InvalidCommit,
            format!("`{commit}` is not a git commit id"),
        ));
    }
    Ok(())
}
