//! Starting a group, and looking after it while it is read: takes looks until a decision is possible, and runs that in the
//! journal's writer.

mod behind;
mod evidence;
mod running;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::evidence::{Evidence, Looks};
pub use self::running::{Fenced, LookError, Looked, look_while_running};
use super::{Control, UnknownGroup};
use crate::broker::{Broker, KafkaGroup, TopicSelector};
use crate::entry::{Draft, Finding};
use crate::journal::{DecideError, WriteError};
use crate::message::{NAMED, few};
use crate::offset::{Epoch, Group, Invalid, Isolation, Seq, free_name};
use crate::positions::{GroupState, Hold, State};
use crate::reconcile::{self, Decided, Decision, NewGroup, Occasion, Policy, StartPosition, Starter, Unsettled, Why};

/// The first pause before a broker that did not say is asked again; it doubles up to [`BACK_OFF_MAX`].
const BACK_OFF: Duration = Duration::from_millis(100);
/// The longest such pause.
const BACK_OFF_MAX: Duration = Duration::from_secs(1);
/// Looks that fit into a deadline, so that a leader that hangs leaves time to ask it again.
const LOOKS_IN_DEADLINE: u32 = 3;

/// What a process wants to read, and how.
///
/// ```
/// use tidelog::control::StartRequest;
/// use tidelog::offset::Group;
/// ///
/// let group = Group::new("default", "loader")?;
/// let request = StartRequest {
///     kafka_group: Some("none".parse()?), // no lag chart looks at it
///     ..StartRequest::new(group, vec!["orders".parse()?, "^audit-.*".parse()?], "loader@host1:4711")
/// };
/// assert!(!request.dry_run);
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone)]
pub struct StartRequest {
    /// The group.
    pub group: Group,
    /// The topics; none means all that the group has and that are not retired.
    pub topics: Vec<TopicSelector>,
    /// The process, by its own name: 1 to 255 bytes.
    pub owner: String,
    /// What may be corrected.
    pub policy: Policy,
    /// What it reads; none keeps what the group reads.
    pub isolation: Option<Isolation>,
    /// The Kafka group whose committed offsets follow the positions; none keeps the one that it has, which for a new group
    /// of the default app is its own name.
    pub kafka_group: Option<KafkaGroup>,
    /// Only say what would be done.
    pub dry_run: bool,
}

impl StartRequest {
    /// A start of `group` by `owner`, one name for each process, with the default policy.
    pub fn new(group: Group, topics: Vec<TopicSelector>, owner: impl Into<String>) -> Self {
        let (owner, policy) = (owner.into(), Policy::default());
        StartRequest { group, topics, owner, policy, isolation: None, kafka_group: None, dry_run: false }
    }

    fn starter(&self) -> Starter<'_> {
        Starter { owner: &self.owner, isolation: self.isolation, kafka_group: self.kafka_group.as_ref() }
    }
}

/// A group that may be read. All of it is in the journal, unless it was a dry run.
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
/// # let _commit = |from: i64, until: i64| -> Result<_, Box<dyn std::error::Error>> {
/// #     use tidelog::offset::{Offset, OffsetRange, Timestamp};
/// #     let range = OffsetRange::new("orders".parse()?, 0, Offset::new(from)?, Offset::new(until)?)?;
/// #     let time = Timestamp::from_millis(1_796_032_800_000 + from);
/// #     Ok(control.journal.commit(tidelog::commit::Commit::new(loader.clone(), started.epoch, time, vec![range])?)?)
/// # };
/// use tidelog::entry::Verdict;
///
/// let first = &started.positions[0];
/// assert_eq!((first.at.to_string().as_str(), first.offset.get()), ("orders/0", 500));
/// assert_eq!(first.verdict, Verdict::Unchecked); // no broker was asked
/// assert!(started.findings.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    /// The epoch to commit under.
    pub epoch: Epoch,
    /// The journal's newest entry.
    pub seq: Seq,
    /// The cluster, where it has an id.
    pub cluster_id: Option<String>,
    /// Where each partition starts, ordered by topic-partition.
    pub positions: Vec<StartPosition>,
    /// What was found; nothing where all is in range.
    pub findings: Vec<Finding>,
}

/// Why a group was not started; the journal is unchanged.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
///
/// use tidelog::control::{StartError, StartRequest, start};
/// use tidelog::reconcile::{NewGroup, Policy};
///
/// // Without a broker nobody can say what Kafka holds for a new group.
/// let request = StartRequest::new(loader, vec!["orders".parse()?], "me");
/// let policy = Policy { new_group: NewGroup::Kafka, ..Policy::default() };
/// let error = start(&control, StartRequest { policy, ..request }).unwrap_err();
/// assert!(matches!(error, StartError::Invalid(_)), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
pub enum StartError {
    /// An operator holds the group.
    #[error("group {group} is on hold since {} by {}: {}", hold.since, hold.actor, hold.reason)]
    Held {
        /// The group.
        group: Group,
        /// By whom, since when, why.
        hold: Hold,
    },
    /// A policy forbids it: the next start is told the same.
    #[error("group {group} can't start: {}", findings_text(findings))]
    Refused {
        /// The group.
        group: Group,
        /// All that was found; those without a start are in the way.
        findings: Vec<Finding>,
    },
    /// The broker did not say, or not the same twice, before the deadline.
    #[error("{brokers} did not settle where to start within {} s: {}", deadline.as_secs_f32(), few(unsettled, NAMED, "; "))]
    BrokerUnavailable {
        /// Who was asked.
        brokers: String,
        /// For how long.
        deadline: Duration,
        /// What is still unknown.
        unsettled: Vec<Unsettled>,
    },
    /// A request that can't be.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// It could not be made durable.
    #[error(transparent)]
    Unavailable(#[from] WriteError),
}

/// Starts `request.group`: corrects what can't stay, takes in what is new, and answers where to read. An entry is made
/// only for what changes; the same owner again makes none.
///
/// Blocks until the broker has said enough, at most for the deadline, and for the second look where one is needed; while
/// it goes on answering what open holes hold, the deadline begins anew. Without a broker it answers the journal's
/// positions.
pub fn start(control: &Control, request: StartRequest) -> Result<Started, StartError> {
    run(control, request, Claim::Anyones).map_err(|error| match error {
        LookError::Start(error) => error,
        LookError::Fenced(_) | LookError::UnknownGroup(_) => unreachable!("a group of anyone's may be started"),
    })
}

/// The same for a consumer that runs, after the group was moved: it goes on as the owner that it was.
///
/// # Errors
///
/// As for a start; and where another owner has started the group meanwhile, or there is none any more, which is settled
/// with the rest in the journal's writer: a restart never takes a group back.
pub fn start_again(control: &Control, request: StartRequest) -> Result<Started, LookError> {
    run(control, request, Claim::Own)
}

/// Whose a group may be that is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// Anyone's: it is taken over.
    Anyones,
    /// The request's own owner's only.
    Own,
}

fn run(control: &Control, request: StartRequest, claim: Claim) -> Result<Started, LookError> {
    check(control, &request).map_err(StartError::from)?;
    let request = Arc::new(request);
    let Some(broker) = &control.broker else {
        let evidence = None;
        return settle(control, &request, claim, evidence).map_err(|undecided| undecided.error(&request, control, ""));
    };
    let mut looks = Looks::new(control.limits.second_look);
    let mut patience = Patience::new(control);
    loop {
        // Told at once, not after the broker's answer.
        control
            .journal
            .with_state(|state| may_start(state, &request, claim))
            .map_err(|undecided| undecided.error(&request, control, ""))?;
        let evidence = gather(control, broker.as_ref(), &request, &mut looks);
        let brokers = evidence.observed.look.brokers.clone();
        match settle(control, &request, claim, Some(evidence)) {
            Ok(started) => return Ok(started),
            Err(Undecided::LookAgain(unsettled)) if patience.wait(&unsettled, looks.answered()) => {}
            Err(undecided) => return Err(undecided.error(&request, control, &brokers)),
        }
    }
}

/// What a request can be refused for before anybody is asked.
fn check(control: &Control, request: &StartRequest) -> Result<(), Invalid> {
    free_name("owner", &request.owner)?;
    let known = || control.journal.with_state(|state| state.groups.contains_key(&request.group));
    if request.topics.is_empty() && !known() {
        return Err(Invalid::new("topics", "[]", "a new group needs a topic or a pattern"));
    }
    if let NewGroup::Offsets(offsets) = &request.policy.new_group {
        let stray = |topic| !request.topics.is_empty() && !request.topics.iter().any(|asked| asked.matches(topic));
        if let Some(at) = offsets.keys().find(|at| stray(&at.topic)) {
            return Err(Invalid::new("new_group.offsets", at, "of a topic that the start does not ask for"));
        }
    }
    Ok(())
}

/// Takes one look, and asks what a decision over it will need.
fn gather(control: &Control, broker: &dyn Broker, request: &StartRequest, looks: &mut Looks) -> Arc<Evidence> {
    let deadline = control.limits.deadline / LOOKS_IN_DEADLINE;
    let evidence = Evidence::look(control, broker, request, looks, deadline);
    let evidence = evidence.into_holes(broker, looks, deadline, usize::MAX);
    let evidence = evidence.new_group(broker, control, request, deadline);
    Arc::new(evidence.committed(broker, control, request, deadline))
}

/// Why nothing was decided.
#[derive(Debug)]
enum Undecided {
    Fenced(Box<Fenced>),
    UnknownGroup(UnknownGroup),
    Held(Hold),
    LookAgain(Vec<Unsettled>),
    Refused(Vec<Finding>),
    Invalid(Invalid),
    Unavailable(WriteError),
}

impl Undecided {
    fn error(self, request: &StartRequest, control: &Control, brokers: &str) -> LookError {
        let group = request.group.clone();
        LookError::Start(match self {
            Undecided::Fenced(fenced) => return LookError::Fenced(fenced),
            Undecided::UnknownGroup(unknown) => return LookError::UnknownGroup(unknown),
            Undecided::Held(hold) => StartError::Held { group, hold },
            Undecided::Refused(findings) => StartError::Refused { group, findings },
            Undecided::LookAgain(unsettled) => {
                let (brokers, deadline) = (brokers.to_owned(), control.limits.deadline);
                StartError::BrokerUnavailable { brokers, deadline, unsettled }
            }
            Undecided::Invalid(invalid) => StartError::Invalid(invalid),
            Undecided::Unavailable(error) => StartError::Unavailable(error),
        })
    }
}

impl From<DecideError<Undecided>> for Undecided {
    fn from(error: DecideError<Undecided>) -> Self {
        match error {
            DecideError::Refused(undecided) => undecided,
            DecideError::Unavailable(error) => Undecided::Unavailable(error),
        }
    }
}

/// Whether an operator, or another owner, is in the way.
fn may_start(state: &State, request: &StartRequest, claim: Claim) -> Result<(), Undecided> {
    if claim == Claim::Own {
        owned(state, request)?;
    }
    match state.groups.get(&request.group).and_then(|group| group.held.clone()) {
        Some(hold) => Err(Undecided::Held(hold)),
        None => Ok(()),
    }
}

/// The group, unless another process is its owner.
fn owned<'a>(state: &'a State, request: &StartRequest) -> Result<&'a GroupState, Undecided> {
    let Some(group) = state.groups.get(&request.group) else {
        return Err(Undecided::UnknownGroup(UnknownGroup::new(state, &request.group)));
    };
    match group.owner.as_ref().filter(|owner| **owner != request.owner) {
        None => Ok(group),
        Some(owner) => Err(Undecided::Fenced(Box::new(Fenced {
            group: request.group.clone(),
            owner: owner.clone(),
            epoch: group.epoch,
            raised_by: group.raised_by.clone(),
            by: request.owner.clone(),
        }))),
    }
}

/// Runs the decision in the writer, on the pending state; on the published one for a dry run.
fn settle(
    control: &Control,
    request: &Arc<StartRequest>,
    claim: Claim,
    evidence: Option<Arc<Evidence>>,
) -> Result<Started, Undecided> {
    let asked = Arc::clone(request);
    let decision = move |state: &State| {
        may_start(state, &asked, claim)?;
        rule(state, &asked, evidence.as_deref())
    };
    if request.dry_run {
        return control.journal.with_state(decision).map(|(_, started)| started);
    }
    let (entries, started) = control.journal.decide(decision)?;
    let seq = entries.last().map_or(started.seq, |entry| entry.seq);
    Ok(Started { seq, ..started })
}

/// Pure: what a start that nobody is in the way of comes to under this state. Its seq is that of the state.
fn rule(
    state: &State,
    request: &StartRequest,
    evidence: Option<&Evidence>,
) -> Result<(Vec<Draft>, Started), Undecided> {
    let group = state.groups.get(&request.group);
    let StartRequest { topics, policy, .. } = request;
    check_kafka_group(state, request)?;
    let decision = match evidence {
        Some(evidence) => reconcile::decide(&evidence.question(group, request, Occasion::Start(request.starter()))),
        None => reconcile::unchecked(&request.group, group, topics, policy, request.starter())
            .map_err(Undecided::Invalid)?,
    };
    let Decided { epoch, mut findings, starts, drafts, .. } = decided(decision)?;
    if let Some(evidence) = evidence {
        findings.extend(behind::findings(group, &evidence.committed, &starts));
    }
    let seen = evidence.and_then(|evidence| evidence.observed.look.cluster_id.known().cloned());
    let cluster_id = seen.or_else(|| group?.cluster_id.clone());
    Ok((drafts, Started { epoch, seq: state.seq, cluster_id, positions: starts, findings }))
}

/// Two groups that set the offsets of one Kafka group would undo each other's work.
fn check_kafka_group(state: &State, request: &StartRequest) -> Result<(), Undecided> {
    let Some(name) = request.starter().kafka_group(&request.group, state.groups.get(&request.group)) else {
        return Ok(());
    };
    let same = |(other, group): &(&Group, &GroupState)| {
        *other != &request.group && !group.retired && group.kafka_group.as_ref() == Some(&name)
    };
    match state.groups.iter().find(same) {
        None => Ok(()),
        Some((other, _)) => Err(Undecided::Invalid(Invalid::new(
            "kafka_group",
            &name,
            format!("the offsets of this Kafka group follow group {other}; name another Kafka group, or none"),
        ))),
    }
}

fn decided(decision: Decision) -> Result<Decided, Undecided> {
    match decision {
        Decision::Decided(decided) => Ok(decided),
        Decision::LookAgain { unsettled } => Err(Undecided::LookAgain(unsettled)),
        Decision::Refused { findings } => Err(Undecided::Refused(findings)),
    }
}

/// How long to go on asking.
struct Patience {
    until: Instant,
    deadline: Duration,
    second_look: Duration,
    /// Whether time for the second look was given already.
    extended: bool,
    back_off: Duration,
    /// Holes that were answered so far.
    answered: usize,
}

impl Patience {
    fn new(control: &Control) -> Self {
        Patience {
            until: Instant::now() + control.limits.deadline,
            deadline: control.limits.deadline,
            second_look: control.limits.second_look,
            extended: false,
            back_off: BACK_OFF,
            answered: 0,
        }
    }

    /// Sleeps before the next look; false if there is no time for one. The wait for a second look is not the broker's
    /// fault, and counts once beside the deadline. Many holes, far apart, take longer than the deadline: as long as nothing
    /// else is in the way and some were answered since the last time, it begins anew.
    fn wait(&mut self, unsettled: &[Unsettled], answered: usize) -> bool {
        let holes_only = unsettled.iter().all(|unsettled| matches!(unsettled.why, Why::Hole { .. }));
        if std::mem::replace(&mut self.answered, answered) < answered && holes_only {
            tracing::info!("{answered} open holes are looked into so far");
            self.until = Instant::now() + self.deadline;
            self.back_off = BACK_OFF;
        }
        let once = unsettled.iter().any(|unsettled| matches!(unsettled.why, Why::Once(_)));
        let mut pause = self.back_off;
        if once {
            if !self.extended {
                self.until += self.second_look;
                self.extended = true;
            }
            pause = self.second_look.max(Duration::from_millis(1));
        } else {
            self.back_off = (self.back_off * 2).min(BACK_OFF_MAX);
        }
        if Instant::now() + pause >= self.until {
            return false;
        }
        std::thread::sleep(pause);
        true
    }
}

fn findings_text(findings: &[Finding]) -> String {
    let in_the_way = findings.iter().filter(|finding| finding.start.is_none());
    few(in_the_way, NAMED, "; ")
}
