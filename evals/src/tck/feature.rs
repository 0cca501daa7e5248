//! Reads feature files: scenarios with their steps, outlines filled in with their examples.

/// One scenario, ready to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// With the number of the example, for one made from an outline.
    pub name: String,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Without its Given, When, Then or And.
    pub text: String,
    /// A text between three quotes below the step.
    pub doc: Option<String>,
    /// Rows of a table below the step, the heading first.
    pub table: Vec<Vec<String>>,
}

/// Parses a file. Tags, comments and descriptions are left out.
pub fn scenarios(text: &str) -> Vec<Scenario> {
    let mut reader = Reader { lines: text.lines().collect(), at: 0 };
    let mut background = Vec::new();
    let mut all = Vec::new();
    while let Some(line) = reader.line() {
        if line.strip_prefix("Background:").is_some() {
            background = reader.steps();
        } else if let Some(name) = line.strip_prefix("Scenario Outline:") {
            let steps = reader.steps();
            let mut number = 0;
            while reader.examples() {
                let table = reader.table();
                let Some((heading, rows)) = table.split_first() else { continue };
                for row in rows {
                    number += 1;
                    let filled = steps.iter().map(|s| s.filled(heading, row));
                    let steps = background.iter().cloned().chain(filled).collect();
                    all.push(Scenario { name: format!("{} #{number}", name.trim()), steps });
                }
            }
        } else if let Some(name) = line.strip_prefix("Scenario:") {
            let steps = background.iter().cloned().chain(reader.steps()).collect();
            all.push(Scenario { name: name.trim().into(), steps });
        }
    }
    all
}

const WORDS: [&str; 5] = ["Given ", "When ", "Then ", "And ", "But "];

struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> Reader<'a> {
    /// The next line that is neither empty nor a comment.
    fn line(&mut self) -> Option<&'a str> {
        while let Some(line) = self.lines.get(self.at) {
            self.at += 1;
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') && !line.starts_with('@') {
                return Some(line);
            }
        }
        None
    }

    fn peek(&mut self) -> Option<&'a str> {
        let at = self.at;
        let line = self.line();
        self.at = at;
        line
    }

    fn steps(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(text) = self.peek().and_then(|l| WORDS.iter().find_map(|w| l.strip_prefix(w))) {
            self.line();
            let doc = self.doc();
            steps.push(Step { text: text.trim().into(), doc, table: self.table() });
        }
        steps
    }

    /// A text between three quotes, without the indentation of the first of them.
    fn doc(&mut self) -> Option<String> {
        if self.peek()? != "\"\"\"" {
            return None;
        }
        self.line();
        let opening = self.lines[self.at - 1];
        let indent = opening.len() - opening.trim_start().len();
        let mut text = Vec::new();
        while let Some(line) = self.lines.get(self.at) {
            self.at += 1;
            if line.trim() == "\"\"\"" {
                break;
            }
            let spaces = line.len() - line.trim_start().len();
            text.push(&line[spaces.min(indent)..]);
        }
        Some(text.join("\n"))
    }

    fn table(&mut self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        while let Some(line) = self.peek().filter(|l| l.starts_with('|')) {
            self.line();
            rows.push(cells(line));
        }
        rows
    }

    fn examples(&mut self) -> bool {
        let found = self.peek().is_some_and(|l| l.starts_with("Examples:") || l.starts_with("Scenarios:"));
        if found {
            self.line();
        }
        found
    }
}

/// Cells between bars; `\|` is a bar, `\n` a new line, `\\` a backslash.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|');
    let (mut all, mut cell, mut chars) = (Vec::new(), String::new(), inner.chars());
    while let Some(c) = chars.next() {
        match c {
            '|' => all.push(std::mem::take(&mut cell).trim().to_string()),
            '\\' => match chars.next() {
                Some('|') => cell.push('|'),
                Some('n') => cell.push('\n'),
                Some('\\') => cell.push('\\'),
                Some(other) => cell.extend(['\\', other]),
                None => cell.push('\\'),
            },
            c => cell.push(c),
        }
    }
    all
}

impl Step {
    /// With each `<name>` replaced by the value in its column of the row.
    fn filled(&self, heading: &[String], row: &[String]) -> Step {
        let fill = |text: &str| {
            heading
                .iter()
                .zip(row)
                .fold(text.to_string(), |text, (name, value)| text.replace(&format!("<{name}>"), value))
        };
        Step {
            text: fill(&self.text),
            doc: self.doc.as_deref().map(fill),
            table: self.table.iter().map(|r| r.iter().map(|c| fill(c)).collect()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_apart() {
        let text = r#"
#encoding: utf-8
Feature: F - Words
  Background:
    Given an empty graph

  Scenario: [1] One
    And having executed:
      """
      CREATE (a)
        RETURN 1
      """
    When executing query:
      """
      RETURN '|'
      """
    Then the result should be, in any order:
      | a   | b \| c |
      | 'x' | 1      |
    And no side effects

  @skip
  Scenario Outline: [2] Two
    When executing query:
      """
      RETURN <x>
      """
    Then the result should be, in any order:
      | <x> |
      | <r> |

    Examples:
      | x | r |
      | 1 | 2 |
      | 3 | 4 |
"#;
        let all = scenarios(text);
        assert_eq!(all.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["[1] One", "[2] Two #1", "[2] Two #2"]);
        assert_eq!(all[0].steps[0].text, "an empty graph");
        assert_eq!(all[0].steps[1].doc.as_deref(), Some("CREATE (a)\n  RETURN 1"));
        assert_eq!(all[0].steps[3].table, [["a", "b | c"], ["'x'", "1"]]);
        assert_eq!(all[2].steps[1].doc.as_deref(), Some("RETURN 3"));
        assert_eq!(all[2].steps[2].table, [["3"], ["4"]]);
        assert!(scenarios("").is_empty());
    }
}
