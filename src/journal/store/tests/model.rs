//! The store against a plain fold.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::super::{AsOf, Order, Store};
use super::open;
use super::script::{KEYS, Step, Writer, group, push, puts_of, steps};
use crate::entry::{Body, Entry};
use crate::offset::*;
use crate::positions::{Positions, State};

fn seq(number: usize) -> Seq {
    Seq::try_from(number as u64).unwrap()
}

pub fn all(store: &Store, of: Option<&Group>, from: Seq, order: Order) -> Vec<Entry> {
    let mut entries = Vec::new();
    store
        .visit_entries(of, from, order, &mut |entry| {
            entries.push(entry);
            ControlFlow::Continue(())
        })
        .unwrap();
    entries
}

fn batches(store: &Store, of: &Group, from: BatchNumber, order: Order) -> Vec<Entry> {
    let mut entries = Vec::new();
    let visited = store.visit_batches(of, from, order, &mut |entry| {
        entries.push(entry);
        ControlFlow::Continue(())
    });
    visited.unwrap();
    entries
}

fn equal(got: &[Entry], expected: impl DoubleEndedIterator<Item = Entry>, order: Order) {
    let expected: Vec<Entry> = match order {
        Order::Ascending => expected.collect(),
        Order::Descending => expected.rev().collect(),
    };
    let seqs = |entries: &[Entry]| entries.iter().map(|e| e.seq).collect::<Vec<_>>();
    assert_eq!(seqs(got), seqs(&expected));
    assert!(got == expected, "same seqs, other contents");
}

/// Everything that the store answers, against `entries`, all of which are sealed.
pub fn check(store: &Store, entries: &[Entry]) {
    assert_eq!(store.sealed(), seq(entries.len()));
    store.verify().unwrap();
    let n = entries.len();
    let places = [0, 1, 2, n / 3, n / 2, n.saturating_sub(1), n, n + 5];
    for order in [Order::Ascending, Order::Descending] {
        let reached = |entry: &&Entry, from: Seq| match order {
            Order::Ascending => entry.seq >= from,
            Order::Descending => entry.seq <= from,
        };
        for from in places.map(seq) {
            equal(&all(store, None, from, order), entries.iter().filter(|e| reached(e, from)).cloned(), order);
            for group in (0..4).map(group) {
                let of = entries.iter().filter(|e| e.group.as_ref() == Some(&group));
                equal(&all(store, Some(&group), from, order), of.clone().filter(|e| reached(e, from)).cloned(), order);
                let expected = of.filter(|e| match &e.body {
                    Body::Batch(b) if order == Order::Ascending => b.batch.as_u64() >= from.as_u64(),
                    Body::Batch(b) => b.batch.as_u64() <= from.as_u64(),
                    _ => false,
                });
                let number = BatchNumber::try_from(from.as_u64()).unwrap();
                equal(&batches(store, &group, number, order), expected.cloned(), order);
            }
        }
    }
    let mut folded: BTreeMap<Group, AsOf> = BTreeMap::new();
    for entry in entries {
        assert_eq!(store.entry(entry.seq).unwrap().as_ref(), Some(entry));
        let Some(of) = &entry.group else { continue };
        if let Body::Batch(batch) = &entry.body {
            let mut found = None;
            let take = &mut |batch| {
                found = Some(batch);
                ControlFlow::Break(())
            };
            store.visit_batches(of, batch.batch, Order::Ascending, take).unwrap();
            assert_eq!(found.as_ref(), Some(entry));
        }
        let as_of = folded.entry(of.clone()).or_insert_with(|| AsOf {
            seq: entry.seq,
            recorded_at: entry.recorded_at,
            positions: Positions::default(),
        });
        as_of.positions.apply(entry);
        (as_of.seq, as_of.recorded_at) = (entry.seq, entry.recorded_at);
        for group in (0..4).map(group) {
            // The entry's own group each time; the others, which did not change, now and then.
            if group == *of || entry.seq.as_u64() % 10 == 0 {
                assert_eq!(store.positions_as_of(&group, entry.seq).unwrap().as_ref(), folded.get(&group));
            }
        }
    }
    for time in entries.iter().step_by(1 + n / 20).flat_map(|e| [e.recorded_at.millis() - 1, e.recorded_at.millis()]) {
        let time = Timestamp::from_millis(time);
        for of in [None, Some(group(0)), Some(group(1))] {
            let last = entries.iter().rfind(|e| (of.is_none() || e.group == of) && e.recorded_at <= time);
            assert_eq!(store.seq_at(of.as_ref(), time).unwrap(), last.map(|e| e.seq));
        }
    }
    assert_eq!(store.entry(Seq::ZERO).unwrap(), None);
    assert_eq!(store.entry(seq(n + 1)).unwrap(), None);
    (0..4).for_each(|number| check_results(store, entries, &group(number)));
}

/// All results of a group, as of each of its batches that has any, and as of others.
pub fn check_results(store: &Store, entries: &[Entry], of: &Group) {
    let mut folded: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.group.as_ref() == Some(of)) {
        let puts = puts_of(entry);
        folded.extend(puts.iter().map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec))));
        for key in KEYS {
            let expected = folded.get(key).cloned().flatten();
            assert_eq!(store.result(of, key, entry.seq).unwrap(), expected, "{of} {key:?} as of {}", entry.seq);
        }
    }
    // All of them in order, from each of some keys on, and as of the middle.
    let middle = entries.get(entries.len() / 2).map_or(Seq::MAX, |entry| entry.seq);
    for from in [&b""[..], b"a\0", b"b", &[0xff; 255]] {
        let mut walk = store.results(of, from).unwrap();
        for (key, value) in folded.range(from.to_vec()..) {
            assert_eq!((walk.key(), walk.value(Seq::MAX).unwrap()), (Some(&key[..]), value.clone()));
            assert_eq!(walk.value(middle).unwrap(), store.result(of, key, middle).unwrap());
            walk.advance().unwrap();
        }
        assert_eq!(walk.key(), None);
        assert!(walk.is_current());
    }
}

/// Plays a script, sealing and reopening as it says; what is not sealed when it reopens is pushed again.
fn play(steps: &[Step]) {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, mut sealer) = open(dir.path());
    let mut writer = Writer::default();
    for step in steps {
        let known = writer.entries.len();
        writer.play(step);
        for entry in &writer.entries[known..] {
            push(&mut sealer, entry);
        }
        match step {
            Step::Seal => {
                assert_eq!(sealer.finish().unwrap(), writer.state.seq);
                assert_eq!(store.sealed(), writer.state.seq);
            }
            Step::Reopen => {
                drop((store, sealer));
                (store, sealer) = open(dir.path());
                let sealed = store.sealed().as_u64() as usize;
                for entry in &writer.entries[sealed..] {
                    push(&mut sealer, entry);
                }
            }
            _ => {}
        }
        assert!(*sealer.state() == writer.state);
    }
    sealer.finish().unwrap();
    check(&store, &writer.entries);
    drop((store, sealer));
    let (store, sealer) = open(dir.path());
    assert!(*sealer.state() == writer.state);
    check(&store, &writer.entries);
    assert_eq!(std::fs::read_dir(dir.path().join("blobs")).unwrap().count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_comes_out_is_what_went_in(steps in steps(0..400)) {
        play(&steps);
    }
}

#[test]
fn an_empty_store_answers_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut sealer) = open(dir.path());
    assert_eq!(sealer.finish().unwrap(), Seq::ZERO);
    check(&store, &[]);
    assert_eq!(*sealer.state(), State::default());
}

#[test]
fn an_entry_that_does_not_follow_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut sealer) = open(dir.path());
    let mut writer = Writer::default();
    let commit = Step::Commit { group: 0, picks: vec![(0, 0, 5)], key: false, behind: 0 };
    writer.play(&commit);
    writer.play(&commit);
    assert!(sealer.push(&writer.entries[1], &[]).is_err());
}

/// Many small groups: more than walks are kept of, and each with an open block over several seals.
#[test]
fn a_hundred_groups_in_turn() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut sealer) = open(dir.path());
    let mut writer = Writer::default();
    for round in 0..3 {
        let known = writer.entries.len();
        for number in 0..100 {
            writer.commit_one(Group::new("many", &format!("g{number}")).unwrap(), round);
        }
        for entry in &writer.entries[known..] {
            push(&mut sealer, entry);
        }
        sealer.finish().unwrap();
    }
    check(&store, &writer.entries);
}

/// A reader never sees an entry beyond what is sealed, nor misses one.
#[test]
fn readers_see_whole_seals_only() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut sealer) = open(dir.path());
    let mut writer = Writer::default();
    let picks = |i: u64| (0..6).map(|p| (p, 0, i * 0x9e37_79b9 % (1 << 40))).collect();
    for i in 0..600 {
        writer.play(&Step::Commit { group: i as usize % 2, picks: picks(i), key: false, behind: 0 });
        if i % 50 == 0 {
            writer.play(&Step::Other { group: i as usize % 2, kind: 3, amount: i });
        }
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = store.clone();
        let (entries, done) = (&writer.entries, &done);
        let reading = scope.spawn(move || {
            let mut rounds = 0;
            while !done.load(Ordering::Relaxed) || rounds < 3 {
                let before = reader.sealed().as_u64() as usize;
                for order in [Order::Ascending, Order::Descending] {
                    let mut seen =
                        all(&reader, None, if order == Order::Ascending { Seq::ZERO } else { Seq::MAX }, order);
                    if order == Order::Descending {
                        seen.reverse();
                    }
                    assert!(seen.len() >= before && seen == entries[..seen.len()]);
                }
                let seen = all(&reader, Some(&group(0)), Seq::ZERO, Order::Ascending);
                let expected = entries.iter().filter(|e| e.group == Some(group(0)));
                assert!(expected.zip(&seen).all(|(a, b)| a == b));
                if let Some(as_of) = reader.positions_as_of(&group(0), Seq::MAX).unwrap() {
                    let mut positions = Positions::default();
                    let until = entries.iter().filter(|e| e.group == Some(group(0)) && e.seq <= as_of.seq);
                    until.for_each(|entry| positions.apply(entry));
                    assert_eq!(as_of.positions, positions);
                }
                rounds += 1;
            }
        });
        for some in writer.entries.chunks(7) {
            some.iter().for_each(|entry| push(&mut sealer, entry));
            sealer.finish().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        reading.join().unwrap();
    });
    check(&store, &writer.entries);
}
