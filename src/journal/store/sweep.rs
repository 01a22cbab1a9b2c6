//! Opening: reads what is sealed, checks that it is whole at its end, and removes what a crash inside a seal left.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, RwLock};

use super::disk::{self, Disk, Writes};
use super::error::StoreError;
use super::names::Names;
use super::records::{Reach, Sealed, SealedGroup};
use super::seal::Side;
use super::{Head, Published, Sealer, Shared, Store, keys};
use crate::entry::Entry;
use crate::journal::codec::block::{self, Around};
use crate::journal::codec::seqs::Seqs;
use crate::journal::codec::{Topic, value};
use crate::offset::{Seq, TopicName};
use crate::positions::State;

/// By group id: the state, and the seal that wrote it.
type States = BTreeMap<u32, (u64, SealedGroup)>;

pub fn open(disk: Disk) -> Result<(Store, Sealer), StoreError> {
    let sealed = match disk.value::<Sealed>(keys::SEALED)? {
        Some(sealed) => sealed,
        None if disk.is_empty()? => begin(&disk)?,
        None => return Err(disk.damaged("the record of what is sealed is missing")),
    };
    let names = Names::load(&disk, &sealed)?;
    let (states, stale) = load_states(&disk, &sealed)?;
    let mut state = State { seq: sealed.seq, recorded_at: sealed.recorded_at, ..State::default() };
    let (mut heads, mut runs, mut sides) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (id, (seal, record)) in states {
        let last_batch = record.state.positions.batch.as_u64();
        heads.insert(id, Head { last_batch, last_other: record.last_other });
        if !record.runs.is_empty() {
            runs.insert(id, record.runs.as_slice().into());
        }
        sides.insert(id, Side::sealed(seal, &record));
        match names.groups.name(id) {
            Some(group) => drop(state.groups.insert(group.clone(), record.state)),
            None if id == 0 => {}
            None => return Err(disk.damaged(format!("the name of group {id} is missing"))),
        }
    }
    let published = RwLock::new(Published { sealed, heads, runs });
    let shared = Arc::new(Shared { disk, names: RwLock::new(names), published });
    sweep(&shared, sealed, stale)?;
    Ok((Store(Arc::clone(&shared)), Sealer::new(shared, state, sides)))
}

/// Marks an empty database as a store, so that one that lost everything is not taken for new.
fn begin(disk: &Disk) -> Result<Sealed, StoreError> {
    let sealed = Sealed::default();
    let mut writes = Writes::new();
    let bytes = value::encode(&sealed).map_err(|e| disk.codec_error(keys::SEALED, e))?;
    disk::put(&mut writes, keys::SEALED, &bytes);
    disk.write("open: begin", writes)?;
    Ok(sealed)
}

/// The state of each group as of the newest valid seal that wrote it; and the keys of all others.
fn load_states(disk: &Disk, sealed: &Sealed) -> Result<(States, Writes), StoreError> {
    let mut found: Vec<(u32, u64, Vec<u8>)> = Vec::new();
    disk.each_key(keys::prefix(b"s"), &mut |key| {
        let (id, seal) = keys::group_and_number(key).ok_or_else(|| disk.damaged(keys::describe(key)))?;
        found.push((id, seal, key.to_vec()));
        Ok(())
    })?;
    let mut newest: BTreeMap<u32, u64> = BTreeMap::new();
    for (id, seal, _) in found.iter().filter(|(_, seal, _)| *seal <= sealed.seal) {
        newest.insert(*id, *seal);
    }
    if newest.len() != sealed.states as usize {
        return Err(disk.damaged(format!("{} states of groups instead of {}", newest.len(), sealed.states)));
    }
    let stale = found.into_iter().filter(|(id, seal, _)| newest.get(id) != Some(seal)).map(|(_, _, key)| (key, None));
    let stale = stale.collect();
    let mut states = BTreeMap::new();
    for (id, seal) in newest {
        let key = keys::state(id, seal);
        let record: Option<SealedGroup> = disk.value(&key)?;
        let record = record.filter(|record| record.id == id);
        let record = record.ok_or_else(|| disk.damaged(format!("{} is missing", keys::describe(&key))))?;
        states.insert(id, (seal, record));
    }
    Ok((states, stale))
}

/// Removes what lies beyond the sealed seq, the index last: until then it tells what there is to remove.
fn sweep(shared: &Shared, sealed: Sealed, stale: Writes) -> Result<(), StoreError> {
    let disk = &shared.disk;
    let mut index = Writes::new();
    let mut touched = BTreeSet::new();
    if let Some(mut last) = shared.last_seqs(sealed.seq)? {
        note_groups(&last, sealed.seq, &mut touched);
        if last.end() > sealed.seq.as_u64() + 1 {
            last.truncate(sealed.seq.as_u64() + 1);
            disk::put(&mut index, &keys::seqs(last.first()), &last.encode());
        }
    }
    disk.each_key(keys::seqs(sealed.seq.as_u64() + 1)..keys::prefix(b"q").end, &mut |key| {
        index.insert(key.to_vec(), None);
        let bytes = disk.get(key)?.unwrap_or_default();
        let seqs = Seqs::decode(&bytes).map_err(|e| disk.codec_error(key, e))?;
        note_groups(&seqs, sealed.seq, &mut touched);
        Ok(())
    })?;
    let mut data = stale;
    for id in touched {
        sweep_group(shared, id, sealed, &mut data)?;
    }
    shared.sweep_runs(&mut data)?;
    disk.write("sweep: data", data)?;
    disk.write("sweep: index", index)
}

fn note_groups(seqs: &Seqs, sealed: Seq, touched: &mut BTreeSet<u32>) {
    let beyond = seqs.first().max(sealed.as_u64() + 1)..seqs.end();
    touched.extend(beyond.filter_map(|seq| seqs.get(seq)).map(|slot| slot.group));
}

fn sweep_group(shared: &Shared, id: u32, sealed: Sealed, data: &mut Writes) -> Result<(), StoreError> {
    let disk = &shared.disk;
    let last_batch = shared.published().heads.get(&id).map_or(0, |head| head.last_batch);
    let beyond = sealed.seq.next();
    for (from, letter) in [
        (keys::block(id, last_batch + 1), b'b'),
        (keys::snapshot(id, beyond), b'p'),
        (keys::state(id, sealed.seal + 1), b's'),
        (keys::other(id, beyond), b'x'),
    ] {
        let mut end = vec![letter];
        end.extend(id.to_be_bytes());
        end.extend([0xff; 10]);
        disk.each_key(from..end, &mut |key| {
            data.insert(key.to_vec(), None);
            Ok(())
        })?;
    }
    let Some((key, bytes)) = disk.record_before(&keys::block(id, last_batch + 1), 5)? else {
        return Ok(());
    };
    let head = block::head(&bytes).map_err(|e| disk.codec_error(&key, e))?;
    if head.last_batch() > last_batch {
        let kept = last_batch.saturating_sub(head.first_batch) as usize + 1;
        let entries: Result<Vec<Entry>, _> = shared.batches(id, &key, &bytes)?.take(kept).collect();
        let entries = entries.map_err(|e| disk.codec_error(&key, e))?;
        let mut reach = Reach::default();
        for (topic, partition, before) in shared.befores(&key, &bytes)? {
            reach.set(&topic, partition, before);
        }
        let names = shared.names();
        let topic_id = |topic: &Topic| names.topics.id(topic);
        let before = |topic: &TopicName, partition| reach.of(topic, partition);
        let bytes = block::encode(id, &entries, Around { topic_id: &topic_id, before: &before })
            .map_err(|e| disk.codec_error(&key, e))?;
        disk::put(data, &key, &bytes);
    }
    Ok(())
}
