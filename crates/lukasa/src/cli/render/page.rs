//! Output for the terminal: text without control characters, lines that fit, and colours if they are enabled.

use super::safe;
use crate::cli::style::Style;
use lukasa_engine::rendering::{TextRole, TextSpan};
use std::io::{Result, Write};
use unicode_width::UnicodeWidthStr;

/// Indentation of continuation lines.
const HANG: usize = 2;

/// A writer that works line by line: control characters are escaped, and lines longer than the terminal are broken
/// between words.
pub struct Page<'a> {
    out: &'a mut dyn Write,
    pub style: Style,
    line: Vec<TextSpan>,
    /// The column of continuation lines; by default a little more than the indentation of the line.
    hang: Option<usize>,
}

/// The number of terminal columns of a text.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

impl<'a> Page<'a> {
    pub fn new(out: &'a mut dyn Write, style: Style) -> Page<'a> {
        Page { out, style, line: Vec::new(), hang: None }
    }

    /// Adds coloured text to the line.
    pub fn role(&mut self, role: TextRole, text: &str) {
        self.line.push(TextSpan::of(role, safe(text)));
    }

    /// Adds spans to the line and ends it.
    pub fn spans(&mut self, spans: impl IntoIterator<Item = TextSpan>) -> Result<()> {
        self.line.extend(spans.into_iter().map(|piece| TextSpan { text: safe(&piece.text), ..piece }));
        self.end_line()
    }

    /// Prints a line whose continuation lines start at this column.
    pub fn hanging(&mut self, hang: usize, spans: impl IntoIterator<Item = TextSpan>) -> Result<()> {
        self.hang = Some(hang);
        self.spans(spans)
    }

    /// Prints a line unchanged, however long: source code, and text to copy.
    pub fn verbatim(&mut self, text: &str) -> Result<()> {
        // Tabs are harmless, and code contains them.
        let text: Vec<String> = text.split('\t').map(safe).collect();
        writeln!(self.out, "{}", text.join("\t"))
    }

    /// A value beside its label; nothing if the value is empty.
    pub fn field(&mut self, name: &str, name_width: usize, value: &str) -> Result<()> {
        if value.is_empty() {
            return Ok(());
        }
        let name = safe(name);
        let gap = name_width.saturating_sub(width(&name)) + 2;
        let hang = HANG + name_width.max(width(&name)) + 2;
        let value = TextSpan::plain(format!("{}{value}", " ".repeat(gap)));
        self.hanging(hang, [TextSpan::plain("  "), TextSpan::of(TextRole::Faint, name), value])
    }

    /// Ends the current line.
    fn end_line(&mut self) -> Result<()> {
        let (line, hang) = (std::mem::take(&mut self.line), self.hang.take());
        match self.style.width {
            Some(most) if line.iter().map(|span| width(&span.text)).sum::<usize>() > most => {
                for part in broken(&line, most, hang) {
                    self.print(&part)?;
                    writeln!(self.out)?;
                }
                Ok(())
            }
            _ => {
                self.print(&line)?;
                writeln!(self.out)
            }
        }
    }

    fn print(&mut self, spans: &[TextSpan]) -> Result<()> {
        for TextSpan { role, text } in spans {
            match role {
                Some(role) => write!(self.out, "{}", self.style.paint(*role, text))?,
                None => write!(self.out, "{text}")?,
            }
        }
        Ok(())
    }
}

impl Write for Page<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        // Formatting writes whole spans of text, so no character is split.
        let text = String::from_utf8_lossy(bytes);
        for part in text.split_inclusive(['\n', '\t']) {
            let (body, end) = part.split_at(part.len() - usize::from(part.ends_with(['\n', '\t'])));
            if !body.is_empty() {
                self.line.push(TextSpan::plain(safe(body)));
            }
            match end {
                "\n" => self.end_line()?,
                // The width of a tab depends on the terminal, so it is not computed.
                "\t" => self.line.push(TextSpan::plain("\t")),
                _ => {}
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        let line = std::mem::take(&mut self.line);
        self.print(&line)?;
        self.out.flush()
    }
}

/// A word with the spaces before it; its spans may have several colours.
struct Word {
    spaces: usize,
    spans: Vec<TextSpan>,
}

impl Word {
    fn width(&self) -> usize {
        self.spans.iter().map(|span| width(&span.text)).sum()
    }
}

fn words(line: &[TextSpan]) -> Vec<Word> {
    let mut all: Vec<Word> = Vec::new();
    let (mut spaces, mut inside) = (0, false);
    for piece in line {
        for part in piece.text.split_inclusive(' ') {
            let (body, space) = part.split_at(part.len() - usize::from(part.ends_with(' ')));
            if !body.is_empty() {
                let body = TextSpan { role: piece.role, text: body.into() };
                match all.last_mut().filter(|_| inside) {
                    Some(word) => word.spans.push(body),
                    None => all.push(Word { spaces: std::mem::take(&mut spaces), spans: vec![body] }),
                }
                inside = true;
            }
            if !space.is_empty() {
                spaces += 1;
                inside = false;
            }
        }
    }
    all
}

/// Breaks a line into several, none longer than `most` unless a single word is. Words stay whole.
fn broken(line: &[TextSpan], most: usize, hang: Option<usize>) -> Vec<Vec<TextSpan>> {
    let words = words(line);
    let own = words.first().map_or(0, |word| word.spaces);
    // A hanging indent that leaves little room is ignored.
    let hang = hang.filter(|hang| *hang <= most / 2).unwrap_or(own + HANG);
    let mut all: Vec<Vec<TextSpan>> = vec![Vec::new()];
    let mut used = 0;
    for word in words {
        let wide = word.width();
        let mut spaces = word.spaces;
        if used > 0 && used + spaces + wide > most {
            all.push(Vec::new());
            // A word that is too long for its column starts further to the left.
            (used, spaces) = (0, if hang + wide > most { hang.min(own + HANG) } else { hang });
        }
        used += spaces + wide;
        if let Some(last) = all.last_mut() {
            last.push(TextSpan::plain(" ".repeat(spaces)));
            last.extend(word.spans);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    fn shown(style: Style, print: impl FnOnce(&mut Page<'_>) -> Result<()>) -> String {
        let mut out = Vec::new();
        let mut page = Page::new(&mut out, style);
        print(&mut page).unwrap();
        page.flush().unwrap();
        String::from_utf8(out).unwrap()
    }

    fn narrow(width: usize) -> Style {
        Style { width: Some(width), colour: false }
    }

    #[test]
    fn control_characters_are_named_and_layout_stays() {
        let (red, clear) = ("\u{1b}[31m", "\u{9b}2J\r\u{7f}");
        let text = shown(Style::default(), |page| writeln!(page, "a\tb\n\n{red}é{clear}"));
        assert_eq!(text, "a\tb\n\n\\u{1b}[31mé\\u{9b}2J\\r\\u{7f}\n");
        // Also in coloured text.
        let coloured = Style { width: None, colour: true };
        let text = shown(coloured, |page| {
            page.role(TextRole::Name, "\u{1b}[2J");
            writeln!(page)
        });
        assert_eq!(text, "\u{1b}[1m\\u{1b}[2J\u{1b}[0m\n");
    }

    #[test]
    fn marks_of_direction_are_named() {
        let text = shown(Style::default(), |page| write!(page, "is_admin\u{202e}\u{2066} שלום"));
        assert_eq!(text, "is_admin\\u{202e}\\u{2066} שלום");
    }

    #[test]
    fn long_lines_are_broken_between_words_on_a_terminal_only() {
        let line = "3 functions call `login`, one of them in crates/engine/src/a/very/long/path.rs::name indeed";
        assert_eq!(shown(Style::default(), |page| writeln!(page, "{line}")), format!("{line}\n"));
        let text = shown(narrow(30), |page| writeln!(page, "{line}"));
        assert_eq!(
            text,
            "3 functions call `login`, one\n  of them in\n  crates/engine/src/a/very/long/path.rs::name\n  indeed\n",
            "a word is whole even where it is too long"
        );
        let text = shown(narrow(30), |page| page.field("signature", 10, "def login(user, word) -> Session"));
        assert_eq!(text, "  signature   def login(user,\n              word) -> Session\n");
    }

    #[test]
    fn colours_do_not_count_as_width_and_do_not_break_words() {
        let print = |page: &mut Page<'_>| {
            page.role(TextRole::Error, "error");
            writeln!(page, ": no such thing here")
        };
        let plain = shown(narrow(14), print);
        assert_eq!(plain, "error: no such\n  thing here\n");
        let coloured = shown(Style { width: Some(14), colour: true }, print);
        assert_eq!(coloured, "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: no such\n  thing here\n");
    }

    #[test]
    fn verbatim_lines_are_never_broken() {
        let code = "\tlet session = open(&path, options.with_timeout(30))?; // a line of code";
        assert_eq!(shown(narrow(20), |page| page.verbatim(code)), format!("{code}\n"));
    }
}
