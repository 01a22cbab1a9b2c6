//! Plans and rollbacks as JSON: what is asked, the plan, what was done.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::control::Executed;
use crate::offset::{BatchNumber, Epoch, Group, Invalid, Offset, Seq, Timestamp, TopicName, TopicPartition};
use crate::rollback::{self, Edge, Plan, PlanRequest, Scope, Target};
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

/// A target: one of the fields is set; `edge` goes with `batch`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct To {
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<BatchNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edge: Option<EdgeWord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<Seq>,
    #[serde(skip_serializing_if = "is_false")]
    undo: bool,
    #[serde(skip_serializing_if = "is_false")]
    earliest: bool,
    #[serde(skip_serializing_if = "is_false")]
    latest: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<Offset>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shift: Option<Shift>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offsets: Option<Vec<OffsetLine>>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EdgeWord {
    Before,
    After,
}

/// An offset of a partition.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffsetLine {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
    /// The offset.
    pub offset: Offset,
}

/// The only number that may be negative: a string, or an integer, like the others.
#[derive(Debug, Clone, Copy)]
struct Shift(i64);

impl Serialize for Shift {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Shift {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "shift: a string of digits or an integer, which may be negative")]
        enum Either {
            Number(i64),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(number) => Ok(Shift(number)),
            Either::Text(text) => {
                let digits = text.strip_prefix('-').unwrap_or(&text);
                let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
                let number = text.parse().ok().filter(|_| plain);
                let why = "not a whole number between -9223372036854775808 and 9223372036854775807";
                number.map(Shift).ok_or_else(|| de::Error::custom(Invalid::new("shift", &text, why)))
            }
        }
    }
}

impl From<&Target> for To {
    fn from(target: &Target) -> Self {
        let mut to = To::default();
        match target {
            Target::Batch { batch, edge } => {
                to.batch = Some(*batch);
                to.edge = Some(match edge {
                    Edge::Before => EdgeWord::Before,
                    Edge::After => EdgeWord::After,
                });
            }
            Target::CommitTime(time) => to.commit_time = Some(*time),
            Target::Mark(name) => to.mark = Some(name.clone()),
            Target::Seq(seq) => to.seq = Some(*seq),
            Target::Undo => to.undo = true,
            Target::Earliest => to.earliest = true,
            Target::Latest => to.latest = true,
            Target::Offset(offset) => to.offset = Some(*offset),
            Target::Shift(shift) => to.shift = Some(Shift(*shift)),
            Target::RecordTime(time) => to.record_time = Some(*time),
            Target::Duration(duration) => to.duration = Some(format!("PT{}S", duration.as_secs())),
            Target::Offsets(offsets) => {
                let line = |(at, offset): (&TopicPartition, &Offset)| OffsetLine {
                    topic: at.topic.clone(),
                    partition: at.partition,
                    offset: *offset,
                };
                to.offsets = Some(offsets.iter().map(line).collect());
            }
        }
        to
    }
}

impl To {
    fn target(self) -> Result<Target, Invalid> {
        let edge = match self.edge {
            Some(EdgeWord::Before) => Edge::Before,
            Some(EdgeWord::After) | None => Edge::After,
        };
        let duration = self.duration.as_deref().map(rollback::parse_duration).transpose()?;
        let offsets = self.offsets.map(offsets).transpose()?;
        let with_edge = self.edge.is_some() && self.batch.is_none();
        let given = [
            self.batch.map(|batch| Target::Batch { batch, edge }),
            self.commit_time.map(Target::CommitTime),
            self.mark.map(Target::Mark),
            self.seq.map(Target::Seq),
            self.undo.then_some(Target::Undo),
            self.earliest.then_some(Target::Earliest),
            self.latest.then_some(Target::Latest),
            self.offset.map(Target::Offset),
            self.shift.map(|shift| Target::Shift(shift.0)),
            self.record_time.map(Target::RecordTime),
            duration.map(Target::Duration),
            offsets.map(Target::Offsets),
        ];
        let mut given = given.into_iter().flatten();
        match (given.next(), given.count(), with_edge) {
            (Some(target), 0, false) => Ok(target),
            (_, _, true) => Err(Invalid::new("to", "edge", "goes with a batch only")),
            (None, _, _) => Err(Invalid::new("to", "", "names no target; give exactly one")),
            (Some(_), more, _) => Err(Invalid::new("to", more + 1, "targets at once; give exactly one")),
        }
    }
}

fn offsets(lines: Vec<OffsetLine>) -> Result<BTreeMap<TopicPartition, Offset>, Invalid> {
    let mut offsets = BTreeMap::new();
    for line in lines {
        let at = TopicPartition::new(line.topic, line.partition);
        if offsets.insert(at.clone(), line.offset).is_some() {
            return Err(Invalid::new("offsets", at, "named twice"));
        }
    }
    Ok(offsets)
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
