//! The keys: a letter, then numbers, big-endian, so that they sort as their numbers do. The last is the piece of a
//! record that is cut into several values; a record's own key ends in piece 0.
//!
//! | key | record |
//! |---|---|
//! | `b` group id, first batch, piece | block ([`codec::block`](crate::journal::codec::block)) |
//! | `p` group id, seq, piece | snapshot of a group's positions after that seq ([`codec::snapshot`](crate::journal::codec::snapshot)) |
//! | `q` first seq, piece | which group each seq belongs to ([`codec::seqs`](crate::journal::codec::seqs)) |
//! | `s` group id, seal, piece | state of a group as of that seal |
//! | `x` group id, seq, piece | entry that is no batch |
//! | `d` `g` or `t`, id, piece | name of a group, or name and topic id of a topic |
//! | `m` | what is sealed |

use std::ops::Range;

use crate::offset::Seq;

/// The piece of a record.
pub type Piece = u16;

/// Key of the block that begins with `batch`.
pub fn block(group: u32, batch: u64) -> Vec<u8> {
    numbered(b'b', group, batch)
}

/// Key of the snapshot after `seq`.
pub fn snapshot(group: u32, seq: Seq) -> Vec<u8> {
    numbered(b'p', group, seq.as_u64())
}

/// Key of the seqs that begin with `first`.
pub fn seqs(first: u64) -> Vec<u8> {
    let mut key = vec![b'q'];
    key.extend(first.to_be_bytes());
    key.extend([0, 0]);
    key
}

/// Key of the group's state as of `seal`.
pub fn state(group: u32, seal: u64) -> Vec<u8> {
    numbered(b's', group, seal)
}

/// Key of the entry `seq`, which is no batch.
pub fn other(group: u32, seq: Seq) -> Vec<u8> {
    numbered(b'x', group, seq.as_u64())
}

/// Key of a group's name.
pub fn group_name(id: u32) -> Vec<u8> {
    name(b'g', id)
}

/// Key of a topic's name.
pub fn topic_name(id: u32) -> Vec<u8> {
    name(b't', id)
}

/// Key of what is sealed.
pub const SEALED: &[u8] = b"m\0\0";

fn numbered(letter: u8, group: u32, number: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(15);
    key.push(letter);
    key.extend(group.to_be_bytes());
    key.extend(number.to_be_bytes());
    key.extend([0, 0]);
    key
}

fn name(kind: u8, id: u32) -> Vec<u8> {
    let mut key = vec![b'd', kind];
    key.extend(id.to_be_bytes());
    key.extend([0, 0]);
    key
}

/// The key of another piece of the record at `key`.
pub fn piece(key: &[u8], piece: Piece) -> Vec<u8> {
    let mut other = key.to_vec();
    let end = other.len().saturating_sub(2);
    other.truncate(end);
    other.extend(piece.to_be_bytes());
    other
}

/// The piece that `key` names.
pub fn piece_of(key: &[u8]) -> Option<Piece> {
    key.last_chunk::<2>().map(|bytes| Piece::from_be_bytes(*bytes))
}

/// Group id and number of a `b`, `p`, `s` or `x` key.
pub fn group_and_number(key: &[u8]) -> Option<(u32, u64)> {
    let (_, rest) = key.split_first()?;
    let (group, rest) = rest.split_first_chunk::<4>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    (rest.len() == 2).then(|| (u32::from_be_bytes(*group), u64::from_be_bytes(*number)))
}

/// Id of a `d` key.
pub fn name_id(key: &[u8]) -> Option<u32> {
    let (id, rest) = key.get(2..)?.split_first_chunk::<4>()?;
    (rest.len() == 2).then(|| u32::from_be_bytes(*id))
}

/// First seq of a `q` key.
pub fn seqs_first(key: &[u8]) -> Option<u64> {
    let (first, rest) = key.get(1..)?.split_first_chunk::<8>()?;
    (rest.len() == 2).then(|| u64::from_be_bytes(*first))
}

/// All keys that begin with `prefix`.
pub fn prefix(prefix: &[u8]) -> Range<Vec<u8>> {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1; // no prefix ends in 255: they are letters
    }
    prefix.to_vec()..end
}

/// A `b`, `p`, `s` or `x` key in words.
pub fn describe(key: &[u8]) -> String {
    let numbers = |what: &str, number: &str| match group_and_number(key) {
        Some((group, n)) => format!("{what} of group {group} at {number} {n}"),
        None => format!("{what} {key:02x?}"),
    };
    match key.first() {
        Some(b'b') => numbers("block", "batch"),
        Some(b'p') => numbers("snapshot", "seq"),
        Some(b's') => numbers("state", "seal"),
        Some(b'x') => numbers("entry", "seq"),
        Some(b'q') => format!("index of seqs from {}", seqs_first(key).unwrap_or_default()),
        Some(b'd') => format!("name {}", name_id(key).unwrap_or_default()),
        Some(b'm') => "the sealed seq".to_owned(),
        _ => format!("{key:02x?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_keys() {
        assert_eq!(block(1, 258), b"b\0\0\0\x01\0\0\0\0\0\0\x01\x02\0\0");
        assert_eq!(seqs(3), b"q\0\0\0\0\0\0\0\x03\0\0");
        assert_eq!(topic_name(4), b"dt\0\0\0\x04\0\0");
        assert_eq!(piece(&block(1, 2), 7), b"b\0\0\0\x01\0\0\0\0\0\0\0\x02\0\x07");
        assert_eq!(group_and_number(&state(5, 6)), Some((5, 6)));
        assert_eq!(prefix(b"s"), b"s".to_vec()..b"t".to_vec());
    }
}
