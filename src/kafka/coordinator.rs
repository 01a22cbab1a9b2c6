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
use crate::kafka::broker::left;

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
pub(super) enum Unanswered {
    /// The coordinator says so, or nobody does; and what went wrong with a connection.
    Code(Code, Option<String>),
    /// The addresses lead to another cluster than the look's client is connected to.
    OtherCluster(String),
    /// There is no client to ask with.
    NoClient(ClientError),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unanswered::Code(code, None) => write!(f, "{code}"),
            Unanswered::Code(code, Some(trouble)) => write!(f, "{code} ({trouble})"),
            Unanswered::OtherCluster(id) => write!(f, "the addresses lead to another cluster by now, {id}"),
            Unanswered::NoClient(error) => write!(f, "{error}"),
        }
    }
}

impl Coordinators {
    /// With a client that connects by itself, so that it is there for the first question.
    ///
    /// # Errors
    ///
    /// A property that librdkafka does not know or can't use.
    pub(super) fn new(config: &ClientConfig) -> Result<Self, ClientError> {
        let coordinators = Coordinators { config: config.clone(), idle: Mutex::default() };
        let first = coordinators.make()?;
        coordinators.keep(first);
        Ok(coordinators)
    }

    /// Asks, again within `until` while the coordinator is only being made, or has just moved: as its answer says, or a part
    /// of it (`part`). Only of `cluster`, where that is known.
    pub(super) fn ask<T>(
        &self,
        cluster: Option<&str>,
        until: Instant,
        part: impl Fn(&T) -> Option<Code>,
        ask: impl Fn(&Arc<Handle>, Duration) -> Result<T, Code>,
    ) -> Result<T, Unanswered> {
        let mut client: Option<Arc<Handle>> = None;
        left(until).map_err(|code| Unanswered::Code(code, None))?;
        loop {
            let handle = match client.take() {
                Some(handle) => handle,
                None => self.client(cluster, until)?,
            };
            let answer = left(until).and_then(|left| ask(&handle, left));
            let unsettled = match &answer {
                Ok(answer) => part(answer),
                Err(code) => Some(*code).filter(|code| code.is_about_coordinators()),
            };
            let trouble = handle.trouble();
            match (&answer, unsettled) {
                (Err(Code::TIMED_OUT), _) => drop(handle),
                // It would go on asking the same one for a quarter of an hour.
                (_, Some(Code::NOT_COORDINATOR)) => drop(handle),
                (_, Some(_)) => client = Some(handle),
                (_, None) => {
                    handle.forget_trouble();
                    self.keep(handle);
                }
            }
            if unsettled.is_none() || Instant::now() + PAUSE >= until {
                client.into_iter().for_each(|handle| self.keep(handle));
                return answer.map_err(|code| Unanswered::Code(code, trouble));
            }
            thread::sleep(PAUSE);
        }
    }

    /// A client that is connected to `cluster`, or to whichever where that is not known.
    fn client(&self, cluster: Option<&str>, until: Instant) -> Result<Arc<Handle>, Unanswered> {
        loop {
            let idle = self.idle().pop();
            let is_new = idle.is_none();
            let handle = idle.map_or_else(|| self.make().map_err(Unanswered::NoClient), Ok)?;
            let Some(cluster) = cluster else { return Ok(handle) };
            let found = left(until).and_then(|left| handle.cluster_id_within(left));
            match found {
                Ok(Some(id)) if id != cluster && is_new => return Err(Unanswered::OtherCluster(id)),
                Ok(Some(id)) if id != cluster => {}
                Ok(_) => return Ok(handle),
                Err(code) => {
                    let trouble = handle.trouble();
                    // It asked nobody about a group yet.
                    self.keep(handle);
                    return Err(Unanswered::Code(code, trouble));
                }
            }
        }
    }

    fn make(&self) -> Result<Arc<Handle>, ClientError> {
        Ok(Arc::new(Handle::new(&self.config, &[("group.id", NO_GROUP)])?))
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
