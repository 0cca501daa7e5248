//! Tests that the program accepts every command in the documentation and in hints.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use super::command::{build, chosen, request};
use clap::error::ErrorKind;
use std::path::{Path, PathBuf};

/// Text that looks like a command but is not: the first line of a file.
const NO_COMMANDS: [&str; 1] = ["lukasa stamps 4"];

/// A command in a page.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    line: usize,
    words: Vec<String>,
    /// Within a sentence, where arguments may be left out.
    inline: bool,
}

impl Shown {
    /// Why clap does not accept the command.
    fn fault(&self) -> Option<String> {
        let matches = match build().try_get_matches_from(&self.words) {
            Ok(matches) => matches,
            Err(error) if self.inline && is_unfinished(&error) => return None,
            Err(error) => return Some(error.to_string()),
        };
        let (operation, sub) = chosen(&matches)?;
        request(operation, sub).err().map(|error| error.message)
    }
}

/// Whether the command is correct but incomplete.
fn is_unfinished(error: &clap::Error) -> bool {
    let value = |error: &clap::Error| {
        // A final option without its value.
        error.kind() == ErrorKind::InvalidValue && error.to_string().contains("none was supplied")
    };
    matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) || value(error)
}

/// The commands of a page: in shell blocks, after prompts in other blocks, and in sentences.
fn commands(page: &str) -> Vec<Shown> {
    let mut all = Vec::new();
    let mut block: Option<(usize, String, String)> = None;
    for (number, line) in (1..).zip(page.lines()) {
        match (line.trim_start().strip_prefix("```"), &mut block) {
            (Some(language), None) => block = Some((number + 1, language.trim().to_owned(), String::new())),
            (Some(_), Some((first, language, text))) => {
                all.extend(in_block(language, text, *first));
                block = None;
            }
            (None, Some((_, _, text))) => *text += &format!("{line}\n"),
            (None, None) => all.extend(in_sentence(line, number)),
        }
    }
    all
}

fn in_block(language: &str, text: &str, first: usize) -> Vec<Shown> {
    let is_shell = matches!(language, "sh" | "bash" | "shell" | "zsh");
    let typed = |words: Vec<String>, line: usize| {
        // Variable assignments may precede the command.
        let words: Vec<String> = words.into_iter().skip_while(|word| is_assignment(word)).collect();
        (words.first().map(String::as_str) == Some("lukasa")).then_some(Shown { line, words, inline: false })
    };
    if is_shell {
        return lexed(text).into_iter().filter_map(|(line, words)| typed(words, first + line)).collect();
    }
    let prompts = text.lines().enumerate().filter_map(|(at, line)| Some((at, line.strip_prefix("$ ")?)));
    prompts
        .flat_map(|(at, line)| lexed(line).into_iter().filter_map(move |(_, words)| typed(words, first + at)))
        .collect()
}

fn is_assignment(word: &str) -> bool {
    let named = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    word.split_once('=').is_some_and(|(name, _)| named(name))
}

fn in_sentence(line: &str, number: usize) -> Vec<Shown> {
    let spans = line.split('`').skip(1).step_by(2).filter(|span| span.starts_with("lukasa "));
    // The command is a placeholder.
    let spans = spans.filter(|span| !span.starts_with("lukasa {"));
    spans
        .filter(|span| !NO_COMMANDS.contains(span))
        .flat_map(|span| {
            // Optional parts are kept, and ellipses are removed.
            let span = span.replace(['[', ']'], "").replace(" …", "").replace(" ...", "");
            lexed(&span).into_iter().take(1).map(move |(_, words)| Shown { line: number, words, inline: true })
        })
        .collect()
}

/// Splits a text into commands as a shell does, each with its line: quotes, escapes, comments, pipes and redirections.
fn lexed(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut all: Vec<(usize, Vec<String>)> = vec![(0, Vec::new())];
    let (mut word, mut begun, mut quote, mut line) = (String::new(), false, None, 0);
    // The next word is a file name.
    let mut redirected = false;
    let mut chars = text.chars().peekable();
    let end_word = |all: &mut Vec<(usize, Vec<String>)>, word: &mut String, begun: &mut bool, redirected: &mut bool| {
        if std::mem::take(begun) {
            let word = std::mem::take(word);
            if !std::mem::take(redirected) {
                all.last_mut().unwrap().1.push(word);
            }
        }
    };
    while let Some(c) = chars.next() {
        let at = line;
        line += usize::from(c == '\n');
        match (quote, c) {
            (None, '#') if !begun => while chars.next_if(|c| *c != '\n').is_some() {},
            (None, '\\') if chars.next_if_eq(&'\n').is_some() => line += 1,
            (None | Some('"'), '\\') => {
                begun = true;
                word.extend(chars.next());
            }
            (None, '\n' | '|' | ';' | '&') => {
                end_word(&mut all, &mut word, &mut begun, &mut redirected);
                all.push((line, Vec::new()));
            }
            (None, '>' | '<') if !word.contains(['<', '>']) && !is_placeholder(&chars) => {
                // In `2>` the digit names a stream, and in `>&1` the target is one.
                if word.chars().all(|c| c.is_ascii_digit()) {
                    (word, begun) = (String::new(), false);
                }
                end_word(&mut all, &mut word, &mut begun, &mut redirected);
                while chars.next_if(|c| matches!(c, '>' | '&')).is_some() {}
                redirected = true;
            }
            (None, c) if c.is_whitespace() => end_word(&mut all, &mut word, &mut begun, &mut redirected),
            (None, '"' | '\'') => (begun, quote) = (true, Some(c)),
            (Some(q), c) if c == q => quote = None,
            _ => {
                if !begun && all.last().unwrap().1.is_empty() {
                    all.last_mut().unwrap().0 = at;
                }
                begun = true;
                word.push(c);
            }
        }
    }
    end_word(&mut all, &mut word, &mut begun, &mut redirected);
    all.retain(|(_, words)| !words.is_empty());
    all
}

/// `<name>` is a placeholder, `< file` a redirection.
fn is_placeholder(rest: &std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let text: String = rest.clone().take_while(|c| !c.is_whitespace()).collect();
    text.ends_with('>')
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            files(&entry, ending, found);
        } else if entry.to_string_lossy().ends_with(ending) {
            found.push(entry);
        }
    }
}

fn faults(page: &Path, commands: Vec<Shown>) -> Vec<String> {
    let described = |shown: Shown| {
        let fault = shown.fault()?;
        let fault: Vec<&str> = fault.lines().take(2).collect();
        Some(format!("{}:{}: {}\n    {}", page.display(), shown.line, shown.words.join(" "), fault.join(" ")))
    };
    commands.into_iter().filter_map(described).collect()
}

#[test]
fn every_command_of_the_documentation_parses() {
    let root = root();
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    files(&root.join("docs"), ".md", &mut pages);
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for page in pages {
        let commands = commands(&std::fs::read_to_string(&page).unwrap());
        seen += commands.len();
        wrong.extend(faults(page.strip_prefix(&root).unwrap(), commands));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 300, "only {seen} commands were found");
}

#[test]
fn every_command_of_a_hint_parses() {
    let root = root();
    let mut sources = Vec::new();
    for crate_name in ["engine", "lukasa", "model", "server", "store"] {
        files(&root.join("crates").join(crate_name).join("src"), ".rs", &mut sources);
    }
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for source in sources.iter().filter(|source| !source.ends_with("documented.rs")) {
        let text = std::fs::read_to_string(source).unwrap();
        let commands: Vec<Shown> = (1..)
            .zip(text.lines())
            .flat_map(|(number, line)| in_sentence(&line.replace("\\\"", "'"), number))
            .collect();
        seen += commands.len();
        wrong.extend(faults(source.strip_prefix(&root).unwrap(), commands));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 20, "only {seen} commands were found");
}

#[test]
fn commands_are_found_as_a_shell_reads_them() {
    let page = "\
Say `lukasa diff FROM [TO]`, `lukasa merge X [--key Type:key …]` or `lukasa key`, not `lukas`.

```sh
lukasa get auth   # what it is
A=\"1 2\" lukasa serve --listen 127.0.0.1:1 > log 2>&1
echo \"a; b\" | lukasa cypher --json && lukasa verify
lukasa expand auth --filters '{
  \"node\": {}}' \\
  --limit 3
lukasa cypher \"MATCH (n {key: \\$key}) RETURN n\"
```

```
$ lukasa who
1 claim held by lukasa diff
```

```json
{\"command\": \"lukasa nothing\"}
```
";
    let found: Vec<(usize, String, bool)> =
        commands(page).into_iter().map(|shown| (shown.line, shown.words[1..].join("_"), shown.inline)).collect();
    let expected = [
        (1, "diff_FROM_TO", true),
        (1, "merge_X_--key_Type:key", true),
        (1, "key", true),
        (4, "get_auth", false),
        (5, "serve_--listen_127.0.0.1:1", false),
        (6, "cypher_--json", false),
        (6, "verify", false),
        (7, "expand_auth_--filters_{\n  \"node\": {}}_--limit_3", false),
        (10, "cypher_MATCH (n {key: $key}) RETURN n", false),
        (14, "who", false),
    ];
    assert_eq!(found, expected.map(|(line, words, inline)| (line, words.to_owned(), inline)));
}

#[test]
fn invalid_commands_are_reported() {
    let fault = |page: &str| commands(page).iter().map(Shown::fault).collect::<Vec<_>>();
    for wrong in
        ["```sh\nlukasa diff --from tx:1\n```", "`lukasa diff --from`", "`lukasa dif`", "```sh\nlukasa get\n```"]
    {
        assert!(matches!(&fault(wrong)[..], [Some(_)]), "{wrong}: {:?}", fault(wrong));
    }
    for right in ["`lukasa get`", "`lukasa index --history`", "`lukasa release`", "```sh\nlukasa diff tx:1\n```"] {
        assert_eq!(fault(right), [None], "{right}");
    }
}
