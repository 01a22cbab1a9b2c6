//! Positions as of every moment of a journal are the fold of its entries up to there, also at the seams of the store.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidelog::commit::Commit;
use tidelog::entry::{Body, Correction, Draft, Move};
use tidelog::journal::{Journal, Order};
use tidelog::offset::{Epoch, Offset, OffsetRange, Seq, Timestamp, TopicName};
use tidelog::positions::Positions;

use crate::journal::{gated, group, nth, options, started};
use crate::wait::DEADLINE;

/// Compares each moment with the fold.
#[track_caller]
fn assert_every_moment(journal: &Journal, what: &str) {
    let mut folded = Positions::default();
    let mut entries = 0;
    let visited = journal.visit_entries(Some(&group()), Seq::ZERO, Order::Ascending, &mut |entry| {
        folded.apply(&entry);
        entries += 1;
        let as_of = journal.positions_as_of(&group(), entry.seq).expect("a read").expect("the group has begun");
        assert_eq!(as_of.seq, entry.seq, "{what}");
        assert!(as_of.positions == folded, "{what}, as of seq {}: {:#?}, not {folded:#?}", entry.seq, as_of.positions);
        ControlFlow::Continue(())
    });
    visited.expect("a read");
    assert!(entries > 0);
}

#[test]
fn while_a_seal_is_valid_and_its_segment_is_still_in_memory() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let armed = Arc::new(AtomicUsize::new(0));
    let (options, gate) = gated("seal: old states", &armed);
    let journal = started(dir.path(), options);
    // Snapshots in memory come each 2,048 ranges: some moments are right after one, most are not.
    let commit = |from: i64, to: i64| (from..to).for_each(|n| drop(journal.commit(nth(n, 300)).expect("a commit")));
    commit(0, 20);
    journal.seal().expect("a seal");
    commit(20, 40);
    armed.store(1, Ordering::SeqCst);
    let sealing = std::thread::spawn({
        let journal = journal.clone();
        move || journal.seal()
    });
    gate.reached.recv_timeout(DEADLINE).expect("the seal comes to its last step");
    assert_every_moment(&journal, "nothing after the seal");
    commit(40, 52);
    assert_every_moment(&journal, "more after the seal");
    gate.go_on.send(()).expect("the seal waits");
    sealing.join().expect("no panic").expect("a seal");
    assert_every_moment(&journal, "sealed");
}

/// Sets partition 0 back to its beginning.
fn move_back(journal: &Journal) {
    let moved = Move {
        topic: TopicName::new("orders").expect("a legal name"),
        partition: 0,
        topic_id: None,
        old: None,
        new: Some(Offset::ZERO),
        holes: Vec::new(),
        replaying_until: None,
    };
    let correction = Correction { moves: vec![moved], ..Correction::default() };
    let decided = journal.decide::<(), String>(move |state| {
        let body = Body::Imported { source: "a test".into(), correction };
        Ok((vec![Draft { group: Some(group()), epoch: state.groups[&group()].epoch, body }], ()))
    });
    decided.expect("a move");
}

/// The `n`th commit, with a key of `length` letters that nothing compresses much.
fn keyed(n: i64, length: usize) -> Commit {
    let mut state = n as u64 * 2 + 1;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + (state >> 58) as u8)
    };
    let key: String = (0..length).map(letter).collect();
    nth(n, 1).with_key(format!("{n}{key}")).expect("a legal key")
}

/// The `n`th commit, of 200 partitions that begin anywhere.
fn scattered(n: i64) -> Commit {
    let mut state = n as u64;
    let mut anywhere = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Offset::try_from(state >> 32).expect("32 bits")
    };
    let topic = TopicName::new("orders").expect("a legal name");
    let range = |partition| {
        let from = anywhere();
        OffsetRange::new(topic.clone(), partition, from, from.plus(10)).expect("a legal range")
    };
    let ranges = (0..200).map(range).collect();
    Commit::new(group(), Epoch::ZERO.next(), Timestamp::from_millis(n), ranges).expect("each partition once")
}

#[test]
fn where_an_open_block_has_no_room_for_the_batch_after_a_move() {
    // The block that a seal leaves open holds 3,900 bytes; a little below that the next batch does not fit.
    for count in 12..=24 {
        for length in [205, 220, 235, 250] {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let journal = started(dir.path(), options());
            for n in 0..count {
                journal.commit(keyed(n, length)).expect("a commit");
            }
            journal.seal().expect("a seal");
            move_back(&journal);
            journal.commit(scattered(count)).expect("a commit");
            journal.seal().expect("a seal");
            assert_every_moment(&journal, &format!("{count} batches with keys of {length}"));
        }
    }
}
