//! A minimal HTTP client, so that a test controls exactly which bytes are sent.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Timeout of reads and writes, longer than any request of a test takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A parsed response.
#[derive(Clone, Debug)]
pub struct HttpReply {
    pub status: u16,
    /// The status line and the headers.
    pub head: String,
    pub body: String,
}

impl HttpReply {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// Whether the body is as long as `content-length`.
    fn is_whole(&self) -> bool {
        let length = self.header("content-length").and_then(|length| length.parse::<usize>().ok());
        length.is_none_or(|length| length <= self.body.len())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// Returns the error code of the response, or `ok`.
    pub fn code(&self) -> String {
        match self.status {
            200..300 => "ok".into(),
            _ => self.json()["error"]["code"].as_str().unwrap_or("none").to_owned(),
        }
    }

    /// Returns head and body.
    pub fn all(&self) -> String {
        format!("{}\n{}", self.head, self.body)
    }
}

/// Opens a connection with timeouts.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a request on a new connection and returns the response. Panics without one.
pub fn ask(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> HttpReply {
    let reply = try_ask(address, method, path, headers, body).unwrap_or_else(|e| panic!("{method} {path}: {e}"));
    reply.unwrap_or_else(|| panic!("no answer to {method} {path}"))
}

/// Like `ask`, for a server that may close the connection at any moment. Returns `None` if the response is missing or
/// incomplete.
pub fn try_ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<Option<HttpReply>> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() {
        text += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    }
    text += "\r\n";
    text += body;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(text.as_bytes())?;
    Ok(read_reply(&mut stream).filter(HttpReply::is_whole))
}

/// Reads a response until the server closes the connection; `None` if it sends none.
pub fn read_reply(stream: &mut TcpStream) -> Option<HttpReply> {
    let mut bytes = Vec::new();
    if let Err(e) = stream.read_to_end(&mut bytes) {
        assert!(e.kind() == std::io::ErrorKind::ConnectionReset, "{e}");
    }
    parse_reply(&bytes)
}

/// Parses a response; `None` if its head is incomplete.
pub fn parse_reply(bytes: &[u8]) -> Option<HttpReply> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1)?.parse().unwrap();
    let mut reply = HttpReply { status, head, body: String::new() };
    let body = &bytes[end + 4..];
    let chunked = reply.header("transfer-encoding") == Some("chunked");
    reply.body = String::from_utf8_lossy(&if chunked { joined(body) } else { body.to_vec() }).into_owned();
    Some(reply)
}

/// Joins the chunks of a chunked body. Leaves out an incomplete chunk at the end.
fn joined(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap().trim(), 16).unwrap();
        let from = end + 2;
        if size == 0 || rest.len() < from + size + 2 {
            break;
        }
        body.extend(&rest[from..from + size]);
        rest = &rest[from + size + 2..];
    }
    body
}
