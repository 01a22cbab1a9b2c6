//! Kafka's committed offsets, on a real broker: they follow the journal, and are set as part of a rollback.

use std::time::Duration;

use serde_json::{Value, json};
use tidelog::control::import::{Import, SeenOnBroker, import};
use tidelog::control::{Control, StartRequest, execute, start};
use tidelog::journal::{Journal, Options};
use tidelog::offset::Group;
use tidelog::rollback::{PlanRequest, Target};

use crate::cli_terminal::typed;
use crate::kafka::TestKafka;
use crate::kafka_mock::{at, clock, offset};
use crate::program::{Http, Program, findings, free_address, text};
use crate::wait::{DEADLINE, wait_for};

/// Kafka's tool.
const GROUPS: &str = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand";

/// A broker, the program with a journal of its own, a topic and a group that nobody else has.
fn set_up(name: &str, partitions: i32) -> (&'static TestKafka, Program, String, String) {
    let kafka = TestKafka::shared();
    let (topic, group) = (kafka.unique(name), kafka.unique(&format!("{name}-group")));
    kafka.create_topic(&topic, partitions, &[]);
    (kafka, Program::new(&kafka.brokers()), topic, group)
}

/// `topic partition current-offset log-end-offset lag`, as Kafka's own tool prints them.
fn described(kafka: &TestKafka, group: &str) -> Vec<String> {
    let out = kafka.tool(GROUPS, &["--describe", "--group", group]);
    let rows = out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows = rows.filter(|row| row.first() == Some(&group));
    let mut rows: Vec<_> = rows.map(|row| row[1..6].join(" ")).collect();
    rows.sort();
    rows
}

fn roll_back<'a>(group: &'a str, target: &[&'a str]) -> Vec<&'a str> {
    let execute = ["--execute", "--yes", "--reason", "sink lost it"];
    [&["rollback", group], target, &execute].concat()
}

/// C04, with what Kafka holds: 10, 0, 10.
#[test]
fn kafkas_own_tool_sees_what_the_journal_says() {
    let (kafka, program, topic, group) = set_up("follows", 2);
    kafka.produce(&topic, 0, 10);
    kafka.produce(&topic, 1, 4);
    program.consume(&group, &["-t", &topic]);
    assert_eq!(program.positions(&group), format!("{topic}/0 10, {topic}/1 4"));
    assert_eq!(described(kafka, &group), [format!("{topic} 0 10 10 0"), format!("{topic} 1 4 4 0")]);

    // A rollback without --kafka is followed like a commit, also by a process that does nothing else.
    program.ok(&roll_back(&group, &["--to-batch", "1", "--before"]));
    assert_eq!(described(kafka, &group), [format!("{topic} 0 0 10 10"), format!("{topic} 1 0 4 4")]);
    // With it, what Kafka holds is read back and part of the answer.
    let done = program.json(&roll_back(&group, &["--to-batch", "1", "--after", "--kafka"]));
    assert_eq!(text(&done["kafka"]["state"]), "done", "{done}");
    assert_eq!((text(&done["kafka"]["of"]), text(&done["kafka"]["kafka_group"])), (text(&done["seq"]), group.clone()));
    let set: Vec<_> =
        done["kafka"]["partitions"].as_array().expect("a list").iter().map(|p| text(&p["offset"])).collect();
    assert_eq!(set, ["10", "4"]);
    assert_eq!(described(kafka, &group), [format!("{topic} 0 10 10 0"), format!("{topic} 1 4 4 0")]);
    let entries = program.lines(&["entries", &group]);
    let kinds: Vec<_> = entries.iter().take(2).map(|entry| text(&entry["kind"])).collect();
    assert_eq!(kinds, ["kafka_result", "rolled_back"], "newest first");
    assert_eq!(
        (text(&entries[1]["kafka"]), &entries[0]["partitions"]),
        ("pending".into(), &done["kafka"]["partitions"])
    );
    // A person is asked about it also where nothing moves.
    let again =
        ["rollback", &group, "-b", &kafka.brokers(), "--to-batch", "1", "--kafka", "--execute", "--reason", "x"];
    let asked = typed(&program, &again, &[], "n\n");
    let told = ["Nothing moves: ", "Kafka's committed offsets are set too", "Do this?", "declined"];
    assert!(told.iter().all(|words| asked.contains(words)), "{asked}");
}

/// C03a, for both protocols.
#[test]
fn a_group_with_live_members_is_not_rolled_back_with_kafka() {
    for protocol in ["classic", "consumer"] {
        let (kafka, program, topic, group) = set_up("members", 1);
        kafka.produce(&topic, 0, 10);
        program.consume(&group, &["-t", &topic]);
        let member = kafka.join(&group, &topic, protocol);
        let before = program.lines(&["entries", &group]).len();
        let kafka_too = ["--to-offset", "5", "--kafka"];
        let err = program.fails(4, &[&["rollback", &group], &kafka_too[..]].concat());
        assert!(err.contains("harness-member") && err.contains("45 s"), "{protocol}: {err}");
        let err = program.fails(4, &roll_back(&group, &kafka_too));
        assert!(err.contains("harness-member"), "{protocol}: {err}");
        // Also where the group is already.
        let err = program.fails(4, &roll_back(&group, &["--to-offset", "10", "--kafka", "--hold"]));
        assert!(err.contains("harness-member"), "{protocol}: {err}");
        assert_eq!(program.lines(&["entries", &group]).len(), before, "nothing is journaled");
        assert_eq!(kafka.committed(&group, &topic, 0), Some(10));

        // Without --kafka it moves; that Kafka does not follow is a warning.
        let done = program.run(&roll_back(&group, &["--to-offset", "5"]));
        assert_eq!(done.code, 0, "{done:?}");
        assert!(done.err.contains("live members"), "{protocol}: {}", done.err);
        assert_eq!(kafka.committed(&group, &topic, 0), Some(10));
        let seq = text(&program.lines(&["entries", &group])[0]["seq"]);
        let err = program.fails(4, &["rollback", &group, "--repeat-kafka", &seq]);
        assert!(err.contains("harness-member"), "{protocol}: {err}");
        drop(member);
        // The tool that left the group may still be known for a moment.
        wait_for("no members", DEADLINE, || {
            let done = program.run(&["rollback", &group, "--repeat-kafka", &seq]);
            if done.code == 0 { Ok(()) } else { Err(done.err) }
        });
        assert_eq!(kafka.committed(&group, &topic, 0), Some(5), "{protocol}");
        let entries = program.lines(&["entries", &group]);
        let set = |entry: &&Value| entry["kind"] == "kafka_result" && entry["partitions"][0]["error"].is_null();
        assert_eq!(entries.iter().filter(set).count(), 1, "{entries:?}");
        let err = program.fails(2, &["rollback", &group, "--repeat-kafka", "1"]);
        assert!(err.contains("no rollback"), "{err}");
        let err = program.fails(8, &["rollback", "nobody", "--repeat-kafka", &seq]);
        assert!(err.contains("no group nobody"), "{err}");
        program.consume("other", &["-t", &topic, "--kafka-group", "none"]);
        let err = program.fails(2, &["rollback", "other", "--repeat-kafka", &seq]);
        assert!(err.contains("no entry of group other"), "{err}");
    }
}

/// C06: the journal alone decides; Kafka learns it again.
#[test]
fn a_group_that_kafka_has_forgotten_goes_on_where_the_journal_says() {
    let (kafka, program, topic, group) = set_up("forgotten", 1);
    kafka.produce(&topic, 0, 500);
    program.consume(&group, &["-t", &topic]);
    assert_eq!(kafka.committed(&group, &topic, 0), Some(500));
    kafka.delete_group(&group);
    assert_eq!(kafka.committed(&group, &topic, 0), None);
    kafka.produce(&topic, 0, 20);
    let again = program.consume(&group, &["-t", &topic]);
    assert_eq!(again.first().map(String::as_str), Some(format!("{topic}/0@500").as_str()));
    assert_eq!((again.len(), kafka.committed(&group, &topic, 0)), (20, Some(520)));
}

#[test]
fn a_new_group_begins_where_the_kafka_group_stands_and_another_app_names_its_own() {
    let (kafka, program, topic, group) = set_up("begins", 1);
    kafka.produce(&topic, 0, 10);
    kafka.commit(&group, &topic, 0, 7);
    let mirror = kafka.unique("lag");
    kafka.commit(&mirror, &topic, 0, 4);
    let of_app = |more: &[&str]| {
        let words = ["consume", "-g", &group, "--app", "etl", "-t", &topic, "--until-latest", "--new-group", "kafka"];
        program.run(&[&words[..], more].concat())
    };
    let done = of_app(&["--kafka-group", &mirror]);
    assert_eq!((done.code, crate::program::records(&done.out).len()), (0, 6), "from 4: {done:?}");
    assert_eq!((kafka.committed(&mirror, &topic, 0), kafka.committed(&group, &topic, 0)), (Some(10), Some(7)));

    // The same Kafka group for another group is refused, and nothing is made.
    let err = program.fails(2, &["consume", "-g", "other", "-t", &topic, "--until-latest", "--kafka-group", &mirror]);
    assert!(err.contains("etl") && err.contains("another Kafka group, or none"), "{err}");
    assert_eq!(program.lines(&["groups"]).len(), 1);
    // The group's own name in the default app.
    program.consume(&group, &["-t", &topic, "--new-group", "kafka"]);
    assert_eq!(kafka.committed(&group, &topic, 0), Some(10));
    let one = program.lines(&["history", &group]);
    assert_eq!(text(&one[0]["ranges"][0]["from_offset"]), "7", "{one:?}");
    // And none at all.
    kafka.produce(&topic, 0, 5);
    program.consume(&group, &["-t", &topic, "--kafka-group", "none"]);
    assert_eq!(kafka.committed(&group, &topic, 0), Some(10));
    let err = program.fails(2, &["rollback", &group, "--to-offset", "1", "--kafka"]);
    assert!(err.contains("no Kafka group follows"), "{err}");
}

/// An older copy of the journal is put back: it is said, and nothing is chosen by it.
#[test]
fn a_journal_that_is_behind_kafka_says_so() {
    let (kafka, program, topic, group) = set_up("behind", 1);
    kafka.produce(&topic, 0, 10);
    program.consume(&group, &["-t", &topic]);
    kafka.commit(&group, &topic, 0, 10);
    kafka.produce(&topic, 0, 10);
    kafka.commit(&group, &topic, 0, 17);
    let start = program.json(&["start", &group, "-t", &topic, "--dry-run"]);
    let found = findings(&start);
    assert!(found.len() == 1 && found[0].contains("behind_kafka"), "{start}");
    assert_eq!(text(&start["positions"][0]["offset"]), "10");
    assert!(start["findings"][0]["detail"].as_str().is_some_and(|detail| detail.contains("17")), "{start}");
}

/// Over HTTP: the server that holds the journal has Kafka follow, and tells how that goes.
#[test]
fn a_server_has_kafka_follow_and_sets_it_again_by_the_rollbacks_seq() {
    let (kafka, program, topic, group) = set_up("served", 1);
    kafka.produce(&topic, 0, 50);
    let address = free_address();
    let server = program.spawn(&["serve", "-b", &kafka.brokers(), "--listen", &address]);
    program.wait_served();
    let http = Http::new(&address);
    let path = |rest: &str| format!("/v1/groups/{group}{rest}");
    let (status, started) = http.post(&path("/start"), &json!({"topics": [topic], "owner": "o"}));
    assert_eq!(status, 200, "{started}");
    let commit = |from: u64, until: u64, epoch: &Value| {
        let range = json!({"topic": topic, "partition": 0, "from_offset": from, "until_offset": until});
        http.post(&path("/batches"), &json!({"epoch": epoch, "batch_time": "2026-11-30T10:00:00Z", "ranges": [range]}))
    };
    for (from, until) in [(0, 10), (10, 20), (20, 30)] {
        assert_eq!(commit(from, until, &started["epoch"]).0, 201);
    }
    let held = |wanted: i64| {
        wait_for("Kafka's committed offset", DEADLINE, || match kafka.committed(&group, &topic, 0) {
            Some(held) if held == wanted => Ok(()),
            other => Err(other),
        });
    };
    held(30);
    let (_, one) = http.get(&path(""));
    assert_eq!((text(&one["kafka_group"]), &one["mirror"]["error"]), (group.clone(), &Value::Null), "{one}");
    assert!(one["mirror"]["written_at"].is_string(), "{one}");

    let to = json!({"to": {"batch": 2, "edge": "before"}, "kafka": true});
    let (status, plan) = http.post(&path("/rollback/plan"), &to);
    assert_eq!((status, &plan["members"]), (200, &json!([])), "{plan}");
    let mut order = plan["execute"].clone();
    (order["actor"], order["reason"]) = ("ann".into(), "why".into());
    let (status, done) = http.post(&path("/rollback"), &order);
    assert_eq!((status, text(&done["kafka"]["state"])), (200, "done".into()), "{done}");
    assert_eq!(kafka.committed(&group, &topic, 0), Some(10));
    // The lost reply: the same receipt, with what came of it.
    let (status, again) = http.post(&path("/rollback"), &order);
    assert_eq!((status, &again["repeated"], &again["kafka"]), (200, &json!(true), &done["kafka"]), "{again}");

    // Somebody else changes it; the seq sets it again, to where the group is by now.
    assert_eq!(commit(10, 15, &done["epoch"]).0, 201);
    held(15);
    kafka.commit(&group, &topic, 0, 44);
    let seq = text(&done["seq"]);
    let (status, set) = http.post(&format!("/v1/rollbacks/{seq}/kafka"), &json!({}));
    assert_eq!((status, text(&set["state"]), text(&set["partitions"][0]["offset"])), (200, "done".into(), "15".into()));
    assert_eq!(kafka.committed(&group, &topic, 0), Some(15));
    for (path, body, status, wanted) in [
        ("/v1/rollbacks/1/kafka", json!({}), 400, "no rollback"),
        ("/v1/rollbacks/999/kafka", json!({}), 400, "no rollback"),
        ("/v1/rollbacks/x/kafka", json!({}), 400, "seq"),
        (&*format!("/v1/rollbacks/{seq}/kafka"), json!({"offsets": []}), 400, "offsets"),
    ] {
        let (got, problem) = http.post(path, &body);
        assert_eq!(got, status, "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(wanted)), "{problem}");
    }
    let member = kafka.join(&group, &topic, "classic");
    let (status, problem) = http.post(&format!("/v1/rollbacks/{seq}/kafka"), &json!({}));
    assert_eq!((status, text(&problem["type"])), (409, "/problems/group-active".into()), "{problem}");
    assert_eq!(text(&problem["members"][0]["client_id"]), "harness-member");
    // A commit is taken whatever Kafka says to its offsets, and the group tells that it does not follow.
    assert_eq!(commit(15, 20, &done["epoch"]).0, 201);
    wait_for("the mirror's error", DEADLINE, || {
        let one = http.get(&path("")).1;
        if one["mirror"]["error"].as_str().is_some_and(|error| error.contains("live members")) {
            Ok(())
        } else {
            Err(one)
        }
    });
    drop(member);
    held(20);
    assert_eq!(server.terminate().code, 0);
}

/// Kafka is gone: commits go on, the end is within its bound, and what was not told is told by the next process.
#[test]
fn a_broker_that_is_gone_fails_no_commit() {
    let kafka = TestKafka::start(crate::kafka::Options::default());
    let (topic, group) = ("gone", "gone-group");
    kafka.create_topic(topic, 1, &[]);
    kafka.produce(topic, 0, 10);
    let program = Program::new(&kafka.brokers());
    let address = free_address();
    let server = program.spawn(&["serve", "-b", &kafka.brokers(), "--listen", &address]);
    program.wait_served();
    let http = Http::new(&address);
    let (status, started) = http.post("/v1/groups/gone-group/start", &json!({"topics": [topic], "owner": "o"}));
    assert_eq!(status, 200, "{started}");
    kafka.freeze(1);
    let range = json!({"topic": topic, "partition": 0, "from_offset": 0, "until_offset": 10});
    let body = json!({"epoch": started["epoch"], "batch_time": "2026-11-30T10:00:00Z", "ranges": [range]});
    assert_eq!(http.post("/v1/groups/gone-group/batches", &body).0, 201);
    let begun = std::time::Instant::now();
    assert_eq!(server.terminate().code, 0);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    kafka.thaw(1);
    let start = program.json(&["start", group, "-t", topic, "--owner", "p"]);
    assert_eq!(text(&start["positions"][0]["offset"]), "10");
    wait_for("Kafka's committed offset", DEADLINE, || match kafka.committed(group, topic, 0) {
        Some(10) => Ok(()),
        other => Err(other),
    });
}

/// Nobody listens where the broker should be: no word of another cluster, which is what a new client knew before.
#[test]
fn a_broker_that_is_never_reached_is_unavailable() {
    let address = free_address();
    let program = Program::new(&address);
    let options = Options { create: true, ..Options::new(clock()) };
    let journal = Journal::open(&program.path("journal"), options).expect("a new journal");
    let control = Control::new(journal.clone(), None, clock());
    let group = Group::new("default", "g").expect("legal");
    let seen =
        SeenOnBroker { cluster_id: Some("5L6g3nShT-eMCtK--X86sw".to_owned()), topic_ids: [].into(), ends: [].into() };
    let offsets = [(at("orders", 0), offset(50))].into();
    import(&journal, Import { group: group.clone(), source: "a test".to_owned(), offsets, seen: Some(seen) })
        .expect("a new group");
    start(&control, StartRequest::new(group.clone(), Vec::new(), "o")).expect("nobody is in the way");
    let back = PlanRequest { unchecked: true, ..PlanRequest::new(group, Target::Offset(offset(5))) };
    let seq = execute(&control, back, None, "ann", "why").expect("executable").seq.expect("it moved").to_string();
    drop(control);
    journal.close().expect("closed");
    let err = program.fails(7, &["rollback", "g", "--repeat-kafka", &seq]);
    assert!(err.contains(&format!("no answer from {address} within 10s")), "{err}");
    assert!(err.contains("Connection refused"), "{err}");
}
