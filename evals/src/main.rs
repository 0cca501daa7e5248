//! `lukasa-evals`: measures Lukasa beside a reference in the same run; one JSON object per line.

mod store;

use clap::{Arg, ArgAction, Command};
use std::process::ExitCode;

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
                .arg(json),
        )
        .get_matches();
    let done = match matches.subcommand() {
        Some(("store", m)) => {
            let backend = m.get_one::<String>("backend").map_or("sqlite", String::as_str);
            store::run(backend, m.get_one::<u64>("objects").copied().unwrap_or(100_000), m.get_flag("json"))
        }
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
