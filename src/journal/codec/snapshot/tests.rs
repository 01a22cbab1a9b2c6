//! Snapshots as they are written and read, and what is none.

use proptest::prelude::*;

use super::*;

/// Ids that don't get shorter by compression.
const ID: [u8; 16] = *b"0c1o4m7p2r9e5s8!";
const FORMER: [u8; 16] = *b"ThIsIsAnOtHeR;[]";

fn offset(number: u64) -> Offset {
    Offset::try_from(number).unwrap()
}

fn partition(position: u64, batch: Option<u64>) -> PartitionState {
    PartitionState {
        position: offset(position),
        first_position: Offset::ZERO,
        holes: Vec::new(),
        replaying_until: None,
        last_batch: batch.map(|batch| BatchNumber::try_from(batch).unwrap()),
        last_batch_time: batch.map(|batch| Timestamp::from_millis(1000 + batch as i64)),
    }
}

fn snapshot(batch: u64, topics: Vec<(&str, TopicState)>) -> Snapshot {
    let topics = topics.into_iter().map(|(name, topic)| (TopicName::new(name).unwrap(), topic)).collect();
    Snapshot {
        group: 7,
        seq: Seq::try_from(9).unwrap(),
        recorded_at: Timestamp::from_millis(5),
        last_other: Seq::ZERO.next(),
        positions: Positions { batch: BatchNumber::try_from(batch).unwrap(), topics },
    }
}

#[test]
fn golden_bytes() {
    let mut a = partition(300, Some(3));
    let hole = |from, until| Hole { from_offset: offset(from), until_offset: offset(until), seq: Seq::ZERO.next() };
    a.holes = vec![hole(10, 12), hole(20, 30)];
    let topic = TopicState {
        topic_id: TopicId::from_bytes(ID),
        incarnation: 1,
        former_ids: TopicId::from_bytes(FORMER).into_iter().collect(),
        retired: false,
        partitions: [(0, a), (2, partition(5, Some(2))), (3, partition(6, None))].into(),
    };
    let snapshot = snapshot(3, vec![("t", topic)]);
    let bytes = encode(&snapshot).unwrap();
    #[rustfmt::skip]
    let columns: &[u8] = &[
        0, // not compressed
        39, 3, 4, 0, 3, 3, 0, 3, 6, // lengths
    ];
    let topics = [&[1, b't', 1][..], &ID, &[1, 0, 1], &FORMER, &[3]].concat();
    let rest: &[u8] = &[
        0, 1, 0, // partitions 0, 2, 3
        0xac, 2, 5, 6, // positions
        0, 1, 4, // batches 3, 2, none
        0xd6, 0x0f, 1, // times 1003, 1002
        2, 0, 0, // two holes
        10, 2, 1, 20, 10, 1, // those
    ];
    assert_eq!(bytes[0], VERSION);
    assert_eq!(bytes[5..10], [7, 9, 10, 1, 3]);
    assert_eq!(bytes[10..], [columns, &topics, rest].concat());
    assert_eq!(decode(&bytes), Ok(snapshot));
}

#[test]
fn each_flipped_bit_is_an_error() {
    let topic =
        TopicState { partitions: (0..50).map(|n| (n, partition(7, Some(1)))).collect(), ..TopicState::default() };
    let bytes = encode(&snapshot(1, vec![("t", topic)])).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&bytes).is_err(), "bit {bit}");
    }
}

#[test]
fn a_batch_beyond_the_newest_or_without_a_time_is_refused() {
    let of = |partition| TopicState { partitions: [(0, partition)].into(), ..TopicState::default() };
    assert!(encode(&snapshot(2, vec![("t", of(partition(1, Some(3))))])).is_err());
    let timeless = PartitionState { last_batch_time: None, ..partition(1, Some(1)) };
    assert!(encode(&snapshot(2, vec![("t", of(timeless))])).is_err());
}

fn any_offset() -> impl Strategy<Value = Offset> {
    prop_oneof![0u64..1000, 0..=i64::MAX as u64].prop_map(offset)
}

prop_compose! {
    fn any_partition()(
        position in any_offset(), first_position in any_offset(),
        holes in proptest::collection::vec((any_offset(), any_offset(), 0u64..1000), 0..3),
        replaying_until in proptest::option::of(any_offset()),
        last in proptest::option::of((0u64..=500, 0..=Timestamp::MAX_MILLIS)),
    ) -> PartitionState {
        let hole = |(a, b, seq): (Offset, Offset, u64)| Hole { from_offset: a.min(b), until_offset: a.max(b), seq: Seq::try_from(seq).unwrap() };
        PartitionState {
            position, first_position, holes: holes.into_iter().map(hole).collect(), replaying_until,
            last_batch: last.map(|(batch, _)| BatchNumber::try_from(batch).unwrap()),
            last_batch_time: last.map(|(_, time)| Timestamp::from_millis(time)),
        }
    }
}

prop_compose! {
    fn any_topic()(
        id in any::<[u8; 16]>(), incarnation in any::<u32>(), former in proptest::collection::vec(any::<[u8; 16]>(), 0..3), retired in any::<bool>(),
        partitions in proptest::collection::btree_map(prop_oneof![0u32..20, Just(i32::MAX as u32)], any_partition(), 0..20),
    ) -> TopicState {
        TopicState { topic_id: TopicId::from_bytes(id), incarnation, former_ids: former.into_iter().filter_map(TopicId::from_bytes).collect(), retired, partitions }
    }
}

proptest! {
    #[test]
    fn any_positions_come_back(topics in proptest::collection::btree_map("[a-c]{1,2}", any_topic(), 0..4)) {
        let topics = topics.iter().map(|(name, topic)| (name.as_str(), topic.clone())).collect();
        let snapshot = snapshot(500, topics);
        prop_assert_eq!(decode(&encode(&snapshot).unwrap()), Ok(snapshot));
    }

    #[test]
    fn any_bytes_under_a_good_checksum_are_no_panic(mut body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = vec![7, 9, 10, 1, 3, 0];
        bytes.append(&mut body);
        let _ = decode(&seal(VERSION, &bytes));
    }
}
