//! What setting Kafka's committed offsets came to, and how the mirror of a group is doing.

use serde::{Deserialize, Serialize};

use crate::control::{KafkaSet, MirrorStatus};
use crate::entry::KafkaOutcome;
use crate::offset::{Seq, Timestamp};
use crate::wire::Count;

/// How far setting Kafka's committed offsets for a rollback has come.
///
/// ```
/// use tidelog::wire::KafkaWord;
///
/// assert_eq!(serde_json::to_string(&KafkaWord::Pending)?, r#""pending""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KafkaWord {
    /// It is to be done; nothing says yet that it was.
    Pending,
    /// Kafka holds what it should, for each partition.
    Done,
    /// Not for each partition.
    Failed,
}

/// Asks for Kafka's committed offsets to be set for the rollback that the route names.
///
/// ```
/// use tidelog::wire::KafkaBody;
///
/// assert_eq!(serde_json::from_str::<KafkaBody>("{}")?, KafkaBody {});
/// assert!(serde_json::from_str::<KafkaBody>(r#"{"group": "loader"}"#).is_err()); // the route names it
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KafkaBody {}

/// What setting Kafka's committed offsets for a rollback came to.
///
/// ```
/// use tidelog::wire::{KafkaAnswer, KafkaWord};
///
/// let answer: KafkaAnswer = serde_json::from_str(
///     r#"{"of": "130", "kafka_group": "loader", "state": "failed", "seq": "131", "partitions":
///         [{"topic": "orders", "partition": 0, "offset": "500", "error": "the Kafka group has live members"}]}"#,
/// )?;
/// assert_eq!(answer.state, KafkaWord::Failed);
/// assert!(answer.partitions[0].error.is_some());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KafkaAnswer {
    /// The rollback's entry: it may be repeated by it. Null where nothing had to move, and only Kafka was set.
    pub of: Option<Seq>,
    /// The Kafka group; null where none follows any more.
    pub kafka_group: Option<String>,
    /// How far it has come.
    pub state: KafkaWord,
    /// The entry that says so; null while it is pending.
    pub seq: Option<Seq>,
    /// Each partition that the rollback moved.
    pub partitions: Vec<KafkaOutcome>,
}

impl From<&KafkaSet> for KafkaAnswer {
    fn from(set: &KafkaSet) -> Self {
        let failed = set.partitions.iter().any(|partition| partition.error.is_some());
        let state = match (set.is_done(), failed) {
            (true, _) => KafkaWord::Done,
            (false, true) => KafkaWord::Failed,
            (false, false) => KafkaWord::Pending,
        };
        KafkaAnswer {
            of: set.of,
            kafka_group: set.kafka_group.clone(),
            state,
            seq: set.seq,
            partitions: set.partitions.clone(),
        }
    }
}

/// How the committed offsets in Kafka follow a group, as far as the process that answers knows.
///
/// ```
/// use tidelog::wire::MirrorAnswer;
///
/// let none_told = MirrorAnswer::default();
/// assert_eq!(serde_json::to_string(&none_told)?, r#"{"written_at":null,"error":null,"failures":"0"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MirrorAnswer {
    /// When Kafka was last told all positions; null if this process has told none yet.
    pub written_at: Option<Timestamp>,
    /// Why the newest attempt failed; null where it did not.
    pub error: Option<String>,
    /// Attempts that failed.
    pub failures: Count,
}

impl From<MirrorStatus> for MirrorAnswer {
    fn from(status: MirrorStatus) -> Self {
        let MirrorStatus { written_at, told: _, error, failures } = status;
        MirrorAnswer { written_at, error, failures: Count(failures) }
    }
}
