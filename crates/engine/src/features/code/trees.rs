//! Assigns working trees to branches, and makes requests without a view use the branch of their caller's working tree.

use super::index::PassOptions;
use super::working_tree::WorkingTree;
use crate::feature::{FollowedRequest, IndexLag};
use crate::registry::{Effect, Operation};
use crate::{Context, Engine};
use lukasa_code::type_names;
use lukasa_model::json::Hash;
use lukasa_model::{Error, ErrorCode, ErrorKind, Moment, Result, Scope};
use lukasa_store::Ledger;
use lukasa_store::ledger::ViewSpec;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// What distinguishes working trees besides their folders.
#[derive(Clone, Debug, Default)]
pub struct TreeNames {
    /// Name of this machine: two machines may have clones in folders of the same name.
    pub machine: String,
    /// The folder of the store. A tree that contains its store is the same tree after it was moved.
    pub home: Option<PathBuf>,
    /// Replaces machine and folder: a name that several trees share, such as the runners of one pipeline.
    pub name: Option<String>,
}

/// Identifies the clone that a working tree belongs to. All worktrees of one clone share it, because git allows a
/// branch to be checked out in only one of them. A detached working tree has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeId(u64);

impl TreeId {
    /// The id of the clone that a working tree belongs to.
    pub fn of(names: &TreeNames, place: &WorkingTree) -> TreeId {
        let text = match (&names.name, place.clone_dir()) {
            (Some(name), _) => format!("name\0{name}"),
            (None, folder) if names.home.as_deref().is_some_and(|home| belongs(folder, home)) => "home".to_owned(),
            (None, folder) => format!("folder\0{}\0{}", names.machine, folder.display()),
        };
        let hash = Hash::of(text.as_bytes());
        let first: [u8; 8] = hash.0[..8].try_into().expect("a hash has 32 bytes");
        // Some stores keep marks as signed numbers.
        TreeId(u64::from_le_bytes(first) >> 1)
    }

    /// Name of the mark that is set once the tree was indexed into a project.
    fn known(self) -> String {
        format!("tree {:016x}", self.0)
    }

    /// A short suffix that distinguishes two trees with the same folder name.
    fn short(self) -> String {
        format!("{:016x}", self.0)[..4].to_owned()
    }
}

/// Whether a shared git folder, or a folder outside of git, is that of the tree at `home`.
fn belongs(folder: &Path, home: &Path) -> bool {
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    folder == home || folder == home.join(".git")
}

/// Name of the mark with the id of the tree that a branch is indexed from.
fn keeper(branch: &str) -> String {
    format!("tree of {branch}")
}

const TAKEN: ErrorCode = ErrorCode::BranchTaken;
const UNKNOWN: ErrorCode = ErrorCode::UnknownTree;

/// The branch that a working tree is indexed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeBranch {
    id: TreeId,
    pub branch: String,
    /// The git branch, if that one is indexed from another clone and this tree has a separate branch.
    pub apart_from: Option<String>,
}

impl TreeBranch {
    /// The branch to create this one from, if it is missing.
    pub fn parent(&self) -> &str {
        self.apart_from.as_deref().unwrap_or("main")
    }

    /// An explanation with a hint, if the tree has a separate branch.
    pub fn explanation(&self) -> Option<String> {
        let other = self.apart_from.as_ref()?;
        Some(format!(
            "`{other}` is kept from another clone; this working tree is on `{}`; `lukasa index --take-over` makes it the \
             one `{other}` is kept from",
            self.branch
        ))
    }
}

/// The branch that this tree is indexed on: the git branch, unless that one is indexed from another clone.
pub fn branch_of_tree(engine: &Engine, scope: &Scope, place: &WorkingTree, take_over: bool) -> Result<TreeBranch> {
    let id = TreeId::of(engine.tree_names(), place);
    let other = engine.store().derived().mark(scope, &keeper(&place.branch))?.filter(|keeper| *keeper != id.0);
    Ok(match other {
        Some(_) if !take_over => separate_branch(engine, place),
        _ => TreeBranch { id, branch: place.branch.clone(), apart_from: None },
    })
}

/// The separate branch of a tree whose git branch is indexed from another clone.
pub fn separate_branch(engine: &Engine, place: &WorkingTree) -> TreeBranch {
    let id = TreeId::of(engine.tree_names(), place);
    let folder = place.root.file_name().and_then(|name| name.to_str()).unwrap_or("tree");
    let plain: String = folder.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let branch = format!("{}@{plain}-{}", place.branch, id.short());
    TreeBranch { id, branch, apart_from: Some(place.branch.clone()) }
}

/// Whether it is recorded which tree the branch is indexed from.
fn has_keeper(engine: &Engine, scope: &Scope, kept: &TreeBranch) -> Result<bool> {
    Ok(engine.store().derived().mark(scope, &keeper(&kept.branch))?.is_some())
}

/// Records this tree as the one its branch is indexed from, before anything is written. Of two clones that are indexed
/// at the same time, the second is refused. Returns whether the record is new.
pub fn take_branch(engine: &Engine, scope: &Scope, kept: &TreeBranch) -> Result<bool> {
    let (derived, name) = (engine.store().derived(), keeper(&kept.branch));
    if derived.mark(scope, &name)? == Some(kept.id.0) {
        return Ok(false);
    }
    match derived.claim_mark(scope, &name, kept.id.0) {
        Ok(holder) if holder == kept.id.0 => Ok(true),
        Ok(_) => Err(Error::conflict(TAKEN, format!("`{}` is kept from another clone", kept.branch)).hint("try again")),
        Err(e) => Err(e),
    }
}

/// Undoes [`take_branch`] if nothing could be written.
pub fn release_branch(engine: &Engine, scope: &Scope, kept: &TreeBranch) -> Result<()> {
    engine.store().derived().remove_mark(scope, &keeper(&kept.branch))
}

/// Whether another clone took the branch first.
pub fn is_overtaken(error: &Error) -> bool {
    error.code == TAKEN
}

/// Returns an error for a pass on behalf of a read if the branch has code from an unknown tree, such as a restored or
/// imported one. The pass would end every fact that this tree does not have.
pub fn check_own(engine: &Engine, scope: &Scope, kept: &TreeBranch) -> Result<()> {
    let known = engine.store().derived().mark(scope, &kept.id.known())?.is_some();
    if known || has_keeper(engine, scope, kept)? {
        return Ok(());
    }
    let message = format!("it is not known which working tree the code of `{}` is from", kept.branch);
    Err(Error::conflict(UNKNOWN, message).hint("`lukasa index` (`index_directory`) makes it this one"))
}

/// Records that a tree was indexed, and that its branch is indexed from it.
pub fn record(engine: &Engine, scope: &Scope, kept: &TreeBranch) -> Result<()> {
    let derived = engine.store().derived();
    for (name, value) in [(kept.id.known(), 1), (keeper(&kept.branch), kept.id.0)] {
        if derived.mark(scope, &name)? != Some(value) {
            derived.set_mark(scope, &name, value)?;
        }
    }
    Ok(())
}

/// Whether a tree was indexed into a project before, on any branch.
pub fn is_known(engine: &Engine, scope: &Scope, place: &WorkingTree) -> Result<bool> {
    let id = TreeId::of(engine.tree_names(), place);
    Ok(engine.store().derived().mark(scope, &id.known())?.is_some())
}

impl Engine {
    /// Sets the branch of a request without a view to the one checked out in the caller's working tree. Updates the
    /// index first if the operation reads. A tree that was never indexed into this project is not indexed, unless the
    /// operation indexes first: reads are then about the code of other trees, and report that.
    pub(crate) fn follow_tree(
        &self,
        context: &mut Context<'_>,
        operation: &Operation,
        request: Value,
    ) -> Result<FollowedRequest> {
        let unchanged = |request| Ok(FollowedRequest { request, behind: None });
        let reads = operation.meta.effect == Effect::Read;
        let field = operation.meta.branch_field;
        let Some(tree) = context.tree.clone() else { return unchanged(request) };
        // A request that names a working tree is about that tree.
        if !operation.fields().contains_key(field)
            || (!operation.meta.places.is_empty() && !operation.meta.indexes_first)
        {
            return unchanged(request);
        }
        let mut request = operation.read(request)?;
        if operation.meta.places.iter().any(|name| request.get(name).is_some_and(is_set)) {
            return unchanged(request);
        }
        let Some(given) = request.as_object_mut() else { return unchanged(request) };
        if operation.meta.instead_of_view.iter().any(|name| given.get(*name).is_some_and(is_set)) {
            return unchanged(request);
        }
        let ledger = self.ledger(&context.scope);
        let place = match WorkingTree::of(&tree, None) {
            Ok(place) => place,
            Err(e) => {
                let branch = "main".to_owned();
                return Ok(FollowedRequest {
                    request,
                    behind: Some(IndexLag { branch, files: None, because: e.message }),
                });
            }
        };
        if let Some(name) = given.get(field).and_then(Value::as_str) {
            if let Some(ours) = own_name(&ledger, &place, name)? {
                given.insert(field.into(), Value::String(ours));
            }
            return unchanged(request);
        }
        let back = ["as_of", "known_at", "cursor"].iter().any(|name| given.get(*name).is_some_and(is_set));
        let known = is_known(self, &context.scope, &place)?;
        if !known && !operation.meta.indexes_first {
            // A write into another clone's branch must name it.
            let behind = match reads && !back && has_code(&ledger)? {
                true => Some(self.answer_from_others(&ledger, &place, given, field)?),
                false => None,
            };
            return Ok(FollowedRequest { request, behind });
        }
        let mut behind = None;
        if reads && !back {
            behind = self.bring_up_to_date(context, &place, known)?;
        }
        let branch = branch_of_tree(self, &context.scope, &place, false)?.branch;
        if branch != "main" && exists(&ledger, &branch)? && !names_release(&ledger, given)? {
            given.insert(field.into(), Value::String(branch));
        }
        Ok(FollowedRequest { request, behind })
    }

    /// Sets the branch of a read from a tree that was never indexed into a project with code of other trees: the git
    /// branch if the project has it, else `main`.
    fn answer_from_others(
        &self,
        ledger: &Ledger,
        place: &WorkingTree,
        given: &mut Map<String, Value>,
        field: &str,
    ) -> Result<IndexLag> {
        let branch = match exists(ledger, &place.branch)? {
            true => place.branch.clone(),
            false => "main".to_owned(),
        };
        if branch != "main" {
            given.insert(field.into(), Value::String(branch.clone()));
        }
        let because = format!(
            "the working tree in `{}` was never indexed into this project; `lukasa index` (`index_directory`) does it",
            place.root.display()
        );
        Ok(IndexLag { branch, files: None, because })
    }

    /// Indexes what changed in a tree. If that is not possible, returns how far the index is behind.
    fn bring_up_to_date(
        &self,
        context: &mut Context<'_>,
        place: &WorkingTree,
        known: bool,
    ) -> Result<Option<IndexLag>> {
        if known && self.is_watched_and_current(&context.scope, &place.root) {
            return Ok(None);
        }
        let workspace = self.workspace(&context.scope, &place.root)?;
        let may_index = context.grants.cover("graph:write");
        let because = match may_index {
            true => match workspace.index(self, context, &PassOptions { bystander: true, ..PassOptions::default() }) {
                Ok(_) => return Ok(None),
                // The branch has code to answer from, although its tree is unknown.
                Err(e) if e.code == UNKNOWN => {
                    let branch = branch_of_tree(self, &context.scope, place, false)?.branch;
                    return Ok(Some(IndexLag { branch, files: None, because: e.message }));
                }
                // The caller gave up, or the tree was never indexed and there is nothing to answer from.
                Err(e) if !known || context.stop.check().is_err() => return Err(e),
                Err(e) => e.message,
            },
            false => "the caller may only read".to_owned(),
        };
        if !known {
            return Ok(None);
        }
        let kept = branch_of_tree(self, &context.scope, place, false)?;
        let ledger = self.ledger(&context.scope);
        let files = match ledger.view(&ViewSpec::on(&kept.branch)) {
            Ok(view) => workspace.pending(&ledger, &view).ok(),
            Err(_) => None,
        };
        match files {
            Some(0) => Ok(None),
            files => Ok(Some(IndexLag { branch: kept.branch, files, because })),
        }
    }
}

/// Whether source code was ever indexed into a project.
fn has_code(ledger: &Ledger) -> Result<bool> {
    match ledger.registry() {
        Ok(registry) => Ok(registry.object_type(type_names::FILE).is_some()),
        Err(e) if e.kind == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

fn is_set(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

fn exists(ledger: &Ledger, branch: &str) -> Result<bool> {
    match ledger.registry() {
        Ok(registry) => Ok(registry.branch(branch).is_ok()),
        Err(e) if e.kind == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// `main`, if a name is git's name of the default branch and no branch here has it.
fn own_name(ledger: &Ledger, place: &WorkingTree, name: &str) -> Result<Option<String>> {
    let is_default = place.repository.as_ref().is_some_and(|repository| repository.default_branch() == name);
    Ok((is_default && name != "main" && !exists(ledger, name)?).then(|| "main".to_owned()))
}

/// Whether `as_of` names a release or tag, which determines the branch.
fn names_release(ledger: &Ledger, given: &Map<String, Value>) -> Result<bool> {
    let Some(word) = given.get("as_of").and_then(Value::as_str) else { return Ok(false) };
    // An invalid moment is refused later, with a reason.
    let Ok(readings) = Moment::readings(word) else { return Ok(false) };
    let registry = ledger.registry()?;
    Ok(readings.iter().any(|reading| match reading {
        Moment::Release(name) => registry.release(name).is_ok(),
        Moment::Tag(name) => registry.tag(name).is_ok(),
        _ => false,
    }))
}
