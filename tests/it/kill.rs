//! A consumer that is killed between any two steps of read, sink and commit: with a sink that takes a record once,
//! nothing is missing and nothing counts twice.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::kafka::TestKafka;
use crate::program::{Program, records, text};

/// What the command of a batch does in each round, `$PPID` being the consumer.
const STEPS: [(&str, &str); 6] = [
    ("before the sink saw anything", "kill -9 $PPID; cat > /dev/null"),
    ("in the middle of the sink's write", "head -n 3 >> \"$SINK\"; kill -9 $PPID"),
    ("after the sink, before its exit", "cat >> \"$SINK\"; kill -9 $PPID"),
    ("right after the sink's exit", "cat >> \"$SINK\"; (kill -9 $PPID) &"),
    ("about when the commit is made", "cat >> \"$SINK\"; (sleep 0.002; kill -9 $PPID) &"),
    ("after some commits", "cat >> \"$SINK\"; (sleep 0.04; kill -9 $PPID) &"),
];

#[test]
fn killed_between_any_two_steps_nothing_is_missing_and_nothing_counts_twice() {
    let kafka = TestKafka::shared();
    let (program, topic) = (Program::new(&kafka.brokers()), kafka.unique("kill"));
    kafka.create_topic(&topic, 3, &[]);
    for partition in 0..3 {
        kafka.produce(&topic, partition, 200);
    }
    let sink = program.path("sink");
    std::fs::write(&sink, "").expect("a file");
    let words = ["consume", "-g", "g", "-t", &topic, "--until-latest", "--max-records", "7"];
    let mut kills = 0;
    for (step, script) in STEPS.iter().cycle().take(4 * STEPS.len()) {
        let mut command = program.command(&[&words[..], &["--", "sh", "-c", script]].concat());
        let output = command.env("SINK", &sink).output().expect("the program starts");
        // Killed, or done before the blow fell.
        assert!(matches!(output.status.code(), None | Some(0)), "killed {step}: {output:?}");
        kills += usize::from(output.status.code().is_none());
    }
    assert!(kills > STEPS.len(), "only {kills} of the blows fell");
    let last =
        program.command(&[&words[..], &["--", "sh", "-c", "cat >> \"$SINK\""]].concat()).env("SINK", &sink).output();
    assert!(last.expect("the program starts").status.success());

    let taken: Vec<String> = records(&std::fs::read_to_string(&sink).expect("the sink"));
    let once: BTreeSet<&String> = taken.iter().collect();
    let all: BTreeSet<String> =
        (0..3).flat_map(|p| (0..200).map(move |o| (p, o))).map(|(p, o)| format!("{topic}/{p}@{o}")).collect();
    assert_eq!(once, all.iter().collect());
    // The journal's batches tile each partition: no offset twice, none left out.
    let mut next = [0u64; 3];
    for batch in program.lines(&["history", "g", "--order", "asc", "--limit", "1000"]) {
        for range in batch["ranges"].as_array().expect("a list") {
            let place = &mut next[range["partition"].as_u64().expect("a number") as usize];
            let [from, until] =
                ["from_offset", "until_offset"].map(|name| text(&range[name]).parse::<u64>().expect("digits"));
            assert_eq!(from, *place, "{batch}");
            *place = until;
        }
    }
    assert_eq!(next, [200; 3]);
}

#[test]
fn an_idle_consumer_that_is_killed_frees_the_journal_for_the_next() {
    let kafka = TestKafka::shared();
    let (program, topic) = (Program::new(&kafka.brokers()), kafka.unique("idle"));
    kafka.create_topic(&topic, 1, &[]);
    kafka.produce(&topic, 0, 2);
    let mut running = program.spawn(&["consume", "-g", "g", "-t", &topic, "--max-wait", "50ms"]);
    let mut seen = 0;
    running.read_until(|_| {
        seen += 1;
        seen == 2
    });
    let told = program.fails(5, &["consume", "-g", "g", "-t", &topic, "--until-latest"]);
    assert!(told.contains("in use by"), "{told}");
    running.kill();
    let done = program.spawn(&["consume", "-g", "g", "-t", &topic, "--until-latest"]).finish(Duration::from_secs(30));
    assert_eq!(done.code, 0, "{done:#?}");
    // Whether the last batch was committed before the kill, or is read again: nothing is lost.
    assert_eq!(program.positions("g"), format!("{topic}/0 2"));
}
