//! What people and consumers ask for, done on a journal and a broker: each function fetches what a pure decision needs,
//! and runs it in the journal's writer. Calls block.

#[cfg(test)]
pub(crate) mod fake;
pub mod import;
pub mod mirror;
pub mod rollback;
pub mod start;
pub mod steer;

use std::sync::Arc;
use std::time::Duration;

use crate::broker::Broker;
use crate::journal::{Clock, Journal};
use crate::offset::{Group, Invalid};
use crate::positions::State;

pub use self::import::{Import, ImportError};
pub use self::mirror::{KafkaSet, Kept, Mirror, MirrorStatus, SetError, set_kafka};
pub use self::rollback::{ExecuteError, Executed, PlanError, clock_uncertain, execute, plan};
pub use self::start::{
    Fenced, LookError, Looked, StartError, StartRequest, Started, look_while_running, start, start_again,
};
pub use self::steer::{SteerError, acknowledge, hold, mark, release, retire};

/// A journal, and the broker that its groups read from.
///
/// ```
/// use std::sync::Arc;
///
/// use tidelog::control::{self, Control, StartRequest};
/// use tidelog::entry::Verdict;
/// use tidelog::journal::{Clock, Journal, Options};
/// use tidelog::offset::{Group, Timestamp};
///
/// # let dir = tempfile::tempdir()?;
/// let clock: Clock = Arc::new(|| Timestamp::from_millis(1_796_032_800_000)); // or the machine's
/// let journal = Journal::open(dir.path(), Options { create: true, ..Options::new(clock.clone()) })?;
/// let control = Control::new(journal, None, clock);
/// let group = Group::new("default", "loader")?;
/// let started = control::start(&control, StartRequest::new(group, vec!["orders".parse()?], "loader@host1:4711"))?;
/// assert_eq!(started.epoch.get(), 1);
/// // Without a broker nobody knows which partitions there are: they come with the first commit.
/// assert!(started.positions.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Control {
    /// The journal.
    pub journal: Journal,
    /// The broker; none where only the journal is served.
    pub broker: Option<Arc<dyn Broker>>,
    /// How long things may take.
    pub limits: Limits,
    /// The machine's clock.
    pub clock: Clock,
    /// What was written into Kafka's committed offsets. One for a process, shared by all that write there.
    pub mirror: Mirror,
}

impl Control {
    /// The journal and its broker, with the default limits and nothing written to Kafka yet.
    pub fn new(journal: Journal, broker: Option<Arc<dyn Broker>>, clock: Clock) -> Self {
        Control { journal, broker, limits: Limits::default(), clock, mirror: Mirror::default() }
    }
}

/// How long things may take.
///
/// ```
/// use std::time::Duration;
/// use tidelog::control::Limits;
///
/// let patient = Limits { deadline: Duration::from_secs(60), ..Limits::default() };
/// assert_eq!(patient.second_look, Duration::from_secs(3));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// All of what one call asks a broker that says nothing. A rollback that sets Kafka's committed offsets has it three
    /// times: for the ends of the logs, for the members of the Kafka group, and for setting and reading back.
    pub deadline: Duration,
    /// Between the two looks that a correction needs.
    pub second_look: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { deadline: Duration::from_secs(10), second_look: Duration::from_secs(3) }
    }
}

/// The journal has no such group.
///
/// ```
/// use tidelog::control::UnknownGroup;
/// use tidelog::offset::Group;
/// use tidelog::positions::{GroupState, State};
///
/// let mut state = State::default();
/// state.groups.insert(Group::new("billing", "loader")?, GroupState::default());
/// let unknown = UnknownGroup::new(&state, &Group::new("default", "loader")?);
/// assert_eq!(unknown.apps, ["billing"]); // it may be what was meant
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no group {group} in this journal{}", apps_text(apps))]
pub struct UnknownGroup {
    /// The group.
    pub group: Group,
    /// The apps that have a group of this name.
    pub apps: Vec<String>,
}

impl UnknownGroup {
    /// What to say of a group that `state` does not have.
    pub fn new(state: &State, group: &Group) -> Self {
        let namesakes = state.groups.keys().filter(|other| other.group() == group.group());
        UnknownGroup { group: group.clone(), apps: namesakes.map(|other| other.app().to_owned()).collect() }
    }
}

fn apps_text(apps: &[String]) -> String {
    if apps.is_empty() { String::new() } else { format!("; a group of this name is in app {}", apps.join(", ")) }
}

/// Bytes of a reason, which is a sentence or two of an operator.
const MAX_REASON_BYTES: usize = 1_000;

/// Checks why an operator does something: 1 to 1000 bytes without NUL.
fn check_reason(reason: &str) -> Result<(), Invalid> {
    if reason.trim().is_empty() || reason.len() > MAX_REASON_BYTES || reason.contains('\0') {
        return Err(Invalid::new("reason", reason, "a reason has 1 to 1000 bytes and no NUL"));
    }
    Ok(())
}
