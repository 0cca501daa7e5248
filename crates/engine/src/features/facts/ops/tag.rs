//! `tag …`: names that point to releases.

use crate::features::facts::rendering;
use crate::registry::{Link, Meta, Op};
use crate::registry::{META, NAMED, WRITE};
use crate::rendering::Shown;
use crate::shape::count;
use crate::writes::WriteOut;
use crate::{Context, Engine};
use lukasa_model::Result;
use lukasa_model::types::Tag;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, JsonSchema)]
pub struct One {
    pub summary: String,
    pub tag: Tag,
}

fn one(tag: Tag) -> One {
    One { summary: format!("tag {} points to release {}", tag.name, tag.release), tag }
}

pub struct Create;

#[derive(Deserialize, JsonSchema)]
pub struct CreateRequest {
    /// The tag, for example stable.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The release it points to.
    pub release: String,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Reason, for the log.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Op for Create {
    const META: Meta = Meta {
        name: "tag_create",
        shown: Shown::Summary,
        answer: &["tag"],
        rest: &["POST /tags", "POST /graph/tags"],
        summary: "Point a tag to a release",
        description: "A tag cannot be moved: delete it and create it again.",
        verb: "tag create",
        positional: &["name", "release"],
        toolset: "releases",
        examples: &["lukasa tag create stable 1.0"],
        links: &[
            Link { to: Show::META.name, route: 1, with: &[("name", NAMED)] },
            Link { to: Show::META.name, route: 2, with: &[("name", NAMED)] },
            Link { to: Describe::META.name, route: 1, with: &[("name", NAMED)] },
            Link { to: Delete::META.name, route: 1, with: &[("name", NAMED)] },
        ],
        ..WRITE
    };
    type Request = CreateRequest;
    type Response = One;

    fn run(engine: &Engine, context: &mut Context<'_>, request: CreateRequest) -> Result<One> {
        let tag = Tag { name: request.name, release: request.release, description: request.description };
        engine.ledger(&context.scope).create_tag(&tag, &context.header(request.reason)).map(one)
    }
}

pub struct List;

#[derive(Deserialize, JsonSchema)]
pub struct ListRequest {}

#[derive(Serialize, JsonSchema)]
pub struct Many {
    pub summary: String,
    pub tags: Vec<Tag>,
}

impl Op for List {
    const META: Meta = Meta {
        name: "tag_list",
        shown: Shown::By(rendering::tags),
        answer: &["tags"],
        rest: &["GET /tags"],
        summary: "List tags",
        description: "By name, with the releases they point to.",
        verb: "tag list",
        toolset: "releases",
        examples: &["lukasa tag list"],
        ..META
    };
    type Request = ListRequest;
    type Response = Many;

    fn run(engine: &Engine, context: &mut Context<'_>, _: ListRequest) -> Result<Many> {
        let tags: Vec<_> = engine.ledger(&context.scope).registry()?.tags().cloned().collect();
        Ok(Many { summary: count(tags.len(), "tag"), tags })
    }
}

#[derive(Deserialize, JsonSchema)]
pub struct NameRequest {
    /// The tag.
    #[schemars(length(min = 1))]
    pub name: String,
}

pub struct Show;

impl Op for Show {
    const META: Meta = Meta {
        name: "tag_show",
        answer: &["tag"],
        rest: &["GET /tags/{name}", "GET /tags/by-name/{name}"],
        summary: "Show a tag",
        description: "The release it points to, and its description.",
        verb: "tag show",
        positional: &["name"],
        toolset: "releases",
        examples: &["lukasa tag show stable"],
        ..META
    };
    type Request = NameRequest;
    type Response = One;

    fn run(engine: &Engine, context: &mut Context<'_>, request: NameRequest) -> Result<One> {
        Ok(one(engine.ledger(&context.scope).registry()?.tag(&request.name)?.clone()))
    }
}

pub struct Describe;

#[derive(Deserialize, JsonSchema)]
pub struct DescribeRequest {
    /// The tag.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The new description; when left out, the tag has none.
    #[serde(default)]
    pub description: Option<String>,
}

impl Op for Describe {
    const META: Meta = Meta {
        name: "tag_describe",
        shown: Shown::Summary,
        answer: &["tag"],
        rest: &["PUT /tags/{name}"],
        summary: "Change the description of a tag",
        description: "The tag keeps pointing to its release.",
        verb: "tag describe",
        positional: &["name", "description"],
        toolset: "releases",
        examples: &["lukasa tag describe stable \"for everyone\""],
        ..WRITE
    };
    type Request = DescribeRequest;
    type Response = One;

    fn run(engine: &Engine, context: &mut Context<'_>, request: DescribeRequest) -> Result<One> {
        let header = context.header(None);
        engine.ledger(&context.scope).describe_tag(&request.name, request.description, &header).map(one)
    }
}

pub struct Delete;

impl Op for Delete {
    const META: Meta = Meta {
        name: "tag_delete",
        shown: Shown::Summary,
        answer: &["tx", "written", "unchanged"],
        destructive: true,
        rest: &["DELETE /tags/{name}"],
        summary: "Delete a tag; its release stays",
        description: "The name can be used again.",
        verb: "tag delete",
        positional: &["name"],
        toolset: "releases",
        examples: &["lukasa tag delete stable"],
        ..WRITE
    };
    type Request = NameRequest;
    type Response = WriteOut;

    fn run(engine: &Engine, context: &mut Context<'_>, request: NameRequest) -> Result<WriteOut> {
        let done = engine.ledger(&context.scope).delete_tag(&request.name, &context.header(None))?;
        Ok(WriteOut::of(done, &format!("deleted tag {}", request.name)))
    }
}
