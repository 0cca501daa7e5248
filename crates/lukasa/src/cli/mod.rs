//! The command line: one verb per operation, derived from the registry.

mod command;
mod render;

use crate::config::{self, Need};
use clap::ArgMatches;
use indicatif::{ProgressBar, ProgressStyle};
use lukasa_engine::{Context, Effect, Engine, Operation};
use lukasa_model::{Error, ErrorKind, Result};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

pub fn run() -> ExitCode {
    let matches = command::build().get_matches();
    let as_json = matches.get_flag("json");
    match dispatch(&matches, as_json) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut out = std::io::stderr().lock();
            // When nobody listens any more there is nobody to tell.
            let _ =
                if as_json { writeln!(out, "{}", json!({"error": error})) } else { render::error(&mut out, &error) };
            ExitCode::FAILURE
        }
    }
}

fn dispatch(matches: &ArgMatches, as_json: bool) -> Result<()> {
    if let Some(("setup-postgres", sub)) = matches.subcommand() {
        return setup_postgres(sub);
    }
    let (operation, sub) = command::chosen(matches)
        .ok_or_else(|| Error::invalid("no_command", "no command was given").hint("`lukasa --help` lists them"))?;
    let mut request = command::request(operation, sub)?;
    if operation.meta.name == "export" && request.get("file").is_none() {
        request["file"] = json!("-");
    }
    let response = call(matches, operation, request.clone(), as_json)?;
    // An export to standard output has used it up.
    let to_stderr = operation.meta.name == "export" && file_of(&request) == Some("-");
    let written = if to_stderr {
        writeln!(std::io::stderr(), "{}", response["summary"].as_str().unwrap_or_default())
    } else {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let shown = if as_json {
            writeln!(out, "{response}")
        } else {
            render::answer(&mut out, operation.meta.name, &response)
        };
        shown.and_then(|()| out.flush())
    };
    match written {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::new(ErrorKind::Unavailable, "cannot_write", format!("the answer could not be written: {e}")))
        }
        _ => Ok(()),
    }
}

fn call(matches: &ArgMatches, operation: &Operation, request: Value, as_json: bool) -> Result<Value> {
    let need = match (operation.meta.name, operation.meta.effect) {
        ("demo", _) => Need::Nothing,
        ("restore_backup", _) | (_, Effect::Write) => Need::MayCreate,
        _ => Need::Existing,
    };
    let opened = config::open(matches, need)?;
    if !as_json {
        for note in &opened.notes {
            let _ = writeln!(std::io::stderr(), "{note}");
        }
    }
    let engine = Engine::new(opened.store, opened.clock, std::env::temp_dir());
    let (mut input, mut output) = streams(operation, &request)?;
    let bar = Bar::new(operation.meta.summary);
    let mut context = Context {
        scope: opened.scope,
        author: config::text(matches, "author", "LUKASA_AUTHOR").or_else(|| std::env::var("USER").ok()),
        agent: config::text(matches, "agent", "LUKASA_AGENT"),
        session: config::text(matches, "session", "LUKASA_SESSION"),
        input: input.as_mut().map(|i| &mut **i as &mut dyn BufRead),
        output: output.as_mut().map(|o| &mut **o as &mut dyn Write),
        progress: &mut |done, of| bar.show(done, of),
    };
    engine.call(&mut context, operation.meta.name, request)
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
        ("export", "-") => (None, Some(Box::new(BufWriter::new(std::io::stdout())))),
        ("export", path) => {
            (None, Some(Box::new(BufWriter::with_capacity(1 << 16, File::create(path).map_err(fault)?))))
        }
        _ => (None, None),
    })
}

fn file_of(request: &Value) -> Option<&str> {
    request.get("file").and_then(Value::as_str)
}

/// Progress on a terminal, and nowhere else.
struct Bar(Option<ProgressBar>);

impl Bar {
    fn new(what: &'static str) -> Bar {
        Bar(std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::no_length().with_message(what);
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        }))
    }

    fn show(&self, done: u64, of: Option<u64>) {
        let Some(bar) = &self.0 else { return };
        if let (Some(of), None) = (of, bar.length()) {
            bar.set_length(of);
            let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {eta}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        } else if of.is_none() {
            let style = ProgressStyle::with_template("{spinner} {msg} {human_pos} ({per_sec})");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        }
        bar.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
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
