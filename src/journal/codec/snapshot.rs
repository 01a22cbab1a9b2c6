//! A snapshot: the positions of a group after one of its entries, as columns, so that 10,000 partitions are read in a
//! fraction of a millisecond.
//!
//! Version, crc32c over the rest, group, seq, `recorded_at`, last entry that is no batch, newest batch, then the
//! [`columns`]: the topics, then one column for each field of their partitions, in the order of topics and partitions.

use std::collections::BTreeMap;

use super::columns::{self, Columns};
use super::varint::{self, Reader};
use super::{CodecError, seal, unseal};
use crate::entry::Hole;
use crate::offset::{BatchNumber, Offset, Seq, Timestamp, TopicId, TopicName};
use crate::positions::{PartitionState, Positions, TopicState};

const VERSION: u8 = 1;

/// 100,000 partitions, each with holes, have less.
const MAX_PLAIN_BYTES: u64 = 32 << 20;

/// Of each topic: length and text of the name, topic id, incarnation, 0 or 1 if it is retired, former ids (a count, and
/// as many), count of partitions. A topic id is 0, or 1 and 16 bytes; a former one is 16 bytes.
const TOPICS: usize = 0;
/// Of each partition, as all others: its number minus the one before, minus one.
const NUMBER: usize = 1;
/// The position.
const POSITION: usize = 2;
/// The first position.
const FIRST: usize = 3;
/// The newest batch minus the partition's newest, or plus one where it has none.
const BATCH: usize = 4;
/// Where it has one: the time of that batch minus the time before in this column.
const BATCH_TIME: usize = 5;
/// 0, or the end of a replay plus one.
const REPLAYING: usize = 6;
/// How many holes.
const HOLE_COUNT: usize = 7;
/// Of each hole: begin, size, seq.
const HOLES: usize = 8;
const COUNT: usize = 9;

/// Columns that are left empty where they hold zeros only.
const ELIDED: [usize; 6] = [NUMBER, FIRST, BATCH, BATCH_TIME, REPLAYING, HOLE_COUNT];

/// A group's positions after an entry of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The group's id in the store.
    pub group: u32,
    /// The entry.
    pub seq: Seq,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// The newest entry that is no batch, up to there; 0 if there is none.
    pub last_other: Seq,
    /// The positions.
    pub positions: Positions,
}

/// The bytes of `snapshot`.
///
/// # Errors
///
/// If a partition's newest batch is not one of the group, or has no time.
pub fn encode(snapshot: &Snapshot) -> Result<Vec<u8>, CodecError> {
    let Snapshot { group, seq, recorded_at, last_other, positions } = snapshot;
    let mut body = Vec::with_capacity(1024);
    varint::put(&mut body, u64::from(*group));
    varint::put(&mut body, seq.as_u64());
    varint::put_signed(&mut body, recorded_at.millis());
    varint::put(&mut body, last_other.as_u64());
    varint::put(&mut body, positions.batch.as_u64());
    let mut columns: [Vec<u8>; COUNT] = Default::default();
    let mut time = 0;
    for (name, topic) in &positions.topics {
        put_topic(&mut columns[TOPICS], name, topic);
        let mut next = 0;
        for (number, partition) in &topic.partitions {
            varint::put(&mut columns[NUMBER], u64::from(*number) - next);
            next = u64::from(*number) + 1;
            put_partition(&mut columns, positions.batch, &mut time, partition)?;
        }
    }
    columns::put(&mut body, columns, &ELIDED, MAX_PLAIN_BYTES)?;
    Ok(seal(VERSION, &body))
}

fn put_topic(out: &mut Vec<u8>, name: &TopicName, topic: &TopicState) {
    varint::put(out, name.as_str().len() as u64);
    out.extend_from_slice(name.as_str().as_bytes());
    out.push(u8::from(topic.topic_id.is_some()));
    if let Some(id) = topic.topic_id {
        out.extend_from_slice(id.as_bytes());
    }
    varint::put(out, u64::from(topic.incarnation));
    out.push(u8::from(topic.retired));
    varint::put(out, topic.former_ids.len() as u64);
    topic.former_ids.iter().for_each(|id| out.extend_from_slice(id.as_bytes()));
    varint::put(out, topic.partitions.len() as u64);
}

fn put_partition(
    columns: &mut [Vec<u8>; COUNT],
    newest: BatchNumber,
    time: &mut i64,
    partition: &PartitionState,
) -> Result<(), CodecError> {
    let PartitionState { position, first_position, holes, replaying_until, last_batch, last_batch_time } = partition;
    varint::put(&mut columns[POSITION], position.as_u64());
    varint::put(&mut columns[FIRST], first_position.as_u64());
    let back = match (last_batch, last_batch_time) {
        (None, None) => newest.as_u64() + 1,
        (Some(batch), Some(at)) => {
            varint::put_signed(&mut columns[BATCH_TIME], at.millis() - *time);
            *time = at.millis();
            newest.as_u64().checked_sub(batch.as_u64()).ok_or(CodecError::Malformed("a batch that is not there yet"))?
        }
        (Some(_), None) | (None, Some(_)) => return Err(CodecError::Malformed("a batch without its time")),
    };
    varint::put(&mut columns[BATCH], back);
    varint::put(&mut columns[REPLAYING], replaying_until.map_or(0, |until| until.as_u64() + 1));
    varint::put(&mut columns[HOLE_COUNT], holes.len() as u64);
    for Hole { from_offset, until_offset, seq } in holes {
        varint::put(&mut columns[HOLES], from_offset.as_u64());
        varint::put(&mut columns[HOLES], until_offset.since(*from_offset));
        varint::put(&mut columns[HOLES], seq.as_u64());
    }
    Ok(())
}

/// The snapshot that [`encode`] wrote; all bytes must belong to it.
pub fn decode(bytes: &[u8]) -> Result<Snapshot, CodecError> {
    let mut reader = Reader::new(unseal(VERSION, bytes)?);
    let (group, seq) = (reader.take_u32()?, seq(reader.take()?)?);
    let recorded_at = super::time(reader.take_signed()?)?;
    let last_other = self::seq(reader.take()?)?;
    let batch = BatchNumber::try_from(reader.take()?).map_err(|_| CodecError::Malformed("a batch that can't be"))?;
    let mut columns = Columns::<COUNT>::take(&mut reader, &ELIDED, MAX_PLAIN_BYTES)?;
    let mut topics = BTreeMap::new();
    let mut time = 0;
    while !columns.is_empty(TOPICS) {
        let (name, mut topic, count) = columns.read(TOPICS, take_topic)?;
        let mut next = 0;
        // No more is made room for than there are bytes.
        let mut partitions = Vec::with_capacity(count.min(columns.left(POSITION)));
        for _ in 0..count {
            let number = columns.number(NUMBER)?.checked_add(next).and_then(|number| u32::try_from(number).ok());
            let number = number.ok_or(CodecError::Malformed("a partition that can't be"))?;
            next = u64::from(number) + 1;
            partitions.push((number, take_partition(&mut columns, batch, &mut time)?));
        }
        topic.partitions = partitions.into_iter().collect();
        if topics.last_key_value().is_some_and(|(before, _)| *before >= name) {
            return Err(CodecError::Malformed("topics that are not ordered"));
        }
        topics.insert(name, topic);
    }
    columns.finish()?;
    Ok(Snapshot { group, seq, recorded_at, last_other, positions: Positions { batch, topics } })
}

/// A topic without its partitions, and how many those are.
fn take_topic(reader: &mut Reader<'_>) -> Result<(TopicName, TopicState, usize), CodecError> {
    let length = reader.take()?;
    let name = std::str::from_utf8(reader.take_bytes(length)?).ok().and_then(|name| TopicName::new(name).ok());
    let name = name.ok_or(CodecError::Malformed("a topic's name"))?;
    let topic_id = match reader.take()? {
        0 => None,
        1 => Some(take_id(reader)?),
        _ => return Err(CodecError::Malformed("a topic id")),
    };
    let (incarnation, retired) = (reader.take_u32()?, reader.take()? == 1);
    let former = reader.take()?;
    let former_ids = (0..former).map(|_| take_id(reader)).collect::<Result<_, _>>()?;
    let count =
        usize::try_from(reader.take()?).map_err(|_| CodecError::Malformed("more partitions than there can be"))?;
    Ok((name, TopicState { topic_id, incarnation, former_ids, retired, partitions: BTreeMap::new() }, count))
}

fn take_id(reader: &mut Reader<'_>) -> Result<TopicId, CodecError> {
    let bytes = reader.take_bytes(16)?.try_into().map_err(|_| CodecError::Malformed("a topic id"))?;
    TopicId::from_bytes(bytes).ok_or(CodecError::Malformed("the zero topic id"))
}

fn take_partition(
    columns: &mut Columns<COUNT>,
    newest: BatchNumber,
    time: &mut i64,
) -> Result<PartitionState, CodecError> {
    let position = offset(columns.number(POSITION)?)?;
    let first_position = offset(columns.number(FIRST)?)?;
    let back = columns.number(BATCH)?;
    let (mut last_batch, mut last_batch_time) = (None, None);
    if let Some(batch) = newest.as_u64().checked_sub(back) {
        last_batch = BatchNumber::try_from(batch).ok();
        *time = time.wrapping_add(columns.signed(BATCH_TIME)?);
        last_batch_time = Some(super::time(*time)?);
    }
    let replaying_until = columns.number(REPLAYING)?.checked_sub(1).map(offset).transpose()?;
    let mut holes = Vec::new();
    for _ in 0..columns.number(HOLE_COUNT)? {
        let from_offset = offset(columns.number(HOLES)?)?;
        let until = from_offset.as_u64().checked_add(columns.number(HOLES)?);
        let until_offset = offset(until.ok_or(CodecError::Malformed("an offset that can't be"))?)?;
        holes.push(Hole { from_offset, until_offset, seq: seq(columns.number(HOLES)?)? });
    }
    Ok(PartitionState { position, first_position, holes, replaying_until, last_batch, last_batch_time })
}

fn offset(number: u64) -> Result<Offset, CodecError> {
    Offset::try_from(number).map_err(|_| CodecError::Malformed("an offset that can't be"))
}

fn seq(number: u64) -> Result<Seq, CodecError> {
    Seq::try_from(number).map_err(|_| CodecError::Malformed("a seq that can't be"))
}

#[cfg(test)]
mod tests;
