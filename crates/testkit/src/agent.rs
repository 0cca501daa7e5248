//! An agent that speaks MCP to a program it starts, over standard input and output.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Reached only by what never comes.
const NEVER: Duration = Duration::from_secs(90);

pub struct Agent {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    /// Said without being asked, and not looked at yet.
    notices: Vec<Value>,
    last: u64,
}

impl Agent {
    /// Starts the program and introduces itself by this name.
    pub fn start(mut command: Command, name: &str) -> Agent {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let (to, out) = (child.stdin.take(), child.stdout.take().expect("it was asked for"));
        let (send, from) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let said = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
                if send.send(said).is_err() {
                    return;
                }
            }
        });
        let mut agent = Agent { child, to, from, notices: vec![], last: 0 };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": name, "version": "1"}});
        agent.request("initialize", hello).expect("it introduces itself");
        agent.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        agent
    }

    fn say(&mut self, message: &Value) {
        let to = self.to.as_mut().expect("it is not closed");
        to.write_all(format!("{message}\n").as_bytes()).and_then(|()| to.flush()).expect("the program listens");
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Tells something that is not answered.
    pub fn tell(&mut self, method: &str, params: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Asks without waiting for the answer; the id of the request.
    pub fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        self.last
    }

    /// The result of a request, or the error.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin(method, &params);
        loop {
            let said = self.from.recv_timeout(NEVER).unwrap_or_else(|e| panic!("{method}: {e}"));
            if said["id"] == id {
                return match said.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(said["result"].clone()),
                };
            }
            self.notices.push(said);
        }
    }

    /// What a tool answers in full.
    pub fn answer(&mut self, tool: &str, mut arguments: Value) -> Value {
        if arguments.get("profile").is_none() {
            arguments["profile"] = json!("debug");
        }
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        result.unwrap_or_else(|e| panic!("{tool} {arguments}: {e}"))["structuredContent"].clone()
    }

    /// The data of a tool that succeeds.
    pub fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.answer(tool, arguments.clone());
        assert_eq!(answer["ok"], true, "{tool} {arguments}: {answer}");
        answer["data"].clone()
    }

    /// Waits for something that is said without being asked.
    pub fn notice(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.notices.iter().position(|notice| notice["method"] == method) {
                return self.notices.remove(at)["params"].clone();
            }
            match self.from.recv_timeout(NEVER) {
                Ok(said) => self.notices.push(said),
                Err(e @ (RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)) => panic!("{method}: {e}"),
            }
        }
    }

    /// Closes the connection and waits for the program to end.
    pub fn leave(mut self) {
        self.to = None;
        let _ = self.child.wait();
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        let _ = self.child.wait();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
