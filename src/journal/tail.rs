//! The entries that are published but not sealed yet, kept as their records: a segment of the log decoded would take ten
//! times its size.

mod readers;

use std::collections::{HashMap, VecDeque};

use self::readers::Stretch;
use super::codec::CodecError;
use super::codec::record::{self, Names};
use super::runs::Runs;
use super::{AsOf, Order};
use crate::entry::{Body, Entry};
use crate::offset::{BatchNumber, Group, Seq, Timestamp};
use crate::positions::{GroupState, Positions};

/// Ranges of a group between two snapshots of its positions: what "as of" folds at most, for small groups.
const SNAPSHOT_RANGES: usize = 2_048;
/// For groups of many partitions: ranges for each partition between two snapshots.
const SNAPSHOT_FACTOR: usize = 4;

/// The unsealed entries, oldest segment first.
#[derive(Debug)]
pub struct Tail {
    segments: VecDeque<Segment>,
    /// The seq after the newest.
    end: u64,
}

/// The entries of one segment of the log.
#[derive(Debug)]
struct Segment {
    first: u64,
    names: Names,
    /// The records, one after the other.
    bytes: Vec<u8>,
    /// By entry: where its record ends, and when it was recorded.
    index: Vec<Slot>,
    groups: Vec<OfGroup>,
    places: HashMap<Group, u32>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    end: usize,
    recorded_at: Timestamp,
}

/// What a segment knows of one group.
#[derive(Debug, Default)]
struct OfGroup {
    /// Its entries here: places in the index, ascending.
    slots: Vec<u32>,
    /// Positions after some of them, ascending.
    snapshots: Vec<(u64, Positions)>,
    /// Ranges since the last snapshot.
    since: usize,
    /// Its results here.
    results: Runs,
    /// Its entries from one snapshot to the next, ascending.
    stretches: Vec<Stretch>,
}

/// Which entries a walk wants next.
#[derive(Debug, Clone, Copy)]
pub struct Walk<'a> {
    /// Of this group only.
    pub group: Option<&'a Group>,
    /// From here on, itself included.
    pub from: Seq,
    /// In this direction.
    pub order: Order,
    /// Of these kinds only.
    pub kinds: Kinds,
}

/// Kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// All of them.
    All,
    /// Batches.
    Batches,
    /// All but batches.
    Others,
}

impl Kinds {
    fn hold(self, entry: &Entry) -> bool {
        match self {
            Kinds::All => true,
            Kinds::Batches => matches!(entry.body, Body::Batch(_)),
            Kinds::Others => !matches!(entry.body, Body::Batch(_)),
        }
    }
}

impl Tail {
    /// An empty tail after `sealed`.
    pub fn new(sealed: Seq) -> Self {
        Tail { segments: VecDeque::new(), end: sealed.as_u64() + 1 }
    }

    /// The first seq that is here, or would be.
    pub fn first(&self) -> Seq {
        self.segments.front().map_or(seq(self.end), |segment| seq(segment.first))
    }

    /// From the next entry on another segment of the log is meant: names are defined anew.
    pub fn begin_segment(&mut self) {
        if self.segments.back().is_some_and(|segment| segment.index.is_empty()) {
            self.segments.pop_back();
        }
        self.segments.push_back(Segment {
            first: self.end,
            names: Names::default(),
            bytes: Vec::new(),
            index: Vec::new(),
            groups: Vec::new(),
            places: HashMap::new(),
        });
    }

    /// Takes in the next entry: its record, and its group's state after it.
    ///
    /// # Errors
    ///
    /// If the record does not decode: then it is not what the log holds.
    pub fn push(&mut self, entry: &Entry, bytes: &[u8], after: Option<&GroupState>) -> Result<(), CodecError> {
        if self.segments.is_empty() {
            self.begin_segment();
        }
        let Some(segment) = self.segments.back_mut() else { return Ok(()) };
        // Learns the names that this record defines.
        record::decode(entry.seq, bytes, &mut segment.names)?;
        segment.push(self.end, entry, bytes, after)?;
        self.end += 1;
        Ok(())
    }

    /// Drops what is sealed: all segments whose entries are at or below `sealed`.
    pub fn forget(&mut self, sealed: Seq) {
        while self.segments.front().is_some_and(|front| front.end() <= sealed.as_u64() + 1) && self.segments.len() > 1 {
            self.segments.pop_front();
        }
        // The newest is emptied, not removed: its names hold for the records that follow.
        if let [last] = self.segments.make_contiguous()
            && last.end() <= sealed.as_u64() + 1
        {
            last.first = last.end();
            last.bytes = Vec::new();
            last.index = Vec::new();
            last.groups = Vec::new();
            last.places = HashMap::new();
        }
    }

    /// The next entries of a walk, at most `limit`; none are left here if there are fewer. `walk.from` may lie outside.
    pub fn read(&self, walk: Walk<'_>, limit: usize) -> Result<Vec<Entry>, CodecError> {
        let mut found = Vec::new();
        let ordered: Box<dyn Iterator<Item = &Segment>> = match walk.order {
            Order::Ascending => Box::new(self.segments.iter()),
            Order::Descending => Box::new(self.segments.iter().rev()),
        };
        for segment in ordered {
            segment.read(walk, limit, &mut found)?;
            if found.len() >= limit {
                break;
            }
        }
        Ok(found)
    }

    /// The last entry of the group, or of all, recorded at or before `time`.
    pub fn seq_at(&self, group: Option<&Group>, time: Timestamp) -> Option<Seq> {
        self.segments.iter().rev().find_map(|segment| segment.seq_at(group, time))
    }

    /// From where a walk of batches in `order` from `batch` on need not look at more than a snapshot's worth in vain.
    pub fn near_batch(&self, group: &Group, batch: BatchNumber, order: Order) -> Seq {
        let mut snapshots = self.segments.iter().filter_map(|segment| segment.of_group(group));
        match order {
            Order::Ascending => {
                let below = |of_group: &OfGroup| {
                    let count = of_group.snapshots.partition_point(|(_, positions)| positions.batch < batch);
                    Some(of_group.snapshots[count.checked_sub(1)?].0)
                };
                snapshots.rev().find_map(below).map_or(Seq::ZERO, seq)
            }
            Order::Descending => {
                let above = |of_group: &OfGroup| {
                    let count = of_group.snapshots.partition_point(|(_, positions)| positions.batch < batch);
                    Some(of_group.snapshots.get(count)?.0)
                };
                snapshots.find_map(above).map_or(Seq::MAX, seq)
            }
        }
    }

    /// What the group's newest batch here at or before `upto` that speaks of result `key` says: its value, or that it was
    /// removed; none if no batch here does.
    pub fn result(&self, group: &Group, key: &[u8], upto: Seq) -> Option<Option<Vec<u8>>> {
        self.segments.iter().rev().find_map(|segment| {
            let slot = upto.as_u64().checked_sub(segment.first)?.min(u64::from(u32::MAX)) as u32;
            let found = segment.of_group(group)?.results.get(key, slot, &segment.bytes)?;
            Some(found.map(<[u8]>::to_vec))
        })
    }

    /// The first key at or above `from` that a result of the group here has.
    pub fn result_from(&self, group: &Group, from: &[u8]) -> Option<Vec<u8>> {
        let first = |segment: &Segment| {
            let found = segment.of_group(group)?.results.key_from(from, &segment.bytes)?;
            Some(found.to_vec())
        };
        self.segments.iter().filter_map(first).min()
    }

    /// The newest snapshot of the group here at or before `upto`.
    pub fn snapshot(&self, group: &Group, upto: Seq) -> Option<AsOf> {
        self.segments.iter().rev().find_map(|segment| {
            let of_group = segment.of_group(group)?;
            let count = of_group.snapshots.partition_point(|(at, _)| *at <= upto.as_u64());
            let (at, positions) = of_group.snapshots.get(count.checked_sub(1)?)?;
            let slot = segment.index.get((at - segment.first) as usize)?;
            Some(AsOf { seq: seq(*at), recorded_at: slot.recorded_at, positions: positions.clone() })
        })
    }
}

impl Segment {
    fn end(&self) -> u64 {
        self.first + self.index.len() as u64
    }

    fn of_group(&self, group: &Group) -> Option<&OfGroup> {
        self.groups.get(*self.places.get(group)? as usize)
    }

    fn push(&mut self, at: u64, entry: &Entry, bytes: &[u8], after: Option<&GroupState>) -> Result<(), CodecError> {
        let (begin, results) = record::results(bytes)?;
        let begin = self.bytes.len() + begin;
        self.bytes.extend_from_slice(bytes);
        let group = entry.group.as_ref().map(|group| match self.places.get(group) {
            Some(place) => *place,
            None => {
                let place = self.groups.len() as u32;
                self.groups.push(OfGroup::default());
                self.places.insert(group.clone(), place);
                place
            }
        });
        if let (Some(of_group), Some(after)) = (group.map(|place| &mut self.groups[place as usize]), after) {
            of_group.results.push(self.index.len() as u32, &self.bytes, begin, begin + results.len())?;
            if of_group.since == 0 {
                of_group.stretches.push(Stretch::after(of_group.slots.len()));
            }
            of_group.slots.push(self.index.len() as u32);
            if let Some(stretch) = of_group.stretches.last_mut() {
                stretch.push(entry);
            }
            of_group.since += match &entry.body {
                Body::Batch(batch) => batch.ranges.len(),
                other => other.correction().map_or(1, |correction| correction.moves.len() + 1),
            };
            let partitions: usize = after.positions.topics.values().map(|topic| topic.partitions.len()).sum();
            if of_group.since >= SNAPSHOT_RANGES.max(SNAPSHOT_FACTOR * partitions) {
                of_group.snapshots.push((at, after.positions.clone()));
                of_group.since = 0;
            }
        }
        self.index.push(Slot { end: self.bytes.len(), recorded_at: entry.recorded_at });
        Ok(())
    }

    fn read(&self, walk: Walk<'_>, limit: usize, found: &mut Vec<Entry>) -> Result<(), CodecError> {
        let from = walk.from.as_u64();
        // Places in the index, of the group or of all, on the wanted side of `from`.
        let slots: Box<dyn Iterator<Item = usize>> = match walk.group {
            Some(group) => {
                let Some(of_group) = self.of_group(group) else { return Ok(()) };
                let slots = of_group.slots.as_slice();
                let below = slots.partition_point(|slot| self.first + u64::from(*slot) < from);
                let through = slots.partition_point(|slot| self.first + u64::from(*slot) <= from);
                match walk.order {
                    Order::Ascending => Box::new(slots[below..].iter().map(|slot| *slot as usize)),
                    Order::Descending => Box::new(slots[..through].iter().rev().map(|slot| *slot as usize)),
                }
            }
            None => {
                let count = self.index.len() as u64;
                let below = from.saturating_sub(self.first).min(count) as usize;
                let through = from.saturating_add(1).saturating_sub(self.first).min(count) as usize;
                match walk.order {
                    Order::Ascending => Box::new(below..self.index.len()),
                    Order::Descending => Box::new((0..through).rev()),
                }
            }
        };
        for slot in slots {
            if found.len() >= limit {
                return Ok(());
            }
            let entry = self.entry(slot)?;
            if walk.kinds.hold(&entry) {
                found.push(entry);
            }
        }
        Ok(())
    }

    fn entry(&self, slot: usize) -> Result<Entry, CodecError> {
        let begin = slot.checked_sub(1).map_or(0, |before| self.index[before].end);
        record::decode_again(seq(self.first + slot as u64), &self.bytes[begin..self.index[slot].end], &self.names)
    }

    fn seq_at(&self, group: Option<&Group>, time: Timestamp) -> Option<Seq> {
        // Times never go backwards from one entry to the next.
        let early = |slot: &Slot| slot.recorded_at <= time;
        let slot = match group {
            Some(group) => {
                let slots = &self.of_group(group)?.slots;
                let count = slots.partition_point(|slot| early(&self.index[*slot as usize]));
                u64::from(*slots.get(count.checked_sub(1)?)?)
            }
            None => self.index.partition_point(early).checked_sub(1)? as u64,
        };
        Some(seq(self.first + slot))
    }
}

fn seq(number: u64) -> Seq {
    Seq::ZERO.plus(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Draft;
    use crate::offset::Epoch;
    use crate::positions::State;

    /// A tail of marks of two groups in turn, three a segment, each recorded at ten times its seq.
    fn tail(count: u64) -> (Tail, Vec<Entry>) {
        let mut tail = Tail::new(Seq::ZERO);
        let (mut state, mut entries, mut names) = (State::default(), Vec::new(), Names::default());
        for number in 1..=count {
            if number % 3 == 1 {
                tail.begin_segment();
                names = Names::default();
            }
            let group = Group::new("default", if number % 2 == 0 { "even" } else { "odd" }).unwrap();
            let body = Body::Mark { name: number.to_string(), actor: "a".into() };
            let Draft { group, epoch, body } = Draft { group: Some(group), epoch: Epoch::ZERO, body };
            let time = Timestamp::from_millis(number as i64 * 10);
            let entry = Entry { seq: seq(number), recorded_at: time, machine_clock: time, group, epoch, body };
            state.apply(&entry);
            let mut bytes = Vec::new();
            record::encode(&entry, &[], &mut names, &mut bytes).unwrap();
            tail.push(&entry, &bytes, entry.group.as_ref().and_then(|group| state.groups.get(group))).unwrap();
            entries.push(entry);
        }
        (tail, entries)
    }

    fn seqs(tail: &Tail, group: Option<&str>, from: u64, order: Order, limit: usize) -> Vec<u64> {
        let group = group.map(|name| Group::new("default", name).unwrap());
        let walk = Walk { group: group.as_ref(), from: seq(from), order, kinds: Kinds::All };
        tail.read(walk, limit).unwrap().iter().map(|entry| entry.seq.as_u64()).collect()
    }

    #[test]
    fn walks_go_both_ways_across_segments() {
        let (tail, entries) = tail(10);
        assert_eq!(seqs(&tail, None, 0, Order::Ascending, 99), (1..=10).collect::<Vec<_>>());
        assert_eq!(seqs(&tail, None, 8, Order::Descending, 3), [8, 7, 6]);
        assert_eq!(seqs(&tail, Some("odd"), 4, Order::Ascending, 99), [5, 7, 9]);
        assert_eq!(seqs(&tail, Some("even"), 7, Order::Descending, 2), [6, 4]);
        assert_eq!(seqs(&tail, Some("other"), 7, Order::Descending, 2), [0; 0]);
        let walk = Walk { group: None, from: seq(4), order: Order::Ascending, kinds: Kinds::All };
        assert_eq!(tail.read(walk, 1).unwrap(), entries[3..4]);
        let batches = Walk { kinds: Kinds::Batches, ..walk };
        assert_eq!(tail.read(batches, 1).unwrap(), []);
    }

    #[test]
    fn a_time_finds_the_last_entry_at_or_before_it() {
        let (tail, _) = tail(10);
        let odd = Group::new("default", "odd").unwrap();
        let at = |group, millis| tail.seq_at(group, Timestamp::from_millis(millis)).map(Seq::as_u64);
        assert_eq!([at(None, 9), at(None, 10), at(None, 45), at(None, 999)], [None, Some(1), Some(4), Some(10)]);
        assert_eq!([at(Some(&odd), 9), at(Some(&odd), 45), at(Some(&odd), 999)], [None, Some(3), Some(9)]);
    }

    #[test]
    fn what_is_sealed_is_forgotten_and_the_rest_stays() {
        let (mut tail, _) = tail(10);
        tail.forget(seq(5));
        assert_eq!(seqs(&tail, None, 0, Order::Ascending, 99), (4..=10).collect::<Vec<_>>());
        tail.forget(seq(9));
        assert_eq!((tail.first(), seqs(&tail, None, 0, Order::Ascending, 99)), (seq(10), vec![10]));
        tail.forget(seq(10));
        assert_eq!(tail.first(), seq(11));
    }
}
