//! Looks at the broker beside the reading: at every interval, and at once when a partition has stopped.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Discovery;
use super::handover::Handover;
use super::steer::{Halt, Start, Steer};
use crate::journal::Clock;
use crate::offset::TopicPartition;

/// Looks that are asked for at once come at most this often.
const AT_ONCE_PAUSE: Duration = Duration::from_millis(500);

/// What the reading thread tells the scout.
pub(super) enum Order {
    /// Look now.
    Look,
    /// End.
    Stop,
}

/// What a look brought, and for which generation of positions.
pub(super) struct Report {
    pub(super) generation: u64,
    pub(super) found: Start,
}

/// What is assigned, in which generation.
pub(super) type Assigned = Arc<Mutex<(u64, BTreeSet<TopicPartition>)>>;

pub(super) struct Scout {
    pub(super) steer: Arc<Steer>,
    pub(super) discovery: Discovery,
    pub(super) clock: Clock,
    pub(super) assigned: Assigned,
    pub(super) handover: Arc<Handover>,
    pub(super) orders: Receiver<Order>,
    pub(super) reports: Sender<Report>,
}

impl Scout {
    /// Looks until it is told to stop.
    pub(super) fn run(self) {
        let mut newest = Instant::now();
        loop {
            let order = match self.discovery {
                Discovery::Off => self.orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Discovery::Every(interval) => self.orders.recv_timeout(interval.saturating_sub(newest.elapsed())),
            };
            match order {
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Order::Look) => std::thread::sleep(AT_ONCE_PAUSE.saturating_sub(newest.elapsed())),
                Err(RecvTimeoutError::Timeout) => {}
            }
            newest = Instant::now();
            if !self.look() {
                return;
            }
        }
    }

    /// Looks once; whether to go on.
    fn look(&self) -> bool {
        let (generation, assigned) = self.assigned.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match self.steer.look(&assigned) {
            Ok(found) => {
                for problem in &found.problems {
                    tracing::error!("{problem}");
                }
                let (now, problems) = ((self.clock)(), found.problems.clone());
                self.handover.set_health(|health| {
                    health.last_look = Some(now);
                    health.look_failed = None;
                    health.problems = problems;
                });
                self.reports.send(Report { generation, found }).is_ok()
            }
            Err(Halt::Stop(reason)) => {
                self.handover.end(reason);
                false
            }
            Err(Halt::Later(why)) => {
                tracing::warn!("looking at the broker: {why}");
                self.handover.set_health(|health| health.look_failed = Some(why));
                // Nothing is known of those that stopped: the reading thread asks again.
                let found = Start::default();
                self.reports.send(Report { generation: u64::MAX, found }).is_ok()
            }
        }
    }
}
