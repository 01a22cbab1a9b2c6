//! What a consumer asks the layer above the journal: where to start, and what became of its partitions.

use std::collections::BTreeSet;

use crate::offset::{Epoch, Offset, TopicId, TopicPartition};

/// Where one partition is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartAt {
    /// The partition.
    pub at: TopicPartition,
    /// The topic's id, where one is known.
    pub topic_id: Option<TopicId>,
    /// The first offset to read.
    pub offset: Offset,
    /// Up to here records are read again after a rollback.
    pub replaying_until: Option<Offset>,
}

/// What a start, or a look while running, came to. It is in the journal already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start {
    /// The group's epoch.
    pub epoch: Epoch,
    /// At a start each partition; while running those that are new or were moved.
    pub starts: Vec<StartAt>,
    /// What a person should know: a topic that is gone, values that the broker did not give.
    pub problems: Vec<String>,
}

/// Why there is no start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SteerError {
    /// An operator holds the group: again when it is released.
    #[error("{0}")]
    Held(String),
    /// The broker is silent, or what it says is not settled: again later.
    #[error("{0}")]
    Unavailable(String),
    /// A policy, or the journal, forbids it: the consumer stops.
    #[error("{0}")]
    Refused(String),
}

/// Starts a group, and looks after it while it is read. Calls block.
pub trait Steer: Send + Sync + 'static {
    /// Reconciles the group and starts it, or takes it up again after a rollback, always as the same owner.
    fn start(&self) -> Result<Start, SteerError>;

    /// Looks at the broker and journals what it found of these partitions, and partitions that are new.
    fn look(&self, assigned: &BTreeSet<TopicPartition>) -> Result<Start, SteerError>;
}
