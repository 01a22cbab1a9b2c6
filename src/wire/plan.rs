//! Plans and rollbacks as JSON: what would be done, and what was.

use serde::{Deserialize, Serialize};

use crate::broker::Member;
use crate::control::Executed;
use crate::offset::{Epoch, Group, Offset, Seq, TopicName};
use crate::rollback::{self, Outcome, Plan};
use crate::wire::{AsOf, Count, KafkaAnswer, RollbackBody};

/// A plan: what a rollback would do.
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
/// use tidelog::rollback::{PlanRequest, Target};
/// use tidelog::wire::PlanAnswer;
///
/// commit(500, 542)?;
/// let request = PlanRequest { unchecked: true, ..PlanRequest::new(loader.clone(), Target::Offset("510".parse()?)) };
/// let plan = tidelog::control::plan(&control, request)?;
/// let answer = serde_json::to_value(PlanAnswer::new(&loader, &plan))?;
/// assert_eq!(answer["partitions"][0]["start"], "510");
/// assert_eq!(answer["execute"]["plan"], plan.id.as_str()); // to be posted as it is
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanAnswer {
    /// The group.
    pub group: String,
    /// Its application.
    pub app: String,
    /// The plan's id.
    pub plan: String,
    /// Whether it can be executed.
    pub executable: bool,
    /// Whether nothing would move. A hold, and Kafka's committed offsets, are executed all the same.
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
    /// Live members of the Kafka group, which are in the way of setting its offsets; asked for only with `kafka`.
    pub members: Vec<Member>,
    /// What to send to execute it.
    pub execute: RollbackBody,
}

/// What keeps a plan from being executed.
///
/// ```
/// use tidelog::rollback::{Outcome, Refusal};
/// use tidelog::wire::RefusalLine;
///
/// let why = "orders/0: the broker has no such topic".to_owned();
/// let line = RefusalLine::from(&Refusal { at: None, outcome: Some(Outcome::Missing), why });
/// assert_eq!(serde_json::to_value(line)?["outcome"], "missing");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefusalLine {
    /// The topic; null where the whole group is meant.
    pub topic: Option<TopicName>,
    /// The partition; null likewise.
    pub partition: Option<u32>,
    /// What is wrong with it; null likewise.
    pub outcome: Option<Outcome>,
    /// The same for a person, with what would allow it.
    pub why: String,
}

/// What becomes of a partition.
///
/// ```
/// use tidelog::wire::PlannedLine;
///
/// let line: PlannedLine = serde_json::from_str(
///     r#"{"topic": "orders", "partition": 0, "position": "542", "target": "500", "start": "510",
///         "outcome": "expired", "replayed": "32", "skipped": "0", "lost": "10"}"#,
/// )?;
/// assert_eq!(line.lost.0, line.start.since(line.target.ok_or("it has one")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedLine {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
    /// Where it is.
    pub position: Offset,
    /// Where it is to go; null where that is no offset of the present topic.
    pub target: Option<Offset>,
    /// Where it would really go.
    pub start: Offset,
    /// Why.
    pub outcome: Outcome,
    /// Offsets that are read again.
    pub replayed: Count,
    /// Offsets that are never read.
    pub skipped: Count,
    /// Offsets that are no longer in the log.
    pub lost: Count,
}

/// Sums over a plan.
///
/// ```
/// use tidelog::wire::{Count, TotalsLine};
///
/// let totals = TotalsLine { replayed: Count(42), skipped: Count(0), lost: Count(0), partitions: Count(1) };
/// let text = r#"{"replayed":"42","skipped":"0","lost":"0","partitions":"1"}"#;
/// assert_eq!(serde_json::to_string(&totals)?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TotalsLine {
    /// Offsets that are read again.
    pub replayed: Count,
    /// Offsets that are never read.
    pub skipped: Count,
    /// Offsets that are no longer in the log.
    pub lost: Count,
    /// How many partitions.
    pub partitions: Count,
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
            members: plan.members.clone(),
            execute: RollbackBody::new(&plan.execute, Some(plan.id.clone())),
        }
    }
}

impl From<&rollback::Refusal> for RefusalLine {
    fn from(refusal: &rollback::Refusal) -> Self {
        RefusalLine {
            topic: refusal.at.as_ref().map(|at| at.topic.clone()),
            partition: refusal.at.as_ref().map(|at| at.partition),
            outcome: refusal.outcome,
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
            outcome: planned.outcome,
            replayed: Count(planned.replayed),
            skipped: Count(planned.skipped),
            lost: Count(planned.lost),
        }
    }
}

/// What executing a plan came to.
///
/// ```
/// use tidelog::wire::ExecutedAnswer;
///
/// let answer: ExecutedAnswer = serde_json::from_str(
///     r#"{"seq": "130", "epoch": "4", "repeated": false, "clock_uncertain": false,
///         "partitions": [{"topic": "orders", "partition": 0, "old": "542", "new": "500"}], "kafka": null}"#,
/// )?;
/// assert_eq!((answer.epoch.get(), answer.partitions.len()), (4, 1)); // commits under epoch 3 are fenced now
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutedAnswer {
    /// The entry of the move; null where nothing moved, also where the group was put on hold or Kafka was set all the same.
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
    pub kafka: Option<KafkaAnswer>,
}

/// A partition that moved.
///
/// ```
/// use tidelog::wire::MovedLine;
///
/// let moved: MovedLine = serde_json::from_str(r#"{"topic": "orders", "partition": 0, "old": "542", "new": "500"}"#)?;
/// assert!(moved.new < moved.old); // it reads again
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MovedLine {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
    /// The position before.
    pub old: Option<Offset>,
    /// The position afterwards.
    pub new: Option<Offset>,
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
            kafka: executed.kafka.as_ref().map(KafkaAnswer::from),
        }
    }
}
