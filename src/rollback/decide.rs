//! Executing a plan: the decision that the journal's writer runs on the pending state.

use super::step::{self, Step};
use super::{Looked, Meaning, Plan, PlanRequest, WrongName};
use crate::entry::{Body, Correction, Draft, RolledBack};
use crate::offset::{Epoch, Group, Seq};
use crate::positions::{GroupState, State};

/// An order to execute a plan.
///
/// ```
/// use tidelog::offset::Group;
/// use tidelog::positions::State;
/// use tidelog::rollback::{Meaning, Order, PlanRequest, Refused, Target, decide};
///
/// let request = PlanRequest::new(Group::new("default", "loader")?, Target::Shift(-42));
/// let (meaning, actor, reason) = (Meaning::Shift(-42), "ann".to_owned(), "the sink lost its disk".to_owned());
/// let order = Order { request, plan: None, meaning, looked: None, actor, reason };
/// assert!(matches!(decide(&State::default(), &order), Err(Refused::UnknownGroup(_))));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone)]
pub struct Order {
    /// What the plan gave to execute.
    pub request: PlanRequest,
    /// The plan's id; none to execute whatever the plan is by now.
    pub plan: Option<String>,
    /// What the target means.
    pub meaning: Meaning,
    /// What the broker says.
    pub looked: Option<Looked>,
    /// Who orders it.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// What comes of an order that is not refused.
///
/// ```
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let mut state = tidelog::positions::State::default();
/// # state.groups.insert(loader.clone(), Default::default());
/// # let request = tidelog::rollback::PlanRequest::new(loader, tidelog::rollback::Target::Shift(-42));
/// # let (actor, reason) = ("ann".to_owned(), "the sink lost its disk".to_owned());
/// use tidelog::offset::Epoch;
/// use tidelog::rollback::{Decided, Meaning, Order, decide};
///
/// let order = Order { request, plan: None, meaning: Meaning::Shift(-42), looked: None, actor, reason };
/// let (drafts, decided) = decide(&state, &order)?; // of a group without any partition
/// assert!(drafts.is_empty());
/// assert_eq!(decided, Decided::NothingToDo(Epoch::ZERO));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// The group moves.
    Moves,
    /// It is where it should be, under this epoch; where a hold was asked for, that is the only entry.
    NothingToDo(Epoch),
    /// The plan was executed before, by this entry.
    Repeated(Seq),
}

/// Why an order was refused.
///
/// ```
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let mut state = tidelog::positions::State::default();
/// # state.groups.insert(loader.clone(), Default::default());
/// # let request = tidelog::rollback::PlanRequest::new(loader, tidelog::rollback::Target::Shift(-42));
/// # let (actor, reason) = ("ann".to_owned(), "the sink lost its disk".to_owned());
/// use tidelog::rollback::{Meaning, Order, Refused, decide};
///
/// let plan = Some("p-9f3c".to_owned()); // made before the group was moved
/// let order = Order { request, plan, meaning: Meaning::Shift(-42), looked: None, actor, reason };
/// assert!(matches!(decide(&state, &order), Err(Refused::Outdated(now)) if now.id != "p-9f3c"));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// The journal has no such group.
    #[error("no group {0} in this journal")]
    UnknownGroup(Group),
    /// The group has not what the order names, or it is retired.
    #[error(transparent)]
    WrongName(#[from] WrongName),
    /// Another move came after the one that is to be undone.
    #[error("group {0} was moved again meanwhile")]
    MovedAgain(Group),
    /// The plan is another one by now.
    #[error("the plan is out of date: it is {} now", .0.id)]
    Outdated(Box<Plan>),
    /// The plan is not executable.
    #[error("{}", .0.why_not())]
    NotExecutable(Box<Plan>),
}

/// Executes `order` on `state`: the entries to append, all or none, and what came of it.
///
/// The plan is made again and compared by its id. What is settled only now: old offsets, the limits of an undo, where
/// the logs start.
pub fn decide(state: &State, order: &Order) -> Result<(Vec<Draft>, Decided), Refused> {
    let Order { request, .. } = order;
    let Some(group) = state.groups.get(&request.group) else {
        return Err(Refused::UnknownGroup(request.group.clone()));
    };
    if let Some(seq) = order.plan.as_ref().and_then(|plan| executed(group, plan)) {
        return Ok((Vec::new(), Decided::Repeated(seq)));
    }
    request.check_names(group)?;
    if matches!(order.meaning, Meaning::Undo { of, .. } if group.last_move != Some(of)) {
        return Err(Refused::MovedAgain(request.group.clone()));
    }
    let steps = step::steps(request, group, &order.meaning, order.looked.as_ref());
    let plan = Plan::new(request, group, &order.meaning, &steps);
    if order.plan.as_ref().is_some_and(|id| *id != plan.id) {
        return Err(Refused::Outdated(Box::new(plan)));
    }
    if !plan.executable() {
        return Err(Refused::NotExecutable(Box::new(plan)));
    }
    if plan.nothing_to_do {
        let held =
            hold(group, order).map(|body| Draft { group: Some(request.group.clone()), epoch: group.epoch, body });
        return Ok((held.into_iter().collect(), Decided::NothingToDo(group.epoch)));
    }
    Ok((drafts(group, order, &steps, plan), Decided::Moves))
}

/// The entry that `plan` made when it was executed.
pub fn executed(group: &GroupState, plan: &str) -> Option<Seq> {
    group.plans.iter().rev().find(|(id, _)| id == plan).map(|(_, seq)| *seq)
}

fn drafts(group: &GroupState, order: &Order, steps: &[Step], plan: Plan) -> Vec<Draft> {
    let Order { request, actor, reason, .. } = order;
    let moving = || steps.iter().filter(|step| step.moves());
    let correction = Correction {
        moves: moving().map(Step::to_move).collect(),
        losses: moving().flat_map(Step::losses).collect(),
        ..Correction::default()
    };
    let rolled_back = Body::RolledBack(RolledBack {
        plan: plan.id,
        target: request.to.to_string(),
        actor: actor.clone(),
        reason: reason.clone(),
        undoes: match order.meaning {
            Meaning::Undo { of, .. } => Some(of),
            _ => None,
        },
        kafka: request.kafka,
        correction,
    });
    let held = hold(group, order);
    let draft = |body| Draft { group: Some(request.group.clone()), epoch: group.epoch.next(), body };
    [Some(rolled_back), held].into_iter().flatten().map(draft).collect()
}

/// The hold that is asked for. One that is there already stays as it is: who, since when, why.
fn hold(group: &GroupState, order: &Order) -> Option<Body> {
    let wanted = order.request.hold && group.held.is_none();
    wanted.then(|| Body::Held { reason: order.reason.clone(), actor: order.actor.clone() })
}
