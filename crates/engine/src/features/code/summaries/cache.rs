//! Summaries made by a model, cached in a file of JSON lines that several processes may use at once.

use crate::convert::to_usize;
use crate::group_summaries::SummaryUnit;
use lukasa_code::statements::Summary;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use lukasa_store::private;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Version of the prompt. When it changes, earlier answers are ignored.
pub const PROMPT: u32 = 1;
/// Maximum number of working tree states recorded as complete; one per branch.
const COMPLETE: usize = 32;

/// The cache of summaries in a folder.
pub struct SummaryCache {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Bytes of the file that were read.
    offset: u64,
    /// Entries by the hash of the symbol's text.
    entries: FxHashMap<u64, Vec<Entry>>,
    /// Interned names of models.
    models: Vec<Arc<str>>,
}

struct Entry {
    name: Box<str>,
    /// Empty if the model has nothing to say.
    summary: Summary,
}

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    name: std::borrow::Cow<'a, str>,
    content: std::borrow::Cow<'a, str>,
    model: std::borrow::Cow<'a, str>,
    prompt: u32,
    summary: std::borrow::Cow<'a, str>,
}

impl SummaryCache {
    /// Creates no file until there is an entry to add.
    pub fn new(folder: PathBuf) -> SummaryCache {
        SummaryCache { folder, state: Mutex::default() }
    }

    /// Reads what other processes have added.
    pub fn refresh(&self) -> Result<()> {
        let path = self.file();
        match File::open(&path) {
            Ok(mut file) => {
                file.lock_shared().map_err(|e| fault(&path, &e))?;
                self.state.lock().read(&mut file).map_err(|e| fault(&path, &e))
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                *self.state.lock() = State::default();
                Ok(())
            }
            Err(e) => Err(fault(&path, &e)),
        }
    }

    /// The summary of a unit by this model, else by another one. Empty summaries are skipped.
    pub fn get(&self, unit: &SummaryUnit, model: Option<&str>) -> Option<Summary> {
        let state = self.state.lock();
        let known = state.entries.get(&unit.content)?;
        let mut own = known.iter().rev().filter(|e| *e.name == *unit.name);
        own.clone()
            .find(|e| model == Some(&*e.summary.model) && !e.summary.text.is_empty())
            .or_else(|| own.find(|e| !e.summary.text.is_empty()))
            .map(|e| e.summary.clone())
    }

    /// Whether this model was asked about a unit, also if it had nothing to say.
    pub fn has(&self, unit: &SummaryUnit, model: &str) -> bool {
        let state = self.state.lock();
        let known = state.entries.get(&unit.content).map_or(&[][..], Vec::as_slice);
        known.iter().any(|e| *e.name == *unit.name && *e.summary.model == *model)
    }

    pub fn is_empty(&self) -> bool {
        self.state.lock().entries.is_empty()
    }

    /// Appends entries as whole lines, under a lock.
    pub fn add(&self, answers: &[(SummaryUnit, Summary)]) -> Result<()> {
        if answers.is_empty() {
            return Ok(());
        }
        self.make_folder()?;
        let path = self.file();
        let failed = |e: std::io::Error| fault(&path, &e);
        let mut lines = Vec::new();
        for (unit, summary) in answers {
            let line = Line {
                name: unit.name.as_str().into(),
                content: format!("{:016x}", unit.content).into(),
                model: (&*summary.model).into(),
                prompt: PROMPT,
                summary: (&*summary.text).into(),
            };
            serde_json::to_writer(&mut lines, &line).map_err(|e| failed(e.into()))?;
            lines.push(b'\n');
        }
        let mut file = private::options().read(true).append(true).create(true).open(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        let end = file.seek(SeekFrom::End(0)).map_err(failed)?;
        if end > 0 {
            // A process may have been stopped within a line: end that line, so that it does not spoil the next one.
            file.seek(SeekFrom::End(-1)).map_err(failed)?;
            let mut last = [0];
            file.read_exact(&mut last).map_err(failed)?;
            if last != [b'\n'] {
                lines.insert(0, b'\n');
            }
        }
        file.write_all(&lines).map_err(failed)?;
        self.state.lock().read(&mut file).map_err(failed)
    }

    /// Whether every summary for this state of a working tree is known.
    pub fn is_complete(&self, state: &str) -> bool {
        self.complete().iter().any(|known| known == state)
    }

    /// Records that every summary for this state of a working tree is known.
    pub fn set_complete(&self, state: &str) -> Result<()> {
        let mut known = self.complete();
        known.retain(|k| k != state);
        known.push(state.to_owned());
        let text = known[known.len().saturating_sub(COMPLETE)..].join("\n");
        self.make_folder()?;
        let path = self.folder.join("complete");
        // No lock: a lost race costs one extra check, and the rename prevents partial files.
        let part = self.folder.join(format!("complete.{}.part", std::process::id()));
        private::write(&part, text).and_then(|()| std::fs::rename(&part, &path)).map_err(|e| fault(&path, &e))
    }

    fn complete(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join("complete")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn file(&self) -> PathBuf {
        self.folder.join("summaries.jsonl")
    }

    fn make_folder(&self) -> Result<()> {
        if self.folder.is_dir() {
            return Ok(());
        }
        let keep_out = self.folder.join(".gitignore");
        private::create_dir_all(&self.folder)
            .and_then(|()| private::write(&keep_out, "*\n"))
            .map_err(|e| fault(&self.folder, &e))
    }
}

impl State {
    /// Reads the lines added since the last call.
    fn read(&mut self, file: &mut File) -> std::io::Result<()> {
        let end = file.metadata()?.len();
        if end < self.offset {
            // The file was deleted and created again.
            *self = State::default();
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::with_capacity(to_usize(end - self.offset));
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        for line in bytes[..whole].split(|b| *b == b'\n') {
            // Invalid lines are skipped: a missing summary does no harm.
            let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else { continue };
            let Ok(content) = u64::from_str_radix(&line.content, 16) else { continue };
            if line.prompt != PROMPT {
                continue;
            }
            let model = match self.models.iter().find(|m| ***m == *line.model) {
                Some(model) => Arc::clone(model),
                None => {
                    self.models.push(line.model.as_ref().into());
                    line.model.as_ref().into()
                }
            };
            let summary = Summary { text: line.summary.as_ref().into(), model };
            self.entries.entry(content).or_default().push(Entry { name: line.name.as_ref().into(), summary });
        }
        self.offset += whole as u64;
        Ok(())
    }
}

fn fault(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, ErrorCode::FileFailure, format!("`{}`: {error}", path.display()))
        .hint("summaries are asked for again where this file cannot be used; it can be deleted")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    fn unit(name: &str, content: u64) -> SummaryUnit {
        SummaryUnit { name: name.into(), content }
    }

    fn summary(text: &str, model: &str) -> Summary {
        Summary { text: text.into(), model: model.into() }
    }

    #[test]
    fn what_one_process_adds_another_finds_and_a_torn_line_spoils_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("cache");
        let (one, other) = (SummaryCache::new(place.clone()), SummaryCache::new(place.clone()));
        one.refresh().unwrap();
        assert!(!place.exists(), "nothing is made before there is something to keep");
        one.add(&[(unit("Function:a", 1), summary("One.", "m"))]).unwrap();
        let file = place.join("summaries.jsonl");
        let mut torn = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
        torn.write_all(b"{\"name\":\"Function:b\",\"con").unwrap();
        other.refresh().unwrap();
        assert_eq!(other.get(&unit("Function:a", 1), Some("m")).unwrap().text, "One.".into());
        other.add(&[(unit("Function:b", 2), summary("Two.", "m"))]).unwrap();
        one.refresh().unwrap();
        assert_eq!(one.get(&unit("Function:b", 2), None).unwrap().text, "Two.".into());
        assert!(one.get(&unit("Function:b", 1), None).is_none(), "another symbol with that text");
        std::fs::remove_file(&file).unwrap();
        one.refresh().unwrap();
        assert!(one.is_empty());
    }

    #[test]
    fn summaries_of_prompt_1_are_used_and_those_of_another_prompt_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/summaries-prompt-1.jsonl");
        let text = std::fs::read_to_string(fixture).unwrap();
        let cache = SummaryCache::new(folder.path().to_owned());
        cache
            .add(&[(unit("Function:a", 0xa0), summary("Says \"é\".", "m")), (unit("Method:b", 1), summary("", "m"))])
            .unwrap();
        assert_eq!(std::fs::read_to_string(cache.file()).unwrap(), text, "this build writes prompt 1");
        let read = |text: String| {
            std::fs::write(folder.path().join("summaries.jsonl"), text).unwrap();
            let cache = SummaryCache::new(folder.path().to_owned());
            cache.refresh().unwrap();
            (
                cache.get(&unit("Function:a", 0xa0), None).map(|s| s.text.to_string()),
                cache.has(&unit("Method:b", 1), "m"),
            )
        };
        assert_eq!(read(text.clone()), (Some("Says \"é\".".into()), true));
        assert_eq!(read(text.replace("\"prompt\":1", "\"prompt\":0")), (None, false));
    }

    #[test]
    fn the_model_in_use_comes_first_and_having_nothing_to_say_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let cache = SummaryCache::new(folder.path().to_owned());
        let it = unit("Function:a", 1);
        cache.add(&[(it.clone(), summary("Old.", "old")), (it.clone(), summary("New.", "new"))]).unwrap();
        cache.add(&[(it.clone(), summary("", "mute"))]).unwrap();
        let get = |model| cache.get(&it, model).unwrap().text.to_string();
        assert_eq!((get(Some("old")), get(Some("new")), get(None)), ("Old.".into(), "New.".into(), "New.".into()));
        assert_eq!(get(Some("mute")), "New.");
        assert!(cache.has(&it, "mute") && !cache.has(&it, "never"));
    }

    #[test]
    fn threads_that_add_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let cache = SummaryCache::new(folder.path().to_owned());
                scope.spawn(move || {
                    for n in 0..25 {
                        cache.add(&[(unit("Function:a", thread * 100 + n), summary("Said.", "m"))]).unwrap();
                    }
                });
            }
        });
        let cache = SummaryCache::new(folder.path().to_owned());
        cache.refresh().unwrap();
        let found = (0..400).filter(|n| cache.has(&unit("Function:a", *n), "m")).count();
        assert_eq!(found, 100);
    }

    #[test]
    fn few_states_are_remembered_as_complete() {
        let folder = tempfile::tempdir().unwrap();
        let cache = SummaryCache::new(folder.path().join("cache"));
        assert!(!cache.is_complete("0"));
        for n in 0..COMPLETE + 1 {
            cache.set_complete(&n.to_string()).unwrap();
        }
        assert!(!cache.is_complete("0") && cache.is_complete("1"));
    }
}
