//! Fake HTTP endpoints for tests, each on its own port: they record requests and return prepared responses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A received request.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub path: String,
    /// The header lines as received, one per line.
    pub headers: String,
    pub body: String,
}

/// The response to a request.
#[derive(Clone, Debug)]
pub enum FakeReply {
    /// Status, further header lines, body.
    Say(u16, Vec<String>, String),
    /// No response; the connection stays open until the endpoint is dropped.
    Nothing,
    /// No response; the connection is closed.
    HangUp,
}

impl FakeReply {
    pub fn ok(body: impl Into<String>) -> FakeReply {
        FakeReply::Say(200, vec![], body.into())
    }

    pub fn status(status: u16, body: impl Into<String>) -> FakeReply {
        FakeReply::Say(status, vec![], body.into())
    }
}

/// A running endpoint. It stops when dropped.
pub struct FakeEndpoint {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeEndpoint {
    /// Starts an endpoint. `answer` gets each request and the number of requests before it.
    pub fn start(answer: impl Fn(&ReceivedRequest, usize) -> FakeReply + Send + Sync + 'static) -> FakeEndpoint {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let asked: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, ended, answer) = (Arc::clone(&asked), Arc::clone(&stop), Arc::new(answer));
        let thread = std::thread::spawn(move || {
            // Keeps connections open, so that a client without a response waits.
            let mut silent = Vec::new();
            let mut threads = Vec::new();
            for stream in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                silent.extend(stream.try_clone());
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                threads.push(std::thread::spawn(move || serve(stream, &seen, &*answer)));
            }
            drop(silent);
            for thread in threads {
                let _ = thread.join();
            }
        });
        FakeEndpoint { address, asked, stop, thread: Some(thread) }
    }

    /// The endpoint's base URL, which ends with `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the requests received so far.
    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().expect("no thread panics while it holds the lock").clone()
    }
}

impl Drop for FakeEndpoint {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the listener, so that it sees `stop`.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<ReceivedRequest>>,
    answer: &(dyn Fn(&ReceivedRequest, usize) -> FakeReply + Send + Sync),
) {
    let Some(asked) = stream.try_clone().ok().and_then(read) else { return };
    let before = {
        let mut seen = seen.lock().expect("no thread panics while it holds the lock");
        seen.push(asked.clone());
        seen.len() - 1
    };
    let (status, headers, body) = match answer(&asked, before) {
        FakeReply::Say(status, headers, body) => (status, headers, body),
        FakeReply::Nothing => return,
        FakeReply::HangUp => {
            let _ = stream.shutdown(std::net::Shutdown::Both);
            return;
        }
    };
    let headers: String = headers.iter().map(|h| format!("{h}\r\n")).collect();
    let head =
        format!("HTTP/1.1 {status} Fake\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    // The client may have closed the connection.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

fn read(stream: TcpStream) -> Option<ReceivedRequest> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
        headers.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(ReceivedRequest { path, headers, body: String::from_utf8_lossy(&body).into_owned() })
}

/// How an endpoint for embeddings behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FakeBehavior {
    Fine,
    /// Returns vectors in another order than the texts, with the right `index`.
    Shuffled,
    /// Fails with 503.
    Down,
    /// Fails with 429.
    Busy,
    /// Never answers.
    Slow,
    /// Closes the connection.
    HangsUp,
    /// Returns vectors with one number too many.
    WrongDimensions,
    /// Returns one vector too few.
    TooFew,
    /// Returns text that is not JSON.
    Garbage,
    /// Returns `NaN` instead of a number, as some servers do although it is not JSON.
    NotANumber,
    /// Returns `null` instead of a number, as other servers do.
    Nulls,
}

/// An OpenAI-compatible `/embeddings` endpoint whose behaviour can be changed. The vector of a text depends on the text
/// alone.
pub struct FakeEmbeddings {
    endpoint: FakeEndpoint,
    mood: Arc<Mutex<FakeBehavior>>,
}

impl FakeEmbeddings {
    pub fn start(dimensions: usize) -> FakeEmbeddings {
        let mood = Arc::new(Mutex::new(FakeBehavior::Fine));
        let now = Arc::clone(&mood);
        let endpoint = FakeEndpoint::start(move |asked, _| {
            let mood = *now.lock().expect("no thread panics while it holds the lock");
            match mood {
                FakeBehavior::Down => return FakeReply::status(503, r#"{"error": {"message": "down for repairs"}}"#),
                FakeBehavior::Busy => return FakeReply::status(429, r#"{"error": {"message": "slow down"}}"#),
                FakeBehavior::Slow => return FakeReply::Nothing,
                FakeBehavior::Garbage => return FakeReply::ok("<html>a page of a proxy</html>"),
                FakeBehavior::HangsUp => return FakeReply::HangUp,
                FakeBehavior::Fine
                | FakeBehavior::Shuffled
                | FakeBehavior::WrongDimensions
                | FakeBehavior::TooFew
                | FakeBehavior::NotANumber
                | FakeBehavior::Nulls => {}
            }
            let Ok(body) = serde_json::from_str::<serde_json::Value>(&asked.body) else {
                return FakeReply::status(400, r#"{"error": {"message": "not JSON"}}"#);
            };
            let texts = body["input"].as_array().cloned().unwrap_or_default();
            let dimensions = dimensions + usize::from(mood == FakeBehavior::WrongDimensions);
            let mut data: Vec<_> = texts
                .iter()
                .enumerate()
                .map(|(index, text)| {
                    let mut vector = serde_json::json!(vector_of(text.as_str().unwrap_or_default(), dimensions));
                    if matches!(mood, FakeBehavior::Nulls | FakeBehavior::NotANumber) {
                        vector[0] = serde_json::Value::Null;
                    }
                    serde_json::json!({"object": "embedding", "index": index, "embedding": vector})
                })
                .collect();
            match mood {
                FakeBehavior::Shuffled => data.reverse(),
                FakeBehavior::TooFew => drop(data.pop()),
                _ => {}
            }
            let answer = serde_json::json!({"object": "list", "data": data, "model": body["model"]}).to_string();
            FakeReply::ok(if mood == FakeBehavior::NotANumber { answer.replace("null", "NaN") } else { answer })
        });
        FakeEmbeddings { endpoint, mood }
    }

    pub fn set(&self, mood: FakeBehavior) {
        *self.mood.lock().expect("no thread panics while it holds the lock") = mood;
    }

    pub fn url(&self) -> String {
        self.endpoint.url()
    }

    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.endpoint.asked()
    }
}

/// Derives a vector from a text. Its length is not normalised to one.
fn vector_of(text: &str, dimensions: usize) -> Vec<f64> {
    let mut state =
        text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1u32 << 31) - 0.5
    };
    (0..dimensions).map(|_| next()).collect()
}
