//! Where a group is to go: the words that an operator gives, and what they mean once history and broker have been asked.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::broker::Seen;
use crate::entry::Move;
use crate::offset::{BatchNumber, Invalid, Offset, OffsetRange, Seq, Timestamp, TopicPartition};
use crate::positions::Positions;

/// A target as it is given.
///
/// ```
/// use tidelog::rollback::{Edge, Target, parse_duration};
///
/// let target = Target::Batch { batch: "41".parse()?, edge: Edge::Before }; // 41 is read again
/// assert!(!target.needs_broker());
/// assert!(Target::Duration(parse_duration("P1DT2H")?).needs_broker());
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// The state at a batch.
    Batch {
        /// The batch.
        batch: BatchNumber,
        /// Whether the batch itself stays done.
        edge: Edge,
    },
    /// What had been committed by then, by the journal's clock.
    CommitTime(Timestamp),
    /// The state that somebody named; the newest mark of that name.
    Mark(String),
    /// The state after an entry.
    Seq(Seq),
    /// The group's newest move, taken back.
    Undo,
    /// The log start of each partition.
    Earliest,
    /// The high watermark of each partition.
    Latest,
    /// The same offset for each partition.
    Offset(Offset),
    /// So many offsets on from the position, or back.
    Shift(i64),
    /// The first record at or after this time, by the records' own times.
    RecordTime(Timestamp),
    /// The same, so long before now.
    Duration(Duration),
    /// An offset for each partition that is listed; the others stay out of the plan.
    Offsets(BTreeMap<TopicPartition, Offset>),
}

/// Which side of a batch.
///
/// ```
/// use tidelog::rollback::{Edge, Target};
///
/// let batch = "41".parse()?;
/// assert_eq!(Target::Batch { batch, edge: Edge::Before }.to_string(), "before batch 41");
/// assert_eq!(Target::Batch { batch, edge: Edge::default() }.to_string(), "after batch 41");
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Edge {
    /// The batch is to be done again.
    Before,
    /// The batch stays done.
    #[default]
    After,
}

impl Target {
    /// Whether it can't be resolved without a broker.
    pub fn needs_broker(&self) -> bool {
        match self {
            Target::Earliest | Target::Latest | Target::RecordTime(_) | Target::Duration(_) => true,
            Target::Batch { .. }
            | Target::CommitTime(_)
            | Target::Mark(_)
            | Target::Seq(_)
            | Target::Undo
            | Target::Offset(_)
            | Target::Shift(_)
            | Target::Offsets(_) => false,
        }
    }

    /// Whether it means something else a moment later, so that a plan turns it into offsets.
    pub(super) fn is_relative(&self) -> bool {
        match self {
            Target::Latest | Target::Shift(_) | Target::RecordTime(_) | Target::Duration(_) => true,
            Target::Batch { .. }
            | Target::CommitTime(_)
            | Target::Mark(_)
            | Target::Seq(_)
            | Target::Undo
            | Target::Earliest
            | Target::Offset(_)
            | Target::Offsets(_) => false,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Batch { batch, edge: Edge::Before } => write!(f, "before batch {batch}"),
            Target::Batch { batch, edge: Edge::After } => write!(f, "after batch {batch}"),
            Target::CommitTime(time) => write!(f, "committed by {time}"),
            Target::Mark(name) => write!(f, "mark {name:?}"),
            Target::Seq(seq) => write!(f, "after seq {seq}"),
            Target::Undo => f.write_str("undo of the last move"),
            Target::Earliest => f.write_str("earliest"),
            Target::Latest => f.write_str("latest"),
            Target::Offset(offset) => write!(f, "offset {offset}"),
            Target::Shift(shift) => write!(f, "shift {shift:+}"),
            Target::RecordTime(time) => write!(f, "records from {time}"),
            Target::Duration(duration) => write!(f, "records of the last {} s", duration.as_secs()),
            Target::Offsets(offsets) => match offsets.first_key_value() {
                Some((at, offset)) if offsets.len() == 1 => write!(f, "{at} to {offset}"),
                _ => write!(f, "given offsets of {} partitions", offsets.len()),
            },
        }
    }
}

/// Reads a duration as Kafka's tool does, `PnDTnHnMnS`. A day has 24 hours; months and years have no fixed length.
pub fn parse_duration(text: &str) -> Result<Duration, Invalid> {
    let wrong = || Invalid::new("duration", text, "not of the form P1DT2H30M (days, hours, minutes, seconds)");
    if !text.starts_with('P') {
        return Err(wrong());
    }
    let span: jiff::Span = text.parse().map_err(|_| wrong())?;
    let duration = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    Duration::try_from(duration).map_err(|_| wrong())
}

/// The moment of history that a target names.
///
/// ```
/// use tidelog::rollback::{Meaning, Moment};
///
/// let moment = Moment { seq: "121".parse()?, batch: "41".parse()?, recorded_at: "2026-11-30T10:00:00Z".parse()? };
/// let meaning = Meaning::AsOf { moment, positions: Default::default(), again: Vec::new() };
/// assert_eq!(meaning.moment(), Some(moment));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The entry; the state is the one after it.
    pub seq: Seq,
    /// The group's newest batch by then; 0 before the first.
    pub batch: BatchNumber,
    /// When the entry was recorded.
    pub recorded_at: Timestamp,
}

/// What a target means: what history, or the broker, says of it.
///
/// ```
/// use tidelog::offset::Group;
/// use tidelog::positions::GroupState;
/// use tidelog::rollback::{Meaning, PlanRequest, Target, plan};
///
/// let target = Target::RecordTime("2026-11-30T10:00:00Z".parse()?);
/// let meaning = Meaning::RecordTime([].into()); // what the broker gave for that time
/// let request = PlanRequest::new(Group::new("default", "loader")?, target);
/// let plan = plan(&request, &GroupState::default(), &meaning, None);
/// assert!(plan.nothing_to_do && meaning.moment().is_none());
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    /// The group as it was.
    AsOf {
        /// When.
        moment: Moment,
        /// Where it was.
        positions: Arc<Positions>,
        /// Ranges that are to be read again, of the batch that `before` names: no partition goes above its own.
        again: Vec<OffsetRange>,
    },
    /// The group as it is: a time from the newest entry that changed positions on.
    Present,
    /// A move is taken back.
    Undo {
        /// The entry of the move.
        of: Seq,
        /// What moved.
        moves: Vec<Move>,
        /// Where the group was before it.
        before: Arc<Positions>,
        /// What the first move moved that it took back, or did again: the same as `moves` where it is no undo itself.
        first: Vec<Move>,
    },
    /// Each log's start.
    Earliest,
    /// Each log's end.
    Latest,
    /// One offset for all.
    Offset(Offset),
    /// On from the position, or back.
    Shift(i64),
    /// The offsets that the broker gave for a record time; absent after the last record.
    RecordTime(BTreeMap<TopicPartition, Seen<Offset>>),
    /// Offsets by partition; those not listed stay out.
    Offsets(BTreeMap<TopicPartition, Offset>),
}

impl Meaning {
    /// The moment of history, where it names one.
    pub fn moment(&self) -> Option<Moment> {
        match self {
            Meaning::AsOf { moment, .. } => Some(*moment),
            _ => None,
        }
    }

    /// Whether it stays what it is whatever the broker says: then its end too is settled at execution.
    pub(super) fn is_of_history(&self) -> bool {
        matches!(self, Meaning::AsOf { .. } | Meaning::Present | Meaning::Undo { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_kafka_writes_them() {
        let seconds = |text: &str| parse_duration(text).map(|duration| duration.as_secs());
        assert_eq!(seconds("P1DT2H"), Ok(93_600));
        assert_eq!(seconds("PT30M10S"), Ok(1_810));
        for wrong in ["P1M", "1 day", "", "-PT1H", "P1Y"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
