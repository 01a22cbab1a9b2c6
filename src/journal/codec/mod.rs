//! Bytes: the one place of each format. Every decoder checks a checksum first, trusts no length, and says what is wrong
//! instead of panicking.
//!
//! - [`varint`]: numbers.

pub mod record;
pub mod varint;

/// Why bytes are not what they should be, or can't be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The bytes are not those that were written.
    #[error("checksum mismatch")]
    Checksum,
    /// A later version of tidelog wrote them.
    #[error("format version {found}; this tidelog knows up to {known}")]
    Version {
        /// The version of the bytes.
        found: u8,
        /// The newest that this program reads.
        known: u8,
    },
    /// They end too early, go on too long, or hold a number that can't be.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// The value is larger than a reader would accept.
    #[error("{bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// What is accepted.
        limit: u64,
    },
}
