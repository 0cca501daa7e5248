//! The protocol between the owner and attached processes: JSON frames with a length prefix.

use crate::request_gate::Caller;
use lukasa_engine::{Agents, Grants};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Increases whenever a frame changes. `Hello` and `Refused` never change, so that any two versions can report the
/// mismatch.
const PROTOCOL: u32 = 5;
/// Largest frame in bytes: a corrupt length must not exhaust the memory, and no useful answer is larger.
pub(super) const FRAME_BYTES: usize = 64 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WireFrame {
    /// The first frame of each side.
    Hello(Hello),
    /// Sent by the owner instead of its hello.
    Refused(ErrorFrame),
    /// All open connections of the attached process.
    Here {
        connections: BTreeSet<String>,
    },
    Request(Request),
    /// A refusal by the attached process, to be recorded.
    Refusal(Refusal),
    Cancel {
        id: u64,
    },
    Progress {
        id: u64,
        done: u64,
        of: Option<u64>,
    },
    Answer {
        id: u64,
        answer: Box<RawValue>,
    },
    Failed {
        id: u64,
        error: ErrorFrame,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub protocol: u32,
    pub version: String,
    pub store: PathBuf,
    pub pid: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub id: u64,
    pub caller: CallerFrame,
    pub operation: String,
    pub request: Value,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Refusal {
    pub caller: CallerFrame,
    /// The name of the operation, or `login`.
    pub what: String,
    pub error: ErrorFrame,
}

/// A [`Caller`] in a frame. Both ends belong to one user, so the owner trusts the grants of an attached process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CallerFrame {
    scope: Scope,
    user: Option<String>,
    agent: Option<String>,
    session: Option<String>,
    connection: Option<String>,
    /// None: all permissions.
    grants: Option<BTreeSet<String>>,
    agents: Agents,
    request_id: Option<String>,
    address: Option<String>,
    tree: Option<PathBuf>,
    folder: Option<PathBuf>,
}

/// An error in a frame.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ErrorFrame {
    kind: ErrorKind,
    code: ErrorCode,
    message: String,
    hint: Option<String>,
    details: Value,
}

impl Hello {
    pub fn ours(store: PathBuf) -> Hello {
        Hello { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION").into(), store, pid: std::process::id() }
    }

    /// Refuses a process with another store or protocol version.
    pub fn check(&self, other: &Hello) -> Result<()> {
        if self.store != other.store {
            let (ours, theirs) = (self.store.display(), other.store.display());
            return Err(Error::new(
                ErrorKind::Unavailable,
                ErrorCode::OwnerUnreachable,
                format!("process {} uses the store `{theirs}`, not `{ours}`", other.pid),
            ));
        }
        if (self.protocol, &self.version) != (other.protocol, &other.version) {
            return Err(Error::new(
                ErrorKind::Unavailable,
                ErrorCode::OwnerVersion,
                format!(
                    "process {} works on the store with Lukasa {}, this is {}",
                    other.pid, other.version, self.version
                ),
            )
            .hint("use the same version everywhere, or end the other processes first"));
        }
        Ok(())
    }
}

impl From<&Caller> for CallerFrame {
    fn from(caller: &Caller) -> CallerFrame {
        let Caller {
            scope,
            user,
            agent,
            session,
            connection,
            grants,
            agents,
            request_id,
            address,
            tree,
            folder,
            // Logs and spans are written by the process that has the connection.
            trace: _,
            local: _,
        } = caller.clone();
        let grants = match grants {
            Grants::All => None,
            Grants::Of(scopes) => Some(scopes),
        };
        CallerFrame { scope, user, agent, session, connection, grants, agents, request_id, address, tree, folder }
    }
}

impl From<CallerFrame> for Caller {
    fn from(asker: CallerFrame) -> Caller {
        let CallerFrame { scope, user, agent, session, connection, grants, agents, request_id, address, tree, folder } =
            asker;
        // The attached process has already checked which paths the caller may name.
        let grants = grants.map_or(Grants::All, Grants::Of);
        Caller {
            scope,
            user,
            agent,
            session,
            connection,
            grants,
            agents,
            request_id,
            trace: None,
            address,
            tree,
            folder,
            local: true,
        }
    }
}

impl From<Error> for ErrorFrame {
    fn from(error: Error) -> ErrorFrame {
        let Error { kind, code, message, hint, details } = error;
        ErrorFrame { kind, code, message, hint, details: *details }
    }
}

impl From<ErrorFrame> for Error {
    fn from(error: ErrorFrame) -> Error {
        let ErrorFrame { kind, code, message, hint, details } = error;
        Error { kind, code, message, hint, details: Box::new(details) }
    }
}

/// Serializes a frame with its length prefix.
pub(super) fn written(frame: &WireFrame) -> Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, frame).map_err(|e| Error::internal(format!("a frame cannot be written: {e}")))?;
    let length = bytes.len() - 4;
    match u32::try_from(length) {
        Ok(prefix) if length <= FRAME_BYTES => bytes[..4].copy_from_slice(&prefix.to_be_bytes()),
        _ => return Err(too_large(length)),
    }
    Ok(bytes)
}

fn too_large(bytes: usize) -> Error {
    let message =
        format!("{} MiB exceed the limit of {} MiB for a message between processes", bytes >> 20, FRAME_BYTES >> 20);
    Error::too_large(ErrorCode::AnswerTooLarge, message).hint("request less: a smaller limit, or page by page")
}

/// Reads the next frame. None if the connection has ended.
pub(super) async fn next(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<WireFrame>> {
    let length = match from.read_u32().await {
        Ok(length) => length as usize,
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(e) => return Err(e),
    };
    if length > FRAME_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too large"));
    }
    let mut bytes = Vec::new();
    // The buffer grows with the bytes received, not with the announced length.
    from.take(length as u64).read_to_end(&mut bytes).await?;
    if bytes.len() < length {
        return Ok(None);
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn frames_arrive_as_they_were_sent() {
        let text = r#"{"summary":"ü","x":[1.10,18446744073709551615]}"#;
        let answer = RawValue::from_string(text.into()).unwrap();
        let mut bytes = written(&WireFrame::Answer { id: 7, answer }).unwrap();
        bytes.extend(written(&WireFrame::Cancel { id: 8 }).unwrap());
        let mut from = bytes.as_slice();
        let Some(WireFrame::Answer { id: 7, answer }) = next(&mut from).await.unwrap() else {
            panic!("not the answer")
        };
        assert_eq!(answer.get(), text, "byte for byte");
        assert!(matches!(next(&mut from).await.unwrap(), Some(WireFrame::Cancel { id: 8 })));
        assert!(next(&mut from).await.unwrap().is_none());
        assert!(next(&mut &bytes[..9]).await.unwrap().is_none(), "an incomplete frame is no frame");
        assert!(next(&mut [0xff; 8].as_slice()).await.is_err(), "a length above the limit");
    }

    #[test]
    fn errors_are_the_same_on_the_other_side() {
        let error =
            Error::conflict(ErrorCode::VersionConflict, "lost").hint("read again").details(json!({"version": 3}));
        let text = serde_json::to_string(&ErrorFrame::from(error.clone())).unwrap();
        let again: ErrorFrame = serde_json::from_str(&text).unwrap();
        assert_eq!(Error::from(again), error);
    }

    #[test]
    fn grants_travel_with_the_caller() {
        let (grants, agents) = (Grants::of(["graph:read"]), Agents::of_user("ada"));
        let caller = Caller { grants, agents, ..Caller::owner(Scope::new("local", "p").unwrap()) };
        let text = serde_json::to_string(&CallerFrame::from(&caller)).unwrap();
        let there: Caller = serde_json::from_str::<CallerFrame>(&text).unwrap().into();
        assert_eq!((there.grants, there.agents), (caller.grants, caller.agents));
    }

    #[test]
    fn a_refusal_names_the_difference() {
        let ours = Hello::ours("/a/lukasa.db".into());
        assert!(ours.check(&Hello { pid: 1, ..ours.clone() }).is_ok());
        let older = Hello { version: "0.0.1".into(), ..ours.clone() };
        let other = Hello { store: "/b/lukasa.db".into(), ..ours.clone() };
        assert_eq!(ours.check(&older).unwrap_err().code, ErrorCode::OwnerVersion);
        assert_eq!(ours.check(&other).unwrap_err().code, ErrorCode::OwnerUnreachable);
    }
}
