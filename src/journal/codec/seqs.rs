//! Seqs: of consecutive seqs, to which group each belongs and which of its entries it is.
//!
//! Version, crc32c over the rest, first seq, count, then runs, under zstd where that is shorter. A run: group id twice,
//! plus one if its entries are no batches; how many; and for batches the number of the first, minus the one that would
//! follow the last of this group here (1 if there was none).

use std::collections::HashMap;

use super::varint::{self, Reader};
use super::{CodecError, compress, seal, unseal};

const VERSION: u8 = 1;

/// Runs of a full block, before compression; so no block has more than 4 KiB.
const FULL_BYTES: usize = 4000;
/// Seqs of a full block, so that a reader knows when to stop.
const FULL_SEQS: u64 = 65_536;

/// What a seq is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The id of its group; 0 for an entry without one.
    pub group: u32,
    /// Its batch number; none if it is no batch.
    pub batch: Option<u64>,
}

impl Slot {
    fn after(self, steps: u64) -> Slot {
        Slot { batch: self.batch.map(|batch| batch + steps), ..self }
    }
}

/// Consecutive seqs from `first`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seqs {
    first: u64,
    count: u64,
    runs: Vec<(Slot, u64)>,
    /// The bytes of all runs but the last, kept while it grows.
    bytes: Vec<u8>,
    expected: HashMap<u32, u64>,
}

impl Seqs {
    /// None yet; the first will be `first`.
    pub fn new(first: u64) -> Self {
        Seqs { first, ..Seqs::default() }
    }

    /// The first seq.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The seq after the last.
    pub fn end(&self) -> u64 {
        self.first + self.count
    }

    /// Whether the next seq belongs into another block.
    pub fn is_full(&self) -> bool {
        // The last run is not in `bytes` yet; it has at most 25.
        self.count >= FULL_SEQS || self.bytes.len() + 25 > FULL_BYTES
    }

    /// Adds the next seq.
    pub fn push(&mut self, slot: Slot) {
        self.count += 1;
        if let Some((first, count)) = self.runs.last_mut() {
            if first.after(*count) == slot {
                *count += 1;
                return;
            }
            put_run(&mut self.bytes, &mut self.expected, (*first, *count));
        }
        self.runs.push((slot, 1));
    }

    /// What `seq` is; none if it is not here.
    pub fn get(&self, seq: u64) -> Option<Slot> {
        let mut steps = seq.checked_sub(self.first).filter(|steps| *steps < self.count)?;
        for (slot, count) in &self.runs {
            if steps < *count {
                return Some(slot.after(steps));
            }
            steps -= count;
        }
        None
    }

    /// Drops all from `end` on.
    pub fn truncate(&mut self, end: u64) {
        let mut kept = Seqs::new(self.first);
        for seq in self.first..end.min(self.end()) {
            if let Some(slot) = self.get(seq) {
                kept.push(slot);
            }
        }
        *self = kept;
    }

    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        varint::put(&mut body, self.first);
        varint::put(&mut body, self.count);
        let mut runs = self.bytes.clone();
        if let Some(last) = self.runs.last() {
            put_run(&mut runs, &mut self.expected.clone(), *last);
        }
        compress::put(&mut body, &runs);
        seal(VERSION, &body)
    }

    /// What [`Seqs::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Seqs, CodecError> {
        let mut reader = Reader::new(unseal(VERSION, bytes)?);
        let (first, count) = (reader.take()?, reader.take()?);
        let plain = compress::take(&mut reader, FULL_BYTES as u64)?;
        let mut seqs = Seqs::new(first);
        let mut reader = Reader::new(&plain);
        while !reader.is_empty() {
            let tag = reader.take()?;
            let group = u32::try_from(tag >> 1).map_err(|_| CodecError::Malformed("a group id that can't be"))?;
            let length = reader.take()?;
            let batch = if tag & 1 == 0 {
                let expected = seqs.next_batch(group);
                Some(expected.wrapping_add_signed(reader.take_signed()?))
            } else {
                None
            };
            let possible = length > 0 && seqs.count.checked_add(length).is_some_and(|count| count <= FULL_SEQS);
            let last = batch.unwrap_or(0).checked_add(length);
            if !possible || last.is_none_or(|last| last > i64::MAX as u64) {
                return Err(CodecError::Malformed("a run that can't be"));
            }
            if let Some(run) = seqs.runs.last() {
                put_run(&mut seqs.bytes, &mut seqs.expected, *run);
            }
            seqs.runs.push((Slot { group, batch }, length));
            seqs.count += length;
        }
        if seqs.count != count || first == 0 || first.checked_add(count).is_none_or(|end| end > i64::MAX as u64) {
            return Err(CodecError::Malformed("seqs that can't be"));
        }
        Ok(seqs)
    }

    /// The batch that would follow the last of `group`.
    fn next_batch(&self, group: u32) -> u64 {
        match self.runs.last() {
            Some((slot, count)) if slot.group == group && slot.batch.is_some() => {
                slot.batch.map_or(1, |batch| batch + count)
            }
            _ => self.expected.get(&group).copied().unwrap_or(1),
        }
    }
}

fn put_run(out: &mut Vec<u8>, expected: &mut HashMap<u32, u64>, (slot, count): (Slot, u64)) {
    varint::put(out, u64::from(slot.group) << 1 | u64::from(slot.batch.is_none()));
    varint::put(out, count);
    if let Some(batch) = slot.batch {
        let next = expected.entry(slot.group).or_insert(1);
        varint::put_signed(out, batch as i64 - *next as i64);
        *next = batch + count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(group: u32, batch: Option<u64>) -> Slot {
        Slot { group, batch }
    }

    #[test]
    fn golden_bytes() {
        let mut seqs = Seqs::new(10);
        let slots = [slot(1, None), slot(1, Some(1)), slot(1, Some(2)), slot(2, Some(7)), slot(1, Some(3))];
        for slot in slots {
            seqs.push(slot);
        }
        let bytes = seqs.encode();
        assert_eq!(bytes[5..], [10, 5, 0, 3, 1, 2, 2, 0, 4, 1, 12, 2, 1, 0]);
        let read = Seqs::decode(&bytes).unwrap();
        assert_eq!(read, seqs);
        for (index, slot) in slots.into_iter().enumerate() {
            assert_eq!(read.get(10 + index as u64), Some(slot));
        }
        assert_eq!((read.get(9), read.get(15)), (None, None));
    }

    proptest::proptest! {
        #[test]
        fn what_grew_in_two_sittings_is_the_same(picks in proptest::collection::vec((0u32..4, 0u8..4), 0..3000), cut in 0usize..3000) {
            let mut whole = Seqs::new(1);
            let mut resumed = Seqs::new(1);
            let mut next = [1u64; 4];
            let mut slots = Vec::new();
            for (index, (group, kind)) in picks.into_iter().enumerate() {
                let batch = (kind > 0).then(|| { next[group as usize] += 1; next[group as usize] });
                if index == cut {
                    resumed = Seqs::decode(&resumed.encode()).unwrap();
                }
                if whole.is_full() {
                    break;
                }
                whole.push(slot(group, batch));
                resumed.push(slot(group, batch));
                slots.push(slot(group, batch));
            }
            assert_eq!(whole, resumed);
            assert!(whole.encode().len() <= 4090);
            for (index, slot) in slots.iter().enumerate() {
                assert_eq!(resumed.get(1 + index as u64), Some(*slot));
            }
            let end = 1 + (cut as u64).min(slots.len() as u64);
            resumed.truncate(end);
            assert_eq!(resumed.end(), end);
        }
    }
}
