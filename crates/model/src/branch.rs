//! Branches, and the ancestors that a read on a branch falls back to.

use crate::ErrorCode;
use crate::error::{Error, Result};
use crate::id::{BranchNo, MAIN, PROJECT_WIDE, Tx};
use crate::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BranchMode {
    /// Sees the current state of its parent.
    #[default]
    Live,
    /// Sees its parent as it was at the fork.
    Pinned,
}

/// One branch as of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Branch {
    pub number: BranchNo,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<BranchNo>,
    pub mode: BranchMode,
    /// The transaction of the parent at which the branch was created, or to which it was moved.
    pub fork: Tx,
    #[serde(default)]
    pub closed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Branch {
    /// Returns the branch that every project starts with. It has no parent.
    pub fn main() -> Branch {
        Branch {
            number: MAIN,
            name: "main".into(),
            parent: None,
            mode: BranchMode::Live,
            fork: Tx::START,
            closed: false,
            description: None,
        }
    }
}

/// The branches that a read consults, nearest first, each with the last transaction that is visible there. Project-wide
/// versions come last and are visible up to the transaction of the view, also on pinned branches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage(Vec<(BranchNo, Tx)>);

impl Lineage {
    /// Computes the lineage of `branch` as of transaction `known`. `find` returns a branch as of a transaction. Fails
    /// on an unknown branch, a cycle, or more than `LINEAGE_DEPTH` branches.
    pub fn of(branch: BranchNo, known: Tx, find: impl Fn(BranchNo, Tx) -> Option<Branch>) -> Result<Lineage> {
        let mut line = Vec::with_capacity(3);
        let (mut next, mut cap) = (Some(branch), known);
        while let Some(number) = next {
            if line.iter().any(|(seen, _)| *seen == number) {
                return Err(Error::conflict(ErrorCode::CyclicBranch, format!("branch {number} is its own ancestor")));
            }
            if line.len() == limits::LINEAGE_DEPTH {
                return Err(Error::too_large(
                    ErrorCode::LineageTooDeep,
                    format!("more than {} branches in one lineage", limits::LINEAGE_DEPTH),
                ));
            }
            line.push((number, cap));
            let at = find(number, cap).ok_or_else(|| {
                Error::not_found(ErrorCode::UnknownBranch, format!("no branch {number} at transaction {cap}"))
            })?;
            next = at.parent;
            if at.mode == BranchMode::Pinned {
                cap = cap.min(at.fork);
            }
        }
        line.push((PROJECT_WIDE, known));
        Ok(Lineage(line))
    }

    /// Returns each branch of the lineage with the last transaction that is visible there, nearest branch first.
    pub fn entries(&self) -> &[(BranchNo, Tx)] {
        &self.0
    }

    /// Returns the last transaction that is visible on a branch, or `None` if the branch is not in the lineage.
    pub fn cap(&self, branch: BranchNo) -> Option<Tx> {
        self.0.iter().find(|(b, _)| *b == branch).map(|(_, cap)| *cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(number: u32, parent: u32, mode: BranchMode, fork: u64) -> Branch {
        let (number, parent, fork) = (BranchNo(number), BranchNo(parent), Tx(fork));
        Branch { number, name: format!("b{number}"), parent: Some(parent), mode, fork, ..Branch::main() }
    }

    #[test]
    fn a_pinned_branch_limits_all_its_ancestors() {
        use BranchMode::{Live, Pinned};
        let all = [Branch::main(), branch(2, 1, Pinned, 10), branch(3, 2, Live, 20), branch(4, 3, Pinned, 5)];
        let find = |n, _| all.iter().find(|x| x.number == n).cloned();
        let numbers = |l: Lineage| l.0.into_iter().map(|(branch, tx)| (branch.0, tx.0)).collect::<Vec<_>>();
        let line = |b, t| Lineage::of(BranchNo(b), Tx(t), find).map(numbers);
        assert_eq!(line(1, 50).unwrap(), [(1, 50), (0, 50)]);
        assert_eq!(line(3, 50).unwrap(), [(3, 50), (2, 50), (1, 10), (0, 50)]);
        assert_eq!(line(3, 7).unwrap(), [(3, 7), (2, 7), (1, 7), (0, 7)]);
        assert_eq!(line(4, 50).unwrap(), [(4, 50), (3, 5), (2, 5), (1, 5), (0, 50)]);
        assert_eq!(line(9, 50).unwrap_err().code, ErrorCode::UnknownBranch);
    }

    #[test]
    fn a_cycle_is_an_error() {
        let all = [branch(2, 3, BranchMode::Live, 0), branch(3, 2, BranchMode::Live, 0)];
        let line = Lineage::of(BranchNo(2), Tx(9), |n, _| all.iter().find(|x| x.number == n).cloned());
        assert_eq!(line.unwrap_err().code, ErrorCode::CyclicBranch);
    }
}
