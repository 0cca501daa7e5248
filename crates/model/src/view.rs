//! Views: the branch, transaction and valid time at which a request is answered; and the parsing of moments.

use crate::ErrorCode;
use crate::branch::Lineage;
use crate::error::{Error, Result};
use crate::id::{BranchNo, Tx};
use crate::json::Hash;
use crate::position::Position;
use crate::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fixed branch, transaction and valid time. The same view always returns the same answer.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    pub branch: BranchNo,
    /// For answers; `branch` decides.
    pub branch_name: String,
    /// Only versions recorded at or before this transaction are visible.
    pub known: Tx,
    /// The hash of that transaction, which identifies the log.
    pub hash: Hash,
    /// The valid time.
    pub valid: Time,
    /// The branches that are read, as of `known`.
    pub lineage: Lineage,
    /// The release, when the view is one.
    pub release: Option<String>,
}

/// The view of an answer, as returned to the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ViewEcho {
    pub branch: String,
    pub known_at: Tx,
    pub valid_at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
}

impl View {
    /// Returns the position in the log at which the view ends.
    pub fn position(&self) -> Position {
        Position { tx: self.known, hash: self.hash }
    }

    /// Returns the description of this view that responses contain.
    pub fn echo(&self) -> ViewEcho {
        ViewEcho {
            branch: self.branch_name.clone(),
            known_at: self.known,
            valid_at: self.valid,
            release: self.release.clone(),
        }
    }
}

/// A parsed moment, not yet looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    Time(Time),
    Tx(Tx),
    Commit(String),
    Release(String),
    Tag(String),
    Agent(String),
}

impl Moment {
    /// Returns every moment that a word may mean: exactly one with a prefix, otherwise all that fit its form.
    pub fn readings(word: &str) -> Result<Vec<Moment>> {
        let fault = || {
            Error::invalid(ErrorCode::InvalidMoment, format!("`{word}` names no moment"))
                .hint("use time:2026-01-31, tx:42, commit:abc1234, release:1.0, tag:stable or agent:name")
        };
        if let Some((prefix, rest)) = word.split_once(':') {
            let one = match prefix {
                "time" => Some(Moment::Time(Time::parse(rest)?)),
                "tx" => Some(Moment::Tx(rest.parse().map_err(|_| fault())?)),
                "commit" => Some(Moment::Commit(rest.to_lowercase())),
                "release" => Some(Moment::Release(rest.into())),
                "tag" => Some(Moment::Tag(rest.into())),
                "agent" => Some(Moment::Agent(rest.into())),
                _ => None,
            };
            match one {
                Some(_) if rest.is_empty() => return Err(fault()),
                Some(moment) => return Ok(vec![moment]),
                None => {}
            }
        }
        if word.is_empty() {
            return Err(fault());
        }
        if let Ok(time) = Time::parse(word) {
            return Ok(vec![Moment::Time(time)]);
        }
        let looks_like_a_date =
            word.len() > 5 && word.as_bytes()[4] == b'-' && word.bytes().take(4).all(|b| b.is_ascii_digit());
        if looks_like_a_date && word.bytes().all(|b| b.is_ascii_digit() || b"-:.+TtZz ".contains(&b)) {
            return Time::parse(word).map(|time| vec![Moment::Time(time)]);
        }
        let mut readings = Vec::new();
        if let Ok(tx) = word.parse() {
            readings.push(Moment::Tx(tx));
        }
        if (7..=40).contains(&word.len()) && word.chars().all(|c| c.is_ascii_hexdigit()) {
            readings.push(Moment::Commit(word.to_lowercase()));
        }
        readings.extend([Moment::Release(word.into()), Moment::Tag(word.into()), Moment::Agent(word.into())]);
        Ok(readings)
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Moment::Time(time) => write!(f, "time:{time}"),
            Moment::Tx(tx) => write!(f, "tx:{tx}"),
            Moment::Commit(word) => write!(f, "commit:{word}"),
            Moment::Release(word) => write!(f, "release:{word}"),
            Moment::Tag(word) => write!(f, "tag:{word}"),
            Moment::Agent(word) => write!(f, "agent:{word}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let show = |word: &str| match Moment::readings(word) {
            Ok(all) => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(e) => e.code.to_string(),
        };
        for (word, want) in [
            ("time:2026-01-31", "time:2026-01-31T00:00:00Z"),
            ("2026-01-31", "time:2026-01-31T00:00:00Z"),
            ("tx:42", "tx:42"),
            ("tx:x", "invalid_moment"),
            ("tag:", "invalid_moment"),
            ("", "invalid_moment"),
            ("2026-13-01", "invalid_time"),
            ("commit:ABC1234", "commit:abc1234"),
            ("abc1234", "commit:abc1234 release:abc1234 tag:abc1234 agent:abc1234"),
            ("1234567", "tx:1234567 commit:1234567 release:1234567 tag:1234567 agent:1234567"),
            ("stable", "release:stable tag:stable agent:stable"),
            ("claude:7", "release:claude:7 tag:claude:7 agent:claude:7"),
        ] {
            assert_eq!(show(word), want, "{word}");
        }
    }
}
