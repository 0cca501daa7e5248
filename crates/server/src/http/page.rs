//! An HTML page of every path, without external scripts.

use super::routes::{named, own_path};
use axum::response::Html;
use lukasa_engine::operations;
use lukasa_engine::registry::fields::fields;
use std::fmt::Write;
use std::sync::LazyLock;

static PAGE: LazyLock<String> = LazyLock::new(written);

pub async fn page() -> Html<&'static str> {
    Html(&PAGE)
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}\
code{background:#f3f3f0;padding:.1em .3em;border-radius:3px}h2{margin-top:2.5rem;border-bottom:1px solid #ddd}\
dt{margin-top:.4rem}dd{margin-left:1.5rem;color:#555}summary{cursor:pointer}details{margin:.6rem 0}\
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}code{background:#2a2a2a}dd{color:#aaa}}";

fn written() -> String {
    let mut page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>Lukasa</title><style>{STYLE}</style><h1>Lukasa</h1>\
         <p>Agents: MCP at <code>/mcp</code>. Programs: the paths below, described in \
         <a href=/openapi.json>openapi.json</a>. Operators: <a href=/healthz>healthz</a>, <a href=/readyz>readyz</a>, \
         <code>/metrics</code>; events at <code>/v1/events</code>.</p>"
    );
    let mut sets: Vec<&str> = operations().iter().map(|o| o.meta.toolset).collect();
    sets.sort_unstable();
    sets.dedup();
    for set in sets {
        // Writing to a string cannot fail.
        let _ = write!(page, "<h2>{}</h2>", escaped(set));
        for operation in operations().iter().filter(|o| o.meta.toolset == set) {
            let meta = &operation.meta;
            let _ = write!(
                page,
                "<details id={0}><summary><code>POST {1}</code> {2}</summary><p>{3}</p><p>Scope <code>{4}</code></p>",
                meta.name,
                own_path(operation),
                escaped(meta.summary),
                escaped(meta.description),
                meta.scope
            );
            for route in named(operation) {
                let _ = write!(page, "<p>also <code>{} {}</code></p>", route.method, escaped(route.path));
            }
            page.push_str("<dl>");
            for field in fields(operation) {
                let needed = if field.required { " (required)" } else { "" };
                let _ = write!(page, "<dt><code>{}</code>{needed}<dd>{}", field.name, escaped(&field.help));
            }
            page.push_str("</dl></details>");
        }
    }
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
