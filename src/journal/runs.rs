//! Where the results of a group stand in the unsealed tail, in the order of their keys: eight bytes a result, as the keys
//! themselves stay where they are, in the records.

use super::codec::{CodecError, puts};

/// A longer run is not merged with others: a commit waits for a merge, some milliseconds for one of this length.
const MAX_RUN: usize = 1 << 16;

/// The results of a group in one segment, newest last: runs of places, each ordered by key, then slot.
#[derive(Debug, Default)]
pub struct Runs {
    runs: Vec<Vec<Place>>,
}

/// A result: whose slot in the segment's index its batch has, and where it begins in the segment's bytes.
#[derive(Debug, Clone, Copy)]
struct Place {
    slot: u32,
    at: u32,
}

impl Place {
    /// The result itself; `bytes` are the segment's. It was read when it was added, so it can be read again.
    fn put(self, bytes: &[u8]) -> puts::Put<'_> {
        let put = bytes.get(self.at as usize..).map(puts::first);
        put.and_then(Result::ok).expect("each place begins a result that was read before").0
    }

    /// What a run is ordered by.
    fn order(self, bytes: &[u8]) -> (&[u8], u32) {
        (self.put(bytes).key, self.slot)
    }
}

impl Runs {
    /// Takes in the results of the batch in `slot`, which stand in `bytes` from `at` to `end`.
    ///
    /// # Errors
    ///
    /// If they are none, or not in the order of their keys: then they are not what the log holds.
    pub fn push(&mut self, slot: u32, bytes: &[u8], at: usize, end: usize) -> Result<(), CodecError> {
        let mut run: Vec<Place> = Vec::new();
        let mut before: &[u8] = &[];
        for put in puts::each(&bytes[at..end]) {
            let put = put?;
            if put.key <= before {
                return Err(CodecError::Malformed("results that are not in order"));
            }
            before = put.key;
            let at = u32::try_from(at + put.at).map_err(|_| CodecError::Malformed("a segment beyond 4 GiB"))?;
            run.push(Place { slot, at });
        }
        if run.is_empty() {
            return Ok(());
        }
        // Each is at least twice as long as the next, so there are few to search, and each place is moved seldom.
        while let Some(last) = self.runs.pop_if(|last| last.len() < 2 * run.len() && last.len() + run.len() <= MAX_RUN)
        {
            run = merged(last, run, bytes);
        }
        self.runs.push(run);
        Ok(())
    }

    /// What the newest batch in a slot up to `upto` says of `key`: the value, or that it was removed.
    pub fn get<'a>(&self, key: &[u8], upto: u32, bytes: &'a [u8]) -> Option<Option<&'a [u8]>> {
        self.runs.iter().rev().find_map(|run| {
            let count = run.partition_point(|place| place.order(bytes) <= (key, upto));
            let put = run.get(count.checked_sub(1)?)?.put(bytes);
            (put.key == key).then_some(put.value)
        })
    }

    /// The first key at or above `from`.
    pub fn key_from<'a>(&self, from: &[u8], bytes: &'a [u8]) -> Option<&'a [u8]> {
        let first = |run: &Vec<Place>| {
            let below = run.partition_point(|place| place.put(bytes).key < from);
            run.get(below).map(|place| place.put(bytes).key)
        };
        self.runs.iter().filter_map(first).min()
    }
}

/// Two runs as one, the later one second.
fn merged(mut run: Vec<Place>, mut later: Vec<Place>, bytes: &[u8]) -> Vec<Place> {
    run.append(&mut later);
    // A stable sort finds the two ordered runs, and merges them in one pass.
    run.sort_by(|a, b| a.order(bytes).cmp(&b.order(bytes)));
    run
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::results::Puts;

    proptest::proptest! {
        #[test]
        fn each_key_is_found_as_of_each_slot(
            batches in proptest::collection::vec(proptest::collection::btree_map(0u8..20, 0u8..4, 0..12), 0..40)
        ) {
            let (mut runs, mut bytes, mut states) = (Runs::default(), Vec::new(), Vec::new());
            let mut state: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
            for (slot, batch) in batches.iter().enumerate() {
                let mut puts = Puts::new();
                for (key, value) in batch {
                    let key = vec![b'k'; usize::from(*key)  + 1];
                    let value = (*value > 0).then(|| vec![*value, slot as u8]);
                    match &value {
                        Some(value) => puts.put(key.clone(), value.clone()).unwrap(),
                        None => puts.remove(key.clone()).unwrap(),
                    }
                    state.insert(key, value);
                }
                bytes.extend_from_slice(b"a record's own");
                let at = bytes.len();
                bytes.extend(puts::encode(&puts));
                let end = bytes.len();
                bytes.extend_from_slice(b"and its rest");
                runs.push(slot as u32, &bytes, at, end).unwrap();
                states.push(state.clone());
            }
            for (slot, state) in states.iter().enumerate() {
                for length in 0..22 {
                    let key = vec![b'k'; length];
                    let found = runs.get(&key, slot as u32, &bytes).map(|value| value.map(<[u8]>::to_vec));
                    assert_eq!(found.as_ref(), state.get(&key), "{length} as of {slot}");
                }
            }
            for length in 0..22 {
                let from = vec![b'k'; length];
                let expected = state.range(from.clone()..).next().map(|(key, _)| key.as_slice());
                assert_eq!(runs.key_from(&from, &bytes), expected);
            }
            let places: usize = runs.runs.iter().map(Vec::len).sum();
            assert_eq!(places, batches.iter().map(BTreeMap::len).sum::<usize>());
            assert!(runs.runs.windows(2).all(|two| two[0].len() >= 2 * two[1].len()));
        }
    }

    #[test]
    fn long_runs_stay_as_they_are_and_are_searched_all() {
        let (mut runs, mut bytes) = (Runs::default(), Vec::new());
        for round in 0..4u32 {
            let mut puts = Puts::new();
            for number in 0..40_000u32 {
                puts.put(number.to_be_bytes(), round.to_be_bytes()).unwrap();
            }
            let at = bytes.len();
            bytes.extend(puts::encode(&puts));
            runs.push(round, &bytes, at, bytes.len()).unwrap();
        }
        assert_eq!(runs.runs.iter().map(Vec::len).collect::<Vec<_>>(), [40_000; 4]);
        for round in 0..4u32 {
            let found = runs.get(&77u32.to_be_bytes(), round, &bytes);
            assert_eq!(found, Some(Some(&round.to_be_bytes()[..])));
        }
        assert_eq!(runs.get(&40_000u32.to_be_bytes(), 9, &bytes), None);
    }

    #[test]
    fn results_out_of_order_are_an_error() {
        let twice = [1, b'k', 0, 1, b'k', 0];
        assert!(Runs::default().push(0, &twice, 0, twice.len()).is_err());
        assert!(Runs::default().push(0, &twice, 0, twice.len() - 1).is_err());
    }
}
