//! `lukasa key`: creates, lists and revokes access keys for programs.

use super::style::Colours;
use super::{audit, render};
use crate::config::{self, OpenedStore, StoreAccess};
use clap::{Arg, ArgAction, ArgMatches, Command};
use lukasa_engine::Context;
use lukasa_engine::audit::AuditedOperations;
use lukasa_engine::rendering::Rendering;
use lukasa_engine::rendering::values::{at, moment};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Time};
use lukasa_server::auth::api_key::{self, NewKey};
use lukasa_store::AccessKey;
use serde_json::{Value, json};
use std::io::Write;

/// These are not operations: only a user with direct access to the store may grant remote access.
pub fn command() -> Command {
    let create = Command::new("create")
        .about("Create a key and print it once")
        .long_about(
            "Create a key and print it once.\n\nThe key goes to standard output and is not kept: the store \
             has only a hash of its secret. It is for --tenant and --project unless --all-projects is given.",
        )
        .arg(Arg::new("user").long("user").value_name("NAME").required(true).help("The user that the log records for the key"))
        .arg(
            Arg::new("scope")
                .long("scope")
                .value_name("SCOPE")
                .action(ArgAction::Append)
                .value_delimiter(',')
                .required(true)
                .help("Scopes of the key, for example graph:read or graph:search:*; repeatable or separated by commas"),
        )
        .arg(
            Arg::new("acts-as")
                .long("acts-as")
                .value_name("AGENT")
                .action(ArgAction::Append)
                .value_delimiter(',')
                .help("Agents that the key may act as, repeatable or separated by commas; `team/*` for all below, `*` for any [default: USER and USER/*]"),
        )
        .arg(Arg::new("all-projects").long("all-projects").action(ArgAction::SetTrue).help("For every project of the tenant"))
        .arg(Arg::new("expires").long("expires").value_name("TIME").help("When the key expires, for example 2027-01-31 [default: never]"));
    let revoke = Command::new("revoke")
        .about("Revoke a key permanently")
        .arg(Arg::new("id").value_name("ID").required(true).help("The id `lukasa key list` shows, or the key itself"));
    Command::new("key")
        .about("Create, list and revoke access keys for HTTP clients")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(create)
        .subcommand(Command::new("list").about("List the tenant's keys: user, scopes, expiry, last use"))
        .subcommand(revoke)
}

/// `matches` of the whole command line, `sub` of `key`.
pub fn run(matches: &ArgMatches, sub: &ArgMatches, as_json: bool) -> Result<()> {
    let (what, need) = match sub.subcommand_name() {
        Some("create") => ("key_create", StoreAccess::MayCreate),
        Some("revoke") => ("key_revoke", StoreAccess::Existing),
        _ => ("key_list", StoreAccess::Existing),
    };
    let opened = config::open(matches, need, None)?;
    let audit = audit::recorder(&opened, AuditedOperations::All, None)?;
    let done = match sub.subcommand() {
        Some(("create", sub)) => create(&opened, sub, as_json),
        Some(("revoke", sub)) => revoke(&opened, sub, as_json),
        _ => list(&opened, as_json, Colours::of(matches)),
    };
    let mut progress = |_, _| {};
    let author = config::text(matches, "author", "LUKASA_AUTHOR").or_else(|| std::env::var("USER").ok());
    let context = Context { author, ..Context::of(opened.scope.clone(), &mut progress) };
    audit.note(&context, what, &done)?;
    done
}

fn create(opened: &OpenedStore, sub: &ArgMatches, as_json: bool) -> Result<()> {
    let all_projects = sub.get_flag("all-projects");
    let new = NewKey {
        tenant: opened.scope.tenant.clone(),
        project: (!all_projects).then(|| opened.scope.project.clone()),
        user: sub.get_one::<String>("user").cloned().unwrap_or_default(),
        scopes: sub.get_many::<String>("scope").into_iter().flatten().map(|scope| scope.trim().to_string()).collect(),
        agents: sub.get_many::<String>("acts-as").into_iter().flatten().map(|agent| agent.trim().to_string()).collect(),
        expires_at: sub.get_one::<String>("expires").map(|text| Time::parse(text)).transpose()?,
    };
    let (token, key) = api_key::create(opened.store.access_keys(), new, opened.clock.now())?;
    let mut shown = about(&key);
    if as_json {
        shown["key"] = json!(token.reveal());
        return print(&shown.to_string());
    }
    // Not on standard output, which may be redirected into a file of secrets.
    let _ = writeln!(std::io::stderr(), "key {} for {}; it is shown this once:", key.id, key.user);
    print(&token.reveal())
}

fn list(opened: &OpenedStore, as_json: bool, colours: Colours) -> Result<()> {
    let tenant = &opened.scope.tenant;
    let keys: Vec<Value> = opened.store.access_keys().of_tenant(tenant)?.iter().map(about).collect();
    if as_json {
        return print(&json!({"tenant": tenant, "keys": keys}).to_string());
    }
    let mut shown = Rendering::default();
    shown.line(format!("{} keys of tenant {tenant}", keys.len()));
    shown.table(
        keys.iter().collect(),
        &[
            ("id", &|r| at(r, "id")),
            ("project", &|r| if r["project"].is_null() { "(all)".into() } else { at(r, "project") }),
            ("user", &|r| at(r, "user")),
            ("scopes", &|r| at(r, "scopes")),
            ("acts as", &|r| at(r, "agents")),
            ("made", &|r| moment(r, "created_at")),
            ("expires", &|r| moment(r, "expires_at")),
            ("revoked", &|r| moment(r, "revoked_at")),
            ("last used", &|r| moment(r, "last_used")),
        ],
    );
    render::print(&mut std::io::stdout().lock(), colours.stdout(), &shown).or_else(written)
}

fn revoke(opened: &OpenedStore, sub: &ArgMatches, as_json: bool) -> Result<()> {
    let named = sub.get_one::<String>("id").map(String::as_str).unwrap_or_default();
    // The user may pass a whole leaked key. Its secret is not printed.
    let whole = api_key::AccessKeyToken::parse(named);
    let id = whole.as_ref().map_or(named, |token| token.id());
    let revoked = opened.store.access_keys().revoke(&opened.scope.tenant, id, opened.clock.now())?;
    let key = revoked.ok_or_else(|| {
        let unknown = if id.starts_with(api_key::PREFIX) { "that was named" } else { id };
        Error::not_found(
            ErrorCode::UnknownAccessKey,
            format!("tenant `{}` has no key `{unknown}`", opened.scope.tenant),
        )
        .hint("`lukasa key list` shows their ids; --tenant names another tenant")
    })?;
    if as_json { print(&about(&key).to_string()) } else { print(&format!("key {} of {} is revoked", key.id, key.user)) }
}

/// The key without the hash of its secret.
fn about(key: &AccessKey) -> Value {
    json!({
        "id": key.id,
        "tenant": key.tenant,
        "project": key.project,
        "user": key.user,
        "scopes": key.scopes,
        "agents": key.agents,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used": key.last_used,
    })
}

fn print(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").or_else(written)
}

fn written(error: std::io::Error) -> Result<()> {
    let code =
        if error.kind() == std::io::ErrorKind::BrokenPipe { ErrorCode::BrokenPipe } else { ErrorCode::CannotWrite };
    Err(Error::new(ErrorKind::Unavailable, code, format!("the answer could not be written: {error}")))
}
