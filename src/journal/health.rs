//! Whether the journal takes writes, and how far it is sealed: what its threads and its handles share.

use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use super::WriteError;
use crate::offset::Seq;

/// The first failure, which stays until the journal is opened again.
#[derive(Debug, Default)]
pub struct Health {
    failed: OnceLock<WriteError>,
}

impl Health {
    /// Why nothing more is written, if so.
    pub fn failed(&self) -> Option<WriteError> {
        self.failed.get().cloned()
    }

    /// Notes a failure, unless there was one before; the first is what everybody is told.
    pub fn fail(&self, why: impl std::fmt::Display) -> WriteError {
        self.failed.get_or_init(|| WriteError::ReadOnly { why: why.to_string().into() }).clone()
    }
}

/// How far the sealing thread is, to be waited for.
#[derive(Debug)]
pub struct Progress {
    // The newest sealed entry; whether there will be no more.
    sealed: Mutex<(Seq, bool)>,
    changed: Condvar,
}

impl Progress {
    /// With what was sealed at open.
    pub fn new(sealed: Seq) -> Self {
        Progress { sealed: Mutex::new((sealed, false)), changed: Condvar::new() }
    }

    /// The newest sealed entry.
    pub fn sealed(&self) -> Seq {
        self.sealed.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Notes that all up to `sealed` is.
    pub fn advance(&self, sealed: Seq) {
        self.sealed.lock().unwrap_or_else(PoisonError::into_inner).0 = sealed;
        self.changed.notify_all();
    }

    /// Notes that no more will be.
    pub fn end(&self) {
        self.sealed.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.changed.notify_all();
    }

    /// Waits until all up to `wanted` is sealed, or no more will be; returns what is.
    pub fn wait(&self, wanted: Seq) -> Seq {
        let sealed = self.sealed.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_while(sealed, |(sealed, ended)| *sealed < wanted && !*ended);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
