//! `type …`: declares, lists and shows object and relationship types.

use crate::features::facts::rendering;
use crate::registry::{META, WRITE};
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::writes::WriteOut;
use crate::{Context, Engine};
use lukasa_model::types::{Count, Multiplicity, Ranking, Settings, TypeEmbedding};
use lukasa_model::{Error, ErrorCode, ObjectType, RelationshipType, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub struct TypeObject;

#[derive(Deserialize, JsonSchema)]
pub struct TypeObjectRequest {
    /// Name of the type.
    #[schemars(length(min = 1))]
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Other spellings accepted on input.
    #[serde(default)]
    pub alias: Vec<String>,
    /// JSON Schema for `properties`.
    #[serde(default)]
    pub schema: Map<String, Value>,
    /// Facts of this type belong to the project instead of a branch: visible on every branch, never merged.
    #[serde(default)]
    pub branchless: bool,
    /// Merge strategy for each path, as JSON: {"/properties/tags": "union"}.
    #[serde(default)]
    pub merge: Map<String, Value>,
    /// Paths whose changes create no new version.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// Embedding policy as JSON: {"policy": "required", "relevant_paths": ["/title"], "fts": true}.
    #[serde(default)]
    pub embedding: Option<TypeEmbedding>,
}

impl Op for TypeObject {
    const META: Meta = Meta {
        name: "type_object",
        shown: ResponseView::Summary,
        answer: &["tx", "written", "unchanged"],
        summary: "Declare an object type",
        description: "Properties of its objects are validated against the JSON Schema from now on; what was stated \
                      before stays as it is. Declaring a type again replaces the declaration.",
        verb: "type object",
        positional: &["name"],
        toolset: "types",
        scope: "types:write",
        examples: &["lukasa type object Service --schema '{\"type\":\"object\",\"required\":[\"owner\"]}'"],
        ..WRITE
    };
    type Request = TypeObjectRequest;
    type Response = WriteOut;

    fn run(engine: &Engine, context: &mut Context<'_>, request: TypeObjectRequest) -> Result<WriteOut> {
        let declared = ObjectType {
            name: request.name,
            description: request.description,
            aliases: request.alias,
            schema: schema(request.schema),
            branchless: request.branchless,
            merge: strategies(request.merge)?,
            ignored_paths: request.ignore,
            embedding: request.embedding.unwrap_or_default(),
            pack: None,
        };
        let done = engine.ledger(&context.scope).declare_object_type(&declared, &context.header(None))?;
        Ok(WriteOut::of(done, &format!("declared object type {}", declared.name)))
    }
}

pub struct TypeRelationship;

#[derive(Deserialize, JsonSchema)]
pub struct TypeRelationshipRequest {
    /// Name of the type.
    #[schemars(length(min = 1))]
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Other spellings accepted on input.
    #[serde(default)]
    pub alias: Vec<String>,
    /// Allowed types of the source; any when left out.
    #[serde(default)]
    pub src_type: Vec<String>,
    /// Allowed types of the destination; any when left out.
    #[serde(default)]
    pub dst_type: Vec<String>,
    /// A source has at most one such relationship at a time.
    #[serde(default)]
    pub one_per_src: bool,
    /// A destination has at most one such relationship at a time.
    #[serde(default)]
    pub one_per_dst: bool,
    /// The relationship stays visible after its source or destination ended.
    #[serde(default)]
    pub lasting: bool,
    /// Belongs to the project instead of a branch: visible wherever both ends are, never merged.
    #[serde(default)]
    pub branchless: bool,
    /// JSON Schema for `properties`.
    #[serde(default)]
    pub schema: Map<String, Value>,
    /// Merge strategy for each path, as JSON: {"/weight": "source_wins"}.
    #[serde(default)]
    pub merge: Map<String, Value>,
    /// Paths whose changes create no new version.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// Ranking rule: prior importance.
    #[serde(default)]
    pub base_weight: Option<f64>,
    /// Ranking rule: never followed when retrieval expands results.
    #[serde(default)]
    pub no_neighbor: bool,
    /// Ranking rule: greatest number of hops at which it is followed.
    #[serde(default)]
    pub max_depth_allowed: Option<u8>,
    /// Ranking rule: boost when followed from destination to source.
    #[serde(default)]
    pub reciprocal_boost: bool,
}

impl Op for TypeRelationship {
    const META: Meta = Meta {
        name: "type_relationship",
        shown: ResponseView::Summary,
        answer: &["tx", "written", "unchanged"],
        summary: "Declare a relationship type",
        description: "Allowed ends, how many per end, whether it outlasts its ends, and how it ranks.",
        verb: "type relationship",
        positional: &["name"],
        toolset: "types",
        scope: "types:write",
        examples: &["lukasa type relationship OWNS --src-type Team --dst-type Service --one-per-dst"],
        ..WRITE
    };
    type Request = TypeRelationshipRequest;
    type Response = WriteOut;

    fn run(engine: &Engine, context: &mut Context<'_>, request: TypeRelationshipRequest) -> Result<WriteOut> {
        let limit = |one| if one { Count::One } else { Count::Many };
        let usual = Ranking::default();
        let declared = RelationshipType {
            name: request.name,
            description: request.description,
            aliases: request.alias,
            src_types: request.src_type,
            dst_types: request.dst_type,
            multiplicity: Multiplicity { src: limit(request.one_per_src), dst: limit(request.one_per_dst) },
            lasting: request.lasting,
            branchless: request.branchless,
            schema: schema(request.schema),
            merge: strategies(request.merge)?,
            ignored_paths: request.ignore,
            ranking: Some(Ranking {
                base_weight: request.base_weight.unwrap_or(usual.base_weight),
                allow_neighbor: !request.no_neighbor,
                max_depth_allowed: request.max_depth_allowed.unwrap_or(usual.max_depth_allowed),
                reciprocal_boost: request.reciprocal_boost,
            }),
            pack: None,
        };
        let done = engine.ledger(&context.scope).declare_relationship_type(&declared, &context.header(None))?;
        Ok(WriteOut::of(done, &format!("declared relationship type {}", declared.name)))
    }
}

fn schema(given: Map<String, Value>) -> Value {
    if given.is_empty() { Value::Null } else { Value::Object(given) }
}

fn strategies(given: Map<String, Value>) -> Result<lukasa_model::three_way::MergeStrategies> {
    serde_json::from_value(Value::Object(given)).map_err(|e| {
        Error::invalid(ErrorCode::InvalidStrategy, format!("the merge strategies cannot be read: {e}"))
            .hint("strategies: source_wins, target_wins, union, concat, fail")
    })
}

pub struct TypeList;

#[derive(Deserialize, JsonSchema)]
pub struct TypeListRequest {}

#[derive(Serialize, JsonSchema)]
pub struct TypeListResponse {
    pub summary: String,
    pub strict: bool,
    pub object_types: Vec<ObjectType>,
    pub relationship_types: Vec<RelationshipType>,
}

impl Op for TypeList {
    const META: Meta = Meta {
        name: "type_list",
        shown: ResponseView::By(rendering::types),
        answer: &["object_types.name", "relationship_types.name", "object_types.description", "strict"],
        summary: "List declared types",
        description: "Object and relationship types, and whether the project is strict.",
        verb: "type list",
        toolset: "types",
        examples: &["lukasa type list"],
        ..META
    };
    type Request = TypeListRequest;
    type Response = TypeListResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, _: TypeListRequest) -> Result<TypeListResponse> {
        let registry = engine.ledger(&context.scope).registry()?;
        let object_types: Vec<_> = registry.object_types().into_iter().cloned().collect();
        let relationship_types: Vec<_> = registry.relationship_types().into_iter().cloned().collect();
        let strict = registry.settings().strict;
        let summary = format!(
            "{}, {}; unknown types are {}",
            count(object_types.len(), "object type"),
            count(relationship_types.len(), "relationship type"),
            if strict { "refused" } else { "accepted with a warning" }
        );
        Ok(TypeListResponse { summary, strict, object_types, relationship_types })
    }
}

pub struct TypeShow;

#[derive(Deserialize, JsonSchema)]
pub struct TypeShowRequest {
    /// Name of the type.
    #[schemars(length(min = 1))]
    pub name: String,
}

#[derive(Serialize, JsonSchema)]
pub struct TypeShowResponse {
    pub summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_type: Option<ObjectType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relationship_type: Option<RelationshipType>,
}

impl Op for TypeShow {
    const META: Meta = Meta {
        name: "type_show",
        answer: &["object_type", "relationship_type"],
        summary: "Show a declared type",
        description: "Its schema and rules.",
        verb: "type show",
        positional: &["name"],
        toolset: "types",
        examples: &["lukasa type show Service"],
        ..META
    };
    type Request = TypeShowRequest;
    type Response = TypeShowResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: TypeShowRequest) -> Result<TypeShowResponse> {
        let registry = engine.ledger(&context.scope).registry()?;
        let object_type = registry.object_type(&request.name).cloned();
        let relationship_type = registry.relationship_type(&request.name).cloned();
        if object_type.is_none() && relationship_type.is_none() {
            return Err(Error::not_found(ErrorCode::UnknownType, format!("no type `{}` is declared", request.name))
                .hint("`lukasa type list` shows those that are"));
        }
        let kind = if object_type.is_some() { "object" } else { "relationship" };
        Ok(TypeShowResponse { summary: format!("{kind} type {}", request.name), object_type, relationship_type })
    }
}

pub struct TypeStrict;

#[derive(Deserialize, JsonSchema)]
pub struct TypeStrictRequest {
    /// `on` refuses unknown types, `off` accepts them with a warning.
    pub mode: StrictMode,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StrictMode {
    On,
    Off,
}

impl Op for TypeStrict {
    const META: Meta = Meta {
        name: "type_strict",
        shown: ResponseView::Summary,
        answer: &["tx", "written", "unchanged"],
        summary: "Refuse unknown types, or accept them with a warning",
        description: "A new project accepts any type and warns.",
        verb: "type strict",
        positional: &["mode"],
        toolset: "types",
        scope: "types:write",
        examples: &["lukasa type strict on"],
        ..WRITE
    };
    type Request = TypeStrictRequest;
    type Response = WriteOut;

    fn run(engine: &Engine, context: &mut Context<'_>, request: TypeStrictRequest) -> Result<WriteOut> {
        let strict = matches!(request.mode, StrictMode::On);
        let done = engine.ledger(&context.scope).set_settings(Settings { strict }, &context.header(None))?;
        Ok(WriteOut::of(done, if strict { "unknown types are refused" } else { "unknown types are accepted" }))
    }
}
