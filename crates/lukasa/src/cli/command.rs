//! Builds the commands from the registry, and requests from the arguments.

use super::style;
use clap::builder::{PossibleValuesParser, StyledStr};
use clap::{Arg, ArgAction, ArgMatches, Command};
use lukasa_engine::registry::fields::{FieldSyntax, RequestField, fields};
use lukasa_engine::telemetry::log::LogLevel;
use lukasa_engine::{Operation, operations};
use lukasa_model::Result;
use serde_json::{Map, Value};
use std::ffi::OsString;

const ABOUT: &str = "One versioned, bi-temporal knowledge graph of code, services, documents, decisions and agents.";
const LONG: &str = "\
Facts are never overwritten: every change is a version, every read can choose a time (--as-of) and a branch \
(--branch).

Without --store, the nearest .lukasa/lukasa.db in this folder or its ancestors is used; the first write creates one. Start with \
`lukasa demo`: a one-minute story on a temporary store.";

/// Columns of help on wider terminals: longer lines are hard to read.
const WIDEST: usize = 110;

/// Commands that group several operations.
const GROUPS: [(&str, &str); 6] = [
    ("audit", "The audit log: list, verify, export"),
    ("branch", "Create, list, move, close and open branches"),
    ("release", "Create, list and compare releases: named, fixed views"),
    ("tag", "Names that point to releases"),
    ("task", "Create and change tasks; list ready and blocked ones"),
    ("type", "Declare types of objects and relationships, with schemas and rules"),
];

/// Every command. The arguments of an operation are only built when it is the one that is run.
pub fn build() -> Command {
    let global = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).global(true).help(help).help_heading("Global options")
    };
    let mut root = Command::new("lukasa")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .long_about(format!("{ABOUT}\n\n{LONG}"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(WIDEST)
        .arg(global("store", "SQLite file or postgres:// URL [env: LUKASA_STORE]").value_name("STORE"))
        .arg(global("tenant", "Tenant [env: LUKASA_TENANT] [default: local]").value_name("NAME"))
        .arg(global("project", "Project [env: LUKASA_PROJECT] [default: the folder's name]").value_name("NAME"))
        .arg(global("author", "The author recorded in the log [env: LUKASA_AUTHOR, USER]").value_name("NAME"))
        .arg(global("agent", "The agent recorded in the log [env: LUKASA_AGENT]").value_name("NAME"))
        .arg(global("session", "The session recorded in the log [env: LUKASA_SESSION]").value_name("NAME"))
        .arg(global("json", "Print JSON").action(ArgAction::SetTrue))
        .arg(
            global(style::FLAG, "Colours: on a terminal, always or never [env: NO_COLOR, CLICOLOR] [default: auto]")
                .value_name("WHEN")
                .value_parser(PossibleValuesParser::new(style::CHOICES)),
        )
        .arg(
            global(
                "log-level",
                "Level of the log on standard error [env: LUKASA_LOG_LEVEL] [default: warn; info for serve]",
            )
            .value_parser(PossibleValuesParser::new(LogLevel::NAMES)),
        )
        .arg(
            global("log-format", "Format of the log [env: LUKASA_LOG_FORMAT] [default: text]")
                .value_parser(PossibleValuesParser::new(["text", "json"])),
        );
    // Arguments are built for the command that is typed, not for all of them.
    for (word, about) in GROUPS {
        let group = Command::new(word).about(about).subcommand_required(true).arg_required_else_help(true);
        root = root.subcommand(group.defer(with_operations));
    }
    for operation in operations().iter().filter(|o| !o.meta.verb.contains(' ')) {
        root = root.subcommand(Command::new(operation.meta.verb).about(operation.meta.summary).defer(with_arguments));
    }
    root = root.subcommand(super::setup::command()).subcommand(super::doctor::command());
    root = root.subcommands(super::generate::commands());
    root.subcommands(super::serve::commands()).subcommand(
        Command::new("watch")
            .about("Index every change as it is saved, until Ctrl-C")
            .long_about(
                "Index every change as it is saved, until Ctrl-C.\n\nIndexes what changed, then waits for changes: half a \
                 second after the last one they are indexed, one transaction each time. Switching branches, stashing and \
                 mass renames are followed too.",
            )
            .arg(Arg::new("path").value_name("PATH").default_value(".").help("A folder of the working tree")),
    )
    .subcommand(super::key::command())
    .subcommand(
        Command::new("setup-postgres")
            .about("Prepare a PostgreSQL database: schema, row-level security, the application's role")
            .long_about(
                "Run once per database and Lukasa version, as an administrator. Creates the application's login role \
                 with the user and password of --app-url; that role cannot bypass row-level security. Safe to repeat.",
            )
            .arg(
                Arg::new("admin-url")
                    .long("admin-url")
                    .value_name("URL")
                    .help("URL of an administrator [env: LUKASA_POSTGRES_ADMIN_URL]"),
            )
            .arg(Arg::new("app-url").long("app-url").value_name("URL").help("URL Lukasa will use [env: LUKASA_STORE]")),
    )
}

/// A group, with a command for each of its operations.
fn with_operations(group: Command) -> Command {
    let own = operations().iter().filter_map(|operation| {
        // A whole word: `release-claim` is no `release`.
        let word = operation.meta.verb.strip_prefix(group.get_name())?.strip_prefix(' ')?;
        Some(described(Command::new(word).about(operation.meta.summary), operation))
    });
    let own: Vec<Command> = own.collect();
    group.subcommands(own)
}

/// The command of an operation, with its help and arguments.
fn with_arguments(command: Command) -> Command {
    match operations().iter().find(|operation| operation.meta.verb == command.get_name()) {
        Some(operation) => described(command, operation),
        None => command,
    }
}

fn described(command: Command, operation: &'static Operation) -> Command {
    let meta = operation.meta;
    let mut command = command.long_about(format!("{}.\n\n{}", meta.summary, meta.description));
    if !meta.examples.is_empty() {
        command = command.after_help(format!("Examples:\n  {}", meta.examples.join("\n  ")));
    }
    for field in fields(operation) {
        let arg = field.arg();
        let asks = meta.shell.is_some_and(|shell| shell.field == field.name);
        command = command.arg(if asks { arg.required(false) } else { arg });
    }
    if meta.shell.is_some() {
        let tree = Arg::new("tree").long("tree").action(ArgAction::SetTrue);
        command = command.arg(tree.help("Print rows as trees, not as a table"));
        command = command.before_help("Without a query: a shell with history and completion, or, where input is piped, queries that end with `;`.");
    }
    command
}

/// Headings of `--help`, in order, with the toolsets that stand below each.
const HEADINGS: [(&str, &[&str]); 7] = [
    ("Source code", &["code"]),
    ("Search", &["search"]),
    ("Memory and agents", &["memory", "coordination"]),
    ("Graph", &["graph"]),
    ("Facts and types", &["facts", "types"]),
    ("Branches and releases", &["branches", "releases"]),
    ("The store", &["admin"]),
];

/// The commands; where help was requested, with those that matter most first and the others by purpose.
pub fn with_help(mut typed: impl Iterator<Item = OsString>) -> Command {
    let wants_help = |word: OsString| word == "--help" || word == "-h" || word == "help";
    let is_bare = typed.by_ref().nth(1).map(&wants_help);
    if is_bare.unwrap_or(true) || typed.any(wants_help) {
        let root = build();
        let help = help(&root);
        return root.override_help(help);
    }
    build()
}

fn help(root: &Command) -> StyledStr {
    let listed = |heading: &str, commands: Vec<&Command>| {
        let brief = commands.into_iter().map(|command| {
            let brief = Command::new(command.get_name().to_owned());
            command.get_about().map_or(brief.clone(), |about| brief.about(about.clone()))
        });
        part(Command::new("lukasa").subcommand_help_heading(heading.to_owned()).subcommands(brief))
    };
    let operation_of = |command: &Command| operations().iter().find(|o| o.meta.verb == command.get_name());
    let toolset_of = |command: &Command| {
        let group = format!("{} ", command.get_name());
        operation_of(command).or_else(|| operations().iter().find(|o| o.meta.verb.starts_with(&group)))
    };
    let all: Vec<&Command> = root.get_subcommands().collect();
    let essential = |command: &Command| operation_of(command).is_some_and(|operation| operation.meta.essential);
    let mut text = format!("{ABOUT}\n\n{LONG}\n\nUsage: lukasa [OPTIONS] <COMMAND>\n\n");
    text += &listed("Start here", all.iter().copied().filter(|command| essential(command)).collect());
    text += &listed("Set up and serve", all.iter().copied().filter(|c| toolset_of(c).is_none()).collect());
    for (heading, toolsets) in HEADINGS {
        let own = |command: &&Command| toolset_of(command).is_some_and(|o| toolsets.contains(&o.meta.toolset));
        text += &listed(heading, all.iter().copied().filter(|c| !essential(c)).filter(own).collect());
    }
    text += &part(Command::new("lukasa").args(root.get_arguments().cloned()));
    text += "`lukasa help pack` shows the arguments and examples of `pack`, and so on for every command.\n";
    text.into()
}

/// The arguments or commands of a command alone, as wide as the terminal.
fn part(command: Command) -> String {
    let command = command.max_term_width(WIDEST).disable_help_flag(true).disable_help_subcommand(true);
    let text = command.help_template("{all-args}").render_help().ansi().to_string();
    format!("{}\n\n", text.trim_end())
}

/// The chosen operation and its arguments.
pub fn chosen(matches: &ArgMatches) -> Option<(&'static Operation, &ArgMatches)> {
    let (word, sub) = matches.subcommand()?;
    let (verb, sub) = match sub.subcommand() {
        Some((second, deeper)) => (format!("{word} {second}"), deeper),
        None => (word.to_string(), sub),
    };
    operations().iter().find(|o| o.meta.verb == verb).map(|o| (o, sub))
}

/// The request of an operation from its arguments.
pub fn request(operation: &'static Operation, matches: &ArgMatches) -> Result<Value> {
    let mut request = Map::new();
    for field in fields(operation) {
        if let Some(value) = field.typed(matches)? {
            request.insert(field.name.clone(), value);
        }
    }
    Ok(Value::Object(request))
}

/// A field as a command-line argument.
trait Argument {
    fn flag(&self) -> String;
    fn arg(&self) -> Arg;
    fn typed(&self, matches: &ArgMatches) -> Result<Option<Value>>;
}

impl Argument for RequestField {
    fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    fn arg(&self) -> Arg {
        let mut help = self.help.clone();
        if let Some(default) = &self.default {
            let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
            help = format!("{help} [default: {default}]");
        }
        let mut arg = Arg::new(self.name.clone()).help(help).required(self.required);
        let value = match self.shape {
            FieldSyntax::Number => "N",
            FieldSyntax::Json => "JSON",
            _ => "TEXT",
        };
        arg = match self.position {
            Some(place) => arg.index(place + 1).value_name(self.name.to_uppercase()),
            None => arg.long(self.flag()).value_name(value),
        };
        match &self.shape {
            FieldSyntax::Flag => arg.action(ArgAction::SetTrue).value_name(""),
            FieldSyntax::Switch => arg.value_parser(PossibleValuesParser::new(["true", "false"])).value_name("CHOICE"),
            FieldSyntax::Choice(choices) => {
                arg.value_parser(PossibleValuesParser::new(choices.clone())).ignore_case(true).value_name("CHOICE")
            }
            FieldSyntax::Texts => {
                let help =
                    if self.help.is_empty() { "Repeatable".into() } else { format!("{}; repeatable", self.help) };
                let arg = arg.action(ArgAction::Append).help(help);
                if self.position.is_some() { arg.num_args(1..) } else { arg }
            }
            FieldSyntax::Number => arg.allow_negative_numbers(true),
            FieldSyntax::Text | FieldSyntax::Json => arg.allow_hyphen_values(self.position.is_none()),
        }
    }

    fn typed(&self, matches: &ArgMatches) -> Result<Option<Value>> {
        let flag = format!("--{}", self.flag());
        Ok(match &self.shape {
            FieldSyntax::Flag => matches.get_flag(&self.name).then_some(Value::Bool(true)),
            FieldSyntax::Texts => matches
                .get_many::<String>(&self.name)
                .map(|all| Value::Array(all.map(|t| Value::String(t.clone())).collect())),
            shape => matches.get_one::<String>(&self.name).map(|text| shape.read(&flag, text)).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lukasa_model::ErrorCode;

    #[test]
    fn every_operation_is_a_command_that_clap_accepts() {
        build().debug_assert();
        for operation in operations() {
            let mut typed = vec!["lukasa"];
            typed.extend(operation.meta.verb.split(' '));
            typed.push("--help");
            let help = build().try_get_matches_from(typed).expect_err("help is printed").to_string();
            assert!(help.contains(operation.meta.summary), "{}: {help}", operation.meta.name);
        }
    }

    #[test]
    fn help_lists_every_command_once() {
        let root = build();
        let help = help(&root).to_string();
        for command in root.get_subcommands() {
            let row = format!("\n  {} ", command.get_name());
            assert_eq!(help.matches(&row).count(), 1, "{}: {help}", command.get_name());
        }
        let place = |word: &str| help.find(&format!("\n  {word} ")).unwrap();
        assert!(place("pack") < place("serve") && place("serve") < place("expand"));
        assert!(help.contains("--store <STORE>"));
    }

    #[test]
    fn no_field_of_an_operation_has_the_name_of_a_global_flag() {
        let root = build();
        let global: Vec<String> = root
            .get_arguments()
            .filter(|arg| arg.is_global_set())
            .flat_map(|arg| {
                let names = arg.get_long().into_iter().chain(arg.get_all_aliases().unwrap_or_default());
                names.map(str::to_owned).chain([arg.get_id().to_string()]).collect::<Vec<_>>()
            })
            .collect();
        assert!(["store", "project", "json"].iter().all(|name| global.iter().any(|g| g == name)), "{global:?}");
        let mut shared = Vec::new();
        for operation in operations() {
            for field in fields(operation) {
                // A positional field has the id of its argument in common with a global flag, too.
                let names = [field.name.clone(), field.flag()];
                shared.extend(
                    names.into_iter().filter(|n| global.contains(n)).map(|n| format!("{} --{n}", operation.meta.verb)),
                );
            }
        }
        assert_eq!(shared, Vec::<String>::new());
    }

    /// Splits a line as a shell does: words, and text in quotes.
    fn words(line: &str) -> Vec<String> {
        let (mut all, mut word, mut quote) = (vec![], String::new(), None);
        for c in line.chars() {
            match (quote, c) {
                (None, ' ') if word.is_empty() => {}
                (None, ' ') => all.push(std::mem::take(&mut word)),
                (None, '"' | '\'') => quote = Some(c),
                (Some(q), c) if c == q => quote = None,
                _ => word.push(c),
            }
        }
        all.push(word);
        all
    }

    #[test]
    fn every_example_is_a_command_that_works() {
        for operation in operations() {
            for example in operation.meta.examples {
                let typed = example.split(" > ").next().unwrap();
                let matches = build().try_get_matches_from(words(typed)).unwrap_or_else(|e| panic!("{example}: {e}"));
                let (chosen, sub) = chosen(&matches).unwrap();
                assert_eq!(chosen.meta.name, operation.meta.name, "{example}");
                request(chosen, sub).unwrap_or_else(|e| panic!("{example}: {e:?}"));
            }
        }
    }

    #[test]
    fn the_demo_runs_the_commands_that_it_prints() {
        use lukasa_store::{Clock, MemoryStore, SystemClock};
        use std::sync::Arc;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(Arc::clone(&clock)));
        let engine = lukasa_engine::Engine::new(store, clock, std::env::temp_dir());
        let mut progress = |_, _| {};
        let mut context = lukasa_engine::Context::of(lukasa_model::Scope::new("local", "demo").unwrap(), &mut progress);
        let response = engine.call(&mut context, "demo", serde_json::json!({})).unwrap();
        let steps = response["steps"].as_array().unwrap();
        assert!(steps.len() > 10);
        for step in steps {
            let matches = build().try_get_matches_from(step["command"].as_str().unwrap().split(' ')).unwrap();
            let (operation, sub) = chosen(&matches).unwrap();
            assert_eq!(operation.meta.name, step["operation"], "{}", step["command"]);
            assert_eq!(request(operation, sub).unwrap(), step["request"], "{}", step["command"]);
        }
    }

    #[test]
    fn arguments_become_the_request() {
        let typed = [
            "lukasa",
            "put",
            "Service",
            "auth",
            "--set",
            "port=1",
            "--set",
            "x=y",
            "--only-this-period",
            "--expected-version",
            "3",
            "--properties",
            "{\"a\":1}",
        ];
        let matches = build().try_get_matches_from(typed).unwrap();
        let (operation, sub) = chosen(&matches).unwrap();
        assert_eq!(operation.meta.name, "put");
        let want = serde_json::json!({"type": "Service", "key": "auth", "set": ["port=1", "x=y"],
            "only_this_period": true, "expected_version": 3, "properties": {"a": 1}});
        assert_eq!(request(operation, sub).unwrap(), want);
        let typed = ["lukasa", "rename", "a", "b", "--leave-links"];
        let matches = build().try_get_matches_from(typed).unwrap();
        let (operation, sub) = chosen(&matches).unwrap();
        assert_eq!(request(operation, sub).unwrap()["leave_links"], true);
        let typed = ["lukasa", "log", "--limit", "x"];
        let matches = build().try_get_matches_from(typed).unwrap();
        let (operation, sub) = chosen(&matches).unwrap();
        assert_eq!(request(operation, sub).unwrap_err().code, ErrorCode::InvalidArgument);
    }
}
