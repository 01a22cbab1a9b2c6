//! The partitions of a topic that is the group's own, or new to it: which have a position, which are added, and where a
//! new group begins.

use std::collections::{BTreeMap, BTreeSet};

use crate::broker::{PartitionLook, Seen};
use crate::entry::{Cause, Finding, LostRange, Verdict};
use crate::offset::{Offset, TopicId, TopicName, TopicPartition};
use crate::positions::{PartitionState, TopicState};
use crate::reconcile::position::Case;
use crate::reconcile::ruling::Ruling;
use crate::reconcile::topic::{of_partition, unknown};
use crate::reconcile::{NewGroup, StartPosition, Why};

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
                match old {
                    Some(old) => {
                        let why = self.not_listed(number, old, seen.len());
                        self.unsettle(Some(name), Some(number), unknown(why));
                    }
                    None => self.given_but_missing(name, number),
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
                None if grown => {
                    self.add(at, topic_id, bounds);
                    Ok(())
                }
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

    /// Why a partition of the group that the same topic has not keeps it from being started, and the way out where it is
    /// no answer of old metadata: the topic is given the partition, which is then found cut.
    fn not_listed(&self, number: u32, old: &PartitionState, listed: usize) -> String {
        let batch = old.last_batch.map(|batch| format!(" (batch {batch})")).unwrap_or_default();
        format!(
            "the journal has partition {number}{batch}, but {} lists {listed} partitions under the same topic id; if that \
             stays so, a commit named it by mistake: once the topic has {} partitions, the group can start",
            self.question.observed.look.brokers,
            u64::from(number) + 1
        )
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
}
