//! A rollback that reaches a running consumer from another process: a consumer in Rust, and one over HTTP in Python.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kafka::TestKafka;
use crate::program::{Http, Program, Running, record, text};
use crate::wait::wait_for;

fn set_up(name: &str, partitions: i32) -> (&'static TestKafka, Program, String) {
    let kafka = TestKafka::shared();
    let topic = kafka.unique(name);
    kafka.create_topic(&topic, partitions, &[]);
    (kafka, Program::new(&kafka.brokers()), topic)
}

/// Reads records up to and with this one; all of them.
fn records_until(consumer: &mut Running, last: &str) -> Vec<String> {
    let mut seen = Vec::new();
    consumer.read_until(|line| {
        seen.push(record(line));
        seen.last().is_some_and(|seen| seen == last)
    });
    seen
}

fn roll_back(program: &Program, batch: &str) -> Value {
    program.json(&["rollback", "g", "--to-batch", batch, "--before", "--execute", "--yes", "--reason", "sink lost it"])
}

#[test]
fn another_process_rolls_a_running_consume_back_and_watches() {
    let (kafka, program, topic) = set_up("live", 1);
    kafka.produce(&topic, 0, 30);
    let mut consumer =
        program.spawn(&["consume", "-g", "g", "-t", &topic, "--max-records", "10", "--max-wait", "100ms"]);
    records_until(&mut consumer, &format!("{topic}/0@29"));
    wait_for("three batches", Duration::from_secs(10), || match program.lines(&["history", "g"]).len() {
        3 => Ok(()),
        count => Err(count),
    });

    // The journal is held by the consumer: the command goes through it.
    let done = roll_back(&program, "2");
    assert_eq!((text(&done["epoch"]), text(&done["partitions"][0]["new"])), ("2".into(), "10".into()));
    let again = records_until(&mut consumer, &format!("{topic}/0@29"));
    let expected: Vec<String> = (10..30).map(|offset| format!("{topic}/0@{offset}")).collect();
    assert_eq!(again, expected, "from the new position on, each once");
    // An idle consumer moves too, and at once.
    let begun = Instant::now();
    roll_back(&program, "1");
    let again = records_until(&mut consumer, &format!("{topic}/0@29"));
    assert_eq!(again.len(), 30);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());

    assert_eq!(consumer.terminate().code, 0);
    // Without a holder the same command opens the journal itself.
    assert_eq!(program.positions("g"), format!("{topic}/0 30"));
    let kinds = program.kinds("g");
    assert_eq!(kinds.iter().filter(|kind| *kind == "rolled_back").count(), 2, "{kinds:?}");
}

#[test]
fn another_owner_stops_a_running_consume_by_name() {
    let (kafka, program, topic) = set_up("owner", 1);
    kafka.produce(&topic, 0, 5);
    let mut consumer = program.spawn(&["consume", "-g", "g", "-t", &topic, "--owner", "first"]);
    records_until(&mut consumer, &format!("{topic}/0@4"));
    let start = program.json(&["start", "g", "-t", &topic, "--owner", "second"]);
    assert_eq!(text(&start["epoch"]), "2");
    let done = consumer.finish(Duration::from_secs(10));
    assert_eq!(done.code, 4, "{done:?}");
    assert!(done.err.contains("second"), "{}", done.err);
}

/// The Python consumer, and what it tells.
struct Python(Running);

impl Python {
    fn spawn(url: &str, topic: &str) -> Python {
        let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/python/client.py");
        let mut python = Command::new("python3");
        python.arg(client).args([url, "g", "python@here:1", topic]);
        let child = python.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn();
        Python(Running::from(child.expect("python3 is installed")))
    }

    /// Reads on until an event satisfies `wanted`; that event.
    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut found = Value::Null;
        self.0.read_until(|line| {
            found = serde_json::from_str(line).expect("a JSON object a line");
            wanted(&found)
        });
        found
    }

    /// Until it has committed up to here.
    fn until_at(&mut self, at: &BTreeMap<String, i64>) {
        let at = serde_json::to_value(at).expect("a map of texts");
        self.until(|event| event["event"] == "committed" && event["at"] == at);
    }
}

#[test]
fn a_python_client_starts_commits_is_fenced_moves_and_goes_on() {
    let (kafka, program, topic) = set_up("python", 2);
    kafka.produce(&topic, 0, 100);
    kafka.produce(&topic, 1, 30);
    let address = crate::program::free_address();
    let serve = program.spawn(&["serve", "-b", &kafka.brokers(), "--listen", &address]);
    program.wait_served();
    let at = |p0: i64, p1: i64| BTreeMap::from([(format!("{topic}/0"), p0), (format!("{topic}/1"), p1)]);

    let mut python = Python::spawn(&format!("http://{address}"), &topic);
    let started = python.until(|event| event["event"] == "started");
    assert_eq!((&started["epoch"], &started["at"]), (&1.into(), &serde_json::to_value(at(0, 0)).unwrap()));
    python.until_at(&at(100, 30));

    // It is idle now: it learns by the long poll.
    roll_back(&program, "3");
    let moved = python.until(|event| event["event"] == "moved");
    assert_eq!((&moved["epoch"], &moved["at"]), (&2.into(), &serde_json::to_value(at(40, 30)).unwrap()));
    python.until_at(&at(100, 30));
    let shown = program.lines(&["groups"]);
    assert_eq!(text(&shown[0]["picked_up"]["epoch"]), "2");

    // Busy, with records that come all the time, it learns by the poll or by a refused commit: nothing is left out.
    kafka.produce(&topic, 0, 400);
    python.until(|event| event["event"] == "committed");
    roll_back(&program, "1");
    let moved = python.until(|event| event["event"] == "moved");
    assert_eq!((&moved["epoch"], &moved["at"]), (&3.into(), &serde_json::to_value(at(0, 0)).unwrap()));
    python.until_at(&at(500, 30));
    assert_eq!(program.positions("g"), format!("{topic}/0 500, {topic}/1 30"));
    assert_eq!(program.losses("g"), [""; 0]);

    // Another owner: it stops, and names it.
    program.json(&["start", "g", "-t", &topic, "--owner", "other@here:2"]);
    let stopped = python.until(|event| event["event"] == "stopped");
    assert_eq!(stopped["owner"], "other@here:2");
    assert_eq!(python.0.finish(Duration::from_secs(10)).code, 0);
    assert_eq!(serve.terminate().code, 0);
}

#[test]
fn growth_is_reported_and_a_start_by_the_same_owner_takes_it_in() {
    let (kafka, program, topic) = set_up("growth", 1);
    kafka.produce(&topic, 0, 5);
    let address = crate::program::free_address();
    let words = ["serve", "-b", &kafka.brokers(), "--listen", &address, "--discovery-interval", "200ms"];
    let serve = program.spawn(&words);
    program.wait_served();
    let http = Http::new(&address);
    let start = json!({ "topics": [format!("^{topic}.*")], "owner": "one" });
    let (status, started) = http.post("/v1/groups/g/start", &start);
    assert_eq!((status, &started["epoch"]), (200, &json!("1")), "{started}");

    let late = format!("{topic}-late");
    kafka.grow(&topic, 2);
    kafka.create_topic(&late, 1, &[]);
    kafka.produce(&topic, 1, 7);
    let grown = json!([{ "topic": topic, "partition": 1 }, { "topic": late, "partition": 0 }]);
    wait_for("growth", Duration::from_secs(10), || match http.get("/v1/groups/g").1["growth"].clone() {
        growth if growth == grown => Ok(()),
        other => Err(other),
    });
    // Only reported: the positions are as they were.
    assert_eq!(program.positions("g"), format!("{topic}/0 0"));
    let (_, started) = http.post("/v1/groups/g/start", &start);
    assert_eq!((&started["epoch"], started["findings"].as_array().map(Vec::len)), (&json!("1"), Some(2)), "{started}");
    assert_eq!(program.positions("g"), format!("{topic}/0 0, {topic}/1 0, {late}/0 0"));
    assert_eq!(http.get("/v1/groups/g").1["growth"], json!([]));
    assert_eq!(serve.terminate().code, 0);
}
