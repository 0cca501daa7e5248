//! The default tool list, in as few tokens as an agent can work with.

use super::tools::annotations;
use lukasa_engine::registry::fields::{FieldSyntax, fields};
use lukasa_engine::{Effect, Operation};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The tool that calls any other, for hosts that only call listed tools.
pub const CALL: &str = "call_tool";

/// Longest description of a tool and of an argument, in characters.
const TOOL: usize = 200;
const ARGUMENT: usize = 110;

/// Whether a tool is listed when no toolset is chosen. `find_tools` finds the others, and all arguments of each.
pub fn is_listed(operation: &Operation) -> bool {
    !operation.meta.default_tool.is_empty()
}

/// A tool with some of its arguments and without the schema of its answers.
pub fn brief(operation: &Operation) -> Tool {
    let meta = &operation.meta;
    let arguments = meta.default_tool;
    let mut properties = Map::new();
    for field in fields(operation).into_iter().filter(|field| arguments.contains(&field.name.as_str())) {
        let mut schema = field.schema();
        let help = shortened(&field.help, ARGUMENT);
        // A description that only repeats the choices is left out.
        let repeats =
            matches!(&field.shape, FieldSyntax::Choice(all) if all.iter().all(|one| help.contains(one.as_str())));
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

/// Leaves out hints that a host assumes anyway: a tool that only reads is never destructive and always idempotent.
fn hints(mut all: ToolAnnotations) -> ToolAnnotations {
    all.title = None;
    all.idempotent_hint = None;
    if all.read_only_hint == Some(true) {
        all.destructive_hint = None;
    }
    all
}

/// The listing of `call_tool`. It counts as destructive because the tool it calls may be.
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

/// The first sentence of a text, cut at the last clause that fits.
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
    use lukasa_engine::operations;
    use lukasa_search::count::count;
    use rmcp::model::ListToolsResult;

    /// Most tokens of the default list, as a client receives it.
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
        assert_eq!(names.len(), operations().iter().filter(|operation| is_listed(operation)).count() + 1);
    }

    #[test]
    fn listed_arguments_exist_and_none_that_is_required_is_left_out() {
        for operation in operations().iter().filter(|operation| is_listed(operation)) {
            let (name, arguments) = (operation.meta.name, operation.meta.default_tool);
            assert!(arguments.iter().all(|own| operation.fields().contains_key(*own)), "{name}: {arguments:?}");
            let required = operation.fields().keys().filter(|field| operation.requires(field));
            assert!(required.into_iter().all(|field| arguments.contains(&field.as_str())), "{name}");
            let tool = brief(operation);
            assert_eq!(tool.annotations.and_then(|a| a.read_only_hint), Some(operation.meta.effect == Effect::Read));
            assert!(tool.input_schema.get("additionalProperties").is_none(), "{name}: others are accepted too");
        }
    }

    #[test]
    fn tools_of_a_chosen_set_are_listed_in_full() {
        let of = |sets: &[&str], name: &str| {
            let all = Toolsets::read(sets.iter().copied()).unwrap().tools();
            all.into_iter().find(|tool| tool.name == name)
        };
        let (whole, part) = (of(&["memory"], "episode_add").unwrap(), of(&[], "episode_add").unwrap());
        assert!(whole.output_schema.is_some() && part.output_schema.is_none());
        assert!(whole.input_schema["properties"].get("facts").is_some());
        assert!(part.input_schema["properties"].get("facts").is_none());
        assert!(of(&["memory"], CALL).is_some());
        assert!(of(&["all"], CALL).is_none(), "every tool is listed already");
    }

    #[test]
    fn texts_are_cut_at_the_end_of_a_clause() {
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
