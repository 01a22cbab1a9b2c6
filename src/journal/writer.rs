//! The writer thread: takes what has queued up, decides each on the pending state, and makes all of it durable with one
//! fdatasync; then it is published, then everybody is told.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

use super::codec::record::Names;
use super::codec::{CodecError, payload};
use super::health::{Health, Progress};
use super::published::Published;
use super::request::{Decide, Request};
use super::sealing::Job;
use super::wal::{MAX_COUNT, MAX_PAYLOAD, Wal, WalError};
use super::{Clock, Durability, WriteError};
use crate::entry::{Draft, Entry};
use crate::positions::State;

/// How long the writer looks for the next request before it sleeps: a committer that goes on at once then needs not
/// wake it.
const SPIN: Duration = Duration::from_micros(50);
/// Without a request for this long, the last group is called durable in the log.
const IDLE: Duration = Duration::from_millis(100);
/// What one group takes in, at most: bounds the time to its fdatasync, and its memory.
const MAX_GROUP_BYTES: usize = 1 << 20;
/// Likewise, for requests that append nothing.
const MAX_GROUP_REQUESTS: usize = 4_096;
/// Closed segments that wait to be sealed: with more of them, commits wait for the sealing thread.
const MAX_UNSEALED: usize = 4;

/// What the writer works with.
pub struct Writer {
    /// The log.
    pub wal: Wal,
    /// The names of the current segment.
    pub names: Names,
    /// The state with all that was staged.
    pub pending: State,
    /// Where readers are served from.
    pub published: Arc<Published>,
    /// Where a failure is noted.
    pub health: Arc<Health>,
    /// How far the sealing thread is.
    pub progress: Arc<Progress>,
    /// To the sealing thread.
    pub sealing: Sender<Job>,
    /// When a request is answered.
    pub durability: Durability,
    /// The machine's clock.
    pub clock: Clock,
}

/// Requests that are answered together, and what they append.
#[derive(Default)]
struct Group {
    requests: Vec<(Box<dyn Decide>, Vec<Entry>)>,
    // The payloads of the frames, and where each entry's record stands in them.
    bytes: Vec<u8>,
    records: Vec<Range<usize>>,
}

impl Group {
    fn is_full(&self) -> bool {
        self.bytes.len() >= MAX_GROUP_BYTES || self.requests.len() >= MAX_GROUP_REQUESTS
    }
}

impl Writer {
    /// Works until it is told to stop, or nobody is left who could ask; then closes the log.
    ///
    /// # Errors
    ///
    /// If a write failed, now or earlier.
    pub fn run(self, inbox: &Receiver<Request>) -> Result<(), WriteError> {
        let health = Arc::clone(&self.health);
        let mut run = Run { group: Group::default(), synced: Instant::now(), writer: self };
        let worked = catch_unwind(AssertUnwindSafe(|| {
            run.work(inbox);
            run.writer.wal.close()
        }));
        // Whoever waits for an answer sees its end dropped, and looks at the health.
        match (health.failed(), worked) {
            (Some(error), _) => Err(error),
            (None, Ok(Ok(()))) => {
                health.fail("it was closed");
                Ok(())
            }
            (None, Ok(Err(error))) => Err(health.fail(error)),
            (None, Err(_)) => Err(health.fail("the writer panicked; standard error tells where")),
        }
    }
}

/// The writer at work.
struct Run {
    writer: Writer,
    group: Group,
    synced: Instant,
}

impl Run {
    fn work(&mut self, inbox: &Receiver<Request>) {
        while let Some(mut request) = self.next(inbox) {
            loop {
                match request {
                    Request::Decide(decide) => self.decide(decide),
                    Request::Seal(reply) => self.seal(reply),
                    Request::Sealed => self.writer.wal.remove_sealed(self.writer.progress.sealed()),
                    Request::Stop => return self.flush(),
                }
                match inbox.try_recv() {
                    Ok(next) if !self.group.is_full() => request = next,
                    Ok(next) => {
                        self.flush();
                        // A queue that never runs empty must not put it off.
                        self.sync_if_due();
                        request = next;
                    }
                    Err(_) => break,
                }
            }
            self.flush();
        }
    }

    /// Waits for the next request; meanwhile does what is due when nothing is asked.
    fn next(&mut self, inbox: &Receiver<Request>) -> Option<Request> {
        self.sync_if_due();
        let begun = Instant::now();
        while begun.elapsed() < SPIN {
            match inbox.try_recv() {
                Ok(request) => return Some(request),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => std::thread::yield_now(),
            }
        }
        let mut noted = false;
        loop {
            let received = match self.unsynced_for() {
                Some(left) => inbox.recv_timeout(left),
                None if !noted => inbox.recv_timeout(IDLE),
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match received {
                Ok(request) => return Some(request),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if self.unsynced_for().is_some() => self.sync_if_due(),
                Err(RecvTimeoutError::Timeout) => {
                    noted = true;
                    if self.writer.health.failed().is_none() {
                        let idle = self.writer.wal.note_idle();
                        self.check(idle);
                    }
                }
            }
        }
    }

    /// Under [`Durability::Interval`]: how long what is written may still stay off the device; none if nothing does.
    fn unsynced_for(&self) -> Option<Duration> {
        let Writer { wal, health, durability, .. } = &self.writer;
        match durability {
            Durability::Interval(interval) if wal.durable() < wal.last_seq() && health.failed().is_none() => {
                Some(interval.saturating_sub(self.synced.elapsed()))
            }
            Durability::Fsync | Durability::Process | Durability::Interval(_) => None,
        }
    }

    fn sync_if_due(&mut self) {
        if self.unsynced_for().is_some_and(|left| left.is_zero()) {
            let synced = self.writer.wal.sync();
            self.check(synced);
            self.synced = Instant::now();
        }
    }

    /// Notes an error: nothing more is written then.
    fn check(&self, result: Result<(), WalError>) -> bool {
        if let Err(error) = &result {
            tracing::error!(%error, "the journal is read-only until it is opened again");
            self.writer.health.fail(error);
        }
        result.is_ok()
    }

    fn decide(&mut self, mut request: Box<dyn Decide>) {
        // A panic of the caller's own code must not end the journal; it sees the state only by reference.
        let pending = &self.writer.pending;
        let drafts = match self.writer.health.failed() {
            Some(error) => return request.answer(Err(error)),
            None => catch_unwind(AssertUnwindSafe(|| request.decide(pending))).unwrap_or_default(),
        };
        let entries = self.number(drafts);
        if let Err(error) = self.stage(&entries, request.results()) {
            return request.answer(Err(error));
        }
        for entry in &entries {
            self.writer.pending.apply(entry);
        }
        self.group.requests.push((request, entries));
    }

    /// Gives the drafts of one decision their numbers and their time, which never goes backwards.
    fn number(&self, drafts: Vec<Draft>) -> Vec<Entry> {
        let Writer { pending, clock, .. } = &self.writer;
        if drafts.is_empty() {
            return Vec::new();
        }
        let machine_clock = clock();
        let recorded_at = machine_clock.max(pending.recorded_at);
        let seqs = (1..).map(|nth| pending.seq.plus(nth));
        drafts
            .into_iter()
            .zip(seqs)
            .map(|(Draft { group, epoch, body }, seq)| Entry { seq, recorded_at, machine_clock, group, epoch, body })
            .collect()
    }

    /// Adds entries to the group, all or none; in a new segment if they don't fit the current one.
    ///
    /// # Errors
    ///
    /// Also where they are too large for any segment; then the journal goes on.
    fn stage(&mut self, entries: &[Entry], results: &[u8]) -> Result<(), WriteError> {
        if entries.is_empty() {
            return Ok(());
        }
        match self.try_stage(entries, results) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => {
                // Names that it would have defined are known to the writer but in no record: they are defined anew.
                self.begin_segment(0)?;
                return Err(error);
            }
        }
        // Where no name is defined yet, it is longer than here.
        let mut alone = Vec::new();
        payload::encode(entries, results, &mut Names::default(), &mut alone, &mut Vec::new()).map_err(unencodable)?;
        self.begin_segment(alone.len())?;
        assert!(self.try_stage(entries, results)?, "a segment takes the payload that it was made for");
        Ok(())
    }

    /// Adds entries to the group, if they fit the current segment.
    fn try_stage(&mut self, entries: &[Entry], results: &[u8]) -> Result<bool, WriteError> {
        let Run { writer, group, .. } = self;
        let (bytes, records) = (group.bytes.len(), group.records.len());
        let encoded = payload::encode(entries, results, &mut writer.names, &mut group.bytes, &mut group.records);
        let staged = match encoded {
            Ok(()) => writer.wal.stage(entries.len(), &group.bytes[bytes..]).map_err(beyond_frame),
            Err(error) => Err(unencodable(error)),
        };
        if !matches!(staged, Ok(true)) {
            group.bytes.truncate(bytes);
            group.records.truncate(records);
        }
        staged
    }

    /// Makes the group durable, publishes it, and tells everybody.
    fn flush(&mut self) {
        if self.group.requests.is_empty() {
            return;
        }
        let made = self.make_durable();
        for (request, entries) in self.group.requests.drain(..) {
            request.answer(made.clone().map(|()| entries));
        }
        self.group.bytes.clear();
        self.group.records.clear();
    }

    fn make_durable(&mut self) -> Result<(), WriteError> {
        let Writer { wal, published, health, durability, .. } = &mut self.writer;
        if let Some(error) = health.failed() {
            return Err(error);
        }
        if self.group.records.is_empty() {
            // What was decided is told all the same only now: it saw the state of a group that is durable.
            return Ok(());
        }
        let written = wal.write().and_then(|()| match durability {
            Durability::Fsync => wal.sync(),
            Durability::Process | Durability::Interval(_) => Ok(()),
        });
        if let Err(error) = written {
            tracing::error!(%error, "the journal is read-only until it is opened again");
            return Err(health.fail(error));
        }
        let Group { requests, bytes, records } = &self.group;
        let entries = requests.iter().flat_map(|(_, entries)| entries);
        let records = records.iter().map(|place| &bytes[place.clone()]);
        published
            .publish(entries.zip(records))
            .map_err(|error| health.fail(format!("a record does not decode: {error}")))
    }

    /// Closes the current segment, hands it to the sealing thread, and goes on in the next.
    fn begin_segment(&mut self, at_least: usize) -> Result<(), WriteError> {
        self.flush();
        let Writer { wal, progress, health, .. } = &mut self.writer;
        if let Some(error) = health.failed() {
            return Err(error);
        }
        wal.remove_sealed(progress.sealed());
        if let Some(excess) = wal.closed().len().checked_sub(MAX_UNSEALED) {
            let sealed = progress.wait(wal.closed()[excess].last);
            wal.remove_sealed(sealed);
        }
        let closed = wal.rotate(at_least).map_err(|error| {
            tracing::error!(%error, "the journal is read-only until it is opened again");
            health.fail(error)
        })?;
        self.writer.names = Names::default();
        self.writer.published.begin_segment();
        if let Some(closed) = closed {
            // Gone only after the writer.
            let _ = self.writer.sealing.send(Job::Segment(closed));
        }
        Ok(())
    }

    fn seal(&mut self, reply: SyncSender<Result<(), WriteError>>) {
        match self.begin_segment(0) {
            // Answered by the sealing thread when it has come there.
            Ok(()) => drop(self.writer.sealing.send(Job::Tell(reply))),
            Err(error) => drop(reply.send(Err(error))),
        }
    }
}

/// The error of a record that is beyond the limits of a frame.
fn beyond_frame(error: WalError) -> WriteError {
    match error {
        WalError::TooLarge { entries, .. } if entries > MAX_COUNT => {
            WriteError::TooLarge { what: format!("a decision of {entries} entries").into(), limit: MAX_COUNT as u64 }
        }
        WalError::TooLarge { bytes, .. } => too_large(bytes as u64, MAX_PAYLOAD as u64),
        error => WriteError::ReadOnly { why: error.to_string().into() },
    }
}

/// The error of an entry that can't be encoded.
fn unencodable(error: CodecError) -> WriteError {
    match error {
        CodecError::TooLarge { bytes, limit } => too_large(bytes, limit),
        error => WriteError::ReadOnly { why: format!("an entry can't be encoded: {error}").into() },
    }
}

fn too_large(bytes: u64, limit: u64) -> WriteError {
    WriteError::TooLarge { what: format!("an entry of {bytes} bytes").into(), limit }
}
