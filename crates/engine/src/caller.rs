//! What surfaces know about a caller besides its request: scopes, agents, and when to stop.

use crate::Context;
use crate::registry::{Operation, snake_case};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The scope that covers every other.
const ADMIN: &str = "admin";
/// The scope for the figures of every stage of a search.
pub const SEARCH_DEBUG: &str = "graph:search:debug";

/// Scopes of a caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Grants {
    /// Everything: the owner of the store.
    #[default]
    All,
    /// These only; `x:*` covers every scope that begins with `x:`.
    Of(BTreeSet<String>),
}

impl Grants {
    /// Grants for these scopes only.
    pub fn of<S: Into<String>>(scopes: impl IntoIterator<Item = S>) -> Grants {
        Grants::Of(scopes.into_iter().map(Into::into).collect())
    }

    /// Whether a scope is granted.
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

    /// Returns `missing_scope` if the scope is not covered.
    pub fn check(&self, operation: &str, scope: &str) -> Result<()> {
        if self.cover(scope) {
            return Ok(());
        }
        if scope == SEARCH_DEBUG {
            crate::telemetry::metrics().debug_denied.inc();
        }
        Err(Error::new(
            ErrorKind::Forbidden,
            ErrorCode::MissingScope,
            format!("`{operation}` needs the scope `{scope}`"),
        )
        .hint("ask for a token or key with this scope"))
    }
}

/// Agents that a caller may act as: write, remember and hold claims under their name, and read what only they may read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Agents {
    /// All agents: for the owner of the store, and for credentials that name `*`.
    #[default]
    Any,
    Of {
        names: BTreeSet<String>,
        /// Prefixes of names, each ending with `/`.
        within: BTreeSet<String>,
    },
}

impl Agents {
    /// The agents that a credential names: `*` stands for all, `team/*` for all whose name begins with `team/`.
    pub fn bound<S: AsRef<str>>(named: impl IntoIterator<Item = S>) -> Agents {
        let (mut names, mut within) = (BTreeSet::new(), BTreeSet::new());
        for name in named {
            match name.as_ref() {
                "*" => return Agents::Any,
                name => {
                    match name.strip_suffix('*').filter(|beginning| beginning.ends_with('/') && beginning.len() > 1) {
                        Some(beginning) => within.insert(beginning.to_owned()),
                        None => names.insert(name.to_owned()),
                    }
                }
            };
        }
        Agents::Of { names, within }
    }

    /// The agents of a user whose credential names none: the agent with the user's name, and all whose name begins with
    /// it and a `/`. A `/` in the user's name is written `%2F`, so that no user's agents contain another's.
    pub fn of_user(user: &str) -> Agents {
        let own = user.replace('%', "%25").replace('/', "%2F");
        Agents::Of { within: BTreeSet::from([format!("{own}/")]), names: BTreeSet::from([own]) }
    }

    /// Whether the caller may act as an agent.
    pub fn cover(&self, agent: &str) -> bool {
        match self {
            Agents::Any => true,
            Agents::Of { names, within } => {
                let is_within = |beginning: &String| agent.len() > beginning.len() && agent.starts_with(&**beginning);
                names.contains(agent) || within.iter().any(is_within)
            }
        }
    }

    /// The agent of a caller that calls itself `called`: that name if the caller may use it, else the only agent of the
    /// caller, or the name under the caller's only prefix. None if that is ambiguous; then the request must name an
    /// agent.
    pub fn known_as(&self, called: Option<&str>) -> Option<String> {
        let called = called.map(str::trim).filter(|called| !called.is_empty());
        match (self, called) {
            (_, Some(called)) if self.cover(called) => Some(called.to_owned()),
            (Agents::Of { names, within }, called) => match (names.first(), within.first(), called) {
                (Some(only), None, _) if names.len() == 1 => Some(only.clone()),
                (_, Some(beginning), Some(called)) if within.len() == 1 => Some(format!("{beginning}{called}")),
                _ => None,
            },
            (Agents::Any, _) => None,
        }
    }

    /// Returns an error if the caller may not act as the agent.
    pub fn check(&self, agent: &str) -> Result<()> {
        if self.cover(agent) {
            return Ok(());
        }
        let own = match self {
            Agents::Any => vec![],
            Agents::Of { names, within } => names
                .iter()
                .cloned()
                .chain(within.iter().map(|beginning| format!("{beginning}*")))
                .take(NAMED)
                .collect(),
        };
        Err(Error::new(
            ErrorKind::Forbidden,
            ErrorCode::ForbiddenAgent,
            format!("this token or key does not act as `{agent}`"),
        )
        .hint(format!("leave `agent_id` out, or name one of: {}", own.join(", "))))
    }

    /// Returns an error if a request, or one in its list of requests, acts as an agent that the caller may not act as.
    pub(crate) fn check_request(&self, operation: &Operation, request: &Value) -> Result<()> {
        if *self == Agents::Any || operation.meta.of_any_agent {
            return Ok(());
        }
        let Some(fields) = request.as_object() else { return Ok(()) };
        for (name, value) in fields {
            let snake = snake_case(name);
            let alias = operation.meta.aliases.iter().find(|(alias, _)| *alias == snake);
            match (alias.map_or(&*snake, |(_, field)| *field), value) {
                (AGENT, Value::String(agent)) => self.check(agent)?,
                // Only the list of requests: contents of facts may have any `agent_id`.
                (field, Value::Array(several)) if operation.meta.several == Some(field) => {
                    for one in several.iter().filter_map(Value::as_object).flatten() {
                        if let (AGENT, Value::String(agent)) = (&*snake_case(one.0), one.1) {
                            self.check(agent)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The request field that names the acting agent.
const AGENT: &str = "agent_id";
/// Maximum number of agents that an error lists.
const NAMED: usize = 8;

/// Signals long work that the caller no longer waits. Clones share the signal.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// Requests that the work stops.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work should stop.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The signal for work that does not know about callers.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Returns `cancelled` if the work should stop.
    pub fn check(&self) -> Result<()> {
        if self.is_stopped() {
            return Err(Error::new(
                ErrorKind::Timeout,
                ErrorCode::Cancelled,
                "the caller no longer waits for an answer",
            ));
        }
        Ok(())
    }
}

/// The acting agent: the one in the request, or the caller's. Returns `no_agent` if there is neither.
pub fn acting_agent(given: Option<&str>, context: &Context<'_>) -> Result<String> {
    let agent = given.map(str::to_owned).or_else(|| context.agent.clone()).filter(|agent| !agent.trim().is_empty());
    agent.ok_or_else(|| {
        Error::invalid(ErrorCode::NoAgent, "the request names no agent")
            .hint("give `agent_id`; on the command line --agent, or LUKASA_AGENT")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_come_from_the_credential_or_the_user() {
        let bound = Agents::bound(["claude", "team/*", "*/x", "/*"]);
        for (agent, covered) in [
            ("claude", true),
            ("team/a", true),
            ("team/a/b", true),
            ("team/", false),
            ("team", false),
            ("claude2", false),
            ("", false),
            ("*/x", true),
            ("a/x", false),
            ("/a", false),
        ] {
            assert_eq!(bound.cover(agent), covered, "{agent}");
        }
        assert_eq!(Agents::bound(["a", "*"]), Agents::Any);
        let ada = Agents::of_user("ada");
        assert!(ada.cover("ada") && ada.cover("ada/claude") && !ada.cover("bob") && !ada.cover("adam"));
        assert!(
            !ada.cover("ada%2Fbob") && Agents::of_user("ada/bob").cover("ada%2Fbob/x"),
            "no user's agents contain another's"
        );
        assert!(!Agents::of_user("ada/bob").cover("ada/bob") && !Agents::of_user("*").cover("ada"));
        let refused = ada.check("bob").unwrap_err();
        assert_eq!((refused.kind, refused.code), (ErrorKind::Forbidden, ErrorCode::ForbiddenAgent));
        assert!(refused.hint.unwrap().contains("ada/*"));
    }

    #[test]
    fn a_caller_acts_under_a_name_of_its_own() {
        let known = |agents: &Agents, called: Option<&str>| agents.known_as(called);
        let some = |name: &str| Some(name.to_owned());
        assert_eq!((known(&Agents::Any, Some("claude")), known(&Agents::Any, None)), (some("claude"), None));
        let one = Agents::bound(["claude"]);
        assert_eq!((known(&one, Some("other")), known(&one, None)), (some("claude"), some("claude")));
        let two = Agents::bound(["claude", "codex"]);
        assert_eq!(
            (known(&two, Some("codex")), known(&two, Some("other")), known(&two, None)),
            (some("codex"), None, None)
        );
        let ada = Agents::of_user("ada");
        assert_eq!(
            (known(&ada, Some("claude")), known(&ada, Some("ada")), known(&ada, None)),
            (some("ada/claude"), some("ada"), None)
        );
        let team = Agents::bound(["team/*"]);
        assert_eq!((known(&team, Some("x")), known(&team, Some("  "))), (some("team/x"), None));
    }

    #[test]
    fn scopes_cover_themselves_and_their_prefix_and_admin_covers_all() {
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
        assert_eq!((refused.kind, refused.code), (ErrorKind::Forbidden, ErrorCode::MissingScope));
    }
}
