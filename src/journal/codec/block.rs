//! A block: consecutive batches of one group, as columns.
//!
//! Version, crc32c over the rest, head (group, first batch, count, first seq, first recorded_at), the [`spans`], then the
//! [`columns`], in the order of the constants below. A block can be read without any other, and head and spans without
//! the columns.
//!
//! Topic-partitions, those of each incarnation of a topic by themselves, are named by their place among the spans,
//! which are ordered as ranges are; each batch says which places it has as runs, or that they are those of the batch
//! before. `from_offset` is kept minus the highest `until_offset` so far of its partition in this block, at first minus
//! the lowest `from_offset`: zero, where nothing unusual happened.

use std::collections::BTreeSet;

use super::columns::{self, Columns};
use super::spans::{self, Span, Spans};
use super::varint::{self, Reader};
use super::{CodecError, Topic, seal, time, unseal};
use crate::entry::{Batch, Body, Entry, First, Note, NoteKind};
use crate::offset::{
    BatchNumber, Epoch, Group, Offset, OffsetRange, Seq, Timestamp, TopicId, TopicName, TopicPartition,
};

const VERSION: u8 = 1;

/// A batch of 100,000 ranges, each with a note and a first, has about 6 MiB before compression.
const MAX_PLAIN_BYTES: u64 = 32 << 20;

/// Minus the seq before, minus one.
const SEQ: usize = 0;
/// Minus the batch time before.
const BATCH_TIME: usize = 1;
/// `recorded_at` minus batch time.
const LAG: usize = 2;
/// `machine_clock` minus `recorded_at`.
const MACHINE: usize = 3;
/// Pairs: minus the epoch before, and how many more batches have it.
const EPOCH: usize = 4;
/// 0: the places of the batch before; else the number of runs plus one.
const RUNS: usize = 5;
/// Of each run: places left out before it.
const RUN_GAP: usize = 6;
/// Of each run: places in it, minus one.
const RUN_LENGTH: usize = 7;
/// Of each range: see above.
const FROM: usize = 8;
/// Of each range: `until_offset` minus `from_offset`.
const SIZE: usize = 9;
/// Of each batch: 0 without a key, else its length plus one.
const KEY_LENGTH: usize = 10;
/// The bytes of the keys.
const KEYS: usize = 11;
/// Of each batch: its notes.
const NOTE_COUNT: usize = 12;
/// Of each note: place, kind, both ends minus the `from_offset` of the batch's range there (or 0).
const NOTES: usize = 13;
/// Of each batch: its firsts.
const FIRST_COUNT: usize = 14;
/// Of each first: place, 0 or 1 and the 16 bytes of the topic id, 0 or earliest plus one.
const FIRSTS: usize = 15;
const COLUMNS: usize = 16;

/// Columns that are left empty where they hold zeros only. None of them may bound how much a reader makes.
const ELIDED: [usize; 9] = [SEQ, BATCH_TIME, LAG, MACHINE, RUNS, FROM, KEY_LENGTH, NOTE_COUNT, FIRST_COUNT];

/// Batches of a block: more never pay, and a reader knows when to stop.
pub const MAX_BATCHES: usize = 8192;

/// What a block says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The group's id in the store.
    pub group: u32,
    /// The first batch.
    pub first_batch: u64,
    /// How many batches: at least one.
    pub count: u64,
    /// The first batch's entry.
    pub first_seq: Seq,
    /// When the first batch was recorded.
    pub first_recorded_at: Timestamp,
}

impl Head {
    /// The last batch.
    pub fn last_batch(&self) -> u64 {
        self.first_batch + (self.count - 1)
    }
}

/// What a block needs to know beside its batches.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Names each topic.
    pub topic_id: &'a dyn Fn(&Topic) -> Option<u32>,
    /// The highest `until_offset` of a partition in all blocks before, over all incarnations of its topic.
    pub before: &'a dyn Fn(&TopicName, u32) -> u64,
}

/// The bytes of `entries`: batches of one group with consecutive numbers, at least one.
///
/// # Errors
///
/// If they are none of that, or a batch's ranges are not ordered by topic-partition.
pub fn encode(group: u32, entries: &[Entry], around: Around<'_>) -> Result<Vec<u8>, CodecError> {
    let first = entries.first().ok_or(CodecError::Malformed("a block without batches"))?;
    if entries.len() > MAX_BATCHES {
        return Err(CodecError::TooLarge { bytes: entries.len() as u64, limit: MAX_BATCHES as u64 });
    }
    let mut body = Vec::with_capacity(4096);
    varint::put(&mut body, u64::from(group));
    varint::put(&mut body, batch_of(first)?.batch.as_u64());
    varint::put(&mut body, entries.len() as u64);
    varint::put(&mut body, first.seq.as_u64());
    varint::put_signed(&mut body, first.recorded_at.millis());

    let mut writer = Writer { table: table(entries)?, ..Writer::default() };
    let spans = writer.spans(entries, around)?;
    spans::put(&mut body, &spans)?;
    writer.positions = spans.iter().map(|(_, _, span)| span.low).collect();
    writer.seq = first.seq.as_u64() - 1;
    for (index, entry) in entries.iter().enumerate() {
        let batch = batch_of(entry)?;
        if batch.batch.as_u64() != batch_of(first)?.batch.as_u64() + index as u64 {
            return Err(CodecError::Malformed("batches that do not follow each other"));
        }
        writer.put_entry(entry, batch)?;
    }
    writer.put_epoch_run();
    columns::put(&mut body, writer.columns, &ELIDED, MAX_PLAIN_BYTES)?;
    Ok(seal(VERSION, &body))
}

fn batch_of(entry: &Entry) -> Result<&Batch, CodecError> {
    match &entry.body {
        Body::Batch(batch) => Ok(batch),
        _ => Err(CodecError::Malformed("an entry that is no batch")),
    }
}

/// A partition of one incarnation of a topic.
type Place<'a> = (&'a TopicName, Option<TopicId>, u32);

/// All topic-partitions that the entries name, ordered.
fn table(entries: &[Entry]) -> Result<Vec<Place<'_>>, CodecError> {
    let mut places = BTreeSet::new();
    let mut before: Option<&Batch> = None;
    for entry in entries {
        let batch = batch_of(entry)?;
        if !before.is_some_and(|before| same_places(batch, before)) {
            if !batch.ranges.is_sorted_by(|a, b| (a.topic(), a.partition()) < (b.topic(), b.partition())) {
                return Err(CodecError::Malformed("ranges that are not ordered by topic-partition"));
            }
            let named = |topic| batch.ranges.binary_search_by(|range| range.topic().cmp(topic)).is_ok();
            if !batch.topic_ids.iter().all(|(topic, _)| named(topic)) {
                return Err(CodecError::Malformed("a topic id without a range"));
            }
            places.extend(batch.ranges.iter().map(|range| place(batch, range.topic(), range.partition())));
            before = Some(batch);
        }
        places.extend(batch.notes.iter().map(|note| place(batch, &note.topic, note.partition)));
        places.extend(batch.firsts.iter().map(|first| place(batch, &first.at.topic, first.at.partition)));
    }
    Ok(places.into_iter().collect())
}

fn place<'a>(batch: &Batch, topic: &'a TopicName, partition: u32) -> Place<'a> {
    (topic, batch.topic_id(topic), partition)
}

fn same_places(a: &Batch, b: &Batch) -> bool {
    let same = |(a, b): (&OffsetRange, &OffsetRange)| a.partition() == b.partition() && a.topic() == b.topic();
    a.ranges.len() == b.ranges.len() && a.topic_ids == b.topic_ids && a.ranges.iter().zip(&b.ranges).all(same)
}

#[derive(Default)]
struct Writer<'a> {
    columns: [Vec<u8>; COLUMNS],
    table: Vec<Place<'a>>,
    /// The highest `until_offset` so far, by place.
    positions: Vec<u64>,
    /// The batch before, and the places of its ranges.
    before: Option<&'a Batch>,
    places: Vec<usize>,
    seq: u64,
    batch_time: i64,
    epoch: u64,
    epoch_before: u64,
    epoch_run: u64,
}

impl<'a> Writer<'a> {
    fn put(&mut self, column: usize, number: u64) {
        varint::put(&mut self.columns[column], number);
    }

    fn put_signed(&mut self, column: usize, number: i64) {
        varint::put_signed(&mut self.columns[column], number);
    }

    /// What each place of the table was read of, with the id of its topic.
    fn spans(&self, entries: &[Entry], around: Around<'_>) -> Result<Vec<(u32, u32, Span)>, CodecError> {
        let mut spans: Vec<Option<(u64, u64)>> = vec![None; self.table.len()];
        let mut before: Option<&Batch> = None;
        let mut places = Vec::new();
        for entry in entries {
            let batch = batch_of(entry)?;
            if !before.is_some_and(|before| same_places(batch, before)) {
                let own = batch.ranges.iter().map(|range| self.index(place(batch, range.topic(), range.partition())));
                places = own.collect::<Result<Vec<_>, _>>()?;
                before = Some(batch);
            }
            for (place, range) in places.iter().zip(&batch.ranges) {
                let (from, until) = (range.from_offset().as_u64(), range.until_offset().as_u64());
                let span = spans[*place].get_or_insert((from, until));
                *span = (span.0.min(from), span.1.max(until));
            }
        }
        let mut known: Option<(Topic, u32)> = None;
        let with_topic = |(place, span): (&Place<'_>, Option<(u64, u64)>)| {
            let (name, topic_id, partition) = *place;
            let same = known.as_ref().filter(|(topic, _)| topic.name == *name && topic.topic_id == topic_id);
            let id = match same {
                Some((_, id)) => *id,
                None => {
                    let topic = Topic { name: name.clone(), topic_id };
                    let id = (around.topic_id)(&topic).ok_or(CodecError::Malformed("a topic without an id"))?;
                    known.insert((topic, id)).1
                }
            };
            // A place that only a note names was read nowhere.
            let (low, high) = span.unwrap_or_default();
            Ok((id, partition, Span { low, high, before: (around.before)(name, partition) }))
        };
        self.table.iter().zip(spans).map(with_topic).collect()
    }

    fn index(&self, place: Place<'_>) -> Result<usize, CodecError> {
        self.table.binary_search(&place).map_err(|_| CodecError::Malformed("a topic-partition outside the table"))
    }

    fn put_entry(&mut self, entry: &'a Entry, batch: &'a Batch) -> Result<(), CodecError> {
        let seq = entry.seq.as_u64();
        let delta = seq.checked_sub(self.seq + 1).ok_or(CodecError::Malformed("seqs that do not ascend"))?;
        self.put(SEQ, delta);
        self.seq = seq;
        let (recorded_at, batch_time) = (entry.recorded_at.millis(), batch.batch_time.millis());
        self.put_signed(BATCH_TIME, batch_time - self.batch_time);
        self.batch_time = batch_time;
        self.put_signed(LAG, recorded_at - batch_time);
        self.put_signed(MACHINE, entry.machine_clock.millis() - recorded_at);
        if self.epoch_run > 0 && self.epoch != entry.epoch.as_u64() {
            self.put_epoch_run();
        }
        self.epoch = entry.epoch.as_u64();
        self.epoch_run += 1;
        self.put_places(batch)?;
        for (index, range) in batch.ranges.iter().enumerate() {
            let position = &mut self.positions[self.places[index]];
            let (from, until) = (range.from_offset().as_u64(), range.until_offset().as_u64());
            let delta = from as i64 - *position as i64;
            *position = (*position).max(until);
            self.put_signed(FROM, delta);
            self.put(SIZE, until - from);
        }
        self.put(KEY_LENGTH, batch.key.as_ref().map_or(0, |key| key.len() as u64 + 1));
        self.columns[KEYS].extend_from_slice(batch.key.as_deref().unwrap_or_default().as_bytes());
        self.put(NOTE_COUNT, batch.notes.len() as u64);
        for note in &batch.notes {
            let place = self.index(place(batch, &note.topic, note.partition))?;
            let range = self.places.binary_search(&place).ok().map(|index| &batch.ranges[index]);
            let base = range.map_or(0, |range| range.from_offset().get());
            self.put(NOTES, place as u64);
            self.put(NOTES, note_tag(note.note));
            self.put_signed(NOTES, note.from_offset.get() - base);
            self.put_signed(NOTES, note.until_offset.get() - base);
        }
        self.put(FIRST_COUNT, batch.firsts.len() as u64);
        for first in &batch.firsts {
            let place = self.index(place(batch, &first.at.topic, first.at.partition))?;
            self.put(FIRSTS, place as u64);
            self.put(FIRSTS, u64::from(first.topic_id.is_some()));
            if let Some(id) = first.topic_id {
                self.columns[FIRSTS].extend_from_slice(id.as_bytes());
            }
            self.put(FIRSTS, first.earliest.map_or(0, |earliest| earliest.as_u64() + 1));
        }
        Ok(())
    }

    fn put_epoch_run(&mut self) {
        self.put_signed(EPOCH, self.epoch as i64 - self.epoch_before as i64);
        self.put(EPOCH, self.epoch_run - 1);
        self.epoch_before = self.epoch;
        self.epoch_run = 0;
    }

    fn put_places(&mut self, batch: &'a Batch) -> Result<(), CodecError> {
        if self.before.is_some_and(|before| same_places(batch, before)) {
            self.put(RUNS, 0);
            return Ok(());
        }
        self.before = Some(batch);
        let places = batch.ranges.iter().map(|range| self.index(place(batch, range.topic(), range.partition())));
        self.places = places.collect::<Result<_, _>>()?;
        let (mut runs, mut end) = (0, 0);
        let places = std::mem::take(&mut self.places);
        for run in places.chunk_by(|a, b| a + 1 == *b) {
            self.put(RUN_GAP, (run[0] - end) as u64);
            self.put(RUN_LENGTH, run.len() as u64 - 1);
            end = run[0] + run.len();
            runs += 1;
        }
        self.places = places;
        self.put(RUNS, runs + 1);
        Ok(())
    }
}

fn note_tag(kind: NoteKind) -> u64 {
    match kind {
        NoteKind::Hole => 0,
        NoteKind::Overlap => 1,
        NoteKind::Late => 2,
        NoteKind::First => 3,
    }
}

fn note_kind(tag: u64) -> Result<NoteKind, CodecError> {
    Ok(match tag {
        0 => NoteKind::Hole,
        1 => NoteKind::Overlap,
        2 => NoteKind::Late,
        3 => NoteKind::First,
        _ => return Err(CodecError::Malformed("an unknown kind of note")),
    })
}

/// The head of a block, its checksum checked.
pub fn head(bytes: &[u8]) -> Result<Head, CodecError> {
    read_head(&mut Reader::new(unseal(VERSION, bytes)?))
}

fn read_head(reader: &mut Reader<'_>) -> Result<Head, CodecError> {
    let (group, first_batch, count) = (reader.take_u32()?, reader.take()?, reader.take()?);
    let last = count.checked_sub(1).and_then(|more| first_batch.checked_add(more));
    if first_batch == 0 || count > MAX_BATCHES as u64 || last.is_none_or(|last| last > i64::MAX as u64) {
        return Err(CodecError::Malformed("batch numbers that can't be"));
    }
    let first_seq = Seq::try_from(reader.take()?).map_err(|_| CodecError::Malformed("a seq that can't be"))?;
    if first_seq == Seq::ZERO {
        return Err(CodecError::Malformed("a seq that can't be"));
    }
    Ok(Head { group, first_batch, count, first_seq, first_recorded_at: time(reader.take_signed()?)? })
}

/// What a block says of each of its topic-partitions, its checksum checked.
pub fn spans(bytes: &[u8]) -> Result<Spans, CodecError> {
    let mut reader = Reader::new(unseal(VERSION, bytes)?);
    read_head(&mut reader)?;
    Spans::take(&mut reader)
}

/// The batches of a block, read one after the other; after an error it ends.
#[derive(Debug)]
pub struct Batches {
    head: Head,
    group: Group,
    columns: Columns<COLUMNS>,
    topics: Vec<Topic>,
    /// Places in `topics`, and partitions.
    table: Vec<(usize, u32)>,
    positions: Vec<u64>,
    /// The places of the batch before, and the ids of their topics.
    places: Vec<usize>,
    topic_ids: Vec<(TopicName, TopicId)>,
    /// The ranges of the batch before, where it was taken back.
    spare: Vec<OffsetRange>,
    next: u64,
    seq: u64,
    batch_time: i64,
    epoch: u64,
    epoch_run: u64,
}

impl Batches {
    /// The batches of `bytes`, which belong to `group`; `topic` resolves ids.
    pub fn open(bytes: &[u8], group: Group, topic: &dyn Fn(u32) -> Option<Topic>) -> Result<Batches, CodecError> {
        let mut reader = Reader::new(unseal(VERSION, bytes)?);
        let head = read_head(&mut reader)?;
        let (topics, table, positions) = read_table(Spans::take(&mut reader)?, topic)?;
        let columns = Columns::take(&mut reader, &ELIDED, MAX_PLAIN_BYTES)?;
        Ok(Batches {
            positions,
            seq: head.first_seq.as_u64() - 1,
            head,
            group,
            columns,
            topics,
            table,
            places: Vec::new(),
            topic_ids: Vec::new(),
            spare: Vec::new(),
            next: head.first_batch,
            batch_time: 0,
            epoch: 0,
            epoch_run: 0,
        })
    }

    /// What the block says of itself.
    pub fn head(&self) -> Head {
        self.head
    }

    /// The number of the batch that comes next; one past the last at the end.
    pub fn next_batch(&self) -> u64 {
        self.next
    }

    /// The seq of the batch that comes next; none at the end.
    pub fn next_seq(&self) -> Result<Option<Seq>, CodecError> {
        if self.next > self.head.last_batch() {
            return Ok(None);
        }
        self.seq_after(self.columns.peek(SEQ)?).map(Some)
    }

    /// The seq that is `delta` above the one after the last.
    fn seq_after(&self, delta: u64) -> Result<Seq, CodecError> {
        let seq = self.seq.checked_add(1).and_then(|seq| seq.checked_add(delta));
        seq.and_then(|seq| Seq::try_from(seq).ok()).ok_or(CodecError::Malformed("a seq that can't be"))
    }

    /// Takes back the batch that came last, for the next one to use its memory.
    pub fn take_back(&mut self, entry: Entry) {
        if let Body::Batch(batch) = entry.body
            && batch.batch.as_u64() + 1 == self.next
        {
            self.spare = batch.ranges;
        }
    }

    fn place(&mut self, column: usize) -> Result<usize, CodecError> {
        let place = self.columns.number(column)?;
        let place = usize::try_from(place).ok().filter(|place| *place < self.table.len());
        place.ok_or(CodecError::Malformed("a topic-partition outside the table"))
    }

    fn topic_partition(&self, place: usize) -> (TopicName, u32) {
        let (topic, partition) = self.table[place];
        (self.topics[topic].name.clone(), partition)
    }

    fn take_entry(&mut self) -> Result<Entry, CodecError> {
        let delta = self.columns.number(SEQ)?;
        let seq = self.seq_after(delta)?;
        self.seq = seq.as_u64();
        self.batch_time = self.batch_time.wrapping_add(self.columns.signed(BATCH_TIME)?);
        let recorded_at = self.batch_time.wrapping_add(self.columns.signed(LAG)?);
        let machine_clock = recorded_at.wrapping_add(self.columns.signed(MACHINE)?);
        if self.epoch_run == 0 {
            self.epoch = self.epoch.wrapping_add_signed(self.columns.signed(EPOCH)?);
            self.epoch_run =
                self.columns.number(EPOCH)?.checked_add(1).ok_or(CodecError::Malformed("a run too long"))?;
        }
        self.epoch_run -= 1;
        let batch = Batch {
            batch: BatchNumber::try_from(self.next).map_err(|_| CodecError::Malformed("a batch that can't be"))?,
            batch_time: time(self.batch_time)?,
            ranges: self.take_ranges()?,
            key: self.take_key()?,
            notes: Vec::new(),
            firsts: Vec::new(),
            topic_ids: self.topic_ids.clone(),
        };
        let notes = self.take_notes(&batch.ranges)?;
        let firsts = self.take_firsts()?;
        Ok(Entry {
            seq,
            recorded_at: time(recorded_at)?,
            machine_clock: time(machine_clock)?,
            group: Some(self.group.clone()),
            epoch: Epoch::try_from(self.epoch).map_err(|_| CodecError::Malformed("an epoch that can't be"))?,
            body: Body::Batch(Batch { notes, firsts, ..batch }),
        })
    }

    fn take_ranges(&mut self) -> Result<Vec<OffsetRange>, CodecError> {
        let runs = self.columns.number(RUNS)?;
        if runs > 0 {
            self.places.clear();
            let mut end = 0u64;
            for _ in 1..runs {
                let (gap, more) = (self.columns.number(RUN_GAP)?, self.columns.number(RUN_LENGTH)?);
                let first = end.checked_add(gap).filter(|first| *first < self.table.len() as u64);
                let last = first.and_then(|first| first.checked_add(more));
                let (Some(first), Some(last)) = (first, last.filter(|last| *last < self.table.len() as u64)) else {
                    return Err(CodecError::Malformed("a topic-partition outside the table"));
                };
                self.places.extend(first as usize..=last as usize);
                end = last + 1;
            }
            self.topic_ids.clear();
            for places in self.places.chunk_by(|a, b| self.table[*a].0 == self.table[*b].0) {
                self.topics[self.table[places[0]].0].add_to(&mut self.topic_ids)?;
            }
        }
        let places = std::mem::take(&mut self.places);
        let mut ranges = std::mem::take(&mut self.spare);
        // Those of the batch before are of the same topic-partitions, unless there were new runs.
        let same = runs == 0 && ranges.len() == places.len();
        if !same {
            ranges.clear();
            ranges.reserve_exact(places.len());
        }
        for (index, &place) in places.iter().enumerate() {
            let position = &mut self.positions[place];
            let from = (*position as i64).wrapping_add(self.columns.signed(FROM)?);
            let size = self.columns.number(SIZE)?;
            let from = Offset::new(from).map_err(|_| CodecError::Malformed("an offset that can't be"))?;
            let until = from.as_u64().checked_add(size).and_then(|until| Offset::try_from(until).ok());
            let until = until.ok_or(CodecError::Malformed("an offset that can't be"))?;
            *position = (*position).max(until.as_u64());
            if same {
                ranges[index].move_to(from, until)
            } else {
                let (topic, partition) = self.topic_partition(place);
                OffsetRange::new(topic, partition, from, until).map(|range| ranges.push(range))
            }
            .map_err(|_| CodecError::Malformed("a range that can't be"))?;
        }
        self.places = places;
        Ok(ranges)
    }

    fn take_key(&mut self) -> Result<Option<String>, CodecError> {
        let Some(length) = self.columns.number(KEY_LENGTH)?.checked_sub(1) else {
            return Ok(None);
        };
        self.columns.read(KEYS, |reader| {
            let bytes = if length == 0 { &[] } else { reader.take_bytes(length)? };
            let key = std::str::from_utf8(bytes).map_err(|_| CodecError::Malformed("a key that is no UTF-8"))?;
            Ok(Some(key.to_owned()))
        })
    }

    fn take_notes(&mut self, ranges: &[OffsetRange]) -> Result<Vec<Note>, CodecError> {
        let mut notes = Vec::new();
        for _ in 0..self.columns.number(NOTE_COUNT)? {
            let place = self.place(NOTES)?;
            let range = self.places.binary_search(&place).ok().map(|index| &ranges[index]);
            let base = range.map_or(0, |range| range.from_offset().get());
            let note = note_kind(self.columns.number(NOTES)?)?;
            let mut end = || {
                let offset = base.wrapping_add(self.columns.signed(NOTES)?);
                Offset::new(offset).map_err(|_| CodecError::Malformed("an offset that can't be"))
            };
            let (from_offset, until_offset) = (end()?, end()?);
            let (topic, partition) = self.topic_partition(place);
            notes.push(Note { topic, partition, note, from_offset, until_offset });
        }
        Ok(notes)
    }

    fn take_firsts(&mut self) -> Result<Vec<First>, CodecError> {
        let mut firsts = Vec::new();
        for _ in 0..self.columns.number(FIRST_COUNT)? {
            let place = self.place(FIRSTS)?;
            let topic_id = match self.columns.number(FIRSTS)? {
                0 => None,
                1 => {
                    let bytes = self.columns.read(FIRSTS, |reader| {
                        let bytes = reader.take_bytes(16)?.try_into();
                        bytes.map_err(|_| CodecError::Malformed("a topic id that is none"))
                    })?;
                    Some(TopicId::from_bytes(bytes).ok_or(CodecError::Malformed("a topic id that is none"))?)
                }
                _ => return Err(CodecError::Malformed("a topic id that is none")),
            };
            let earliest = self.columns.number(FIRSTS)?.checked_sub(1).map(Offset::try_from).transpose();
            let earliest = earliest.map_err(|_| CodecError::Malformed("an offset that can't be"))?;
            let (topic, partition) = self.topic_partition(place);
            firsts.push(First { at: TopicPartition::new(topic, partition), topic_id, earliest });
        }
        Ok(firsts)
    }

    /// At the end every column is used up.
    fn finish(&self) -> Result<(), CodecError> {
        if self.epoch_run > 0 {
            return Err(CodecError::Malformed("longer than its content"));
        }
        self.columns.finish()
    }
}

impl Iterator for Batches {
    type Item = Result<Entry, CodecError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next > self.head.last_batch() {
            return None;
        }
        let mut taken = self.take_entry();
        self.next += 1;
        if taken.is_ok() && self.next > self.head.last_batch() {
            taken = self.finish().and(taken);
        }
        if taken.is_err() {
            self.next = self.head.last_batch() + 1;
        }
        Some(taken)
    }
}

/// The topics, each place as one of them and a partition, and where each place begins.
type Table = (Vec<Topic>, Vec<(usize, u32)>, Vec<u64>);

fn read_table(spans: Spans, topic: &dyn Fn(u32) -> Option<Topic>) -> Result<Table, CodecError> {
    let (mut topics, mut table, mut positions) = (Vec::new(), Vec::new(), Vec::new());
    let mut known = None;
    for span in spans {
        let (id, partition, span) = span?;
        if known != Some(id) {
            topics.push(topic(id).ok_or(CodecError::Malformed("a topic id without a name"))?);
            known = Some(id);
        }
        table.push((topics.len() - 1, partition));
        positions.push(span.low);
    }
    // The partitions of a topic ascend by the way they are written.
    if !topics.is_sorted_by(|a, b| a < b) {
        return Err(CodecError::Malformed("a table that is not ordered"));
    }
    Ok((topics, table, positions))
}

#[cfg(test)]
mod tests;
