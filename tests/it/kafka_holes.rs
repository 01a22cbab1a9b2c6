//! Holes on a real broker: what they hold is looked into, read again, closed; by tasks out of order, strays, crashes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tidelog::commit::Commit;
use tidelog::control::{self, Started};
use tidelog::entry::{Body, Verdict};
use tidelog::journal::Order;
use tidelog::kafka::{ClientConfig, Discovery};
use tidelog::offset::{BatchNumber, OffsetRange, Seq};
use tidelog::rollback::{Edge, PlanRequest, Target};

use crate::kafka::{Record, TestKafka};
use crate::kafka_group::Setup;
use crate::kafka_mock::{clock, name, offset};
use crate::program::{Http, Program, findings, free_address, starts};
use crate::wait::DEADLINE;

fn setup(kafka: &TestKafka, topics: &[&str]) -> Setup {
    let client = ClientConfig::new(kafka.brokers()).expect("brokers");
    Setup::new(client, &kafka.unique("group"), topics)
}

fn start(setup: &Setup, owner: &str) -> Started {
    control::start(&setup.control(), setup.request(owner)).expect("a start")
}

/// Commits under the group's present epoch.
fn commit(setup: &Setup, topic: &str, from: i64, until: i64) {
    let epoch = setup.journal.group(&setup.group).expect("it was started").epoch;
    let range = OffsetRange::new(name(topic), 0, offset(from), offset(until)).expect("a range");
    let commit = Commit::new(setup.group.clone(), epoch, clock()(), vec![range]).expect("legal");
    setup.journal.commit(commit).expect("taken");
}

/// The open holes of partition 0.
fn holes(setup: &Setup, topic: &str) -> Vec<(i64, i64)> {
    let group = setup.journal.group(&setup.group).expect("it was started");
    let partition = group.positions.get(&name(topic), 0).expect("it is read");
    partition.holes.iter().map(|hole| (hole.from_offset.get(), hole.until_offset.get())).collect()
}

/// C07: commits of a client that counts records, which leaves out what is none.
#[test]
fn c07_what_holds_no_record_is_closed_at_the_next_start() {
    let kafka = TestKafka::shared();
    let (marked, compacted) = (kafka.unique("marked"), kafka.unique("compacted"));
    kafka.create_topic(&marked, 1, &[]);
    let mut transaction = kafka.begin(&kafka.unique("tx"));
    transaction.produce(&marked, 0, 5);
    transaction.commit(); // 0..5, marker 5
    kafka.produce(&marked, 0, 3); // 6..9
    let mut transaction = kafka.begin(&kafka.unique("tx"));
    transaction.produce(&marked, 0, 3);
    transaction.abort(); // 9..12, marker 12
    kafka.produce(&marked, 0, 1); // 13
    kafka.create_topic(&compacted, 1, &[("cleanup.policy", "compact")]);
    let records: Vec<Record> = (0..10).map(|n| Record::keyed(format!("k{}", n % 3), format!("v{n}"))).collect();
    kafka.send(&compacted, 0, &records);
    let left = kafka.compact(&compacted, 0);
    assert!(left[0] > 3, "{left:?}");

    let setup = setup(kafka, &[&marked, &compacted]);
    start(&setup, "a");
    for (from, until) in [(0, 5), (6, 9), (9, 9), (13, 14)] {
        commit(&setup, &marked, from, until);
    }
    for from in &left {
        commit(&setup, &compacted, *from, *from + 1);
    }
    assert_eq!(holes(&setup, &marked), [(5, 6), (9, 13)]);
    assert_eq!(holes(&setup, &compacted)[0], (0, left[0]));
    let started = start(&setup, "b");
    assert_eq!((started.findings, holes(&setup, &marked), holes(&setup, &compacted)), (vec![], vec![], vec![]));
    assert!(started.positions.iter().all(|position| position.verdict == Verdict::InRange), "{:?}", started.positions);
    let group = setup.journal.group(&setup.group).expect("there");
    assert_eq!((group.losses.len(), group.epoch.get()), (0, 2), "nothing is lost, and only the owner is another one");
}

/// C14b: a server is killed between the batches of two tasks.
#[test]
fn c14b_what_a_crash_left_unread_is_read_at_the_next_start() {
    let kafka = TestKafka::shared();
    let (program, topic) = (Program::new(&kafka.brokers()), kafka.unique("crashed"));
    kafka.create_topic(&topic, 1, &[]);
    kafka.produce(&topic, 0, 300);
    let address = free_address();
    let server = program.spawn(&["serve", "-b", &kafka.brokers(), "--listen", &address]);
    program.wait_served();
    let http = Http::new(&address);
    let (status, started) = http.post("/v1/groups/g/start", &json!({"topics": [topic], "owner": "tasks"}));
    assert_eq!((status, starts(&started["positions"])), (200, format!("{topic}/0 0")));
    let range = json!([{"topic": topic, "partition": 0, "from_offset": 100, "until_offset": 200}]);
    let second = json!({"epoch": started["epoch"], "batch_time": "2026-11-30T10:00:00Z", "ranges": range});
    let (status, receipt) = http.post("/v1/groups/g/batches", &second);
    assert_eq!((status, &receipt["notes"][0]["note"]), (201, &"hole".into()), "{receipt}");
    // The first task's batch, [0,100), never comes.
    server.kill();

    let dry = program.json(&["start", "g", "-t", &topic, "--dry-run"]);
    assert_eq!(findings(&dry), [format!("{topic}/0 unread_hole 200 -> 0")]);
    let read = program.consume("g", &["-t", &topic]);
    let all: Vec<String> = (0..300).map(|offset| format!("{topic}/0@{offset}")).collect();
    assert_eq!(read, all);
    assert_eq!(program.positions("g"), format!("{topic}/0 300"));
    assert!(program.losses("g").is_empty());
    let found: Vec<_> = program.lines(&["entries", "g", "--order", "asc"]);
    let corrections = found.iter().filter(|entry| entry["findings"][0]["verdict"] == "unread_hole");
    assert_eq!(corrections.count(), 1, "journaled, once");
}

/// C14b: a stray commit far above the position.
#[test]
fn c14b_a_stray_commit_loses_nothing() {
    let kafka = TestKafka::shared();
    let (program, topic) = (Program::new(&kafka.brokers()), kafka.unique("stray"));
    kafka.create_topic(&topic, 1, &[]);
    kafka.produce(&topic, 0, 500);
    program.consume("g", &["-t", &topic]);
    kafka.produce(&topic, 0, 9_600);
    let address = free_address();
    let server = program.spawn(&["serve", "--listen", &address]);
    program.wait_served();
    let http = Http::new(&address);
    let (_, group) = http.get("/v1/groups/g");
    let range = json!([{"topic": topic, "partition": 0, "from_offset": 9_000, "until_offset": 9_100}]);
    let stray = json!({"epoch": group["epoch"], "batch_time": "2026-11-30T10:00:00Z", "ranges": range});
    assert_eq!(http.post("/v1/groups/g/batches", &stray).0, 201);
    assert_eq!(server.terminate().code, 0);
    assert_eq!(program.losses("g"), [format!("{topic}/0 [500,9000) hole")]);
    let start = program.json(&["start", "g", "-t", &topic, "--dry-run"]);
    assert_eq!(findings(&start), [format!("{topic}/0 unread_hole 9100 -> 500")]);
    let read = program.consume("g", &["-t", &topic]);
    assert_eq!((read.len(), read[0].as_str()), (9_600, format!("{topic}/0@500").as_str()));
    assert!(program.losses("g").is_empty());
}

/// C14b: tasks that commit out of order while the consumer looks ten times.
#[test]
fn c14b_eight_tasks_out_of_order_through_ten_looks_are_left_alone() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("tasks");
    kafka.create_topic(&topic, 1, &[]);
    kafka.produce(&topic, 0, 2_000);
    let mut setup = setup(kafka, &[&topic]);
    setup.cut.max_records = std::num::NonZeroUsize::new(20).expect("not zero");
    setup.discovery = Discovery::Every(Duration::from_millis(50));
    let consumer = setup.begin("a");
    let epoch = setup.journal.group(&setup.group).expect("there").epoch;
    let (begun, committed, commits) = (Instant::now(), AtomicUsize::new(0), AtomicUsize::new(0));
    let (looks, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let going = || {
        let committed = committed.load(Ordering::Relaxed);
        assert!(begun.elapsed() < DEADLINE, "{committed} records, {looks:?} looks; {:?}", consumer.health());
        committed < 2_000
    };
    std::thread::scope(|scope| {
        for task in 0..8 {
            let (consumer, going, setup, topic) = (&consumer, &going, &setup, &topic);
            let (committed, commits, looks, most) = (&committed, &commits, &looks, &most);
            scope.spawn(move || {
                while going() {
                    let Some(batch) = consumer.next_batch(Duration::from_millis(50)).expect("on") else { continue };
                    // Each task takes its own time, so that they overtake each other.
                    std::thread::sleep(Duration::from_millis(task * 10));
                    // A look for every ten commits, while holes are open.
                    while looks.load(Ordering::Relaxed) < commits.load(Ordering::Relaxed) / 10 + 1 && going() {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    let records = batch.len();
                    consumer.commit(batch).expect("taken");
                    commits.fetch_add(1, Ordering::Relaxed);
                    committed.fetch_add(records, Ordering::Relaxed);
                    most.fetch_max(holes(setup, topic).len(), Ordering::Relaxed);
                }
            });
        }
        let mut last = None;
        while going() {
            let seen = consumer.health().last_look;
            if seen != last {
                last = seen;
                looks.fetch_add(1, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let (looks, most) = (looks.into_inner(), most.into_inner());
    assert!(looks >= 10 && most > 0, "{looks} looks, {most} holes at most");
    assert_eq!((holes(&setup, &topic), setup.position(&topic, 0)), (vec![], Some(2_000)));
    let group = setup.journal.group(&setup.group).expect("there");
    assert_eq!((group.epoch, group.losses.len()), (epoch, 0));
    let mut kinds = Vec::new();
    let visit = &mut |entry: tidelog::entry::Entry| {
        if !matches!(entry.body, Body::Batch(_)) {
            kinds.push(entry.body.kind());
        }
        std::ops::ControlFlow::Continue(())
    };
    setup.journal.visit_entries(Some(&setup.group), Seq::ZERO, Order::Ascending, visit).expect("read");
    assert_eq!(kinds, ["started", "reconciled"], "the first positions, and nothing after them");
}

/// A thousand holes, as many as a partition has at most.
#[test]
fn a_start_looks_into_a_thousand_holes_within_its_deadline() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("thousand");
    kafka.create_topic(&topic, 1, &[]);
    kafka.produce(&topic, 0, 10_000);
    let setup = setup(kafka, &[&topic]);
    start(&setup, "a");
    for n in 0..1_000 {
        commit(&setup, &topic, n * 10 + 9, n * 10 + 10);
    }
    let open = holes(&setup, &topic);
    assert_eq!((open.len(), open[0], open[999]), (1_000, (0, 9), (9_990, 9_999)));
    let begun = Instant::now();
    let started = start(&setup, "b");
    println!("a start with 1000 open holes: {:?}", begun.elapsed());
    assert_eq!(started.positions[0].offset, offset(0));
    assert_eq!(started.findings.len(), 1_000);
    assert_eq!(holes(&setup, &topic), []);

    // Back to where they were open: they are open again, as they were; and seen, they are closed.
    let to = Target::Batch { batch: BatchNumber::new(1_000).expect("small"), edge: Edge::After };
    let control = setup.control();
    let plan = control::plan(&control, PlanRequest::new(setup.group.clone(), to)).expect("a plan");
    control::execute(&control, plan.execute, Some(&plan.id), "ann", "a test").expect("executed");
    assert_eq!(holes(&setup, &topic), open);
    let group = setup.journal.group(&setup.group).expect("there");
    let first = group.positions.get(&name(&topic), 0).expect("read").holes[0].seq;
    control::acknowledge(&control, first, "ann").expect("acknowledged");
    assert_eq!(holes(&setup, &topic), open[1..]);
    assert_eq!(start(&setup, "c").positions[0].offset, offset(10), "the first of the others");
}

/// More holes than a group keeps: the nearest are joined, so more is read again, and nothing is lost.
#[test]
fn past_ten_thousand_holes_of_a_group_nothing_is_lost_and_it_starts() {
    const PARTITIONS: u32 = 11;
    let kafka = TestKafka::shared();
    let topic = kafka.unique("many");
    kafka.create_topic(&topic, PARTITIONS as i32, &[]);
    for partition in 0..PARTITIONS {
        kafka.produce(&topic, partition as i32, 5_000);
    }
    let setup = setup(kafka, &[&topic]);
    let epoch = start(&setup, "a").epoch;
    for n in 0..1_000 {
        let read = |partition| OffsetRange::new(name(&topic), partition, offset(n * 5 + 4), offset(n * 5 + 5));
        let ranges = (0..PARTITIONS).map(|partition| read(partition).expect("a range")).collect();
        let commit = Commit::new(setup.group.clone(), epoch, clock()(), ranges).expect("legal");
        setup.journal.commit(commit).expect("taken");
    }
    let group = setup.journal.group(&setup.group).expect("there");
    assert_eq!(group.positions.open_holes(), 10_000);
    for (at, _, partition) in group.positions.iter() {
        let mut next = 0;
        // What no hole covers has been read: one offset of each five, or none where holes were joined.
        for hole in &partition.holes {
            assert!(hole.from_offset.get() - next <= 1 && hole.from_offset < hole.until_offset, "{at} {hole:?}");
            next = hole.until_offset.get();
        }
        assert_eq!((next, partition.position), (4_999, offset(5_000)), "{at}");
    }
    let begun = Instant::now();
    let started = start(&setup, "b");
    println!("a start with 10000 open holes: {:?}", begun.elapsed());
    assert!(started.positions.iter().all(|position| position.offset == offset(0)));
    assert_eq!(setup.journal.group(&setup.group).expect("there").positions.open_holes(), 0);
}

/// Far more lies between two holes than a broker sends at once.
#[test]
fn holes_far_apart_are_looked_into_as_well() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("apart");
    kafka.create_topic(&topic, 1, &[]);
    for _ in 0..3 {
        let records: Vec<Record> = (0..8).map(|_| Record::new("x".repeat(200_000))).collect();
        kafka.send(&topic, 0, &records);
        let mut transaction = kafka.begin(&kafka.unique("tx"));
        transaction.produce(&topic, 0, 1);
        transaction.abort(); // 8 and the marker 9, 18 and 19, 28 and 29
    }
    let setup = setup(kafka, &[&topic]);
    start(&setup, "a");
    for (from, until) in [(0, 8), (10, 18), (20, 28), (30, 30)] {
        commit(&setup, &topic, from, until);
    }
    assert_eq!(holes(&setup, &topic), [(8, 10), (18, 20), (28, 30)]);
    let started = start(&setup, "b");
    assert_eq!((started.positions[0].offset, holes(&setup, &topic)), (offset(30), vec![]));
    // And one that holds records is found behind others that hold none.
    commit(&setup, &topic, 30, 30);
    let records: Vec<Record> = (0..2).map(|_| Record::new("x")).collect();
    kafka.send(&topic, 0, &records);
    commit(&setup, &topic, 31, 32);
    assert_eq!(start(&setup, "c").positions[0].offset, offset(30));
}
