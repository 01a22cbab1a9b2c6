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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use self::keeper::Keeper;
pub use self::keeper::Kept;
pub use self::set::{KafkaSet, SetError, set_kafka};
pub(super) use self::set::{kafka_group, members_text, newest_result, set_positions, unknown_text};
use crate::broker::{Broker, Seen};
use crate::control::{Control, Limits};
use crate::message::{NAMED, few};
use crate::offset::{BatchNumber, Epoch, Group, Offset, Seq, Timestamp, TopicName, TopicPartition};
use crate::positions::GroupState;

/// The first pause after a partition was refused; it doubles up to [`BACK_OFF_MAX`].
const BACK_OFF: Duration = Duration::from_secs(1);
/// The longest such pause.
const BACK_OFF_MAX: Duration = Duration::from_secs(60);
/// How long a process that did one thing waits with its end for Kafka.
const LAST_DEADLINE: Duration = Duration::from_secs(3);
/// How long a write may take after one that failed.
const RETRY_DEADLINE: Duration = Duration::from_secs(2);

/// What this process has written into Kafka's committed offsets. Clones share it.
///
/// ```
/// use tidelog::control::{Mirror, MirrorStatus};
/// use tidelog::offset::Group;
/// use tidelog::positions::GroupState;
///
/// let (mirror, loader) = (Mirror::default(), Group::new("default", "loader")?);
/// assert_eq!(mirror.status(&loader), MirrorStatus::default()); // nothing was told yet
/// assert!(!mirror.is_pending(&loader, &GroupState::default())); // and nobody keeps Kafka behind the journal
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Clone, Default)]
pub struct Mirror(Arc<Inner>);

#[derive(Default)]
struct Inner {
    followers: Mutex<BTreeMap<Group, Arc<Follower>>>,
    keeper: Mutex<Weak<Keeper>>,
    /// The journal's newest entry when keeping began.
    since: Mutex<Option<Seq>>,
    /// Groups to be told again, although they have no new entry.
    again: Mutex<BTreeSet<Group>>,
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
    /// The group's cluster then.
    cluster_id: Option<String>,
    /// What Kafka has refused: when it is tried again, and the pause before that.
    aside: BTreeMap<TopicPartition, (Instant, Duration)>,
}

/// How the mirror of a group is doing in this process.
///
/// ```
/// use tidelog::control::MirrorStatus;
///
/// let status = MirrorStatus { error: Some("timed out".to_owned()), failures: 3, ..MirrorStatus::default() };
/// assert_eq!(status.written_at, None); // Kafka was never told all
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MirrorStatus {
    /// When Kafka was last told all positions; none if this process has told none yet.
    pub written_at: Option<Timestamp>,
    /// The group's newest entry of which Kafka was told what it takes.
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

    /// Whether this process is still to tell Kafka positions of `group`, which is in this state.
    pub fn is_pending(&self, group: &Group, state: &GroupState) -> bool {
        let told = self.status(group).told.or(*lock(&self.0.since));
        is_followed(state) && told.is_some_and(|told| state.seq > told)
    }

    /// Keeps Kafka's offsets behind all groups of `control`'s journal, from its next entry on, until what is returned is
    /// dropped by all who called this; none without a broker. What Kafka holds before a group's next entry is left as it
    /// is, as a start compares with it; but a rollback that nobody has picked up is told, as whoever made it may not have.
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
        let control = &Control { limits: Limits { deadline: LAST_DEADLINE, ..control.limits }, ..control.clone() };
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

    /// Sets nothing aside any longer: there is no later.
    fn try_at_once(&self) {
        let followers: Vec<_> = lock(&self.0.followers).values().cloned().collect();
        let now = Instant::now();
        for follower in followers {
            lock(&follower.turn).aside.values_mut().for_each(|(when, _)| *when = now);
        }
    }

    fn follower(&self, group: &Group) -> Arc<Follower> {
        Arc::clone(lock(&self.0.followers).entry(group.clone()).or_default())
    }

    /// Tells Kafka the positions of `group`; the seq of the group that it knows then, if it takes all of them.
    fn follow(&self, control: &Control, broker: &dyn Broker, group: &Group) -> Result<Seq, NotYet> {
        let follower = self.follower(group);
        let mut written = lock(&follower.turn);
        loop {
            let Some(due) = due(control, group, &mut written) else { return Ok(Seq::MAX) };
            let refused = if due.offsets.is_empty() {
                Refused::default()
            } else {
                // A group that has failed does not hold the others up as long once more.
                let patience = if written.aside.is_empty() { Duration::MAX } else { RETRY_DEADLINE };
                write(broker, &mut written, &due, control.limits.deadline.min(patience))
            };
            follower.note(control, group, &due, &written, refused);
            // A rollback that came meanwhile is not left to the next turn.
            let epoch = control.journal.with_state(|state| state.groups.get(group).map(|group| group.epoch));
            if epoch == Some(due.epoch) {
                return if written.aside.is_empty() { Ok(due.seq) } else { Err(NotYet) };
            }
        }
    }
}

/// Kafka does not know all positions yet; why is told.
struct NotYet;

impl Follower {
    /// Notes what a write came to, and says so where that is new.
    fn note(&self, control: &Control, group: &Group, due: &Due, written: &Written, refused: Refused) {
        let mut status = lock(&self.status);
        let all = written.aside.is_empty();
        if all || refused.count < due.offsets.len() {
            status.told = Some(due.seq);
        }
        if let Some(why) = refused.why {
            status.failures += 1;
            if status.error.as_ref() != Some(&why) {
                tracing::warn!(
                    "Kafka's committed offsets of group {} do not follow group {group}: {why}; the journal is not \
                     affected, and whoever holds it with a broker tries again",
                    due.kafka_group
                );
            }
            status.error = Some(why);
        } else if all {
            if !due.offsets.is_empty() {
                status.written_at = Some((control.clock)());
            }
            if status.error.take().is_some() {
                tracing::info!("Kafka's committed offsets follow group {group} again");
            }
        }
    }
}

/// Whether Kafka is to follow the group: not before its first commit or rollback, as what Kafka holds may be all that is
/// known of a consumer that the group is to replace.
fn is_followed(group: &GroupState) -> bool {
    let begun = group.positions.batch != BatchNumber::ZERO || group.last_move.is_some();
    group.kafka_group.is_some() && !group.retired && begun
}

/// The groups with a Kafka group that have changed after what `told` says of each, with their newest entry.
fn changed(control: &Control, told: impl Fn(&Group) -> Seq) -> Vec<(Group, Seq)> {
    control.journal.with_state(|state| {
        let followed = state.groups.iter().filter(|(_, group)| is_followed(group));
        let changed = followed.filter(|(name, group)| group.seq > told(name));
        changed.map(|(name, group)| (name.clone(), group.seq)).collect()
    })
}

/// What Kafka has to be told of `group`; none if it is not followed.
fn due(control: &Control, group: &Group, written: &mut Written) -> Option<Due> {
    control.journal.with_state(|state| {
        let state = state.groups.get(group).filter(|state| is_followed(state))?;
        let kafka_group = state.kafka_group.clone()?;
        if written.kafka_group != kafka_group || written.cluster_id != state.cluster_id {
            let (kafka_group, cluster_id) = (kafka_group.clone(), state.cluster_id.clone());
            *written = Written { kafka_group, cluster_id, ..Written::default() };
        }
        // What is no longer wanted is not waited for either.
        written.aside.retain(|at, _| {
            let topic = state.positions.topics.get(&at.topic);
            topic.is_some_and(|topic| !topic.retired && topic.partitions.contains_key(&at.partition))
        });
        let now = Instant::now();
        let wanted = state.positions.iter().filter(|(at, topic, partition)| {
            !topic.retired
                && written.offsets.get(at) != Some(&(topic.incarnation, partition.position))
                && written.aside.get(at).is_none_or(|(when, _)| now >= *when)
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

/// What Kafka did not take of a write.
#[derive(Default)]
struct Refused {
    count: usize,
    why: Option<String>,
}

/// Tells Kafka what is due, within `deadline`. What it refuses is set aside for a while, each partition by itself: those of
/// a topic that is gone do not hold up the others.
fn write(broker: &dyn Broker, written: &mut Written, due: &Due, deadline: Duration) -> Refused {
    let until = Instant::now() + deadline;
    // Each time: the addresses may lead to another cluster by now.
    let elsewhere = check_cluster(broker, due.cluster_id.as_deref(), deadline).err();
    let results = match elsewhere {
        None => broker.commit(&due.kafka_group, &due.offsets, left(until)),
        Some(_) => BTreeMap::new(),
    };
    let mut refused = Vec::new();
    for (at, offset) in &due.offsets {
        let why = match results.get(at) {
            Some(Ok(())) => {
                let incarnation = due.incarnations.get(&at.topic).copied().unwrap_or_default();
                written.offsets.insert(at.clone(), (incarnation, *offset));
                written.aside.remove(at);
                continue;
            }
            Some(Err(why)) => why,
            None => "not answered",
        };
        let pause = written.aside.get(at).map_or(BACK_OFF, |(_, pause)| (*pause * 2).min(BACK_OFF_MAX));
        written.aside.insert(at.clone(), (Instant::now() + pause, pause));
        refused.push(format!("{at}: {why}"));
    }
    let why = match elsewhere {
        None => few(&refused, NAMED, ", "),
        Some(elsewhere) => elsewhere.to_string(),
    };
    Refused { count: refused.len(), why: (!refused.is_empty()).then_some(why) }
}

/// Refuses a broker of another cluster than the group's: its offsets mean nothing there.
fn check_cluster(broker: &dyn Broker, own: Option<&str>, deadline: Duration) -> Result<(), SetError> {
    let Some(own) = own else { return Ok(()) };
    let elsewhere = match broker.cluster_id(deadline) {
        Seen::Known(present) if present == own => return Ok(()),
        Seen::Known(other) => format!("the broker belongs to cluster {other}, the group to {own}"),
        Seen::Absent => format!("the broker does not say which cluster it belongs to, and the group belongs to {own}"),
        Seen::Failed(why) => return Err(SetError::silent(broker, deadline, why)),
    };
    Err(SetError::OtherCluster(elsewhere))
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}
