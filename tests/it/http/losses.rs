//! `GET /v1/groups/{g}/losses`: what a group will never read, and its open holes.

use super::table::check;
use super::world::World;

#[test]
fn losses_and_open_holes_are_listed_until_somebody_has_seen_them() {
    check(
        &World::scripted(),
        r#"
        ! broker orders id=A 0:0..520 1:0..520
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o"}
        200 {"group": "g", "app": "default", "epoch": "1", "seq": "2", "cluster_id": null,
         "positions": [{"topic": "orders", "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "0",
         "verdict": "new_group", "earliest": "0", "latest": "520", "readable_end": "520", "replaying_until": null},
         {"topic": "orders", "partition": 1, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "0",
         "verdict": "new_group", "earliest": "0", "latest": "520", "readable_end": "520", "replaying_until": null}],
         "findings": []}
        ! broker orders id=A 0:100..520 1:250..520
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o"}
        200 {"group": "g", "app": "default", "epoch": "1", "seq": "3", "cluster_id": null,
         "positions": [{"topic": "orders", "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "100",
         "verdict": "head_out_of_range", "earliest": "100", "latest": "520", "readable_end": "520",
         "replaying_until": null}, {"topic": "orders", "partition": 1, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ",
         "offset": "250", "verdict": "head_out_of_range", "earliest": "250", "latest": "520", "readable_end": "520",
         "replaying_until": null}], "findings": [{"topic": "orders", "partition": 0, "verdict": "head_out_of_range",
         "position": "0", "earliest": "100", "latest": "520", "start": "100", "loss": {"from_offset": "0",
         "until_offset": "100"}, "detail": null}, {"topic": "orders", "partition": 1, "verdict": "head_out_of_range",
         "position": "0", "earliest": "250", "latest": "520", "start": "250", "loss": {"from_offset": "0",
         "until_offset": "250"}, "detail": null}]}
        ! clock +1m
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T08:59:59Z", "ranges": [
        +   {"topic": "orders", "partition": 0, "from_offset": 110, "until_offset": 120},
        +   {"topic": "orders", "partition": 1, "from_offset": 251, "until_offset": 252}]}
        201 {"batch": "1", "seq": "4", "recorded_at": "2026-11-30T09:01:00Z", "repeated": false,
         "notes": [{"topic": "orders", "partition": 0, "note": "hole", "from_offset": "100", "until_offset": "110"},
         {"topic": "orders", "partition": 1, "note": "hole", "from_offset": "250", "until_offset": "251"}]}
        > POST /v1/groups/g/rollback {"to": {"offset": 300}, "scope": [{"topic": "orders", "partitions": [0]}], "actor": "ann", "reason": "why"}
        200 {"seq": "5", "epoch": "2", "repeated": false, "clock_uncertain": false, "partitions": [{"topic": "orders",
         "partition": 0, "old": "120", "new": "300"}], "kafka": null}
        > GET /v1/groups/g/losses
        200 {"losses": [{"topic": "orders", "partition": 0, "from_offset": "120", "until_offset": "300", "seq": "5",
         "cause": "skipped", "recorded_at": "2026-11-30T09:01:00Z", "acknowledged_by": null}, {"topic": "orders",
         "partition": 0, "from_offset": "100", "until_offset": "110", "seq": "4", "cause": "hole",
         "recorded_at": null, "acknowledged_by": null}, {"topic": "orders", "partition": 1, "from_offset": "250",
         "until_offset": "251", "seq": "4", "cause": "hole", "recorded_at": null, "acknowledged_by": null},
         {"topic": "orders", "partition": 0, "from_offset": "0", "until_offset": "100", "seq": "3",
         "cause": "expired", "recorded_at": "2026-11-30T09:00:00Z", "acknowledged_by": null}, {"topic": "orders",
         "partition": 1, "from_offset": "0", "until_offset": "250", "seq": "3", "cause": "expired",
         "recorded_at": "2026-11-30T09:00:00Z", "acknowledged_by": null}], "next": null}
        > GET /v1/groups/g/losses?order=asc
        200 {"losses": [{"topic": "orders", "partition": 1, "from_offset": "0", "until_offset": "250", "seq": "3",
         "cause": "expired", "recorded_at": "2026-11-30T09:00:00Z", "acknowledged_by": null}, {"topic": "orders",
         "partition": 0, "from_offset": "0", "until_offset": "100", "seq": "3", "cause": "expired",
         "recorded_at": "2026-11-30T09:00:00Z", "acknowledged_by": null}, {"topic": "orders", "partition": 1,
         "from_offset": "250", "until_offset": "251", "seq": "4", "cause": "hole", "recorded_at": null,
         "acknowledged_by": null}, {"topic": "orders", "partition": 0, "from_offset": "100", "until_offset": "110",
         "seq": "4", "cause": "hole", "recorded_at": null, "acknowledged_by": null}, {"topic": "orders",
         "partition": 0, "from_offset": "120", "until_offset": "300", "seq": "5", "cause": "skipped",
         "recorded_at": "2026-11-30T09:01:00Z", "acknowledged_by": null}], "next": null}
        > GET /v1/groups/g/losses?limit=2
        200 {"losses": [{"topic": "orders", "partition": 0, "from_offset": "120", "until_offset": "300", "seq": "5",
         "cause": "skipped", "recorded_at": "2026-11-30T09:01:00Z", "acknowledged_by": null}, {"topic": "orders",
         "partition": 0, "from_offset": "100", "until_offset": "110", "seq": "4", "cause": "hole",
         "recorded_at": null, "acknowledged_by": null}], "next": "[\"4\",\"orders\",0,\"100\"]"}
        > GET /v1/groups/g/losses?limit=2&cursor=%5B%224%22%2C%22orders%22%2C0%2C%22110%22%5D
        200 {"losses": [{"topic": "orders", "partition": 1, "from_offset": "250", "until_offset": "251", "seq": "4",
         "cause": "hole", "recorded_at": null, "acknowledged_by": null}, {"topic": "orders", "partition": 0,
         "from_offset": "0", "until_offset": "100", "seq": "3", "cause": "expired",
         "recorded_at": "2026-11-30T09:00:00Z", "acknowledged_by": null}], "next": "[\"3\",\"orders\",0,\"0\"]"}
        > GET /v1/groups/g/losses?cursor=4
        400 invalid {"detail": "cursor \"4\": not one that an earlier answer gave", "field": "cursor", "value": "4",
         "limit": "not one that an earlier answer gave"}
        > GET /v1/groups/g/losses?from=2026-11-30T09:00:00Z
        400 invalid {"detail": "from \"2026-11-30T09:00:00Z\": an unknown query parameter", "field": "from",
         "value": "2026-11-30T09:00:00Z", "limit": "an unknown query parameter"}
        ! acknowledge 3
        ! acknowledge 4
        > GET /v1/groups/g/losses
        200 {"losses": [{"topic": "orders", "partition": 0, "from_offset": "120", "until_offset": "300", "seq": "5",
         "cause": "skipped", "recorded_at": "2026-11-30T09:01:00Z", "acknowledged_by": null}], "next": null}
        > GET /v1/groups/g
        200 {"group": "g", "app": "default", "epoch": "2", "state": "active", "held": null, "owner": "o",
         "picked_up": {"epoch": "1", "owner": "o", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_committed",
         "cluster_id": null, "kafka_group": "g", "last_batch": {"batch": "1", "seq": "4", "batch_time": "2026-11-30T08:59:59Z",
         "recorded_at": "2026-11-30T09:01:00Z"}, "topics": [{"topic": "orders", "partitions": 2, "retired": false}],
         "open_holes": "0", "losses_open": "1", "growth": [], "losses_to_come": [], "mirror": "*", "members": "*", "last_fenced": null, "fenced_total": "0"}
        > GET /v1/groups/nobody/losses
        404 unknown-group {"detail": "no group nobody in this journal", "apps": []}
        "#,
    );
}
