//! Reading everything, to know that it can be read.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use super::error::StoreError;
use super::records::{Reach, Run, SealedGroup};
use super::{Order, Shared, Store, View, keys};
use crate::entry::{Body, Entry};
use crate::journal::codec::spans::Span;
use crate::journal::codec::{Topic, block, snapshot};
use crate::offset::{Group, Seq};
use crate::positions::State;

impl Store {
    /// Reads all sealed entries, and compares what they add up to with the snapshots and the sealed states.
    ///
    /// Reads each entry once by seq and once by group. The states are compared unless a seal ends meanwhile.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] at the first thing that is missing or different.
    pub fn verify(&self) -> Result<(), StoreError> {
        let shared = &*self.0;
        let sealed = shared.published().sealed;
        let snapshots = shared.snapshot_keys()?;
        let mut state = State::default();
        let mut failed = None;
        self.visit_entries(None, Seq::ZERO, Order::Ascending, &mut |entry| {
            if entry.seq > sealed.seq {
                return ControlFlow::Break(());
            }
            state.apply(&entry);
            let key = snapshots.get(&entry.seq);
            if let Some(error) = key.and_then(|key| shared.compare_snapshot(key, &entry, &state).err()) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        for (group, folded) in &state.groups {
            self.visit_entries(Some(group), Seq::ZERO, Order::Ascending, &mut |_| ControlFlow::Continue(()))?;
            let id = shared.group_id(group)?;
            if let Some(view) = shared.view(group) {
                shared.compare_spans(&view)?;
            }
            let record = shared.disk.key_before(&keys::state(id, sealed.seal + 1), 5)?;
            let record = record.map(|key| shared.disk.value::<SealedGroup>(&key)).transpose()?.flatten();
            let runs = record.as_ref().map(|record| record.runs.clone()).unwrap_or_default();
            if record.is_none_or(|record| record.state != *folded) && shared.published().sealed == sealed {
                return Err(shared
                    .disk
                    .damaged(format!("the state of group {group} is not what its entries add up to")));
            }
            if let Err(error) = shared.verify_results(id, &runs)
                && shared.published().sealed == sealed
            {
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Shared {
    fn group_id(&self, group: &Group) -> Result<u32, StoreError> {
        let id = self.names().groups.id(group);
        id.ok_or_else(|| self.disk.damaged(format!("the name of group {group} is missing")))
    }

    /// Reads all results of a group: each run holds what it says, of batches that no other one has results of, and there
    /// are no others.
    fn verify_results(&self, id: u32, runs: &[Run]) -> Result<(), StoreError> {
        let disk = &self.disk;
        let mut end = Seq::ZERO;
        for run in runs {
            let (mut first, mut last, mut key) = (Seq::MAX, Seq::ZERO, Vec::new());
            self.each_result(id, run, &mut |item| {
                (first, last) = (first.min(item.seq()), last.max(item.seq()));
                key = item.place.0;
                ControlFlow::Continue(())
            })?;
            if first != run.first || first <= end || key != run.end {
                return Err(
                    disk.damaged(format!("results of group {id} from seq {first} on are not what {run:?} says"))
                );
            }
            end = last;
        }
        disk.each_key(keys::run(id, 0).start..keys::run(id, u64::MAX - 1).end, &mut |key| {
            let listed = keys::run_of(key).is_some_and(|(_, seal)| runs.iter().any(|run| run.seal == seal));
            if listed { Ok(()) } else { Err(disk.damaged(format!("{} is in no list", keys::describe(key)))) }
        })
    }

    /// Compares what each block says that it read with its batches, and with those before it.
    fn compare_spans(&self, view: &View) -> Result<(), StoreError> {
        let (mut next, mut reach) = (1, Reach::default());
        while next <= view.head.last_batch {
            let (key, bytes, head) = self.block_at(view, next)?;
            let entries = self.batches(view.id, &key, &bytes)?.collect::<Result<Vec<Entry>, _>>();
            let entries = entries.map_err(|e| self.disk.codec_error(&key, e))?;
            let mut expected: BTreeMap<(Topic, u32), Span> = BTreeMap::new();
            for range in entries.iter().flat_map(|entry| match &entry.body {
                Body::Batch(batch) => {
                    batch.ranges.iter().map(|range| (Topic::of(batch, range.topic()), range)).collect()
                }
                _ => Vec::new(),
            }) {
                let (topic, range) = range;
                let (low, high) = (range.from_offset().as_u64(), range.until_offset().as_u64());
                let before = reach.of(range.topic(), range.partition());
                let span = expected.entry((topic, range.partition())).or_insert(Span { low, high, before });
                (span.low, span.high) = (span.low.min(low), span.high.max(high));
            }
            for span in block::spans(&bytes).map_err(|e| self.disk.codec_error(&key, e))? {
                let (topic, partition, span) = span.map_err(|e| self.disk.codec_error(&key, e))?;
                let topic = self.names().topics.name(topic).cloned();
                let found = topic.and_then(|topic| expected.remove(&(topic, partition)));
                // A place that only a note names was read nowhere.
                if found.map_or(span.high > 0, |found| found != span) {
                    return Err(self.disk.damaged(format!("{}: {span:?}, not {found:?}", keys::describe(&key))));
                }
            }
            if !expected.is_empty() {
                return Err(self.disk.damaged(format!("{}: no word on {expected:?}", keys::describe(&key))));
            }
            reach.raise(&entries);
            next = head.last_batch() + 1;
        }
        Ok(())
    }

    fn snapshot_keys(&self) -> Result<HashMap<Seq, Vec<u8>>, StoreError> {
        let mut found = HashMap::new();
        self.disk.each_key(keys::prefix(b"p"), &mut |key| {
            if let Some(seq) = keys::group_and_number(key).and_then(|(_, number)| Seq::try_from(number).ok()) {
                found.insert(seq, keys::piece(key, 0));
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn compare_snapshot(&self, key: &[u8], entry: &Entry, state: &State) -> Result<(), StoreError> {
        let bytes = self.disk.get(key)?.unwrap_or_default();
        let snapshot = snapshot::decode(&bytes).map_err(|e| self.disk.codec_error(key, e))?;
        let group = entry.group.as_ref().and_then(|group| state.groups.get(group));
        match group {
            Some(group) if snapshot.positions == group.positions && snapshot.recorded_at == entry.recorded_at => Ok(()),
            _ => Err(self.disk.damaged(format!("{} is not what the entries add up to", keys::describe(key)))),
        }
    }
}
