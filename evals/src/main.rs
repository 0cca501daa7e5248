//! `lukasa-evals`: measures Lukasa next to a reference in the same run, and prints one JSON object per line.

mod callgraph;
mod calls;
mod claims;
mod community;
mod cypher;
mod fresh;
mod gate;
mod graph;
mod graphalytics;
mod index;
mod locate;
mod multihop;
mod pack;
mod parse;
mod recall;
mod retrieval;
mod search;
mod serve;
mod slices;
mod store;
mod tck;

use clap::{Arg, ArgAction, ArgMatches, Command};
use retrieval::answer_file::AnswerFile;
use retrieval::vectors::Vectors;
use std::path::PathBuf;
use std::process::ExitCode;

// The allocator of the product.
#[cfg(unix)]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Why a suite could not run.
pub type Fault = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON lines only");
    let matches = Command::new("lukasa-evals")
        .about("Measures Lukasa next to a reference in the same run")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("store")
                .about("Bulk commit, get, release, merge and streaming, compared with raw inserts")
                .arg(
                    Arg::new("backend")
                        .long("backend")
                        .default_value("sqlite")
                        .help("sqlite, postgres (server from LUKASA_TEST_POSTGRES, see tools/with-postgres) or an administrator's postgres:// URL"),
                )
                .arg(Arg::new("objects").long("objects").default_value("100000").value_parser(clap::value_parser!(u64)))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("graph")
                .about("Building, walking, ranking and following a graph, compared with plain arrays")
                .arg(number("nodes", "50000"))
                .arg(number("edges", "250000"))
                .arg(number("seed", "1"))
                .arg(
                    Arg::new("peers")
                        .long("peers")
                        .action(ArgAction::SetTrue)
                        .help("Also measure networkx, rustworkx, igraph, leidenalg, kuzu and falkordb on the same graph"),
                )
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("graphalytics")
                .about("Breadth-first search, PageRank, components and shortest paths against LDBC's validation graphs")
                .arg(data())
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("community")
                .about("Communities of the graphs in a folder (GML or edge lists), compared with the true groups if there is a .truth file")
                .arg(data())
                .arg(Arg::new("peers").long("peers").action(ArgAction::SetTrue).help("Also run leidenalg and igraph"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("tck")
                .about("openCypher's TCK: the scenarios that only read, from any folder of feature files")
                .arg(data())
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("index")
                .about("Indexing a whole repository into an empty store, compared with raw parallel parsing of the same files")
                .arg(Arg::new("repo").long("repo").required(true).value_name("DIR").help("The repository; a copy is indexed"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("callgraph")
                .about("Call edges compared with public suites: PyCG, JCG, Jelly, go/callgraph")
                .arg(Arg::new("suite").long("suite").required(true).help("pycg, jcg, jcg-python, jcg-js, jelly or gocg"))
                .arg(data())
                .arg(
                    Arg::new("min-confidence")
                        .long("min-confidence")
                        .default_value("0.5")
                        .value_parser(clap::value_parser!(f64))
                        .help("Edges with less confidence do not count"),
                )
                .arg(Arg::new("verbose").long("verbose").action(ArgAction::SetTrue).help("List what is wrong and what is missing"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("calls")
                .about("Wrong and missing relationships of a repository: calls of tests from production code, calls into other builds, bases")
                .arg(
                    Arg::new("repo")
                        .long("repo")
                        .required_unless_present("cases")
                        .value_name("DIR")
                        .help("A working tree; it is only read"),
                )
                .arg(
                    Arg::new("cases")
                        .long("cases")
                        .action(ArgAction::SetTrue)
                        .conflicts_with("repo")
                        .help("Instead: small programs with the relationships that they have and must not have"),
                )
                .arg(Arg::new("verbose").long("verbose").action(ArgAction::SetTrue).help("List what is wrong"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("fresh")
                .about("Processor and wall time of pack, search and callers in a new process, and over MCP")
                .arg(Arg::new("repo").long("repo").required(true).value_name("DIR").help("A working tree; it is only read"))
                .arg(Arg::new("program").long("program").required(true).value_name("FILE").help("The lukasa program to measure"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("slices")
                .about("Slices of every symbol of a repository, compared with the lines of its file")
                .arg(Arg::new("repo").long("repo").required(true).value_name("DIR").help("A working tree; it is only read"))
                .arg(Arg::new("verbose").long("verbose").action(ArgAction::SetTrue).help("List what is wrong"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("parse")
                .about("Our own parsers compared with tree-sitter on all files of a folder: files left to it, the same and different facts, times")
                .arg(data())
                .arg(Arg::new("verbose").long("verbose").action(ArgAction::SetTrue).help("List every file that is read differently"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("cypher")
                .about("openCypher queries, from a lookup to triangles and shortest paths")
                .arg(number("nodes", "50000"))
                .arg(number("edges", "250000"))
                .arg(number("seed", "1"))
                .arg(Arg::new("peers").long("peers").action(ArgAction::SetTrue).help("Also measure kuzu and falkordb"))
                .arg(
                    Arg::new("generated")
                        .long("generated")
                        .value_name("N")
                        .value_parser(clap::value_parser!(u64))
                        .help("Instead: run N generated queries and compare the rows with those of kuzu and a naive evaluator"),
                )
                .arg(Arg::new("only").long("only").value_name("NAME").help("Only queries whose name contains this"))
                .arg(json.clone()),
        )
        .subcommands(ranking(&json))
        .subcommand(
            Command::new("search")
                .about("Searching among many objects, and the time from a write until it is found, compared with a plain BM25 loop")
                .arg(number("objects", "100000"))
                .arg(cache())
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("pack")
                .about("Context packs for tasks: how long they take, and whether they stay within their token budget")
                .arg(Arg::new("repo").long("repo").value_name("DIR").conflicts_with("nodes").help("A working tree; it is only read"))
                .arg(number("nodes", "50000").help("Instead: a synthetic graph with this number of nodes"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("serve")
                .about("Many concurrent clients of one server")
                .arg(number("clients", "100"))
                .arg(number("seconds", "60"))
                .arg(number("nodes", "50000"))
                .arg(number("edges", "250000").help("Determined by the nodes: five for each"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("gate")
                .about("Fails if figures of a run are lower than those of an earlier run")
                .arg(Arg::new("baseline").long("baseline").required(true).help("The output of the earlier run, made with --json"))
                .arg(Arg::new("run").long("run").required(true).help("The output of the present run"))
                .arg(
                    Arg::new("drop")
                        .long("drop")
                        .default_value("2")
                        .value_parser(clap::value_parser!(f64))
                        .help("Points that a figure may fall"),
                )
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("claims")
                .about("Agents in several processes compete for the same targets; some processes are killed")
                .arg(number("agents", "32"))
                .arg(number("processes", "8"))
                .arg(number("targets", "1000"))
                .arg(number("grace", "5").help("Seconds that claims of a killed process may last"))
                .arg(Arg::new("backend").long("backend").default_value("sqlite").help("sqlite, postgres, or the URL of a PostgreSQL superuser"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("run")
                .about("Writes the ranked answers of a suite to a file, for another scorer")
                .subcommand_required(true)
                .subcommands(ranking(&json).into_iter().map(|suite| {
                    let method = Arg::new("method").long("method").default_value("ours").help("The method whose answers are written");
                    let out = Arg::new("out").long("out").value_name("FILE").required(true);
                    suite.arg(out.help("One line per question: {\"id\", \"ranked\"}")).arg(method)
                })),
        )
        .get_matches();
    let done = match matches.subcommand() {
        Some(("store", m)) => {
            let backend = m.get_one::<String>("backend").map_or("sqlite", String::as_str);
            store::run(backend, m.get_one::<u64>("objects").copied().unwrap_or(100_000), m.get_flag("json"))
        }
        Some(("graph", m)) => {
            let number = |name: &str| m.get_one::<u64>(name).copied().unwrap_or_default();
            graph::run(&graph::GraphOptions {
                nodes: number("nodes"),
                edges: number("edges"),
                seed: number("seed"),
                peers: m.get_flag("peers"),
                json: m.get_flag("json"),
            })
        }
        Some(("graphalytics", m)) => graphalytics::run(&folder(m), m.get_flag("json")),
        Some(("community", m)) => community::run(&folder(m), m.get_flag("peers"), m.get_flag("json")),
        Some(("index", m)) => {
            let repo = m.get_one::<String>("repo").map(PathBuf::from).unwrap_or_default();
            index::run(&repo, m.get_flag("json"))
        }
        Some(("callgraph", m)) => callgraph::run(
            m.get_one::<String>("suite").map_or("", String::as_str),
            &folder(m),
            m.get_one::<f64>("min-confidence").copied().unwrap_or(0.5),
            m.get_flag("verbose"),
            m.get_flag("json"),
        ),
        Some(("calls", m)) if m.get_flag("cases") => calls::cases::run(m.get_flag("json")),
        Some(("calls", m)) => {
            let repo = m.get_one::<String>("repo").map(PathBuf::from).unwrap_or_default();
            calls::run(&repo, m.get_flag("verbose"), m.get_flag("json"))
        }
        Some(("fresh", m)) => {
            let path = |name: &str| m.get_one::<String>(name).map(PathBuf::from).unwrap_or_default();
            fresh::run(&path("repo"), &path("program"), m.get_flag("json"))
        }
        Some(("slices", m)) => {
            let repo = m.get_one::<String>("repo").map(PathBuf::from).unwrap_or_default();
            slices::run(&repo, m.get_flag("verbose"), m.get_flag("json"))
        }
        Some(("parse", m)) => parse::run(&folder(m), m.get_flag("verbose"), m.get_flag("json")),
        Some(("cypher", m)) if m.get_one::<u64>("generated").is_some() => {
            cypher::compare(m.get_one::<u64>("generated").copied().unwrap_or_default(), m.get_flag("json"))
        }
        Some(("cypher", m)) => {
            let number = |name: &str| m.get_one::<u64>(name).copied().unwrap_or_default();
            cypher::run(&cypher::CypherOptions {
                nodes: number("nodes"),
                edges: number("edges"),
                seed: number("seed"),
                peers: m.get_flag("peers"),
                json: m.get_flag("json"),
                only: m.get_one::<String>("only").cloned(),
            })
        }
        Some(("tck", m)) => tck::run(&folder(m), m.get_flag("json")),
        Some(("search", m)) => {
            let objects = m.get_one::<u64>("objects").copied().unwrap_or_default();
            search::run(objects, &vectors(m), m.get_flag("json"))
        }
        Some(("pack", m)) => {
            let repo = m.get_one::<String>("repo").map(PathBuf::from);
            let nodes = m.get_one::<u64>("nodes").copied().unwrap_or_default();
            let from = repo.as_deref().map_or(pack::PackSource::Nodes(nodes), pack::PackSource::Repository);
            pack::run(&from, m.get_flag("json"))
        }
        Some(("serve", m)) => {
            let number = |name: &str| m.get_one::<u64>(name).copied().unwrap_or_default();
            serve::run(number("clients") as usize, number("seconds"), number("nodes"), m.get_flag("json"))
        }
        Some(("gate", m)) => {
            let file = |name: &str| m.get_one::<String>(name).map(PathBuf::from).unwrap_or_default();
            let drop = m.get_one::<f64>("drop").copied().unwrap_or(2.0);
            gate::run(&file("baseline"), &file("run"), drop, m.get_flag("json"))
        }
        Some(("claims", m)) => {
            let number = |name: &str| m.get_one::<u64>(name).copied().unwrap_or_default();
            claims::run(&claims::ClaimOptions {
                agents: number("agents"),
                processes: number("processes"),
                targets: number("targets"),
                backend: m.get_one::<String>("backend").cloned().unwrap_or_default(),
                grace: number("grace"),
                json: m.get_flag("json"),
            })
        }
        Some(("run", m)) => match m.subcommand() {
            Some((suite, m)) => out(m).and_then(|out| rank(suite, m, Some(out))),
            None => Err("unknown suite".into()),
        },
        Some((suite @ ("multihop" | "recall" | "locate"), m)) => rank(suite, m, None),
        _ => Err("unknown suite".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Suites that rank answers; each is also a subcommand of `run`.
fn ranking(json: &Arg) -> Vec<Command> {
    let repos = Arg::new("repos").long("repos").required(true).value_name("DIR");
    let limit = Arg::new("limit").long("limit").value_name("N").value_parser(clap::value_parser!(usize));
    let level = Arg::new("level").long("level").default_value("file").value_parser(["file", "function"]);
    let mode = Arg::new("mode").long("mode").default_value("index").value_parser(["index", "episodes"]);
    vec![
        Command::new("multihop")
            .about("Questions whose answer is in several passages that mention one another")
            .arg(data().help("A set (passages.jsonl, questions.jsonl), or a folder of sets"))
            .arg(cache())
            .arg(json.clone()),
        Command::new("recall")
            .about("Questions about conversations, each in a separate project")
            .arg(data().help("A folder of numbered folders (turns.jsonl, questions.jsonl)"))
            .arg(mode.help("How turns are stored: as objects with an index, or as episodes"))
            .arg(cache())
            .arg(json.clone()),
        Command::new("locate")
            .about("Which files or functions a task concerns: issues, or messages of commits")
            .arg(data().value_name("FILE").help("Tasks, one per line; or a folder of such files"))
            .arg(repos.help("Git repositories as owner+name, owner+name/repo or owner+name.git; they are only read"))
            .arg(limit.help("Only the first N tasks of each file"))
            .arg(level.help("What is searched for; with functions, also what packs show of them"))
            .arg(json.clone()),
    ]
}

fn rank(suite: &str, m: &ArgMatches, out: Option<AnswerFile>) -> Result<(), Fault> {
    let (data, json) = (folder(m), m.get_flag("json"));
    match suite {
        "multihop" => multihop::run(&data, &vectors(m), out, json),
        "recall" => {
            recall::run(&data, m.get_one::<String>("mode").map_or("index", |mode| mode), &vectors(m), out, json)
        }
        _ => {
            let repos = m.get_one::<String>("repos").map(PathBuf::from).unwrap_or_default();
            let limit = m.get_one::<usize>("limit").copied();
            match m.get_one::<String>("level").map(String::as_str) {
                Some("function") => locate::run_by_function(&data, &repos, limit, out, json),
                _ => locate::run(&data, &repos, limit, out, json),
            }
        }
    }
}

fn out(m: &ArgMatches) -> Result<AnswerFile, Fault> {
    let path = m.get_one::<String>("out").map(PathBuf::from).unwrap_or_default();
    AnswerFile::create(&path, m.get_one::<String>("method").map_or("ours", |method| method))
}

fn cache() -> Arg {
    Arg::new("cache").long("cache").value_name("DIR").help("Where vectors are kept for the next run")
}

fn vectors(m: &ArgMatches) -> Vectors {
    Vectors::new(m.get_one::<String>("cache").map(PathBuf::from).as_deref())
}

fn number(name: &'static str, default: &'static str) -> Arg {
    Arg::new(name).long(name).default_value(default).value_parser(clap::value_parser!(u64))
}

fn data() -> Arg {
    Arg::new("data").long("data").required(true).value_name("DIR").help("Folder with the data")
}

fn folder(matches: &ArgMatches) -> PathBuf {
    matches.get_one::<String>("data").map(PathBuf::from).unwrap_or_default()
}

/// Prints one line of figures, as one line of JSON or indented.
fn print(line: &serde_json::Value, as_json: bool) {
    if as_json {
        println!("{line}");
    } else {
        println!("{line:#}");
    }
}

/// Rounds to two decimal digits.
fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The peak of the resident memory of this process, from the kernel.
fn peak_rss_mb() -> Option<u64> {
    status_mb("VmHWM:")
}

fn status_mb(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with(field))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}

/// Seconds of processor time this process has used.
fn cpu_seconds() -> f64 {
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return 0.0 };
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
