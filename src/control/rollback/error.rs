//! Why there is no plan, or none was executed: one variant for each problem of the public face.

use std::time::Duration;

use crate::control::UnknownGroup;
use crate::journal::{ReadError, WriteError};
use crate::offset::{BatchNumber, Group, Invalid, Seq, Timestamp, TopicName, TopicPartition};
use crate::rollback::{Plan, WrongName};

/// Why there is no plan.
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
/// use tidelog::control::{PlanError, plan};
/// use tidelog::rollback::{PlanRequest, Target};
///
/// let to = Target::Mark("before deploy 42".to_owned());
/// let error = plan(&control, PlanRequest::new(loader, to));
/// assert!(matches!(error, Err(PlanError::UnknownMark { mark, .. }) if mark == "before deploy 42"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
pub enum PlanError {
    /// The journal has no such group.
    #[error(transparent)]
    UnknownGroup(#[from] UnknownGroup),
    /// The group has no such batch.
    #[error("group {group} has no batch {batch}; its newest is {newest}")]
    UnknownBatch {
        /// The group.
        group: Group,
        /// The batch.
        batch: BatchNumber,
        /// The group's newest batch; 0 if it has none.
        newest: BatchNumber,
    },
    /// The group has no such topic or partition.
    #[error("group {group} has no {topic}{}", partition.map(|p| format!("/{p}")).unwrap_or_default())]
    UnknownTopic {
        /// The group.
        group: Group,
        /// The topic.
        topic: TopicName,
        /// The partition, where it is that.
        partition: Option<u32>,
    },
    /// The group has no such mark.
    #[error("group {group} has no mark {mark:?}")]
    UnknownMark {
        /// The group.
        group: Group,
        /// The mark.
        mark: String,
    },
    /// The target lies before the group's first batch, or before the oldest that is kept.
    #[error("{target} is before the history of group {group}: {}", oldest_text(oldest))]
    BeforeHistory {
        /// The group.
        group: Group,
        /// The target in words.
        target: String,
        /// The oldest batch that is kept.
        oldest: Option<OldestBatch>,
    },
    /// Nobody has moved the group yet.
    #[error("nothing to undo: group {group} was never moved")]
    NothingToUndo {
        /// The group.
        group: Group,
    },
    /// The request makes no sense.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The broker said nothing at all, or not who is in the Kafka group whose offsets would be set.
    #[error("no answer from {brokers} within {deadline:?}{}", unchecked_text(*needed))]
    BrokerUnavailable {
        /// Who was asked.
        brokers: String,
        /// For how long.
        deadline: Duration,
        /// The partitions that it was asked about.
        unknown: Vec<TopicPartition>,
        /// Whether nothing can be done without it: it knows the target, or its committed offsets are to be set.
        needed: bool,
    },
    /// History could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The oldest batch of a group.
///
/// ```
/// use tidelog::control::PlanError;
/// use tidelog::control::rollback::OldestBatch;
/// use tidelog::offset::Group;
///
/// let oldest = OldestBatch { batch: "7".parse()?, seq: "12".parse()?, recorded_at: "2026-11-30T10:00:00Z".parse()? };
/// let (group, target) = (Group::new("default", "loader")?, "batch 3".to_owned());
/// let error = PlanError::BeforeHistory { group, target, oldest: Some(oldest) };
/// assert!(error.to_string().contains("its oldest batch is 7"), "{error}");
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldestBatch {
    /// Its number.
    pub batch: BatchNumber,
    /// Its entry.
    pub seq: Seq,
    /// When it was recorded.
    pub recorded_at: Timestamp,
}

fn oldest_text(oldest: &Option<OldestBatch>) -> String {
    match oldest {
        Some(oldest) => format!("its oldest batch is {}, recorded at {}", oldest.batch, oldest.recorded_at),
        None => "it has no batch yet".to_owned(),
    }
}

fn unchecked_text(needed: bool) -> &'static str {
    if needed { "" } else { "; unchecked moves the group without asking, and the next start looks" }
}

impl PlanError {
    pub(super) fn wrong_name(group: &Group, wrong: WrongName) -> Self {
        match wrong {
            WrongName::Unknown { topic, partition } => {
                PlanError::UnknownTopic { group: group.clone(), topic, partition }
            }
            WrongName::Retired(invalid) => PlanError::Invalid(invalid),
        }
    }
}

/// Why a plan was not executed. Nothing has changed.
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
/// use tidelog::control::{ExecuteError, execute};
/// use tidelog::rollback::{PlanRequest, Target};
///
/// let to = Target::Offsets([(at, "400".parse()?)].into()); // it is at 500
/// let request = PlanRequest { unchecked: true, ..PlanRequest::new(loader, to) };
/// let error = execute(&control, request, Some("0123456789abcdef"), "ann", "the sink lost its disk");
/// // The plan as it is now comes with the error.
/// assert!(matches!(error, Err(ExecuteError::Outdated(plan)) if plan.executable()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
pub enum ExecuteError {
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The plan is not executable: this is it.
    #[error("{}", .0.why_not())]
    Refused(Box<Plan>),
    /// The Kafka group whose offsets would be set has live members: this is the plan, with them.
    #[error("{}", .0.why_not())]
    Active(Box<Plan>),
    /// Another rollback, another topic, or data that expired has made the plan another one: this is it.
    #[error("the plan is out of date; it is {} now", .0.id)]
    Outdated(Box<Plan>),
    /// It could not be made durable.
    #[error(transparent)]
    Write(#[from] WriteError),
}
