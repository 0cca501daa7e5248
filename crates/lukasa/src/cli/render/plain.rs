//! Output that cannot steer the terminal, whatever was written to it.

use super::safe;
use std::io::{Result, Write};

/// Lets text, lines and tabs through; other control characters are shown by their names.
pub struct Plain<'a>(pub &'a mut dyn Write);

impl Write for Plain<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        // Formatting hands over whole pieces of text.
        let text = String::from_utf8_lossy(bytes);
        for part in text.split_inclusive(['\n', '\t']) {
            let end = part.len() - usize::from(part.ends_with(['\n', '\t']));
            self.0.write_all(safe(&part[..end]).as_bytes())?;
            self.0.write_all(&part.as_bytes()[end..])?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_named_and_layout_stays() {
        let mut out = Vec::new();
        let mut plain = Plain(&mut out);
        let (red, clear) = ("\u{1b}[31m", "\u{9b}2J\r\u{7f}");
        writeln!(plain, "a\tb\n\n{red}é{clear}").expect("a vector takes everything");
        assert_eq!(String::from_utf8_lossy(&out), "a\tb\n\n\\u{1b}[31mé\\u{9b}2J\\r\\u{7f}\n");
    }

    #[test]
    fn marks_of_direction_are_named() {
        let mut out = Vec::new();
        write!(Plain(&mut out), "is_admin\u{202e}\u{2066} שלום").expect("a vector takes everything");
        assert_eq!(String::from_utf8_lossy(&out), "is_admin\\u{202e}\\u{2066} שלום");
    }
}
