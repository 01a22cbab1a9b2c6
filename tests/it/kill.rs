//! A consumer that is killed between any two steps of read, sink and commit: with a sink that takes a record once,
//! nothing is missing and nothing counts twice.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use crate::kafka::TestKafka;
use crate::program::{Program, record, text};

/// Where the sink is, for the command of a batch.
const SINK: &str = "TIDELOG_TEST_SINK";

/// What the command of a batch does in each round, `$PPID` being the consumer; whether all that it brings into the
/// sink stays uncommitted, and so must come again.
const STEPS: [(&str, &str, bool); 6] = [
    ("before the sink saw anything", "kill -9 $PPID; cat > /dev/null", false),
    ("in the middle of the sink's write", "head -n 3 | sink; kill -9 $PPID", true),
    ("after the sink, before its exit", "sink; kill -9 $PPID", true),
    ("right after the sink's exit", "sink || exit; (kill -9 $PPID) &", false),
    ("about when the commit is made", "sink || exit; (sleep 0.002; kill -9 $PPID) &", false),
    ("after some commits", "sink || exit; (sleep 0.04; kill -9 $PPID) &", false),
];

/// The sink: takes the records on standard input whose offset is above the last one that it has of their partition, and
/// counts the others. What it knows is what it holds; one at a time writes.
fn sink(dir: &Path) {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).expect("text");
    let open = |name| OpenOptions::new().create(true).read(true).append(true).open(dir.join(name)).expect("a file");
    let (mut rows, mut repeats): (File, File) = (open("rows"), open("repeats"));
    rows.lock().expect("a lock");
    let mut held = String::new();
    rows.read_to_string(&mut held).expect("text");
    let mut last: BTreeMap<String, u64> = held.lines().map(split).collect();
    // A line that was cut short is a record that was not got.
    for line in input.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let row = record(line);
        let (partition, offset) = split(&row);
        let repeated = last.get(&partition).is_some_and(|last| offset <= *last);
        writeln!(if repeated { &mut repeats } else { &mut rows }, "{row}").expect("written");
        last.entry(partition).and_modify(|last| *last = offset.max(*last)).or_insert(offset);
    }
}

/// The partition and the offset of `topic/partition@offset`.
fn split(row: &str) -> (String, u64) {
    let (partition, offset) = row.split_once('@').expect("a row");
    (partition.to_owned(), offset.parse().expect("digits"))
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn killed_between_any_two_steps_nothing_is_missing_and_nothing_counts_twice() {
    if let Some(dir) = std::env::var_os(SINK) {
        return sink(Path::new(&dir));
    }
    const TEST: &str = "kill::killed_between_any_two_steps_nothing_is_missing_and_nothing_counts_twice";
    let kafka = TestKafka::shared();
    let (program, topic) = (Program::new(&kafka.brokers()), kafka.unique("kill"));
    kafka.create_topic(&topic, 3, &[]);
    for partition in 0..3 {
        kafka.produce(&topic, partition, 200);
    }
    let dir = program.path("sink");
    std::fs::create_dir(&dir).expect("a folder");
    let (rows, repeats) = (dir.join("rows"), dir.join("repeats"));
    let this = std::env::current_exe().expect("the test binary");
    let run = |script: &str| {
        let script = format!("sink() {{ {this:?} {TEST} --exact --nocapture >&2; }}; {script}");
        let words = ["consume", "-g", "g", "-t", &topic, "--until-latest", "--max-records", "7", "--", "sh", "-c"];
        // It ends when all that holds its output has: the sinks that outlive a consumer too.
        program.command(&[&words[..], &[&script]].concat()).env(SINK, &dir).output().expect("the program starts")
    };
    let (mut kills, mut owed) = (0, Vec::new());
    for (step, script, leaves) in STEPS.iter().cycle().take(4 * STEPS.len()) {
        let before = lines(&rows).len();
        let output = run(script);
        // Killed, or done before the blow fell.
        assert!(matches!(output.status.code(), None | Some(0)), "killed {step}: {output:?}");
        kills += usize::from(output.status.code().is_none());
        if *leaves {
            owed.extend(lines(&rows).split_off(before));
        }
    }
    assert!(kills > STEPS.len(), "only {kills} of the blows fell");
    let last = run("sink");
    assert!(last.status.success(), "{last:?}");

    let mut taken = lines(&rows);
    taken.sort();
    let produced = (0..3).flat_map(|partition| (0..200).map(move |offset| (partition, offset)));
    let mut produced: Vec<String> = produced.map(|(p, o)| format!("{topic}/{p}@{o}")).collect();
    produced.sort();
    assert_eq!(taken, produced, "each record once in the sink");
    // Without records that came again, the sink would have had nothing to leave out.
    let repeats = lines(&repeats);
    println!("{kills} kills, {} records came again, {} of them for certain", repeats.len(), owed.len());
    assert!(owed.len() > STEPS.len(), "only {owed:?} were in the sink and not committed");
    assert!(owed.iter().all(|row| repeats.contains(row)), "{owed:?} were not committed, only {repeats:?} came again");
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
