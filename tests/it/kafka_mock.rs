//! Looks and consumers on librdkafka's mock cluster: no Java, milliseconds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tidelog::broker::{Ask, Broker, Look, Seen, TopicSelector, Untold};
use tidelog::journal::Clock;
use tidelog::kafka::KafkaBroker;
use tidelog::kafka::mock::{Fault, Mock, Request};
use tidelog::offset::{Isolation, Offset, Timestamp, TopicName, TopicPartition};

pub fn clock() -> Clock {
    Arc::new(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        Timestamp::from_millis(i64::try_from(now.as_millis()).expect("before the year 9999"))
    })
}

pub fn name(topic: &str) -> TopicName {
    topic.parse().expect("a legal name")
}

pub fn at(topic: &str, partition: u32) -> TopicPartition {
    TopicPartition::new(name(topic), partition)
}

pub fn offset(number: i64) -> Offset {
    Offset::new(number).expect("not negative")
}

pub fn ask(topics: &[&str], deadline: Duration) -> Ask {
    let topics: Vec<TopicSelector> = topics.iter().map(|topic| topic.parse().expect("legal")).collect();
    Ask { topics, isolation: Isolation::ReadCommitted, deadline }
}

/// One line a topic and partition, without ids.
pub fn shown(look: &Look) -> String {
    let mut lines = Vec::new();
    let offset = |seen: &Seen<Offset>| match seen {
        Seen::Known(offset) => offset.to_string(),
        Seen::Absent => "absent".to_owned(),
        Seen::Failed(_) => "failed".to_owned(),
    };
    for (name, topic) in &look.topics {
        match &topic.partitions {
            Seen::Known(partitions) => {
                for (number, p) in partitions {
                    let (earliest, latest, end) = (offset(&p.earliest), offset(&p.latest), offset(&p.readable_end));
                    lines.push(format!("{name}/{number} {earliest}..{latest} readable {end}"));
                }
            }
            Seen::Absent => lines.push(format!("{name} absent")),
            Seen::Failed(_) => lines.push(format!("{name} failed")),
        }
    }
    lines.join("\n")
}

fn mock_with(topics: &[(&str, u16, usize)]) -> Mock {
    let mock = Mock::new(1).expect("a mock starts");
    for (topic, partitions, records) in topics {
        mock.create_topic(&name(topic), *partitions).expect("made");
        let values: Vec<String> = (0..*records).map(|n| n.to_string()).collect();
        for partition in 0..*partitions {
            let records = values.iter().map(|value| (None, value.as_str()));
            mock.produce(&at(topic, u32::from(partition)), records).expect("produced");
        }
    }
    mock
}

#[test]
fn a_look_holds_each_value_of_topics_by_name_and_by_pattern() {
    let mock = mock_with(&[("orders", 2, 5), ("orders-old", 1, 0), ("other", 1, 3)]);
    let broker = KafkaBroker::new(&mock.config(), clock()).expect("a client");
    let begun = Instant::now();
    let look = broker.look(&ask(&["orders", "missing"], Duration::from_secs(10)));
    println!("first look {:?}", begun.elapsed());
    assert_eq!(shown(&look), "missing absent\norders/0 0..5 readable 5\norders/1 0..5 readable 5");
    assert!(matches!(&look.cluster_id, Seen::Known(id) if id.starts_with("mockCluster")), "{look:?}");
    assert!(matches!(look.topics[&name("orders")].id, Seen::Known(_)), "{look:?}");

    let begun = Instant::now();
    let look = broker.look(&ask(&["^ord.*", "other"], Duration::from_secs(10)));
    println!("second look {:?}", begun.elapsed());
    let seen =
        "orders/0 0..5 readable 5\norders/1 0..5 readable 5\norders-old/0 0..0 readable 0\nother/0 0..3 readable 3";
    assert_eq!(shown(&look), seen);
    // Nothing is made by asking.
    assert_eq!(shown(&broker.look(&ask(&["^mis.*"], Duration::from_secs(10)))), "");
}

#[test]
fn what_a_broker_does_not_say_is_failed_and_never_absent() {
    let mock = mock_with(&[("orders", 2, 5)]);
    let broker = KafkaBroker::new(&mock.config(), clock()).expect("a client");
    assert_eq!(shown(&broker.look(&ask(&["orders"], Duration::from_secs(10)))).lines().count(), 2);

    mock.set_leader(&at("orders", 1), false).expect("set");
    let begun = Instant::now();
    let look = broker.look(&ask(&["orders"], Duration::from_secs(10)));
    assert_eq!(shown(&look), "orders/0 0..5 readable 5\norders/1 failed..failed readable failed");
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "one leaderless partition holds up nothing: {:?}",
        begun.elapsed()
    );
    mock.set_leader(&at("orders", 1), true).expect("set");

    // An old leader is asked again.
    mock.fail(Request::ListOffsets, &[Fault::NotLeader; 3]);
    let look = broker.look(&ask(&["orders"], Duration::from_secs(10)));
    assert_eq!(shown(&look), "orders/0 0..5 readable 5\norders/1 0..5 readable 5");

    mock.set_broker(1, false).expect("set");
    let begun = Instant::now();
    let look = broker.look(&ask(&["orders"], Duration::from_secs(1)));
    assert_eq!(shown(&look), "orders failed");
    assert!(matches!(look.cluster_id, Seen::Failed(_)) && matches!(look.listing, Seen::Failed(_)));
    assert!(begun.elapsed() < Duration::from_secs(3), "the deadline holds: {:?}", begun.elapsed());
    mock.set_broker(1, true).expect("set");
    let begun = Instant::now();
    let look = broker.look(&ask(&["orders"], Duration::from_secs(10)));
    assert_eq!(shown(&look), "orders/0 0..5 readable 5\norders/1 0..5 readable 5", "{look:?} {:?}", begun.elapsed());

    mock.set_delay(1, Duration::from_secs(3)).expect("set");
    let begun = Instant::now();
    let look = broker.look(&ask(&["orders"], Duration::from_millis(800)));
    assert_eq!(shown(&look), "orders failed");
    assert!(begun.elapsed() < Duration::from_secs(2), "the deadline holds: {:?}", begun.elapsed());
}

/// Each client is new: it knows nothing from before.
#[test]
fn a_cluster_that_is_not_reached_is_failed_and_never_without_an_id() {
    let mock = mock_with(&[("orders", 1, 0)]);
    let broker = || KafkaBroker::new(&mock.config(), clock()).expect("a client");
    let soon = Duration::from_millis(500);
    assert!(matches!(broker().cluster_id(Duration::from_secs(10)), Seen::Known(id) if id.starts_with("mockCluster")));
    // The mock knows no such question, and says so.
    let untold = broker().members("g", Duration::from_secs(10)).expect_err("the mock can't");
    assert!(matches!(&untold, Untold::Refused(why) if why.contains("feature")), "{untold:?}");
    let warm = broker();
    assert!(warm.cluster_id(Duration::from_secs(10)).known().is_some());
    mock.set_broker(1, false).expect("set");
    let begun = Instant::now();
    let (cluster_id, members) = (broker().cluster_id(soon), warm.members("g", soon));
    assert!(matches!(cluster_id, Seen::Failed(_)), "{cluster_id:?}");
    assert!(matches!(members, Err(Untold::Silent(_))), "{members:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "the deadline holds: {:?}", begun.elapsed());
}

#[test]
fn a_group_that_kafka_does_not_know_has_no_committed_offsets() {
    let mock = mock_with(&[("orders", 2, 5)]);
    let broker = KafkaBroker::new(&mock.config(), clock()).expect("a client");
    let partitions = [at("orders", 0), at("orders", 1)].into();
    let committed = broker.committed("nobody", &partitions, Duration::from_secs(10));
    assert_eq!(committed, [(at("orders", 0), Seen::Absent), (at("orders", 1), Seen::Absent)].into());
    let found = broker.offsets_at(&partitions, Timestamp::from_millis(1), Duration::from_secs(10));
    assert_eq!(found, [(at("orders", 0), Seen::Absent), (at("orders", 1), Seen::Absent)].into());
}

#[test]
fn the_first_look_of_a_new_client_is_whole_and_quick() {
    let mock = mock_with(&[("orders", 2, 5)]);
    for round in 0..10 {
        let broker = KafkaBroker::new(&mock.config(), clock()).expect("a client");
        let begun = Instant::now();
        let look = broker.look(&ask(&["orders"], Duration::from_secs(5)));
        assert!(begun.elapsed() < Duration::from_secs(2), "round {round}: {:?} {look:?}", begun.elapsed());
        assert_eq!(shown(&look), "orders/0 0..5 readable 5\norders/1 0..5 readable 5");
    }
}

/// librdkafka ends the process here where the client has no group of its own (seen with 2.12, on a real broker).
#[test]
fn a_coordinator_that_has_moved_is_asked_again() {
    let mock = mock_with(&[("orders", 2, 5)]);
    let broker = KafkaBroker::new(&mock.config(), clock()).expect("a client");
    let wanted = [(at("orders", 0), offset(3)), (at("orders", 1), offset(4))].into();
    let done = broker.commit("g", &wanted, Duration::from_secs(10));
    assert!(done.values().all(Result::is_ok), "{done:?}");
    for times in [1, 3] {
        mock.fail(Request::OffsetFetch, &vec![Fault::NotCoordinator; times]);
        let held = broker.committed("g", &wanted.keys().cloned().collect(), Duration::from_secs(10));
        let expected = wanted.iter().map(|(at, offset)| (at.clone(), Seen::Known(*offset)));
        assert_eq!(held, expected.collect(), "{times} times");
    }
    // But not past the deadline.
    mock.fail(Request::OffsetFetch, &[Fault::NotCoordinator; 100]);
    let held = broker.committed("g", &wanted.keys().cloned().collect(), Duration::from_millis(300));
    assert!(held.values().all(|held| matches!(held, Seen::Failed(_))), "{held:?}");
}

/// librdkafka 2.12 ended the process (`rd_kafka_enq_once_del_source_return: Assertion`): a question whose time was over still
/// waited for the coordinator, and was sent once that was there.
#[test]
fn a_coordinator_that_comes_back_after_the_deadline_is_asked_anew() {
    let mock = mock_with(&[("orders", 2, 5)]);
    let broker = KafkaBroker::new(&mock.config(), clock()).expect("a client");
    let wanted: BTreeMap<_, _> = [(at("orders", 0), offset(3)), (at("orders", 1), offset(4))].into();
    let (places, soon) = (wanted.keys().cloned().collect(), Duration::from_millis(300));
    let done = broker.commit("g", &wanted, Duration::from_secs(10));
    assert!(done.values().all(Result::is_ok), "{done:?}");
    for _ in 0..2 {
        mock.set_broker(1, false).expect("a broker");
        let held = broker.committed("g", &places, soon);
        assert!(held.values().all(|held| matches!(held, Seen::Failed(_))), "{held:?}");
        let late = wanted.keys().map(|at| (at.clone(), offset(9))).collect();
        assert!(broker.commit("g", &late, soon).values().all(Result::is_err));
        mock.set_broker(1, true).expect("a broker");
        // What was given up is not done later.
        let held = broker.committed("g", &places, Duration::from_secs(10));
        assert_eq!(held, wanted.iter().map(|(at, offset)| (at.clone(), Seen::Known(*offset))).collect());
    }
}
