//! What can become of a consumer, and of a batch: one variant for each decision that a caller can take.

use crate::commit::Refused;
use crate::control::StartError;
use crate::journal::WriteError;
use crate::kafka::ClientError;
use crate::offset::Epoch;

/// Why there are no more batches.
///
/// ```
/// use tidelog::kafka::StopReason;
///
/// let reason = StopReason::Fenced { owner: "loader@host2:17".to_owned(), epoch: "4".parse()? };
/// assert_eq!(reason.to_string(), "loader@host2:17 has started the group (epoch 4); this consumer stops");
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
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
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader, vec!["orders".parse()?], "loader-1");
/// use tidelog::kafka::{BeginError, ClientConfig, Config, JournaledConsumer};
///
/// let client = ClientConfig::new("localhost:9092")?.with("fetch.moon.bytes", "1")?;
/// let config = Config { client, cut: Default::default(), discovery: Default::default() };
/// assert!(matches!(JournaledConsumer::begin(config, control, request), Err(BeginError::Client(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
///
/// ```
/// use tidelog::kafka::Moved;
///
/// assert_eq!(Moved::TakenAnew.to_string(), "the positions were taken anew since it was read");
/// ```
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
///
/// ```
/// use tidelog::kafka::{CommitFailed, Moved, StopReason};
///
/// /// Whether there is a next batch to ask for.
/// fn goes_on(failed: &CommitFailed) -> bool {
///     match failed {
///         CommitFailed::Moved(_) | CommitFailed::Refused(_) => true,
///         CommitFailed::Stopped(_) | CommitFailed::Journal(_) => false,
///     }
/// }
/// assert!(goes_on(&CommitFailed::Moved(Moved::TakenAnew)));
/// assert!(!goes_on(&CommitFailed::Stopped(StopReason::Stopped)));
/// ```
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
