//! Who may do what, and when to stop: what surfaces know of a caller beside the request.

use lukasa_model::{Error, ErrorKind, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The scope that covers every other.
const ADMIN: &str = "admin";
/// Figures of every stage of a search.
pub const SEARCH_DEBUG: &str = "graph:search:debug";

/// Scopes of a caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Grants {
    /// Whoever owns the store: everything.
    #[default]
    All,
    /// These only; `x:*` covers all that begin with `x:`.
    Of(BTreeSet<String>),
}

impl Grants {
    pub fn of<S: Into<String>>(scopes: impl IntoIterator<Item = S>) -> Grants {
        Grants::Of(scopes.into_iter().map(Into::into).collect())
    }

    pub fn cover(&self, scope: &str) -> bool {
        let covers = |own: &String| match own.strip_suffix('*') {
            Some(beginning) if beginning.ends_with(':') => scope.starts_with(beginning),
            _ => own == scope || own == ADMIN,
        };
        match self {
            Grants::All => true,
            Grants::Of(scopes) => scopes.iter().any(covers),
        }
    }

    /// Refuses what is not covered.
    pub fn check(&self, operation: &str, scope: &str) -> Result<()> {
        if self.cover(scope) {
            return Ok(());
        }
        if scope == SEARCH_DEBUG {
            crate::telemetry::metrics().debug_denied.inc();
        }
        Err(Error::new(ErrorKind::Forbidden, "missing_scope", format!("`{operation}` needs the scope `{scope}`"))
            .hint("ask for a token or key with this scope"))
    }
}

/// Tells long work that nobody waits for it any more. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn check(&self) -> Result<()> {
        if self.is_stopped() {
            return Err(Error::new(ErrorKind::Timeout, "cancelled", "the caller no longer waits for an answer"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_cover_themselves_what_they_begin_and_admin_all() {
        let some = Grants::of(["graph:read", "graph:search:*"]);
        for (scope, covered) in [
            ("graph:read", true),
            ("graph:search:read", true),
            ("graph:search", false),
            ("graph:write", false),
            ("graph", false),
            ("admin", false),
        ] {
            assert_eq!(some.cover(scope), covered, "{scope}");
        }
        assert!(Grants::of(["admin"]).cover("graph:write") && Grants::All.cover("admin"));
        assert!(!Grants::of(["*"]).cover("graph:read"), "a bare star is no scope");
        let refused = some.check("put", "graph:write").unwrap_err();
        assert_eq!((refused.kind, refused.code), (ErrorKind::Forbidden, "missing_scope"));
    }
}
