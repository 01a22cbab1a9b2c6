//! `GET /v1/groups`, `GET /v1/groups/{g}`: who reads what, and how they are doing.

use super::table::check;
use super::world::World;

#[test]
fn groups_are_listed_by_app_and_name_part_by_part() {
    check(
        &World::alone(),
        r#"
        > GET /v1/groups
        200 {"groups": [], "next": null}
        > POST /v1/groups/b/start {"topics": ["orders"], "owner": "o", "new_group": {"offsets": [{"topic": "orders", "partition": 0, "offset": 5}]}}
        200 {"group": "b", "app": "default", "epoch": "1", "seq": "2", "cluster_id": null,
         "positions": [{"topic": "orders", "partition": 0, "topic_id": null, "offset": "5", "verdict": "unchecked",
         "earliest": null, "latest": null, "readable_end": null, "replaying_until": null}], "findings": []}
        > POST /v1/groups/a/start?app=zebra {"topics": ["orders"], "owner": "o"}
        200 {"group": "a", "app": "zebra", "epoch": "1", "seq": "3", "cluster_id": null, "positions": [],
         "findings": []}
        > POST /v1/groups/a/start {"topics": ["orders"], "owner": "o"}
        200 {"group": "a", "app": "default", "epoch": "1", "seq": "4", "cluster_id": null, "positions": [],
         "findings": []}
        > GET /v1/groups
        200 {"groups": [{"group": "a", "app": "default", "epoch": "1", "state": "new", "held": null, "owner": "o",
         "picked_up": {"epoch": "1", "owner": "o", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_committed",
         "cluster_id": null, "kafka_group": "a", "last_batch": null, "topics": [], "open_holes": "0", "losses_open": "0"}, {"group": "b",
         "app": "default", "epoch": "1", "state": "new", "held": null, "owner": "o", "picked_up": {"epoch": "1",
         "owner": "o", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_committed", "cluster_id": null, "kafka_group": "b",
         "last_batch": null, "topics": [{"topic": "orders", "partitions": 1, "retired": false}], "open_holes": "0",
         "losses_open": "0"}, {"group": "a", "app": "zebra", "epoch": "1", "state": "new", "held": null, "owner": "o",
         "picked_up": {"epoch": "1", "owner": "o", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_committed",
         "cluster_id": null, "kafka_group": null, "last_batch": null, "topics": [], "open_holes": "0", "losses_open": "0"}], "next": null}
        > GET /v1/groups?limit=2
        200 {"groups": [{"group": "a", "app": "default", "epoch": "1", "state": "new", "held": null, "owner": "o",
         "picked_up": {"epoch": "1", "owner": "o", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_committed",
         "cluster_id": null, "kafka_group": "a", "last_batch": null, "topics": [], "open_holes": "0", "losses_open": "0"}, {"group": "b",
         "app": "default", "epoch": "1", "state": "new", "held": null, "owner": "o", "picked_up": {"epoch": "1",
         "owner": "o", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_committed", "cluster_id": null, "kafka_group": "b",
         "last_batch": null, "topics": [{"topic": "orders", "partitions": 1, "retired": false}], "open_holes": "0",
         "losses_open": "0"}], "next": "[\"default\",\"b\"]"}
        > GET /v1/groups?limit=2&cursor=%5B%22default%22%2C%22b%22%5D
        200 {"groups": [{"group": "a", "app": "zebra", "epoch": "1", "state": "new", "held": null, "owner": "o",
         "picked_up": {"epoch": "1", "owner": "o", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_committed",
         "cluster_id": null, "kafka_group": null, "last_batch": null, "topics": [], "open_holes": "0", "losses_open": "0"}], "next": null}
        > GET /v1/groups?order=desc&limit=1
        200 {"groups": [{"group": "a", "app": "zebra", "epoch": "1", "state": "new", "held": null, "owner": "o",
         "picked_up": {"epoch": "1", "owner": "o", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_committed",
         "cluster_id": null, "kafka_group": null, "last_batch": null, "topics": [], "open_holes": "0", "losses_open": "0"}],
         "next": "[\"zebra\",\"a\"]"}
        > GET /v1/groups?order=desc&limit=1&cursor=%5B%22zebra%22%2C%22a%22%5D
        200 {"groups": [{"group": "b", "app": "default", "epoch": "1", "state": "new", "held": null, "owner": "o",
         "picked_up": {"epoch": "1", "owner": "o", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_committed",
         "cluster_id": null, "kafka_group": "b", "last_batch": null, "topics": [{"topic": "orders", "partitions": 1, "retired": false}],
         "open_holes": "0", "losses_open": "0"}], "next": "[\"default\",\"b\"]"}
        > GET /v1/groups?app=zebra
        200 {"groups": [{"group": "a", "app": "zebra", "epoch": "1", "state": "new", "held": null, "owner": "o",
         "picked_up": {"epoch": "1", "owner": "o", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_committed",
         "cluster_id": null, "kafka_group": null, "last_batch": null, "topics": [], "open_holes": "0", "losses_open": "0"}], "next": null}
        > GET /v1/groups?app=nobody
        200 {"groups": [], "next": null}
        > GET /v1/groups/a?app=zebra
        200 {"group": "a", "app": "zebra", "epoch": "1", "state": "new", "held": null, "owner": "o",
         "picked_up": {"epoch": "1", "owner": "o", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_committed",
         "cluster_id": null, "kafka_group": null, "last_batch": null, "topics": [], "open_holes": "0", "losses_open": "0", "growth": [], "losses_to_come": [], "mirror": "*", "members": "*",
         "last_fenced": null, "fenced_total": "0"}
        > GET /v1/groups/a?app=nobody
        404 unknown-group
         {"detail": "no group a (app nobody) in this journal; a group of this name is in app default, zebra",
         "apps": ["default", "zebra"]}
        > GET /v1/groups?cursor=b
        400 invalid {"detail": "cursor \"b\": not one that an earlier answer gave", "field": "cursor", "value": "b",
         "limit": "not one that an earlier answer gave"}
        > GET /v1/groups?order=up
        400 invalid {"detail": "order \"up\": asc or desc", "field": "order", "value": "up", "limit": "asc or desc"}
        > GET /v1/groups?limit=0
        400 invalid {"detail": "limit \"0\": 1 to 1000", "field": "limit", "value": "0", "limit": "1 to 1000"}
        > GET /v1/groups?limit=1001
        400 invalid {"detail": "limit \"1001\": 1 to 1000", "field": "limit", "value": "1001", "limit": "1 to 1000"}
        "#,
    );
}

#[test]
fn a_group_tells_how_it_is_doing() {
    check(
        &World::scripted(),
        r#"
        ! broker orders id=A 0:0..520 1:0..400
        ! cluster X
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o1", "isolation": "read_uncommitted"}
        200 {"group": "g", "app": "default", "epoch": "1", "seq": "2", "cluster_id": "X",
         "positions": [{"topic": "orders", "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "0",
         "verdict": "new_group", "earliest": "0", "latest": "520", "readable_end": "520", "replaying_until": null},
         {"topic": "orders", "partition": 1, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "0",
         "verdict": "new_group", "earliest": "0", "latest": "400", "readable_end": "400", "replaying_until": null}],
         "findings": []}
        > GET /v1/groups/g
        200 {"group": "g", "app": "default", "epoch": "1", "state": "new", "held": null, "owner": "o1",
         "picked_up": {"epoch": "1", "owner": "o1", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_uncommitted",
         "cluster_id": "X", "kafka_group": "g", "last_batch": null, "topics": [{"topic": "orders", "partitions": 2, "retired": false}],
         "open_holes": "0", "losses_open": "0", "growth": [], "losses_to_come": [], "mirror": "*", "members": "*", "last_fenced": null, "fenced_total": "0"}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T08:59:59Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 10, "until_offset": 42}]}
        201 {"batch": "1", "seq": "3", "recorded_at": "2026-11-30T09:00:00Z", "repeated": false,
         "notes": [{"topic": "orders", "partition": 0, "note": "hole", "from_offset": "0", "until_offset": "10"}]}
        > GET /v1/groups/g
        200 {"group": "g", "app": "default", "epoch": "1", "state": "active", "held": null, "owner": "o1",
         "picked_up": {"epoch": "1", "owner": "o1", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_uncommitted",
         "cluster_id": "X", "kafka_group": "g", "last_batch": {"batch": "1", "seq": "3", "batch_time": "2026-11-30T08:59:59Z",
         "recorded_at": "2026-11-30T09:00:00Z"}, "topics": [{"topic": "orders", "partitions": 2, "retired": false}],
         "open_holes": "1", "losses_open": "0", "growth": [], "losses_to_come": [], "mirror": "*", "members": "*", "last_fenced": null, "fenced_total": "0"}
        ! clock +5m
        > GET /v1/groups/g
        200 {"group": "g", "app": "default", "epoch": "1", "state": "idle", "held": null, "owner": "o1",
         "picked_up": {"epoch": "1", "owner": "o1", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_uncommitted",
         "cluster_id": "X", "kafka_group": "g", "last_batch": {"batch": "1", "seq": "3", "batch_time": "2026-11-30T08:59:59Z",
         "recorded_at": "2026-11-30T09:00:00Z"}, "topics": [{"topic": "orders", "partitions": 2, "retired": false}],
         "open_holes": "1", "losses_open": "0", "growth": [], "losses_to_come": [], "mirror": "*", "members": "*", "last_fenced": null, "fenced_total": "0"}
        ! hold g "mending the sink"
        > GET /v1/groups/g
        200 {"group": "g", "app": "default", "epoch": "1", "state": "held", "held": {"reason": "mending the sink",
         "actor": "ann", "since": "2026-11-30T09:05:00Z", "seq": "4"}, "owner": "o1", "picked_up": {"epoch": "1",
         "owner": "o1", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_uncommitted", "cluster_id": "X", "kafka_group": "g",
         "last_batch": {"batch": "1", "seq": "3", "batch_time": "2026-11-30T08:59:59Z",
         "recorded_at": "2026-11-30T09:00:00Z"}, "topics": [{"topic": "orders", "partitions": 2, "retired": false}],
         "open_holes": "1", "losses_open": "0", "growth": [], "losses_to_come": [], "mirror": "*", "members": "*", "last_fenced": null, "fenced_total": "0"}
        ! release g
        > POST /v1/groups/g/rollback {"to": {"offset": 7}, "scope": [{"topic": "orders", "partitions": [0]}], "actor": "ann", "reason": "why"}
        200 {"seq": "6", "epoch": "2", "repeated": false, "clock_uncertain": false, "partitions": [{"topic": "orders",
         "partition": 0, "old": "42", "new": "7"}], "kafka": null}
        > GET /v1/groups/g
        200 {"group": "g", "app": "default", "epoch": "2", "state": "replaying", "held": null, "owner": "o1",
         "picked_up": {"epoch": "1", "owner": "o1", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_uncommitted",
         "cluster_id": "X", "kafka_group": "g", "last_batch": {"batch": "1", "seq": "3", "batch_time": "2026-11-30T08:59:59Z",
         "recorded_at": "2026-11-30T09:00:00Z"}, "topics": [{"topic": "orders", "partitions": 2, "retired": false}],
         "open_holes": "1", "losses_open": "0", "growth": [], "losses_to_come": [], "mirror": "*", "members": "*", "last_fenced": null, "fenced_total": "0"}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T09:04:00Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 42, "until_offset": 50}]}
        409 fenced
         {"detail": "fenced: read under epoch 1, but group g is at epoch 2 (rolled_back by ann, seq 6); start again",
         "epoch": "2", "raised_by": {"kind": "rolled_back", "seq": "6", "by": "ann"}}
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o2"}
        200 {"group": "g", "app": "default", "epoch": "3", "seq": "7", "cluster_id": "X",
         "positions": [{"topic": "orders", "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "7",
         "verdict": "in_range", "earliest": "0", "latest": "520", "readable_end": "520", "replaying_until": "42"},
         {"topic": "orders", "partition": 1, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "0",
         "verdict": "in_range", "earliest": "0", "latest": "400", "readable_end": "400", "replaying_until": null}],
         "findings": []}
        > GET /v1/groups/g
        200 {"group": "g", "app": "default", "epoch": "3", "state": "replaying", "held": null, "owner": "o2",
         "picked_up": {"epoch": "3", "owner": "o2", "at": "2026-11-30T09:05:00Z"}, "isolation": "read_uncommitted",
         "cluster_id": "X", "kafka_group": "g", "last_batch": {"batch": "1", "seq": "3", "batch_time": "2026-11-30T08:59:59Z",
         "recorded_at": "2026-11-30T09:00:00Z"}, "topics": [{"topic": "orders", "partitions": 2, "retired": false}],
         "open_holes": "1", "losses_open": "0", "growth": [], "losses_to_come": [], "mirror": "*", "members": "*", "last_fenced": {"at": "2026-11-30T09:05:00Z",
         "epoch": "1", "ranges": [{"topic": "orders", "partition": 0, "from_offset": "42", "until_offset": "50"}]},
         "fenced_total": "1"}
        ! retire g orders
        ! retire g
        > GET /v1/groups/g
        200 {"group": "g", "app": "default", "epoch": "3", "state": "retired", "held": null, "owner": "o2",
         "picked_up": {"epoch": "3", "owner": "o2", "at": "2026-11-30T09:05:00Z"}, "isolation": "read_uncommitted",
         "cluster_id": "X", "kafka_group": "g", "last_batch": {"batch": "1", "seq": "3", "batch_time": "2026-11-30T08:59:59Z",
         "recorded_at": "2026-11-30T09:00:00Z"}, "topics": [{"topic": "orders", "partitions": 2, "retired": true}],
         "open_holes": "1", "losses_open": "0", "growth": [], "losses_to_come": [], "mirror": "*", "members": "*", "last_fenced": {"at": "2026-11-30T09:05:00Z",
         "epoch": "1", "ranges": [{"topic": "orders", "partition": 0, "from_offset": "42", "until_offset": "50"}]},
         "fenced_total": "1"}
        "#,
    );
}
