//! What holes hold: the first record that a reader would get.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::raw::{Event, Message, PartitionList, Reader};
use super::{ClientConfig, ClientError};
use crate::broker::Seen;
use crate::offset::{Group, Isolation, Offset, OffsetRange, TopicName, TopicPartition};

/// How long one wait for a record may be, so that the deadline is kept.
const TICK: Duration = Duration::from_millis(50);

/// For each range its first readable record, absent where it holds none; in the order of `ranges`.
pub(super) fn first_readable(
    config: &ClientConfig,
    ranges: &[OffsetRange],
    isolation: Isolation,
    until: Instant,
) -> Result<Vec<Seen<Offset>>, ClientError> {
    let group = Group::new(Group::DEFAULT_APP, "tidelog").expect("a legal name");
    // Messages are dropped before their client.
    let mut reader = Reader::new(config, &group, isolation)?;
    let mut seen = vec![Seen::Failed("not answered in time".to_owned()); ranges.len()];
    let mut missing: Vec<usize> = (0..ranges.len()).collect();
    while !missing.is_empty() && Instant::now() < until {
        // One range of each partition at a time: a partition is read from one place only.
        let mut round: BTreeMap<TopicPartition, usize> = BTreeMap::new();
        for index in &missing {
            round.entry(ranges[*index].topic_partition()).or_insert(*index);
        }
        missing.retain(|index| !round.values().any(|taken| taken == index));
        look_into(&mut reader, ranges, round, &mut seen, until);
    }
    Ok(seen)
}

fn look_into(
    reader: &mut Reader,
    ranges: &[OffsetRange],
    mut round: BTreeMap<TopicPartition, usize>,
    seen: &mut [Seen<Offset>],
    until: Instant,
) {
    let mut starts = PartitionList::with_capacity(round.len());
    for (at, index) in &round {
        starts.push_offset(at, ranges[*index].from_offset());
    }
    if let Err(code) = reader.assign(&starts) {
        round.values().for_each(|index| seen[*index] = Seen::Failed(code.to_string()));
        return;
    }
    let mut events = Vec::new();
    while !round.is_empty() && Instant::now() < until {
        reader.poll(TICK, 100, &mut events);
        for event in events.drain(..) {
            let message = match &event {
                Event::Record(message) | Event::End(message) | Event::NoPosition(message) => message,
                Event::Failed(message, _) => message,
            };
            let Some(index) = partition(message).and_then(|at| round.remove(&at)) else { continue };
            seen[index] = answer(&event, &ranges[index]);
        }
    }
    let _ = reader.unassign_all();
}

fn partition(message: &Message) -> Option<TopicPartition> {
    let partition = u32::try_from(message.place().1).ok()?;
    Some(TopicPartition::new(TopicName::new(message.topic()).ok()?, partition))
}

/// What the first event of a partition says of the range that it was read from.
fn answer(event: &Event, range: &OffsetRange) -> Seen<Offset> {
    let at = |message: &Message| Offset::new(message.offset());
    match event {
        Event::Record(message) => match at(message) {
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
    }
}
