//! Serialises a text index, to keep it between processes.

use super::segment::{TextSegment, index_u32};
use super::{Doc, FIELDS, TextIndex, joined};
use lukasa_graph::Node;

impl TextIndex {
    /// Appends the index, merged into one part.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let whole = match &self.parts[..] {
            [only] if only.gone.docs.is_empty() => only.clone(),
            parts => joined(parts),
        };
        whole.segment.write_to(out);
    }

    /// Reads what [`TextIndex::write_to`] wrote and advances `bytes` past it; `None` if the bytes are not an index.
    pub fn read_from(bytes: &mut &[u8]) -> Option<TextIndex> {
        let segment = TextSegment::read_from(bytes)?;
        let mut index = TextIndex::default();
        if segment.len() > 0 {
            index.add(segment);
        }
        Some(index)
    }
}

impl TextSegment {
    fn write_to(&self, out: &mut Vec<u8>) {
        let texts: Vec<&str> = self.texts().collect();
        for count in [self.len(), self.all_words().len(), texts.len(), texts.iter().map(|text| text.len()).sum()] {
            out.extend(index_u32(count).to_le_bytes());
        }
        for at in 0..index_u32(self.len()) {
            out.extend(self.doc(at).0.to_le_bytes());
            self.lengths(at).iter().for_each(|length| out.extend(length.to_le_bytes()));
            out.extend(index_u32(self.words(at).len()).to_le_bytes());
        }
        for (word, counts) in self.all_words() {
            out.extend(word.to_le_bytes());
            out.extend(counts);
        }
        texts.iter().for_each(|text| out.extend(index_u32(text.len()).to_le_bytes()));
        texts.iter().for_each(|text| out.extend(text.as_bytes()));
    }

    fn read_from(bytes: &mut &[u8]) -> Option<TextSegment> {
        let [docs, words, texts, text_bytes] =
            [number(bytes)?, number(bytes)?, number(bytes)?, number(bytes)?].map(|count| count as usize);
        const DOC: usize = 4 + 4 * FIELDS + 4;
        let mut rows = take(bytes, docs.checked_mul(DOC)?)?;
        let mut made = Rows { docs: Vec::with_capacity(docs), lengths: Vec::with_capacity(docs), ends: vec![] };
        made.ends.reserve(docs);
        let mut end = 0usize;
        for _ in 0..docs {
            let doc = Node(number(&mut rows)?);
            if made.docs.last().is_some_and(|last| *last >= doc) {
                return None;
            }
            made.docs.push(doc);
            let mut lengths = [0; FIELDS];
            for length in &mut lengths {
                *length = number(&mut rows)?;
            }
            made.lengths.push(lengths);
            end = end.checked_add(number(&mut rows)? as usize)?;
            made.ends.push(u32::try_from(end).ok()?);
        }
        if end != words {
            return None;
        }
        let of_docs = take(bytes, words.checked_mul(4 + FIELDS)?)?;
        let mut all = Vec::with_capacity(words);
        for entry in of_docs.chunks_exact(4 + FIELDS) {
            let (word, counts) = entry.split_first_chunk::<4>()?;
            let word = u32::from_le_bytes(*word);
            if word as usize >= texts {
                return None;
            }
            all.push((word, counts.try_into().ok()?));
        }
        let mut sizes = take(bytes, texts.checked_mul(4)?)?;
        let mut written = std::str::from_utf8(take(bytes, text_bytes)?).ok()?;
        let mut named: Vec<Box<str>> = Vec::with_capacity(texts);
        for _ in 0..texts {
            let (text, rest) = written.split_at_checked(number(&mut sizes)? as usize)?;
            named.push(text.into());
            written = rest;
        }
        TextSegment::of_rows(made.docs, made.lengths, made.ends, all, named)
    }
}

struct Rows {
    docs: Vec<Doc>,
    lengths: Vec<[u32; FIELDS]>,
    ends: Vec<u32>,
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}
