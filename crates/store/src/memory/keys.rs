//! Access keys in a plain map.

use super::MemoryStore;
use crate::keys::{AccessKey, AccessKeys, key_exists};
use lukasa_model::{Result, Time};
use std::collections::btree_map::Entry;

impl AccessKeys for MemoryStore {
    fn add(&self, key: &AccessKey) -> Result<()> {
        match self.keys.lock().entry(key.id.clone()) {
            Entry::Occupied(_) => Err(key_exists(&key.id)),
            Entry::Vacant(free) => {
                free.insert(key.clone());
                Ok(())
            }
        }
    }

    fn find(&self, id: &str) -> Result<Option<AccessKey>> {
        Ok(self.keys.lock().get(id).cloned())
    }

    fn of_tenant(&self, tenant: &str) -> Result<Vec<AccessKey>> {
        let mut own: Vec<_> = self.keys.lock().values().filter(|key| key.tenant == tenant).cloned().collect();
        own.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(own)
    }

    fn revoke(&self, tenant: &str, id: &str, at: Time) -> Result<Option<AccessKey>> {
        let mut keys = self.keys.lock();
        let own = keys.get_mut(id).filter(|key| key.tenant == tenant);
        Ok(own.map(|key| {
            key.revoked_at.get_or_insert(at);
            key.clone()
        }))
    }

    fn note_use(&self, tenant: &str, id: &str, at: Time) -> Result<bool> {
        let mut keys = self.keys.lock();
        let own = keys.get_mut(id).filter(|key| key.tenant == tenant);
        Ok(own.is_some_and(|key| {
            key.last_used = key.last_used.max(Some(at));
            true
        }))
    }
}
