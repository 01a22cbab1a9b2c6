//! How the journal writes: in groups, durable before anybody sees it, and never again after a failure.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tidelog::commit::{Commit, Receipt};
use tidelog::entry::{Body, Draft};
use tidelog::journal::{CommitError, DecideError, Durability, Journal, Options, Order};
use tidelog::offset::{Epoch, Group, Isolation, Offset, OffsetRange, Seq, Timestamp, TopicName};

use crate::wait::{DEADLINE, wait_for};

pub fn options() -> Options {
    let mut options = Options::new(Arc::new(|| Timestamp::from_millis(1_764_496_800_000)));
    (options.create, options.segment_bytes) = (true, 64 << 10);
    options
}

pub fn group() -> Group {
    Group::new("default", "loader").expect("a legal name")
}

/// Starts the group, as its first entry.
pub fn start(journal: &Journal) {
    let draft = Draft {
        group: Some(group()),
        epoch: Epoch::ZERO.next(),
        body: Body::Started { owner: "a test".into(), isolation: Isolation::ReadCommitted, kafka_group: None },
    };
    journal.decide::<(), String>(move |_| Ok((vec![draft], ()))).expect("a start");
}

/// A journal whose group has started.
pub fn started(dir: &Path, options: Options) -> Journal {
    let journal = Journal::open(dir, options).expect("the journal opens");
    start(&journal);
    journal
}

/// The `n`th commit of the group: ten offsets of each of `partitions`.
pub fn nth(n: i64, partitions: u32) -> Commit {
    let offset = |n| Offset::new(n).expect("not negative");
    let topic = TopicName::new("orders").expect("a legal name");
    let range = |partition| OffsetRange::new(topic.clone(), partition, offset(n * 10), offset(n * 10 + 10));
    let ranges = (0..partitions).map(|partition| range(partition).expect("a legal range")).collect();
    Commit::new(group(), Epoch::ZERO.next(), Timestamp::from_millis(n), ranges).expect("each partition once")
}

/// How many entries a walk finds.
pub fn entries(journal: &Journal) -> usize {
    let mut count = 0;
    let walked = journal.visit_entries(None, Seq::ZERO, Order::Ascending, &mut |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    walked.expect("a read");
    count
}

/// Holds a thread of the journal at a named place.
pub struct Gate {
    pub reached: Receiver<()>,
    pub go_on: SyncSender<()>,
}

/// Options with a gate at `name`, closed once `armed` says so.
pub fn gated(name: &'static str, armed: &Arc<AtomicUsize>) -> (Options, Gate) {
    let (tell, reached) = sync_channel(1);
    let (go_on, wait) = sync_channel::<()>(1);
    let (armed, wait) = (Arc::clone(armed), Mutex::new(wait));
    let mut options = options();
    options.crash_at = Some(Arc::new(move |at| {
        if at == name && armed.swap(0, Ordering::SeqCst) == 1 {
            tell.send(()).expect("the test waits");
            wait.lock().expect("no panic").recv().expect("the test lets it go on");
        }
    }));
    (options, Gate { reached, go_on })
}

#[test]
fn nobody_sees_an_entry_before_it_is_durable_and_a_repeat_waits_for_it() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let armed = Arc::new(AtomicUsize::new(0));
    let (options, gate) = gated("wal-sync", &armed);
    let journal = started(dir.path(), options);
    let mut newest = journal.subscribe();
    newest.mark_unchanged();
    armed.store(1, Ordering::SeqCst);
    let commit = || {
        let journal = journal.clone();
        std::thread::spawn(move || journal.commit(nth(0, 3)).expect("a commit"))
    };
    let first = commit();
    gate.reached.recv_timeout(DEADLINE).expect("the writer comes to its fdatasync");
    let second = commit();
    assert_eq!((entries(&journal), journal.with_state(|state| state.seq.as_u64())), (1, 1));
    assert!(!newest.has_changed().expect("the journal is open") && !first.is_finished());
    gate.go_on.send(()).expect("the writer waits");
    let first = first.join().expect("no panic");
    let repeated = second.join().expect("no panic");
    assert_eq!((first.seq.as_u64(), first.repeated), (2, false));
    assert_eq!(repeated, Receipt { repeated: true, ..first });
    assert_eq!((entries(&journal), newest.borrow_and_update().as_u64()), (2, 2));
}

#[test]
fn commits_that_queue_up_share_one_fdatasync() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let armed = Arc::new(AtomicUsize::new(0));
    let (mut options, gate) = gated("wal-sync", &armed);
    let (syncs, gate_hook) = (Arc::new(AtomicUsize::new(0)), options.crash_at.take().expect("the gate"));
    let counted = Arc::clone(&syncs);
    options.crash_at = Some(Arc::new(move |at| {
        counted.fetch_add(usize::from(at == "wal-synced"), Ordering::SeqCst);
        gate_hook(at);
    }));
    let journal = started(dir.path(), options);
    syncs.store(0, Ordering::SeqCst);
    armed.store(1, Ordering::SeqCst);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let receipts = runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        let asked = Arc::new(AtomicUsize::new(0));
        for n in 0..100 {
            let (journal, asked) = (journal.clone(), Arc::clone(&asked));
            tasks.spawn(async move {
                asked.fetch_add(1, Ordering::SeqCst);
                journal.commit_async(nth(n, 3)).await.expect("a commit")
            });
        }
        // A task that was polled has asked; the writer holds the first of them.
        while asked.load(Ordering::SeqCst) < 100 {
            tokio::task::yield_now().await;
        }
        gate.reached.recv_timeout(DEADLINE).expect("the writer comes to its fdatasync");
        gate.go_on.send(()).expect("the writer waits");
        tasks.join_all().await
    });
    assert!(receipts.iter().all(|receipt| !receipt.repeated && receipt.notes.len() <= 3));
    assert_eq!(entries(&journal), 101);
    let syncs = syncs.load(Ordering::SeqCst);
    assert!(syncs <= 3, "{syncs} for 100 commits");
}

#[test]
fn a_decision_that_panics_harms_nobody_else() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), options());
    let caller = journal.clone();
    let panicked = std::thread::spawn(move || caller.decide::<(), String>(|_| panic!("a bug of the caller"))).join();
    assert!(panicked.is_err());
    let refused = journal.decide::<(), _>(|state| Err(state.seq)).expect_err("refused");
    assert!(matches!(refused, DecideError::Refused(seq) if seq.as_u64() == 1), "{refused}");
    assert_eq!(journal.commit(nth(0, 1)).expect("a commit").seq.as_u64(), 2);
}

#[test]
fn recorded_at_never_goes_backwards() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(AtomicI64::new(2_000));
    let told = Arc::clone(&clock);
    let mut options = options();
    options.clock = Arc::new(move || Timestamp::from_millis(told.load(Ordering::SeqCst)));
    let journal = started(dir.path(), options.clone());
    clock.store(1_000, Ordering::SeqCst);
    journal.commit(nth(0, 1)).expect("a commit");
    journal.close().expect("a clean close");
    let journal = Journal::open(dir.path(), options).expect("it opens");
    let receipt = journal.commit(nth(1, 1)).expect("a commit");
    let entry = journal.entry(receipt.seq).expect("a read").expect("it was committed");
    assert_eq!((entry.recorded_at.millis(), entry.machine_clock.millis()), (2_000, 1_000));
}

#[test]
fn a_closed_journal_can_be_read_by_those_who_still_have_it() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), options());
    let other = journal.clone();
    journal.commit(nth(0, 3)).expect("a commit");
    journal.close().expect("a clean close");
    let refused = other.commit(nth(1, 3)).expect_err("closed");
    assert!(matches!(&refused, CommitError::Unavailable(error) if error.to_string().contains("closed")), "{refused}");
    assert!(other.read_only().is_some());
    assert_eq!(entries(&other), 2);
    drop(other);
    let journal = Journal::open(dir.path(), options()).expect("nobody holds it");
    assert_eq!((entries(&journal), journal.created()), (2, false));
}

#[test]
fn without_a_close_the_directory_is_free_and_nothing_lost() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut options = options();
    options.lock_wait = Duration::ZERO;
    let mut journal = started(dir.path(), options.clone());
    for n in 0..20 {
        journal.commit(nth(n, 100)).expect("a commit");
        drop(journal);
        journal = Journal::open(dir.path(), options.clone()).expect("nobody holds it");
        assert_eq!((entries(&journal), journal.cut()), (n as usize + 2, None));
    }
}

/// Options under which each seal takes `pause`, and how many were made.
fn slow_to_seal(pause: Duration) -> (Options, Arc<AtomicUsize>) {
    let seals = Arc::new(AtomicUsize::new(0));
    let (mut options, counted) = (options(), Arc::clone(&seals));
    options.crash_at = Some(Arc::new(move |at| match at {
        "seal: data" => std::thread::sleep(pause),
        "seal: valid" => drop(counted.fetch_add(1, Ordering::SeqCst)),
        _ => {}
    }));
    (options, seals)
}

#[test]
fn a_close_leaves_in_the_log_what_takes_long_to_seal() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (options, seals) = slow_to_seal(Duration::from_millis(1_500));
    let journal = started(dir.path(), options);
    // Each fills a segment.
    for n in 0..5 {
        journal.commit(nth(n, 20_000)).expect("a commit");
    }
    let before = journal.with_state(Clone::clone);
    journal.close().expect("a clean close");
    let made = seals.load(Ordering::SeqCst);
    assert!((1..=4).contains(&made), "{made} seals");
    let (options, seals) = slow_to_seal(Duration::ZERO);
    let journal = Journal::open(dir.path(), options).expect("it opens");
    assert_eq!((journal.with_state(Clone::clone), journal.cut()), (before, None));
    assert_eq!(entries(&journal), 6);
    // And there it is sealed.
    journal.close().expect("a clean close");
    assert!(made + seals.load(Ordering::SeqCst) >= 5, "{made}, then {}", seals.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_journal_that_is_dropped_with_more_queued_than_it_seals_ends() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (options, _) = slow_to_seal(Duration::from_millis(200));
    let journal = started(dir.path(), options);
    for n in 0..20 {
        // The first poll sends it; what is dropped is committed all the same.
        let sent = tokio::time::timeout(Duration::ZERO, journal.commit_async(nth(n, 20_000))).await;
        assert!(sent.is_err(), "it can't be durable yet");
    }
    drop(journal);
    let journal = Journal::open(dir.path(), self::options()).expect("it opens");
    assert_eq!((entries(&journal), journal.cut()), (21, None));
}

#[test]
fn a_batch_larger_than_a_segment_is_committed_and_sealed() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut options = options();
    options.segment_bytes = 16 << 10;
    let journal = started(dir.path(), options.clone());
    for n in 0..3 {
        journal.commit(nth(n, 100_000)).expect("a commit");
    }
    journal.commit(nth(3, 1)).expect("a commit");
    let before = journal.with_state(Clone::clone);
    journal.close().expect("a clean close");
    let journal = Journal::open(dir.path(), options).expect("it opens");
    assert_eq!(journal.with_state(Clone::clone), before);
    assert_eq!(entries(&journal), 5);
}

#[test]
fn with_an_interval_the_device_is_asked_later_and_with_process_not_at_all() {
    for (durability, asked) in [(Durability::Interval(Duration::from_millis(200)), true), (Durability::Process, false)]
    {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let syncs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&syncs);
        let mut options = options();
        options.durability = durability;
        options.crash_at = Some(Arc::new(move |at| {
            counted.fetch_add(usize::from(at == "wal-synced"), Ordering::SeqCst);
        }));
        let begun = Instant::now();
        let journal = started(dir.path(), options);
        for n in 0..10 {
            journal.commit(nth(n, 3)).expect("a commit");
        }
        let early = syncs.load(Ordering::SeqCst);
        assert!(early == 0 || begun.elapsed() > Duration::from_millis(200), "{early} before the interval ended");
        if asked {
            wait_for("an fdatasync", DEADLINE, || match syncs.load(Ordering::SeqCst) {
                0 => Err("none"),
                _ => Ok(()),
            });
        }
        assert_eq!(syncs.load(Ordering::SeqCst) > 0, asked, "{durability:?}");
        journal.close().expect("a clean close");
        assert!(syncs.load(Ordering::SeqCst) > 0, "a close is durable in any case");
        let journal = Journal::open(dir.path(), self::options()).expect("it opens");
        assert_eq!(entries(&journal), 11);
    }
}

#[test]
fn options_out_of_their_range_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut small = options();
    small.segment_bytes = 1;
    let mut never = options();
    never.durability = Durability::Interval(Duration::ZERO);
    for options in [small, never] {
        assert!(Journal::open(&dir.path().join("journal"), options).is_err());
    }
    assert!(!dir.path().join("journal").exists(), "nothing was made");
}

#[test]
fn an_interval_is_kept_while_requests_queue_up() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut options = options();
    // No rotation syncs by itself.
    (options.segment_bytes, options.durability) = (16 << 20, Durability::Interval(Duration::from_millis(10)));
    let passed = Arc::new(Mutex::new(Vec::new()));
    let counted = Arc::clone(&passed);
    options.crash_at = Some(Arc::new(move |at| {
        if at == "wal-written" {
            // Longer than the interval: each write makes a sync due.
            std::thread::sleep(Duration::from_millis(50));
        }
        counted.lock().expect("no panic").push(at);
    }));
    let journal = started(dir.path(), options);
    passed.lock().expect("no panic").clear();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        // Three groups of as many requests as one takes.
        for n in 0..12_288 {
            let journal = journal.clone();
            tasks.spawn(async move { journal.commit_async(nth(n, 1)).await.expect("a commit") });
        }
        tasks.join_all().await
    });
    let passed = passed.lock().expect("no panic");
    let between =
        passed.split(|at| *at == "wal-synced").map(|part| part.iter().filter(|at| **at == "wal-written").count());
    assert_eq!(between.max(), Some(1), "{passed:?}");
}

#[test]
fn what_is_too_large_is_told_so_and_the_journal_goes_on() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), options());
    let body = Body::Started { owner: "a test".into(), isolation: Isolation::ReadCommitted, kafka_group: None };
    let draft = Draft { group: Some(group()), epoch: Epoch::ZERO.next(), body };
    let refused = journal.decide::<(), String>(move |_| Ok((vec![draft; 70_000], ()))).expect_err("too many");
    let expected = "a decision of 70000 entries can't be written; the limit is 65535; nothing was written";
    assert_eq!(refused.to_string(), expected);
    assert!(journal.read_only().is_none());
    journal.commit(nth(0, 1)).expect("a commit");
    assert_eq!(entries(&journal), 2);
}

#[test]
fn a_group_has_at_most_two_hundred_thousand_partitions() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), Options { segment_bytes: 16 << 20, ..options() });
    let commit = |topic: &str, partitions: u32| {
        let topic = TopicName::new(topic).expect("a legal name");
        let range = |partition| OffsetRange::new(topic.clone(), partition, Offset::ZERO, Offset::ZERO);
        let ranges = (0..partitions).map(|partition| range(partition).expect("a legal range")).collect();
        let commit = Commit::new(group(), Epoch::ZERO.next(), Timestamp::from_millis(0), ranges);
        journal.commit(commit.expect("each partition once"))
    };
    commit("one", 100_000).expect("half of them");
    commit("two", 100_000).expect("all of them");
    let refused = commit("three", 1).expect_err("one more").to_string();
    assert!(refused.contains("200001") && refused.contains("at most 200000"), "{refused}");
    // What it has goes on, and what it adds up to can be sealed.
    commit("one", 10).expect("known partitions");
    journal.close().expect("a clean close");
    assert_eq!(entries(&Journal::open(dir.path(), options()).expect("it opens again")), 4);
}
