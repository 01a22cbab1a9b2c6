//! `POST /v1/groups/{g}/start`: where to read, and what was found.

use super::table::check;
use super::world::World;

#[test]
fn a_start_answers_verdicts_and_findings_and_is_done_once() {
    check(
        &World::scripted(),
        r#"
        ! cluster GlwF
        ! broker orders id=A 0:0..520(510) 1:0..400
        ! broker audit-a no-id 0:7..9
        > POST /v1/groups/g/start {"topics": ["orders", "^audit-.*"], "owner": "loader@host1:4711", "dry_run": true}
        200 {"group": "g", "app": "default", "epoch": "1", "seq": "0", "cluster_id": "GlwF",
         "positions": [{"topic": "audit-a", "partition": 0, "topic_id": null, "offset": "7", "verdict": "new_group",
         "earliest": "7", "latest": "9", "readable_end": "9", "replaying_until": null}, {"topic": "orders",
         "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "0", "verdict": "new_group", "earliest": "0",
         "latest": "520", "readable_end": "510", "replaying_until": null}, {"topic": "orders", "partition": 1,
         "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "0", "verdict": "new_group", "earliest": "0",
         "latest": "400", "readable_end": "400", "replaying_until": null}], "findings": []}
        > GET /v1/groups
        200 {"groups": [], "next": null}
        > POST /v1/groups/g/start
        + {"topics": ["orders", "^audit-.*"], "owner": "loader@host1:4711", "new_group": "earliest",
        +  "reset": {"head": "earliest", "tail": "earliest", "recreated": "earliest", "missing": "fail", "hole": "reread"},
        +  "isolation": "read_committed", "accept_cluster": null, "dry_run": false}
        200 {"group": "g", "app": "default", "epoch": "1", "seq": "2", "cluster_id": "GlwF",
         "positions": [{"topic": "audit-a", "partition": 0, "topic_id": null, "offset": "7", "verdict": "new_group",
         "earliest": "7", "latest": "9", "readable_end": "9", "replaying_until": null}, {"topic": "orders",
         "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "0", "verdict": "new_group", "earliest": "0",
         "latest": "520", "readable_end": "510", "replaying_until": null}, {"topic": "orders", "partition": 1,
         "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "0", "verdict": "new_group", "earliest": "0",
         "latest": "400", "readable_end": "400", "replaying_until": null}], "findings": []}
        > POST /v1/groups/g/start {"topics": ["orders", "^audit-.*"], "owner": "loader@host1:4711"}
        200 {"group": "g", "app": "default", "epoch": "1", "seq": "2", "cluster_id": "GlwF",
         "positions": [{"topic": "audit-a", "partition": 0, "topic_id": null, "offset": "7", "verdict": "in_range",
         "earliest": "7", "latest": "9", "readable_end": "9", "replaying_until": null}, {"topic": "orders",
         "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "0", "verdict": "in_range", "earliest": "0",
         "latest": "520", "readable_end": "510", "replaying_until": null}, {"topic": "orders", "partition": 1,
         "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "0", "verdict": "in_range", "earliest": "0", "latest": "400",
         "readable_end": "400", "replaying_until": null}], "findings": []}
        > POST /v1/groups/g/start?format=spark {"topics": ["orders"], "owner": "loader@host1:4711"}
        200 {"orders": {"0": 0, "1": 0}}
        > POST /v1/groups/g/start?format=flink {"topics": ["orders"], "owner": "loader@host1:4711"}
        400 invalid {"detail": "format \"flink\": spark, or leave it out", "field": "format", "value": "flink",
         "limit": "spark, or leave it out"}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T08:59:59Z", "ranges": [
        +   {"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 500},
        +   {"topic": "orders", "partition": 1, "from_offset": 0, "until_offset": 100}]}
        201 {"batch": "1", "seq": "3", "recorded_at": "2026-11-30T09:00:00Z", "repeated": false, "notes": []}
        ! broker orders id=A 0:0..520 1:250..400 2:12..40
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "loader@host1:4711", "dry_run": true}
        200 {"group": "g", "app": "default", "epoch": "1", "seq": "3", "cluster_id": "GlwF",
         "positions": [{"topic": "orders", "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "500",
         "verdict": "in_range", "earliest": "0", "latest": "520", "readable_end": "520", "replaying_until": null},
         {"topic": "orders", "partition": 1, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "250",
         "verdict": "head_out_of_range", "earliest": "250", "latest": "400", "readable_end": "400",
         "replaying_until": null}, {"topic": "orders", "partition": 2, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ",
         "offset": "12", "verdict": "partition_added", "earliest": "12", "latest": "40", "readable_end": "40",
         "replaying_until": null}], "findings": [{"topic": "orders", "partition": 1, "verdict": "head_out_of_range",
         "position": "100", "earliest": "250", "latest": "400", "start": "250", "loss": {"from_offset": "100",
         "until_offset": "250"}, "detail": null}, {"topic": "orders", "partition": 2, "verdict": "partition_added",
         "position": null, "earliest": "12", "latest": "40", "start": "12", "loss": {"from_offset": "0",
         "until_offset": "12"}, "detail": null}]}
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "loader@host2:1"}
        200 {"group": "g", "app": "default", "epoch": "2", "seq": "6", "cluster_id": "GlwF",
         "positions": [{"topic": "orders", "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "500",
         "verdict": "in_range", "earliest": "0", "latest": "520", "readable_end": "520", "replaying_until": null},
         {"topic": "orders", "partition": 1, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "250",
         "verdict": "head_out_of_range", "earliest": "250", "latest": "400", "readable_end": "400",
         "replaying_until": null}, {"topic": "orders", "partition": 2, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ",
         "offset": "12", "verdict": "partition_added", "earliest": "12", "latest": "40", "readable_end": "40",
         "replaying_until": null}], "findings": [{"topic": "orders", "partition": 1, "verdict": "head_out_of_range",
         "position": "100", "earliest": "250", "latest": "400", "start": "250", "loss": {"from_offset": "100",
         "until_offset": "250"}, "detail": null}, {"topic": "orders", "partition": 2, "verdict": "partition_added",
         "position": null, "earliest": "12", "latest": "40", "start": "12", "loss": {"from_offset": "0",
         "until_offset": "12"}, "detail": null}]}
        ! broker orders id=A 0:0..520 1:300..400 2:12..40
        ! broker audit-a missing
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "loader@host2:1", "reset": {"head": "fail"}}
        409 refused
         {"detail": "group g can't start: orders/1: head_out_of_range, was at 250, the log holds [300,400)",
         "findings": [{"topic": "orders", "partition": 1, "verdict": "head_out_of_range", "position": "250",
         "earliest": "300", "latest": "400", "start": null, "loss": {"from_offset": "250", "until_offset": "300"},
         "detail": null}]}
        > POST /v1/groups/g/start {"topics": [], "owner": "loader@host2:1", "reset": {"missing": "skip"}}
        200 {"group": "g", "app": "default", "epoch": "2", "seq": "7", "cluster_id": "GlwF",
         "positions": [{"topic": "orders", "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "500",
         "verdict": "in_range", "earliest": "0", "latest": "520", "readable_end": "520", "replaying_until": null},
         {"topic": "orders", "partition": 1, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "300",
         "verdict": "head_out_of_range", "earliest": "300", "latest": "400", "readable_end": "400",
         "replaying_until": null}, {"topic": "orders", "partition": 2, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ",
         "offset": "12", "verdict": "in_range", "earliest": "12", "latest": "40", "readable_end": "40",
         "replaying_until": null}], "findings": [{"topic": "audit-a", "partition": null, "verdict": "topic_missing",
         "position": null, "earliest": null, "latest": null, "start": null, "loss": null,
         "detail": "no such topic on fake:9092; its positions are kept"}, {"topic": "orders", "partition": 1,
         "verdict": "head_out_of_range", "position": "250", "earliest": "300", "latest": "400", "start": "300",
         "loss": {"from_offset": "250", "until_offset": "300"}, "detail": null}]}
        ! cluster Other
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "loader@host2:1"}
        409 refused
         {"detail": "group g can't start: other_cluster (the group belongs to cluster GlwF, but fake:9092 is cluster Other; to move the group there accept it by that id)",
         "findings": [{"topic": null, "partition": null, "verdict": "other_cluster", "position": null,
         "earliest": null, "latest": null, "start": null, "loss": null,
         "detail": "the group belongs to cluster GlwF, but fake:9092 is cluster Other; to move the group there accept it by that id"}]}
        ! hold g "mending the sink"
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "loader@host2:1"}
        409 held {"detail": "group g is on hold since 2026-11-30T09:00:00Z by ann: mending the sink",
         "held": {"reason": "mending the sink", "actor": "ann", "since": "2026-11-30T09:00:00Z", "seq": "8"}}
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "loader@host2:1", "dry_run": true}
        409 held {"detail": "group g is on hold since 2026-11-30T09:00:00Z by ann: mending the sink",
         "held": {"reason": "mending the sink", "actor": "ann", "since": "2026-11-30T09:00:00Z", "seq": "8"}}
        "#,
    );
}

#[test]
fn a_new_group_begins_where_it_is_told() {
    check(
        &World::scripted(),
        r#"
        ! broker orders id=A 0:100..520 1:0..400
        ! times orders/0=50 orders/1=end
        ! kafka orders/0=140
        > POST /v1/groups/a/start {"topics": ["orders"], "owner": "o", "new_group": "latest"}
        200 {"group": "a", "app": "default", "epoch": "1", "seq": "2", "cluster_id": null,
         "positions": [{"topic": "orders", "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "520",
         "verdict": "new_group", "earliest": "100", "latest": "520", "readable_end": "520", "replaying_until": null},
         {"topic": "orders", "partition": 1, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "offset": "400",
         "verdict": "new_group", "earliest": "0", "latest": "400", "readable_end": "400", "replaying_until": null}],
         "findings": []}
        > POST /v1/groups/b/start?format=spark {"topics": ["orders"], "owner": "o", "new_group": "2026-11-30T00:00:00Z"}
        200 {"orders": {"0": 100, "1": 400}}
        > POST /v1/groups/c/start?format=spark {"topics": ["orders"], "owner": "o", "new_group": "kafka"}
        200 {"orders": {"0": 140, "1": 0}}
        > POST /v1/groups/d/start {"topics": ["orders"], "owner": "o", "new_group": "fail"}
        409 refused
         {"detail": "group d can't start: orders/0: new_group, the log holds [100,520) (the group has no position, and new groups are refused (d)); orders/1: new_group, the log holds [0,400) (the group has no position, and new groups are refused (d))",
         "findings": [{"topic": "orders", "partition": 0, "verdict": "new_group", "position": null, "earliest": "100",
         "latest": "520", "start": null, "loss": null,
         "detail": "the group has no position, and new groups are refused (d)"}, {"topic": "orders", "partition": 1,
         "verdict": "new_group", "position": null, "earliest": "0", "latest": "400", "start": null, "loss": null,
         "detail": "the group has no position, and new groups are refused (d)"}]}
        > POST /v1/groups/e/start?format=spark {"topics": ["orders"], "owner": "o", "new_group": {"offsets": [{"topic": "orders", "partition": 0, "offset": "200"}]}}
        200 {"orders": {"0": 200, "1": 0}}
        > POST /v1/groups/f/start {"topics": ["orders"], "owner": "o", "new_group": {"offsets": [{"topic": "other", "partition": 0, "offset": 1}]}}
        400 invalid {"detail": "new_group.offsets \"other/0\": of a topic that the start does not ask for",
         "field": "new_group.offsets", "value": "other/0", "limit": "of a topic that the start does not ask for"}
        > POST /v1/groups/f/start {"topics": ["orders"], "owner": "o", "new_group": "yesterday"}
        400 invalid
         {"detail": "new_group: new_group \"yesterday\": earliest, latest, kafka, fail, a time such as 2026-11-30T10:00:00Z, or offsets",
         "field": "new_group", "value": "yesterday",
         "limit": "new_group \"yesterday\": earliest, latest, kafka, fail, a time such as 2026-11-30T10:00:00Z, or offsets"}
        > POST /v1/groups/f/start {"topics": [], "owner": "o"}
        400 invalid {"detail": "topics \"[]\": a new group needs a topic or a pattern", "field": "topics",
         "value": "[]", "limit": "a new group needs a topic or a pattern"}
        > POST /v1/groups/f/start {"topics": ["^("], "owner": "o"}
        400 invalid {"detail": "topic \"^(\": not a regular expression: found open group without closing ')'",
         "field": "topic", "value": "^(", "limit": "not a regular expression: found open group without closing ')'"}
        > POST /v1/groups/f/start {"topics": ["orders"], "owner": ""}
        400 invalid {"detail": "owner \"\": 0 bytes; it has 1 to 255", "field": "owner", "value": "",
         "limit": "0 bytes; it has 1 to 255"}
        > POST /v1/groups/f/start {"topics": ["orders"], "owner": "o", "reset": {"head": "maybe"}}
        400 invalid {"detail": "reset.head: unknown variant `maybe`, expected `earliest` or `fail`",
         "field": "reset.head", "value": "maybe", "limit": "unknown variant `maybe`, expected `earliest` or `fail`"}
        > POST /v1/groups/f/start {"topics": ["orders"], "owner": "o", "isolation": "none"}
        400 invalid {"detail": "isolation: unknown variant `none`, expected `read_committed` or `read_uncommitted`",
         "field": "isolation", "value": "none",
         "limit": "unknown variant `none`, expected `read_committed` or `read_uncommitted`"}
        ! broker orders error
        > POST /v1/groups/f/start {"topics": ["orders"], "owner": "o"}
        503 broker-unavailable {"detail": "fake:9092 did not settle where to start within 0.25 s: orders: timed out",
         "brokers": "fake:9092", "deadline_ms": 250, "unknown": [{"topic": "orders", "partition": null,
         "why": "timed out"}]}
        > GET /v1/groups/f
        404 unknown-group {"detail": "no group f in this journal", "apps": []}
        "#,
    );
}

#[test]
fn without_a_broker_positions_are_unchecked() {
    check(
        &World::alone(),
        r#"
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o"}
        200 {"group": "g", "app": "default", "epoch": "1", "seq": "1", "cluster_id": null, "positions": [],
         "findings": []}
        > POST /v1/groups/h/start
        + {"topics": ["orders"], "owner": "o", "new_group": {"offsets": [{"topic": "orders", "partition": 3, "offset": "9"}]}}
        200 {"group": "h", "app": "default", "epoch": "1", "seq": "3", "cluster_id": null,
         "positions": [{"topic": "orders", "partition": 3, "topic_id": null, "offset": "9", "verdict": "unchecked",
         "earliest": null, "latest": null, "readable_end": null, "replaying_until": null}], "findings": []}
        > POST /v1/groups/i/start {"topics": ["^orders"], "owner": "o"}
        400 invalid {"detail": "topics \"^orders\": a pattern needs a broker; name the topics", "field": "topics",
         "value": "^orders", "limit": "a pattern needs a broker; name the topics"}
        > POST /v1/groups/i/start {"topics": ["orders"], "owner": "o", "new_group": "latest"}
        400 invalid {"detail": "new_group \"latest\": needs a broker", "field": "new_group", "value": "latest",
         "limit": "needs a broker"}
        "#,
    );
}
