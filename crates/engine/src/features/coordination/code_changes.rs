//! Ends claims on code that another agent has changed; changes by the holder do not end them.

use super::board::ClaimEnding;
use crate::Engine;
use crate::claims::CodeChange;
use lukasa_model::Result;
use lukasa_model::claims::{ClaimTarget, ClaimType, HeldClaim};
use lukasa_model::transaction::Header;
use lukasa_store::Ledger;
use std::collections::BTreeSet;
use std::path::Path;

impl Engine {
    /// Ends the claims that a change made obsolete, and returns them.
    pub(super) fn end_overtaken(&self, ledger: &Ledger, change: &CodeChange<'_>) -> Result<Vec<HeldClaim>> {
        let mut overtaken = BTreeSet::new();
        for file in &change.files {
            let Ok(target) = ClaimTarget::code(file) else { continue };
            for claim in self.held_on(ledger, &target.board())? {
                if is_others(&claim, change) && self.is_changed(ledger, &claim, change)? {
                    overtaken.insert(claim.claim_id);
                }
            }
        }
        if overtaken.is_empty() {
            return Ok(vec![]);
        }
        let header = Header {
            agent: change.agent.map(str::to_owned),
            reason: Some(format!("changed in transaction {}", change.tx)),
            ..Header::default()
        };
        let by = change.agent.map_or_else(|| format!("a change on {}", change.branch), str::to_owned);
        let ending = ClaimEnding { reason: "code_changed", by: Some(by), ..ClaimEnding::default() };
        self.end_claims(ledger, &header, &ending, &|claim| overtaken.contains(&claim.claim_id))
    }

    /// Whether the claimed part of its file changed.
    fn is_changed(&self, ledger: &Ledger, claim: &HeldClaim, change: &CodeChange<'_>) -> Result<bool> {
        if claim.claim_type != ClaimType::Function {
            return Ok(true);
        }
        let at = claim.at();
        let version = |tx| Ok(self.state_of(ledger, &at, Some(change.branch), Some(tx))?.map(|(_, version)| version));
        let (before, after): (Option<String>, Option<String>) = (version(change.tx.previous())?, version(change.tx)?);
        // A target that is not in the graph cannot be compared, and counts as changed.
        Ok(before != after || after.is_none())
    }
}

/// Whether a change was made by another agent than the holder. A change without an agent counts as the holder's in its
/// working tree, and as another's in another tree or, if the tree is unknown, on another branch.
fn is_others(claim: &HeldClaim, change: &CodeChange<'_>) -> bool {
    if let Some(agent) = change.agent {
        return agent != claim.agent_id;
    }
    match (&claim.worktree, change.worktree, &claim.branch) {
        (Some(own), Some(root), _) => Path::new(own) != root,
        (_, _, Some(own)) => own != change.branch,
        _ => false,
    }
}
