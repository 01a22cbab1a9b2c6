//! What a decision gathers while the verdicts are asked, and the entries that it ends in.

use crate::entry::{Body, Cause, Correction, Draft, Finding, Hole, Loss, LostRange, Move, TopicChange, Verdict};
use crate::offset::{Epoch, Offset, TopicId, TopicName};
use crate::positions::TopicState;
use crate::reconcile::cluster::finding;
use crate::reconcile::{Decided, Decision, Occasion, Question, StartPosition, Unsettled, Why};

/// A decision in the making.
pub(super) struct Ruling<'a> {
    pub(super) question: &'a Question<'a>,
    /// Set where the operator accepts another cluster: what to tell of it.
    pub(super) accepted: Option<String>,
    /// What becomes `reconciled`.
    pub(super) reconciled: Change,
    /// What becomes `partitions_added`.
    pub(super) added: Change,
    unsettled: Vec<Unsettled>,
    /// Each with whether it is in the way.
    findings: Vec<(Finding, bool)>,
    starts: Vec<StartPosition>,
}

/// An entry in the making.
#[derive(Default)]
pub(super) struct Change {
    pub(super) findings: Vec<Finding>,
    pub(super) correction: Correction,
}

impl Change {
    /// Sets the topic's id; its partitions are unset if it is another incarnation.
    pub(super) fn topic(&mut self, topic: &TopicName, topic_id: Option<TopicId>, new_incarnation: bool) {
        self.correction.topics.push(TopicChange { topic: topic.clone(), topic_id, new_incarnation });
    }

    /// Notes `[from_offset, until_offset)` as lost; nothing if that is empty.
    pub(super) fn loss(&mut self, topic: &TopicName, partition: u32, lost: LostRange, cause: Cause) {
        let LostRange { from_offset, until_offset } = lost;
        if from_offset < until_offset {
            self.correction.losses.push(Loss { topic: topic.clone(), partition, from_offset, until_offset, cause });
        }
    }

    /// Notes that those partitions of the topic are no more.
    pub(super) fn all_gone(&mut self, name: &TopicName, topic: &TopicState, which: impl Fn(u32) -> bool) {
        for (number, partition) in &topic.partitions {
            if which(*number) {
                self.set(name, *number, None, Some(partition.position), None, Vec::new());
            }
        }
    }

    /// In the order that applying wants.
    fn ordered(mut self) -> Self {
        self.correction.topics.sort_by(|a, b| a.topic.cmp(&b.topic));
        self.correction.moves.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
        self
    }

    /// Sets a position and its holes.
    pub(super) fn set(
        &mut self,
        topic: &TopicName,
        partition: u32,
        topic_id: Option<TopicId>,
        old: Option<Offset>,
        new: Option<Offset>,
        holes: Vec<Hole>,
    ) {
        let topic = topic.clone();
        self.correction.moves.push(Move { topic, partition, topic_id, old, new, holes, replaying_until: None });
    }
}

impl<'a> Ruling<'a> {
    pub(super) fn new(question: &'a Question<'a>) -> Self {
        Ruling {
            question,
            accepted: None,
            reconciled: Change::default(),
            added: Change::default(),
            unsettled: Vec::new(),
            findings: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// Leaves something for the next look.
    pub(super) fn unsettle(&mut self, topic: Option<&TopicName>, partition: Option<u32>, why: Why) {
        self.unsettled.push(Unsettled { topic: topic.cloned(), partition, why });
    }

    /// Says what was found; the caller puts what comes of it into an entry.
    pub(super) fn say(&mut self, finding: Finding) {
        self.findings.push((finding, false));
    }

    /// Says what was found, and that it is in the way: of a start, or of a correction while running.
    pub(super) fn refuse(&mut self, finding: Finding) {
        self.findings.push((Finding { start: None, ..finding }, true));
    }

    /// Answers where a partition starts.
    pub(super) fn start(&mut self, start: StartPosition) {
        self.starts.push(start);
    }

    /// The answer where nothing can be decided.
    pub(super) fn stop(self) -> Decision {
        if self.is_refused() {
            Decision::Refused { findings: self.findings.into_iter().map(|(finding, _)| finding).collect() }
        } else {
            Decision::LookAgain { unsettled: self.unsettled }
        }
    }

    fn is_refused(&self) -> bool {
        self.findings.iter().any(|(_, in_the_way)| *in_the_way)
    }

    /// What comes of all of it.
    pub(super) fn finish(mut self) -> Decision {
        let starting = self.question.starting();
        if starting && !self.unsettled.is_empty() {
            return Decision::LookAgain { unsettled: self.unsettled };
        }
        if starting && !self.is_refused() && !self.question.has_positions() && self.starts.is_empty() {
            // A new group that reads nothing would be a typing error that looks like success.
            let topics: Vec<_> = self.question.topics.iter().map(ToString::to_string).collect();
            let detail = format!("no topic matches {}", topics.join(", "));
            match self.findings.last_mut() {
                Some((_, in_the_way)) => *in_the_way = true,
                None => self.refuse(Finding { detail: Some(detail), ..finding(Verdict::TopicMissing) }),
            }
        }
        if starting && self.is_refused() {
            return self.stop();
        }
        self.leave_unasked_topics();
        let (epoch, drafts) = self.drafts();
        let Ruling { findings, starts, unsettled, .. } = self;
        let (refused, findings): (Vec<_>, Vec<_>) = findings.into_iter().partition(|(_, in_the_way)| *in_the_way);
        let [refused, findings] = [refused, findings].map(|all| all.into_iter().map(|(finding, _)| finding).collect());
        Decision::Decided(Decided { epoch, findings, starts, drafts, unsettled, refused })
    }

    /// On an accepted cluster the positions of topics that nobody asked for mean nothing either. Retired ones are left
    /// to their ids: a change would bring them back.
    fn leave_unasked_topics(&mut self) {
        let (Some(_), Some(state)) = (&self.accepted, self.question.state) else { return };
        for (name, topic) in &state.positions.topics {
            let settled = self.reconciled.correction.topics.iter().any(|change| change.topic == *name);
            if !settled && !topic.retired {
                self.reconciled.topic(name, None, true);
                self.reconciled.all_gone(name, topic, |_| true);
            }
        }
    }

    /// The entries, all under one epoch: raised once, whatever raises it.
    fn drafts(&mut self) -> (Epoch, Vec<Draft>) {
        let state = self.question.state;
        let present = state.map_or_else(Default::default, |state| state.epoch);
        let (started, taken_over) = match self.question.occasion {
            Occasion::Start(starter) => (starter.entry(self.question.group, state), starter.takes_over(state)),
            Occasion::Running { .. } => (None, false),
        };
        let raised = taken_over || self.reconciled.correction.raises_epoch();
        let epoch = if raised { present.next() } else { present };
        let Change { findings, correction } = std::mem::take(&mut self.reconciled).ordered();
        let reconciled = (!correction.is_empty()).then_some(Body::Reconciled { findings, correction });
        let Change { findings, correction } = std::mem::take(&mut self.added).ordered();
        let added = (!correction.is_empty()).then_some(Body::PartitionsAdded { findings, correction });
        let bodies = [started, reconciled, added].into_iter().flatten();
        let group = self.question.group;
        (epoch, bodies.map(|body| Draft { group: Some(group.clone()), epoch, body }).collect())
    }
}
