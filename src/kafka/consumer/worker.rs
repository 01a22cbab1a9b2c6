//! The thread that reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::StopReason;
use super::batch::CutBatch;
use super::cutter::{BelowPlan, Cutter, Taken};
use super::handover::Handover;
use super::scout::{Assigned, Order, Report};
use super::steer::{Start, Steer};
use crate::journal::{Clock, CommitError, Journal};
use crate::kafka::raw::{Code, Event, Reader};
use crate::offset::{BatchNumber, Epoch, Group, Seq};

/// How long the thread waits for records, and so how late it may be for a stop or a rollback.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// The order of the fields matters: messages go before their client.
pub(super) struct Worker {
    pub(super) cutter: Cutter,
    pub(super) reader: Reader,
    pub(super) journal: Journal,
    pub(super) group: Group,
    pub(super) owner: String,
    pub(super) clock: Clock,
    pub(super) steer: Arc<Steer>,
    pub(super) handover: Arc<Handover>,
    pub(super) assigned: Assigned,
    pub(super) orders: Sender<Order>,
    pub(super) reports: Receiver<Report>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) newest: watch::Receiver<Seq>,
    pub(super) epoch: Epoch,
    pub(super) number: BatchNumber,
    pub(super) order: u64,
    pub(super) generation: u64,
    /// When a stopped partition is asked about again.
    pub(super) ask_again: Option<Instant>,
}

/// The thread ends, and says why.
pub(super) type Flow = Result<(), StopReason>;

impl Worker {
    /// Reads until it is stopped, or can't go on.
    pub(super) fn run(mut self, start: &Start) {
        let ended = self.adopt(start).and_then(|()| self.read());
        let _ = self.orders.send(Order::Stop);
        self.handover.end(ended.err().unwrap_or(StopReason::Stopped));
    }

    pub(super) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.handover.ended().is_some()
    }

    fn read(&mut self) -> Flow {
        let mut events = Vec::new();
        while !self.stopping() {
            if self.has_moved()? {
                self.restart()?;
            }
            while let Ok(report) = self.reports.try_recv() {
                self.apply(report)?;
            }
            if self.ask_again.is_some_and(|when| when <= Instant::now()) {
                self.ask_again = None;
                let _ = self.orders.send(Order::Look);
            }
            self.reader.poll(TICK, self.cutter.room().max(1), &mut events);
            let generation = self.generation;
            for event in events.drain(..) {
                self.take(event)?;
                if self.cutter.is_full() {
                    self.hand_over()?;
                }
                if self.generation != generation {
                    break; // What was polled before belongs to positions that are given up.
                }
            }
            events.clear();
            if self.cutter.is_due() {
                self.cut()?;
            }
        }
        Ok(())
    }

    fn take(&mut self, event: Event) -> Flow {
        match event {
            Event::Record(message) => {
                self.cutter.record(message).map_err(|BelowPlan { at, planned, delivered }| {
                    StopReason::Broken(format!(
                        "{at}: offset {delivered} was delivered, below {planned}, which is next"
                    ))
                })?;
            }
            Event::End(message) => {
                self.cutter.end(&message);
            }
            Event::NoPosition(message) => {
                if let Some(at) = self.cutter.stall(&message) {
                    tracing::warn!("{at}: offset {} is not on the broker; looking", message.offset());
                    let _ = self.orders.send(Order::Look);
                }
            }
            Event::Failed(message, code) => self.failed(&message, code),
        }
        Ok(())
    }

    fn failed(&self, message: &crate::kafka::raw::Message, code: Code) {
        let topic = message.topic();
        tracing::warn!("reading {topic}: {code}");
        self.handover.set_health(|health| health.reading_failed = Some(format!("{topic}: {code}")));
        if code.is_unknown() {
            let _ = self.orders.send(Order::Look);
        }
    }

    /// Whether positions are to be taken anew: the group has moved, as the journal's new entries say, or a commit was told
    /// that it is held.
    fn has_moved(&mut self) -> Result<bool, StopReason> {
        if !self.handover.is_current(self.generation) {
            return Ok(true);
        }
        if !self.newest.has_changed().unwrap_or(false) {
            return Ok(false);
        }
        self.newest.mark_unchanged();
        self.is_overtaken()
    }

    /// Whether the group moved on without this consumer; fails where another process has it.
    pub(super) fn is_overtaken(&self) -> Result<bool, StopReason> {
        let (epoch, owner, held) = self.journal.with_state(|state| {
            let group = state.groups.get(&self.group);
            group.map_or((self.epoch, None, false), |g| (g.epoch, g.owner.clone(), g.held.is_some()))
        });
        match owner {
            Some(owner) if owner != self.owner => Err(StopReason::Fenced { owner, epoch }),
            _ => Ok(epoch > self.epoch || held),
        }
    }

    /// Cuts what there is: a batch for others, or, where only markers were passed and all else is settled, a commit.
    pub(super) fn cut(&mut self) -> Flow {
        if self.cutter.has_records() {
            return self.hand_over();
        }
        if !self.handover.is_settled(self.generation) {
            return Ok(()); // The next batch takes them along.
        }
        let taken = self.cutter.take();
        if taken.ranges.is_empty() {
            return Ok(());
        }
        let cut = self.batch(taken);
        match self.journal.commit(cut.commit(&self.group)) {
            Ok(_) => Ok(()),
            // A refusal that is not the epoch's (a retired topic) may end: what was passed is kept for the next commit.
            Err(CommitError::Refused(refused)) => {
                tracing::debug!("committing passed markers: {refused}");
                if self.is_overtaken()? {
                    return self.restart();
                }
                self.number = cut.number.previous();
                self.cutter.give_back(&cut.ranges);
                Ok(())
            }
            Err(CommitError::Unavailable(error)) => Err(StopReason::Journal(error.to_string())),
        }
    }

    fn batch(&mut self, taken: Taken) -> Box<CutBatch> {
        self.order += 1;
        self.number = self.number.next();
        Box::new(CutBatch {
            order: self.order,
            generation: self.generation,
            number: self.number,
            epoch: self.epoch,
            batch_time: (self.clock)(),
            ranges: taken.ranges,
            topic_ids: taken.topic_ids,
            replaying: taken.replaying,
            records: taken.records,
        })
    }

    /// Puts a batch where the others take it, waiting for room; meanwhile a stop and a rollback are noticed.
    fn hand_over(&mut self) -> Flow {
        let taken = self.cutter.take();
        let mut cut = self.batch(taken);
        loop {
            match self.handover.offer(cut, TICK) {
                Ok(()) => return Ok(()),
                Err(again) => cut = again,
            }
            if self.stopping() {
                return Ok(());
            }
            if self.has_moved()? {
                drop(cut);
                return self.restart();
            }
        }
    }
}
