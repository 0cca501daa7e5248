//! `tag …`: names that point to releases.

use crate::features::facts::rendering;
use crate::registry::{META, NAMED, WRITE};
use crate::registry::{Meta, Op, OperationLink};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::writes::WriteOut;
use crate::{Context, Engine};
use lukasa_model::Result;
use lukasa_model::types::Tag;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, JsonSchema)]
pub struct TagResponse {
    pub summary: String,
    pub tag: Tag,
}

fn one(tag: Tag) -> TagResponse {
    TagResponse { summary: format!("tag {} points to release {}", tag.name, tag.release), tag }
}

pub struct TagCreate;

#[derive(Deserialize, JsonSchema)]
pub struct TagCreateRequest {
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

impl Op for TagCreate {
    const META: Meta = Meta {
        name: "tag_create",
        shown: ResponseView::Summary,
        answer: &["tag"],
        rest: &["POST /tags", "POST /graph/tags"],
        summary: "Point a tag to a release",
        description: "A tag cannot be moved: delete it and create it again.",
        verb: "tag create",
        positional: &["name", "release"],
        toolset: "releases",
        examples: &["lukasa tag create stable 1.0"],
        links: &[
            OperationLink { to: TagShow::META.name, route: 1, with: &[("name", NAMED)] },
            OperationLink { to: TagShow::META.name, route: 2, with: &[("name", NAMED)] },
            OperationLink { to: TagDescribe::META.name, route: 1, with: &[("name", NAMED)] },
            OperationLink { to: TagDelete::META.name, route: 1, with: &[("name", NAMED)] },
        ],
        ..WRITE
    };
    type Request = TagCreateRequest;
    type Response = TagResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: TagCreateRequest) -> Result<TagResponse> {
        let tag = Tag { name: request.name, release: request.release, description: request.description };
        engine.ledger(&context.scope).create_tag(&tag, &context.header(request.reason)).map(one)
    }
}

pub struct TagList;

#[derive(Deserialize, JsonSchema)]
pub struct TagListRequest {}

#[derive(Serialize, JsonSchema)]
pub struct TagListResponse {
    pub summary: String,
    pub tags: Vec<Tag>,
}

impl Op for TagList {
    const META: Meta = Meta {
        name: "tag_list",
        shown: ResponseView::By(rendering::tags),
        answer: &["tags"],
        rest: &["GET /tags"],
        summary: "List tags",
        description: "By name, with the releases they point to.",
        verb: "tag list",
        toolset: "releases",
        examples: &["lukasa tag list"],
        ..META
    };
    type Request = TagListRequest;
    type Response = TagListResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, _: TagListRequest) -> Result<TagListResponse> {
        let tags: Vec<_> = engine.ledger(&context.scope).registry()?.tags().cloned().collect();
        Ok(TagListResponse { summary: count(tags.len(), "tag"), tags })
    }
}

#[derive(Deserialize, JsonSchema)]
pub struct TagNameRequest {
    /// The tag.
    #[schemars(length(min = 1))]
    pub name: String,
}

pub struct TagShow;

impl Op for TagShow {
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
    type Request = TagNameRequest;
    type Response = TagResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: TagNameRequest) -> Result<TagResponse> {
        Ok(one(engine.ledger(&context.scope).registry()?.tag(&request.name)?.clone()))
    }
}

pub struct TagDescribe;

#[derive(Deserialize, JsonSchema)]
pub struct TagDescribeRequest {
    /// The tag.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The new description; when left out, the tag has none.
    #[serde(default)]
    pub description: Option<String>,
}

impl Op for TagDescribe {
    const META: Meta = Meta {
        name: "tag_describe",
        shown: ResponseView::Summary,
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
    type Request = TagDescribeRequest;
    type Response = TagResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: TagDescribeRequest) -> Result<TagResponse> {
        let header = context.header(None);
        engine.ledger(&context.scope).describe_tag(&request.name, request.description, &header).map(one)
    }
}

pub struct TagDelete;

impl Op for TagDelete {
    const META: Meta = Meta {
        name: "tag_delete",
        shown: ResponseView::Summary,
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
    type Request = TagNameRequest;
    type Response = WriteOut;

    fn run(engine: &Engine, context: &mut Context<'_>, request: TagNameRequest) -> Result<WriteOut> {
        let done = engine.ledger(&context.scope).delete_tag(&request.name, &context.header(None))?;
        Ok(WriteOut::of(done, &format!("deleted tag {}", request.name)))
    }
}
