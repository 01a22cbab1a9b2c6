//! What a decision is made from, fetched from the broker.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::StartRequest;
use crate::broker::{Ask, Broker, Seen, TopicSelector};
use crate::control::Control;
use crate::offset::{Isolation, Offset, OffsetRange, TopicPartition};
use crate::positions::GroupState;
use crate::reconcile::{
    Holes, LookedInto, NewGroup, Observed, Occasion, Question, asked_names, new_group_partitions, to_look_into,
};

/// How long a start waits for what Kafka holds as committed, which is only compared.
const COMPARE: Duration = Duration::from_secs(1);

/// The looks so far, with the moment that each was complete, oldest first.
pub(super) struct Looks {
    second_look: Duration,
    taken: VecDeque<(Instant, Arc<Observed>)>,
    /// What is known of holes, so that a thousand of them, far apart, are looked into in the end.
    holes: HashMap<OffsetRange, Seen<Offset>>,
    /// How many there were at first.
    open: Option<usize>,
}

impl Looks {
    pub(super) fn new(second_look: Duration) -> Self {
        Looks { second_look, taken: VecDeque::new(), holes: HashMap::new(), open: None }
    }

    /// How many holes are looked into, at most as many as there were at first: others may open without an end.
    pub(super) fn answered(&self) -> usize {
        self.holes.len().min(self.open.unwrap_or_default())
    }

    /// The newest look that was complete so long before `now` that another one counts as a second. Older ones are
    /// forgotten.
    fn earlier(&mut self, now: Instant) -> Option<Arc<Observed>> {
        let old_enough = |complete: Instant| now.saturating_duration_since(complete) >= self.second_look;
        while self.taken.get(1).is_some_and(|(complete, _)| old_enough(*complete)) {
            self.taken.pop_front();
        }
        self.taken.front().filter(|(complete, _)| old_enough(*complete)).map(|(_, look)| Arc::clone(look))
    }
}

/// What the broker said, for a decision.
pub(super) struct Evidence {
    pub(super) observed: Arc<Observed>,
    earlier: Option<Arc<Observed>>,
    isolation: Isolation,
    topics: Vec<TopicSelector>,
    holes: Holes,
    firsts: BTreeMap<TopicPartition, Seen<Offset>>,
    /// What Kafka holds as committed for the group that follows, where that is to be compared.
    pub(super) committed: BTreeMap<TopicPartition, Seen<Offset>>,
}

impl Evidence {
    /// Takes a look; the positions are read first.
    pub(super) fn look(
        control: &Control,
        broker: &dyn Broker,
        request: &StartRequest,
        looks: &mut Looks,
        deadline: Duration,
    ) -> Self {
        let (positions, present) = control.journal.with_state(|state| {
            let group = state.groups.get(&request.group);
            group.map(|group| (group.positions.clone(), group.isolation)).unwrap_or_default()
        });
        let isolation = request.isolation.unwrap_or(present);
        // By name as well as by pattern: only an answer about a name tells that the topic is missing.
        let names = asked_names(&request.topics, &positions).into_iter().map(TopicSelector::Name);
        let patterns = request.topics.iter().filter(|asked| matches!(asked, TopicSelector::Pattern(_))).cloned();
        let ask = Ask { topics: names.chain(patterns).collect(), isolation, deadline };
        let earlier = looks.earlier(Instant::now());
        let observed = Arc::new(Observed { look: broker.look(&ask), positions });
        looks.taken.push_back((Instant::now(), Arc::clone(&observed)));
        let (holes, firsts, committed) = (Holes::NotLooked, BTreeMap::new(), BTreeMap::new());
        Evidence { observed, earlier, isolation, topics: request.topics.clone(), holes, firsts, committed }
    }

    /// Looks into the open holes, at most so many, except those that an earlier look had an answer for: what holds nothing
    /// never will.
    pub(super) fn into_holes(
        mut self,
        broker: &dyn Broker,
        looks: &mut Looks,
        deadline: Duration,
        limit: usize,
    ) -> Self {
        let Observed { look, positions } = self.observed.as_ref();
        let mut ranges: Vec<OffsetRange> = to_look_into(&self.topics, positions, look);
        ranges.truncate(limit);
        looks.open.get_or_insert(ranges.len());
        if ranges.is_empty() {
            // None that the log still has, but one that is opened until the decision must be looked into too.
            let able = broker.first_readable(&[], self.isolation, deadline).is_some();
            self.holes = if able { Holes::Looked(Vec::new()) } else { Holes::NotLooked };
        } else {
            let (known, asked): (Vec<_>, Vec<_>) =
                ranges.into_iter().partition(|range| looks.holes.contains_key(range));
            if let Some(firsts) = broker.first_readable(&asked, self.isolation, deadline) {
                let known = known.into_iter().map(|range| (looks.holes[&range].clone(), range));
                let looked = known.chain(firsts.into_iter().zip(asked));
                let looked = looked.map(|(first_readable, range)| LookedInto { range, first_readable });
                let looked: Vec<LookedInto> = looked.collect();
                let answered = looked.iter().filter(|looked| !matches!(looked.first_readable, Seen::Failed(_)));
                looks.holes.extend(answered.map(|looked| (looked.range.clone(), looked.first_readable.clone())));
                self.holes = Holes::Looked(looked);
            }
        }
        self
    }

    /// Asks where a new group begins, if it is one whose policy leaves that to the broker.
    pub(super) fn new_group(
        mut self,
        broker: &dyn Broker,
        control: &Control,
        request: &StartRequest,
        deadline: Duration,
    ) -> Self {
        let Observed { look, positions } = self.observed.as_ref();
        if positions.topics.values().any(|topic| !topic.partitions.is_empty()) {
            return self;
        }
        let partitions = || new_group_partitions(&request.topics, look);
        self.firsts = match &request.policy.new_group {
            NewGroup::Time(time) => broker.offsets_at(&partitions(), *time, deadline),
            NewGroup::Kafka => {
                // Without a Kafka group that follows, the one of the same name is meant.
                let name = kafka_group(control, request).unwrap_or_else(|| request.group.group().to_owned());
                broker.committed(&name, &partitions(), deadline)
            }
            NewGroup::Earliest | NewGroup::Latest | NewGroup::Offsets(_) | NewGroup::Fail => BTreeMap::new(),
        };
        self
    }

    /// Asks what Kafka holds as committed for the group that follows this one, unless this process knows that Kafka has not
    /// been told everything.
    pub(super) fn committed(
        mut self,
        broker: &dyn Broker,
        control: &Control,
        request: &StartRequest,
        deadline: Duration,
    ) -> Self {
        let Observed { look, positions } = self.observed.as_ref();
        let mut partitions: BTreeSet<_> = positions.iter().map(|(at, _, _)| at).collect();
        if partitions.is_empty() {
            partitions = new_group_partitions(&self.topics, look);
        }
        let pending = control.journal.with_state(|state| {
            state.groups.get(&request.group).is_some_and(|group| control.mirror.is_pending(&request.group, group))
        });
        if partitions.is_empty() || pending {
            return self;
        }
        if let Some(name) = kafka_group(control, request) {
            self.committed = broker.committed(&name, &partitions, deadline.min(COMPARE));
        }
        self
    }

    /// The question that it answers.
    pub(super) fn question<'a>(
        &'a self,
        state: Option<&'a GroupState>,
        request: &'a StartRequest,
        occasion: Occasion<'a>,
    ) -> Question<'a> {
        Question {
            group: &request.group,
            state,
            topics: &request.topics,
            observed: &self.observed,
            earlier: self.earlier.as_deref(),
            holes: &self.holes,
            firsts: &self.firsts,
            policy: &request.policy,
            occasion,
        }
    }
}

/// The Kafka group that follows after the start.
fn kafka_group(control: &Control, request: &StartRequest) -> Option<String> {
    control.journal.with_state(|state| request.starter().kafka_group(&request.group, state.groups.get(&request.group)))
}
