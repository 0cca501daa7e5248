//! Cursors: where the next page of an answer begins, signed so that a changed cursor is refused.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use lukasa_model::json::Hash;
use lukasa_model::{BranchNo, Error, ErrorCode, Result, Time, Tx, View};
use sha2::Sha256;

/// A position in the answer to one request in one view. Opaque to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub branch: BranchNo,
    pub known: Tx,
    /// The beginning of that transaction's hash: another log may have another transaction of this number.
    pub digest: u64,
    pub valid: Time,
    /// The page begins here, or ends here when it is read backwards.
    pub place: u32,
    pub backwards: bool,
    /// The stages that were left out under load, as a bit set of up to seven bits. Its meaning is up to the operation.
    pub spared: u8,
    /// A hash of the request without its paging fields.
    pub request: [u8; 8],
}

const FORM: u8 = 2;
const BODY: usize = 1 + 4 + 8 + 8 + 8 + 4 + 1 + 8;
const TAG: usize = 16;

impl Cursor {
    /// A cursor at `place`, which counts objects of the whole answer from 0.
    pub fn new(view: &View, request: &Hash, place: usize, backwards: bool) -> Cursor {
        let mut short = [0; 8];
        short.copy_from_slice(&request.0[..8]);
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        let (branch, known, valid) = (view.branch, view.known, view.valid);
        let digest = view.position().digest();
        Cursor { branch, known, digest, valid, place, backwards, spared: 0, request: short }
    }

    /// The same cursor with the stages that were left out.
    #[must_use]
    pub fn sparing(mut self, spared: u8) -> Cursor {
        self.spared = spared & 0x7f;
        self
    }

    /// Encodes and signs the cursor. `key` is the project's own.
    pub fn seal(&self, key: &Hash) -> String {
        let mut bytes = Vec::with_capacity(BODY + TAG);
        bytes.push(FORM);
        bytes.extend(self.branch.0.to_be_bytes());
        bytes.extend(self.known.0.to_be_bytes());
        bytes.extend(self.digest.to_be_bytes());
        bytes.extend(self.valid.0.to_be_bytes());
        bytes.extend(self.place.to_be_bytes());
        bytes.push(u8::from(self.backwards) | self.spared << 1);
        bytes.extend(self.request);
        let tag = sign(key, &bytes).finalize().into_bytes();
        bytes.extend(&tag[..TAG]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes a cursor. Returns `invalid_cursor` if it was not sealed with this key.
    pub fn open(text: &str, key: &Hash) -> Result<Cursor> {
        let fault = || {
            Error::invalid(ErrorCode::InvalidCursor, "this cursor was not given by this project")
                .hint("ask again without a cursor, and go on with the ones in the answer")
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| fault())?;
        if bytes.len() != BODY + TAG || bytes[0] != FORM {
            return Err(fault());
        }
        let (body, tag) = bytes.split_at(BODY);
        sign(key, body).verify_truncated_left(tag).map_err(|_| fault())?;
        let mut rest = &body[1..];
        Ok(Cursor {
            branch: BranchNo(u32::from_be_bytes(take(&mut rest))),
            known: Tx(u64::from_be_bytes(take(&mut rest))),
            digest: u64::from_be_bytes(take(&mut rest)),
            valid: Time(i64::from_be_bytes(take(&mut rest))),
            place: u32::from_be_bytes(take(&mut rest)),
            backwards: rest[0] & 1 == 1,
            spared: take::<1>(&mut rest)[0] >> 1,
            request: take(&mut rest),
        })
    }

    /// Returns an error if the cursor belongs to another request.
    pub fn check(&self, request: &Hash) -> Result<()> {
        if self.request == request.0[..8] {
            return Ok(());
        }
        Err(Error::invalid(ErrorCode::CursorOfAnotherRequest, "this cursor belongs to another request")
            .hint("repeat the request that gave it, with the cursor added"))
    }
}

fn sign(key: &Hash, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).expect("any length is a key");
    mac.update(b"lukasa cursor");
    mac.update(body);
    mac
}

/// The next bytes; the length was checked.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    let (head, tail) = rest.split_at(N);
    bytes.copy_from_slice(head);
    *rest = tail;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sealed_cursors_open() {
        let (key, request) = (Hash::of(b"project"), Hash::of(b"request"));
        let mut short = [0; 8];
        short.copy_from_slice(&request.0[..8]);
        let (place, backwards, spared) = (50, true, 0x55);
        let (branch, known, digest, valid) = (BranchNo(3), Tx(42), 7, Time(-7));
        let cursor = Cursor { branch, known, digest, valid, place, backwards, spared, request: short };
        let sealed = cursor.seal(&key);
        assert_eq!(Cursor::open(&sealed, &key).unwrap(), cursor);
        assert!(cursor.check(&request).is_ok());
        assert_eq!(cursor.check(&Hash::of(b"other")).unwrap_err().code, ErrorCode::CursorOfAnotherRequest);
        let code = |text: &str, key: &Hash| Cursor::open(text, key).unwrap_err().code;
        assert_eq!(code(&sealed, &Hash::of(b"another")), ErrorCode::InvalidCursor);
        for at in 0..sealed.len() {
            let mut forged = sealed.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            // The last letter carries bits that do not count; it must not decode to something else.
            if let Ok(opened) = Cursor::open(&forged, &key) {
                assert_eq!(opened, cursor);
            }
        }
        for bad in ["", "x", "\u{1F600}", &sealed[1..], &format!("{sealed}A"), &"A".repeat(5_000)] {
            assert_eq!(code(bad, &key), ErrorCode::InvalidCursor, "{bad}");
        }
    }
}
