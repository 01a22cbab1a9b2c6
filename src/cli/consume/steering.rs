//! Starts the group for a consumer, and looks after it while it is read.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::cli::standin::{self, StartError, StartRequest, Started};
use crate::control::Control;
use crate::kafka::{Start, StartAt, Steer, SteerError};
use crate::offset::TopicPartition;

/// Steers by [`crate::control`]. The start that was made already is the first one it gives.
pub struct Steering {
    control: Control,
    request: StartRequest,
    first: Mutex<Option<Start>>,
}

impl Steering {
    /// For a group that `started`.
    pub fn new(control: Control, request: StartRequest, started: &Started) -> Self {
        Steering { control, request, first: Mutex::new(Some(start_of(started))) }
    }
}

impl Steer for Steering {
    fn start(&self) -> Result<Start, SteerError> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        match first {
            Some(first) => Ok(first),
            None => standin::start(&self.control, self.request.clone()).map(|started| start_of(&started)).map_err(why),
        }
    }

    fn look(&self, assigned: &BTreeSet<TopicPartition>) -> Result<Start, SteerError> {
        standin::look(&self.control, &self.request, assigned).map(|looked| start_of(&looked)).map_err(why)
    }
}

fn start_of(started: &Started) -> Start {
    let at = |start: &crate::reconcile::StartPosition| StartAt {
        at: start.at.clone(),
        topic_id: start.topic_id,
        offset: start.offset,
        replaying_until: start.replaying_until,
    };
    Start { epoch: started.epoch, starts: started.positions.iter().map(at).collect(), problems: Vec::new() }
}

fn why(error: StartError) -> SteerError {
    match error {
        StartError::Held => SteerError::Held(error.to_string()),
        StartError::BrokerUnavailable(_) => SteerError::Unavailable(error.to_string()),
        StartError::Invalid(_) | StartError::Refused(_) | StartError::Read(_) | StartError::Write(_) => {
            SteerError::Refused(error.to_string())
        }
    }
}
