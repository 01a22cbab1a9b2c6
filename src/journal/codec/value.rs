//! One value: version, crc32c over the rest, then bincode (little-endian, varints), compressed where that is shorter.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::varint::Reader;
use super::{CodecError, compress, seal, unseal};

const VERSION: u8 = 1;

/// The largest value, before compression: far above the state of the largest group (100,000 remembered ranges, 10,000
/// partitions, each with the longest names), far below what would hurt.
pub const MAX_BYTES: usize = 128 << 20;

/// Shorter values are not worth a try.
const COMPRESS_FROM: usize = 128;

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<MAX_BYTES>()
}

/// The bytes of `value`.
///
/// # Errors
///
/// If it has more than [`MAX_BYTES`]: it could not be read back.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, CodecError> {
    let plain = bincode::serde::encode_to_vec(value, config())
        .map_err(|_| CodecError::Malformed("a value that bincode does not take"))?;
    if plain.len() > MAX_BYTES {
        return Err(CodecError::TooLarge { bytes: plain.len() as u64, limit: MAX_BYTES as u64 });
    }
    let mut body = Vec::with_capacity(plain.len() + 1);
    if plain.len() < COMPRESS_FROM {
        body.push(0);
        body.extend_from_slice(&plain);
    } else {
        compress::put(&mut body, &plain);
    }
    Ok(seal(VERSION, &body))
}

/// The value that [`encode`] wrote; all bytes must belong to it.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let mut reader = Reader::new(unseal(VERSION, bytes)?);
    let plain = compress::take(&mut reader, MAX_BYTES as u64)?;
    let (value, length) = bincode::serde::decode_from_slice(&plain, config())
        .map_err(|_| CodecError::Malformed("not the value that belongs here"))?;
    if length != plain.len() {
        return Err(CodecError::Malformed("longer than its content"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let bytes = encode(&(7u64, "abc".to_owned(), -1i64)).unwrap();
        assert_eq!(bytes, [1, 0xbc, 0xe0, 0xdc, 0xfb, 0, 7, 3, b'a', b'b', b'c', 1]);
        assert_eq!(decode::<(u64, String, i64)>(&bytes), Ok((7, "abc".to_owned(), -1)));
    }

    #[test]
    fn each_flipped_bit_is_an_error() {
        let bytes = encode(&"x".repeat(1000)).unwrap();
        assert!(bytes.len() < 100);
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode::<String>(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_length_of_2_to_the_62_is_an_error_and_no_abort() {
        // A sealed body whose string claims 2^62 bytes, and one whose zstd frame does.
        let mut body = vec![0, 253];
        body.extend((1u64 << 62).to_le_bytes());
        assert!(decode::<String>(&seal(VERSION, &body)).is_err());
        assert!(decode::<Vec<u64>>(&seal(VERSION, &body)).is_err());
        let mut body = vec![1];
        super::super::varint::put(&mut body, 1 << 62);
        assert!(matches!(decode::<String>(&seal(VERSION, &body)), Err(CodecError::TooLarge { .. })));
    }

    #[test]
    fn a_rest_and_a_later_version_are_errors() {
        let bytes = seal(VERSION, &[0, 7, 7]);
        assert!(matches!(decode::<u64>(&bytes), Err(CodecError::Malformed(_))));
        let bytes = seal(2, &[0, 7]);
        assert_eq!(decode::<u64>(&bytes), Err(CodecError::Version { found: 2, known: 1 }));
    }
}
