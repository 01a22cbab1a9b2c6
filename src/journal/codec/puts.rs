//! The results of one batch, as they stand in the log and in the tail: puts in the order of their keys, each as the length
//! of its key, the key, then 0 where it removes, or the length of its value plus one and the value.

use super::CodecError;
use super::varint::{self, Reader};
use crate::results::{MAX_KEY_BYTES, MAX_VALUE_BYTES, Puts};

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
    }
}
