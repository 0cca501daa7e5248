//! The interactive shell of `lukasa cypher`, with history and completion.

use super::style::Colours;
use super::{Session, render};
use lukasa_engine::Operation;
use lukasa_engine::features::graph::ops::cypher::Cypher;
use lukasa_engine::features::graph::ops::cypher::{is_unfinished, words};
use lukasa_engine::registry::Op;
use lukasa_model::shown::safe_json;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Editor, Helper};
use serde_json::{Map, Value, json};
use std::cell::OnceCell;
use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputFormat {
    Table,
    Json,
    Tree,
}

struct Shell<'a> {
    session: &'a Session,
    operation: &'static Operation,
    /// The fields sent with every query: view, parameters, limits.
    request: Map<String, Value>,
    look: OutputFormat,
    colours: Colours,
    timing: bool,
    /// How often Ctrl-C was pressed while a query ran. None if the shell is not interactive.
    interrupts: Option<&'static AtomicU64>,
}

static INTERRUPTS: AtomicU64 = AtomicU64::new(0);

/// What to do after a line.
enum Next {
    Go,
    Quit,
}

const HELP: &str = "\
Enter runs a complete query; `;` always ends a query
  :table :json :tree     how rows are shown
  :timing on|off         how long a query took
  :param NAME JSON       a value for $NAME; :params lists them
  :branch NAME           query another branch; :branch alone returns to the default one
  :as-of MOMENT          query another time; :now returns to the present; :limit N, :timeout MS
  :schema                list labels, relationships and procedures
  :help :quit            Ctrl-D ends the shell, Ctrl-C cancels a line or query, Tab completes";

/// Runs the shell on a terminal, or the queries of standard input.
pub fn run(session: &Session, request: Value, as_json: bool, tree: bool, colours: Colours) -> Result<()> {
    let look = match (as_json, tree) {
        (true, _) => OutputFormat::Json,
        (false, true) => OutputFormat::Tree,
        (false, false) => OutputFormat::Table,
    };
    let operation = lukasa_engine::operations()
        .iter()
        .find(|o| o.meta.shell.is_some())
        .ok_or_else(|| Error::internal("the operation of the shell is missing"))?;
    let Value::Object(request) = request else { return Err(Error::internal("a request is an object")) };
    let mut shell = Shell { session, operation, request, look, colours, timing: true, interrupts: None };
    if std::io::stdin().is_terminal() {
        let heard = ctrlc::set_handler(|| {
            INTERRUPTS.fetch_add(1, Ordering::Relaxed);
        });
        // Without a handler, Ctrl-C ends the program as usual.
        shell.interrupts = heard.is_ok().then_some(&INTERRUPTS);
        shell.interact()
    } else {
        shell.timing = false;
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|e| {
            Error::new(ErrorKind::InvalidInput, ErrorCode::UnreadableInput, format!("standard input: {e}"))
        })?;
        let mut out = std::io::stdout().lock();
        for query in split(&text) {
            if let Next::Quit = shell.line(&query, &mut out)? {
                break;
            }
        }
        Ok(())
    }
}

/// Splits a text into queries, which end with `;` outside of quotes and comments; commands end with their line. Each
/// query keeps the line breaks before it, so that errors name the right line.
fn split(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut quote: Option<char> = None;
    let mut line = 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        line += usize::from(c == '\n');
        let last = all.len() - 1;
        let command = all[last].trim_start().starts_with(':');
        match (quote, c) {
            (None, ';') | (_, '\n') if c == ';' || command => {
                all.push("\n".repeat(line));
                quote = None;
                continue;
            }
            (None, '/') if chars.peek() == Some(&'/') && !command => {
                while chars.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            (None, '/') if chars.peek() == Some(&'*') && !command => {
                all[last].push(c);
                while let Some(c) = chars.next() {
                    line += usize::from(c == '\n');
                    all[last].push(c);
                    if c == '*' && chars.peek() == Some(&'/') {
                        break;
                    }
                }
                continue;
            }
            (None, '\'' | '"' | '`') if !command => quote = Some(c),
            (Some(q), c) if c == q => quote = None,
            (Some('\'' | '"'), '\\') => {
                all[last].push(c);
                if let Some(next) = chars.next() {
                    line += usize::from(next == '\n');
                    all[last].push(next);
                }
                continue;
            }
            _ => {}
        }
        all[last].push(c);
    }
    all.into_iter().map(|q| q.trim_end().to_owned()).filter(|q| !q.trim().is_empty()).collect()
}

fn written(result: std::io::Result<()>) -> Result<()> {
    match result {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {
            Err(Error::new(ErrorKind::Unavailable, ErrorCode::BrokenPipe, "the reader has closed the output"))
        }
        Err(e) => Err(Error::new(
            ErrorKind::Unavailable,
            ErrorCode::CannotWrite,
            format!("the answer could not be written: {e}"),
        )),
    }
}

impl Shell<'_> {
    fn interact(&mut self) -> Result<()> {
        let fault = |e: ReadlineError| Error::new(ErrorKind::Unavailable, ErrorCode::NoTerminal, e.to_string());
        let config = Config::builder().history_ignore_space(true).max_history_size(2_000).map_err(fault)?;
        let mut editor: Editor<Words, _> = Editor::with_config(config.build()).map_err(fault)?;
        let history = history_file();
        if let Some(file) = history.as_ref().filter(|f| f.exists())
            && let Err(e) = editor.load_history(file)
        {
            eprintln!("warning: the history in {} cannot be read: {e}", file.display());
        }
        println!("openCypher over {}; :help lists the commands", self.session.scope.project);
        'lines: loop {
            editor.set_helper(Some(Words::new(self)));
            let line = match editor.readline(&self.prompt()) {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => break,
                Err(e) => return Err(fault(e)),
            };
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            // A failure to store the history does not prevent the query.
            let _ = editor.add_history_entry(line);
            let mut out = std::io::stdout().lock();
            for query in split(line) {
                match self.line(&query, &mut out) {
                    Ok(Next::Go) => {}
                    Ok(Next::Quit) => break 'lines,
                    Err(e) if e.code == ErrorCode::BrokenPipe => return Err(e),
                    Err(e) => {
                        written(render::error(&mut out, self.colours.stdout(), &e))?;
                        break;
                    }
                }
            }
        }
        if let Some(file) = history {
            let saved = file.parent().map_or(Ok(()), lukasa_store::private::create_dir_all);
            let saved =
                saved.map_err(|e| e.to_string()).and_then(|()| editor.save_history(&file).map_err(|e| e.to_string()));
            if let Err(e) = saved {
                eprintln!("warning: the history cannot be kept in {}: {e}", file.display());
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str, out: &mut dyn Write) -> Result<Next> {
        match line.trim_start().strip_prefix(':') {
            Some(command) => self.command(command, out),
            None => self.query(line, out).map(|()| Next::Go),
        }
    }

    /// The prompt, with the view if it is not the head of the default branch.
    fn prompt(&self) -> String {
        let view: Vec<_> = ["branch", "as_of"].iter().filter_map(|f| self.request.get(*f)?.as_str()).collect();
        if view.is_empty() { "cypher> ".into() } else { format!("cypher ({})> ", view.join(" @ ")) }
    }

    fn ask(&self, query: &str) -> Result<lukasa_engine::OperationAnswer> {
        let mut request = self.request.clone();
        request.insert("query".into(), json!(query));
        let Some(interrupts) = self.interrupts else {
            return self.session.ask(self.operation, Value::Object(request), &mut None, &mut None);
        };
        // Runs on another thread, so that Ctrl-C can abandon it; it ends at its own timeout.
        let (send, receive) = std::sync::mpsc::channel();
        let (session, operation) = (self.session.clone(), self.operation);
        let before = interrupts.load(Ordering::Relaxed);
        std::thread::spawn(move || {
            let answer = session.ask(operation, Value::Object(request), &mut None, &mut None);
            let outcome = answer.and_then(|a| Ok((a.text()?, a.value()?)));
            // The receiver is gone if the query was abandoned.
            let _ = send.send(outcome);
        });
        loop {
            match receive.recv_timeout(Duration::from_millis(20)) {
                Ok(outcome) => return outcome.map(|(text, value)| lukasa_engine::OperationAnswer::of(text, value)),
                Err(RecvTimeoutError::Timeout) if interrupts.load(Ordering::Relaxed) > before => {
                    return Err(Error::new(ErrorKind::Unavailable, ErrorCode::Interrupted, "the query was abandoned"));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Error::internal("the query failed")),
            }
        }
    }

    /// Undoes a change of the request fields if no query works with them.
    fn checked(&mut self, before: Map<String, Value>) -> Result<Next> {
        match self.ask("RETURN 1") {
            Ok(_) => Ok(Next::Go),
            Err(e) => {
                self.request = before;
                Err(e)
            }
        }
    }

    fn query(&self, query: &str, out: &mut dyn Write) -> Result<()> {
        let answer = self.ask(query)?;
        let value = answer.value()?;
        written(match self.look {
            OutputFormat::Json => writeln!(out, "{}", safe_json(&answer.text()?)),
            OutputFormat::Tree => match self.operation.meta.shell {
                Some(shell) => render::print(out, self.colours.stdout(), &(shell.tree)(&value)),
                None => render::answer(out, self.colours.stdout(), self.operation, &value),
            },
            OutputFormat::Table => render::answer(out, self.colours.stdout(), self.operation, &value),
        })?;
        if self.timing && self.look != OutputFormat::Json {
            written(writeln!(out, "{} ms", value["took_ms"]))?;
        }
        Ok(())
    }

    fn command(&mut self, command: &str, out: &mut dyn Write) -> Result<Next> {
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let rest = rest.trim();
        let set = |request: &mut Map<String, Value>, field: &str, value: Value| {
            request.insert(field.into(), value);
        };
        let number = |text: &str| {
            text.parse::<u64>().map(|n| json!(n)).map_err(|_| {
                Error::invalid(ErrorCode::InvalidArgument, format!("`{text}` is not a number"))
                    .hint(":help lists the commands")
            })
        };
        let before = self.request.clone();
        match word {
            "quit" | "q" | "exit" => return Ok(Next::Quit),
            "help" | "h" | "?" => written(writeln!(out, "{HELP}"))?,
            "table" => self.look = OutputFormat::Table,
            "json" => self.look = OutputFormat::Json,
            "tree" => self.look = OutputFormat::Tree,
            "timing" => self.timing = rest != "off",
            "branch" => {
                match rest {
                    "" => drop(self.request.remove("branch")),
                    name => set(&mut self.request, "branch", json!(name)),
                }
                return self.checked(before);
            }
            "as-of" if !rest.is_empty() => {
                set(&mut self.request, "as_of", json!(rest));
                return self.checked(before);
            }
            "now" | "as-of" => {
                self.request.remove("as_of");
                self.request.remove("known_at");
            }
            "limit" | "timeout" => {
                let field = if word == "limit" { "limit" } else { "timeout_ms" };
                set(&mut self.request, field, number(rest)?);
                return self.checked(before);
            }
            "schema" => {
                for query in ["CALL db.labels()", "CALL db.schema()"] {
                    self.query(query, out)?;
                }
                let (_, _, procedures) = words();
                written(writeln!(out, "procedures: {}", procedures.join(", ")))?;
            }
            "params" => {
                let given = self.request.get("parameters").cloned().unwrap_or_else(|| json!({}));
                written(writeln!(out, "{given}"))?;
            }
            "param" => {
                let (name, text) = rest.split_once(char::is_whitespace).ok_or_else(|| {
                    Error::invalid(ErrorCode::InvalidArgument, "a parameter needs a name and a value")
                        .hint(":param key \"auth\"")
                })?;
                let value: Value = serde_json::from_str(text.trim()).map_err(|e| {
                    Error::invalid(ErrorCode::InvalidArgument, format!("`{}` is not JSON: {e}", text.trim()))
                        .hint("write texts in double quotes")
                })?;
                let given = self.request.entry("parameters").or_insert_with(|| json!({}));
                given[name.trim_end_matches(':').trim_start_matches('$')] = value;
                return self.checked(before);
            }
            other => {
                return Err(Error::invalid(ErrorCode::InvalidArgument, format!("there is no command `:{other}`"))
                    .hint(":help lists them"));
            }
        }
        Ok(Next::Go)
    }
}

/// The history file in the user's state folder. None without a home folder.
fn history_file() -> Option<PathBuf> {
    let folder = |variable: &str| std::env::var_os(variable).filter(|v| !v.is_empty()).map(PathBuf::from);
    let state = folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("lukasa").join("cypher-history"))
}

/// Words for completion.
struct Words {
    keywords: Vec<&'static str>,
    functions: Vec<&'static str>,
    procedures: Vec<&'static str>,
    names: OnceCell<Names>,
    find: Box<dyn Fn() -> Names>,
}

/// Names in the graph, loaded on first use.
#[derive(Clone, Default)]
struct Names {
    labels: Vec<String>,
    relationships: Vec<String>,
    properties: Vec<String>,
}

impl Words {
    fn new(shell: &Shell<'_>) -> Words {
        let (keywords, functions, procedures) = words();
        let engine = shell.session.engine.clone();
        let (scope, request) = (shell.session.scope.clone(), shell.request.clone());
        let ask = move |query: &str| -> Vec<String> {
            let mut request = request.clone();
            request.insert("query".into(), json!(query));
            request.insert("limit".into(), json!(5_000));
            let mut progress = |_, _| {};
            let mut context = lukasa_engine::Context::of(scope.clone(), &mut progress);
            // If the lookup fails, nothing is offered; the query itself reports the error.
            let answer = engine.call(&mut context, Cypher::META.name, Value::Object(request)).unwrap_or_default();
            let first = |row: &Value| row[0].as_str().map(str::to_owned);
            answer["rows"].as_array().into_iter().flatten().filter_map(first).collect()
        };
        let find = Box::new(move || Names {
            labels: ask("CALL db.labels()"),
            relationships: ask("CALL db.relationshipTypes()"),
            properties: ask("CALL db.propertyKeys()"),
        });
        Words { keywords, functions, procedures, names: OnceCell::new(), find }
    }

    /// The start of the word that ends at `end`, and its completions.
    fn candidates(&self, line: &str, end: usize) -> (usize, Vec<String>) {
        let before = &line[..end];
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let start =
            before.rfind(|c: char| !is_part(c)).map_or(0, |i| i + before[i..].chars().next().map_or(1, char::len_utf8));
        let word = &before[start..];
        let lead = before[..start].chars().next_back();
        let names = || self.names.get_or_init(|| (self.find)());
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let in_call = before.rsplit(char::is_whitespace).nth(1).is_some_and(|w| w.eq_ignore_ascii_case("CALL"));
        if in_call {
            let after = |i: usize| i + before[i..].chars().next().map_or(1, char::len_utf8);
            let start = before.rfind(char::is_whitespace).map_or(0, after);
            return (start, fitting(owned(&self.procedures), &before[start..]));
        }
        let all = match lead {
            Some('.') => names().properties.clone(),
            Some(':' | '|') => {
                let in_edge = before.rfind('[') > before.rfind('(').max(before.rfind(']'));
                if in_edge { names().relationships.clone() } else { names().labels.clone() }
            }
            Some('{' | ',') if before.rfind('{') > before.rfind('}') => names().properties.clone(),
            _ if word.is_empty() => vec![],
            _ => owned(&self.keywords).into_iter().chain(owned(&self.functions)).collect(),
        };
        (start, fitting(all, word))
    }
}

fn fitting(all: Vec<String>, word: &str) -> Vec<String> {
    let lower = word.to_lowercase();
    all.into_iter().filter(|name| name.to_lowercase().starts_with(&lower)).collect()
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &rustyline::Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = self.candidates(line, at);
        Ok((start, found.into_iter().map(|name| Pair { display: name.clone(), replacement: name }).collect()))
    }
}

impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input().trim();
        let whole = text.is_empty() || text.starts_with(':') || text.ends_with(';') || !is_unfinished(text);
        Ok(if whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}
impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(names: Names) -> Words {
        let (keywords, functions, procedures) = words();
        let find = Box::new(move || names.clone());
        Words { keywords, functions, procedures, names: OnceCell::new(), find }
    }

    #[test]
    fn completions_depend_on_the_position_in_the_query() {
        let all = words_of(Names {
            labels: vec!["Service".into(), "Function".into()],
            relationships: vec!["CALLS".into()],
            properties: vec!["port".into(), "path".into()],
        });
        let found = |line: &str| all.candidates(line, line.len());
        assert_eq!(found("MATCH (n:se"), (9, vec!["Service".to_string()]));
        assert_eq!(found("MATCH (n)-[r:"), (13, vec!["CALLS".to_string()]));
        assert_eq!(found("MATCH (n:A)-[:CALLS]->(m:F").1, ["Function"]);
        assert_eq!(found("RETURN n.p").1, ["port", "path"]);
        assert_eq!(found("MATCH (n {po").1, ["port"]);
        assert_eq!(found("CALL lukasa.pa"), (5, vec!["lukasa.pagerank".to_string()]));
        assert!(found("ret").1.contains(&"RETURN".to_string()));
        assert!(found("RETURN toUp").1.contains(&"toUpper".to_string()));
        assert_eq!(found("RETURN é").0, 7);
        assert_eq!(found("CALL\u{a0}l").0, 6);
        assert!(found("RETURN ").1.is_empty());
    }

    #[test]
    fn piped_input_is_split_into_queries() {
        let trimmed = |text: &str| split(text).iter().map(|q| q.trim().to_owned()).collect::<Vec<_>>();
        assert_eq!(trimmed("RETURN 1; // one; two\nRETURN ';' ;\n\n"), ["RETURN 1", "RETURN ';'"]);
        assert_eq!(trimmed("RETURN 'it\\'s; fine'; :json"), ["RETURN 'it\\'s; fine'", ":json"]);
        assert_eq!(
            trimmed(":param k 'x\nRETURN\n1;:json\nRETURN 2"),
            [":param k 'x", "RETURN\n1", ":json", "RETURN 2"]
        );
        assert_eq!(split("RETURN 1;\n\nRETURN x")[1], "\n\nRETURN x", "lines are kept");
        assert_eq!(trimmed(":param u \"http://x\"\nRETURN $u"), [":param u \"http://x\"", "RETURN $u"]);
        assert_eq!(trimmed("/* a; b */ RETURN 1; RETURN 2"), ["/* a; b */ RETURN 1", "RETURN 2"]);
        assert!(split(" ; ;").is_empty());
    }

    #[test]
    fn incomplete_queries_continue_on_the_next_line() {
        for (text, more) in [
            ("", true),
            ("MATCH (n)", true),
            ("CALL db.labels()", false),
            ("MATCH (n", true),
            ("MATCH (n) WHERE", true),
            ("MATCH (n) RETURN n", false),
            ("MATCH )", false),
        ] {
            assert_eq!(is_unfinished(text), more, "{text}");
        }
    }
}
