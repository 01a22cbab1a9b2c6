//! Verdicts 4 to 10 of one partition: where does it start?

use std::collections::{BTreeMap, BTreeSet};

use crate::broker::{PartitionLook, Seen};
use crate::entry::{Cause, Finding, Hole, LostRange, Move, Verdict};
use crate::offset::{Offset, TopicId, TopicName, TopicPartition};
use crate::positions::{PartitionState, TopicState};
use crate::reconcile::ruling::Ruling;
use crate::reconcile::topic::{of_partition, unknown};
use crate::reconcile::{HeadReset, HoleReset, NewGroup, Observed, StartPosition, TailReset, Why};

/// A partition's ends, known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) earliest: Offset,
    pub(super) latest: Offset,
    readable_end: Option<Offset>,
}

impl Bounds {
    /// The ends that the leader gave; why not, where one is not known or they are of different moments.
    pub(super) fn of(seen: &PartitionLook) -> Result<Bounds, String> {
        let known = |value: &Seen<Offset>, what: &str| match value {
            Seen::Known(offset) => Ok(*offset),
            Seen::Absent => Err(format!("no {what} in the answer")),
            Seen::Failed(error) => Err(format!("{what}: {error}")),
        };
        let (earliest, latest) = (known(&seen.earliest, "earliest")?, known(&seen.latest, "latest")?);
        let readable_end = match &seen.readable_end {
            Seen::Absent => None,
            value => Some(known(value, "readable end")?),
        };
        if earliest > latest {
            return Err(format!("earliest {earliest} above latest {latest}: answers of different moments"));
        }
        Ok(Bounds { earliest, latest, readable_end })
    }

    /// A start within them.
    pub(super) fn start(
        &self,
        at: TopicPartition,
        topic_id: Option<TopicId>,
        offset: Offset,
        verdict: Verdict,
    ) -> StartPosition {
        StartPosition {
            at,
            topic_id,
            offset,
            verdict,
            earliest: Some(self.earliest),
            latest: Some(self.latest),
            readable_end: self.readable_end,
            replaying_until: None,
        }
    }
}

/// A partition as the verdicts from 5 on see it.
struct Case<'a> {
    at: TopicPartition,
    topic_id: Option<TopicId>,
    /// Whether the journal knew the topic by its id: then a log that ends early is the same log, cut.
    by_id: bool,
    bounds: Bounds,
    /// The group's state of it; none where the position is a new group's.
    old: Option<&'a PartitionState>,
    position: Offset,
}

/// What the verdicts from 5 on answer.
struct Answer {
    start: Offset,
    holes: Vec<Hole>,
    replaying_until: Option<Offset>,
    findings: Vec<Finding>,
    refused: bool,
    losses: Vec<(LostRange, Cause)>,
}

impl Ruling<'_> {
    /// Asks the verdicts of each partition of a topic that is the group's own, or new to it.
    pub(super) fn judge_partitions(
        &mut self,
        name: &TopicName,
        known: Option<&TopicState>,
        topic_id: Option<TopicId>,
        seen: &BTreeMap<u32, PartitionLook>,
    ) {
        let grown = self.question.has_positions();
        if let Some(topic) = known
            && (topic.topic_id != topic_id || topic.retired)
        {
            self.reconciled.topic(name, topic_id, false);
        }
        let mut judged = 0;
        let none = BTreeMap::new();
        let journaled = known.map_or(&none, |topic| &topic.partitions);
        let mut numbers: BTreeSet<u32> = journaled.keys().chain(seen.keys()).copied().collect();
        if !grown && let NewGroup::Offsets(offsets) = &self.question.policy.new_group {
            numbers.extend(offsets.keys().filter(|at| at.topic == *name).map(|at| at.partition));
        }
        for number in numbers {
            let old = journaled.get(&number);
            if old.is_some() && !self.question.reads(name, number) {
                continue;
            }
            let Some(seen) = seen.get(&number) else {
                if old.is_some() {
                    self.unsettle(Some(name), Some(number), unknown("not in the answer, though it is the same topic"));
                } else {
                    self.given_but_missing(name, number);
                }
                continue;
            };
            let bounds = match Bounds::of(seen) {
                Ok(bounds) => bounds,
                Err(why) => {
                    self.unsettle(Some(name), Some(number), unknown(why));
                    continue;
                }
            };
            let at = TopicPartition::new(name.clone(), number);
            let by_id = known.is_some_and(|topic| topic.topic_id.is_some());
            let settled = match old {
                Some(old) => self.judge(&Case { at, topic_id, by_id, bounds, old: Some(old), position: old.position }),
                None if grown => Ok(self.add(at, topic_id, bounds)),
                None => self.begin(at, topic_id, bounds),
            };
            match settled {
                Ok(()) => judged += 1,
                Err(why) => self.unsettle(Some(name), Some(number), why),
            }
        }
        if known.is_none() && judged > 0 {
            let change = if grown { &mut self.added } else { &mut self.reconciled };
            change.topic(name, topic_id, false);
        }
    }

    /// Verdict 8.
    fn add(&mut self, at: TopicPartition, topic_id: Option<TopicId>, bounds: Bounds) {
        let expired = LostRange { from_offset: Offset::ZERO, until_offset: bounds.earliest };
        let finding = Finding {
            earliest: Some(bounds.earliest),
            latest: Some(bounds.latest),
            start: Some(bounds.earliest),
            loss: (bounds.earliest > Offset::ZERO).then_some(expired),
            ..of_partition(Verdict::PartitionAdded, &at.topic, at.partition)
        };
        self.added.set(&at.topic, at.partition, topic_id, None, Some(bounds.earliest), Vec::new());
        self.added.loss(&at.topic, at.partition, expired, Cause::Expired);
        self.added.findings.push(finding.clone());
        self.say(finding);
        self.start(bounds.start(at, topic_id, bounds.earliest, Verdict::PartitionAdded));
    }

    /// Verdict 9. Offsets that were given, or that Kafka holds, are judged like any position.
    fn begin(&mut self, at: TopicPartition, topic_id: Option<TopicId>, bounds: Bounds) -> Result<(), Why> {
        let end = bounds.readable_end.unwrap_or(bounds.latest).clamp(bounds.earliest, bounds.latest);
        let asked = || match self.question.firsts.get(&at) {
            None => Err(unknown("its first offset was not asked for")),
            Some(Seen::Failed(error)) => Err(unknown(format!("its first offset: {error}"))),
            Some(Seen::Absent) => Ok(None),
            Some(Seen::Known(offset)) => Ok(Some(*offset)),
        };
        let position = match &self.question.policy.new_group {
            NewGroup::Earliest => bounds.earliest,
            NewGroup::Latest => end,
            NewGroup::Time(_) => asked()?.map_or(end, |offset| offset.clamp(bounds.earliest, bounds.latest)),
            NewGroup::Offsets(offsets) => offsets.get(&at).copied().unwrap_or(bounds.earliest),
            NewGroup::Kafka => asked()?.unwrap_or(bounds.earliest),
            NewGroup::Fail => {
                let detail = format!("the group has no position, and new groups are refused ({})", self.question.group);
                self.refuse(Finding {
                    earliest: Some(bounds.earliest),
                    latest: Some(bounds.latest),
                    detail: Some(detail),
                    ..of_partition(Verdict::NewGroup, &at.topic, at.partition)
                });
                return Ok(());
            }
        };
        self.judge(&Case { at, topic_id, by_id: false, bounds, old: None, position })
    }

    /// An offset was given for a partition that the topic has not: the list is wrong, if it still has not at a second look.
    fn given_but_missing(&mut self, name: &TopicName, number: u32) {
        let earlier = self.earlier(name).and_then(|topic| topic.partitions.known());
        if earlier.is_some_and(|partitions| !partitions.contains_key(&number)) {
            let detail = Some("an offset was given for it, but the topic has no such partition".to_owned());
            self.refuse(Finding { detail, ..of_partition(Verdict::TopicMissing, name, number) });
        } else {
            self.unsettle(Some(name), Some(number), Why::Once(Verdict::TopicMissing));
        }
    }

    /// Verdicts 5 to 7, else the last: answers the start, and corrects where it is not the position.
    fn judge(&mut self, case: &Case<'_>) -> Result<(), Why> {
        let mut answer = self.answer(case)?;
        let Case { at, topic_id, bounds, old, .. } = case;
        let start = (!answer.refused).then_some(answer.start);
        let calm = if old.is_some() { Verdict::InRange } else { Verdict::NewGroup };
        let verdict = answer.findings.iter().map(|finding| finding.verdict).min().unwrap_or(calm);
        for finding in &mut answer.findings {
            finding.start = start;
        }
        if answer.refused {
            answer.findings.drain(..).for_each(|finding| self.refuse(finding));
            return Ok(());
        }
        let replaying_until = answer.replaying_until.filter(|until| *until > answer.start);
        let moved = old.is_none_or(|old| old.position != answer.start);
        if moved || self.question.starting() {
            let start = bounds.start(at.clone(), *topic_id, answer.start, verdict);
            self.start(StartPosition { replaying_until, ..start });
        }
        if moved || old.is_some_and(|old| old.holes != answer.holes) {
            self.reconciled.correction.moves.push(Move {
                topic: at.topic.clone(),
                partition: at.partition,
                topic_id: *topic_id,
                old: old.map(|old| old.position),
                new: Some(answer.start),
                holes: answer.holes,
                replaying_until,
            });
        }
        for (lost, cause) in answer.losses {
            self.reconciled.loss(&at.topic, at.partition, lost, cause);
        }
        for finding in answer.findings {
            self.reconciled.findings.push(finding.clone());
            self.say(finding);
        }
        Ok(())
    }

    fn answer(&self, case: &Case<'_>) -> Result<Answer, Why> {
        let Case { bounds: Bounds { earliest, latest, .. }, position, .. } = *case;
        let mut answer = Answer {
            start: position,
            holes: case.old.map(|old| old.holes.clone()).unwrap_or_default(),
            replaying_until: case.old.and_then(|old| old.replaying_until),
            findings: Vec::new(),
            refused: false,
            losses: Vec::new(),
        };
        if position > latest {
            if self.moved_since(self.question.observed, case) {
                return Ok(answer);
            }
            self.beyond_latest(case, &mut answer)?;
        }
        if position < earliest {
            self.before_earliest(case, &mut answer);
        }
        self.cut_holes(case, &mut answer);
        self.ask_holes(case, &mut answer)?;
        Ok(answer)
    }

    /// Verdict 5, if the earlier look saw the same of the same topic, and the log did not go on shrinking.
    fn beyond_latest(&self, case: &Case<'_>, answer: &mut Answer) -> Result<(), Why> {
        let Bounds { earliest, latest, .. } = case.bounds;
        let verdict = if case.by_id { Verdict::Truncated } else { Verdict::TailOutOfRange };
        let agrees = self.question.earlier.is_some_and(|observed| {
            let topic = observed.look.topics.get(&case.at.topic);
            let same = topic.is_some_and(|topic| topic.id.known().copied() == case.topic_id);
            let seen = topic.and_then(|topic| topic.partitions.known()?.get(&case.at.partition)?.latest.known());
            let before = self.position_at(observed, case);
            same && seen.is_some_and(|seen| *seen <= latest && before.is_some_and(|before| before > *seen))
        });
        if !agrees {
            return Err(Why::Once(verdict));
        }
        let mut lost = None;
        let detail = match (self.question.policy.reset.tail, case.by_id) {
            (TailReset::Fail, _) => {
                answer.refused = true;
                "the log ends below the position".to_owned()
            }
            (TailReset::Earliest | TailReset::Latest, true) => {
                answer.start = latest;
                format!("[{latest}, {}) was read, but is gone from the log", case.position)
            }
            (TailReset::Earliest, false) => {
                answer.start = earliest;
                "the log ends below the position, and no topic id tells whether it is the same".to_owned()
            }
            (TailReset::Latest, false) => {
                answer.start = latest;
                lost = Some(LostRange { from_offset: earliest, until_offset: latest });
                "the log ends below the position; if it is another topic, what it holds is lost".to_owned()
            }
        };
        let lost = lost.filter(|lost| lost.from_offset < lost.until_offset);
        answer.losses.extend(lost.map(|lost| (lost, Cause::Recreated)));
        answer.replaying_until = None;
        answer.findings.push(Finding { loss: lost, detail: Some(detail), ..case.finding(verdict) });
        Ok(())
    }

    /// Verdict 6.
    fn before_earliest(&self, case: &Case<'_>, answer: &mut Answer) {
        let lost = LostRange { from_offset: case.position, until_offset: case.bounds.earliest };
        match self.question.policy.reset.head {
            HeadReset::Earliest => {
                answer.start = case.bounds.earliest;
                answer.losses.push((lost, Cause::Expired));
            }
            HeadReset::Fail => answer.refused = true,
        }
        answer.findings.push(Finding { loss: Some(lost), ..case.finding(Verdict::HeadOutOfRange) });
    }

    /// What of the holes the log no longer has is lost; what is at or above the start is read again.
    fn cut_holes(&self, case: &Case<'_>, answer: &mut Answer) {
        let earliest = case.bounds.earliest;
        for hole in std::mem::take(&mut answer.holes) {
            let expired = LostRange { from_offset: hole.from_offset, until_offset: hole.until_offset.min(earliest) };
            if expired.from_offset < expired.until_offset {
                answer.losses.push((expired, Cause::Expired));
            }
            let left = Hole {
                from_offset: hole.from_offset.max(earliest),
                until_offset: hole.until_offset.min(answer.start),
                ..hole
            };
            if left.from_offset < left.until_offset {
                answer.holes.push(left);
            }
        }
    }

    /// Verdict 7 at a start; a running consumer only closes what holds nothing.
    fn ask_holes(&self, case: &Case<'_>, answer: &mut Answer) -> Result<(), Why> {
        let mut left = Vec::new();
        for hole in std::mem::take(&mut answer.holes) {
            let readable = match self.question.holes.holds(&case.at, &hole) {
                Some(Seen::Known(_)) if self.question.starting() => true,
                Some(Seen::Absent) => continue,
                Some(Seen::Failed(error)) if self.question.starting() => {
                    let (from, until) = (hole.from_offset, hole.until_offset);
                    return Err(unknown(format!("the hole [{from}, {until}): {error}")));
                }
                Some(Seen::Known(_) | Seen::Failed(_)) | None => false,
            };
            if !readable {
                left.push(hole);
                continue;
            }
            let mut finding = case.finding(Verdict::UnreadHole);
            let lost = LostRange { from_offset: hole.from_offset, until_offset: hole.until_offset };
            finding.detail = Some(format!("[{}, {}) was never read", lost.from_offset, lost.until_offset));
            match self.question.policy.reset.hole {
                HoleReset::Reread => answer.start = answer.start.min(hole.from_offset),
                HoleReset::Skip => {
                    finding.loss = Some(lost);
                    answer.losses.push((lost, Cause::Unread));
                }
                HoleReset::Fail => answer.refused = true,
            }
            answer.findings.push(finding);
        }
        // What is at or above the start is read again.
        left.retain(|hole| hole.from_offset < answer.start);
        answer.holes = left;
        Ok(())
    }

    /// The position that the partition had when a look was taken.
    fn position_at(&self, observed: &Observed, case: &Case<'_>) -> Option<Offset> {
        match case.old {
            Some(_) => observed.positions.get(&case.at.topic, case.at.partition).map(|then| then.position),
            None => Some(case.position),
        }
    }

    /// Whether the position is another than when the look was taken: it then says nothing about latest.
    fn moved_since(&self, observed: &Observed, case: &Case<'_>) -> bool {
        self.position_at(observed, case) != Some(case.position)
    }
}

impl Case<'_> {
    fn finding(&self, verdict: Verdict) -> Finding {
        Finding {
            position: Some(self.position),
            earliest: Some(self.bounds.earliest),
            latest: Some(self.bounds.latest),
            ..of_partition(verdict, &self.at.topic, self.at.partition)
        }
    }
}
