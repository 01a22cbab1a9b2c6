//! Planning and executing a rollback: finds what the target means, asks the broker, decides.

mod ask;
mod error;
mod resolve;
#[cfg(test)]
mod tests;

use self::ask::Asked;
pub use self::error::{ExecuteError, OldestBatch, PlanError};
use super::{Control, UnknownGroup, check_reason};
use crate::entry::{Body, Entry, Move};
use crate::journal::{DecideError, ReadError};
use crate::offset::{Epoch, Group, Seq, free_name};
use crate::positions::GroupState;
use crate::rollback::{self, Decided, Order, Plan, PlanRequest, Refused};

/// Past this the journal's clock and the machine's are said to differ.
const CLOCK_TOLERANCE_MS: u64 = 60_000;

/// What an executed plan came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Executed {
    /// The entry; none if there was nothing to do. Where nothing moved and the group was put on hold, that one.
    pub seq: Option<Seq>,
    /// The group's epoch after it.
    pub epoch: Epoch,
    /// Whether the plan had been executed before, and this is the first receipt again.
    pub repeated: bool,
    /// What moved, ordered by topic-partition.
    pub moves: Vec<Move>,
    /// Whether the machine's clock and the journal's differ by over a minute.
    pub clock_uncertain: bool,
}

/// What `request` would do now. Changes nothing.
///
/// Blocks for the broker's answer, at most for the deadline; the broker is not asked where the request says `unchecked`,
/// or the target has nothing to do.
pub fn plan(control: &Control, request: PlanRequest) -> Result<Plan, PlanError> {
    request.check()?;
    let group = known_group(control, &request.group)?;
    let asked = Asked::new(control, &request, &group)?;
    let mut plan = rollback::plan(&request, &group, &asked.meaning, asked.looked.as_ref());
    plan.clock_uncertain = clock_uncertain(control, plan.moment.map(|moment| moment.seq))?;
    Ok(plan)
}

/// Executes `request`, which a plan gave to execute, with the plan's id; without one, whatever its plan is by now.
///
/// A plan that was executed before answers with the first receipt; one that has nothing to do makes no entry.
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
            return receipt(control, &group, seq, clock_uncertain(control, None).map_err(PlanError::from)?);
        }
        let asked = Asked::new(control, &request, &group)?;
        let clock_uncertain =
            clock_uncertain(control, asked.meaning.moment().map(|moment| moment.seq)).map_err(PlanError::from)?;
        let order = Order {
            request: request.clone(),
            plan: plan.map(str::to_owned),
            meaning: asked.meaning,
            looked: asked.looked,
            actor: actor.to_owned(),
            reason: reason.to_owned(),
        };
        let refused = match control.journal.decide(move |state| rollback::decide(state, &order)) {
            Ok((entries, Decided::Moves)) => return Ok(executed(entries.first(), clock_uncertain)),
            Ok((held, Decided::NothingToDo(epoch))) => {
                let seq = held.first().map(|entry| entry.seq);
                return Ok(Executed { seq, epoch, repeated: false, moves: Vec::new(), clock_uncertain });
            }
            // Its entry is published by now, as a decision is answered after all that it saw.
            Ok((_, Decided::Repeated(seq))) => return receipt(control, &group, seq, clock_uncertain),
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
    Executed { seq: Some(*seq), epoch: *epoch, repeated: false, moves, clock_uncertain }
}

/// The first receipt of a plan that entry `seq` executed. Its moves are empty once the entry is pruned.
fn receipt(control: &Control, group: &GroupState, seq: Seq, clock_uncertain: bool) -> Result<Executed, ExecuteError> {
    let first = match control.journal.entry(seq).map_err(PlanError::from)? {
        Some(entry) => executed(Some(&entry), clock_uncertain),
        None => {
            let moves = Vec::new();
            Executed { seq: Some(seq), epoch: group.epoch, repeated: true, moves, clock_uncertain }
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
