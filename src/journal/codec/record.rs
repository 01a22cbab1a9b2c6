//! A record: one entry as the payload of a frame of the write-ahead log, and of the unsealed tail in memory.
//!
//! Names become ids on their first use in a segment, so a record is read with the [`Names`] of its segment. A name is
//! written as 0, then its text, where it is used first, and as its id plus one from then on. That of a topic stands for
//! one incarnation: behind its text is 0, or 1 and the 16 bytes of the topic id.
//!
//! - byte 0: the kind, 0 for a batch, 1 for any other, 2 for a batch with results: then their length and the results
//!   ([`puts`](super::puts)), which no reader of history looks at, come before the rest
//! - `recorded_at`; `machine_clock` minus it
//! - group (0 for none, else a name plus one), epoch
//! - a batch: number, batch time minus `recorded_at`, key (0, or length plus one and bytes), then ranges, notes, firsts,
//!   each as a count and as many; a range is topic, partition, `from_offset`, size
//! - any other: its body in bincode, to the end

use super::varint::{self, Reader};
use super::{CodecError, Topic};
use crate::commit::MAX_RANGES;
use crate::entry::{Batch, Body, Entry, First, Note, NoteKind};
use crate::offset::{
    BatchNumber, Epoch, Group, Offset, OffsetRange, Seq, Timestamp, TopicId, TopicName, TopicPartition,
};

const BATCH: u8 = 0;
const OTHER: u8 = 1;
const BATCH_WITH_RESULTS: u8 = 2;

/// The largest body that is no batch: a correction of 10,000 partitions, each with the longest name and its holes, has
/// about 10 MiB.
const MAX_BODY_BYTES: usize = 256 << 20;

/// The names of one segment, by their ids: groups and topics, in the order of their first use.
#[derive(Debug, Default)]
pub struct Names {
    groups: Table<Group>,
    topics: Table<Topic>,
}

#[derive(Debug)]
struct Table<N> {
    names: Vec<N>,
    ids: std::collections::HashMap<N, u32>,
}

impl<N> Default for Table<N> {
    fn default() -> Self {
        Table { names: Vec::new(), ids: std::collections::HashMap::new() }
    }
}

impl<N: Clone + Eq + std::hash::Hash> Table<N> {
    fn add(&mut self, name: N) -> u32 {
        let id = self.names.len() as u32;
        self.ids.insert(name.clone(), id);
        self.names.push(name);
        id
    }

    fn known(&self, id: u64) -> Result<&N, CodecError> {
        let index = usize::try_from(id).ok();
        index.and_then(|index| self.names.get(index)).ok_or(CodecError::Malformed("a name that nothing defined"))
    }
}

impl Names {
    fn put_group(&mut self, out: &mut Vec<u8>, group: Option<&Group>) {
        let Some(group) = group else { return varint::put(out, 0) };
        match self.groups.ids.get(group) {
            Some(id) => varint::put(out, u64::from(*id) + 2),
            None => {
                varint::put(out, 1);
                put_text(out, group.app());
                put_text(out, group.group());
                self.groups.add(group.clone());
            }
        }
    }

    fn put_topic(&mut self, out: &mut Vec<u8>, batch: &Batch, name: &TopicName) {
        let topic = Topic::of(batch, name);
        match self.topics.ids.get(&topic) {
            Some(id) => varint::put(out, u64::from(*id) + 1),
            None => {
                varint::put(out, 0);
                put_text(out, name.as_str());
                put_topic_id(out, topic.topic_id);
                self.topics.add(topic);
            }
        }
    }
}

/// How the names of a record are found: while a segment is read from its begin, or in one that was read before.
trait Resolve {
    fn group(&mut self, reader: &mut Reader<'_>) -> Result<Option<Group>, CodecError>;
    fn topic(&mut self, reader: &mut Reader<'_>) -> Result<Topic, CodecError>;
}

impl Resolve for &mut Names {
    fn group(&mut self, reader: &mut Reader<'_>) -> Result<Option<Group>, CodecError> {
        let group = (&**self).group(reader)?;
        if let Some(group) = group.as_ref().filter(|group| !self.groups.ids.contains_key(*group)) {
            self.groups.add(group.clone());
        }
        Ok(group)
    }

    fn topic(&mut self, reader: &mut Reader<'_>) -> Result<Topic, CodecError> {
        let topic = (&**self).topic(reader)?;
        if !self.topics.ids.contains_key(&topic) {
            self.topics.add(topic.clone());
        }
        Ok(topic)
    }
}

impl Resolve for &Names {
    fn group(&mut self, reader: &mut Reader<'_>) -> Result<Option<Group>, CodecError> {
        match reader.take()? {
            0 => Ok(None),
            1 => {
                let (app, group) = (take_text(reader)?, take_text(reader)?);
                Group::new(app, group).map(Some).map_err(|_| CodecError::Malformed("a group's name"))
            }
            id => self.groups.known(id - 2).cloned().map(Some),
        }
    }

    fn topic(&mut self, reader: &mut Reader<'_>) -> Result<Topic, CodecError> {
        match reader.take()? {
            0 => {
                let name = TopicName::new(take_text(reader)?);
                let name = name.map_err(|_| CodecError::Malformed("a topic's name"))?;
                Ok(Topic { name, topic_id: take_topic_id(reader)? })
            }
            id => self.topics.known(id - 1).cloned(),
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    varint::put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn take_text<'a>(reader: &mut Reader<'a>) -> Result<&'a str, CodecError> {
    let length = reader.take()?;
    std::str::from_utf8(reader.take_bytes(length)?).map_err(|_| CodecError::Malformed("text that is no UTF-8"))
}

fn put_topic_id(out: &mut Vec<u8>, id: Option<TopicId>) {
    out.push(u8::from(id.is_some()));
    if let Some(id) = id {
        out.extend_from_slice(id.as_bytes());
    }
}

fn take_topic_id(reader: &mut Reader<'_>) -> Result<Option<TopicId>, CodecError> {
    match reader.take()? {
        0 => Ok(None),
        1 => {
            let bytes = reader.take_bytes(16)?.try_into().map_err(|_| CodecError::Malformed("a topic id"))?;
            TopicId::from_bytes(bytes).map(Some).ok_or(CodecError::Malformed("the zero topic id"))
        }
        _ => Err(CodecError::Malformed("a topic id")),
    }
}

/// Appends the record of `entry` to `out`, with the results that a batch has ([`puts`](super::puts), or nothing); names
/// that are new to the segment are added to `names`.
pub fn encode(entry: &Entry, results: &[u8], names: &mut Names, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let batch = match &entry.body {
        Body::Batch(batch) => Some(batch),
        _ if results.is_empty() => None,
        _ => return Err(CodecError::Malformed("results of an entry that is no batch")),
    };
    match batch {
        Some(_) if results.is_empty() => out.push(BATCH),
        Some(_) => {
            out.push(BATCH_WITH_RESULTS);
            varint::put(out, results.len() as u64);
            out.extend_from_slice(results);
        }
        None => out.push(OTHER),
    }
    varint::put_signed(out, entry.recorded_at.millis());
    varint::put_signed(out, entry.machine_clock.millis() - entry.recorded_at.millis());
    names.put_group(out, entry.group.as_ref());
    varint::put(out, entry.epoch.as_u64());
    match batch {
        Some(batch) => put_batch(out, names, entry.recorded_at, batch),
        None => {
            let begin = out.len();
            bincode::serde::encode_into_std_write(&entry.body, out, bincode::config::standard())
                .map_err(|_| CodecError::Malformed("a body that bincode does not take"))?;
            let bytes = out.len() - begin;
            if bytes > MAX_BODY_BYTES {
                return Err(CodecError::TooLarge { bytes: bytes as u64, limit: MAX_BODY_BYTES as u64 });
            }
        }
    }
    Ok(())
}

fn put_batch(out: &mut Vec<u8>, names: &mut Names, recorded_at: Timestamp, batch: &Batch) {
    varint::put(out, batch.batch.as_u64());
    varint::put_signed(out, batch.batch_time.millis() - recorded_at.millis());
    match &batch.key {
        None => varint::put(out, 0),
        Some(key) => {
            varint::put(out, key.len() as u64 + 1);
            out.extend_from_slice(key.as_bytes());
        }
    }
    varint::put(out, batch.ranges.len() as u64);
    for range in &batch.ranges {
        names.put_topic(out, batch, range.topic());
        varint::put(out, u64::from(range.partition()));
        varint::put(out, range.from_offset().as_u64());
        varint::put(out, range.count());
    }
    varint::put(out, batch.notes.len() as u64);
    for note in &batch.notes {
        names.put_topic(out, batch, &note.topic);
        varint::put(out, u64::from(note.partition));
        varint::put(out, note_tag(note.note));
        varint::put(out, note.from_offset.as_u64());
        varint::put(out, note.until_offset.as_u64());
    }
    varint::put(out, batch.firsts.len() as u64);
    for first in &batch.firsts {
        names.put_topic(out, batch, &first.at.topic);
        varint::put(out, u64::from(first.at.partition));
        put_topic_id(out, first.topic_id);
        varint::put(out, first.earliest.map_or(0, |earliest| earliest.as_u64() + 1));
    }
}

fn note_tag(note: NoteKind) -> u64 {
    match note {
        NoteKind::Hole => 0,
        NoteKind::Overlap => 1,
        NoteKind::Late => 2,
        NoteKind::First => 3,
    }
}

/// Reads the record of entry `seq`, in the order of the segment: names that it defines are added to `names`.
pub fn decode(seq: Seq, bytes: &[u8], names: &mut Names) -> Result<Entry, CodecError> {
    read(seq, bytes, names)
}

/// Reads the record of entry `seq` of a segment whose `names` are known already.
pub fn decode_again(seq: Seq, bytes: &[u8], names: &Names) -> Result<Entry, CodecError> {
    read(seq, bytes, names)
}

/// The results in a record: where they begin, and their bytes, which may be none.
pub fn results(bytes: &[u8]) -> Result<(usize, &[u8]), CodecError> {
    let (_, results, reader) = begin(bytes)?;
    Ok((bytes.len() - reader.rest().len() - results.len(), results))
}

/// The kind, the results, and the rest of a record.
fn begin(bytes: &[u8]) -> Result<(u8, &[u8], Reader<'_>), CodecError> {
    let (kind, rest) = bytes.split_first().ok_or(CodecError::Malformed("an empty record"))?;
    let mut reader = Reader::new(rest);
    let results = match *kind {
        BATCH | OTHER => &[],
        BATCH_WITH_RESULTS => {
            let length = reader.take()?;
            reader.take_bytes(length)?
        }
        found => return Err(CodecError::Version { found, known: BATCH_WITH_RESULTS }),
    };
    Ok((*kind, results, reader))
}

fn read(seq: Seq, bytes: &[u8], mut names: impl Resolve) -> Result<Entry, CodecError> {
    let (kind, _, mut reader) = begin(bytes)?;
    let recorded_at = take_time(&mut reader, 0)?;
    let machine_clock = take_time(&mut reader, recorded_at.millis())?;
    let group = names.group(&mut reader)?;
    let epoch = Epoch::try_from(reader.take()?).map_err(|_| CodecError::Malformed("an epoch"))?;
    let body = match kind {
        OTHER => take_body(&mut reader)?,
        _ => Body::Batch(take_batch(&mut reader, &mut names, recorded_at)?),
    };
    reader.finish()?;
    Ok(Entry { seq, recorded_at, machine_clock, group, epoch, body })
}

fn take_body(reader: &mut Reader<'_>) -> Result<Body, CodecError> {
    let rest = reader.rest();
    let config = bincode::config::standard().with_limit::<MAX_BODY_BYTES>();
    let (body, length) = bincode::serde::decode_from_slice(rest, config)
        .map_err(|_| CodecError::Malformed("not the body of an entry"))?;
    reader.take_bytes(length as u64)?;
    Ok(body)
}

fn take_batch(reader: &mut Reader<'_>, names: &mut impl Resolve, recorded_at: Timestamp) -> Result<Batch, CodecError> {
    let batch = BatchNumber::try_from(reader.take()?).map_err(|_| CodecError::Malformed("a batch number"))?;
    let batch_time = take_time(reader, recorded_at.millis())?;
    let key = match reader.take()? {
        0 => None,
        length => {
            let bytes = reader.take_bytes(length - 1)?;
            Some(std::str::from_utf8(bytes).map_err(|_| CodecError::Malformed("a key"))?.to_owned())
        }
    };
    let mut topic_ids = Vec::new();
    let mut ranges = Vec::with_capacity(take_count(reader)?);
    for _ in 0..ranges.capacity() {
        let (topic, partition) = (names.topic(reader)?, reader.take_u32()?);
        let from = take_offset(reader)?;
        let size = reader.take()?;
        let until = from.as_u64().checked_add(size).and_then(|until| Offset::try_from(until).ok());
        let until = until.ok_or(CodecError::Malformed("a range's end"))?;
        topic.add_to(&mut topic_ids)?;
        let range = OffsetRange::new(topic.name, partition, from, until);
        ranges.push(range.map_err(|_| CodecError::Malformed("a range"))?);
    }
    let mut notes = Vec::with_capacity(take_count(reader)?);
    for _ in 0..notes.capacity() {
        let (topic, partition) = (names.topic(reader)?.name, reader.take_u32()?);
        let note = match reader.take()? {
            0 => NoteKind::Hole,
            1 => NoteKind::Overlap,
            2 => NoteKind::Late,
            3 => NoteKind::First,
            _ => return Err(CodecError::Malformed("a note's kind")),
        };
        let (from_offset, until_offset) = (take_offset(reader)?, take_offset(reader)?);
        notes.push(Note { topic, partition, note, from_offset, until_offset });
    }
    let mut firsts = Vec::with_capacity(take_count(reader)?);
    for _ in 0..firsts.capacity() {
        let at = TopicPartition::new(names.topic(reader)?.name, reader.take_u32()?);
        let topic_id = take_topic_id(reader)?;
        let earliest = match reader.take()? {
            0 => None,
            next => Some(Offset::try_from(next - 1).map_err(|_| CodecError::Malformed("an offset"))?),
        };
        firsts.push(First { at, topic_id, earliest });
    }
    Ok(Batch { batch, batch_time, key, ranges, notes, firsts, topic_ids })
}

/// How many follow: never more than a batch may have, nor than bytes are left, so that it is safe to make room for them.
fn take_count(reader: &mut Reader<'_>) -> Result<usize, CodecError> {
    let count = usize::try_from(reader.take()?).ok();
    let possible = count.filter(|count| *count <= MAX_RANGES && *count <= reader.rest().len());
    possible.ok_or(CodecError::Malformed("more ranges, notes or firsts than there can be"))
}

fn take_offset(reader: &mut Reader<'_>) -> Result<Offset, CodecError> {
    Offset::try_from(reader.take()?).map_err(|_| CodecError::Malformed("an offset"))
}

fn take_time(reader: &mut Reader<'_>, base: i64) -> Result<Timestamp, CodecError> {
    let millis = base.checked_add(reader.take_signed()?);
    let legal = millis.filter(|millis| (0..=Timestamp::MAX_MILLIS).contains(millis));
    legal.map(Timestamp::from_millis).ok_or(CodecError::Malformed("a time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(number: i64) -> Offset {
        Offset::new(number).unwrap()
    }

    fn batch(seq: i64) -> Entry {
        let topic = TopicName::new("orders").unwrap();
        let range =
            |partition, from, until| OffsetRange::new(topic.clone(), partition, offset(from), offset(until)).unwrap();
        let at = TopicPartition::new(topic.clone(), 1);
        let note = Note {
            topic: topic.clone(),
            partition: 1,
            note: NoteKind::First,
            from_offset: offset(5),
            until_offset: offset(300),
        };
        Entry {
            seq: Seq::new(seq).unwrap(),
            recorded_at: Timestamp::from_millis(1_000),
            machine_clock: Timestamp::from_millis(998),
            group: Some(Group::new("default", "g").unwrap()),
            epoch: Epoch::new(3).unwrap(),
            body: Body::Batch(Batch {
                batch: BatchNumber::new(7).unwrap(),
                batch_time: Timestamp::from_millis(900),
                key: Some("k".into()),
                ranges: vec![range(0, 500, 542), range(1, 5, 300)],
                notes: vec![note],
                firsts: vec![First { at, topic_id: TopicId::from_bytes([9; 16]), earliest: Some(offset(2)) }],
                topic_ids: TopicId::from_bytes([8; 16]).map(|id| (topic.clone(), id)).into_iter().collect(),
            }),
        }
    }

    fn mark() -> Entry {
        let body = Body::Mark { name: "m".into(), actor: "ops".into() };
        Entry { body, seq: Seq::new(2).unwrap(), ..batch(2) }
    }

    fn check(entry: &Entry, names: &mut Names, golden: &[u8]) {
        let mut bytes = Vec::new();
        encode(entry, &[], names, &mut bytes).unwrap();
        assert_eq!(bytes, golden);
    }

    #[test]
    fn golden_bytes() {
        let mut names = Names::default();
        let first: Vec<u8> = [
            &[0, 0xd0, 0x0f, 3, 1, 7][..],
            b"default",
            &[1, b'g', 3, 7, 0xc7, 1, 2, b'k', 2],
            &[0, 6],
            b"orders",
            &[1],
            &[8; 16],
            &[0, 0xf4, 3, 42, 1, 1, 5, 0xa7, 2],
            &[1, 1, 1, 3, 5, 0xac, 2],
            &[1, 1, 1, 1],
            &[9; 16],
            &[3],
        ]
        .concat();
        check(&batch(1), &mut names, &first);
        check(&mark(), &mut names, &[1, 0xd0, 0x0f, 3, 2, 3, 9, 1, b'm', 3, b'o', b'p', b's']);

        let mut read = Names::default();
        assert_eq!(decode(Seq::new(1).unwrap(), &first, &mut read), Ok(batch(1)));
        // Once the names are known, the record that defines them is read again like any other.
        assert_eq!(decode_again(Seq::new(1).unwrap(), &first, &read), Ok(batch(1)));
        let mut second = Vec::new();
        encode(&batch(3), &[], &mut names, &mut second).unwrap();
        assert!(second.len() < first.len() - 10);
        assert_eq!(decode_again(Seq::new(3).unwrap(), &second, &read), Ok(batch(3)));
        assert!(decode_again(Seq::new(3).unwrap(), &second, &Names::default()).is_err());
    }

    #[test]
    fn results_stand_in_front_and_history_reads_past_them() {
        let (mut names, mut plain, mut bytes) = (Names::default(), Vec::new(), Vec::new());
        encode(&batch(1), &[], &mut Names::default(), &mut plain).unwrap();
        encode(&batch(1), &[1, b'k', 2, b'v'], &mut names, &mut bytes).unwrap();
        assert_eq!(bytes, [&[2, 4, 1, b'k', 2, b'v'], &plain[1..]].concat());
        assert_eq!(decode_again(Seq::new(1).unwrap(), &bytes, &names), Ok(batch(1)));
        assert_eq!(results(&bytes), Ok((2, &[1, b'k', 2, b'v'][..])));
        assert_eq!(results(&plain), Ok((1, &[][..])));
        assert!(encode(&mark(), &[1], &mut names, &mut bytes).is_err());
        assert!(results(&[2, 9, 0]).is_err());
        assert!(results(&[3, 0]).is_err());
    }

    #[test]
    fn malformed_records_are_errors_and_no_panics() {
        let mut names = Names::default();
        for entry in [batch(1), mark()] {
            let mut bytes = Vec::new();
            encode(&entry, &[], &mut names, &mut bytes).unwrap();
            for end in 0..bytes.len() {
                assert!(decode_again(entry.seq, &bytes[..end], &names).is_err(), "cut to {end}");
            }
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                // The frame's checksum finds a flip; here it must only not panic, nor take memory.
                let _ = decode_again(entry.seq, &flipped, &names);
            }
            bytes.push(0);
            assert!(decode_again(entry.seq, &bytes, &names).is_err(), "a trailing byte");
        }
        let mut huge = vec![0, 0, 0, 0, 0, 1, 0, 0];
        varint::put(&mut huge, 1 << 62);
        assert!(decode_again(Seq::new(1).unwrap(), &huge, &names).is_err());
    }
}
