//! `start` and `consume` by the built program, on librdkafka's mock cluster.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tidelog::kafka::mock::Mock;

use crate::kafka_mock::{at, name};
use crate::program::{Program, record, text};

/// A cluster with `orders` of these partitions and records in each, and a program with a new journal before it.
fn set_up(partitions: u16, records: usize) -> (Mock, Program) {
    let mock = Mock::new(1).expect("a mock starts");
    mock.create_topic(&name("orders"), partitions).expect("made");
    (0..partitions).for_each(|partition| produce(&mock, partition, records));
    let brokers = mock.config().brokers().to_owned();
    (mock, Program::new(&brokers))
}

fn produce(mock: &Mock, partition: u16, records: usize) {
    let values: Vec<String> = (0..records).map(|n| format!("value {n}")).collect();
    let records = values.iter().map(|value| (None, value.as_str()));
    mock.produce(&at("orders", u32::from(partition)), records).expect("produced");
}

const GROUP: [&str; 5] = ["consume", "-g", "g", "-t", "orders"];

#[test]
fn a_start_prints_where_and_says_that_it_made_a_journal() {
    let (_mock, program) = set_up(2, 10);
    let dry = program.run(&["start", "g", "-t", "orders", "--dry-run"]);
    assert_eq!(dry.code, 6, "{dry:?}");
    let done = program.run(&["start", "g", "-t", "orders"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.contains("made a new journal in"), "{done:?}");
    assert!(done.out.contains("orders") && done.out.contains("new_group"), "{done:?}");
    let start = program.json(&["start", "g", "-t", "orders", "--owner", "me"]);
    assert_eq!([&start["epoch"], &start["positions"][1]["readable_end"]].map(text), ["2", "10"]);
    let missing = program.fails(3, &["start", "h", "-t", "nowhere"]);
    assert!(missing.contains("topic_missing") && missing.contains("nowhere"), "{missing}");
}

#[test]
fn records_go_to_standard_output_until_the_ends_and_once() {
    let (mock, program) = set_up(2, 30);
    let out = program.ok(&[&GROUP[..], &["--until-latest"]].concat());
    assert_eq!(out.lines().count(), 60);
    let first: Value = serde_json::from_str(out.lines().next().expect("a line")).expect("JSON");
    assert!(first["timestamp"].is_string() && first["key"].is_null() && first["headers"] == Value::Array(vec![]));
    assert!(text(&first["value"]).starts_with("value "), "{first}");
    assert_eq!(program.positions("g"), "orders/0 30, orders/1 30");
    produce(&mock, 1, 2);
    assert_eq!(program.consume("g", &["-t", "orders"]), ["orders/1@30", "orders/1@31"]);
    assert_eq!(program.consume("g", &["-t", "orders"]), [""; 0]);
}

#[test]
fn a_command_gets_a_batch_on_its_input_and_what_it_is_in_its_environment() {
    let (_mock, program) = set_up(1, 25);
    let seen = program.path("seen");
    let script = format!(
        "echo \"$TIDELOG_GROUP $TIDELOG_APP $TIDELOG_BATCH $TIDELOG_EPOCH $TIDELOG_REPLAYING $TIDELOG_RANGES\" >> {0}; \
         test -n \"$TIDELOG_KEY\" -a -n \"$TIDELOG_BATCH_TIME\" && wc -l >> {0}",
        seen.display()
    );
    let words = ["--until-latest", "--max-records", "10", "--format", "raw", "--", "sh", "-c", &script];
    assert_eq!(program.ok(&[&GROUP[..], &words].concat()), "");
    let seen = std::fs::read_to_string(seen).expect("written");
    let lines: Vec<&str> = seen.lines().map(str::trim).collect();
    let range = |from, until| {
        format!(r#"[{{"topic":"orders","partition":0,"from_offset":"{from}","until_offset":"{until}"}}]"#)
    };
    let expected = [(1, 0, 10, "10"), (2, 10, 20, "10"), (3, 20, 25, "5")]
        .map(|(batch, from, until, count)| [format!("g default {batch} 1 0 {}", range(from, until)), count.to_owned()]);
    assert_eq!(lines, expected.concat());
    assert!(program.json(&["batch", "g", "1"])["key"].is_string(), "the journal knows the key that the command saw");
}

#[test]
fn a_command_that_fails_is_tried_again_and_then_given_up_with_9() {
    let (mock, program) = set_up(1, 5);
    let tries = program.path("tries");
    let script = format!("cat > /dev/null; echo >> {0}; test $(wc -l < {0}) -ge 3", tries.display());
    let words = ["--until-latest", "--retries", "1", "--", "sh", "-c", &script];
    let given_up = program.fails(9, &[&GROUP[..], &words].concat());
    assert!(given_up.contains("failed 2 times"), "{given_up}");
    assert_eq!(program.positions("g"), "orders/0 0");
    program.ok(&[&GROUP[..], &words].concat());
    assert_eq!(program.positions("g"), "orders/0 5");
    produce(&mock, 0, 1);
    let nowhere = program.fails(9, &[&GROUP[..], &["--", "/nowhere/at/all"]].concat());
    assert!(nowhere.contains("can't be run"), "{nowhere}");
}

#[test]
fn a_command_may_leave_its_input_unread() {
    let (mock, program) = set_up(1, 0);
    // Far more than a pipe holds.
    let value = "x".repeat(1_000);
    mock.produce(&at("orders", 0), (0..1_000).map(|_| (None, value.as_str()))).expect("produced");
    for (group, script) in [("closes", "exec 0<&-; sleep 0.1"), ("ignores", "true"), ("head", "head -n 1 > /dev/null")]
    {
        program.ok(&["consume", "-g", group, "-t", "orders", "--until-latest", "--", "sh", "-c", script]);
        assert_eq!(program.positions(group), "orders/0 1000");
    }
}

#[test]
fn sigterm_is_0_and_sigint_130_with_all_committed() {
    for (signal, code) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let (mock, program) = set_up(1, 20);
        let mut child = program
            .command(&[&GROUP[..], &["--max-wait", "50ms", "-v"]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("runs");
        let mut out = std::io::BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        while line.is_empty() || record(line.trim_end()) != "orders/0@19" {
            line.clear();
            std::io::BufRead::read_line(&mut out, &mut line).expect("text");
        }
        // The commit follows the flush at once; the signal must not come between.
        std::thread::sleep(Duration::from_millis(300));
        mock.set_broker(1, false).expect("down");
        let begun = Instant::now();
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let done = child.wait_with_output().expect("ends");
        assert_eq!(done.status.code(), Some(code), "{done:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert_eq!(program.positions("g"), "orders/0 20");
    }
}

#[test]
fn sigterm_lets_the_command_finish_its_batch() {
    let (_mock, program) = set_up(1, 5);
    let begun = program.path("begun");
    let script = format!("cat > /dev/null; touch {}; sleep 1", begun.display());
    let running = program.spawn(&[&GROUP[..], &["--", "sh", "-c", &script]].concat());
    crate::wait::wait_for("the command", crate::wait::DEADLINE, || begun.exists().then_some(()).ok_or("not yet"));
    let done = running.terminate();
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(program.positions("g"), "orders/0 5");
}

#[test]
fn sigterm_commits_no_batch_that_the_command_was_not_given_whole() {
    // More than a pipe holds.
    for (rest, position) in [("cat > /dev/null", 5_000), ("true", 0)] {
        let (_mock, program) = set_up(1, 5_000);
        let begun = program.path("begun");
        let script = format!("touch {}; sleep 1; {rest}", begun.display());
        let running = program.spawn(&[&GROUP[..], &["--", "sh", "-c", &script]].concat());
        crate::wait::wait_for("the command", crate::wait::DEADLINE, || begun.exists().then_some(()).ok_or("not yet"));
        let done = running.terminate();
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(program.positions("g"), format!("orders/0 {position}"), "{rest}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly_and_the_batch_is_not_committed() {
    let (mock, program) = set_up(1, 5_000);
    let binary = env!("CARGO_BIN_EXE_tidelog");
    let script = format!("{binary} -q consume -b \"$BROKERS\" -j \"$DIR\" -g g -t orders --until-latest | head -n 1");
    let brokers = mock.config().brokers().to_owned();
    let done = Command::new("bash")
        .args(["-o", "pipefail", "-c", &script])
        .env("BROKERS", brokers)
        .env("DIR", program.path("journal"))
        .output()
        .expect("runs");
    assert_eq!((done.status.code(), String::from_utf8_lossy(&done.stderr).as_ref()), (Some(0), ""));
    assert_eq!(program.positions("g"), "orders/0 0");
}

#[test]
fn nobody_at_the_brokers_address_is_7() {
    let program = Program::new("127.0.0.1:1");
    let begun = Instant::now();
    program.fails(7, &["start", "g", "-t", "orders"]);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}
