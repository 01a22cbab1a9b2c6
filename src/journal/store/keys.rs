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
//! | `r` group id, seal, key, seq from above, piece | block of that seal's run of results that begins with the one under that key as of that seq ([`codec::results`](crate::journal::codec::results)) |
//! | `d` `g` or `t`, id, piece | name of a group, or name and topic id of a topic |
//! | `m` | what is sealed |
//!
//! The key of a result is of any length and holds any byte: a zero is followed by 255, and two zeros end it, so that the
//! keys sort as they are. Its seq is taken from the largest, so that the newest comes first.

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

/// Bytes of a key that all of a run share.
pub const RUN_PREFIX: usize = 1 + 4 + 8;

/// All keys of the run of results that `seal` wrote.
pub fn run(group: u32, seal: u64) -> Range<Vec<u8>> {
    let prefix = |seal: u64| {
        let mut key = vec![b'r'];
        key.extend(group.to_be_bytes());
        key.extend(seal.to_be_bytes());
        key
    };
    prefix(seal)..prefix(seal + 1)
}

/// Group id and seal of an `r` key.
pub fn run_of(key: &[u8]) -> Option<(u32, u64)> {
    let (group, rest) = key.get(1..)?.split_first_chunk::<4>()?;
    let (seal, _) = rest.split_first_chunk::<8>()?;
    Some((u32::from_be_bytes(*group), u64::from_be_bytes(*seal)))
}

/// Key of the block that begins with the result under `key` that the batch at `seq` put or removed.
pub fn result(group: u32, seal: u64, key: &[u8], seq: Seq) -> Vec<u8> {
    let mut full = run(group, seal).start;
    for byte in key {
        full.push(*byte);
        if *byte == 0 {
            full.push(255);
        }
    }
    full.extend([0, 0]);
    full.extend((Seq::MAX.as_u64() - seq.as_u64()).to_be_bytes());
    full.extend([0, 0]);
    full
}

/// The result's own key, and the seq, of an `r` key.
fn result_of(key: &[u8]) -> Option<(Vec<u8>, u64)> {
    let (mut rest, mut own) = (key.get(RUN_PREFIX..)?, Vec::new());
    loop {
        match rest {
            [0, 0, end @ ..] => {
                let (seq, piece) = end.split_first_chunk::<8>()?;
                let seq = Seq::MAX.as_u64().checked_sub(u64::from_be_bytes(*seq))?;
                return (piece.len() == 2).then_some((own, seq));
            }
            [0, 255, more @ ..] => (rest, _) = (more, own.push(0)),
            [byte, more @ ..] if *byte != 0 => (rest, _) = (more, own.push(*byte)),
            _ => return None,
        }
    }
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

/// A key in words.
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
        Some(b'r') => match (run_of(key), result_of(key)) {
            (Some((group, _)), Some((key, seq))) => {
                format!("results of group {group} from {} at seq {seq} on", key.escape_ascii())
            }
            _ => format!("results {key:02x?}"),
        },
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
        let seq = Seq::new(2).unwrap();
        let key = result(1, 3, b"a\0", seq);
        assert_eq!(key, b"r\0\0\0\x01\0\0\0\0\0\0\0\x03a\0\xff\0\0\x7f\xff\xff\xff\xff\xff\xff\xfd\0\0");
        assert_eq!((run_of(&key), run(1, 3).contains(&key)), (Some((1, 3)), true));
        assert_eq!(group_and_number(&state(5, 6)), Some((5, 6)));
        assert_eq!(prefix(b"s"), b"s".to_vec()..b"t".to_vec());
    }

    proptest::proptest! {
        #[test]
        fn results_sort_by_key_then_newest_first(
            (a, b) in ("[\\x00\\x01\u{ff}]{1,4}", "[\\x00\\x01\u{ff}]{1,4}"), (m, n) in (1i64..4, 1i64..4)
        ) {
            let (a, b) = (a.into_bytes(), b.into_bytes());
            let (m, n) = (Seq::new(m).unwrap(), Seq::new(n).unwrap());
            assert_eq!(result(1, 1, &a, m).cmp(&result(1, 1, &b, n)), (&a, n).cmp(&(&b, m)));
            assert_eq!(result_of(&result(9, 2, &a, m)), Some((a, m.as_u64())));
        }
    }
}
