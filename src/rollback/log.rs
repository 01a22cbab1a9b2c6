//! What a look at the broker says of one partition.

use super::Looked;
use crate::broker::{Seen, TopicLook};
use crate::offset::{Offset, TopicPartition};
use crate::positions::{GroupState, PartitionState, TopicState};

/// What the broker says of a partition's log.
pub enum Log {
    At { earliest: Offset, latest: Offset },
    Unasked,
    Missing,
    Recreated,
    Unknown(String),
}

/// What `looked` says of a partition; distrusts what does not speak of the group's own topic.
pub fn log(group: &GroupState, looked: &Looked, at: &TopicPartition, topic: &TopicState, now: &PartitionState) -> Log {
    if let (Some(own), Seen::Known(seen)) = (&group.cluster_id, &looked.look.cluster_id)
        && own != seen
    {
        return Log::Unknown(format!("the broker belongs to cluster {seen}, the group to {own}"));
    }
    let Some(seen) = looked.look.topics.get(&at.topic) else {
        return Log::Unknown("the broker was not asked for it".to_owned());
    };
    let partitions = match &seen.partitions {
        Seen::Known(partitions) => partitions,
        Seen::Absent => return Log::Missing,
        Seen::Failed(error) => return Log::Unknown(error.clone()),
    };
    if let Some(log) = other_topic(topic, seen) {
        return log;
    }
    let Some(seen) = partitions.get(&at.partition) else {
        return match topic.topic_id {
            Some(_) => Log::Unknown("the broker lists fewer partitions than the group has".to_owned()),
            None => Log::Recreated,
        };
    };
    match (&seen.earliest, &seen.latest) {
        (Seen::Known(earliest), Seen::Known(latest)) => {
            // A position that rose since the look is in the log.
            let rose = looked.before.get(&at.topic, at.partition).is_some_and(|then| then.position < now.position);
            Log::At { earliest: *earliest, latest: if rose { *latest.max(&now.position) } else { *latest } }
        }
        (Seen::Failed(error), _) | (_, Seen::Failed(error)) => Log::Unknown(error.clone()),
        (Seen::Absent, _) | (_, Seen::Absent) => Log::Unknown("its leader gave no offsets".to_owned()),
    }
}

/// What a look says of a topic that is not the one that the group knows; none where it is.
fn other_topic(topic: &TopicState, seen: &TopicLook) -> Option<Log> {
    let own = topic.topic_id?;
    match &seen.id {
        Seen::Known(id) if *id == own => None,
        Seen::Known(id) if topic.former_ids.contains(id) => {
            Some(Log::Unknown("the broker answers for a topic that is no more".to_owned()))
        }
        Seen::Known(_) => Some(Log::Recreated),
        Seen::Absent => Some(Log::Unknown("the broker gave no id for a topic that has one".to_owned())),
        Seen::Failed(error) => Some(Log::Unknown(error.clone())),
    }
}
