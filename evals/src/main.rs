//! `lukasa-evals`: measures Lukasa beside a reference in the same run; one JSON object per line.

mod callgraph;
mod calls;
mod claims;
mod community;
mod cypher;
mod finding;
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
mod search;
mod serve;
mod slices;
mod store;
mod tck;

use clap::{Arg, ArgAction, ArgMatches, Command};
use finding::out::Out;
use finding::vectors::Vectors;
use std::path::PathBuf;
use std::process::ExitCode;

// As the product has it.
#[cfg(unix)]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Why a suite could not run.
pub type Fault = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON lines only");
    let matches = Command::new("lukasa-evals")
        .about("Measures Lukasa beside a reference in the same run")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("store")
                .about("Bulk commit, get, release, merge and streaming, beside raw inserts")
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
                .about("Building, walking, ranking and following a graph, beside bare arrays")
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
                .about("Communities of given graphs: GML or edge lists, with planted truth where there is a .truth file")
                .arg(data())
                .arg(Arg::new("peers").long("peers").action(ArgAction::SetTrue).help("Also run leidenalg and igraph"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("tck")
                .about("openCypher's scenarios that only read: any folder of feature files")
                .arg(data())
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("index")
                .about("A whole repository into an empty store, beside raw parallel parsing of the same files")
                .arg(Arg::new("repo").long("repo").required(true).value_name("DIR").help("The repository; a copy is indexed"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("callgraph")
                .about("Call edges against public suites: PyCG, JCG, Jelly, go/callgraph")
                .arg(Arg::new("suite").long("suite").required(true).help("pycg, jcg, jcg-python, jcg-js, jelly or gocg"))
                .arg(data())
                .arg(
                    Arg::new("min-confidence")
                        .long("min-confidence")
                        .default_value("0.5")
                        .value_parser(clap::value_parser!(f64))
                        .help("Edges less sure than this do not count"),
                )
                .arg(Arg::new("verbose").long("verbose").action(ArgAction::SetTrue).help("Tell what is wrong and missing"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("calls")
                .about("Wrong and missing relationships of a repository: calls of tests from production code, calls into other builds, bases")
                .arg(Arg::new("repo").long("repo").required(true).value_name("DIR").help("A working tree; it is only read"))
                .arg(Arg::new("verbose").long("verbose").action(ArgAction::SetTrue).help("List what is wrong"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("fresh")
                .about("Processor and wall time of pack, search and callers in a process of their own, and over MCP")
                .arg(Arg::new("repo").long("repo").required(true).value_name("DIR").help("A working tree; it is only read"))
                .arg(Arg::new("program").long("program").required(true).value_name("FILE").help("The lukasa to ask"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("slices")
                .about("Slices of every symbol of a repository beside the lines of its own file")
                .arg(Arg::new("repo").long("repo").required(true).value_name("DIR").help("A working tree; it is only read"))
                .arg(Arg::new("verbose").long("verbose").action(ArgAction::SetTrue).help("List what is wrong"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("parse")
                .about("Our own parsers beside tree-sitter, on all files of a folder: files left to it, the same and different facts, times")
                .arg(data())
                .arg(Arg::new("verbose").long("verbose").action(ArgAction::SetTrue).help("List every file that is read differently"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("cypher")
                .about("Questions in openCypher, from a lookup to triangles and shortest paths")
                .arg(number("nodes", "50000"))
                .arg(number("edges", "250000"))
                .arg(number("seed", "1"))
                .arg(Arg::new("peers").long("peers").action(ArgAction::SetTrue).help("Also ask kuzu and falkordb"))
                .arg(
                    Arg::new("generated")
                        .long("generated")
                        .value_name("N")
                        .value_parser(clap::value_parser!(u64))
                        .help("Instead: so many generated queries, compared with kuzu and a naive evaluator"),
                )
                .arg(Arg::new("only").long("only").value_name("NAME").help("Only questions whose name contains this"))
                .arg(json.clone()),
        )
        .subcommands(ranking(&json))
        .subcommand(
            Command::new("search")
                .about("Finding among many objects, and how soon after they were written, beside a plain BM25 loop")
                .arg(number("objects", "100000"))
                .arg(cache())
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("pack")
                .about("Briefings for tasks: how long they take, and whether they stay within their tokens")
                .arg(Arg::new("repo").long("repo").value_name("DIR").conflicts_with("nodes").help("A working tree; it is only read"))
                .arg(number("nodes", "50000").help("Instead: a made graph of so many nodes"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("serve")
                .about("Many clients at once against a server of its own")
                .arg(number("clients", "100"))
                .arg(number("seconds", "60"))
                .arg(number("nodes", "50000"))
                .arg(number("edges", "250000").help("Follows from the nodes: five for each"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("gate")
                .about("Refuses a run whose figures have fallen below those of an earlier one")
                .arg(Arg::new("baseline").long("baseline").required(true).help("What an earlier run printed with --json"))
                .arg(Arg::new("run").long("run").required(true).help("What this one printed"))
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
                .about("Agents in processes of their own race for the same targets; some are killed")
                .arg(number("agents", "32"))
                .arg(number("processes", "8"))
                .arg(number("targets", "1000"))
                .arg(number("grace", "5").help("Seconds that claims of a killed process may stay"))
                .arg(Arg::new("backend").long("backend").default_value("sqlite").help("sqlite, postgres, or the URL of a PostgreSQL superuser"))
                .arg(json.clone()),
        )
        .subcommand(
            Command::new("run")
                .about("Ranked answers of a suite, written down for another scorer")
                .subcommand_required(true)
                .subcommands(ranking(&json).into_iter().map(|suite| {
                    let method = Arg::new("method").long("method").default_value("ours").help("Whose answers are written");
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
            graph::run(&graph::Ask {
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
            cypher::run(&cypher::Ask {
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
            let from = repo.as_deref().map_or(pack::From::Nodes(nodes), pack::From::Repository);
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
            claims::run(&claims::Ask {
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

/// Suites that rank answers: the same by themselves and under `run`.
fn ranking(json: &Arg) -> Vec<Command> {
    let repos = Arg::new("repos").long("repos").required(true).value_name("DIR");
    let limit = Arg::new("limit").long("limit").value_name("N").value_parser(clap::value_parser!(usize));
    let level = Arg::new("level").long("level").default_value("file").value_parser(["file", "function"]);
    let mode = Arg::new("mode").long("mode").default_value("index").value_parser(["index", "episodes"]);
    vec![
        Command::new("multihop")
            .about("Questions whose answer is spread over passages that mention one another")
            .arg(data().help("A set (passages.jsonl, questions.jsonl), or a folder of sets"))
            .arg(cache())
            .arg(json.clone()),
        Command::new("recall")
            .about("Questions about conversations, each a memory of its own")
            .arg(data().help("A folder of numbered folders (turns.jsonl, questions.jsonl)"))
            .arg(mode.help("How turns are taken in"))
            .arg(cache())
            .arg(json.clone()),
        Command::new("locate")
            .about("Which files or functions a task concerns: issues, or messages of commits")
            .arg(data().value_name("FILE").help("Tasks, one per line; or a folder of such files"))
            .arg(repos.help("Git repositories as owner+name, owner+name/repo or owner+name.git; they are only read"))
            .arg(limit.help("Only the first so many tasks of each file"))
            .arg(level.help("What is looked for; of functions also what packs show"))
            .arg(json.clone()),
    ]
}

fn rank(suite: &str, m: &ArgMatches, out: Option<Out>) -> Result<(), Fault> {
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

fn out(m: &ArgMatches) -> Result<Out, Fault> {
    let path = m.get_one::<String>("out").map(PathBuf::from).unwrap_or_default();
    Out::create(&path, m.get_one::<String>("method").map_or("ours", |method| method))
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

/// Prints one line of figures: as JSON, or readable.
fn print(line: &serde_json::Value, as_json: bool) {
    if as_json {
        println!("{line}");
    } else {
        println!("{line:#}");
    }
}

/// Two digits are enough.
fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The most memory this process has held so far, as the kernel counts it.
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
