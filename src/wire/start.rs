//! A start: what is asked, and what is answered.

use serde::{Deserialize, Serialize};

use crate::broker::KafkaGroup;
use crate::control::{StartRequest, Started};
use crate::entry::{Finding, Verdict};
use crate::offset::{Epoch, Group, Invalid, Isolation, Offset, Seq, TopicId, TopicName};
use crate::reconcile::{NewGroup, Policy, Reset, StartPosition};
use crate::wire::SparkOffsets;

/// What is asked for; without the group, which the route or the command names.
///
/// ```
/// use tidelog::wire::StartBody;
///
/// let body: StartBody = serde_json::from_str(r#"{"topics": ["orders"], "owner": "me", "new_group": "latest"}"#)?;
/// assert!(body.isolation.is_none() && !body.dry_run);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartBody {
    /// Names of topics; patterns begin with `^`.
    pub topics: Vec<String>,
    /// The process, by its own name.
    pub owner: String,
    /// Where a new group begins.
    #[serde(default)]
    pub new_group: NewGroup,
    /// What to do where a position can't stay.
    #[serde(default)]
    pub reset: Reset,
    /// What it reads; null keeps what the group reads.
    #[serde(default)]
    pub isolation: Option<Isolation>,
    /// The Kafka group whose committed offsets follow, or `none`; null keeps the one that the group has.
    #[serde(default)]
    pub kafka_group: Option<KafkaGroup>,
    /// The id of the cluster that the group may move to.
    #[serde(default)]
    pub accept_cluster: Option<String>,
    /// Only say what would be done.
    #[serde(default)]
    pub dry_run: bool,
}

impl StartBody {
    /// The request for `group`.
    ///
    /// # Errors
    ///
    /// A topic's name or pattern that none can have.
    pub fn request(self, group: Group) -> Result<StartRequest, Invalid> {
        Ok(StartRequest {
            group,
            topics: self.topics.iter().map(|topic| topic.parse()).collect::<Result<_, _>>()?,
            owner: self.owner,
            policy: Policy { new_group: self.new_group, reset: self.reset, accept_cluster: self.accept_cluster },
            isolation: self.isolation,
            kafka_group: self.kafka_group,
            dry_run: self.dry_run,
        })
    }
}

/// Where a group starts, and what was found.
///
/// ```
/// use tidelog::wire::StartAnswer;
///
/// let answer: StartAnswer = serde_json::from_str(
///     r#"{"group": "loader", "app": "default", "epoch": "3", "seq": "120", "cluster_id": null,
///         "positions": [{"topic": "orders", "partition": 0, "topic_id": null, "offset": "500", "verdict": "in_range",
///             "earliest": "0", "latest": "542", "readable_end": "542", "replaying_until": null}], "findings": []}"#,
/// )?;
/// assert_eq!(serde_json::to_string(&answer.spark())?, r#"{"orders":{"0":500}}"#); // Spark's startingOffsets
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartAnswer {
    /// The group.
    pub group: String,
    /// Its application.
    pub app: String,
    /// The epoch that commits carry.
    pub epoch: Epoch,
    /// The journal's newest entry.
    pub seq: Seq,
    /// The broker's cluster.
    pub cluster_id: Option<String>,
    /// Where each partition starts.
    pub positions: Vec<StartLine>,
    /// What was not in order.
    pub findings: Vec<Finding>,
}

/// Where one partition starts.
///
/// ```
/// use tidelog::entry::Verdict;
/// use tidelog::wire::StartLine;
///
/// let line: StartLine = serde_json::from_str(
///     r#"{"topic": "orders", "partition": 0, "topic_id": null, "offset": "250", "verdict": "head_out_of_range",
///         "earliest": "250", "latest": "400", "readable_end": "400", "replaying_until": null}"#,
/// )?;
/// assert_eq!((line.verdict, line.earliest), (Verdict::HeadOutOfRange, Some(line.offset))); // what was below expired
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartLine {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
    /// The topic's id, where one is known.
    pub topic_id: Option<TopicId>,
    /// The first offset to read.
    pub offset: Offset,
    /// The first of its verdicts, in the table's order.
    pub verdict: Verdict,
    /// The broker's log start offset.
    pub earliest: Option<Offset>,
    /// The broker's high watermark.
    pub latest: Option<Offset>,
    /// What the group can read up to.
    pub readable_end: Option<Offset>,
    /// Up to here records are read again after a rollback.
    pub replaying_until: Option<Offset>,
}

impl StartAnswer {
    /// The answer for `group`.
    pub fn new(group: &Group, started: Started) -> Self {
        let Started { epoch, seq, cluster_id, positions, findings } = started;
        StartAnswer {
            group: group.group().to_owned(),
            app: group.app().to_owned(),
            epoch,
            seq,
            cluster_id,
            positions: positions.into_iter().map(StartLine::from).collect(),
            findings,
        }
    }

    /// The positions alone, as Spark's `startingOffsets`.
    pub fn spark(&self) -> SparkOffsets {
        self.positions.iter().map(|line| (line.topic.clone(), line.partition, line.offset)).collect()
    }
}

impl From<StartPosition> for StartLine {
    fn from(start: StartPosition) -> Self {
        let StartPosition { at, topic_id, offset, verdict, earliest, latest, readable_end, replaying_until } = start;
        let (topic, partition) = (at.topic, at.partition);
        StartLine { topic, partition, topic_id, offset, verdict, earliest, latest, readable_end, replaying_until }
    }
}
