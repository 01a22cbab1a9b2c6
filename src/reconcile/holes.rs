//! Which holes a start must look into, and what looking told.

use crate::broker::{Look, Seen, TopicSelector};
use crate::entry::Hole;
use crate::offset::{Offset, OffsetRange, TopicPartition};
use crate::positions::Positions;
use crate::reconcile::partition::Bounds;
use crate::reconcile::topic::asked_names;
use crate::reconcile::{Holes, LookedInto};

/// The open holes of the topics asked for, as far as the look says that the log still has them.
pub fn to_look_into(topics: &[TopicSelector], positions: &Positions, look: &Look) -> Vec<OffsetRange> {
    let mut ranges = Vec::new();
    for name in asked_names(topics, positions) {
        let (Some(topic), Some(seen)) = (positions.topics.get(&name), look.topics.get(&name)) else { continue };
        if topic.topic_id.is_some_and(|id| seen.id.known() != Some(&id)) {
            continue;
        }
        for (number, partition) in &topic.partitions {
            let seen = seen.partitions.known().and_then(|partitions| partitions.get(number));
            let Some(Ok(bounds)) = seen.map(Bounds::of) else { continue };
            ranges.extend(partition.holes.iter().filter_map(|hole| {
                let from = hole.from_offset.max(bounds.earliest);
                let until = hole.until_offset.min(bounds.latest);
                OffsetRange::new(name.clone(), *number, from, until).ok().filter(|range| range.count() > 0)
            }));
        }
    }
    ranges
}

impl Holes {
    /// The first readable record of a hole; none where nobody looked into any. A hole that no look covers is failed:
    /// it must be looked into.
    pub(super) fn holds(&self, at: &TopicPartition, hole: &Hole) -> Option<Seen<Offset>> {
        let Holes::Looked(looked) = self else { return None };
        let (from, until) = (hole.from_offset, hole.until_offset);
        let covering = looked.iter().find(|LookedInto { range, .. }| {
            *range.topic() == at.topic
                && range.partition() == at.partition
                && range.from_offset() <= from
                && until <= range.until_offset()
        });
        Some(match covering.map(|looked| &looked.first_readable) {
            None => Seen::Failed("not looked into yet".to_owned()),
            Some(Seen::Failed(error)) => Seen::Failed(error.clone()),
            Some(Seen::Absent) => Seen::Absent,
            Some(Seen::Known(first)) if *first >= until => Seen::Absent,
            Some(Seen::Known(first)) if *first >= from => Seen::Known(*first),
            // The part that holds it was filled since; of the rest nothing is known.
            Some(Seen::Known(_)) => Seen::Failed("partly filled since it was looked into".to_owned()),
        })
    }
}
