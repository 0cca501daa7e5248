//! The command line: one verb per operation, derived from the registry.

mod attached;
mod audit;
mod command;
mod doctor;
#[cfg(test)]
mod documented;
mod generate;
mod key;
mod render;
mod serve;
mod setup;
mod shell;
mod shutdown;
mod style;
mod watch;

use crate::config::{self, StoreAccess};
use crate::settings;
use clap::ArgMatches;
use indicatif::{ProgressBar, ProgressStyle};
use lukasa_engine::audit::AuditedOperations;
use lukasa_engine::feature::IndexLag;
use lukasa_engine::features::code::Summaries;
use lukasa_engine::features::search::embedding::InputRules;
use lukasa_engine::features::search::{EmbeddingModel, RerankEndpoint, SearchState};
use lukasa_engine::names::ResolvedNames;
use lukasa_engine::registry::{DataStream, StoreNeed};
use lukasa_engine::rendering::TextRole;
use lukasa_engine::telemetry::{dependencies, log};
use lukasa_engine::{Agents, Cancellation, Context, Effect, Engine, Grants, Operation, OperationAnswer};
use lukasa_model::shown::{safe_json, without_credentials};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope};
use lukasa_store::private;
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use style::Colours;

/// Exit code of an operation that ran without giving what was requested, so that scripts can distinguish it from a failure.
const UNMET: u8 = 3;

/// Parses the arguments, runs the command and returns the exit code.
pub fn run() -> ExitCode {
    // Help is printed before there are matches to read the flag from.
    let typed = Colours::typed(std::env::args_os());
    let matches = match command::with_help(std::env::args_os()).color(typed.for_clap()).try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return misunderstood(&error, typed),
    };
    let as_json = matches.get_flag("json");
    match dispatch(&matches, as_json) {
        Ok(code) => code,
        // The reader of our output has closed it.
        Err(error) if error.code == ErrorCode::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let mut out = std::io::stderr().lock();
            // If standard error is closed, there is nowhere to report to.
            let _ = if as_json {
                writeln!(out, "{}", safe_json(&json!({"error": error}).to_string()))
            } else {
                render::error(&mut out, Colours::of(&matches).stderr(), &error)
            };
            ExitCode::FAILURE
        }
    }
}

/// Prints help and version unchanged, and usage errors without credentials from the arguments.
fn misunderstood(error: &clap::Error, colours: Colours) -> ExitCode {
    // If the stream is closed, there is nowhere to report to.
    let _ = if error.use_stderr() {
        let text = error.render();
        let text = if colours.stderr().colour { text.ansi().to_string() } else { text.to_string() };
        std::io::stderr().write_all(without_credentials(&text).as_bytes())
    } else {
        error.print()
    };
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Configures the log on standard error: flags first, then the environment, then the settings file.
fn set_log(matches: &ArgMatches) -> Result<()> {
    let flag = |name: &str| matches.get_one::<String>(name).cloned();
    let (level, format) = match (flag("log-level"), flag("log-format")) {
        (Some(level), Some(format)) => (Some(level), Some(format)),
        (level, format) => {
            let set = settings::log()?;
            (level.or(set.0), format.or(set.1))
        }
    };
    let wrong = |name: &str, value: &str| {
        Error::invalid(ErrorCode::InvalidSettings, format!("log.{name}: `{value}` is not known"))
    };
    let level = match level {
        Some(name) => log::LogLevel::parse(&name).ok_or_else(|| wrong("level", &name))?,
        None if matches.subcommand_name() == Some("serve") => log::LogLevel::Info,
        None => log::LogLevel::Warn,
    };
    let format = match format.as_deref() {
        None | Some("text") => log::LogFormat::Text,
        Some("json") => log::LogFormat::Json,
        Some(other) => return Err(wrong("format", other)),
    };
    log::set(level, format);
    dependencies::follow();
    Ok(())
}

fn dispatch(matches: &ArgMatches, as_json: bool) -> Result<ExitCode> {
    if let Some(done) = without_request(matches, as_json) {
        return done.map(|()| ExitCode::SUCCESS);
    }
    let (operation, sub) = command::chosen(matches).ok_or_else(|| {
        Error::invalid(ErrorCode::NoCommand, "no command was given").hint("`lukasa --help` lists them")
    })?;
    let colours = Colours::of(matches);
    let mut request = command::request(operation, sub)?;
    if is_export(operation) && request.get("file").is_none() {
        request["file"] = json!("-");
    }
    if let Some(field) = operation.meta.here.filter(|field| request.get(*field).is_none()) {
        request[field] = json!(".");
    }
    if operation.meta.shell.is_some_and(|shell| request.get(shell.field).is_none()) {
        let session = Session::open(matches, operation, &request, as_json)?;
        shell::run(&session, request, as_json, sub.get_flag("tree"), colours)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(prepare) = operation.meta.for_people.filter(|_| !as_json) {
        prepare(&mut request);
    }
    let answer = call(matches, operation, request.clone(), as_json)?;
    warn_behind(&answer, as_json, colours)?;
    // An export to standard output has already used that stream.
    let to_stderr = is_export(operation) && file_of(&request) == Some("-");
    let written = if to_stderr {
        writeln!(std::io::stderr(), "{}", render::safe(answer.value()?["summary"].as_str().unwrap_or_default()))
    } else {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let shown = if as_json {
            writeln!(out, "{}", safe_json(&answer.text()?))
        } else if let Some(shell) = operation.meta.shell.filter(|_| sub.get_flag("tree")) {
            render::print(&mut out, colours.stdout(), &(shell.tree)(&answer.value()?))
        } else {
            render::answer(&mut out, colours.stdout(), operation, &answer.value()?)
        };
        shown.and_then(|()| out.flush())
    };
    wrote(written)?;
    Ok(if is_unmet(operation, &answer)? { UNMET.into() } else { ExitCode::SUCCESS })
}

/// Whether the operation ran and the caller did not get what was requested: a claim that another agent holds.
fn is_unmet(operation: &Operation, answer: &OperationAnswer) -> Result<bool> {
    let Some((field, value)) = operation.meta.unmet else { return Ok(false) };
    Ok(answer.value()?[field] == value)
}

/// Runs a command that is no operation; none where the command is one.
fn without_request(matches: &ArgMatches, as_json: bool) -> Option<Result<()>> {
    let (verb, sub) = matches.subcommand()?;
    match verb {
        "setup-postgres" => return Some(setup_postgres(sub)),
        "setup" => return Some(setup::run(sub, as_json)),
        "doctor" => return Some(doctor::run(matches, as_json)),
        "completions" => return Some(generate::completions(sub)),
        "man" => return Some(generate::man(sub)),
        _ => {}
    }
    // Only now: the commands above work with settings that cannot be read, or report what is wrong with them.
    if let Err(error) = set_log(matches) {
        return Some(Err(error));
    }
    match verb {
        "mcp" => Some(serve::mcp(matches, sub)),
        "serve" => Some(serve::serve(matches, sub)),
        "key" => Some(key::run(matches, sub, as_json)),
        "watch" => Some(watch(matches, sub, as_json)),
        _ => None,
    }
}

fn watch(matches: &ArgMatches, sub: &ArgMatches, as_json: bool) -> Result<()> {
    let path = PathBuf::from(sub.get_one::<String>("path").map_or(".", String::as_str));
    let session = Session::open_for(matches, StoreAccess::MayCreate, Some(&path), as_json)?;
    watch::run(&session, &path, as_json, Colours::of(matches))
}

/// Warns if the index could not be brought up to date before the answer.
fn warn_behind(answer: &OperationAnswer, as_json: bool, colours: Colours) -> Result<()> {
    if as_json || !answer.text()?.contains("\"behind\"") {
        return Ok(());
    }
    if let Ok(behind) = serde_json::from_value::<IndexLag>(answer.value()?["behind"].clone()) {
        let _ = render::note(&mut std::io::stderr(), colours.stderr(), TextRole::Warning, "note", &behind.words());
    }
    Ok(())
}

/// A closed pipe is not an error; other write failures are.
fn wrote(written: std::io::Result<()>) -> Result<()> {
    match written {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::new(
            ErrorKind::Unavailable,
            ErrorCode::CannotWrite,
            format!("the answer could not be written: {e}"),
        )),
        _ => Ok(()),
    }
}

fn print(text: &str) -> Result<()> {
    wrote(std::io::stdout().lock().write_all(text.as_bytes()))
}

/// An engine over the chosen store, and the caller. Clones share the engine.
#[derive(Clone)]
struct Session {
    engine: Engine,
    /// The current working tree.
    tree: PathBuf,
    /// The folder the store belongs to.
    home: PathBuf,
    scope: Scope,
    author: Option<String>,
    agent: Option<String>,
    session: Option<String>,
    /// Runs the PostgreSQL client; dropped last.
    _runtime: Option<Arc<tokio::runtime::Runtime>>,
}

impl Session {
    fn open(matches: &ArgMatches, operation: &Operation, request: &Value, as_json: bool) -> Result<Session> {
        let need = match (operation.meta.needs, operation.meta.effect) {
            (StoreNeed::Nothing, _) => StoreAccess::Nothing,
            (StoreNeed::MayCreate, _) | (_, Effect::Write) => StoreAccess::MayCreate,
            _ => StoreAccess::Existing,
        };
        let session = Session::open_for(matches, need, near(operation, request), as_json)?;
        // Sources are also read from the folder of the store, which may be another worktree of the same clone.
        for folder in [&session.tree, &session.home].into_iter().filter(|folder| folder.is_dir()) {
            session.engine.sources().add(&session.scope, folder)?;
        }
        Ok(session)
    }

    fn open_for(matches: &ArgMatches, need: StoreAccess, path: Option<&Path>, as_json: bool) -> Result<Session> {
        Session::open_as(matches, need, path, as_json, (AuditedOperations::All, None))
    }

    /// As `open_for`, with the default of what is recorded and the port of a server.
    fn open_as(
        matches: &ArgMatches,
        need: StoreAccess,
        path: Option<&Path>,
        as_json: bool,
        (keeps, port): (AuditedOperations, Option<u16>),
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
            engine = engine.with_searching(SearchState::default().with_reranker(reranker));
        }
        if need != StoreAccess::Nothing {
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
        // Only operations that may write create summaries.
        if need == StoreAccess::MayCreate
            && let Some(model) = settings::model()?
        {
            summaries = summaries.with_model(&model.endpoint, model.per_pass)?;
        }
        engine = engine.with_summaries(summaries);
        if need != StoreAccess::Nothing {
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

    fn ask(
        &self,
        operation: &Operation,
        request: Value,
        input: &mut Input,
        output: &mut Output,
    ) -> Result<OperationAnswer> {
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
            stop: Cancellation::default(),
            folder: std::env::current_dir().ok(),
            taken: ResolvedNames::default(),
            input: input.as_mut().map(|i| &mut **i as &mut dyn BufRead),
            output: output.as_mut().map(|o| &mut **o as &mut dyn Write),
            progress: &mut |done, of| bar.show(done, of),
        };
        self.engine.answer(&mut context, operation.meta.name, request)
    }
}

/// The embedding model: the configured endpoint, or the built-in one.
fn embedding() -> Result<EmbeddingModel> {
    let settings = settings::embedding()?;
    let rules = InputRules::default().with_patterns(&settings.redact)?;
    match &settings.endpoint {
        Some(endpoint) => EmbeddingModel::by_endpoint(endpoint, rules, settings.reads),
        None => Ok(EmbeddingModel::built_in(rules, settings.reads)),
    }
}

/// The path of a request about a working tree. The store beside that path is used.
fn near<'r>(operation: &Operation, request: &'r Value) -> Option<&'r Path> {
    let of_trees = ["code", "search"].contains(&operation.meta.toolset);
    request.get("path").and_then(Value::as_str).filter(|_| of_trees).map(Path::new)
}

/// The author from flags and environment.
fn author(matches: &ArgMatches) -> Option<String> {
    config::text(matches, "author", "LUKASA_AUTHOR").or_else(|| std::env::var("USER").ok())
}

fn call(matches: &ArgMatches, operation: &Operation, request: Value, as_json: bool) -> Result<OperationAnswer> {
    if let Some(answer) = attached::answer(matches, operation, &request)? {
        return Ok(answer);
    }
    let session = Session::open(matches, operation, &request, as_json)?;
    let (mut input, mut output) = streams(operation, &request)?;
    let answer = session.ask(operation, request.clone(), &mut input, &mut output);
    drop(output);
    finish_export(&request, answer)
}

/// Whether the operation writes to a file or to standard output.
fn is_export(operation: &Operation) -> bool {
    operation.meta.stream == DataStream::Out
}

/// Moves a complete export from its temporary file to its final path.
fn finish_export(request: &Value, answer: Result<OperationAnswer>) -> Result<OperationAnswer> {
    let part = file_of(request).filter(|file| *file != "-").map(|file| (part_of(file), file));
    let Some((part, file)) = part.filter(|(part, _)| part.exists()) else { return answer };
    let moved = answer.and_then(|answer| {
        std::fs::rename(&part, file)
            .map(|()| answer)
            .map_err(|e| Error::new(ErrorKind::Unavailable, ErrorCode::FileFailure, format!("`{file}`: {e}")))
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
        Error::new(kind, ErrorCode::FileFailure, format!("`{file}`: {e}"))
    };
    Ok(match (operation.meta.stream, file) {
        (DataStream::In, "-") => (Some(Box::new(BufReader::new(std::io::stdin()))), None),
        (DataStream::In, path) => {
            (Some(Box::new(BufReader::with_capacity(1 << 16, File::open(path).map_err(fault)?))), None)
        }
        (DataStream::Out, "-") => (None, Some(Box::new(BufWriter::new(std::io::stdout())))),
        (DataStream::Out, path) => {
            (None, Some(Box::new(BufWriter::with_capacity(1 << 16, private::create(&part_of(path)).map_err(fault)?))))
        }
        (DataStream::None, _) => (None, None),
    })
}

fn file_of(request: &Value) -> Option<&str> {
    request.get("file").and_then(Value::as_str)
}

/// A progress bar, only on a terminal and only once there is progress.
struct Bar {
    what: &'static str,
    bar: OnceCell<ProgressBar>,
}

impl Bar {
    fn of(operation: &Operation) -> Bar {
        // Most of the time before a query is answered goes into loading the graph.
        let reading = operation.meta.shell.is_some();
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
            // The next phase is a different task.
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

/// Not an operation: it creates the schema that operations need.
fn setup_postgres(matches: &ArgMatches) -> Result<()> {
    let url = |flag: &str, variable: &str| {
        config::text(matches, flag, variable).ok_or_else(|| {
            Error::invalid(ErrorCode::MissingUrl, format!("--{flag} is not given")).hint(format!("or set {variable}"))
        })
    };
    let (admin, app) = (url("admin-url", "LUKASA_POSTGRES_ADMIN_URL")?, url("app-url", "LUKASA_STORE")?);
    if !config::is_postgres(&admin) || !config::is_postgres(&app) {
        return Err(Error::invalid(ErrorCode::InvalidUrl, "both URLs begin with postgres://"));
    }
    config::runtime()?.block_on(lukasa_store::postgres::setup(&admin, &app))?;
    println!("schema, policies and the application's role are in place; use --store with the application's URL");
    Ok(())
}
