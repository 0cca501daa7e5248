//! Resolves names of agents to claim targets, and targets to objects and their versions.

use crate::features::code::working_tree::AgentWorktree;
use crate::view::ViewGraph;
use crate::view::symbols::Symbols;
use crate::{Context, Engine};
use lukasa_code::type_names::{CLASS, FILE, FUNCTION, INTERFACE, METHOD, MODULE, TEST, TYPE, VARIABLE};
use lukasa_model::claims::{ClaimTarget, ClaimType, HeldClaim};
use lukasa_model::id::check_text;
use lukasa_model::limits::KEY_BYTES;
use lukasa_model::{Content, Error, ErrorCode, ErrorKind, Result, Tx};
use lukasa_store::ledger::ViewSpec;
use lukasa_store::{Ledger, VersionFields};
use uuid::Uuid;

/// Types of symbols, most common first.
const SYMBOLS: [&str; 8] = [FUNCTION, METHOD, CLASS, INTERFACE, TYPE, VARIABLE, TEST, MODULE];

/// The target that a name stands for. Tasks, features and files of the working tree that are not indexed need not be in
/// the graph. Anything else must be, unless `new` declares that it is yet to be created.
pub fn claim_target(
    engine: &Engine,
    context: &mut Context<'_>,
    text: &str,
    kind: Option<ClaimType>,
    new: bool,
    place: &AgentWorktree,
) -> Result<ClaimTarget> {
    let text = text.trim();
    check_text("target", text, KEY_BYTES)?;
    if let Some(target) = work(text, kind) {
        return Ok(target);
    }
    let origin = place.origin(context);
    let unknown = match graph_of_tree(engine, context, place)? {
        Some(look) => match look.seen_from(origin.clone()).named_target(text) {
            Err(e) if e.kind == ErrorKind::NotFound => Some(e),
            other => return other,
        },
        None => None,
    };
    let target = match ClaimTarget::read(&origin.spelled(text)?, kind) {
        Ok(target) => target,
        // `a.go:name` looks like `Type:key`.
        Err(_) if text.split(':').next().is_some_and(|word| word.contains(['.', '/'])) => None,
        Err(e) => return Err(e),
    };
    match target {
        Some(target) if new || (target.kind == ClaimType::File && origin.has_file(&target.name)) => Ok(target),
        target => Err(nothing(text, target.is_some(), unknown)),
    }
}

impl ViewGraph {
    fn named_target(&self, text: &str) -> Result<ClaimTarget> {
        // All overloads are one target, whichever of them is named.
        let node = Symbols::new(self).first_overload(self.node(text)?);
        let target = self.snapshot.key(node).and_then(|key| ClaimTarget::of_object(self.snapshot.type_name(node), key));
        target.ok_or_else(|| {
            Error::invalid(ErrorCode::InvalidTarget, format!("`{text}` is nothing that can be claimed"))
                .hint("claims are on files, functions and other symbols of files, tasks and features")
        })
    }
}

/// A task or a feature by any of its names.
fn work(text: &str, kind: Option<ClaimType>) -> Option<ClaimTarget> {
    let word =
        text.split_once(':').filter(|(_, rest)| !rest.is_empty() && !rest.starts_with(':')).map(|(word, _)| word);
    let is = |name: &str| word.is_some_and(|word| word.eq_ignore_ascii_case(name));
    match kind {
        Some(ClaimType::Task) => Some(ClaimTarget::task(text)),
        Some(ClaimType::Feature) => Some(ClaimTarget::feature(text)),
        _ if is("task") => Some(ClaimTarget::task(text)),
        _ if is("feature") => Some(ClaimTarget::feature(text)),
        _ => None,
    }
}

/// The graph of the working tree's branch; the default branch if that one was never indexed. None if the project is
/// empty.
fn graph_of_tree(engine: &Engine, context: &mut Context<'_>, place: &AgentWorktree) -> Result<Option<ViewGraph>> {
    let known = match engine.ledger(&context.scope).registry() {
        Ok(registry) => place.branch.clone().filter(|name| registry.branch(name).is_ok()),
        Err(e) if e.kind == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    engine.view_graph(context, &ViewSpec { branch: known, ..ViewSpec::default() }).map(Some)
}

fn nothing(text: &str, may_be_made: bool, found: Option<Error>) -> Error {
    let near = found.and_then(|e| e.hint).filter(|hint| hint.starts_with("closest"));
    let way = match may_be_made {
        true => "set `new` (--new) to claim what does not exist yet",
        false => "name a file by its path, a function as path::name, or task:… or feature:…",
    };
    let hint = near.map_or_else(|| way.to_owned(), |near| format!("{near}; {way}"));
    Error::not_found(ErrorCode::UnknownTarget, format!("nothing here is called `{text}`")).hint(hint)
}

impl Engine {
    /// The object of a target, on a branch or on any.
    pub fn object_of(&self, ledger: &Ledger, target: &ClaimTarget, branch: Option<&str>) -> Result<Option<Uuid>> {
        Ok(self.state_of(ledger, target, branch, None)?.map(|(id, _)| id))
    }

    /// The version of a target: the hash of its text if it is code, else of its whole content.
    pub(super) fn version_of(
        &self,
        ledger: &Ledger,
        target: &ClaimTarget,
        branch: Option<&str>,
    ) -> Result<Option<String>> {
        let found = self.state_of(ledger, target, branch, None)?;
        Ok(found.map(|(_, version)| version))
    }

    /// Whether a target has changed since it was claimed.
    pub fn is_stale(&self, ledger: &Ledger, claim: &HeldClaim) -> Result<bool> {
        let now = self.version_of(ledger, &claim.at(), claim.branch.as_deref())?;
        Ok(claim.target_version_sha.is_some() && now != claim.target_version_sha)
    }

    /// The object and version of a target in a view, now or after a transaction.
    pub(super) fn state_of(
        &self,
        ledger: &Ledger,
        target: &ClaimTarget,
        branch: Option<&str>,
        after: Option<Tx>,
    ) -> Result<Option<(Uuid, String)>> {
        let as_of = after.map(|tx| format!("tx:{tx}"));
        let spec = ViewSpec { branch: branch.map(str::to_owned), as_of, known_at: None };
        let view = match ledger.view(&spec) {
            Ok(view) => view,
            Err(_) if after.is_some() => return Ok(None),
            Err(_) => ledger.view(&ViewSpec::default())?,
        };
        let types: &[&str] = match target.kind {
            ClaimType::File => &[FILE],
            ClaimType::Function => &SYMBOLS,
            ClaimType::Task => &["Task"],
            ClaimType::Feature => &["Feature"],
        };
        for type_name in types {
            let found = ledger
                .states_keyed(&view, type_name, std::slice::from_ref(&target.name), VersionFields::Content)?
                .pop();
            let Some(state) = found else { continue };
            let Some(statement) = state.statement else { continue };
            let content = statement.parsed()?;
            let version = own_hash(&content).unwrap_or_else(|| statement.hash.to_string());
            return Ok(Some((state.thing.id, version)));
        }
        Ok(None)
    }
}

fn own_hash(content: &Content) -> Option<String> {
    let text = |name: &str| content.properties.get(name).and_then(serde_json::Value::as_str);
    text("content_hash").or_else(|| text("hash")).map(str::to_owned)
}
