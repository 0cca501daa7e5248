//! Conditions on builds: a file may be part of some builds of its program only.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A condition on the tags of a build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Constraint {
    Tag(Box<str>),
    Not(Box<Constraint>),
    All(Vec<Constraint>),
    Any(Vec<Constraint>),
}

/// One build: the tags that are set in it.
pub trait Build: Send + Sync {
    fn has(&self, tag: &str) -> bool;
}

impl Constraint {
    /// Whether a build satisfies the constraint.
    pub fn holds(&self, build: &dyn Build) -> bool {
        match self {
            Constraint::Tag(tag) => build.has(tag),
            Constraint::Not(of) => !of.holds(build),
            Constraint::All(of) => of.iter().all(|c| c.holds(build)),
            Constraint::Any(of) => of.iter().any(|c| c.holds(build)),
        }
    }

    /// The tags on which the constraint depends.
    pub fn tags(&self) -> BTreeSet<&str> {
        let mut tags = BTreeSet::new();
        self.add_tags(&mut tags);
        tags
    }

    fn add_tags<'c>(&'c self, into: &mut BTreeSet<&'c str>) {
        match self {
            Constraint::Tag(tag) => _ = into.insert(tag),
            Constraint::Not(of) => of.add_tags(into),
            Constraint::All(of) | Constraint::Any(of) => of.iter().for_each(|c| c.add_tags(into)),
        }
    }
}
