//! Records a large load as one transaction in parts: while one part is produced, the one before it is planned and the
//! one before that is written.

use super::commit::{CommitTarget, Committed, check_header, load_named, load_targets, of_present_rule, open_branch};
use super::observe::CommitStatsCollector;
use super::{Ledger, unique};
use crate::{Entry, Head, Reader, Writer};
use lukasa_model::json::Hash;
use lukasa_model::plan::{self, CreatedObjects, Drafts, LoadedFacts, Plan};
use lukasa_model::transaction::{Header, TransactionHasher};
use lukasa_model::{Batch, Error, ErrorCode, Fact, FactNo, Result, Transaction, Version, Write};
use rustc_hash::FxHashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Most parts waiting to be planned, and to be written: enough to keep all three stages busy.
const WAITING: usize = 2;

impl Ledger {
    /// Records all parts as one transaction, all or nothing. It is durable when this returns.
    ///
    /// Unlike `commit`, only a few parts are in memory at a time. The ends of a relationship must be in the same or an
    /// earlier part, nothing may be written twice, and types that allow only one relationship per end are rejected:
    /// these checks would need the whole load.
    pub fn load<I>(&self, branch: &str, header: &Header, parts: I) -> Result<Committed>
    where
        I: Iterator<Item = Result<Vec<Write>>> + Send,
    {
        check_header(header)?;
        if header.client_id.is_some() {
            return Err(Error::invalid(
                ErrorCode::ClientIdInLoad,
                "a load has no client id: repeating it writes nothing new",
            ));
        }
        let header = &of_present_rule(header);
        let (mut writer, head) = self.open_to_write()?;
        let now = self.time_of(&mut *writer, &head)?;
        let registry = self.registry_in(&mut *writer, &head)?;
        let target = open_branch(&registry, branch, head, now)?;
        writer.expect_many()?;
        let (send, receive) = sync_channel::<Result<Plan>>(WAITING);
        let (hand, made) = sync_channel::<Result<Vec<Write>>>(WAITING);
        let written = std::thread::scope(|scope| {
            let (ledger, target) = (self, &target);
            // The planner closes the channel after a failure, which stops the production of parts.
            let making = scope.spawn(move || {
                for part in parts {
                    if hand.send(part).is_err() {
                        break;
                    }
                }
            });
            let planning = scope.spawn(move || ledger.plan_parts(target, header, made, &send));
            let mut load = Load::new(target, header, CommitStatsCollector::new(&self.scope, header));
            for plan in receive {
                load.write(&mut *writer, plan?)?;
            }
            let joined = making.join().and_then(|()| planning.join());
            let chain = joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            load.finish(&mut *writer, chain)
        })?;
        let (written, observed) = written;
        if let Some(after) = written.after {
            writer.commit()?;
            self.wrote(written.before, after);
            observed.done();
        }
        Ok(written)
    }

    /// Plans parts until one fails or the writer stops receiving. Returns the hash over all versions.
    fn plan_parts(
        &self,
        target: &CommitTarget<'_>,
        header: &Header,
        parts: Receiver<Result<Vec<Write>>>,
        send: &SyncSender<Result<Plan>>,
    ) -> TransactionHasher {
        let chain = TransactionHasher::new(target.head.hash, target.head.tx.next(), target.now, target.branch, header);
        // Committed rows cannot change meanwhile, because this ledger is the writer. A new project cannot be read yet
        // and is empty.
        let mut reader = match self.store.read(&self.scope) {
            Ok(reader) if target.head.next_thing > FactNo::FIRST => Some(reader),
            Ok(_) => None,
            Err(e) if e.kind == lukasa_model::ErrorKind::NotFound => None,
            Err(e) => {
                let _ = send.send(Err(e));
                return chain;
            }
        };
        let mut planner = Parts {
            ledger: self,
            target,
            header,
            made: CreatedObjects::default(),
            restated: FxHashMap::default(),
            next_thing: target.head.next_thing,
            first_place: 0,
            chain,
        };
        for part in parts {
            let reader = reader.as_mut().map(|r| &mut **r as &mut dyn Reader);
            let plan = part.and_then(|writes| planner.plan(reader, writes));
            let failed = plan.is_err();
            if send.send(plan).is_err() || failed {
                break;
            }
        }
        planner.chain
    }
}

/// Plans one part after the other.
struct Parts<'a> {
    ledger: &'a Ledger,
    target: &'a CommitTarget<'a>,
    header: &'a Header,
    made: CreatedObjects,
    /// Versions that earlier parts add to objects that existed before the load.
    restated: FxHashMap<FactNo, Vec<Version>>,
    next_thing: FactNo,
    first_place: u32,
    chain: TransactionHasher,
}

impl Parts<'_> {
    fn plan(&mut self, mut reader: Option<&mut (dyn Reader + '_)>, writes: Vec<Write>) -> Result<Plan> {
        let target = self.target;
        let batch = Batch { header: self.header.clone(), writes, ..Batch::default() };
        let clock = &self.ledger.clock;
        let drafts = Drafts::take(batch, target.registry, target.head.namespace, target.now, &mut || clock.new_id())?;
        let mut known = LoadedFacts { made: Some(&self.made), ..LoadedFacts::default() };
        let mut unknown = Vec::new();
        // In a new project, only facts created by this load exist.
        if reader.is_some() || !self.restated.is_empty() {
            for id in unique(drafts.ids.clone()) {
                match self.made.get(&id) {
                    Some((thing, statement)) if self.restated.contains_key(&thing.no) => {
                        known.statements.insert(thing.no, vec![statement.clone()]);
                        known.things.insert(id, thing.clone());
                    }
                    Some(_) => {}
                    None => unknown.push(id),
                }
            }
        }
        if let Some(reader) = reader.as_deref_mut() {
            load_named(reader, &mut known, &unknown, &drafts)?;
        }
        let resolved = drafts.resolve(&known, &target.lineage, target.now)?;
        if let Some((type_name, ..)) = resolved.limited_ends(target.registry).first() {
            return Err(Error::invalid(
                ErrorCode::LimitedInLoad,
                format!("`{type_name}` allows one relationship per end"),
            )
            .hint("write it in a batch of its own"));
        }
        if let Some(reader) = reader {
            load_targets(reader, &mut known, &resolved, target)?;
        }
        for (number, statements) in &mut known.statements {
            if let Some(restated) = self.restated.get(number) {
                statements.extend(restated.iter().cloned());
                statements.sort_by_key(|s| (s.branch, s.version));
            }
        }
        let plan = plan::plan(resolved, &known, &target.place(self.next_thing, self.first_place))?;
        let mut again: FxHashMap<FactNo, Fact> = FxHashMap::default();
        if plan.statements.iter().any(|s| s.thing < self.next_thing) {
            let earlier = known.things.values().chain(self.made.facts());
            let by_number: FxHashMap<FactNo, &Fact> = earlier.map(|t| (t.no, t)).collect();
            let spoken_of = plan.statements.iter().map(|s| s.thing).filter(|no| *no < self.next_thing);
            again.extend(spoken_of.filter_map(|no| Some((no, (*by_number.get(&no)?).clone()))));
        }
        self.remember(&plan, &again)?;
        self.next_thing = self.next_thing.plus(plan.things.len());
        self.first_place += u32::try_from(plan.statements.len()).unwrap_or(u32::MAX);
        Ok(plan)
    }

    /// Keeps what later parts may refer to. `again` contains the facts of this part that existed before.
    fn remember(&mut self, plan: &Plan, again: &FxHashMap<FactNo, Fact>) -> Result<()> {
        for statement in &plan.statements {
            let new = statement.thing.index_from(self.next_thing);
            let thing = match new {
                Some(at) => plan.things.get(at),
                None => again.get(&statement.thing),
            };
            let thing = thing.ok_or_else(|| Error::internal("a version was planned without its fact"))?;
            self.chain.add_version(thing.id, &thing.type_name, statement);
            if thing.ends.is_some() {
                continue;
            }
            let header = statement.header();
            match new {
                Some(_) => self.made.insert(thing.clone(), header),
                None => self.restated.entry(thing.no).or_default().push(header),
            }
        }
        Ok(())
    }
}

/// Writes planned parts and sums up their counts.
struct Load<'a> {
    target: &'a CommitTarget<'a>,
    header: &'a Header,
    head: Head,
    done: Committed,
    statements: usize,
    observed: CommitStatsCollector,
}

impl<'a> Load<'a> {
    fn new(target: &'a CommitTarget<'a>, header: &'a Header, observed: CommitStatsCollector) -> Load<'a> {
        let done = Committed::nothing(target.head.position(), target.now);
        Load { target, header, head: target.head, done, statements: 0, observed }
    }

    fn write(&mut self, writer: &mut dyn Writer, mut plan: Plan) -> Result<()> {
        self.head.next_thing = self.head.next_thing.plus(plan.things.len());
        self.statements += plan.statements.len();
        self.observed.add(&plan.things, &plan.statements);
        self.done.objects += plan.objects;
        self.done.relationships += plan.relationships;
        self.done.unchanged += plan.unchanged;
        for warning in std::mem::take(&mut plan.warnings) {
            if !self.done.warnings.contains(&warning) {
                self.done.warnings.push(warning);
            }
        }
        writer.append(&Entry {
            transaction: None,
            things: &plan.things,
            statements: &plan.statements,
            provenance: &[],
            client_batch: None,
            head: self.head,
        })
    }

    fn finish(
        mut self,
        writer: &mut dyn Writer,
        chain: TransactionHasher,
    ) -> Result<(Committed, CommitStatsCollector)> {
        if self.statements == 0 {
            return Ok((self.done, self.observed));
        }
        let hash: Hash = chain.finish(self.done.objects, self.done.relationships);
        let tx = self.target.head.tx.next();
        let transaction = Transaction {
            tx,
            recorded_at: self.target.now,
            branch: self.target.branch,
            header: self.header.clone(),
            objects: self.done.objects,
            relationships: self.done.relationships,
            hash,
        };
        self.head = Head { tx, recorded_at: self.target.now, hash, ..self.head };
        writer.append(&Entry {
            transaction: Some(&transaction),
            things: &[],
            statements: &[],
            provenance: &[],
            client_batch: None,
            head: self.head,
        })?;
        self.done.tx = Some(tx);
        self.done.after = Some(self.head.position());
        Ok((self.done, self.observed))
    }
}
