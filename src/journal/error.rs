//! What can go wrong with the journal: one variant for each decision that a caller can take.

use std::path::PathBuf;
use std::sync::Arc;

use crate::commit;
use crate::offset::{BatchNumber, Group, Invalid, Seq};

/// Why a journal could not be opened.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use std::sync::Arc;
/// use tidelog::journal::{Journal, OpenError, Options};
/// use tidelog::offset::Timestamp;
///
/// let options = Options::new(Arc::new(|| Timestamp::from_millis(1_796_032_800_000)));
/// let _holder = Journal::open(dir.path(), Options { create: true, ..options.clone() })?;
/// let second = Journal::open(dir.path(), Options { lock_wait: std::time::Duration::ZERO, ..options });
/// assert!(matches!(second, Err(OpenError::InUse { holder, .. }) if holder.starts_with("process ")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nothing there, and making one was not asked for.
    #[error("no journal in {}", dir.display())]
    NotThere {
        /// Where it was looked for.
        dir: PathBuf,
    },
    /// Another process holds it.
    #[error("journal {} is in use by {holder}", dir.display())]
    InUse {
        /// The journal.
        dir: PathBuf,
        /// What the holder wrote about itself.
        holder: String,
    },
    /// The directory belongs to another program, or to a version that this one can't read.
    #[error("{} is not a journal that this version can read: {why}", dir.display())]
    Foreign {
        /// The directory.
        dir: PathBuf,
        /// What was found.
        why: String,
    },
    /// Something is broken or missing; opening it would answer with less than was acknowledged.
    #[error("journal is damaged: {}: {why}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong, with the seqs that are missing and the command that helps.
        why: String,
    },
    /// The system refused.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Its reason.
        source: std::io::Error,
    },
    /// An option out of its range.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// Why something was not written.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
///
/// use tidelog::journal::WriteError;
///
/// let reader = journal.clone();
/// journal.close()?;
/// assert!(matches!(reader.seal(), Err(WriteError::ReadOnly { .. }))); // reads go on
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriteError {
    /// The journal takes no more writes until it is opened again; reads go on.
    #[error("the journal is read-only: {why}")]
    ReadOnly {
        /// The first failure.
        why: Arc<str>,
    },
    /// It is beyond what the journal's files can hold: nothing was written, and the journal goes on.
    #[error("{what} can't be written; the limit is {limit}; nothing was written")]
    TooLarge {
        /// What, and how large.
        what: Arc<str>,
        /// What is accepted, in the same unit.
        limit: u64,
    },
}

/// A read of history that failed.
///
/// ```
/// use tidelog::journal::ReadError;
///
/// let error = ReadError { file: "sled/db".into(), why: "entry 7 is missing".into(), seq: Some("7".parse()?) };
/// assert_eq!(error.to_string(), "journal is damaged: sled/db: entry 7 is missing");
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[error("journal is damaged: {}: {why}", file.display())]
pub struct ReadError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong, with the seqs that are missing and the command that helps.
    pub why: Arc<str>,
    /// The first entry that could not be read, where known.
    pub seq: Option<Seq>,
}

/// Why there is no answer about a group's results.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # tidelog::control::start(&control, request)?;
///
/// use tidelog::journal::ResultsError;
///
/// let error = control.journal.result_as_of(&loader, b"order-17", "7".parse()?);
/// assert!(matches!(error, Err(ResultsError::UnknownBatch { newest, .. }) if newest.get() == 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
pub enum ResultsError {
    /// The journal has no such group.
    #[error("no group {group} in this journal")]
    UnknownGroup {
        /// The group.
        group: Group,
    },
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
    /// Asked for out of bounds.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// They can't be read.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
}

/// Why a commit has no receipt.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # let started = tidelog::control::start(&control, request)?;
/// # let time = tidelog::offset::Timestamp::from_millis(1_796_032_800_000);
/// # let range = tidelog::offset::OffsetRange::new("orders".parse()?, 0, "500".parse()?, "542".parse()?)?;
///
/// use tidelog::commit::{Commit, Refused};
/// use tidelog::journal::CommitError;
///
/// // Under an epoch that nobody has started.
/// let error = control.journal.commit(Commit::new(loader, started.epoch.next(), time, vec![range])?);
/// assert!(matches!(error, Err(CommitError::Refused(Refused::JournalBehind { .. }))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// It was refused; the journal is unchanged.
    #[error(transparent)]
    Refused(#[from] commit::Refused),
    /// It could not be made durable. Whether it will be there after the journal is opened again is not known.
    #[error(transparent)]
    Unavailable(#[from] WriteError),
}

/// Why a decision was not carried out.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
///
/// use tidelog::journal::DecideError;
///
/// let decided = journal.decide(|state| match state.groups.len() {
///     0 => Err("no group yet"),
///     _ => Ok((Vec::new(), ())),
/// });
/// assert!(matches!(decided, Err(DecideError::Refused("no group yet"))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
pub enum DecideError<E> {
    /// The decision itself said no; the journal is unchanged.
    #[error("{0}")]
    Refused(E),
    /// It could not be made durable, or is too large to be written.
    #[error(transparent)]
    Unavailable(WriteError),
}
