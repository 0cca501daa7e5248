//! Decodes the bytes of a file into text: UTF-8, UTF-16 with a byte order mark, or Windows-1252.

use encoding_rs::{UTF_16BE, UTF_16LE, WINDOWS_1252};

/// A NUL within this many bytes at the start means that a file is not text; git looks as far.
const HEAD_BYTES: usize = 8_000;

/// The text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    pub text: String,
    /// What had to be guessed or replaced, if anything.
    pub fault: Option<&'static str>,
}

/// Decodes the bytes of a file. None if they are not text. Whatever shows lines or spans of a file must use this text,
/// because positions in the index refer to it. Content ids are of the bytes.
pub fn decode(bytes: Vec<u8>) -> Option<Decoded> {
    let utf_16 = match bytes.get(..2) {
        Some(b"\xff\xfe") => Some(UTF_16LE),
        Some(b"\xfe\xff") => Some(UTF_16BE),
        _ => None,
    };
    if let Some(encoding) = utf_16 {
        let (text, broken) = encoding.decode_without_bom_handling(&bytes[2..]);
        // Broken pairs and NUL do not occur in text: other files may begin with the same two bytes.
        let is_text = !broken && !text.contains('\0');
        return is_text.then(|| Decoded { text: text.into_owned(), fault: None });
    }
    if bytes[..bytes.len().min(HEAD_BYTES)].contains(&0) {
        return None;
    }
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Some(Decoded { text, fault: None }),
        Err(e) => e.into_bytes(),
    };
    // In Windows-1252, letters that happen to form valid UTF-8 are very rare, so valid ones mean damaged UTF-8.
    if bytes.utf8_chunks().any(|chunk| !chunk.valid().is_ascii()) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        return Some(Decoded { text, fault: Some("not valid UTF-8: read with replacement characters") });
    }
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(&bytes);
    Some(Decoded { text: text.into_owned(), fault: Some("not UTF-8: read as Windows-1252") })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    const TEXT: &str = "def größe():\n    return \"… 𝄞\"\n";

    fn utf_16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
    }

    #[test]
    fn utf_16_with_a_mark_is_the_same_text_as_utf_8() {
        let decoded = Some(Decoded { text: TEXT.into(), fault: None });
        assert_eq!(decode(TEXT.into()), decoded);
        assert_eq!(decode(utf_16(TEXT, u16::to_le_bytes)), decoded);
        assert_eq!(decode(utf_16(TEXT, u16::to_be_bytes)), decoded);
    }

    #[test]
    fn bytes_of_latin_1_and_windows_1252_become_their_letters() {
        let decoded = decode(b"# gr\xf6\xdfe \x80\n".to_vec()).unwrap();
        assert_eq!((decoded.text.as_str(), decoded.fault.is_some()), ("# größe €\n", true));
    }

    #[test]
    fn damaged_utf_8_keeps_its_other_letters() {
        let decoded = decode(b"gr\xc3\xb6\xc3\x9fe \xff\n".to_vec()).unwrap();
        assert_eq!((decoded.text.as_str(), decoded.fault.is_some()), ("größe \u{fffd}\n", true));
    }

    #[test]
    fn bytes_that_are_not_text_are_not_decoded() {
        for bytes in [
            b"\x00\x01def f(): pass".as_slice(),
            b"a\0b",
            // UTF-32, a lone half of a pair, an odd number of bytes.
            b"\xff\xfe\0\0a\0\0\0",
            b"\xff\xfe\x00\xd8a\0",
            b"\xff\xfea\0b",
        ] {
            assert_eq!(decode(bytes.to_vec()), None, "{bytes:?}");
        }
    }
}
