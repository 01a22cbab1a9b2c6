//! The write side: entries in, one valid seal out.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::disk::{self, MAX_SINGLE, Record, Writes};
use super::error::StoreError;
use super::records::{Other, Pace, Reach, Sealed, SealedGroup};
use super::results::{MAX_MERGED, Written};
use super::{Head, Shared, keys, pack};
use crate::entry::{Body, Entry};
use crate::journal::codec::block::{self, Around, Batches};
use crate::journal::codec::seqs::{Seqs, Slot};
use crate::journal::codec::snapshot::{self, Snapshot};
use crate::journal::codec::{CodecError, Topic, value};
use crate::offset::{Group, Seq, Timestamp, TopicName};
use crate::positions::{GroupState, Positions, State};

/// Entries that wait to be packed, over all groups, by [`pack::weight`]: bounds memory where there are many groups.
const MAX_WAITING: usize = 4 << 20;
/// A snapshot is due when this many times its size was written since the last: what a reader folds.
const SNAPSHOT_SHARE: u64 = 2;
/// But not before so much: a small group has one for each block.
const SNAPSHOT_FROM: u64 = 2 << 10;

/// Writes entries into the store, in order; lives on one thread.
///
/// [`push`](Sealer::push) takes entries, [`finish`](Sealer::finish) makes them durable and visible, all or none. After
/// an error it refuses everything: open the store again.
#[derive(Debug)]
pub struct Sealer {
    shared: Arc<Shared>,
    state: State,
    groups: HashMap<u32, Side>,
    seqs: Option<Seqs>,
    writes: Writes,
    waiting: usize,
    poisoned: bool,
}

/// What the sealer knows of a group, beside its state.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// The seal that its state was written with; none for a new group.
    pub seal: Option<u64>,
    pub last_other: Seq,
    pub pace: Pace,
    /// Its results: those of this seal, and where the others are.
    written: Written,
    /// What its blocks have read, without the waiting batches.
    pub reach: Reach,
    /// Whether it has entries in this seal, and its newest one.
    touched: Option<(Seq, Timestamp)>,
    /// Batches that are in no block of this seal yet.
    waiting: Vec<Entry>,
    /// While there are any: the group before the first of them, which is where the next block begins.
    base: Option<Base>,
    /// How many of those, in front, are from the group's last sealed block, which still takes more.
    reopened: usize,
    /// Whether that block was looked at in this seal.
    looked: bool,
    weight: usize,
    /// Bytes a weight, in blocks.
    scale: f64,
}

/// A group where its blocks end.
#[derive(Debug)]
struct Base {
    positions: Positions,
    /// Its newest entry there that is no batch.
    last_other: Seq,
    /// Its entries since then that are no batches.
    others: VecDeque<Entry>,
}

impl Base {
    /// Whether it is the group right after batch `last`, and after nothing else.
    fn is_right_after(&self, last: &Entry) -> bool {
        let newest = matches!(&last.body, Body::Batch(batch) if batch.batch == self.positions.batch);
        newest && self.last_other < last.seq
    }

    /// Goes on over `batches`, and what came between them; those that it is beyond are skipped.
    fn advance(&mut self, batches: &[Entry]) {
        for entry in batches {
            let known = matches!(&entry.body, Body::Batch(batch) if batch.batch <= self.positions.batch);
            if known {
                continue;
            }
            while let Some(other) = self.others.pop_front_if(|other| other.seq < entry.seq) {
                self.positions.apply(&other);
                self.last_other = other.seq;
            }
            self.positions.apply(entry);
        }
    }
}

impl Sealer {
    pub(super) fn new(shared: Arc<Shared>, state: State, groups: HashMap<u32, Side>) -> Self {
        Sealer { shared, state, groups, seqs: None, writes: Writes::new(), waiting: 0, poisoned: false }
    }

    /// What all entries so far add up to, pushed ones included.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Takes the next entry, and the results that a batch has ([`puts`](crate::journal::codec::puts)), or nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unstorable`] if it does not follow the newest one, or can't be kept.
    pub fn push(&mut self, entry: &Entry, results: &[u8]) -> Result<(), StoreError> {
        self.check_usable()?;
        let pushed = self.try_push(entry, results);
        self.poisoned = pushed.is_err();
        pushed
    }

    fn check_usable(&self) -> Result<(), StoreError> {
        match self.poisoned {
            true => Err(StoreError::Poisoned { path: self.shared.disk.path() }),
            false => Ok(()),
        }
    }

    fn try_push(&mut self, entry: &Entry, results: &[u8]) -> Result<(), StoreError> {
        let unstorable = |why: &str| StoreError::Unstorable { seq: entry.seq, why: why.to_owned() };
        if entry.seq != self.state.seq.next() {
            return Err(unstorable(&format!("seq {} is the newest", self.state.seq)));
        }
        let id = match (&entry.group, &entry.body) {
            (Some(group), _) => self.group_id(group)?,
            (None, Body::Batch(_)) => return Err(unstorable("a batch without a group")),
            (None, _) => 0,
        };
        let batch = match &entry.body {
            Body::Batch(batch) => {
                let newest = entry.group.as_ref().and_then(|group| self.state.groups.get(group));
                if batch.batch != newest.map(|state| state.positions.batch).unwrap_or_default().next() {
                    return Err(unstorable("its batch number does not follow"));
                }
                self.name_topics(entry)?;
                Some(batch.batch.as_u64())
            }
            _ => None,
        };
        self.push_slot(entry.seq, Slot { group: id, batch })?;
        let side = self.groups.entry(id).or_insert_with(|| Side { scale: 1.0, ..Side::default() });
        if batch.is_some() && side.base.is_none() {
            let state = entry.group.as_ref().and_then(|group| self.state.groups.get(group));
            let positions = state.map(|state| state.positions.clone()).unwrap_or_default();
            side.base = Some(Base { positions, last_other: side.last_other, others: VecDeque::new() });
        }
        self.state.apply(entry);
        side.touched = Some((entry.seq, entry.recorded_at));
        side.written.take(entry.seq, results).map_err(|e| unstorable(&e.to_string()))?;
        if batch.is_some() {
            let weight = pack::weight(entry);
            side.waiting.push(entry.clone());
            side.weight += weight;
            self.waiting += weight;
            // A batch that fills a value by itself shares its block with a few like it.
            let wide = weight as f64 * side.scale >= MAX_SINGLE as f64;
            let due = match wide {
                true => side.weight >= weight * pack::WIDE,
                false => side.weight as f64 * side.scale.min(1.0) >= 2.0 * MAX_SINGLE as f64,
            };
            if due || side.waiting.len() >= block::MAX_BATCHES {
                self.pack(id, false)?;
            } else if self.waiting >= MAX_WAITING {
                self.pack_all()?;
            }
        } else {
            let other = Other { before: side.last_other, entry: entry.clone() };
            let bytes = value::encode(&other).map_err(|e| unstorable(&e.to_string()))?;
            side.last_other = entry.seq;
            side.pace.since += bytes.len() as u64;
            disk::put(&mut self.writes, &keys::other(id, entry.seq), &bytes);
            match &mut side.base {
                Some(base) => base.others.push_back(entry.clone()),
                None => self.snapshot_present(id)?,
            }
        }
        Ok(())
    }

    fn group_id(&mut self, group: &Group) -> Result<u32, StoreError> {
        if let Some(id) = self.shared.names().groups.id(group) {
            return Ok(id);
        }
        let (id, _) = self.shared.names_mut().groups.give(group);
        self.put_value(keys::group_name(id), group)?;
        Ok(id)
    }

    /// Gives an id to each topic, in the incarnation that the batch was read from, that has none.
    fn name_topics(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let Body::Batch(batch) = &entry.body else {
            return Ok(());
        };
        let mut new: Vec<Topic> = Vec::new();
        {
            let names = self.shared.names();
            let mut before = None;
            let ranges = batch.ranges.iter().map(|range| range.topic());
            let notes = batch.notes.iter().map(|note| &note.topic);
            for name in ranges.chain(notes).chain(batch.firsts.iter().map(|first| &first.at.topic)) {
                if before != Some(name) {
                    new.push(Topic::of(batch, name));
                }
                before = Some(name);
            }
            new.retain(|topic| names.topics.id(topic).is_none());
        }
        for topic in new {
            let (id, is_new) = self.shared.names_mut().topics.give(&topic);
            if is_new {
                self.put_value(keys::topic_name(id), &topic)?;
            }
        }
        Ok(())
    }

    fn put_value<T: serde::Serialize>(&mut self, key: Vec<u8>, record: &T) -> Result<usize, StoreError> {
        let unstorable = |e: CodecError| StoreError::Unstorable { seq: self.state.seq, why: e.to_string() };
        let bytes = value::encode(record).map_err(unstorable)?;
        disk::put(&mut self.writes, &key, &bytes);
        Ok(bytes.len())
    }

    fn push_slot(&mut self, seq: Seq, slot: Slot) -> Result<(), StoreError> {
        let seqs = match self.seqs.take() {
            Some(seqs) => seqs,
            None => self.shared.last_seqs(self.shared.published().sealed.seq)?.unwrap_or_else(|| Seqs::new(1)),
        };
        let seqs = match seqs.is_full() {
            true => {
                disk::put(&mut self.writes, &keys::seqs(seqs.first()), &seqs.encode());
                Seqs::new(seqs.end())
            }
            false => seqs,
        };
        if seqs.end() != seq.as_u64() {
            return Err(self.shared.disk.damaged(format!("the index of seqs ends at {}", seqs.end() - 1)));
        }
        self.seqs.insert(seqs).push(slot);
        Ok(())
    }

    fn pack_all(&mut self) -> Result<(), StoreError> {
        let mut waiting: Vec<u32> =
            self.groups.iter().filter(|(_, s)| !s.waiting.is_empty()).map(|(id, _)| *id).collect();
        waiting.sort_unstable();
        waiting.into_iter().try_for_each(|id| self.pack(id, true))
    }

    /// Puts the waiting batches of a group into blocks: all, or those that fill one. The last, open block of the seal
    /// before, or of this one, is filled up first.
    fn pack(&mut self, id: u32, all: bool) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let Some(side) = self.groups.get_mut(&id) else {
            return Ok(());
        };
        if !side.looked {
            side.looked = true;
            if let Some((key, bytes)) = last_block(&self.writes, &shared, id)?
                && bytes.len() < pack::FULL
            {
                let batches = shared.batches(id, &key, &bytes)?.collect::<Result<Vec<_>, _>>();
                let mut entries = batches.map_err(|e| shared.disk.codec_error(&key, e))?;
                side.reopened = entries.len();
                for (topic, partition, before) in shared.befores(&key, &bytes)? {
                    side.reach.set(&topic, partition, before);
                }
                side.pace.since = side.pace.since.saturating_sub(bytes.len() as u64);
                entries.append(&mut side.waiting);
                side.waiting = entries;
            }
        }
        let names = shared.names();
        let topic_id = |topic: &Topic| names.topics.id(topic);
        let mut packed = 0;
        while let Some(first) = side.waiting.get(packed) {
            let unstorable = |e: CodecError| StoreError::Unstorable { seq: first.seq, why: e.to_string() };
            let Body::Batch(batch) = &first.body else {
                return Err(unstorable(CodecError::Malformed("an entry that is no batch")));
            };
            let left = &side.waiting[packed..];
            let before = |topic: &TopicName, partition| side.reach.of(topic, partition);
            let around = Around { topic_id: &topic_id, before: &before };
            let fitted = pack::fit(id, left, side.reopened, &mut side.scale, around).map_err(unstorable)?;
            let full = fitted.bytes.len() >= pack::FULL || fitted.count >= block::MAX_BATCHES;
            if !all && fitted.count == left.len() && !full {
                break; // more may come
            }
            disk::put(&mut self.writes, &keys::block(id, batch.batch.as_u64()), &fitted.bytes);
            side.pace.since += fitted.bytes.len() as u64;
            let block = &left[..fitted.count];
            side.reach.raise(block);
            packed += fitted.count;
            side.reopened = 0;
            if let (Some(base), Some(last)) = (&mut side.base, block.last()) {
                base.advance(block);
                // The next block begins here, unless this one takes more. A block of reopened batches only is behind the
                // base, which stands before the first new one: what came in between may have moved the group.
                let here = base.is_right_after(last);
                if here && (full || packed < side.waiting.len()) && side.pace.is_due() {
                    let (positions, last_other) = (base.positions.clone(), base.last_other);
                    let (seq, recorded_at) = (last.seq, last.recorded_at);
                    let snapshot = Snapshot { group: id, seq, recorded_at, last_other, positions };
                    side.pace = put_snapshot(&mut self.writes, &snapshot)?;
                }
            }
        }
        drop(names);
        side.waiting.drain(..packed);
        if side.waiting.is_empty() {
            side.base = None;
        }
        // What is left is from this seal or was reopened; after `all`, the last block is looked at again.
        side.looked = !all;
        let weight = side.waiting.iter().map(pack::weight).sum();
        self.waiting = self.waiting.saturating_sub(std::mem::replace(&mut side.weight, weight)) + weight;
        Ok(())
    }

    /// Keeps the group's present positions, if enough was written since the last time; none of its batches waits.
    fn snapshot_present(&mut self, id: u32) -> Result<(), StoreError> {
        let names = self.shared.names();
        let state = names.groups.name(id).and_then(|group| self.state.groups.get(group));
        // Entries without a group have no positions.
        let (Some(side), Some(state)) = (self.groups.get_mut(&id), state) else {
            return Ok(());
        };
        if let Some((seq, recorded_at)) = side.touched.filter(|_| side.pace.is_due()) {
            let (positions, last_other) = (state.positions.clone(), side.last_other);
            let snapshot = Snapshot { group: id, seq, recorded_at, last_other, positions };
            side.pace = put_snapshot(&mut self.writes, &snapshot)?;
        }
        Ok(())
    }

    /// Makes all pushed entries durable, then visible to readers; returns the newest. Without any it does nothing.
    ///
    /// # Errors
    ///
    /// The sealer is of no use afterwards; what was pushed is not sealed, unless the very last step failed, which only
    /// removes what is no longer needed. Opening again tells.
    pub fn finish(&mut self) -> Result<Seq, StoreError> {
        self.check_usable()?;
        if self.state.seq == self.shared.published().sealed.seq {
            return Ok(self.state.seq);
        }
        // A panic on the way leaves it so.
        self.poisoned = true;
        self.pack_all()?;
        if let Some(seqs) = &self.seqs {
            disk::put(&mut self.writes, &keys::seqs(seqs.first()), &seqs.encode());
        }
        let before = self.shared.published().sealed;
        let seal = before.seal + 1;
        let mut old_states = Writes::new();
        let (mut heads, mut runs, mut room) = (Vec::new(), Vec::new(), MAX_MERGED);
        let touched = self.groups.iter().filter(|(_, side)| side.touched.is_some());
        for id in touched.map(|(id, _)| *id).collect::<Vec<_>>() {
            heads.push((id, self.seal_state(id, seal, &mut room, &mut old_states)?));
            let of_group = self.groups.get(&id).map(|side| &side.written.runs).filter(|runs| !runs.is_empty());
            runs.extend(of_group.map(|runs| (id, runs.as_slice().into())));
        }
        let sealed = {
            let names = self.shared.names();
            Sealed {
                seq: self.state.seq,
                recorded_at: self.state.recorded_at,
                seal,
                groups: names.groups.len(),
                topics: names.topics.len(),
                states: self.groups.values().filter(|side| side.seal.is_some()).count() as u32,
            }
        };
        let disk = &self.shared.disk;
        // After the results the index goes first: it tells a sweep which groups a torn seal may have touched.
        let mut rest = std::mem::take(&mut self.writes);
        disk.write("seal: index", split_off(&mut rest, b'q'))?;
        disk.write("seal: names", split_off(&mut rest, b'd'))?;
        disk.write("seal: data", rest)?;
        let mut valid = Writes::new();
        let encoded = value::encode(&sealed).map_err(|e| disk.codec_error(keys::SEALED, e))?;
        disk::put(&mut valid, keys::SEALED, &encoded);
        disk.write("seal: valid", valid)?;
        {
            let mut published = self.shared.published_mut();
            published.sealed = sealed;
            published.heads.extend(heads);
            published.runs.extend(runs);
        }
        disk.write("seal: old states", old_states)?;
        self.poisoned = false;
        Ok(sealed.seq)
    }

    /// Writes the group's results and state under the number of this seal; what they take the place of goes once this seal
    /// is valid.
    fn seal_state(&mut self, id: u32, seal: u64, room: &mut u64, old_states: &mut Writes) -> Result<Head, StoreError> {
        let shared = Arc::clone(&self.shared);
        let state: GroupState =
            shared.names().groups.name(id).and_then(|group| self.state.groups.get(group)).cloned().unwrap_or_default();
        let Some(side) = self.groups.get_mut(&id) else {
            return Ok(Head::default());
        };
        side.touched = None;
        side.written.finish(&shared, id, seal, room, old_states)?;
        if let Some(old) = side.seal.replace(seal) {
            let (from, to) = (keys::state(id, old), keys::state(id, old + 1));
            shared.disk.each_key(from..to, &mut |key| {
                old_states.insert(key.to_vec(), None);
                Ok(())
            })?;
        }
        let head = Head { last_batch: state.positions.batch.as_u64(), last_other: side.last_other };
        let (last_other, pace, reach) = (side.last_other, side.pace, side.reach.clone());
        let record = SealedGroup { id, state, last_other, pace, runs: side.written.runs.clone(), reach };
        self.put_value(keys::state(id, seal), &record)?;
        Ok(head)
    }
}

impl Side {
    pub(super) fn sealed(seal: u64, record: &SealedGroup) -> Side {
        let SealedGroup { last_other, pace, .. } = *record;
        let (written, reach) = (Written::new(record.runs.clone()), record.reach.clone());
        Side { seal: Some(seal), last_other, pace, written, reach, scale: 1.0, ..Side::default() }
    }
}

impl Pace {
    /// Whether enough was written since the last snapshot for another one.
    fn is_due(&self) -> bool {
        self.since >= (SNAPSHOT_SHARE * self.snapshot).max(SNAPSHOT_FROM)
    }
}

/// Adds a snapshot; how far the next one is.
fn put_snapshot(writes: &mut Writes, snapshot: &Snapshot) -> Result<Pace, StoreError> {
    let unstorable = |e: CodecError| StoreError::Unstorable { seq: snapshot.seq, why: e.to_string() };
    let bytes = snapshot::encode(snapshot).map_err(unstorable)?;
    disk::put(writes, &keys::snapshot(snapshot.group, snapshot.seq), &bytes);
    Ok(Pace { since: 0, snapshot: bytes.len() as u64 })
}

/// Takes the writes out whose keys begin with `letter`.
fn split_off(writes: &mut Writes, letter: u8) -> Writes {
    let mut taken = writes.split_off(&vec![letter]);
    writes.append(&mut taken.split_off(&vec![letter + 1]));
    taken
}

/// The group's last block, from this seal or the sealed ones.
fn last_block(writes: &Writes, shared: &Shared, id: u32) -> Result<Option<Record>, StoreError> {
    let end = keys::block(id, u64::MAX);
    let Some((key, value)) = writes.range(keys::block(id, 0)..end.clone()).next_back() else {
        return shared.disk.record_before(&end, 5);
    };
    match value {
        // One of several pieces holds a single batch and takes no more.
        Some(value) if keys::piece_of(key) == Some(0) && value.first() == Some(&1) => {
            Ok(Some((key.clone(), value[1..].to_vec())))
        }
        _ => Ok(None),
    }
}

impl Shared {
    /// The batches of the block `bytes` of group `id`.
    pub(super) fn batches(&self, id: u32, key: &[u8], bytes: &[u8]) -> Result<Batches, StoreError> {
        let names = self.names();
        let group = names.groups.name(id).cloned();
        let group = group.ok_or_else(|| self.disk.damaged(format!("the name of group {id} is missing")))?;
        let batches = Batches::open(bytes, group, &|topic| names.topics.name(topic).cloned());
        let batches = batches.map_err(|e| self.disk.codec_error(key, e))?;
        let head = batches.head();
        if keys::group_and_number(key) != Some((head.group, head.first_batch)) {
            return Err(self.disk.damaged(format!("{}: it is another block", keys::describe(key))));
        }
        Ok(batches)
    }

    /// The index of the last seqs up to `sealed`; none in an empty store.
    pub(super) fn last_seqs(&self, sealed: Seq) -> Result<Option<Seqs>, StoreError> {
        if sealed == Seq::ZERO { Ok(None) } else { self.seqs_at(sealed).map(Some) }
    }
}
