//! The sealing thread: moves closed segments of the log into the store, one at a time, oldest first.
//!
//! A segment's seal is finished once the store has its entries and the archive its file. Only then the log lets it go:
//! whatever a crash interrupts is done when the journal is opened again and finds the segment in the log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::thread::JoinHandle;

use super::codec::payload;
use super::codec::record::{self, Names};
use super::health::{Health, Progress};
use super::published::Published;
use super::request::Request;
use super::store::{Sealer, StoreError};
use super::wal::{ClosedSegment, Undecodable, WalError};
use super::{CrashHook, WriteError, crash_point};

/// What the thread is told.
pub enum Job {
    /// To seal a segment.
    Segment(ClosedSegment),
    /// To say when it has come to here.
    Tell(SyncSender<Result<(), WriteError>>),
}

/// Why a segment could not be sealed.
#[derive(Debug, thiserror::Error)]
enum SealError {
    #[error(transparent)]
    Wal(#[from] WalError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the thread shares with others.
pub struct Sealing {
    /// The write side of the store.
    pub sealer: Sealer,
    /// Readers: they take what is sealed from the store.
    pub published: Arc<Published>,
    /// Where a failure is noted.
    pub health: Arc<Health>,
    /// Where progress is noted.
    pub progress: Arc<Progress>,
    /// Set when what is queued is not to be sealed any more.
    pub stopping: Arc<AtomicBool>,
    /// Told each step.
    pub crash_at: Option<CrashHook>,
}

impl Sealing {
    /// Starts the thread; it ends when the sender is dropped. `writer` is told after each segment.
    pub fn start(self, writer: Sender<Request>) -> std::io::Result<(Sender<Job>, JoinHandle<()>)> {
        let (jobs, inbox) = channel();
        let thread =
            std::thread::Builder::new().name("tidelog-seal".into()).spawn(move || self.run(&inbox, &writer))?;
        Ok((jobs, thread))
    }

    fn run(mut self, jobs: &Receiver<Job>, writer: &Sender<Request>) {
        for job in jobs {
            match job {
                // Who asked may have gone.
                Job::Tell(reply) => drop(reply.send(self.health.failed().map_or(Ok(()), Err))),
                Job::Segment(_) if self.health.failed().is_some() || self.stopping.load(Ordering::Relaxed) => {
                    self.progress.end(); // a writer with many closed segments waits for one to go
                }
                Job::Segment(segment) => {
                    self.seal_or_fail(&segment);
                    // Gone only while the journal is being dropped.
                    let _ = writer.send(Request::Sealed);
                }
            }
        }
    }

    fn seal_or_fail(&mut self, segment: &ClosedSegment) {
        // sled may panic on what it finds on the disk.
        let why = match catch_unwind(AssertUnwindSafe(|| self.seal(segment))) {
            Ok(Ok(())) => {
                self.published.forget(segment.last);
                return self.progress.advance(segment.last);
            }
            Ok(Err(error)) => format!("sealing failed: {error}"),
            Err(_) => "sealing panicked; standard error tells where".to_owned(),
        };
        tracing::error!("{why}; the journal is read-only until it is opened again");
        self.health.fail(why);
        self.progress.end();
    }

    /// All steps of a segment's seal, in their order; those that were done before a crash are not repeated.
    fn seal(&mut self, closed: &ClosedSegment) -> Result<(), SealError> {
        if closed.last > self.sealer.state().seq {
            self.store(closed)?;
        }
        self.archive(closed);
        Ok(())
    }

    /// Puts what is not sealed yet of a segment into the store.
    fn store(&mut self, closed: &ClosedSegment) -> Result<(), SealError> {
        let sealed = self.sealer.state().seq;
        let (mut names, mut failed) = (Names::default(), None);
        let sealer = &mut self.sealer;
        closed.segment.visit(closed.last, &mut |shown| {
            let mut results = Ok(());
            payload::decode(shown.first_seq, shown.count, shown.payload, &mut names, &mut |entry, record| {
                if entry.seq <= sealed || failed.is_some() {
                    return;
                }
                match record::results(record) {
                    Ok((_, puts)) => failed = sealer.push(&entry, puts).err(),
                    Err(error) => results = Err(error),
                }
            })
            .and(results)
            .map_err(|error| Undecodable(error.to_string()))
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        self.sealer.finish()?;
        Ok(())
    }

    /// The place of the segment's archive file, which no version writes yet. It belongs here: the store is durable and
    /// valid with these entries, the segment still in the log, and a crash up to the end of this step brings the next
    /// open here again, also if a file was written by then.
    fn archive(&self, _closed: &ClosedSegment) {
        crash_point(self.crash_at.as_ref(), "seal: archive");
    }
}
