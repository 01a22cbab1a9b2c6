//! What holes hold: the first record that a reader would get.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::raw::{Event, Message, PartitionList, Reader};
use super::{ClientConfig, ClientError};
use crate::broker::Seen;
use crate::offset::{Group, Isolation, Offset, OffsetRange, TopicName, TopicPartition};

/// How long one wait for a record may be, so that the deadline is kept.
const TICK: Duration = Duration::from_millis(50);
/// Records that are taken at once.
const AT_ONCE: usize = 1_000;
/// What lies between two ranges is read, and not jumped over, up to so many bytes: a broker sends as much at once anyway.
const NEAR_BYTES: u64 = 1 << 20;
/// What a record takes beside its value, about.
const RECORD_OVERHEAD: u64 = 70;

/// For each range its first readable record, absent where it holds none; in the order of `ranges`.
pub(super) fn first_readable(
    config: &ClientConfig,
    ranges: &[OffsetRange],
    isolation: Isolation,
    until: Instant,
) -> Result<Vec<Seen<Offset>>, ClientError> {
    let group = Group::new(Group::DEFAULT_APP, "tidelog").expect("a legal name");
    // What is fetched ahead, at the end of the log, holds up the first fetch from the next range.
    let config = config.clone().with("fetch.wait.max.ms", "5").expect("it is anybody's to set");
    // Messages are dropped before their client.
    let mut reader = Reader::new(&config, &group, isolation)?;
    let mut seen = vec![Seen::Failed("not answered in time".to_owned()); ranges.len()];
    let mut left = Left::new();
    for (index, range) in ranges.iter().enumerate() {
        left.entry(range.topic_partition()).or_default().push_back(index);
    }
    for indexes in left.values_mut() {
        indexes.make_contiguous().sort_by_key(|index| ranges[*index].from_offset());
    }
    while !left.is_empty() && Instant::now() < until {
        look_into(&mut reader, ranges, &mut left, &mut seen, until);
    }
    Ok(seen)
}

/// By partition, the ranges that have no answer yet, the lowest begin first.
type Left = BTreeMap<TopicPartition, VecDeque<usize>>;

/// Reads each partition from its next range on, and from there to the ranges after it, as long as they are near: to begin
/// anew at each of a thousand holes takes ten seconds.
fn look_into(reader: &mut Reader, ranges: &[OffsetRange], left: &mut Left, seen: &mut [Seen<Offset>], until: Instant) {
    let mut starts = PartitionList::with_capacity(left.len());
    for (at, indexes) in left.iter() {
        starts.push_offset(at, ranges[indexes[0]].from_offset());
    }
    if let Err(code) = reader.assign(&starts) {
        left.values().flatten().for_each(|index| seen[*index] = Seen::Failed(code.to_string()));
        return left.clear();
    }
    let mut reading: BTreeSet<TopicPartition> = left.keys().cloned().collect();
    let mut events = Vec::new();
    while !reading.is_empty() && Instant::now() < until {
        reader.poll(TICK, AT_ONCE, &mut events);
        for event in events.drain(..) {
            let message = match &event {
                Event::Record(message) | Event::End(message) | Event::NoPosition(message) => message,
                Event::Failed(message, _) => message,
            };
            let Some(at) = partition(message).filter(|at| reading.contains(at)) else { continue };
            let Some(indexes) = left.get_mut(&at) else { continue };
            while let Some(index) = indexes.front().copied()
                && let Some(answer) = answer(&event, &ranges[index])
            {
                seen[index] = answer;
                indexes.pop_front();
            }
            if !indexes.front().is_some_and(|next| is_near(&event, &ranges[*next])) {
                let mut done = PartitionList::with_capacity(1);
                done.push_offset(&at, Offset::ZERO);
                // It is read on to no use otherwise.
                let _ = reader.remove(&done);
                reading.remove(&at);
            }
        }
    }
    left.retain(|_, indexes| !indexes.is_empty());
    let _ = reader.unassign_all();
}

/// Whether reading on from the event leads to the range about as fast as beginning there.
fn is_near(event: &Event, range: &OffsetRange) -> bool {
    let Event::Record(message) = event else { return false };
    let gap = range.from_offset().get().saturating_sub(message.offset());
    let record = message.size() as u64 + RECORD_OVERHEAD;
    u64::try_from(gap).unwrap_or(0).saturating_mul(record) <= NEAR_BYTES
}

fn partition(message: &Message) -> Option<TopicPartition> {
    let partition = u32::try_from(message.place().1).ok()?;
    Some(TopicPartition::new(TopicName::new(message.topic()).ok()?, partition))
}

/// What an event of a partition says of the next range that has no answer; none if it lies below it.
fn answer(event: &Event, range: &OffsetRange) -> Option<Seen<Offset>> {
    let at = |message: &Message| Offset::new(message.offset());
    Some(match event {
        Event::Record(message) => match at(message) {
            Ok(below) if below < range.from_offset() => return None,
            Ok(first) if first < range.until_offset() => Seen::Known(first),
            Ok(_) => Seen::Absent,
            Err(error) => Seen::Failed(error.to_string()),
        },
        Event::End(message) => match at(message) {
            Ok(end) if end >= range.until_offset() => Seen::Absent,
            // What follows may be of an open transaction.
            _ => Seen::Failed(format!("can't be read yet beyond {}", message.offset())),
        },
        Event::NoPosition(message) => Seen::Failed(format!("offset {} is not there", message.offset())),
        Event::Failed(_, code) => Seen::Failed(code.to_string()),
    })
}
