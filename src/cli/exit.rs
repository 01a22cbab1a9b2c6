//! What ends a command early, and the exit code that says so: the contract of INTERFACE section 1 in one match.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::output::is_broken_pipe;
use crate::cli::seat::Problem;
use crate::commit::Refused;
use crate::control::{ExecuteError, ImportError, PlanError, StartError};
use crate::journal::{CommitError, OpenError, WriteError};
use crate::kafka::BeginError;
use crate::offset::Invalid;

/// Why a command did not end well. Each message is for a person, and says what to do where there is something.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A flag or a value is wrong, or one is missing.
    #[error("{0}")]
    Usage(String),
    /// A value is not what it should be.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The journal could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journal takes no more writes.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A commit was not taken.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A consumer could not begin.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A plan was not executed.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// Nothing was imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The API answered with a problem.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// Nobody is where a server should be, or it is none of ours.
    #[error("the server at {url} can't be reached: {why}")]
    Unreachable {
        /// Its address.
        url: String,
        /// What the system or the other side said.
        why: String,
    },
    /// A server took a request, or a connection, and did not answer in time.
    #[error("the server at {url} did not answer within {limit:?}{}", perhaps_text(*changes))]
    Silent {
        /// Its address.
        url: String,
        /// How long it had.
        limit: Duration,
        /// Whether the request may have changed something all the same.
        changes: bool,
    },
    /// A policy, or a person who was asked, said no.
    #[error("{0}")]
    Refused(String),
    /// The world is another one than it was when this was asked for.
    #[error("{0}")]
    Conflict(String),
    /// The broker did not answer in time.
    #[error("{0}")]
    Broker(String),
    /// The command of a batch failed as often as it may.
    #[error("{0}")]
    GaveUp(String),
    /// The consumer can't go on, for a reason that is no refusal.
    #[error("{0}")]
    Broken(String),
    /// SIGINT; everything is flushed.
    #[error("interrupted")]
    Interrupted,
    /// Standard output could not be written.
    #[error("standard output: {0}")]
    Output(#[source] io::Error),
    /// A file could not be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Anything else that the system refused.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            // Whoever read our output has seen enough.
            Failure::Output(error) if is_broken_pipe(error) => 0,
            Failure::Broken(_) | Failure::Output(_) | Failure::System { .. } | Failure::File { .. } => 1,
            Failure::Unreachable { .. } | Failure::Silent { .. } => 1,
            Failure::Problem(problem) => problem.code(),
            Failure::Usage(_) | Failure::Invalid(_) => 2,
            Failure::Open(error) => match error {
                OpenError::Io { .. } => 1,
                OpenError::Invalid(_) => 2,
                OpenError::InUse { .. } => 5,
                OpenError::NotThere { .. } | OpenError::Foreign { .. } | OpenError::Damaged { .. } => 6,
            },
            Failure::Write(_) | Failure::Commit(CommitError::Unavailable(_)) => 1,
            Failure::Commit(CommitError::Refused(refused)) => match refused {
                Refused::TooLarge { .. } => 1,
                Refused::Invalid(_) => 2,
                Refused::Held { .. } => 3,
                Refused::Fenced { .. } | Refused::OtherIncarnation { .. } | Refused::KeyConflict { .. } => 4,
                Refused::JournalBehind { .. } => 6,
                Refused::UnknownGroup { .. } => 8,
            },
            Failure::Begin(BeginError::Start(error)) => match error {
                StartError::Unavailable(_) => 1,
                StartError::Invalid(_) => 2,
                StartError::Held { .. } | StartError::Refused { .. } => 3,
                StartError::BrokerUnavailable { .. } => 7,
            },
            Failure::Begin(BeginError::Thread(_)) => 1,
            Failure::Begin(BeginError::Client(_)) => 2,
            Failure::Plan(error) | Failure::Execute(ExecuteError::Plan(error)) => plan_code(error),
            Failure::Execute(ExecuteError::Refused(_)) => 3,
            Failure::Execute(ExecuteError::Outdated(_) | ExecuteError::Active(_)) => 4,
            Failure::Execute(ExecuteError::Write(_)) => 1,
            Failure::Import(error) => match error {
                ImportError::Unavailable(_) => 1,
                ImportError::Invalid(_) => 2,
                ImportError::Exists(_) => 3,
                ImportError::BrokerUnavailable { .. } => 7,
                ImportError::NotThere { .. } => 8,
            },
            Failure::Refused(_) => 3,
            Failure::Conflict(_) => 4,
            Failure::Broker(_) => 7,
            Failure::GaveUp(_) => 9,
            Failure::Interrupted => 130,
        }
    }

    /// Whether there is nothing to tell: the reader of our output has gone, or the user pressed Ctrl-C.
    pub fn is_quiet(&self) -> bool {
        match self {
            Failure::Output(error) => is_broken_pipe(error),
            Failure::Interrupted => true,
            _ => false,
        }
    }
}

fn perhaps_text(changes: bool) -> &'static str {
    if changes { "; what was asked for may have been done all the same" } else { "" }
}

fn plan_code(error: &PlanError) -> u8 {
    match error {
        PlanError::Invalid(_) => 2,
        PlanError::NothingToUndo { .. } => 3,
        PlanError::Read(_) => 6,
        PlanError::BrokerUnavailable { .. } => 7,
        PlanError::UnknownGroup(_)
        | PlanError::UnknownBatch { .. }
        | PlanError::UnknownTopic { .. }
        | PlanError::UnknownMark { .. }
        | PlanError::BeforeHistory { .. } => 8,
    }
}
