//! A group as a list of groups shows it.

use serde::{Deserialize, Serialize};

use crate::broker::Member;
use crate::entry::{self, Body};
use crate::offset::{BatchNumber, Epoch, Group, Isolation, OffsetRange, Seq, Timestamp, TopicName};
use crate::positions::{GroupState, Hold, PickedUp};
use crate::wire::{Count, MirrorAnswer};

/// How a group is doing, in one word.
///
/// ```
/// use tidelog::positions::GroupState;
/// use tidelog::wire::GroupWord;
///
/// let state = GroupState { retired: true, ..GroupState::default() };
/// let word = GroupWord::of(&state, "2026-11-30T10:00:00Z".parse()?);
/// assert_eq!((word, word.as_str()), (GroupWord::Retired, "retired"));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
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
///
/// ```
/// use tidelog::offset::Group;
/// use tidelog::positions::GroupState;
/// use tidelog::wire::GroupSummary;
///
/// let loader = Group::new("default", "loader")?;
/// let summary = GroupSummary::new(&loader, &GroupState::default(), None, "2026-11-30T10:00:00Z".parse()?);
/// let json = serde_json::to_value(summary)?;
/// assert_eq!((&json["state"], &json["open_holes"]), (&"new".into(), &"0".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
///
/// ```
/// use tidelog::wire::LastBatch;
///
/// let text = r#"{"batch": "7", "seq": null, "batch_time": null, "recorded_at": null}"#;
/// let last: LastBatch = serde_json::from_str(text)?;
/// assert_eq!((last.batch.get(), last.seq), (7, None)); // its entry was pruned
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// ```
/// use tidelog::wire::TopicSummary;
///
/// let topic: TopicSummary = serde_json::from_str(r#"{"topic": "orders", "partitions": 12, "retired": false}"#)?;
/// assert_eq!((topic.topic.as_str(), topic.partitions), ("orders", 12));
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// ```
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let (state, now) = (tidelog::positions::GroupState::default(), "2026-11-30T10:00:00Z".parse()?);
/// # let summary = tidelog::wire::GroupSummary::new(&loader, &state, None, now);
/// use tidelog::wire::{Count, GroupAnswer, Grown};
///
/// let growth = vec![Grown { topic: "orders".parse()?, partition: 2 }];
/// let (losses_to_come, mirror, members, last_fenced) = (Vec::new(), None, None, None);
/// let answer = GroupAnswer { summary, growth, losses_to_come, mirror, members, last_fenced, fenced_total: Count(0) };
/// let json = serde_json::to_value(answer)?;
/// assert_eq!((&json["group"], &json["growth"][0]["partition"]), (&"loader".into(), &2.into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
///
/// ```
/// use tidelog::wire::Grown;
///
/// let grown: Grown = serde_json::from_str(r#"{"topic": "orders", "partition": 2}"#)?;
/// assert_eq!(grown, Grown { topic: "orders".parse()?, partition: 2 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grown {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
}

/// A commit that was refused because its epoch was old.
///
/// ```
/// use tidelog::wire::LastFenced;
///
/// let fenced: LastFenced = serde_json::from_str(
///     r#"{"at": "2026-11-30T10:00:00Z", "epoch": "2",
///         "ranges": [{"topic": "orders", "partition": 0, "from_offset": "500", "until_offset": "542"}]}"#,
/// )?;
/// assert_eq!((fenced.epoch.get(), fenced.ranges[0].count()), (2, 42));
/// # Ok::<(), serde_json::Error>(())
/// ```
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
