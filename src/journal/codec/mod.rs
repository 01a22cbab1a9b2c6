//! Bytes: the one place of each format. Every decoder checks a checksum first, trusts no length, and says what is wrong
//! instead of panicking.
//!
//! - numbers are in [`varint`];
//! - any one value (version, checksum, bincode) in [`value`];
//! - the results of a batch, in the log, in [`puts`]; those of many, as the store keeps them, in [`results`];
//! - one entry in the write-ahead log in [`record`], those of one frame in [`payload`];
//! - consecutive batches of one group, as columns, in [`block`];
//! - which offsets a block's batches read in [`spans`], which stand in front of its columns;
//! - a group's positions after an entry, as columns, in [`snapshot`];
//! - which group, and which of its entries, each seq belongs to, in [`seqs`].

pub mod block;
mod columns;
mod compress;
pub mod payload;
pub mod puts;
pub mod record;
pub mod results;
pub mod seqs;
pub mod snapshot;
pub mod spans;
pub mod value;
pub mod varint;

use serde::{Deserialize, Serialize};

use crate::entry::Batch;
use crate::offset::{Timestamp, TopicId, TopicName};

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

/// What the id of a topic stands for inside the journal: its name and its incarnation, so that each range knows which
/// one it was read from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Topic {
    /// Its name.
    pub name: TopicName,
    /// Kafka's id of it; none where the broker gave none.
    pub topic_id: Option<TopicId>,
}

impl Topic {
    /// The incarnation of `name` that `batch` was read from.
    pub fn of(batch: &Batch, name: &TopicName) -> Topic {
        Topic { name: name.clone(), topic_id: batch.topic_id(name) }
    }

    /// Adds the id to those of a batch, whose ranges come in order.
    fn add_to(&self, topic_ids: &mut Vec<(TopicName, TopicId)>) -> Result<(), CodecError> {
        let Some(id) = self.topic_id else { return Ok(()) };
        match topic_ids.last() {
            Some((name, known)) if *name == self.name && *known == id => {}
            Some((name, _)) if *name >= self.name => {
                return Err(CodecError::Malformed("two incarnations of a topic in one batch"));
            }
            _ => topic_ids.push((self.name.clone(), id)),
        }
        Ok(())
    }
}

/// The moment that `millis` are, if they can be one.
fn time(millis: i64) -> Result<Timestamp, CodecError> {
    let time = Timestamp::from_millis(millis);
    if time.millis() == millis { Ok(time) } else { Err(CodecError::Malformed("a time out of range")) }
}

/// Puts version and checksum before a body: version, crc32c over the rest (little-endian), body.
fn seal(version: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + 5);
    bytes.push(version);
    bytes.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// The body of [`seal`]ed bytes, checked.
fn unseal(known: u8, bytes: &[u8]) -> Result<&[u8], CodecError> {
    let Some((&[found, a, b, c, d], body)) = bytes.split_first_chunk::<5>() else {
        return Err(CodecError::Malformed("shorter than its head"));
    };
    if crc32c::crc32c(body) != u32::from_le_bytes([a, b, c, d]) {
        return Err(CodecError::Checksum);
    }
    if found != known {
        return Err(CodecError::Version { found, known });
    }
    Ok(body)
}
