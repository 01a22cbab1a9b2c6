//! Taking over the positions of a new group from another store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Limits;
use crate::broker::{Ask, Broker, PartitionLook, Seen, TopicSelector};
use crate::entry::{Body, Correction, Draft, Move, TopicChange};
use crate::journal::{DecideError, Journal, WriteError};
use crate::message::{NAMED, few};
use crate::offset::{Epoch, Group, Invalid, Isolation, Offset, Seq, TopicId, TopicName, TopicPartition};
use crate::positions::State;

/// The first positions of a group that the journal does not have.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
///
/// use tidelog::control::import::{Import, import};
/// use tidelog::offset::TopicPartition;
///
/// let offsets = [(TopicPartition::new("orders".parse()?, 0), "500".parse()?)].into();
/// let positions = Import { group: loader, source: "loader.csv".to_owned(), offsets, seen: None };
/// assert_eq!(import(&control.journal, positions)?.get(), 1); // the journal's first entry
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Import {
    /// The group.
    pub group: Group,
    /// Where the positions come from, for people.
    pub source: String,
    /// The positions.
    pub offsets: BTreeMap<TopicPartition, Offset>,
    /// What the broker says of them; nothing where none was asked.
    pub seen: Option<SeenOnBroker>,
}

/// What a broker says of the partitions that are imported.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
///
/// use std::collections::BTreeMap;
/// use tidelog::control::import::{Import, SeenOnBroker, import};
/// use tidelog::offset::TopicPartition;
///
/// let cluster_id = Some("5L6g3nShT-eMCtK--X86sw".to_owned());
/// let seen = SeenOnBroker { cluster_id: cluster_id.clone(), topic_ids: BTreeMap::new(), ends: BTreeMap::new() };
/// let offsets = [(TopicPartition::new("orders".parse()?, 0), "500".parse()?)].into();
/// import(&control.journal, Import { group: loader.clone(), source: "a file".to_owned(), offsets, seen: Some(seen) })?;
/// // The group's positions belong to that cluster from now on.
/// assert_eq!(control.journal.group(&loader).and_then(|group| group.cluster_id), cluster_id);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SeenOnBroker {
    /// The cluster, where it has an id.
    pub cluster_id: Option<String>,
    /// The topics' ids, where they have any.
    pub topic_ids: BTreeMap<TopicName, TopicId>,
    /// The ends of each partition's log.
    pub ends: BTreeMap<TopicPartition, PartitionLook>,
}

/// Why nothing was imported; the journal is unchanged.
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
/// use tidelog::control::import::{ImportError, check_new};
///
/// // The group was imported before.
/// let again = control.journal.with_state(|state| check_new(state, &loader));
/// assert!(matches!(again, Err(ImportError::Exists(group)) if group == loader));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
pub enum ImportError {
    /// The journal has the group.
    #[error("group {0} is in the journal already; import is for new groups: roll it back to the file")]
    Exists(Group),
    /// The broker does not have what is named.
    #[error("not on {brokers}: {}", few(names, NAMED, ", "))]
    NotThere {
        /// Who was asked.
        brokers: String,
        /// Topics, and partitions.
        names: Vec<String>,
    },
    /// The broker did not say.
    #[error("{brokers} did not say within {} s what it has: {why}", deadline.as_secs_f32())]
    BrokerUnavailable {
        /// Who was asked.
        brokers: String,
        /// For how long.
        deadline: Duration,
        /// The first of its failures.
        why: String,
    },
    /// Positions that can't be.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// It could not be made durable.
    #[error(transparent)]
    Unavailable(#[from] WriteError),
}

/// Asks the broker about the partitions that are to be imported. An offset outside of the log is no error: the next start
/// sees to it, and writes down what is lost.
pub fn look(
    broker: &dyn Broker,
    offsets: &BTreeMap<TopicPartition, Offset>,
    limits: Limits,
) -> Result<SeenOnBroker, ImportError> {
    let names: BTreeSet<TopicName> = offsets.keys().map(|at| at.topic.clone()).collect();
    let topics = names.into_iter().map(TopicSelector::Name).collect();
    let look = broker.look(&Ask { topics, isolation: Isolation::default(), deadline: limits.deadline });
    let brokers = look.brokers;
    let mut seen = SeenOnBroker {
        cluster_id: look.cluster_id.known().cloned(),
        topic_ids: BTreeMap::new(),
        ends: BTreeMap::new(),
    };
    let mut missing = BTreeSet::new();
    for (at, topic) in offsets.keys().filter_map(|at| Some((at, look.topics.get(&at.topic)?))) {
        match &topic.partitions {
            Seen::Known(partitions) => match partitions.get(&at.partition) {
                Some(ends) => drop(seen.ends.insert(at.clone(), ends.clone())),
                None => drop(missing.insert(at.to_string())),
            },
            Seen::Absent => drop(missing.insert(at.topic.to_string())),
            Seen::Failed(why) => {
                let (deadline, why) = (limits.deadline, format!("{}: {why}", at.topic));
                return Err(ImportError::BrokerUnavailable { brokers, deadline, why });
            }
        }
        if let Seen::Known(id) = &topic.id {
            seen.topic_ids.insert(at.topic.clone(), *id);
        }
    }
    match missing.is_empty() {
        true => Ok(seen),
        false => Err(ImportError::NotThere { brokers, names: missing.into_iter().collect() }),
    }
}

/// Refuses a group that `state` has.
pub fn check_new(state: &State, group: &Group) -> Result<(), ImportError> {
    if state.groups.contains_key(group) { Err(ImportError::Exists(group.clone())) } else { Ok(()) }
}

/// Makes the group with these positions, as one entry; its number. The group has no owner and no epoch until it starts.
pub fn import(journal: &Journal, import: Import) -> Result<Seq, ImportError> {
    if import.offsets.is_empty() {
        return Err(Invalid::new("offsets", 0, "names no partition at all").into());
    }
    let decided = journal.decide(move |state: &State| {
        check_new(state, &import.group)?;
        let Import { group, source, offsets, seen } = import;
        let body = Body::Imported { source, correction: correction(offsets, seen) };
        Ok((vec![Draft { group: Some(group), epoch: Epoch::ZERO, body }], state.seq.next()))
    });
    match decided {
        Ok((_, seq)) => Ok(seq),
        Err(DecideError::Refused(refused)) => Err(refused),
        Err(DecideError::Unavailable(error)) => Err(error.into()),
    }
}

fn correction(offsets: BTreeMap<TopicPartition, Offset>, seen: Option<SeenOnBroker>) -> Correction {
    let (cluster_id, topic_ids) = seen.map(|seen| (seen.cluster_id, seen.topic_ids)).unwrap_or_default();
    let topic = |(topic, id): (&TopicName, &TopicId)| TopicChange {
        topic: topic.clone(),
        topic_id: Some(*id),
        new_incarnation: false,
    };
    let topics = topic_ids.iter().map(topic).collect();
    let moved = |(at, offset): (TopicPartition, Offset)| Move {
        topic_id: topic_ids.get(&at.topic).copied(),
        topic: at.topic,
        partition: at.partition,
        old: None,
        new: Some(offset),
        holes: Vec::new(),
        replaying_until: None,
    };
    Correction { topics, moves: offsets.into_iter().map(moved).collect(), losses: Vec::new(), cluster_id }
}
