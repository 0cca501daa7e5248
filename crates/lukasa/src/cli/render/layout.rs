//! Rows and tables that fit the terminal: words stay whole, and paths and names are never shortened.

use super::page::{Page, width};
use lukasa_engine::rendering::{ResultRow, TextRole, TextSpan};
use std::io::Result;

/// Spaces between columns.
const GAP: usize = 2;
/// Indentation of lines below a row.
const INDENT: usize = 4;
/// Shorter beginnings of a text are not useful.
const LEAST: usize = 16;

/// Prints rows in columns, one line each if they fit. The rest goes to an indented line below; only `about` is
/// shortened.
pub fn rows(page: &mut Page<'_>, rows: &[ResultRow]) -> Result<()> {
    let columns = Columns::of(rows, page.style.width);
    for row in rows {
        columns.print(page, row)?;
        if !row.below.is_empty() {
            page.spans([TextSpan::plain(" ".repeat(INDENT)), TextSpan::of(TextRole::Faint, &row.below)])?;
        }
    }
    Ok(())
}

/// The widths of the columns.
struct Columns {
    most: Option<usize>,
    place: usize,
    name: usize,
    facts: Vec<usize>,
}

impl Columns {
    fn of(rows: &[ResultRow], most: Option<usize>) -> Columns {
        let widest = |of: &dyn Fn(&ResultRow) -> usize| rows.iter().map(of).max().unwrap_or(0);
        let count = rows.iter().map(|row| row.facts.len()).max().unwrap_or(0);
        let fact = |at: usize| move |row: &ResultRow| row.facts.get(at).map_or(0, |fact| width(fact));
        let (mut place, mut name) = (widest(&|row| width(&row.place)), widest(&|row| width(&row.name)));
        if let Some(most) = most.filter(|most| place + GAP + name > *most) {
            // One path that is longer than all others must not push away the names of all rows.
            (place, name) = (place.min(most / 2), name.min(most / 3));
        }
        Columns { most, place, name, facts: (0..count).map(|at| widest(&fact(at))).collect() }
    }

    fn fits(&self, wide: usize) -> bool {
        self.most.is_none_or(|most| wide <= most)
    }

    /// Prints a row in columns if it fits, otherwise unaligned, otherwise with the rest on lines below.
    fn print(&self, page: &mut Page<'_>, row: &ResultRow) -> Result<()> {
        let aligned: Vec<TextSpan> = trimmed(self.head(row).into_iter().chain(self.facts(row)).collect());
        let beside: Vec<TextSpan> = named(row).into_iter().chain(joined(row)).collect();
        let Some(line) = [aligned, beside].into_iter().find(|line| self.fits(wide(line))) else {
            return self.print_below(page, row);
        };
        let columns: usize = self.facts.iter().filter(|wide| **wide > 0).map(|wide| GAP + wide).sum();
        let used = wide(&self.head(row)) + columns;
        // Beside the last column if some of it fits, otherwise below.
        let about = (self.fits(used) && wide(&line) <= used)
            .then(|| shortened(&row.about, self.most.map(|most| most.saturating_sub(used + GAP))))
            .filter(|about| about == &row.about || width(about) >= LEAST);
        match about {
            Some(about) if !about.is_empty() => {
                let gap = TextSpan::plain(" ".repeat(used - wide(&line) + GAP));
                page.spans(line.into_iter().chain([gap, TextSpan::plain(about)]))
            }
            Some(_) => page.spans(line),
            None => {
                page.spans(line)?;
                self.print_about(page, row)
            }
        }
    }

    /// Prints the place and the name, and the rest on lines below.
    fn print_below(&self, page: &mut Page<'_>, row: &ResultRow) -> Result<()> {
        let mut below = vec![TextSpan::plain(" ".repeat(INDENT))];
        let (head, unpadded) = (trimmed(self.head(row)), named(row));
        let mut rest = joined(row);
        if self.fits(wide(&head)) {
            page.spans(head)?;
        } else if self.fits(wide(&unpadded)) {
            page.spans(unpadded)?;
        } else {
            page.spans([TextSpan::of(TextRole::Place, &row.place)])?;
            below.push(TextSpan::of(TextRole::Name, &row.name));
            below.append(&mut rest);
        }
        // The first piece is a gap.
        below.extend(rest.into_iter().skip(1));
        if wide(&below) > INDENT {
            page.spans(below)?;
        }
        self.print_about(page, row)
    }

    fn print_about(&self, page: &mut Page<'_>, row: &ResultRow) -> Result<()> {
        if row.about.is_empty() {
            return Ok(());
        }
        let room = self.most.map(|most| most.saturating_sub(INDENT));
        page.spans([TextSpan::plain(format!("{}{}", " ".repeat(INDENT), shortened(&row.about, room)))])
    }

    /// The place and the name, padded to their columns.
    fn head(&self, row: &ResultRow) -> Vec<TextSpan> {
        let mut line = Vec::new();
        if self.place > 0 {
            line.push(TextSpan::of(TextRole::Place, &row.place));
            line.push(space(self.place, &row.place, if self.name > 0 { GAP } else { 0 }));
        }
        line.push(TextSpan::of(TextRole::Name, &row.name));
        line.push(space(self.name, &row.name, 0));
        line
    }

    fn facts(&self, row: &ResultRow) -> Vec<TextSpan> {
        let mut line = Vec::new();
        for (at, wide) in self.facts.iter().enumerate().filter(|(_, wide)| **wide > 0) {
            let fact = row.facts.get(at).map_or("", String::as_str);
            line.push(TextSpan::plain(" ".repeat(GAP)));
            line.push(TextSpan::plain(fact));
            line.push(space(*wide, fact, 0));
        }
        line
    }
}

/// The place and the name without padding.
fn named(row: &ResultRow) -> Vec<TextSpan> {
    let gap = if row.place.is_empty() || row.name.is_empty() { 0 } else { GAP };
    vec![
        TextSpan::of(TextRole::Place, &row.place),
        TextSpan::plain(" ".repeat(gap)),
        TextSpan::of(TextRole::Name, &row.name),
    ]
}

/// The facts without padding, with a gap before each.
fn joined(row: &ResultRow) -> Vec<TextSpan> {
    let facts = row.facts.iter().filter(|fact| !fact.is_empty());
    facts.flat_map(|fact| [TextSpan::plain(" ".repeat(GAP)), TextSpan::plain(fact)]).collect()
}

fn space(column: usize, text: &str, gap: usize) -> TextSpan {
    TextSpan::plain(" ".repeat(column.saturating_sub(width(text)) + gap))
}

fn wide(spans: &[TextSpan]) -> usize {
    spans.iter().map(|piece| width(&piece.text)).sum()
}

/// The line without trailing spaces.
fn trimmed(mut line: Vec<TextSpan>) -> Vec<TextSpan> {
    while let Some(last) = line.last_mut() {
        last.text.truncate(last.text.trim_end_matches(' ').len());
        if !last.text.is_empty() {
            break;
        }
        line.pop();
    }
    line
}

/// The first words of a text within `room` columns, with `…` if there are more.
fn shortened(text: &str, room: Option<usize>) -> String {
    let text = text.lines().next().unwrap_or_default();
    let Some(room) = room.filter(|room| width(text) > *room) else { return text.to_owned() };
    let mut kept = String::new();
    for word in text.split(' ') {
        let gap = usize::from(!kept.is_empty());
        if width(&kept) + gap + width(word) + 1 > room {
            break;
        }
        if gap > 0 {
            kept.push(' ');
        }
        kept.push_str(word);
    }
    format!("{}…", kept.trim_end())
}

/// Prints a table with a line below its header. Cells are wrapped between words if that makes the table fit. Otherwise
/// each row is its first cell, followed by the others with their names.
pub fn table(page: &mut Page<'_>, header: &[String], rows: &[Vec<String>]) -> Result<()> {
    let cells: Vec<Vec<Vec<&str>>> = rows.iter().map(|row| row.iter().map(|cell| lines(cell)).collect()).collect();
    let natural: Vec<usize> = (0..header.len())
        .map(|at| {
            let all = cells.iter().filter_map(|row| row.get(at)).flatten().map(|line| width(line));
            all.max().unwrap_or(0).max(width(&header[at]))
        })
        .collect();
    let widths = match page.style.width {
        None => Some(natural),
        Some(most) => fitted(&natural, &longest_words(header, rows), most),
    };
    match widths {
        Some(widths) => columns(page, header, &cells, &widths),
        None => stacked(page, header, rows),
    }
}

fn lines(cell: &str) -> Vec<&str> {
    if cell.is_empty() { vec![""] } else { cell.lines().collect() }
}

/// The longest word of each column, which is its smallest width.
fn longest_words(header: &[String], rows: &[Vec<String>]) -> Vec<usize> {
    let longest = |text: &str| text.split_whitespace().map(width).max().unwrap_or(0);
    let of = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| longest(cell)).max().unwrap_or(0);
    (0..header.len()).map(|at| of(at).max(longest(&header[at]))).collect()
}

/// Column widths within `most`, narrowing the widest columns first. None if words would have to be broken.
fn fitted(natural: &[usize], least: &[usize], most: usize) -> Option<Vec<usize>> {
    let gaps = GAP * natural.len().saturating_sub(1);
    let room = most.checked_sub(gaps)?;
    if least.iter().sum::<usize>() > room {
        return None;
    }
    let at_most = |limit: usize| -> Vec<usize> {
        natural.iter().zip(least).map(|(natural, least)| (*natural).min(limit).max(*least)).collect()
    };
    let limit = (1..=natural.iter().copied().max().unwrap_or(0))
        .rev()
        .find(|limit| at_most(*limit).iter().sum::<usize>() <= room)
        .unwrap_or(0);
    Some(at_most(limit))
}

fn columns(page: &mut Page<'_>, header: &[String], cells: &[Vec<Vec<&str>>], widths: &[usize]) -> Result<()> {
    let gap = " ".repeat(GAP);
    let line = |page: &mut Page<'_>, role: Option<TextRole>, parts: &[String]| {
        let mut spans = Vec::new();
        for (at, (part, wide)) in parts.iter().zip(widths).enumerate() {
            if at > 0 {
                spans.push(TextSpan::plain(&gap));
            }
            spans.push(TextSpan { role, text: part.clone() });
            spans.push(space(*wide, part, 0));
        }
        page.spans(trimmed(spans))
    };
    let in_cells = |row: Vec<Vec<String>>| {
        let height = row.iter().map(Vec::len).max().unwrap_or(0);
        (0..height)
            .map(|at| row.iter().map(|cell| cell.get(at).cloned().unwrap_or_default()).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    let head = header.iter().zip(widths).map(|(name, wide)| wrapped(name, *wide)).collect();
    for parts in in_cells(head) {
        line(page, Some(TextRole::Heading), &parts)?;
    }
    let rule: usize = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    page.spans([TextSpan::of(TextRole::Heading, "─".repeat(rule))])?;
    for row in cells {
        let row = row.iter().zip(widths).map(|(cell, wide)| cell.iter().flat_map(|l| wrapped(l, *wide)).collect());
        for parts in in_cells(row.collect()) {
            line(page, None, &parts)?;
        }
    }
    Ok(())
}

/// Wraps a line between words; other spaces stay.
fn wrapped(line: &str, most: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    for part in line.split_inclusive(' ') {
        let used = all.last().map_or(0, |last| width(last));
        if used > 0 && used + width(part.trim_end_matches(' ')) > most {
            all.push(String::new());
        }
        if let Some(last) = all.last_mut() {
            last.push_str(part);
        }
    }
    all.into_iter().map(|line| line.trim_end_matches(' ').to_owned()).collect()
}

fn stacked(page: &mut Page<'_>, header: &[String], rows: &[Vec<String>]) -> Result<()> {
    for row in rows {
        let first = row.first().map(|cell| cell.replace('\n', " ")).unwrap_or_default();
        let mut line = vec![TextSpan::of(TextRole::Name, first)];
        for (name, cell) in header.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty()) {
            line.push(TextSpan::plain(" ".repeat(GAP)));
            line.push(TextSpan::of(TextRole::Heading, name));
            line.push(TextSpan::plain(format!(" {}", cell.replace('\n', ", "))));
        }
        page.hanging(INDENT, line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;
    use crate::cli::style::Style;
    use proptest::prelude::*;

    fn shown(width: Option<usize>, print: impl FnOnce(&mut Page<'_>) -> Result<()>) -> String {
        let mut out = Vec::new();
        print(&mut Page::new(&mut out, Style { width, colour: false })).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn row(place: &str, name: &str, facts: &[&str], about: &str) -> ResultRow {
        let facts = facts.iter().map(|fact| (*fact).to_owned()).collect();
        ResultRow { place: place.into(), name: name.into(), facts, about: about.into(), below: String::new() }
    }

    fn calls() -> Vec<ResultRow> {
        vec![
            row("src/web.py:5", "page", &["function", "calls at 7"], "Shows a page to any user who asks for it."),
            row("src/deep/er/admin.py:140", "Admin::open", &["method", "calls at 144, 151"], ""),
        ]
    }

    #[test]
    fn a_pipe_has_whole_rows_in_columns() {
        assert_eq!(
            shown(None, |page| rows(page, &calls())),
            "src/web.py:5              page         function  calls at 7         Shows a page to any user who asks for it.\n\
             src/deep/er/admin.py:140  Admin::open  method    calls at 144, 151\n"
        );
    }

    #[test]
    fn the_least_important_column_is_shortened_first() {
        assert_eq!(
            shown(Some(88), |page| rows(page, &calls())),
            "src/web.py:5              page         function  calls at 7         Shows a page to any…\n\
             src/deep/er/admin.py:140  Admin::open  method    calls at 144, 151\n"
        );
    }

    #[test]
    fn columns_that_do_not_fit_go_below_and_place_and_name_stay_whole() {
        assert_eq!(
            shown(Some(60), |page| rows(page, &calls())),
            "src/web.py:5              page         function  calls at 7\n    Shows a page to any user who asks for it.\n\
             src/deep/er/admin.py:140  Admin::open\n    method  calls at 144, 151\n"
        );
        assert_eq!(
            shown(Some(30), |page| rows(page, &calls()[1..])),
            "src/deep/er/admin.py:140\n    Admin::open  method  calls\n      at 144, 151\n"
        );
        assert_eq!(
            shown(Some(20), |page| rows(page, &calls()[1..])).lines().next(),
            Some("src/deep/er/admin.py:140"),
            "also where the terminal is narrower than the place"
        );
    }

    #[test]
    fn one_long_path_does_not_push_all_names_away() {
        let all = [row(&format!("{}.py:1", "long/".repeat(16)), "far", &[], ""), row("a.py:1", "near", &[], "")];
        let text = shown(Some(80), |page| rows(page, &all));
        assert!(text.lines().any(|line| line == format!("{:<40}  near", "a.py:1")), "{text}");
    }

    fn cells(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    #[test]
    fn tables_are_broken_between_words_or_stacked() {
        let rows = cells(&[&["Service:auth", "Who may come in, and as whom", "active"], &["Service:web", "", "new"]]);
        let header = ["object", "title", "status"].map(str::to_owned);
        assert_eq!(
            shown(None, |page| table(page, &header, &rows)),
            "object        title                         status\n\
             ──────────────────────────────────────────────────\n\
             Service:auth  Who may come in, and as whom  active\n\
             Service:web                                 new\n"
        );
        assert_eq!(
            shown(Some(36), |page| table(page, &header, &rows)),
            "object        title           status\n\
             ────────────────────────────────────\n\
             Service:auth  Who may come    active\n              in, and as\n              whom\n\
             Service:web                   new\n"
        );
        assert_eq!(
            shown(Some(24), |page| table(page, &header, &rows)),
            "Service:auth  title Who\n    may come in, and as\n    whom  status active\n\
             Service:web  status new\n"
        );
    }

    #[test]
    fn lines_of_a_cell_stay_lines() {
        let rows = cells(&[&["3", "/port: 1 → 2\n/name: gone"]]);
        assert_eq!(
            shown(Some(80), |page| table(page, &["version", "changed"].map(str::to_owned), &rows)),
            "version  changed\n─────────────────────\n3        /port: 1 → 2\n         /name: gone\n"
        );
    }

    fn text() -> impl Strategy<Value = String> {
        proptest::collection::vec("[a-zä世.:/_]{1,12}", 0..6).prop_map(|words| words.join(" "))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn nothing_is_wider_than_the_terminal_and_no_word_is_broken(
            all in proptest::collection::vec(
                ("[a-z/]{1,30}\\.rs:[0-9]{1,4}", "[a-zA-Z:_]{1,24}", proptest::collection::vec(text(), 0..4), text()),
                1..6,
            ),
            most in 40_usize..140,
        ) {
            let rows_of: Vec<ResultRow> = all.iter().map(|(place, name, facts, about)| ResultRow {
                place: place.clone(),
                name: name.clone(),
                facts: facts.clone(),
                about: about.clone(),
                below: String::new(),
            }).collect();
            let shown_rows = shown(Some(most), |page| rows(page, &rows_of));
            for (place, name, facts, _) in &all {
                let words = |text: &str| shown_rows.split_whitespace().any(|word| word == text);
                prop_assert!(shown_rows.lines().any(|line| line.split(' ').next() == Some(place.as_str())), "{shown_rows}");
                prop_assert!(words(name), "{name} in {shown_rows}");
                prop_assert!(facts.iter().flat_map(|fact| fact.split_whitespace()).all(words), "{shown_rows}");
            }
            let header = ["one", "two words", "three", "four"].map(str::to_owned);
            let cells: Vec<Vec<String>> = all.iter().map(|(place, name, facts, about)| {
                vec![place.clone(), name.clone(), facts.join(" "), about.clone()]
            }).collect();
            let shown_table = shown(Some(most), |page| table(page, &header, &cells));
            for word in cells.iter().flatten().flat_map(|cell| cell.split_whitespace()) {
                prop_assert!(shown_table.split_whitespace().any(|shown| shown == word), "{word} in {shown_table}");
            }
            for line in shown_rows.lines().chain(shown_table.lines()) {
                prop_assert!(width(line) <= most, "{line:?} is {} of {most} wide", width(line));
            }
        }
    }
}
