//! The tools that are listed when no toolset is chosen, each in as few tokens as an agent can work with.

use super::tools::annotations;
use lukasa_engine::registry::fields::{Shape, fields};
use lukasa_engine::{Effect, Operation};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The tool that calls any other, for hosts that call only what is listed.
pub const CALL: &str = "call_tool";

/// Listed when no toolset is chosen, with the arguments that agents use most. Others are accepted as well: `find_tools`
/// gives all arguments of a tool, and finds the tools that are not here.
pub const DEFAULT: [(&str, &[&str]); 18] = [
    ("context_pack", &["task", "path", "task_id", "claim", "cursor"]),
    ("search", &["query", "limit", "object_types", "recipe", "include_citations", "cursor"]),
    ("semantic_slice", &["symbol", "file", "query", "context"]),
    ("symbol_lookup", &["query", "types", "path", "limit"]),
    ("code_explain", &["ref", "limit"]),
    ("get_callers", &["ref", "depth", "include_tests", "limit"]),
    ("get_callees", &["ref", "depth", "limit"]),
    ("impact", &["ref", "max_depth", "limit"]),
    ("graph_query", &["query", "language", "mode", "limit"]),
    ("find_pattern", &["pattern", "path", "limit"]),
    ("diff_since", &["since", "branch", "types", "limit"]),
    ("index_directory", &["path", "branch"]),
    ("put", &["type", "key", "title", "properties", "branch"]),
    ("episode_add", &["content", "type", "entities", "metadata", "outcome", "task_id"]),
    ("episode_recall", &["query", "types", "entities", "agent_id", "task_id", "since", "limit"]),
    ("decision_add", &["title", "rationale", "tradeoffs", "affected_files", "supersedes", "task_id"]),
    ("agent_claim", &["target_id", "intent", "task_id"]),
    ("find_tools", &["query", "toolset", "limit"]),
];

/// Longest description of a tool and of an argument, in characters.
const TOOL: usize = 200;
const ARGUMENT: usize = 110;

/// The arguments that are listed of a tool; none where it is not listed unless its toolset is chosen.
pub fn listed(name: &str) -> Option<&'static [&'static str]> {
    DEFAULT.iter().find(|(own, _)| *own == name).map(|(_, arguments)| *arguments)
}

/// A tool with some of its arguments and without the shape of its answers, which says of itself what it is.
pub fn brief(operation: &Operation, arguments: &[&str]) -> Tool {
    let meta = &operation.meta;
    let mut properties = Map::new();
    for field in fields(operation).into_iter().filter(|field| arguments.contains(&field.name.as_str())) {
        let mut schema = field.schema();
        let help = shortened(&field.help, ARGUMENT);
        // A choice that is only listed again says nothing.
        let repeats = matches!(&field.shape, Shape::Choice(all) if all.iter().all(|one| help.contains(one.as_str())));
        if !help.is_empty() && !repeats {
            schema["description"] = json!(help);
        }
        properties.insert(field.name, schema);
    }
    if meta.effect == Effect::Read {
        properties.insert("profile".into(), json!({"enum": ["compact", "balanced", "debug"]}));
        properties.insert("page".into(), json!({"type": "integer"}));
    }
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), Value::Object(properties));
    let required: Vec<&str> = arguments.iter().copied().filter(|name| operation.requires(name)).collect();
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    let about = format!("{}. {}", meta.summary, shortened(meta.description, TOOL));
    Tool::new(meta.name, about, Arc::new(schema)).with_annotations(hints(annotations(operation)))
}

/// Only what is not meant anyway: a tool that reads changes nothing, however often it is called.
fn hints(mut all: ToolAnnotations) -> ToolAnnotations {
    all.title = None;
    all.idempotent_hint = None;
    if all.read_only_hint == Some(true) {
        all.destructive_hint = None;
    }
    all
}

/// As it is listed. It may call what takes something away.
pub fn call_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "A tool, listed or not"},
            "arguments": {"type": "object", "description": "Its arguments, as `find_tools` gives them"}
        },
        "required": ["name"]
    });
    let schema: JsonObject = match schema {
        Value::Object(map) => map,
        _ => JsonObject::new(),
    };
    let about = "Call a tool that is not listed. Its rights and answers are those of the tool itself.";
    let hints = ToolAnnotations::new().read_only(false).destructive(true).open_world(false);
    Tool::new(CALL, about, Arc::new(schema)).with_annotations(hints)
}

/// The first sentence of a text, up to its last part that has room.
fn shortened(text: &str, most: usize) -> String {
    let text = text.replace('\n', " ");
    let end = text.match_indices(['.', ';']).find(|(at, _)| text[at + 1..].starts_with(' ')).map(|(at, _)| at);
    let sentence = text[..end.unwrap_or(text.len())].trim_end_matches('.');
    if sentence.chars().count() <= most {
        return sentence.to_owned();
    }
    let room = sentence.char_indices().nth(most).map_or(sentence.len(), |(at, _)| at);
    let cut = [", ", ": ", " "].iter().find_map(|mark| sentence[..room].rfind(mark));
    format!("{} …", &sentence[..cut.unwrap_or(room)])
}

#[cfg(test)]
mod tests {
    use super::super::Toolsets;
    use super::*;
    use lukasa_engine::registry::find;
    use lukasa_search::count::count;
    use rmcp::model::ListToolsResult;

    /// What the default list may cost, as a client sees it.
    const MOST: usize = 4_000;

    #[test]
    fn the_default_list_costs_at_most_four_thousand_tokens() {
        let list = ListToolsResult::with_all_items(Toolsets::default().tools());
        let tokens = count(&serde_json::to_string(&list).unwrap());
        println!("default MCP list: {} tools, {tokens} tokens", list.tools.len());
        for tool in &list.tools {
            println!("{:>6} {}", count(&serde_json::to_string(tool).unwrap()), tool.name);
        }
        assert!(tokens <= MOST, "{tokens} tokens");
        let names: Vec<&str> = list.tools.iter().map(|tool| &*tool.name).collect();
        for wanted in ["episode_add", "episode_recall", "decision_add", "agent_claim", "find_tools", CALL] {
            assert!(names.contains(&wanted), "{wanted} is not listed");
        }
        assert_eq!(names.len(), DEFAULT.len() + 1);
    }

    #[test]
    fn listed_arguments_exist_and_none_that_is_required_is_left_out() {
        for (name, arguments) in DEFAULT {
            let operation = find(name).unwrap();
            assert!(arguments.iter().all(|own| operation.fields().contains_key(*own)), "{name}: {arguments:?}");
            let required = operation.fields().keys().filter(|field| operation.requires(field));
            assert!(required.into_iter().all(|field| arguments.contains(&field.as_str())), "{name}");
            let tool = brief(operation, arguments);
            assert_eq!(tool.annotations.and_then(|a| a.read_only_hint), Some(operation.meta.effect == Effect::Read));
            assert!(tool.input_schema.get("additionalProperties").is_none(), "{name}: others are accepted too");
        }
    }

    #[test]
    fn tools_of_a_chosen_set_are_listed_whole() {
        let of = |sets: &[&str], name: &str| {
            let all = Toolsets::read(sets.iter().copied()).unwrap().tools();
            all.into_iter().find(|tool| tool.name == name)
        };
        let (whole, part) = (of(&["memory"], "episode_add").unwrap(), of(&[], "episode_add").unwrap());
        assert!(whole.output_schema.is_some() && part.output_schema.is_none());
        assert!(whole.input_schema["properties"].get("facts").is_some());
        assert!(part.input_schema["properties"].get("facts").is_none());
        assert!(of(&["memory"], CALL).is_some());
        assert!(of(&["all"], CALL).is_none(), "nothing is left to be reached by it");
    }

    #[test]
    fn texts_are_shortened_where_a_part_ends() {
        for (text, most, left) in [
            (
                "What to look for, 1 to 800 characters; `pack` takes whole tasks.",
                80,
                "What to look for, 1 to 800 characters",
            ),
            ("One thing, another thing and a third", 20, "One thing …"),
            ("A file: its path.\nAlone it stands.", 80, "A file: its path"),
            ("Unbreakable", 4, "Unbr …"),
            ("", 4, ""),
        ] {
            assert_eq!(shortened(text, most), left);
        }
    }
}
