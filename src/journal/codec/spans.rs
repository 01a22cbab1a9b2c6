//! What a block says of each of its topic-partitions: which offsets its batches read. Small, and readable without the
//! block's columns: whoever looks for an offset goes by it.
//!
//! Length, then the [`columns`]: the table, the lowest `from_offset`, the highest `until_offset` minus that, and the
//! highest `until_offset` of all blocks before minus it: zero, where nothing unusual happened.

use super::CodecError;
use super::columns::{self, Columns};
use super::varint::{self, Reader};

/// 100,000 partitions have less.
const MAX_PLAIN_BYTES: u64 = 4 << 20;

/// Topic id and count of partitions, for each incarnation of a topic.
const TOPICS: usize = 0;
/// Of each partition, as all others: its number minus the one before, minus one.
const PARTITION: usize = 1;
/// The lowest `from_offset`.
const LOW: usize = 2;
/// The highest `until_offset`, minus that.
const SIZE: usize = 3;
/// Before this block, minus the lowest `from_offset`.
const BEFORE: usize = 4;
const COLUMNS: usize = 5;

/// Columns that are left empty where they hold zeros only.
const ELIDED: [usize; 2] = [PARTITION, BEFORE];

/// What was read of one topic-partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The lowest `from_offset` in this block.
    pub low: u64,
    /// The highest `until_offset` in this block.
    pub high: u64,
    /// The highest `until_offset` in all blocks before this one, over all incarnations of the topic; 0 in the first.
    pub before: u64,
}

/// Appends spans, each with the id of its topic and its partition, in the order of topics and partitions.
pub fn put(out: &mut Vec<u8>, spans: &[(u32, u32, Span)]) -> Result<(), CodecError> {
    let mut columns: [Vec<u8>; COLUMNS] = Default::default();
    for of_topic in spans.chunk_by(|a, b| a.0 == b.0) {
        varint::put(&mut columns[TOPICS], u64::from(of_topic[0].0));
        varint::put(&mut columns[TOPICS], of_topic.len() as u64);
        let mut next = 0;
        for (_, partition, Span { low, high, before }) in of_topic {
            varint::put(&mut columns[PARTITION], u64::from(*partition) - next);
            next = u64::from(*partition) + 1;
            varint::put(&mut columns[LOW], *low);
            varint::put(&mut columns[SIZE], high - low);
            varint::put_signed(&mut columns[BEFORE], *before as i64 - *low as i64);
        }
    }
    let mut bytes = Vec::with_capacity(16 * spans.len() + 16);
    columns::put(&mut bytes, columns, &ELIDED, MAX_PLAIN_BYTES)?;
    varint::put(out, bytes.len() as u64);
    out.extend_from_slice(&bytes);
    Ok(())
}

/// The spans that [`put`] wrote, one after the other: topic id, partition, span; after an error it ends.
#[derive(Debug)]
pub struct Spans {
    columns: Columns<COLUMNS>,
    topic: u32,
    /// Partitions of the topic that are still to come.
    left: u64,
    next: u64,
    ended: bool,
}

impl Spans {
    /// Takes them off the front.
    pub fn take(reader: &mut Reader<'_>) -> Result<Spans, CodecError> {
        let length = reader.take()?;
        let mut own = Reader::new(reader.take_bytes(length)?);
        let columns = Columns::take(&mut own, &ELIDED, MAX_PLAIN_BYTES)?;
        Ok(Spans { columns, topic: 0, left: 0, next: 0, ended: false })
    }

    fn take_one(&mut self) -> Result<Option<(u32, u32, Span)>, CodecError> {
        while self.left == 0 {
            if self.columns.is_empty(TOPICS) {
                return self.columns.finish().map(|()| None);
            }
            (self.topic, self.left) = self.columns.read(TOPICS, |reader| Ok((reader.take_u32()?, reader.take()?)))?;
            self.next = 0;
        }
        self.left -= 1;
        let partition = self.columns.number(PARTITION)?.checked_add(self.next);
        let partition = partition.and_then(|number| u32::try_from(number).ok());
        let partition = partition.ok_or(CodecError::Malformed("a partition that can't be"))?;
        self.next = u64::from(partition) + 1;
        let low = offset(Some(self.columns.number(LOW)?))?;
        let high = offset(low.checked_add(self.columns.number(SIZE)?))?;
        let before = offset(low.checked_add_signed(self.columns.signed(BEFORE)?))?;
        Ok(Some((self.topic, partition, Span { low, high, before })))
    }
}

impl Iterator for Spans {
    type Item = Result<(u32, u32, Span), CodecError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let taken = self.take_one();
        self.ended = !matches!(taken, Ok(Some(_)));
        taken.transpose()
    }
}

fn offset(number: Option<u64>) -> Result<u64, CodecError> {
    number.filter(|number| *number <= i64::MAX as u64).ok_or(CodecError::Malformed("an offset that can't be"))
}
