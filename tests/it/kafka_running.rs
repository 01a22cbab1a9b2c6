//! The journaled consumer on a real broker: markers, growth, recreation, deletion and retention while it runs.

use std::time::{Duration, Instant};

use tidelog::control::{retire, start};
use tidelog::entry::{Body, Cause, Verdict};
use tidelog::journal::Order;
use tidelog::kafka::{ClientConfig, Discovery};
use tidelog::offset::{Seq, TopicName};
use tidelog::reconcile::HeadReset;

use crate::kafka::{Record, TestKafka};
use crate::kafka_group::{Setup, consume};
use crate::wait::{DEADLINE, wait_for};

fn setup(kafka: &TestKafka, topics: &[&str]) -> Setup {
    let client = ClientConfig::new(kafka.brokers()).expect("brokers");
    Setup::new(client, &kafka.unique("group"), topics)
}

fn verdicts(setup: &Setup) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let visit = &mut |entry: tidelog::entry::Entry| {
        if let Body::Reconciled { findings, .. } | Body::PartitionsAdded { findings, .. } = entry.body {
            verdicts.extend(findings.iter().map(|finding| finding.verdict));
        }
        std::ops::ControlFlow::Continue(())
    };
    setup.journal.visit_entries(Some(&setup.group), Seq::ZERO, Order::Ascending, visit).expect("read");
    verdicts
}

fn wait_position(setup: &Setup, topic: &str, partition: u32, wanted: i64) {
    wait_for(&format!("{topic}/{partition} at {wanted}"), DEADLINE, || match setup.position(topic, partition) {
        Some(position) if position == wanted => Ok(()),
        other => Err(other),
    });
}

/// C07.
#[test]
fn positions_pass_markers_and_aborted_records_and_leave_no_lag() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("markers");
    kafka.create_topic(&topic, 1, &[]);
    let setup = setup(kafka, &[&topic]);
    let mut transaction = kafka.begin(&kafka.unique("tx"));
    transaction.produce(&topic, 0, 5);
    transaction.commit(); // 0..5, marker 5
    let consumer = setup.begin("a");
    assert_eq!(consume(&consumer, 5).len(), 5);
    wait_position(&setup, &topic, 0, 6);
    let mut transaction = kafka.begin(&kafka.unique("tx"));
    transaction.produce(&topic, 0, 3);
    transaction.abort(); // 6..9, marker 9
    wait_position(&setup, &topic, 0, 10);
    kafka.produce(&topic, 0, 2);
    assert_eq!(consume(&consumer, 2), [format!("{topic}/0@10"), format!("{topic}/0@11")]);
    let mut transaction = kafka.begin(&kafka.unique("tx"));
    transaction.produce(&topic, 0, 4); // 12..16, open
    kafka.produce(&topic, 0, 1); // 16
    assert!(consumer.next_batch(Duration::from_secs(1)).expect("on").is_none(), "nothing stable");
    assert_eq!(setup.position(&topic, 0), Some(12));
    transaction.commit();
    assert_eq!(consume(&consumer, 5).len(), 5);
    wait_position(&setup, &topic, 0, 18);
    let group = setup.journal.group(&setup.group).expect("there");
    assert_eq!(group.positions.open_holes(), 0);
    // An idle group is left alone.
    let seq = setup.journal.with_state(|state| state.seq);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(setup.journal.with_state(|state| state.seq), seq);
}

#[test]
fn markers_whose_commit_is_refused_are_committed_later() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("refused");
    kafka.create_topic(&topic, 1, &[]);
    kafka.produce(&topic, 0, 5);
    let setup = setup(kafka, &[&topic]);
    let consumer = setup.begin("a");
    assert_eq!(consume(&consumer, 5).len(), 5);
    let name: TopicName = topic.parse().expect("legal");
    retire(&setup.control(), &setup.group, Some(&name), "me").expect("retired");
    let mut transaction = kafka.begin(&kafka.unique("tx"));
    transaction.produce(&topic, 0, 3);
    transaction.abort(); // 5..8, marker 8
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(setup.position(&topic, 0), Some(5), "a retired topic takes no commit");
    // The same owner names it: it is back, under the same epoch, and the consumer goes on as it was.
    start(&setup.control(), setup.request("a")).expect("started");
    wait_position(&setup, &topic, 0, 9);
    kafka.produce(&topic, 0, 1);
    assert_eq!(consume(&consumer, 1), [format!("{topic}/0@9")]);
    assert_eq!(setup.journal.group(&setup.group).expect("there").positions.open_holes(), 0);
}

#[test]
fn a_compacted_topic_is_read_to_its_end() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("compacted");
    kafka.create_topic(&topic, 1, &[]);
    let records: Vec<Record> = (0..20).map(|n| Record::keyed(format!("k{}", n % 4), "v")).collect();
    kafka.send(&topic, 0, &records);
    let left = kafka.compact(&topic, 0);
    let (_, latest) = kafka.watermarks(&topic, 0);
    let setup = setup(kafka, &[&topic]);
    let consumer = setup.begin("a");
    let seen = consume(&consumer, left.len());
    assert_eq!(seen[0], format!("{topic}/0@{}", left[0]));
    let begun = Instant::now();
    while setup.position(&topic, 0) != Some(latest) {
        assert!(begun.elapsed() < DEADLINE, "at {:?}, not {latest}", setup.position(&topic, 0));
        if let Some(batch) = consumer.next_batch(Duration::from_millis(100)).expect("on") {
            consumer.commit(batch).expect("taken");
        }
    }
    assert_eq!(setup.journal.group(&setup.group).expect("there").positions.open_holes(), 0);
}

/// C18, C05.
#[test]
fn new_partitions_and_topics_are_journaled_and_read_from_their_start() {
    let kafka = TestKafka::shared();
    let prefix = kafka.unique("ord");
    let (first, second) = (format!("{prefix}-a"), format!("{prefix}-b"));
    kafka.create_topic(&first, 1, &[]);
    kafka.produce(&first, 0, 3);
    let setup = setup(kafka, &[&format!("^{prefix}-.*")]);
    let consumer = setup.begin("a");
    assert_eq!(consume(&consumer, 3).len(), 3);
    kafka.grow(&first, 3);
    kafka.produce(&first, 2, 4);
    kafka.create_topic(&second, 2, &[]);
    kafka.produce(&second, 1, 10);
    let begun = Instant::now();
    let mut seen = consume(&consumer, 14);
    println!("growth and a new topic were read after {:?}", begun.elapsed());
    seen.sort();
    assert!(seen.contains(&format!("{first}/2@0")) && seen.contains(&format!("{second}/1@0")), "{seen:?}");
    let added = verdicts(&setup).iter().filter(|verdict| **verdict == Verdict::PartitionAdded).count();
    assert_eq!(added, 4, "{:?}", verdicts(&setup));
    assert!(consumer.health().last_look.is_some());
}

/// C15b.
#[test]
fn a_topic_recreated_while_it_is_read_is_read_from_its_start() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("again");
    kafka.create_topic(&topic, 1, &[]);
    kafka.produce(&topic, 0, 500);
    let setup = setup(kafka, &[&topic]);
    let consumer = setup.begin("a");
    assert_eq!(consume(&consumer, 500).len(), 500);
    kafka.recreate_topic(&topic, 1, &[]);
    kafka.produce(&topic, 0, 800);
    let begun = Instant::now();
    let mut seen = Vec::new();
    while setup.position(&topic, 0) != Some(800) || seen.len() < 800 {
        seen.extend(consume(&consumer, 1));
        assert!(begun.elapsed() < DEADLINE, "{} {:?}", seen.len(), consumer.health());
    }
    println!("a recreated topic was read after {:?}", begun.elapsed());
    let tail: Vec<String> = (0..800).map(|n| format!("{topic}/0@{n}")).collect();
    assert_eq!(seen[seen.len() - 800..], tail);
    assert!(verdicts(&setup).contains(&Verdict::TopicRecreated), "{:?}", verdicts(&setup));
}

#[test]
fn a_deleted_topic_is_said_and_the_others_are_read_on() {
    let kafka = TestKafka::shared();
    let (gone, stays) = (kafka.unique("gone"), kafka.unique("stays"));
    kafka.create_topic(&gone, 1, &[]);
    kafka.create_topic(&stays, 1, &[]);
    kafka.produce(&gone, 0, 3);
    let setup = setup(kafka, &[&gone, &stays]);
    let consumer = setup.begin("a");
    assert_eq!(consume(&consumer, 3).len(), 3);
    kafka.delete_topic(&gone);
    wait_for("the deletion said", DEADLINE, || {
        let health = consumer.health();
        if health.problems.iter().any(|problem| problem.contains(&gone)) { Ok(()) } else { Err(format!("{health:?}")) }
    });
    kafka.produce(&stays, 0, 2);
    assert_eq!(consume(&consumer, 2).len(), 2);
    assert_eq!(setup.position(&gone, 0), Some(3), "the position is kept");
    assert!(!kafka.has_topic(&gone));
    let begun = Instant::now();
    consumer.stop();
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
}

/// C15b, C01: with looks off, the client's own out-of-range event is what leads to the correction.
#[test]
fn retention_that_passes_the_reader_is_a_loss_and_reading_goes_on() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("retained");
    kafka.create_topic(&topic, 2, &[]);
    kafka.produce(&topic, 0, 10);
    kafka.produce(&topic, 1, 10);
    let mut setup = setup(kafka, &[&topic]);
    setup.discovery = Discovery::Off;
    let consumer = setup.begin("a");
    assert_eq!(consume(&consumer, 20).len(), 20);
    // The reader is held up by what it has in hand; then what it would read next is removed.
    setup.cut.max_wait = Duration::from_millis(10);
    consumer.stop();
    kafka.produce(&topic, 0, 90);
    let consumer = setup.begin("a");
    let in_hand = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
    kafka.produce_bytes(&topic, 0, 300, 700_000);
    let second = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
    let latest = kafka.watermarks(&topic, 0).1;
    kafka.delete_records(&topic, 0, latest - 1);
    consumer.commit(in_hand).expect("taken");
    consumer.commit(second).expect("taken");
    wait_for("read to the end", DEADLINE, || {
        if let Some(batch) = consumer.next_batch(Duration::from_millis(100)).expect("on") {
            consumer.commit(batch).map_err(|error| error.to_string())?;
        }
        match setup.position(&topic, 0) {
            Some(position) if position == latest => Ok(()),
            other => Err(format!("{other:?} of {latest}")),
        }
    });
    let losses = setup.journal.group(&setup.group).expect("there").losses;
    println!("{losses:?} {:?}", verdicts(&setup));
    assert!(losses.iter().all(|open| open.loss.cause == Cause::Expired));
    assert!(verdicts(&setup).contains(&Verdict::HeadOutOfRange), "{:?}", verdicts(&setup));
    kafka.produce(&topic, 1, 3);
    kafka.produce(&topic, 0, 3);
    assert_eq!(consume(&consumer, 6).len(), 6);
}

#[test]
fn what_a_policy_forbids_is_said_and_growth_is_read() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("forbidden");
    kafka.create_topic(&topic, 1, &[]);
    kafka.produce(&topic, 0, 5);
    let mut setup = setup(kafka, &[&topic]);
    setup.policy.reset.head = HeadReset::Fail;
    let consumer = setup.begin("a");
    assert_eq!(consume(&consumer, 5).len(), 5);
    // The commit of what is passed by the log's start stays in hand, so that the position is below it.
    kafka.produce(&topic, 0, 5);
    let in_hand = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
    kafka.delete_records(&topic, 0, 8);
    kafka.grow(&topic, 2);
    kafka.produce(&topic, 1, 3);
    assert_eq!(consume(&consumer, 3), (0..3).map(|n| format!("{topic}/1@{n}")).collect::<Vec<_>>());
    wait_for("the refusal said", DEADLINE, || match consumer.health() {
        health if health.problems.iter().any(|problem| problem.contains("head_out_of_range")) => Ok(()),
        health => Err(format!("{health:?}")),
    });
    assert_eq!(setup.position(&topic, 0), Some(5));
    consumer.commit(in_hand).expect("taken");
}

#[test]
fn headers_keys_and_times_are_those_of_the_record() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("whole");
    kafka.create_topic(&topic, 1, &[]);
    let record = Record {
        timestamp: Some(1_700_000_000_000),
        headers: vec![("a".into(), b"1".to_vec()), ("b".into(), Vec::new())],
        ..Record::keyed("key", "value")
    };
    let tombstone = Record { key: Some(b"gone".to_vec()), ..Record::default() };
    kafka.send_with(&[("compression.type", "zstd")], &topic, 0, &[record, tombstone]);
    let setup = setup(kafka, &[&topic]);
    let consumer = setup.begin("a");
    let batch = consumer.next_batch(DEADLINE).expect("on").expect("a batch");
    consumer.stop();
    drop(consumer);
    let records: Vec<_> = batch.records().collect();
    assert_eq!(records.len(), 2);
    assert_eq!((records[0].key(), records[0].payload()), (Some(&b"key"[..]), Some(&b"value"[..])));
    assert_eq!(records[0].timestamp().map(|time| time.millis()), Some(1_700_000_000_000));
    assert_eq!(records[0].headers(), [("a", Some(&b"1"[..])), ("b", Some(&b""[..]))]);
    assert_eq!((records[1].key(), records[1].payload()), (Some(&b"gone"[..]), None));
    assert!(records[1].headers().is_empty());
}
