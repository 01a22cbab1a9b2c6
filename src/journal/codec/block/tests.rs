//! Blocks as they are written and read, and what is no block.

use proptest::prelude::*;

use super::*;

/// The fourth is the third, made again.
fn topic(id: u32) -> Option<Topic> {
    let name = TopicName::new(["orders", "payments", "a.b", "a.b"].get((id as usize).checked_sub(1)?)?).ok()?;
    Some(Topic { name, topic_id: if id == 4 { TopicId::from_bytes([7; 16]) } else { None } })
}

fn name(id: u32) -> TopicName {
    topic(id).unwrap().name
}

fn id(topic: &Topic) -> Option<u32> {
    (1..5).find(|id| self::topic(*id).as_ref() == Some(topic))
}

/// Partition 1 had been read up to 3 in blocks before.
fn around() -> Around<'static> {
    Around { topic_id: &id, before: &|_, partition| if partition == 1 { 3 } else { 100 } }
}

fn group() -> Group {
    Group::new("app", "g").unwrap()
}

fn round_trip(entries: &[Entry]) -> Vec<u8> {
    let bytes = encode(7, entries, around()).unwrap();
    let batches = Batches::open(&bytes, group(), &topic).unwrap();
    assert_eq!(batches.head(), head(&bytes).unwrap());
    assert_eq!(batches.collect::<Result<Vec<_>, _>>().unwrap(), entries);
    bytes
}

fn entry(seq: u64, batch: u64, ranges: &[(u32, u32, u64, u64)]) -> Entry {
    let offset = |number| Offset::try_from(number).unwrap();
    let range = |&(t, p, from, until): &_| OffsetRange::new(name(t), p, offset(from), offset(until)).unwrap();
    let topic_id = |&(t, ..): &(u32, u32, u64, u64)| Some((name(t), topic(t)?.topic_id?));
    let time = 1_700_000_000_000 + batch as i64 * 1000;
    Entry {
        seq: Seq::try_from(seq).unwrap(),
        recorded_at: Timestamp::from_millis(time + 5),
        machine_clock: Timestamp::from_millis(time + 5),
        group: Some(group()),
        epoch: Epoch::try_from(3).unwrap(),
        body: Body::Batch(Batch {
            batch: BatchNumber::try_from(batch).unwrap(),
            batch_time: Timestamp::from_millis(time),
            key: None,
            ranges: ranges.iter().map(range).collect(),
            notes: Vec::new(),
            firsts: Vec::new(),
            topic_ids: ranges.iter().take(1).filter_map(topic_id).collect(),
        }),
    }
}

#[test]
fn golden_bytes() {
    let bytes = round_trip(&[
        entry(4, 2, &[(3, 0, 100, 110), (3, 1, 5, 5)]),
        entry(6, 3, &[(3, 0, 110, 117), (3, 1, 5, 6)]),
        entry(9, 4, &[(3, 1, 7, 9)]),
    ]);
    let head = [7, 2, 3, 4, 0xaa, 0xbf, 0xab, 0xfe, 0xf9, 0x62];
    #[rustfmt::skip]
    let spans: &[u8] = &[
        14, // length
        0, // not compressed
        2, 0, 2, 2, 2, // lengths
        3, 2, // topic 3, 2 partitions: 0 and 1
        100, 5, // the lowest from
        17, 4, // the highest until, 117 and 9
        0, 3, // before this block as far as the lowest from, and up to 3
    ];
    #[rustfmt::skip]
    let columns: &[u8] = &[
        0, // not compressed
        3, 10, 3, 0, 2, 3, 2, 2, 5, 5, 0, 0, 0, 0, 0, 0, // lengths
        0, 1, 2, // seqs 4, 6, 9
        0xa0, 0xbf, 0xab, 0xfe, 0xf9, 0x62, 0xd0, 0x0f, 0xd0, 0x0f, // batch times, 1000 apart
        10, 10, 10, // recorded 5 ms later
        6, 2, // epoch 3, two more batches
        2, 0, 2, // one run, the same again, one run
        0, 1, // from place 0; leaving out one
        1, 0, // two places; one
        0, 0, 0, 0, 2, // first the lowest from, then where they ended, then one above
        10, 0, 7, 1, 2, // sizes
    ];
    assert_eq!(bytes[0], VERSION);
    assert_eq!(&bytes[5..15], head);
    assert_eq!(&bytes[15..30], spans);
    assert_eq!(&bytes[30..], columns);
    let span = |low, high, before| Span { low, high, before };
    let all = super::spans(&bytes).unwrap().collect::<Result<Vec<_>, _>>();
    assert_eq!(all.unwrap(), [(3, 0, span(100, 117, 100)), (3, 1, span(5, 9, 3))]);
}

#[test]
fn a_topic_that_was_made_again_has_places_of_its_own() {
    let bytes = round_trip(&[
        entry(1, 1, &[(3, 0, 100, 110), (3, 1, 100, 110)]),
        entry(2, 2, &[(4, 0, 0, 10), (4, 1, 0, 10)]),
        entry(3, 3, &[(4, 0, 10, 20)]),
    ]);
    let places = super::spans(&bytes).unwrap().map(|span| span.map(|(topic, partition, _)| (topic, partition)));
    assert_eq!(places.collect::<Result<Vec<_>, _>>().unwrap(), [(3, 0), (3, 1), (4, 0), (4, 1)]);
    let mut without = entry(1, 1, &[(1, 0, 0, 1)]);
    if let Body::Batch(batch) = &mut without.body {
        batch.topic_ids = vec![(name(4), TopicId::from_bytes([7; 16]).unwrap())];
    }
    assert_eq!(encode(7, &[without], around()), Err(CodecError::Malformed("a topic id without a range")));
}

#[test]
fn each_flipped_bit_is_an_error() {
    let ranges: Vec<_> = (0..12).map(|p| (1, p, 1000, 1010)).collect();
    let entries: Vec<_> = (1..20).map(|batch| entry(batch, batch, &ranges)).collect();
    let bytes = round_trip(&entries);
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(Batches::open(&bytes, group(), &topic).is_err(), "bit {bit}");
    }
}

#[test]
fn what_is_no_block_is_refused() {
    let unordered = entry(1, 1, &[(1, 2, 0, 1), (1, 1, 0, 1)]);
    let gap = [entry(1, 1, &[(1, 2, 0, 1)]), entry(2, 3, &[(1, 2, 0, 1)])];
    let back = [entry(2, 1, &[(1, 2, 0, 1)]), entry(2, 2, &[(1, 2, 0, 1)])];
    for entries in [&[][..], &[unordered], &gap, &back] {
        assert!(encode(1, entries, around()).is_err());
    }
}

fn offset() -> impl Strategy<Value = Offset> {
    prop_oneof![0u64..1000, 0..=i64::MAX as u64].prop_map(|number| Offset::try_from(number).unwrap())
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    prop_oneof![0i64..5, 1_700_000_000_000..1_700_000_001_000i64, 0..=Timestamp::MAX_MILLIS]
        .prop_map(Timestamp::from_millis)
}

prop_compose! {
    fn any_batch()(
        step in 1u64..4,
        times in (any_time(), any_time(), any_time()),
        epoch in 0u64..3,
        key in proptest::option::of(".{1,20}"),
        made_again in any::<bool>(),
        places in proptest::collection::btree_map((1u32..4, prop_oneof![0u32..5, Just(i32::MAX as u32)]), (offset(), offset()), 0..8),
        notes in proptest::collection::vec((1u32..4, 0u32..5, 0u64..4, offset(), offset()), 0..3),
        firsts in proptest::collection::vec((1u32..4, 0u32..5, proptest::option::of(any::<[u8; 16]>()), proptest::option::of(offset())), 0..3),
    ) -> (u64, Entry) {
        let mut ranges: Vec<_> = places.into_iter().map(|((t, p), (a, b))| OffsetRange::new(name(t), p, a.min(b), a.max(b)).unwrap()).collect();
        ranges.sort_by_key(|range| range.topic_partition());
        let notes = notes.into_iter().map(|(t, partition, tag, from_offset, until_offset)| Note { topic: name(t), partition, note: note_kind(tag).unwrap(), from_offset, until_offset });
        let firsts = firsts.into_iter().map(|(t, p, id, earliest)| First { at: TopicPartition::new(name(t), p), topic_id: id.and_then(TopicId::from_bytes), earliest });
        let topic_ids = topic(4).filter(|topic| made_again && ranges.iter().any(|range| *range.topic() == topic.name));
        let topic_ids = topic_ids.and_then(|topic| Some((topic.name, topic.topic_id?))).into_iter().collect();
        let body = Body::Batch(Batch { batch: BatchNumber::ZERO, batch_time: times.2, key, ranges, notes: notes.collect(), firsts: firsts.collect(), topic_ids });
        (step, Entry { seq: Seq::ZERO, recorded_at: times.0, machine_clock: times.1, group: Some(group()), epoch: Epoch::try_from(epoch).unwrap(), body })
    }
}

proptest! {
    #[test]
    fn any_batches_come_back(batches in proptest::collection::vec(any_batch(), 1..20), first in 1u64..1000) {
        let mut seq = first;
        let mut entries = Vec::new();
        for (index, (step, mut entry)) in batches.into_iter().enumerate() {
            entry.seq = Seq::try_from(seq).unwrap();
            seq += step;
            if let Body::Batch(batch) = &mut entry.body {
                batch.batch = BatchNumber::try_from(first + index as u64).unwrap();
            }
            entries.push(entry);
        }
        round_trip(&entries);
    }

    #[test]
    fn any_bytes_under_a_good_checksum_are_no_panic(mut body in proptest::collection::vec(any::<u8>(), 0..300)) {
        // A head that passes, so that the columns are reached.
        let mut bytes = vec![7, 1, 9, 1, 0, 0];
        bytes.append(&mut body);
        if let Ok(batches) = Batches::open(&seal(VERSION, &bytes), group(), &topic) {
            let _ = batches.count();
        }
    }

    #[test]
    fn flipped_columns_under_a_good_checksum_are_no_panic(at in 0usize..60, to in any::<u8>()) {
        let bytes = encode(7, &[entry(4, 2, &[(3, 0, 100, 110), (3, 1, 5, 5)]), entry(6, 3, &[(3, 0, 110, 117)])], around()).unwrap();
        let mut body = bytes[5..].to_vec();
        let at = at % body.len();
        body[at] = to;
        if let Ok(batches) = Batches::open(&seal(VERSION, &body), group(), &topic) {
            let _ = batches.count();
        }
    }
}
