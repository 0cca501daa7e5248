//! Communities as derived objects: found in a graph, kept under the transaction they were found at, never stated.

use crate::Engine;
use crate::group_summaries::{Group, Unit};
use crate::view::{COMMUNITY, Look};
use lukasa_graph::Node;
use lukasa_graph::community::{self, Algorithm, Options, Undirected, describe, detect};
use lukasa_model::id::object_id;
use lukasa_model::json::Hash;
use lukasa_model::{BranchNo, Error, ErrorKind, Position, Result, Scope, ThingNo, Tx};
use lukasa_store::Ledger;
use lukasa_store::ledger::ViewSpec;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use std::thread::JoinHandle;
use uuid::Uuid;

pub(super) const PREFIX: &str = "COMMUNITY:";
/// A community of more members than this cannot be named as a root.
const MEMBERS: usize = 5_000;
/// Members that a language model is told of.
const TOLD: usize = 40;

/// The communities of a branch as they were found at a transaction.
pub struct Kept {
    pub at: Position,
    pub options: Options,
    pub modularity: f64,
    pub communities: Vec<CommunityOut>,
    members: Vec<Vec<ThingNo>>,
}

/// A community as an object. Its id follows from its key, as that of a stated object does.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommunityOut {
    pub id: Uuid,
    #[serde(rename = "type")]
    pub type_name: &'static str,
    pub key: String,
    pub label: String,
    pub summary: String,
    pub size: usize,
    /// The member with most edges inside.
    pub central_node: String,
    /// Relationships between members.
    pub inside: usize,
    /// Relationships between members and others.
    pub outside: usize,
}

impl Kept {
    /// The things that belong to a community, the most central first.
    pub fn members(&self, community: usize) -> &[ThingNo] {
        &self.members[community]
    }

    /// The community a word stands for: its key, label, id, or `COMMUNITY:key`.
    pub fn find(&self, word: &str) -> Result<usize> {
        let key = word.strip_prefix(PREFIX).unwrap_or(word);
        let is = |c: &CommunityOut| c.key == key || c.label == key || c.id.to_string() == key;
        self.communities.iter().position(is).ok_or_else(|| {
            let near: Vec<_> = self.communities.iter().take(5).map(|c| format!("`{}`", c.key)).collect();
            Error::not_found("not_found", format!("no community `{key}`"))
                .hint(format!("the largest are {}", near.join(", ")))
        })
    }

    /// The community a thing belongs to.
    pub fn of(&self, thing: ThingNo) -> Option<usize> {
        self.members.iter().position(|members| members.contains(&thing))
    }
}

/// The communities last found on each branch, and the threads that look for them.
#[derive(Default)]
pub struct Communities {
    kept: Mutex<FxHashMap<(Scope, BranchNo), Arc<Kept>>>,
    running: Mutex<Vec<JoinHandle<()>>>,
}

/// Communities of more branches than this are found again when asked for.
const KEPT: usize = 256;

impl Communities {
    /// The communities last found on a branch, if they were found this way, are not from later than `known`, and were found
    /// in the log as it is.
    pub fn kept(&self, ledger: &Ledger, branch: BranchNo, known: Tx, options: &Options) -> Result<Option<Arc<Kept>>> {
        let place = (ledger.scope().clone(), branch);
        let Some(kept) = self.kept.lock().get(&place).cloned() else { return Ok(None) };
        if !ledger.holds(kept.at)? {
            self.kept.lock().remove(&place);
            return Ok(None);
        }
        Ok(Some(kept).filter(|kept| kept.options == *options && kept.at.tx <= known))
    }

    fn keep(&self, scope: &Scope, branch: BranchNo, found: &Arc<Kept>) {
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT {
            kept.clear();
        }
        let slot = kept.entry((scope.clone(), branch)).or_insert_with(|| Arc::clone(found));
        if slot.at.tx <= found.at.tx {
            *slot = Arc::clone(found);
        }
    }

    /// Lets go of communities that could not be found anew.
    fn forget(&self, scope: &Scope) {
        self.kept.lock().retain(|(of, _), _| of != scope);
    }

    /// Waits for background work; for tests, and before an orderly end.
    pub fn settle(&self) {
        let running: Vec<_> = self.running.lock().drain(..).collect();
        for thread in running {
            // A thread that panicked has told so itself, and has kept nothing.
            let _ = thread.join();
        }
    }
}

impl Engine {
    /// Finds the communities of what is looked at, and keeps them when it is the head of a branch.
    pub fn find_communities(&self, look: &Look, options: &Options, keep: bool) -> Result<Arc<Kept>> {
        let flat = look.snapshot.flat();
        let graph = Undirected::of(flat);
        let found = detect(&graph, options);
        let namespace = look.ledger.head()?.namespace;
        let described = describe(&look.snapshot, flat, &found);
        let of = |c: &community::Community| c.members.iter().map(|n| look.snapshot.thing(*n)).collect();
        let members: Vec<Vec<ThingNo>> = described.iter().map(of).collect();
        let told = |c: community::Community| CommunityOut {
            id: object_id(namespace, COMMUNITY, &c.key),
            type_name: COMMUNITY,
            size: c.members.len(),
            central_node: look.snapshot.name(c.central),
            key: c.key,
            label: c.label,
            summary: c.summary,
            inside: c.inside,
            outside: c.outside,
        };
        let mut communities: Vec<CommunityOut> = described.into_iter().map(told).collect();
        self.sum_up(look, &mut communities, &members);
        let (at, modularity) = (look.view.position(), found.modularity);
        let kept = Arc::new(Kept { at, options: *options, modularity, communities, members });
        if keep {
            self.state::<Communities>().keep(look.ledger.scope(), look.view.branch, &kept);
        }
        Ok(kept)
    }

    /// Has a language model sum up what was found at the head of a branch, where one is configured, while nobody waits.
    pub fn sum_up_later(&self, look: &Look, found: &Arc<Kept>) {
        if !look.is_head || self.group_summaries().is_none_or(|summaries| !summaries.asks()) {
            return;
        }
        let mut running = self.state::<Communities>().running.lock();
        running.retain(|thread| !thread.is_finished());
        // One at a time: what it finds out is known to the next.
        if !running.is_empty() {
            return;
        }
        let (engine, look, found) = (self.clone(), look.clone(), Arc::clone(found));
        let work = move || {
            // What was counted stays where nothing better is said.
            let _ = engine.ask_about(&look, &found);
        };
        running.extend(std::thread::Builder::new().name("communities".into()).spawn(work));
    }

    /// Has a language model sum up what was found, where one is configured, and finds it with what it said.
    fn ask_about(&self, look: &Look, found: &Kept) -> Result<()> {
        let Some(summaries) = self.group_summaries().filter(|summaries| summaries.asks()) else { return Ok(()) };
        if summaries.ask_of_groups(&groups(look, &found.communities, &found.members)) > 0 {
            self.find_communities(look, &found.options, true)?;
        }
        Ok(())
    }

    /// Puts what a language model said in the place of what was counted, where one was asked.
    fn sum_up(&self, look: &Look, communities: &mut [CommunityOut], members: &[Vec<ThingNo>]) {
        let Some(summaries) = self.group_summaries().filter(|summaries| summaries.knows()) else { return };
        let known = summaries.of_groups(&groups(look, communities, members));
        for (community, known) in communities.iter_mut().zip(known) {
            if let Some(summary) = known {
                community.summary = summary.text.to_string();
            }
        }
    }

    /// The communities of what is looked at: those kept for its branch, else found now.
    pub fn communities(&self, look: &Look, options: &Options) -> Result<Arc<Kept>> {
        let head = look.is_head;
        let at_hand = self.state::<Communities>().kept(&look.ledger, look.view.branch, look.view.known, options)?;
        match at_hand.filter(|_| head) {
            Some(kept) => Ok(kept),
            None => self.find_communities(look, options, head),
        }
    }

    /// The nodes that names stand for, each once, in the order given. `COMMUNITY:key` stands for its members.
    pub fn nodes(&self, look: &Look, names: &[String]) -> Result<Vec<Node>> {
        let (mut nodes, mut seen) = (Vec::with_capacity(names.len()), FxHashSet::default());
        let mut add = |node| {
            if seen.insert(node) {
                nodes.push(node);
            }
        };
        for name in names {
            match look.node(name) {
                Ok(node) => add(node),
                // Nobody has stated an object of this name, so the derived one is meant.
                Err(e) if e.kind == ErrorKind::NotFound && name.starts_with(PREFIX) => {
                    let kept = self.communities(look, &Options::default())?;
                    let members = kept.members(kept.find(name)?);
                    if members.len() > MEMBERS {
                        let message = format!("`{name}` has {} members, at most {MEMBERS} can be roots", members.len());
                        return Err(Error::too_large("community_too_large", message)
                            .hint("name some of its members, or find smaller ones with --resolution"));
                    }
                    members.iter().filter_map(|t| look.snapshot.find(*t)).for_each(&mut add);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(nodes)
    }

    /// Finds communities again, in the background.
    pub(super) fn find_again(&self, scope: &Scope, branch: &str) {
        let (engine, asked, scope) = (self.clone(), scope.clone(), scope.clone());
        let spec = ViewSpec { branch: (!branch.is_empty()).then(|| branch.to_string()), ..ViewSpec::default() };
        let work = move || {
            let ledger = engine.ledger(&scope);
            let found =
                engine.graphs().projections.look(&ledger, &spec, &mut |_, _| {}).and_then(|(view, snapshot)| {
                    let look = Look::new(ledger, view, snapshot, true);
                    let found = engine.find_communities(&look, &Options::default(), true)?;
                    engine.ask_about(&look, &found)
                });
            if found.is_err() {
                // Who asks next finds them in the foreground, and is told what went wrong if it does again.
                engine.state::<Communities>().forget(&scope);
            }
        };
        let mut running = self.state::<Communities>().running.lock();
        running.retain(|thread| !thread.is_finished());
        match std::thread::Builder::new().name("communities".into()).spawn(work) {
            Ok(thread) => running.push(thread),
            Err(_) => self.state::<Communities>().forget(&asked),
        }
    }
}

/// Communities as a language model is asked about them, where one may be.
fn groups(look: &Look, kept: &[CommunityOut], members: &[Vec<ThingNo>]) -> Vec<Group> {
    let name = |thing: &ThingNo| look.snapshot.find(*thing).map(|node| look.snapshot.name(node));
    let group = |(community, members): (&CommunityOut, &Vec<ThingNo>)| {
        let mut all: Vec<String> = members.iter().filter_map(name).collect();
        let told = all.iter().take(TOLD).cloned().collect::<Vec<_>>().join("\n");
        let (label, rule) = (&community.label, &community.summary);
        all.sort();
        let content = Hash::of(all.join("\n").as_bytes());
        let mut short = [0; 8];
        short.copy_from_slice(&content.0[..8]);
        Group {
            unit: Unit { name: format!("{PREFIX}{}", community.key), content: u64::from_be_bytes(short) },
            about: format!("Group: {label}\nCounted: {rule}\nMembers, the most central first:\n{told}"),
        }
    };
    kept.iter().zip(members).map(group).collect()
}

/// As they are asked for.
pub fn options(algorithm: Algorithm, resolution: f64, seed: u64) -> Result<Options> {
    if !(resolution.is_finite() && resolution > 0.0 && resolution <= 1_000.0) {
        return Err(Error::invalid(
            "out_of_range",
            format!("`resolution` is {resolution}, allowed is above 0 to 1000"),
        ));
    }
    Ok(Options { algorithm, resolution, seed })
}
