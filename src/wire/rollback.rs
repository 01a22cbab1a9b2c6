//! Plans and rollbacks as JSON: what is asked, the plan, what was done.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::control::Executed;
use crate::offset::{Epoch, Group, Invalid, Offset, Seq, TopicName};
use crate::rollback::{self, Plan, PlanRequest, Scope};
use crate::wire::target::To;
use crate::wire::{AsOf, Count};

/// What is asked for; without the group, which the route or the command names.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollbackBody {
    /// Exactly one target.
    pub to: To,
    /// What of the group; the whole of it if empty.
    #[serde(default)]
    pub scope: Vec<ScopeBody>,
    /// Whether Kafka's committed offsets are set too.
    #[serde(default)]
    pub kafka: bool,
    /// Whether `expired` and `beyond_end` go where they can.
    #[serde(default)]
    pub allow_clamp: bool,
    /// Whether `recreated`, `missing` and `unknown` stay.
    #[serde(default)]
    pub leave_unmovable: bool,
    /// Whether the broker is not asked.
    #[serde(default)]
    pub unchecked: bool,
    /// Whether the group is kept stopped afterwards.
    #[serde(default)]
    pub hold: bool,
    /// The id of the plan that is to be executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

impl RollbackBody {
    /// The body that asks for `request`.
    pub fn new(request: &PlanRequest, plan: Option<String>) -> Self {
        let scope = |scope: &Scope| ScopeBody { topic: scope.topic.clone(), partitions: scope.partitions.clone() };
        RollbackBody {
            to: To::from(&request.to),
            scope: request.scope.iter().map(scope).collect(),
            kafka: request.kafka,
            allow_clamp: request.allow_clamp,
            leave_unmovable: request.leave_unmovable,
            unchecked: request.unchecked,
            hold: request.hold,
            plan,
        }
    }

    /// The request for `group`.
    ///
    /// # Errors
    ///
    /// No target or several, or one with a value that none can have.
    pub fn request(self, group: Group) -> Result<PlanRequest, Invalid> {
        let scope = |scope: ScopeBody| Scope { topic: scope.topic, partitions: scope.partitions };
        Ok(PlanRequest {
            group,
            to: self.to.target()?,
            scope: self.scope.into_iter().map(scope).collect(),
            kafka: self.kafka,
            allow_clamp: self.allow_clamp,
            leave_unmovable: self.leave_unmovable,
            unchecked: self.unchecked,
            hold: self.hold,
        })
    }
}

/// A topic, or some of its partitions.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeBody {
    /// The topic.
    pub topic: TopicName,
    /// Its partitions; all where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<BTreeSet<u32>>,
}

/// A plan: what a rollback would do.
#[derive(Debug, Serialize)]
pub struct PlanAnswer {
    /// The group.
    pub group: String,
    /// Its application.
    pub app: String,
    /// The plan's id.
    pub plan: String,
    /// Whether it can be executed.
    pub executable: bool,
    /// Whether it would change nothing.
    pub nothing_to_do: bool,
    /// Why it can't be executed.
    pub refusals: Vec<RefusalLine>,
    /// The group's epoch.
    pub epoch: Epoch,
    /// The moment of history that it goes to; null for a target that is none.
    pub as_of: Option<AsOf>,
    /// Whether times should not be relied on.
    pub clock_uncertain: bool,
    /// The partitions.
    pub partitions: Vec<PlannedLine>,
    /// The sums.
    pub totals: TotalsLine,
    /// Live members of the group in Kafka; always empty in this version, which does not touch Kafka's offsets.
    pub members: [(); 0],
    /// What to send to execute it.
    pub execute: RollbackBody,
}

/// Why a partition keeps a plan from being executed.
#[derive(Debug, Serialize)]
pub struct RefusalLine {
    topic: TopicName,
    partition: u32,
    outcome: &'static str,
    why: String,
}

/// What becomes of a partition.
#[derive(Debug, Serialize)]
pub struct PlannedLine {
    topic: TopicName,
    partition: u32,
    position: Offset,
    target: Option<Offset>,
    start: Offset,
    outcome: &'static str,
    replayed: Count,
    skipped: Count,
    lost: Count,
}

/// Sums over a plan.
#[derive(Debug, Serialize)]
pub struct TotalsLine {
    replayed: Count,
    skipped: Count,
    lost: Count,
    partitions: Count,
}

impl PlanAnswer {
    /// The plan for `group`.
    pub fn new(group: &Group, plan: &Plan) -> Self {
        let totals = plan.totals();
        PlanAnswer {
            group: group.group().to_owned(),
            app: group.app().to_owned(),
            plan: plan.id.clone(),
            executable: plan.executable(),
            nothing_to_do: plan.nothing_to_do,
            refusals: plan.refusals.iter().map(RefusalLine::from).collect(),
            epoch: plan.epoch,
            as_of: plan.moment.map(|moment| AsOf {
                seq: moment.seq,
                batch: moment.batch,
                recorded_at: moment.recorded_at,
                clock_uncertain: plan.clock_uncertain,
            }),
            clock_uncertain: plan.clock_uncertain,
            partitions: plan.partitions.iter().map(PlannedLine::from).collect(),
            totals: TotalsLine {
                replayed: Count(totals.replayed),
                skipped: Count(totals.skipped),
                lost: Count(totals.lost),
                partitions: Count(totals.partitions),
            },
            members: [],
            execute: RollbackBody::new(&plan.execute, Some(plan.id.clone())),
        }
    }
}

impl From<&rollback::Refusal> for RefusalLine {
    fn from(refusal: &rollback::Refusal) -> Self {
        RefusalLine {
            topic: refusal.at.topic.clone(),
            partition: refusal.at.partition,
            outcome: refusal.outcome.as_str(),
            why: refusal.why.clone(),
        }
    }
}

impl From<&rollback::Planned> for PlannedLine {
    fn from(planned: &rollback::Planned) -> Self {
        PlannedLine {
            topic: planned.at.topic.clone(),
            partition: planned.at.partition,
            position: planned.position,
            target: planned.target,
            start: planned.start,
            outcome: planned.outcome.as_str(),
            replayed: Count(planned.replayed),
            skipped: Count(planned.skipped),
            lost: Count(planned.lost),
        }
    }
}

/// What executing a plan came to.
#[derive(Debug, Serialize)]
pub struct ExecutedAnswer {
    /// The entry; null where there was nothing to do.
    pub seq: Option<Seq>,
    /// The group's epoch.
    pub epoch: Epoch,
    /// Whether it had been executed before.
    pub repeated: bool,
    /// Whether times should not be relied on.
    pub clock_uncertain: bool,
    /// What moved.
    pub partitions: Vec<MovedLine>,
    /// What setting Kafka's committed offsets came to; null where that was not asked for.
    pub kafka: Option<()>,
}

/// A partition that moved.
#[derive(Debug, Serialize)]
pub struct MovedLine {
    topic: TopicName,
    partition: u32,
    old: Option<Offset>,
    new: Option<Offset>,
}

impl From<&Executed> for ExecutedAnswer {
    fn from(executed: &Executed) -> Self {
        let moved = |moved: &crate::entry::Move| MovedLine {
            topic: moved.topic.clone(),
            partition: moved.partition,
            old: moved.old,
            new: moved.new,
        };
        ExecutedAnswer {
            seq: executed.seq,
            epoch: executed.epoch,
            repeated: executed.repeated,
            clock_uncertain: executed.clock_uncertain,
            partitions: executed.moves.iter().map(moved).collect(),
            kafka: None,
        }
    }
}
