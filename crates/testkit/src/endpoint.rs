//! An HTTP endpoint for tests, on a port of its own: it remembers what it was asked and answers as it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A request as it came in.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    /// As they stand in the request, one per line.
    pub headers: String,
    pub body: String,
}

/// What is answered.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Status, further header lines, body.
    Say(u16, Vec<String>, String),
    /// Nothing, until the endpoint goes away.
    Nothing,
}

impl Reply {
    pub fn ok(body: impl Into<String>) -> Reply {
        Reply::Say(200, vec![], body.into())
    }

    pub fn status(status: u16, body: impl Into<String>) -> Reply {
        Reply::Say(status, vec![], body.into())
    }
}

/// Ends when dropped.
pub struct FakeEndpoint {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeEndpoint {
    /// `answer` is given each request, with how many came before it.
    pub fn start(answer: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> FakeEndpoint {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, ended, answer) = (Arc::clone(&asked), Arc::clone(&stop), Arc::new(answer));
        let thread = std::thread::spawn(move || {
            // Kept open: who is told nothing waits.
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

    /// Its address with `/v1`, as clients want it.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("nobody panics here").clone()
    }
}

impl Drop for FakeEndpoint {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes it.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<Asked>>, answer: &(dyn Fn(&Asked, usize) -> Reply + Send + Sync)) {
    let Some(asked) = stream.try_clone().ok().and_then(read) else { return };
    let before = {
        let mut seen = seen.lock().expect("nobody panics here");
        seen.push(asked.clone());
        seen.len() - 1
    };
    let Reply::Say(status, headers, body) = answer(&asked, before) else { return };
    let headers: String = headers.iter().map(|h| format!("{h}\r\n")).collect();
    let head =
        format!("HTTP/1.1 {status} Said\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    // Who asked may have given up.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

fn read(stream: TcpStream) -> Option<Asked> {
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
    Some(Asked { path, headers, body: String::from_utf8_lossy(&body).into_owned() })
}
