//! Verifies audit chains and reports the first entry that was changed, moved or removed.

use super::{AuditEntry, AuditHead, AuditTrail};
use lukasa_model::json::Hash;
use lukasa_model::{Result, Time};
use schemars::JsonSchema;
use serde::Serialize;

/// Entries read per page.
const PAGE: usize = 2_000;

/// Seals the end of a chain with a key that is not in the store, so that access to the store alone does not suffice to
/// forge an end.
pub trait Seals {
    /// Computes the seal of a head from its fields and the key.
    fn seal(&self, head: &AuditHead) -> Hash;

    /// Identifies the key without revealing it.
    fn key_id(&self) -> &str;

    /// Whether the seal of a head is valid; `None` when it was made with an unknown key.
    fn holds(&self, head: &AuditHead) -> Option<bool> {
        (head.seal_key == self.key_id()).then(|| self.seal(head) == head.seal)
    }
}

/// A chain that was verified to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChainReport {
    pub server: String,
    pub entries: u64,
    /// The time of the last entry.
    #[schemars(with = "Option<String>")]
    pub last_at: Option<Time>,
    /// Server, number and hash of the last entry. Noted elsewhere, it allows checking later that all entries up to it
    /// are intact.
    pub head: String,
    /// The end carries a valid seal of a known key. A chain without one is an error.
    pub sealed: bool,
}

/// The first flaw of a chain, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditFault {
    pub server: String,
    pub number: u64,
    /// What is wrong there.
    pub flaw: AuditFlaw,
}

/// What is wrong with an entry or with the end of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditFlaw {
    /// The entry differs from what was written.
    Changed,
    /// The entry with this number is missing.
    Missing,
    /// The entry with this number is in another place.
    Reordered,
    /// Entries after this one are missing.
    CutOff,
    /// From this entry on, there are entries that were not appended through the audit trail.
    Added,
    /// The seal does not match the end of the chain.
    WrongSeal,
    /// The end of the chain was sealed with an unknown key.
    UnknownSeal,
    /// There are entries, but no head.
    NoHead,
    /// The entry whose hash was noted elsewhere has changed or is missing.
    NotAsNoted,
}

impl AuditFlaw {
    /// Describes the flaw as a predicate, to follow the number of the entry.
    pub fn describe(self) -> &'static str {
        match self {
            AuditFlaw::Changed => "was changed",
            AuditFlaw::Missing => "is missing",
            AuditFlaw::Reordered => "is in another place",
            AuditFlaw::CutOff => "is the last one; the entries after it are missing",
            AuditFlaw::Added => "was added by other means",
            AuditFlaw::WrongSeal => "is the end of a chain whose seal is wrong",
            AuditFlaw::UnknownSeal => "is the end of a chain that was sealed with a key that is not known here",
            AuditFlaw::NoHead => "belongs to a chain whose end is missing",
            AuditFlaw::NotAsNoted => "is not the one that was noted",
        }
    }
}

/// Verifies every chain of a tenant. `noted` contains hashes of entries that were noted elsewhere, by server and
/// number.
pub fn walk(
    trail: &dyn AuditTrail,
    tenant: &str,
    seals: &dyn Seals,
    noted: &[(String, u64, Hash)],
    progress: &mut dyn FnMut(u64),
) -> Result<std::result::Result<Vec<ChainReport>, AuditFault>> {
    // Heads are read first: a chain may grow while it is verified, but it never gets shorter.
    let heads = trail.heads(tenant)?;
    let mut servers = trail.servers(tenant)?;
    servers.extend(heads.iter().map(|head| head.server.clone()));
    servers.extend(noted.iter().map(|(server, ..)| server.clone()));
    servers.sort();
    servers.dedup();
    let (mut reports, mut done) = (Vec::new(), 0);
    for server in servers {
        let head = heads.iter().find(|head| head.server == server);
        let noted: Vec<_> = noted.iter().filter(|(of, ..)| *of == server).map(|(_, n, hash)| (*n, *hash)).collect();
        let chain = Chain { trail, tenant, server: &server };
        match chain.walk(head, seals, &noted, &mut |entries| progress(done + entries))? {
            Ok(report) => {
                done += report.entries;
                reports.push(report);
            }
            Err((number, flaw)) => return Ok(Err(AuditFault { server, number, flaw })),
        }
    }
    Ok(Ok(reports))
}

struct Chain<'a> {
    trail: &'a dyn AuditTrail,
    tenant: &'a str,
    server: &'a str,
}

type Found<T> = std::result::Result<T, (u64, AuditFlaw)>;

impl Chain<'_> {
    fn walk(
        &self,
        head: Option<&AuditHead>,
        seals: &dyn Seals,
        noted: &[(u64, Hash)],
        progress: &mut dyn FnMut(u64),
    ) -> Result<Found<ChainReport>> {
        let (mut number, mut hash) = (0, AuditEntry::start(self.tenant, self.server));
        let (mut last_at, mut at_head, mut seen) = (None, None, 0);
        loop {
            let page = self.trail.chain(self.tenant, self.server, number, PAGE)?;
            if page.is_empty() {
                break;
            }
            for entry in page {
                if let Some(flaw) = self.flaw(&entry, number + 1, hash)? {
                    return Ok(Err((number + 1, flaw)));
                }
                (number, hash, last_at) = (entry.number, entry.hash, Some(entry.note.at));
                if head.is_some_and(|head| head.number == number) {
                    at_head = Some(hash);
                }
                if let Some((_, noted)) = noted.iter().find(|(of, _)| *of == number) {
                    if *noted != hash {
                        return Ok(Err((number, AuditFlaw::NotAsNoted)));
                    }
                    seen += 1;
                }
            }
            progress(number);
        }
        if let Some((missing, _)) = noted.iter().find(|(of, _)| *of > number || *of == 0) {
            return Ok(Err((*missing, AuditFlaw::NotAsNoted)));
        }
        debug_assert_eq!(seen, noted.len(), "every noted entry was compared");
        let Some(head) = head else {
            // A chain that was started during the verification has a head by now.
            return match self.trail.heads(self.tenant)?.iter().find(|head| head.server == self.server) {
                Some(head) => self.walk(Some(head), seals, noted, progress),
                None => Ok(Err((number, AuditFlaw::NoHead))),
            };
        };
        if number < head.number {
            return Ok(Err((number, AuditFlaw::CutOff)));
        }
        if at_head != Some(head.hash) {
            return Ok(Err((head.number, AuditFlaw::Changed)));
        }
        match seals.holds(head) {
            Some(true) => {}
            Some(false) => return Ok(Err((head.number, AuditFlaw::WrongSeal))),
            None => return Ok(Err((head.number, AuditFlaw::UnknownSeal))),
        }
        if number > head.number {
            // Appending entries moves the head too, so read it again.
            let now = self.trail.heads(self.tenant)?.into_iter().find(|head| head.server == self.server);
            if now.is_none_or(|now| now.number < number) {
                return Ok(Err((head.number + 1, AuditFlaw::Added)));
            }
        }
        let report = ChainReport {
            server: self.server.into(),
            entries: number,
            last_at,
            head: format!("{}@{number}={hash}", self.server),
            sealed: true,
        };
        Ok(Ok(report))
    }

    /// Returns what is wrong with the entry at the position of number `due`, whose predecessor has the hash `after`.
    fn flaw(&self, entry: &AuditEntry, due: u64, after: Hash) -> Result<Option<AuditFlaw>> {
        if entry.number == due && entry.previous == after && entry.hash == entry.digest() {
            return Ok(None);
        }
        // If the entry that belongs here exists elsewhere, it was moved.
        let mut from = 0;
        loop {
            let page = self.trail.chain(self.tenant, self.server, from, PAGE)?;
            let Some(last) = page.last() else { break };
            from = last.number;
            let moved = page.iter().any(|other| {
                other.number != due && other.previous == after && {
                    let here = AuditEntry { number: due, ..other.clone() };
                    here.digest() == other.hash
                }
            });
            if moved {
                return Ok(Some(AuditFlaw::Reordered));
            }
        }
        Ok(Some(if entry.number == due { AuditFlaw::Changed } else { AuditFlaw::Missing }))
    }
}
