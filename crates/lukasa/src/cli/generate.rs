//! `lukasa completions` and `lukasa man`: generated from the same commands that are parsed.

use super::command;
use clap::builder::EnumValueParser;
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use std::io::Write;
use std::path::PathBuf;

/// The commands `completions` and `man`.
pub fn commands() -> [Command; 2] {
    let shell = Arg::new("shell").value_name("SHELL").required(true).value_parser(EnumValueParser::<Shell>::new());
    [
        Command::new("completions")
            .about("Print the completion script of a shell")
            .after_help(
                "Examples:\n  lukasa completions bash > ~/.local/share/bash-completion/completions/lukasa\n  \
                 lukasa completions zsh > ~/.zfunc/_lukasa\n  lukasa completions fish > ~/.config/fish/completions/lukasa.fish",
            )
            .arg(shell.help("The shell")),
        Command::new("man")
            .about("Print the manual page, or write those of all commands")
            .after_help("Examples:\n  lukasa man | man -l -\n  lukasa man --out ~/.local/share/man/man1")
            .arg(
                Arg::new("out")
                    .long("out")
                    .value_name("DIR")
                    .value_parser(value_parser!(PathBuf))
                    .help("Write one page per command into this folder"),
            ),
    ]
}

/// Prints the completion script of a shell.
pub fn completions(matches: &ArgMatches) -> Result<()> {
    let shell = *matches.get_one::<Shell>("shell").expect("clap asks for it");
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command::build(), "lukasa", &mut script);
    write(&script)
}

/// Prints the manual page, or writes one per command into a folder.
pub fn man(matches: &ArgMatches) -> Result<()> {
    let Some(folder) = matches.get_one::<PathBuf>("out") else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command::build()).render(&mut page).map_err(|e| Error::internal(e.to_string()))?;
        return write(&page);
    };
    let fault = |e: std::io::Error| {
        Error::new(ErrorKind::Unavailable, ErrorCode::FileFailure, format!("`{}`: {e}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(fault)?;
    clap_mangen::generate_to(command::build(), folder).map_err(fault)
}

fn write(bytes: &[u8]) -> Result<()> {
    super::wrote(std::io::stdout().lock().write_all(bytes))
}
