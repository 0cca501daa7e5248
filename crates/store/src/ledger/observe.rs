//! Reports commits of this process to an observer, for metrics.

use lukasa_model::transaction::Header;
use lukasa_model::{Fact, FactNo, Scope, TransactionKind, Version};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// What a commit recorded, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitStats {
    pub tenant: String,
    pub kind: TransactionKind,
    /// Objects and relationships that are new, by type.
    pub objects: BTreeMap<Arc<str>, u64>,
    /// New relationships, by type.
    pub relationships: BTreeMap<Arc<str>, u64>,
    /// Sizes of the changes to facts that existed before.
    pub changes: Vec<ChangeStats>,
}

/// The change of a fact that existed before, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeStats {
    /// The number of changed paths.
    pub paths: usize,
    /// The size of the stored change summary.
    pub bytes: usize,
    /// The change summary was over its limit and contains no values.
    pub elided: bool,
}

type Observer = Box<dyn Fn(&CommitStats) + Send + Sync>;
static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Registers an observer for every later commit of this process. Only the first registration takes effect.
pub fn observe(observer: impl Fn(&CommitStats) + Send + Sync + 'static) {
    OBSERVER.get_or_init(|| Box::new(observer));
}

/// Collects the numbers of a commit until it is committed.
pub(super) struct CommitStatsCollector(Option<CommitStats>);

impl CommitStatsCollector {
    /// Starts collecting, if an observer is registered.
    pub fn new(scope: &Scope, header: &Header) -> CommitStatsCollector {
        let stated = || CommitStats { tenant: scope.tenant.clone(), kind: header.kind, ..CommitStats::default() };
        CommitStatsCollector(OBSERVER.get().map(|_| stated()))
    }

    /// Counts new facts and changes of existing ones.
    pub fn add(&mut self, things: &[Fact], statements: &[Version]) {
        let Some(stated) = &mut self.0 else { return };
        let first: Option<FactNo> = things.first().map(|thing| thing.no);
        for thing in things {
            let by_type = if thing.ends.is_none() { &mut stated.objects } else { &mut stated.relationships };
            *by_type.entry(Arc::clone(&thing.type_name)).or_default() += 1;
        }
        let restated = statements.iter().filter(|s| first.is_none_or(|first| s.thing < first));
        stated.changes.extend(restated.filter_map(|s| s.change.as_deref()).map(change));
    }

    /// Reports the numbers, after the commit.
    pub fn done(self) {
        if let (Some(stated), Some(observer)) = (self.0, OBSERVER.get()) {
            observer(&stated);
        }
    }
}

fn change(text: &str) -> ChangeStats {
    /// Only the fields that are counted; the others are ignored.
    #[derive(serde::Deserialize)]
    struct Counted {
        #[serde(default)]
        paths: Vec<serde::de::IgnoredAny>,
    }
    let paths = serde_json::from_str::<Counted>(text).map_or(0, |counted| counted.paths.len());
    ChangeStats { paths, bytes: text.len(), elided: text.contains("\"elided\":true") }
}
