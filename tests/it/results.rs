//! Results in the journal: keyed puts that come and stay with the ranges of their batch.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use proptest::prelude::*;
use tidelog::commit::{Commit, Receipt};
use tidelog::entry::{Body, Correction, Draft, Move, RolledBack};
use tidelog::journal::{CommitError, Journal, MAX_PAGE, ResultsError};
use tidelog::offset::{BatchNumber, Group, Offset, OffsetRange, Timestamp, TopicName};
use tidelog::results::{MAX_BYTES, MAX_VALUE_BYTES, Puts};

use crate::journal::{gated, group, options, start, started};
use crate::wait::DEADLINE;

type Results = BTreeMap<Vec<u8>, Vec<u8>>;

fn offset(number: i64) -> Offset {
    Offset::new(number).expect("not negative")
}

fn topic() -> TopicName {
    TopicName::new("orders").expect("a legal name")
}

fn number(batch: i64) -> BatchNumber {
    BatchNumber::new(batch).expect("not negative")
}

/// `key=value` puts, `key` alone removes.
fn puts(words: &str) -> Puts {
    let mut puts = Puts::new();
    for word in words.split_whitespace() {
        match word.split_once('=') {
            Some((key, value)) => puts.put(key, value).expect("within the limits"),
            None => puts.remove(word).expect("within the limits"),
        }
    }
    puts
}

/// A commit of `[from, until)` under the group's present epoch.
fn commit(journal: &Journal, from: i64, until: i64, puts: Puts) -> Commit {
    let range = OffsetRange::new(topic(), 0, offset(from), offset(until)).expect("a legal range");
    let epoch = journal.group(&group()).expect("it has started").epoch;
    let time = Timestamp::from_millis(1_000 + from + until);
    Commit::new(group(), epoch, time, vec![range]).expect("one partition").with_puts(puts)
}

fn committed(journal: &Journal, from: i64, until: i64, words: &str) -> Receipt {
    journal.commit(commit(journal, from, until, puts(words))).expect("a commit")
}

fn roll_back(journal: &Journal, to: i64) {
    let draft = move |state: &tidelog::positions::State| {
        let present = &state.groups[&group()];
        let moved = Move {
            topic: topic(),
            partition: 0,
            topic_id: None,
            old: present.positions.get(&topic(), 0).map(|known| known.position),
            new: Some(offset(to)),
            holes: Vec::new(),
            replaying_until: None,
        };
        let rolled_back = RolledBack {
            plan: format!("p-{}", state.seq),
            target: "test".into(),
            actor: "test".into(),
            reason: "test".into(),
            undoes: None,
            kafka: false,
            correction: Correction { moves: vec![moved], ..Correction::default() },
        };
        Draft { group: Some(group()), epoch: present.epoch.next(), body: Body::RolledBack(rolled_back) }
    };
    journal.decide::<(), String>(move |state| Ok((vec![draft(state)], ()))).expect("a move");
}

/// All results, page by page.
fn all(journal: &Journal, of: &Group, as_of: Option<BatchNumber>, limit: usize) -> Results {
    let (mut results, mut from) = (Results::new(), Vec::new());
    loop {
        let page = journal.results(of, &from, as_of, limit).expect("a page");
        assert!(page.results.len() <= limit && page.results.is_sorted());
        for (key, value) in page.results {
            assert!(key >= from, "pages go on");
            results.insert(key, value);
        }
        match page.next {
            Some(next) => from = next,
            None => return results,
        }
    }
}

/// `key=value`, in order.
fn shown(journal: &Journal, as_of: Option<i64>) -> String {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let results = all(journal, &group(), as_of.map(number), 2).into_iter();
    results.map(|(key, value)| format!("{}={}", text(key), text(value))).collect::<Vec<_>>().join(" ")
}

fn reopened(journal: Journal, dir: &Path) -> Journal {
    drop(journal);
    Journal::open(dir, options()).expect("the journal opens")
}

/// The journal as it is, opened again with all in the log, sealed, and opened again.
fn in_each_state(mut journal: Journal, dir: &Path, check: impl Fn(&Journal)) {
    check(&journal);
    journal = reopened(journal, dir);
    check(&journal);
    journal.seal().expect("a seal");
    check(&journal);
    journal.close().expect("a clean close");
    let journal = Journal::open(dir, options()).expect("the journal opens");
    check(&journal);
}

#[test]
fn results_are_what_the_newest_batch_says_now_and_as_of_a_batch() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), options());
    committed(&journal, 0, 10, "a=1 b=1 c=1");
    committed(&journal, 10, 20, "b=2 d=2");
    committed(&journal, 20, 30, "");
    committed(&journal, 30, 40, "a c=4 never");
    // The order of the journal counts: a late batch is as new as any.
    committed(&journal, 2, 8, "b=late");
    in_each_state(journal, dir.path(), |journal| {
        assert_eq!(shown(journal, None), "b=late c=4 d=2");
        let as_of = [1, 2, 3, 4, 5].map(|batch| shown(journal, Some(batch)));
        let expected = ["a=1 b=1 c=1", "a=1 b=2 c=1 d=2", "a=1 b=2 c=1 d=2", "b=2 c=4 d=2", "b=late c=4 d=2"];
        assert_eq!(as_of, expected);
        assert_eq!(journal.result(&group(), b"b").expect("a read"), Some(b"late".to_vec()));
        assert_eq!(journal.result(&group(), b"a").expect("a read"), None);
        assert_eq!(journal.result(&group(), b"").expect("a read"), None);
        assert_eq!(journal.result_as_of(&group(), b"a", number(3)).expect("a read"), Some(b"1".to_vec()));
    });
}

/// Exactly once for results that follow from the records alone: what comes again overwrites.
#[test]
fn a_rollback_leaves_results_as_they_are_and_the_replay_overwrites_them() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), options());
    committed(&journal, 0, 10, "o0=run1 o5=run1");
    committed(&journal, 10, 20, "o10=run1 o15=run1");
    roll_back(&journal, 10);
    assert_eq!(shown(&journal, None), "o0=run1 o10=run1 o15=run1 o5=run1");
    // Cut elsewhere than before.
    committed(&journal, 10, 12, "o10=run2");
    assert_eq!(shown(&journal, None), "o0=run1 o10=run2 o15=run1 o5=run1");
    committed(&journal, 12, 20, "o15=run2");
    in_each_state(journal, dir.path(), |journal| {
        assert_eq!(shown(journal, None), "o0=run1 o10=run2 o15=run2 o5=run1");
        assert_eq!(shown(journal, Some(2)), "o0=run1 o10=run1 o15=run1 o5=run1");
        assert_eq!(shown(journal, Some(3)), "o0=run1 o10=run2 o15=run1 o5=run1");
    });
}

#[test]
fn a_refused_commit_and_a_repeat_put_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), options());
    let first = committed(&journal, 0, 10, "a=1");
    let repeat = committed(&journal, 0, 10, "a=2 b=2");
    assert_eq!(repeat, Receipt { repeated: true, ..first });
    let stale = commit(&journal, 10, 20, puts("a=3"));
    roll_back(&journal, 0);
    assert!(matches!(journal.commit(stale), Err(CommitError::Refused(_))));
    in_each_state(journal, dir.path(), |journal| assert_eq!(shown(journal, None), "a=1"));
}

#[test]
fn who_asks_for_what_is_not_there_is_told() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), options());
    committed(&journal, 0, 10, "a=1");
    let nobody = Group::new("default", "nobody").expect("a legal name");
    let error = journal.result(&nobody, b"a").expect_err("unknown");
    assert_eq!(error.to_string(), "no group nobody in this journal");
    let error = journal.result_as_of(&group(), b"a", number(2)).expect_err("unknown");
    assert_eq!(error.to_string(), "group loader has no batch 2; its newest is 1");
    assert!(matches!(error, ResultsError::UnknownBatch { .. }));
    assert!(journal.results(&group(), b"", Some(number(0)), 1).is_err());
    for limit in [0, MAX_PAGE + 1] {
        let error = journal.results(&group(), b"", None, limit).expect_err("out of bounds");
        assert!(error.to_string().ends_with("a page has 1 to 10000 results"), "{error}");
    }
}

#[test]
fn a_page_ends_at_its_limit_and_past_its_bytes() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), options());
    for batch in 0..3i64 {
        let mut large = Puts::new();
        for number in 0..7i64 {
            large
                .put(format!("{}", batch * 7 + number), vec![number as u8; MAX_VALUE_BYTES])
                .expect("within the limits");
        }
        journal.commit(commit(&journal, batch, batch + 1, large)).expect("a commit");
    }
    let page = journal.results(&group(), b"", None, 100).expect("a page");
    assert_eq!((page.results.len(), page.next.is_some()), (16, true), "16 MiB");
    assert_eq!(all(&journal, &group(), None, 100).len(), 21);
    let page = journal.results(&group(), b"1", None, 2).expect("a page");
    let keys: Vec<_> = page.results.iter().map(|(key, _)| key.as_slice()).collect();
    assert_eq!((keys, page.next), (vec![&b"1"[..], b"10"], Some(b"11".to_vec())));
    // Keys that hold nothing end a page too, empty as it may be.
    for half in 0..2i64 {
        let mut removed = Puts::new();
        for number in 0..60_000i64 {
            removed.remove(format!("0{half}{number}")).expect("within the limits");
        }
        journal.commit(commit(&journal, 10 + half, 11 + half, removed)).expect("a commit");
    }
    let page = journal.results(&group(), b"0", None, 20).expect("a page");
    assert!(page.results.len() == 1 && page.next.is_some(), "{:?}", page.next);
    assert_eq!(all(&journal, &group(), None, 20).len(), 21);
}

/// In the smallest segments, and so in one of its own.
#[test]
fn the_largest_batch_is_written_sealed_and_read() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), options());
    committed(&journal, 0, 1, "k0=before small=1");
    let mut large = Puts::new();
    for number in 0..7u8 {
        large.put(format!("k{number}"), noise(number, MAX_VALUE_BYTES)).expect("within the limits");
    }
    let left = MAX_BYTES - 7 * (MAX_VALUE_BYTES + 2) - 1;
    large.put("z", noise(7, left)).expect("the last byte");
    journal.commit(commit(&journal, 1, 2, large)).expect("a commit");
    committed(&journal, 2, 3, "small=2");
    in_each_state(journal, dir.path(), |journal| {
        for number in 0..7u8 {
            let key = format!("k{number}");
            let found = journal.result(&group(), key.as_bytes()).expect("a read");
            assert!(found == Some(noise(number, MAX_VALUE_BYTES)), "{key}");
        }
        assert!(journal.result(&group(), b"z").expect("a read") == Some(noise(7, left)));
        let small = [1, 3].map(|batch| journal.result_as_of(&group(), b"small", number(batch)).expect("a read"));
        assert_eq!(small, [Some(b"1".to_vec()), Some(b"2".to_vec())]);
    });
}

/// Bytes that do not compress.
fn noise(seed: u8, length: usize) -> Vec<u8> {
    let mut state = u64::from(seed) + 1;
    let next = |_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    };
    (0..length).map(next).collect()
}

#[test]
fn nobody_sees_a_result_before_it_is_durable() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let armed = Arc::new(AtomicUsize::new(0));
    let (options, gate) = gated("wal-sync", &armed);
    let journal = started(dir.path(), options);
    armed.store(1, Ordering::SeqCst);
    let next = commit(&journal, 0, 10, puts("a=1"));
    let writing = {
        let journal = journal.clone();
        std::thread::spawn(move || journal.commit(next).expect("a commit"))
    };
    gate.reached.recv_timeout(DEADLINE).expect("the writer comes to its fdatasync");
    let seen = shown(&journal, None);
    gate.go_on.send(()).expect("the writer waits");
    writing.join().expect("no panic");
    assert_eq!((seen, shown(&journal, None)), (String::new(), "a=1".to_owned()));
}

/// Results are no part of history: whoever lists batches is not handed them.
#[test]
fn the_entry_of_a_batch_is_the_same_with_and_without_results() {
    let dirs = [tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory")];
    let entries = [(&dirs[0], ""), (&dirs[1], "a=1 b=2")].map(|(dir, words)| {
        let journal = started(dir.path(), options());
        let receipt = committed(&journal, 0, 10, words);
        let unsealed = journal.entry(receipt.seq).expect("a read");
        journal.seal().expect("a seal");
        assert_eq!(journal.entry(receipt.seq).expect("a read"), unsealed);
        unsealed
    });
    assert_eq!(entries[0], entries[1]);
}

#[tokio::test]
async fn a_task_commits_results_too() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), options());
    journal.commit_async(commit(&journal, 0, 10, puts("a=1"))).await.expect("a commit");
    assert_eq!(shown(&journal, None), "a=1");
}

#[derive(Debug, Clone)]
enum Op {
    /// A batch with these results, `late` or not.
    Commit {
        late: bool,
        puts: BTreeMap<Vec<u8>, Option<usize>>,
    },
    RollBack,
    Seal,
    Reopen,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let key = prop_oneof![
        4 => proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(b'a'), Just(255)], 1..4),
        1 => (1usize..256).prop_map(|length| vec![b'a'; length]),
    ];
    let value = proptest::option::weighted(0.8, prop_oneof![0usize..200, 4_000usize..9_000]);
    let puts = proptest::collection::btree_map(key, value, 0..8);
    let op = prop_oneof![
        12 => (any::<bool>(), puts).prop_map(|(late, puts)| Op::Commit { late, puts }),
        1 => Just(Op::RollBack),
        1 => Just(Op::Seal),
        1 => Just(Op::Reopen),
    ];
    proptest::collection::vec(op, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn results_are_the_fold_of_what_was_acknowledged(ops in ops()) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut journal = started(dir.path(), options());
        // After each batch, what there is.
        let mut states = vec![Results::new()];
        for (nth, op) in ops.iter().enumerate() {
            match op {
                Op::Commit { late, puts: wanted } => {
                    let (mut puts, mut state) = (Puts::new(), states.last().expect("never empty").clone());
                    for (key, length) in wanted {
                        match length {
                            Some(length) => {
                                let value = noise(nth as u8, *length);
                                puts.put(key.clone(), value.clone()).expect("within the limits");
                                state.insert(key.clone(), value);
                            }
                            None => {
                                puts.remove(key.clone()).expect("within the limits");
                                state.remove(key);
                            }
                        }
                    }
                    let from = if *late { 0 } else { 10 * nth as i64 };
                    let receipt = journal.commit(commit(&journal, from, from + 1 + nth as i64, puts)).expect("a commit");
                    assert_eq!(receipt.batch, number(states.len() as i64));
                    states.push(state);
                }
                Op::RollBack => roll_back(&journal, 3),
                Op::Seal => journal.seal().expect("a seal"),
                Op::Reopen => journal = reopened(journal, dir.path()),
            }
        }
        for _ in 0..2 {
            assert_eq!(&all(&journal, &group(), None, 3), states.last().expect("never empty"));
            for (batch, state) in states.iter().enumerate().skip(1) {
                assert_eq!(&all(&journal, &group(), Some(number(batch as i64)), 100), state, "as of batch {batch}");
            }
            journal.seal().expect("a seal");
        }
    }
}

/// Readers beside a writer that seals all the time: whole batches, never half of one, and none of an earlier one again.
#[test]
fn a_page_is_of_one_moment_while_batches_are_sealed() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), options());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (reader, journal, done) = (journal.clone(), &journal, &done);
        let reading = scope.spawn(move || {
            let (mut newest, mut pages) = (0, 0);
            while !done.load(Ordering::SeqCst) {
                let page = reader.results(&group(), b"", None, 100).expect("a page");
                let values: Vec<i64> = page
                    .results
                    .iter()
                    .map(|(_, value)| String::from_utf8_lossy(value).parse().expect("digits"))
                    .collect();
                assert!(values.is_empty() || values == vec![values[0]; 20], "{values:?}");
                let seen = values.first().copied().unwrap_or(0);
                assert!(seen >= newest, "{seen} after {newest}");
                (newest, pages) = (seen, pages + 1);
            }
            assert!(newest > 0 && pages > 1, "{pages} pages, up to {newest}");
        });
        let ends = Raised(done);
        for round in 1..=300 {
            let words: Vec<String> = (0..20).map(|key| format!("k{key}={round}")).collect();
            committed(journal, round, round + 1, &words.join(" "));
            if round % 20 == 0 {
                journal.seal().expect("a seal");
            }
        }
        drop(ends);
        reading.join().expect("no panic");
    });
}

/// Raises a flag when it goes, also by a panic.
struct Raised<'a>(&'a AtomicBool);

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A group has its own keys.
#[test]
fn groups_keep_apart() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = Journal::open(dir.path(), options()).expect("the journal opens");
    start(&journal);
    let other = Group::new("other", "loader").expect("a legal name");
    let (body, epoch) = {
        let owner = "b".into();
        (
            Body::Started { owner, isolation: tidelog::offset::Isolation::ReadCommitted, kafka_group: None },
            tidelog::offset::Epoch::ZERO.next(),
        )
    };
    let draft = Draft { group: Some(other.clone()), epoch, body };
    journal.decide::<(), String>(move |_| Ok((vec![draft], ()))).expect("a start");
    committed(&journal, 0, 10, "a=1");
    let range = OffsetRange::new(topic(), 0, offset(0), offset(5)).expect("a legal range");
    let theirs = Commit::new(other.clone(), epoch, Timestamp::from_millis(7), vec![range]).expect("one partition");
    journal.commit(theirs.with_puts(puts("a=2 b=2"))).expect("a commit");
    in_each_state(journal, dir.path(), |journal| {
        assert_eq!(shown(journal, None), "a=1");
        assert_eq!(all(journal, &other, None, 10).len(), 2);
        assert_eq!(journal.result(&other, b"a").expect("a read"), Some(b"2".to_vec()));
    });
}
