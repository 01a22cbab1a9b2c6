//! Offsets to Kafka's own tool and back, and a new group from a file, on a real broker.

use std::fs;

use serde_json::Value;

use crate::kafka::TestKafka;
use crate::program::{Program, findings, starts, text};

const GROUPS: &str = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand";

/// Rows as a set: Kafka's tool writes them in no particular order.
fn rows(csv: &str) -> Vec<&str> {
    let mut rows: Vec<&str> = csv.lines().filter(|line| !line.is_empty()).collect();
    rows.sort_unstable();
    rows
}

/// Three partitions of two topics, read to their ends; offsets in Kafka at 1 each. The group's name needs quotes.
fn set_up(kafka: &'static TestKafka) -> (Program, String, [String; 2]) {
    let topics = ["csv-a", "csv.b_with-a-name-of-more-than-24-bytes"].map(|name| kafka.unique(name));
    let group = kafka.unique("say \"x\", loader");
    let program = Program::new(&kafka.brokers());
    for (topic, partitions) in topics.iter().zip([2, 1]) {
        kafka.create_topic(topic, partitions, &[]);
        for partition in 0..partitions {
            kafka.produce(topic, partition, 10);
            kafka.commit(&group, topic, partition, 1);
        }
    }
    // What Kafka holds stays: it is what Kafka's tool writes and reads here.
    let alone = ["-t", &topics[0], "-t", &topics[1], "--kafka-group", "none"];
    assert_eq!(program.consume(&group, &alone).len(), 30);
    (program, group, topics)
}

#[test]
fn kafkas_tool_reads_what_is_exported() {
    let kafka = TestKafka::shared();
    let (program, group, [a, b]) = set_up(kafka);
    let to = ["rollback", &group, "--to-offset", "4", "--topic", &format!("{a}:0"), "--export"];
    assert_eq!(program.ok(&to), format!("{a},0,4\n"));
    // Where it is already is in the plan too.
    let csv = program.ok(&["rollback", &group, "--shift-by", "-3", "--export"]);
    assert_eq!(rows(&csv), [format!("{a},0,7"), format!("{a},1,7"), format!("{b},0,7")]);
    let file = program.path("offsets.csv");
    fs::write(&file, &csv).expect("a file can be written");
    let file = file.to_str().expect("UTF-8");
    let words = ["--group", &group, "--reset-offsets", "--from-file", file];
    kafka.tool(GROUPS, &[&words[..], &["--execute"]].concat());
    let committed = [(&a, 0), (&a, 1), (&b, 0)].map(|(topic, partition)| kafka.committed(&group, topic, partition));
    assert_eq!(committed, [Some(7); 3]);
    // Positions are in that form too.
    fs::write(file, program.ok(&["positions", &group, "-o", "csv"])).expect("a file can be written");
    kafka.tool(GROUPS, &[&words[..], &["--execute"]].concat());
    assert_eq!(kafka.committed(&group, &b, 0), Some(10));
}

#[test]
fn what_kafkas_tool_exports_is_a_target() {
    let kafka = TestKafka::shared();
    let (program, group, [a, b]) = set_up(kafka);
    let one = ["--group", &group, "--reset-offsets", "--all-topics", "--to-current", "--export", "--dry-run"];
    let exported = kafka.tool(GROUPS, &one);
    fs::write(program.path("one.csv"), &exported).expect("a file can be written");
    let from = |file: &str| ["rollback", &group, "--from-file", file].map(str::to_owned);
    let run = |file: &str, more: &[&str]| {
        let words = from(file);
        program.run(&words.iter().map(String::as_str).chain(more.iter().copied()).collect::<Vec<_>>())
    };
    let done = run("one.csv", &["-o", "json"]);
    let plan: Value = serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {exported} {done:?}"));
    let starts = plan["partitions"].as_array().expect("a list").iter().map(|p| text(&p["start"]));
    assert_eq!(starts.collect::<Vec<_>>(), ["1", "1", "1"], "{exported}");
    // Our own form of the same is the same file, but for quotes that need not be.
    let back = run("one.csv", &["--export"]).out;
    let plain = exported.replace('"', "");
    assert_eq!(rows(&back), rows(&plain));

    // Several groups: the group comes first, in quotes.
    let other = kafka.unique("other");
    kafka.commit(&other, &a, 0, 2);
    let two = ["--group", &group, "--group", &other, "--reset-offsets", "--all-topics", "--to-current", "--export"];
    let exported = kafka.tool(GROUPS, &[&two[..], &["--dry-run"]].concat());
    assert!(exported.contains(&format!("\"{}\",", group.replace('"', "\"\""))), "{exported}");
    fs::write(program.path("two.csv"), &exported).expect("a file can be written");
    let done = run("two.csv", &["--execute", "--yes", "--reason", "a test"]);
    assert!(done.code == 0 && done.err.contains("1 rows of other groups are left out"), "{done:?}");
    assert_eq!(program.positions(&group), format!("{a}/0 1, {a}/1 1, {b}/0 1"));

    // And a new group, in a journal of its own.
    let new = Program::new(&kafka.brokers());
    fs::write(new.path("two.csv"), &exported).expect("a file can be written");
    let import = new.run(&["import", "--positions", "two.csv", &group, "-b", &kafka.brokers()]);
    assert_eq!(import.code, 0, "{import:?}");
    assert_eq!(new.positions(&group), program.positions(&group));
}

#[test]
fn what_has_no_target_is_not_exported() {
    let kafka = TestKafka::shared();
    let (program, group, [a, b]) = set_up(kafka);
    kafka.recreate_topic(&b, 1, &[]);
    program.ok(&["start", &group, "-t", &a, "-t", &b]);
    let to = ["rollback", &group, "--to-batch", "1", "--export"];
    let refused = program.run(&to);
    assert!(refused.code == 3 && refused.out.is_empty(), "nothing half done: {refused:?}");
    let left = program.run(&[&to[..], &["--leave-unmovable"]].concat());
    assert_eq!(rows(&left.out).iter().filter(|row| row.starts_with(&a)).count(), 2, "{left:?}");
    assert!(left.code == 0 && !left.out.contains(&b), "{left:?}");
    assert!(left.err.contains(&format!("{b}/0 is left out: it is recreated")), "{left:?}");
}

#[test]
fn an_imported_group_starts_where_the_file_says() {
    let kafka = TestKafka::shared();
    let (program, topic) = (Program::new(&kafka.brokers()), kafka.unique("imported"));
    kafka.create_topic(&topic, 3, &[]);
    for partition in 0..3 {
        kafka.produce(&topic, partition, 10);
    }
    kafka.delete_records(&topic, 1, 5);
    let import = |rows: &str, more: &[&str]| {
        fs::write(program.path("offsets.csv"), rows).expect("a file can be written");
        let words = ["import", "--positions", "offsets.csv", "g", "-b", &kafka.brokers()];
        program.run(&[&words, more].concat())
    };
    let unknown = import(&format!("{topic},0,4\n{topic},7,0\nno-such-topic,0,0\n"), &[]);
    assert_eq!(unknown.code, 8, "{unknown:?}");
    assert!(unknown.err.contains(&format!("{topic}/7")) && unknown.err.contains("no-such-topic"), "{}", unknown.err);
    assert!(!program.path("journal").exists() && !kafka.has_topic("no-such-topic"));
    let done = import(&format!("{topic},0,4\n{topic},1,2\n"), &[]);
    assert!(done.code == 0 && done.err.contains("1 positions are outside of their logs"), "{done:?}");
    let entry = &program.lines(&["entries", "g"])[0];
    assert_eq!(text(&entry["topics"][0]["topic_id"]), kafka.topic_id(&topic), "{entry}");
    // The start corrects what can't stay, and takes the partition in that the file did not name.
    let start = program.json(&["start", "g", "-t", &topic]);
    let expected = [format!("{topic}/1 head_out_of_range 2 -> 5"), format!("{topic}/2 partition_added - -> 0")];
    assert_eq!(findings(&start), expected);
    assert_eq!(starts(&start["positions"]), format!("{topic}/0 4, {topic}/1 5, {topic}/2 0"));
    assert_eq!(text(&start["epoch"]), "1");
    assert_eq!(program.kinds("g"), ["imported", "started", "reconciled", "partitions_added"]);

    let silent = program.fails(7, &["import", "--positions", "offsets.csv", "other", "-b", "127.0.0.1:1"]);
    assert!(silent.contains("127.0.0.1:1"), "{silent}");
}
