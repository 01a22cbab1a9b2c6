//! Whether Kafka's committed offsets are ahead of the journal, as when an older copy of it was put back (DESIGN section 5):
//! that is told, never journaled, and nothing is chosen by it.

use std::collections::BTreeMap;

use crate::broker::Seen;
use crate::entry::{Finding, Verdict};
use crate::offset::{Offset, TopicPartition};
use crate::positions::GroupState;
use crate::reconcile::StartPosition;

/// A finding for each partition that starts below what Kafka holds: at its position, where no rollback explains it, whose
/// offsets Kafka may not have been told; or as one of a new group. Not where the log ends below that, as then Kafka speaks
/// of another topic.
pub(super) fn findings(
    group: Option<&GroupState>,
    committed: &BTreeMap<TopicPartition, Seen<Offset>>,
    starts: &[StartPosition],
) -> Vec<Finding> {
    let behind = starts.iter().filter_map(|start| {
        let held = *committed.get(&start.at)?.known()?;
        let partition = group.and_then(|group| group.positions.get(&start.at.topic, start.at.partition));
        let explained = partition.and_then(|partition| partition.replaying_until).is_some_and(|until| held <= until);
        let in_log = start.latest.is_none_or(|latest| held <= latest);
        let why = match start.verdict {
            Verdict::InRange => "this journal may be an older copy, or another program commits there",
            Verdict::NewGroup => "--new-group kafka begins there, and the first commit overwrites it",
            _ => return None,
        };
        if held <= start.offset || explained || !in_log {
            return None;
        }
        Some(Finding {
            topic: Some(start.at.topic.clone()),
            partition: Some(start.at.partition),
            verdict: Verdict::BehindKafka,
            position: partition.map(|partition| partition.position),
            earliest: start.earliest,
            latest: start.latest,
            start: Some(start.offset),
            loss: None,
            detail: Some(format!("Kafka holds {held} as committed: {why}")),
        })
    });
    behind.collect()
}
