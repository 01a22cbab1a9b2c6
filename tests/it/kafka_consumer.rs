//! The journaled consumer on the mock: start, commit, restart, rollback, fences.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use tidelog::commit::Refused;
use tidelog::control::{hold, release};
use tidelog::entry::{Body, Correction, Draft, Move, RolledBack};
use tidelog::kafka::mock::Mock;
use tidelog::kafka::{Batch, CommitFailed, Discovery, Moved, StopReason};
use tidelog::offset::{Isolation, Offset};
use tidelog::results::Puts;

use crate::kafka_group::{Setup, consume};
use crate::kafka_mock::{at, name, offset};
use crate::wait::{DEADLINE, wait_for};

fn mock_with(topic: &str, partitions: u16, records: usize) -> Mock {
    let mock = Mock::new(1).expect("a mock starts");
    mock.create_topic(&name(topic), partitions).expect("made");
    (0..partitions).for_each(|partition| produce(&mock, topic, partition, records));
    mock
}

fn produce(mock: &Mock, topic: &str, partition: u16, records: usize) {
    let values: Vec<String> = (0..records).map(|n| n.to_string()).collect();
    let records = values.iter().map(|value| (None, value.as_str()));
    mock.produce(&at(topic, u32::from(partition)), records).expect("produced");
}

/// Moves partition 0 of `orders`, as an operator's rollback does.
fn roll_back(setup: &Setup, to: Offset) {
    let group = setup.group.clone();
    setup
        .journal
        .decide(move |state| {
            let present = &state.groups[&group];
            let topic = &present.positions.topics[&name("orders")];
            let moved = Move {
                topic: name("orders"),
                partition: 0,
                topic_id: topic.topic_id,
                old: Some(topic.partitions[&0].position),
                new: Some(to),
                holes: Vec::new(),
                replaying_until: Some(topic.partitions[&0].position),
            };
            let rolled_back = RolledBack {
                plan: "test".into(),
                target: "test".into(),
                actor: "test".into(),
                reason: "test".into(),
                undoes: None,
                kafka: false,
                correction: Correction { moves: vec![moved], ..Correction::default() },
            };
            let epoch = present.epoch.next();
            let draft = Draft { group: Some(group.clone()), epoch, body: Body::RolledBack(rolled_back) };
            Ok::<_, Infallible>((vec![draft], ()))
        })
        .expect("taken");
}

/// C15, C28.
#[test]
fn after_each_restart_the_first_record_is_the_planned_one() {
    let mock = mock_with("orders", 2, 500);
    let mut setup = Setup::new(mock.config(), "g", &["orders"]);
    setup.cut.max_records = NonZeroUsize::new(5).expect("not zero");
    let mut all = BTreeSet::new();
    for round in 0..200 {
        let planned = [0, 1].map(|p| setup.position("orders", p).unwrap_or(0));
        let consumer = setup.begin(&format!("owner-{round}"));
        let seen = consume(&consumer, 5);
        for (partition, planned) in planned.into_iter().enumerate() {
            let prefix = format!("orders/{partition}@");
            let first = seen.iter().find_map(|record| record.strip_prefix(&prefix));
            assert!(first.is_none_or(|first| first == planned.to_string()), "{planned} in {seen:?}");
        }
        all.extend(seen);
        consumer.stop();
        drop(consumer);
    }
    assert_eq!(all.len(), 1_000, "each record once");
    let group = setup.journal.group(&setup.group).expect("there");
    assert_eq!(group.positions.open_holes(), 0);
    assert_eq!([0, 1].map(|p| setup.position("orders", p)), [Some(500), Some(500)]);
}

#[test]
fn a_dropped_batch_is_handed_out_again() {
    let mock = mock_with("orders", 1, 20);
    let mut setup = Setup::new(mock.config(), "g", &["orders"]);
    setup.cut.max_records = NonZeroUsize::new(5).expect("not zero");
    let consumer = setup.begin("a");
    let first = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
    let second = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
    let ranges = first.ranges().to_vec();
    assert_eq!(ranges[0].to_string(), "orders/0 [0,5)");
    consumer.commit(second).expect("taken, though it is not its turn");
    drop(first);
    let again = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
    assert_eq!((again.ranges(), again.len()), (&ranges[..], 5));
    consumer.commit(again).expect("taken");
    assert_eq!(setup.journal.group(&setup.group).expect("there").positions.open_holes(), 0);
    assert_eq!(consume(&consumer, 10), (10..20).map(|n| format!("orders/0@{n}")).collect::<Vec<_>>());
}

/// Results go where their batch goes: with it, or nowhere.
#[test]
fn a_batch_that_is_overtaken_leaves_no_results_and_comes_again_with_its_own() {
    let mock = mock_with("orders", 1, 20);
    let mut setup = Setup::new(mock.config(), "g", &["orders"]);
    setup.cut.max_records = NonZeroUsize::new(10).expect("not zero");
    let consumer = setup.begin("a");
    let results = |batch: &Batch, run: &str| {
        let mut puts = Puts::new();
        batch.records().for_each(|record| puts.put(format!("{record:?}"), run).expect("within the limits"));
        puts
    };
    let run = |at: &str| setup.journal.result(&setup.group, at.as_bytes()).expect("a read");
    let first = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
    let puts = results(&first, "1");
    consumer.commit_with(first, puts).expect("taken");
    let second = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
    roll_back(&setup, offset(5));
    let puts = results(&second, "1");
    assert!(matches!(consumer.commit_with(second, puts), Err(CommitFailed::Moved(_))));
    assert_eq!([run("orders/0@9"), run("orders/0@10")], [Some(b"1".to_vec()), None]);
    while setup.position("orders", 0) != Some(20) {
        let batch = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
        let puts = results(&batch, "2");
        consumer.commit_with(batch, puts).expect("taken");
    }
    let runs = ["orders/0@4", "orders/0@5", "orders/0@10", "orders/0@19"].map(run);
    assert_eq!(runs, [b"1", b"2", b"2", b"2"].map(|run| Some(run.to_vec())));
}

/// C26e, C04.
#[test]
fn a_rollback_reaches_a_consumer_that_is_idle_and_one_with_a_batch_in_hand() {
    let mock = mock_with("orders", 1, 20);
    let setup = Setup::new(mock.config(), "g", &["orders"]);
    let consumer = setup.begin("a");
    assert_eq!(consume(&consumer, 20).len(), 20);
    roll_back(&setup, offset(15));
    let begun = Instant::now();
    let again = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
    println!("an idle consumer was at the new position after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(again.is_replaying());
    assert_eq!(again.ranges()[0].to_string(), "orders/0 [15,20)");
    roll_back(&setup, offset(3));
    let error = consumer.commit(again).expect_err("fenced");
    assert!(matches!(error, CommitFailed::Moved(_)), "{error}");
    assert_eq!(consume(&consumer, 17)[0], "orders/0@3");
    produce(&mock, "orders", 0, 2);
    assert_eq!(consume(&consumer, 2), ["orders/0@20", "orders/0@21"]);
}

/// C14c.
#[test]
fn another_owner_stops_it_by_name() {
    let mock = mock_with("orders", 1, 20);
    let setup = Setup::new(mock.config(), "g", &["orders"]);
    let first = setup.begin("a");
    let batch = first.next_batch(DEADLINE).expect("on").expect("a batch");
    let second = setup.begin("b");
    let error = first.commit(batch).expect_err("fenced");
    assert!(matches!(&error, CommitFailed::Stopped(StopReason::Fenced { owner, .. }) if owner == "b"), "{error}");
    assert!(matches!(first.next_batch(DEADLINE), Err(StopReason::Fenced { .. })));
    assert_eq!(consume(&second, 20).len(), 20);
}

/// C14c, in the moment between a rollback and the new positions of the consumer that it reached.
#[test]
fn another_owner_that_starts_while_it_takes_new_positions_keeps_the_group() {
    let mock = mock_with("orders", 1, 20);
    let mut setup = Setup::new(mock.config(), "g", &["orders"]);
    setup.discovery = Discovery::Off;
    let first = setup.begin("a");
    assert_eq!(consume(&first, 20).len(), 20);
    mock.set_delay(1, Duration::from_millis(500)).expect("set");
    roll_back(&setup, offset(3));
    std::thread::sleep(Duration::from_millis(250)); // It is asking the broker by now.
    let group = setup.group.clone();
    let taken_over = setup.journal.decide(move |state| {
        let body = Body::Started { owner: "b".into(), isolation: Isolation::ReadCommitted, kafka_group: None };
        let epoch = state.groups[&group].epoch.next();
        Ok::<_, Infallible>((vec![Draft { group: Some(group), epoch, body }], ()))
    });
    taken_over.expect("taken");
    let stopped = wait_for("its end", DEADLINE, || match first.next_batch(Duration::from_millis(100)) {
        Ok(batch) => Err(batch),
        Err(stopped) => Ok(stopped),
    });
    assert!(matches!(&stopped, StopReason::Fenced { owner, .. } if owner == "b"), "{stopped}");
    let owner = setup.journal.group(&setup.group).expect("there").owner;
    assert_eq!(owner.as_deref(), Some("b"));
}

#[test]
fn a_held_group_waits_and_goes_on_when_it_is_released() {
    let mock = mock_with("orders", 1, 10);
    let setup = Setup::new(mock.config(), "g", &["orders"]);
    let consumer = setup.begin("a");
    let in_hand = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
    hold(&setup.control(), &setup.group, "me", "mending the sink").expect("held");
    let error = consumer.commit(in_hand).expect_err("held");
    assert!(matches!(&error, CommitFailed::Moved(_)), "{error}");
    wait_for("the consumer waiting", DEADLINE, || consumer.health().waiting.ok_or("it goes on"));
    roll_back(&setup, offset(0));
    assert!(consumer.next_batch(Duration::from_millis(300)).expect("on").is_none());
    release(&setup.control(), &setup.group, "me").expect("released");
    assert_eq!(consume(&consumer, 10)[0], "orders/0@0");
    assert_eq!(consumer.health().waiting, None);
}

#[test]
fn a_batch_in_hand_over_a_hold_is_dropped_and_its_records_come_again_once() {
    let mock = mock_with("orders", 1, 10);
    let mut setup = Setup::new(mock.config(), "g", &["orders"]);
    setup.cut.max_records = NonZeroUsize::new(5).expect("not zero");
    let consumer = setup.begin("a");
    let in_hand = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
    hold(&setup.control(), &setup.group, "me", "mending the sink").expect("held");
    wait_for("the consumer waiting", DEADLINE, || consumer.health().waiting.ok_or("it goes on"));
    release(&setup.control(), &setup.group, "me").expect("released");
    wait_for("the consumer going on", DEADLINE, || consumer.health().waiting.map_or(Ok(()), Err));
    // The epoch is the same: the journal would take it.
    let error = consumer.commit(in_hand).expect_err("its records are handed out again");
    assert!(matches!(&error, CommitFailed::Moved(Moved::TakenAnew)), "{error}");
    assert_eq!(setup.position("orders", 0), Some(0));
    assert_eq!(consume(&consumer, 10), (0..10).map(|n| format!("orders/0@{n}")).collect::<Vec<_>>());
}

/// The reading thread may see nothing of a hold that is over at once; the batch that was refused meanwhile is read again.
#[test]
fn a_batch_that_a_short_hold_refuses_comes_again() {
    let mock = mock_with("orders", 1, 50);
    let mut setup = Setup::new(mock.config(), "g", &["orders"]);
    setup.cut.max_records = NonZeroUsize::new(5).expect("not zero");
    let (consumer, control) = (setup.begin("a"), setup.control());
    for round in 0..10 {
        let begin = round * 5;
        let in_hand = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
        hold(&control, &setup.group, "me", "a slip").expect("held");
        let error = consumer.commit(in_hand).expect_err("held");
        release(&control, &setup.group, "me").expect("released");
        assert!(
            matches!(&error, CommitFailed::Moved(Moved::Refused(Refused::Held { .. }) | Moved::TakenAnew)),
            "{error}"
        );
        let again = (begin..begin + 5).map(|n| format!("orders/0@{n}")).collect::<Vec<_>>();
        assert_eq!(consume(&consumer, 5), again);
    }
    assert_eq!(setup.journal.group(&setup.group).expect("there").positions.open_holes(), 0);
}

#[test]
fn a_cancelled_commit_loses_no_batch() {
    let mock = mock_with("orders", 1, 10);
    let mut setup = Setup::new(mock.config(), "g", &["orders"]);
    setup.cut.max_records = NonZeroUsize::new(5).expect("not zero");
    let consumer = setup.begin("a");
    let batch = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
    drop(consumer.commit_async(batch)); // Never polled.
    assert_eq!(consume(&consumer, 10), (0..10).map(|n| format!("orders/0@{n}")).collect::<Vec<_>>());
    assert_eq!(setup.position("orders", 0), Some(10));
}

/// C14.
#[test]
fn eight_tasks_commit_in_any_order_and_leave_no_hole() {
    let mock = mock_with("orders", 4, 500);
    let mut setup = Setup::new(mock.config(), "g", &["orders"]);
    setup.cut.max_records = NonZeroUsize::new(20).expect("not zero");
    setup.cut.max_wait = Duration::from_millis(20);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("a runtime");
    let consumer = std::sync::Arc::new(setup.begin("a"));
    let seen = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    runtime.block_on(async {
        let tasks: Vec<_> = (0..8)
            .map(|task| {
                let (consumer, seen) = (consumer.clone(), seen.clone());
                tokio::spawn(async move {
                    while let Ok(Ok(batch)) =
                        tokio::time::timeout(Duration::from_secs(2), consumer.next_batch_async()).await
                    {
                        let records = batch.len();
                        tokio::time::sleep(Duration::from_millis(task * 3 % 7)).await;
                        consumer.commit_async(batch).await.expect("taken");
                        seen.fetch_add(records, std::sync::atomic::Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic");
        }
    });
    assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 2_000);
    let group = setup.journal.group(&setup.group).expect("there");
    assert_eq!(group.positions.open_holes(), 0);
    assert!(group.positions.iter().all(|(_, _, partition)| partition.position == offset(500)));
}

/// C16.
#[test]
fn a_stop_is_quick_though_the_broker_is_gone() {
    let mock = mock_with("orders", 1, 20);
    let setup = Setup::new(mock.config(), "g", &["orders"]);
    let consumer = setup.begin("a");
    assert_eq!(consume(&consumer, 20).len(), 20);
    mock.set_broker(1, false).expect("set");
    wait_for("a look that failed", DEADLINE, || match consumer.health() {
        health if health.look_failed.is_some() || !health.problems.is_empty() => Ok(()),
        health => Err(format!("{health:?}")),
    });
    let begun = Instant::now();
    consumer.stop();
    drop(consumer);
    println!("stopped after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
}
