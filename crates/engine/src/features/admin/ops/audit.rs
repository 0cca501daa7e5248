//! `audit_list`, `audit_verify`, `audit_export`: lists, verifies and exports the audit log.

use crate::audit::AuditKey;
use crate::features::admin::rendering;
use crate::registry::META;
use crate::registry::{DataStream, Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::telemetry::metrics;
use crate::{Context, Engine};
use lukasa_model::json::Hash;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Time};
use lukasa_store::audit::{AuditEntry, AuditFilter, AuditFlaw, ChainReport, walk};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// Scope required to read entries of other projects.
const CROSS_PROJECT: &str = "graph:admin:cross-project";
/// Entries read at a time.
const PAGE: usize = 1_000;

const AUDIT: Meta = Meta { scope: "graph:admin:audit", toolset: "admin", ..META };

/// Returns the key for hashed names and for seals; fails when auditing is off.
fn key(engine: &Engine) -> Result<&AuditKey> {
    engine.audit().map(|audit| &**audit.key()).ok_or_else(|| {
        Error::new(ErrorKind::Unsupported, ErrorCode::NoAudit, "nothing is recorded here")
            .hint("docs/telemetry.md describes how to enable the record")
    })
}

/// Flushes queued entries, so that the log is complete up to now.
fn settled(engine: &Engine) -> Result<()> {
    engine.audit().map_or(Ok(()), |audit| audit.flush())
}

/// Filter for entries.
#[derive(Deserialize, JsonSchema)]
pub struct AuditEntryFilter {
    /// Only entries made at or after this time.
    #[serde(default)]
    pub since: Option<Time>,
    /// Only entries made before this time.
    #[serde(default)]
    pub until: Option<Time>,
    /// Only this operation.
    #[serde(default)]
    pub operation: Option<String>,
    /// Only operations of this user: a name, or its hash as entries show it.
    #[serde(default)]
    pub user: Option<String>,
    /// Only entries with this status: ok, or an error code.
    #[serde(default)]
    pub status: Option<String>,
    /// Entries of all projects of the tenant; requires the scope graph:admin:cross-project.
    #[serde(default)]
    pub all_projects: bool,
}

impl AuditEntryFilter {
    fn find(self, engine: &Engine, context: &Context<'_>) -> Result<AuditFilter> {
        if self.all_projects {
            context.grants.check("all_projects", CROSS_PROJECT)?;
            metrics().cross_project.inc();
        }
        let tenant = &context.scope.tenant;
        let is_hash = |user: &str| user.len() == 32 && user.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
        let user = match self.user {
            Some(user) if is_hash(&user) => Some(user),
            Some(user) => Some(key(engine)?.user(tenant, &user)),
            None => None,
        };
        let project = (!self.all_projects).then(|| context.scope.project.clone());
        Ok(AuditFilter {
            project,
            operation: self.operation,
            user,
            status: self.status,
            since: self.since,
            until: self.until,
        })
    }
}

/// One audited operation.
#[derive(Serialize, JsonSchema)]
pub struct AuditEntryOut {
    /// The chain of the entry; `number` is its position there.
    pub server: String,
    pub number: u64,
    pub at: Time,
    pub project: String,
    /// Keyed hash of the user's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub operation: String,
    /// The caller's scopes; `*` for all.
    pub scopes: String,
    /// Keyed hash of the request.
    pub request: String,
    /// ok, or an error code.
    pub status: String,
    /// Numbers of items in the answer, by kind.
    pub counts: BTreeMap<String, u64>,
    pub truncated: bool,
    pub took_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Client address, recorded for forbidden requests only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    pub hash: String,
}

impl From<AuditEntry> for AuditEntryOut {
    fn from(entry: AuditEntry) -> AuditEntryOut {
        let AuditEntry { server, number, note, hash, .. } = entry;
        AuditEntryOut {
            server,
            number,
            at: note.at,
            project: note.project,
            user: note.user,
            agent: note.agent,
            operation: note.operation,
            scopes: note.scopes,
            request: note.request,
            status: note.status,
            counts: note.counts,
            truncated: note.truncated,
            took_us: note.took_us,
            request_id: note.request_id,
            address: note.address,
            hash: hash.to_string(),
        }
    }
}

pub struct AuditList;

#[derive(Deserialize, JsonSchema)]
pub struct AuditListRequest {
    #[serde(flatten)]
    pub which: AuditEntryFilter,
    /// Maximum number of entries, up to 1,000.
    #[serde(default)]
    pub limit: Limit<50>,
}

#[derive(Serialize, JsonSchema)]
pub struct AuditListResponse {
    pub summary: String,
    /// Newest first.
    pub entries: Vec<AuditEntryOut>,
    /// There are older entries.
    pub truncated: bool,
}

impl Op for AuditList {
    const META: Meta = Meta {
        name: "audit_list",
        shown: ResponseView::By(rendering::entries),
        answer: &[
            "entries.operation",
            "entries.at",
            "entries.status",
            "entries.user",
            "entries.agent",
            "entries.number",
        ],
        summary: "List recorded operations",
        description: "Caller, operation and outcome, newest first: of this project, or with `all_projects` of the \
                      tenant. Names and requests are keyed hashes; contents of requests and answers are not recorded.",
        verb: "audit list",
        examples: &[
            "lukasa audit list --since 2026-01-31 --status missing_scope",
            "lukasa audit list --user ada --json",
        ],
        ..AUDIT
    };
    type Request = AuditListRequest;
    type Response = AuditListResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: AuditListRequest) -> Result<AuditListResponse> {
        let find = request.which.find(engine, context)?;
        settled(engine)?;
        let mut found = engine.store().audit().find(&context.scope.tenant, &find, request.limit.get() + 1)?;
        let truncated = found.len() > request.limit.get();
        found.truncate(request.limit.get());
        let entries: Vec<AuditEntryOut> = found.into_iter().map(AuditEntryOut::from).collect();
        Ok(AuditListResponse { summary: count(entries.len(), "recorded operation"), entries, truncated })
    }
}

pub struct AuditVerify;

#[derive(Deserialize, JsonSchema)]
pub struct AuditVerifyRequest {
    /// Chain ends that were saved elsewhere, `server@number=sha256:…`; each must still be in the log.
    #[serde(default)]
    pub noted: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct AuditVerifyResponse {
    pub summary: String,
    pub entries: u64,
    pub chains: Vec<ChainReport>,
}

impl Op for AuditVerify {
    const META: Meta = Meta {
        name: "audit_verify",
        long: true,
        shown: ResponseView::By(rendering::chains),
        answer: &["entries", "chains.server", "chains.entries", "chains.sealed"],
        summary: "Check that the record of operations is complete",
        description: "Checks the chain of every server and names the first entry that was changed, removed or moved, or \
                      after which the rest was cut off. With ends of chains that were saved elsewhere, given as `noted`, \
                      it also detects chains that were replaced as a whole.",
        verb: "audit verify",
        examples: &["lukasa audit verify"],
        ..AUDIT
    };
    type Request = AuditVerifyRequest;
    type Response = AuditVerifyResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: AuditVerifyRequest) -> Result<AuditVerifyResponse> {
        let noted = request.noted.iter().map(|text| read_noted(text)).collect::<Result<Vec<_>>>()?;
        settled(engine)?;
        let (trail, progress) = (engine.store().audit(), &mut *context.progress);
        let walked = walk(trail, &context.scope.tenant, key(engine)?, &noted, &mut |entries| progress(entries, None))?;
        let chains = walked.map_err(|fault| {
            let message = format!("entry {} of `{}` {}", fault.number, fault.server, fault.flaw.describe());
            Error::new(ErrorKind::Internal, ErrorCode::AuditBroken, message)
                .hint(match fault.flaw {
                    AuditFlaw::UnknownSeal => {
                        "if the key was changed on purpose, name the file of the old one in \
                                               audit.known_key_files (LUKASA_AUDIT_KNOWN_KEY_FILES)"
                    }
                    _ => "compare with an export or a backup that was made before",
                })
                .details(json!(fault))
        })?;
        let entries = chains.iter().map(|chain| chain.entries).sum::<u64>();
        let summary = format!(
            "all is well: {} in {}",
            count(entries, "entry").replace("entrys", "entries"),
            count(chains.len(), "chain")
        );
        Ok(AuditVerifyResponse { summary, entries, chains })
    }
}

fn read_noted(text: &str) -> Result<(String, u64, Hash)> {
    let read = || {
        let (place, hash) = text.split_once('=')?;
        let (server, number) = place.rsplit_once('@')?;
        Some((server.to_string(), number.parse().ok()?, Hash::parse(hash)?))
    };
    read().ok_or_else(|| {
        Error::invalid(ErrorCode::InvalidArgument, format!("noted: `{text}` is not the end of a chain"))
            .hint("give `head` as `audit verify` prints it, for example local@42=sha256:…")
    })
}

pub struct AuditExport;

#[derive(Deserialize, JsonSchema)]
pub struct AuditExportRequest {
    /// File to write; `-` is standard output.
    #[serde(default)]
    pub file: Option<String>,
    #[serde(flatten)]
    pub which: AuditEntryFilter,
}

#[derive(Serialize, JsonSchema)]
pub struct AuditExportResponse {
    pub summary: String,
    pub entries: u64,
}

impl Op for AuditExport {
    const META: Meta = Meta {
        name: "audit_export",
        long: true,
        stream: DataStream::Out,
        answer: &["entries"],
        summary: "Write recorded operations to a file",
        description: "As JSON lines, chain by chain, oldest first, with the hashes that link them.",
        verb: "audit export",
        positional: &["file"],
        files: &["file"],
        examples: &[
            "lukasa audit export --all-projects audit.jsonl",
            "lukasa audit export --since 2026-01-01 > new.jsonl",
        ],
        ..AUDIT
    };
    type Request = AuditExportRequest;
    type Response = AuditExportResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: AuditExportRequest) -> Result<AuditExportResponse> {
        let find = request.which.find(engine, context)?;
        settled(engine)?;
        let (trail, tenant) = (engine.store().audit(), context.scope.tenant.clone());
        let (mut seen, mut entries) = (0, 0);
        let mut file = crate::features::facts::ops::export::made(context, request.file.as_deref().unwrap_or("-"))?;
        for server in trail.servers(&tenant)? {
            let mut after = 0;
            loop {
                let page = trail.chain(&tenant, &server, after, PAGE)?;
                let Some(last) = page.last() else { break };
                after = last.number;
                seen += page.len() as u64;
                let output = crate::features::facts::ops::export::sink(&mut context.output, &mut file)?;
                for entry in page.iter().filter(|entry| find.matches(&entry.note)) {
                    crate::features::facts::ops::export::line(output, entry)?;
                    entries += 1;
                }
                (context.progress)(seen, None);
                context.stop.check()?;
            }
        }
        let output = crate::features::facts::ops::export::sink(&mut context.output, &mut file)?;
        output.flush().map_err(|e| crate::features::facts::ops::export::unwritable(&e))?;
        Ok(AuditExportResponse { summary: format!("exported {entries} recorded operations"), entries })
    }
}
