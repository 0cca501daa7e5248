//! A feature: its name, its operations, its types, its state, and what it does for the rest of the engine.

use crate::blocked_tasks::{BlockedTask, FindBlockedTasks};
use crate::claims::Claims;
use crate::group_summaries::GroupSummaries;
use crate::registry::Operation;
use crate::view::ViewGraph;
use crate::{Context, Engine, features};
use lukasa_graph::Node;
use lukasa_graph::cypher::SearchNodes;
use lukasa_model::claims::HeldClaim;
use lukasa_model::types::TypePack;
use lukasa_model::{Result, Scope};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::any::{Any, TypeId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A part of the product that owns its types, its domain logic, its operations and its state.
pub struct Feature {
    /// Its name, which is that of its folder.
    pub folder: &'static str,
    /// In the order in which `--help` and docs list them.
    pub operations: &'static [fn() -> Operation],
    /// Packs of types that it declares in a project before it first writes objects of them.
    pub types: &'static [fn() -> Result<&'static TypePack>],
    /// Adds what it keeps between requests, as it is in a new engine.
    pub state: fn(&mut FeatureStates),
    pub hooks: Hooks,
}

/// What a feature does for the rest of the engine. Each is provided by at most one feature.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// Called with every permitted request before it runs.
    pub arrived: Option<fn(&Engine, &Context<'_>)>,
    /// Gives a request without a view the branch that the caller works on, and brings that branch up to date.
    pub follow: Option<FollowTree>,
    /// Called after everything on a branch was written again; an empty name stands for the default branch.
    pub rebuilt: Option<fn(&Engine, &Scope, &str)>,
    pub claims: Option<&'static dyn Claims>,
    pub blocked_tasks: Option<FindBlockedTasks>,
    pub search: Option<MakeSearch>,
    pub group_summaries: Option<SummariesHook>,
}

impl Hooks {
    /// No hooks.
    pub const NONE: Hooks = Hooks {
        arrived: None,
        follow: None,
        rebuilt: None,
        claims: None,
        blocked_tasks: None,
        search: None,
        group_summaries: None,
    };
}

/// Summaries of groups of objects, if they are configured.
pub type SummariesHook = fn(&Engine) -> Option<Arc<dyn GroupSummaries>>;

/// Gives a request its view. Returns the request, and how far the index is behind.
pub type FollowTree = fn(&Engine, &mut Context<'_>, &Operation, Value) -> Result<FollowedRequest>;

/// Makes the search function of one query. It builds the indexes of the view, so that the query does not wait for them.
pub type MakeSearch = fn(&Engine, &mut Context<'_>, &ViewGraph) -> Result<Searcher>;

impl Engine {
    /// The claims of agents.
    pub fn claims(&self) -> &'static dyn Claims {
        hook(|hooks| hooks.claims).expect("a feature keeps claims")
    }

    /// The open tasks that cannot proceed and are about these nodes, their containers or their contents, or are among
    /// them.
    pub fn blocked_tasks(
        &self,
        look: &ViewGraph,
        nodes: &[Node],
        held: &[HeldClaim],
        agent: Option<&str>,
    ) -> Result<Vec<BlockedTask>> {
        hook(|hooks| hooks.blocked_tasks).map_or_else(|| Ok(vec![]), |find| find(look, nodes, held, agent))
    }

    /// The search function of a query in a view.
    pub fn searcher(&self, context: &mut Context<'_>, look: &ViewGraph) -> Result<Searcher> {
        let make = hook(|hooks| hooks.search).expect("a feature searches");
        make(self, context, look)
    }

    /// Summaries of groups of objects, if they are configured.
    pub fn group_summaries(&self) -> Option<Arc<dyn GroupSummaries>> {
        hook(|hooks| hooks.group_summaries).and_then(|summaries| summaries(self))
    }

    /// To be called after everything on a branch was written again.
    pub fn rebuilt(&self, scope: &Scope, branch: &str) {
        if let Some(rebuilt) = hook(|hooks| hooks.rebuilt) {
            rebuilt(self, scope, branch);
        }
    }

    pub(crate) fn arrived(&self, context: &Context<'_>) {
        if let Some(arrived) = hook(|hooks| hooks.arrived) {
            arrived(self, context);
        }
    }

    pub(crate) fn follow(
        &self,
        context: &mut Context<'_>,
        operation: &Operation,
        request: Value,
    ) -> Result<FollowedRequest> {
        match hook(|hooks| hooks.follow) {
            Some(follow) => follow(self, context, operation, request),
            None => Ok(FollowedRequest { request, behind: None }),
        }
    }
}

/// The one feature's part that `of` selects.
fn hook<T>(of: impl Fn(&Hooks) -> Option<T>) -> Option<T> {
    features::ALL.iter().find_map(|feature| of(&feature.hooks))
}

/// A request with its view, and how far the index is behind.
pub struct FollowedRequest {
    pub request: Value,
    pub behind: Option<IndexLag>,
}

/// How far the index is behind its working tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexLag {
    pub branch: String,
    /// Files that were changed, added or removed since. None if they could not be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<usize>,
    /// Why the index was not updated.
    pub because: String,
}

impl IndexLag {
    /// A sentence for warnings.
    pub fn words(&self) -> String {
        let files = match self.files {
            Some(1) => "1 file behind".to_owned(),
            Some(n) => format!("{n} files behind"),
            None => "perhaps behind".to_owned(),
        };
        format!("`{}` is {files} the working tree: {}", self.branch, self.because)
    }
}

/// The search function of one query, and the warnings it collects.
pub struct Searcher {
    pub search: SearchNodes,
    pub warnings: Arc<Mutex<BTreeSet<String>>>,
}

impl Searcher {
    /// Returns the warnings of all searches, each once.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().iter().cloned().collect()
    }
}

/// What features keep between requests: one value of each type.
#[derive(Clone, Default)]
pub struct FeatureStates(FxHashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl FeatureStates {
    /// The states of a new engine.
    pub(crate) fn of_all() -> FeatureStates {
        let mut states = FeatureStates::default();
        features::ALL.iter().for_each(|feature| (feature.state)(&mut states));
        states
    }

    /// Adds a value, or replaces the one of its type.
    pub fn put<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// The value of a type. Panics if no feature adds one.
    pub fn get<T: Any + Send + Sync>(&self) -> &T {
        let state = self.0.get(&TypeId::of::<T>()).and_then(|state| state.downcast_ref());
        state.expect("a feature puts each of its states")
    }
}
