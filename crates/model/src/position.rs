//! A position in a project's log: a transaction's number and the hash of the chain up to it.

use crate::id::Tx;
use crate::json::Hash;
use crate::transaction::{Transaction, TransactionHasher};

/// Identifies one state of one log. A transaction number alone does not: after a failover or a restore, another
/// transaction may have the same number. Everything that is cached "as of a transaction" is cached with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    pub tx: Tx,
    /// Hash over everything up to this transaction: two logs with the same hash here are equal up to here.
    pub hash: Hash,
}

/// The number of bits of a mark that hold the transaction number.
const TX_BITS: u32 = 40;

impl Position {
    /// The position before the first transaction.
    pub const START: Position = Position { tx: Tx::START, hash: TransactionHasher::START };

    /// The first eight bytes of the hash, for cursors: enough that two logs do not match by chance.
    pub fn digest(&self) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&self.hash.0[..8]);
        u64::from_be_bytes(first)
    }

    /// The position as one number, for stores that keep a number as a mark: the transaction in the lower 40 bits, 23
    /// bits of the hash above them.
    pub fn mark(&self) -> u64 {
        (self.digest() >> (TX_BITS + 1)) << TX_BITS | self.tx.0 & ((1 << TX_BITS) - 1)
    }

    /// Returns the transaction of a mark.
    pub fn tx_of_mark(mark: u64) -> Tx {
        Tx(mark & ((1 << TX_BITS) - 1))
    }
}

impl Transaction {
    /// Returns the position of the log after this transaction.
    pub fn position(&self) -> Position {
        Position { tx: self.tx, hash: self.hash }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_holds_the_number_and_differs_with_the_hash() {
        let at = |tx, text: &[u8]| Position { tx: Tx(tx), hash: Hash::of(text) };
        let mark = at(42, b"one log").mark();
        assert_eq!(Position::tx_of_mark(mark), Tx(42));
        assert_ne!(mark, at(42, b"another log").mark());
        assert!(i64::try_from(mark).is_ok(), "databases keep it as a signed number");
        assert_eq!(Position::START.mark(), 0);
    }
}
