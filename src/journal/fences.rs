//! Commits that were fenced since the journal was opened: counted, and the last one of each group kept. They leave no trace
//! in the journal itself.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::commit::Refused;
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
/// let last = control.journal.fences(&loader).last.ok_or("it was fenced")?;
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

/// A group's fenced commits since the journal was opened.
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
/// assert_eq!(control.journal.fences(&loader).total, 0);
/// let stale = Commit::new(loader.clone(), started.epoch, time, vec![range])?;
/// assert!(control.journal.commit(stale).is_err());
/// assert_eq!(control.journal.fences(&loader).total, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
