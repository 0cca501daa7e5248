//! Communities as derived objects: computed from a graph and cached by transaction, never written to the log.

use crate::Engine;
use crate::group_summaries::{ObjectGroup, SummaryUnit};
use crate::view::{COMMUNITY, ViewGraph};
use lukasa_graph::Node;
use lukasa_graph::community::{self, Algorithm, CommunityOptions, Undirected, describe, detect};
use lukasa_model::id::object_id;
use lukasa_model::json::Hash;
use lukasa_model::{BranchNo, Error, ErrorCode, ErrorKind, FactNo, Position, Result, Scope, Tx};
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
/// Maximum number of members of a community that is named as a root.
const MEMBERS: usize = 5_000;
/// Maximum number of members that are sent to a language model.
const SENT_MEMBERS: usize = 40;

/// The communities of a branch, computed at a transaction.
pub struct ComputedCommunities {
    pub at: Position,
    pub options: CommunityOptions,
    pub modularity: f64,
    pub communities: Vec<CommunityOut>,
    members: Vec<Vec<FactNo>>,
}

/// A community as an object. Its id is derived from its key, as that of a recorded object is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommunityOut {
    pub id: Uuid,
    #[serde(rename = "type")]
    pub type_name: &'static str,
    pub key: String,
    pub label: String,
    pub summary: String,
    pub size: usize,
    /// The member with the most relationships to other members.
    pub central_node: String,
    /// Relationships between members.
    pub inside: usize,
    /// Relationships between members and others.
    pub outside: usize,
}

impl ComputedCommunities {
    /// The members of a community, most central first.
    pub fn members(&self, community: usize) -> &[FactNo] {
        &self.members[community]
    }

    /// Finds a community by its key, label, id, or `COMMUNITY:key`.
    pub fn find(&self, word: &str) -> Result<usize> {
        let key = word.strip_prefix(PREFIX).unwrap_or(word);
        let is = |c: &CommunityOut| c.key == key || c.label == key || c.id.to_string() == key;
        self.communities.iter().position(is).ok_or_else(|| {
            let near: Vec<_> = self.communities.iter().take(5).map(|c| format!("`{}`", c.key)).collect();
            Error::not_found(ErrorCode::NotFound, format!("no community `{key}`"))
                .hint(format!("the largest are {}", near.join(", ")))
        })
    }

    /// The community of a fact.
    pub fn of(&self, thing: FactNo) -> Option<usize> {
        self.members.iter().position(|members| members.contains(&thing))
    }
}

/// A cache of the communities of each branch, and the threads that compute them.
#[derive(Default)]
pub struct CommunityCache {
    kept: Mutex<FxHashMap<(Scope, BranchNo), Arc<ComputedCommunities>>>,
    running: Mutex<Vec<JoinHandle<()>>>,
}

/// Maximum number of branches in the cache.
const KEPT: usize = 256;

impl CommunityCache {
    /// The cached communities of a branch, if they were computed with these options, from the current log, and not
    /// after transaction `known`.
    pub fn kept(
        &self,
        ledger: &Ledger,
        branch: BranchNo,
        known: Tx,
        options: &CommunityOptions,
    ) -> Result<Option<Arc<ComputedCommunities>>> {
        let place = (ledger.scope().clone(), branch);
        let Some(kept) = self.kept.lock().get(&place).cloned() else { return Ok(None) };
        if !ledger.holds(kept.at)? {
            self.kept.lock().remove(&place);
            return Ok(None);
        }
        Ok(Some(kept).filter(|kept| kept.options == *options && kept.at.tx <= known))
    }

    fn keep(&self, scope: &Scope, branch: BranchNo, found: &Arc<ComputedCommunities>) {
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT {
            kept.clear();
        }
        let slot = kept.entry((scope.clone(), branch)).or_insert_with(|| Arc::clone(found));
        if slot.at.tx <= found.at.tx {
            *slot = Arc::clone(found);
        }
    }

    /// Removes the communities of a project that could not be computed again.
    fn forget(&self, scope: &Scope) {
        self.kept.lock().retain(|(of, _), _| of != scope);
    }

    /// Waits for background work; for tests, and before the process ends.
    pub fn settle(&self) {
        let running: Vec<_> = self.running.lock().drain(..).collect();
        for thread in running {
            // A thread that panicked has reported it, and has cached nothing.
            let _ = thread.join();
        }
    }
}

impl Engine {
    /// Computes the communities of a view. With `keep`, caches them if the view is the head of a branch.
    pub fn find_communities(
        &self,
        look: &ViewGraph,
        options: &CommunityOptions,
        keep: bool,
    ) -> Result<Arc<ComputedCommunities>> {
        let flat = look.snapshot.flat();
        let graph = Undirected::of(flat);
        let found = detect(&graph, options);
        let namespace = look.ledger.head()?.namespace;
        let described = describe(&look.snapshot, flat, &found);
        let of = |c: &community::Community| c.members.iter().map(|n| look.snapshot.thing(*n)).collect();
        let members: Vec<Vec<FactNo>> = described.iter().map(of).collect();
        let out = |c: community::Community| CommunityOut {
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
        let mut communities: Vec<CommunityOut> = described.into_iter().map(out).collect();
        self.sum_up(look, &mut communities, &members);
        let (at, modularity) = (look.view.position(), found.modularity);
        let kept = Arc::new(ComputedCommunities { at, options: *options, modularity, communities, members });
        if keep {
            self.state::<CommunityCache>().keep(look.ledger.scope(), look.view.branch, &kept);
        }
        Ok(kept)
    }

    /// Requests summaries of the communities at the head of a branch from a language model, if one is configured, in
    /// the background.
    pub fn summarise_in_background(&self, look: &ViewGraph, found: &Arc<ComputedCommunities>) {
        if !look.is_head || self.group_summaries().is_none_or(|summaries| !summaries.asks()) {
            return;
        }
        let mut running = self.state::<CommunityCache>().running.lock();
        running.retain(|thread| !thread.is_finished());
        // One thread at a time, because each reuses the summaries of the one before it.
        if !running.is_empty() {
            return;
        }
        let (engine, look, found) = (self.clone(), look.clone(), Arc::clone(found));
        let work = move || {
            // On an error, the rule-based summaries stay.
            let _ = engine.ask_about(&look, &found);
        };
        running.extend(std::thread::Builder::new().name("communities".into()).spawn(work));
    }

    /// Requests summaries of communities from a language model, if one is configured, and caches the communities with
    /// them.
    fn ask_about(&self, look: &ViewGraph, found: &ComputedCommunities) -> Result<()> {
        let Some(summaries) = self.group_summaries().filter(|summaries| summaries.asks()) else { return Ok(()) };
        if summaries.ask_of_groups(&groups(look, &found.communities, &found.members)) > 0 {
            self.find_communities(look, &found.options, true)?;
        }
        Ok(())
    }

    /// Replaces rule-based summaries by those of a language model, where there are any.
    fn sum_up(&self, look: &ViewGraph, communities: &mut [CommunityOut], members: &[Vec<FactNo>]) {
        let Some(summaries) = self.group_summaries().filter(|summaries| summaries.knows()) else { return };
        let known = summaries.of_groups(&groups(look, communities, members));
        for (community, known) in communities.iter_mut().zip(known) {
            if let Some(summary) = known {
                community.summary = summary.text.to_string();
            }
        }
    }

    /// The communities of a view: cached ones of its branch, else computed now.
    pub fn communities(&self, look: &ViewGraph, options: &CommunityOptions) -> Result<Arc<ComputedCommunities>> {
        let head = look.is_head;
        let at_hand = self.state::<CommunityCache>().kept(&look.ledger, look.view.branch, look.view.known, options)?;
        match at_hand.filter(|_| head) {
            Some(kept) => Ok(kept),
            None => self.find_communities(look, options, head),
        }
    }

    /// Resolves names to nodes, each once, in order. `COMMUNITY:key` stands for the members of the community.
    pub fn nodes(&self, look: &ViewGraph, names: &[String]) -> Result<Vec<Node>> {
        let (mut nodes, mut seen) = (Vec::with_capacity(names.len()), FxHashSet::default());
        let mut add = |node| {
            if seen.insert(node) {
                nodes.push(node);
            }
        };
        for name in names {
            match look.node(name) {
                Ok(node) => add(node),
                // No object of this name is recorded, so the name is that of a community.
                Err(e) if e.kind == ErrorKind::NotFound && name.starts_with(PREFIX) => {
                    let kept = self.communities(look, &CommunityOptions::default())?;
                    let members = kept.members(kept.find(name)?);
                    if members.len() > MEMBERS {
                        let message = format!("`{name}` has {} members, at most {MEMBERS} can be roots", members.len());
                        return Err(Error::too_large(ErrorCode::CommunityTooLarge, message)
                            .hint("name some of its members, or find smaller ones with --resolution"));
                    }
                    members.iter().filter_map(|t| look.snapshot.find(*t)).for_each(&mut add);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(nodes)
    }

    /// Computes communities again, in the background.
    pub(super) fn recompute_communities(&self, scope: &Scope, branch: &str) {
        let (engine, asked, scope) = (self.clone(), scope.clone(), scope.clone());
        let spec = ViewSpec { branch: (!branch.is_empty()).then(|| branch.to_string()), ..ViewSpec::default() };
        let work = move || {
            let ledger = engine.ledger(&scope);
            let found =
                engine.graphs().projections.view_graph(&ledger, &spec, &mut |_, _| {}).and_then(|(view, snapshot)| {
                    let look = ViewGraph::new(ledger, view, snapshot, true);
                    let found = engine.find_communities(&look, &CommunityOptions::default(), true)?;
                    engine.ask_about(&look, &found)
                });
            if found.is_err() {
                // The next request computes them itself, and reports the error if it fails again.
                engine.state::<CommunityCache>().forget(&scope);
            }
        };
        let mut running = self.state::<CommunityCache>().running.lock();
        running.retain(|thread| !thread.is_finished());
        match std::thread::Builder::new().name("communities".into()).spawn(work) {
            Ok(thread) => running.push(thread),
            Err(_) => self.state::<CommunityCache>().forget(&asked),
        }
    }
}

/// Communities as groups to be summarised by a language model.
fn groups(look: &ViewGraph, kept: &[CommunityOut], members: &[Vec<FactNo>]) -> Vec<ObjectGroup> {
    let name = |thing: &FactNo| look.snapshot.find(*thing).map(|node| look.snapshot.name(node));
    let group = |(community, members): (&CommunityOut, &Vec<FactNo>)| {
        let mut all: Vec<String> = members.iter().filter_map(name).collect();
        let listed = all.iter().take(SENT_MEMBERS).cloned().collect::<Vec<_>>().join("\n");
        let (label, rule) = (&community.label, &community.summary);
        all.sort();
        let content = Hash::of(all.join("\n").as_bytes());
        let mut short = [0; 8];
        short.copy_from_slice(&content.0[..8]);
        ObjectGroup {
            unit: SummaryUnit { name: format!("{PREFIX}{}", community.key), content: u64::from_be_bytes(short) },
            about: format!("Group: {label}\nCounted: {rule}\nMembers, the most central first:\n{listed}"),
        }
    };
    kept.iter().zip(members).map(group).collect()
}

/// Checks the parameters of a request.
pub fn options(algorithm: Algorithm, resolution: f64, seed: u64) -> Result<CommunityOptions> {
    if !(resolution.is_finite() && resolution > 0.0 && resolution <= 1_000.0) {
        return Err(Error::invalid(
            ErrorCode::OutOfRange,
            format!("`resolution` is {resolution}, allowed is above 0 to 1000"),
        ));
    }
    Ok(CommunityOptions { algorithm, resolution, seed })
}
