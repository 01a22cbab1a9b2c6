//! Commits that were fenced since the journal was opened: counted, and the last one of each group kept. They leave no trace
//! in the journal itself.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::commit::Refused;
use crate::offset::{Epoch, Group, OffsetRange, Timestamp};

/// Ranges of a fenced commit that are kept.
const MAX_RANGES: usize = 1_000;

/// A commit that came under a stale epoch, or with another incarnation's topic id.
#[derive(Debug, Clone, PartialEq)]
pub struct Fenced {
    /// When, by the machine's clock.
    pub at: Timestamp,
    /// The epoch that it carried.
    pub epoch: Epoch,
    /// What it would have committed; at most the first 1,000 ranges.
    pub ranges: Vec<OffsetRange>,
}

/// A group's fenced commits since the journal was opened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fences {
    /// How many.
    pub total: u64,
    /// The last one.
    pub last: Option<Fenced>,
}

/// The fenced commits of all groups. Only a group that the journal has can be fenced, so they are bounded by its groups.
#[derive(Default)]
pub struct FenceBook(Mutex<BTreeMap<Group, Fences>>);

impl FenceBook {
    /// Notes the commit if it was fenced.
    pub fn note(&self, refused: &Refused, epoch: Epoch, ranges: &[OffsetRange], at: Timestamp) {
        let (Refused::Fenced { group, .. } | Refused::OtherIncarnation { group, .. }) = refused else { return };
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fences = groups.entry(group.clone()).or_default();
        fences.total += 1;
        let ranges = ranges[..ranges.len().min(MAX_RANGES)].to_vec();
        fences.last = Some(Fenced { at, epoch, ranges });
    }

    /// The fenced commits of a group.
    pub fn of(&self, group: &Group) -> Fences {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(group).cloned().unwrap_or_default()
    }
}
