//! Questions to the coordinators of groups, each on a client that has no other question meanwhile.
//!
//! librdkafka 2.12 ends the process (`eonce->refcnt > 0`) where such a question times out before the coordinator is connected
//! to, once it is: the question was forgotten, the request for its coordinator was not. So librdkafka is told of no time-out
//! that could pass, and a question that is given up takes its client with it, before the coordinator is there. For the same
//! reason what was given up is never done later, after what was asked since.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::raw::{Code, Handle};
use super::{ClientConfig, ClientError};

/// The clients' own group, which is never joined and never committed to. Without one librdkafka 2.12 ends the process when a
/// group's coordinator answers a question about committed offsets that it is none (`rd_kafka_handle_OffsetFetch`).
const NO_GROUP: &str = "tidelog";
/// The pause before asking again.
const PAUSE: Duration = Duration::from_millis(100);
/// Clients that are kept for the next question. Questions at the same time are few, and each client has its connections.
const IDLE: usize = 2;

/// The coordinators of a cluster's groups.
pub(super) struct Coordinators {
    config: ClientConfig,
    idle: Mutex<Vec<Arc<Handle>>>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) code: Code,
    /// What went wrong with a connection.
    trouble: Option<String>,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        self.trouble.as_ref().map_or(Ok(()), |trouble| write!(f, " ({trouble})"))
    }
}

impl Coordinators {
    /// Makes no client yet.
    pub(super) fn new(config: &ClientConfig) -> Self {
        Coordinators { config: config.clone(), idle: Mutex::default() }
    }

    /// Asks, again within `until` while the coordinator is only being made, or has just moved: as its answer says, or a part
    /// of it (`moved`).
    pub(super) fn ask<T>(
        &self,
        until: Instant,
        moved: impl Fn(&T) -> bool,
        ask: impl Fn(&Arc<Handle>, Duration) -> Result<T, Code>,
    ) -> Result<T, Unanswered> {
        let handle = self.client().map_err(|error| {
            tracing::warn!(%error, "no client to ask the coordinators of groups");
            Unanswered { code: Code::NO_CLIENT, trouble: None }
        })?;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let answer = if left.is_zero() { Err(Code::TIMED_OUT) } else { ask(&handle, left) };
            let again = match &answer {
                Ok(answer) => moved(answer),
                Err(code) => code.is_about_coordinators(),
            };
            if again && Instant::now() + PAUSE < until {
                thread::sleep(PAUSE);
                continue;
            }
            let trouble = handle.trouble();
            if !matches!(answer, Err(Code::TIMED_OUT)) {
                handle.forget_trouble();
                self.keep(handle);
            }
            return answer.map_err(|code| Unanswered { code, trouble });
        }
    }

    fn client(&self) -> Result<Arc<Handle>, ClientError> {
        let idle = self.idle().pop();
        idle.map_or_else(|| Ok(Arc::new(Handle::new(&self.config, &[("group.id", NO_GROUP)])?)), Ok)
    }

    fn keep(&self, handle: Arc<Handle>) {
        let mut idle = self.idle();
        if idle.len() < IDLE {
            idle.push(handle);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Arc<Handle>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
