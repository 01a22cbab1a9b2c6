//! The records that are plain values (versioned, checksummed, bincode: [`codec::value`](crate::journal::codec::value)).

use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::offset::{Seq, Timestamp};
use crate::positions::GroupState;

/// `m`: written last; makes a seal valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sealed {
    /// The newest sealed entry.
    pub seq: Seq,
    /// Its time.
    pub recorded_at: Timestamp,
    /// The number of the seal: 0 for a store that was just made.
    pub seal: u64,
    /// Names of groups.
    pub groups: u32,
    /// Topics, each incarnation by itself.
    pub topics: u32,
    /// Groups that have a state.
    pub states: u32,
}

/// `s`: a group as of a seal.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SealedGroup {
    /// Its id: a value that sits under another key is noticed.
    pub id: u32,
    /// Its state.
    pub state: GroupState,
    /// Its newest entry that is no batch; 0 if there is none.
    pub last_other: Seq,
    /// What decides when the next snapshot is due.
    pub pace: Pace,
    /// How many results it has put or removed.
    pub results: u64,
}

/// How much a reader would fold from the newest snapshot on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pace {
    /// Bytes of blocks and other entries since then.
    pub since: u64,
    /// Bytes of that snapshot.
    pub snapshot: u64,
}

/// `x`: an entry that is no batch. They are linked, so that a missing one is noticed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Other {
    /// The one before it in its group; 0 if it is the first.
    pub before: Seq,
    /// The entry.
    pub entry: Entry,
}
