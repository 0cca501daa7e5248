//! Malformed indexes: each is rejected with one error code, and nothing panics.

use super::encode::{Message, Units, index};
use super::{ANIMALS, Doc, animals, case};
use crate::languages::language;
use crate::scip::{ColumnEncoding, ScipDocument, ScipIndex, link, matching};
use uuid::Uuid;

/// Reads bytes as far as they are valid, as an import does.
fn read(bytes: &[u8]) -> Result<usize, &'static str> {
    let index = ScipIndex::read(bytes).map_err(|e| e.code.name())?;
    let mut placed = Vec::new();
    for document in &index.documents {
        let document = ScipDocument::read(document).map_err(|e| e.code.name())?;
        let facts = crate::parse("src/animals.ts", ANIMALS, language("typescript"));
        placed.push(matching::match_document(&document, ColumnEncoding::Utf16, "src/animals.ts", ANIMALS, facts));
    }
    Ok(link(&index, &placed, &[], Uuid::nil()).edges.len())
}

/// A random number generator with a fixed seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn bytes_that_are_no_index_are_rejected() {
    let metadata = Message::default().message(1, &Message::default().text(3, "file:///w"));
    for (what, bytes) in [
        ("nothing", vec![]),
        ("text", b"{\"metadata\": {}}\n".to_vec()),
        ("gzip", vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0]),
        ("another message", Message::default().text(7, "hello").0),
        ("only documents", Message::default().message(2, &Message::default().text(1, "a")).0),
        ("a number where a document belongs", metadata.clone().number(2, 5).0),
        ("a field 0", metadata.clone().text(0, "x").0),
        ("a group", [metadata.0.clone(), vec![0x0b]].concat()),
        ("an endless number", [metadata.0.clone(), vec![0xff; 12]].concat()),
        (
            "a length beyond memory",
            [metadata.0.clone(), vec![0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]].concat(),
        ),
        ("text that is not UTF-8", Message::default().message(1, &Message::default().bytes(3, &[0xff])).0),
    ] {
        assert_eq!(read(&bytes), Err("invalid_scip"), "{what}");
    }
    assert_eq!(read(&metadata.0), Ok(0), "an index of nothing is one");
    for occurrence in [
        Message::default().packed(1, &[1, 2]).text(2, "a b c d e#"),
        Message::default().packed(1, &[1, 2, 3, 4, 5]).text(2, "a b c d e#"),
        Message::default().number(1, u64::MAX).text(2, "a b c d e#"),
        Message::default().text(2, "a b c d e#"),
    ] {
        let document = Message::default().text(1, "src/animals.ts").message(2, &occurrence);
        assert_eq!(read(&metadata.clone().message(2, &document).0), Err("invalid_scip"));
    }
}

#[test]
fn a_cut_index_never_panics() {
    let bytes = index("scip-typescript", "file:///w", &[animals()], &[]);
    let whole = read(&bytes).unwrap();
    let mut refused = 0;
    for end in 0..bytes.len() {
        match read(&bytes[..end]) {
            Ok(edges) => assert!(edges <= whole),
            Err(code) => {
                assert_eq!(code, "invalid_scip");
                refused += 1;
            }
        }
    }
    // A truncated index can be valid only if it ends where a message ends.
    assert!(refused >= bytes.len() - 3, "{refused} of {} refused", bytes.len());
}

#[test]
fn random_bytes_and_flipped_bits_never_panic() {
    let mut random = Random(0x5eed);
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..random.next() % 200).map(|_| random.next() as u8).collect();
        if let Err(code) = read(&bytes) {
            assert_eq!(code, "invalid_scip");
        }
    }
    let whole = index("scip-typescript", "file:///w", &[animals()], &[]);
    for _ in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.next() % 4 {
            let at = random.next() as usize % bytes.len();
            bytes[at] ^= 1 << (random.next() % 8);
        }
        if let Err(code) = read(&bytes) {
            assert_eq!(code, "invalid_scip");
        }
    }
}

#[test]
fn an_index_of_another_text_says_little() {
    let doc = animals();
    let other = "// all was rewritten\nexport const x = 1;\n";
    assert!(case("scip-typescript", &[("src/animals.ts", other)], &[doc], &[]).edges().is_empty());
    let empty = Doc::new("src/animals.ts", "", Units::Utf16);
    assert!(case("scip-typescript", &[("src/animals.ts", "")], &[empty], &[]).edges().is_empty());
}
