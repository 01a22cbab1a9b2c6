//! The main job on a real broker, by the built program: what the mock cluster cannot do.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kafka::{Options, Record, TestKafka};
use crate::program::{Program, findings, record, starts, text};

fn numbered(topic: &str, partition: u32, offsets: std::ops::Range<i64>) -> Vec<String> {
    offsets.map(|offset| format!("{topic}/{partition}@{offset}")).collect()
}

/// A topic with `partitions`, a group of the same name, and a program with a new journal.
fn set_up(name: &str, partitions: i32) -> (&'static TestKafka, Program, String) {
    let kafka = TestKafka::shared();
    let topic = kafka.unique(name);
    kafka.create_topic(&topic, partitions, &[]);
    (kafka, Program::new(&kafka.brokers()), topic)
}

#[test]
fn c01_expired_head() {
    let (kafka, program, topic) = set_up("c01", 2);
    kafka.produce(&topic, 0, 100);
    kafka.produce(&topic, 1, 50);
    assert_eq!(program.consume("g", &["-t", &topic]).len(), 150);
    kafka.produce(&topic, 0, 300);
    kafka.delete_records(&topic, 0, 250);

    let dry = program.json(&["start", "g", "-t", &topic, "--dry-run"]);
    assert_eq!(findings(&dry), [format!("{topic}/0 head_out_of_range 100 -> 250")]);
    assert_eq!(program.positions("g"), format!("{topic}/0 100, {topic}/1 50"));

    assert_eq!(program.consume("g", &["-t", &topic]), numbered(&topic, 0, 250..400));
    assert_eq!(program.losses("g"), [format!("{topic}/0 [100,250) expired")]);
    assert_eq!(program.positions("g"), format!("{topic}/0 400, {topic}/1 50"));

    // Everything expired: earliest is latest.
    kafka.produce(&topic, 0, 100);
    kafka.delete_records(&topic, 0, 500);
    let start = program.json(&["start", "g", "-t", &topic]);
    assert_eq!(findings(&start), [format!("{topic}/0 head_out_of_range 400 -> 500")]);
    let again = program.json(&["start", "g", "-t", &topic]);
    assert_eq!(findings(&again), [""; 0], "a correction happens once");
}

#[test]
fn c02_recreated_topic_also_grown_past_the_stored_offset() {
    let (kafka, program, topic) = set_up("c02", 1);
    kafka.produce(&topic, 0, 20);
    program.consume("g", &["-t", &topic]);
    for records in [5, 0, 50] {
        kafka.recreate_topic(&topic, 1, &[]);
        kafka.produce(&topic, 0, records);
        let before = program.kinds("g").len();
        let read = program.consume("g", &["-t", &topic]);
        assert_eq!(read, numbered(&topic, 0, 0..records as i64), "all of the new topic, none left out");
        assert!(program.kinds("g")[before..].contains(&"reconciled".to_owned()));
        assert_eq!(program.positions("g"), format!("{topic}/0 {records}"));
    }
    // The old history stays readable and is no target.
    let first = program.json(&["batch", "g", "1"]);
    assert_eq!(text(&first["ranges"][0]["until_offset"]), "20");
    let refused = program.fails(3, &["rollback", "g", "--to-batch", "1", "--before"]);
    assert!(refused.contains("deleted and created again"), "{refused}");
}

#[test]
fn c04_after_and_before_a_batch() {
    let (kafka, program, topic) = set_up("c04", 1);
    kafka.produce(&topic, 0, 10);
    assert_eq!(program.consume("g", &["-t", &topic]), numbered(&topic, 0, 0..10));
    kafka.produce(&topic, 0, 1);
    assert_eq!(program.consume("g", &["-t", &topic]), numbered(&topic, 0, 10..11));
    let roll = |edge| {
        program.ok(&["rollback", "g", "--to-batch", "1", edge, "--execute", "--yes", "--reason", "a test"]);
    };
    roll("--before");
    assert_eq!(program.consume("g", &["-t", &topic]), numbered(&topic, 0, 0..11));
    roll("--after");
    assert_eq!(program.positions("g"), format!("{topic}/0 10"));
    assert_eq!(program.consume("g", &["-t", &topic]), numbered(&topic, 0, 10..11));
    program.ok(&["rollback", "g", "--undo", "--execute", "--yes", "--reason", "a test"]);
    assert_eq!(program.positions("g"), format!("{topic}/0 11"));
}

#[test]
fn c05_growth_between_runs_starts_at_its_earliest() {
    let (kafka, program, topic) = set_up("c05", 2);
    kafka.produce(&topic, 0, 3);
    program.consume("g", &["-t", &topic]);
    kafka.grow(&topic, 4);
    kafka.produce(&topic, 2, 37);
    kafka.produce(&topic, 3, 40);
    kafka.delete_records(&topic, 3, 12);
    // Never latest, whatever the policy for a new group says.
    let read = program.consume("g", &["-t", &topic, "--new-group", "latest"]);
    let mut expected = numbered(&topic, 2, 0..37);
    expected.extend(numbered(&topic, 3, 12..40));
    let mut read = read;
    read.sort_by_key(|record| expected.iter().position(|other| other == record));
    assert_eq!(read, expected);
    assert_eq!(program.losses("g"), [format!("{topic}/3 [0,12) expired")]);
}

#[test]
fn c07_markers_aborted_records_and_compaction_leave_no_hole_and_no_lag() {
    let (kafka, program, topic) = set_up("c07", 1);
    let id = kafka.unique("c07-tx");
    let mut committed = kafka.begin(&id);
    committed.produce(&topic, 0, 5);
    committed.commit();
    assert_eq!(program.consume("g", &["-t", &topic]), numbered(&topic, 0, 0..5));
    assert_eq!(program.positions("g"), format!("{topic}/0 6"), "past the marker");
    let mut aborted = kafka.begin(&id);
    aborted.produce(&topic, 0, 3);
    aborted.abort();
    assert_eq!(program.consume("g", &["-t", &topic]), [""; 0]);
    kafka.produce(&topic, 0, 1);
    let read = program.consume("g", &["-t", &topic]);
    assert_eq!(read, numbered(&topic, 0, 10..11), "3 aborted records and 2 markers are no records");
    assert_eq!(program.losses("g"), [""; 0]);
    program.ok(&["rollback", "g", "--to-offset", "5", "--execute", "--yes", "--reason", "a test"]);
    assert_eq!(program.consume("g", &["-t", &topic]), numbered(&topic, 0, 10..11), "5 is a marker");
}

#[test]
fn c12_a_policy_of_fail_refuses_the_same_each_time() {
    let (kafka, program, topic) = set_up("c12", 1);
    kafka.produce(&topic, 0, 100);
    program.consume("g", &["-t", &topic]);
    kafka.produce(&topic, 0, 100);
    kafka.delete_records(&topic, 0, 150);
    let before = program.kinds("g");
    let refuse = || program.fails(3, &["start", "g", "-t", &topic, "--reset-head", "fail"]);
    let refused = [refuse(), refuse(), refuse()];
    assert!(refused[0].contains("head_out_of_range") && refused[0].contains("150"), "{}", refused[0]);
    assert!(refused[1] == refused[0] && refused[2] == refused[0], "{refused:#?}");
    assert_eq!(program.kinds("g"), before, "nothing is written");
    for _ in 0..3 {
        program.ok(&["start", "g", "-t", &topic]);
    }
    let reconciled = |kinds: Vec<String>| kinds.iter().filter(|kind| *kind == "reconciled").count();
    assert_eq!(reconciled(program.kinds("g")), reconciled(before) + 1);
}

#[test]
fn c12b_an_open_transaction_is_no_lost_tail() {
    let (kafka, program, topic) = set_up("c12b", 1);
    kafka.produce(&topic, 0, 10);
    let mut open = kafka.begin(&kafka.unique("c12b-tx"));
    open.produce(&topic, 0, 7);
    let all = ["-t", &topic, "--isolation", "read_uncommitted"];
    assert_eq!(program.consume("all", &all), numbered(&topic, 0, 0..17));
    let start = program.json(&["start", "all", "-t", &topic]);
    assert_eq!((findings(&start), starts(&start["positions"])), (vec![], format!("{topic}/0 17")));
    // A committed reader ends at the last stable offset, and does not wait for the transaction.
    assert_eq!(program.consume("committed", &["-t", &topic]), numbered(&topic, 0, 0..10));
    let start = program.json(&["start", "committed", "-t", &topic]);
    let position = &start["positions"][0];
    let ends = ["offset", "readable_end", "latest"].map(|name| text(&position[name]));
    assert_eq!(ends, ["10", "10", "17"]);
    open.commit();
}

#[test]
fn c15b_a_topic_recreated_under_a_running_reader_is_read_whole() {
    let (kafka, program, topic) = set_up("c15b", 1);
    kafka.produce(&topic, 0, 500);
    let mut running = program.spawn(&["consume", "-g", "g", "-t", &topic, "--discovery-interval", "500ms"]);
    let last = format!("{topic}/0@499");
    running.read_until(|line| record(line) == last);
    kafka.recreate_topic(&topic, 1, &[]);
    kafka.produce(&topic, 0, 800);
    // Records of the new topic may be read under the old id for a moment, but never instead of being read under the new.
    let mut seen = std::collections::BTreeSet::new();
    running.read_until(|line| {
        seen.insert(record(line));
        seen.len() == 800
    });
    assert!(numbered(&topic, 0, 0..800).iter().all(|record| seen.contains(record)));
    let done = running.terminate();
    assert_eq!(done.code, 0, "{done:#?}");
    assert_eq!(program.positions("g"), format!("{topic}/0 800"));
}

#[test]
fn c16_sigterm_ends_within_bounds_with_the_broker_gone() {
    let kafka = TestKafka::start(Options::default());
    let program = Program::new(&kafka.brokers());
    kafka.create_topic("orders", 1, &[]);
    kafka.produce("orders", 0, 10);
    let mut running = program.spawn(&["consume", "-g", "g", "-t", "orders", "--max-wait", "100ms"]);
    running.read_until(|line| record(line) == "orders/0@9");
    kafka.kill(1);
    let begun = Instant::now();
    let done = running.terminate();
    assert!(done.code == 0 && begun.elapsed() < Duration::from_secs(10), "{done:#?}");
    assert_eq!(program.positions("g"), "orders/0 10");
    // Nobody is there: said so, within the deadline, and not taken for a fact.
    let begun = Instant::now();
    program.fails(7, &["start", "g", "-t", "orders"]);
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(program.positions("g"), "orders/0 10");
    kafka.revive(1);
    assert_eq!(findings(&program.json(&["start", "g", "-t", "orders"])), [""; 0]);
}

#[test]
fn c17_a_deleted_topic_is_missing_and_never_made() {
    let (kafka, program, topic) = set_up("c17", 1);
    kafka.produce(&topic, 0, 10);
    program.consume("g", &["-t", &topic]);
    kafka.delete_topic(&topic);
    let refused = program.fails(3, &["start", "g", "-t", &topic]);
    assert!(refused.contains("topic_missing") && refused.contains(&topic), "{refused}");
    program.fails(3, &["rollback", "g", "--to-earliest"]);
    assert_eq!(program.positions("g"), format!("{topic}/0 10"));
    assert!(!kafka.has_topic(&topic), "nobody made it");
}

#[test]
fn c18_a_pattern_takes_in_new_topics_and_growth_while_running() {
    let kafka = TestKafka::shared();
    let (program, prefix) = (Program::new(&kafka.brokers()), kafka.unique("c18"));
    let (first, second) = (format!("{prefix}.orders"), format!("{prefix}.orders2"));
    kafka.create_topic(&first, 1, &[]);
    kafka.produce(&first, 0, 3);
    let pattern = format!("^{prefix}\\.ord.*");
    let words = ["consume", "-g", "g", "-t", &pattern, "--discovery-interval", "1s", "--max-wait", "100ms"];
    let mut running = program.spawn(&words);
    let last = format!("{first}/0@2");
    running.read_until(|line| record(line) == last);
    kafka.create_topic(&second, 1, &[]);
    kafka.produce(&second, 0, 10);
    kafka.grow(&first, 2);
    kafka.produce(&first, 1, 5);
    let mut expected = numbered(&second, 0, 0..10);
    expected.extend(numbered(&first, 1, 0..5));
    let begun = Instant::now();
    running.read_until(|line| {
        expected.retain(|record_left| *record_left != record(line));
        expected.is_empty()
    });
    assert!(begun.elapsed() < Duration::from_secs(6), "within two intervals, and some");
    let done = running.terminate();
    assert_eq!(done.code, 0, "{done:#?}");
    assert_eq!(program.positions("g"), format!("{first}/0 3, {first}/1 5, {second}/0 10"));
    assert!(program.kinds("g").contains(&"partitions_added".to_owned()));

    let off = program.run(&["consume", "-g", "g", "-t", &pattern, "--discovery-interval", "0", "--until-latest"]);
    assert!(off.err.contains("off"), "{}", off.err);
}

#[test]
fn a_compacted_topic_is_in_range_below_its_first_readable_record() {
    let (kafka, program, _) = set_up("unused", 1);
    let topic = kafka.unique("compacted");
    kafka.create_topic(&topic, 1, &[("cleanup.policy", "compact")]);
    let first: Vec<Record> = (0..10).map(|n| Record::keyed(format!("k{}", n % 3), format!("v{n}"))).collect();
    kafka.send(&topic, 0, &first);
    let readable = kafka.compact(&topic, 0);
    assert!(readable.first().is_some_and(|offset| *offset > 3), "{readable:?}");
    program.ok(&["start", "g", "-t", &topic]);
    program.ok(&["rollback", "g", "--to-offset", "3", "--execute", "--yes", "--reason", "a test"]);
    let start = program.json(&["start", "g", "-t", &topic]);
    assert_eq!((findings(&start), starts(&start["positions"])), (vec![], format!("{topic}/0 3")));
    let read = program.consume("g", &["-t", &topic]);
    // Fillers of the harness follow what compaction left.
    let expected: Vec<String> = kafka.readable(&topic, 0).iter().map(|offset| format!("{topic}/0@{offset}")).collect();
    assert_eq!(read, expected);
    assert_eq!(program.losses("g"), [format!("{topic}/0 [0,3) skipped")], "by the operator, who moved past them");
}

#[test]
fn c08_commit_times_on_a_real_journal() {
    let (kafka, program, topic) = set_up("c08", 1);
    kafka.produce(&topic, 0, 100);
    program.consume("g", &["-t", &topic]);
    let first = program.json(&["batch", "g", "1"]);
    let recorded = text(&first["recorded_at"]);
    kafka.produce(&topic, 0, 80);
    program.consume("g", &["-t", &topic]);
    let plan = program.json(&["rollback", "g", "--to-commit-time", &recorded]);
    let partition = &plan["partitions"][0];
    assert_eq!([&partition["position"], &partition["start"]].map(text), ["180", "100"]);
    for future in ["2099-01-01T00:00:00Z", "2098-01-01T00:00:00+02:00"] {
        let plan: Value = program.json(&["rollback", "g", "--to-commit-time", future]);
        assert_eq!(text(&plan["totals"]["replayed"]), "0", "{plan}");
    }
    let early = program.fails(8, &["rollback", "g", "--to-commit-time", "2001-01-01T00:00:00Z"]);
    assert!(early.contains(&recorded), "names the oldest: {early}");
    let no_zone = program.fails(2, &["rollback", "g", "--to-commit-time", "2026-11-30T10:00:00"]);
    assert!(no_zone.contains("zone"), "{no_zone}");
    assert_eq!(program.positions("g"), format!("{topic}/0 180"));
}

#[test]
fn a_rollback_by_the_records_own_time() {
    let (kafka, program, topic) = set_up("times", 2);
    let at = |time: &str| Some(time.parse::<tidelog::offset::Timestamp>().expect("legal").millis());
    let record = |time: &str| Record { timestamp: at(time), ..Record::new("x") };
    let hours = ["2026-11-30T06:00:00Z", "2026-11-30T07:00:00Z", "2026-11-30T08:00:00Z"];
    kafka.send(&topic, 0, &hours.map(record));
    kafka.send(&topic, 1, &hours.map(record)[..2]);
    program.consume("g", &["-t", &topic]);
    let plan = |to: &[&str]| {
        let plan = program.json(&[&["rollback", "g", "--allow-clamp"], to].concat());
        let show = |p: &Value| format!("{} {}", text(&p["start"]), text(&p["outcome"]));
        plan["partitions"].as_array().expect("a list").iter().map(show).collect::<Vec<_>>()
    };
    assert_eq!(plan(&["--to-datetime", "2026-11-30T06:30:00Z"]), ["1 exact", "1 exact"]);
    // After the last record of a partition: its end.
    assert_eq!(plan(&["--to-datetime", "2026-11-30T09:30:00+02:00"]), ["2 exact", "2 beyond_end"]);
    // All records are younger than a century.
    assert_eq!(plan(&["--by-duration", "P36500D"]), ["0 exact", "0 exact"]);
    let wrong = program.fails(2, &["rollback", "g", "--by-duration", "2h"]);
    assert!(wrong.contains("P1DT2H"), "{wrong}");
    program.ok(&[
        "rollback",
        "g",
        "--topic",
        &format!("{topic}:0"),
        "--to-datetime",
        hours[1],
        "--execute",
        "--yes",
        "--reason",
        "a test",
    ]);
    assert_eq!(program.positions("g"), format!("{topic}/0 1, {topic}/1 2"));
}
