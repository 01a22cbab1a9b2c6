//! The JSON shapes that programs read and send (INTERFACE, section 3), for the command line and the HTTP server alike.
//!
//! Here are only shapes, and how they are made from the words below: no flags, no routes, no I/O. Numbers of 64 bits
//! are strings, as the newtypes write themselves; counts are [`Count`].

mod entry;
mod group;
mod positions;
mod record;
mod rollback;
mod start;
mod target;

use serde::{Deserialize, Serialize, Serializer};

pub use self::entry::{Batch, Entry};
pub use self::group::{GroupSummary, GroupWord, LastBatch, TopicSummary};
pub use self::positions::{AsOf, LossLine, Position, PositionsAnswer, Watermarks, losses};
pub use self::record::Record;
pub use self::rollback::{ExecutedAnswer, PlanAnswer, RollbackBody};
pub use self::start::StartAnswer;

/// A number of things, written as a string like every 64-bit number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(transparent)]
pub struct Count(pub u64);

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}
