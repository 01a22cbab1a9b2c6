//! Setting Kafka's committed offsets as part of a rollback: by an explicit list, read back, compared, and journaled.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::{check_cluster, left, lock};
use crate::broker::{Broker, Member, Seen, Untold};
use crate::control::Control;
use crate::entry::{Body, Draft, Entry, KafkaOutcome};
use crate::journal::{DecideError, ReadError, WriteError};
use crate::message::{NAMED, few};
use crate::offset::{Group, Invalid, Offset, Seq, TopicPartition};
use crate::positions::{GroupState, State};

/// What setting Kafka's committed offsets came to.
///
/// ```
/// use tidelog::control::KafkaSet;
/// use tidelog::entry::KafkaOutcome;
/// use tidelog::offset::Group;
///
/// let set = KafkaOutcome { topic: "orders".parse()?, partition: 0, offset: Some("500".parse()?), error: None };
/// let (group, of, kafka_group) = (Group::new("default", "loader")?, Some("7".parse()?), Some("loader".to_owned()));
/// let pending = KafkaSet { group, of, kafka_group, seq: None, partitions: vec![set] };
/// assert!(!pending.is_done());
/// assert!(KafkaSet { seq: Some("8".parse()?), ..pending }.is_done());
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct KafkaSet {
    /// The group of the journal.
    pub group: Group,
    /// The `rolled_back` that it belongs to; none where the group was there already, and only Kafka was set.
    pub of: Option<Seq>,
    /// The Kafka group.
    pub kafka_group: Option<String>,
    /// The `kafka_result` that says so; none while it is pending, as the process ended before it was through, and where
    /// there is no rollback that it belongs to.
    pub seq: Option<Seq>,
    /// Each partition that was to be set.
    pub partitions: Vec<KafkaOutcome>,
}

impl KafkaSet {
    /// Whether Kafka holds what it should, for each partition.
    pub fn is_done(&self) -> bool {
        (self.seq.is_some() || self.of.is_none()) && self.partitions.iter().all(|partition| partition.error.is_none())
    }
}

/// Why Kafka's committed offsets were not set. Nothing has changed.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let at = tidelog::offset::TopicPartition::new("orders".parse()?, 0);
/// # let offsets = [(at.clone(), "500".parse()?)].into();
/// # let import = tidelog::control::Import { group: loader.clone(), source: "a file".into(), offsets, seen: None };
/// # tidelog::control::import::import(&control.journal, import)?;
///
/// use tidelog::control::{SetError, set_kafka};
///
/// let error = set_kafka(&control, "1".parse()?).unwrap_err(); // entry 1 is an import
/// assert!(matches!(&error, SetError::Invalid(_)), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
pub enum SetError {
    /// No such rollback, no broker, or no Kafka group.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The Kafka group has live members: Kafka lets nobody else set its offsets.
    #[error("{}", members_text(kafka_group, members))]
    Active {
        /// The Kafka group.
        kafka_group: String,
        /// Its members.
        members: Vec<Member>,
    },
    /// Kafka does not tell the members.
    #[error("{}", unknown_text(kafka_group, why))]
    Unknown {
        /// The Kafka group.
        kafka_group: String,
        /// In its words.
        why: String,
    },
    /// The broker belongs to another cluster than the group.
    #[error("{0}")]
    OtherCluster(String),
    /// The broker did not answer.
    #[error("no answer from {brokers} within {deadline:?}: {why}")]
    BrokerUnavailable {
        /// Who was asked.
        brokers: String,
        /// For how long.
        deadline: Duration,
        /// In the words of the error.
        why: String,
    },
    /// History could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The result could not be made durable. Kafka's offsets may be set.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl SetError {
    pub(super) fn silent(broker: &dyn Broker, deadline: Duration, why: String) -> Self {
        SetError::BrokerUnavailable { brokers: broker.brokers().to_owned(), deadline, why }
    }
}

/// What to say of a Kafka group with live members.
pub fn members_text(kafka_group: &str, members: &[Member]) -> String {
    let members = few(members, NAMED, ", ");
    format!(
        "Kafka group {kafka_group} has live members: {members}; stop them (one that was killed counts as live for 45 s)"
    )
}

/// What to say where the members are not known.
pub fn unknown_text(kafka_group: &str, why: &str) -> String {
    format!("Kafka does not tell the members of group {kafka_group}: {why}")
}

/// Sets the committed offsets of the Kafka group of rollback `of`, again or for the first time: those of the partitions that
/// it moved, to where they are now. Reads them back, and journals what that came to. It may be repeated.
///
/// # Errors
///
/// See [`SetError`]. That Kafka refuses partitions is none: the answer says so for each.
pub fn set_kafka(control: &Control, of: Seq) -> Result<KafkaSet, SetError> {
    let none = || Invalid::new("seq", of, "no rollback: give the seq of a rolled_back entry");
    let Some(Entry { group: Some(group), body: Body::RolledBack(rolled_back), .. }) = control.journal.entry(of)? else {
        return Err(none().into());
    };
    let moved = rolled_back.correction.moves.iter().map(|moved| moved.topic_partition()).collect();
    set_positions(control, &group, &moved, Some(of))
}

/// Sets the committed offsets of these partitions of `group` to where they are now, and reads them back; as part of
/// rollback `of` what that came to is journaled.
pub fn set_positions(
    control: &Control,
    group: &Group,
    partitions: &BTreeSet<TopicPartition>,
    of: Option<Seq>,
) -> Result<KafkaSet, SetError> {
    let (kafka_group, cluster_id) = control.journal.with_state(|state| followed(state, group))?;
    let broker =
        control.broker.clone().ok_or_else(|| Invalid::new("kafka", group, "needs a broker, and none is set"))?;
    let deadline = control.limits.deadline;
    let until = Instant::now() + deadline;
    check_cluster(&*broker, cluster_id.as_deref(), deadline)?;
    match broker.members(&kafka_group, left(until)) {
        Ok(members) if members.is_empty() => {}
        Ok(members) => return Err(SetError::Active { kafka_group, members }),
        Err(Untold::Silent(why)) => {
            return Err(SetError::silent(&*broker, deadline, unknown_text(&kafka_group, &why)));
        }
        Err(Untold::Refused(why)) => return Err(SetError::Unknown { kafka_group, why }),
    }
    let partitions = set(control, &*broker, group, &kafka_group, partitions, until);
    let done = |seq, partitions| KafkaSet { group: group.clone(), of, kafka_group: Some(kafka_group), seq, partitions };
    let Some(of) = of else { return Ok(done(None, partitions)) };
    let (name, outcomes) = (group.clone(), partitions.clone());
    let decided = control.journal.decide(move |state: &State| {
        let epoch = state.groups.get(&name).map(|group| group.epoch).unwrap_or_default();
        let body = Body::KafkaResult { of, partitions: outcomes };
        Ok::<_, std::convert::Infallible>((vec![Draft { group: Some(name), epoch, body }], ()))
    });
    let seq = match decided {
        Ok((entries, ())) => entries.first().map(|entry| entry.seq),
        Err(DecideError::Refused(never)) => match never {},
        Err(DecideError::Unavailable(error)) => return Err(error.into()),
    };
    Ok(done(seq, partitions))
}

/// The Kafka group that follows `group`, and the group's cluster.
fn followed(state: &State, name: &Group) -> Result<(String, Option<String>), Invalid> {
    let group = state.groups.get(name).ok_or_else(|| Invalid::new("group", name, "not in this journal"))?;
    if group.retired {
        return Err(Invalid::new("group", name, "retired; a start brings it back"));
    }
    Ok((kafka_group(name, group)?, group.cluster_id.clone()))
}

/// The Kafka group that follows the group; says why there is none.
pub fn kafka_group(name: &Group, group: &GroupState) -> Result<String, Invalid> {
    let why = match group.owner {
        None => "no Kafka group follows this group yet: it was never started, and a start names its Kafka group",
        Some(_) => {
            "no Kafka group follows this group: it was started with the Kafka group none, or its app is not the default one"
        }
    };
    group.kafka_group.clone().ok_or_else(|| Invalid::new("kafka", name, why))
}

fn set(
    control: &Control,
    broker: &dyn Broker,
    group: &Group,
    kafka_group: &str,
    partitions: &BTreeSet<TopicPartition>,
    until: Instant,
) -> Vec<KafkaOutcome> {
    let follower = control.mirror.follower(group);
    let mut written = lock(&follower.turn);
    // In one turn with the mirror's own writes, of what the positions are by now.
    let offsets: BTreeMap<TopicPartition, Offset> = control.journal.with_state(|state| {
        let positions = state.groups.get(group).map(|group| &group.positions);
        let wanted = |at: &TopicPartition| positions?.topics.get(&at.topic).filter(|topic| !topic.retired);
        let position = |at: &TopicPartition| Some(wanted(at)?.partitions.get(&at.partition)?.position);
        partitions.iter().filter_map(|at| Some((at.clone(), position(at)?))).collect()
    });
    let results = broker.commit(kafka_group, &offsets, left(until));
    let held = broker.committed(kafka_group, &offsets.keys().cloned().collect(), left(until));
    let outcome = |(at, wanted): (&TopicPartition, &Offset)| {
        let offset = held.get(at).and_then(|held| held.known().copied());
        let error = match (results.get(at), held.get(at)) {
            (Some(Err(why)), _) => Some(why.clone()),
            (None, _) => Some("not answered".to_owned()),
            (Some(Ok(())), Some(Seen::Known(held))) if held == wanted => None,
            (Some(Ok(())), Some(Seen::Known(held))) => Some(format!("Kafka holds {held}, not {wanted}")),
            (Some(Ok(())), Some(Seen::Absent) | None) => Some(format!("Kafka holds none, not {wanted}")),
            (Some(Ok(())), Some(Seen::Failed(why))) => Some(format!("it could not be read back: {why}")),
        };
        KafkaOutcome { topic: at.topic.clone(), partition: at.partition, offset, error }
    };
    let outcomes: Vec<_> = offsets.iter().map(outcome).collect();
    // The mirror tells these once more, which costs nothing, and what failed until it works.
    written.offsets.retain(|at, _| !offsets.contains_key(at));
    lock(&control.mirror.0.again).insert(group.clone());
    outcomes
}

/// What setting Kafka's committed offsets for rollback `of` of `group` came to last; pending if nothing says so.
pub fn newest_result(control: &Control, group: &Group, of: Seq) -> Result<KafkaSet, ReadError> {
    let kafka_group = control.journal.with_state(|state| state.groups.get(group)?.kafka_group.clone());
    let mut found = KafkaSet { group: group.clone(), of: Some(of), kafka_group, seq: None, partitions: Vec::new() };
    control.journal.visit_others(group, &mut |entry| match entry.body {
        _ if entry.seq <= of => ControlFlow::Break(()),
        Body::KafkaResult { of: about, partitions } if about == of => {
            (found.seq, found.partitions) = (Some(entry.seq), partitions);
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })?;
    Ok(found)
}
