//! The bytes of a segment: its header, its frames, its marks. The only place that knows them. All numbers are
//! little-endian.
//!
//! ```text
//! 0      header   magic 8, version 4, zero 4, segment number 8, first seq 8, size of the file 8, uuid 16, zero 4, crc32c 4
//! 4096   2 marks  each: durable seq 8, zero 4, crc32c 4; at 4096 and 4608, written in turn
//! 8192   frames   payload length 4, crc32c 4, crc32c of the frame before 4, kind 1, zero 1, count 2, first seq 8,
//!                 durable seq 8, payload; then zeros to the end of the file
//! ```
//!
//! The checksums of frames and marks begin with the header's, which covers the journal's uuid and the segment's number:
//! a frame of another journal or segment is none here, and no payload can be made to look like a frame. The first
//! frame's "crc32c of the frame before" is the header's.

use crate::offset::Seq;

/// The version in the header. Another one is refused.
pub const VERSION: u32 = 1;
/// Bytes of the header; it has a page of its own, as pages are what a power cut tears.
pub const HEADER_BYTES: usize = 64;
/// Where the marks stand, in a page of their own: they are overwritten while the log is in use, the header never is.
pub const MARKS_AT: [u64; 2] = [4096, 4096 + 512];
/// Bytes of a mark.
pub const MARK_BYTES: usize = 16;
/// Where the first frame begins.
pub const FRAMES_AT: u64 = 8192;
/// Bytes of a frame before its payload.
pub const FRAME_BYTES: usize = 32;
/// The largest payload, so that a damaged length can't ask for more memory than a segment of this size would.
pub const MAX_PAYLOAD: usize = 1 << 28;
/// The most entries in one frame.
pub const MAX_COUNT: usize = u16::MAX as usize;

const MAGIC: [u8; 8] = *b"tidewal\n";

/// What stands at the beginning of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The segment's number, one more than the one before.
    pub number: u64,
    /// The seq of the first entry that it holds or will hold.
    pub first_seq: Seq,
    /// The size of the file: a shorter one was cut.
    pub size: u64,
    /// The journal that it belongs to.
    pub uuid: [u8; 16],
}

/// Why a header can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadHeader {
    /// Not written by us, or damaged.
    Damaged(&'static str),
    /// Written by another version of this program.
    Version(u32),
}

impl Header {
    /// The bytes of the header; the last four are its checksum, with which the checksums of frames begin.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_seq.as_u64().to_le_bytes());
        bytes[32..40].copy_from_slice(&self.size.to_le_bytes());
        bytes[40..56].copy_from_slice(&self.uuid);
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header in these bytes, and its checksum.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<(Header, u32), BadHeader> {
        if bytes[0..8] != MAGIC {
            return Err(BadHeader::Damaged("no segment header"));
        }
        let crc = u32_at(bytes, 60);
        if crc32c::crc32c(&bytes[..60]) != crc {
            return Err(BadHeader::Damaged("the header's checksum does not match"));
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(BadHeader::Version(version));
        }
        let first_seq = Seq::try_from(u64_at(bytes, 24)).map_err(|_| BadHeader::Damaged("a seq out of range"))?;
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&bytes[40..56]);
        Ok((Header { number: u64_at(bytes, 16), first_seq, size: u64_at(bytes, 32), uuid }, crc))
    }
}

/// What a frame is there for. The numbers are part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Holds entries.
    Entries = 1,
    /// Empty; calls the last group durable.
    Idle = 2,
    /// Empty; the last of its segment: the next segment exists from here on.
    Closed = 3,
}

/// What stands before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Bytes of the payload.
    pub len: usize,
    /// Checksum over the frame.
    pub crc: u32,
    /// Checksum of the frame before.
    pub prev: u32,
    /// What it is there for.
    pub kind: Kind,
    /// How many entries the payload holds; all of them or none are there.
    pub count: u16,
    /// The seq of the first of them; of the next entry, where the frame holds none.
    pub first_seq: Seq,
    /// The last seq that was durable before the group of this frame was written.
    pub durable: Seq,
}

impl Frame {
    /// Appends the frame to `out` with its checksums; returns the frame's, the next one's `prev`.
    pub fn encode(
        out: &mut Vec<u8>,
        seed: u32,
        prev: u32,
        kind: Kind,
        seqs: (Seq, u16),
        durable: Seq,
        payload: &[u8],
    ) -> u32 {
        let (first_seq, count) = seqs;
        let len = u32::try_from(payload.len()).expect("a payload is at most MAX_PAYLOAD");
        let mut bytes = [0; FRAME_BYTES];
        bytes[0..4].copy_from_slice(&len.to_le_bytes());
        bytes[8..12].copy_from_slice(&prev.to_le_bytes());
        bytes[12] = kind as u8;
        bytes[14..16].copy_from_slice(&count.to_le_bytes());
        bytes[16..24].copy_from_slice(&first_seq.as_u64().to_le_bytes());
        bytes[24..32].copy_from_slice(&durable.as_u64().to_le_bytes());
        let crc = crc32c::crc32c_append(Frame::head_crc(seed, &bytes), payload);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&bytes);
        out.extend_from_slice(payload);
        crc
    }

    /// The frame head in these bytes, where they can be one with at most `room` bytes of payload; its checksum is not
    /// checked yet.
    pub fn decode(bytes: &[u8; FRAME_BYTES], room: u64) -> Option<Frame> {
        let kind = match bytes[12] {
            1 => Kind::Entries,
            2 => Kind::Idle,
            3 => Kind::Closed,
            _ => return None,
        };
        let len = u32_at(bytes, 0) as usize;
        let count = u16::from_le_bytes([bytes[14], bytes[15]]);
        let frame = Frame {
            len,
            crc: u32_at(bytes, 4),
            prev: u32_at(bytes, 8),
            kind,
            count,
            first_seq: Seq::try_from(u64_at(bytes, 16)).ok()?,
            durable: Seq::try_from(u64_at(bytes, 24)).ok()?,
        };
        let sane = len <= MAX_PAYLOAD
            && len as u64 <= room
            && bytes[13] == 0
            && (kind == Kind::Entries) == (count > 0)
            && frame.durable < frame.first_seq
            && frame.first_seq.as_u64() <= Seq::MAX.as_u64() - u64::from(count);
        sane.then_some(frame)
    }

    /// The checksum over a head, to be continued over its payload.
    pub fn head_crc(seed: u32, head: &[u8; FRAME_BYTES]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c_append(seed, &head[0..4]), &head[8..])
    }

    /// The seq after the frame's last.
    pub fn next_seq(&self) -> Seq {
        self.first_seq.plus(u64::from(self.count))
    }

    /// Bytes from this frame's beginning to the next one's.
    pub fn total(&self) -> u64 {
        (FRAME_BYTES + self.len) as u64
    }
}

/// The bytes of a mark: what was durable when it was written.
pub fn encode_mark(seed: u32, durable: Seq) -> [u8; MARK_BYTES] {
    let mut bytes = [0; MARK_BYTES];
    bytes[0..8].copy_from_slice(&durable.as_u64().to_le_bytes());
    let crc = crc32c::crc32c_append(seed, &bytes[..12]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The seq in a mark; none if it was torn, damaged or never written. A mark is evidence only, so that is no error.
pub fn decode_mark(seed: u32, bytes: &[u8; MARK_BYTES]) -> Option<Seq> {
    (crc32c::crc32c_append(seed, &bytes[..12]) == u32_at(bytes, 12)).then(|| Seq::try_from(u64_at(bytes, 0)).ok())?
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(n: u64) -> Seq {
        Seq::try_from(n).unwrap()
    }

    #[test]
    fn golden_bytes() {
        let header = Header { number: 7, first_seq: seq(300), size: 0x10_0000, uuid: *b"0123456789abcdef" };
        let bytes = header.encode();
        let (decoded, seed) = Header::decode(&bytes).unwrap();
        assert_eq!(decoded, header);
        assert_eq!(
            hex(&bytes),
            "7469646577616c0a 0100000000000000 0700000000000000 2c01000000000000 0000100000000000 3031323334353637 \
             3839616263646566 000000001a654e36"
        );
        let mut out = Vec::new();
        let crc = Frame::encode(&mut out, seed, seed, Kind::Entries, (seq(300), 2), seq(299), b"payload!");
        assert_eq!(hex(&out), "08000000a4c94aa1 1a654e3601000200 2c01000000000000 2b01000000000000 7061796c6f616421");
        let head: &[u8; FRAME_BYTES] = out[..FRAME_BYTES].try_into().unwrap();
        let frame = Frame::decode(head, 8).unwrap();
        assert_eq!((frame.crc, frame.next_seq(), frame.total()), (crc, seq(302), 40));
        assert_eq!(Frame::decode(head, 7), None, "a length beyond the file is no frame");
        assert_eq!(decode_mark(seed, &encode_mark(seed, seq(5))), Some(seq(5)));
        assert_eq!(decode_mark(seed ^ 1, &encode_mark(seed, seq(5))), None);
    }

    fn hex(bytes: &[u8]) -> String {
        let words: Vec<String> =
            bytes.chunks(8).map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
        words.join(" ")
    }
}
