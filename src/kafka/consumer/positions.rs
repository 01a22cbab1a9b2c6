//! What the reading thread reads: positions taken anew after a move, and changed after a look.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::StopReason;
use super::scout::Report;
use super::steer::{Halt, Start};
use super::worker::{Flow, TICK, Worker};
use crate::kafka::raw::{Code, PartitionList};
use crate::message::{NAMED, few};
use crate::offset::{BatchNumber, Epoch, Offset, TopicPartition};
use crate::positions::{GroupState, RaisedBy};
use crate::reconcile::StartPosition;

/// The pause before what failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

impl Worker {
    /// Gives up what is read and not committed, and takes the new positions.
    pub(super) fn restart(&mut self) -> Flow {
        self.generation = self.handover.new_generation();
        self.cutter.restart(&[]);
        let failed = |code: Code| StopReason::Broken(format!("giving up partitions: {code}"));
        self.reader.unassign_all().map_err(failed)?;
        let mut told = None;
        loop {
            let seen = self.group_now();
            match self.steer.restart() {
                Ok(start) => {
                    self.handover.set_health(|health| health.waiting = None);
                    self.tell_move(&start);
                    return self.adopt(&start);
                }
                Err(Halt::Stop(reason)) => return Err(reason),
                Err(Halt::Later(why)) => {
                    if told.as_ref() != Some(&why) {
                        tracing::warn!("taking new positions: {why}");
                        told = Some(why.clone());
                    }
                    self.handover.set_health(|health| health.waiting = Some(why));
                }
            }
            let again = Instant::now() + RETRY;
            // What becomes of other groups is no reason to try sooner.
            while Instant::now() < again && self.group_now() == seen {
                if self.stopping() {
                    return Ok(());
                }
                std::thread::sleep(TICK);
            }
            // Another owner may have started meanwhile.
            self.is_overtaken()?;
        }
    }

    /// Says by whom the group was moved, and where reading goes on.
    fn tell_move(&self, start: &Start) {
        let raised_by = self.journal.with_state(|state| state.groups.get(&self.group)?.raised_by.clone());
        let by = raised_by.map_or_else(String::new, |RaisedBy { kind, seq, by }| {
            format!(" ({kind}{}, seq {seq})", by.map(|by| format!(" by {by}")).unwrap_or_default())
        });
        let places = start.starts.iter().map(|start| format!("{} {}", start.at, start.offset));
        let places = few(places, NAMED, ", ");
        tracing::warn!("group {} goes on under epoch {}{by} from {places}", self.group, start.epoch);
    }

    /// What decides whether the group may be taken up: its epoch, its owner, whether it is on hold.
    fn group_now(&self) -> Option<(Epoch, Option<String>, bool)> {
        let of = |group: &GroupState| (group.epoch, group.owner.clone(), group.held.is_some());
        self.journal.with_state(|state| state.groups.get(&self.group).map(of))
    }

    /// Reads from these positions, and from no others.
    pub(super) fn adopt(&mut self, start: &Start) -> Flow {
        self.cutter.restart(&start.starts);
        self.epoch = start.epoch;
        self.number = self
            .journal
            .with_state(|state| state.groups.get(&self.group).map_or(BatchNumber::ZERO, |group| group.positions.batch));
        for problem in &start.problems {
            tracing::error!("{problem}");
        }
        let failed = |code: Code| StopReason::Broken(format!("assigning partitions: {code}"));
        self.reader.assign(&list(start.starts.iter().map(|start| (&start.at, start.offset)))).map_err(failed)?;
        self.assigned_now();
        let (epoch, problems) = (self.epoch, start.problems.clone());
        self.handover.set_health(|health| (health.epoch, health.problems) = (epoch, problems));
        Ok(())
    }

    /// Takes in what a look found: it is journaled, now it is read.
    pub(super) fn apply(&mut self, Report { generation, found }: Report) -> Flow {
        let current = generation == self.generation && found.epoch == self.epoch;
        let moved = |start: &&StartPosition| match self.cutter.next(&start.at) {
            None => true,
            Some(next) => current && start.offset > next,
        };
        let starts: Vec<StartPosition> = found.starts.iter().filter(moved).cloned().collect();
        let mut resumed = self.cutter.stalled();
        resumed.retain(|(at, _)| !starts.iter().any(|start| start.at == *at));
        let stalled = resumed.len();
        // Of an older generation it says nothing about those that stopped; a policy may leave them where they are.
        resumed.retain(|(at, _)| current && !found.refused.contains(at));
        if resumed.len() < stalled {
            self.ask_again = Some(Instant::now() + RETRY);
        }
        if starts.is_empty() && resumed.is_empty() {
            return Ok(());
        }
        // What was read of them goes into a batch of its own, as their next range begins elsewhere.
        let generation = self.generation;
        self.cut()?;
        if self.generation != generation {
            return Ok(());
        }
        let old = starts.iter().filter(|start| self.cutter.next(&start.at).is_some());
        let old = list(old.map(|start| (&start.at, start.offset)).chain(resumed.iter().map(|(at, o)| (at, *o))));
        let failed = |code: Code| StopReason::Broken(format!("assigning partitions: {code}"));
        if !old.is_empty() {
            self.reader.remove(&old).map_err(failed)?;
        }
        let all = starts.iter().map(|start| (&start.at, start.offset)).chain(resumed.iter().map(|(at, o)| (at, *o)));
        self.reader.add(&list(all)).map_err(failed)?;
        // In range after all, or moved to where reading is already: on from there.
        resumed.iter().for_each(|(at, _)| self.cutter.resume(at));
        for start in &starts {
            self.cutter.begin(start);
            tracing::info!("{}: reading from {}", start.at, start.offset);
        }
        self.assigned_now();
        Ok(())
    }

    fn assigned_now(&self) {
        let assigned = self.cutter.assigned();
        *self.assigned.lock().unwrap_or_else(PoisonError::into_inner) = (self.generation, assigned);
    }
}

fn list<'a>(starts: impl Iterator<Item = (&'a TopicPartition, Offset)>) -> PartitionList {
    let mut list = PartitionList::with_capacity(starts.size_hint().0);
    starts.for_each(|(at, offset)| list.push_offset(at, offset));
    list
}
