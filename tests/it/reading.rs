//! Reading across the seam: the same answers from what is sealed and from what is still in the log.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidelog::commit::Commit;
use tidelog::entry::{Body, Correction, Draft, Entry, Move, TopicChange};
use tidelog::journal::{Journal, Options, Order};
use tidelog::offset::{BatchNumber, Epoch, Offset, OffsetRange, Seq, Timestamp, TopicId, TopicName};

use crate::journal::{group, nth, options, started};

fn topic() -> TopicName {
    TopicName::new("orders").expect("a legal name")
}

fn topic_id(byte: u8) -> TopicId {
    TopicId::from_bytes([byte; 16]).expect("not zero")
}

/// The batches from `from` on, or back.
fn batches(journal: &Journal, from: u64, order: Order) -> Vec<Entry> {
    let mut found = Vec::new();
    let from = BatchNumber::try_from(from).expect("small");
    let visited = journal.visit_batches(&group(), from, order, &mut |entry| {
        found.push(entry);
        ControlFlow::Continue(())
    });
    visited.expect("a read");
    found
}

fn numbers(entries: &[Entry]) -> Vec<u64> {
    let number = |entry: &Entry| match &entry.body {
        Body::Batch(batch) => batch.batch.as_u64(),
        other => panic!("a {}", other.kind()),
    };
    entries.iter().map(number).collect()
}

#[test]
fn each_batch_is_visited_once_wherever_the_seal_ends() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), options());
    let mut last = 0;
    // Nothing sealed, all sealed, one batch beyond the seal, and more of them.
    for (commits, seal) in [(3, false), (0, true), (1, false), (4, false), (1, true), (1, false), (0, true)] {
        for _ in 0..commits {
            journal.commit(nth(last as i64, 3)).expect("a commit");
            last += 1;
        }
        if seal {
            journal.seal().expect("a seal");
        }
        for from in 0..last + 3 {
            let ascending = batches(&journal, from, Order::Ascending);
            assert_eq!(numbers(&ascending), (from.max(1)..=last).collect::<Vec<_>>(), "from {from} of {last}");
            let descending = batches(&journal, from, Order::Descending);
            assert_eq!(numbers(&descending), (1..=from.min(last)).rev().collect::<Vec<_>>(), "back from {from}");
        }
    }
}

#[test]
fn each_batch_is_visited_once_while_seals_go_on() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let small = Options { segment_bytes: 16 << 10, ..options() };
    let journal = started(dir.path(), small);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut rounds = 0;
            while rounds < 3 || !done.load(Ordering::Relaxed) {
                let before = journal.group(&group()).map_or(0, |group| group.positions.batch.as_u64());
                let from = before - before.min(rounds % 50);
                let seen = numbers(&batches(&journal, from, Order::Ascending));
                assert!(seen.last().copied().unwrap_or_default() >= before, "{seen:?} from {from}, {before} before");
                assert_eq!(seen, (from.max(1)..from.max(1) + seen.len() as u64).collect::<Vec<_>>());
                let seen = numbers(&batches(&journal, from, Order::Descending));
                assert_eq!(seen, (1..=from).rev().collect::<Vec<_>>());
                rounds += 1;
            }
        });
        for n in 0..600 {
            journal.commit(nth(n, 20)).expect("a commit");
            if reading.is_finished() {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
        reading.join().expect("no panic");
    });
}

/// The topic is found made again, as `byte`: both partitions begin anew.
fn made_again(journal: &Journal, byte: u8) {
    let moved = |partition| Move {
        topic: topic(),
        partition,
        topic_id: Some(topic_id(byte)),
        old: None,
        new: Some(Offset::ZERO),
        holes: Vec::new(),
        replaying_until: None,
    };
    let change = TopicChange { topic: topic(), topic_id: Some(topic_id(byte)), new_incarnation: true };
    let correction = Correction { topics: vec![change], moves: vec![moved(0), moved(1)], ..Correction::default() };
    let decided = journal.decide::<(), String>(move |state| {
        let epoch = state.groups[&group()].epoch.next();
        let body = Body::Reconciled { findings: Vec::new(), correction };
        Ok((vec![Draft { group: Some(group()), epoch, body }], ()))
    });
    decided.expect("a correction");
}

/// The next ten offsets of two partitions; the consumer tells the topic's id, if one is given.
fn commit_next(journal: &Journal, told: Option<u8>) {
    let present = journal.group(&group()).expect("it has started");
    let range = |partition| {
        let from = present.positions.get(&topic(), partition).map_or(Offset::ZERO, |known| known.position);
        OffsetRange::new(topic(), partition, from, from.plus(10)).expect("a legal range")
    };
    let time = Timestamp::from_millis(present.positions.batch.get());
    let commit = Commit::new(group(), present.epoch, time, vec![range(0), range(1)]).expect("each partition once");
    let commit = match told {
        Some(byte) => commit.with_topic_id(topic(), topic_id(byte)),
        None => commit,
    };
    journal.commit(commit).expect("a commit");
}

#[test]
fn batches_before_and_after_a_topic_was_made_again_tell_which_one_they_read() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), options());
    commit_next(&journal, Some(1));
    // Known by now: a consumer needs not tell it.
    commit_next(&journal, None);
    made_again(&journal, 2);
    commit_next(&journal, None);
    made_again(&journal, 3);
    commit_next(&journal, Some(3));
    commit_next(&journal, None);

    let incarnations = |journal: &Journal| -> Vec<Option<TopicId>> {
        let told = |entry: &Entry| match &entry.body {
            Body::Batch(batch) => batch.topic_id(&topic()),
            other => panic!("a {}", other.kind()),
        };
        batches(journal, 1, Order::Ascending).iter().map(told).collect()
    };
    let expected = [1, 1, 2, 3, 3].map(|byte| Some(topic_id(byte)));
    let all = |journal: &Journal| {
        let mut entries = Vec::new();
        let visited = journal.visit_entries(None, Seq::ZERO, Order::Ascending, &mut |entry| {
            entries.push(entry);
            ControlFlow::Continue(())
        });
        visited.expect("a read");
        entries
    };
    assert_eq!(incarnations(&journal), expected, "in the log");
    let before = all(&journal);
    journal.seal().expect("a seal");
    assert_eq!(incarnations(&journal), expected, "sealed: one block holds all of them");
    assert_eq!(all(&journal), before, "sealing changes no answer");
    // A further batch fills up the block that is sealed.
    commit_next(&journal, None);
    let before = all(&journal);
    journal.close().expect("a clean close");
    let journal = Journal::open(dir.path(), options()).expect("it opens");
    assert_eq!(incarnations(&journal), [&expected[..], &expected[4..]].concat(), "opened again");
    assert_eq!(all(&journal), before);
    // Left with a batch that is in the log only: it is replayed.
    commit_next(&journal, None);
    let before = all(&journal);
    drop(journal);
    let journal = Journal::open(dir.path(), options()).expect("it opens");
    assert_eq!((all(&journal), incarnations(&journal).len()), (before, 7));
}

#[test]
fn the_id_of_a_batch_is_the_one_that_its_group_holds_after_it() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), Options { clock: Arc::new(|| Timestamp::from_millis(7)), ..options() });
    // Nobody tells an id; a partition that is there already does not take one; a new partition brings one in.
    let commit = |partition: u32, told: bool, n: u64| {
        let range = OffsetRange::new(topic(), partition, Offset::ZERO.plus(n), Offset::ZERO.plus(n + 1));
        let ranges = vec![range.expect("a legal range")];
        let commit = Commit::new(group(), Epoch::ZERO.next(), Timestamp::from_millis(n as i64), ranges);
        let commit = commit.expect("each partition once");
        let commit = if told { commit.with_topic_id(topic(), topic_id(9)) } else { commit };
        let seq = journal.commit(commit).expect("a commit").seq;
        let present = journal.group(&group()).expect("it has started").positions.topics[&topic()].topic_id;
        match journal.entry(seq).expect("a read").expect("it is there").body {
            Body::Batch(batch) => assert_eq!(batch.topic_id(&topic()), present, "{n}"),
            other => panic!("a {}", other.kind()),
        }
        present
    };
    assert_eq!(commit(0, false, 0), None);
    assert_eq!(commit(0, true, 1), None);
    assert_eq!(commit(1, true, 2), Some(topic_id(9)));
    assert_eq!(commit(0, false, 3), Some(topic_id(9)));
}
