//! Bytes under zstd where that is shorter: `0` and the bytes, or `1`, their length as a varint, and the zstd frame.

use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};

use super::CodecError;
use super::varint::{self, Reader};

/// Blocks are small, and written once and read often: a middling level costs 60 us a block and saves a few percent.
const LEVEL: i32 = 6;

thread_local! {
    // A context is a few hundred KiB; one a thread, made on first use.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Appends `bytes`, compressed if that is shorter.
pub fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    let compressed = COMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = Compressor::new(LEVEL).ok();
        }
        slot.as_mut().and_then(|compressor| compressor.compress(bytes).ok())
    });
    match compressed {
        Some(compressed) if compressed.len() + 4 < bytes.len() => {
            out.push(1);
            varint::put(out, bytes.len() as u64);
            out.extend_from_slice(&compressed);
        }
        _ => {
            out.push(0);
            out.extend_from_slice(bytes);
        }
    }
}

/// What [`put`] wrote; all of `reader` belongs to it. More than `limit` bytes are refused before they are made.
pub fn take(reader: &mut Reader<'_>, limit: u64) -> Result<Vec<u8>, CodecError> {
    let codec = reader.take_bytes(1)?[0];
    match codec {
        0 => Ok(reader.take_bytes(reader.rest().len() as u64)?.to_vec()),
        1 => {
            let bytes = reader.take()?;
            if bytes > limit {
                return Err(CodecError::TooLarge { bytes, limit });
            }
            let frame = reader.take_bytes(reader.rest().len() as u64)?;
            let plain = DECOMPRESSOR.with_borrow_mut(|slot| {
                if slot.is_none() {
                    *slot = Decompressor::new().ok();
                }
                slot.as_mut().and_then(|decompressor| decompressor.decompress(frame, bytes as usize).ok())
            });
            match plain {
                Some(plain) if plain.len() as u64 == bytes => Ok(plain),
                _ => Err(CodecError::Malformed("a zstd frame that is none")),
            }
        }
        _ => Err(CodecError::Malformed("an unknown compression")),
    }
}
