//! A group as a list of groups shows it.

use serde::{Deserialize, Serialize};

use crate::broker::Member;
use crate::entry::{self, Body};
use crate::offset::{BatchNumber, Epoch, Group, Isolation, OffsetRange, Seq, Timestamp, TopicName};
use crate::positions::{GroupState, Hold, PickedUp};
use crate::wire::{Count, MirrorAnswer};

/// How a group is doing, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupWord {
    /// No longer wanted.
    Retired,
    /// An operator holds it.
    Held,
    /// It reads records again that it had read before a rollback.
    Replaying,
    /// It has no batch yet.
    New,
    /// It committed in the last 5 minutes.
    Active,
    /// It did not.
    Idle,
}

impl GroupWord {
    /// How long after a commit a group counts as active, in milliseconds.
    pub const ACTIVE_MS: i64 = 5 * 60 * 1_000;

    /// The first that is true, in the order of the variants.
    pub fn of(state: &GroupState, now: Timestamp) -> Self {
        let committed = state.last_batch_recorded_at;
        if state.retired {
            GroupWord::Retired
        } else if state.held.is_some() {
            GroupWord::Held
        } else if state
            .positions
            .iter()
            .any(|(_, topic, partition)| !topic.retired && partition.replaying_until.is_some())
        {
            GroupWord::Replaying
        } else if state.positions.batch == BatchNumber::ZERO {
            GroupWord::New
        } else if committed.is_some_and(|at| now.millis() - at.millis() < Self::ACTIVE_MS) {
            GroupWord::Active
        } else {
            GroupWord::Idle
        }
    }

    /// The word, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            GroupWord::Retired => "retired",
            GroupWord::Held => "held",
            GroupWord::Replaying => "replaying",
            GroupWord::New => "new",
            GroupWord::Active => "active",
            GroupWord::Idle => "idle",
        }
    }
}

/// A group of the journal: what the journal alone knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// The group.
    pub group: String,
    /// Its application.
    pub app: String,
    /// The fencing number.
    pub epoch: Epoch,
    /// How it is doing.
    pub state: GroupWord,
    /// Who holds it, since when, why.
    pub held: Option<Hold>,
    /// The process that started it last.
    pub owner: Option<String>,
    /// Who works under the present epoch.
    pub picked_up: Option<PickedUp>,
    /// What it reads.
    pub isolation: Isolation,
    /// Its cluster.
    pub cluster_id: Option<String>,
    /// The Kafka group whose committed offsets follow; null where none does.
    pub kafka_group: Option<String>,
    /// Its newest batch.
    pub last_batch: Option<LastBatch>,
    /// Its topics.
    pub topics: Vec<TopicSummary>,
    /// Holes that are open.
    pub open_holes: Count,
    /// Losses that nobody has acknowledged.
    pub losses_open: Count,
}

/// The newest batch of a group, without its ranges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastBatch {
    /// Its number.
    pub batch: BatchNumber,
    /// Its entry; none where history no longer holds it.
    pub seq: Option<Seq>,
    /// When the consumer cut it.
    pub batch_time: Option<Timestamp>,
    /// When the journal took it.
    pub recorded_at: Option<Timestamp>,
}

/// A topic of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopicSummary {
    /// Its name.
    pub topic: TopicName,
    /// How many partitions the group has of it.
    pub partitions: usize,
    /// Whether it is no longer wanted.
    pub retired: bool,
}

/// A group by itself: the summary, and what the server knows beyond the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupAnswer {
    /// What the journal knows.
    #[serde(flatten)]
    pub summary: GroupSummary,
    /// What is on the broker and not in the journal yet: starting again takes it in.
    pub growth: Vec<Grown>,
    /// What retention has passed, as far as the newest look knows: the next start writes it down as lost.
    pub losses_to_come: Vec<OffsetRange>,
    /// How Kafka's committed offsets follow; null where no Kafka group does, or no broker is set.
    pub mirror: Option<MirrorAnswer>,
    /// Live members of that Kafka group, which keep its offsets from being set; null where nobody knows.
    pub members: Option<Vec<Member>>,
    /// The last commit that was fenced since the server began.
    pub last_fenced: Option<LastFenced>,
    /// How many were.
    pub fenced_total: Count,
}

/// A partition that the journal has not taken in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grown {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
}

/// A commit that was refused because its epoch was old.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastFenced {
    /// When it came.
    pub at: Timestamp,
    /// The epoch that it carried.
    pub epoch: Epoch,
    /// What it would have committed.
    pub ranges: Vec<OffsetRange>,
}

impl GroupSummary {
    /// The group as of `now`; `newest` is the entry of its newest batch, where that is known.
    pub fn new(group: &Group, state: &GroupState, newest: Option<&entry::Entry>, now: Timestamp) -> Self {
        let batch = state.positions.batch;
        let batch_time = newest.and_then(|newest| match &newest.body {
            Body::Batch(batch) => Some(batch.batch_time),
            _ => None,
        });
        let last_batch = (batch != BatchNumber::ZERO).then(|| LastBatch {
            batch,
            seq: newest.map(|newest| newest.seq),
            batch_time,
            recorded_at: state.last_batch_recorded_at,
        });
        let topic = |(name, topic): (&TopicName, &crate::positions::TopicState)| TopicSummary {
            topic: name.clone(),
            partitions: topic.partitions.len(),
            retired: topic.retired,
        };
        GroupSummary {
            group: group.group().to_owned(),
            app: group.app().to_owned(),
            epoch: state.epoch,
            state: GroupWord::of(state, now),
            held: state.held.clone(),
            owner: state.owner.clone(),
            picked_up: state.picked_up.clone(),
            isolation: state.isolation,
            cluster_id: state.cluster_id.clone(),
            kafka_group: state.kafka_group.clone(),
            last_batch,
            topics: state.positions.topics.iter().map(topic).collect(),
            open_holes: Count(state.positions.open_holes() as u64),
            losses_open: Count(state.losses.len() as u64),
        }
    }
}
