//! What can go wrong, one variant for each thing that a caller can do about it.

use std::io;
use std::path::PathBuf;

use crate::journal::codec::CodecError;
use crate::offset::Seq;

/// Why the store can't be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused: no space, no permission, a bad device.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process, or another handle of this one, has it open.
    #[error("{} is in use by another process", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// What is there is not what was written. Nothing was changed.
    #[error("{} is damaged: {what}{}; put it back from a copy", path.display(), seqs_text(seqs))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is missing or wrong.
        what: String,
        /// The first and the last seq that can't be read, where that is known.
        seqs: Option<(Seq, Seq)>,
    },
    /// A later version of tidelog wrote it.
    #[error("{}: {what} has format version {found}, this tidelog knows up to {known}; use a newer tidelog", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The record.
        what: String,
        /// Its version.
        found: u8,
        /// The newest that this program reads.
        known: u8,
    },
    /// An entry that can't be kept as it is: too large, or not what the journal makes.
    #[error("entry {seq} can't be stored: {why}")]
    Unstorable {
        /// The entry.
        seq: Seq,
        /// The reason.
        why: String,
    },
    /// An earlier seal failed: what is on the disk is not known. Reading goes on; open it again to write.
    #[error("{}: an earlier write failed; open the journal again", path.display())]
    Poisoned {
        /// The directory.
        path: PathBuf,
    },
}

fn seqs_text(seqs: &Option<(Seq, Seq)>) -> String {
    match seqs {
        Some((first, last)) if first == last => format!(" (seq {first})"),
        Some((first, last)) => format!(" (seqs {first} to {last})"),
        None => String::new(),
    }
}

impl StoreError {
    /// What a codec error of the record `what` in `path` means.
    pub(super) fn codec(path: PathBuf, what: String, error: CodecError) -> Self {
        match error {
            CodecError::Version { found, known } if found > known => StoreError::Newer { path, what, found, known },
            error => StoreError::Damaged { path, what: format!("{what}: {error}"), seqs: None },
        }
    }
}
