//! Records a large load as one transaction, part by part: parts are made and planned while earlier ones are written.

use super::commit::{Committed, Target, check_header, learn_named, learn_targets, open_branch};
use super::{Ledger, unique};
use crate::{Entry, Head, Reader, Writer};
use lukasa_model::json::Hash;
use lukasa_model::plan::{self, Drafts, Known, Plan};
use lukasa_model::transaction::{Chain, Header};
use lukasa_model::{Batch, Error, Result, Statement, Thing, ThingNo, Transaction, Write};
use rustc_hash::FxHashMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use uuid::Uuid;

/// Parts that may wait to be written: enough that neither side waits for the other for long.
const WAITING: usize = 1;

/// A planned part, with the things it speaks of that were there before.
struct Piece {
    plan: Plan,
    old: FxHashMap<ThingNo, Thing>,
}

impl Ledger {
    /// Records everything the parts say as one transaction, whole or not at all. Durable when it returns.
    ///
    /// Unlike `commit`, no more than a few parts are in memory at a time. A relationship's ends must come in the same
    /// part or before it, nothing may be written twice, and types that allow only one relationship per end are refused:
    /// these checks would need the whole.
    pub fn load<I>(&self, branch: &str, header: &Header, parts: I) -> Result<Committed>
    where
        I: Iterator<Item = Result<Vec<Write>>> + Send,
    {
        check_header(header)?;
        if header.client_id.is_some() {
            return Err(Error::invalid(
                "client_id_in_load",
                "a load has no client id: repeating it writes nothing new",
            ));
        }
        let mut writer = self.store.write(&self.scope)?;
        let head = writer.head()?;
        let now = writer.now()?.max(head.recorded_at);
        let registry = self.registry_in(&mut *writer, &head)?;
        let target = open_branch(&registry, branch, head, now)?;
        writer.expect_many()?;
        let (send, receive) = sync_channel::<Result<Piece>>(WAITING);
        let written = std::thread::scope(|scope| {
            let (ledger, target) = (self, &target);
            scope.spawn(move || ledger.plan_parts(target, header, parts, &send));
            let mut load = Load::new(target, header);
            for piece in receive {
                load.write(&mut *writer, piece?)?;
            }
            load.finish(&mut *writer)
        })?;
        if written.tx.is_some() {
            writer.commit()?;
        }
        Ok(written)
    }

    /// Makes parts and plans them, until one fails or nobody listens any more.
    fn plan_parts<I>(&self, target: &Target<'_>, header: &Header, parts: I, send: &SyncSender<Result<Piece>>)
    where
        I: Iterator<Item = Result<Vec<Write>>>,
    {
        // What is committed cannot change meanwhile: we are the writer. A new project cannot be read yet, and has nothing.
        let mut reader = match self.store.read(&self.scope) {
            Ok(reader) if target.head.next_thing > 1 => Some(reader),
            Ok(_) => None,
            Err(e) if e.kind == lukasa_model::ErrorKind::NotFound => None,
            Err(e) => return drop(send.send(Err(e))),
        };
        let mut planner = Parts {
            ledger: self,
            target,
            header,
            made: FxHashMap::default(),
            restated: FxHashMap::default(),
            next_thing: target.head.next_thing,
            first_place: 0,
        };
        for part in parts {
            let reader = reader.as_mut().map(|r| &mut **r as &mut dyn Reader);
            let piece = part.and_then(|writes| planner.plan(reader, writes));
            let failed = piece.is_err();
            if send.send(piece).is_err() || failed {
                return;
            }
        }
    }
}

/// Plans one part after the other.
struct Parts<'a> {
    ledger: &'a Ledger,
    target: &'a Target<'a>,
    header: &'a Header,
    /// Objects of earlier parts, each with its last statement.
    made: FxHashMap<Uuid, (Thing, Statement)>,
    /// What earlier parts say of objects that were there before.
    restated: FxHashMap<ThingNo, Vec<Statement>>,
    next_thing: ThingNo,
    first_place: u32,
}

impl Parts<'_> {
    fn plan(&mut self, mut reader: Option<&mut (dyn Reader + '_)>, writes: Vec<Write>) -> Result<Piece> {
        let target = self.target;
        let batch = Batch { header: self.header.clone(), writes, ..Batch::default() };
        let clock = &self.ledger.clock;
        let drafts = Drafts::take(batch, target.registry, target.head.namespace, target.now, &mut || clock.new_id())?;
        let mut known = Known::default();
        let mut unknown = Vec::new();
        for id in unique(drafts.ids.clone()) {
            match self.made.get(&id) {
                Some((thing, statement)) => {
                    known.statements.insert(thing.no, vec![statement.clone()]);
                    known.things.insert(id, thing.clone());
                }
                None => unknown.push(id),
            }
        }
        if let Some(reader) = reader.as_deref_mut() {
            learn_named(reader, &mut known, &unknown, &drafts)?;
        }
        let resolved = drafts.resolve(&known, &target.lineage, target.now)?;
        if let Some((type_name, ..)) = resolved.limited_ends(target.registry).first() {
            return Err(Error::invalid("limited_in_load", format!("`{type_name}` allows one relationship per end"))
                .hint("write it in a batch of its own"));
        }
        if let Some(reader) = reader {
            learn_targets(reader, &mut known, &resolved, target)?;
        }
        for (number, statements) in &mut known.statements {
            if let Some(restated) = self.restated.get(number) {
                statements.extend(restated.iter().cloned());
                statements.sort_by_key(|s| (s.branch, s.version));
            }
        }
        let plan = plan::plan(resolved, &known, &target.place(self.next_thing, self.first_place))?;
        let by_number: FxHashMap<ThingNo, &Thing> = known.things.values().map(|t| (t.no, t)).collect();
        self.remember(&plan, &by_number);
        let first = self.next_thing;
        let spoken_of = plan.statements.iter().map(|s| s.thing).filter(|no| *no < first);
        let old = spoken_of.filter_map(|no| Some((no, (*by_number.get(&no)?).clone()))).collect();
        self.next_thing += plan.things.len() as u64;
        self.first_place += u32::try_from(plan.statements.len()).unwrap_or(u32::MAX);
        Ok(Piece { plan, old })
    }

    /// Later parts may connect what this one makes.
    fn remember(&mut self, plan: &Plan, old: &FxHashMap<ThingNo, &Thing>) {
        for statement in &plan.statements {
            let new = statement.thing.checked_sub(self.next_thing);
            let thing = match new {
                Some(at) => plan.things.get(at as usize),
                None => old.get(&statement.thing).copied(),
            };
            let Some(thing) = thing.filter(|thing| thing.ends.is_none()) else { continue };
            let header = Statement { content: None, change: None, parents: vec![], ..statement.clone() };
            match new {
                Some(_) => drop(self.made.insert(thing.id, (thing.clone(), header))),
                None => self.restated.entry(thing.no).or_default().push(header),
            }
        }
    }
}

/// Writes planned parts and adds up what they come to.
struct Load<'a> {
    target: &'a Target<'a>,
    header: &'a Header,
    chain: Chain,
    head: Head,
    done: Committed,
    statements: usize,
}

impl<'a> Load<'a> {
    fn new(target: &'a Target<'a>, header: &'a Header) -> Load<'a> {
        let tx = target.head.tx + 1;
        Load {
            target,
            header,
            chain: Chain::new(target.head.hash, tx, target.now, target.branch, header),
            head: target.head,
            done: Committed::nothing(target.now),
            statements: 0,
        }
    }

    fn write(&mut self, writer: &mut dyn Writer, piece: Piece) -> Result<()> {
        let Piece { mut plan, old } = piece;
        let first = self.head.next_thing;
        for statement in &plan.statements {
            let thing = match statement.thing.checked_sub(first) {
                Some(at) => plan.things.get(at as usize),
                None => old.get(&statement.thing),
            };
            let thing = thing.ok_or_else(|| Error::internal("a statement was planned about nothing"))?;
            self.chain.statement(thing.id, &thing.type_name, statement);
        }
        self.head.next_thing += plan.things.len() as u64;
        self.statements += plan.statements.len();
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

    fn finish(mut self, writer: &mut dyn Writer) -> Result<Committed> {
        if self.statements == 0 {
            return Ok(self.done);
        }
        let hash: Hash = self.chain.finish(self.done.objects, self.done.relationships);
        let tx = self.target.head.tx + 1;
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
        Ok(self.done)
    }
}
