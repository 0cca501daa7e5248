//! `index_file`: brings the branch up to date and lists the symbols of one file.

use crate::features::code::index::PassOptions;
use crate::features::code::rendering::index;
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_code::type_names;
use lukasa_model::{Error, ErrorCode, Result, Tx};
use lukasa_store::VersionFields;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub struct IndexFile;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The file that was changed, added or removed.
    pub path: String,
    /// The branch to write to; the git branch that is checked out when left out.
    #[serde(default)]
    pub branch: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// The file's key.
    pub key: String,
    /// Whether it is indexed now: not if it was removed, is ignored, or is not text.
    pub indexed: bool,
    pub tx: Option<Tx>,
    /// Its symbols.
    pub symbols: Vec<FileSymbolOut>,
}

#[derive(Serialize, JsonSchema)]
pub struct FileSymbolOut {
    #[serde(rename = "type")]
    pub type_name: String,
    pub key: String,
    pub line: Option<u64>,
    pub signature: Option<String>,
}

impl Op for IndexFile {
    const META: Meta = Meta {
        name: "index_file",
        long: true,
        shown: ResponseView::By(index::file),
        answer: &["key", "symbols.key", "symbols.line", "symbols.signature", "indexed", "tx"],
        places: &["path"],
        summary: "Index what changed and list one file's symbols",
        description: "Runs a pass over the working tree around the file, which reads only what changed, and lists the \
                      file's symbols as they are now.",
        verb: "index-file",
        toolset: "code",
        positional: &["path"],
        examples: &["lukasa index-file src/main.rs"],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let path = Path::new(&request.path);
        let absolute = std::path::absolute(path)
            .map_err(|e| Error::invalid(ErrorCode::InvalidPath, format!("`{}` is not a path: {e}", request.path)))?;
        // The parent of a folder may be outside of what the caller wants to be indexed.
        if absolute.is_dir() {
            return Err(Error::invalid(ErrorCode::NotAFile, format!("`{}` is a folder", request.path))
                .hint("`lukasa index` (`index_directory`) takes folders"));
        }
        let folder = absolute.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
        let workspace = engine.workspace(&context.scope, folder)?;
        let pass = PassOptions { branch: request.branch.clone(), ..PassOptions::default() };
        let report = workspace.index(engine, context, &pass)?;
        // Links on the way to the file are resolved in the root, so they are in the file's folder too.
        let inside = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let inside = inside.join(absolute.strip_prefix(folder).unwrap_or(Path::new("")));
        let key = crate::features::code::files::relative(workspace.root(), &inside).ok_or_else(|| {
            Error::invalid(ErrorCode::OutsideWorkspace, format!("`{}` is outside its folder", request.path))
        })?;
        let ledger = engine.ledger(&context.scope);
        let view = ledger.view(&ViewSpec::on(&report.branch))?;
        let files = ledger.states_with_prefix(&view, Some(type_names::FILE), &key, VersionFields::Header)?;
        let indexed = files.iter().any(|f| f.thing.key.as_deref() == Some(&key));
        let mut symbols = Vec::new();
        let mut there = ledger.states_with_prefix(&view, None, &format!("{key}::"), VersionFields::Content)?;
        ledger.hide(&mut there)?;
        for found in there {
            let Some(statement) = &found.statement else { continue };
            let content = statement.parsed()?;
            symbols.push(FileSymbolOut {
                type_name: found.thing.type_name.to_string(),
                key: found.thing.key.as_deref().unwrap_or_default().to_owned(),
                line: content.properties.get("line").and_then(serde_json::Value::as_u64),
                signature: content.properties.get("signature").and_then(|v| v.as_str()).map(str::to_owned),
            });
        }
        symbols.sort_by_key(|s| s.line);
        let summary = if indexed {
            format!("{key}: {}", count(symbols.len(), "symbol"))
        } else {
            format!("{key} is not indexed: it is gone, ignored or no text")
        };
        Ok(Response { summary, key, indexed, tx: report.tx, symbols })
    }
}
