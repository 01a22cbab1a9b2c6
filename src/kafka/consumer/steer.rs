//! Where to start, and what became of the partitions: asked of `control`, in the consumer's words.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::StopReason;
use crate::control::{
    Control, LookError, Looked, StartError, StartRequest, Started, look_while_running, start, start_again,
};
use crate::entry::{Finding, Verdict};
use crate::offset::{BatchNumber, Epoch, TopicPartition};
use crate::reconcile::StartPosition;

/// What a start, or a look while running, came to. It is in the journal already.
#[derive(Debug, Clone, Default)]
pub(super) struct Start {
    pub(super) epoch: Epoch,
    /// At a start each partition; while running those that are new or were moved.
    pub(super) starts: Vec<StartPosition>,
    /// What a person should know: a topic that is gone, values that the broker did not give, what a policy forbids.
    pub(super) problems: Vec<String>,
    /// Partitions that a policy leaves where they can't be read on.
    pub(super) refused: BTreeSet<TopicPartition>,
}

/// Why there is no start.
pub(super) enum Halt {
    /// The group is held, or the broker did not say: again later.
    Later(String),
    /// The consumer stops.
    Stop(StopReason),
}

/// Starts the group, and looks after it while it is read, always as the same owner.
pub(super) struct Steer {
    pub(super) control: Control,
    pub(super) request: StartRequest,
    /// The newest batch before the last look that left nothing unsettled.
    undoubted: Mutex<Option<BatchNumber>>,
}

impl Steer {
    pub(super) fn new(control: Control, request: StartRequest) -> Steer {
        Steer { control, request: StartRequest { dry_run: false, ..request }, undoubted: Mutex::new(None) }
    }

    /// Reconciles the group and starts it, whoever had it.
    pub(super) fn start(&self) -> Result<Started, StartError> {
        start(&self.control, self.request.clone()).inspect(|started| started.findings.iter().for_each(tell))
    }

    /// Takes the new positions after the group was moved, if no other owner has started it.
    pub(super) fn restart(&self) -> Result<Start, Halt> {
        let started = start_again(&self.control, self.request.clone()).map_err(|error| match error {
            // What a policy forbids at a start stops it, in contrast to a look.
            LookError::Start(error) => error.into(),
            LookError::Fenced(_) | LookError::UnknownGroup(_) => Halt::from(error),
        })?;
        started.findings.iter().for_each(tell);
        Ok(started.into())
    }

    /// Looks at the broker and journals what it found of these partitions, and partitions that are new.
    pub(super) fn look(&self, assigned: &BTreeSet<TopicPartition>) -> Result<Start, Halt> {
        let undoubted = || self.undoubted.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *undoubted();
        let looked = look_while_running(&self.control, &self.request, assigned, before)?;
        if looked.unsettled.is_empty() && looked.refused.is_empty() {
            *undoubted() = Some(looked.batch);
        }
        let Looked { epoch, positions, findings, unsettled, refused, .. } = looked;
        let (missing, corrected): (Vec<_>, Vec<_>) =
            findings.iter().partition(|finding| finding.verdict == Verdict::TopicMissing);
        for finding in corrected {
            tell(finding);
        }
        let problems = missing.into_iter().chain(&refused).map(ToString::to_string);
        let problems = problems.chain(unsettled.iter().map(ToString::to_string)).collect();
        let partition = |finding: &Finding| Some(TopicPartition::new(finding.topic.clone()?, finding.partition?));
        Ok(Start { epoch, starts: positions, problems, refused: refused.iter().filter_map(partition).collect() })
    }
}

impl From<Started> for Start {
    fn from(started: Started) -> Self {
        let missing = started.findings.iter().filter(|finding| finding.verdict == Verdict::TopicMissing);
        let problems = missing.map(ToString::to_string).collect();
        Start { epoch: started.epoch, starts: started.positions, problems, refused: BTreeSet::new() }
    }
}

impl From<StartError> for Halt {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Held { .. } | StartError::BrokerUnavailable { .. } => Halt::Later(error.to_string()),
            StartError::Refused { .. } | StartError::Invalid(_) => Halt::Stop(StopReason::Refused(error.to_string())),
            StartError::Unavailable(error) => Halt::Stop(StopReason::Journal(error.to_string())),
        }
    }
}

impl From<LookError> for Halt {
    fn from(error: LookError) -> Self {
        match error {
            LookError::Fenced(fenced) => Halt::Stop(StopReason::Fenced { owner: fenced.owner, epoch: fenced.epoch }),
            LookError::UnknownGroup(unknown) => Halt::Stop(StopReason::Refused(unknown.to_string())),
            // Another cluster answers, which the policy does not accept: what can be read is read on.
            LookError::Start(refused @ StartError::Refused { .. }) => Halt::Later(refused.to_string()),
            LookError::Start(error) => error.into(),
        }
    }
}

/// Tells a finding: trouble loudly.
fn tell(finding: &Finding) {
    if finding.is_trouble() {
        tracing::warn!("{finding}");
    } else {
        tracing::info!("{finding}");
    }
}
