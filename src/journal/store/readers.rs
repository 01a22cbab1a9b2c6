//! Which batches read an offset: over the spans of blocks. Only a block that may hold one is decoded.

use super::error::StoreError;
use super::{Order, Shared, Store, View, keys};
use crate::entry::{Body, Entry};
use crate::journal::codec::block;
use crate::journal::codec::spans::Span;
use crate::offset::{BatchNumber, Epoch, Group, Offset, OffsetRange, Seq, Timestamp, TopicId, TopicName};

/// Blocks that are looked at to find the first one that may hold the offset: a binary search needs a fraction, unless
/// the partition is in few blocks.
const MAX_SEARCH: usize = 100;

/// An offset of a group's partition, whose readers are wanted.
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
/// use tidelog::journal::{Order, Portion, Question};
/// use tidelog::offset::{Offset, Seq};
///
/// commit(500, 542)?;
/// let question = Question {
///     group: loader,
///     topic: "orders".parse()?,
///     partition: 0,
///     offset: Offset::new(517)?,
///     order: Order::Descending,
/// };
/// let found = control.journal.readers(&question, Seq::MAX, Portion { heads: 1_000, readings: 10 })?;
/// assert_eq!(found.readings[0].range.to_string(), "orders/0 [500,542)");
/// assert_eq!(found.next, None); // that is all
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Question {
    /// The group.
    pub group: Group,
    /// The topic, in each of its incarnations.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
    /// The offset.
    pub offset: Offset,
    /// Newest or oldest first.
    pub order: Order,
}

impl Question {
    /// What `entry` says to it, if it is a batch that read the offset.
    pub fn answer(&self, entry: Entry) -> Option<Reading> {
        let Entry { seq, recorded_at, epoch, body: Body::Batch(mut batch), .. } = entry else { return None };
        let topic_id = batch.topic_id(&self.topic);
        let reads = |range: &OffsetRange| {
            (range.topic(), range.partition()) == (&self.topic, self.partition)
                && (range.from_offset()..range.until_offset()).contains(&self.offset)
        };
        let place = batch.ranges.iter().position(reads)?;
        let range = batch.ranges.swap_remove(place);
        Some(Reading { batch: batch.batch, seq, batch_time: batch.batch_time, recorded_at, epoch, topic_id, range })
    }

    /// Whether `seq` is not before `from` on its way.
    pub fn reached(&self, seq: Seq, from: Seq) -> bool {
        match self.order {
            Order::Ascending => seq >= from,
            Order::Descending => seq <= from,
        }
    }
}

/// A batch that read an offset.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # let started = tidelog::control::start(&control, request)?;
/// # let time = tidelog::offset::Timestamp::from_millis(1_796_032_800_000);
/// # let range = tidelog::offset::OffsetRange::new("orders".parse()?, 0, "500".parse()?, "542".parse()?)?;
/// # control.journal.commit(tidelog::commit::Commit::new(loader.clone(), started.epoch, time, vec![range])?)?;
///
/// use tidelog::journal::{Order, Question};
///
/// let (group, topic, offset) = (loader.clone(), "orders".parse()?, "517".parse()?);
/// let question = Question { group, topic, partition: 0, offset, order: Order::Ascending };
/// let entry = control.journal.batch(&loader, "1".parse()?)?.ok_or("it is there")?;
/// let reading = question.answer(entry).ok_or("it read the offset")?;
/// assert_eq!((reading.epoch, reading.range.to_string().as_str()), (started.epoch, "orders/0 [500,542)"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
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
    /// The incarnation of the topic that it was read from, where known.
    pub topic_id: Option<TopicId>,
    /// What it read of the partition.
    pub range: OffsetRange,
}

/// A part of an answer.
///
/// ```
/// use tidelog::journal::{Portion, Readings};
///
/// let found = Readings { heads: 1, ..Readings::default() };
/// assert!(!found.is_enough(Portion { heads: 10, readings: 100 })); // goes on looking
/// assert!(found.is_enough(Portion { heads: 1, readings: 100 })); // with or without a reading
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Readings {
    /// In the order that was asked for.
    pub readings: Vec<Reading>,
    /// Where to go on; none at the end.
    pub next: Option<Seq>,
    /// Blocks, and stretches of what is not sealed, that were looked at.
    pub heads: usize,
}

/// How much of an answer is wanted at once: whichever is reached first ends the part. At least one head is looked at.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # let started = tidelog::control::start(&control, request)?;
/// # let time = tidelog::offset::Timestamp::from_millis(1_796_032_800_000);
/// # let range = tidelog::offset::OffsetRange::new("orders".parse()?, 0, "500".parse()?, "542".parse()?)?;
/// # control.journal.commit(tidelog::commit::Commit::new(loader.clone(), started.epoch, time, vec![range])?)?;
///
/// use tidelog::journal::{Order, Portion, Question};
///
/// let (topic, offset) = ("orders".parse()?, "517".parse()?);
/// let question = Question { group: loader, topic, partition: 0, offset, order: Order::Ascending };
/// let little = Portion { heads: 1, readings: 1 };
/// let found = control.journal.readers(&question, "1".parse()?, little)?;
/// assert!(found.is_enough(little));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Portion {
    /// Blocks, and stretches of what is not sealed.
    pub heads: usize,
    /// Readings; those of a block are given together.
    pub readings: usize,
}

impl Readings {
    /// Whether it is as much as was wanted.
    pub fn is_enough(&self, portion: Portion) -> bool {
        self.heads >= portion.heads || self.readings.len() >= portion.readings
    }
}

impl Store {
    /// Adds the sealed batches that read the offset, from seq `from` on (or back), to what was found so far.
    pub fn readers(
        &self,
        question: &Question,
        from: Seq,
        portion: Portion,
        found: &mut Readings,
    ) -> Result<(), StoreError> {
        found.next = None;
        let Some(view) = self.0.view(&question.group) else { return Ok(()) };
        let shared = &*self.0;
        let last = view.head.last_batch;
        let first = shared.first_reader(&view, question)?;
        let mut next = match question.order {
            Order::Ascending if from > view.sealed => return Ok(()),
            Order::Descending if from >= view.sealed => last,
            Order::Ascending | Order::Descending => {
                let block = shared.last_block_where(&view, &|head| head.first_seq <= from)?;
                match question.order {
                    Order::Ascending => block.map_or(1, |head| head.first_batch).max(first),
                    Order::Descending => block.map_or(0, |head| head.last_batch().min(last)),
                }
            }
        };
        let mut place = from;
        while (first..=last).contains(&next) {
            let (key, bytes, head) = shared.block_at(&view, next)?;
            if question.order == Order::Ascending {
                place = from.max(head.first_seq);
            }
            if found.is_enough(portion) {
                found.next = Some(place);
                return Ok(());
            }
            found.heads += 1;
            if shared.spans(&view, &key, &bytes, question)?.any(|span| span.holds(question.offset)) {
                let begin = found.readings.len();
                for entry in shared.batches(view.id, &key, &bytes)? {
                    let entry = entry.map_err(|e| shared.disk.codec_error(&key, e))?;
                    if entry.seq <= view.sealed && question.reached(entry.seq, from) {
                        found.readings.extend(question.answer(entry));
                    }
                }
                if question.order == Order::Descending {
                    found.readings[begin..].reverse();
                }
            }
            match question.order {
                Order::Ascending => next = head.last_batch() + 1,
                Order::Descending => (next, place) = (head.first_batch - 1, head.first_seq.previous()),
            }
        }
        Ok(())
    }
}

impl Span {
    fn holds(&self, offset: Offset) -> bool {
        (self.low..self.high).contains(&offset.as_u64())
    }
}

impl Shared {
    /// The first batch that may have read the offset: in the blocks before it nobody had come so far.
    fn first_reader(&self, view: &View, question: &Question) -> Result<u64, StoreError> {
        let (mut low, mut high) = (1, view.head.last_batch);
        let mut looks = 0;
        while low <= high && looks < MAX_SEARCH {
            let middle = low + (high - low) / 2;
            let (mut at, mut middle_end) = (middle, None);
            // The nearest block that knows how far the partition had been read by then.
            let passed = loop {
                let (key, bytes, head) = self.block_at(view, at)?;
                looks += 1;
                let middle_end = *middle_end.get_or_insert(head.last_batch());
                let reach = self.spans(view, &key, &bytes, question)?.map(|span| span.high.max(span.before)).max();
                match reach {
                    Some(reach) if reach > question.offset.as_u64() => break Some(head.first_batch - 1),
                    None if head.first_batch > low && looks < MAX_SEARCH => at = head.first_batch - 1,
                    None if head.first_batch > low => return Ok(low),
                    Some(_) | None => {
                        low = middle_end + 1;
                        break None;
                    }
                }
            };
            high = passed.unwrap_or(high);
        }
        Ok(low)
    }

    /// What the block says of the partition, for each incarnation of its topic.
    fn spans(
        &self,
        view: &View,
        key: &[u8],
        bytes: &[u8],
        question: &Question,
    ) -> Result<impl Iterator<Item = Span>, StoreError> {
        let mut spans = Vec::new();
        let names = self.names();
        for span in block::spans(bytes).map_err(|e| self.disk.codec_error(key, e))? {
            let (topic, partition, span) = span.map_err(|e| self.disk.codec_error(key, e))?;
            if partition == question.partition {
                let topic = names.topics.name(topic);
                let missing = || self.disk.damaged(format!("the name of a topic of group {} is missing", view.id));
                if topic.ok_or_else(missing)?.name == question.topic {
                    spans.push(span);
                }
            }
        }
        Ok(spans.into_iter())
    }

    /// How far each partition of a block had been read before it.
    pub fn befores(&self, key: &[u8], bytes: &[u8]) -> Result<Vec<(TopicName, u32, u64)>, StoreError> {
        let names = self.names();
        let spans = block::spans(bytes).map_err(|e| self.disk.codec_error(key, e))?;
        let before = |span: Result<(u32, u32, Span), _>| {
            let (topic, partition, span) = span.map_err(|e| self.disk.codec_error(key, e))?;
            let topic = names.topics.name(topic).map(|topic| topic.name.clone());
            let missing = || self.disk.damaged(format!("{}: the name of a topic is missing", keys::describe(key)));
            Ok((topic.ok_or_else(missing)?, partition, span.before))
        };
        spans.map(before).collect()
    }
}
