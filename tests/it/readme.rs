//! The README's commands do what it says: each is run as it stands there, in that order, against a real broker.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::kafka::{Options, TestKafka};
use crate::program::{Running, free_address};
use crate::wait::wait_for;

/// The lines of all blocks of shell.
fn commands() -> Vec<String> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("there is a README");
    let blocks = text.split("```sh\n").skip(1).map(|block| block.split("```").next().expect("split gives one"));
    blocks.flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// A line to be run in `dir`, with our `tidelog` in its path.
fn shell(line: &str, dir: &Path) -> Command {
    let ours = Path::new(env!("CARGO_BIN_EXE_tidelog")).parent().expect("a file is in a directory");
    let path = std::env::var("PATH").expect("there is a path");
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(dir).env("PATH", format!("{}:{path}", ours.display()));
    command.env_remove("TIDELOG_JOURNAL").env_remove("TIDELOG_BROKERS");
    command
}

/// Runs a line to its end, which must be well; returns what it printed.
fn run(line: &str, dir: &Path) -> String {
    let done = shell(line, dir).output().expect("sh can be run");
    let [out, err] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert!(done.status.success(), "{line}: {}\n{out}{err}", done.status);
    out
}

#[test]
fn each_command_of_the_readme_works() {
    let kafka = TestKafka::start(Options::default());
    kafka.create_topic("orders", 2, &[]);
    kafka.create_topic("payments", 1, &[]);
    kafka.produce("orders", 1, 1_000);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let consume = format!("tidelog consume -b {} -g loader -t orders --until-latest", kafka.brokers());

    let mut printed = String::new();
    let address = free_address();
    let mut server: Option<Running> = None;
    for line in commands() {
        // The two commands for the checkout itself are CI's.
        if line.starts_with("cargo ") || line.starts_with("tests/run") {
            continue;
        }
        let plan = printed.split_whitespace().find(|word| word.starts_with("p-")).unwrap_or("no-plan");
        let line = line
            .replace("localhost:9092", &kafka.brokers())
            .replace("tidelog consume ", "tidelog consume --until-latest ")
            .replace("tidelog serve ", &format!("exec tidelog serve --listen {address} "))
            .replace("localhost:8380", &address)
            .replace("wait=30s", "wait=1s")
            .replace("p-9f3c", plan);
        if line.contains("tidelog serve ") {
            let mut command = shell(&line, dir.path());
            server = Some(Running::from(command.spawn().expect("sh can be run")));
            let note = dir.path().join("tidelog-journal/server.json");
            wait_for("server.json", Duration::from_secs(10), || fs::metadata(&note).map(drop));
            continue;
        }
        if line.contains("tidelog mark") {
            // From here on by commands that open the journal themselves.
            let server = server.take().expect("the README serves before it marks");
            assert_eq!(server.terminate().code, 0);
        }
        printed = run(&line, dir.path());
        assert!(!printed.contains("/problems/"), "{line}: {printed}");
        match line.split_whitespace().nth(1) {
            Some("consume") => {
                let records = fs::read_to_string(dir.path().join("orders.jsonl")).expect("the command wrote it");
                assert_eq!(records.lines().count(), 1_000);
            }
            Some("mark") => {
                kafka.produce("orders", 0, 10);
                assert_eq!(run(&consume, dir.path()).lines().count(), 10);
            }
            _ => {}
        }
    }
    assert_eq!(run(&consume, dir.path()).lines().count(), 10 + 500, "rolled back, and to what was taken over");
}
