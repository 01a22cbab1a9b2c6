//! Questions about a moment: positions as of a seq, the entry at a time.

use super::error::StoreError;
use super::walk::{BatchWalk, GroupWalk};
use super::{Order, Shared, Store, View, keys};
use crate::journal::codec::snapshot::{self, Snapshot};
use crate::offset::{Group, Seq, Timestamp};
use crate::positions::Positions;

/// A group at a moment of its past.
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
/// let first = commit(500, 542)?;
/// commit(542, 600)?;
/// let then = control.journal.positions_as_of(&loader, first.seq)?.ok_or("it was there")?;
/// assert_eq!(then.positions.get(&"orders".parse()?, 0).map(|known| known.position.get()), Some(542));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct AsOf {
    /// Its newest entry by then.
    pub seq: Seq,
    /// When that was recorded.
    pub recorded_at: Timestamp,
    /// Its positions after that.
    pub positions: Positions,
}

impl Store {
    /// The positions of `group` after its last entry at or before `seq`; none before its first. What is not sealed does
    /// not count.
    pub fn positions_as_of(&self, group: &Group, seq: Seq) -> Result<Option<AsOf>, StoreError> {
        match self.0.view(group) {
            Some(view) => self.0.as_of(&view, seq.min(view.sealed)),
            None => Ok(None),
        }
    }

    /// The last sealed entry of `group`, or of all, that was recorded at or before `time`; none if there is none.
    pub fn seq_at(&self, group: Option<&Group>, time: Timestamp) -> Result<Option<Seq>, StoreError> {
        let found = match group {
            Some(group) => match self.0.view(group) {
                Some(view) => self.0.group_seq_at(&view, time)?,
                None => Seq::ZERO,
            },
            None => {
                last_where(self.sealed(), |seq| Ok(self.entry(seq)?.is_some_and(|entry| entry.recorded_at <= time)))?
            }
        };
        Ok(Some(found).filter(|seq| *seq > Seq::ZERO))
    }
}

/// The last seq up to `last` for which `early` holds, which it does up to some point; 0 if for none.
fn last_where(last: Seq, mut early: impl FnMut(Seq) -> Result<bool, StoreError>) -> Result<Seq, StoreError> {
    let (mut low, mut high) = (Seq::ZERO, last);
    while low < high {
        let middle = low.plus(high.since(low).div_ceil(2));
        if early(middle)? {
            low = middle;
        } else {
            high = Seq::try_from(middle.as_u64() - 1).unwrap_or(low);
        }
    }
    Ok(low)
}

impl Shared {
    /// The nearest snapshot at or before `seq`, and the entries from there to `seq`.
    fn as_of(&self, view: &View, seq: Seq) -> Result<Option<AsOf>, StoreError> {
        let found = self.disk.record_before(&keys::snapshot(view.id, seq.next()), 5)?;
        let (mut as_of, last_other) = match found {
            Some((key, bytes)) => {
                let snapshot = snapshot::decode(&bytes).map_err(|e| self.disk.codec_error(&key, e))?;
                let Snapshot { group, seq: at, recorded_at, last_other, positions } = snapshot;
                if (group, at.as_u64()) != keys::group_and_number(&key).unwrap_or_default() {
                    return Err(self.disk.damaged(format!("{}: it is another one", keys::describe(&key))));
                }
                (AsOf { seq: at, recorded_at, positions }, last_other)
            }
            None => {
                let positions = Positions::default();
                (AsOf { seq: Seq::ZERO, recorded_at: Timestamp::default(), positions }, Seq::ZERO)
            }
        };
        if as_of.seq == seq {
            return Ok(Some(as_of).filter(|as_of| as_of.seq > Seq::ZERO));
        }
        let mut walk = GroupWalk::after(self, view, as_of.positions.batch.as_u64(), last_other)?;
        // Not looked further than it must: behind the wanted entry another block may begin.
        while as_of.seq < seq
            && walk.peek(self, view)?.is_some_and(|next| next <= seq)
            && let Some(entry) = walk.next(self, view)?
        {
            as_of.positions.apply(&entry);
            (as_of.seq, as_of.recorded_at) = (entry.seq, entry.recorded_at);
            walk.take_back(entry);
        }
        Ok(Some(as_of).filter(|as_of| as_of.seq > Seq::ZERO))
    }

    fn group_seq_at(&self, view: &View, time: Timestamp) -> Result<Seq, StoreError> {
        let mut found = Seq::ZERO;
        if let Some(head) = self.last_block_where(view, &|head| head.first_recorded_at <= time)? {
            let mut walk = BatchWalk::new(Order::Ascending, head.first_batch);
            while let Some(entry) = walk.next(self, view)? {
                if entry.recorded_at > time {
                    break;
                }
                found = entry.seq;
            }
        }
        let other = last_where(view.head.last_other, |seq| match self.last_other_at(view, seq)? {
            Seq::ZERO => Ok(true),
            other => Ok(self.other(view, other)?.entry.recorded_at <= time),
        })?;
        Ok(found.max(self.last_other_at(view, other)?))
    }
}
