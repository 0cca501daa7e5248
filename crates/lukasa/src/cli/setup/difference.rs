//! Shows how a file changes, as a small unified diff.

use lukasa_engine::redact::redact;

/// Lines shown around a change.
const AROUND: usize = 3;

/// One hunk from the first line that differs to the last. Secrets are removed, because the output may end up in logs
/// and the line of another server changes when it gets a comma.
pub fn unified(file: &str, before: Option<&str>, after: Option<&str>) -> String {
    let name =
        |side: &str, text: Option<&str>| if text.is_some() { format!("{side}/{file}") } else { "/dev/null".into() };
    let head = format!("--- {}\n+++ {}\n", name("a", before), name("b", after));
    let (old, new): (Vec<_>, Vec<_>) = (lines(before), lines(after));
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
    let start = same(&mut old.iter().zip(&new));
    let end = same(&mut old.iter().rev().zip(new.iter().rev())).min(old.len().min(new.len()) - start);
    let from = start.saturating_sub(AROUND);
    let (old_to, new_to) = ((old.len() - end + AROUND).min(old.len()), (new.len() - end + AROUND).min(new.len()));
    let place = |to: usize| match to - from {
        0 => "0,0".to_owned(),
        length => format!("{},{length}", from + 1),
    };
    let mut shown = format!("{head}@@ -{} +{} @@\n", place(old_to), place(new_to));
    let mut show = |sign: char, all: &[&str]| {
        for line in all {
            shown += &format!("{sign}{}\n", redact(line.trim_end_matches(['\n', '\r'])));
            if !line.ends_with('\n') {
                shown += "\\ No newline at end of file\n";
            }
        }
    };
    show(' ', &old[from..start]);
    show('-', &old[start..old.len() - end]);
    show('+', &new[start..new.len() - end]);
    show(' ', &old[old.len() - end..old_to]);
    shown
}

fn lines(text: Option<&str>) -> Vec<&str> {
    text.unwrap_or_default().split_inclusive('\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_three_lines_of_context() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n";
        let shown = unified("f", Some(before), Some(&before.replace("5\n", "5\nnew\n")));
        assert_eq!(shown, "--- a/f\n+++ b/f\n@@ -3,6 +3,7 @@\n 3\n 4\n 5\n+new\n 6\n 7\n 8\n");
        let shown = unified("f", None, Some("a\nb"));
        assert_eq!(shown, "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n");
        let shown = unified("f", Some("a\n"), None);
        assert_eq!(shown, "--- a/f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n");
        let shown = unified("f", Some("a\na\n"), Some("a\na\na\n"));
        assert_eq!(shown, "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n a\n a\n+a\n");
    }

    #[test]
    fn keys_of_other_servers_are_not_shown() {
        let before = "\"API_TOKEN\": \"hunter2hunter2\"\n";
        for after in [format!("{before}new\n"), format!("{},\nnew\n", before.trim_end())] {
            let shown = unified("f", Some(before), Some(&after));
            assert!(!shown.contains("hunter2") && shown.contains("+new"), "{shown}");
        }
    }
}
