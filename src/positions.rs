//! The state of groups, and the fold that makes it: [`State::apply`] is the only way that it changes, live, at open and
//! in tests. It sees the state and one entry, no history and no clock.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::entry::{Batch, Body, Cause, Correction, Entry, First, Hole, Loss, Move, Note, TopicChange};
use crate::offset::{
    BatchNumber, Epoch, Group, Isolation, Offset, OffsetRange, Seq, Timestamp, TopicId, TopicName, TopicPartition,
};

pub(crate) mod holes;

/// Former ids that are kept of a topic, so that an old answer of a lagging broker is known as such.
pub const MAX_FORMER_IDS: usize = 100;
/// Losses that nobody has acknowledged yet, kept for a group; older ones count as seen (they stay in history).
pub const MAX_OPEN_LOSSES: usize = 1_000;
/// Executed plans, kept for a group so that a repeated execution answers with the first receipt.
pub const MAX_PLANS: usize = 100;
/// Batches of a group that are kept to recognise a repeated commit.
pub const MAX_RECENT_BATCHES: usize = 1_000;
/// Ranges of those batches.
pub const MAX_RECENT_RANGES: usize = 100_000;

/// Everything that the entries so far add up to.
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
/// use tidelog::positions::State;
///
/// commit(500, 542)?;
/// // The state is the fold of all entries.
/// let mut state = State::default();
/// let all = tidelog::journal::Order::Ascending;
/// control.journal.visit_entries(None, state.seq, all, &mut |entry| {
///     state.apply(&entry);
///     std::ops::ControlFlow::Continue(())
/// })?;
/// assert_eq!(state.groups.get(&loader), control.journal.group(&loader).as_ref());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// The newest entry's number; 0 in a new journal.
    pub seq: Seq,
    /// The newest entry's time.
    pub recorded_at: Timestamp,
    /// The groups.
    pub groups: BTreeMap<Group, GroupState>,
}

impl State {
    /// Takes in the next entry.
    ///
    /// # Panics
    ///
    /// If `entry` does not follow the newest one: that is a bug of ours, as recovery checks the numbers.
    pub fn apply(&mut self, entry: &Entry) {
        assert_eq!(entry.seq, self.seq.next(), "entries are applied in order, without gaps");
        self.seq = entry.seq;
        self.recorded_at = entry.recorded_at;
        if let Some(group) = &entry.group {
            self.groups.entry(group.clone()).or_default().apply(entry);
        } else if let Body::Pruned { .. } = &entry.body {
            // Removes history, changes no state.
        }
    }
}

/// One group.
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
/// let group = control.journal.group(&loader).ok_or("it was started")?;
/// assert_eq!((group.owner.as_deref(), group.epoch, group.held), (Some("me"), started.epoch, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupState {
    /// Where each partition continues.
    pub positions: Positions,
    /// The fencing number.
    pub epoch: Epoch,
    /// What raised the epoch last.
    pub raised_by: Option<RaisedBy>,
    /// The process that started the group last.
    pub owner: Option<String>,
    /// Who has picked up the present epoch, by a start or a commit under it.
    pub picked_up: Option<PickedUp>,
    /// What the group reads.
    pub isolation: Isolation,
    /// The cluster that the positions belong to.
    pub cluster_id: Option<String>,
    /// Set while an operator holds the group.
    pub held: Option<Hold>,
    /// Whether the group is no longer wanted.
    pub retired: bool,
    /// The newest batches that still stand, oldest first: those with a key, and the newest one.
    pub recent: VecDeque<RecentBatch>,
    /// Losses that nobody has acknowledged, oldest first.
    pub losses: VecDeque<OpenLoss>,
    /// Executed plans with the entry that they made, oldest first.
    pub plans: VecDeque<(String, Seq)>,
    /// The newest `rolled_back`.
    pub last_move: Option<Seq>,
    /// When the newest batch was recorded.
    pub last_batch_recorded_at: Option<Timestamp>,
    /// The newest entry that concerns it.
    pub seq: Seq,
    /// The Kafka group whose committed offsets follow the positions; none where none does.
    pub kafka_group: Option<String>,
}

/// What raised an epoch.
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
///
/// let group = control.journal.group(&loader).ok_or("it was started")?;
/// let raised_by = group.raised_by.ok_or("its epoch is 1")?;
/// assert_eq!((raised_by.kind.as_str(), raised_by.by.as_deref()), ("started", Some("me")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RaisedBy {
    /// The kind of the entry.
    pub kind: String,
    /// The entry.
    pub seq: Seq,
    /// The owner that started, or the operator.
    pub by: Option<String>,
}

/// Who works under an epoch.
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
///
/// let group = control.journal.group(&loader).ok_or("it was started")?;
/// let picked_up = group.picked_up.ok_or("by who started it")?;
/// assert_eq!((picked_up.epoch, picked_up.owner.as_deref()), (started.epoch, Some("me")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PickedUp {
    /// The epoch.
    pub epoch: Epoch,
    /// The owner, where known.
    pub owner: Option<String>,
    /// Since when.
    pub at: Timestamp,
}

/// A stop by an operator.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # tidelog::control::start(&control, request)?;
///
/// let held = tidelog::control::hold(&control, &loader, "ann", "mending the sink")?;
/// let hold = control.journal.group(&loader).and_then(|group| group.held).ok_or("it is held")?;
/// assert_eq!((hold.actor.as_str(), hold.seq), ("ann", held.seq));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    /// Why.
    pub reason: String,
    /// Who.
    pub actor: String,
    /// Since when.
    pub since: Timestamp,
    /// The entry.
    pub seq: Seq,
}

/// A batch that a repeat is recognised by, as long as it stands.
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
/// let group = control.journal.group(&loader).ok_or("it was started")?;
/// assert_eq!(group.recent[0].batch, group.positions.batch);
/// assert_eq!(group.recent[0].ranges[0].to_string(), "orders/0 [500,542)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecentBatch {
    /// Its number.
    pub batch: BatchNumber,
    /// Its entry.
    pub seq: Seq,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// When the consumer cut it.
    pub batch_time: Timestamp,
    /// Its key.
    pub key: Option<String>,
    /// Its ranges, ordered by topic-partition.
    pub ranges: Vec<OffsetRange>,
    /// Its notes, for the receipt.
    pub notes: Vec<Note>,
}

/// A loss that nobody has acknowledged.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let at = tidelog::offset::TopicPartition::new("orders".parse()?, 0);
/// # let offsets = [(at.clone(), "500".parse()?)].into();
/// # let import = tidelog::control::Import { group: loader.clone(), source: "a file".into(), offsets, seen: None };
/// # tidelog::control::import::import(&control.journal, import)?;
///
/// use tidelog::control::{acknowledge, execute};
/// use tidelog::rollback::{PlanRequest, Target};
///
/// let to = Target::Offsets([(at, "600".parse()?)].into()); // it is at 500
/// let request = PlanRequest { unchecked: true, ..PlanRequest::new(loader.clone(), to) };
/// execute(&control, request, None, "ann", "those are not wanted")?;
/// let losses = || control.journal.group(&loader).map(|group| group.losses).unwrap_or_default();
/// assert_eq!(losses()[0].loss.until_offset, "600".parse()?);
/// acknowledge(&control, losses()[0].seq, "ann")?;
/// assert!(losses().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenLoss {
    /// What, and why.
    pub loss: Loss,
    /// The entry that noted it.
    pub seq: Seq,
    /// When.
    pub recorded_at: Timestamp,
}

/// The positions of a group: what "as of" answers, and what a snapshot in the store holds.
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
/// commit(510, 542)?;
/// let group = control.journal.group(&loader).ok_or("it was started")?;
/// let partition = group.positions.get(&"orders".parse()?, 0).ok_or("it is read")?;
/// assert_eq!((partition.position.get(), partition.holes.len()), (542, 1)); // [500,510) is open
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Positions {
    /// The newest batch; 0 before the first.
    pub batch: BatchNumber,
    /// The topics.
    pub topics: BTreeMap<TopicName, TopicState>,
}

/// One topic of a group.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let at = tidelog::offset::TopicPartition::new("orders".parse()?, 0);
/// # let offsets = [(at.clone(), "500".parse()?)].into();
/// # let import = tidelog::control::Import { group: loader.clone(), source: "a file".into(), offsets, seen: None };
/// # tidelog::control::import::import(&control.journal, import)?;
///
/// let group = control.journal.group(&loader).ok_or("it was imported")?;
/// let topic = &group.positions.topics[&at.topic];
/// assert_eq!((topic.partitions.len(), topic.incarnation), (1, 0)); // never found recreated
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TopicState {
    /// Kafka's id; none where the broker gives none.
    pub topic_id: Option<TopicId>,
    /// 0 for the first topic of this name, one more each time it was found recreated.
    pub incarnation: u32,
    /// Ids of earlier incarnations, oldest first.
    pub former_ids: Vec<TopicId>,
    /// Whether it is no longer wanted.
    pub retired: bool,
    /// Its partitions.
    pub partitions: BTreeMap<u32, PartitionState>,
}

/// One partition of a group.
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
/// let group = control.journal.group(&loader).ok_or("it was started")?;
/// let partition = group.positions.get(&"orders".parse()?, 0).ok_or("it is read")?;
/// assert_eq!((partition.first_position.get(), partition.position.get()), (500, 542));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionState {
    /// The next offset to read.
    pub position: Offset,
    /// The position that it had first, in this incarnation of the topic.
    pub first_position: Offset,
    /// Offsets below the position that no range covers, ascending and disjoint.
    pub holes: Vec<Hole>,
    /// Set while records that were read before a rollback are read again: up to here.
    pub replaying_until: Option<Offset>,
    /// The newest batch with a range of it.
    pub last_batch: Option<BatchNumber>,
    /// That batch's time.
    pub last_batch_time: Option<Timestamp>,
}

impl Positions {
    /// The partition's state, where the group has it.
    pub fn get(&self, topic: &TopicName, partition: u32) -> Option<&PartitionState> {
        self.topics.get(topic)?.partitions.get(&partition)
    }

    /// All partitions, ordered by topic-partition.
    pub fn iter(&self) -> impl Iterator<Item = (TopicPartition, &TopicState, &PartitionState)> {
        self.topics.iter().flat_map(|(name, topic)| {
            topic
                .partitions
                .iter()
                .map(move |(number, partition)| (TopicPartition::new(name.clone(), *number), topic, partition))
        })
    }

    /// How many holes are open.
    pub fn open_holes(&self) -> usize {
        self.iter().map(|(_, _, partition)| partition.holes.len()).sum()
    }

    /// Takes in what an entry of this group does to positions; entries of other kinds change nothing.
    pub fn apply(&mut self, entry: &Entry) {
        match &entry.body {
            Body::Batch(batch) => self.apply_batch(entry.seq, batch),
            Body::Reconciled { correction, .. }
            | Body::PartitionsAdded { correction, .. }
            | Body::Imported { correction, .. } => self.apply_correction(correction),
            Body::RolledBack(rolled_back) => self.apply_correction(&rolled_back.correction),
            Body::Retired { topic: Some(topic), .. } => {
                if let Some(topic) = self.topics.get_mut(topic) {
                    topic.retired = true;
                }
            }
            Body::LossAcknowledged { of, .. } => {
                for topic in self.topics.values_mut() {
                    for partition in topic.partitions.values_mut() {
                        partition.holes.retain(|hole| hole.seq != *of);
                    }
                }
            }
            Body::Started { .. }
            | Body::KafkaResult { .. }
            | Body::Held { .. }
            | Body::Released { .. }
            | Body::Retired { topic: None, .. }
            | Body::Mark { .. }
            | Body::Pruned { .. } => {}
        }
    }

    fn apply_batch(&mut self, seq: Seq, batch: &Batch) {
        self.batch = batch.batch;
        for first in &batch.firsts {
            let topic = self.topics.entry(first.at.topic.clone()).or_default();
            if topic.topic_id.is_none() {
                topic.topic_id = first.topic_id;
            }
        }
        let mut more_holes = false;
        for ranges in batch.ranges.chunk_by(|a, b| a.topic() == b.topic()) {
            let name = ranges[0].topic();
            // The name is compared, not cloned, when the topic is there.
            let topic = match self.topics.get_mut(name) {
                Some(topic) => topic,
                None => self.topics.entry(name.clone()).or_default(),
            };
            more_holes |= topic.apply_ranges(seq, batch, ranges);
        }
        if more_holes {
            holes::bound(self);
        }
    }

    fn apply_correction(&mut self, correction: &Correction) {
        for change in &correction.topics {
            self.apply_topic_change(change);
        }
        for moved in &correction.moves {
            self.apply_move(moved);
        }
        if correction.moves.iter().any(|moved| !moved.holes.is_empty()) {
            holes::bound(self);
        }
    }

    fn apply_topic_change(&mut self, change: &TopicChange) {
        let topic = self.topics.entry(change.topic.clone()).or_default();
        topic.retired = false;
        if change.new_incarnation {
            topic.incarnation += 1;
            if let Some(id) = topic.topic_id {
                topic.former_ids.push(id);
                let excess = topic.former_ids.len().saturating_sub(MAX_FORMER_IDS);
                topic.former_ids.drain(..excess);
            }
            // Positions of the old incarnation mean nothing in the new one; the moves set those that are there.
            topic.partitions.clear();
        }
        topic.topic_id = change.topic_id;
    }

    fn apply_move(&mut self, moved: &Move) {
        let topic = self.topics.entry(moved.topic.clone()).or_default();
        let Some(position) = moved.new else {
            topic.partitions.remove(&moved.partition);
            return;
        };
        let partition =
            topic.partitions.entry(moved.partition).or_insert_with(|| PartitionState::at(position, position));
        partition.position = position;
        partition.holes.clone_from(&moved.holes);
        partition.replaying_until = moved.replaying_until.filter(|until| *until > position);
    }
}

impl TopicState {
    /// Takes in the ranges of this topic; whether there are more holes now.
    fn apply_ranges(&mut self, seq: Seq, batch: &Batch, ranges: &[OffsetRange]) -> bool {
        let mut more_holes = false;
        // A batch of most partitions is walked beside them: with 10,000 of them looking up each takes ten times as long.
        let mut looked_up = Vec::new();
        if ranges.len() > 1 && ranges.len() * 8 >= self.partitions.len() {
            let mut known = self.partitions.range_mut(ranges[0].partition()..);
            let mut next = known.next();
            for range in ranges {
                while next.as_ref().is_some_and(|(number, _)| **number < range.partition()) {
                    next = known.next();
                }
                match &mut next {
                    Some((number, partition)) if **number == range.partition() => {
                        more_holes |= partition.commit(seq, batch, range);
                    }
                    _ => looked_up.push(range),
                }
            }
        } else {
            looked_up.extend(ranges);
        }
        for range in looked_up {
            let partition = self.partitions.entry(range.partition()).or_insert_with(|| {
                // Ordered by topic-partition; a batch may bring in 100,000 of them.
                let place =
                    |first: &First| (&first.at.topic, first.at.partition).cmp(&(range.topic(), range.partition()));
                let first = batch.firsts.binary_search_by(place).ok().map(|index| &batch.firsts[index]);
                let from = range.from_offset();
                let earliest = first.and_then(|first| first.earliest).unwrap_or(from).min(from);
                PartitionState::at(earliest, from)
            });
            more_holes |= partition.commit(seq, batch, range);
        }
        more_holes
    }
}

impl PartitionState {
    /// A partition at `position`, which it has first.
    fn at(first_position: Offset, position: Offset) -> Self {
        PartitionState {
            position: first_position.min(position),
            first_position: position,
            holes: Vec::new(),
            replaying_until: None,
            last_batch: None,
            last_batch_time: None,
        }
    }

    /// Takes in its range of a batch; whether there are more holes now: one was opened, or split by a late range.
    fn commit(&mut self, seq: Seq, batch: &Batch, range: &OffsetRange) -> bool {
        let (from, until, before) = (range.from_offset(), range.until_offset(), self.holes.len());
        (self.last_batch, self.last_batch_time) = (Some(batch.batch), Some(batch.batch_time));
        if from > self.position {
            self.holes.push(Hole { from_offset: self.position, until_offset: from, seq });
        } else {
            holes::cut(&mut self.holes, from, until);
        }
        self.position = self.position.max(until);
        if self.replaying_until.is_some_and(|end| self.position >= end) {
            self.replaying_until = None;
        }
        self.holes.len() > before
    }
}

impl GroupState {
    /// Takes in an entry of this group.
    fn apply(&mut self, entry: &Entry) {
        self.seq = entry.seq;
        self.positions.apply(entry);
        match &entry.body {
            Body::Batch(batch) => self.apply_batch(entry, batch),
            Body::Started { owner, isolation, kafka_group } => {
                self.owner = Some(owner.clone());
                self.isolation = *isolation;
                self.kafka_group.clone_from(kafka_group);
                self.retired = false;
                self.raise_epoch(entry, Some(owner));
                self.picked_up =
                    Some(PickedUp { epoch: entry.epoch, owner: Some(owner.clone()), at: entry.recorded_at });
            }
            Body::Reconciled { correction, .. } | Body::PartitionsAdded { correction, .. } => {
                let owner = self.owner.clone();
                self.raise_epoch(entry, owner.as_deref());
                // They come of the owner's own start or look.
                self.pick_up(entry);
                self.apply_correction(entry, correction);
            }
            Body::Imported { correction, .. } => {
                let owner = self.owner.clone();
                self.raise_epoch(entry, owner.as_deref());
                self.apply_correction(entry, correction);
            }
            Body::RolledBack(rolled_back) => {
                self.raise_epoch(entry, Some(&rolled_back.actor));
                self.apply_correction(entry, &rolled_back.correction);
                self.last_move = Some(entry.seq);
                self.plans.push_back((rolled_back.plan.clone(), entry.seq));
                trim(&mut self.plans, MAX_PLANS);
            }
            Body::Held { reason, actor } => {
                self.held = Some(Hold {
                    reason: reason.clone(),
                    actor: actor.clone(),
                    since: entry.recorded_at,
                    seq: entry.seq,
                });
            }
            Body::Released { .. } => self.held = None,
            Body::Retired { topic: None, .. } => self.retired = true,
            Body::LossAcknowledged { of, .. } => self.losses.retain(|open| open.seq != *of),
            Body::Retired { topic: Some(_), .. }
            | Body::KafkaResult { .. }
            | Body::Mark { .. }
            | Body::Pruned { .. } => {}
        }
    }

    fn raise_epoch(&mut self, entry: &Entry, by: Option<&str>) {
        if entry.epoch > self.epoch {
            self.epoch = entry.epoch;
            self.raised_by =
                Some(RaisedBy { kind: entry.body.kind().to_owned(), seq: entry.seq, by: by.map(str::to_owned) });
        }
    }

    /// Notes that the owner works under the entry's epoch, if that is not known yet.
    fn pick_up(&mut self, entry: &Entry) {
        if self.picked_up.as_ref().is_none_or(|picked_up| picked_up.epoch != entry.epoch) {
            self.picked_up = Some(PickedUp { epoch: entry.epoch, owner: self.owner.clone(), at: entry.recorded_at });
        }
    }

    fn apply_batch(&mut self, entry: &Entry, batch: &Batch) {
        self.last_batch_recorded_at = Some(entry.recorded_at);
        self.pick_up(entry);
        // Only the newest batch is remembered without a key.
        if self.recent.back().is_some_and(|newest| newest.key.is_none()) {
            self.recent.pop_back();
        }
        self.recent.push_back(RecentBatch {
            batch: batch.batch,
            seq: entry.seq,
            recorded_at: entry.recorded_at,
            batch_time: batch.batch_time,
            key: batch.key.clone(),
            ranges: batch.ranges.clone(),
            notes: batch.notes.clone(),
        });
        let oldest = batch.batch.as_u64().saturating_sub(MAX_RECENT_BATCHES as u64);
        let mut ranges = self.recent.iter().map(|recent| recent.ranges.len()).sum::<usize>();
        while self.recent.len() > 1
            && self.recent.front().is_some_and(|b| b.batch.as_u64() <= oldest || ranges > MAX_RECENT_RANGES)
        {
            ranges -= self.recent.pop_front().map_or(0, |b| b.ranges.len());
        }
    }

    fn apply_correction(&mut self, entry: &Entry, correction: &Correction) {
        if let Some(cluster_id) = &correction.cluster_id {
            self.cluster_id = Some(cluster_id.clone());
        }
        self.forget_overtaken(correction);
        for loss in &correction.losses {
            self.losses.push_back(OpenLoss { loss: loss.clone(), seq: entry.seq, recorded_at: entry.recorded_at });
        }
        trim(&mut self.losses, MAX_OPEN_LOSSES);
    }

    /// Drops what a move back makes untrue: batches stop standing once a position is set below their end or their
    /// topic is another one, and what an operator or a policy had skipped will be read after all.
    fn forget_overtaken(&mut self, correction: &Correction) {
        let new_incarnation =
            |topic: &TopicName| correction.topics.iter().any(|t| t.new_incarnation && t.topic == *topic);
        let moved = |topic: &TopicName, partition: u32| {
            let found = correction
                .moves
                .binary_search_by(|m| (&m.topic, m.partition).cmp(&(topic, partition)))
                .ok()
                .map(|index| &correction.moves[index]);
            found.and_then(|moved| moved.new.map(|new| (new, &moved.holes)))
        };
        self.recent.retain(|batch| {
            batch.ranges.iter().all(|range| {
                let (from, until) = (range.from_offset(), range.until_offset());
                // A range that is open again is to be committed again.
                let open = |hole: &Hole| hole.from_offset < until && from < hole.until_offset;
                !new_incarnation(range.topic())
                    && moved(range.topic(), range.partition())
                        .is_none_or(|(new, holes)| new >= until && !holes.iter().any(open))
            })
        });
        self.losses.retain_mut(|open| {
            let loss = &mut open.loss;
            if !matches!(loss.cause, Cause::Skipped | Cause::Unread) || new_incarnation(&loss.topic) {
                return true;
            }
            if let Some((new, _)) = moved(&loss.topic, loss.partition) {
                loss.until_offset = loss.until_offset.min(new.max(loss.from_offset));
            }
            loss.from_offset < loss.until_offset
        });
    }
}

/// Drops the oldest until at most `limit` are left.
fn trim<T>(queue: &mut VecDeque<T>, limit: usize) {
    let excess = queue.len().saturating_sub(limit);
    queue.drain(..excess);
}
