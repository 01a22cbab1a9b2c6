//! Results: each put is a record of its own, the newest of a key first; and which of them a seal wrote.

use super::disk::{self, MAX_SINGLE, Writes};
use super::error::StoreError;
use super::{Shared, Store, keys};
use crate::journal::codec::CodecError;
use crate::journal::codec::puts::{self, Keys};
use crate::offset::{Group, Seq};

/// What a key takes in [`Keys`] beside its own bytes, at most; and the head of the record.
const OVERHEAD: usize = 24;

impl Store {
    /// The result of `group` under `key` after its last batch at or before seq `upto`. What is not sealed does not count.
    pub fn result(&self, group: &Group, key: &[u8], upto: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        let (shared, Some(view)) = (&*self.0, self.0.view(group)) else { return Ok(None) };
        let from = keys::result(view.id, key, upto.min(view.sealed));
        let Some((found, bytes)) = shared.disk.record_from(&from, from.len() - keys::RESULT_END)? else {
            return Ok(None);
        };
        puts::decode_result(&found, &bytes).map_err(|e| shared.disk.codec_error(&found, e))
    }

    /// The first key at or above `from` of a result of `group`, also one that is removed, or not sealed yet.
    pub fn result_from(&self, group: &Group, from: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let (shared, Some(view)) = (&*self.0, self.0.view(group)) else { return Ok(None) };
        let Some(found) = shared.disk.key_from(&keys::results_from(view.id, from), 5)? else { return Ok(None) };
        match keys::result_parts(&found) {
            Some((_, key, _)) => Ok(Some(key)),
            None => Err(shared.disk.damaged(keys::describe(&found))),
        }
    }
}

/// The results that a group has in a seal.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The first of those that are in no record yet.
    first: Seq,
    keys: Keys,
    /// Records so far.
    records: u32,
}

impl Written {
    /// Puts the results of batch `seq` of group `id` among the writes; how many they are.
    pub fn put(&mut self, id: u32, seq: Seq, results: &[u8], writes: &mut Writes) -> Result<u64, CodecError> {
        let mut count = 0;
        for put in puts::each(results) {
            let put = put?;
            let key = keys::result(id, put.key, seq);
            disk::put(writes, &key, &puts::encode_result(&key, put.value));
            if self.keys.len() + put.key.len() + OVERHEAD > MAX_SINGLE {
                self.finish(id, writes);
            }
            if self.keys.len() == 0 {
                self.first = seq;
            }
            self.keys.push(seq.as_u64(), put.key);
            count += 1;
        }
        Ok(count)
    }

    /// Puts what is in no record yet among the writes. A record is one value: it is there whole, or not at all.
    pub fn finish(&mut self, id: u32, writes: &mut Writes) {
        let keys = std::mem::take(&mut self.keys);
        if keys.len() > 0 {
            disk::put(writes, &keys::result_keys(id, self.first, self.records), &puts::encode_keys(&keys));
            self.records += 1;
        }
    }
}

impl Shared {
    /// Adds to `data` the removal of all results of group `id` beyond `sealed`, and to `index` that of the records that
    /// tell which they are: those go last.
    pub(super) fn sweep_results(
        &self,
        id: u32,
        sealed: Seq,
        data: &mut Writes,
        index: &mut Writes,
    ) -> Result<(), StoreError> {
        let disk = &self.disk;
        let beyond = keys::result_keys(id, sealed.next(), 0)..keys::result_keys(id, Seq::MAX, u32::MAX);
        disk.each_key(beyond, &mut |listed| {
            index.insert(listed.to_vec(), None);
            for key in self.listed(listed)? {
                disk.each_key(key.clone()..keys::piece(&key, keys::Piece::MAX), &mut |piece| {
                    data.insert(piece.to_vec(), None);
                    Ok(())
                })?;
            }
            Ok(())
        })
    }

    /// The keys of the results that the record at `key` lists.
    pub(super) fn listed(&self, key: &[u8]) -> Result<Vec<Vec<u8>>, StoreError> {
        let bytes = self.disk.get(key)?.unwrap_or_default();
        let listed = puts::decode_keys(&bytes).map_err(|e| self.disk.codec_error(key, e))?;
        let group = keys::result_keys_group(key).ok_or_else(|| self.disk.damaged(keys::describe(key)))?;
        let of = |(seq, key): (u64, Vec<u8>)| keys::result(group, &key, Seq::try_from(seq).unwrap_or(Seq::MAX));
        Ok(listed.into_iter().map(of).collect())
    }
}
