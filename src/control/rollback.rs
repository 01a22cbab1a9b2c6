//! Planning and executing a rollback: finds what the target means, asks the broker, decides.

mod ask;
mod error;
mod resolve;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use self::ask::Asked;
pub use self::error::{ExecuteError, OldestBatch, PlanError};
use super::mirror::{self, KafkaSet};
use super::{Control, UnknownGroup, check_reason};
use crate::broker::{Member, Untold};
use crate::entry::{Body, Entry, KafkaOutcome, Move};
use crate::journal::{DecideError, ReadError};
use crate::offset::{Epoch, Group, Invalid, Seq, TopicPartition, free_name};
use crate::positions::GroupState;
use crate::rollback::{self, Decided, Order, Plan, PlanRequest, Refusal, Refused};

/// Past this the journal's clock and the machine's are said to differ.
const CLOCK_TOLERANCE_MS: u64 = 60_000;

/// What an executed plan came to.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let at = tidelog::offset::TopicPartition::new("orders".parse()?, 0);
/// # let offsets = [(at.clone(), "500".parse()?)].into();
/// # let import = tidelog::control::Import { group: loader.clone(), source: "a file".into(), offsets, seen: None };
/// # tidelog::control::import::import(&control.journal, import)?;
///
/// use tidelog::control::execute;
/// use tidelog::rollback::{PlanRequest, Target};
///
/// let to = Target::Offsets([(at, "400".parse()?)].into()); // it is at 500
/// let request = PlanRequest { unchecked: true, ..PlanRequest::new(loader, to) };
/// let first = execute(&control, request.clone(), None, "ann", "the sink lost its disk")?;
/// assert_eq!(first.moves[0].new, Some("400".parse()?));
/// let again = execute(&control, request, None, "ann", "the sink lost its disk")?;
/// assert_eq!(again.seq, None); // it is there already
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Executed {
    /// The entry of the move; none if nothing moved, also where the group was put on hold or Kafka was set all the same.
    pub seq: Option<Seq>,
    /// The group's epoch after it.
    pub epoch: Epoch,
    /// Whether the plan had been executed before, and this is the first receipt again.
    pub repeated: bool,
    /// What moved, ordered by topic-partition.
    pub moves: Vec<Move>,
    /// Whether the machine's clock and the journal's differ by over a minute.
    pub clock_uncertain: bool,
    /// What setting Kafka's committed offsets came to, where that was asked for.
    pub kafka: Option<KafkaSet>,
}

/// What `request` would do now. Changes nothing.
///
/// Blocks for the broker's answer, at most for the deadline; the broker is not asked where the request says `unchecked`,
/// or the target has nothing to do.
pub fn plan(control: &Control, request: PlanRequest) -> Result<Plan, PlanError> {
    request.check()?;
    let group = known_group(control, &request.group)?;
    let asked = Asked::new(control, &request, &group)?;
    let members = members(control, &request, &group)?;
    let mut plan = rollback::plan(&request, &group, &asked.meaning, asked.looked.as_ref());
    plan.clock_uncertain = clock_uncertain(control, plan.moment.map(|moment| moment.seq))?;
    Ok(members.in_the_way_of(plan))
}

/// Who is in the Kafka group whose offsets a request would set.
enum Members {
    /// Nobody, or nobody needs to know.
    None,
    /// These are live in the Kafka group of this name.
    Live(String, Vec<Member>),
    /// Kafka does not tell, of the Kafka group of this name, and why.
    Unknown(String, String),
}

fn members(control: &Control, request: &PlanRequest, group: &GroupState) -> Result<Members, PlanError> {
    if !request.kafka {
        return Ok(Members::None);
    }
    let name = mirror::kafka_group(&request.group, group)?;
    let Some(broker) = &control.broker else {
        let why = "setting Kafka's committed offsets needs a broker, and none is set";
        return Err(Invalid::new("kafka", true, why).into());
    };
    let deadline = control.limits.deadline;
    match broker.members(&name, deadline) {
        Ok(members) if members.is_empty() => Ok(Members::None),
        Ok(members) => Ok(Members::Live(name, members)),
        Err(Untold::Refused(why)) => Ok(Members::Unknown(name, why)),
        Err(Untold::Silent(_)) => {
            let unknown = request.partitions(group).map(|(at, _, _)| at).collect();
            Err(PlanError::BrokerUnavailable { brokers: broker.brokers().to_owned(), deadline, unknown, needed: true })
        }
    }
}

impl Members {
    /// The plan with them in its way.
    fn in_the_way_of(&self, mut plan: Plan) -> Plan {
        let why = match self {
            Members::None => return plan,
            Members::Live(name, members) => {
                plan.members.clone_from(members);
                mirror::members_text(name, members)
            }
            Members::Unknown(name, why) => mirror::unknown_text(name, why),
        };
        plan.refusals.insert(0, Refusal { at: None, outcome: None, why });
        plan
    }
}

/// Executes `request`, which a plan gave to execute, with the plan's id; without one, whatever its plan is by now.
///
/// A plan that was executed before answers with the first receipt. One that has nothing to do moves nothing; if it asks for
/// a hold, or for Kafka's committed offsets to be set, that is done all the same.
pub fn execute(
    control: &Control,
    request: PlanRequest,
    plan: Option<&str>,
    actor: &str,
    reason: &str,
) -> Result<Executed, ExecuteError> {
    request.check().map_err(PlanError::from)?;
    free_name("actor", actor).and_then(|()| check_reason(reason)).map_err(PlanError::from)?;
    loop {
        let group = known_group(control, &request.group)?;
        if let Some(seq) = plan.and_then(|plan| rollback::executed(&group, plan)) {
            let uncertain = clock_uncertain(control, None).map_err(PlanError::from)?;
            return receipt(control, &request.group, &group, seq, uncertain);
        }
        let asked = Asked::new(control, &request, &group)?;
        let members = members(control, &request, &group)?;
        let clock_uncertain =
            clock_uncertain(control, asked.meaning.moment().map(|moment| moment.seq)).map_err(PlanError::from)?;
        // All that is in scope, also what is there already: Kafka may have another offset for it.
        let mut for_kafka = None;
        if request.kafka {
            let plan = rollback::plan(&request, &group, &asked.meaning, asked.looked.as_ref());
            let in_the_way = |plan| Box::new(members.in_the_way_of(Plan { clock_uncertain, ..plan }));
            match members {
                Members::None => {}
                Members::Live(..) => return Err(ExecuteError::Active(in_the_way(plan))),
                Members::Unknown(..) => return Err(ExecuteError::Refused(in_the_way(plan))),
            }
            let movable = plan.partitions.into_iter().filter(|planned| !planned.outcome.is_unmovable());
            for_kafka = Some(movable.map(|planned| planned.at).collect::<BTreeSet<_>>());
        }
        let set = |of| for_kafka.as_ref().map(|partitions| set_kafka(control, &request.group, partitions, of));
        let order = Order {
            request: request.clone(),
            plan: plan.map(str::to_owned),
            meaning: asked.meaning,
            looked: asked.looked,
            actor: actor.to_owned(),
            reason: reason.to_owned(),
        };
        let refused = match control.journal.decide(move |state| rollback::decide(state, &order)) {
            Ok((entries, Decided::Moves)) => {
                let moved = executed(entries.first(), clock_uncertain);
                return Ok(Executed { kafka: set(moved.seq), ..moved });
            }
            Ok((_, Decided::NothingToDo(epoch))) => {
                let moves = Vec::new();
                return Ok(Executed { seq: None, epoch, repeated: false, moves, clock_uncertain, kafka: set(None) });
            }
            // Its entry is published by now, as a decision is answered after all that it saw.
            Ok((_, Decided::Repeated(seq))) => {
                return receipt(control, &request.group, &group, seq, clock_uncertain);
            }
            Err(DecideError::Unavailable(error)) => return Err(error.into()),
            Err(DecideError::Refused(refused)) => refused,
        };
        return Err(match refused {
            // The move to undo is another one now: find out what it did.
            Refused::MovedAgain(_) => continue,
            Refused::Outdated(plan) => ExecuteError::Outdated(Box::new(Plan { clock_uncertain, ..*plan })),
            Refused::NotExecutable(plan) => ExecuteError::Refused(Box::new(Plan { clock_uncertain, ..*plan })),
            Refused::UnknownGroup(group) => PlanError::from(unknown_group(control, &group)).into(),
            Refused::WrongName(wrong) => PlanError::wrong_name(&request.group, wrong).into(),
        });
    }
}

fn unknown_group(control: &Control, group: &Group) -> UnknownGroup {
    control.journal.with_state(|state| UnknownGroup::new(state, group))
}

fn known_group(control: &Control, group: &Group) -> Result<GroupState, PlanError> {
    control.journal.group(group).ok_or_else(|| unknown_group(control, group).into())
}

fn executed(entry: Option<&Entry>, clock_uncertain: bool) -> Executed {
    let Some(Entry { seq, epoch, body: Body::RolledBack(rolled_back), .. }) = entry else {
        unreachable!("a plan that moves a group is executed by a rolled_back entry")
    };
    let moves = rolled_back.correction.moves.clone();
    Executed { seq: Some(*seq), epoch: *epoch, repeated: false, moves, clock_uncertain, kafka: None }
}

/// Sets Kafka's committed offsets of these partitions. The group has moved, or was there already, whatever comes of it: what
/// could not be tried is said for each of them.
fn set_kafka(control: &Control, group: &Group, partitions: &BTreeSet<TopicPartition>, of: Option<Seq>) -> KafkaSet {
    mirror::set_positions(control, group, partitions, of).unwrap_or_else(|why| {
        tracing::warn!("Kafka's committed offsets of group {group} are not set: {why}");
        let not_set = |at: &TopicPartition| KafkaOutcome {
            topic: at.topic.clone(),
            partition: at.partition,
            offset: None,
            error: Some(why.to_string()),
        };
        let partitions = partitions.iter().map(not_set).collect();
        KafkaSet { group: group.clone(), of, kafka_group: None, seq: None, partitions }
    })
}

/// The first receipt of a plan that entry `seq` executed. Its moves are empty once the entry is pruned.
fn receipt(
    control: &Control,
    name: &Group,
    group: &GroupState,
    seq: Seq,
    clock_uncertain: bool,
) -> Result<Executed, ExecuteError> {
    let first = match control.journal.entry(seq).map_err(PlanError::from)? {
        Some(entry) => {
            let with_kafka = matches!(&entry.body, Body::RolledBack(rolled_back) if rolled_back.kafka);
            let set = || mirror::newest_result(control, name, seq).map_err(PlanError::from);
            let kafka = if with_kafka { Some(set()?) } else { None };
            Executed { kafka, ..executed(Some(&entry), clock_uncertain) }
        }
        None => {
            let (moves, kafka) = (Vec::new(), None);
            Executed { seq: Some(seq), epoch: group.epoch, repeated: true, moves, clock_uncertain, kafka }
        }
    };
    Ok(Executed { repeated: true, ..first })
}

/// Whether times are not to be relied on: at the newest entry, or at the moment that is the target, the journal's clock
/// stood over a minute off the machine's, or the machine's has been set back by so much since.
pub fn clock_uncertain(control: &Control, moment: Option<Seq>) -> Result<bool, ReadError> {
    let newest = control.journal.with_state(|state| state.seq);
    let Some(newest) = control.journal.entry(newest)? else { return Ok(false) };
    let target = match moment {
        Some(moment) => control.journal.entry(moment)?,
        None => None,
    };
    let apart = |entry: &Entry| entry.recorded_at.millis().abs_diff(entry.machine_clock.millis()) > CLOCK_TOLERANCE_MS;
    let set_back = newest.recorded_at.millis().saturating_sub((control.clock)().millis());
    let set_back = u64::try_from(set_back).is_ok_and(|set_back| set_back > CLOCK_TOLERANCE_MS);
    Ok(set_back || apart(&newest) || target.as_ref().is_some_and(apart))
}
