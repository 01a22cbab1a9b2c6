//! Moving a group to where it was, or to where an operator wants it: pure decisions (DESIGN section 7). A [`Plan`] says
//! for each partition where it would go and what that costs; [`decide`] executes one in the journal's writer, on the
//! state of that moment.
//!
//! The caller fetches what the decision needs, all of it plain data: the group's state, the [`Meaning`] of the target,
//! and a look at the broker, or none.

mod decide;
mod holes;
mod id;
mod log;
mod request;
mod step;
mod target;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::broker::{Look, Member};
use crate::message::{NAMED, few};
use crate::offset::{Epoch, Offset, TopicPartition};
use crate::positions::{GroupState, Positions};

pub use self::decide::{Decided, Order, Refused, decide, executed};
pub use self::request::{PlanRequest, Scope, WrongName};
use self::step::Step;
pub use self::target::{Edge, Meaning, Moment, Target, parse_duration};

/// Why a partition would go where it goes.
///
/// ```
/// use tidelog::rollback::Outcome;
///
/// assert_eq!(serde_json::to_string(&Outcome::BeyondEnd)?, r#""beyond_end""#);
/// assert!(Outcome::Recreated.is_unmovable() && !Outcome::Expired.is_unmovable());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// To the target.
    Exact,
    /// It is there already.
    Unchanged,
    /// The target is no longer in the log: to its start.
    Expired,
    /// The log does not reach that far: to its end.
    BeyondEnd,
    /// The target belongs to another topic of the same name.
    Recreated,
    /// The broker has no such topic.
    Missing,
    /// The broker did not say.
    Unknown,
    /// The group did not have the partition then: to its first position.
    Younger,
    /// To the target, which nobody has looked at.
    Unchecked,
}

impl Outcome {
    /// The name, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Exact => "exact",
            Outcome::Unchanged => "unchanged",
            Outcome::Expired => "expired",
            Outcome::BeyondEnd => "beyond_end",
            Outcome::Recreated => "recreated",
            Outcome::Missing => "missing",
            Outcome::Unknown => "unknown",
            Outcome::Younger => "younger",
            Outcome::Unchecked => "unchecked",
        }
    }

    /// Whether the partition can't go anywhere.
    pub fn is_unmovable(self) -> bool {
        matches!(self, Outcome::Recreated | Outcome::Missing | Outcome::Unknown)
    }
}

/// What a plan does to one partition.
///
/// ```
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let mut state = tidelog::positions::GroupState::default();
/// # let orders = r#"{"incarnation": 0, "former_ids": [], "retired": false,
/// #     "partitions": {"0": {"position": "542", "first_position": "500", "holes": []}}}"#;
/// # state.positions.topics.insert("orders".parse()?, serde_json::from_str(orders)?);
/// use tidelog::rollback::{Meaning, Outcome, PlanRequest, Target, plan};
///
/// let plan = plan(&PlanRequest::new(loader, Target::Shift(-42)), &state, &Meaning::Shift(-42), None);
/// let planned = &plan.partitions[0];
/// assert_eq!((planned.position.get(), planned.start.get(), planned.replayed), (542, 500, 42));
/// assert_eq!(planned.outcome, Outcome::Unchecked); // no look at the broker
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The partition.
    pub at: TopicPartition,
    /// Where it is.
    pub position: Offset,
    /// Where it is to go; none where that is no offset of the present topic.
    pub target: Option<Offset>,
    /// Where it would really go; its position where it stays.
    pub start: Offset,
    /// Why.
    pub outcome: Outcome,
    /// Offsets that were read and will be read again.
    pub replayed: u64,
    /// Offsets that will never be read because of it.
    pub skipped: u64,
    /// Offsets that were asked for, or not read yet, and are no longer in the log.
    pub lost: u64,
}

/// Sums over the partitions of a plan.
///
/// ```
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let mut state = tidelog::positions::GroupState::default();
/// # let orders = r#"{"incarnation": 0, "former_ids": [], "retired": false,
/// #     "partitions": {"0": {"position": "542", "first_position": "500", "holes": []}}}"#;
/// # state.positions.topics.insert("orders".parse()?, serde_json::from_str(orders)?);
/// use tidelog::rollback::{Meaning, PlanRequest, Target, Totals, plan};
///
/// let plan = plan(&PlanRequest::new(loader, Target::Shift(8)), &state, &Meaning::Shift(8), None);
/// assert_eq!(plan.totals(), Totals { skipped: 8, partitions: 1, ..Totals::default() });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Offsets that were read and will be read again.
    pub replayed: u64,
    /// Offsets that will never be read because of it.
    pub skipped: u64,
    /// Offsets that are no longer in the log.
    pub lost: u64,
    /// How many partitions.
    pub partitions: u64,
}

/// A reason for which a plan is not executable.
///
/// ```
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let mut state = tidelog::positions::GroupState::default();
/// # let orders = r#"{"incarnation": 0, "former_ids": [], "retired": false,
/// #     "partitions": {"0": {"position": "542", "first_position": "500", "holes": []}}}"#;
/// # state.positions.topics.insert("orders".parse()?, serde_json::from_str(orders)?);
/// use tidelog::rollback::{Meaning, Outcome, PlanRequest, Target, plan};
///
/// let plan = plan(&PlanRequest::new(loader, Target::Shift(-42)), &state, &Meaning::Shift(-42), None);
/// let refusal = &plan.refusals[0];
/// assert_eq!(refusal.outcome, Some(Outcome::Unchecked));
/// assert!(refusal.why.starts_with("orders/0: no broker was asked"), "{}", refusal.why);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The partition; none where the whole group is meant.
    pub at: Option<TopicPartition>,
    /// What is wrong with it; none where that is no partition's outcome.
    pub outcome: Option<Outcome>,
    /// The same for a person, with what would allow it.
    pub why: String,
}

/// What a rollback would do. Nothing is kept of it: it is computed again, and compared by its id, when it is executed.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let at = tidelog::offset::TopicPartition::new("orders".parse()?, 0);
/// # let mut request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # request.policy.new_group = tidelog::reconcile::NewGroup::Offsets([(at, "500".parse()?)].into());
/// # let started = tidelog::control::start(&control, request)?;
/// # let commit = |from: i64, until: i64| -> Result<_, Box<dyn std::error::Error>> {
/// #     use tidelog::offset::{Offset, OffsetRange, Timestamp};
/// #     let range = OffsetRange::new("orders".parse()?, 0, Offset::new(from)?, Offset::new(until)?)?;
/// #     let time = Timestamp::from_millis(1_796_032_800_000 + from);
/// #     Ok(control.journal.commit(tidelog::commit::Commit::new(loader.clone(), started.epoch, time, vec![range])?)?)
/// # };
/// use tidelog::rollback::{Edge, PlanRequest, Target};
///
/// commit(500, 542)?;
/// let to = Target::Batch { batch: "1".parse()?, edge: Edge::Before };
/// // Without a broker nobody can say whether the data is there still.
/// let request = PlanRequest { unchecked: true, ..PlanRequest::new(loader, to) };
/// let plan = tidelog::control::plan(&control, request)?;
/// assert!(plan.executable(), "{}", plan.why_not());
/// assert_eq!((plan.partitions[0].start.get(), plan.totals().replayed), (500, 42));
/// let done = tidelog::control::execute(&control, plan.execute, Some(&plan.id), "ann", "the sink lost its disk")?;
/// assert_eq!(done.moves[0].new.map(|offset| offset.get()), Some(500));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its id: a checksum over the group, its epoch, the flags, the topics' ids, and where each partition would go and
    /// why. A consumer that merely goes on committing does not change it.
    pub id: String,
    /// The group's epoch.
    pub epoch: Epoch,
    /// What it could not do as asked; empty if it can be executed.
    pub refusals: Vec<Refusal>,
    /// The moment of history that it goes to, where the target names one.
    pub moment: Option<Moment>,
    /// The partitions in scope, ordered by topic-partition.
    pub partitions: Vec<Planned>,
    /// Live members of the Kafka group whose offsets would be set; they are in the way. The pure decision asks nobody and
    /// says none.
    pub members: Vec<Member>,
    /// Whether nothing would move. Executed it makes no entry, but for the hold that was asked for.
    pub nothing_to_do: bool,
    /// What to execute: the same, with targets that mean something else a moment later as offsets.
    pub execute: PlanRequest,
    /// Whether the machine's clock and the journal's differ by so much that times should not be relied on. The pure
    /// decision knows no clock and says false.
    pub clock_uncertain: bool,
}

impl Plan {
    /// Whether it can be executed.
    pub fn executable(&self) -> bool {
        self.refusals.is_empty()
    }

    /// Why it can't be executed, for a person: the first few partitions, a line each.
    pub fn why_not(&self) -> String {
        few(self.refusals.iter().map(|refusal| &refusal.why), NAMED, "\n")
    }

    /// The sums over its partitions.
    pub fn totals(&self) -> Totals {
        self.partitions.iter().fold(Totals::default(), |sum, partition| Totals {
            replayed: sum.replayed.saturating_add(partition.replayed),
            skipped: sum.skipped.saturating_add(partition.skipped),
            lost: sum.lost.saturating_add(partition.lost),
            partitions: sum.partitions + 1,
        })
    }

    fn new(request: &PlanRequest, group: &GroupState, meaning: &Meaning, steps: &[Step]) -> Self {
        Plan {
            id: id::of(request, group, meaning, steps),
            epoch: group.epoch,
            refusals: steps.iter().filter_map(|step| step.refusal(request)).collect(),
            moment: meaning.moment(),
            partitions: steps.iter().map(|step| step.planned.clone()).collect(),
            members: Vec::new(),
            nothing_to_do: !steps.iter().any(Step::moves),
            execute: to_execute(request, meaning, steps),
            clock_uncertain: false,
        }
    }
}

/// What the broker was asked, if anybody asked, and what was known before.
///
/// ```
/// # use tidelog::broker::{Look, PartitionLook, Seen, TopicLook};
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let mut state = tidelog::positions::GroupState::default();
/// # let orders = r#"{"incarnation": 0, "former_ids": [], "retired": false,
/// #     "partitions": {"0": {"position": "542", "first_position": "500", "holes": []}}}"#;
/// # state.positions.topics.insert("orders".parse()?, serde_json::from_str(orders)?);
/// # let (earliest, latest) = (Seen::Known("510".parse()?), Seen::Known("550".parse()?));
/// # let partition = PartitionLook { earliest, latest, readable_end: Seen::Absent };
/// # let topic = TopicLook { id: Seen::Absent, partitions: Seen::Known([(0, partition)].into()) };
/// # let look = Look {
/// #     taken_at: "2026-11-30T10:00:00Z".parse()?,
/// #     brokers: "localhost:9092".to_owned(),
/// #     cluster_id: Seen::Absent,
/// #     topics: [("orders".parse()?, topic)].into(),
/// #     listing: Seen::Absent,
/// # };
/// use tidelog::rollback::{Looked, Meaning, Outcome, PlanRequest, Target, plan};
///
/// let looked = Looked { look, before: state.positions.clone() }; // the log begins at 510
/// let plan = plan(&PlanRequest::new(loader, Target::Shift(-42)), &state, &Meaning::Shift(-42), Some(&looked));
/// assert_eq!((plan.partitions[0].outcome, plan.partitions[0].start.get()), (Outcome::Expired, 510));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Looked {
    /// The answer.
    pub look: Look,
    /// The positions read before it: one that has risen since is no further than the log.
    pub before: Positions,
}

/// What `request` would do to `group`, now. The names in it are checked, and `meaning` is that of its target.
pub fn plan(request: &PlanRequest, group: &GroupState, meaning: &Meaning, looked: Option<&Looked>) -> Plan {
    Plan::new(request, group, meaning, &step::steps(request, group, meaning, looked))
}

/// The request with offsets in place of a target that would mean something else by the time it is executed. An expired
/// one is kept as it was, so that it is found expired again.
fn to_execute(request: &PlanRequest, meaning: &Meaning, steps: &[Step]) -> PlanRequest {
    let beyond_end = steps.iter().any(|step| step.planned.outcome == Outcome::BeyondEnd);
    let below_start = |step: &Step| step.planned.outcome == Outcome::Expired && step.planned.target.is_none();
    // The end in place of what is past it, or the earliest of what is before offset 0, is what allow_clamp allows; without
    // it the plan stays refused.
    if (beyond_end || steps.iter().any(below_start)) && !request.allow_clamp
        || !(request.to.is_relative() || !meaning.is_of_history() && beyond_end)
    {
        return request.clone();
    }
    let offset = |planned: &Planned| match (planned.outcome, planned.target) {
        (Outcome::Expired, Some(target)) => target,
        _ => planned.start,
    };
    let offsets = steps.iter().map(|step| (step.planned.at.clone(), offset(&step.planned))).collect();
    PlanRequest { to: Target::Offsets(offsets), ..request.clone() }
}
