//! `GET /v1/groups/{g}/positions`: now, and at any moment of the past.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tidelog::broker::{Ask, Broker, Look, Member, Seen, Untold};
use tidelog::offset::{Offset, Timestamp, TopicPartition};

use super::table::check;
use super::world::World;
use crate::script::broker::ScriptedBroker;

type Committed = BTreeMap<TopicPartition, Result<(), String>>;
type Offsets = BTreeMap<TopicPartition, Seen<Offset>>;

#[test]
fn positions_as_of_now_a_time_a_batch_and_a_seq() {
    check(
        &World::alone(),
        r#"
        > POST /v1/groups/g/start
        + {"topics": ["orders"], "owner": "o",
        +  "new_group": {"offsets": [{"topic": "orders", "partition": 0, "offset": "500"}]}}
        200 {"group": "g", "app": "default", "epoch": "1", "seq": "2", "cluster_id": null,
         "positions": [{"topic": "orders", "partition": 0, "topic_id": null, "offset": "500", "verdict": "unchecked",
         "earliest": null, "latest": null, "readable_end": null, "replaying_until": null}], "findings": []}
        ! clock +1h
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T09:59:59Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 500, "until_offset": 542}]}
        201 {"batch": "1", "seq": "3", "recorded_at": "2026-11-30T10:00:00Z", "repeated": false, "notes": []}
        ! clock +1h
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": 1796036399000,
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 550, "until_offset": 600},
        +             {"topic": "orders", "partition": 1, "from_offset": 0, "until_offset": 9}]}
        201 {"batch": "2", "seq": "4", "recorded_at": "2026-11-30T11:00:00Z", "repeated": false,
         "notes": [{"topic": "orders", "partition": 0, "note": "hole", "from_offset": "542", "until_offset": "550"},
         {"topic": "orders", "partition": 1, "note": "first", "from_offset": "0", "until_offset": "9"}]}
        > GET /v1/groups/g/positions
        200 {"group": "g", "app": "default", "epoch": "1", "as_of": {"seq": "4", "batch": "2",
         "recorded_at": "2026-11-30T11:00:00Z", "clock_uncertain": false}, "positions": [{"topic": "orders",
         "partition": 0, "offset": "600", "topic_id": null, "earliest": null, "latest": null, "readable_end": null,
         "lag": null, "broker_seen_at": null, "replaying_until": null, "holes": [{"from_offset": "542",
         "until_offset": "550", "seq": "4", "cause": "hole", "acknowledged_by": null}], "last_batch": "2",
         "last_batch_time": "2026-11-30T10:59:59Z"}, {"topic": "orders", "partition": 1, "offset": "9",
         "topic_id": null, "earliest": null, "latest": null, "readable_end": null, "lag": null,
         "broker_seen_at": null, "replaying_until": null, "holes": [], "last_batch": "2",
         "last_batch_time": "2026-11-30T10:59:59Z"}]}
        > GET /v1/groups/g/positions?at=2026-11-30T10:30:00Z
        200 {"group": "g", "app": "default", "epoch": "1", "as_of": {"seq": "3", "batch": "1",
         "recorded_at": "2026-11-30T10:00:00Z", "clock_uncertain": false}, "positions": [{"topic": "orders",
         "partition": 0, "offset": "542", "topic_id": null, "earliest": null, "latest": null, "readable_end": null,
         "lag": null, "broker_seen_at": null, "replaying_until": null, "holes": [], "last_batch": "1",
         "last_batch_time": "2026-11-30T09:59:59Z"}]}
        > GET /v1/groups/g/positions?at=1796034600000
        200 {"group": "g", "app": "default", "epoch": "1", "as_of": {"seq": "3", "batch": "1",
         "recorded_at": "2026-11-30T10:00:00Z", "clock_uncertain": false}, "positions": [{"topic": "orders",
         "partition": 0, "offset": "542", "topic_id": null, "earliest": null, "latest": null, "readable_end": null,
         "lag": null, "broker_seen_at": null, "replaying_until": null, "holes": [], "last_batch": "1",
         "last_batch_time": "2026-11-30T09:59:59Z"}]}
        > GET /v1/groups/g/positions?at=2026-11-30T11:30:00%2B01:00
        200 {"group": "g", "app": "default", "epoch": "1", "as_of": {"seq": "3", "batch": "1",
         "recorded_at": "2026-11-30T10:00:00Z", "clock_uncertain": false}, "positions": [{"topic": "orders",
         "partition": 0, "offset": "542", "topic_id": null, "earliest": null, "latest": null, "readable_end": null,
         "lag": null, "broker_seen_at": null, "replaying_until": null, "holes": [], "last_batch": "1",
         "last_batch_time": "2026-11-30T09:59:59Z"}]}
        > GET /v1/groups/g/positions?batch=1
        200 {"group": "g", "app": "default", "epoch": "1", "as_of": {"seq": "3", "batch": "1",
         "recorded_at": "2026-11-30T10:00:00Z", "clock_uncertain": false}, "positions": [{"topic": "orders",
         "partition": 0, "offset": "542", "topic_id": null, "earliest": null, "latest": null, "readable_end": null,
         "lag": null, "broker_seen_at": null, "replaying_until": null, "holes": [], "last_batch": "1",
         "last_batch_time": "2026-11-30T09:59:59Z"}]}
        > GET /v1/groups/g/positions?seq=2
        200 {"group": "g", "app": "default", "epoch": "1", "as_of": {"seq": "2", "batch": "0",
         "recorded_at": "2026-11-30T09:00:00Z", "clock_uncertain": false}, "positions": [{"topic": "orders",
         "partition": 0, "offset": "500", "topic_id": null, "earliest": null, "latest": null, "readable_end": null,
         "lag": null, "broker_seen_at": null, "replaying_until": null, "holes": [], "last_batch": null,
         "last_batch_time": null}]}
        > GET /v1/groups/g/positions?at=2030-01-01T00:00:00Z
        200 {"group": "g", "app": "default", "epoch": "1", "as_of": {"seq": "4", "batch": "2",
         "recorded_at": "2026-11-30T11:00:00Z", "clock_uncertain": false}, "positions": [{"topic": "orders",
         "partition": 0, "offset": "600", "topic_id": null, "earliest": null, "latest": null, "readable_end": null,
         "lag": null, "broker_seen_at": null, "replaying_until": null, "holes": [{"from_offset": "542",
         "until_offset": "550", "seq": "4", "cause": "hole", "acknowledged_by": null}], "last_batch": "2",
         "last_batch_time": "2026-11-30T10:59:59Z"}, {"topic": "orders", "partition": 1, "offset": "9",
         "topic_id": null, "earliest": null, "latest": null, "readable_end": null, "lag": null,
         "broker_seen_at": null, "replaying_until": null, "holes": [], "last_batch": "2",
         "last_batch_time": "2026-11-30T10:59:59Z"}]}
        > GET /v1/groups/g/positions?at=2026-11-30T08:59:59Z
        404 before-history
         {"detail": "2026-11-30T08:59:59Z is before the history of group g: its oldest entry is seq 1, recorded at 2026-11-30T09:00:00Z",
         "oldest": {"seq": "1", "recorded_at": "2026-11-30T09:00:00Z"}}
        > GET /v1/groups/g/positions?seq=0
        404 before-history
         {"detail": "seq 0 is before the history of group g: its oldest entry is seq 1, recorded at 2026-11-30T09:00:00Z",
         "oldest": {"seq": "1", "recorded_at": "2026-11-30T09:00:00Z"}}
        > GET /v1/groups/g/positions?seq=5
        400 invalid {"detail": "seq \"5\": above 4, the newest entry of this journal", "field": "seq", "value": "5",
         "limit": "above 4, the newest entry of this journal"}
        > GET /v1/groups/g/positions?batch=3
        404 unknown-batch {"detail": "no batch 3 of group g; its newest is 2", "newest": "2"}
        > GET /v1/groups/g/positions?batch=0
        400 invalid {"detail": "batch \"0\": batches are numbered from 1", "field": "batch", "value": "0",
         "limit": "batches are numbered from 1"}
        > GET /v1/groups/g/positions?batch=1&seq=2
        400 invalid {"detail": "at \"\": give one of at, batch and seq", "field": "at", "value": "",
         "limit": "give one of at, batch and seq"}
        > GET /v1/groups/nobody/positions
        404 unknown-group {"detail": "no group nobody in this journal", "apps": []}
        > GET /v1/groups/nobody/positions?seq=99
        404 unknown-group {"detail": "no group nobody in this journal", "apps": []}
        "#,
    );
}

#[test]
fn what_the_broker_says_stands_beside_the_position() {
    check(
        &World::scripted(),
        r#"
        ! broker orders id=A 0:100..520(510) 1:0..400
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o", "new_group": "latest"}
        200 {"group": "g", "app": "default", "epoch": "1", "seq": "2", "cluster_id": null,
         "positions": [{"topic": "orders", "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "510",
         "verdict": "new_group", "earliest": "100", "latest": "520", "readable_end": "510", "replaying_until": null},
         {"topic": "orders", "partition": 1, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "400",
         "verdict": "new_group", "earliest": "0", "latest": "400", "readable_end": "400", "replaying_until": null}],
         "findings": []}
        > POST /v1/groups/g/rollback {"to": {"offset": 350}, "scope": [{"topic": "orders", "partitions": [1]}], "actor": "ann", "reason": "why"}
        200 {"seq": "3", "epoch": "2", "repeated": false, "clock_uncertain": false, "partitions": [{"topic": "orders",
         "partition": 1, "old": "400", "new": "350"}], "kafka": null}
        ! broker orders id=A 0:515..530(525) 1:0..400 2:0..7
        > GET /v1/groups/g/positions
        200 {"group": "g", "app": "default", "epoch": "2", "as_of": {"seq": "3", "batch": "0",
         "recorded_at": "2026-11-30T09:00:00Z", "clock_uncertain": false}, "positions": [{"topic": "orders",
         "partition": 0, "offset": "510", "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "earliest": "515", "latest": "530",
         "readable_end": "525", "lag": "10", "broker_seen_at": "1970-01-01T00:00:00Z", "replaying_until": null,
         "holes": [], "last_batch": null, "last_batch_time": null}, {"topic": "orders", "partition": 1,
         "offset": "350", "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "earliest": "0", "latest": "400",
         "readable_end": "400", "lag": "50", "broker_seen_at": "1970-01-01T00:00:00Z", "replaying_until": "400",
         "holes": [], "last_batch": null, "last_batch_time": null}]}
        > GET /v1/groups/g
        200 {"group": "g", "app": "default", "epoch": "2", "state": "replaying", "held": null, "owner": "o",
         "picked_up": {"epoch": "1", "owner": "o", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_committed",
         "cluster_id": null, "kafka_group": "g", "last_batch": null, "topics": [{"topic": "orders", "partitions": 2, "retired": false}],
         "open_holes": "0", "losses_open": "0", "growth": [{"topic": "orders", "partition": 2}], "losses_to_come": [{"topic": "orders", "partition": 0,
         "from_offset": "510", "until_offset": "515"}], "mirror": "*", "members": [], "last_fenced": null,
         "fenced_total": "0"}
        > GET /v1/groups/g/positions?seq=4
        400 invalid {"detail": "seq \"4\": above 3, the newest entry of this journal", "field": "seq", "value": "4",
         "limit": "above 3, the newest entry of this journal"}
        "#,
    );
}

/// A broker that can be stopped in its tracks.
#[derive(Default)]
struct Freezing {
    inner: Arc<ScriptedBroker>,
    frozen: Mutex<bool>,
    thawed: Condvar,
}

impl Freezing {
    fn set(&self, frozen: bool) {
        *self.frozen.lock().expect("no panic") = frozen;
        self.thawed.notify_all();
    }

    fn wait(&self) {
        let frozen = self.frozen.lock().expect("no panic");
        drop(self.thawed.wait_while(frozen, |frozen| *frozen).expect("no panic"));
    }
}

impl Broker for Freezing {
    fn look(&self, ask: &Ask) -> Look {
        self.wait();
        self.inner.look(ask)
    }

    fn offsets_at(&self, at: &BTreeSet<TopicPartition>, time: Timestamp, deadline: Duration) -> Offsets {
        self.wait();
        self.inner.offsets_at(at, time, deadline)
    }

    fn commit(&self, group: &str, offsets: &BTreeMap<TopicPartition, Offset>, deadline: Duration) -> Committed {
        self.wait();
        self.inner.commit(group, offsets, deadline)
    }

    fn cluster_id(&self, deadline: Duration) -> Seen<String> {
        self.wait();
        Broker::cluster_id(&*self.inner, deadline)
    }

    fn brokers(&self) -> &str {
        self.inner.brokers()
    }

    fn members(&self, group: &str, deadline: Duration) -> Result<Vec<Member>, Untold> {
        self.wait();
        Broker::members(&*self.inner, group, deadline)
    }

    fn committed(&self, group: &str, at: &BTreeSet<TopicPartition>, deadline: Duration) -> Offsets {
        self.wait();
        self.inner.committed(group, at, deadline)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_hangs_holds_no_answer_up() {
    let mut broker = None;
    let world = World::over(|inner| {
        let freezing = Arc::new(Freezing { inner, ..Freezing::default() });
        broker = Some(Arc::clone(&freezing));
        Some(freezing)
    });
    let broker = broker.expect("it was made");
    world.change("broker orders id=A 0:0..520");
    world.want(200, "POST", "/v1/groups/g/start", r#"{"topics": ["orders"], "owner": "o"}"#).await;
    broker.set(true);
    for _ in 0..2 {
        let begun = Instant::now();
        let positions = world.want(200, "GET", "/v1/groups/g/positions", "").await;
        let line = &positions["positions"][0];
        for unknown in ["earliest", "latest", "readable_end", "lag", "broker_seen_at"] {
            assert_eq!(line[unknown], Value::Null, "{unknown}: {line}");
        }
        assert_eq!(line["offset"], "0", "the journal's part is there");
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }
    world.want(200, "GET", "/v1/groups/g", "").await;
    world.want(200, "GET", "/v1/groups/g/positions?seq=1", "").await;
    let commit = r#"{"epoch": 1, "batch_time": "2026-11-30T09:00:00Z", "ranges": [{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 20}]}"#;
    world.want(201, "POST", "/v1/groups/g/batches", commit).await;
    broker.set(false);
    let deadline = Instant::now() + crate::wait::DEADLINE;
    loop {
        let positions = world.want(200, "GET", "/v1/groups/g/positions", "").await;
        if positions["positions"][0]["lag"] == "500" {
            break;
        }
        assert!(Instant::now() < deadline, "{positions}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
