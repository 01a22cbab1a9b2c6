//! That the harness gives what it says: a test that rests on it could not tell.

use std::env;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use rdkafka::message::{Headers, Message};

use crate::kafka::{Options, Record, TestKafka};
use crate::wait::{DEADLINE, wait_for};

#[test]
fn a_topic_starts_at_zero_and_grows() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("grows");
    assert!(!kafka.has_topic(&topic));
    kafka.create_topic(&topic, 2, &[]);
    assert_eq!(kafka.produce(&topic, 1, 10), 0..10);
    assert_eq!(kafka.produce_bytes(&topic, 1, 3, 500_000), 10..13);
    assert_eq!([0, 1].map(|p| kafka.watermarks(&topic, p)), [(0, 0), (0, 13)]);
    kafka.grow(&topic, 4);
    assert_eq!(kafka.watermarks(&topic, 3), (0, 0));
    assert!(kafka.has_topic(&topic));
}

#[test]
fn a_recreated_topic_has_another_id_and_starts_at_zero() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("recreated");
    kafka.create_topic(&topic, 2, &[]);
    kafka.produce(&topic, 0, 7);
    let first = kafka.topic_id(&topic);
    kafka.recreate_topic(&topic, 1, &[]);
    assert_ne!(kafka.topic_id(&topic), first);
    assert_eq!(kafka.watermarks(&topic, 0), (0, 0));
    assert_eq!(kafka.produce(&topic, 0, 3), 0..3);
    kafka.delete_topic(&topic);
    assert!(!kafka.has_topic(&topic));
}

#[test]
fn records_are_deleted_from_the_head_or_expire() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("expires");
    kafka.create_topic(&topic, 1, &[]);
    kafka.produce(&topic, 0, 400);
    kafka.delete_records(&topic, 0, 250);
    assert_eq!(kafka.watermarks(&topic, 0), (250, 400));
    assert_eq!(kafka.readable(&topic, 0), (250..400).collect::<Vec<_>>());
    kafka.expire(&topic, 1);
    assert_eq!(kafka.watermarks(&topic, 0), (400, 400));
    assert_eq!(kafka.produce(&topic, 0, 1), 400..401);
    // Longer than the broker's check for what has expired.
    kafka.tool("org.apache.kafka.tools.TopicCommand", &["--describe", "--topic", &topic]);
    assert_eq!(kafka.watermarks(&topic, 0), (400, 401));
}

#[test]
fn a_transaction_leaves_a_marker() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("transactions");
    kafka.create_topic(&topic, 1, &[]);

    let mut committed = kafka.begin(&kafka.unique("id"));
    assert_eq!(committed.produce(&topic, 0, 5), 0..5);
    committed.commit();
    assert_eq!((kafka.watermarks(&topic, 0), kafka.last_stable(&topic, 0)), ((0, 6), 6));

    let mut aborted = kafka.begin(&kafka.unique("id"));
    assert_eq!(aborted.produce(&topic, 0, 3), 6..9);
    aborted.abort();
    assert_eq!((kafka.watermarks(&topic, 0), kafka.last_stable(&topic, 0)), ((0, 10), 10));

    let mut open = kafka.begin(&kafka.unique("id"));
    assert_eq!(open.produce(&topic, 0, 7), 10..17);
    drop(open);
    assert_eq!((kafka.watermarks(&topic, 0), kafka.last_stable(&topic, 0)), ((0, 17), 10));
    assert_eq!(kafka.readable(&topic, 0), [0, 1, 2, 3, 4]);
}

#[test]
fn records_come_back_as_they_were_sent() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("records");
    kafka.create_topic(&topic, 1, &[]);
    let sent = Record {
        timestamp: Some(1_600_000_000_000),
        headers: vec![("trace".to_owned(), b"\xff".to_vec())],
        ..Record::keyed("k", "v")
    };
    kafka.send_with(&[("compression.type", "zstd")], &topic, 0, &[sent]);
    kafka.send(&topic, 0, &[Record { key: Some(b"k".to_vec()), ..Record::default() }]);
    let read = kafka.read(&topic, 0);
    assert_eq!((read[0].key(), read[0].payload()), (Some(&b"k"[..]), Some(&b"v"[..])));
    assert_eq!(read[0].timestamp().to_millis(), Some(1_600_000_000_000));
    let header = read[0].headers().expect("a header was sent").get(0);
    assert_eq!((header.key, header.value), ("trace", Some(&b"\xff"[..])));
    assert_eq!((read[1].offset(), read[1].payload()), (1, None));
}

#[test]
fn compaction_leaves_the_newest_of_each_key() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("compacted");
    kafka.create_topic(&topic, 1, &[("cleanup.policy", "compact")]);
    let records = ["a", "a", "a", "b", "a", "b", "a", "a", "c"].map(|key| Record::keyed(key, "v"));
    kafka.send(&topic, 0, &records);
    assert_eq!(kafka.compact(&topic, 0), [5, 7, 8]);
    assert_eq!(kafka.watermarks(&topic, 0).0, 0);
}

#[test]
fn a_setting_stays_when_another_is_made() {
    let kafka = TestKafka::shared();
    let topic = kafka.unique("settings");
    kafka.create_topic(&topic, 1, &[("retention.ms", "600000")]);
    kafka.set_config(&topic, &[("segment.bytes", "2000000")]);
    let text = kafka.tool("org.apache.kafka.tools.TopicCommand", &["--describe", "--topic", &topic]);
    assert!(text.contains("retention.ms=600000") && text.contains("segment.bytes=2000000"), "{text}");
}

#[test]
fn a_group_has_members_and_committed_offsets() {
    const GROUPS: &str = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand";
    let kafka = TestKafka::shared();
    let topic = kafka.unique("grouped");
    kafka.create_topic(&topic, 1, &[]);
    kafka.produce(&topic, 0, 5);
    for protocol in ["classic", "consumer"] {
        let group = kafka.unique("a/b %20 \u{2603}");
        assert_eq!(kafka.committed(&group, &topic, 0), None);
        kafka.commit(&group, &topic, 0, 3);
        assert_eq!(kafka.committed(&group, &topic, 0), Some(3));
        let member = kafka.join(&group, &topic, protocol);
        let text = kafka.tool(GROUPS, &["--describe", "--members", "--group", &group]);
        assert!(text.contains("harness-member"), "{protocol}: {text}");
        drop(member);
        kafka.delete_group(&group);
        assert_eq!(kafka.committed(&group, &topic, 0), None);
    }
}

#[test]
fn a_killed_broker_comes_back_with_its_data() {
    let kafka = TestKafka::start(Options::default());
    kafka.create_topic("t", 1, &[]);
    kafka.produce("t", 0, 10);
    let (brokers, id) = (kafka.brokers(), kafka.topic_id("t"));
    kafka.kill(1);
    assert!(TcpStream::connect(&brokers).is_err());
    kafka.revive(1);
    assert_eq!((kafka.brokers(), kafka.topic_id("t")), (brokers, id));
    assert_eq!(kafka.produce("t", 0, 1), 10..11);
    assert_ne!(kafka.cluster_id(), TestKafka::shared().cluster_id());
}

#[test]
fn a_frozen_broker_takes_connections_and_says_nothing() {
    let kafka = TestKafka::start(Options { config: &[("num.partitions", "3")], ..Options::default() });
    kafka.freeze(1);
    let connection = TcpStream::connect(kafka.brokers()).expect("the kernel takes the connection");
    drop(connection);
    kafka.thaw(1);
    let auto_create = [("allow.auto.create.topics", "true")];
    assert_eq!(kafka.send_with(&auto_create, "t", 2, &[Record::new("v")]), 0..1);
}

#[test]
fn a_rewound_log_is_shorter_under_the_same_id() {
    let kafka = TestKafka::start(Options::default());
    kafka.create_topic("t", 1, &[]);
    kafka.produce("t", 0, 10);
    let saved = kafka.save();
    kafka.produce("t", 0, 10);
    let id = kafka.topic_id("t");
    kafka.rewind(&saved);
    assert_eq!((kafka.watermarks("t", 0), kafka.topic_id("t")), ((0, 10), id));
}

#[test]
fn with_two_brokers_leaders_move_or_are_missing() {
    let kafka = TestKafka::start(Options { nodes: 2, ..Options::default() });
    kafka.create_topic_on("alone", &[&[1], &[2]], &[]);
    kafka.create_topic_on("both", &[&[2, 1]], &[]);
    kafka.produce("both", 0, 5);
    assert_eq!((kafka.leader("alone", 1), kafka.leader("both", 0)), (Some(2), Some(2)));
    kafka.kill(2);
    wait_for("the other leader", DEADLINE, || match [kafka.leader("alone", 1), kafka.leader("both", 0)] {
        [None, Some(1)] => Ok(()),
        leaders => Err(leaders),
    });
    assert_eq!(kafka.watermarks("both", 0), (0, 5));
    kafka.revive(2);
    wait_for("the leader back", DEADLINE, || match kafka.leader("alone", 1) {
        Some(2) => Ok(()),
        leader => Err(leader),
    });
}

/// Runs itself again as the process that is killed.
#[test]
fn a_killed_test_process_takes_its_brokers_along() {
    const CHILD: &str = "TIDELOG_TEST_CHILD";
    if env::var_os(CHILD).is_some() {
        let kafka = TestKafka::start(Options::default());
        println!("\nbrokers={}", kafka.brokers());
        loop {
            std::thread::park();
        }
    }
    let mut child = Command::new(env::current_exe().expect("a test has an executable"))
        .args(["--exact", "kafka_harness::a_killed_test_process_takes_its_brokers_along", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("this executable runs");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
    let brokers = lines.find_map(|line| line.strip_prefix("brokers=").map(str::to_owned)).expect("it starts a broker");
    TcpStream::connect(&brokers).expect("its broker is there");
    child.kill().and_then(|()| child.wait()).expect("a child can be killed");
    wait_for("the broker gone", Duration::from_secs(5), || match TcpStream::connect(&brokers) {
        Ok(_) => Err("it still takes connections"),
        Err(_) => Ok(()),
    });
}
