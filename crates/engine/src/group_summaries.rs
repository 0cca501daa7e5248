//! Summaries of groups of objects by a language model, for features below the one that has them made.

use lukasa_code::statements::Summary;

/// What the feature that has summaries made does for the others.
pub trait GroupSummaries: Send + Sync {
    /// The known summaries of groups, in the same order.
    fn of_groups(&self, groups: &[ObjectGroup]) -> Vec<Option<Summary>>;

    /// Whether any summary is known. A cache that cannot be read counts as empty.
    fn knows(&self) -> bool;

    /// Whether a model is configured.
    fn asks(&self) -> bool;

    /// Requests summaries of groups that the model was not asked about yet, and returns how many were made. Stops at the
    /// first failure: each group still has its rule-based summary.
    fn ask_of_groups(&self, groups: &[ObjectGroup]) -> usize;
}

/// A group of objects to summarise.
pub struct ObjectGroup {
    /// The name of the group and a hash of its members: when they change, a new summary is requested.
    pub unit: SummaryUnit,
    /// The description that is sent to the model.
    pub about: String,
}

/// The identity of a symbol's text in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryUnit {
    /// `Type:key`.
    pub name: String,
    pub content: u64,
}
