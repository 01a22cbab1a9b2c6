//! Walking the entries of a group in order, noticing what is missing.

use super::error::StoreError;
use super::records::Other;
use super::{Order, Shared, View, keys};
use crate::entry::{Body, Entry};
use crate::journal::codec::block::{self, Batches, Head};
use crate::offset::Seq;

impl Shared {
    fn missing_batch(&self, view: &View, batch: u64) -> StoreError {
        let group = view.group.as_ref().map(ToString::to_string).unwrap_or_default();
        self.disk.damaged(format!("batch {batch} of group {group} is missing; its last is {}", view.head.last_batch))
    }

    /// Key and bytes of the block that holds `batch`, which the group has.
    pub fn block_at(&self, view: &View, batch: u64) -> Result<(Vec<u8>, Vec<u8>, Head), StoreError> {
        let found = self.disk.record_before(&keys::block(view.id, batch + 1), 5)?;
        let Some((key, bytes)) = found else {
            return Err(self.missing_batch(view, batch));
        };
        let head = block::head(&bytes).map_err(|e| self.disk.codec_error(&key, e))?;
        if !(head.first_batch..=head.last_batch()).contains(&batch) {
            return Err(self.missing_batch(view, batch));
        }
        Ok((key, bytes, head))
    }

    /// The group's last block whose head is `early`, which holds for blocks up to some point; none if none is.
    pub fn last_block_where(&self, view: &View, early: &dyn Fn(&Head) -> bool) -> Result<Option<Head>, StoreError> {
        let (mut low, mut high, mut found) = (1, view.head.last_batch, None);
        while low <= high {
            let (_, _, head) = self.block_at(view, low + (high - low) / 2)?;
            if early(&head) {
                low = head.last_batch() + 1;
                found = Some(head);
            } else {
                high = head.first_batch - 1;
            }
        }
        Ok(found)
    }

    /// The group's entry `seq`, which is no batch.
    pub fn other(&self, view: &View, seq: Seq) -> Result<Other, StoreError> {
        let key = keys::other(view.id, seq);
        let missing = || self.disk.damaged(format!("{} is missing", keys::describe(&key)));
        let other: Other = self.disk.value(&key)?.ok_or_else(missing)?;
        if other.entry.seq != seq || other.before >= seq || other.entry.group != view.group {
            return Err(self.disk.damaged(format!("{}: it is another entry", keys::describe(&key))));
        }
        Ok(other)
    }

    /// The group's newest entry at or before `seq` that is no batch; 0 if there is none.
    pub fn last_other_at(&self, view: &View, seq: Seq) -> Result<Seq, StoreError> {
        if seq >= view.head.last_other {
            return Ok(view.head.last_other);
        }
        let after = self.other_after(view, seq)?;
        match self.other(view, after)?.before {
            before if before <= seq => Ok(before),
            lost => Err(self.disk.damaged(format!("{} is missing", keys::describe(&keys::other(view.id, lost))))),
        }
    }

    /// The group's first entry after `seq` that is no batch, where `seq` is before its last.
    fn other_after(&self, view: &View, seq: Seq) -> Result<Seq, StoreError> {
        let key = self.disk.key_from(&keys::other(view.id, seq.next()), 5)?;
        let next = key.and_then(|key| keys::group_and_number(&key)).and_then(|(_, n)| Seq::try_from(n).ok());
        next.filter(|next| *next <= view.head.last_other)
            .ok_or_else(|| self.disk.damaged(format!("an entry of group {} is missing", view.id)))
    }
}

/// The batches of a group, one after the other.
pub struct BatchWalk {
    order: Order,
    /// The next batch; 0, or one past the last, at the end.
    next: u64,
    ahead: Option<(Vec<u8>, Batches)>,
    back: Vec<Entry>,
}

impl BatchWalk {
    /// From batch `from` on, or back.
    pub fn new(order: Order, from: u64) -> Self {
        BatchWalk { order, next: from, ahead: None, back: Vec::new() }
    }

    /// The number of the next batch.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// The seq of the next batch of `view`; none at the end.
    pub fn peek(&mut self, shared: &Shared, view: &View) -> Result<Option<Seq>, StoreError> {
        if self.next == 0 || self.next > view.head.last_batch {
            return Ok(None);
        }
        match self.order {
            Order::Ascending => {
                let (key, batches) = self.find_ahead(shared, view)?;
                batches.next_seq().map_err(|e| shared.disk.codec_error(key, e))
            }
            Order::Descending => {
                self.find_back(shared, view)?;
                Ok(self.back.last().map(|entry| entry.seq))
            }
        }
    }

    /// Takes back the batch that came last, for the next one to use its memory.
    pub fn take_back(&mut self, entry: Entry) {
        if let Some((_, batches)) = &mut self.ahead {
            batches.take_back(entry);
        }
    }

    /// The next batch of `view`; none at the end.
    pub fn next(&mut self, shared: &Shared, view: &View) -> Result<Option<Entry>, StoreError> {
        if self.next == 0 || self.next > view.head.last_batch {
            return Ok(None);
        }
        let entry = match self.order {
            Order::Ascending => self.next_ahead(shared, view)?,
            Order::Descending => self.next_back(shared, view)?,
        };
        let number = match &entry.body {
            Body::Batch(batch) => batch.batch.as_u64(),
            _ => 0,
        };
        if number != self.next || entry.seq > view.sealed {
            return Err(shared.missing_batch(view, self.next));
        }
        match self.order {
            Order::Ascending => self.next += 1,
            Order::Descending => self.next -= 1,
        }
        Ok(Some(entry))
    }

    fn next_ahead(&mut self, shared: &Shared, view: &View) -> Result<Entry, StoreError> {
        let next = self.next;
        let (key, batches) = self.find_ahead(shared, view)?;
        match batches.next() {
            Some(entry) => entry.map_err(|e| shared.disk.codec_error(key, e)),
            None => Err(shared.missing_batch(view, next)),
        }
    }

    /// The block with the next batch, read up to there.
    fn find_ahead(&mut self, shared: &Shared, view: &View) -> Result<&mut (Vec<u8>, Batches), StoreError> {
        let has_next = |batches: &Batches| (batches.next_batch()..=batches.head().last_batch()).contains(&self.next);
        let mut found = match self.ahead.take().filter(|(_, batches)| has_next(batches)) {
            Some(found) => found,
            None => {
                let (key, bytes, _) = shared.block_at(view, self.next)?;
                let batches = shared.batches(view.id, &key, &bytes)?;
                (key, batches)
            }
        };
        let (key, batches) = &mut found;
        while batches.next_batch() < self.next
            && let Some(skipped) = batches.next()
        {
            let skipped = skipped.map_err(|e| shared.disk.codec_error(key, e))?;
            batches.take_back(skipped);
        }
        Ok(self.ahead.insert(found))
    }

    fn next_back(&mut self, shared: &Shared, view: &View) -> Result<Entry, StoreError> {
        self.find_back(shared, view)?;
        self.back.pop().ok_or_else(|| shared.missing_batch(view, self.next))
    }

    /// The batches up to the next one in its block.
    fn find_back(&mut self, shared: &Shared, view: &View) -> Result<(), StoreError> {
        if self.back.is_empty() {
            let (key, bytes, head) = shared.block_at(view, self.next)?;
            let count = (self.next - head.first_batch + 1) as usize;
            let entries: Result<Vec<Entry>, _> = shared.batches(view.id, &key, &bytes)?.take(count).collect();
            self.back = entries.map_err(|e| shared.disk.codec_error(&key, e))?;
        }
        Ok(())
    }
}

/// The entries of a group that are no batches, one after the other.
struct OtherWalk {
    order: Order,
    /// Ascending: the last one visited. Descending: the next one. 0 if there is none.
    at: Seq,
}

impl OtherWalk {
    fn next(&mut self, shared: &Shared, view: &View) -> Result<Option<Entry>, StoreError> {
        match self.order {
            Order::Ascending if self.at < view.head.last_other => {
                let other = shared.other(view, shared.other_after(view, self.at)?)?;
                if other.before != self.at {
                    let lost = format!("an entry of group {} between {} and {}", view.id, self.at, other.entry.seq);
                    return Err(shared.disk.damaged(lost + " is missing"));
                }
                self.at = other.entry.seq;
                Ok(Some(other.entry))
            }
            Order::Descending if self.at > Seq::ZERO => {
                let other = shared.other(view, self.at)?;
                self.at = other.before;
                Ok(Some(other.entry))
            }
            Order::Ascending | Order::Descending => Ok(None),
        }
    }
}

/// All entries of a group, one after the other.
pub struct GroupWalk {
    order: Order,
    batches: BatchWalk,
    others: OtherWalk,
    next_other: Option<Entry>,
}

impl GroupWalk {
    /// Ascending, after the entries up to batch `batch` and entry `other` that is no batch.
    pub fn after(shared: &Shared, view: &View, batch: u64, other: Seq) -> Result<Self, StoreError> {
        Self::begin(shared, view, Order::Ascending, batch + 1, other)
    }

    /// The entries from `from` on, or back.
    pub fn from(shared: &Shared, view: &View, from: Seq, order: Order) -> Result<Self, StoreError> {
        let block = |seq: Seq| match seq >= view.sealed {
            true => Ok(None),
            false => shared.last_block_where(view, &|head| head.first_seq <= seq),
        };
        let last_batch = view.head.last_batch;
        let mut walk = match order {
            Order::Ascending => {
                let before = Seq::try_from(from.as_u64().saturating_sub(1)).unwrap_or(Seq::ZERO);
                let other = shared.last_other_at(view, before)?;
                let batch = match before {
                    Seq::ZERO => 1,
                    before if before >= view.sealed => last_batch + 1,
                    before => block(before)?.map_or(1, |head| head.first_batch),
                };
                Self::begin(shared, view, order, batch, other)?
            }
            Order::Descending => {
                let other = shared.last_other_at(view, from)?;
                let batch = match from >= view.sealed {
                    true => last_batch,
                    false => block(from)?.map_or(0, |head| head.last_batch().min(last_batch)),
                };
                Self::begin(shared, view, order, batch, other)?
            }
        };
        let outside = |seq: Seq| match order {
            Order::Ascending => seq < from,
            Order::Descending => seq > from,
        };
        while walk.batches.peek(shared, view)?.is_some_and(outside)
            && let Some(skipped) = walk.batches.next(shared, view)?
        {
            walk.batches.take_back(skipped);
        }
        Ok(walk)
    }

    fn begin(shared: &Shared, view: &View, order: Order, batch: u64, other: Seq) -> Result<Self, StoreError> {
        let batches = BatchWalk::new(order, batch);
        let mut others = OtherWalk { order, at: other };
        let next_other = others.next(shared, view)?;
        Ok(GroupWalk { order, batches, others, next_other })
    }

    /// The seq of the next entry.
    pub fn peek(&mut self, shared: &Shared, view: &View) -> Result<Option<Seq>, StoreError> {
        let (batch, other) = (self.batches.peek(shared, view)?, self.next_other.as_ref().map(|other| other.seq));
        Ok(match (batch, other) {
            (Some(batch), Some(other)) => Some(match self.order {
                Order::Ascending => batch.min(other),
                Order::Descending => batch.max(other),
            }),
            (batch, other) => batch.or(other),
        })
    }

    /// Takes back the entry that came last, for the next one to use its memory.
    pub fn take_back(&mut self, entry: Entry) {
        self.batches.take_back(entry);
    }

    /// The next entry; none at the end.
    pub fn next(&mut self, shared: &Shared, view: &View) -> Result<Option<Entry>, StoreError> {
        let next = self.peek(shared, view)?;
        if next.is_some() && next == self.next_other.as_ref().map(|other| other.seq) {
            let other = self.others.next(shared, view)?;
            return Ok(std::mem::replace(&mut self.next_other, other));
        }
        self.batches.next(shared, view)
    }
}
