//! A running consumer's own look at what it reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::evidence::{Evidence, Looks};
use super::{Claim, LOOKS_IN_DEADLINE, StartError, StartRequest, Undecided, decided, may_start, owned};
use crate::broker::Broker;
use crate::control::{Control, UnknownGroup};
use crate::entry::{Draft, Finding};
use crate::offset::{BatchNumber, Epoch, Group, Seq, TopicPartition};
use crate::positions::{RaisedBy, State};
use crate::reconcile::{self, Decided, Occasion, StartPosition, Unsettled, Why};

/// Holes that one look while running looks into: only to close those that hold nothing, so the rest can wait.
const MAX_HOLES: usize = 100;

/// What a look while running came to; all of it is in the journal.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # tidelog::control::start(&control, request.clone())?;
///
/// use std::collections::BTreeSet;
/// use tidelog::control::look_while_running;
///
/// let looked = look_while_running(&control, &request, &BTreeSet::new(), None)?;
/// // Nothing has moved: all goes on as it was assigned.
/// assert!(looked.positions.is_empty() && looked.unsettled.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Looked {
    /// The group's epoch.
    pub epoch: Epoch,
    /// The journal's newest entry.
    pub seq: Seq,
    /// Partitions that are new, or that were moved: assign them anew, at these offsets.
    pub positions: Vec<StartPosition>,
    /// What was found; a missing topic is only said.
    pub findings: Vec<Finding>,
    /// What the next look has to settle.
    pub unsettled: Vec<Unsettled>,
    /// What a policy forbids to correct: it is left as it is, and said again at each look.
    pub refused: Vec<Finding>,
    /// The group's newest batch before the look, for the next one to know which batches came since.
    pub batch: BatchNumber,
}

/// Why a look while running, or a start of one that goes on, came to nothing; the journal is unchanged.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
///
/// use std::collections::BTreeSet;
/// use tidelog::control::{LookError, StartRequest, look_while_running};
///
/// let request = StartRequest::new(loader, vec!["orders".parse()?], "me");
/// // Nobody has started the group.
/// let error = look_while_running(&control, &request, &BTreeSet::new(), None);
/// assert!(matches!(error, Err(LookError::UnknownGroup(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
pub enum LookError {
    /// Another process has started the group: this one stops.
    #[error(transparent)]
    Fenced(Box<Fenced>),
    /// The journal has no such group: start it.
    #[error(transparent)]
    UnknownGroup(UnknownGroup),
    /// As for a start.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Another process is a group's owner by now.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # tidelog::control::start(&control, request.clone())?;
///
/// use std::collections::BTreeSet;
/// use tidelog::control::{LookError, StartRequest, look_while_running, start};
///
/// start(&control, StartRequest { owner: "another".to_owned(), ..request.clone() })?;
/// let error = look_while_running(&control, &request, &BTreeSet::new(), None);
/// assert!(matches!(error, Err(LookError::Fenced(fenced)) if fenced.owner == "another" && fenced.by == "me"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("group {group} was started by {owner}, epoch {epoch}; {by} is no longer its owner")]
pub struct Fenced {
    /// The group.
    pub group: Group,
    /// Its owner now.
    pub owner: String,
    /// Its epoch now.
    pub epoch: Epoch,
    /// What raised that.
    pub raised_by: Option<RaisedBy>,
    /// Who looked.
    pub by: String,
}

/// Looks at the partitions that the consumer of `request` reads, and at what is new to its topics; corrects, takes in,
/// and answers what to assign anew. What would be corrected only if seen twice is looked at twice within the call. A
/// value that is not known, and a correction that the policy forbids, keep nothing else from being settled; a second look
/// that comes to nothing leaves what the first one came to, with what that left unsettled.
///
/// `undoubted` is [`Looked::batch`] of the last look that left nothing unsettled.
///
/// Blocks for one or two looks. Without a broker nothing is found.
pub fn look_while_running(
    control: &Control,
    request: &StartRequest,
    assigned: &BTreeSet<TopicPartition>,
    undoubted: Option<BatchNumber>,
) -> Result<Looked, LookError> {
    let request = Arc::new(request.clone());
    let reading = Arc::new(Reading { assigned: assigned.clone(), undoubted });
    let Some(broker) = &control.broker else {
        let (_, looked) = control
            .journal
            .with_state(|state| rule(state, &request, &reading, None))
            .map_err(|undecided| undecided.error(&request, control, ""))?;
        return Ok(looked);
    };
    let mut looks = Looks::new(control.limits.second_look);
    let first = settle(control, broker.as_ref(), &request, &reading, &mut looks)?;
    if !first.unsettled.iter().any(|unsettled| matches!(unsettled.why, Why::Once(_))) {
        return Ok(first);
    }
    std::thread::sleep(control.limits.second_look);
    match settle(control, broker.as_ref(), &request, &reading, &mut looks) {
        Ok(second) => Ok(first.followed_by(second)),
        Err(fenced @ LookError::Fenced(_)) => Err(fenced),
        Err(error) => {
            // What the first one found is journaled, and nobody would say so again.
            tracing::warn!("the second look at group {}: {error}", request.group);
            Ok(first)
        }
    }
}

impl Looked {
    /// Both, where the second settled what the first left.
    fn followed_by(self, second: Looked) -> Looked {
        let moved_again = |at: &TopicPartition| second.positions.iter().any(|start| start.at == *at);
        let mut positions: Vec<_> = self.positions.into_iter().filter(|start| !moved_again(&start.at)).collect();
        positions.extend(second.positions.iter().cloned());
        positions.sort_by(|a, b| a.at.cmp(&b.at));
        let mut findings = self.findings;
        findings.extend(second.findings.iter().filter(|f| !findings.contains(f)).cloned().collect::<Vec<_>>());
        Looked { positions, findings, batch: self.batch, ..second }
    }
}

/// What the consumer reads.
struct Reading {
    assigned: BTreeSet<TopicPartition>,
    undoubted: Option<BatchNumber>,
}

fn settle(
    control: &Control,
    broker: &dyn Broker,
    request: &Arc<StartRequest>,
    reading: &Arc<Reading>,
    looks: &mut Looks,
) -> Result<Looked, LookError> {
    let deadline = control.limits.deadline / LOOKS_IN_DEADLINE;
    let evidence = Evidence::look(control, broker, request, looks, deadline);
    let evidence = evidence.into_holes(broker, looks, deadline, MAX_HOLES);
    let brokers = evidence.observed.look.brokers.clone();
    let (asked, reading) = (Arc::clone(request), Arc::clone(reading));
    let decided = control.journal.decide(move |state| rule(state, &asked, &reading, Some(&evidence)));
    match decided {
        Ok((entries, looked)) => Ok(Looked { seq: entries.last().map_or(looked.seq, |entry| entry.seq), ..looked }),
        Err(error) => Err(Undecided::from(error).error(request, control, &brokers)),
    }
}

/// Pure: what a look under this state comes to. Its seq is that of the state.
fn rule(
    state: &State,
    request: &StartRequest,
    reading: &Reading,
    evidence: Option<&Evidence>,
) -> Result<(Vec<Draft>, Looked), Undecided> {
    let group = owned(state, request)?;
    may_start(state, request, Claim::Own)?;
    let Some(evidence) = evidence else {
        let (epoch, seq, batch) = (group.epoch, state.seq, group.positions.batch);
        let (positions, findings, unsettled, refused) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        return Ok((Vec::new(), Looked { epoch, seq, positions, findings, unsettled, refused, batch }));
    };
    let occasion = Occasion::Running { assigned: &reading.assigned, undoubted: reading.undoubted };
    let decision = reconcile::decide(&evidence.question(Some(group), request, occasion));
    let Decided { epoch, findings, starts, drafts, unsettled, refused } = decided(decision)?;
    let batch = evidence.observed.positions.batch;
    Ok((drafts, Looked { epoch, seq: state.seq, positions: starts, findings, unsettled, refused, batch }))
}
