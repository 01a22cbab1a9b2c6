//! The check of a commit against a group's state: a pure decision, made in the writer on the pending state (DESIGN
//! section 3). A refused commit leaves no trace in the journal.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::entry::{Batch, Body, Draft, First, Note, NoteKind};
use crate::offset::{
    BatchNumber, Epoch, Group, Invalid, Offset, OffsetRange, Seq, Timestamp, TopicId, TopicName, TopicPartition,
    free_name,
};
use crate::positions::{GroupState, Hold, RaisedBy, RecentBatch, State};
use crate::results::Puts;

/// Ranges of one commit: 10,000 partitions ten times over.
pub const MAX_RANGES: usize = 100_000;

/// Partitions of one group, so that what is kept of it stays writable: as many as whole clusters have.
pub const MAX_PARTITIONS: usize = 200_000;

/// What a consumer wants written: ranges read under an epoch, with the time at which the batch was cut.
///
/// Its shape is checked when it is made; the rest when the journal takes it.
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
/// # let _commit = |from: i64, until: i64| -> Result<_, Box<dyn std::error::Error>> {
/// #     use tidelog::offset::{Offset, OffsetRange, Timestamp};
/// #     let range = OffsetRange::new("orders".parse()?, 0, Offset::new(from)?, Offset::new(until)?)?;
/// #     let time = Timestamp::from_millis(1_796_032_800_000 + from);
/// #     Ok(control.journal.commit(tidelog::commit::Commit::new(loader.clone(), started.epoch, time, vec![range])?)?)
/// # };
/// use tidelog::commit::Commit;
/// use tidelog::offset::{Offset, OffsetRange, Timestamp};
///
/// let range = OffsetRange::new("orders".parse()?, 0, Offset::new(500)?, Offset::new(542)?)?;
/// let time: Timestamp = "2026-11-30T10:00:00Z".parse()?;
/// let commit = Commit::new(loader, started.epoch, time, vec![range])?.with_key("job-17/42")?;
/// let first = control.journal.commit(commit.clone())?;
/// // The reply was lost: the same again is told the same.
/// let again = control.journal.commit(commit)?;
/// assert_eq!((again.batch, again.repeated), (first.batch, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    group: Group,
    epoch: Epoch,
    batch_time: Timestamp,
    key: Option<String>,
    ranges: Vec<OffsetRange>,
    topic_ids: BTreeMap<TopicName, TopicId>,
    earliest: BTreeMap<TopicPartition, Offset>,
    puts: Puts,
}

impl Commit {
    /// A commit of `ranges`, each partition named once; named twice is merged if contiguous.
    ///
    /// # Errors
    ///
    /// More than [`MAX_RANGES`] ranges, none at all, or two of one partition that do not touch.
    pub fn new(group: Group, epoch: Epoch, batch_time: Timestamp, ranges: Vec<OffsetRange>) -> Result<Self, Invalid> {
        let ranges = merged(ranges)?;
        Ok(Commit {
            group,
            epoch,
            batch_time,
            key: None,
            ranges,
            topic_ids: BTreeMap::new(),
            earliest: BTreeMap::new(),
            puts: Puts::default(),
        })
    }

    /// The same with an idempotency key: 1 to 255 bytes without NUL.
    pub fn with_key(mut self, key: impl Into<String>) -> Result<Self, Invalid> {
        let key = key.into();
        free_name("key", &key)?;
        self.key = Some(key);
        Ok(self)
    }

    /// The same, saying which incarnation of `topic` the ranges were read from.
    pub fn with_topic_id(mut self, topic: TopicName, topic_id: TopicId) -> Self {
        self.topic_ids.insert(topic, topic_id);
        self
    }

    /// The same, saying what the consumer's last look knew as the earliest of a partition: used where the group has no
    /// position of it yet.
    pub fn with_earliest(mut self, at: TopicPartition, earliest: Offset) -> Self {
        self.earliest.insert(at, earliest);
        self
    }

    /// The same with results, which are written with the ranges or not at all ([`results`](crate::results)).
    ///
    /// A repeat of a batch that stands writes nothing: its ranges are compared, its results are not. A late batch puts
    /// like any other, as the order of the journal counts.
    pub fn with_puts(mut self, puts: Puts) -> Self {
        self.puts = puts;
        self
    }

    /// The results.
    pub fn puts(&self) -> &Puts {
        &self.puts
    }

    /// The group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The epoch that it was read under.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The ranges, ordered by topic-partition, one for each.
    pub fn ranges(&self) -> &[OffsetRange] {
        &self.ranges
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
/// let receipt = commit(500, 542)?;
/// assert_eq!((receipt.batch.get(), receipt.seq.get(), receipt.repeated), (1, 3, false));
/// assert!(receipt.notes.is_empty()); // it began where the group was
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
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

/// What becomes of a commit that is not refused.
///
/// ```
/// use tidelog::commit::{self, Commit, Refused};
/// use tidelog::offset::{Epoch, Group, Offset, OffsetRange, Timestamp};
/// use tidelog::positions::State;
///
/// // The check by itself, as the journal's writer makes it: here nobody has started the group.
/// let range = OffsetRange::new("orders".parse()?, 0, Offset::ZERO, Offset::new(42)?)?;
/// let group = Group::new("default", "loader")?;
/// let commit = Commit::new(group, Epoch::ZERO.next(), Timestamp::from_millis(0), vec![range])?;
/// assert!(matches!(commit::check(&State::default(), &commit), Err(Refused::UnknownGroup { .. })));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Checked {
    /// A new batch.
    Append(Draft),
    /// The batch is there already.
    Repeat(Receipt),
}

/// Why a commit was refused.
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
/// use tidelog::commit::Refused;
/// use tidelog::journal::CommitError;
///
/// tidelog::control::hold(&control, &loader, "ann", "mending the sink")?;
/// let error = commit(500, 542).unwrap_err();
/// let Some(CommitError::Refused(Refused::Held { hold, .. })) = error.downcast_ref() else { return Err(error) };
/// assert_eq!(hold.actor, "ann");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// Its shape, or a retired group or topic.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The journal has no such group: a start makes one.
    #[error("no group {group} in this journal; start it first")]
    UnknownGroup {
        /// The group.
        group: Group,
    },
    /// An operator holds the group.
    #[error("group {group} is on hold since {} by {}: {}", hold.since, hold.actor, hold.reason)]
    Held {
        /// The group.
        group: Group,
        /// By whom, since when, why.
        hold: Hold,
    },
    /// The epoch is older than the group's: another owner started, or the positions were moved.
    #[error(
        "fenced: read under epoch {given}, but group {group} is at epoch {present}{}; start again",
        raised_by_text(raised_by)
    )]
    Fenced {
        /// The group.
        group: Group,
        /// The epoch of the commit.
        given: Epoch,
        /// The group's.
        present: Epoch,
        /// What raised it.
        raised_by: Option<RaisedBy>,
    },
    /// The ranges were read from another incarnation of the topic.
    #[error("fenced: {topic} was read under topic id {given}, but is {present} now; start group {group} again")]
    OtherIncarnation {
        /// The group.
        group: Group,
        /// The topic.
        topic: TopicName,
        /// The id of the commit.
        given: TopicId,
        /// The group's.
        present: TopicId,
        /// The group's epoch.
        epoch: Epoch,
    },
    /// The epoch is newer than the group's: this journal is an older copy.
    #[error(
        "epoch {given} is above {present}, the newest of group {group}: this journal is an older copy of the one \
             that the consumer started from"
    )]
    JournalBehind {
        /// The group.
        group: Group,
        /// The epoch of the commit.
        given: Epoch,
        /// The group's.
        present: Epoch,
    },
    /// The key was used for other ranges.
    #[error("key {key:?} was used for batch {} with other ranges", first.batch)]
    KeyConflict {
        /// The key.
        key: String,
        /// The receipt of the batch that has it.
        first: Receipt,
    },
    /// It is beyond what the journal's files can hold.
    #[error("{what} can't be written; the limit is {limit}; nothing was written")]
    TooLarge {
        /// What, and how large.
        what: Arc<str>,
        /// What is accepted, in the same unit.
        limit: u64,
    },
}

impl Refused {
    /// The word for the reason, as INTERFACE section 2 names the problem.
    pub fn word(&self) -> &'static str {
        match self {
            Refused::Invalid(_) => "invalid",
            Refused::UnknownGroup { .. } => "unknown-group",
            Refused::Held { .. } => "held",
            Refused::Fenced { .. } | Refused::OtherIncarnation { .. } => "fenced",
            Refused::JournalBehind { .. } => "journal-behind",
            Refused::KeyConflict { .. } => "key-conflict",
            Refused::TooLarge { .. } => "too-large",
        }
    }
}

fn raised_by_text(raised_by: &Option<RaisedBy>) -> String {
    match raised_by {
        Some(RaisedBy { kind, seq, by: Some(by) }) => format!(" ({kind} by {by}, seq {seq})"),
        Some(RaisedBy { kind, seq, by: None }) => format!(" ({kind}, seq {seq})"),
        None => String::new(),
    }
}

/// Checks `commit` against the state, in the order of DESIGN section 3.
pub fn check(state: &State, commit: &Commit) -> Result<Checked, Refused> {
    let group = || commit.group.clone();
    let Some(present) = state.groups.get(&commit.group) else {
        return Err(Refused::UnknownGroup { group: group() });
    };
    if let Some(hold) = &present.held {
        return Err(Refused::Held { group: group(), hold: hold.clone() });
    }
    if present.retired {
        return Err(Invalid::new("group", &commit.group, "retired; a start brings it back").into());
    }
    check_fences(present, commit)?;
    if let Some(repeat) = find_repeat(present, commit)? {
        return Ok(Checked::Repeat(repeat));
    }
    let batch = batch(present, commit)?;
    Ok(Checked::Append(Draft { group: Some(group()), epoch: commit.epoch, body: Body::Batch(batch) }))
}

fn check_fences(present: &GroupState, commit: &Commit) -> Result<(), Refused> {
    let group = || commit.group.clone();
    if commit.epoch < present.epoch {
        let raised_by = present.raised_by.clone();
        return Err(Refused::Fenced { group: group(), given: commit.epoch, present: present.epoch, raised_by });
    }
    if commit.epoch > present.epoch {
        return Err(Refused::JournalBehind { group: group(), given: commit.epoch, present: present.epoch });
    }
    for (topic, given) in &commit.topic_ids {
        if let Some(id) = present.positions.topics.get(topic).and_then(|known| known.topic_id)
            && id != *given
        {
            let (topic, given) = (topic.clone(), *given);
            return Err(Refused::OtherIncarnation { group: group(), topic, given, present: id, epoch: present.epoch });
        }
    }
    Ok(())
}

/// The receipt of the batch that this commit repeats.
fn find_repeat(present: &GroupState, commit: &Commit) -> Result<Option<Receipt>, Refused> {
    if let Some(key) = &commit.key {
        let Some(first) = present.recent.iter().rev().find(|recent| recent.key.as_ref() == Some(key)) else {
            return Ok(None);
        };
        if first.ranges == commit.ranges {
            return Ok(Some(receipt(first)));
        }
        return Err(Refused::KeyConflict { key: key.clone(), first: receipt(first) });
    }
    let newest = present.recent.back().filter(|recent| {
        recent.batch == present.positions.batch
            && recent.batch_time == commit.batch_time
            && recent.ranges == commit.ranges
    });
    Ok(newest.map(receipt))
}

fn receipt(first: &RecentBatch) -> Receipt {
    Receipt {
        batch: first.batch,
        seq: first.seq,
        recorded_at: first.recorded_at,
        repeated: true,
        notes: first.notes.clone(),
    }
}

fn batch(present: &GroupState, commit: &Commit) -> Result<Batch, Refused> {
    let mut notes = Vec::new();
    let mut firsts = Vec::new();
    let mut topic_ids: Vec<(TopicName, TopicId)> = Vec::new();
    for range in &commit.ranges {
        let topic = present.positions.topics.get(range.topic());
        if topic.is_some_and(|topic| topic.retired) {
            return Err(Invalid::new(
                "topic",
                range.topic(),
                "retired in this group; a start that names it brings it back",
            )
            .into());
        }
        let position = topic.and_then(|t| t.partitions.get(&range.partition())).map(|p| p.position);
        let mut topic_id = topic.and_then(|topic| topic.topic_id);
        if position.is_none() {
            let at = range.topic_partition();
            let given = commit.topic_ids.get(range.topic()).copied();
            let earliest = commit.earliest.get(&at).copied();
            firsts.push(First { at, topic_id: given, earliest });
            // A topic without an id takes it from its first partition that tells one.
            topic_id = topic_id.or(given);
        }
        if let Some(id) = topic_id
            && topic_ids.last().is_none_or(|(topic, _)| topic != range.topic())
        {
            topic_ids.push((range.topic().clone(), id));
        }
        notes.extend(note(range, position));
    }
    if !firsts.is_empty() {
        let known: usize = present.positions.topics.values().map(|topic| topic.partitions.len()).sum();
        let partitions = known + firsts.len();
        if partitions > MAX_PARTITIONS {
            let why = format!("a group has at most {MAX_PARTITIONS} partitions; it has {known}");
            return Err(Invalid::new("ranges", format_args!("{partitions} partitions"), why).into());
        }
    }
    Ok(Batch {
        batch: present.positions.batch.next(),
        batch_time: commit.batch_time,
        key: commit.key.clone(),
        ranges: commit.ranges.clone(),
        notes,
        firsts,
        topic_ids,
    })
}

/// What is worth telling of `range` at a partition that is at `position`.
fn note(range: &OffsetRange, position: Option<Offset>) -> Option<Note> {
    let (from, until) = (range.from_offset(), range.until_offset());
    let (note, from_offset, until_offset) = match position {
        None => (NoteKind::First, from, until),
        Some(position) if from == position => return None,
        Some(position) if from > position => (NoteKind::Hole, position, from),
        Some(position) if until <= position => (NoteKind::Late, from, until),
        Some(position) => (NoteKind::Overlap, from, position),
    };
    Some(Note { topic: range.topic().clone(), partition: range.partition(), note, from_offset, until_offset })
}

/// Orders the ranges by topic-partition and joins contiguous ones of the same.
fn merged(mut ranges: Vec<OffsetRange>) -> Result<Vec<OffsetRange>, Invalid> {
    if ranges.is_empty() || ranges.len() > MAX_RANGES {
        return Err(Invalid::new("ranges", ranges.len(), "a batch has 1 to 100000 ranges"));
    }
    let place = |range: &OffsetRange| (range.topic().clone(), range.partition(), range.from_offset());
    if !ranges.is_sorted_by_key(place) {
        ranges.sort_by_key(|range| (place(range), range.until_offset()));
    }
    let mut merged: Vec<OffsetRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.topic() == range.topic() && last.partition() == range.partition() => {
                if last.until_offset() != range.from_offset() {
                    return Err(Invalid::new(
                        "ranges",
                        format_args!("{last} and {range}"),
                        "one partition twice, and the ranges do not touch; give each partition once",
                    ));
                }
                *last = OffsetRange::new(
                    range.topic().clone(),
                    range.partition(),
                    last.from_offset(),
                    range.until_offset(),
                )?;
            }
            _ => merged.push(range),
        }
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retired_group_takes_no_commit_and_a_held_one_says_so_first() {
        let group = Group::new("a", "g").unwrap();
        let range = OffsetRange::new(TopicName::new("t").unwrap(), 0, Offset::ZERO, Offset::ZERO.plus(5)).unwrap();
        let commit = Commit::new(group.clone(), Epoch::ZERO, Timestamp::default(), vec![range]).unwrap();
        let mut state = State::default();
        state.groups.insert(group.clone(), GroupState::default());
        assert!(matches!(check(&state, &commit), Ok(Checked::Append(_))));
        state.groups.get_mut(&group).unwrap().retired = true;
        let refused = check(&state, &commit).unwrap_err();
        assert!(matches!(&refused, Refused::Invalid(invalid) if invalid.what == "group"), "{refused}");
        state.groups.get_mut(&group).unwrap().held =
            Some(Hold { reason: "r".into(), actor: "a".into(), since: Timestamp::default(), seq: Seq::ZERO });
        assert!(matches!(check(&state, &commit), Err(Refused::Held { .. })));
    }
}
