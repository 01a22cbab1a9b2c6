//! What can go wrong with the journal: one variant for each decision that a caller can take.

use std::path::PathBuf;
use std::sync::Arc;

use crate::commit;
use crate::offset::{BatchNumber, Group, Invalid, Seq};

/// Why a journal could not be opened.
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
#[derive(Debug, Clone, thiserror::Error)]
pub enum DecideError<E> {
    /// The decision itself said no; the journal is unchanged.
    #[error("{0}")]
    Refused(E),
    /// It could not be made durable, or is too large to be written.
    #[error(transparent)]
    Unavailable(WriteError),
}
