//! Reading history.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::error::StoreError;
use super::records::Other;
use super::walk::{BatchWalk, GroupWalk};
use super::{Order, Shared, Store, View, keys};
use crate::entry::Entry;
use crate::journal::codec::seqs::{Seqs, Slot};
use crate::offset::{BatchNumber, Group, Seq};

/// Groups whose last block is kept while entries of all groups are visited: bounds memory.
const MAX_WALKS: usize = 64;

impl Store {
    /// Visits the entries of `group`, or of all, from seq `from` on (or back) until `visit` breaks.
    pub fn visit_entries(
        &self,
        group: Option<&Group>,
        from: Seq,
        order: Order,
        visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let Some(group) = group else {
            return self.0.visit_all(from, order, visit);
        };
        let Some(view) = self.0.view(group) else {
            return Ok(());
        };
        let mut walk = GroupWalk::from(&self.0, &view, from, order)?;
        while let Some(entry) = walk.next(&self.0, &view)? {
            if visit(entry).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Visits the batches of `group` from batch `from` on (or back) until `visit` breaks.
    pub fn visit_batches(
        &self,
        group: &Group,
        from: BatchNumber,
        order: Order,
        visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let Some(view) = self.0.view(group) else {
            return Ok(());
        };
        let from = match order {
            Order::Ascending => from.as_u64().max(1),
            Order::Descending => from.as_u64().min(view.head.last_batch),
        };
        let mut walk = BatchWalk::new(order, from);
        while let Some(entry) = walk.next(&self.0, &view)? {
            if visit(entry).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Visits the entries of `group` that are no batches, from the last at or before seq `from` back, until `visit` breaks.
    pub fn visit_others(
        &self,
        group: &Group,
        from: Seq,
        visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let Some(view) = self.0.view(group) else {
            return Ok(());
        };
        let mut next = self.0.last_other_at(&view, from)?;
        while next > Seq::ZERO {
            let Other { before, entry } = self.0.other(&view, next)?;
            if visit(entry).is_break() {
                break;
            }
            next = before;
        }
        Ok(())
    }

    /// The entry `seq`; none if it is not sealed.
    pub fn entry(&self, seq: Seq) -> Result<Option<Entry>, StoreError> {
        if seq == Seq::ZERO || seq > self.sealed() {
            return Ok(None);
        }
        let slot = self.0.slot(&self.0.seqs_at(seq)?, seq)?;
        self.0.slot_entry(slot, seq, &mut HashMap::new(), Order::Ascending).map(Some)
    }
}

impl Shared {
    /// The part of the index that holds `seq`, which is sealed.
    pub fn seqs_at(&self, seq: Seq) -> Result<Seqs, StoreError> {
        let missing = |first| StoreError::Damaged {
            path: self.disk.path(),
            what: "a part of the index of seqs is missing".to_owned(),
            seqs: Some((first, seq)),
        };
        let (key, bytes) =
            self.disk.record_before(&keys::seqs(seq.as_u64() + 1), 1)?.ok_or_else(|| missing(Seq::ZERO.next()))?;
        let seqs = Seqs::decode(&bytes).map_err(|e| self.disk.codec_error(&key, e))?;
        if seqs.end() <= seq.as_u64() {
            return Err(missing(Seq::try_from(seqs.end()).unwrap_or(seq)));
        }
        if keys::seqs_first(&key) != Some(seqs.first()) {
            return Err(self.disk.damaged(format!("{}: it is another one", keys::describe(&key))));
        }
        Ok(seqs)
    }

    pub fn slot(&self, seqs: &Seqs, seq: Seq) -> Result<Slot, StoreError> {
        seqs.get(seq.as_u64()).ok_or_else(|| self.disk.damaged(format!("the index of seqs has no {seq}")))
    }

    /// The entry at `slot`; `walks` keeps what was read for the next one of its group.
    fn slot_entry(
        &self,
        slot: Slot,
        seq: Seq,
        walks: &mut HashMap<u32, (View, BatchWalk)>,
        order: Order,
    ) -> Result<Entry, StoreError> {
        let Some(batch) = slot.batch else {
            return Ok(self.other(&self.view_of(slot.group)?, seq)?.entry);
        };
        if walks.len() >= MAX_WALKS && !walks.contains_key(&slot.group) {
            walks.clear();
        }
        let found = match walks.remove(&slot.group) {
            Some((view, walk)) if walk.position() == batch && batch <= view.head.last_batch => (view, walk),
            _ => (self.view_of(slot.group)?, BatchWalk::new(order, batch)),
        };
        let (view, walk) = walks.entry(slot.group).insert_entry(found).into_mut();
        match walk.next(self, view)? {
            Some(entry) if entry.seq == seq => Ok(entry),
            Some(entry) => Err(self.disk.damaged(format!("batch {batch} is at seq {} instead of {seq}", entry.seq))),
            None => Err(self.disk.damaged(format!("batch {batch} at seq {seq} is missing"))),
        }
    }

    fn visit_all(
        &self,
        from: Seq,
        order: Order,
        visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let sealed = self.published().sealed.seq;
        let mut walks = HashMap::new();
        let mut seqs: Option<Seqs> = None;
        let mut next = match order {
            Order::Ascending => from.as_u64().max(1),
            Order::Descending => from.as_u64().min(sealed.as_u64()),
        };
        while (1..=sealed.as_u64()).contains(&next) {
            let seq = Seq::try_from(next).unwrap_or(sealed);
            let part = match seqs.take() {
                Some(part) if (part.first()..part.end()).contains(&next) => part,
                _ => self.seqs_at(seq)?,
            };
            let slot = self.slot(seqs.insert(part), seq)?;
            if visit(self.slot_entry(slot, seq, &mut walks, order)?).is_break() {
                break;
            }
            next = match order {
                Order::Ascending => next + 1,
                Order::Descending => next - 1,
            };
        }
        Ok(())
    }
}
