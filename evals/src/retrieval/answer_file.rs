//! Writes ranked answers to a file for another scorer.

use crate::Fault;
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// A file with the answers of one method, one line per question. Only the first answer of a question is written.
pub struct AnswerFile {
    file: BufWriter<File>,
    method: String,
}

/// Longest list that is written: other scorers remove files from it and need fifty of the rest.
const MOST: usize = 500;

impl AnswerFile {
    pub fn create(path: &Path, method: &str) -> Result<AnswerFile, Fault> {
        Ok(AnswerFile { file: BufWriter::new(File::create(path)?), method: method.into() })
    }

    pub fn write<S: AsRef<str>>(&mut self, method: &str, id: &str, ranked: &[S]) -> Result<(), Fault> {
        if method == self.method {
            let ranked: Vec<&str> = ranked.iter().take(MOST).map(AsRef::as_ref).collect();
            writeln!(self.file, "{}", json!({"id": id, "ranked": ranked}))?;
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<(), Fault> {
        Ok(self.file.flush()?)
    }
}
