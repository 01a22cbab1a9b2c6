//! The journal: the only place that knows sled and bytes.
//!
//! ```text
//! commit -> request -> writer: check on the pending state -> wal: write, one fdatasync for all that queued up
//!                              -> published: state and tail -> receipts, watchers
//!                              -> a full segment -> sealing: store (sled) -> archive -> the segment is removed
//! open   -> lock -> store -> wal, replayed through the same fold -> published
//! ```
//!
//! - `lock`: the directory, who owns it, and that it is a journal.
//! - `codec`: bytes of entries, blocks, values.
//! - `wal`: the write-ahead log, which decides what is acknowledged.
//! - `store`: the sealed history, in sled.
//! - `tail`: entries that are not sealed yet, in memory, and `runs`, their results by key; `published`: what readers see,
//!   over store and tail; `results`: what a group's results are.
//! - `refusals`: commits that were refused, counted.
//! - `writer`, `sealing`: the two threads; `request`, `health`: what passes between them and the handles.
//! - `open`: recovery.

mod codec;
mod error;
mod health;
mod lock;
mod open;
mod published;
mod refusals;
mod request;
mod results;
mod runs;
mod sealing;
mod store;
mod tail;
mod wal;
mod writer;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvError, RecvTimeoutError, Sender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use self::codec::puts;
pub use self::error::{CommitError, DecideError, OpenError, ReadError, ResultsError, WriteError};
use self::health::Health;
use self::lock::Directory;
pub use self::lock::FORMAT_VERSION;
use self::published::Published;
use self::refusals::RefusalBook;
pub use self::refusals::{Fenced, Refusals};
use self::request::{Decided, Decision, Request};
pub use self::results::MAX_PAGE;
pub use self::store::{AsOf, Order, Portion, Question, Reading, Readings};
pub use self::wal::{Cut, Seqs};
use crate::commit::{self, Checked, Commit, Receipt, Refused};
use crate::entry::{Body, Draft, Entry};
use crate::offset::{BatchNumber, Group, Seq, Timestamp};
use crate::positions::{GroupState, State};

/// Tells the time.
///
/// ```
/// use tidelog::journal::Clock;
/// use tidelog::offset::Timestamp;
///
/// let clock: Clock = std::sync::Arc::new(|| Timestamp::from_millis(1_796_032_800_000)); // a test's
/// assert_eq!(clock(), "2026-11-30T10:00:00Z".parse()?);
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
/// Called by name at each step that a test may want to die at.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use std::sync::{Arc, Mutex};
/// use tidelog::journal::{CrashHook, Journal, Options};
/// use tidelog::offset::Timestamp;
///
/// let passed = Arc::new(Mutex::new(Vec::new()));
/// let names = passed.clone();
/// let hook: CrashHook = Arc::new(move |name| names.lock().expect("no panic").push(name));
/// let options = Options::new(Arc::new(|| Timestamp::from_millis(1_796_032_800_000)));
/// Journal::open(dir.path(), Options { create: true, crash_at: Some(hook), ..options })?.close()?;
/// assert!(!passed.lock().expect("no panic").is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type CrashHook = Arc<dyn Fn(&'static str) + Send + Sync>;

/// When a receipt is sent.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tidelog::journal::{Durability, Options};
/// use tidelog::offset::Timestamp;
///
/// let now = || Timestamp::from_millis(1_796_032_800_000);
/// let fast = Options { durability: Durability::Interval(Duration::from_millis(200)), ..Options::new(Arc::new(now)) };
/// assert_ne!(fast.durability, Durability::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// After the entry is on the device.
    #[default]
    Fsync,
    /// After it was handed to the system: survives a killed process only. A machine that stops may use seqs again.
    Process,
    /// Likewise; it is on the device at most this much later.
    Interval(Duration),
}

/// How to open a journal.
///
/// ```
/// use std::sync::Arc;
/// use std::time::{SystemTime, UNIX_EPOCH};
/// use tidelog::journal::{Journal, OpenError, Options};
/// use tidelog::offset::Timestamp;
///
/// # let dir = tempfile::tempdir()?;
/// let now = || {
///     let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
///     Timestamp::from_millis(since.as_millis() as i64)
/// };
/// // No journal is made where there is none, unless the options say so.
/// let options = Options::new(Arc::new(now));
/// assert!(matches!(Journal::open(dir.path(), options.clone()), Err(OpenError::NotThere { .. })));
/// let journal = Journal::open(dir.path(), Options { create: true, ..options })?;
/// assert!(journal.created());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Options {
    /// Whether one is made where there is none.
    pub create: bool,
    /// When a receipt is sent.
    pub durability: Durability,
    /// Size of a segment of the write-ahead log, in bytes: 16 KiB to 1 GiB. One is sealed at a time.
    pub segment_bytes: u64,
    /// sled's cache, in bytes.
    pub cache_bytes: u64,
    /// How long to wait for another holder to go.
    pub lock_wait: Duration,
    /// The machine's clock.
    pub clock: Clock,
    /// For tests.
    pub crash_at: Option<CrashHook>,
    /// What a second process is told about this one.
    pub holder: String,
}

/// For how long a close begins to seal segments: with the last one it stays within what a graceful stop may take.
const SEAL_AT_CLOSE: Duration = Duration::from_secs(3);

/// Bytes of the files under `folder`.
fn size_of_files(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_of_files(&entry.path()),
        Ok(metadata) => metadata.len(),
        // Removed meanwhile.
        Err(_) => 0,
    };
    entries.map(size).sum()
}

/// Comes through a place where a crash would find other files.
fn crash_point(crash_at: Option<&CrashHook>, name: &'static str) {
    if let Some(crash_at) = crash_at {
        crash_at(name);
    }
}

impl Options {
    /// The defaults, with this clock.
    pub fn new(clock: Clock) -> Self {
        Options {
            create: false,
            durability: Durability::Fsync,
            segment_bytes: 16 << 20,
            cache_bytes: 32 << 20,
            lock_wait: Duration::from_secs(2),
            clock,
            crash_at: None,
            holder: format!("process {}", std::process::id()),
        }
    }
}

/// The journal. Clones share it; all calls come from any thread.
///
/// Dropping the last clone makes durable what was asked for, ends the threads and frees the directory before it
/// returns; [`Journal::close`] seals first, so that the next open has little to replay.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use tidelog::commit::Commit;
/// use tidelog::entry::{Body, Draft};
/// use tidelog::journal::{Journal, Options};
/// use tidelog::offset::{Epoch, Group, Isolation, Offset, OffsetRange, Timestamp, TopicName};
///
/// # let dir = tempfile::tempdir()?;
/// let now = Timestamp::from_millis(1_764_496_800_000);
/// let options = Options { create: true, ..Options::new(Arc::new(move || now)) };
/// let journal = Journal::open(&dir.path().join("journal"), options)?;
///
/// let loader = Group::new("default", "loader")?;
/// let epoch = Epoch::ZERO.next();
/// let group = Some(loader.clone());
/// journal.decide::<(), std::convert::Infallible>(move |_state| {
///     let body = Body::Started { owner: "loader@host1".into(), isolation: Isolation::ReadCommitted, kafka_group: None };
///     Ok((vec![Draft { group, epoch, body }], ()))
/// })?;
/// let range = OffsetRange::new(TopicName::new("orders")?, 0, Offset::new(0)?, Offset::new(42)?)?;
/// let receipt = journal.commit(Commit::new(loader, epoch, now, vec![range])?)?;
/// assert_eq!((receipt.batch.get(), receipt.seq.get()), (1, 2));
/// journal.close()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Journal(Arc<Inner>);

// Fields are dropped in this order: the store before the directory's lock.
struct Inner {
    published: Arc<Published>,
    health: Arc<Health>,
    refusals: RefusalBook,
    clock: Clock,
    requests: Sender<Request>,
    stopping: Arc<AtomicBool>,
    writer: Mutex<Option<JoinHandle<Result<(), WriteError>>>>,
    sealing: Mutex<Option<JoinHandle<()>>>,
    created: bool,
    cut: Option<Cut>,
    directory: Directory,
}

impl Journal {
    /// Opens the journal in `dir`, or makes one there if the options say so, and owns it until the last clone is gone.
    ///
    /// Time and memory go with what is not sealed yet, at most a few segments of the log, and with the groups.
    ///
    /// # Errors
    ///
    /// In use by another process (told after [`Options::lock_wait`]), not there, foreign, or damaged: never opened as an
    /// empty or a shorter journal. The one exception is said by [`Journal::cut`].
    pub fn open(dir: &Path, options: Options) -> Result<Journal, OpenError> {
        open::open(dir, options).map(|inner| Journal(Arc::new(inner)))
    }

    /// The journal's own id, which no other has: 32 hexadecimal digits.
    pub fn id(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0.directory.uuid))
    }

    /// Bytes of the journal's files: the log, the sealed history, the archive. What can't be read counts nothing.
    pub fn disk_bytes(&self) -> [(&'static str, u64); 3] {
        ["wal", "sled", "archive"].map(|part| (part, size_of_files(&self.0.directory.path.join(part))))
    }

    /// Whether this open made the journal.
    pub fn created(&self) -> bool {
        self.0.created
    }

    /// What this open cut off the end of the log: after an unclean stop, damage in the very last group of writes can't be
    /// told from a torn write. To be told to people.
    pub fn cut(&self) -> Option<&Cut> {
        self.0.cut.as_ref()
    }

    /// Why the journal takes no more writes, if so: then it has to be opened again.
    pub fn read_only(&self) -> Option<WriteError> {
        self.0.health.failed()
    }

    /// Commits a batch; returns when the receipt may be relied on, by [`Options::durability`].
    ///
    /// A repeat of a commit that is still in flight returns when that one does, with the same receipt.
    ///
    /// # Errors
    ///
    /// Refused, with the reason: the journal is unchanged. Unavailable: what became of it is not known, so commit it again
    /// once the journal was opened again (with a key, or the same batch time: then it is there once).
    pub fn commit(&self, commit: Commit) -> Result<Receipt, CommitError> {
        let results = puts::encode(commit.puts());
        let commit = Arc::new(commit);
        let checked = Arc::clone(&commit);
        self.told(&commit, receipt(self.decide_with(results, move |state| check(state, &checked))))
    }

    /// Like [`Journal::commit`], without blocking the thread: for tasks of tokio, which must not call blocking ones.
    /// A dropped future takes nothing back.
    pub async fn commit_async(&self, commit: Commit) -> Result<Receipt, CommitError> {
        let (reply, answer) = oneshot::channel();
        let results = puts::encode(commit.puts());
        let commit = Arc::new(commit);
        let checked = Arc::clone(&commit);
        let decision = move |state: &State| check(state, &checked);
        // The receiver is gone if the future was dropped.
        let request = Decision::request(decision, results, move |told| drop(reply.send(told)));
        self.request(request)?;
        match answer.await {
            Ok(decided) => self.told(&commit, receipt(decided)),
            Err(_) => Err(CommitError::Unavailable(self.unanswered())),
        }
    }

    /// Notes a commit that was refused, if the journal has its group.
    fn told(&self, commit: &Commit, answer: Result<Receipt, CommitError>) -> Result<Receipt, CommitError> {
        if let Err(CommitError::Refused(refused)) = &answer
            && self.with_state(|state| state.groups.contains_key(commit.group()))
        {
            self.0.refusals.note(commit, refused, (self.0.clock)());
        }
        answer
    }

    /// Counts a commit that was refused as `invalid` before it came here, if the journal has the group.
    pub fn note_invalid(&self, group: &Group) {
        if self.with_state(|state| state.groups.contains_key(group)) {
            self.0.refusals.note_invalid(group);
        }
    }

    /// The group's commits that were refused since this open.
    pub fn refusals(&self, group: &Group) -> Refusals {
        self.0.refusals.of(group)
    }

    /// Runs a pure decision in the writer thread on the pending state, and appends what it returns, all or none of it;
    /// returns the entries and the decision's own value when they may be relied on, by [`Options::durability`].
    ///
    /// The decision may neither block nor call the journal: all commits wait for it.
    ///
    /// # Errors
    ///
    /// What the decision refuses with; or the journal takes no writes.
    ///
    /// # Panics
    ///
    /// If the decision does; the journal goes on.
    pub fn decide<T: Send + 'static, E: Send + 'static>(
        &self,
        decision: impl FnOnce(&State) -> Result<(Vec<Draft>, T), E> + Send + 'static,
    ) -> Result<(Vec<Entry>, T), DecideError<E>> {
        self.decide_with(Vec::new(), decision)
    }

    fn decide_with<T: Send + 'static, E: Send + 'static>(
        &self,
        results: Vec<u8>,
        decision: impl FnOnce(&State) -> Result<(Vec<Draft>, T), E> + Send + 'static,
    ) -> Result<(Vec<Entry>, T), DecideError<E>> {
        let (reply, answer) = sync_channel(1);
        // Only a panic takes the receiver away before it was answered.
        let request = Decision::request(decision, results, move |told| drop(reply.send(told)));
        self.request(request).map_err(DecideError::Unavailable)?;
        answer.recv().unwrap_or_else(|_| Err(DecideError::Unavailable(self.unanswered())))
    }

    fn request(&self, request: Request) -> Result<(), WriteError> {
        // The writer ends only with a failure noted, or closed.
        self.0.requests.send(request).map_err(|_| self.0.health.fail("its writer has ended"))
    }

    /// Why a request was dropped without an answer.
    fn unanswered(&self) -> WriteError {
        match self.0.health.failed() {
            Some(error) => error,
            None => panic!("a decision panicked in the journal's writer; standard error tells where"),
        }
    }

    /// Looks at the published state. Short: commits wait meanwhile.
    pub fn with_state<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        self.0.published.with_state(look)
    }

    /// A copy of the group's published state.
    pub fn group(&self, group: &Group) -> Option<GroupState> {
        self.with_state(|state| state.groups.get(group).cloned())
    }

    /// The newest published seq, to be watched.
    pub fn subscribe(&self) -> watch::Receiver<Seq> {
        self.0.published.subscribe()
    }

    /// Walks entries of a group, or of all, from `from` on in `order`, itself included, until `visit` breaks.
    pub fn visit_entries(
        &self,
        group: Option<&Group>,
        from: Seq,
        order: Order,
        visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.0.published.visit_entries(group, from, order, visit)
    }

    /// Walks the batches of a group from batch `from` on in `order`, itself included, until `visit` breaks.
    pub fn visit_batches(
        &self,
        group: &Group,
        from: BatchNumber,
        order: Order,
        visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.0.published.visit_batches(group, from, order, visit)
    }

    /// Walks the entries of a group that are no batches, newest first, until `visit` breaks: batches cost nothing.
    pub fn visit_others(
        &self,
        group: &Group,
        visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.0.published.visit_others(group, visit)
    }

    /// A part of the batches that read an offset, from seq `from` on in the question's order. Blocks that don't hold the
    /// offset are not decoded.
    pub fn readers(&self, question: &Question, from: Seq, portion: Portion) -> Result<Readings, ReadError> {
        self.0.published.readers(question, from, portion)
    }

    /// One entry.
    pub fn entry(&self, seq: Seq) -> Result<Option<Entry>, ReadError> {
        self.0.published.entry(seq)
    }

    /// One batch of a group.
    pub fn batch(&self, group: &Group, batch: BatchNumber) -> Result<Option<Entry>, ReadError> {
        self.0.published.batch(group, batch)
    }

    /// The group after its last entry at or before `seq`; none before its first.
    pub fn positions_as_of(&self, group: &Group, seq: Seq) -> Result<Option<AsOf>, ReadError> {
        self.0.published.positions_as_of(group, seq)
    }

    /// The last entry of the group, or of the journal, that was recorded at or before `time`.
    pub fn seq_at(&self, group: Option<&Group>, time: Timestamp) -> Result<Option<Seq>, ReadError> {
        self.0.published.seq_at(group, time)
    }

    /// The group's oldest entry that is kept.
    pub fn oldest(&self, group: &Group) -> Result<Option<Entry>, ReadError> {
        self.0.published.oldest(group)
    }

    /// Moves what the log holds into the store; returns when that is done.
    pub fn seal(&self) -> Result<(), WriteError> {
        let (reply, answer) = sync_channel(1);
        self.request(Request::Seal(reply))?;
        answer.recv().unwrap_or_else(|_| Err(self.unanswered()))
    }

    /// Seals and closes: all that was asked for is durable. What takes longer than 3 s to seal stays in the log, where the
    /// next open finds it. Other clones can only read from then on; the directory is free when the last of them is gone.
    ///
    /// # Errors
    ///
    /// What could not be sealed stays in the log, so nothing acknowledged is lost.
    pub fn close(self) -> Result<(), WriteError> {
        let (reply, answer) = sync_channel(1);
        let sealed = self.request(Request::Seal(reply)).and_then(|()| {
            let told = match answer.recv_timeout(SEAL_AT_CLOSE) {
                Err(RecvTimeoutError::Timeout) => {
                    self.0.stopping.store(true, Ordering::Relaxed);
                    // After the segment that is being sealed.
                    answer.recv()
                }
                told => told.map_err(|_| RecvError),
            };
            told.unwrap_or_else(|_| Err(self.unanswered()))
        });
        let ended = self.0.end();
        sealed.and(ended)
    }
}

/// The decision of a commit.
fn check(state: &State, commit: &Commit) -> Result<(Vec<Draft>, Option<Receipt>), Refused> {
    match commit::check(state, commit)? {
        Checked::Append(draft) => Ok((vec![draft], None)),
        Checked::Repeat(receipt) => Ok((Vec::new(), Some(receipt))),
    }
}

/// The receipt of what [`check`] decided.
fn receipt(decided: Decided<Option<Receipt>, Refused>) -> Result<Receipt, CommitError> {
    let (entries, repeated) = decided.map_err(|error| match error {
        DecideError::Refused(refused) => CommitError::Refused(refused),
        DecideError::Unavailable(WriteError::TooLarge { what, limit }) => {
            CommitError::Refused(Refused::TooLarge { what, limit })
        }
        DecideError::Unavailable(error) => CommitError::Unavailable(error),
    })?;
    if let Some(receipt) = repeated {
        return Ok(receipt);
    }
    match entries.into_iter().next() {
        Some(Entry { seq, recorded_at, body: Body::Batch(batch), .. }) => {
            Ok(Receipt { batch: batch.batch, seq, recorded_at, repeated: false, notes: batch.notes })
        }
        _ => unreachable!("an accepted commit appends a batch"),
    }
}

impl Inner {
    /// Ends the writer, all durable, and waits for it; an error if it could not be ended so.
    fn end(&self) -> Result<(), WriteError> {
        let Some(writer) = take(&self.writer) else { return Ok(()) };
        // It has ended by itself only after a panic.
        let _ = self.requests.send(Request::Stop);
        match join(writer) {
            Some(Ok(ended)) => ended,
            // From within a decision, which can't wait for itself to end.
            None => Ok(()),
            Some(Err(_)) => Err(self.health.fail("the writer panicked; standard error tells where")),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        if let Err(error) = self.end() {
            tracing::warn!(%error, "the journal was not closed cleanly");
        }
        if let Some(sealing) = take(&self.sealing) {
            let _ = join(sealing);
        }
    }
}

fn take<T>(thread: &Mutex<Option<JoinHandle<T>>>) -> Option<JoinHandle<T>> {
    thread.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Waits for a thread, unless it is this one.
fn join<T>(thread: JoinHandle<T>) -> Option<std::thread::Result<T>> {
    (thread.thread().id() != std::thread::current().id()).then(|| thread.join())
}
