//! The results of one batch, as they stand in the log and in the tail: puts in the order of their keys, each as the length
//! of its key, the key, then 0 where it removes, or the length of its value plus one and the value. And how the store
//! keeps them ([`encode_result`], [`encode_keys`]).

use super::varint::{self, Reader};
use super::{CodecError, compress, seal, unseal};
use crate::results::{MAX_KEY_BYTES, MAX_VALUE_BYTES, Puts};

const RESULT_VERSION: u8 = 1;
const KEYS_VERSION: u8 = 1;

/// Shorter values are not worth a try.
const COMPRESS_FROM: usize = 512;

/// One of them, borrowed from the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Put<'a> {
    /// Where it begins in the bytes.
    pub at: usize,
    /// Its key.
    pub key: &'a [u8],
    /// What stands there from now on; none: nothing.
    pub value: Option<&'a [u8]>,
}

/// The bytes of `puts`; none for none.
pub fn encode(puts: &Puts) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in puts.iter() {
        varint::put(&mut out, key.len() as u64);
        out.extend_from_slice(key);
        varint::put(&mut out, value.map_or(0, |value| value.len() as u64 + 1));
        out.extend_from_slice(value.unwrap_or_default());
    }
    out
}

/// The puts in `bytes`, one after the other; after an error it ends.
pub fn each(bytes: &[u8]) -> impl Iterator<Item = Result<Put<'_>, CodecError>> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(next..).filter(|rest| !rest.is_empty())?;
        let put = first(rest);
        let at = next;
        next = match &put {
            Ok((_, length)) => next + length,
            Err(_) => bytes.len(),
        };
        Some(put.map(|(put, _)| Put { at, ..put }))
    })
}

/// The put at the begin of `bytes`, and how many of them it takes.
pub fn first(bytes: &[u8]) -> Result<(Put<'_>, usize), CodecError> {
    let mut reader = Reader::new(bytes);
    let length = reader.take()?;
    if length == 0 || length > MAX_KEY_BYTES as u64 {
        return Err(CodecError::Malformed("a result's key"));
    }
    let key = reader.take_bytes(length)?;
    let value = match reader.take()? {
        0 => None,
        length if length > MAX_VALUE_BYTES as u64 + 1 => return Err(CodecError::Malformed("a result's value")),
        length => Some(reader.take_bytes(length - 1)?),
    };
    Ok((Put { at: 0, key, value }, bytes.len() - reader.rest().len()))
}

/// The store's record of a result: version, crc32c over the rest, crc32c of the key that it stands under, then 0 where it
/// is removed, or 1 and the value, compressed if that is shorter.
pub fn encode_result(under: &[u8], value: Option<&[u8]>) -> Vec<u8> {
    let mut body = crc32c::crc32c(under).to_le_bytes().to_vec();
    body.push(u8::from(value.is_some()));
    match value {
        Some(value) if value.len() >= COMPRESS_FROM => compress::put(&mut body, value),
        Some(value) => {
            body.push(0);
            body.extend_from_slice(value);
        }
        None => {}
    }
    seal(RESULT_VERSION, &body)
}

/// The value that [`encode_result`] put `under` that key; none where it is removed.
pub fn decode_result(under: &[u8], bytes: &[u8]) -> Result<Option<Vec<u8>>, CodecError> {
    let mut reader = Reader::new(unseal(RESULT_VERSION, bytes)?);
    if reader.take_bytes(4)? != crc32c::crc32c(under).to_le_bytes() {
        return Err(CodecError::Malformed("a result of another key"));
    }
    let value = match reader.take()? {
        0 => None,
        1 => Some(compress::take(&mut reader, MAX_VALUE_BYTES as u64)?),
        _ => return Err(CodecError::Malformed("a result that is neither put nor removed")),
    };
    reader.finish()?;
    Ok(value)
}

/// Which results a seal wrote: seqs and keys, in order. Version, crc32c over the rest, then of each: seq minus the one
/// before, how many bytes of the key before begin it, how many follow, and those.
#[derive(Debug, Default)]
pub struct Keys {
    body: Vec<u8>,
    seq: u64,
    key: Vec<u8>,
}

impl Keys {
    /// Adds one.
    pub fn push(&mut self, seq: u64, key: &[u8]) {
        let shared = self.key.iter().zip(key).take_while(|(a, b)| a == b).count();
        varint::put(&mut self.body, seq - self.seq);
        varint::put(&mut self.body, shared as u64);
        varint::put(&mut self.body, (key.len() - shared) as u64);
        self.body.extend_from_slice(&key[shared..]);
        self.seq = seq;
        self.key.clear();
        self.key.extend_from_slice(key);
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.body.len()
    }
}

/// The bytes of `keys`.
pub fn encode_keys(keys: &Keys) -> Vec<u8> {
    seal(KEYS_VERSION, &keys.body)
}

/// The seqs and keys that [`encode_keys`] wrote.
pub fn decode_keys(bytes: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, CodecError> {
    let mut reader = Reader::new(unseal(KEYS_VERSION, bytes)?);
    let mut keys: Vec<(u64, Vec<u8>)> = Vec::new();
    while !reader.is_empty() {
        let (seq, before) = keys.last().map_or((0, &[][..]), |(seq, key)| (*seq, key.as_slice()));
        let seq = seq.checked_add(reader.take()?).filter(|seq| (1..=i64::MAX as u64).contains(seq));
        let seq = seq.ok_or(CodecError::Malformed("a seq that can't be"))?;
        let shared = usize::try_from(reader.take()?).ok().and_then(|shared| before.get(..shared));
        let mut key = shared.ok_or(CodecError::Malformed("a key that shares what is not there"))?.to_vec();
        let rest = reader.take()?;
        key.extend_from_slice(reader.take_bytes(rest)?);
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            return Err(CodecError::Malformed("a result's key"));
        }
        keys.push((seq, key));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn puts() -> Puts {
        let mut puts = Puts::new();
        puts.put("ab", "xyz").unwrap();
        puts.put("a", "").unwrap();
        puts.remove([0, 255]).unwrap();
        puts
    }

    #[test]
    fn golden_bytes() {
        let bytes = encode(&puts());
        assert_eq!(bytes, [2, 0, 255, 0, 1, b'a', 1, 2, b'a', b'b', 4, b'x', b'y', b'z']);
        let read: Vec<_> = each(&bytes).map(Result::unwrap).collect();
        let (removed, empty) = (Put { at: 0, key: &[0, 255], value: None }, Put { at: 4, key: b"a", value: Some(b"") });
        assert_eq!(read, [removed, empty, Put { at: 7, key: b"ab", value: Some(b"xyz") }]);
        assert_eq!(each(&[]).count(), 0);

        let bytes = encode_result(b"under", Some(b"xyz"));
        assert_eq!(bytes[5..], [123, 4, 151, 133, 1, 0, b'x', b'y', b'z']);
        assert_eq!(decode_result(b"under", &bytes), Ok(Some(b"xyz".to_vec())));
        assert!(decode_result(b"other", &bytes).is_err());
        let bytes = encode_result(b"under", None);
        assert_eq!((bytes.len(), decode_result(b"under", &bytes)), (10, Ok(None)));

        let mut keys = Keys::default();
        [(7, &b"ab"[..]), (7, b"ac"), (300, b"ac"), (301, b"b")].into_iter().for_each(|(seq, key)| keys.push(seq, key));
        let bytes = encode_keys(&keys);
        assert_eq!(bytes[5..], [7, 0, 2, b'a', b'b', 0, 1, 1, b'c', 0xa5, 2, 2, 0, 1, 0, 1, b'b']);
        let read = decode_keys(&bytes).unwrap();
        let expected = [(7, b"ab".to_vec()), (7, b"ac".to_vec()), (300, b"ac".to_vec()), (301, b"b".to_vec())];
        assert_eq!(read, expected);
    }

    #[test]
    fn large_values_are_compressed_and_come_back() {
        for value in [vec![7; MAX_VALUE_BYTES], vec![7; COMPRESS_FROM - 1], vec![7; COMPRESS_FROM], (0..=255).collect()]
        {
            let bytes = encode_result(b"k", Some(&value));
            assert!(bytes.len() < 530);
            assert_eq!(decode_result(b"k", &bytes), Ok(Some(value)));
        }
    }

    #[test]
    fn malformed_bytes_are_errors_and_no_panics() {
        let whole = encode(&puts());
        for end in 1..whole.len() {
            let read: Vec<_> = each(&whole[..end]).collect();
            assert!([4, 7].contains(&end) || read.last().is_some_and(Result::is_err), "cut to {end}: {read:?}");
        }
        for lengths in [&[0][..], &[0x80, 2], &[1, b'a', 0x82, 0x80, 0x40]] {
            assert!(first(lengths).is_err(), "{lengths:?}");
        }
        let sealed = encode_result(b"k", Some(&[7; 500]));
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_result(b"k", &flipped).is_err(), "bit {bit}");
        }
        for body in [&[0, 0, 1, b'a'][..], &[1, 1, 1, b'a'], &[1, 0, 0], &[1, 0, 9, b'a'], &[1]] {
            assert!(decode_keys(&seal(KEYS_VERSION, body)).is_err(), "{body:?}");
        }
    }
}
