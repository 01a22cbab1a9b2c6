//! Results: runs, each the puts of consecutive seals in the order of their keys, packed into blocks.
//!
//! A seal writes the puts that it brings as a run of its own, together with what the runs right before it hold while those
//! are not much larger: so a put is written few times, and a group has few small runs, besides one for every 16 to 32 MiB.
//! Runs are written before the rest of the seal. The group's state lists them, which makes them valid with the seal; those
//! that were taken into another are removed after it, and what no list names at the next open.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::disk::{self, Disk, MAX_SINGLE, Writes};
use super::error::StoreError;
use super::records::Run;
use super::{Shared, Store, keys};
use crate::journal::codec::results::{self, Block, Item, Place};
use crate::journal::codec::{CodecError, puts};
use crate::offset::{Group, Seq};

/// What the results of a block may take: with its head and what comes next it fits one value.
const ROOM: usize = MAX_SINGLE - 300;
/// A run of more bytes is taken into no other: bounds what a seal holds in memory.
const MAX_RUN: u64 = 32 << 20;
/// Bytes of runs that one seal takes into others, over all groups: bounds its time. What is left is for the next ones.
pub(super) const MAX_MERGED: u64 = 4 * MAX_RUN;

/// A group's results as one call sees them: while no other seal becomes valid, none of them goes.
struct View {
    id: u32,
    seal: u64,
    runs: Arc<[Run]>,
}

impl Store {
    /// The result of `group` under `key` after its last batch at or before seq `upto`. What is not sealed does not count.
    pub fn result(&self, group: &Group, key: &[u8], upto: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        loop {
            let view = self.0.results_view(group);
            // The newest that speaks of the key counts.
            let runs = view.runs.iter().rev().filter(|run| run.first <= upto && run.may_hold(key));
            let found = runs.map(|run| self.0.find(view.id, run, key, upto)).find_map(Result::transpose);
            if self.0.is_current(&view) {
                return Ok(found.transpose()?.and_then(|item| item.value));
            }
        }
    }

    /// A walk over the group's sealed results from the key `from` on.
    pub fn results(&self, group: &Group, from: &[u8]) -> Result<ResultsWalk, StoreError> {
        loop {
            let view = self.0.results_view(group);
            let cursor = |run: &Run| self.0.seek(view.id, run, from);
            let cursors = view.runs.iter().rev().map(cursor).collect::<Result<Vec<_>, _>>();
            if self.0.is_current(&view) {
                return Ok(ResultsWalk { shared: Arc::clone(&self.0), cursors: cursors?, view });
            }
        }
    }
}

/// A walk over the results of a group, key after key.
pub struct ResultsWalk {
    shared: Arc<Shared>,
    view: View,
    /// By run, the newest first; none where it has ended.
    cursors: Vec<Option<Cursor>>,
}

/// A place in a run.
struct Cursor {
    block: Block,
    /// In the block, always within it.
    at: usize,
}

impl Cursor {
    fn key(&self) -> &[u8] {
        self.block.items[self.at].key()
    }
}

impl ResultsWalk {
    /// Whether all that is sealed is still what it walks over: what it said before is right only if so.
    pub fn is_current(&self) -> bool {
        self.shared.is_current(&self.view)
    }

    /// The next key at which any batch put or removed a result.
    pub fn key(&self) -> Option<&[u8]> {
        self.cursors.iter().flatten().map(Cursor::key).min()
    }

    /// The result there after the last batch at or before `upto`.
    pub fn value(&self, upto: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(key) = self.key() else { return Ok(None) };
        for (cursor, run) in self.cursors.iter().zip(self.view.runs.iter().rev()) {
            let Some(cursor) = cursor.as_ref().filter(|cursor| cursor.key() == key) else { continue };
            let own = cursor.block.items[cursor.at..].iter().take_while(|item| item.key() == key);
            let found = match own.clone().find(|item| item.seq() <= upto) {
                Some(item) => Some(item.clone()),
                // There may be older ones of it in the next block.
                None => match &cursor.block.next {
                    Some((next, _)) if next == key => self.shared.find(self.view.id, run, key, upto)?,
                    _ => None,
                },
            };
            if let Some(item) = found {
                return Ok(item.value);
            }
        }
        Ok(None)
    }

    /// Goes on to the key after that.
    pub fn advance(&mut self) -> Result<(), StoreError> {
        let Some(key) = self.key().map(<[u8]>::to_vec) else { return Ok(()) };
        for (slot, run) in self.cursors.iter_mut().zip(self.view.runs.iter().rev()) {
            let Some(cursor) = slot.as_mut().filter(|cursor| cursor.key() == key) else { continue };
            cursor.at = cursor.block.items.partition_point(|item| item.key() <= key.as_slice());
            if cursor.at == cursor.block.items.len() {
                *slot = match cursor.block.next.take() {
                    None => None,
                    Some((next, _)) if next == key => {
                        self.shared.seek(self.view.id, run, &[&key[..], &[0]].concat())?
                    }
                    Some(next) => Some(Cursor { block: self.shared.result_block(self.view.id, run, &next)?, at: 0 }),
                };
            }
        }
        Ok(())
    }
}

impl Run {
    fn may_hold(&self, key: &[u8]) -> bool {
        (self.begin.0.as_slice()..=self.end.as_slice()).contains(&key)
    }
}

impl Shared {
    /// Of a group without results there is nothing to see.
    fn results_view(&self, group: &Group) -> View {
        // First: a seal that names the group meanwhile makes this view an old one.
        let seal = self.published().sealed.seal;
        let id = self.names().groups.id(group).unwrap_or_default();
        View { id, seal, runs: self.published().runs.get(&id).cloned().unwrap_or_default() }
    }

    /// Whether no seal became valid since: until then no run goes.
    fn is_current(&self, view: &View) -> bool {
        self.published().sealed.seal == view.seal
    }

    /// The block of `run` in which `place`, not before its begin, stands or would stand.
    fn result_block(&self, id: u32, run: &Run, place: &Place) -> Result<Block, StoreError> {
        let (key, Reverse(seq)) = place;
        // At or below that place: no record has so many pieces.
        let end = keys::piece(&keys::result(id, run.seal, key, *seq), keys::Piece::MAX);
        let missing = || {
            let place = keys::describe(&keys::result(id, run.seal, key, *seq));
            self.disk.damaged(format!("{place}: the block that would hold it is missing"))
        };
        let (under, bytes) = self.disk.record_before(&end, keys::RUN_PREFIX)?.ok_or_else(missing)?;
        let block = results::decode(&under, &bytes).map_err(|e| self.disk.codec_error(&under, e))?;
        if block.next.as_ref().is_some_and(|next| next <= place) {
            return Err(missing());
        }
        Ok(block)
    }

    /// The newest result under `key` in the run at or before `upto`.
    fn find(&self, id: u32, run: &Run, key: &[u8], upto: Seq) -> Result<Option<Item>, StoreError> {
        let place = (key.to_vec(), Reverse(upto));
        let found = self.cursor(id, run, &place)?;
        Ok(found.map(|mut cursor| cursor.block.items.swap_remove(cursor.at)).filter(|item| item.key() == key))
    }

    /// The first key of the run at or above `from`.
    fn seek(&self, id: u32, run: &Run, from: &[u8]) -> Result<Option<Cursor>, StoreError> {
        if from > run.end.as_slice() {
            return Ok(None);
        }
        self.cursor(id, run, &(from.to_vec(), Reverse(Seq::MAX)))
    }

    /// The first result of the run at or after `place`; none past its end.
    fn cursor(&self, id: u32, run: &Run, place: &Place) -> Result<Option<Cursor>, StoreError> {
        let block = self.result_block(id, run, place.max(&run.begin))?;
        let at = block.items.partition_point(|item| item.place < *place);
        match (at < block.items.len(), &block.next) {
            (true, _) => Ok(Some(Cursor { block, at })),
            (false, Some(next)) => Ok(Some(Cursor { block: self.result_block(id, run, next)?, at: 0 })),
            (false, None) => Ok(None),
        }
    }

    /// Visits all results of a run, in order; as many as it is known to hold.
    pub(super) fn each_result(
        &self,
        id: u32,
        run: &Run,
        visit: &mut dyn FnMut(Item) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let (mut next, mut count) = (Some(run.begin.clone()), 0);
        while let Some(place) = next {
            let block = self.result_block(id, run, &place)?;
            if block.items.first().is_none_or(|item| item.place != place) {
                let place = keys::describe(&keys::result(id, run.seal, &place.0, place.1.0));
                return Err(self.disk.damaged(format!("{place} is missing")));
            }
            for item in block.items {
                count += 1;
                if visit(item).is_break() {
                    return Ok(());
                }
            }
            next = block.next;
        }
        match count == run.puts {
            true => Ok(()),
            false => Err(self.disk.damaged(format!(
                "{count} results of group {id} in the run of seal {} instead of {}",
                run.seal, run.puts
            ))),
        }
    }

    /// Adds to `writes` the removal of each run that is not listed: of a seal that was torn, or taken into a later one.
    pub(super) fn sweep_runs(&self, writes: &mut Writes) -> Result<(), StoreError> {
        let mut from = vec![b'r'];
        while let Some(key) = self.disk.key_from(&from, 1)? {
            let (group, run) = keys::run_of(&key).ok_or_else(|| self.disk.damaged(keys::describe(&key)))?;
            let all = keys::run(group, run);
            from.clone_from(&all.end);
            let listed =
                self.published().runs.get(&group).is_some_and(|runs| runs.iter().any(|known| known.seal == run));
            if !listed {
                remove_run(&self.disk, group, run, writes)?;
            }
        }
        Ok(())
    }
}

/// Adds to `writes` the removal of a run.
fn remove_run(disk: &Disk, group: u32, run: u64, writes: &mut Writes) -> Result<(), StoreError> {
    disk.each_key(keys::run(group, run), &mut |key| {
        writes.insert(key.to_vec(), None);
        Ok(())
    })
}

/// The results that a group has in a seal, and the runs that it had before.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub runs: Vec<Run>,
    items: Vec<Item>,
}

impl Written {
    pub fn new(runs: Vec<Run>) -> Self {
        Written { runs, items: Vec::new() }
    }

    /// Takes the results of batch `seq`.
    pub fn take(&mut self, seq: Seq, results: &[u8]) -> Result<(), CodecError> {
        for put in puts::each(results) {
            let put = put?;
            let place = (put.key.to_vec(), Reverse(seq));
            self.items.push(Item { place, value: put.value.map(<[u8]>::to_vec) });
        }
        Ok(())
    }

    /// Writes what was taken as a run of seal `seal`, with what the runs before it hold, of which there may be `room` bytes;
    /// the removal of those goes among `later`, what is written once the seal is valid.
    pub fn finish(
        &mut self,
        shared: &Shared,
        id: u32,
        seal: u64,
        room: &mut u64,
        later: &mut Writes,
    ) -> Result<(), StoreError> {
        let mut items = std::mem::take(&mut self.items);
        let mut bytes = items.iter().map(|item| item.weight() as u64).sum::<u64>();
        let Some(mut first) = items.first().map(Item::seq) else { return Ok(()) };
        // Each is then at least twice as large as the next, or too large to be written again.
        let small = |run: &mut Run, bytes: u64| run.bytes < 2 * bytes && run.bytes + bytes <= MAX_RUN;
        while let Some(run) = self.runs.pop_if(|run| small(run, bytes) && run.bytes <= *room) {
            let own = items.len();
            let read = shared.each_result(id, &run, &mut |item| {
                items.push(item);
                ControlFlow::Continue(())
            });
            if let Err(error) = read {
                // Whoever asks for what it holds is told. It is no reason to take no more commits.
                tracing::error!(%error, "results that can't be read are left as they are");
                items.truncate(own);
                self.runs.push(run);
                break;
            }
            remove_run(&shared.disk, id, run.seal, later)?;
            *room -= run.bytes;
            bytes += run.bytes;
            first = run.first;
        }
        // A stable sort makes use of the parts that are in order.
        items.sort_by(|a, b| a.place.cmp(&b.place));
        let (begin, end) = (items[0].place.clone(), items[items.len() - 1].key().to_vec());
        self.runs.push(Run { seal, first, puts: items.len() as u64, bytes, begin, end });
        let (mut writes, mut rest) = (Writes::new(), &items[..]);
        while !rest.is_empty() {
            let mut room = ROOM;
            let fits = |item: &&Item| match room.checked_sub(item.weight()) {
                Some(left) => {
                    room = left;
                    true
                }
                None => false,
            };
            // One that is too large for a value stands alone, in several.
            let count = rest.iter().take_while(fits).count().max(1);
            let (block, after) = rest.split_at(count);
            let under = keys::result(id, seal, block[0].key(), block[0].seq());
            let next = after.first().map(|next| &next.place);
            disk::put(&mut writes, &under, &results::encode(&under, block, next));
            rest = after;
        }
        shared.disk.write("seal: results", writes)
    }
}
