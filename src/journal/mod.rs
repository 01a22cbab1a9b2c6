//! STAND-IN: the journal's public face over memory, so that the layers above can be written while the journal is.

mod codec;
mod error;
mod lock;
mod tail;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

pub use self::error::{CommitError, DecideError, OpenError, ReadError, WriteError};
use crate::commit::{self, Checked, Commit, Receipt};
use crate::entry::{Body, Draft, Entry};
use crate::offset::{BatchNumber, Group, Seq, Timestamp};
use crate::positions::{GroupState, Positions, State};

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
/// Called by name at each step that a test may want to die at.
pub type CrashHook = Arc<dyn Fn(&'static str) + Send + Sync>;

/// When a receipt is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// After the entry is on the device.
    #[default]
    Fsync,
    /// After it was handed to the system: survives a killed process only.
    Process,
    /// Likewise, and the device is asked every so often.
    Interval(Duration),
}

/// How to open a journal.
#[derive(Clone)]
pub struct Options {
    /// Whether one is made where there is none.
    pub create: bool,
    /// When a receipt is sent.
    pub durability: Durability,
    /// Size of a segment of the write-ahead log, in bytes.
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

/// The direction of a walk through history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Oldest first.
    Ascending,
    /// Newest first.
    Descending,
}

/// A group as it was.
#[derive(Debug, Clone, PartialEq)]
pub struct AsOf {
    /// The group's last entry then.
    pub seq: Seq,
    /// When that was recorded.
    pub recorded_at: Timestamp,
    /// The positions after it.
    pub positions: Positions,
}

/// The journal. Clones share it.
#[derive(Clone)]
pub struct Journal(Arc<Inner>);

struct Inner {
    memory: Mutex<(State, Vec<Entry>)>,
    options: Options,
    newest: watch::Sender<Seq>,
}

impl Journal {
    /// Opens the journal in `dir`.
    pub fn open(_dir: &Path, options: Options) -> Result<Journal, OpenError> {
        let newest = watch::Sender::new(Seq::ZERO);
        Ok(Journal(Arc::new(Inner { memory: Mutex::default(), options, newest })))
    }

    /// Whether this open made the journal.
    pub fn created(&self) -> bool {
        true
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, (State, Vec<Entry>)> {
        self.0.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits a batch; returns when it is durable.
    pub fn commit(&self, commit: Commit) -> Result<Receipt, CommitError> {
        let decided = self.decide(move |state| match commit::check(state, &commit)? {
            Checked::Append(draft) => Ok((vec![draft], None)),
            Checked::Repeat(receipt) => Ok((Vec::new(), Some(receipt))),
        });
        match decided {
            Ok((_, Some(receipt))) => Ok(receipt),
            Ok((entries, None)) => {
                let Some(Entry { seq, recorded_at, body: Body::Batch(batch), .. }) = entries.first() else {
                    unreachable!("an accepted commit appends a batch")
                };
                let (batch, notes) = (batch.batch, batch.notes.clone());
                Ok(Receipt { batch, seq: *seq, recorded_at: *recorded_at, repeated: false, notes })
            }
            Err(DecideError::Refused(refused)) => Err(CommitError::Refused(refused)),
            Err(DecideError::Unavailable(error)) => Err(CommitError::Unavailable(error)),
        }
    }

    /// Commits a batch without blocking the thread.
    pub async fn commit_async(&self, commit: Commit) -> Result<Receipt, CommitError> {
        self.commit(commit)
    }

    /// Runs a pure decision in the writer thread on the pending state and appends what it returns, all or none; returns
    /// when it is durable.
    pub fn decide<T: Send + 'static, E: Send + 'static>(
        &self,
        decision: impl FnOnce(&State) -> Result<(Vec<Draft>, T), E> + Send + 'static,
    ) -> Result<(Vec<Entry>, T), DecideError<E>> {
        let mut memory = self.memory();
        let (state, entries) = &mut *memory;
        let (drafts, value) = decision(state).map_err(DecideError::Refused)?;
        let mut appended = Vec::new();
        for Draft { group, epoch, body } in drafts {
            let machine_clock = (self.0.options.clock)();
            let recorded_at = machine_clock.max(state.recorded_at);
            let entry = Entry { seq: state.seq.next(), recorded_at, machine_clock, group, epoch, body };
            state.apply(&entry);
            entries.push(entry.clone());
            appended.push(entry);
        }
        self.0.newest.send_replace(state.seq);
        Ok((appended, value))
    }

    /// Looks at the published state.
    pub fn with_state<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.memory().0)
    }

    /// A copy of the group's published state.
    pub fn group(&self, group: &Group) -> Option<GroupState> {
        self.with_state(|state| state.groups.get(group).cloned())
    }

    /// The newest published seq, to be watched.
    pub fn subscribe(&self) -> watch::Receiver<Seq> {
        self.0.newest.subscribe()
    }

    /// Walks entries of a group, or of all, from `from` on in `order` (both ends included) until `visit` breaks.
    pub fn visit_entries(
        &self,
        group: Option<&Group>,
        from: Seq,
        order: Order,
        visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let mut chosen: Vec<Entry> = self.memory().1.clone();
        chosen.retain(|entry| group.is_none() || entry.group.as_ref() == group);
        match order {
            Order::Ascending => chosen.retain(|entry| entry.seq >= from),
            Order::Descending => {
                chosen.retain(|entry| entry.seq <= from);
                chosen.reverse();
            }
        }
        let _ = chosen.into_iter().try_for_each(visit);
        Ok(())
    }

    /// Walks the batches of a group from batch `from` on in `order` until `visit` breaks.
    pub fn visit_batches(
        &self,
        group: &Group,
        from: BatchNumber,
        order: Order,
        visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let start = match order {
            Order::Ascending => Seq::ZERO,
            Order::Descending => Seq::MAX,
        };
        self.visit_entries(Some(group), start, order, &mut |entry| match &entry.body {
            Body::Batch(batch) if order == Order::Ascending && batch.batch >= from => visit(entry),
            Body::Batch(batch) if order == Order::Descending && batch.batch <= from => visit(entry),
            _ => ControlFlow::Continue(()),
        })
    }

    /// One entry.
    pub fn entry(&self, seq: Seq) -> Result<Option<Entry>, ReadError> {
        Ok(self.memory().1.iter().find(|entry| entry.seq == seq).cloned())
    }

    /// One batch of a group.
    pub fn batch(&self, group: &Group, batch: BatchNumber) -> Result<Option<Entry>, ReadError> {
        let mut found = None;
        self.visit_batches(group, batch, Order::Ascending, &mut |entry| {
            found = Some(entry);
            ControlFlow::Break(())
        })?;
        Ok(found.filter(|entry| matches!(&entry.body, Body::Batch(b) if b.batch == batch)))
    }

    /// The group after its last entry at or before `seq`; none before its first.
    pub fn positions_as_of(&self, group: &Group, seq: Seq) -> Result<Option<AsOf>, ReadError> {
        let mut as_of: Option<AsOf> = None;
        self.visit_entries(Some(group), Seq::ZERO, Order::Ascending, &mut |entry| {
            if entry.seq > seq {
                return ControlFlow::Break(());
            }
            let mut positions = as_of.take().map(|as_of| as_of.positions).unwrap_or_default();
            positions.apply(&entry);
            as_of = Some(AsOf { seq: entry.seq, recorded_at: entry.recorded_at, positions });
            ControlFlow::Continue(())
        })?;
        Ok(as_of)
    }

    /// The last entry of the group, or of the journal, that was recorded at or before `time`.
    pub fn seq_at(&self, group: Option<&Group>, time: Timestamp) -> Result<Option<Seq>, ReadError> {
        let mut found = None;
        self.visit_entries(group, Seq::MAX, Order::Descending, &mut |entry| {
            if entry.recorded_at > time {
                return ControlFlow::Continue(());
            }
            found = Some(entry.seq);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// The group's oldest entry that is kept.
    pub fn oldest(&self, group: &Group) -> Result<Option<Entry>, ReadError> {
        let mut found = None;
        self.visit_entries(Some(group), Seq::ZERO, Order::Ascending, &mut |entry| {
            found = Some(entry);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Moves what the log holds into the store.
    pub fn seal(&self) -> Result<(), WriteError> {
        Ok(())
    }

    /// Seals and closes; clones that are left can only read.
    pub fn close(self) -> Result<(), WriteError> {
        Ok(())
    }
}
