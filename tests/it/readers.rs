//! Who read an offset, against a plain look at every batch: after rollbacks, late batches, recreated topics, over several
//! groups, sealed or not, in parts of any size.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use proptest::prelude::*;
use tidelog::commit::Commit;
use tidelog::entry::{Body, Correction, Draft, Entry, Move, TopicChange};
use tidelog::history::{OffsetQuery, readers};
use tidelog::journal::{Durability, Journal, Options, Order, Portion, Question, Reading};
use tidelog::offset::{Epoch, Group, Isolation, Offset, OffsetRange, Seq, Timestamp, TopicId, TopicName};

const GROUPS: usize = 3;

#[derive(Debug, Clone)]
enum Op {
    /// So many batches, one after the other, of these partitions of a topic: how far from the position, how much.
    Commits {
        group: usize,
        topic: usize,
        partitions: std::ops::Range<u32>,
        away: i64,
        size: u64,
        count: usize,
    },
    /// Takes a partition back by so much.
    Back {
        group: usize,
        topic: usize,
        partition: u32,
        by: i64,
    },
    /// The topic was made again.
    Recreate {
        group: usize,
        topic: usize,
        id: u8,
    },
    Seal,
    Reopen,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let (group, topic) = (0..GROUPS, 0usize..2);
    let partitions = prop_oneof![3 => Just(0u32..4), 1 => (0u32..4).prop_map(|p| p..p + 1), 1 => Just(0..40u32)];
    let away = prop_oneof![6 => Just(0i64), 1 => -300i64..0, 1 => 1i64..300];
    let op = prop_oneof![
        8 => (group.clone(), topic.clone(), partitions, away, 0u64..60, 1usize..200).prop_map(
            |(group, topic, partitions, away, size, count)| Op::Commits { group, topic, partitions, away, size, count }
        ),
        2 => (group.clone(), topic.clone(), 0u32..4, 0i64..3_000)
            .prop_map(|(group, topic, partition, by)| Op::Back { group, topic, partition, by }),
        1 => (group, topic, 1u8..4).prop_map(|(group, topic, id)| Op::Recreate { group, topic, id }),
        2 => Just(Op::Seal),
        1 => Just(Op::Reopen),
    ];
    prop::collection::vec(op, 1..24)
}

fn group(number: usize) -> Group {
    let (app, name) = [("default", "g"), ("other", "g"), ("default", "h")][number];
    Group::new(app, name).expect("legal names")
}

fn topic(number: usize) -> TopicName {
    TopicName::new(["orders", "audit"][number]).expect("a legal name")
}

fn offset(number: i64) -> Offset {
    Offset::new(number.max(0)).expect("not negative")
}

fn open(dir: &Path) -> Journal {
    let clock = AtomicI64::new(1_700_000_000_000);
    let mut options = Options::new(Arc::new(move || Timestamp::from_millis(clock.fetch_add(1_000, Ordering::Relaxed))));
    // Small segments, so that some of it is sealed on the way.
    (options.create, options.durability, options.segment_bytes) = (true, Durability::Process, 16 << 10);
    Journal::open(dir, options).expect("the journal opens")
}

fn append(journal: &Journal, of: &Group, body: Body, raises: bool) {
    let of = of.clone();
    let appended = journal.decide::<_, std::convert::Infallible>(move |state| {
        let epoch = state.groups.get(&of).map_or(Epoch::ZERO, |group| group.epoch);
        let epoch = if raises { epoch.next() } else { epoch };
        Ok((vec![Draft { group: Some(of), epoch, body }], ()))
    });
    appended.expect("the journal takes it");
}

fn start_all(journal: &Journal) {
    for number in 0..GROUPS {
        let body = Body::Started { owner: "o".to_owned(), isolation: Isolation::ReadCommitted, kafka_group: None };
        append(journal, &group(number), body, true);
    }
}

fn play(journal: &Journal, op: &Op) {
    match op.clone() {
        Op::Commits { group: of, topic: name, partitions, away, size, count } => {
            let (of, name) = (group(of), topic(name));
            for n in 0..count {
                let state = journal.group(&of).expect("it was started");
                let known = state.positions.topics.get(&name).and_then(|topic| topic.topic_id);
                let range = |partition| {
                    let position = state.positions.get(&name, partition).map_or(7, |known| known.position.get());
                    let from = offset(position + if n == 0 { away } else { 0 });
                    OffsetRange::new(name.clone(), partition, from, from.plus(size)).expect("a legal range")
                };
                let ranges = partitions.clone().map(range).collect();
                let time = Timestamp::from_millis(1_700_000_000_000 + n as i64);
                let commit = Commit::new(of.clone(), state.epoch, time, ranges).expect("a legal commit");
                let commit = match known {
                    Some(id) => commit.with_topic_id(name.clone(), id),
                    None => commit,
                };
                journal.commit(commit).expect("taken");
            }
        }
        Op::Back { group: of, topic: name, partition, by } => {
            let state = journal.group(&group(of)).expect("it was started");
            let Some(known) = state.positions.get(&topic(name), partition) else { return };
            let moved = Move {
                topic: topic(name),
                partition,
                topic_id: None,
                old: Some(known.position),
                new: Some(offset(known.position.get() - by)),
                holes: Vec::new(),
                replaying_until: None,
            };
            let correction = Correction { moves: vec![moved], ..Correction::default() };
            append(journal, &group(of), Body::Reconciled { findings: Vec::new(), correction }, true);
        }
        Op::Recreate { group: of, topic: name, id } => {
            let state = journal.group(&group(of)).expect("it was started");
            let Some(known) = state.positions.topics.get(&topic(name)) else { return };
            let topic_id = TopicId::from_bytes([id; 16]);
            let again = |(partition, known): (&u32, &tidelog::positions::PartitionState)| Move {
                topic: topic(name),
                partition: *partition,
                topic_id,
                old: Some(known.position),
                new: (*partition < 2).then_some(Offset::ZERO),
                holes: Vec::new(),
                replaying_until: None,
            };
            let moves = known.partitions.iter().map(again).collect();
            let topics = vec![TopicChange { topic: topic(name), topic_id, new_incarnation: true }];
            let correction = Correction { moves, topics, ..Correction::default() };
            append(journal, &group(of), Body::Reconciled { findings: Vec::new(), correction }, true);
        }
        Op::Seal => journal.seal().expect("a seal"),
        Op::Reopen => unreachable!("the journal is closed for it"),
    }
}

fn batches(journal: &Journal) -> Vec<Entry> {
    let mut found = Vec::new();
    let visited = journal.visit_entries(None, Seq::ZERO, Order::Ascending, &mut |entry| {
        if matches!(entry.body, Body::Batch(_)) {
            found.push(entry);
        }
        ControlFlow::Continue(())
    });
    visited.expect("a read");
    found
}

/// Who read the offset, by a look at every batch.
fn naive(entries: &[Entry], query: &OffsetQuery) -> Vec<(Group, Reading)> {
    let mut found = Vec::new();
    for entry in entries {
        let Body::Batch(batch) = &entry.body else { continue };
        for range in &batch.ranges {
            let here = *range.topic() == query.topic && range.partition() == query.partition;
            if here && range.from_offset() <= query.offset && query.offset < range.until_offset() {
                let reading = Reading {
                    batch: batch.batch,
                    seq: entry.seq,
                    batch_time: batch.batch_time,
                    recorded_at: entry.recorded_at,
                    epoch: entry.epoch,
                    topic_id: batch.topic_id(&query.topic),
                    range: range.clone(),
                };
                found.push((entry.group.clone().expect("a batch has one"), reading));
            }
        }
    }
    if query.order == Order::Descending {
        found.reverse();
    }
    found
}

/// All pages of a question.
fn all_pages(journal: &Journal, query: &OffsetQuery) -> Vec<(Group, Reading)> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = readers(journal, (0..GROUPS).map(group), query, after).expect("a read");
        assert!(page.readers.len() <= query.limit);
        found.extend(page.readers);
        match page.next {
            None => return found,
            next => {
                assert_ne!(next, after, "a page that leads to itself");
                after = next;
            }
        }
    }
}

/// The same of one group in the smallest portions, and that they end.
fn in_portions(journal: &Journal, question: &Question, portion: Portion, last: Seq) -> Vec<Reading> {
    let mut found = Vec::new();
    let mut next = Some(if question.order == Order::Ascending { Seq::ZERO } else { Seq::MAX });
    for _ in 0..=last.as_u64() {
        let Some(from) = next else { return found };
        let part = journal.readers(question, from, portion).expect("a read");
        found.extend(part.readings);
        next = part.next;
    }
    panic!("the portions don't end")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn the_readers_are_those_that_a_look_at_every_batch_finds(
        ops in ops(),
        limit in 1usize..40,
        heads in 1usize..4,
        picks in prop::collection::vec((0usize..10_000, 0usize..40, -1i64..2, any::<bool>()), 12),
    ) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut journal = open(dir.path());
        start_all(&journal);
        for op in &ops {
            match op {
                Op::Reopen => {
                    drop(journal);
                    journal = open(dir.path());
                }
                op => play(&journal, op),
            }
        }
        let entries = batches(&journal);
        let last = entries.last().map_or(Seq::ZERO, |entry| entry.seq);
        for (entry, range, near, descending) in picks {
            // Offsets at the edges of what was read.
            let Some(Body::Batch(batch)) = entries.get(entry % entries.len().max(1)).map(|entry| &entry.body) else { continue };
            let range = &batch.ranges[range % batch.ranges.len()];
            let offset = offset(if near < 0 { range.from_offset().get() } else { range.until_offset().get() - near });
            let order = if descending { Order::Descending } else { Order::Ascending };
            let (topic, partition) = (range.topic().clone(), range.partition());
            let query = OffsetQuery { topic: topic.clone(), partition, offset, order, limit };
            let expected = naive(&entries, &query);
            prop_assert_eq!(&all_pages(&journal, &query), &expected);
            for group in (0..GROUPS).map(group) {
                let of_group = expected.iter().filter(|(of, _)| *of == group).map(|(_, reading)| reading.clone());
                let question = Question { group: group.clone(), topic: topic.clone(), partition, offset, order };
                let found = in_portions(&journal, &question, Portion { heads, readings: limit }, last);
                prop_assert_eq!(found, of_group.collect::<Vec<_>>());
            }
        }
    }
}

/// Batches of one partition, ten offsets each.
fn ten(journal: &Journal, batches: std::ops::Range<i64>) {
    for n in batches {
        let range = OffsetRange::new(topic(0), 0, offset(n * 10), offset(n * 10 + 10)).expect("a legal range");
        // Keys fill blocks sooner.
        let commit = Commit::new(group(0), Epoch::ZERO.next(), Timestamp::from_millis(1_700_000_000_000), vec![range]);
        let commit =
            commit.and_then(|commit| commit.with_key(format!("{:x}", (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))));
        journal.commit(commit.expect("a legal commit")).expect("taken");
    }
}

#[test]
fn a_recent_offset_is_found_without_a_look_at_what_came_before() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = open(dir.path());
    start_all(&journal);
    ten(&journal, 0..20_000);
    journal.seal().expect("a seal");
    let question = |n, order| Question { group: group(0), topic: topic(0), partition: 0, offset: offset(n), order };
    let portion = Portion { heads: 10_000, readings: 10 };
    let mut heads = BTreeMap::new();
    for (n, order, from) in [
        (5, Order::Descending, Seq::MAX),
        (5, Order::Ascending, Seq::ZERO),
        (199_995, Order::Descending, Seq::MAX),
        (199_995, Order::Ascending, Seq::ZERO),
        (999_999, Order::Descending, Seq::MAX),
    ] {
        let part = journal.readers(&question(n, order), from, portion).expect("a read");
        assert_eq!(part.next, None);
        let batches: Vec<i64> = part.readings.iter().map(|reading| reading.batch.get()).collect();
        let expected = if n < 200_000 { vec![n / 10 + 1] } else { Vec::new() };
        assert_eq!(batches, expected, "{n}");
        heads.insert((n, order == Order::Ascending), part.heads);
    }
    let blocks = heads[&(5, false)];
    assert!(blocks > 40, "{heads:?}");
    assert_eq!(heads[&(5, true)], blocks);
    assert_eq!([heads[&(199_995, false)], heads[&(199_995, true)], heads[&(999_999, false)]], [1, 1, 0], "{heads:?}");
}

#[test]
fn a_batch_is_found_once_while_it_is_sealed() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = open(dir.path());
    start_all(&journal);
    ten(&journal, 0..300);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut rounds = 0;
            while !done.load(Ordering::Relaxed) || rounds < 3 {
                for order in [Order::Ascending, Order::Descending] {
                    for n in [0, 1_500, 2_999] {
                        let query = OffsetQuery { topic: topic(0), partition: 0, offset: offset(n), order, limit: 10 };
                        let page = readers(&journal, [group(0)], &query, None).expect("a read");
                        let batches: Vec<i64> = page.readers.iter().map(|(_, reading)| reading.batch.get()).collect();
                        assert_eq!((batches, page.next), (vec![n / 10 + 1], None));
                    }
                }
                rounds += 1;
            }
        });
        // The reader ends also if this panics.
        let written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ten(&journal, 300..6_000)));
        done.store(true, Ordering::Relaxed);
        reading.join().expect("it reads");
        written.expect("it writes");
    });
}
