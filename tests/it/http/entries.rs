//! `GET /v1/groups/{g}/entries`: every kind with its own fields; `POST /v1/groups/{g}/marks`, which makes one.

use tidelog::entry::{Body, Correction, Draft, KafkaOutcome, Move};
use tidelog::offset::{Epoch, Group, Offset, Seq, TopicName};

use super::table::check;
use super::world::World;

/// Entries that no route makes in this version.
fn decide(world: &World, group: Option<&str>, body: Body) {
    let group = group.map(|group| Group::new(Group::DEFAULT_APP, group).expect("a name"));
    let draft = Draft { group, epoch: Epoch::new(2).expect("small"), body };
    world.journal().decide::<(), String>(move |_| Ok((vec![draft], ()))).expect("a decision");
}

/// Makes an entry of every kind, 14 in all: by the routes, by an operator, and by hand where no route makes one yet.
pub fn make_every_kind(world: &World) {
    check(
        world,
        r#"
        ! cluster X
        ! broker orders id=A 0:0..520
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o1"}
        200 {"seq": "2", "..": 0}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T08:59:59Z", "key": "k",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 10, "until_offset": 100}]}
        201 {"seq": "3", "..": 0}
        ! broker orders id=A 0:0..520 1:4..9
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o1"}
        200 {"seq": "4", "..": 0}
        > POST /v1/groups/g/rollback {"to": {"offset": 5}, "scope": [{"topic": "orders", "partitions": [0]}], "actor": "ann", "reason": "why"}
        200 {"seq": "5", "..": 0}
        ! hold g "mending the sink"
        ! release g
        ! acknowledge 4
        > POST /v1/groups/g/marks {"name": "before deploy 42", "actor": "ann"}
        201 {"seq": "9", "group": "g", "app": "default", "recorded_at": "2026-11-30T09:00:00Z",
         "machine_clock": "2026-11-30T09:00:00Z", "epoch": "2", "kind": "mark", "name": "before deploy 42",
         "actor": "ann"}
        > POST /v1/groups/g/marks {"name": "before deploy 42"}
        201 {"seq": "10", "kind": "mark", "name": "before deploy 42", "actor": "unknown", "..": 0}
        > POST /v1/groups/g/marks {"actor": "ann"}
        400 invalid {"detail": "name: missing field `name`", "field": "name", "value": "",
         "limit": "missing field `name`"}
        > POST /v1/groups/g/marks {"name": "", "actor": "ann"}
        400 invalid {"detail": "mark \"\": 0 bytes; it has 1 to 255", "field": "mark", "value": "",
         "limit": "0 bytes; it has 1 to 255"}
        > POST /v1/groups/nobody/marks {"name": "m", "actor": "ann"}
        404 unknown-group {"detail": "no group nobody in this journal", "apps": []}
        ! retire g orders
        "#,
    );
    let topic = TopicName::new("orders").expect("a name");
    let outcome = KafkaOutcome { topic: topic.clone(), partition: 0, offset: Some(Offset::MAX), error: None };
    decide(world, Some("g"), Body::KafkaResult { of: Seq::new(5).expect("small"), partitions: vec![outcome] });
    let moved = Move {
        topic,
        partition: 0,
        topic_id: None,
        old: None,
        new: Some(Offset::new(7).expect("small")),
        holes: Vec::new(),
        replaying_until: None,
    };
    let correction = Correction { moves: vec![moved], ..Correction::default() };
    decide(world, Some("h"), Body::Imported { source: "offsets.csv".to_owned(), correction });
    let (through, actor) = (Seq::new(1).expect("small"), "ann".to_owned());
    decide(world, None, Body::Pruned { through, actor, groups: Vec::new() });
}

#[test]
fn every_kind_of_entry_is_told_with_its_own_fields() {
    let world = World::scripted();
    make_every_kind(&world);
    check(
        &world,
        r#"
        > GET /v1/groups/g/entries?order=asc
        200 {"entries": [{"seq": "1", "group": "g", "app": "default", "recorded_at": "2026-11-30T09:00:00Z",
         "machine_clock": "2026-11-30T09:00:00Z", "epoch": "1", "kind": "started", "owner": "o1",
         "isolation": "read_committed", "kafka_group": "g"}, {"seq": "2", "group": "g", "app": "default",
         "recorded_at": "2026-11-30T09:00:00Z", "machine_clock": "2026-11-30T09:00:00Z", "epoch": "1",
         "kind": "reconciled", "findings": [], "topics": [{"topic": "orders", "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ",
         "new_incarnation": false}], "moves": [{"topic": "orders", "partition": 0,
         "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "old": null, "new": "0", "holes": [], "replaying_until": null}],
         "losses": [], "cluster_id": "X"}, {"seq": "3", "group": "g", "app": "default",
         "recorded_at": "2026-11-30T09:00:00Z", "machine_clock": "2026-11-30T09:00:00Z", "epoch": "1",
         "kind": "batch", "batch": "1", "batch_time": "2026-11-30T08:59:59Z", "key": "k",
         "ranges": [{"topic": "orders", "partition": 0, "from_offset": "10", "until_offset": "100"}],
         "notes": [{"topic": "orders", "partition": 0, "note": "hole", "from_offset": "0", "until_offset": "10"}]},
         {"seq": "4", "group": "g", "app": "default", "recorded_at": "2026-11-30T09:00:00Z",
         "machine_clock": "2026-11-30T09:00:00Z", "epoch": "1", "kind": "partitions_added",
         "findings": [{"topic": "orders", "partition": 1, "verdict": "partition_added", "position": null,
         "earliest": "4", "latest": "9", "start": "4", "loss": {"from_offset": "0", "until_offset": "4"},
         "detail": null}], "topics": [], "moves": [{"topic": "orders", "partition": 1,
         "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "old": null, "new": "4", "holes": [], "replaying_until": null}],
         "losses": [{"topic": "orders", "partition": 1, "from_offset": "0", "until_offset": "4", "cause": "expired"}],
         "cluster_id": null}, {"seq": "5", "group": "g", "app": "default", "recorded_at": "2026-11-30T09:00:00Z",
         "machine_clock": "2026-11-30T09:00:00Z", "epoch": "2", "kind": "rolled_back", "plan": "*",
         "target": "offset 5", "actor": "ann", "reason": "why", "undoes": null, "kafka": null, "topics": [],
         "moves": [{"topic": "orders", "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "old": "100", "new": "5",
         "holes": [{"from_offset": "0", "until_offset": "5", "seq": "3"}], "replaying_until": "100"}], "losses": [],
         "cluster_id": null}, {"seq": "6", "group": "g", "app": "default", "recorded_at": "2026-11-30T09:00:00Z",
         "machine_clock": "2026-11-30T09:00:00Z", "epoch": "2", "kind": "held", "reason": "mending the sink",
         "actor": "ann"}, {"seq": "7", "group": "g", "app": "default", "recorded_at": "2026-11-30T09:00:00Z",
         "machine_clock": "2026-11-30T09:00:00Z", "epoch": "2", "kind": "released", "actor": "ann"}, {"seq": "8",
         "group": "g", "app": "default", "recorded_at": "2026-11-30T09:00:00Z",
         "machine_clock": "2026-11-30T09:00:00Z", "epoch": "2", "kind": "loss_acknowledged", "of": "4",
         "actor": "ann"}, {"seq": "9", "group": "g", "app": "default", "recorded_at": "2026-11-30T09:00:00Z",
         "machine_clock": "2026-11-30T09:00:00Z", "epoch": "2", "kind": "mark", "name": "before deploy 42",
         "actor": "ann"}, {"seq": "10", "group": "g", "app": "default", "recorded_at": "2026-11-30T09:00:00Z",
         "machine_clock": "2026-11-30T09:00:00Z", "epoch": "2", "kind": "mark", "name": "before deploy 42",
         "actor": "unknown"}, {"seq": "11", "group": "g", "app": "default", "recorded_at": "2026-11-30T09:00:00Z",
         "machine_clock": "2026-11-30T09:00:00Z", "epoch": "2", "kind": "retired", "topic": "orders", "actor": "ann"},
         {"seq": "12", "group": "g", "app": "default", "recorded_at": "2026-11-30T09:00:00Z",
         "machine_clock": "2026-11-30T09:00:00Z", "epoch": "2", "kind": "kafka_result", "of": "5",
         "partitions": [{"topic": "orders", "partition": 0, "offset": "9223372036854775807", "error": null}]}],
         "next": null}
        > GET /v1/groups/h/entries
        200 {"entries": [{"seq": "13", "group": "h", "app": "default", "recorded_at": "2026-11-30T09:00:00Z",
         "machine_clock": "2026-11-30T09:00:00Z", "epoch": "2", "kind": "imported", "source": "offsets.csv",
         "topics": [], "moves": [{"topic": "orders", "partition": 0, "topic_id": null, "old": null, "new": "7",
         "holes": [], "replaying_until": null}], "losses": [], "cluster_id": null}], "next": null}
        "#,
    );
}

#[test]
fn entries_are_read_part_by_part_and_by_time() {
    let mut script = r#"
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o"}
        200 {"seq": "1", "..": 0}
        > POST /v1/groups/other/start {"topics": ["orders"], "owner": "o"}
        200 {"seq": "2", "..": 0}
    "#
    .to_owned();
    for n in 3..6 {
        script += &format!(
            "! clock +1m\n> POST /v1/groups/g/marks {{\"name\": \"m\", \"actor\": \"ann\"}}\n201 {{\"seq\": \"{n}\", \"..\": 0}}\n"
        );
    }
    for (query, wanted, next) in [
        ("", "5 4 3 1", "null"),
        ("?order=asc", "1 3 4 5", "null"),
        ("?limit=2", "5 4", "\"4\""),
        ("?limit=2&cursor=4", "3 1", "null"),
        ("?limit=3&order=asc", "1 3 4", "\"4\""),
        ("?limit=3&order=asc&cursor=4", "5", "null"),
        ("?from=2026-11-30T09:01:00Z&to=2026-11-30T09:03:00Z", "4 3", "null"),
        ("?to=1796029260000", "1", "null"),
    ] {
        let entries: Vec<String> = wanted.split_whitespace().map(|n| format!(r#"{{"seq": "{n}", "..": 0}}"#)).collect();
        script += &format!(
            "> GET /v1/groups/g/entries{query}\n200 {{\"entries\": [{}], \"next\": {next}}}\n",
            entries.join(", ")
        );
    }
    script += r#"
        > GET /v1/groups/g/entries?cursor=x
        400 invalid {"detail": "cursor \"x\": not one that an earlier answer gave", "field": "cursor", "value": "x",
         "limit": "not one that an earlier answer gave"}
        > GET /v1/groups/nobody/entries
        404 unknown-group {"detail": "no group nobody in this journal", "apps": []}
    "#;
    check(&World::alone(), &script);
}
