//! A batch in the consumer's hands.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use super::handover::Handover;
use crate::commit::Commit;
use crate::kafka::raw::{Handle, Headers, Message};
use crate::offset::{
    BatchNumber, Epoch, Group, Invalid, Offset, OffsetRange, Timestamp, TopicId, TopicName, TopicPartition,
};
use crate::results::Puts;

/// Records of a batch as librdkafka received them. The order of the fields matters: messages go before their client.
#[derive(Default)]
pub(super) struct Records {
    pub(super) kept: Vec<(Message, u32)>,
    pub(super) names: Arc<Vec<TopicPartition>>,
    pub(super) unpacking: Mutex<()>,
    /// Never read: held.
    pub(super) _handle: Option<Arc<Handle>>,
}

/// A batch as it was cut.
pub(super) struct CutBatch {
    pub(super) order: u64,
    pub(super) generation: u64,
    pub(super) number: BatchNumber,
    pub(super) epoch: Epoch,
    pub(super) batch_time: Timestamp,
    pub(super) ranges: Vec<OffsetRange>,
    pub(super) topic_ids: BTreeMap<TopicName, TopicId>,
    pub(super) replaying: bool,
    pub(super) records: Records,
}

impl CutBatch {
    /// Its commit, without a key.
    pub(super) fn commit(&self, group: &Group) -> Commit {
        let commit = Commit::new(group.clone(), self.epoch, self.batch_time, self.ranges.clone());
        let commit = commit.expect("a batch has ranges, one for each partition");
        self.topic_ids.iter().fold(commit, |commit, (topic, id)| commit.with_topic_id(topic.clone(), *id))
    }
}

/// Records that are committed together, or not at all.
///
/// Dropped without a commit, it is handed out again by the same consumer, with the same records and ranges: nothing is
/// skipped by forgetting it.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let cluster = tidelog::kafka::mock::Mock::new(1)?;
/// # let orders = tidelog::offset::TopicPartition::new("orders".parse()?, 0);
/// # cluster.create_topic(&orders.topic, 1)?;
/// # cluster.produce(&orders, [(Some("key"), "a")])?;
/// # let broker = std::sync::Arc::new(tidelog::kafka::KafkaBroker::new(&cluster.config(), clock.clone())?);
/// # let control = tidelog::control::Control::new(journal, Some(broker), clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader, vec!["orders".parse()?], "loader-1");
/// # let cut = tidelog::kafka::Cut { max_wait: std::time::Duration::from_millis(50), ..Default::default() };
/// # let config = tidelog::kafka::Config { client: cluster.config(), cut, discovery: Default::default() };
/// # let consumer = tidelog::kafka::JournaledConsumer::begin(config, control, request)?;
/// use std::time::Duration;
///
/// let mut batch = consumer.next_batch(Duration::from_secs(30))?.ok_or("there is a record")?;
/// assert_eq!((batch.len(), batch.ranges()[0].to_string().as_str()), (1, "orders/0 [0,1)"));
/// batch.set_key("job-17/1")?;
/// drop(batch); // not committed: it comes again
/// let again = consumer.next_batch(Duration::from_secs(30))?.ok_or("it is handed out again")?;
/// assert_eq!(consumer.commit(again)?.batch.get(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Batch {
    cut: Option<Box<CutBatch>>,
    key: Option<String>,
    home: Arc<Handover>,
}

impl Batch {
    pub(super) fn new(cut: Box<CutBatch>, home: Arc<Handover>) -> Batch {
        Batch { cut: Some(cut), key: None, home }
    }

    fn cut(&self) -> &CutBatch {
        self.cut.as_ref().expect("taken only by a commit, which takes the batch")
    }

    /// Its commit, with these results.
    pub(super) fn commit(&self, group: &Group, puts: Puts) -> Commit {
        let commit = self.cut().commit(group).with_puts(puts);
        match &self.key {
            Some(key) => commit.with_key(key).expect("a key is checked when it is set"),
            None => commit,
        }
    }

    /// What was cut; it is not handed out again.
    pub(super) fn into_cut(mut self) -> Box<CutBatch> {
        self.cut.take().expect("taken only once, as the batch is taken with it")
    }

    /// Of which positions it was read.
    pub(super) fn generation(&self) -> u64 {
        self.cut().generation
    }

    /// The number that it will likely get in the journal: others may commit to the group before it.
    pub fn number(&self) -> BatchNumber {
        self.cut().number
    }

    /// The epoch that it was read under.
    pub fn epoch(&self) -> Epoch {
        self.cut().epoch
    }

    /// When it was cut.
    pub fn batch_time(&self) -> Timestamp {
        self.cut().batch_time
    }

    /// Its ranges, ordered by topic-partition, without those of idle partitions. Each begins where the one before it ended.
    pub fn ranges(&self) -> &[OffsetRange] {
        &self.cut().ranges
    }

    /// The ids of the topics that it was read from, where the broker gives any.
    pub fn topic_ids(&self) -> &BTreeMap<TopicName, TopicId> {
        &self.cut().topic_ids
    }

    /// Whether records in it were read before a rollback.
    pub fn is_replaying(&self) -> bool {
        self.cut().replaying
    }

    /// How many records it has.
    pub fn len(&self) -> usize {
        self.cut().records.kept.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its records: ascending within a partition, in no order between partitions.
    pub fn records(&self) -> impl ExactSizeIterator<Item = Record<'_>> {
        let records = &self.cut().records;
        records.kept.iter().map(|(message, place)| Record { message, at: &records.names[*place as usize], records })
    }

    /// Gives the commit an idempotency key: 1 to 255 bytes without NUL.
    pub fn set_key(&mut self, key: impl Into<String>) -> Result<(), Invalid> {
        let key = key.into();
        crate::offset::free_name("key", &key)?;
        self.key = Some(key);
        Ok(())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(cut) = self.cut.take() {
            self.home.give_back(cut);
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("number", &self.number())
            .field("ranges", &self.ranges())
            .field("records", &self.len())
            .finish_non_exhaustive()
    }
}

/// One record, borrowed from its batch: nothing is copied.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let cluster = tidelog::kafka::mock::Mock::new(1)?;
/// # let orders = tidelog::offset::TopicPartition::new("orders".parse()?, 0);
/// # cluster.create_topic(&orders.topic, 1)?;
/// # cluster.produce(&orders, [(Some("key"), "a")])?;
/// # let broker = std::sync::Arc::new(tidelog::kafka::KafkaBroker::new(&cluster.config(), clock.clone())?);
/// # let control = tidelog::control::Control::new(journal, Some(broker), clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader, vec!["orders".parse()?], "loader-1");
/// # let cut = tidelog::kafka::Cut { max_wait: std::time::Duration::from_millis(50), ..Default::default() };
/// # let config = tidelog::kafka::Config { client: cluster.config(), cut, discovery: Default::default() };
/// # let consumer = tidelog::kafka::JournaledConsumer::begin(config, control, request)?;
/// let batch = consumer.next_batch(std::time::Duration::from_secs(30))?.ok_or("there is a record")?;
/// let record = batch.records().next().ok_or("one")?;
/// assert_eq!((record.topic().as_str(), record.partition(), record.offset().get()), ("orders", 0, 0));
/// assert_eq!((record.key(), record.payload()), (Some(&b"key"[..]), Some(&b"a"[..])));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Record<'a> {
    message: &'a Message,
    at: &'a TopicPartition,
    records: &'a Records,
}

impl<'a> Record<'a> {
    /// The topic.
    pub fn topic(&self) -> &'a TopicName {
        &self.at.topic
    }

    /// The partition's number.
    pub fn partition(&self) -> u32 {
        self.at.partition
    }

    /// Its own offset.
    pub fn offset(&self) -> Offset {
        Offset::new(self.message.offset()).unwrap_or(Offset::ZERO)
    }

    /// The time that the producer or the broker gave it.
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.message.timestamp().map(Timestamp::from_millis)
    }

    /// Its key.
    pub fn key(&self) -> Option<&'a [u8]> {
        self.message.key()
    }

    /// Its value; none for a tombstone.
    pub fn payload(&self) -> Option<&'a [u8]> {
        self.message.payload()
    }

    /// Its headers in order: name and value.
    pub fn headers(&self) -> Headers<'a> {
        self.message.headers(&self.records.unpacking)
    }
}

impl fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.at, self.message.offset())
    }
}
