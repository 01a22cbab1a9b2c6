//! Lists: one field named as the last word of the route, and the cursor to go on with.

use serde::{Deserialize, Serialize};

use crate::journal::Reading;
use crate::offset::{BatchNumber, Epoch, Group, OffsetRange, Seq, Timestamp, TopicId};
use crate::wire::{Batch, Entry, GroupSummary, LossLine};

/// Groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupsAnswer {
    /// This part of the list.
    pub groups: Vec<GroupSummary>,
    /// Where the next part begins; null at the end.
    pub next: Option<String>,
}

/// Batches of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchesAnswer {
    /// This part of the list.
    pub batches: Vec<Batch>,
    /// Where the next part begins; null at the end.
    pub next: Option<String>,
}

/// Entries of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EntriesAnswer {
    /// This part of the list.
    pub entries: Vec<Entry>,
    /// Where the next part begins; null at the end.
    pub next: Option<String>,
}

/// Losses and open holes of a group.
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
