//! What can become of a consumer, and of a batch: one variant for each decision that a caller can take.

use crate::commit::Refused;
use crate::control::StartError;
use crate::journal::WriteError;
use crate::kafka::ClientError;
use crate::offset::Epoch;

/// Why there are no more batches.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    /// It was told to stop.
    #[error("the consumer was stopped")]
    Stopped,
    /// Another process started the group.
    #[error("{owner} has started the group (epoch {epoch}); this consumer stops")]
    Fenced {
        /// That process.
        owner: String,
        /// The group's epoch.
        epoch: Epoch,
    },
    /// The positions can't be taken: a policy or the journal forbids it.
    #[error("{0}")]
    Refused(String),
    /// The journal takes no more writes.
    #[error("{0}")]
    Journal(String),
    /// Something that must not happen.
    #[error("{0}")]
    Broken(String),
}

/// Why a consumer could not begin.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// There is no start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is no client.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The system gives no thread.
    #[error("no thread for the consumer: {0}")]
    Thread(#[from] std::io::Error),
}

/// Why a batch can't be committed any more.
#[derive(Debug, thiserror::Error)]
pub enum Moved {
    /// The journal refused it.
    #[error(transparent)]
    Refused(Refused),
    /// The consumer has taken the group's positions anew since it was read: its records are handed out again.
    #[error("the positions were taken anew since it was read")]
    TakenAnew,
}

/// What became of a batch that has no receipt. The journal is unchanged by it.
#[derive(Debug, thiserror::Error)]
pub enum CommitFailed {
    /// The group was moved since the batch was read, or it is held. The batch is dropped; the consumer takes the group's
    /// positions by itself, of a held group once it is released, and goes on: ask for the next batch.
    #[error("dropped: {0}; the consumer goes on from the group's positions")]
    Moved(Moved),
    /// Another process has the group, or the consumer can't go on.
    #[error(transparent)]
    Stopped(#[from] StopReason),
    /// Refused for a reason of its own; the batch is handed out again.
    #[error(transparent)]
    Refused(Refused),
    /// The journal could not make it durable.
    #[error(transparent)]
    Journal(#[from] WriteError),
}
