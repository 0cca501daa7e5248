//! An MCP client that starts a program and talks to it over standard input and output.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Timeout for messages. Reached only if a message never arrives.
const NEVER: Duration = Duration::from_secs(90);

/// A connected MCP client. The program is killed when this is dropped.
pub struct Agent {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    /// Received notifications and other messages that no call has returned yet.
    notices: Vec<Value>,
    last: u64,
}

impl Agent {
    /// Starts the program and initializes the connection with this client name.
    pub fn start(mut command: Command, name: &str) -> Agent {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let (to, out) = (child.stdin.take(), child.stdout.take().expect("standard output is piped"));
        let (send, from) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let mut agent = Agent { child, to, from, notices: vec![], last: 0 };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": name, "version": "1"}});
        agent.request("initialize", hello).expect("the connection is initialized");
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        agent
    }

    fn send(&mut self, message: &Value) {
        let to = self.to.as_mut().expect("the connection is open");
        to.write_all(format!("{message}\n").as_bytes()).and_then(|()| to.flush()).expect("the program reads its input");
    }

    /// The process id of the program.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a notification, which has no response.
    pub fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request without waiting for the response. Returns the id of the request.
    pub fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        self.last
    }

    /// Sends a request and returns its result, or the error of the response.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin(method, &params);
        loop {
            let message = self.from.recv_timeout(NEVER).unwrap_or_else(|e| panic!("{method}: {e}"));
            if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].clone()),
                };
            }
            self.notices.push(message);
        }
    }

    /// Calls a tool and returns its whole structured content, by default with the profile `debug`.
    pub fn answer(&mut self, tool: &str, mut arguments: Value) -> Value {
        if arguments.get("profile").is_none() {
            arguments["profile"] = json!("debug");
        }
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        result.unwrap_or_else(|e| panic!("{tool} {arguments}: {e}"))["structuredContent"].clone()
    }

    /// Calls a tool that must succeed and returns its data.
    pub fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.answer(tool, arguments.clone());
        assert_eq!(answer["ok"], true, "{tool} {arguments}: {answer}");
        answer["data"].clone()
    }

    /// Waits for a notification with this method and returns its parameters.
    pub fn wait_for_notification(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.notices.iter().position(|notice| notice["method"] == method) {
                return self.notices.remove(at)["params"].clone();
            }
            match self.from.recv_timeout(NEVER) {
                Ok(message) => self.notices.push(message),
                Err(e @ (RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)) => panic!("{method}: {e}"),
            }
        }
    }

    /// Closes the connection and waits for the program to end.
    pub fn leave(mut self) {
        self.to = None;
        let _ = self.child.wait();
    }

    /// Kills the program with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("the program runs");
        let _ = self.child.wait();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
