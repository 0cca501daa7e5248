//! Resolves branch, `as_of` and `known_at` of a request to a fixed view.

use super::Ledger;
use crate::{Head, Reader, TransactionFilter};
use lukasa_model::json::Hash;
use lukasa_model::types::Registry;
use lukasa_model::{BranchNo, Error, ErrorCode, Lineage, Moment, Result, Time, Transaction, TransactionKind, Tx, View};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The view that a caller requests; empty means the head of `main`, now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ViewSpec {
    /// The branch; defaults to the one checked out in the caller's worktree, else `main`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// A moment: time:…, tx:…, commit:…, release:…, tag:… or agent:….
    #[serde(skip_serializing_if = "Option::is_none", alias = "asOf")]
    pub as_of: Option<String>,
    /// Only what was known then, whatever `as_of` is: tx:… or time:….
    #[serde(skip_serializing_if = "Option::is_none", alias = "knownAt")]
    pub known_at: Option<String>,
}

impl ViewSpec {
    /// Requests the head of a branch, now.
    pub fn on(branch: &str) -> ViewSpec {
        ViewSpec { branch: Some(branch.into()), ..ViewSpec::default() }
    }

    /// Sets the moment of the view.
    #[must_use]
    pub fn as_of(mut self, moment: &str) -> ViewSpec {
        self.as_of = Some(moment.into());
        self
    }
}

/// Most transactions examined for one commit prefix.
const COMMIT_MATCHES: usize = 1_000;

impl Ledger {
    /// Resolves a request to a fixed view of the project.
    pub fn view(&self, spec: &ViewSpec) -> Result<View> {
        let (mut reader, head) = self.open()?;
        self.view_in(&mut *reader, head, spec)
    }

    /// Returns the branch as it was at a moment: knowledge and valid time of that moment. Meant for comparisons;
    /// `as_of` with a time or commit would use today's knowledge of that time. So does this, if nothing had been
    /// recorded by then.
    pub fn view_since(&self, branch: Option<&str>, moment: &str) -> Result<View> {
        let (mut reader, head) = self.open()?;
        let registry = self.registry_in(&mut *reader, &head)?;
        let named = registry.branch(branch.unwrap_or("main"))?;
        let lineage = registry.lineage(named.number, head.tx)?;
        let mut ask = MomentResolver { reader: &mut *reader, registry: &registry, head, lineage: &lineage };
        let at = ask.moment(moment)?;
        if at.release.is_some() {
            drop(reader);
            return self.view(&ViewSpec { branch: None, as_of: Some(moment.into()), known_at: None });
        }
        let (known, valid) = match at.tx {
            Some(transaction) => transaction,
            None => match ask.knowledge(&format!("time:{}", at.valid))? {
                Tx::START => (head.tx, at.valid),
                known => (known, at.valid),
            },
        };
        let lineage = registry.lineage(named.number, known)?;
        let hash = hash_at(&mut *reader, &head, known)?;
        Ok(View { branch: named.number, branch_name: named.name.clone(), known, hash, valid, lineage, release: None })
    }

    /// Returns the view of a branch at a given transaction and valid time.
    pub fn view_fixed(&self, branch: BranchNo, known: Tx, valid: Time) -> Result<View> {
        let (mut reader, head) = self.open()?;
        let registry = self.registry_in(&mut *reader, &head)?;
        let branch_name = registry.branch_name(branch).to_string();
        let known = known.min(head.tx);
        let lineage = registry.lineage(branch, known)?;
        let hash = hash_at(&mut *reader, &head, known)?;
        Ok(View { branch, branch_name, known, hash, valid, lineage, release: None })
    }

    pub(super) fn view_in(&self, reader: &mut dyn Reader, head: Head, spec: &ViewSpec) -> Result<View> {
        let registry = self.registry_in(reader, &head)?;
        let branch = registry.branch(spec.branch.as_deref().unwrap_or("main"))?;
        let lineage = registry.lineage(branch.number, head.tx)?;
        let now = self.clock.now().max(head.recorded_at);
        let mut ask = MomentResolver { reader, registry: &registry, head, lineage: &lineage };
        let at = match &spec.as_of {
            Some(word) => ask.moment(word)?,
            None => ResolvedMoment { known: head.tx, valid: now, tx: None, release: None },
        };
        if let Some(name) = at.release {
            if spec.known_at.is_some() || spec.branch.is_some() {
                return Err(Error::invalid(
                    ErrorCode::ReleaseIsFixed,
                    format!("release `{name}` already fixes branch and times"),
                )
                .hint("leave out `branch` and `known_at`"));
            }
            let release = registry.release(&name)?;
            return Ok(View {
                branch: release.branch,
                branch_name: registry.branch_name(release.branch).into(),
                known: release.tx,
                hash: hash_at(ask.reader, &head, release.tx)?,
                valid: release.valid_at,
                lineage: registry.lineage(release.branch, release.tx)?,
                release: Some(release.name.clone()),
            });
        }
        let known = match &spec.known_at {
            Some(word) => ask.knowledge(word)?,
            None => at.known,
        };
        Ok(View {
            branch: branch.number,
            branch_name: branch.name.clone(),
            known,
            hash: hash_at(ask.reader, &head, known)?,
            valid: at.valid,
            lineage: registry.lineage(branch.number, known)?,
            release: None,
        })
    }
}

/// Returns the hash of a transaction of the log.
pub(super) fn hash_at(reader: &mut dyn Reader, head: &Head, tx: Tx) -> Result<Hash> {
    if tx == head.tx {
        return Ok(head.hash);
    }
    let position = reader.position(tx)?.ok_or_else(|| {
        Error::not_found(ErrorCode::UnknownTransaction, format!("no transaction {tx}"))
            .hint(format!("the last one is {}", head.tx))
    })?;
    Ok(position.hash)
}

struct ResolvedMoment {
    known: Tx,
    valid: Time,
    /// The transaction that was named, by number, commit or agent, and its time.
    tx: Option<(Tx, Time)>,
    release: Option<String>,
}

struct MomentResolver<'a> {
    reader: &'a mut dyn Reader,
    registry: &'a Registry,
    head: Head,
    lineage: &'a Lineage,
}

impl MomentResolver<'_> {
    /// Resolves a word to the one moment that exists. Fails if there is none or more than one.
    fn moment(&mut self, word: &str) -> Result<ResolvedMoment> {
        let readings = Moment::readings(word)?;
        if let [only] = readings.as_slice() {
            return self.look_up(only);
        }
        let mut found = Vec::new();
        for reading in readings {
            match self.look_up(&reading) {
                Ok(at) => found.push((reading, at)),
                Err(e) if e.kind == lukasa_model::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        if found.len() > 1 {
            let names: Vec<_> = found.iter().map(|(reading, _)| reading.to_string()).collect();
            return Err(Error::invalid(
                ErrorCode::AmbiguousMoment,
                format!("`{word}` can be read in more than one way"),
            )
            .hint(format!("write one of: {}", names.join(", ")))
            .details(json!({"readings": names})));
        }
        found.pop().map(|(_, at)| at).ok_or_else(|| {
            Error::not_found(
                ErrorCode::UnknownMoment,
                format!("`{word}` names no transaction, commit, release, tag or agent"),
            )
            .hint("`lukasa log` and `lukasa release list` show what there is")
        })
    }

    fn look_up(&mut self, moment: &Moment) -> Result<ResolvedMoment> {
        match moment {
            Moment::Time(time) => Ok(ResolvedMoment { known: self.head.tx, valid: *time, tx: None, release: None }),
            Moment::Tx(tx) => {
                let transaction = self.transaction(*tx)?;
                let valid = transaction.recorded_at;
                Ok(ResolvedMoment { known: *tx, valid, tx: Some((*tx, valid)), release: None })
            }
            Moment::Commit(prefix) => {
                let transaction = self.commit(prefix)?;
                // An imported commit describes the time of the commit, not the time at which it was recorded.
                let imported = transaction.header.kind == TransactionKind::Import;
                let then = if imported { transaction.valid_at() } else { transaction.recorded_at };
                let tx = Some((transaction.tx, then));
                Ok(ResolvedMoment { known: self.head.tx, valid: transaction.valid_at(), tx, release: None })
            }
            Moment::Agent(agent) => {
                let last = self.reader.find_transactions(&TransactionFilter::Agent(agent.clone()), 1)?.pop();
                let last = last.ok_or_else(|| {
                    Error::not_found(ErrorCode::UnknownAgent, format!("agent `{agent}` has not written anything"))
                })?;
                let tx = Some((last.tx, last.recorded_at));
                Ok(ResolvedMoment { known: last.tx, valid: last.recorded_at, tx, release: None })
            }
            Moment::Release(name) => self.release(&self.registry.release(name)?.name),
            Moment::Tag(name) => self.release(&self.registry.tag(name)?.release),
        }
    }

    fn release(&self, name: &str) -> Result<ResolvedMoment> {
        let release = self.registry.release(name)?;
        Ok(ResolvedMoment { known: release.tx, valid: release.valid_at, tx: None, release: Some(release.name.clone()) })
    }

    fn transaction(&mut self, tx: Tx) -> Result<Transaction> {
        self.reader.transactions(tx, tx, 1)?.pop().ok_or_else(|| {
            Error::not_found(ErrorCode::UnknownTransaction, format!("no transaction {tx}"))
                .hint(format!("the last one is {}", self.head.tx))
        })
    }

    /// Returns the newest transaction along the branch's lineage whose tree was that commit.
    fn commit(&mut self, prefix: &str) -> Result<Transaction> {
        let mut found = self.reader.find_transactions(&TransactionFilter::Commit(prefix.into()), COMMIT_MATCHES)?;
        found.retain(|t| self.lineage.cap(t.branch).is_some_and(|cap| t.tx <= cap));
        let mut commits: Vec<_> = found.iter().filter_map(|t| t.header.git_commit.clone()).collect();
        commits.sort();
        commits.dedup();
        match commits.as_slice() {
            [] => Err(Error::not_found(
                ErrorCode::UnknownCommit,
                format!("no transaction on this branch is commit `{prefix}`"),
            )),
            [_] => Ok(found.swap_remove(0)),
            many => {
                Err(Error::invalid(ErrorCode::AmbiguousCommit, format!("more than one commit begins with `{prefix}`"))
                    .hint(format!("write one of: {}", many.join(", "))))
            }
        }
    }

    fn knowledge(&mut self, word: &str) -> Result<Tx> {
        let fault = || {
            Error::invalid(ErrorCode::InvalidMoment, format!("`{word}` is not a state of knowledge"))
                .hint("`known_at` takes tx:42 or time:2026-01-31")
        };
        match Moment::readings(word)?.first() {
            Some(Moment::Tx(tx)) => self.transaction(*tx).map(|t| t.tx),
            Some(Moment::Time(time)) => {
                let last = self.reader.find_transactions(&TransactionFilter::Until(*time), 1)?.pop();
                Ok(last.map_or(Tx::START, |t| t.tx))
            }
            _ => Err(fault()),
        }
    }
}
