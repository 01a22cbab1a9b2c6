//! The payload of a frame of the write-ahead log: the records of entries that are there together or not at all. One
//! record stands alone; of several, each has its length before it.

use super::CodecError;
use super::record::{self, Names};
use super::varint::{self, Reader};
use crate::entry::Entry;
use crate::offset::Seq;

/// Appends the payload of `entries` to `out`, and the place of each record in it to `places`. `results` are those of a batch,
/// which then stands alone. Names that are new to the segment are added to `names`, also if it fails: then the
/// segment can't be gone on with.
pub fn encode(
    entries: &[Entry],
    results: &[u8],
    names: &mut Names,
    out: &mut Vec<u8>,
    places: &mut Vec<std::ops::Range<usize>>,
) -> Result<(), CodecError> {
    if let [entry] = entries {
        let begin = out.len();
        record::encode(entry, results, names, out)?;
        places.push(begin..out.len());
        return Ok(());
    }
    if !results.is_empty() {
        return Err(CodecError::Malformed("results of several entries"));
    }
    let mut record = Vec::new();
    for entry in entries {
        record.clear();
        record::encode(entry, &[], names, &mut record)?;
        varint::put(out, record.len() as u64);
        let begin = out.len();
        out.extend_from_slice(&record);
        places.push(begin..out.len());
    }
    Ok(())
}

/// Hands each of the `count` entries in `payload`, the first of which is `first`, to `visit` with its record.
pub fn decode(
    first: Seq,
    count: u16,
    payload: &[u8],
    names: &mut Names,
    visit: &mut dyn FnMut(Entry, &[u8]),
) -> Result<(), CodecError> {
    if count == 1 {
        visit(record::decode(first, payload, names)?, payload);
        return Ok(());
    }
    let mut reader = Reader::new(payload);
    for nth in 0..u64::from(count) {
        let length = reader.take()?;
        let record = reader.take_bytes(length)?;
        visit(record::decode(first.plus(nth), record, names)?, record);
    }
    reader.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Body;
    use crate::offset::{Epoch, Group, Timestamp};

    fn marks(count: i64) -> Vec<Entry> {
        let entry = |number| Entry {
            seq: Seq::new(number).unwrap(),
            recorded_at: Timestamp::from_millis(1_000 + number),
            machine_clock: Timestamp::from_millis(1_000),
            group: Some(Group::new("default", "g").unwrap()),
            epoch: Epoch::ZERO,
            body: Body::Mark { name: number.to_string(), actor: "ops".into() },
        };
        (5..5 + count).map(entry).collect()
    }

    #[test]
    fn one_and_several_come_back_with_their_records() {
        for count in [1, 2, 300] {
            let (entries, mut bytes, mut places) = (marks(count), Vec::new(), Vec::new());
            encode(&entries, &[], &mut Names::default(), &mut bytes, &mut places).unwrap();
            let mut seen = Vec::new();
            let mut places = places.into_iter();
            let first = entries[0].seq;
            decode(first, count as u16, &bytes, &mut Names::default(), &mut |entry, record| {
                assert_eq!(record, &bytes[places.next().unwrap()]);
                seen.push(entry);
            })
            .unwrap();
            assert_eq!(seen, entries);
            let shorter = decode(first, count as u16 + 1, &bytes, &mut Names::default(), &mut |_, _| ());
            assert!(shorter.is_err(), "one entry more than there is");
            let longer = [&bytes[..], &[0]].concat();
            assert!(decode(first, count as u16, &longer, &mut Names::default(), &mut |_, _| ()).is_err());
        }
    }
}
