//! Starts the group for a consumer, and looks after it while it is read.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::control::{self, Control, LookError, Looked, StartError, StartRequest, Started};
use crate::entry::Verdict;
use crate::kafka::{Start, StartAt, Steer, SteerError};
use crate::offset::{BatchNumber, TopicPartition};
use crate::reconcile::StartPosition;

/// Steers by [`crate::control`]. The start that was made already is the first one it gives.
pub struct Steering {
    control: Control,
    request: StartRequest,
    memory: Mutex<Memory>,
}

struct Memory {
    first: Option<Start>,
    /// The group's newest batch at the last look that left nothing open.
    undoubted: Option<BatchNumber>,
}

impl Steering {
    /// For a group that `started`.
    pub fn new(control: Control, request: StartRequest, started: &Started) -> Self {
        let memory = Memory { first: Some(start_of(started)), undoubted: None };
        Steering { control, request, memory: Mutex::new(memory) }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Steer for Steering {
    fn start(&self) -> Result<Start, SteerError> {
        let first = self.memory().first.take();
        match first {
            Some(first) => Ok(first),
            None => {
                let started = control::start(&self.control, self.request.clone()).map_err(why_no_start)?;
                crate::cli::start::tell(started.findings.iter());
                Ok(start_of(&started))
            }
        }
    }

    fn look(&self, assigned: &BTreeSet<TopicPartition>) -> Result<Start, SteerError> {
        let undoubted = self.memory().undoubted;
        let looked =
            control::look_while_running(&self.control, &self.request, assigned, undoubted).map_err(why_no_look)?;
        if looked.unsettled.is_empty() {
            self.memory().undoubted = Some(looked.batch);
        }
        // A topic that is gone stays so at each look: it is a problem of the consumer, which tells it once.
        crate::cli::start::tell(looked.findings.iter().filter(|f| f.verdict != Verdict::TopicMissing));
        Ok(start_of_look(&looked))
    }
}

fn start_of(started: &Started) -> Start {
    Start { epoch: started.epoch, starts: started.positions.iter().map(start_at).collect(), problems: Vec::new() }
}

fn start_of_look(looked: &Looked) -> Start {
    let missing = looked.findings.iter().filter(|finding| finding.verdict == Verdict::TopicMissing);
    let missing = missing.map(crate::cli::start::finding_text);
    let unsettled = looked.unsettled.iter().map(ToString::to_string);
    Start {
        epoch: looked.epoch,
        starts: looked.positions.iter().map(start_at).collect(),
        problems: missing.chain(unsettled).collect(),
    }
}

fn start_at(start: &StartPosition) -> StartAt {
    StartAt {
        at: start.at.clone(),
        topic_id: start.topic_id,
        offset: start.offset,
        replaying_until: start.replaying_until,
    }
}

fn why_no_start(error: StartError) -> SteerError {
    match error {
        StartError::Held { .. } => SteerError::Held(error.to_string()),
        StartError::BrokerUnavailable { .. } => SteerError::Unavailable(error.to_string()),
        StartError::Refused { .. } | StartError::Invalid(_) | StartError::Unavailable(_) => {
            SteerError::Refused(error.to_string())
        }
    }
}

fn why_no_look(error: LookError) -> SteerError {
    match error {
        LookError::Start(error) => why_no_start(error),
        LookError::Fenced { .. } | LookError::UnknownGroup(_) => SteerError::Refused(error.to_string()),
    }
}
