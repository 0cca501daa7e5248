//! The width and colours of output, for each stream.

use anstyle::{AnsiColor, Style as Codes};
use clap::ArgMatches;
use lukasa_engine::rendering::TextRole;
use std::ffi::OsString;
use std::io::IsTerminal;

/// The global flag for colours, and its values.
pub const FLAG: &str = "color";
pub const CHOICES: [&str; 3] = ["auto", "always", "never"];

/// Terminals that report a smaller width are treated as if they reported none.
const LEAST_WIDTH: usize = 20;

/// The width and colours of one stream. A pipe has neither, so that programs read whole rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; None for lines of any length.
    pub width: Option<usize>,
    pub colour: bool,
}

fn codes(role: TextRole) -> Codes {
    let of = |colour: AnsiColor| Codes::new().fg_color(Some(colour.into()));
    match role {
        TextRole::Place => of(AnsiColor::Cyan),
        TextRole::Name => Codes::new().bold(),
        TextRole::Heading | TextRole::Faint => Codes::new().dimmed(),
        TextRole::Error => of(AnsiColor::Red).bold(),
        TextRole::Warning => of(AnsiColor::Yellow),
        TextRole::Good => of(AnsiColor::Green),
    }
}

impl Style {
    /// The text in its colour, if colours are enabled. The text must not contain control characters.
    pub fn paint(self, role: TextRole, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let codes = codes(role);
        format!("{codes}{text}{codes:#}")
    }
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// On a terminal, unless the environment disables them.
    #[default]
    Auto,
    Always,
    Never,
}

impl Colours {
    /// The choice of the flag `--color`.
    pub fn of(matches: &ArgMatches) -> Colours {
        matches.get_one::<String>(FLAG).map_or(Colours::Auto, |choice| Colours::named(choice))
    }

    /// The same from raw arguments, for use before clap has parsed them or if it fails.
    pub fn typed(mut words: impl Iterator<Item = OsString>) -> Colours {
        let flag = format!("--{FLAG}");
        while let Some(word) = words.next() {
            let word = word.to_string_lossy().into_owned();
            match word.strip_prefix(&flag) {
                Some("") => {
                    return words.next().map_or(Colours::Auto, |choice| Colours::named(&choice.to_string_lossy()));
                }
                Some(rest) if rest.starts_with('=') => return Colours::named(&rest[1..]),
                _ if word == "--" => break,
                _ => {}
            }
        }
        Colours::Auto
    }

    fn named(choice: &str) -> Colours {
        match choice {
            "always" => Colours::Always,
            "never" => Colours::Never,
            _ => Colours::Auto,
        }
    }

    /// For clap's own help and errors. Clap detects terminals itself, but with `CI` set it would ignore `TERM=dumb`.
    pub fn for_clap(self) -> clap::ColorChoice {
        match self {
            Colours::Auto if is_off(|name| std::env::var_os(name)) => clap::ColorChoice::Never,
            Colours::Auto => clap::ColorChoice::Auto,
            Colours::Always => clap::ColorChoice::Always,
            Colours::Never => clap::ColorChoice::Never,
        }
    }

    /// The style of standard output.
    pub fn stdout(self) -> Style {
        let stream = std::io::stdout();
        let size = terminal_size::terminal_size_of(&stream);
        self.style(stream.is_terminal(), size.map(|(width, _)| usize::from(width.0)))
    }

    /// The style of standard error.
    pub fn stderr(self) -> Style {
        let stream = std::io::stderr();
        let size = terminal_size::terminal_size_of(&stream);
        self.style(stream.is_terminal(), size.map(|(width, _)| usize::from(width.0)))
    }

    fn style(self, is_terminal: bool, width: Option<usize>) -> Style {
        Style {
            width: width.filter(|width| is_terminal && *width >= LEAST_WIDTH),
            colour: self.decide(is_terminal, |name| std::env::var_os(name)) && understands_codes(is_terminal),
        }
    }

    /// The flag decides first, then the environment, then whether it is a terminal.
    fn decide(self, is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
        match self {
            Colours::Always => true,
            Colours::Never => false,
            Colours::Auto => is_terminal && !is_off(variable),
        }
    }
}

/// Whether the environment disables colours.
fn is_off(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    variable("NO_COLOR").is_some_and(|value| !value.is_empty())
        || variable("CLICOLOR").is_some_and(|value| value == "0")
        || variable("TERM").is_some_and(|value| value == "dumb")
}

/// Windows consoles need colours to be enabled.
#[cfg(windows)]
fn understands_codes(is_terminal: bool) -> bool {
    !is_terminal || anstyle_query::windows::enable_ansi_colors().unwrap_or(false)
}

#[cfg(not(windows))]
fn understands_codes(_: bool) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(choice: Colours, is_terminal: bool, environment: &[(&str, &str)]) -> bool {
        let named = |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
        choice.decide(is_terminal, named)
    }

    #[test]
    fn colours_are_for_terminals_unless_the_environment_or_a_flag_says_otherwise() {
        assert!(decided(Colours::Auto, true, &[("TERM", "xterm")]));
        assert!(!decided(Colours::Auto, false, &[("TERM", "xterm")]), "a pipe has none");
        for off in [("NO_COLOR", "1"), ("NO_COLOR", "0"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
            assert!(!decided(Colours::Auto, true, &[off]), "{off:?}");
            assert!(decided(Colours::Always, false, &[off]), "{off:?}: the flag is nearer");
        }
        assert!(decided(Colours::Auto, true, &[("NO_COLOR", ""), ("CLICOLOR", "1")]), "an empty value is ignored");
        assert!(!decided(Colours::Never, true, &[]));
    }

    #[test]
    fn a_pipe_has_no_width_and_a_terminal_has_its_own() {
        assert_eq!(Colours::Auto.style(false, Some(80)), Style::default());
        assert_eq!(Colours::Never.style(true, Some(80)), Style { width: Some(80), colour: false });
        assert_eq!(Colours::Never.style(true, Some(0)).width, None, "one that does not report its width");
    }

    #[test]
    fn the_flag_is_found_before_words_are_read() {
        let typed = |line: &str| Colours::typed(line.split(' ').map(OsString::from));
        assert_eq!(typed("lukasa frob --color never"), Colours::Never);
        assert_eq!(typed("lukasa --color=always frob"), Colours::Always);
        assert_eq!(typed("lukasa search --colors never"), Colours::Auto);
        assert_eq!(typed("lukasa search -- --color never"), Colours::Auto);
    }

    #[test]
    fn painted_text_ends_with_a_reset() {
        let coloured = Style { width: None, colour: true };
        assert_eq!(coloured.paint(TextRole::Place, "a.rs:1"), "\u{1b}[36ma.rs:1\u{1b}[0m");
        assert_eq!(Style::default().paint(TextRole::Error, "error"), "error");
        assert_eq!(coloured.paint(TextRole::Name, ""), "");
    }
}
