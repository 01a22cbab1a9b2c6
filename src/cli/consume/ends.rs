//! The readable ends seen at the start, for `--until-latest`.

use crate::control::Started;
use crate::journal::Journal;
use crate::offset::{Group, Offset, TopicPartition};

/// Ends that are not reached yet.
pub struct Ends {
    group: Group,
    left: Vec<(TopicPartition, Offset)>,
}

impl Ends {
    /// The ends that the start saw.
    pub fn new(group: Group, started: &Started) -> Self {
        let end = |start: &crate::reconcile::StartPosition| Some((start.at.clone(), start.readable_end?));
        Ends { group, left: started.positions.iter().filter_map(end).collect() }
    }

    /// Whether the group's positions have come to all of them. One that was reached stays so.
    pub fn are_reached(&mut self, journal: &Journal) -> bool {
        let Ends { group, left } = self;
        journal.with_state(|state| {
            let Some(positions) = state.groups.get(group).map(|group| &group.positions) else { return };
            left.retain(|(at, end)| {
                positions.get(&at.topic, at.partition).is_none_or(|partition| partition.position < *end)
            });
        });
        self.left.is_empty()
    }
}
