//! What the broker says of a group, as far as it can be had at once: an answer that the journal alone can give never
//! waits for a broker that hangs.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::broker::{Ask, Broker, Look, Member, Seen, TopicLook, TopicSelector};
use crate::offset::{Group, OffsetRange, TopicPartition};
use crate::positions::GroupState;

/// A look is not repeated before it is this old.
const FRESH: Duration = Duration::from_millis(500);
/// An older one says nothing of a log's ends any more.
const STALE: Duration = Duration::from_secs(30);
/// An older one says nothing of the partitions that there are.
const KNOWN: Duration = Duration::from_secs(3600);
/// How long an answer waits for a broker that answered the last time.
const WAIT: Duration = Duration::from_millis(500);
/// How long a look may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// Looks at once, and besides them questions about members: a thread waits for each.
const AT_ONCE: usize = 4;
/// Groups that are remembered; past that the one that was looked at longest ago is forgotten.
const MAX_GROUPS: usize = 10_000;

/// The newest looks, by group.
pub struct Looks {
    broker: Option<Arc<dyn Broker>>,
    groups: Mutex<BTreeMap<Group, Known>>,
    /// Turned with each look that ended.
    ended: watch::Sender<u64>,
}

#[derive(Default)]
struct Known {
    look: Option<Arc<Look>>,
    taken: Option<Instant>,
    /// Who was in the Kafka group that follows, and when.
    members: Option<(Instant, Vec<Member>)>,
    /// Whether it is being asked who is in there, which may take longer than the look.
    asking: bool,
    /// Whether the broker said nothing the last time.
    silent: bool,
    under_way: bool,
    /// What its last start asked for: patterns take in topics that the journal does not have yet.
    topics: Vec<TopicSelector>,
}

impl Known {
    fn usable(&self, age: Duration) -> Option<Arc<Look>> {
        self.look.clone().filter(|_| self.taken.is_some_and(|taken| taken.elapsed() < age))
    }
}

impl Looks {
    /// Looks at `broker`; without one there are none.
    pub fn new(broker: Option<Arc<dyn Broker>>) -> Arc<Self> {
        Arc::new(Looks { broker, groups: Mutex::default(), ended: watch::Sender::new(0) })
    }

    fn groups(&self) -> MutexGuard<'_, BTreeMap<Group, Known>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a start of `group` asked for.
    pub fn remember(&self, group: &Group, topics: &[TopicSelector]) {
        if self.broker.is_some() {
            let mut groups = self.groups();
            groups.entry(group.clone()).or_default().topics = topics.to_vec();
            bound(&mut groups);
        }
    }

    /// The newest look at the group's topics that can be had within a moment; none if there is no broker, or it does
    /// not answer.
    pub async fn recent(self: &Arc<Self>, group: &Group, state: &GroupState) -> Option<Arc<Look>> {
        let mut ended = self.ended.subscribe();
        if self.refresh(group, state) {
            let looked = async {
                while ended.changed().await.is_ok() {
                    if self.groups().get(group).is_none_or(|known| !known.under_way) {
                        return;
                    }
                }
            };
            // Too late: what there is will do.
            let _ = tokio::time::timeout(WAIT, looked).await;
        }
        let groups = self.groups();
        let known = groups.get(group)?;
        if known.silent { None } else { known.usable(STALE) }
    }

    /// The newest look without asking the broker.
    pub fn known(&self, group: &Group) -> Option<Arc<Look>> {
        self.groups().get(group).and_then(|known| known.usable(KNOWN))
    }

    /// The newest look without asking the broker, where it may still say where the logs end.
    pub fn fresh(&self, group: &Group) -> Option<Arc<Look>> {
        self.groups().get(group).and_then(|known| known.usable(STALE))
    }

    /// The live members of the Kafka group that follows the group, without asking the broker; none where it did not say.
    pub fn members(&self, group: &Group) -> Option<Vec<Member>> {
        let groups = self.groups();
        let (told, members) = groups.get(group)?.members.as_ref()?;
        (told.elapsed() < STALE).then(|| members.clone())
    }

    /// Whether the broker said nothing the last time that it was asked about the group.
    pub fn is_silent(&self, group: &Group) -> bool {
        self.groups().get(group).is_some_and(|known| known.silent)
    }

    /// Begins a look where the last one is not fresh; whether it is worth waiting for.
    pub fn refresh(self: &Arc<Self>, group: &Group, state: &GroupState) -> bool {
        let Some(broker) = self.broker.clone() else { return false };
        let mut groups = self.groups();
        let under_way = groups.values().filter(|known| known.under_way).count();
        let known = groups.entry(group.clone()).or_default();
        if known.under_way || known.usable(FRESH).is_some() {
            return known.under_way && !known.silent;
        }
        if under_way >= AT_ONCE {
            return false;
        }
        known.under_way = true;
        let worth_it = !known.silent;
        let patterns = known.topics.iter().filter(|topic| matches!(topic, TopicSelector::Pattern(_))).cloned();
        let named = state.positions.topics.iter().filter(|(_, topic)| !topic.retired);
        let mut topics: Vec<_> = named.map(|(name, _)| TopicSelector::Name(name.clone())).collect();
        topics.extend(patterns);
        let ask = Ask { topics, isolation: state.isolation, deadline: DEADLINE };
        let kafka_group = state.kafka_group.clone();
        bound(&mut groups);
        drop(groups);
        let (looks, group) = (Arc::clone(self), group.clone());
        tokio::task::spawn_blocking(move || {
            // A look that panics is one that said nothing.
            let look = catch_unwind(AssertUnwindSafe(|| broker.look(&ask)));
            looks.note(&group, look.ok());
            // After it, as a coordinator that hangs says nothing of the logs.
            let Some(name) = kafka_group.filter(|_| looks.may_ask(&group)) else { return };
            let members = catch_unwind(AssertUnwindSafe(|| broker.members(&name, DEADLINE)));
            if let Some(known) = looks.groups().get_mut(&group) {
                known.asking = false;
                known.members = members.ok().and_then(Result::ok).map(|members| (Instant::now(), members));
            }
        });
        worth_it
    }

    /// Takes a place for a question about the group's members, where there is one.
    fn may_ask(&self, group: &Group) -> bool {
        let mut groups = self.groups();
        let asking = groups.values().filter(|known| known.asking).count();
        match groups.get_mut(group) {
            Some(known) if asking < AT_ONCE && !known.asking => {
                known.asking = true;
                true
            }
            Some(_) | None => false,
        }
    }

    fn note(&self, group: &Group, look: Option<Look>) {
        let said = look.filter(|look| {
            let failed = |topic: &TopicLook| matches!(topic.partitions, Seen::Failed(_));
            look.topics.is_empty() || !look.topics.values().all(failed)
        });
        if let Some(known) = self.groups().get_mut(group) {
            known.under_way = false;
            known.silent = said.is_none();
            if let Some(look) = said {
                known.taken = Some(Instant::now());
                known.look = Some(Arc::new(look));
            }
        }
        self.ended.send_modify(|count| *count += 1);
    }
}

fn bound(groups: &mut BTreeMap<Group, Known>) {
    while groups.len() > MAX_GROUPS {
        let idle = groups.iter().filter(|(_, known)| !known.under_way && !known.asking);
        let Some(oldest) = idle.min_by_key(|(_, known)| known.taken).map(|(group, _)| group.clone()) else { return };
        groups.remove(&oldest);
    }
}

/// Partitions on the broker that the group has not: a start takes them in.
pub fn growth(state: &GroupState, look: &Look) -> Vec<TopicPartition> {
    let mut growth = Vec::new();
    for (name, topic) in &look.topics {
        let known = state.positions.topics.get(name);
        if known.is_some_and(|known| known.retired) {
            continue;
        }
        let partitions = topic.partitions.known().into_iter().flat_map(BTreeMap::keys);
        let new = partitions.filter(|number| known.is_none_or(|known| !known.partitions.contains_key(number)));
        growth.extend(new.map(|number| TopicPartition::new(name.clone(), *number)));
    }
    growth
}

/// What the group will lose at its next start, as retention has passed its positions.
pub fn losses_to_come(state: &GroupState, look: &Look) -> Vec<OffsetRange> {
    let wanted = state.positions.iter().filter(|(_, topic, _)| !topic.retired);
    let passed = wanted.filter_map(|(at, topic, partition)| {
        let seen = look.topics.get(&at.topic)?;
        // Of another topic of the same name nothing is known.
        let same = seen.id.known().is_none_or(|id| topic.topic_id.is_none_or(|own| own == *id));
        let earliest = *seen.partitions.known()?.get(&at.partition)?.earliest.known()?;
        let lost = || OffsetRange::new(at.topic.clone(), at.partition, partition.position, earliest).ok();
        if same && partition.position < earliest { lost() } else { None }
    });
    passed.collect()
}
