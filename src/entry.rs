//! The entries of the journal: what happened, with all that applying it needs (DESIGN section 3).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::offset::{
    BatchNumber, Epoch, Group, Isolation, Offset, OffsetRange, Seq, Timestamp, TopicId, TopicName, TopicPartition,
};
use crate::positions::GroupState;

/// One record of the journal. Never edited, never overwritten.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
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
/// use tidelog::entry::Body;
/// use tidelog::offset::Seq;
///
/// commit(500, 542)?;
/// let entry = control.journal.entry(Seq::new(3)?)?.ok_or("it is there")?;
/// assert_eq!((entry.body.kind(), entry.group), ("batch", Some(loader)));
/// let Body::Batch(batch) = entry.body else { return Ok(()) };
/// assert_eq!(batch.ranges[0].to_string(), "orders/0 [500,542)");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// 1, 2, 3 ... over the whole journal.
    pub seq: Seq,
    /// The journal's clock: never below the entry before.
    pub recorded_at: Timestamp,
    /// What the machine's own clock said then.
    pub machine_clock: Timestamp,
    /// The group that it concerns; none for `pruned`.
    pub group: Option<Group>,
    /// The group's epoch after this entry; for a batch the one it was read under.
    pub epoch: Epoch,
    /// What happened.
    pub body: Body,
}

/// An entry before the journal gives it its number and time: what a decision returns.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// use tidelog::entry::{Body, Draft};
/// use tidelog::offset::{Epoch, Group, Isolation};
///
/// let group = Some(Group::new("default", "loader")?);
/// let body = Body::Started { owner: "me".to_owned(), isolation: Isolation::default(), kafka_group: None };
/// let draft = Draft { group, epoch: Epoch::ZERO.next(), body };
/// let (entries, ()) = journal.decide(move |_state| Ok::<_, std::convert::Infallible>((vec![draft], ())))?;
/// assert_eq!(entries[0].seq.get(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The group that it concerns.
    pub group: Option<Group>,
    /// The group's epoch after it.
    pub epoch: Epoch,
    /// What happens.
    pub body: Body,
}

/// What happened, one variant a kind. A new kind is a variant here, an arm in `apply`, a tag in the codec, a line on the
/// wire: no match has `_`, so the compiler lists the places. The order is part of the format: append only.
///
/// ```
/// use tidelog::entry::Body;
///
/// let mark = Body::Mark { name: "before deploy 42".to_owned(), actor: "ann".to_owned() };
/// assert_eq!(mark.kind(), "mark");
/// assert!(mark.correction().is_none()); // it moves nothing
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// A consumer committed.
    Batch(Batch),
    /// Another owner started the group, or it changed its isolation or its Kafka group.
    Started {
        /// The process that starts, by its own name.
        owner: String,
        /// What the group reads from now on.
        isolation: Isolation,
        /// The Kafka group whose committed offsets follow its positions from now on; none where none does.
        kafka_group: Option<String>,
    },
    /// Positions were corrected, or set for the first time, after a look at the broker.
    Reconciled {
        /// What was seen, one for each partition that was not in range.
        findings: Vec<Finding>,
        /// What changes.
        correction: Correction,
    },
    /// Partitions, or whole topics, that the group did not have yet.
    PartitionsAdded {
        /// What was seen, one for each new partition.
        findings: Vec<Finding>,
        /// What changes.
        correction: Correction,
    },
    /// An operator moved the group.
    RolledBack(RolledBack),
    /// What setting Kafka's committed offsets came to.
    KafkaResult {
        /// The `rolled_back` that it belongs to.
        of: Seq,
        /// One for each partition.
        partitions: Vec<KafkaOutcome>,
    },
    /// An operator stopped the group: starts and commits are refused until it is released.
    Held {
        /// Why.
        reason: String,
        /// Who.
        actor: String,
    },
    /// The group may start and commit again.
    Released {
        /// Who.
        actor: String,
    },
    /// A topic, or the whole group, is no longer wanted.
    Retired {
        /// The topic; none for the whole group.
        topic: Option<TopicName>,
        /// Who.
        actor: String,
    },
    /// Somebody named the present state.
    Mark {
        /// The name.
        name: String,
        /// Who.
        actor: String,
    },
    /// An operator has seen a loss or a hole.
    LossAcknowledged {
        /// The entry that made it.
        of: Seq,
        /// Who.
        actor: String,
    },
    /// A new group's positions came from another store.
    Imported {
        /// Where from, for people.
        source: String,
        /// The positions.
        correction: Correction,
    },
    /// Old entries were removed; carries the state that they had led to.
    Pruned {
        /// The last entry that was removed.
        through: Seq,
        /// Who.
        actor: String,
        /// Each group as of `through`.
        groups: Vec<(Group, GroupState)>,
    },
}

impl Body {
    /// The kind's name, as on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Body::Batch(_) => "batch",
            Body::Started { .. } => "started",
            Body::Reconciled { .. } => "reconciled",
            Body::PartitionsAdded { .. } => "partitions_added",
            Body::RolledBack(_) => "rolled_back",
            Body::KafkaResult { .. } => "kafka_result",
            Body::Held { .. } => "held",
            Body::Released { .. } => "released",
            Body::Retired { .. } => "retired",
            Body::Mark { .. } => "mark",
            Body::LossAcknowledged { .. } => "loss_acknowledged",
            Body::Imported { .. } => "imported",
            Body::Pruned { .. } => "pruned",
        }
    }

    /// The moves of positions that it makes, other than by a batch.
    pub fn correction(&self) -> Option<&Correction> {
        match self {
            Body::Reconciled { correction, .. }
            | Body::PartitionsAdded { correction, .. }
            | Body::Imported { correction, .. } => Some(correction),
            Body::RolledBack(rolled_back) => Some(&rolled_back.correction),
            Body::Batch(_)
            | Body::Started { .. }
            | Body::KafkaResult { .. }
            | Body::Held { .. }
            | Body::Released { .. }
            | Body::Retired { .. }
            | Body::Mark { .. }
            | Body::LossAcknowledged { .. }
            | Body::Pruned { .. } => None,
        }
    }
}

/// Ranges committed together, at most one for each topic-partition.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
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
/// use tidelog::entry::Body;
///
/// let receipt = commit(500, 542)?;
/// let entry = control.journal.batch(&loader, receipt.batch)?.ok_or("it is there")?;
/// let Body::Batch(batch) = entry.body else { return Ok(()) };
/// assert_eq!((batch.batch.get(), batch.ranges.len(), batch.key), (1, 1, None));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// Its number within the group.
    pub batch: BatchNumber,
    /// When the consumer cut it.
    pub batch_time: Timestamp,
    /// The idempotency key, where one was given.
    pub key: Option<String>,
    /// The ranges, ordered by topic-partition.
    pub ranges: Vec<OffsetRange>,
    /// What the check noted: derived from the state before it, kept so that a reader of history needs no fold.
    pub notes: Vec<Note>,
    /// What was known of partitions that had no position yet, ordered by topic-partition.
    pub firsts: Vec<First>,
    /// Which incarnation of its topic each range belongs to: the id that the group's topic has after this batch, for
    /// each topic that the ranges name and that has one, ordered by topic.
    pub topic_ids: Vec<(TopicName, TopicId)>,
}

impl Batch {
    /// The id of `topic` that the batch's ranges of it were read under; none where the topic had none.
    pub fn topic_id(&self, topic: &TopicName) -> Option<TopicId> {
        let found = self.topic_ids.binary_search_by(|(name, _)| name.cmp(topic));
        found.ok().map(|index| self.topic_ids[index].1)
    }
}

/// A partition that a batch brings into the group.
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
///
/// use tidelog::commit::Commit;
/// use tidelog::entry::Body;
///
/// let (at, earliest) = (range.topic_partition(), "250".parse()?);
/// let commit = Commit::new(loader.clone(), started.epoch, time, vec![range])?.with_earliest(at, earliest);
/// let batch = control.journal.commit(commit)?.batch;
/// let entry = control.journal.batch(&loader, batch)?.ok_or("it is there")?;
/// // The group had no position of the partition.
/// assert!(matches!(entry.body, Body::Batch(batch) if batch.firsts[0].earliest == Some(earliest)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct First {
    /// The partition.
    pub at: TopicPartition,
    /// The topic's id, where the consumer or its last look knew one.
    pub topic_id: Option<TopicId>,
    /// The broker's earliest, where the consumer's last look knew it.
    pub earliest: Option<Offset>,
}

/// Something worth telling about one range of a batch.
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
/// use tidelog::entry::NoteKind;
///
/// let receipt = commit(510, 542)?; // the group was at 500
/// let note = &receipt.notes[0];
/// assert_eq!((note.note, note.from_offset.get(), note.until_offset.get()), (NoteKind::Hole, 500, 510));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
    /// What.
    pub note: NoteKind,
    /// Begin of the range that it speaks of.
    pub from_offset: Offset,
    /// End of the range that it speaks of.
    pub until_offset: Offset,
}

/// What a note says.
///
/// ```
/// use tidelog::entry::NoteKind;
///
/// assert_eq!(serde_json::to_string(&[NoteKind::Hole, NoteKind::Late])?, r#"["hole","late"]"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The range began above the position: the offsets between are open.
    Hole,
    /// The range began below the position and ended above it: the part below was committed before.
    Overlap,
    /// The range ended at or below the position.
    Late,
    /// The partition had no position yet.
    First,
}

/// What a look at the broker says of one partition, or of a whole topic or cluster (DESIGN section 5).
///
/// ```
/// use tidelog::entry::Verdict;
///
/// assert_eq!(Verdict::HeadOutOfRange.as_str(), "head_out_of_range");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The broker belongs to another cluster than the group's.
    OtherCluster,
    /// The topic is not there.
    TopicMissing,
    /// The topic was deleted and created again.
    TopicRecreated,
    /// The broker did not say.
    Unknown,
    /// With topic ids: what was read is gone from the log's end.
    Truncated,
    /// Without topic ids: the position is above latest.
    TailOutOfRange,
    /// The position is below earliest.
    HeadOutOfRange,
    /// A hole below the position holds readable records.
    UnreadHole,
    /// The group did not have this partition.
    PartitionAdded,
    /// The group has no partition at all.
    NewGroup,
    /// The position is there.
    InRange,
    /// No broker was asked.
    Unchecked,
    /// Kafka's committed offset is above the position.
    BehindKafka,
}

impl Verdict {
    /// The name, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::OtherCluster => "other_cluster",
            Verdict::TopicMissing => "topic_missing",
            Verdict::TopicRecreated => "topic_recreated",
            Verdict::Unknown => "unknown",
            Verdict::Truncated => "truncated",
            Verdict::TailOutOfRange => "tail_out_of_range",
            Verdict::HeadOutOfRange => "head_out_of_range",
            Verdict::UnreadHole => "unread_hole",
            Verdict::PartitionAdded => "partition_added",
            Verdict::NewGroup => "new_group",
            Verdict::InRange => "in_range",
            Verdict::Unchecked => "unchecked",
            Verdict::BehindKafka => "behind_kafka",
        }
    }
}

/// One thing that a look found, and what comes of it.
///
/// ```
/// use tidelog::entry::Finding;
///
/// let finding: Finding = serde_json::from_str(r#"{
///     "topic": "orders", "partition": 1, "verdict": "head_out_of_range",
///     "position": 100, "start": 250, "loss": {"from_offset": 100, "until_offset": 250}
/// }"#)?;
/// assert_eq!(finding.to_string(), "orders/1: head_out_of_range, was at 100, starts at 250, lost [100,250)");
/// assert!(finding.is_trouble());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The topic; none where the whole cluster is meant.
    pub topic: Option<TopicName>,
    /// The partition; none where the whole topic is meant.
    pub partition: Option<u32>,
    /// What was found.
    pub verdict: Verdict,
    /// The group's position before.
    pub position: Option<Offset>,
    /// The broker's log start offset.
    pub earliest: Option<Offset>,
    /// The broker's high watermark.
    pub latest: Option<Offset>,
    /// Where reading goes on; none where it can't.
    pub start: Option<Offset>,
    /// What is lost by it.
    pub loss: Option<LostRange>,
    /// More for a person: the error, the ids, the batches in doubt.
    pub detail: Option<String>,
}

impl Finding {
    /// Whether somebody should know: anything but growth without a loss.
    pub fn is_trouble(&self) -> bool {
        let harmless = match self.verdict {
            Verdict::PartitionAdded | Verdict::NewGroup | Verdict::InRange | Verdict::Unchecked => true,
            Verdict::OtherCluster
            | Verdict::TopicMissing
            | Verdict::TopicRecreated
            | Verdict::Unknown
            | Verdict::Truncated
            | Verdict::TailOutOfRange
            | Verdict::HeadOutOfRange
            | Verdict::UnreadHole
            | Verdict::BehindKafka => false,
        };
        !harmless || self.loss.is_some() || self.start.is_none()
    }
}

impl fmt::Display for Finding {
    /// A line: `orders/1: head_out_of_range, was at 100, starts at 250, lost [100,250)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.topic, self.partition) {
            (Some(topic), Some(partition)) => write!(f, "{topic}/{partition}: ")?,
            (Some(topic), None) => write!(f, "{topic}: ")?,
            (None, _) => {}
        }
        f.write_str(self.verdict.as_str())?;
        if let Some(position) = self.position {
            write!(f, ", was at {position}")?;
        }
        if let (Some(earliest), Some(latest), None) = (self.earliest, self.latest, self.start) {
            write!(f, ", the log holds [{earliest},{latest})")?;
        }
        if let Some(start) = self.start {
            write!(f, ", starts at {start}")?;
        }
        if let (Some(LostRange { from_offset, until_offset }), Some(_)) = (self.loss, self.start) {
            write!(f, ", lost [{from_offset},{until_offset})")?;
        }
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

/// Offsets `[from_offset, until_offset)` of the partition that the context names.
///
/// ```
/// use tidelog::entry::LostRange;
///
/// let lost = LostRange { from_offset: "100".parse()?, until_offset: "250".parse()? };
/// assert_eq!(lost.until_offset.since(lost.from_offset), 150);
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRange {
    /// The first offset.
    pub from_offset: Offset,
    /// The offset after the last.
    pub until_offset: Offset,
}

/// Changes of positions other than by a batch, with all that applying them needs.
///
/// ```
/// use tidelog::entry::{Correction, Move};
/// use tidelog::offset::Offset;
///
/// let moved = Move {
///     topic: "orders".parse()?,
///     partition: 0,
///     topic_id: None,
///     old: Some(Offset::new(900)?),
///     new: Some(Offset::new(500)?),
///     holes: Vec::new(),
///     replaying_until: Some(Offset::new(900)?),
/// };
/// let correction = Correction { moves: vec![moved], ..Correction::default() };
/// assert!(correction.losses.is_empty());
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    /// Topics that are new, have another id or incarnation, or are back; before the moves.
    pub topics: Vec<TopicChange>,
    /// Partitions that are set, moved, or gone, ordered by topic-partition.
    pub moves: Vec<Move>,
    /// What the group will never read because of it.
    pub losses: Vec<Loss>,
    /// The cluster that the group belongs to from now on, where that changes.
    pub cluster_id: Option<String>,
}

impl Correction {
    /// Whether it changes nothing at all.
    pub fn is_empty(&self) -> bool {
        self.topics.is_empty() && self.moves.is_empty() && self.losses.is_empty() && self.cluster_id.is_none()
    }

    /// Whether a position goes down, or a topic is another one afterwards: then the group's epoch rises.
    pub fn raises_epoch(&self) -> bool {
        self.topics.iter().any(|topic| topic.new_incarnation)
            || self.moves.iter().any(|m| matches!((m.old, m.new), (Some(old), Some(new)) if new < old))
    }
}

/// What becomes of a topic within a group.
///
/// ```
/// use tidelog::entry::{Correction, TopicChange};
///
/// let recreated = TopicChange { topic: "orders".parse()?, topic_id: None, new_incarnation: true };
/// let correction = Correction { topics: vec![recreated], ..Correction::default() };
/// assert!(correction.raises_epoch()); // what is read of the old one is fenced
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopicChange {
    /// The topic; it is made if the group has it not, and brought back if it was retired.
    pub topic: TopicName,
    /// Its id from now on; none where the broker gives none.
    pub topic_id: Option<TopicId>,
    /// Whether the topic is another one under the same name. A topic id learned for the first time is none.
    pub new_incarnation: bool,
}

/// What becomes of one partition's position.
///
/// ```
/// use tidelog::entry::{Correction, Move};
///
/// let back: Move = serde_json::from_str(
///     r#"{"topic": "orders", "partition": 0, "old": 900, "new": 500, "holes": [], "replaying_until": 900}"#,
/// )?;
/// assert_eq!(back.topic_partition().to_string(), "orders/0");
/// assert!(Correction { moves: vec![back], ..Correction::default() }.raises_epoch()); // it goes down
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Move {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
    /// The topic's id that the new position belongs to.
    pub topic_id: Option<TopicId>,
    /// The position before; none where there was none.
    pub old: Option<Offset>,
    /// The position afterwards; none where the partition is no more.
    pub new: Option<Offset>,
    /// The holes open afterwards, ascending, disjoint, below `new`.
    pub holes: Vec<Hole>,
    /// Up to here records were read before the move back.
    pub replaying_until: Option<Offset>,
}

impl Move {
    /// The topic-partition.
    pub fn topic_partition(&self) -> TopicPartition {
        TopicPartition::new(self.topic.clone(), self.partition)
    }
}

/// Offsets below a position that no range covers.
///
/// ```
/// use tidelog::entry::Hole;
///
/// let hole = Hole { from_offset: "500".parse()?, until_offset: "510".parse()?, seq: "4".parse()? };
/// assert_eq!(hole.until_offset.since(hole.from_offset), 10);
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hole {
    /// The first offset.
    pub from_offset: Offset,
    /// The offset after the last.
    pub until_offset: Offset,
    /// The entry that opened it.
    pub seq: Seq,
}

/// Why offsets are lost.
///
/// ```
/// use tidelog::entry::Cause;
///
/// assert_eq!(Cause::Expired.as_str(), "expired");
/// assert_eq!(serde_json::from_str::<Cause>("\"skipped\"")?, Cause::Skipped);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The broker had removed them before they were read.
    Expired,
    /// The topic was deleted and created again before they were read.
    Recreated,
    /// A hole was given up by policy.
    Unread,
    /// An operator moved past them.
    Skipped,
}

impl Cause {
    /// The name, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Expired => "expired",
            Cause::Recreated => "recreated",
            Cause::Unread => "unread",
            Cause::Skipped => "skipped",
        }
    }
}

/// Offsets that a group will never read. An upper bound where holes are possible.
///
/// ```
/// use tidelog::entry::{Cause, Correction, Loss};
///
/// let (from_offset, until_offset) = ("100".parse()?, "250".parse()?);
/// let loss = Loss { topic: "orders".parse()?, partition: 1, from_offset, until_offset, cause: Cause::Expired };
/// let correction = Correction { losses: vec![loss], ..Correction::default() };
/// assert!(!correction.is_empty()); // a loss is written down even where nothing moves
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
    /// The first offset.
    pub from_offset: Offset,
    /// The offset after the last.
    pub until_offset: Offset,
    /// Why.
    pub cause: Cause,
}

/// An operator's move of a group.
///
/// ```
/// use tidelog::entry::{Body, RolledBack};
///
/// let rolled_back: RolledBack = serde_json::from_str(r#"{
///     "plan": "5f0c", "target": "before batch 7", "actor": "ann", "reason": "the sink lost its disk", "kafka": false,
///     "correction": {"topics": [], "moves": [], "losses": []}
/// }"#)?;
/// let body = Body::RolledBack(rolled_back);
/// assert_eq!(body.kind(), "rolled_back");
/// assert!(body.correction().is_some_and(|correction| correction.is_empty()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RolledBack {
    /// The id of the plan that was executed.
    pub plan: String,
    /// The target in words, as the plan showed it.
    pub target: String,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// The `rolled_back` that this one undoes.
    pub undoes: Option<Seq>,
    /// Whether Kafka's committed offsets are set as part of it.
    pub kafka: bool,
    /// What moves.
    pub correction: Correction,
}

/// What setting one committed offset in Kafka came to.
///
/// ```
/// use tidelog::entry::KafkaOutcome;
///
/// let json = r#"{"topic":"orders","partition":0,"offset":"500","error":null}"#;
/// let outcome: KafkaOutcome = serde_json::from_str(json)?;
/// assert_eq!(outcome.offset.map(|offset| offset.get()), Some(500)); // as it was read back
/// assert_eq!(serde_json::to_string(&outcome)?, json);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KafkaOutcome {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
    /// What Kafka holds now, where it was read back.
    pub offset: Option<Offset>,
    /// Why it failed.
    pub error: Option<String>,
}
