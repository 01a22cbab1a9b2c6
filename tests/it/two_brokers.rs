//! Two brokers, one of which goes away: no false verdict, every wait bounded, and what is waited for said.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use tidelog::broker::{Broker, Seen};
use tidelog::kafka::{ClientConfig, KafkaBroker};

use crate::kafka::{Options, TestKafka};
use crate::kafka_mock::{at, clock, offset};
use crate::program::{Http, Program, record, starts, text};
use crate::wait::wait_for;

/// What a start may take: its deadline, and the second look.
const BOUND: Duration = Duration::from_secs(14);

fn start_body(topics: &[&str]) -> Value {
    json!({ "topics": topics, "owner": "test" })
}

/// A start that must answer within its bound.
fn start(http: &Http, topics: &[&str]) -> (u16, Value) {
    let begun = Instant::now();
    let answer = http.post("/v1/groups/g/start", &start_body(topics));
    assert!(begun.elapsed() < BOUND, "{:?}: {answer:?}", begun.elapsed());
    answer
}

/// All starts of a start are in range, and there is nothing to find.
fn assert_in_range((status, answer): &(u16, Value)) {
    assert_eq!(*status, 200, "{answer}");
    assert_eq!(answer["findings"], json!([]), "{answer}");
    let positions = answer["positions"].as_array().expect("a list");
    assert!(positions.iter().all(|position| position["verdict"] == "in_range"), "{answer}");
}

#[test]
fn a_broker_goes_away_and_comes_back() {
    let config = [("broker.session.timeout.ms", "3000"), ("broker.heartbeat.interval.ms", "500")];
    let kafka = TestKafka::start(Options { nodes: 2, config: &config, ..Options::default() });
    a_coordinator_that_moves_is_found(&kafka);
    leader_changes_during_a_start_and_without_one_there_is_no_verdict(&kafka);
    a_consumer_waits_half_a_minute_and_goes_on(&kafka);
}

/// librdkafka goes on asking the one that it knows for a quarter of an hour, as long as that one is there.
fn a_coordinator_that_moves_is_found(kafka: &TestKafka) {
    kafka.create_topic_on("moved", &[&[1]], &[]);
    let broker = KafkaBroker::new(&ClientConfig::new(kafka.brokers()).expect("addresses"), clock()).expect("a client");
    let commit = |position| {
        let wanted = [(at("moved", 0), offset(position))].into();
        let done = broker.commit("g", &wanted, Duration::from_secs(10));
        assert!(done.values().all(Result::is_ok), "{done:?}");
        let held = broker.committed("g", &[at("moved", 0)].into(), Duration::from_secs(10));
        assert_eq!(held, [(at("moved", 0), Seen::Known(offset(position)))].into());
        assert_eq!(broker.members("g", Duration::from_secs(10)), Ok(Vec::new()));
    };
    commit(3);
    // There and back again.
    for position in [4, 5] {
        let from = kafka.leader("__consumer_offsets", 0).expect("a leader");
        let to = 3 - from;
        let plan = json!({ "version": 1,
            "partitions": [{ "topic": "__consumer_offsets", "partition": 0, "replicas": [to] }] });
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), plan.to_string()).expect("written");
        let file = file.path().to_str().expect("a name of ours");
        let flags = ["--reassignment-json-file", file, "--execute"];
        kafka.tool("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", &flags);
        wait_for("the other coordinator", Duration::from_secs(30), || match kafka.leader("__consumer_offsets", 0) {
            Some(leader) if leader == to => Ok(()),
            other => Err(other),
        });
        commit(position);
    }
}

fn leader_changes_during_a_start_and_without_one_there_is_no_verdict(kafka: &TestKafka) {
    // On both brokers, led by the one that goes; and on that one alone.
    kafka.create_topic_on("both", &[&[2, 1], &[1, 2]], &[]);
    kafka.create_topic_on("alone", &[&[1], &[2]], &[]);
    for topic in ["both", "alone"] {
        kafka.produce(topic, 0, 10);
        kafka.produce(topic, 1, 10);
    }
    let program = Program::new(&kafka.brokers());
    let address = crate::program::free_address();
    let serve = program.spawn(&["serve", "-b", &kafka.brokers(), "--listen", &address, "--second-look", "100ms"]);
    program.wait_served();
    let http = Http::new(&address);
    let (status, answer) = start(&http, &["both", "alone"]);
    assert_eq!((status, starts(&answer["positions"]).as_str()), (200, "alone/0 0, alone/1 0, both/0 0, both/1 0"));
    let range = |topic: &str, partition: u32| json!({ "topic": topic, "partition": partition, "from_offset": 0, "until_offset": 10 });
    let ranges = json!([range("alone", 0), range("alone", 1), range("both", 0), range("both", 1)]);
    let commit = json!({ "epoch": answer["epoch"], "batch_time": "2026-11-30T10:00:00Z", "ranges": ranges });
    assert_eq!(http.post("/v1/groups/g/batches", &commit).0, 201);
    let kinds = program.kinds("g");

    // It hangs while a start asks; then it is gone, and another one leads.
    kafka.freeze(2);
    let hanging = std::thread::scope(|scope| {
        let asked = scope.spawn(|| start(&http, &["both"]));
        std::thread::sleep(Duration::from_millis(300));
        // What the journal alone knows does not wait for it.
        let begun = Instant::now();
        let (status, positions) = http.get("/v1/groups/g/positions");
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        assert_eq!((status, starts(&positions["positions"]).matches(" 10").count()), (200, 4));
        kafka.kill(2);
        asked.join().expect("a thread of ours")
    });
    // Either the new leader was found in time, or it is said who did not answer; never a correction.
    match hanging.0 {
        200 => assert_in_range(&hanging),
        _ => {
            assert_eq!((hanging.0, text(&hanging.1["type"]).as_str()), (503, "/problems/broker-unavailable"));
            assert!(hanging.1["unknown"].to_string().contains("both"), "{}", hanging.1);
        }
    }
    wait_for("another leader", Duration::from_secs(30), || match kafka.leader("both", 0) {
        Some(1) => Ok(()),
        other => Err(other),
    });
    assert_in_range(&start(&http, &["both"]));

    // A partition without a leader: refused, named, with the brokers and the deadline.
    let (status, problem) = start(&http, &["both", "alone"]);
    assert_eq!((status, text(&problem["type"]).as_str()), (503, "/problems/broker-unavailable"), "{problem}");
    assert_eq!((&problem["unknown"][0]["topic"], &problem["unknown"][0]["partition"]), (&json!("alone"), &json!(1)));
    assert_eq!(problem["unknown"].as_array().map(Vec::len), Some(1), "{problem}");
    assert_eq!((&problem["deadline_ms"], text(&problem["brokers"])), (&json!(10_000), kafka.brokers()));
    // C26b: so it refuses a rollback of the whole group; the rest can go.
    let to = json!({ "to": { "offset": 5 } });
    let (status, plan) = http.post("/v1/groups/g/rollback/plan", &to);
    assert_eq!((status, &plan["executable"]), (200, &json!(false)), "{plan}");
    assert_eq!((&plan["refusals"][0]["topic"], &plan["refusals"][0]["outcome"]), (&json!("alone"), &json!("unknown")));
    assert_eq!(program.kinds("g"), kinds, "nothing was written");
    let to = json!({ "to": { "offset": 5 }, "leave_unmovable": true });
    let mut to = http.post("/v1/groups/g/rollback/plan", &to).1["execute"].clone();
    (to["actor"], to["reason"]) = ("test".into(), "the rest".into());
    let (status, done) = http.post("/v1/groups/g/rollback", &to);
    assert_eq!((status, done["partitions"].as_array().map(Vec::len)), (200, Some(3)), "{done}");
    assert_eq!(program.positions("g"), "alone/0 5, alone/1 10, both/0 5, both/1 5");

    kafka.revive(2);
    wait_for("a start with all leaders", Duration::from_secs(30), || match start(&http, &["both", "alone"]) {
        answer if answer.0 == 200 => {
            assert_in_range(&answer);
            Ok(())
        }
        (_, problem) => Err(problem),
    });
    assert_eq!(program.losses("g"), [""; 0]);
    assert_eq!(serve.terminate().code, 0);
}

fn a_consumer_waits_half_a_minute_and_goes_on(kafka: &TestKafka) {
    kafka.create_topic_on("wait-both", &[&[2, 1]], &[]);
    kafka.create_topic_on("wait-alone", &[&[2]], &[]);
    kafka.produce("wait-both", 0, 10);
    kafka.produce("wait-alone", 0, 10);
    let program = Program::new(&kafka.brokers());
    let flags = ["--max-wait", "100ms", "--discovery-interval", "1s", "--max-records", "7"];
    let mut consumer = program.spawn(&[&["consume", "-g", "g", "-t", "^wait-.*"], &flags[..]].concat());
    let mut seen = Vec::new();
    let mut read_to = |count: usize| {
        consumer.read_until(|line| {
            seen.push(record(line));
            seen.len() == count
        });
    };
    read_to(20);
    kafka.kill(2);
    let gone = Instant::now();
    wait_for("another leader", Duration::from_secs(30), || match kafka.leader("wait-both", 0) {
        Some(1) => Ok(()),
        other => Err(other),
    });
    // The one with a new leader is read on; the other one waits.
    kafka.produce("wait-both", 0, 10);
    read_to(30);
    // Half a minute without a leader: longer than every deadline of ours.
    std::thread::sleep(Duration::from_secs(30).saturating_sub(gone.elapsed()));
    kafka.revive(2);
    wait_for("its leader", Duration::from_secs(30), || kafka.leader("wait-alone", 0).ok_or("none"));
    kafka.produce("wait-alone", 0, 10);
    read_to(40);
    seen.sort();
    let expected = |topic: &'static str| (0..20).map(move |offset| format!("{topic}/0@{offset}"));
    let mut all: Vec<String> = expected("wait-both").chain(expected("wait-alone")).collect();
    all.sort();
    assert_eq!(seen, all, "each record once");
    let done = consumer.terminate();
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(program.positions("g"), "wait-alone/0 20, wait-both/0 20");
    let kinds = program.kinds("g");
    let corrections = kinds.iter().filter(|kind| *kind == "reconciled").count();
    assert_eq!((corrections, program.losses("g").len()), (1, 0), "first positions, and nothing else: {kinds:?}");
}
