//! The list of all operations, from which the surfaces are derived.

pub mod fields;

use crate::features;
use crate::names::{self, ResolvedName};
use crate::ranges::check_declared_range;
use crate::redacted_summary::RedactedSummary;
use crate::rendering::{Rendering, ResponseView};
use crate::telemetry::events::EndedOperation;
use crate::{Context, Engine};
use lukasa_model::{Error, ErrorCode, Result, json};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Read,
    Write,
    Admin,
}

/// The description of an operation, besides its request and response types.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// The same on every surface.
    pub name: &'static str,
    /// A summary of one line.
    pub summary: &'static str,
    /// The rest of what a user must know.
    pub description: &'static str,
    pub effect: Effect,
    /// The scope that the caller must have, where callers are checked.
    pub scope: &'static str,
    pub toolset: &'static str,
    /// The words of the command, for example `branch create`.
    pub verb: &'static str,
    /// Request fields that the command takes by position.
    pub positional: &'static [&'static str],
    /// Accepted aliases of request fields, each with the field it stands for.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Whether it removes something that cannot be restored by writing again.
    pub destructive: bool,
    /// Request fields that name objects, or lists of such names: every form that `names` resolves is accepted there.
    pub names: &'static [&'static str],
    /// Request fields that name folders of working trees on this machine.
    pub places: &'static [&'static str],
    /// Request fields that name data files and folders on this machine.
    pub files: &'static [&'static str],
    /// The request field that names the branch of the view, where the operation has one.
    pub branch_field: &'static str,
    /// Request fields that replace a view when they are set.
    pub instead_of_view: &'static [&'static str],
    /// Whether it selects the contents of its response by `profile`. Then the profile of an agent is passed on to it.
    pub fits_itself: bool,
    /// Whether a working tree without an index is indexed first.
    pub indexes_first: bool,
    /// Whether its work grows with the whole graph, log or working tree, or runs a program. A server has places of their
    /// own for such requests, so that the others do not wait for them.
    pub long: bool,
    /// Numbers whose range the operation checks itself, because one that is too large has an error code of its own.
    pub own_ranges: &'static [&'static str],
    /// Request fields that only a caller on this machine may set, because their value is executed.
    pub local: &'static [&'static str],
    /// Whether `agent_id` selects whose shared facts are read, and may be any agent. In other operations it names the
    /// agent that acts, and must be one that the caller may act as.
    pub of_any_agent: bool,
    /// The request field that lists several requests of this operation.
    pub several: Option<&'static str>,
    /// REST routes besides `POST /v1/{name}`, as `METHOD /path/{field}`.
    pub rest: &'static [&'static str],
    /// Example commands.
    pub examples: &'static [&'static str],
    /// The response fields that answer the caller, most important first, as paths through objects and lists:
    /// `episodes.content`. They are the last to be left out when the token budget is small. The first of them that is a
    /// list or a long text is paged.
    pub answer: &'static [&'static str],
    /// Listed first in `--help`: what a new user needs.
    pub essential: bool,
    /// Arguments shown to agents that chose no toolset; empty where the tool is not in that default list.
    pub default_tool: &'static [&'static str],
    /// Data that the command line and HTTP stream beside request and response.
    pub stream: DataStream,
    /// The store that the command line opens for it.
    pub needs: StoreNeed,
    /// A response field and the value of it that means: nothing is wrong, but the caller did not get what was requested.
    /// The command line then exits with 3.
    pub unmet: Option<(&'static str, &'static str)>,
    /// A request field that the command line sets to the current folder if it is left out.
    pub here: Option<&'static str>,
    /// How a person sees the response.
    pub shown: ResponseView,
    /// The interactive shell of the operation that has one.
    pub shell: Option<Shell>,
    /// Whether its effect ends with the process that ran it. The next owner of the store repeats the request.
    pub lasts: bool,
    /// Prepares a request whose answer a person reads, for example with more fields per result.
    pub for_people: Option<fn(&mut Value)>,
    /// Translates requests in the format of earlier services.
    pub translate: Option<Translate>,
    /// Records metrics and log events once it has ended.
    pub ended: Option<fn(&Context<'_>, &EndedOperation<'_>)>,
    /// Whether an answer is so ordinary that the audit leaves it out.
    pub unrecorded: Option<fn(&RedactedSummary) -> bool>,
    /// Headers of its HTTP responses.
    pub headers: &'static [(&'static str, &'static str)],
    /// Requests that can follow its response, as links of OpenAPI.
    pub links: &'static [OperationLink],
    /// Operations of features below whose responses link to this one, which they do not name. In each, `to` is that
    /// operation, and `route` a route of this one.
    pub follows: &'static [OperationLink],
    /// The MCP resource that contains its answer.
    pub resource: Option<Resource>,
    /// The MCP prompt that contains its answer.
    pub prompt: Option<Prompt>,
}

/// Where a request has the name of what it creates, as a runtime expression of OpenAPI.
pub const NAMED: &str = "$request.body#/name";

/// Default metadata; each operation overrides the fields that differ.
pub const META: Meta = Meta {
    name: "",
    summary: "",
    description: "",
    effect: Effect::Read,
    scope: "graph:read",
    toolset: "facts",
    verb: "",
    positional: &[],
    aliases: &[],
    destructive: false,
    names: &[],
    places: &[],
    files: &[],
    branch_field: "branch",
    instead_of_view: &[],
    fits_itself: false,
    indexes_first: false,
    long: false,
    own_ranges: &[],
    local: &[],
    of_any_agent: false,
    several: None,
    rest: &[],
    examples: &[],
    answer: &[],
    essential: false,
    default_tool: &[],
    stream: DataStream::None,
    needs: StoreNeed::Usual,
    unmet: None,
    here: None,
    shown: ResponseView::Fields,
    shell: None,
    lasts: false,
    for_people: None,
    translate: None,
    ended: None,
    unrecorded: None,
    headers: &[],
    links: &[],
    follows: &[],
    resource: None,
    prompt: None,
};

/// Default metadata of operations that write.
pub const WRITE: Meta = Meta { effect: Effect::Write, scope: "graph:write", ..META };

/// Translates the fields of a request in the format of an earlier service to those of an operation.
pub type Translate = fn(Map<String, Value>) -> Result<Map<String, Value>>;

/// An interactive shell for an operation.
#[derive(Clone, Copy, Debug)]
pub struct Shell {
    /// The request field that the shell fills in.
    pub field: &'static str,
    /// Shows the response as trees instead of a table.
    pub tree: fn(&Value) -> Rendering,
}

/// A link from a response to the request that can follow.
#[derive(Clone, Copy, Debug)]
pub struct OperationLink {
    /// The name of the operation.
    pub to: &'static str,
    /// Which of its REST routes, from 1.
    pub route: usize,
    /// Parameters with the runtime expressions of their values.
    pub with: &'static [(&'static str, &'static str)],
}

/// An answer as an MCP resource.
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    /// The path within the project. A last part in braces is a parameter: `object/{ref}`.
    pub path: &'static str,
    pub title: &'static str,
    pub about: &'static str,
    /// The request field that takes the parameter.
    pub field: &'static str,
}

/// A question to an agent that contains an answer.
#[derive(Clone, Copy, Debug)]
pub struct Prompt {
    pub name: &'static str,
    pub title: &'static str,
    pub about: &'static str,
    /// The name of its argument, and what it means.
    pub argument: (&'static str, &'static str),
    /// The request field that takes the argument.
    pub field: &'static str,
    /// Further fields of the request.
    pub with: &'static [(&'static str, &'static str)],
    /// The instruction to the agent that precedes the answer.
    pub asks: &'static str,
}

/// Which way an operation streams data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataStream {
    None,
    In,
    Out,
}

/// The store that the command line opens for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreNeed {
    /// One that exists; operations that write may create it.
    Usual,
    /// One that is created where there is none.
    MayCreate,
    /// None: it brings a temporary one.
    Nothing,
}

/// An operation with its request and response types.
pub trait Op {
    const META: Meta;
    type Request: DeserializeOwned + JsonSchema;
    type Response: Serialize + JsonSchema + Send + 'static;
    fn run(engine: &Engine, context: &mut Context<'_>, request: Self::Request) -> Result<Self::Response>;
}

type Run = fn(&Engine, &mut Context<'_>, Value) -> Result<OperationAnswer>;

/// The response of an operation, which each surface serializes in the form it needs.
pub struct OperationAnswer(Box<dyn Body + Send>);

trait Body {
    fn text(&self) -> serde_json::Result<String>;
    fn value(&self) -> serde_json::Result<Value>;
    fn outline(&self) -> RedactedSummary;
}

impl<T: Serialize> Body for T {
    fn text(&self) -> serde_json::Result<String> {
        let mut text = Vec::with_capacity(1 << 14);
        serde_json::to_writer(&mut text, self)?;
        Ok(String::from_utf8(text).expect("JSON is text"))
    }

    fn value(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }

    fn outline(&self) -> RedactedSummary {
        RedactedSummary::of(self)
    }
}

/// A response that is already serialized, with its value.
struct Written(String, Value);

impl Body for Written {
    fn text(&self) -> serde_json::Result<String> {
        Ok(self.0.clone())
    }

    fn value(&self) -> serde_json::Result<Value> {
        Ok(self.1.clone())
    }

    fn outline(&self) -> RedactedSummary {
        RedactedSummary::of(&self.1)
    }
}

/// A response of which only the serialized text is available.
struct Text(String);

impl Body for Text {
    fn text(&self) -> serde_json::Result<String> {
        Ok(self.0.clone())
    }

    fn value(&self) -> serde_json::Result<Value> {
        serde_json::from_str(&self.0)
    }

    fn outline(&self) -> RedactedSummary {
        self.value().map_or_else(|_| RedactedSummary::default(), |value| RedactedSummary::of(&value))
    }
}

impl OperationAnswer {
    /// A response from its serialized text; `value` parses it.
    pub fn written(text: String) -> OperationAnswer {
        OperationAnswer(Box::new(Text(text)))
    }

    /// A response from elsewhere, as text and as value.
    pub fn of(text: String, value: Value) -> OperationAnswer {
        OperationAnswer(Box::new(Written(text, value)))
    }

    /// The response as JSON, fields in the order of the response type: the summary first.
    pub fn text(&self) -> Result<String> {
        self.0.text().map_err(unwritable)
    }

    /// The response as a JSON value.
    pub fn value(&self) -> Result<Value> {
        self.0.value().map_err(unwritable)
    }

    /// The same response with one more field.
    pub(crate) fn with(self, name: &str, field: &impl Serialize) -> Result<OperationAnswer> {
        let mut value = self.value()?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert(name.to_owned(), serde_json::to_value(field).map_err(unwritable)?);
        }
        Ok(OperationAnswer::of(serde_json::to_string(&value).map_err(unwritable)?, value))
    }

    /// The structure of the response, without its contents.
    pub fn outline(&self) -> RedactedSummary {
        self.0.outline()
    }
}

/// A response with the objects that names in its request were resolved to.
#[derive(Serialize)]
struct Explained<T> {
    #[serde(flatten)]
    response: T,
    resolved: Vec<ResolvedName>,
}

/// The schema of requests. The description that a flattened part gives to the whole request is left out.
fn request_schema<O: Op>() -> Schema {
    let mut schema = schemars::schema_for!(O::Request);
    schema.remove("description");
    schema
}

/// The schema of responses as they are serialized: a field that may be left out is not required.
fn response_schema<O: Op>() -> Schema {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let resolved = generator.subschema_for::<Vec<ResolvedName>>();
    let mut schema = generator.into_root_schema_for::<O::Response>();
    if O::META.names.is_empty() {
        return schema;
    }
    let mut resolved = resolved.to_value();
    if let Some(field) = resolved.as_object_mut() {
        field.insert(
            "description".into(),
            json!("What names were taken for that are no keys, no `Type:key` and no ids."),
        );
    }
    let properties = schema.ensure_object().entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert(names::RESOLVED.into(), resolved);
    }
    schema
}

fn unwritable(e: serde_json::Error) -> Error {
    Error::internal(format!("an answer cannot be written: {e}"))
}

/// An operation as surfaces use it.
pub struct Operation {
    pub meta: Meta,
    /// Built on first use: a command needs the schemas of one operation, not of all.
    pub request: LazyLock<Schema>,
    pub response: LazyLock<Schema>,
    run: Run,
}

impl Operation {
    /// The operation that a type defines.
    pub fn of<O: Op>() -> Operation {
        Operation {
            meta: O::META,
            request: LazyLock::new(request_schema::<O>),
            response: LazyLock::new(response_schema::<O>),
            run: |engine, context, request| {
                let request = serde_json::from_value(request).map_err(|e| {
                    let error = Error::invalid(
                        ErrorCode::InvalidRequest,
                        format!("the request does not fit `{}`: {e}", O::META.name),
                    );
                    if e.to_string().contains("is not a time") {
                        error.hint("write times as 2026-01-31 or 2026-01-31T09:00:00Z")
                    } else {
                        error
                    }
                })?;
                let response = O::run(engine, context, request)?;
                Ok(OperationAnswer(match context.taken.take() {
                    resolved if resolved.is_empty() => Box::new(response),
                    resolved => Box::new(Explained { response, resolved }),
                }))
            },
        }
    }

    /// The schemas of the request fields, by name.
    pub fn fields(&self) -> &Map<String, Value> {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        self.request.as_value().get("properties").and_then(Value::as_object).unwrap_or(&NONE)
    }

    /// Whether a request must have a field.
    pub fn requires(&self, field: &str) -> bool {
        let required = self.request.as_value().get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|name| name == field))
    }

    pub(crate) fn run(&self, engine: &Engine, context: &mut Context<'_>, request: Value) -> Result<OperationAnswer> {
        (self.run)(engine, context, self.read(request)?)
    }

    /// Normalizes the field names of a request: accepts camelCase and aliases. Returns an error for unknown fields, for
    /// numbers outside of the range that the schema states, and for text that some store cannot keep.
    pub fn read(&self, request: Value) -> Result<Value> {
        let Value::Object(given) = request else {
            return Err(Error::invalid(ErrorCode::InvalidRequest, "a request is a JSON object"));
        };
        let fields = self.fields();
        let mut read = Map::new();
        for (name, value) in given {
            json::check_text(&name)?;
            json::check_texts(&value).map_err(|e| e.at(&name).details(json!({"field": name})))?;
            let mut snake = snake_case(&name);
            if let Some((_, field)) = self.meta.aliases.iter().find(|(alias, _)| *alias == snake) {
                snake = (*field).to_string();
            }
            if !fields.contains_key(&snake) {
                let known: Vec<_> = fields.keys().map(String::as_str).collect();
                return Err(Error::invalid(
                    ErrorCode::UnknownField,
                    format!("`{}` has no field `{name}`", self.meta.name),
                )
                .hint(format!("fields: {}", known.join(", ")))
                .details(json!({"field": name})));
            }
            if !self.meta.own_ranges.contains(&snake.as_str()) {
                check_declared_range(&snake, &value, &fields[&snake])?;
            }
            read.insert(snake, value);
        }
        Ok(Value::Object(read))
    }
}

/// Converts a camelCase name to snake_case.
pub fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Every operation, in the order in which `--help` and docs list them: by feature, and within one as it lists them.
pub fn operations() -> &'static [Operation] {
    static ALL: LazyLock<Vec<Operation>> = LazyLock::new(|| {
        features::ALL.iter().flat_map(|feature| feature.operations).map(|operation| operation()).collect()
    });
    &ALL
}

/// The operation with a name.
pub fn find(name: &str) -> Option<&'static Operation> {
    operations().iter().find(|o| o.meta.name == name)
}
