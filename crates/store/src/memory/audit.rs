//! The audit trail in plain lists.

use super::MemoryStore;
use crate::audit::{AuditEntry, AuditFilter, AuditHead, AuditNote, AuditTrail, Seals, linked};
use lukasa_model::Result;
use std::collections::BTreeMap;

/// Chains by tenant and server.
pub(super) type AuditChains = BTreeMap<(String, String), (AuditHead, Vec<AuditEntry>)>;

impl AuditTrail for MemoryStore {
    fn append(&self, server: &str, notes: &[AuditNote], seals: &dyn Seals, _durable: bool) -> Result<()> {
        let mut chains = self.audit.lock();
        let end = |tenant: &str| {
            let chain = chains.get(&(tenant.to_string(), server.to_string()));
            Ok(chain.map(|(head, _)| head.clone()))
        };
        for (head, entries) in linked(server, notes, seals, end)? {
            let key = (head.tenant.clone(), head.server.clone());
            let chain = chains.entry(key).or_insert_with(|| (head.clone(), Vec::new()));
            chain.0 = head;
            chain.1.extend(entries);
        }
        Ok(())
    }

    fn heads(&self, tenant: &str) -> Result<Vec<AuditHead>> {
        let chains = self.audit.lock();
        Ok(chains.values().filter(|(head, _)| head.tenant == tenant).map(|(head, _)| head.clone()).collect())
    }

    fn servers(&self, tenant: &str) -> Result<Vec<String>> {
        let chains = self.audit.lock();
        Ok(chains.keys().filter(|(of, _)| of == tenant).map(|(_, server)| server.clone()).collect())
    }

    fn chain(&self, tenant: &str, server: &str, after: u64, limit: usize) -> Result<Vec<AuditEntry>> {
        let chains = self.audit.lock();
        let chain = chains.get(&(tenant.to_string(), server.to_string()));
        let entries = chain.into_iter().flat_map(|(_, entries)| entries);
        Ok(entries.filter(|entry| entry.number > after).take(limit).cloned().collect())
    }

    fn find(&self, tenant: &str, find: &AuditFilter, limit: usize) -> Result<Vec<AuditEntry>> {
        let chains = self.audit.lock();
        let own = chains.iter().filter(|((of, _), _)| of == tenant).flat_map(|(_, (_, entries))| entries);
        let mut found: Vec<_> = own.filter(|entry| find.matches(&entry.note)).cloned().collect();
        found.sort_by(|a, b| b.note.at.cmp(&a.note.at).then(a.server.cmp(&b.server)).then(b.number.cmp(&a.number)));
        found.truncate(limit);
        Ok(found)
    }
}
