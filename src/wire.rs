//! The JSON shapes that programs read and send (INTERFACE, section 3), for the command line and the HTTP server alike.
//!
//! Here are only shapes, and how they are made from the words below: no flags, no routes, no I/O. Numbers of 64 bits
//! are strings, as the newtypes write themselves; counts are [`Count`].

mod commit;
mod entry;
mod group;
mod kafka;
mod list;
mod plan;
mod positions;
mod record;
mod rollback;
mod start;
mod steer;
mod target;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use self::commit::{CommitBody, RangeBody, ReceiptAnswer, SparkOffsets, SparkPair};
pub use self::entry::{Batch, Entry, Own};
pub use self::group::{GroupAnswer, GroupSummary, GroupWord, Grown, LastBatch, LastFenced, TopicSummary};
pub use self::kafka::{KafkaAnswer, KafkaBody, KafkaWord, MirrorAnswer};
pub use self::list::{BatchesAnswer, EntriesAnswer, GroupsAnswer, LossesAnswer, Reader, ReadersAnswer};
pub use self::plan::{ExecutedAnswer, MovedLine, PlanAnswer, PlannedLine, RefusalLine, TotalsLine};
pub use self::positions::{AsOf, HoleLine, LossLine, Position, PositionsAnswer, Watermarks, losses};
pub use self::record::Record;
pub use self::rollback::{ExecuteBody, RollbackBody, ScopeBody};
pub use self::start::{StartAnswer, StartBody, StartLine};
pub use self::steer::{AcknowledgeBody, HoldBody, MarkBody, ReleaseBody, RetireBody};

/// A number of things, written as a string like every 64-bit number.
///
/// ```
/// use tidelog::wire::Count;
///
/// assert_eq!(serde_json::to_string(&Count(5))?, "\"5\"");
/// assert_eq!(serde_json::from_str::<Count>("5")?, Count(5));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Count(pub u64);

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a count: a string of digits or an integer")]
        enum Either {
            Number(u64),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(number) => Ok(Count(number)),
            Either::Text(text) => text.parse().map(Count).map_err(de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests;
