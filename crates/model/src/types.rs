//! What a project has declared as of a transaction: types, branches, releases, tags and settings.

use crate::ErrorCode;
use crate::branch::{Branch, Lineage};
use crate::content::Content;
use crate::error::{Error, ErrorKind, Result};
use crate::id::{BranchNo, MAIN, Tx};
use crate::json::Hash;
use crate::sensitive;
use crate::three_way::MergeStrategies;
use crate::time::Time;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Types of the objects in which Lukasa records a project's declarations. They are ordinary branchless objects, so
/// history, export and verification work for them without a separate mechanism.
pub mod system {
    pub const OBJECT_TYPE: &str = "ObjectType";
    pub const RELATIONSHIP_TYPE: &str = "RelationshipType";
    pub const BRANCH: &str = "Branch";
    pub const RELEASE: &str = "Release";
    pub const TAG: &str = "Tag";
    pub const SETTINGS: &str = "Settings";
    pub const ALL: [&str; 6] = [OBJECT_TYPE, RELATIONSHIP_TYPE, BRANCH, RELEASE, TAG, SETTINGS];

    /// Key of the single settings object.
    pub const SETTINGS_KEY: &str = "project";

    /// Whether a type is a system type, regardless of case.
    pub fn is(type_name: &str) -> bool {
        ALL.iter().any(|s| s.eq_ignore_ascii_case(type_name))
    }
}

/// Built-in lasting types: relationships that stay visible when an end has ended, without being declared.
const LASTING: [&str; 4] = ["INVOLVES", "APPLIES_TO", "DERIVED_FROM", "RENAMED_FROM"];
/// The relationship from a renamed object to its previous identity.
pub const RENAMED_FROM: &str = "RENAMED_FROM";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ObjectType {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Other spellings accepted on input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// JSON Schema that `properties` must satisfy.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub schema: Value,
    /// Recorded once for the project, visible on every branch, never merged.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub branchless: bool,
    /// Merge strategy by JSON Pointer into the content, for example `/properties/tags`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub merge: MergeStrategies,
    /// A change at these paths alone creates no new version and appears in no summary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored_paths: Vec<String>,
    pub embedding: TypeEmbedding,
    /// The type pack that declared it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TypeEmbedding {
    pub policy: EmbeddingPolicy,
    /// Paths to embed; empty: all properties.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relevant_paths: Vec<String>,
    /// Whether the text index includes it.
    pub fts: bool,
}

impl Default for TypeEmbedding {
    fn default() -> Self {
        TypeEmbedding { policy: EmbeddingPolicy::Optional, relevant_paths: vec![], fts: true }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddingPolicy {
    Required,
    #[default]
    Optional,
    Disabled,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RelationshipType {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Allowed types of the source; empty: any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub src_types: Vec<String>,
    /// Allowed types of the destination; empty: any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dst_types: Vec<String>,
    pub multiplicity: Multiplicity,
    /// Stays visible when an end has ended, and shows that end as ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lasting: bool,
    /// Recorded once for the project, visible on every branch that has its ends, never merged.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub branchless: bool,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub schema: Value,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub merge: MergeStrategies,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored_paths: Vec<String>,
    /// How relationships of this type are ranked; by default like those of an undeclared type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranking: Option<Ranking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack: Option<String>,
}

/// A type pack: types that are versioned and installed together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TypePack {
    pub name: String,
    pub version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub object_types: Vec<ObjectType>,
    pub relationship_types: Vec<RelationshipType>,
}

impl TypePack {
    /// Returns the `pack` label of its types: `name@version`.
    pub fn label(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// Packs that Lukasa installs itself. They do not make a project strict.
const OWN_PACKS: [&str; 2] = ["agent", "code"];

/// Whether a type from this pack makes the project reject undeclared types.
fn is_strict(pack: Option<&str>) -> bool {
    pack.is_some_and(|label| !OWN_PACKS.contains(&label.split('@').next().unwrap_or(label)))
}

/// `src: one`: a source has at most one such relationship at a time. `dst: one`: the same for a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Multiplicity {
    pub src: Count,
    pub dst: Count,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Count {
    One,
    #[default]
    Many,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ranking {
    pub base_weight: f64,
    pub allow_neighbor: bool,
    pub max_depth_allowed: u8,
    pub reciprocal_boost: bool,
}

impl Default for Ranking {
    fn default() -> Self {
        Ranking { base_weight: 1.0, allow_neighbor: true, max_depth_allowed: 2, reciprocal_boost: false }
    }
}

/// An immutable named view: everything visible on a branch at one transaction and its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Release {
    pub name: String,
    pub branch: BranchNo,
    pub tx: Tx,
    pub valid_at: Time,
    pub objects: u64,
    pub relationships: u64,
    /// Hash over the id and version of every member, in order; `verify` recomputes it.
    #[schemars(with = "String")]
    pub digest: Hash,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tag {
    pub name: String,
    pub release: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Unknown types are rejected instead of accepted with a warning.
    pub strict: bool,
}

/// One recorded version of a system object; `content` is `None` if it was ended.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// The transaction that recorded it.
    pub tx: Tx,
    /// One of the types in [`system`].
    pub type_name: Arc<str>,
    pub key: Box<str>,
    pub content: Option<Box<str>>,
}

/// Everything declared, as of one transaction. Branches keep their history, because a pinned child may need an older
/// state of its parent.
#[derive(Debug, Default)]
pub struct Registry {
    object_types: FxHashMap<String, Arc<DeclaredType<ObjectType>>>,
    relationship_types: FxHashMap<String, Arc<DeclaredType<RelationshipType>>>,
    branches: BTreeMap<BranchNo, Vec<(Tx, Branch)>>,
    releases: BTreeMap<String, Release>,
    tags: BTreeMap<String, Tag>,
    settings: Settings,
    has_pack: bool,
}

#[derive(Debug)]
struct DeclaredType<T> {
    declared: T,
    sensitive: Vec<Box<str>>,
    validator: OnceLock<Option<jsonschema::Validator>>,
}

impl<T> DeclaredType<T> {
    fn new(declared: T, schema: &Value) -> Arc<DeclaredType<T>> {
        Arc::new(DeclaredType { declared, sensitive: sensitive::marked(schema), validator: OnceLock::new() })
    }
}

impl Registry {
    /// Applies declarations in the order of recording, up to `known`.
    pub fn at(declarations: &[Declaration], known: Tx) -> Result<Registry> {
        let mut registry = Registry::default();
        registry.branches.insert(MAIN, vec![(Tx::START, Branch::main())]);
        for declaration in declarations.iter().filter(|d| d.tx <= known) {
            registry.learn(declaration).map_err(|e| {
                e.at(format_args!("{} `{}` at transaction {}", declaration.type_name, declaration.key, declaration.tx))
            })?;
        }
        Ok(registry)
    }

    fn learn(&mut self, declaration: &Declaration) -> Result<()> {
        fn read<T: serde::de::DeserializeOwned>(properties: &Map<String, Value>) -> Result<T> {
            serde_json::from_value(Value::Object(properties.clone()))
                .map_err(|e| Error::internal(format!("a declaration is not readable: {e}")))
        }
        let content = declaration.content.as_deref().map(Content::parse).transpose()?.map(|c| c.properties);
        let key = declaration.key.to_lowercase();
        match (&*declaration.type_name, content) {
            (system::OBJECT_TYPE, Some(p)) => {
                let declared: ObjectType = read(&p)?;
                self.has_pack |= is_strict(declared.pack.as_deref());
                self.object_types.retain(|_, t| !t.declared.name.eq_ignore_ascii_case(&key));
                let names: Vec<_> = declared.aliases.iter().map(|a| a.to_lowercase()).chain([key]).collect();
                let schema = declared.schema.clone();
                let known = DeclaredType::new(declared, &schema);
                self.object_types.extend(names.into_iter().map(|name| (name, Arc::clone(&known))));
            }
            (system::RELATIONSHIP_TYPE, Some(p)) => {
                let declared: RelationshipType = read(&p)?;
                self.has_pack |= is_strict(declared.pack.as_deref());
                self.relationship_types.retain(|_, t| !t.declared.name.eq_ignore_ascii_case(&key));
                let names: Vec<_> = declared.aliases.iter().map(|a| a.to_lowercase()).chain([key]).collect();
                let schema = declared.schema.clone();
                let known = DeclaredType::new(declared, &schema);
                self.relationship_types.extend(names.into_iter().map(|name| (name, Arc::clone(&known))));
            }
            (system::OBJECT_TYPE, None) => self.object_types.retain(|_, t| !t.declared.name.eq_ignore_ascii_case(&key)),
            (system::RELATIONSHIP_TYPE, None) => {
                self.relationship_types.retain(|_, t| !t.declared.name.eq_ignore_ascii_case(&key));
            }
            (system::BRANCH, Some(p)) => {
                let branch: Branch = read(&p)?;
                self.branches.entry(branch.number).or_default().push((declaration.tx, branch));
            }
            (system::RELEASE, Some(p)) => drop(self.releases.insert(key, read(&p)?)),
            (system::TAG, Some(p)) => drop(self.tags.insert(key, read(&p)?)),
            (system::TAG, None) => drop(self.tags.remove(&key)),
            (system::SETTINGS, Some(p)) => self.settings = read(&p)?,
            // Branches and releases are never deleted.
            _ => {}
        }
        Ok(())
    }

    /// Returns the settings of the project; the defaults if none were recorded.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Returns the declaration of an object type by name or alias, regardless of case.
    pub fn object_type(&self, name: &str) -> Option<&ObjectType> {
        // Called for every row of a load, and usually nothing is declared.
        if self.object_types.is_empty() {
            return None;
        }
        self.object_types.get(&name.to_ascii_lowercase()).map(|t| &t.declared)
    }

    /// Returns the declaration of a relationship type by name or alias, regardless of case.
    pub fn relationship_type(&self, name: &str) -> Option<&RelationshipType> {
        if self.relationship_types.is_empty() {
            return None;
        }
        self.relationship_types.get(&name.to_ascii_lowercase()).map(|t| &t.declared)
    }

    /// Returns the declared object types, sorted by name.
    pub fn object_types(&self) -> Vec<&ObjectType> {
        let mut all: Vec<_> = self
            .object_types
            .iter()
            .filter(|(n, t)| t.declared.name.eq_ignore_ascii_case(n))
            .map(|(_, t)| &t.declared)
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Returns the declared relationship types, sorted by name.
    pub fn relationship_types(&self) -> Vec<&RelationshipType> {
        let mut all: Vec<_> = self
            .relationship_types
            .iter()
            .filter(|(n, t)| t.declared.name.eq_ignore_ascii_case(n))
            .map(|(_, t)| &t.declared)
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Returns the declared ranking of a relationship type.
    pub fn ranking(&self, relationship_type: &str) -> Option<Ranking> {
        self.relationship_type(relationship_type)?.ranking
    }

    /// Whether two names mean the same type: they differ only in case, or are aliases of one declared type.
    pub fn is_same_type(&self, one: &str, other: &str, relationship: bool) -> bool {
        one.eq_ignore_ascii_case(other)
            || self.spelling(one, relationship).eq_ignore_ascii_case(self.spelling(other, relationship))
    }

    /// Returns the declared spelling of a type, or the given name if it is not declared.
    pub fn spelling<'a>(&'a self, name: &'a str, relationship: bool) -> &'a str {
        let declared = if relationship {
            self.relationship_type(name).map(|t| t.name.as_str())
        } else {
            self.object_type(name).map(|t| t.name.as_str())
        };
        let own = system::ALL.into_iter().find(|s| !relationship && s.eq_ignore_ascii_case(name));
        own.or(declared).unwrap_or(name)
    }

    /// Whether facts of a type are project-wide: recorded once and visible on every branch. System types are.
    pub fn is_branchless(&self, type_name: &str, relationship: bool) -> bool {
        if relationship {
            self.relationship_type(type_name).is_some_and(|t| t.branchless)
        } else {
            system::is(type_name) || self.object_type(type_name).is_some_and(|t| t.branchless)
        }
    }

    /// Whether relationships of a type stay visible when an end has ended.
    pub fn is_lasting(&self, relationship_type: &str) -> bool {
        match self.relationship_type(relationship_type) {
            Some(declared) => declared.lasting,
            None => LASTING.iter().any(|l| l.eq_ignore_ascii_case(relationship_type)),
        }
    }

    /// Returns the merge strategies of a type; none if it is not declared.
    pub fn strategies(&self, type_name: &str, relationship: bool) -> MergeStrategies {
        if relationship {
            self.relationship_type(type_name).map(|t| t.merge.clone())
        } else {
            self.object_type(type_name).map(|t| t.merge.clone())
        }
        .unwrap_or_default()
    }

    /// Returns the paths at which a change alone creates no new version of a fact of this type.
    pub fn ignored_paths(&self, type_name: &str, relationship: bool) -> &[String] {
        if relationship {
            self.relationship_type(type_name).map(|t| t.ignored_paths.as_slice())
        } else {
            self.object_type(type_name).map(|t| t.ignored_paths.as_slice())
        }
        .unwrap_or_default()
    }

    /// Returns the properties of a type that require permission to see.
    pub fn sensitive(&self, type_name: &str, relationship: bool) -> &[Box<str>] {
        if self.object_types.is_empty() && self.relationship_types.is_empty() {
            return &[];
        }
        let name = type_name.to_ascii_lowercase();
        if relationship {
            self.relationship_types.get(&name).map(|t| t.sensitive.as_slice())
        } else {
            self.object_types.get(&name).map(|t| t.sensitive.as_slice())
        }
        .unwrap_or_default()
    }

    /// Returns all sensitive properties: whether of a relationship type, the type in lower case, the properties.
    pub fn all_sensitive(&self) -> Vec<(bool, &str, &[Box<str>])> {
        let objects = self.object_types.iter().map(|(name, t)| (false, name.as_str(), t.sensitive.as_slice()));
        let relationships =
            self.relationship_types.iter().map(|(name, t)| (true, name.as_str(), t.sensitive.as_slice()));
        let mut all: Vec<_> = objects.chain(relationships).filter(|(.., names)| !names.is_empty()).collect();
        all.sort_unstable();
        all
    }

    /// Rejects an unknown type in a strict project; otherwise returns a warning for it.
    pub fn admit(&self, type_name: &str, relationship: bool) -> Result<Option<String>> {
        let (known, refuse, what, verb) = if relationship {
            let known = self.relationship_type(type_name).is_some()
                || LASTING.iter().any(|l| l.eq_ignore_ascii_case(type_name));
            (known, self.settings.strict || self.has_pack, "relationship type", "type relationship")
        } else {
            (
                self.object_type(type_name).is_some() || system::is(type_name),
                self.settings.strict,
                "object type",
                "type object",
            )
        };
        match (known, refuse) {
            (true, _) => Ok(None),
            (false, true) => Err(Error::new(
                ErrorKind::ValidationFailed,
                ErrorCode::UnknownType,
                format!("this project knows no {what} `{type_name}`"),
            )
            .hint(format!("declare it first with `lukasa {verb} {type_name}`"))),
            (false, false) => Ok(Some(format!("unknown {what} `{type_name}`"))),
        }
    }

    /// Validates properties against the JSON Schema of the type.
    pub fn validate(&self, type_name: &str, relationship: bool, properties: &Map<String, Value>) -> Result<()> {
        if self.object_types.is_empty() && self.relationship_types.is_empty() {
            return Ok(());
        }
        let name = type_name.to_ascii_lowercase();
        let compiled = if relationship {
            self.relationship_types.get(&name).map(|t| (&t.declared.schema, &t.validator, &t.sensitive))
        } else {
            self.object_types.get(&name).map(|t| (&t.declared.schema, &t.validator, &t.sensitive))
        };
        let Some((schema, cell, sensitive)) = compiled.filter(|(schema, ..)| !schema.is_null()) else { return Ok(()) };
        let Some(validator) = cell.get_or_init(|| jsonschema::validator_for(schema).ok()) else {
            return Err(Error::internal(format!("the schema of `{type_name}` does not compile")));
        };
        let instance = Value::Object(properties.clone());
        if validator.is_valid(&instance) {
            return Ok(());
        }
        let fields: Vec<_> = validator
            .iter_errors(&instance)
            .map(|e| {
                // Messages may quote any part of the value, including sensitive properties.
                let message = if sensitive.is_empty() { e.to_string() } else { e.masked().to_string() };
                json!({"path": format!("/properties{}", e.instance_path()), "message": message})
            })
            .collect();
        let first =
            fields.first().map(|f| format!(": {}", f["message"].as_str().unwrap_or_default())).unwrap_or_default();
        Err(Error::new(
            ErrorKind::ValidationFailed,
            ErrorCode::SchemaViolation,
            format!("`properties` do not fit the schema of `{type_name}`{first}"),
        )
        .hint(format!("`lukasa type show {type_name}` prints the schema"))
        .details(json!({"fields": fields})))
    }

    /// Returns the last state of every branch, ordered by number.
    pub fn branches(&self) -> Vec<&Branch> {
        self.branches.values().filter_map(|history| history.last()).map(|(_, branch)| branch).collect()
    }

    /// Returns the last state of a branch. Fails with `unknown_branch`.
    pub fn branch(&self, name: &str) -> Result<&Branch> {
        self.branches().into_iter().find(|b| b.name == name).ok_or_else(|| {
            let names: Vec<_> = self.branches().iter().map(|b| b.name.as_str()).collect();
            Error::not_found(ErrorCode::UnknownBranch, format!("no branch `{name}`"))
                .hint(format!("branches: {}", names.join(", ")))
        })
    }

    /// Returns the name of a branch; `project` for the number of project-wide facts.
    pub fn branch_name(&self, number: BranchNo) -> &str {
        self.branches.get(&number).and_then(|h| h.last()).map_or("project", |(_, b)| b.name.as_str())
    }

    /// Returns a branch as of a transaction. A branch created later is returned as it was created.
    pub fn branch_at(&self, number: BranchNo, tx: Tx) -> Option<Branch> {
        let history = self.branches.get(&number)?;
        history.iter().rev().find(|(at, _)| *at <= tx).or_else(|| history.first()).map(|(_, b)| b.clone())
    }

    /// Returns the lineage of a branch as of a transaction.
    pub fn lineage(&self, branch: BranchNo, known: Tx) -> Result<Lineage> {
        Lineage::of(branch, known, |number, tx| self.branch_at(number, tx))
    }

    /// Returns all releases, ordered by name in lower case.
    pub fn releases(&self) -> impl Iterator<Item = &Release> {
        self.releases.values()
    }

    /// Returns a release by name, regardless of case. Fails with `unknown_release`.
    pub fn release(&self, name: &str) -> Result<&Release> {
        self.releases.get(&name.to_lowercase()).ok_or_else(|| {
            Error::not_found(ErrorCode::UnknownRelease, format!("no release `{name}`"))
                .hint("`lukasa release list` shows them")
        })
    }

    /// Returns all tags, ordered by name in lower case.
    pub fn tags(&self) -> impl Iterator<Item = &Tag> {
        self.tags.values()
    }

    /// Returns a tag by name, regardless of case. Fails with `unknown_tag`.
    pub fn tag(&self, name: &str) -> Result<&Tag> {
        self.tags.get(&name.to_lowercase()).ok_or_else(|| {
            Error::not_found(ErrorCode::UnknownTag, format!("no tag `{name}`")).hint("`lukasa tag list` shows them")
        })
    }
}

/// Rejects a name or alias that already belongs to another type.
pub fn check_names<'a>(name: &str, aliases: &[String], known: impl Fn(&str) -> Option<&'a str>) -> Result<()> {
    let others = |word: &str| known(word).filter(|owner| !owner.eq_ignore_ascii_case(name)).map(str::to_owned);
    for word in aliases.iter().map(String::as_str).chain([name]) {
        if let Some(owner) = others(word) {
            return Err(Error::conflict(ErrorCode::NameTaken, format!("`{word}` already stands for type `{owner}`"))
                .hint("choose another name, or take the alias away from the other type first"));
        }
        if system::is(word) {
            return Err(Error::invalid(ErrorCode::SystemType, format!("`{word}` is a type of Lukasa's own")));
        }
    }
    Ok(())
}

/// Rejects an invalid schema, because it could not be enforced.
pub fn check_schema(schema: &Value) -> Result<()> {
    if schema.is_null() {
        return Ok(());
    }
    let fault = |why: String| {
        Error::invalid(ErrorCode::InvalidSchema, format!("the JSON Schema does not compile: {why}"))
            .hint("schemas must be self-contained JSON Schema; references to files or URLs are not followed")
    };
    jsonschema::validator_for(schema).map(drop).map_err(|e| fault(e.to_string()))?;
    sensitive::check(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declare(tx: u64, type_name: &str, key: &str, properties: Value) -> Declaration {
        let content = Content { properties: properties.as_object().cloned().unwrap(), ..Content::default() };
        Declaration {
            tx: Tx(tx),
            type_name: type_name.into(),
            key: key.into(),
            content: Some(content.canonical().into()),
        }
    }

    #[test]
    fn a_registry_contains_what_was_declared_by_its_transaction() {
        let all = [
            declare(
                1,
                system::OBJECT_TYPE,
                "Service",
                json!({"name": "Service", "aliases": ["svc"],
                "schema": {"type": "object", "required": ["owner"], "properties": {"owner": {"type": "string"}}}}),
            ),
            declare(2, system::RELATIONSHIP_TYPE, "OWNS", json!({"name": "OWNS", "lasting": true})),
            declare(3, system::SETTINGS, "project", json!({"strict": true})),
        ];
        let early = Registry::at(&all, Tx(1)).unwrap();
        let late = Registry::at(&all, Tx(3)).unwrap();
        assert_eq!(early.spelling("SVC", false), "Service");
        assert!(!early.is_lasting("owns") && late.is_lasting("owns"));
        assert!(early.admit("Thing", false).unwrap().is_some());
        assert_eq!(late.admit("Thing", false).unwrap_err().code, ErrorCode::UnknownType);
        let wrong = json!({"owner": 5, "x": 1});
        let error = late.validate("service", false, wrong.as_object().unwrap()).unwrap_err();
        assert_eq!((error.kind.http_status(), error.code), (422, ErrorCode::SchemaViolation));
        assert_eq!(error.details["fields"][0]["path"], "/properties/owner");
        let right = json!({"owner": "a"});
        assert!(late.validate("service", false, right.as_object().unwrap()).is_ok());
    }

    #[test]
    fn unknown_relationship_types_are_rejected_once_a_pack_is_installed() {
        let packed = [declare(1, system::RELATIONSHIP_TYPE, "OWNS", json!({"name": "OWNS", "pack": "services@1"}))];
        let registry = Registry::at(&packed, Tx(1)).unwrap();
        assert_eq!(registry.admit("RUNS", true).unwrap_err().code, ErrorCode::UnknownType);
        assert!(registry.admit("Thing", false).unwrap().is_some());
        assert!(registry.admit("RENAMED_FROM", true).unwrap().is_none());
    }

    #[test]
    fn schemas_with_external_references_do_not_compile() {
        assert!(check_schema(&json!({"type": "object"})).is_ok());
        assert_eq!(check_schema(&json!({"type": 7})).unwrap_err().code, ErrorCode::InvalidSchema);
        assert_eq!(
            check_schema(&json!({"$ref": "http://example.com/x.json"})).unwrap_err().code,
            ErrorCode::InvalidSchema
        );
    }
}
