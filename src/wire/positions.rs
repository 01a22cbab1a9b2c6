//! Positions, losses and holes as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::broker::Look;
use crate::entry::Hole;
use crate::offset::{BatchNumber, Epoch, Group, Offset, Seq, Timestamp, TopicId, TopicName, TopicPartition};
use crate::positions::{GroupState, Positions};
use crate::wire::Count;

/// The moment of the journal that an answer speaks of.
///
/// ```
/// use tidelog::wire::AsOf;
///
/// let text = r#"{"seq":"121","batch":"7","recorded_at":"2026-11-30T10:00:00Z","clock_uncertain":false}"#;
/// let as_of: AsOf = serde_json::from_str(text)?;
/// assert_eq!((as_of.batch.get(), serde_json::to_string(&as_of)?.as_str()), (7, text));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AsOf {
    /// The group's last entry then.
    pub seq: Seq,
    /// Its newest batch then.
    pub batch: BatchNumber,
    /// When that entry was recorded.
    pub recorded_at: Timestamp,
    /// Whether the machine's clock and the journal's differ by over a minute: then batch numbers are surer than times.
    pub clock_uncertain: bool,
}

/// What the broker said of a partition.
///
/// ```
/// # use tidelog::broker::{Look, PartitionLook, Seen, TopicLook};
/// # let (earliest, latest) = (Seen::Known("500".parse()?), Seen::Known("542".parse()?));
/// # let partition = PartitionLook { earliest, latest, readable_end: Seen::Failed("no leader".to_owned()) };
/// # let topic = TopicLook { id: Seen::Absent, partitions: Seen::Known([(0, partition)].into()) };
/// # let look = Look {
/// #     taken_at: "2026-11-30T10:00:00Z".parse()?,
/// #     brokers: "localhost:9092".to_owned(),
/// #     cluster_id: Seen::Absent,
/// #     topics: [("orders".parse()?, topic)].into(),
/// #     listing: Seen::Absent,
/// # };
/// use tidelog::offset::TopicPartition;
/// use tidelog::wire::Watermarks;
///
/// let marks = Watermarks::of(&look)[&TopicPartition::new("orders".parse()?, 0)];
/// assert_eq!(marks.latest, Some("542".parse()?));
/// assert_eq!(marks.readable_end, None); // the broker did not say
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Watermarks {
    /// The log start offset.
    pub earliest: Option<Offset>,
    /// The high watermark.
    pub latest: Option<Offset>,
    /// What the group can read up to.
    pub readable_end: Option<Offset>,
}

impl Watermarks {
    /// What `look` knows, partition by partition.
    pub fn of(look: &Look) -> BTreeMap<TopicPartition, Watermarks> {
        let mut marks = BTreeMap::new();
        for (name, topic) in &look.topics {
            for (number, seen) in topic.partitions.known().into_iter().flatten() {
                let known = Watermarks {
                    earliest: seen.earliest.known().copied(),
                    latest: seen.latest.known().copied(),
                    readable_end: seen.readable_end.known().copied(),
                };
                marks.insert(TopicPartition::new(name.clone(), *number), known);
            }
        }
        marks
    }
}

/// Where a group continues, or continued.
///
/// ```
/// use tidelog::offset::Group;
/// use tidelog::positions::GroupState;
/// use tidelog::wire::{AsOf, PositionsAnswer};
///
/// let recorded_at = "2026-11-30T10:00:00Z".parse()?;
/// let as_of = AsOf { seq: "121".parse()?, batch: "7".parse()?, recorded_at, clock_uncertain: false };
/// let answer = PositionsAnswer::present(&Group::new("default", "loader")?, &GroupState::default(), as_of, None);
/// assert_eq!(serde_json::to_value(answer)?["as_of"]["seq"], "121");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PositionsAnswer {
    /// The group.
    pub group: String,
    /// Its application.
    pub app: String,
    /// Its present epoch.
    pub epoch: Epoch,
    /// The moment that the positions are of.
    pub as_of: AsOf,
    /// The positions, ordered by topic-partition.
    pub positions: Vec<Position>,
}

/// Where one partition continues, or continued.
///
/// ```
/// use tidelog::wire::Position;
///
/// let position: Position = serde_json::from_str(
///     r#"{"topic": "orders", "partition": 0, "offset": "542", "topic_id": null, "earliest": "0", "latest": "550",
///         "readable_end": "550", "lag": "8", "broker_seen_at": "2026-11-30T10:00:00Z", "replaying_until": null,
///         "holes": [], "last_batch": "7", "last_batch_time": null}"#,
/// )?;
/// assert_eq!(position.readable_end.map(|end| end.since(position.offset)), position.lag.map(|lag| lag.0));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
    /// The next offset to read.
    pub offset: Offset,
    /// The topic's id then.
    pub topic_id: Option<TopicId>,
    /// The broker's log start offset; null without a broker's answer, and for a moment of the past.
    pub earliest: Option<Offset>,
    /// The broker's high watermark; likewise.
    pub latest: Option<Offset>,
    /// What the group can read up to; likewise.
    pub readable_end: Option<Offset>,
    /// How many offsets are left to read, never negative; likewise.
    pub lag: Option<Count>,
    /// When the broker was asked; likewise.
    pub broker_seen_at: Option<Timestamp>,
    /// Records below are read again after a rollback; null for a moment of the past.
    pub replaying_until: Option<Offset>,
    /// Offsets below the position that no range covers.
    pub holes: Vec<HoleLine>,
    /// The newest batch with a range of it.
    pub last_batch: Option<BatchNumber>,
    /// That batch's time.
    pub last_batch_time: Option<Timestamp>,
}

/// A hole, with the fields that a loss has too.
///
/// ```
/// use tidelog::entry::Hole;
/// use tidelog::wire::HoleLine;
///
/// let hole = Hole { from_offset: "498".parse()?, until_offset: "500".parse()?, seq: "121".parse()? };
/// assert_eq!(serde_json::to_value(HoleLine::from(&hole))?["cause"], "hole");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HoleLine {
    /// The first offset.
    pub from_offset: Offset,
    /// The offset after the last.
    pub until_offset: Offset,
    /// The entry that opened it.
    pub seq: Seq,
    /// `hole`.
    pub cause: String,
    /// Null: an acknowledged hole is closed.
    pub acknowledged_by: Option<String>,
}

impl From<&Hole> for HoleLine {
    fn from(hole: &Hole) -> Self {
        let Hole { from_offset, until_offset, seq } = *hole;
        HoleLine { from_offset, until_offset, seq, cause: "hole".to_owned(), acknowledged_by: None }
    }
}

impl PositionsAnswer {
    /// The present positions, without those of retired topics, with what a broker said when it was asked.
    pub fn present(group: &Group, state: &GroupState, as_of: AsOf, look: Option<&Look>) -> Self {
        let marks = look.map(Watermarks::of).unwrap_or_default();
        let mut answer = Self::past(group, state.epoch, as_of, &state.positions);
        for (line, (at, _, partition)) in answer.positions.iter_mut().zip(state.positions.iter()) {
            line.replaying_until = partition.replaying_until;
            let Some(seen) = marks.get(&at) else { continue };
            // The ends of a topic that was made again say nothing of a position in the one before.
            let seen_id = look.and_then(|look| look.topics.get(&at.topic)?.id.known().copied());
            if seen_id.is_some() && line.topic_id.is_some() && seen_id != line.topic_id {
                continue;
            }
            line.earliest = seen.earliest;
            line.latest = seen.latest;
            line.readable_end = seen.readable_end;
            let begin = line.offset.max(seen.earliest.unwrap_or_default());
            line.lag = seen.readable_end.map(|end| Count(end.since(begin)));
            line.broker_seen_at = look.map(|look| look.taken_at);
        }
        // Where those stand is told as of a time.
        let retired = |topic: &TopicName| state.positions.topics.get(topic).is_some_and(|topic| topic.retired);
        answer.positions.retain(|line| !retired(&line.topic));
        answer
    }

    /// Positions of the past: what a broker says now means nothing for them.
    pub fn past(group: &Group, epoch: Epoch, as_of: AsOf, positions: &Positions) -> Self {
        let line = |(at, topic, partition): (
            TopicPartition,
            &crate::positions::TopicState,
            &crate::positions::PartitionState,
        )| Position {
            topic: at.topic,
            partition: at.partition,
            offset: partition.position,
            topic_id: topic.topic_id,
            earliest: None,
            latest: None,
            readable_end: None,
            lag: None,
            broker_seen_at: None,
            replaying_until: None,
            holes: partition.holes.iter().map(HoleLine::from).collect(),
            last_batch: partition.last_batch,
            last_batch_time: partition.last_batch_time,
        };
        PositionsAnswer {
            group: group.group().to_owned(),
            app: group.app().to_owned(),
            epoch,
            as_of,
            positions: positions.iter().map(line).collect(),
        }
    }
}

/// A loss that nobody has acknowledged, or an open hole.
///
/// ```
/// use tidelog::wire::LossLine;
///
/// let loss: LossLine = serde_json::from_str(
///     r#"{"topic": "orders", "partition": 0, "from_offset": "100", "until_offset": "250", "seq": "2",
///         "cause": "expired", "recorded_at": "2026-11-30T10:00:00Z", "acknowledged_by": null}"#,
/// )?;
/// assert_eq!(loss.until_offset.since(loss.from_offset), 150);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossLine {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
    /// The first offset.
    pub from_offset: Offset,
    /// The offset after the last.
    pub until_offset: Offset,
    /// The entry that made it.
    pub seq: Seq,
    /// `expired`, `recreated`, `unread`, `skipped`; `hole` while open.
    pub cause: String,
    /// When a loss was noted; null for a hole.
    pub recorded_at: Option<Timestamp>,
    /// Who has seen it; null while nobody has.
    pub acknowledged_by: Option<String>,
}

/// The open losses and holes of a group, newest first, then by topic-partition and offset.
pub fn losses(state: &GroupState) -> Vec<LossLine> {
    let lost = state.losses.iter().map(|open| LossLine {
        topic: open.loss.topic.clone(),
        partition: open.loss.partition,
        from_offset: open.loss.from_offset,
        until_offset: open.loss.until_offset,
        seq: open.seq,
        cause: open.loss.cause.as_str().to_owned(),
        recorded_at: Some(open.recorded_at),
        acknowledged_by: None,
    });
    let holes = state.positions.iter().flat_map(|(at, _, partition)| {
        partition.holes.iter().map(move |hole| LossLine {
            topic: at.topic.clone(),
            partition: at.partition,
            from_offset: hole.from_offset,
            until_offset: hole.until_offset,
            seq: hole.seq,
            cause: "hole".to_owned(),
            recorded_at: None,
            acknowledged_by: None,
        })
    });
    let mut lines: Vec<LossLine> = lost.chain(holes).collect();
    let place = |line: &LossLine| (std::cmp::Reverse(line.seq), line.topic.clone(), line.partition, line.from_offset);
    lines.sort_by_cached_key(place);
    lines
}
