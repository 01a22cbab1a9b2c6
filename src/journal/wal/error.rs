//! What can go wrong in the write-ahead log: one variant for each decision that a caller can take.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::offset::Seq;

/// Entries `first` to `last`, both included; without `last` it is not known how many there were.
///
/// ```
/// use tidelog::journal::Seqs;
/// use tidelog::offset::Seq;
///
/// assert_eq!(Seqs::new(Seq::new(7)?, Seq::new(9)?).to_string(), "seqs 7 to 9");
/// assert_eq!(Seqs::from(Seq::new(7)?).to_string(), "seqs from 7 on");
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seqs {
    /// The first.
    pub first: Seq,
    /// The last, where it is known.
    pub last: Option<Seq>,
}

impl Seqs {
    /// `first` to `last`.
    pub fn new(first: Seq, last: Seq) -> Self {
        Seqs { first, last: Some(last) }
    }

    /// `first` and what follows it.
    pub fn from(first: Seq) -> Self {
        Seqs { first, last: None }
    }
}

impl fmt::Display for Seqs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            Some(last) if last == self.first => write!(f, "seq {last}"),
            Some(last) => write!(f, "seqs {} to {last}", self.first),
            None => write!(f, "seqs from {} on", self.first),
        }
    }
}

/// Why the write-ahead log can't be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// The system refused a read or a write. After a failed write nothing more is written until the log is opened
    /// again.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// No space is left where the log lives, or a quota or a limit on the size of files is reached.
    #[error("no space to {what} {}: {source}", path.display())]
    NoSpace {
        /// What was tried, as a verb.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The bytes are not what was written, and what they held was acknowledged or may have been.
    #[error("{} is damaged at byte {offset} ({why}): {missing} can't be read", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damage begins.
        offset: u64,
        /// What was found.
        why: String,
        /// The entries that are missing because of it.
        missing: Seqs,
    },
    /// A segment that must be there is not.
    #[error("{} has no segment with {missing}", dir.display())]
    Gap {
        /// The log's directory.
        dir: PathBuf,
        /// The entries that are missing because of it.
        missing: Seqs,
    },
    /// The log ends before what the journal's history holds already: it belongs to an older copy.
    #[error("{} ends at seq {last}, but the history holds entries up to seq {sealed}: one of the two is an older copy",
        dir.display())]
    Behind {
        /// The log's directory.
        dir: PathBuf,
        /// The log's last entry.
        last: Seq,
        /// The history's last entry.
        sealed: Seq,
    },
    /// A segment of another journal.
    #[error("{} belongs to another journal", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A segment in a format that this program does not know.
    #[error("{} has format version {found}; this program knows version {known}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// A record beyond the limits of a frame: nothing was written, and the log goes on.
    #[error(
        "a record of {entries} entries and {bytes} bytes is too large; the limits are {} entries and {} bytes",
        super::MAX_COUNT,
        super::MAX_PAYLOAD
    )]
    TooLarge {
        /// Its entries.
        entries: usize,
        /// Its bytes.
        bytes: usize,
    },
    /// An earlier write failed; the log has to be opened again.
    #[error("an earlier write to the log failed; it takes no more until the journal is opened again")]
    Poisoned,
}

impl WalError {
    /// The error of a system call on `path`; a full disk is told apart.
    pub(super) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let path = path.to_owned();
        match source.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => WalError::NoSpace { what, path, source },
            _ => WalError::Io { what, path, source },
        }
    }

    /// Damage of the file at `path`.
    pub(super) fn damaged(path: &Path, offset: u64, why: impl Into<String>, missing: Seqs) -> Self {
        WalError::Damaged { path: path.to_owned(), offset, why: why.into(), missing }
    }
}
