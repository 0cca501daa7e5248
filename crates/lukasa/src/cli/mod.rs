//! The command line: one verb per operation, derived from the registry.

mod attached;
mod audit;
mod command;
mod doctor;
#[cfg(test)]
mod documented;
mod ending;
mod generate;
mod key;
mod render;
mod serve;
mod setup;
mod shell;
mod style;
mod watch;

use crate::config::{self, Need};
use crate::settings;
use clap::ArgMatches;
use indicatif::{ProgressBar, ProgressStyle};
use lukasa_engine::audit::Keeps;
use lukasa_engine::code::Summaries;
use lukasa_engine::code::trees::Behind;
use lukasa_engine::embedding::InputRules;
use lukasa_engine::names::TakenNames;
use lukasa_engine::search::{Embedding, RerankEndpoint, Searching};
use lukasa_engine::telemetry::log;
use lukasa_engine::{Agents, Answer, Context, Effect, Engine, Grants, Operation, Stop};
use lukasa_model::shown::{safe_json, without_credentials};
use lukasa_model::{Error, ErrorKind, Result, Scope};
use lukasa_store::private;
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use style::{Colours, Ink};

/// Tokens that a search may use when a person reads the answer: the most it takes.
const PEOPLES_BUDGET: u64 = 4_000;

pub fn run() -> ExitCode {
    // Help is printed before there are matches to read the flag from.
    let typed = Colours::typed(std::env::args_os());
    let matches = match command::build().color(typed.for_clap()).try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return misunderstood(&error, typed),
    };
    let as_json = matches.get_flag("json");
    match dispatch(&matches, as_json) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough.
        Err(error) if error.code == "broken_pipe" => ExitCode::SUCCESS,
        Err(error) => {
            let mut out = std::io::stderr().lock();
            // When nobody listens any more there is nobody to tell.
            let _ = if as_json {
                writeln!(out, "{}", safe_json(&json!({"error": error}).to_string()))
            } else {
                render::error(&mut out, Colours::of(&matches).stderr(), &error)
            };
            ExitCode::FAILURE
        }
    }
}

/// Prints help and version as they are, and what is wrong with a command without the credentials that were typed.
fn misunderstood(error: &clap::Error, colours: Colours) -> ExitCode {
    // When nobody listens any more there is nobody to tell.
    let _ = if error.use_stderr() {
        let text = error.render();
        let text = if colours.stderr().colour { text.ansi().to_string() } else { text.to_string() };
        std::io::stderr().write_all(without_credentials(&text).as_bytes())
    } else {
        error.print()
    };
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// What is told on standard error: flags first, then the environment, then the settings file.
fn set_log(matches: &ArgMatches) -> Result<()> {
    let flag = |name: &str| matches.get_one::<String>(name).cloned();
    let (level, format) = match (flag("log-level"), flag("log-format")) {
        (Some(level), Some(format)) => (Some(level), Some(format)),
        (level, format) => {
            let set = settings::log()?;
            (level.or(set.0), format.or(set.1))
        }
    };
    let wrong =
        |name: &str, value: &str| Error::invalid("invalid_settings", format!("log.{name}: `{value}` is not known"));
    let level = match level {
        Some(name) => log::Level::parse(&name).ok_or_else(|| wrong("level", &name))?,
        None if matches.subcommand_name() == Some("serve") => log::Level::Info,
        None => log::Level::Warn,
    };
    let format = match format.as_deref() {
        None | Some("text") => log::Format::Text,
        Some("json") => log::Format::Json,
        Some(other) => return Err(wrong("format", other)),
    };
    log::set(level, format);
    Ok(())
}

fn dispatch(matches: &ArgMatches, as_json: bool) -> Result<()> {
    if let Some(("setup-postgres", sub)) = matches.subcommand() {
        return setup_postgres(sub);
    }
    match matches.subcommand() {
        Some(("setup", sub)) => return setup::run(sub, as_json),
        Some(("doctor", _)) => return doctor::run(matches, as_json),
        Some(("completions", sub)) => return generate::completions(sub),
        Some(("man", sub)) => return generate::man(sub),
        _ => {}
    }
    // Only now: what is above works with settings that cannot be read, or tells what is wrong with them.
    set_log(matches)?;
    if let Some((verb @ ("mcp" | "serve"), sub)) = matches.subcommand() {
        return if verb == "mcp" { serve::mcp(matches, sub) } else { serve::serve(matches, sub) };
    }
    if let Some(("key", sub)) = matches.subcommand() {
        return key::run(matches, sub, as_json);
    }
    if let Some(("watch", sub)) = matches.subcommand() {
        let path = PathBuf::from(sub.get_one::<String>("path").map_or(".", String::as_str));
        let session = Session::open_for(matches, Need::MayCreate, Some(&path), as_json)?;
        return watch::run(&session, &path, as_json, Colours::of(matches));
    }
    let (operation, sub) = command::chosen(matches)
        .ok_or_else(|| Error::invalid("no_command", "no command was given").hint("`lukasa --help` lists them"))?;
    let colours = Colours::of(matches);
    let mut request = command::request(operation, sub)?;
    if is_export(operation) && request.get("file").is_none() {
        request["file"] = json!("-");
    }
    if operation.meta.name == "agent_claim" && request.get("path").is_none() {
        request["path"] = json!(".");
    }
    if operation.meta.name == command::SHELL.0 && request.get(command::SHELL.1).is_none() {
        return shell::run(
            &Session::open(matches, operation, &request, as_json)?,
            request,
            as_json,
            sub.get_flag("tree"),
            colours,
        );
    }
    if operation.meta.name == "search" && !as_json {
        with_places(&mut request);
    }
    let answer = call(matches, operation, request.clone(), as_json)?;
    warn_behind(&answer, as_json, colours)?;
    // An export to standard output has used it up.
    let to_stderr = is_export(operation) && file_of(&request) == Some("-");
    let written = if to_stderr {
        writeln!(std::io::stderr(), "{}", render::safe(answer.value()?["summary"].as_str().unwrap_or_default()))
    } else {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let shown = if as_json {
            writeln!(out, "{}", safe_json(&answer.text()?))
        } else if operation.meta.name == command::SHELL.0 && sub.get_flag("tree") {
            render::cypher::tree(&mut out, colours.stdout(), &answer.value()?)
        } else {
            render::answer(&mut out, colours.stdout(), operation.meta.name, &answer.value()?)
        };
        shown.and_then(|()| out.flush())
    };
    wrote(written)
}

/// People are shown where results are, and have room for more than a language model.
fn with_places(request: &mut Value) {
    let mut include: Vec<Value> = request["include"].as_array().cloned().unwrap_or_default();
    include.extend([json!("path"), json!("line")]);
    request["include"] = Value::Array(include);
    if request.get("max_token_budget").is_none() {
        request["max_token_budget"] = json!(PEOPLES_BUDGET);
    }
}

/// An answer that could not be brought up to date first must not be taken for one that was.
fn warn_behind(answer: &Answer, as_json: bool, colours: Colours) -> Result<()> {
    if as_json || !answer.text()?.contains("\"behind\"") {
        return Ok(());
    }
    if let Ok(behind) = serde_json::from_value::<Behind>(answer.value()?["behind"].clone()) {
        let _ = render::note(&mut std::io::stderr(), colours.stderr(), Ink::Warning, "note", &behind.words());
    }
    Ok(())
}

/// Whoever read our output may have seen enough; any other trouble with it is told.
fn wrote(written: std::io::Result<()>) -> Result<()> {
    match written {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::new(ErrorKind::Unavailable, "cannot_write", format!("the answer could not be written: {e}")))
        }
        _ => Ok(()),
    }
}

fn print(text: &str) -> Result<()> {
    wrote(std::io::stdout().lock().write_all(text.as_bytes()))
}

/// An engine over the store that was named, and who asks it. Clones share it.
#[derive(Clone)]
struct Session {
    engine: Engine,
    /// The working tree we are in.
    tree: PathBuf,
    /// The folder the store belongs to.
    home: PathBuf,
    scope: Scope,
    author: Option<String>,
    agent: Option<String>,
    session: Option<String>,
    /// Drives PostgreSQL; goes last.
    _runtime: Option<Arc<tokio::runtime::Runtime>>,
}

impl Session {
    fn open(matches: &ArgMatches, operation: &Operation, request: &Value, as_json: bool) -> Result<Session> {
        let need = match (operation.meta.name, operation.meta.effect) {
            ("demo", _) => Need::Nothing,
            // A pack brings the index up to date first.
            ("restore_backup" | "context_pack", _) | (_, Effect::Write) => Need::MayCreate,
            _ => Need::Existing,
        };
        let session = Session::open_for(matches, need, near(operation, request), as_json)?;
        // Texts are also read from the folder the store belongs to, which may be another worktree of the same clone.
        for folder in [&session.tree, &session.home].into_iter().filter(|folder| folder.is_dir()) {
            session.engine.searching().sources.add(&session.scope, folder)?;
        }
        Ok(session)
    }

    fn open_for(matches: &ArgMatches, need: Need, path: Option<&Path>, as_json: bool) -> Result<Session> {
        Session::open_as(matches, need, path, as_json, (Keeps::All, None))
    }

    /// What is recorded unless settings say otherwise, and the port of who listens.
    fn open_as(
        matches: &ArgMatches,
        need: Need,
        path: Option<&Path>,
        as_json: bool,
        (keeps, port): (Keeps, Option<u16>),
    ) -> Result<Session> {
        let opened = config::open(matches, need, path)?;
        if !as_json {
            for note in &opened.notes {
                let _ = writeln!(std::io::stderr(), "{}", render::safe(&without_credentials(note)));
            }
        }
        let mut engine = Engine::new(Arc::clone(&opened.store), Arc::clone(&opened.clock), std::env::temp_dir())
            .with_graph_memory(config::graph_memory()?)
            .with_claim_rules(settings::claims()?);
        if let Some(endpoint) = settings::rerank()? {
            let reranker = Arc::new(RerankEndpoint::new(&endpoint)?);
            engine = engine.with_searching(Searching::default().with_reranker(reranker));
        }
        if need != Need::Nothing {
            engine = engine.with_audit(audit::recorder(&opened, keeps, port)?);
        }
        let tree = config::working_tree(&opened.home)?;
        engine = engine.with_tree_names(config::tree_names(opened.file.as_deref(), &opened.home)).with_kept_out(
            config::kept_out(
                opened.file.as_deref(),
                [settings::secret_files()?, serve::secret_files(matches)].concat(),
            ),
        );
        engine = engine.with_embedding(embedding()?).with_vault(settings::vault()?);
        let mut summaries = Summaries::new(opened.cache.clone());
        // Who only reads has nothing to ask a model for.
        if need == Need::MayCreate
            && let Some(model) = settings::model()?
        {
            summaries = summaries.with_model(&model.endpoint, model.per_pass)?;
        }
        engine = engine.with_summaries(summaries);
        if need != Need::Nothing {
            engine = engine.with_cache(opened.cache);
        }
        Ok(Session {
            engine,
            tree,
            home: opened.home,
            scope: opened.scope,
            author: author(matches),
            agent: config::text(matches, "agent", "LUKASA_AGENT"),
            session: config::text(matches, "session", "LUKASA_SESSION"),
            _runtime: opened.runtime.map(Arc::new),
        })
    }

    fn ask(&self, operation: &Operation, request: Value, input: &mut Input, output: &mut Output) -> Result<Answer> {
        let bar = Bar::of(operation);
        let mut context = Context {
            scope: self.scope.clone(),
            author: self.author.clone(),
            agent: self.agent.clone(),
            session: self.session.clone(),
            connection: None,
            grants: Grants::All,
            tree: Some(self.tree.clone()),
            agents: Agents::Any,
            request_id: Some(self.engine.clock().new_id().simple().to_string()),
            address: None,
            stop: Stop::default(),
            folder: std::env::current_dir().ok(),
            taken: TakenNames::default(),
            input: input.as_mut().map(|i| &mut **i as &mut dyn BufRead),
            output: output.as_mut().map(|o| &mut **o as &mut dyn Write),
            progress: &mut |done, of| bar.show(done, of),
        };
        self.engine.answer(&mut context, operation.meta.name, request)
    }
}

/// The model that makes vectors: the built-in one, or the endpoint that is configured.
fn embedding() -> Result<Embedding> {
    let settings = settings::embedding()?;
    let rules = InputRules::default().with_patterns(&settings.redact)?;
    match &settings.endpoint {
        Some(endpoint) => Embedding::by_endpoint(endpoint, rules, settings.reads),
        None => Ok(Embedding::built_in(rules, settings.reads)),
    }
}

/// What is about a working tree is kept beside it.
fn near<'r>(operation: &Operation, request: &'r Value) -> Option<&'r Path> {
    let of_trees = ["code", "search"].contains(&operation.meta.toolset);
    request.get("path").and_then(Value::as_str).filter(|_| of_trees).map(Path::new)
}

/// Who asks, by flags and environment.
fn author(matches: &ArgMatches) -> Option<String> {
    config::text(matches, "author", "LUKASA_AUTHOR").or_else(|| std::env::var("USER").ok())
}

fn call(matches: &ArgMatches, operation: &Operation, request: Value, as_json: bool) -> Result<Answer> {
    if let Some(answer) = attached::answer(matches, operation, &request)? {
        return Ok(answer);
    }
    let session = Session::open(matches, operation, &request, as_json)?;
    let (mut input, mut output) = streams(operation, &request)?;
    let answer = session.ask(operation, request.clone(), &mut input, &mut output);
    drop(output);
    settle(&request, answer)
}

/// What goes to a file or to standard output.
fn is_export(operation: &Operation) -> bool {
    matches!(operation.meta.name, "export" | "audit_export")
}

/// An export is written beside its place and put there once it is whole.
fn settle(request: &Value, answer: Result<Answer>) -> Result<Answer> {
    let part = file_of(request).filter(|file| *file != "-").map(|file| (part_of(file), file));
    let Some((part, file)) = part.filter(|(part, _)| part.exists()) else { return answer };
    let moved = answer.and_then(|answer| {
        std::fs::rename(&part, file)
            .map(|()| answer)
            .map_err(|e| Error::new(ErrorKind::Unavailable, "file_failure", format!("`{file}`: {e}")))
    });
    if moved.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    moved
}

fn part_of(file: &str) -> PathBuf {
    PathBuf::from(format!("{file}.{}.part", std::process::id()))
}

type Input = Option<Box<dyn BufRead>>;
type Output = Option<Box<dyn Write>>;

/// Opens the file that a bulk operation reads or writes.
fn streams(operation: &Operation, request: &Value) -> Result<(Input, Output)> {
    let Some(file) = file_of(request) else { return Ok((None, None)) };
    let fault = |e: std::io::Error| {
        let kind = if e.kind() == std::io::ErrorKind::NotFound { ErrorKind::NotFound } else { ErrorKind::Unavailable };
        Error::new(kind, "file_failure", format!("`{file}`: {e}"))
    };
    Ok(match (operation.meta.name, file) {
        ("import", "-") => (Some(Box::new(BufReader::new(std::io::stdin()))), None),
        ("import", path) => (Some(Box::new(BufReader::with_capacity(1 << 16, File::open(path).map_err(fault)?))), None),
        ("export" | "audit_export", "-") => (None, Some(Box::new(BufWriter::new(std::io::stdout())))),
        ("export" | "audit_export", path) => {
            (None, Some(Box::new(BufWriter::with_capacity(1 << 16, private::create(&part_of(path)).map_err(fault)?))))
        }
        _ => (None, None),
    })
}

fn file_of(request: &Value) -> Option<&str> {
    request.get("file").and_then(Value::as_str)
}

/// Progress on a terminal and nowhere else, and only once there is some to show.
struct Bar {
    what: &'static str,
    bar: OnceCell<ProgressBar>,
}

impl Bar {
    fn of(operation: &Operation) -> Bar {
        // What takes long before a query is answered is that the graph is read.
        let reading = operation.meta.name == command::SHELL.0;
        let what = if reading { "Reading the graph" } else { operation.meta.summary };
        Bar { what, bar: OnceCell::new() }
    }

    fn show(&self, done: u64, of: Option<u64>) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let (bar, template) = match of {
                Some(of) => (ProgressBar::new(of), "{msg} {wide_bar} {human_pos}/{human_len} {eta}"),
                None => (ProgressBar::no_length(), "{spinner} {msg} {human_pos} ({per_sec})"),
            };
            let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar.with_style(style).with_message(self.what)
        });
        bar.set_position(done);
        if of.is_some_and(|of| done + 1 >= of) {
            // What comes now is another matter.
            bar.finish_and_clear();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

/// Not an operation: it makes the place where operations can run.
fn setup_postgres(matches: &ArgMatches) -> Result<()> {
    let url = |flag: &str, variable: &str| {
        config::text(matches, flag, variable).ok_or_else(|| {
            Error::invalid("missing_url", format!("--{flag} is not given")).hint(format!("or set {variable}"))
        })
    };
    let (admin, app) = (url("admin-url", "LUKASA_POSTGRES_ADMIN_URL")?, url("app-url", "LUKASA_STORE")?);
    if !config::is_postgres(&admin) || !config::is_postgres(&app) {
        return Err(Error::invalid("invalid_url", "both URLs begin with postgres://"));
    }
    config::runtime()?.block_on(lukasa_store::postgres::setup(&admin, &app))?;
    println!("schema, policies and the application's role are in place; use --store with the application's URL");
    Ok(())
}
