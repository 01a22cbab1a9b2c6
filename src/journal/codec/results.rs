//! A block of a run of results: consecutive ones, in the order of their keys and, under one key, newest first.
//!
//! Version, crc32c over the rest, crc32c of the key that the block stands under; then, compressed if that is shorter, what
//! comes right after the block (0, or 1, the length of a key, the key, and a seq), and each result: how many bytes of the
//! key before begin its own, how many follow, and those; its seq; 0 where it removes, or the length of its value plus one,
//! and the value. Knowing what comes next, a reader notices a block that is missing.

use std::cmp::Reverse;

use super::varint::{self, Reader};
use super::{CodecError, compress, seal, unseal};
use crate::offset::Seq;
use crate::results::{MAX_KEY_BYTES, MAX_VALUE_BYTES};

const VERSION: u8 = 1;

/// The largest body that a reader takes: one result of the largest key and value, what comes next, and lengths.
const MAX_BODY: usize = MAX_VALUE_BYTES + 4 * MAX_KEY_BYTES;

/// The place of a result: by key, under one key the newest first.
pub type Place = (Vec<u8>, Reverse<Seq>);

/// A result as one batch left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its key, and the seq of the batch.
    pub place: Place,
    /// The value; none where it is removed.
    pub value: Option<Vec<u8>>,
}

impl Item {
    /// Its key.
    pub fn key(&self) -> &[u8] {
        &self.place.0
    }

    /// The seq of the batch.
    pub fn seq(&self) -> Seq {
        self.place.1.0
    }

    /// What it takes in a block, at most.
    pub fn weight(&self) -> usize {
        // Two lengths of a key, a seq, the length of a value.
        self.key().len() + self.value.as_ref().map_or(0, Vec::len) + 2 + 2 + 9 + 4
    }
}

/// What a block holds, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// In order.
    pub items: Vec<Item>,
    /// What the next block of the run begins with; none in the last.
    pub next: Option<Place>,
}

/// The bytes of the block of `items` that stands under the key `under`, with `next` after it.
pub fn encode(under: &[u8], items: &[Item], next: Option<&Place>) -> Vec<u8> {
    let mut plain = Vec::new();
    match next {
        None => plain.push(0),
        Some((key, Reverse(seq))) => {
            plain.push(1);
            varint::put(&mut plain, key.len() as u64);
            plain.extend_from_slice(key);
            varint::put(&mut plain, seq.as_u64());
        }
    }
    let mut before: &[u8] = &[];
    for item in items {
        let shared = before.iter().zip(item.key()).take_while(|(a, b)| a == b).count();
        varint::put(&mut plain, shared as u64);
        varint::put(&mut plain, (item.key().len() - shared) as u64);
        plain.extend_from_slice(&item.key()[shared..]);
        varint::put(&mut plain, item.seq().as_u64());
        varint::put(&mut plain, item.value.as_ref().map_or(0, |value| value.len() as u64 + 1));
        plain.extend_from_slice(item.value.as_deref().unwrap_or_default());
        before = item.key();
    }
    let mut body = crc32c::crc32c(under).to_le_bytes().to_vec();
    compress::put(&mut body, &plain);
    seal(VERSION, &body)
}

/// What [`encode`] put under that key.
pub fn decode(under: &[u8], bytes: &[u8]) -> Result<Block, CodecError> {
    let mut reader = Reader::new(unseal(VERSION, bytes)?);
    if reader.take_bytes(4)? != crc32c::crc32c(under).to_le_bytes() {
        return Err(CodecError::Malformed("results of another key"));
    }
    let plain = compress::take(&mut reader, MAX_BODY as u64)?;
    let mut reader = Reader::new(&plain);
    let next = match reader.take()? {
        0 => None,
        1 => {
            let length = reader.take()?;
            Some(place(reader.take_bytes(length)?.to_vec(), reader.take()?)?)
        }
        _ => return Err(CodecError::Malformed("neither an end nor what comes next")),
    };
    let mut items: Vec<Item> = Vec::new();
    while !reader.is_empty() {
        let before = items.last().map_or(&[][..], Item::key);
        let shared = usize::try_from(reader.take()?).ok().and_then(|shared| before.get(..shared));
        let mut key = shared.ok_or(CodecError::Malformed("a key that shares what is not there"))?.to_vec();
        let rest = reader.take()?;
        key.extend_from_slice(reader.take_bytes(rest)?);
        let place = place(key, reader.take()?)?;
        if items.last().is_some_and(|before| before.place >= place) {
            return Err(CodecError::Malformed("results out of order"));
        }
        let value = match reader.take()? {
            0 => None,
            length if length > MAX_VALUE_BYTES as u64 + 1 => return Err(CodecError::Malformed("a result's value")),
            length => Some(reader.take_bytes(length - 1)?.to_vec()),
        };
        items.push(Item { place, value });
    }
    match items.last() {
        Some(last) if next.as_ref().is_none_or(|next| last.place < *next) => Ok(Block { items, next }),
        _ => Err(CodecError::Malformed("no results, or beyond what comes next")),
    }
}

fn place(key: Vec<u8>, seq: u64) -> Result<Place, CodecError> {
    match Seq::try_from(seq) {
        Ok(seq) if seq > Seq::ZERO && (1..=MAX_KEY_BYTES).contains(&key.len()) => Ok((key, Reverse(seq))),
        _ => Err(CodecError::Malformed("a result's key or seq")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(key: &[u8], seq: i64, value: Option<&[u8]>) -> Item {
        Item { place: (key.to_vec(), Reverse(Seq::new(seq).unwrap())), value: value.map(<[u8]>::to_vec) }
    }

    fn items() -> Vec<Item> {
        vec![item(b"ab", 300, Some(b"xyz")), item(b"ab", 7, None), item(b"ac", 7, Some(b""))]
    }

    #[test]
    fn golden_bytes() {
        let bytes = encode(b"under", &items(), None);
        let plain = [&[0, 0, 2, b'a', b'b', 0xac, 2, 4, b'x', b'y', b'z'][..], &[2, 0, 7, 0], &[1, 1, b'c', 7, 1]];
        assert_eq!(bytes[5..], [&[123, 4, 151, 133, 0][..], &plain.concat()].concat());
        assert_eq!(decode(b"under", &bytes), Ok(Block { items: items(), next: None }));
        assert!(decode(b"other", &bytes).is_err());
        let next = item(b"b", 1, None).place;
        let bytes = encode(b"under", &items(), Some(&next));
        assert_eq!(bytes[10..14], [1, 1, b'b', 1]);
        assert_eq!(decode(b"under", &bytes), Ok(Block { items: items(), next: Some(next) }));
    }

    #[test]
    fn the_largest_result_comes_back() {
        let noise: Vec<u8> =
            (0..MAX_VALUE_BYTES as u64).map(|n| (n.wrapping_mul(0x5851_f42d_4c95_7f2d) >> 56) as u8).collect();
        let (largest, next) =
            (item(&[7; MAX_KEY_BYTES], i64::MAX, Some(&noise)), item(&[8; MAX_KEY_BYTES], 1, None).place);
        assert!(largest.weight() >= encode(b"k", std::slice::from_ref(&largest), None).len() - 10);
        let bytes = encode(b"k", std::slice::from_ref(&largest), Some(&next));
        assert_eq!(decode(b"k", &bytes), Ok(Block { items: vec![largest], next: Some(next) }));
    }

    #[test]
    fn malformed_bytes_are_errors_and_no_panics() {
        let sealed = encode(b"k", &items(), Some(&item(b"b", 1, None).place));
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(b"k", &flipped).is_err(), "bit {bit}");
        }
        let with = |plain: &[u8]| seal(VERSION, &[&crc32c::crc32c(b"k").to_le_bytes()[..], &[0], plain].concat());
        let plain = &sealed[10..];
        assert!(decode(b"k", &with(plain)).is_ok());
        for end in 0..plain.len() {
            let whole = end > 4 && decode(b"k", &with(&plain[..end])).is_ok_and(|block| block.items.len() < 3);
            assert!(whole || decode(b"k", &with(&plain[..end])).is_err(), "cut to {end}");
        }
        for plain in [&[0][..], &[2], &[0, 1, 1, b'a', 1, 0], &[0, 0, 1, b'a', 0, 0], &[0, 0, 0, 1, 0]] {
            assert!(decode(b"k", &with(plain)).is_err(), "{plain:?}");
        }
        // Out of order, twice, and beyond what comes next.
        let [a, b] = [item(b"a", 2, None), item(b"b", 1, None)];
        for (items, next) in
            [(vec![b.clone(), a.clone()], None), (vec![a.clone(), a.clone()], None), (vec![b], Some(&a.place))]
        {
            assert!(decode(b"k", &encode(b"k", &items, next)).is_err());
        }
    }
}
