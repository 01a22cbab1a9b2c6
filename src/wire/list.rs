//! Lists: one field named as the last word of the route, and the cursor to go on with.

use serde::{Deserialize, Serialize};

use crate::journal::Reading;
use crate::offset::{BatchNumber, Epoch, Group, OffsetRange, Seq, Timestamp, TopicId};
use crate::wire::{Batch, Entry, GroupSummary, LossLine};

/// Groups.
///
/// ```
/// use tidelog::wire::GroupsAnswer;
///
/// let answer: GroupsAnswer = serde_json::from_str(r#"{"groups": [], "next": null}"#)?;
/// assert!(answer.groups.is_empty() && answer.next.is_none()); // that was all
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupsAnswer {
    /// This part of the list.
    pub groups: Vec<GroupSummary>,
    /// Where the next part begins; null at the end.
    pub next: Option<String>,
}

/// Batches of a group.
///
/// ```
/// use tidelog::wire::BatchesAnswer;
///
/// let answer: BatchesAnswer = serde_json::from_str(
///     r#"{"batches": [{"batch": "42", "seq": "121", "batch_time": "2026-11-30T10:00:00Z",
///         "recorded_at": "2026-11-30T10:00:01Z", "epoch": "3", "key": null, "ranges": [], "notes": []}],
///         "next": "41"}"#,
/// )?;
/// assert_eq!((answer.batches[0].batch.get(), answer.next.as_deref()), (42, Some("41"))); // give it as `cursor`
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchesAnswer {
    /// This part of the list.
    pub batches: Vec<Batch>,
    /// Where the next part begins; null at the end.
    pub next: Option<String>,
}

/// Entries of a group.
///
/// ```
/// use tidelog::wire::EntriesAnswer;
///
/// let answer: EntriesAnswer = serde_json::from_str(
///     r#"{"entries": [{"seq": "121", "group": "loader", "app": "default", "recorded_at": "2026-11-30T10:00:00Z",
///         "machine_clock": "2026-11-30T10:00:00Z", "epoch": "3", "kind": "released", "actor": "ann"}],
///         "next": "120"}"#,
/// )?;
/// assert_eq!((answer.entries[0].own.kind(), answer.next.as_deref()), ("released", Some("120")));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EntriesAnswer {
    /// This part of the list.
    pub entries: Vec<Entry>,
    /// Where the next part begins; null at the end.
    pub next: Option<String>,
}

/// Losses and open holes of a group.
///
/// ```
/// use tidelog::positions::GroupState;
/// use tidelog::wire::{LossesAnswer, losses};
///
/// let answer = LossesAnswer { losses: losses(&GroupState::default()), next: None };
/// assert_eq!(serde_json::to_string(&answer)?, r#"{"losses":[],"next":null}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossesAnswer {
    /// This part of the list.
    pub losses: Vec<LossLine>,
    /// Where the next part begins; null at the end.
    pub next: Option<String>,
}

/// Batches that read an offset, of all groups.
///
/// ```
/// use tidelog::wire::ReadersAnswer;
///
/// let answer: ReadersAnswer = serde_json::from_str(r#"{"readers": [], "next": "41"}"#)?;
/// assert_eq!(answer.next.as_deref(), Some("41")); // give it as `cursor`
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadersAnswer {
    /// This part of the list; it may be empty where there is a next one.
    pub readers: Vec<Reader>,
    /// Where the next part begins; null at the end.
    pub next: Option<String>,
}

/// A batch that read an offset.
///
/// ```
/// use tidelog::wire::Reader;
///
/// let reader: Reader = serde_json::from_str(
///     r#"{"group": "loader", "app": "default", "batch": "7", "seq": "121", "batch_time": "2026-11-30T10:00:00Z",
///         "recorded_at": "2026-11-30T10:00:01Z", "epoch": "3", "topic_id": null,
///         "range": {"topic": "orders", "partition": 0, "from_offset": "500", "until_offset": "542"}}"#,
/// )?;
/// assert_eq!((reader.batch.get(), reader.range.count()), (7, 42));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reader {
    /// The group.
    pub group: String,
    /// Its application.
    pub app: String,
    /// The batch.
    pub batch: BatchNumber,
    /// Its entry.
    pub seq: Seq,
    /// When it was cut.
    pub batch_time: Timestamp,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// The epoch that it was read under.
    pub epoch: Epoch,
    /// Which incarnation of the topic was read; null where the broker gave no id.
    pub topic_id: Option<TopicId>,
    /// What it read of the partition.
    pub range: OffsetRange,
}

impl Reader {
    /// The batch of `group` that read it.
    pub fn new(group: &Group, reading: Reading) -> Reader {
        let Reading { batch, seq, batch_time, recorded_at, epoch, topic_id, range } = reading;
        let (group, app) = (group.group().to_owned(), group.app().to_owned());
        Reader { group, app, batch, seq, batch_time, recorded_at, epoch, topic_id, range }
    }
}
