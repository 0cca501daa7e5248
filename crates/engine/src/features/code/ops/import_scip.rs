//! `import_scip`: imports calls and references from an index that a compiler's tools have written.

use crate::convert::to_ms;
use crate::data_files::unreadable;
use crate::features::code::confined_files;
use crate::features::code::encoding::decode;
use crate::features::code::files::{self, DIAGNOSTICS, Diagnostic};
use crate::features::code::git::is_blob_id;
use crate::features::code::rendering::index;
use crate::hex::unhex;
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_code::scip::{
    self, CompilerRelationship, CompilerRelationships, KnownCall, MatchedDocument, ScipDocument, ScipIndex,
};
use lukasa_code::type_names;
use lukasa_model::batch::{End, PutRelationship};
use lukasa_model::id::{object_id, relationship_id};
use lukasa_model::{Batch, Error, ErrorCode, FactNo, Result, TransactionKind, Tx, View, Write};
use lukasa_store::ledger::ViewSpec;
use lukasa_store::{Ledger, VersionFields};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use uuid::Uuid;

pub struct ImportScip;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The index file that an indexer wrote, for example `index.scip`.
    pub file: String,
    /// The root of the working tree that was indexed; the current folder when left out.
    #[serde(default = "here")]
    pub path: String,
    /// The branch to write to; `main` when left out.
    #[serde(default)]
    pub branch: Option<String>,
}

fn here() -> String {
    ".".into()
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// The indexer that made the index.
    pub tool: String,
    pub documents: usize,
    /// Documents that were left out; `diagnostics` has the reasons.
    pub skipped_documents: usize,
    /// Symbols of the index that are definitions in the graph.
    pub matched_definitions: usize,
    /// Symbols of the index without an object in the graph, such as members of literals.
    pub unmatched_definitions: usize,
    /// Relationships in the index, by type.
    pub relationships: BTreeMap<String, usize>,
    /// Relationships that existed before with another derivation.
    pub upgraded: usize,
    pub added: usize,
    /// Calls with another derivation that the index contradicts; they were ended.
    pub ended: usize,
    /// Relationships that existed before with derivation `compiler`.
    pub unchanged: usize,
    /// The transaction; null if nothing was written.
    pub tx: Option<Tx>,
    pub diagnostics: Vec<Diagnostic>,
    pub diagnostics_left_out: usize,
    pub took_ms: u64,
}

/// Maximum bytes of an index, which is read into memory as a whole. Those of the largest repositories are smaller.
const INDEX_BYTES: u64 = 1 << 30;
/// Number of documents read between two progress reports.
const PART: usize = 256;

impl Op for ImportScip {
    const META: Meta = Meta {
        name: "import_scip",
        long: true,
        shown: ResponseView::By(index::imported),
        answer: &["documents", "matched_definitions", "added", "upgraded", "ended", "tx", "diagnostics"],
        places: &["path"],
        files: &["file"],
        summary: "Import a SCIP index: calls and references found by a compiler",
        description: "Takes an index made by scip-typescript, scip-python, rust-analyzer, scip-java, scip-go or any \
                      other SCIP indexer for a folder that `lukasa index` has read, and records its calls, references \
                      and inheritance with derivation `compiler` and confidence 1. A call with another derivation is \
                      ended if the index has a call of another symbol with that name instead. Files \
                      that changed since the index was made are left out. Importing the same again writes nothing.",
        verb: "import-scip",
        toolset: "code",
        positional: &["file"],
        examples: &["lukasa import-scip index.scip", "lukasa import-scip web.scip --path ../web --branch trial"],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let began = Instant::now();
        let (bytes, made_ns) = load(Path::new(&request.file))?;
        let index = ScipIndex::read(&bytes)?;
        let ledger = engine.ledger(&context.scope);
        let branch = request.branch.unwrap_or_else(|| "main".into());
        let tree = Tree::open(Path::new(&request.path), &index, made_ns, &ledger, &branch)?;
        let (placed, skipped, mut diagnostics) = tree.read(&index, context)?;
        let paths: Vec<&str> = placed.iter().map(|(path, _)| path.as_str()).collect();
        let mut known = Known::read(&ledger, &tree, &paths)?;
        let placed: Vec<MatchedDocument<'_>> = placed.into_iter().map(|(_, placed)| placed).collect();
        let mut compiled = scip::link(&index, &placed, &skipped, known.namespace);
        known.find_relationships(&ledger, &tree.view, &compiled)?;
        compiled.adopt(known.calls());

        let reason = format!("SCIP index by {}", index.made_by());
        let mut batch = Batch { header: context.header(Some(reason)), ..Batch::on(&branch) };
        batch.header.kind = TransactionKind::Import;
        let mut done = Response {
            tool: index.made_by(),
            documents: index.documents.len(),
            skipped_documents: index.documents.len() - placed.len(),
            matched_definitions: compiled.matched,
            unmatched_definitions: compiled.unmatched,
            ..Response::default()
        };
        known.write(&compiled, &mut batch, &mut done);
        if !batch.writes.is_empty() {
            done.tx = ledger.commit(&batch)?.tx;
        }
        diagnostics.sort();
        done.diagnostics_left_out = diagnostics.len().saturating_sub(DIAGNOSTICS);
        diagnostics.truncate(DIAGNOSTICS);
        done.diagnostics = diagnostics;
        done.took_ms = to_ms(began.elapsed());
        done.summary = format!(
            "read {} by {}: {} upgraded, {} added, {} ended",
            count(done.documents - done.skipped_documents, "document"),
            done.tool,
            done.upgraded,
            done.added,
            done.ended
        );
        if done.skipped_documents > 0 {
            done.summary += &format!("; {} left out", count(done.skipped_documents, "document"));
        }
        Ok(done)
    }
}

/// Reads the index, and the time it was written.
fn load(file: &Path) -> Result<(Vec<u8>, i128)> {
    let metadata = std::fs::metadata(file).map_err(|e| unreadable(file, &e))?;
    if metadata.len() > INDEX_BYTES {
        let what = format!("`{}` has {} bytes, {INDEX_BYTES} are allowed", file.display(), metadata.len());
        return Err(Error::too_large(ErrorCode::ScipTooLarge, what)
            .hint("make an index for each part of the repository, and import them one by one"));
    }
    let bytes = std::fs::read(file).map_err(|e| unreadable(file, &e))?;
    Ok((bytes, files::stamp(&metadata).modified_ns))
}

/// The working tree, and its files as recorded on the branch.
struct Tree {
    root: PathBuf,
    /// The folder in it that paths of the index are relative to.
    prefix: String,
    made_ns: i128,
    view: View,
    /// By path: the content id on the branch, and the object.
    files: FxHashMap<String, (String, Uuid, FactNo)>,
}

type Read<'a> = (Vec<(String, MatchedDocument<'a>)>, Vec<&'a str>, Vec<Diagnostic>);

impl Tree {
    fn open(root: &Path, index: &ScipIndex<'_>, made_ns: i128, ledger: &Ledger, branch: &str) -> Result<Tree> {
        if !root.is_dir() {
            return Err(Error::not_found(ErrorCode::NoFolder, format!("there is no folder `{}`", root.display()))
                .hint("name the root of the working tree with --path"));
        }
        let view = ledger.view(&ViewSpec::on(branch))?;
        let mut files = FxHashMap::default();
        for found in ledger.states_with_prefix(&view, Some(type_names::FILE), "", VersionFields::Content)? {
            let (Some(path), Some(statement)) = (found.thing.key.as_deref(), &found.statement) else { continue };
            if let Some(Value::String(hash)) = statement.parsed()?.properties.get("content_hash") {
                files.insert(path.to_owned(), (hash.clone(), found.thing.id, found.thing.no));
            }
        }
        let prefix = std::fs::canonicalize(root).ok().and_then(|root| below(&root, index.root)).unwrap_or_default();
        Ok(Tree { root: root.to_owned(), prefix, made_ns, view, files })
    }

    /// Reads every document with its file, on all cores.
    fn read<'a>(&self, index: &ScipIndex<'a>, context: &mut Context<'_>) -> Result<Read<'a>> {
        let (mut placed, mut skipped, mut diagnostics) = (Vec::new(), Vec::new(), Vec::new());
        let total = index.documents.len() as u64;
        for (part, documents) in index.documents.chunks(PART).enumerate() {
            let read: Vec<Result<_>> = documents.par_iter().map(|bytes| self.read_one(index, bytes)).collect();
            for document in read {
                match document? {
                    Ok(one) => placed.push(one),
                    Err((defined, why)) => {
                        skipped.extend(defined);
                        diagnostics.push(why);
                    }
                }
            }
            context.stop.check()?;
            (context.progress)((part * PART + documents.len()) as u64, Some(total));
        }
        Ok((placed, skipped, diagnostics))
    }

    /// Reads a document with its file. The error contains the symbols that it defines and why it is left out.
    #[allow(clippy::type_complexity, reason = "the line above explains the error")]
    fn read_one<'a>(
        &self,
        index: &ScipIndex<'a>,
        bytes: &'a [u8],
    ) -> Result<std::result::Result<(String, MatchedDocument<'a>), (Vec<&'a str>, Diagnostic)>> {
        let document = ScipDocument::read(bytes)?;
        let path = format!("{}{}", self.prefix, document.path);
        Ok(match self.source(&path, &document) {
            Ok((text, language)) => {
                let facts = lukasa_code::parse(&path, &text, language);
                let encoding = document.encoding.unwrap_or_else(|| index.usual_encoding());
                let placed = scip::match_document(&document, encoding, &path, &text, facts);
                Ok((path, placed))
            }
            Err(why) => Err((scip::defined_in(&document), Diagnostic::new(&path, why))),
        })
    }

    /// The source text of the document, or why there is none.
    fn source(
        &self,
        path: &str,
        document: &ScipDocument<'_>,
    ) -> std::result::Result<(String, lukasa_code::LanguageId), String> {
        // A path in an index must not lead to files outside of the working tree.
        if !confined_files::is_beneath(path) || path.contains('\\') {
            return Err("not a path below the root".into());
        }
        let place = self.root.join(path);
        let metadata = match std::fs::symlink_metadata(&place) {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) => return Err("no file".into()),
            Err(_) => return Err("missing: the index was made of another working tree, or the file is gone".into()),
        };
        // If the index contains the text, comparing it is more reliable than comparing times.
        if document.text.is_none() && files::stamp(&metadata).modified_ns > self.made_ns {
            return Err(CHANGED.into());
        }
        let mut faults = Vec::new();
        let Some(bytes) = files::load(&self.root, path, &mut faults) else {
            return Err(faults.pop().map_or_else(|| "cannot be read".into(), |fault| fault.what));
        };
        if document.text.is_some_and(|text| decode(bytes.clone()).is_none_or(|on_disk| on_disk.text != text)) {
            return Err(CHANGED.into());
        }
        match self.files.get(path) {
            None => return Err("not on the branch: run `lukasa index` first".into()),
            Some((hash, _, _)) if !unhex(hash).is_some_and(|id| is_blob_id(&id, &bytes)) => {
                return Err("the branch has another content of it: run `lukasa index` first".into());
            }
            Some(_) => {}
        }
        let decoded = files::text(path, bytes, &mut faults);
        let source = decoded.and_then(|decoded| files::source(path, decoded, &mut faults));
        source.ok_or_else(|| "not in a language that is taken apart".into())
    }
}

const CHANGED: &str = "changed since the index was made";

/// The path from the root of the working tree to that of the index, if it is inside: `packages/web/`.
fn below(root: &Path, index_root: &str) -> Option<String> {
    let path = index_root.strip_prefix("file://")?;
    let path = PathBuf::from(unescape(path.strip_prefix("localhost").unwrap_or(path))?);
    files::relative(root, &path).map(|inside| inside + "/")
}

/// Decodes `%20` and similar escapes in the path of a URL.
fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    out.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        out.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        out.extend_from_slice(part.get(2..)?.as_bytes());
    }
    String::from_utf8(out).ok()
}

/// The facts on the branch about the definitions of the documents.
struct Known {
    namespace: Uuid,
    objects: FxHashMap<Uuid, FactNo>,
    /// Packages, and names of packages.
    outside: FxHashSet<Uuid>,
    relationships: FxHashMap<Uuid, Relationship>,
}

struct Relationship {
    is_call: bool,
    src: Uuid,
    dst: Uuid,
    dst_key: String,
    content: lukasa_model::Content,
}

impl Relationship {
    fn call(&self) -> KnownCall<'_> {
        KnownCall { caller: self.src, called: self.dst, called_key: &self.dst_key, content: &self.content }
    }
}

/// Types of relationships that an index contains.
const INDEXED_TYPES: [&str; 4] =
    [type_names::CALLS, type_names::REFERENCES, type_names::EXTENDS, type_names::IMPLEMENTS];

impl Known {
    fn read(ledger: &Ledger, tree: &Tree, paths: &[&str]) -> Result<Known> {
        let mut known = Known {
            namespace: ledger.head()?.namespace,
            objects: FxHashMap::default(),
            outside: FxHashSet::default(),
            relationships: FxHashMap::default(),
        };
        for path in paths {
            known.objects.extend(tree.files.get(*path).map(|(_, id, no)| (*id, *no)));
            for state in ledger.states_with_prefix(&tree.view, None, &format!("{path}::"), VersionFields::Header)? {
                known.objects.insert(state.thing.id, state.thing.no);
            }
        }
        for object_type in [type_names::PACKAGE, type_names::EXTERNAL] {
            let found = ledger.states_with_prefix(&tree.view, Some(object_type), "", VersionFields::Header)?;
            known.outside.extend(found.iter().map(|state| state.thing.id));
        }
        Ok(known)
    }

    /// Reads the existing relationships of all sources of relationships in the index.
    fn find_relationships(&mut self, ledger: &Ledger, view: &View, compiled: &CompilerRelationships) -> Result<()> {
        let sources: FxHashSet<Uuid> = compiled.edges.iter().map(|edge| edge.src).collect();
        let numbers: FxHashMap<FactNo, Uuid> =
            sources.iter().filter_map(|id| Some((*self.objects.get(id)?, *id))).collect();
        let mut asked: Vec<FactNo> = numbers.keys().copied().collect();
        asked.sort_unstable();
        let mut there = ledger.relationships_at(&asked)?;
        there.retain(|thing| {
            let leaves = thing.ends.as_ref().is_some_and(|ends| numbers.contains_key(&ends.src));
            leaves && INDEXED_TYPES.contains(&&*thing.type_name)
        });
        let mut ends: Vec<FactNo> = there.iter().filter_map(|t| t.ends.as_ref().map(|ends| ends.dst)).collect();
        ends.sort_unstable();
        ends.dedup();
        let ends: FxHashMap<FactNo, (Uuid, String)> = ledger
            .facts(&ends)?
            .into_iter()
            .map(|thing| (thing.no, (thing.id, thing.key.as_deref().unwrap_or_default().to_owned())))
            .collect();
        let mut asked: Vec<FactNo> = there.iter().map(|thing| thing.no).collect();
        asked.sort_unstable();
        for state in ledger.states_unredacted(view, &asked, VersionFields::Content)? {
            let Some(statement) = state.statement.filter(|statement| !statement.absent) else { continue };
            let Some(between) = &state.thing.ends else { continue };
            let (Some(src), Some((dst, dst_key))) = (numbers.get(&between.src), ends.get(&between.dst)) else {
                continue;
            };
            let relationship = Relationship {
                is_call: &*state.thing.type_name == type_names::CALLS,
                src: *src,
                dst: *dst,
                dst_key: dst_key.clone(),
                content: statement.parsed()?,
            };
            self.relationships.insert(state.thing.id, relationship);
        }
        Ok(())
    }

    fn calls(&self) -> impl Iterator<Item = KnownCall<'_>> {
        self.relationships.values().filter(|r| r.is_call).map(Relationship::call)
    }

    /// Adds the writes that bring the branch up to the index.
    fn write(&self, compiled: &CompilerRelationships, batch: &mut Batch, done: &mut Response) {
        let contradicted = |r: &Relationship| r.is_call && !is_compiled(&r.content) && compiled.refutes(&r.call());
        let mut ends: Vec<Uuid> =
            self.relationships.iter().filter(|(_, r)| contradicted(r)).map(|(id, _)| *id).collect();
        ends.sort_unstable();
        // A reference beside a call between the same two symbols is not recorded.
        let kept = self.relationships.iter().filter(|(id, r)| r.is_call && ends.binary_search(id).is_err());
        let called: FxHashSet<(Uuid, Uuid)> = kept.map(|(_, r)| (r.src, r.dst)).collect();
        let stated: FxHashMap<Uuid, &(&'static str, String)> =
            compiled.outside.keys().map(|name| (object_id(self.namespace, name.0, &name.1), name)).collect();
        let mut needed: FxHashSet<Uuid> = FxHashSet::default();
        let mut puts: Vec<Write> = Vec::new();
        for edge in &compiled.edges {
            let CompilerRelationship { type_name, src, dst, .. } = edge;
            let there = self.objects.contains_key(dst) || stated.contains_key(dst) || self.outside.contains(dst);
            if !self.objects.contains_key(src)
                || !there
                || *type_name == type_names::REFERENCES && called.contains(&(*src, *dst))
            {
                continue;
            }
            *done.relationships.entry((*type_name).to_owned()).or_default() += 1;
            needed.insert(*dst);
            let id = relationship_id(self.namespace, type_name, *src, *dst, "");
            let before = self.relationships.get(&id).map(|r| &r.content);
            let content = edge.content(before);
            match before {
                None => done.added += 1,
                Some(before) if !is_compiled(before) => done.upgraded += 1,
                Some(before) => {
                    done.unchanged += 1;
                    if *before == content {
                        continue;
                    }
                }
            }
            puts.push(PutRelationship::new(type_name, *src, *dst).with_content(content).into());
        }
        // The name of a package requires the package.
        let packages: Vec<Uuid> = needed
            .iter()
            .filter_map(|id| stated.get(id)?.1.split_once("::"))
            .map(|(package, _)| object_id(self.namespace, type_names::PACKAGE, package))
            .collect();
        needed.extend(packages);
        for ((object_type, key), put) in &compiled.outside {
            let id = object_id(self.namespace, object_type, key);
            // An existing object may have more content, which is kept.
            if needed.contains(&id) && !self.outside.contains(&id) {
                batch.writes.push(put.clone().into());
            }
        }
        batch.writes.extend(puts);
        done.ended = ends.len();
        batch.writes.extend(ends.into_iter().map(|id| Write::End(End::new(id))));
    }
}

fn is_compiled(content: &lukasa_model::Content) -> bool {
    content.derivation.as_deref() == Some("compiler")
}
