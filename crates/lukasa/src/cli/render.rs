//! Answers on the terminal: lines that fit, aligned rows and tables, and colours if they are enabled.

mod layout;
pub mod page;
#[cfg(test)]
mod tests;

use super::style::Style;
use lukasa_engine::Operation;
use lukasa_engine::rendering::{Block, Rendering, TextRole};
use lukasa_model::Error;
use page::Page;
use serde_json::Value;
use std::io::{Result, Write};

/// Spaces before the answer of a command that is part of an answer.
const INDENT: usize = 2;

/// Prints the answer of an operation.
pub fn answer(out: &mut dyn Write, style: Style, operation: &Operation, response: &Value) -> Result<()> {
    print(out, style, &Rendering::of(operation, response))
}

/// Prints an error and its hint.
pub fn error(out: &mut dyn Write, style: Style, error: &Error) -> Result<()> {
    print(out, style, &Rendering::of_error(error))
}

/// Prints a note beside the answer, with its first word in colour.
pub fn note(out: &mut dyn Write, style: Style, role: TextRole, word: &str, text: &str) -> Result<()> {
    let mut rendering = Rendering::default();
    rendering.marked(role, word, text);
    print(out, style, &rendering)
}

/// Prints an answer from top to bottom.
pub fn print(out: &mut dyn Write, style: Style, rendering: &Rendering) -> Result<()> {
    let mut page = Page::new(out, style);
    rendering.blocks.iter().try_for_each(|block| part(&mut page, block))?;
    page.flush()
}

fn part(page: &mut Page<'_>, block: &Block) -> Result<()> {
    match block {
        Block::Gap => page.verbatim(""),
        Block::Line(spans) => page.spans(spans.iter().cloned()),
        Block::Field { name, name_width, value } => page.field(name, *name_width, value),
        Block::Rows(rows) => layout::rows(page, rows),
        Block::Table { header, rows } => layout::table(page, header, rows),
        Block::Verbatim(text) => page.verbatim(text),
        Block::Command { command, answer } => {
            writeln!(page, "\n{:INDENT$}$ {command}", "")?;
            // Laid out for the width inside the indentation, then printed unchanged.
            let style = Style { width: page.style.width.map(|width| width.saturating_sub(INDENT)), colour: false };
            let mut inner = Vec::new();
            print(&mut inner, style, answer)?;
            let inner = String::from_utf8_lossy(&inner);
            inner.lines().try_for_each(|line| page.verbatim(&format!("{:INDENT$}{line}", "")))
        }
    }
}

/// Text without control characters that a terminal would interpret.
pub fn safe(text: &str) -> String {
    lukasa_model::shown::safe(text).into_owned()
}
