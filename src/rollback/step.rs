//! What a rollback does to one partition: where the target puts it, what the broker says of that, and what comes of it.

use super::holes::{less, open_at};
use super::log::{Log, log};
use super::{Looked, Meaning, Outcome, PlanRequest, Planned, Refusal};
use crate::broker::Seen;
use crate::entry::{Cause, Hole, Loss, Move};
use crate::offset::{Offset, OffsetRange, TopicId, TopicName, TopicPartition};
use crate::positions::{GroupState, PartitionState, Positions, TopicState};

/// One partition of a plan, with all that executing it writes down.
pub struct Step {
    pub planned: Planned,
    pub topic_id: Option<TopicId>,
    /// The holes open afterwards.
    holes: Vec<Hole>,
    /// Whether they are others than now.
    holes_change: bool,
    /// Where the records end that were read before.
    replaying_until: Option<Offset>,
    /// What will never be read because it is gone.
    expired: Span,
    /// What will never be read because the operator moved past it.
    skipped: Span,
    /// More on the outcome, for a person.
    detail: Option<String>,
}

/// Offsets `[from, until)`; empty if `until` is not above.
#[derive(Clone, Copy)]
struct Span {
    from: Offset,
    until: Offset,
}

impl Span {
    fn count(self) -> u64 {
        self.until.since(self.from)
    }
}

/// The steps of `request`, ordered by topic-partition.
pub fn steps(request: &PlanRequest, group: &GroupState, meaning: &Meaning, looked: Option<&Looked>) -> Vec<Step> {
    request
        .partitions(group)
        .filter_map(|(at, topic, partition)| {
            let aim = aim(meaning, &at, topic, partition)?;
            let log = match (meaning, looked) {
                (Meaning::Present, _) => Log::At { earliest: Offset::ZERO, latest: Offset::MAX },
                (_, Some(looked)) => log(group, looked, &at, topic, partition),
                (_, None) => Log::Unasked,
            };
            Some(Step::new(at, topic, partition, meaning, aim, log))
        })
        .collect()
}

/// Where a target puts a partition.
enum Aim {
    At(Offset),
    /// The group did not have the partition then; this is its first position.
    FirstAt(Offset),
    Earliest,
    Latest,
    /// Before offset 0.
    BelowStart,
    /// Past the last record.
    PastEnd,
    OtherIncarnation,
    Unknown(String),
}

/// None if the target does not speak of the partition.
fn aim(meaning: &Meaning, at: &TopicPartition, topic: &TopicState, now: &PartitionState) -> Option<Aim> {
    let other_incarnation =
        |then: &Positions| then.topics.get(&at.topic).is_some_and(|then| then.incarnation != topic.incarnation);
    Some(match meaning {
        Meaning::AsOf { positions: then, .. } if other_incarnation(then) => Aim::OtherIncarnation,
        Meaning::AsOf { positions: then, again, .. } => {
            let then = then.get(&at.topic, at.partition).map(|then| then.position);
            let place = |range: &OffsetRange| (range.topic(), range.partition()).cmp(&(&at.topic, at.partition));
            let again = again.binary_search_by(place).ok().map(|index| &again[index]);
            match [then, again.map(|range| range.from_offset())].into_iter().flatten().min() {
                Some(offset) => Aim::At(offset),
                None => Aim::FirstAt(now.first_position),
            }
        }
        Meaning::Present => Aim::At(now.position),
        Meaning::Undo { moves, before, .. } => {
            let undone = find(moves, at)?;
            let (old, new) = (undone.old?, undone.new?);
            match other_incarnation(before) {
                true => Aim::OtherIncarnation,
                false if new <= old => Aim::At(old.max(now.position)),
                false => Aim::At(old),
            }
        }
        Meaning::Earliest => Aim::Earliest,
        Meaning::Latest => Aim::Latest,
        Meaning::Offset(offset) => Aim::At(*offset),
        Meaning::Shift(shift) if *shift < 0 => {
            let shifted = now.position.as_u64().checked_sub(shift.unsigned_abs());
            shifted.map_or(Aim::BelowStart, |shifted| Aim::At(Offset::ZERO.plus(shifted)))
        }
        Meaning::Shift(shift) => Aim::At(now.position.plus(shift.unsigned_abs())),
        Meaning::RecordTime(offsets) => match offsets.get(at) {
            Some(Seen::Known(offset)) => Aim::At(*offset),
            Some(Seen::Absent) => Aim::PastEnd,
            Some(Seen::Failed(error)) => Aim::Unknown(error.clone()),
            None => Aim::Unknown("the broker was not asked for its record times".to_owned()),
        },
        Meaning::Offsets(offsets) => Aim::At(*offsets.get(at)?),
    })
}

/// A target, where reading would start, and why; and more for a person.
type Place = (Option<Offset>, Offset, Outcome, Option<String>);

/// Where a partition that is at `position` goes.
fn place(position: Offset, aim: Aim, log: &Log) -> Place {
    let stays = |outcome, detail| (None, position, outcome, detail);
    let (target, named) = match (aim, log) {
        (Aim::OtherIncarnation, _) | (_, Log::Recreated) => return stays(Outcome::Recreated, None),
        (_, Log::Missing) => return stays(Outcome::Missing, None),
        (_, Log::Unknown(error)) => return stays(Outcome::Unknown, Some(error.clone())),
        (Aim::Unknown(error), _) => return stays(Outcome::Unknown, Some(error)),
        (Aim::Earliest | Aim::Latest | Aim::PastEnd, Log::Unasked) => {
            return stays(Outcome::Unknown, Some("no broker was asked".to_owned()));
        }
        (Aim::BelowStart, Log::Unasked) => return (None, Offset::ZERO, Outcome::Unchecked, None),
        (Aim::BelowStart, Log::At { earliest, .. }) => return (None, *earliest, Outcome::Expired, None),
        (Aim::PastEnd, Log::At { latest, .. }) => return (None, *latest, Outcome::BeyondEnd, None),
        (Aim::Earliest, Log::At { earliest, .. }) => (*earliest, Outcome::Exact),
        (Aim::Latest, Log::At { latest, .. }) => (*latest, Outcome::Exact),
        (Aim::At(offset), _) => (offset, Outcome::Exact),
        (Aim::FirstAt(offset), _) => (offset, Outcome::Younger),
    };
    let (start, outcome) = match log {
        Log::At { earliest, .. } if target < *earliest => (*earliest, Outcome::Expired),
        Log::At { latest, .. } if target > *latest => (*latest, Outcome::BeyondEnd),
        Log::At { .. } => (target, named),
        Log::Unasked | Log::Missing | Log::Recreated | Log::Unknown(_) => (target, Outcome::Unchecked),
    };
    (Some(target), start, outcome, None)
}

impl Step {
    fn new(
        at: TopicPartition,
        topic: &TopicState,
        now: &PartitionState,
        meaning: &Meaning,
        aim: Aim,
        log: Log,
    ) -> Self {
        let position = now.position;
        let (target, start, mut outcome, detail) = place(position, aim, &log);
        let holes = match outcome.is_unmovable() {
            true => now.holes.clone(),
            false => open_at(meaning, &at, now, start),
        };
        let holes_change = holes != now.holes;
        if start == position && !holes_change && matches!(outcome, Outcome::Exact) {
            outcome = Outcome::Unchanged;
        }
        let earliest = match log {
            Log::At { earliest, .. } => earliest,
            Log::Unasked | Log::Missing | Log::Recreated | Log::Unknown(_) => Offset::ZERO,
        };
        // An undo passes over what had been read before the move that it takes back; unless it does a skip again.
        let read_until = match meaning {
            Meaning::Undo { first, .. } if find(first, &at).is_none_or(|first| first.new <= first.old) => {
                now.replaying_until.map_or(position, |end| end.max(position))
            }
            _ => position,
        };
        let expired = Span { from: read_until.min(target.unwrap_or(start)), until: earliest.min(start) };
        let skipped = Span { from: read_until.max(earliest), until: start };
        let reopened = less(&holes, &now.holes);
        let reopened = reopened.iter().map(|hole| hole.until_offset.since(hole.from_offset)).sum::<u64>();
        let replayed = position.since(start).saturating_add(reopened);
        let planned =
            Planned { at, position, target, start, outcome, replayed, skipped: skipped.count(), lost: expired.count() };
        // An undo ends what the move began, and no more: an earlier rewind may go on.
        let replaying_until = match meaning {
            _ if start < position => Some(now.replaying_until.map_or(position, |until| until.max(position))),
            Meaning::Undo { before, .. } if start > position => {
                before.get(&planned.at.topic, planned.at.partition).and_then(|then| then.replaying_until)
            }
            _ => now.replaying_until,
        };
        let replaying_until = replaying_until.filter(|until| *until > start);
        Step { planned, topic_id: topic.topic_id, holes, holes_change, replaying_until, expired, skipped, detail }
    }

    /// Whether executing it changes anything.
    pub fn moves(&self) -> bool {
        self.planned.start != self.planned.position || self.holes_change
    }

    /// Why it keeps the plan from being executed.
    pub fn refusal(&self, request: &PlanRequest) -> Option<Refusal> {
        let Planned { at, target, start, outcome, .. } = &self.planned;
        let detail = self.detail.as_deref().map(|detail| format!(" ({detail})")).unwrap_or_default();
        let leave = "leave_unmovable leaves it where it is and moves the others";
        let (allowed, why) = match outcome {
            Outcome::Exact | Outcome::Unchanged | Outcome::Younger => return None,
            Outcome::Expired => {
                let gone = target.map_or("it would go below offset 0".to_owned(), |target| {
                    format!("offsets {target} to {start} are no longer there")
                });
                (request.allow_clamp, format!("{gone}; allow_clamp starts at {start}"))
            }
            Outcome::BeyondEnd => {
                let past = target.map_or("the time is after the last record".to_owned(), |t| {
                    format!("{t} is past the end of the log")
                });
                (request.allow_clamp, format!("{past}; allow_clamp starts at {start}, the end"))
            }
            Outcome::Recreated => (
                request.leave_unmovable,
                format!("the topic was deleted and created again since, its old offsets mean nothing now; {leave}"),
            ),
            Outcome::Missing => (request.leave_unmovable, format!("the broker has no such topic; {leave}")),
            Outcome::Unknown => {
                (request.leave_unmovable, format!("the broker did not say where it is{detail}; {leave}"))
            }
            Outcome::Unchecked => (
                request.unchecked,
                "no broker was asked; unchecked moves it all the same, and the next start looks".to_owned(),
            ),
        };
        (!allowed).then(|| Refusal { at: Some(at.clone()), outcome: Some(*outcome), why: format!("{at}: {why}") })
    }

    /// The move that carries it out.
    pub fn to_move(&self) -> Move {
        let Planned { at, position, start, .. } = &self.planned;
        Move {
            topic: at.topic.clone(),
            partition: at.partition,
            topic_id: self.topic_id,
            old: Some(*position),
            new: Some(*start),
            holes: self.holes.clone(),
            replaying_until: self.replaying_until,
        }
    }

    /// What the group will never read once it is carried out.
    pub fn losses(&self) -> impl Iterator<Item = Loss> {
        let TopicPartition { topic, partition } = &self.planned.at;
        let loss = |span: Span, cause: Cause| Loss {
            topic: TopicName::clone(topic),
            partition: *partition,
            from_offset: span.from,
            until_offset: span.until,
            cause,
        };
        [(self.expired, Cause::Expired), (self.skipped, Cause::Skipped)]
            .into_iter()
            .filter(|(span, _)| span.count() > 0)
            .map(move |(span, cause)| loss(span, cause))
    }
}

/// The move of `at` among moves that are ordered by topic-partition.
pub fn find<'a>(moves: &'a [Move], at: &TopicPartition) -> Option<&'a Move> {
    let place = |moved: &Move| (&moved.topic, moved.partition).cmp(&(&at.topic, at.partition));
    moves.binary_search_by(place).ok().map(|index| &moves[index])
}
