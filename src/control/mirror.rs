//! Kafka's committed offsets follow the positions of the groups that name a Kafka group, so that people's lag charts keep
//! working (DESIGN section 6). The journal alone decides where to start: a failure here is a warning, never a failed
//! commit.
//!
//! What is written is what the positions are at that moment, one request at a time for each group, and again if its epoch
//! has risen meanwhile. So Kafka ends up where the journal is, in whatever order commits and rollbacks came.

mod keeper;
mod set;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use self::keeper::Keeper;
pub use self::keeper::Kept;
pub use self::set::{KafkaSet, SetError, set_kafka};
pub(super) use self::set::{members_text, newest_result, not_followed, unknown_text};
use crate::broker::{Ask, Broker, TopicSelector};
use crate::control::Control;
use crate::offset::{Epoch, Group, Isolation, Offset, Seq, Timestamp, TopicName, TopicPartition};

/// The first pause after a write that failed; it doubles up to [`BACK_OFF_MAX`].
const BACK_OFF: Duration = Duration::from_secs(1);
/// The longest such pause.
const BACK_OFF_MAX: Duration = Duration::from_secs(60);
/// Failed partitions that a warning names.
const NAMED: usize = 3;

/// What this process has written into Kafka's committed offsets. Clones share it.
#[derive(Clone, Default)]
pub struct Mirror(Arc<Inner>);

#[derive(Default)]
struct Inner {
    followers: Mutex<BTreeMap<Group, Arc<Follower>>>,
    keeper: Mutex<Weak<Keeper>>,
    /// The journal's newest entry when keeping began.
    since: Mutex<Option<Seq>>,
}

/// The Kafka group that follows one group.
#[derive(Default)]
struct Follower {
    /// Held while Kafka is asked, so that writes come one after the other.
    turn: Mutex<Written>,
    status: Mutex<MirrorStatus>,
}

/// What Kafka was told, as far as this process knows.
#[derive(Default)]
struct Written {
    kafka_group: String,
    /// Each with the incarnation of its topic: Kafka forgets the offsets of a topic that is deleted.
    offsets: BTreeMap<TopicPartition, (u32, Offset)>,
    /// The group's cluster that the broker is known to belong to.
    cluster_id: Option<String>,
    /// When a write that failed may be tried again, and the pause before that.
    again: Option<(Instant, Duration)>,
}

/// How the mirror of a group is doing in this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MirrorStatus {
    /// When Kafka was last told all positions; none if this process has told none yet.
    pub written_at: Option<Timestamp>,
    /// The newest entry of the group then.
    pub told: Option<Seq>,
    /// Why the newest write failed.
    pub error: Option<String>,
    /// Writes that failed.
    pub failures: u64,
}

/// The positions that Kafka has not been told, at one moment.
struct Due {
    kafka_group: String,
    cluster_id: Option<String>,
    epoch: Epoch,
    seq: Seq,
    offsets: BTreeMap<TopicPartition, Offset>,
    incarnations: BTreeMap<TopicName, u32>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole at every moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mirror {
    /// How the mirror of `group` is doing.
    pub fn status(&self, group: &Group) -> MirrorStatus {
        lock(&self.0.followers).get(group).map(|follower| lock(&follower.status).clone()).unwrap_or_default()
    }

    /// Whether this process is still to tell Kafka positions of `group`, whose newest entry is `newest`.
    pub fn is_pending(&self, group: &Group, newest: Seq) -> bool {
        let status = self.status(group);
        let told = status.told.or(*lock(&self.0.since));
        status.error.is_some() || told.is_some_and(|told| newest > told)
    }

    /// Keeps Kafka's offsets behind all groups of `control`'s journal, from its next entry on, until what is returned is
    /// dropped by all who called this; none without a broker. What Kafka holds before a group's next entry is left as it
    /// is: a start compares with it.
    pub fn keep(&self, control: &Control) -> Option<Kept> {
        control.broker.as_ref()?;
        let mut keeper = lock(&self.0.keeper);
        if let Some(kept) = keeper.upgrade() {
            return Some(Kept::of(kept));
        }
        let since = control.journal.with_state(|state| state.seq);
        let kept = Arc::new(Keeper::begin(self.clone(), control.clone(), since)?);
        *lock(&self.0.since) = Some(since);
        *keeper = Arc::downgrade(&kept);
        Some(Kept::of(kept))
    }

    /// Tells Kafka, once, the positions of the groups that an entry after `since` concerns: for a process that does one
    /// thing and ends. What fails is a warning.
    pub fn catch_up(&self, control: &Control, since: Seq) {
        let Some(broker) = &control.broker else { return };
        for (group, _) in changed(control, |_| since) {
            // Told already; the next commit of the group tries again.
            let _ = self.follow(control, &**broker, &group);
        }
    }

    /// Forgets what Kafka was told, so that it is told all of it again.
    fn forget(&self) {
        let followers: Vec<_> = lock(&self.0.followers).values().cloned().collect();
        followers.iter().for_each(|follower| lock(&follower.turn).offsets.clear());
    }

    fn follower(&self, group: &Group) -> Arc<Follower> {
        Arc::clone(lock(&self.0.followers).entry(group.clone()).or_default())
    }

    /// Tells Kafka the positions of `group`; the seq of the group that it knows then.
    fn follow(&self, control: &Control, broker: &dyn Broker, group: &Group) -> Result<Seq, NotYet> {
        let follower = self.follower(group);
        let mut written = lock(&follower.turn);
        if written.again.is_some_and(|(when, _)| Instant::now() < when) {
            return Err(NotYet);
        }
        loop {
            let Some(due) = due(control, group, &mut written) else { return Ok(Seq::MAX) };
            if due.offsets.is_empty() {
                lock(&follower.status).told = Some(due.seq);
                return Ok(due.seq);
            }
            match write(control, broker, &mut written, &due) {
                Ok(()) => follower.worked(control, group, &mut written, due.seq),
                Err(why) => {
                    follower.failed(group, &due.kafka_group, &mut written, why);
                    return Err(NotYet);
                }
            }
            // A rollback that came meanwhile is not left to the next turn.
            let epoch = control.journal.with_state(|state| state.groups.get(group).map(|group| group.epoch));
            if epoch == Some(due.epoch) {
                return Ok(due.seq);
            }
        }
    }
}

/// Kafka does not know the positions yet; why is told.
struct NotYet;

impl Follower {
    fn worked(&self, control: &Control, group: &Group, written: &mut Written, told: Seq) {
        written.again = None;
        let mut status = lock(&self.status);
        (status.written_at, status.told) = (Some((control.clock)()), Some(told));
        if status.error.take().is_some() {
            tracing::info!("Kafka's committed offsets follow group {group} again");
        }
    }

    fn failed(&self, group: &Group, kafka_group: &str, written: &mut Written, why: String) {
        let pause = written.again.map_or(BACK_OFF, |(_, pause)| (pause * 2).min(BACK_OFF_MAX));
        written.again = Some((Instant::now() + pause, pause));
        let mut status = lock(&self.status);
        status.failures += 1;
        if status.error.as_ref() != Some(&why) {
            tracing::warn!(
                "Kafka's committed offsets of group {kafka_group} do not follow group {group}: {why}; the journal is not \
                 affected, and this is tried again"
            );
        }
        status.error = Some(why);
    }
}

/// The groups with a Kafka group that have changed after what `told` says of each, with their newest entry.
fn changed(control: &Control, told: impl Fn(&Group) -> Seq) -> Vec<(Group, Seq)> {
    control.journal.with_state(|state| {
        let followed = state.groups.iter().filter(|(_, group)| group.kafka_group.is_some() && !group.retired);
        let changed = followed.filter(|(name, group)| group.seq > told(name));
        changed.map(|(name, group)| (name.clone(), group.seq)).collect()
    })
}

/// What Kafka has to be told of `group`; none if it is not followed.
fn due(control: &Control, group: &Group, written: &mut Written) -> Option<Due> {
    control.journal.with_state(|state| {
        let state = state.groups.get(group).filter(|state| !state.retired)?;
        let kafka_group = state.kafka_group.clone()?;
        let moved = written.cluster_id.is_some() && written.cluster_id != state.cluster_id;
        if written.kafka_group != kafka_group || moved {
            *written = Written { kafka_group: kafka_group.clone(), ..Written::default() };
        }
        let wanted = state.positions.iter().filter(|(at, topic, partition)| {
            !topic.retired && written.offsets.get(at) != Some(&(topic.incarnation, partition.position))
        });
        let (mut offsets, mut incarnations) = (BTreeMap::new(), BTreeMap::new());
        for (at, topic, partition) in wanted {
            incarnations.insert(at.topic.clone(), topic.incarnation);
            offsets.insert(at, partition.position);
        }
        let (cluster_id, epoch, seq) = (state.cluster_id.clone(), state.epoch, state.seq);
        Some(Due { kafka_group, cluster_id, epoch, seq, offsets, incarnations })
    })
}

fn write(control: &Control, broker: &dyn Broker, written: &mut Written, due: &Due) -> Result<(), String> {
    if let (Some(own), Some(at)) = (&due.cluster_id, due.offsets.keys().next())
        && written.cluster_id.as_ref() != Some(own)
    {
        check_cluster(control, broker, own, &at.topic)?;
        written.cluster_id = Some(own.clone());
    }
    let results = broker.commit(&due.kafka_group, &due.offsets, control.limits.deadline);
    let mut failed = Vec::new();
    for (at, offset) in &due.offsets {
        match results.get(at) {
            Some(Ok(())) => {
                let incarnation = due.incarnations.get(&at.topic).copied().unwrap_or_default();
                written.offsets.insert(at.clone(), (incarnation, *offset));
            }
            Some(Err(why)) => failed.push(format!("{at}: {why}")),
            None => failed.push(format!("{at}: not answered")),
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    let more = failed.len().saturating_sub(NAMED);
    failed.truncate(NAMED);
    Err(failed.join(", ") + &if more > 0 { format!(", and {more} more") } else { String::new() })
}

/// Refuses a broker of another cluster than the group's: its offsets mean nothing there.
fn check_cluster(control: &Control, broker: &dyn Broker, own: &str, topic: &TopicName) -> Result<(), String> {
    let topics = vec![TopicSelector::Name(topic.clone())];
    let look = broker.look(&Ask { topics, isolation: Isolation::default(), deadline: control.limits.deadline });
    match look.cluster_id.known() {
        Some(known) if known == own => Ok(()),
        Some(other) => Err(format!("{} belongs to cluster {other}, the group to {own}", look.brokers)),
        None => Err(format!("{} does not say which cluster it belongs to", look.brokers)),
    }
}
