//! From what an agent says to what it means: names to targets, targets to objects and their versions.

use crate::code::place::Place;
use crate::code::symbols::Symbols;
use crate::{Context, Engine};
use lukasa_model::claims::{ClaimType, Held, Target};
use lukasa_model::{Content, Error, Reference, Result};
use lukasa_store::ledger::{Found, ViewSpec};
use lukasa_store::{Fields, Ledger};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Types of what files define, the most usual first.
const SYMBOLS: [&str; 7] = ["FUNCTION", "METHOD", "CLASS", "INTERFACE", "TYPE", "VARIABLE", "MODULE"];

/// Where an agent works.
#[derive(Clone, Debug, Default)]
pub struct Worktree {
    /// The folder it named, and the root of the working tree around it.
    folder: Option<PathBuf>,
    pub root: Option<PathBuf>,
    pub branch: Option<String>,
}

impl Worktree {
    /// Looks at a folder; none where nobody named one. A branch that is named counts.
    pub fn of(path: Option<&str>, branch: Option<&str>) -> Result<Worktree> {
        let Some(path) = path else { return Ok(Worktree { branch: branch.map(str::to_owned), ..Worktree::default() }) };
        let place = Place::of(Path::new(path), branch)?;
        let folder = Path::new(path).canonicalize().ok();
        Ok(Worktree { folder, root: Some(place.root), branch: Some(place.branch) })
    }

    /// A path as the project knows it: from the root of the working tree.
    fn rooted(&self, text: &str) -> Result<String> {
        let (path, symbol) = text.split_once("::").map_or((text, None), |(path, symbol)| (path, Some(symbol)));
        let Some(root) = &self.root else {
            if Path::new(path).is_absolute() {
                return Err(outside(path));
            }
            return Ok(text.to_owned());
        };
        let whole = |path: &str| match symbol {
            Some(symbol) => format!("{path}::{symbol}"),
            None => path.to_owned(),
        };
        if Path::new(path).is_absolute() {
            let real = Path::new(path).canonicalize().unwrap_or_else(|_| PathBuf::from(path));
            let inside = real.strip_prefix(root).or_else(|_| Path::new(path).strip_prefix(root));
            return inside.map(|inside| whole(&inside.to_string_lossy())).map_err(|_| outside(path));
        }
        // Named from the folder it works in, where that is another one than the root and the file is there.
        if let Some(folder) = self.folder.as_ref().filter(|folder| *folder != root)
            && !root.join(path).exists()
            && let Ok(real) = folder.join(path).canonicalize()
            && let Ok(inside) = real.strip_prefix(root)
        {
            return Ok(whole(&inside.to_string_lossy()));
        }
        Ok(text.to_owned())
    }
}

fn outside(path: &str) -> Error {
    Error::invalid("invalid_target", format!("`{path}` is not within the working tree"))
        .hint("name files by their path from the root of the repository")
}

/// The target that is meant. What has the form of a path or a key need not exist yet; a bare name must.
pub fn meant(
    engine: &Engine,
    context: &mut Context<'_>,
    text: &str,
    kind: Option<ClaimType>,
    place: &Worktree,
) -> Result<Target> {
    let text = text.trim();
    if let Ok(id) = Uuid::try_parse(text) {
        let ledger = engine.ledger(&context.scope);
        let found = find(&ledger, &Reference::Id(id), place)?;
        return of_found(&found, text);
    }
    let absolute = Path::new(text).is_absolute();
    if let Some(target) = if absolute { None } else { Target::read(text, kind)? } {
        return match target.kind {
            ClaimType::File | ClaimType::Function => Target::code(&place.rooted(&target.name)?),
            _ => Ok(target),
        };
    }
    if absolute {
        return Target::code(&place.rooted(text)?);
    }
    let ledger = engine.ledger(&context.scope);
    // Its own key may be such a word: a file without a dot.
    if let Ok(found) = find(&ledger, &Reference::exact("FILE", text), place) {
        return of_found(&found, text);
    }
    let look = engine.look(context, &ViewSpec { branch: place.branch.clone(), ..ViewSpec::default() })?;
    let symbols = Symbols::new(&look);
    let node = symbols.find(text).map_err(|e| match e.code {
        "not_found" | "unknown_symbol" => {
            Error::not_found("unknown_target", format!("nothing here is called `{text}`")).hint(
                e.hint.unwrap_or_else(|| {
                    "name a file by its path, a function as path::name, or task:… or feature:…".into()
                }),
            )
        }
        _ => e,
    })?;
    let key = symbols.key(node);
    Target::of_object(look.snapshot.type_name(node), &key).ok_or_else(|| unclaimable(text))
}

fn find(ledger: &Ledger, reference: &Reference, place: &Worktree) -> Result<Found> {
    let spec = ViewSpec { branch: place.branch.clone(), ..ViewSpec::default() };
    // The branch of a working tree that was never indexed is not known.
    let view = ledger.view(&spec).or_else(|_| ledger.view(&ViewSpec::default()))?;
    ledger.find(&view, reference)
}

fn of_found(found: &Found, text: &str) -> Result<Target> {
    let key = found.thing.key.as_deref().ok_or_else(|| unclaimable(text))?;
    Target::of_object(&found.thing.type_name, key).ok_or_else(|| unclaimable(text))
}

fn unclaimable(text: &str) -> Error {
    Error::invalid("invalid_target", format!("`{text}` is nothing that can be claimed"))
        .hint("claims are on files, functions and other symbols of files, tasks and features")
}

impl Engine {
    /// The object that a target is, on a branch or on any.
    pub fn object_of(&self, ledger: &Ledger, target: &Target, branch: Option<&str>) -> Result<Option<Uuid>> {
        Ok(self.state_of(ledger, target, branch, None)?.map(|(id, _)| id))
    }

    /// What tells versions of a target apart: the hash of its text where it is code, else of all it says.
    pub(super) fn version_of(&self, ledger: &Ledger, target: &Target, branch: Option<&str>) -> Result<Option<String>> {
        let found = self.state_of(ledger, target, branch, None)?;
        Ok(found.map(|(_, version)| version))
    }

    /// Whether a target has another version than when it was claimed.
    pub fn is_stale(&self, ledger: &Ledger, claim: &Held) -> Result<bool> {
        let now = self.version_of(ledger, &claim.at(), claim.branch.as_deref())?;
        Ok(claim.target_version_sha.is_some() && now != claim.target_version_sha)
    }

    /// A target's object and version in a view, now or after a transaction.
    pub(super) fn state_of(
        &self,
        ledger: &Ledger,
        target: &Target,
        branch: Option<&str>,
        after: Option<u64>,
    ) -> Result<Option<(Uuid, String)>> {
        let as_of = after.map(|tx| format!("tx:{tx}"));
        let spec = ViewSpec { branch: branch.map(str::to_owned), as_of, known_at: None };
        let view = match ledger.view(&spec) {
            Ok(view) => view,
            Err(_) if after.is_some() => return Ok(None),
            Err(_) => ledger.view(&ViewSpec::default())?,
        };
        let types: &[&str] = match target.kind {
            ClaimType::File => &["FILE"],
            ClaimType::Function => &SYMBOLS,
            ClaimType::Task => &["Task"],
            ClaimType::Feature => &["Feature"],
        };
        for type_name in types {
            let found = ledger.keyed(&view, type_name, std::slice::from_ref(&target.name), Fields::Content)?.pop();
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
