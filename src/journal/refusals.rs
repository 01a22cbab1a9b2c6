//! Commits that were refused since the journal was opened: counted, and the last fenced one of each group kept. They leave
//! no trace in the journal itself.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::commit::{Commit, Refused};
use crate::offset::{Epoch, Group, OffsetRange, Timestamp};

/// Ranges of a fenced commit that are kept.
const MAX_RANGES: usize = 1_000;

/// A commit that came under a stale epoch, or with another incarnation's topic id.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # let started = tidelog::control::start(&control, request)?;
/// # let time = tidelog::offset::Timestamp::from_millis(1_796_032_800_000);
/// # let range = tidelog::offset::OffsetRange::new("orders".parse()?, 0, "500".parse()?, "542".parse()?)?;
///
/// use tidelog::commit::Commit;
/// use tidelog::control::{StartRequest, start};
///
/// start(&control, StartRequest::new(loader.clone(), vec!["orders".parse()?], "another"))?;
/// let stale = Commit::new(loader.clone(), started.epoch, time, vec![range])?;
/// assert!(control.journal.commit(stale).is_err());
/// let last = control.journal.refusals(&loader).last_fenced.ok_or("it was fenced")?;
/// assert_eq!((last.epoch, last.ranges[0].to_string().as_str()), (started.epoch, "orders/0 [500,542)"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Fenced {
    /// When, by the machine's clock.
    pub at: Timestamp,
    /// The epoch that it carried.
    pub epoch: Epoch,
    /// What it would have committed; at most the first 1,000 ranges.
    pub ranges: Vec<OffsetRange>,
}

/// A group's refused commits since the journal was opened.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # let started = tidelog::control::start(&control, request)?;
/// # let time = tidelog::offset::Timestamp::from_millis(1_796_032_800_000);
/// # let range = tidelog::offset::OffsetRange::new("orders".parse()?, 0, "500".parse()?, "542".parse()?)?;
///
/// use tidelog::commit::Commit;
/// use tidelog::control::{StartRequest, start};
///
/// start(&control, StartRequest::new(loader.clone(), vec!["orders".parse()?], "another"))?;
/// assert_eq!(control.journal.refusals(&loader).of("fenced"), 0);
/// let stale = Commit::new(loader.clone(), started.epoch, time, vec![range])?;
/// assert!(control.journal.commit(stale).is_err());
/// assert_eq!(control.journal.refusals(&loader).of("fenced"), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Refusals {
    /// How many, by the word for the reason ([`Refused::word`]).
    pub counts: BTreeMap<&'static str, u64>,
    /// The last one that was fenced.
    pub last_fenced: Option<Fenced>,
}

impl Refusals {
    /// How many were refused for the reason with that word.
    pub fn of(&self, word: &str) -> u64 {
        self.counts.get(word).copied().unwrap_or_default()
    }
}

/// The refused commits of all groups that the journal has: bounded by them, whatever names are sent.
#[derive(Default)]
pub struct RefusalBook(Mutex<BTreeMap<Group, Refusals>>);

impl RefusalBook {
    /// Notes a refused commit of a group that the journal has.
    pub fn note(&self, commit: &Commit, refused: &Refused, at: Timestamp) {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let refusals = groups.entry(commit.group().clone()).or_default();
        *refusals.counts.entry(refused.word()).or_default() += 1;
        if let Refused::Fenced { .. } | Refused::OtherIncarnation { .. } = refused {
            let ranges = commit.ranges().iter().take(MAX_RANGES).cloned().collect();
            refusals.last_fenced = Some(Fenced { at, epoch: commit.epoch(), ranges });
        }
    }

    /// Counts a commit that can't be.
    pub fn note_invalid(&self, group: &Group) {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *groups.entry(group.clone()).or_default().counts.entry("invalid").or_default() += 1;
    }

    /// The refused commits of a group.
    pub fn of(&self, group: &Group) -> Refusals {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(group).cloned().unwrap_or_default()
    }
}
