//! Branches, releases, tags, types and settings: system objects, written as batches like all facts.

use super::{Committed, Ledger, ViewSpec};
use crate::{Head, Reader, VersionFields, Writer};
use lukasa_model::batch::{End, PutObject};
use lukasa_model::id::{PROJECT_WIDE, check_ref_name, check_type_name};
use lukasa_model::json::{self, Hash, Hasher};
use lukasa_model::transaction::Header;
use lukasa_model::types::{
    ObjectType, Registry, RelationshipType, Release, Settings, Tag, TypePack, check_names, check_schema, system,
};
use lukasa_model::version::FactKind;
use lukasa_model::{Batch, Branch, BranchMode, Error, ErrorCode, FactNo, Reference, Result, TransactionKind, Tx};
use rustc_hash::FxHashSet;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// A request to create a branch.
#[derive(Clone, Debug, Default)]
pub struct NewBranch {
    pub name: String,
    /// `main` when empty.
    pub parent: String,
    pub mode: BranchMode,
    /// The parent's transaction to fork at; defaults to its head.
    pub at: Option<Tx>,
    pub description: Option<String>,
}

/// A request to create a release.
#[derive(Clone, Debug, Default)]
pub struct NewRelease {
    pub name: String,
    /// `main` when empty.
    pub branch: String,
    /// The name of an existing release that it builds on.
    pub base: Option<String>,
    pub description: Option<String>,
}

impl Ledger {
    /// Creates a branch. Fails with `branch_exists`, or if its lineage would be too deep.
    pub fn create_branch(&self, new: &NewBranch, header: &Header) -> Result<Branch> {
        check_ref_name("branch", &new.name)?;
        let mut made = None;
        self.declare(TransactionKind::Branch, header, |registry, head| {
            if registry.branch(&new.name).is_ok() {
                return Err(Error::conflict(ErrorCode::BranchExists, format!("branch `{}` exists already", new.name)));
            }
            let parent = if new.parent.is_empty() { "main" } else { &new.parent };
            if parent == new.name {
                return Err(Error::invalid(
                    ErrorCode::CyclicBranch,
                    format!("branch `{parent}` cannot be its own parent"),
                ));
            }
            let parent = registry.branch(parent)?;
            let branch = Branch {
                number: registry.branches().iter().map(|b| b.number).max().unwrap_or(PROJECT_WIDE).next(),
                name: new.name.clone(),
                parent: Some(parent.number),
                mode: new.mode,
                fork: fork_point(new.at, head)?,
                closed: false,
                description: new.description.clone(),
            };
            // Rejects a lineage that would be too deep, before the branch exists.
            lukasa_model::Lineage::of(branch.number, head.tx, |number, tx| {
                if number == branch.number { Some(branch.clone()) } else { registry.branch_at(number, tx) }
            })?;
            made = Some(branch.clone());
            Ok(state(system::BRANCH, &branch.name, &branch, Some(0)))
        })?;
        made.ok_or_else(|| Error::internal("a branch was not made"))
    }

    /// Moves the fork of a pinned branch: from now on it sees its parent as of that transaction.
    pub fn move_fork(&self, name: &str, to: Option<Tx>, header: &Header) -> Result<Branch> {
        self.change_branch(name, header, |branch, head| {
            if branch.mode != BranchMode::Pinned {
                return Err(Error::invalid(
                    ErrorCode::BranchIsLive,
                    format!("branch `{name}` follows its parent live"),
                )
                .hint("only a pinned branch has a fork to move"));
            }
            branch.fork = fork_point(to, head)?;
            Ok(())
        })
    }

    /// Closes or reopens a branch. Branches are never deleted.
    pub fn set_closed(&self, name: &str, closed: bool, header: &Header) -> Result<Branch> {
        self.change_branch(name, header, |branch, _| {
            if branch.name == "main" {
                return Err(Error::invalid(ErrorCode::MainStaysOpen, "`main` cannot be closed"));
            }
            branch.closed = closed;
            Ok(())
        })
    }

    fn change_branch(
        &self,
        name: &str,
        header: &Header,
        change: impl FnOnce(&mut Branch, &Head) -> Result<()>,
    ) -> Result<Branch> {
        let mut made = None;
        self.declare(TransactionKind::Branch, header, |registry, head| {
            let mut branch = registry.branch(name)?.clone();
            change(&mut branch, head)?;
            made = Some(branch.clone());
            Ok(state(system::BRANCH, name, &branch, None))
        })?;
        made.ok_or_else(|| Error::internal("a branch was not changed"))
    }

    /// Freezes what is visible on a branch now. The members follow from a view that never changes; their count and
    /// digest are stored, so that `verify` can check them.
    pub fn create_release(&self, new: &NewRelease, header: &Header) -> Result<Release> {
        check_ref_name("release", &new.name)?;
        let branch = if new.branch.is_empty() { "main" } else { &new.branch };
        let registry = self.registry()?;
        let exists = || Error::conflict(ErrorCode::ReleaseExists, format!("release `{}` exists already", new.name));
        if registry.release(&new.name).is_ok() {
            return Err(exists());
        }
        if let Some(base) = &new.base {
            registry.release(base)?;
        }
        let view = self.view(&ViewSpec::on(branch))?;
        let mut release = Release {
            name: new.name.clone(),
            branch: view.branch,
            tx: view.known,
            valid_at: view.valid,
            objects: 0,
            relationships: 0,
            digest: Hash([0; 32]),
            base: new.base.clone(),
            description: new.description.clone(),
        };
        (release.objects, release.relationships, release.digest) = self.digest(&view)?;
        self.declare(TransactionKind::Release, header, |registry, _| {
            if registry.release(&new.name).is_ok() {
                return Err(exists());
            }
            Ok(state(system::RELEASE, &new.name.to_lowercase(), &release, Some(0)))
        })?;
        Ok(release)
    }

    /// Returns the numbers of objects and relationships visible in a view, and the hash over their ids and versions.
    /// System objects are not included.
    pub(super) fn digest(&self, view: &lukasa_model::View) -> Result<(u64, u64, Hash)> {
        let (mut objects, mut relationships, mut digest) = (0, 0, Hasher::default());
        for row in self.stream_view(view, VersionFields::Header)? {
            let row = row?;
            if row.is_system() {
                continue;
            }
            *(if row.thing.kind() == FactKind::Object { &mut objects } else { &mut relationships }) += 1;
            digest.add(row.thing.id.as_bytes());
            digest.add(&row.statement.version.0.to_be_bytes());
        }
        Ok((objects, relationships, digest.finish()))
    }

    /// Creates a tag for an existing release. Fails with `tag_exists`, because tags never move.
    pub fn create_tag(&self, tag: &Tag, header: &Header) -> Result<Tag> {
        check_ref_name("tag", &tag.name)?;
        let mut made = None;
        self.declare(TransactionKind::Tag, header, |registry, _| {
            if let Ok(there) = registry.tag(&tag.name) {
                let error = Error::conflict(
                    ErrorCode::TagExists,
                    format!("tag `{}` points to release `{}`", there.name, there.release),
                );
                return Err(error.hint("delete the tag and create it again, or choose another name"));
            }
            let tag = Tag { release: registry.release(&tag.release)?.name.clone(), ..tag.clone() };
            made = Some(tag.clone());
            Ok(state(system::TAG, &tag.name.to_lowercase(), &tag, Some(0)))
        })?;
        made.ok_or_else(|| Error::internal("a tag was not made"))
    }

    /// Replaces the description of a tag; `None` removes it.
    pub fn describe_tag(&self, name: &str, description: Option<String>, header: &Header) -> Result<Tag> {
        let mut made = None;
        self.declare(TransactionKind::Tag, header, |registry, _| {
            let tag = Tag { description, ..registry.tag(name)?.clone() };
            made = Some(tag.clone());
            Ok(state(system::TAG, &name.to_lowercase(), &tag, None))
        })?;
        made.ok_or_else(|| Error::internal("a tag was not changed"))
    }

    /// Deletes a tag. Its release stays.
    pub fn delete_tag(&self, name: &str, header: &Header) -> Result<Committed> {
        self.declare(TransactionKind::Tag, header, |registry, _| {
            let tag = registry.tag(name)?;
            Ok(End::new(Reference::exact(system::TAG, &tag.name.to_lowercase())).into())
        })
    }

    /// Declares the types of a pack in one transaction. Returns `None` when they are already declared. Types that the
    /// project declared itself under the same names are not changed.
    pub fn install(&self, pack: &TypePack, header: &Header) -> Result<Option<Tx>> {
        let label = pack.label();
        match self.registry() {
            Ok(registry) if missing(&registry, pack, &label, &|_| false).is_empty() => return Ok(None),
            // A project is created by its first write, which may be this one.
            Err(error) if error.code != ErrorCode::UnknownProject => return Err(error),
            _ => {}
        }
        pack.object_types.iter().try_for_each(check_object_type)?;
        pack.relationship_types.iter().try_for_each(check_relationship_type)?;
        let (mut writer, head) = self.open_to_write()?;
        let registry = self.registry_in(&mut *writer, &head)?;
        let used = used_types(&mut *writer)?;
        let writes = missing(&registry, pack, &label, &|name| used.contains(&name.to_lowercase()));
        let header = Header { kind: TransactionKind::Type, reason: Some(format!("pack {label}")), ..header.clone() };
        let batch = Batch { header, system: true, writes, ..Batch::on("main") };
        Ok(self.commit_declared(writer, head, &batch)?.tx)
    }

    /// Declares an object type or replaces its declaration; existing facts are not checked again.
    pub fn declare_object_type(&self, declared: &ObjectType, header: &Header) -> Result<Committed> {
        check_object_type(declared)?;
        let (mut writer, head) = self.open_to_write()?;
        let registry = self.registry_in(&mut *writer, &head)?;
        let known = registry.object_type(&declared.name);
        let key = known.map_or(declared.name.clone(), |t| t.name.clone());
        if known.is_some_and(|t| t.branchless) != declared.branchless {
            refuse_if_used(&mut *writer, &key)?;
        }
        self.declare_in(writer, head, TransactionKind::Type, header, |registry, _| {
            check_names(&key, &declared.aliases, |n| registry.object_type(n).map(|t| t.name.as_str()))?;
            Ok(state(system::OBJECT_TYPE, &key, &ObjectType { name: key.clone(), ..declared.clone() }, None))
        })
    }

    /// Declares a relationship type or replaces its declaration; existing facts are not checked again.
    pub fn declare_relationship_type(&self, declared: &RelationshipType, header: &Header) -> Result<Committed> {
        check_relationship_type(declared)?;
        let (mut writer, head) = self.open_to_write()?;
        let registry = self.registry_in(&mut *writer, &head)?;
        let known = registry.relationship_type(&declared.name);
        let key = known.map_or(declared.name.clone(), |t| t.name.clone());
        if known.is_some_and(|t| t.branchless) != declared.branchless {
            refuse_if_used(&mut *writer, &key)?;
        }
        self.declare_in(writer, head, TransactionKind::Type, header, |registry, _| {
            check_names(&key, &declared.aliases, |n| registry.relationship_type(n).map(|t| t.name.as_str()))?;
            Ok(state(
                system::RELATIONSHIP_TYPE,
                &key,
                &RelationshipType { name: key.clone(), ..declared.clone() },
                None,
            ))
        })
    }

    /// Replaces the settings of the project.
    pub fn set_settings(&self, settings: Settings, header: &Header) -> Result<Committed> {
        self.declare(TransactionKind::Type, header, |_, _| {
            Ok(state(system::SETTINGS, system::SETTINGS_KEY, &settings, None))
        })
    }

    /// Decides on a system object inside the write transaction, then records it.
    fn declare(
        &self,
        kind: TransactionKind,
        header: &Header,
        decide: impl FnOnce(&Registry, &Head) -> Result<lukasa_model::Write>,
    ) -> Result<Committed> {
        let (writer, head) = self.open_to_write()?;
        self.declare_in(writer, head, kind, header, decide)
    }

    fn declare_in(
        &self,
        mut writer: Box<dyn Writer + '_>,
        head: Head,
        kind: TransactionKind,
        header: &Header,
        decide: impl FnOnce(&Registry, &Head) -> Result<lukasa_model::Write>,
    ) -> Result<Committed> {
        let registry = self.registry_in(&mut *writer, &head)?;
        let write = decide(&registry, &head)?;
        let header = Header { kind, ..header.clone() };
        let batch = Batch { header, system: true, ..Batch::on("main") }.write(write);
        self.commit_declared(writer, head, &batch)
    }

    /// Commits the batch with the declaration.
    fn commit_declared(&self, mut writer: Box<dyn Writer + '_>, head: Head, batch: &Batch) -> Result<Committed> {
        let (committed, _) = self.commit_in(&mut *writer, head, batch)?;
        if let Some(after) = committed.after {
            writer.commit()?;
            self.wrote(committed.before, after);
        }
        Ok(committed)
    }
}

fn check_object_type(declared: &ObjectType) -> Result<()> {
    check_type_name(&declared.name)?;
    check_schema(&declared.schema)?;
    check_pointers(declared.merge.keys().chain(&declared.ignored_paths).chain(&declared.embedding.relevant_paths))?;
    declared.aliases.iter().try_for_each(|alias| check_type_name(alias))
}

fn check_relationship_type(declared: &RelationshipType) -> Result<()> {
    check_type_name(&declared.name)?;
    check_schema(&declared.schema)?;
    check_pointers(declared.merge.keys().chain(&declared.ignored_paths))?;
    declared.aliases.iter().try_for_each(|alias| check_type_name(alias))
}

/// Returns the declarations of a pack that a project does not have, or has from another version of the pack.
fn missing(
    registry: &Registry,
    pack: &TypePack,
    label: &str,
    is_used: &dyn Fn(&str) -> bool,
) -> Vec<lukasa_model::Write> {
    let own =
        |known: Option<&str>| known.is_some_and(|known| known != label && known.split('@').next() == Some(&pack.name));
    // Versions on a branch would hide project-wide ones, so a type with facts keeps its `branchless` setting.
    let branchless = |name: &str, known: Option<bool>, wanted: bool| match is_used(name) {
        true => known.unwrap_or(false),
        false => wanted,
    };
    let mut writes = Vec::new();
    for declared in &pack.object_types {
        let known = registry.object_type(&declared.name);
        if known.is_none_or(|known| own(known.pack.as_deref())) {
            let aliases = free(&declared.aliases, |name| registry.object_type(name).is_none() || known.is_some());
            let branchless = branchless(&declared.name, known.map(|known| known.branchless), declared.branchless);
            let stated = ObjectType { pack: Some(label.into()), aliases, branchless, ..declared.clone() };
            writes.push(state(system::OBJECT_TYPE, &declared.name, &stated, None));
        }
    }
    for declared in &pack.relationship_types {
        let known = registry.relationship_type(&declared.name);
        if known.is_none_or(|known| own(known.pack.as_deref())) {
            let aliases = free(&declared.aliases, |name| registry.relationship_type(name).is_none() || known.is_some());
            let branchless = branchless(&declared.name, known.map(|known| known.branchless), declared.branchless);
            let stated = RelationshipType { pack: Some(label.into()), aliases, branchless, ..declared.clone() };
            writes.push(state(system::RELATIONSHIP_TYPE, &declared.name, &stated, None));
        }
    }
    writes
}

fn free(aliases: &[String], is_free: impl Fn(&str) -> bool) -> Vec<String> {
    aliases.iter().filter(|alias| is_free(alias)).cloned().collect()
}

/// Returns the types that have facts, in lower case.
fn used_types(reader: &mut dyn Reader) -> Result<FxHashSet<String>> {
    let end = reader.head()?.next_thing;
    let mut used: FxHashSet<Arc<str>> = FxHashSet::default();
    for range in FactNo::pages(FactNo::FIRST..end, 10_000) {
        used.extend(reader.facts_in(range)?.into_iter().map(|thing| thing.type_name));
    }
    Ok(used.into_iter().map(|name| name.to_lowercase()).collect())
}

fn refuse_if_used(reader: &mut dyn Reader, type_name: &str) -> Result<()> {
    if !used_types(reader)?.contains(&type_name.to_lowercase()) {
        return Ok(());
    }
    Err(Error::conflict(
        ErrorCode::TypeInUse,
        format!("facts of type `{type_name}` exist; whether it is branchless can no longer change"),
    ))
}

fn fork_point(at: Option<Tx>, head: &Head) -> Result<Tx> {
    match at {
        Some(tx) if tx > head.tx => {
            Err(Error::not_found(ErrorCode::UnknownTransaction, format!("no transaction {tx}"))
                .hint(format!("the last one is {}", head.tx)))
        }
        Some(tx) => Ok(tx),
        None => Ok(head.tx),
    }
}

fn state<T: Serialize>(type_name: &str, key: &str, value: &T, expected_version: Option<u32>) -> lukasa_model::Write {
    let properties = match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        _ => unreachable!("declarations are structs"),
    };
    PutObject { properties, expected_version, ..PutObject::new(type_name, key) }.into()
}

fn check_pointers<'a>(paths: impl Iterator<Item = &'a String>) -> Result<()> {
    for path in paths {
        json::pointer_tokens(path)?;
    }
    Ok(())
}
