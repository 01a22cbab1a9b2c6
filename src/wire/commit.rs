//! A commit: what is posted, and the receipt.

use std::collections::BTreeMap;

use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::commit::{Commit, MAX_RANGES, Receipt};
use crate::entry::Note;
use crate::offset::{
    BatchNumber, Epoch, Group, Invalid, Offset, OffsetRange, Seq, Timestamp, TopicId, TopicName, TopicPartition,
};

/// Offsets by topic and partition, as Spark reads and writes them: `{"orders": {"0": 500}}`, in plain integers.
///
/// ```
/// use tidelog::wire::SparkOffsets;
///
/// let offsets: SparkOffsets = serde_json::from_str(r#"{"orders": {"0": 500, "1": 250}}"#)?;
/// assert_eq!(offsets.iter().count(), 2);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct SparkOffsets(pub BTreeMap<TopicName, BTreeMap<u32, Offset>>);

impl SparkOffsets {
    /// The offsets, ordered by topic-partition.
    pub fn iter(&self) -> impl Iterator<Item = (TopicPartition, Offset)> {
        self.0.iter().flat_map(|(topic, partitions)| {
            partitions.iter().map(|(partition, offset)| (TopicPartition::new(topic.clone(), *partition), *offset))
        })
    }
}

impl FromIterator<(TopicName, u32, Offset)> for SparkOffsets {
    fn from_iter<I: IntoIterator<Item = (TopicName, u32, Offset)>>(offsets: I) -> Self {
        let mut spark = SparkOffsets::default();
        for (topic, partition, offset) in offsets {
            spark.0.entry(topic).or_default().insert(partition, offset);
        }
        spark
    }
}

impl Serialize for SparkOffsets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let plain = |partitions: &BTreeMap<u32, Offset>| -> BTreeMap<u32, i64> {
            partitions.iter().map(|(partition, offset)| (*partition, offset.get())).collect()
        };
        serializer.collect_map(self.0.iter().map(|(topic, partitions)| (topic, plain(partitions))))
    }
}

/// A batch to be committed; without the group, which the route names. Either `ranges` or `spark`.
///
/// ```
/// use tidelog::offset::Group;
/// use tidelog::wire::CommitBody;
///
/// let body: CommitBody = serde_json::from_str(
///     r#"{"epoch": "3", "batch_time": "2026-11-30T10:00:00Z",
///         "ranges": [{"topic": "orders", "partition": 0, "from_offset": "500", "until_offset": 542}]}"#,
/// )?;
/// let commit = body.commit(Group::new("default", "loader")?)?;
/// assert_eq!(commit.ranges()[0].count(), 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitBody {
    /// The epoch that it was read under.
    pub epoch: Epoch,
    /// When the consumer cut it.
    pub batch_time: Timestamp,
    /// The idempotency key.
    #[serde(default)]
    pub key: Option<String>,
    /// What was read.
    #[serde(default)]
    pub ranges: Option<Vec<RangeBody>>,
    /// The same as Spark's pair.
    #[serde(default)]
    pub spark: Option<SparkPair>,
}

/// The offsets `[from_offset, until_offset)` of a partition.
///
/// ```
/// use tidelog::wire::RangeBody;
///
/// let text = r#"{"topic": "orders", "partition": 0, "from_offset": "500", "until_offset": 542}"#;
/// let range: RangeBody = serde_json::from_str(text)?;
/// assert_eq!((range.until_offset.get(), range.topic_id), (542, None));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeBody {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
    /// Where reading began.
    pub from_offset: Offset,
    /// The next offset to read.
    pub until_offset: Offset,
    /// Which incarnation of the topic was read.
    #[serde(default)]
    pub topic_id: Option<TopicId>,
}

/// Where a batch of Spark's begins and ends.
///
/// ```
/// use tidelog::offset::Group;
/// use tidelog::wire::CommitBody;
///
/// let body: CommitBody = serde_json::from_str(
///     r#"{"epoch": "3", "batch_time": "2026-11-30T10:00:00Z",
///         "spark": {"start": {"orders": {"0": 500}}, "end": {"orders": {"0": 542}}}}"#,
/// )?;
/// assert_eq!(body.commit(Group::new("default", "loader")?)?.ranges()[0].count(), 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SparkPair {
    /// `startOffset`.
    pub start: SparkOffsets,
    /// `endOffset`.
    pub end: SparkOffsets,
}

impl CommitBody {
    /// The commit of `group`.
    ///
    /// # Errors
    ///
    /// Neither or both forms of ranges, none or too many of them, one that no partition can have, a partition twice
    /// whose ranges don't touch, two ids for a topic, or a key that is no key.
    pub fn commit(self, group: Group) -> Result<Commit, Invalid> {
        let ranges = match (self.ranges, self.spark) {
            (Some(ranges), None) => ranges,
            (None, Some(pair)) => pair.ranges()?,
            (Some(_), Some(_)) => return Err(Invalid::new("ranges", "", "given beside spark; give one of the two")),
            (None, None) => return Err(Invalid::new("ranges", "", "missing; give ranges, or spark in their place")),
        };
        if ranges.len() > MAX_RANGES {
            return Err(Invalid::new("ranges", ranges.len(), format!("a batch has at most {MAX_RANGES} ranges")));
        }
        let mut topic_ids = BTreeMap::new();
        let mut read = Vec::with_capacity(ranges.len());
        for RangeBody { topic, partition, from_offset, until_offset, topic_id } in ranges {
            if let Some(id) = topic_id
                && let Some(other) = topic_ids.insert(topic.clone(), id)
                && other != id
            {
                return Err(Invalid::new("topic_id", id, format!("{topic} has {other} in another range")));
            }
            read.push(OffsetRange::new(topic, partition, from_offset, until_offset)?);
        }
        let commit = Commit::new(group, self.epoch, self.batch_time, read)?;
        let commit = topic_ids.into_iter().fold(commit, |commit, (topic, id)| commit.with_topic_id(topic, id));
        match self.key {
            Some(key) => commit.with_key(key),
            None => Ok(commit),
        }
    }
}

impl SparkPair {
    /// A range for each partition, which must stand in both maps.
    fn ranges(self) -> Result<Vec<RangeBody>, Invalid> {
        let mut ends: BTreeMap<TopicPartition, Offset> = self.end.iter().collect();
        let mut ranges = Vec::with_capacity(ends.len());
        for (at, from_offset) in self.start.iter() {
            let until_offset = ends.remove(&at);
            let until_offset = until_offset.ok_or_else(|| Invalid::new("spark.end", &at, "is in spark.start only"))?;
            let TopicPartition { topic, partition } = at;
            ranges.push(RangeBody { topic, partition, from_offset, until_offset, topic_id: None });
        }
        match ends.into_keys().next() {
            Some(at) => Err(Invalid::new("spark.start", at, "is in spark.end only; say where it began")),
            None => Ok(ranges),
        }
    }
}

/// What an acknowledged commit is told.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let at = tidelog::offset::TopicPartition::new("orders".parse()?, 0);
/// # let mut request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # request.policy.new_group = tidelog::reconcile::NewGroup::Offsets([(at, "500".parse()?)].into());
/// # let started = tidelog::control::start(&control, request)?;
/// # let commit = |from: i64, until: i64| -> Result<_, Box<dyn std::error::Error>> {
/// #     use tidelog::offset::{Offset, OffsetRange, Timestamp};
/// #     let range = OffsetRange::new("orders".parse()?, 0, Offset::new(from)?, Offset::new(until)?)?;
/// #     let time = Timestamp::from_millis(1_796_032_800_000 + from);
/// #     Ok(control.journal.commit(tidelog::commit::Commit::new(loader.clone(), started.epoch, time, vec![range])?)?)
/// # };
/// use tidelog::wire::ReceiptAnswer;
///
/// let answer = serde_json::to_value(ReceiptAnswer::from(commit(500, 542)?))?;
/// assert_eq!(answer["batch"], "1"); // numbers of 64 bits are strings
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceiptAnswer {
    /// The batch's number.
    pub batch: BatchNumber,
    /// Its entry.
    pub seq: Seq,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// Whether it had been committed before, and this is the first receipt again.
    pub repeated: bool,
    /// Holes, overlaps, late and first ranges.
    pub notes: Vec<Note>,
}

impl From<Receipt> for ReceiptAnswer {
    fn from(receipt: Receipt) -> Self {
        let Receipt { batch, seq, recorded_at, repeated, notes } = receipt;
        ReceiptAnswer { batch, seq, recorded_at, repeated, notes }
    }
}

#[cfg(test)]
mod tests;
