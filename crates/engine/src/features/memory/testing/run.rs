//! Runs a program with limits of time and output.

use super::TestCommand;
use crate::Cancellation;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum bytes of output that are kept: its end, which contains the results.
pub const KEPT: usize = 1 << 20;
/// Interval between checks whether the program has ended.
const LOOK: Duration = Duration::from_millis(20);
/// How long to wait for output after the program has ended, because its children may keep the pipe open.
const TAIL: Duration = Duration::from_secs(2);
/// Environment variables with Lukasa's own secrets, which tests must not see.
const SECRETS: [&str; 7] = [
    "LUKASA_AGENT_KEYS",
    "LUKASA_AGENT_KEYS_FILE",
    "LUKASA_API_KEY",
    "LUKASA_TOKEN",
    "LUKASA_STORE",
    "LUKASA_MODEL_API_KEY",
    "LUKASA_EMBEDDING_API_KEY",
];

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRun {
    /// Its exit code; `None` if it was stopped or killed.
    pub exit_code: Option<i32>,
    pub timed_out: bool,
    /// The end of its output, both streams in the order they arrived.
    pub output: String,
    /// Bytes of output that were dropped.
    pub dropped: u64,
    pub took: Duration,
}

/// Runs the command in a folder with a timeout, without input.
pub fn run(command: &TestCommand, folder: &Path, most: Duration, stop: &Cancellation) -> Result<ProgramRun> {
    let mut process = Command::new(&command.program);
    process.args(&command.arguments).current_dir(folder);
    process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in SECRETS {
        process.env_remove(name);
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        // A process group of its own, so that its children can be stopped with it.
        process.process_group(0);
    }
    let began = Instant::now();
    let mut child = process.spawn().map_err(|e| {
        let missing = [std::io::ErrorKind::NotFound, std::io::ErrorKind::PermissionDenied].contains(&e.kind());
        let kind = if missing { ErrorKind::NotFound } else { ErrorKind::Unavailable };
        Error::new(kind, ErrorCode::TestCommandFailed, format!("`{}` cannot be run: {e}", command.program))
            .hint("is it installed, and can it be found?")
    })?;
    let kept = Arc::new(Mutex::new(OutputTail::default()));
    let readers: Vec<_> = [
        child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
    ]
    .into_iter()
    .flatten()
    .map(|stream| {
        let kept = Arc::clone(&kept);
        thread::spawn(move || keep(stream, &kept))
    })
    .collect();
    let mut timed_out = false;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) => {}
            Err(e) => return Err(Error::internal(format!("a program cannot be waited for: {e}"))),
        }
        timed_out = began.elapsed() >= most;
        if timed_out || stop.is_stopped() {
            end(&mut child);
            break None;
        }
        thread::sleep(LOOK);
    };
    let took = began.elapsed();
    let waited = Instant::now();
    while readers.iter().any(|reader| !reader.is_finished()) && waited.elapsed() < TAIL {
        thread::sleep(LOOK);
    }
    stop.check()?;
    let (output, dropped) = kept.lock().text();
    Ok(ProgramRun { exit_code: status.and_then(|status| status.code()), timed_out, output, dropped, took })
}

/// Stops a program and its children.
fn end(child: &mut Child) {
    #[cfg(unix)]
    {
        let group = format!("-{}", child.id());
        // If this fails, the program itself is still killed below.
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// The last bytes of the output.
#[derive(Default)]
struct OutputTail {
    bytes: VecDeque<u8>,
    dropped: u64,
}

impl OutputTail {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..over);
        self.dropped += over as u64;
    }

    fn text(&self) -> (String, u64) {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        (String::from_utf8_lossy(&bytes).into_owned(), self.dropped)
    }
}

fn keep(mut stream: Box<dyn Read + Send>, kept: &Mutex<OutputTail>) {
    let mut buffer = [0; 8_192];
    // A read error counts as the end.
    while let Ok(n @ 1..) = stream.read(&mut buffer) {
        kept.lock().add(&buffer[..n]);
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    fn sh(script: &str) -> TestCommand {
        TestCommand { program: "sh".into(), arguments: vec!["-c".into(), script.into()] }
    }

    fn ran(script: &str, most: Duration) -> ProgramRun {
        run(&sh(script), &std::env::temp_dir(), most, &Cancellation::default()).unwrap()
    }

    #[test]
    fn programs_end_by_themselves_or_are_ended() {
        let long = Duration::from_secs(60);
        let fine = ran("echo out; echo err >&2; exit 3", long);
        assert_eq!((fine.exit_code, fine.timed_out, fine.dropped), (Some(3), false, 0));
        assert!(fine.output.contains("out\n") && fine.output.contains("err\n"));
        let slow = ran("echo begun; sleep 600 & sleep 600", Duration::from_millis(300));
        assert_eq!((slow.exit_code, slow.timed_out), (None, true));
        assert!(slow.output.contains("begun"));
        let much = ran("yes 0123456789 | head -c 3000000; echo end", long);
        assert_eq!((much.output.len(), much.output.ends_with("end\n")), (KEPT, true));
        assert_eq!(much.dropped, 3_000_004 - KEPT as u64);
        let none = run(
            &TestCommand { program: "no-such-program-here".into(), arguments: vec![] },
            Path::new("/"),
            long,
            &Cancellation::default(),
        );
        assert_eq!(none.unwrap_err().code, ErrorCode::TestCommandFailed);
        let stop = Cancellation::default();
        stop.stop();
        assert_eq!(run(&sh("sleep 600"), Path::new("/"), long, &stop).unwrap_err().code, ErrorCode::Cancelled);
    }
}
