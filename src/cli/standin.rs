//! STAND-IN for `control::start` until it lands: looks, decides, writes.

use std::collections::{BTreeMap, BTreeSet};

use crate::broker::{Ask, TopicSelector};
use crate::control::Control;
use crate::entry::Finding;
use crate::journal::{DecideError, ReadError, WriteError};
use crate::offset::{Epoch, Group, Invalid, Isolation, Seq, TopicPartition};
use crate::reconcile::{Decided, Decision, Holes, Observed, Occasion, Policy, Question, StartPosition, decide};

#[derive(Debug, Clone)]
pub struct StartRequest {
    pub group: Group,
    pub topics: Vec<TopicSelector>,
    pub owner: String,
    pub policy: Policy,
    pub isolation: Option<Isolation>,
    pub dry_run: bool,
}

#[derive(Debug, Clone)]
pub struct Started {
    pub epoch: Epoch,
    pub seq: Seq,
    pub cluster_id: Option<String>,
    pub positions: Vec<StartPosition>,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error("held")]
    Held,
    #[error("refused")]
    Refused(Vec<Finding>),
    #[error("no answer from the broker: {0}")]
    BrokerUnavailable(String),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

fn observe(control: &Control, request: &StartRequest) -> Result<Observed, StartError> {
    let positions = control.journal.group(&request.group).map(|group| group.positions).unwrap_or_default();
    let Some(broker) = &control.broker else { return Err(StartError::BrokerUnavailable("none".to_owned())) };
    let ask = Ask {
        topics: request.topics.clone(),
        isolation: request.isolation.unwrap_or_default(),
        deadline: control.limits.deadline,
    };
    Ok(Observed { look: broker.look(&ask), positions })
}

fn decided(
    control: &Control,
    request: &StartRequest,
    observed: &Observed,
    earlier: Option<&Observed>,
    occasion: Occasion<'_>,
) -> Decision {
    let state = control.journal.group(&request.group);
    decide(&Question {
        group: &request.group,
        state: state.as_ref(),
        topics: &request.topics,
        observed,
        earlier,
        holes: &Holes::Looked(Vec::new()),
        firsts: &BTreeMap::new(),
        policy: &request.policy,
        occasion,
    })
}

fn write(control: &Control, observed: &Observed, decided: Decided, dry_run: bool) -> Result<Started, StartError> {
    let Decided { epoch, findings, starts, drafts, .. } = decided;
    let drafts = if dry_run { Vec::new() } else { drafts };
    let done = control.journal.decide(move |_| Ok::<_, ()>((drafts, ())));
    if let Err(DecideError::Unavailable(error)) = done {
        return Err(error.into());
    }
    let seq = control.journal.with_state(|state| state.seq);
    let cluster_id = observed.look.cluster_id.known().cloned();
    Ok(Started { epoch, seq, cluster_id, positions: starts, findings })
}

pub fn start(control: &Control, request: StartRequest) -> Result<Started, StartError> {
    let mut earlier = None;
    for _ in 0..4 {
        let observed = observe(control, &request)?;
        let occasion = Occasion::Start { owner: &request.owner, isolation: request.isolation };
        match decided(control, &request, &observed, earlier.as_ref(), occasion) {
            Decision::LookAgain { .. } => {
                earlier.get_or_insert(observed);
                std::thread::sleep(control.limits.second_look);
            }
            Decision::Refused { findings } => return Err(StartError::Refused(findings)),
            Decision::Decided(decided) => return write(control, &observed, decided, request.dry_run),
        }
    }
    Err(StartError::BrokerUnavailable("not settled".to_owned()))
}

pub fn look(
    control: &Control,
    request: &StartRequest,
    assigned: &BTreeSet<TopicPartition>,
) -> Result<Started, StartError> {
    let observed = observe(control, request)?;
    match decided(control, request, &observed, None, Occasion::Running { assigned, undoubted: None }) {
        Decision::LookAgain { .. } => Err(StartError::BrokerUnavailable("not settled".to_owned())),
        Decision::Refused { findings } => Err(StartError::Refused(findings)),
        Decision::Decided(decided) => write(control, &observed, decided, false),
    }
}
