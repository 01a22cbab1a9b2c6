//! What readers see: entries that are durable, in the state, in the unsealed tail and in the store. Each is published
//! after it is durable, and nowhere earlier.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

use super::codec::CodecError;
use super::store::{Portion, Question, Readings, Store, StoreError};
use super::tail::{Kinds, Tail, Walk};
use super::{AsOf, Order, ReadError};
use crate::entry::{Body, Entry};
use crate::offset::{BatchNumber, Group, Seq, Timestamp};
use crate::positions::State;

/// Entries of the tail that are decoded at once: the writer waits for a reader that long at most.
const CHUNK: usize = 256;

/// Calls of a visitor: whether to go on.
pub type Visit<'a> = &'a mut dyn FnMut(Entry) -> ControlFlow<()>;

/// The published journal.
pub struct Published {
    memory: RwLock<Memory>,
    store: Store,
    newest: watch::Sender<Seq>,
    dir: PathBuf,
}

struct Memory {
    state: State,
    tail: Tail,
}

impl Published {
    /// What is there after recovery.
    pub fn new(dir: PathBuf, state: State, tail: Tail, store: Store) -> Self {
        let newest = watch::Sender::new(state.seq);
        Published { memory: RwLock::new(Memory { state, tail }), store, newest, dir }
    }

    fn memory(&self) -> RwLockReadGuard<'_, Memory> {
        self.memory.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory_mut(&self) -> RwLockWriteGuard<'_, Memory> {
        self.memory.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes durable entries, each with its record; readers and watchers see all of them at once.
    pub fn publish<'a>(&self, entries: impl Iterator<Item = (&'a Entry, &'a [u8])>) -> Result<(), CodecError> {
        let mut memory = self.memory_mut();
        let Memory { state, tail } = &mut *memory;
        for (entry, record) in entries {
            state.apply(entry);
            tail.push(entry, record, entry.group.as_ref().and_then(|group| state.groups.get(group)))?;
        }
        let newest = state.seq;
        drop(memory);
        self.newest.send_replace(newest);
        Ok(())
    }

    /// From the next entry on another segment of the log is meant.
    pub fn begin_segment(&self) {
        self.memory_mut().tail.begin_segment();
    }

    /// Lets the tail go up to `sealed`, which the store has by now.
    pub fn forget(&self, sealed: Seq) {
        self.memory_mut().tail.forget(sealed);
    }

    /// The newest published seq, to be watched.
    pub fn subscribe(&self) -> watch::Receiver<Seq> {
        self.newest.subscribe()
    }

    /// Looks at the state.
    pub fn with_state<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.memory().state)
    }

    /// Walks entries of a group, or of all, from `from` on in `order`, itself included, until `visit` breaks.
    pub fn visit_entries(
        &self,
        group: Option<&Group>,
        from: Seq,
        order: Order,
        visit: Visit<'_>,
    ) -> Result<(), ReadError> {
        match order {
            Order::Ascending => self.ascend(group, from, visit),
            Order::Descending => {
                let walk = Walk { group, from, order, kinds: Kinds::All };
                let Some(below) = self.descend_tail(walk, visit)? else { return Ok(()) };
                self.store.visit_entries(group, from.min(below), order, visit).map_err(|error| self.sealed_error(error))
            }
        }
    }

    /// Walks the batches of a group from batch `from` on in `order` until `visit` breaks.
    pub fn visit_batches(
        &self,
        group: &Group,
        from: BatchNumber,
        order: Order,
        visit: Visit<'_>,
    ) -> Result<(), ReadError> {
        let wanted = |entry: &Entry| match &entry.body {
            Body::Batch(batch) => match order {
                Order::Ascending => batch.batch >= from,
                Order::Descending => batch.batch <= from,
            },
            _ => false,
        };
        let mut filtered = |entry: Entry| if wanted(&entry) { visit(entry) } else { ControlFlow::Continue(()) };
        match order {
            Order::Ascending => {
                // Without the batch among what is sealed now, it is above it.
                let mut next = self.store.sealed().next();
                let mut done = false;
                let visited = self.store.visit_batches(group, from, order, &mut |entry| {
                    next = next.max(entry.seq.next());
                    let flow = filtered(entry);
                    done = flow.is_break();
                    flow
                });
                visited.map_err(|error| self.sealed_error(error))?;
                if done {
                    return Ok(());
                }
                // What was sealed meanwhile is walked in the store by `ascend`, what was not, in the tail.
                let near = next.max(self.memory().tail.near_batch(group, from, order));
                self.ascend(Some(group), near, &mut filtered)
            }
            Order::Descending => {
                let near = self.memory().tail.near_batch(group, from, order);
                let walk = Walk { group: Some(group), from: near, order, kinds: Kinds::Batches };
                let mut below = from;
                let in_tail = self.descend_tail(walk, &mut |entry| {
                    if let Body::Batch(batch) = &entry.body {
                        // What is sealed meanwhile is not walked twice.
                        below = below.min(BatchNumber::ZERO.plus(batch.batch.since(BatchNumber::ZERO.next())));
                    }
                    filtered(entry)
                })?;
                if in_tail.is_none() || below == BatchNumber::ZERO {
                    return Ok(());
                }
                let visited = self.store.visit_batches(group, below, order, visit);
                visited.map_err(|error| self.sealed_error(error))
            }
        }
    }

    /// Walks the entries of a group that are no batches, newest first, until `visit` breaks.
    pub fn visit_others(&self, group: &Group, visit: Visit<'_>) -> Result<(), ReadError> {
        let walk = Walk { group: Some(group), from: Seq::MAX, order: Order::Descending, kinds: Kinds::Others };
        let Some(below) = self.descend_tail(walk, visit)? else { return Ok(()) };
        self.store.visit_others(group, below, visit).map_err(|error| self.sealed_error(error))
    }

    /// A part of the batches that read an offset, from `from` on in the question's order.
    pub fn readers(&self, question: &Question, from: Seq, portion: Portion) -> Result<Readings, ReadError> {
        let mut found = Readings { next: Some(from), ..Readings::default() };
        while let Some(next) = found.next {
            let first = {
                let memory = self.memory();
                let first = memory.tail.first();
                if question.order == Order::Descending || next >= first {
                    self.decoded(memory.tail.readers(question, next, portion, &mut found))?;
                }
                first
            };
            match question.order {
                // What the tail has let go.
                Order::Ascending if next < first => {
                    self.sealed_readers(question, next, portion, &mut found)?;
                    // What was sealed meanwhile is walked from `first` on.
                    found.readings.retain(|reading| reading.seq < first);
                    found.next = Some(found.next.map_or(first, |next| next.min(first)));
                }
                Order::Descending if found.next.is_none() && first > Seq::ZERO.next() => {
                    self.sealed_readers(question, next.min(first.previous()), portion, &mut found)?;
                }
                Order::Ascending | Order::Descending => {}
            }
            if found.is_enough(portion) {
                break;
            }
        }
        Ok(found)
    }

    /// One entry.
    pub fn entry(&self, seq: Seq) -> Result<Option<Entry>, ReadError> {
        let mut found = None;
        if seq > Seq::ZERO {
            self.visit_entries(None, seq, Order::Ascending, &mut |entry| {
                found = Some(entry);
                ControlFlow::Break(())
            })?;
        }
        Ok(found.filter(|entry| entry.seq == seq))
    }

    /// One batch of a group.
    pub fn batch(&self, group: &Group, batch: BatchNumber) -> Result<Option<Entry>, ReadError> {
        let mut found = None;
        self.visit_batches(group, batch, Order::Ascending, &mut |entry| {
            found = Some(entry);
            ControlFlow::Break(())
        })?;
        Ok(found.filter(|entry| matches!(&entry.body, Body::Batch(found) if found.batch == batch)))
    }

    /// The group after its last entry at or before `seq`; none before its first.
    pub fn positions_as_of(&self, group: &Group, seq: Seq) -> Result<Option<AsOf>, ReadError> {
        // Read first: the store answers for all that is sealed by now.
        let sealed = self.store.sealed();
        let snapshot = self.memory().tail.snapshot(group, seq);
        let (mut as_of, next) = match snapshot {
            // What follows it may be sealed by now, and is folded all the same.
            Some(snapshot) => {
                let next = snapshot.seq.next();
                (Some(snapshot), next)
            }
            None => {
                let sealed_part = self.store.positions_as_of(group, seq).map_err(|error| self.sealed_error(error))?;
                if seq <= sealed {
                    return Ok(sealed_part);
                }
                let next = sealed_part.as_ref().map_or(Seq::ZERO, |as_of| as_of.seq).max(sealed).next();
                (sealed_part, next)
            }
        };
        self.ascend(Some(group), next, &mut |entry| {
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

    /// The last entry of the group, or of all, that was recorded at or before `time`.
    pub fn seq_at(&self, group: Option<&Group>, time: Timestamp) -> Result<Option<Seq>, ReadError> {
        if let Some(seq) = self.memory().tail.seq_at(group, time) {
            return Ok(Some(seq));
        }
        self.store.seq_at(group, time).map_err(|error| self.sealed_error(error))
    }

    /// The group's oldest entry that is kept.
    pub fn oldest(&self, group: &Group) -> Result<Option<Entry>, ReadError> {
        let mut found = None;
        self.ascend(Some(group), Seq::ZERO, &mut |entry| {
            found = Some(entry);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// The group's result under `key` after its last batch at or before `upto`.
    pub fn result(&self, group: &Group, key: &[u8], upto: Seq) -> Result<Option<Vec<u8>>, ReadError> {
        // What the tail has let go by now is in the store.
        if let Some(found) = self.memory().tail.result(group, key, upto) {
            return Ok(found);
        }
        self.store.result(group, key, upto).map_err(|error| self.sealed_error(error))
    }

    /// The results of the group after its last batch at or before `upto`, from the key `from` on, in order, as long as `visit`
    /// wants; each key at which a batch ever put or removed one, with none where nothing stands.
    pub fn visit_results(
        &self,
        group: &Group,
        from: &[u8],
        upto: Seq,
        visit: &mut dyn FnMut(Vec<u8>, Option<Vec<u8>>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let sealed_error = |error| self.sealed_error(error);
        let mut from = from.to_vec();
        'walk: loop {
            let mut sealed = self.store.results(group, &from).map_err(sealed_error)?;
            loop {
                let in_tail = self.memory().tail.result_from(group, &from);
                let key = in_tail.as_deref().into_iter().chain(sealed.key()).min().map(<[u8]>::to_vec);
                let value = key.as_deref().map(|key| {
                    // Commits wait while the memory is held.
                    let in_tail = self.memory().tail.result(group, key, upto);
                    match in_tail {
                        Some(value) => Ok(value),
                        None if sealed.key() == Some(key) => sealed.value(upto),
                        None => Ok(None),
                    }
                });
                // What the tail has let go by now is in the store, but not in this walk over it.
                if !sealed.is_current() {
                    continue 'walk;
                }
                let Some((key, value)) = key.zip(value) else { return Ok(()) };
                from.clone_from(&key);
                from.push(0); // the very next key in order
                let here = sealed.key() == Some(&key);
                if visit(key, value.map_err(sealed_error)?).is_break() {
                    return Ok(());
                }
                let advanced = if here { sealed.advance() } else { Ok(()) };
                if !sealed.is_current() {
                    continue 'walk;
                }
                advanced.map_err(sealed_error)?;
            }
        }
    }

    /// From `next` up: in the store as far as the tail does not reach, then in the tail.
    fn ascend(&self, group: Option<&Group>, mut next: Seq, visit: Visit<'_>) -> Result<(), ReadError> {
        loop {
            let (first, chunk) = {
                let memory = self.memory();
                let first = memory.tail.first();
                let walk = Walk { group, from: next, order: Order::Ascending, kinds: Kinds::All };
                // What the tail has let go is in the store.
                let chunk = if next < first { Vec::new() } else { self.decoded(memory.tail.read(walk, CHUNK))? };
                (first, chunk)
            };
            if next < first {
                let mut done = false;
                let visited = self.store.visit_entries(group, next, Order::Ascending, &mut |entry| {
                    if entry.seq >= first {
                        return ControlFlow::Break(());
                    }
                    let flow = visit(entry);
                    done = flow.is_break();
                    flow
                });
                visited.map_err(|error| self.sealed_error(error))?;
                if done {
                    return Ok(());
                }
                next = first;
                continue;
            }
            let full = chunk.len() == CHUNK;
            for entry in chunk {
                next = entry.seq.next();
                if visit(entry).is_break() {
                    return Ok(());
                }
            }
            if !full {
                return Ok(());
            }
        }
    }

    /// Down the tail; the seq below it, from where the store goes on, or none if `visit` broke.
    fn descend_tail(&self, mut walk: Walk<'_>, visit: Visit<'_>) -> Result<Option<Seq>, ReadError> {
        loop {
            let (first, chunk) = {
                let memory = self.memory();
                (memory.tail.first(), self.decoded(memory.tail.read(walk, CHUNK))?)
            };
            let full = chunk.len() == CHUNK;
            for entry in chunk {
                walk.from = Seq::ZERO.plus(entry.seq.since(Seq::ZERO.next()));
                if visit(entry).is_break() {
                    return Ok(None);
                }
            }
            if !full {
                let below = Seq::ZERO.plus(first.since(Seq::ZERO.next()));
                return Ok(Some(below.min(walk.from)));
            }
        }
    }

    fn sealed_readers(
        &self,
        question: &Question,
        from: Seq,
        portion: Portion,
        found: &mut Readings,
    ) -> Result<(), ReadError> {
        self.store.readers(question, from, portion, found).map_err(|error| self.sealed_error(error))
    }

    fn decoded<T>(&self, read: Result<T, CodecError>) -> Result<T, ReadError> {
        read.map_err(|error| {
            let why = format!("an entry that is not sealed yet: {error}").into();
            ReadError { file: self.dir.join("wal"), why, seq: None }
        })
    }

    fn sealed_error(&self, error: StoreError) -> ReadError {
        let seq = match &error {
            StoreError::Damaged { seqs, .. } => seqs.map(|(first, _)| first),
            _ => None,
        };
        ReadError { file: self.dir.join("sled"), why: error.to_string().into(), seq }
    }
}
