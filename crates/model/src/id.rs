//! Names and ids: scopes, ids derived from names, and the numbers that a project assigns.

use crate::ErrorCode;
use crate::error::{Error, Result};
use crate::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha1::{Digest, Sha1};
use smallvec::SmallVec;
use std::{fmt, num::ParseIntError, ops::Range, str::FromStr};
use uuid::Uuid;

/// Namespace of project namespaces. Changing it would change every derived id.
const ROOT: Uuid = Uuid::from_u128(0x6c75_6b61_7361_5f70_8a6f_6a65_6374_7301);

/// The tenant and project that a read or write belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Scope {
    pub tenant: String,
    pub project: String,
}

impl Scope {
    /// Creates a scope. Fails if a name is empty, too long, contains NUL, or begins or ends with white space.
    pub fn new(tenant: impl Into<String>, project: impl Into<String>) -> Result<Scope> {
        let scope = Scope { tenant: tenant.into(), project: project.into() };
        for (what, name) in [("tenant", &scope.tenant), ("project", &scope.project)] {
            check_text(what, name, limits::NAME_BYTES)?;
            if name.trim() != name {
                return Err(Error::invalid(
                    ErrorCode::InvalidName,
                    format!("{what} `{name}` begins or ends with a space"),
                ));
            }
        }
        Ok(scope)
    }

    /// The namespace in which a new project derives its ids. It depends only on the project's name, so that indexing
    /// the same repository elsewhere yields the same ids.
    pub fn namespace(&self) -> Uuid {
        named(ROOT, self.project.as_bytes())
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.project)
    }
}

/// Derives the id of an object with a key. Type names are case-insensitive, and so is their part of the id.
pub fn object_id(namespace: Uuid, type_name: &str, key: &str) -> Uuid {
    derive(namespace, b"object", type_name, &[key.as_bytes()])
}

/// Derives the id of a relationship. The discriminator is empty unless there are parallel relationships.
pub fn relationship_id(namespace: Uuid, type_name: &str, src: Uuid, dst: Uuid, discriminator: &str) -> Uuid {
    derive(namespace, b"relationship", type_name, &[src.as_bytes(), dst.as_bytes(), discriminator.as_bytes()])
}

fn derive(namespace: Uuid, kind: &[u8], type_name: &str, parts: &[&[u8]]) -> Uuid {
    // Most names are short: hashing one buffer is faster than hashing many parts.
    let mut name: SmallVec<[u8; 256]> = SmallVec::new();
    let add = |name: &mut SmallVec<[u8; 256]>, part: &[u8]| {
        let bytes = u32::try_from(part.len()).expect("names are limited");
        name.extend_from_slice(&bytes.to_be_bytes());
        name.extend_from_slice(part);
    };
    add(&mut name, kind);
    add(&mut name, type_name.as_bytes());
    let spelled = name.len() - type_name.len();
    name[spelled..].make_ascii_lowercase();
    parts.iter().for_each(|part| add(&mut name, part));
    named(namespace, &name)
}

/// Returns the UUID version 5 of a name in a namespace.
pub fn named(namespace: Uuid, name: &[u8]) -> Uuid {
    of_hash(Sha1::new_with_prefix(namespace.as_bytes()).chain_update(name))
}

fn of_hash(hash: Sha1) -> Uuid {
    let digest: [u8; 20] = hash.finalize().into();
    uuid::Builder::from_sha1_bytes(*digest.first_chunk().expect("a digest has twenty bytes")).into_uuid()
}

/// Rejects text that is empty, contains NUL or is longer than `max` bytes.
pub fn check_text(what: &str, text: &str, max: usize) -> Result<()> {
    if text.is_empty() {
        return Err(Error::invalid(ErrorCode::EmptyName, format!("the name or text of the {what} is empty")));
    }
    if text.len() > max {
        let start: String = text.chars().take(40).collect();
        return Err(Error::too_large(
            ErrorCode::TextTooLong,
            format!("the {what} `{start}…` has {} bytes, {max} are allowed", text.len()),
        ));
    }
    if text.contains('\0') {
        return Err(Error::invalid(ErrorCode::NulByte, format!("the {what} contains a NUL byte")));
    }
    Ok(())
}

/// Rejects invalid type names. Allowed are letters, digits and `_ - .`, starting with a letter. There is no colon, so
/// that `Type:key` is unambiguous.
pub fn check_type_name(name: &str) -> Result<()> {
    check_text("type", name, limits::NAME_BYTES)?;
    let fine = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if fine {
        Ok(())
    } else {
        Err(Error::invalid(ErrorCode::InvalidTypeName, format!("`{name}` is not a type name"))
            .hint("use letters, digits, `_`, `-` and `.`, beginning with a letter"))
    }
}

/// Rejects invalid names of branches, releases and tags.
pub fn check_ref_name(what: &str, name: &str) -> Result<()> {
    check_text(what, name, limits::REF_NAME_BYTES)?;
    if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(Error::invalid(
            ErrorCode::InvalidName,
            format!("the {what} `{}` contains white space", name.escape_debug()),
        ));
    }
    Ok(())
}

/// Declares a number that a project assigns: a type of its own that is written, parsed and serialised as its integer.
macro_rules! assigned_number {
    ($(#[$attribute:meta])* $name:ident($integer:ty)) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[repr(transparent)]
        #[serde(transparent)]
        pub struct $name(pub $integer);

        impl $name {
            /// Returns the number after this one; the largest number has none and is returned itself.
            #[must_use]
            pub const fn next(self) -> $name {
                $name(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;
            fn from_str(text: &str) -> std::result::Result<$name, ParseIntError> {
                text.parse().map($name)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                <$integer>::schema_name()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <$integer>::json_schema(generator)
            }
        }
    };
}

assigned_number! {
    /// Number of a transaction in its project's log: 1, 2, 3, … 0 is the empty project.
    Tx(u64)
}

assigned_number! {
    /// Number of an object or relationship within its project, in order of its first version: 1, 2, 3, …
    FactNo(u64)
}

assigned_number! {
    /// Number of a branch within its project.
    BranchNo(u32)
}

impl Tx {
    /// The empty project, before its first transaction.
    pub const START: Tx = Tx(0);
    /// The first transaction of a log.
    pub const FIRST: Tx = Tx(1);

    /// Returns the transaction before this one; `START` if there is none.
    #[must_use]
    pub const fn previous(self) -> Tx {
        self.back(1)
    }

    /// Returns the transaction `count` before this one; `START` if there are not as many.
    #[must_use]
    pub const fn back(self, count: usize) -> Tx {
        Tx(self.0.saturating_sub(count as u64))
    }

    /// Returns the number of transactions after `earlier` up to this one; 0 if this one is not later.
    pub const fn since(self, earlier: Tx) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl FactNo {
    /// The number of the first fact of a project.
    pub const FIRST: FactNo = FactNo(1);

    /// Returns the number that is given `count` facts after this one.
    #[must_use]
    pub const fn plus(self, count: usize) -> FactNo {
        FactNo(self.0 + count as u64)
    }

    /// Returns the place of this fact in a table with one place per number, beginning with 0.
    pub fn index(self) -> usize {
        usize::try_from(self.0).expect("memory has no more places than addresses")
    }

    /// Iterates over the numbers of a range, ascending.
    pub fn each(range: Range<FactNo>) -> impl DoubleEndedIterator<Item = FactNo> {
        (range.start.0..range.end.0).map(FactNo)
    }

    /// Splits a range into ranges of at most `size` numbers, ascending.
    pub fn pages(range: Range<FactNo>, size: usize) -> impl Iterator<Item = Range<FactNo>> {
        let Range { start, end } = range;
        (start.0..end.0).step_by(size).map(move |first| FactNo(first)..FactNo(first).plus(size).min(end))
    }

    /// Returns how many numbers after `first` this one is: an index among facts that are numbered from `first` on.
    /// `None` if it is before `first`.
    pub fn index_from(self, first: FactNo) -> Option<usize> {
        usize::try_from(self.0.checked_sub(first.0)?).ok()
    }
}

/// The branch number of branchless facts; every branch sees them.
pub const PROJECT_WIDE: BranchNo = BranchNo(0);
/// The branch that every project starts with.
pub const MAIN: BranchNo = BranchNo(1);

/// Identifies a version permanently: the transaction that recorded it and its index there, printed `42.7`. Ordered by
/// time of recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(pub u64);

impl VersionId {
    const PLACE_BITS: u32 = 24;
    /// The maximum number of versions in one transaction.
    pub const PLACES: usize = 1 << Self::PLACE_BITS;

    /// Creates the id of the version at index `place` of a transaction; `place` must be below `PLACES`.
    pub fn new(tx: Tx, place: u32) -> VersionId {
        debug_assert!((place as usize) < Self::PLACES);
        VersionId(tx.0 << Self::PLACE_BITS | u64::from(place))
    }

    /// The version at an index of the versions of a transaction.
    pub fn at(tx: Tx, index: usize) -> VersionId {
        VersionId::new(tx, u32::try_from(index).expect("a transaction has at most `PLACES` versions"))
    }

    /// Returns the transaction that recorded the version.
    pub fn tx(self) -> Tx {
        Tx(self.0 >> Self::PLACE_BITS)
    }

    /// Returns the index of the version in its transaction.
    pub fn place(self) -> u32 {
        u32::try_from(self.0 & (Self::PLACES as u64 - 1)).expect("places have 24 bits")
    }

    /// Returns the largest id that a version recorded at or before `tx` can have.
    pub fn last_of(tx: Tx) -> VersionId {
        VersionId((tx.0.min(u64::MAX >> Self::PLACE_BITS) << Self::PLACE_BITS) | (Self::PLACES as u64 - 1))
    }
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.tx(), self.place())
    }
}

impl FromStr for VersionId {
    type Err = Error;
    fn from_str(text: &str) -> Result<VersionId> {
        let parsed = text.split_once('.').and_then(|(tx, place)| {
            let (tx, place) = (tx.parse::<u64>().ok()?, place.parse::<u32>().ok()?);
            (tx < 1 << 39 && (place as usize) < Self::PLACES).then(|| VersionId::new(Tx(tx), place))
        });
        parsed.ok_or_else(|| {
            Error::invalid(ErrorCode::InvalidVersionId, format!("`{text}` is not a version id"))
                .hint("version ids look like 42.7: transaction 42, index 7")
        })
    }
}

impl Serialize for VersionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for VersionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for VersionId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "VersionId".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": r"^\d+\.\d+$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_names_and_not_on_the_tenant() {
        let (a, b) = (Scope::new("a", "shop").unwrap(), Scope::new("b", "shop").unwrap());
        assert_eq!(a.namespace(), b.namespace());
        let ns = a.namespace();
        assert_eq!(object_id(ns, "Service", "auth"), object_id(ns, "SERVICE", "auth"));
        assert_ne!(object_id(ns, "Service", "auth"), object_id(ns, "Service", "Auth"));
        // Parts are length-prefixed: splitting the same text elsewhere gives another id.
        assert_ne!(object_id(ns, "ab", "c"), object_id(ns, "a", "bc"));
        // From RFC 9562, appendix A.4.
        assert_eq!(named(Uuid::NAMESPACE_DNS, b"www.example.com").to_string(), "2ed6657d-e927-568b-95e1-2665a8aea6a2");
        // Pinned: a change of the derivation would orphan every stored fact.
        assert_eq!(object_id(ns, "Service", "auth").to_string(), "ff384f47-ddb7-5084-84a0-3746f3d8633d");
    }

    #[test]
    fn version_ids_round_trip() {
        let id = VersionId::new(Tx(42), 7);
        assert_eq!((id.tx(), id.place(), id.to_string().as_str()), (Tx(42), 7, "42.7"));
        assert_eq!("42.7".parse::<VersionId>().unwrap(), id);
        for bad in ["", "42", "42.", "a.b", "1.99999999", "999999999999999.1"] {
            assert!(bad.parse::<VersionId>().is_err(), "{bad}");
        }
        assert!(VersionId::last_of(Tx(42)) >= id && VersionId::last_of(Tx(41)) < id);
    }

    #[test]
    fn invalid_names_are_rejected_with_a_code() {
        let long = "k".repeat(1025);
        for (text, code) in [("", "empty_name"), ("a\0b", "nul_byte"), (long.as_str(), "text_too_long")] {
            assert_eq!(check_text("key", text, limits::KEY_BYTES).unwrap_err().code.name(), code);
        }
        assert!(check_type_name("9lives").is_err() && check_type_name("a b").is_err());
        assert!(check_ref_name("branch", "a b").is_err() && check_ref_name("branch", "feature/x").is_ok());
    }
}
