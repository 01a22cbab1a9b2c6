//! The sealed history, in sled: written by one [`Sealer`], read through any number of [`Store`]s meanwhile.
//!
//! A seal takes the next entries in: batches become column blocks by group ([`pack`]), other entries stand for
//! themselves, results become runs of blocks by key ([`results`]), now and then a snapshot of a group's positions is kept,
//! so that "as of" folds about one block. Nothing of it counts before the record `m`, written last, says so ([`seal`]); what
//! a crash left beyond it is removed at the next open ([`sweep`]). Records, keys: [`keys`], [`records`]. How sled is kept
//! from losing things: [`disk`].
//!
//! What is missing or changed is an error that says so, never a shorter history: batches of a group are consecutive, other
//! entries linked, seqs covered by an index without gaps, and the state of each group says where both end. Each block of
//! results tells what comes after it.

mod as_of;
mod disk;
mod error;
mod keys;
mod names;
mod pack;
mod read;
mod readers;
mod records;
mod results;
mod seal;
mod sweep;
#[cfg(test)]
mod verify;
mod walk;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use as_of::AsOf;
pub use error::StoreError;
pub use readers::{Portion, Question, Reading, Readings};
pub use seal::Sealer;

use crate::journal::CrashHook;
use crate::offset::{Group, Seq};
use disk::Disk;
use names::Names;
use records::{Run, Sealed};

/// How to open a store.
#[derive(Clone, Default)]
pub struct StoreOptions {
    /// What sled may keep in memory of what was read, about; brought between 8 and 64 MiB.
    pub cache_bytes: u64,
    /// Told each point where a crash would find other files; for tests.
    pub crash_at: Option<CrashHook>,
}

impl std::fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreOptions").field("cache_bytes", &self.cache_bytes).finish_non_exhaustive()
    }
}

/// In which order entries are visited.
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
/// use std::ops::ControlFlow;
/// use tidelog::journal::Order;
/// use tidelog::offset::Seq;
///
/// commit(500, 542)?;
/// let mut kinds = Vec::new();
/// control.journal.visit_entries(Some(&loader), Seq::MAX, Order::Descending, &mut |entry| {
///     kinds.push(entry.body.kind());
///     if kinds.len() < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
/// })?;
/// assert_eq!(kinds, ["batch", "reconciled"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Oldest first: from the given one on.
    Ascending,
    /// Newest first: from the given one back.
    Descending,
}

/// Opens the store in `dir`, or makes an empty one there, and removes what a crash inside a seal left.
///
/// Memory and time go with groups, not with history. [`Store::sealed`] is 0 in an empty store: whether it may be empty
/// is for the caller to know.
///
/// # Errors
///
/// In use, damaged, of a later version, or refused by the system. Nothing is lost by trying again.
pub fn open(dir: &Path, options: StoreOptions) -> Result<(Store, Sealer), StoreError> {
    sweep::open(Disk::open(dir, options.cache_bytes, options.crash_at)?)
}

/// Reads sealed entries; cheap to clone, for any thread, while the [`Sealer`] works.
///
/// Each call sees the entries that were sealed when it began: none beyond them, none of them missing.
#[derive(Debug, Clone)]
pub struct Store(Arc<Shared>);

impl Store {
    /// The newest sealed entry; 0 if there is none.
    pub fn sealed(&self) -> Seq {
        self.0.published().sealed.seq
    }
}

/// What the sealer and the readers share.
#[derive(Debug)]
struct Shared {
    disk: Disk,
    names: RwLock<Names>,
    published: RwLock<Published>,
}

/// What readers may see.
#[derive(Debug)]
struct Published {
    sealed: Sealed,
    /// By group id.
    heads: HashMap<u32, Head>,
    /// Likewise, of those that have results.
    runs: HashMap<u32, Arc<[Run]>>,
}

/// Where a group's entries end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Head {
    last_batch: u64,
    last_other: Seq,
}

/// A group as one call sees it.
#[derive(Debug, Clone)]
struct View {
    id: u32,
    /// None for the entries without a group.
    group: Option<Group>,
    sealed: Seq,
    head: Head,
}

// A lock that a panicking thread held is taken all the same: what stands behind it is replaced as a whole.
impl Shared {
    fn names(&self) -> RwLockReadGuard<'_, Names> {
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn names_mut(&self) -> RwLockWriteGuard<'_, Names> {
        self.names.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn published(&self) -> RwLockReadGuard<'_, Published> {
        self.published.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn published_mut(&self) -> RwLockWriteGuard<'_, Published> {
        self.published.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The group, if it has sealed entries.
    fn view(&self, group: &Group) -> Option<View> {
        let id = self.names().groups.id(group)?;
        let published = self.published();
        let head = *published.heads.get(&id)?;
        Some(View { id, group: Some(group.clone()), sealed: published.sealed.seq, head })
    }

    /// The group with `id`.
    fn view_of(&self, id: u32) -> Result<View, StoreError> {
        let group = self.names().groups.name(id).cloned();
        let published = self.published();
        match published.heads.get(&id) {
            Some(head) if group.is_some() || id == 0 => {
                Ok(View { id, group, sealed: published.sealed.seq, head: *head })
            }
            _ => Err(self.disk.damaged(format!("group {id} is missing"))),
        }
    }
}

#[cfg(test)]
mod tests;
