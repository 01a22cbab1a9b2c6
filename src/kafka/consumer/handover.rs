//! Between the thread that reads and those that process: a few batches that are ready, those that came back, and how the
//! consumer is.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::batch::{Batch, CutBatch};
use super::{Health, StopReason};

/// Batches that are ready ahead: one is processed, one waits; librdkafka's own queue holds what comes after.
const AHEAD: usize = 2;

#[derive(Default)]
struct State {
    /// Raised when the positions are taken anew: batches of an older one are dropped.
    generation: u64,
    ready: BTreeMap<u64, Box<CutBatch>>,
    in_hand: usize,
    end: Option<StopReason>,
    health: Health,
}

/// The place where batches change hands.
#[derive(Default)]
pub(super) struct Handover {
    state: Mutex<State>,
    /// Something is ready, or it is the end.
    ready: Condvar,
    /// There is room, or another generation.
    room: Condvar,
    notify: Notify,
}

impl Handover {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offers a batch, waiting at most `wait` for room; gives it back if there is none.
    pub(super) fn offer(&self, cut: Box<CutBatch>, wait: Duration) -> Result<(), Box<CutBatch>> {
        let state = self.state();
        let (mut state, _) = self
            .room
            .wait_timeout_while(state, wait, |state| state.ready.len() >= AHEAD)
            .unwrap_or_else(PoisonError::into_inner);
        if cut.generation != state.generation {
            return Ok(());
        }
        if state.ready.len() >= AHEAD {
            return Err(cut);
        }
        state.ready.insert(cut.order, cut);
        drop(state);
        self.announce();
        Ok(())
    }

    /// The next batch, if one is ready.
    pub(super) fn take(self: &Arc<Self>) -> Result<Option<Batch>, StopReason> {
        let mut state = self.state();
        if let Some(end) = &state.end {
            return Err(end.clone());
        }
        let taken = state.ready.pop_first();
        state.in_hand += usize::from(taken.is_some());
        drop(state);
        self.room.notify_all();
        Ok(taken.map(|(_, cut)| Batch::new(cut, Arc::clone(self))))
    }

    /// The next batch, waiting at most `timeout`.
    pub(super) fn take_within(self: &Arc<Self>, timeout: Duration) -> Result<Option<Batch>, StopReason> {
        let until = Instant::now() + timeout;
        loop {
            if let Some(batch) = self.take()? {
                return Ok(Some(batch));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let waited = self
                .ready
                .wait_timeout_while(self.state(), left, |state| state.ready.is_empty() && state.end.is_none());
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// The next batch, whenever it comes.
    pub(super) async fn taken(self: &Arc<Self>) -> Result<Batch, StopReason> {
        loop {
            let announced = self.notify.notified();
            if let Some(batch) = self.take()? {
                return Ok(batch);
            }
            announced.await;
        }
    }

    /// A batch that nobody committed: it is handed out again, before later ones.
    pub(super) fn give_back(&self, cut: Box<CutBatch>) {
        let mut state = self.state();
        if cut.generation != state.generation {
            return;
        }
        state.in_hand = state.in_hand.saturating_sub(1);
        state.ready.insert(cut.order, cut);
        drop(state);
        self.announce();
    }

    /// A batch was committed, or refused for good.
    pub(super) fn done(&self, generation: u64) {
        let mut state = self.state();
        if generation == state.generation {
            state.in_hand = state.in_hand.saturating_sub(1);
        }
    }

    /// Whether all that was cut in this generation is committed.
    pub(super) fn is_settled(&self, generation: u64) -> bool {
        let state = self.state();
        generation == state.generation && state.in_hand == 0 && state.ready.is_empty()
    }

    /// Whether batches of this generation can still be committed.
    pub(super) fn is_current(&self, generation: u64) -> bool {
        generation == self.state().generation
    }

    /// Gives up a generation, if it still is the present one: the reading thread takes positions anew.
    pub(super) fn give_up(&self, generation: u64) {
        let state = self.state();
        if generation == state.generation {
            self.raise_generation(state);
        }
    }

    /// Drops what is ready, and will drop what is in hands: positions are taken anew.
    pub(super) fn new_generation(&self) -> u64 {
        self.raise_generation(self.state())
    }

    fn raise_generation(&self, mut state: MutexGuard<'_, State>) -> u64 {
        state.generation += 1;
        state.in_hand = 0;
        let dropped = std::mem::take(&mut state.ready);
        let generation = state.generation;
        drop(state);
        drop(dropped);
        self.room.notify_all();
        generation
    }

    /// Says why there will be no more batches; the first reason stays.
    pub(super) fn end(&self, reason: StopReason) {
        let mut state = self.state();
        state.end.get_or_insert(reason);
        let dropped = std::mem::take(&mut state.ready);
        drop(state);
        drop(dropped);
        self.room.notify_all();
        self.announce();
    }

    /// Why there are no more batches.
    pub(super) fn ended(&self) -> Option<StopReason> {
        self.state().end.clone()
    }

    pub(super) fn health(&self) -> Health {
        self.state().health.clone()
    }

    pub(super) fn set_health(&self, change: impl FnOnce(&mut Health)) {
        change(&mut self.state().health);
    }

    fn announce(&self) {
        self.ready.notify_all();
        // As many may wait as there are tasks; those that find nothing wait again.
        self.notify.notify_waiters();
        self.notify.notify_one();
    }
}
