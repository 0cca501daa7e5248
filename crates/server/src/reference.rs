//! The reference pages, generated from the registry: every operation as command, tool and path.

use crate::http::paths;
use crate::mcp::is_listed;
use lukasa_engine::registry::fields::{FieldSyntax, fields};
use lukasa_engine::{Effect, Operation, operations};
use std::fmt::Write;

const NOTE: &str =
    "<!-- Made from the list of operations: LUKASA_WRITE_REFERENCE=1 cargo test -p lukasa-server --test reference -->";

/// Names and texts of all pages, the index first.
pub fn pages() -> Vec<(String, String)> {
    let mut sets: Vec<&str> = operations().iter().map(|operation| operation.meta.toolset).collect();
    sets.sort_unstable();
    sets.dedup();
    let mut index = format!(
        "{NOTE}\n# Reference\n\nEvery operation, on every surface: a command of `lukasa`, an MCP tool, a path of the HTTP \
         server. Tools also take `profile` (compact, balanced, debug) and `page`. Tools in bold are listed to agents by \
         default; `--toolsets` lists more. *long* operations have [places of their \
         own](../access.md#how-many-requests-may-a-user-send) on a server, so that no other request waits for them.\n"
    );
    let mut pages = Vec::new();
    for set in sets {
        let own = || operations().iter().filter(move |operation| operation.meta.toolset == set);
        let names = own().map(|operation| {
            let name = operation.meta.name;
            let shown = if is_listed(operation) { format!("**{name}**") } else { name.to_owned() };
            format!("[{shown}]({set}.md#{name})")
        });
        let names: Vec<String> = names.collect();
        // Writing to a string cannot fail.
        let _ = write!(index, "\n## {set}\n\n{}\n", names.join(" · "));
        let mut page = format!("{NOTE}\n# {set}\n");
        own().for_each(|operation| page.push_str(&entry(operation)));
        pages.push((format!("{set}.md"), page));
    }
    pages.insert(0, ("README.md".into(), index));
    pages
}

fn entry(operation: &Operation) -> String {
    let meta = &operation.meta;
    let effect = match (meta.effect, meta.destructive) {
        (Effect::Read, _) => "reads",
        (_, true) => "writes, destructive",
        (Effect::Write, _) => "writes",
        (Effect::Admin, _) => "administers",
    };
    let length = if meta.long { " · long" } else { "" };
    let mut paths = vec![format!("`POST {}`", paths::own_path(operation))];
    paths.extend(paths::named(operation).iter().map(|route| format!("`{} {}`", route.method, route.path)));
    let mut text = format!(
        "\n## {}\n\n{}. {}\n\n`lukasa {}` · {} · scope `{}` · {effect}{length}\n",
        meta.name,
        meta.summary,
        meta.description,
        meta.verb,
        paths.join(" "),
        meta.scope
    );
    let all = fields(operation);
    if !all.is_empty() {
        text.push_str("\n| field | | |\n|---|---|---|\n");
    }
    for field in &all {
        let shape = match &field.shape {
            FieldSyntax::Flag | FieldSyntax::Switch => "true or false".into(),
            FieldSyntax::Text => "text".into(),
            FieldSyntax::Number => "number".into(),
            FieldSyntax::Choice(choices) => choices.join(", "),
            FieldSyntax::Texts => "texts".into(),
            FieldSyntax::Json => "JSON".into(),
        };
        let needed = if field.required { ", required".into() } else { default(field.default.as_ref()) };
        let help = field.help.replace('\n', " ").replace('|', "\\|");
        let _ = writeln!(text, "| `{}` | {shape}{needed} | {help} |", field.name);
    }
    if !meta.examples.is_empty() {
        let _ = write!(text, "\n```sh\n{}\n```\n", meta.examples.join("\n"));
    }
    text
}

fn default(value: Option<&serde_json::Value>) -> String {
    match value {
        Some(serde_json::Value::String(text)) => format!(", else {text}"),
        Some(value) => format!(", else {value}"),
        None => String::new(),
    }
}
