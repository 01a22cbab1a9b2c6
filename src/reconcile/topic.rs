//! Which topics are asked for, and verdicts 2 to 4: is the topic there, is it the same one, did the broker say?

use std::collections::{BTreeMap, BTreeSet};

use crate::broker::{Look, PartitionLook, Seen, TopicLook, TopicSelector};
use crate::entry::{Cause, Finding, LostRange, Verdict};
use crate::offset::{Offset, TopicId, TopicName, TopicPartition};
use crate::positions::{Positions, TopicState};
use crate::reconcile::cluster::finding;
use crate::reconcile::partition::Bounds;
use crate::reconcile::ruling::Ruling;
use crate::reconcile::{MissingReset, Occasion, Question, RecreatedReset, Why};

/// The topics that a look must ask for by name: those named, and those of the group that a pattern matches, as only
/// asking by name tells that one is missing. No selector at all means all topics of the group. Retired ones are asked
/// for only by name.
pub fn asked_names(topics: &[TopicSelector], positions: &Positions) -> BTreeSet<TopicName> {
    let journaled = positions.topics.iter().filter(|(name, topic)| {
        !topic.retired && (topics.is_empty() || topics.iter().any(|selector| selector.matches(name)))
    });
    let named = topics.iter().filter_map(|selector| match selector {
        TopicSelector::Name(name) => Some(name),
        TopicSelector::Pattern(_) => None,
    });
    journaled.map(|(name, _)| name).chain(named).cloned().collect()
}

/// The partitions of a look that a new group could begin at: those that its time or Kafka's offsets are asked for.
pub fn new_group_partitions(topics: &[TopicSelector], look: &Look) -> BTreeSet<TopicPartition> {
    let asked = look.topics.iter().filter(|(name, _)| topics.iter().any(|selector| selector.matches(name)));
    asked
        .flat_map(|(name, topic)| {
            let numbers = topic.partitions.known().into_iter().flat_map(|partitions| partitions.keys());
            numbers.map(|number| TopicPartition::new(name.clone(), *number))
        })
        .collect()
}

/// The topics to judge, in order, with what the group knows of each.
pub(super) fn asked<'a>(
    question: &Question<'a>,
    ruling: &mut Ruling<'_>,
) -> BTreeMap<TopicName, Option<&'a TopicState>> {
    let look = &question.observed.look;
    let none = Positions::default();
    let positions = question.state.map_or(&none, |state| &state.positions);
    let mut names = asked_names(question.topics, positions);
    if question.topics.iter().any(|selector| matches!(selector, TopicSelector::Pattern(_))) {
        if let Seen::Failed(error) = &look.listing {
            ruling.unsettle(None, None, Why::Unknown(format!("the list of topics: {error}")));
        }
        // A retired topic is not found by a pattern.
        let matched = look.topics.keys().filter(|name| question.topics.iter().any(|selector| selector.matches(name)));
        names.extend(matched.filter(|name| positions.topics.get(*name).is_none_or(|t| !t.retired)).cloned());
    }
    let known = |name: &TopicName| question.state.and_then(|state| state.positions.topics.get(name));
    names.into_iter().map(|name| (name.clone(), known(&name))).collect()
}

/// A topic as the broker showed it, each value known.
struct Shown<'a> {
    topic_id: Option<TopicId>,
    partitions: &'a BTreeMap<u32, PartitionLook>,
}

impl<'a> Ruling<'a> {
    /// Asks the verdicts from 2 on of one topic.
    pub(super) fn judge_topic(&mut self, name: &TopicName, known: Option<&TopicState>) {
        if !self.question.starting() && known.is_some_and(|topic| !self.runs(name, topic)) {
            return;
        }
        if let Err(why) = self.ask_topic(name, known) {
            self.unsettle(Some(name), None, why);
        }
    }

    fn ask_topic(&mut self, name: &TopicName, known: Option<&TopicState>) -> Result<(), Why> {
        let Some(shown) = self.shown(name)? else {
            self.missing(name, known);
            return Ok(());
        };
        if let Some(recreated) = self.other_incarnation(name, known, &shown)? {
            return self.restart(name, known, &shown, &recreated);
        }
        self.judge_partitions(name, known, shown.topic_id, shown.partitions);
        Ok(())
    }

    /// Whether a running consumer reads anything of a topic that the group has.
    fn runs(&self, name: &TopicName, topic: &TopicState) -> bool {
        !topic.retired && topic.partitions.keys().any(|number| self.question.reads(name, *number))
    }

    /// What the earlier look saw of the topic.
    pub(super) fn earlier(&self, name: &TopicName) -> Option<&'a TopicLook> {
        self.question.earlier?.look.topics.get(name)
    }

    /// Verdicts 2 and 4: the topic as it was seen; none where it is missing, twice.
    fn shown(&self, name: &TopicName) -> Result<Option<Shown<'a>>, Why> {
        let Some(seen) = self.question.observed.look.topics.get(name) else {
            return Err(unknown("the look did not ask for it"));
        };
        let partitions = match &seen.partitions {
            Seen::Failed(error) => return Err(unknown(error)),
            Seen::Absent if self.earlier(name).is_some_and(|earlier| earlier.partitions == Seen::Absent) => {
                return Ok(None);
            }
            Seen::Absent => return Err(Why::Once(Verdict::TopicMissing)),
            Seen::Known(partitions) if partitions.is_empty() => return Err(unknown("no partition in the answer")),
            Seen::Known(partitions) => partitions,
        };
        match &seen.id {
            Seen::Failed(error) => Err(unknown(format!("its id: {error}"))),
            Seen::Absent => Ok(Some(Shown { topic_id: None, partitions })),
            Seen::Known(id) => Ok(Some(Shown { topic_id: Some(*id), partitions })),
        }
    }

    /// Verdict 3, and 1 once accepted: why this is another topic than the group's; none where it is the same.
    fn other_incarnation(
        &self,
        name: &TopicName,
        known: Option<&TopicState>,
        shown: &Shown<'_>,
    ) -> Result<Option<Recreated>, Why> {
        let Some(known) = known else { return Ok(None) };
        if let Some(accepted) = &self.accepted {
            return Ok(Some(Recreated { verdict: Verdict::OtherCluster, detail: accepted.clone() }));
        }
        let detail = match (known.topic_id, shown.topic_id) {
            (Some(known), None) => return Err(unknown(format!("no id in the answer, it is known by {known}"))),
            (Some(id), Some(seen)) if id == seen => return Ok(None),
            (Some(_), Some(seen)) if known.former_ids.contains(&seen) => {
                return Err(unknown(format!("the answer is of a former topic, id {seen}")));
            }
            (Some(id), Some(seen)) => format!("topic id {seen}, was {id}"),
            (None, _) => {
                let missing = known.partitions.keys().filter(|number| !shown.partitions.contains_key(number)).count();
                if missing == 0 {
                    return Ok(None);
                }
                format!("{} partitions, had {}", shown.partitions.len(), known.partitions.len())
            }
        };
        let agrees = self.earlier(name).is_some_and(|earlier| {
            let numbers = earlier.partitions.known().map(|partitions| partitions.keys());
            earlier.id.known().copied() == shown.topic_id
                && numbers.is_some_and(|numbers| shown.topic_id.is_some() || numbers.eq(shown.partitions.keys()))
        });
        if !agrees {
            return Err(Why::Once(Verdict::TopicRecreated));
        }
        Ok(Some(Recreated { verdict: Verdict::TopicRecreated, detail: detail + &self.doubt() }))
    }

    /// The batches of a running consumer that may have been read from either topic.
    fn doubt(&self) -> String {
        let newest = self.question.state.map(|state| state.positions.batch);
        match (self.question.occasion, newest) {
            (Occasion::Running { undoubted: Some(undoubted), .. }, Some(newest)) if newest > undoubted => {
                format!("; batches {}..{newest} may have been read from the one or the other", undoubted.next())
            }
            (Occasion::Running { .. } | Occasion::Start(_), _) => String::new(),
        }
    }

    /// Starts every partition of another incarnation at its earliest, or refuses. Nothing of it unless all are known.
    fn restart(
        &mut self,
        name: &TopicName,
        known: Option<&TopicState>,
        shown: &Shown<'_>,
        recreated: &Recreated,
    ) -> Result<(), Why> {
        let bounds: BTreeMap<u32, Bounds> = shown
            .partitions
            .iter()
            .map(|(number, seen)| Ok((*number, Bounds::of(seen).map_err(|why| unknown(format!("/{number}: {why}")))?)))
            .collect::<Result<_, Why>>()?;
        let none = BTreeMap::new();
        let old = known.map_or(&none, |known| &known.partitions);
        let refused = recreated.verdict == Verdict::TopicRecreated
            && self.question.policy.reset.recreated == RecreatedReset::Fail;
        let numbers: BTreeSet<u32> = bounds.keys().chain(old.keys()).copied().collect();
        for number in numbers {
            let bounds = bounds.get(&number);
            let detail = match bounds {
                Some(_) => recreated.detail.clone(),
                None => format!("{}; this partition is no more", recreated.detail),
            };
            let earliest = bounds.map(|bounds| bounds.earliest);
            let expired = earliest.map(|earliest| LostRange { from_offset: Offset::ZERO, until_offset: earliest });
            let finding = Finding {
                position: old.get(&number).map(|old| old.position),
                earliest,
                latest: bounds.map(|bounds| bounds.latest),
                start: earliest,
                loss: expired.filter(|lost| lost.from_offset < lost.until_offset),
                detail: Some(detail),
                ..self::of_partition(recreated.verdict, name, number)
            };
            if refused {
                self.refuse(finding);
                continue;
            }
            if let Some(bounds) = bounds {
                let at = TopicPartition::new(name.clone(), number);
                self.start(bounds.start(at, shown.topic_id, bounds.earliest, recreated.verdict));
            }
            for hole in old.get(&number).into_iter().flat_map(|old| &old.holes) {
                let lost = LostRange { from_offset: hole.from_offset, until_offset: hole.until_offset };
                self.reconciled.loss(name, number, lost, Cause::Recreated);
            }
            if let Some(lost) = finding.loss {
                self.reconciled.loss(name, number, lost, Cause::Expired);
            }
            self.reconciled.set(name, number, shown.topic_id, finding.position, earliest, Vec::new());
            self.reconciled.findings.push(finding.clone());
            self.say(finding);
        }
        if !refused {
            self.reconciled.topic(name, shown.topic_id, true);
        }
        Ok(())
    }

    /// Verdict 2, seen twice. A running consumer can only say it, and only of what it had.
    fn missing(&mut self, name: &TopicName, known: Option<&TopicState>) {
        let kept = known.map_or("", |_| "; its positions are kept");
        let detail = format!("no such topic on {}{kept}", self.question.observed.look.brokers);
        let finding = Finding { topic: Some(name.clone()), detail: Some(detail), ..finding(Verdict::TopicMissing) };
        match (self.question.starting(), self.question.policy.reset.missing) {
            (true, MissingReset::Fail) => self.refuse(finding),
            (true, MissingReset::Skip) => self.say(finding),
            (false, _) if known.is_some() => self.say(finding),
            (false, _) => {}
        }
    }
}

/// Another topic under the same name.
struct Recreated {
    verdict: Verdict,
    detail: String,
}

/// A finding about a partition, without values yet.
pub(super) fn of_partition(verdict: Verdict, name: &TopicName, number: u32) -> Finding {
    Finding { topic: Some(name.clone()), partition: Some(number), ..finding(verdict) }
}

/// Verdict 4.
pub(super) fn unknown(why: impl Into<String>) -> Why {
    Why::Unknown(why.into())
}
