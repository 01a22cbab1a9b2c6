//! Lists: one field named as the last word of the route, and the cursor to go on with.

use serde::{Deserialize, Serialize};

use crate::wire::{Batch, Entry, GroupSummary, LossLine};

/// Groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupsAnswer {
    /// This part of the list.
    pub groups: Vec<GroupSummary>,
    /// Where the next part begins; null at the end.
    pub next: Option<String>,
}

/// Batches of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchesAnswer {
    /// This part of the list.
    pub batches: Vec<Batch>,
    /// Where the next part begins; null at the end.
    pub next: Option<String>,
}

/// Entries of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EntriesAnswer {
    /// This part of the list.
    pub entries: Vec<Entry>,
    /// Where the next part begins; null at the end.
    pub next: Option<String>,
}

/// Losses and open holes of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossesAnswer {
    /// This part of the list.
    pub losses: Vec<LossLine>,
    /// Where the next part begins; null at the end.
    pub next: Option<String>,
}
