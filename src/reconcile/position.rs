//! Verdicts 5 to 7, and the last: can a position stay where it is?

use crate::broker::Seen;
use crate::entry::{Cause, Finding, Hole, LostRange, Move, Verdict};
use crate::offset::{Offset, TopicId, TopicPartition};
use crate::positions::PartitionState;
use crate::reconcile::partition::Bounds;
use crate::reconcile::ruling::Ruling;
use crate::reconcile::topic::of_partition;
use crate::reconcile::{HeadReset, HoleReset, Observed, StartPosition, TailReset, Why};

/// A partition as the verdicts from 5 on see it.
pub(super) struct Case<'a> {
    pub(super) at: TopicPartition,
    pub(super) topic_id: Option<TopicId>,
    /// Whether the journal knew the topic by its id: then a log that ends early is the same log, cut.
    pub(super) by_id: bool,
    pub(super) bounds: Bounds,
    /// The group's state of it; none where the position is a new group's.
    pub(super) old: Option<&'a PartitionState>,
    pub(super) position: Offset,
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
    /// Verdicts 5 to 7, else the last: answers the start, and corrects where it is not the position.
    pub(super) fn judge(&mut self, case: &Case<'_>) -> Result<(), Why> {
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
                    let Hole { from_offset, until_offset, .. } = hole;
                    return Err(Why::Hole { from_offset, until_offset, error: error.clone() });
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
