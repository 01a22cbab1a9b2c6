//! Arithmetic on the holes of a partition: ascending, disjoint ranges below its position.

use crate::entry::Hole;
use crate::offset::Offset;
use crate::positions::{PartitionState, Positions};

/// Open holes of one partition; past it the two nearest are joined.
pub const MAX_OF_PARTITION: usize = 1_000;
/// Open holes of one group, likewise.
pub const MAX_OF_GROUP: usize = 10_000;

/// Takes `[from, until)` out of `holes`.
pub fn cut(holes: &mut Vec<Hole>, from: Offset, until: Offset) {
    if from >= until || holes.last().is_none_or(|last| last.until_offset <= from) {
        return;
    }
    let mut left = Vec::with_capacity(holes.len() + 1);
    for hole in holes.drain(..) {
        let below = Hole { until_offset: hole.until_offset.min(from), ..hole };
        let above = Hole { from_offset: hole.from_offset.max(until), ..hole };
        left.extend([below, above].into_iter().filter(|part| part.from_offset < part.until_offset));
    }
    *holes = left;
}

/// Joins nearest holes until the limits hold: more is read again, nothing is lost.
pub fn bound(positions: &mut Positions) {
    bound_to(positions, MAX_OF_PARTITION, MAX_OF_GROUP);
}

fn bound_to(positions: &mut Positions, of_partition: usize, of_group: usize) {
    let mut total = 0;
    for partition in partitions(positions) {
        while partition.holes.len() > of_partition {
            join_nearest(&mut partition.holes);
        }
        total += partition.holes.len();
    }
    while total > of_group {
        let nearest = partitions(positions)
            .filter_map(|partition| nearest_pair(&partition.holes).map(|(gap, _)| (gap, partition)))
            .min_by_key(|(gap, _)| *gap);
        // One hole for each partition is as few as it gets.
        let Some((_, partition)) = nearest else { return };
        join_nearest(&mut partition.holes);
        total -= 1;
    }
}

fn partitions(positions: &mut Positions) -> impl Iterator<Item = &mut PartitionState> {
    positions.topics.values_mut().flat_map(|topic| topic.partitions.values_mut())
}

/// The smallest gap between two neighbours, and the index of the lower one.
fn nearest_pair(holes: &[Hole]) -> Option<(u64, usize)> {
    holes.windows(2).enumerate().map(|(index, pair)| (pair[1].from_offset.since(pair[0].until_offset), index)).min()
}

fn join_nearest(holes: &mut Vec<Hole>) {
    if let Some((_, index)) = nearest_pair(holes) {
        holes[index].until_offset = holes[index + 1].until_offset;
        holes.remove(index + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Batch, Body, Entry};
    use crate::offset::{BatchNumber, Epoch, Group, OffsetRange, Seq, Timestamp, TopicName};
    use crate::positions::{State, TopicState};

    fn holes(ranges: &[(i64, i64)]) -> Vec<Hole> {
        let offset = |n| Offset::new(n).unwrap();
        ranges
            .iter()
            .map(|(from, until)| Hole { from_offset: offset(*from), until_offset: offset(*until), seq: Seq::ZERO })
            .collect()
    }

    fn check_cut(before: &[(i64, i64)], range: (i64, i64), after: &[(i64, i64)]) {
        let mut left = holes(before);
        cut(&mut left, Offset::new(range.0).unwrap(), Offset::new(range.1).unwrap());
        assert_eq!(left, holes(after), "{before:?} less {range:?}");
    }

    #[test]
    fn a_range_cuts_what_it_covers_and_no_more() {
        check_cut(&[(0, 10)], (0, 10), &[]);
        check_cut(&[(0, 10)], (3, 5), &[(0, 3), (5, 10)]);
        check_cut(&[(0, 10), (20, 30)], (5, 25), &[(0, 5), (25, 30)]);
        check_cut(&[(0, 10)], (10, 20), &[(0, 10)]);
        check_cut(&[(5, 10)], (0, 5), &[(5, 10)]);
        check_cut(&[(0, 10)], (4, 4), &[(0, 10)]);
    }

    #[test]
    fn past_the_limits_the_nearest_are_joined() {
        let mut positions = Positions::default();
        let topic = positions.topics.entry(TopicName::new("t").unwrap()).or_insert_with(TopicState::default);
        for (number, ranges) in [(0, vec![(0, 1), (2, 3), (10, 11)]), (1, vec![(0, 1), (5, 6)]), (2, vec![(0, 9)])] {
            let mut partition = PartitionState::at(Offset::ZERO, Offset::ZERO);
            partition.holes = holes(&ranges);
            topic.partitions.insert(number, partition);
        }
        bound_to(&mut positions, 2, 4);
        let left: Vec<_> = partitions(&mut positions).map(|partition| partition.holes.clone()).collect();
        assert_eq!(left, [holes(&[(0, 3), (10, 11)]), holes(&[(0, 6)]), holes(&[(0, 9)])]);
    }

    #[test]
    fn late_batches_that_split_a_hole_keep_to_the_limit() {
        let (topic, group) = (TopicName::new("t").unwrap(), Group::new("a", "g").unwrap());
        let mut state = State::default();
        let mut apply = |from: i64, until: i64| {
            let (from, until) = (Offset::new(from).unwrap(), Offset::new(until).unwrap());
            let batch = Batch {
                batch: BatchNumber::ZERO.plus(state.seq.as_u64() + 1),
                batch_time: Timestamp::default(),
                key: None,
                ranges: vec![OffsetRange::new(topic.clone(), 0, from, until).unwrap()],
                notes: Vec::new(),
                firsts: Vec::new(),
                topic_ids: Vec::new(),
            };
            state.apply(&Entry {
                seq: state.seq.next(),
                recorded_at: Timestamp::default(),
                machine_clock: Timestamp::default(),
                group: Some(group.clone()),
                epoch: Epoch::ZERO,
                body: Body::Batch(batch),
            });
            state.groups[&group].positions.open_holes()
        };
        apply(0, 1);
        assert_eq!(apply(1_000_000, 1_000_001), 1);
        let most = (1..=1_100).map(|n| apply(n * 10, n * 10 + 1)).max();
        assert_eq!(most, Some(MAX_OF_PARTITION));
    }
}
