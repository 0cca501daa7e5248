//! Answers for people: lines, fields, rows, tables and code, which a surface lays out.

mod failure;
pub mod locations;
pub mod values;

use crate::registry::Operation;
use serde_json::{Map, Value};
use values::{at, list, plain};

/// An answer for a person, as a list of parts from top to bottom. It contains no layout: the terminal and the page
/// decide about widths, line breaks and colours. Text may contain any character; surfaces escape what they must.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendering {
    pub blocks: Vec<Block>,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// An empty line.
    Gap,
    /// A line of prose, which may be broken between words. Leading spaces indent it.
    Line(Vec<TextSpan>),
    /// A value beside its name. `name_width` is that of the longest name of the group, in columns.
    Field {
        name: String,
        name_width: usize,
        value: String,
    },
    /// Results, each with its location.
    Rows(Vec<ResultRow>),
    Table {
        header: Vec<String>,
        rows: Vec<Vec<String>>,
    },
    /// A line that stays as it is, however long: source code, and text to copy.
    Verbatim(String),
    /// A command and its answer.
    Command {
        command: String,
        answer: Rendering,
    },
}

/// Text of one role within a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSpan {
    pub role: Option<TextRole>,
    pub text: String,
}

/// What a text is, which decides how it stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextRole {
    /// `path:line`.
    Place,
    /// The name of a result.
    Name,
    Heading,
    /// Secondary information.
    Faint,
    Error,
    Warning,
    Good,
}

/// One result: its location, its name and further facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultRow {
    /// `path:line`, or another reference.
    pub place: String,
    pub name: String,
    /// Short facts, each aligned with those of other rows.
    pub facts: Vec<String>,
    /// Text that may be shortened.
    pub about: String,
    /// A line below the row.
    pub below: String,
}

/// How the response of an operation is shown to a person, after its summary and warnings.
#[derive(Clone, Copy, Debug)]
pub enum ResponseView {
    /// Every remaining field beside its name.
    Fields,
    /// The summary contains everything.
    Summary,
    /// By this function. Whether a list was cut is added.
    By(fn(&mut Rendering, &Value)),
    /// By this function, which also reports at each list whether it was cut.
    Cut(fn(&mut Rendering, &Value)),
    /// By this function alone, without the summary.
    Alone(fn(&mut Rendering, &Value)),
}

impl TextSpan {
    pub fn plain(text: impl Into<String>) -> TextSpan {
        TextSpan { role: None, text: text.into() }
    }

    pub fn of(role: TextRole, text: impl Into<String>) -> TextSpan {
        TextSpan { role: Some(role), text: text.into() }
    }
}

impl Rendering {
    /// The answer of an operation.
    pub fn of(operation: &Operation, response: &Value) -> Rendering {
        let mut out = Rendering::default();
        if let Some(drawing) = response["drawing"].as_str() {
            // Printed alone, because it is piped into a drawing tool.
            drawing.lines().for_each(|line| out.verbatim(line));
            return out;
        }
        if let ResponseView::Alone(show) = operation.meta.shown {
            show(&mut out, response);
            return out;
        }
        out.opening(response);
        match operation.meta.shown {
            ResponseView::Fields => out.fields(response),
            ResponseView::Summary => {}
            ResponseView::By(show) | ResponseView::Cut(show) | ResponseView::Alone(show) => show(&mut out, response),
        }
        if response["truncated"] == true && !matches!(operation.meta.shown, ResponseView::Cut(_)) {
            match response["next"].as_u64() {
                Some(next) => out.line(format!("… and more: go on with --after {next}")),
                None => out.line("… and more: raise --limit"),
            }
        }
        out
    }

    /// The summary, the warnings, and which objects the names of the request stand for.
    fn opening(&mut self, response: &Value) {
        if let Some(summary) = response["summary"].as_str() {
            self.line(summary);
        }
        let warnings: Vec<_> = list(response, "warnings").into_iter().map(plain).collect();
        if !warnings.is_empty() {
            self.warning(&warnings.join(", "));
        }
        for taken in list(response, "resolved") {
            let more = taken["overloads"].as_u64().map(|n| format!(", one of {n} overloads")).unwrap_or_default();
            self.line(format!("`{}` is {}{more}", at(taken, "given"), at(taken, "ref")));
        }
    }

    /// Every field that the opening does not contain.
    fn fields(&mut self, response: &Value) {
        const NAME_WIDTH: usize = 14;
        let mut map: Map<String, Value> = response.as_object().cloned().unwrap_or_default();
        for field in ["summary", "warnings", "truncated", "resolved"] {
            map.remove(field);
        }
        for (field, value) in &map {
            match value {
                Value::Object(inner) => {
                    inner.iter().for_each(|(name, value)| self.field(name, NAME_WIDTH, plain(value)));
                }
                value => self.field(field, NAME_WIDTH, plain(value)),
            }
        }
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        self.blocks.push(Block::Gap);
    }

    /// Adds a line of prose.
    pub fn line(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Line(vec![TextSpan::plain(text)]));
    }

    /// A line after an empty one.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.gap();
        self.line(text);
    }

    /// Adds a line of prose with text of several roles.
    pub fn spans(&mut self, spans: impl IntoIterator<Item = TextSpan>) {
        self.blocks.push(Block::Line(spans.into_iter().collect()));
    }

    /// A line that begins with a word that stands out: `warning: …`.
    pub fn marked(&mut self, role: TextRole, word: &str, text: &str) {
        self.spans([TextSpan::of(role, word), TextSpan::plain(format!(": {text}"))]);
    }

    /// Adds a warning.
    pub fn warning(&mut self, text: &str) {
        self.marked(TextRole::Warning, "warning", text);
    }

    /// A value beside its name; nothing if the value is empty.
    pub fn field(&mut self, name: &str, name_width: usize, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() {
            self.blocks.push(Block::Field { name: name.into(), name_width, value });
        }
    }

    /// Adds results.
    pub fn rows(&mut self, rows: Vec<ResultRow>) {
        self.blocks.push(Block::Rows(rows));
    }

    /// A table; columns without any value are left out.
    pub fn table(&mut self, rows: Vec<&Value>, columns: &[TableColumn<'_>]) {
        let cells: Vec<Vec<String>> = rows.iter().map(|r| columns.iter().map(|(_, cell)| cell(r)).collect()).collect();
        let kept: Vec<usize> = (0..columns.len()).filter(|c| cells.iter().any(|row| !row[*c].is_empty())).collect();
        if kept.is_empty() {
            return;
        }
        let header = kept.iter().map(|c| columns[*c].0.to_owned()).collect();
        let rows = cells.into_iter().map(|row| kept.iter().map(|c| row[*c].clone()).collect()).collect();
        self.blocks.push(Block::Table { header, rows });
    }

    /// A table of cells, with all its columns.
    pub fn cells(&mut self, header: Vec<String>, rows: Vec<Vec<String>>) {
        self.blocks.push(Block::Table { header, rows });
    }

    /// Adds a command with its answer.
    pub fn command(&mut self, command: impl Into<String>, answer: Rendering) {
        self.blocks.push(Block::Command { command: command.into(), answer });
    }

    /// Adds a line that is not broken or shortened.
    pub fn verbatim(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Verbatim(text.into()));
    }

    /// Lines of `code` with their numbers from `start_line` on.
    pub fn source(&mut self, slice: &Value) {
        let code = slice["code"].as_str().unwrap_or("");
        let first = slice["code_start_line"].as_u64().or_else(|| slice["start_line"].as_u64()).unwrap_or(1);
        let width = (first + code.lines().count() as u64).to_string().len();
        for (number, line) in (first..).zip(code.lines()) {
            self.verbatim(format!("{number:>width$} | {line}"));
        }
    }

    /// How many of a list are shown, if there are more.
    pub fn more(&mut self, shown: usize, total: &Value) {
        if let Some(total) = total.as_u64().filter(|total| *total > shown as u64) {
            self.line(format!("… {shown} of {total}: raise --limit"));
        }
    }
}

/// A column of a table: its header, and the cell of a row.
pub type TableColumn<'a> = (&'a str, &'a dyn Fn(&Value) -> String);
