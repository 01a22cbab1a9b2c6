//! `POST` and `GET /v1/groups/{g}/batches`, `GET /v1/groups/{g}/batches/{n}`: commits, and the list of them.

use super::table::check;
use super::world::World;

const STARTED: &str = r#"
    ! broker orders id=A 0:0..520 1:0..520
    > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o"}
    200 {"epoch": "1", "..": 0}
"#;

#[test]
fn a_commit_is_taken_once_and_answered_again() {
    check(
        &World::scripted(),
        &(STARTED.to_owned()
            + r#"
        > POST /v1/groups/g/batches
        + {"epoch": "1", "batch_time": "2026-11-30T10:00:00Z", "key": "job-17/42",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": "0", "until_offset": "42"}]}
        201 {"batch": "1", "seq": "3", "recorded_at": "2026-11-30T09:00:00Z", "repeated": false, "notes": []}
        ! clock +1m
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T11:00:00Z", "key": "job-17/42",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 42}]}
        200 {"batch": "1", "seq": "3", "recorded_at": "2026-11-30T09:00:00Z", "repeated": true, "notes": []}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T10:00:00Z", "key": "job-17/42",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 43}]}
        409 key-conflict {"detail": "key \"job-17/42\" was used for batch 1 with other ranges", "key": "job-17/42",
         "first": {"batch": "1", "seq": "3", "recorded_at": "2026-11-30T09:00:00Z", "repeated": true, "notes": []}}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": 1796036399000,
        +  "spark": {"start": {"orders": {"0": 50, "1": 0}}, "end": {"orders": {"0": 60, "1": 0}}}}
        201 {"batch": "2", "seq": "4", "recorded_at": "2026-11-30T09:01:00Z", "repeated": false,
         "notes": [{"topic": "orders", "partition": 0, "note": "hole", "from_offset": "42", "until_offset": "50"}]}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T10:59:59Z",
        +  "spark": {"start": {"orders": {"0": 50, "1": 0}}, "end": {"orders": {"0": 60, "1": 0}}}}
        200 {"batch": "2", "seq": "4", "recorded_at": "2026-11-30T09:01:00Z", "repeated": true,
         "notes": [{"topic": "orders", "partition": 0, "note": "hole", "from_offset": "42", "until_offset": "50"}]}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T11:00:00Z", "ranges": [
        +   {"topic": "orders", "partition": 2, "from_offset": 3, "until_offset": 4}]}
        400 invalid {"detail": "ranges \"orders/2\": the group has no such partition, and fake:9092 lists 2 of orders",
         "field": "ranges", "value": "orders/2",
         "limit": "the group has no such partition, and fake:9092 lists 2 of orders"}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T11:00:00Z",
        +  "ranges": [{"topic": "other", "partition": 0, "from_offset": 3, "until_offset": 4}]}
        400 invalid {"field": "ranges", "value": "other/0", "..": 0}
        ! broker orders id=A 0:0..520 1:0..520 2:3..520
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T11:00:00Z", "ranges": [
        +   {"topic": "orders", "partition": 0, "from_offset": 55, "until_offset": 70},
        +   {"topic": "orders", "partition": 1, "from_offset": 0, "until_offset": 0},
        +   {"topic": "orders", "partition": 2, "from_offset": 3, "until_offset": 4}]}
        201 {"batch": "3", "seq": "5", "recorded_at": "2026-11-30T09:01:00Z", "repeated": false,
         "notes": [{"topic": "orders", "partition": 0, "note": "overlap", "from_offset": "55", "until_offset": "60"},
         {"topic": "orders", "partition": 2, "note": "first", "from_offset": "3", "until_offset": "4"}]}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T11:00:01Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 42, "until_offset": 50}]}
        201 {"batch": "4", "seq": "6", "recorded_at": "2026-11-30T09:01:00Z", "repeated": false,
         "notes": [{"topic": "orders", "partition": 0, "note": "late", "from_offset": "42", "until_offset": "50"}]}
        > GET /v1/groups/g/batches/1
        200 {"batch": "1", "seq": "3", "batch_time": "2026-11-30T10:00:00Z", "recorded_at": "2026-11-30T09:00:00Z",
         "epoch": "1", "key": "job-17/42", "ranges": [{"topic": "orders", "partition": 0, "from_offset": "0",
         "until_offset": "42"}], "notes": []}
        > GET /v1/groups/g/batches/4
        200 {"batch": "4", "seq": "6", "batch_time": "2026-11-30T11:00:01Z", "recorded_at": "2026-11-30T09:01:00Z",
         "epoch": "1", "key": null, "ranges": [{"topic": "orders", "partition": 0, "from_offset": "42",
         "until_offset": "50"}], "notes": [{"topic": "orders", "partition": 0, "note": "late", "from_offset": "42",
         "until_offset": "50"}]}
        > GET /v1/groups/g/batches/5
        404 unknown-batch {"detail": "no batch 5 of group g; its newest is 4", "newest": "4"}
        > GET /v1/groups/g/batches/0
        400 invalid {"detail": "batch \"0\": batches are numbered from 1", "field": "batch", "value": "0",
         "limit": "batches are numbered from 1"}
        > GET /v1/groups/g/batches/x
        400 invalid {"detail": "batch \"x\": not a whole number of digits only, 0 to 9223372036854775807",
         "field": "batch", "value": "x", "limit": "not a whole number of digits only, 0 to 9223372036854775807"}
        > GET /v1/groups/nobody/batches/1
        404 unknown-group {"detail": "no group nobody in this journal", "apps": []}
        "#),
    );
}

#[test]
fn a_commit_is_refused_for_a_reason_that_a_program_can_read() {
    check(
        &World::scripted(),
        &(STARTED.to_owned()
            + r#"
        > POST /v1/groups/nobody/batches
        + {"epoch": 1, "batch_time": "2026-11-30T10:00:00Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 42}]}
        404 unknown-group {"detail": "no group nobody in this journal; start it first", "apps": []}
        > POST /v1/groups/g/batches?app=other
        + {"epoch": 1, "batch_time": "2026-11-30T10:00:00Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 42}]}
        404 unknown-group {"apps": ["default"]}
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o2"}
        200 {"epoch": "2", "..": 0}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T10:00:00Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 42}]}
        409 fenced
         {"detail": "fenced: read under epoch 1, but group g is at epoch 2 (started by o2, seq 3); start again",
         "epoch": "2", "raised_by": {"kind": "started", "seq": "3", "by": "o2"}}
        > POST /v1/groups/g/batches
        + {"epoch": 3, "batch_time": "2026-11-30T10:00:00Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 42}]}
        409 journal-behind
         {"detail": "epoch 3 is above 2, the newest of group g: this journal is an older copy of the one that the consumer started from",
         "epoch": "2"}
        > POST /v1/groups/g/batches
        + {"epoch": 2, "batch_time": "2026-11-30T10:00:00Z", "ranges": [
        +   {"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 42, "topic_id": "QkJCQkJCQkJCQkJCQkJCQg"}]}
        409 fenced
         {"detail": "fenced: orders was read under topic id QkJCQkJCQkJCQkJCQkJCQg, but is QUFBQUFBQUFBQUFBQUFBQQ now; start group g again",
         "epoch": "2", "raised_by": null, "topic": "orders", "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ"}
        > POST /v1/groups/g/batches
        + {"epoch": 2, "batch_time": "2026-11-30T10:00:00Z", "ranges": [
        +   {"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 42, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ"}]}
        201 {"batch": "1", "seq": "4", "recorded_at": "2026-11-30T09:00:00Z", "repeated": false, "notes": []}
        ! hold g "mending the sink"
        > POST /v1/groups/g/batches
        + {"epoch": 2, "batch_time": "2026-11-30T10:00:00Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 42, "until_offset": 43}]}
        409 held {"detail": "group g is on hold since 2026-11-30T09:00:00Z by ann: mending the sink",
         "held": {"reason": "mending the sink", "actor": "ann", "since": "2026-11-30T09:00:00Z", "seq": "5"}}
        ! release g
        ! retire g orders
        > POST /v1/groups/g/batches
        + {"epoch": 2, "batch_time": "2026-11-30T10:00:00Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 42, "until_offset": 43}]}
        400 invalid {"detail": "topic \"orders\": retired in this group; a start that names it brings it back",
         "field": "topic", "value": "orders", "limit": "retired in this group; a start that names it brings it back"}
        > POST /v1/groups/g/batches
        + {"epoch": 2, "batch_time": "2026-11-30T10:00:00Z",
        +  "ranges": [], "spark": {"start": {}, "end": {}}}
        400 invalid {"detail": "ranges \"\": given beside spark; give one of the two", "field": "ranges", "value": "",
         "limit": "given beside spark; give one of the two"}
        > POST /v1/groups/g/batches {"epoch": 2, "batch_time": "2026-11-30T10:00:00Z"}
        400 invalid {"detail": "ranges \"\": missing; give ranges, or spark in their place", "field": "ranges",
         "value": "", "limit": "missing; give ranges, or spark in their place"}
        > POST /v1/groups/g/batches {"epoch": 2, "batch_time": "2026-11-30T10:00:00Z", "ranges": []}
        400 invalid {"detail": "ranges \"0\": a batch has 1 to 100000 ranges", "field": "ranges", "value": "0",
         "limit": "a batch has 1 to 100000 ranges"}
        > POST /v1/groups/g/batches {"epoch": 2, "batch_time": "2026-11-30T10:00:00Z", "spark": {"start": {"orders": {"0": 1}}, "end": {}}}
        400 invalid {"detail": "spark.end \"orders/0\": is in spark.start only", "field": "spark.end",
         "value": "orders/0", "limit": "is in spark.start only"}
        > POST /v1/groups/g/batches {"epoch": 2, "batch_time": "2026-11-30T10:00:00Z", "spark": {"start": {}, "end": {"orders": {"0": 1}}}}
        400 invalid {"detail": "spark.start \"orders/0\": is in spark.end only; say where it began",
         "field": "spark.start", "value": "orders/0", "limit": "is in spark.end only; say where it began"}
        > POST /v1/groups/g/batches {"batch_time": "2026-11-30T10:00:00Z", "ranges": []}
        400 invalid {"detail": "epoch: missing field `epoch`", "field": "epoch", "value": "",
         "limit": "missing field `epoch`"}
        > POST /v1/groups/g/batches
        + {"epoch": 2, "batch_time": "2026-11-30T10:00:00Z", "ranges": [
        +   {"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 2},
        +   {"topic": "orders", "partition": 0, "from_offset": 3, "until_offset": 4}]}
        400 invalid
         {"detail": "ranges \"orders/0 [0,2) and orders/0 [3,4)\": one partition twice, and the ranges do not touch; give each partition once",
         "field": "ranges", "value": "orders/0 [0,2) and orders/0 [3,4)",
         "limit": "one partition twice, and the ranges do not touch; give each partition once"}
        > GET /v1/groups/g/batches
        200 {"batches": [{"batch": "1", "seq": "4", "batch_time": "2026-11-30T10:00:00Z",
         "recorded_at": "2026-11-30T09:00:00Z", "epoch": "2", "key": null, "ranges": [{"topic": "orders",
         "partition": 0, "from_offset": "0", "until_offset": "42"}], "notes": []}], "next": null}
        "#),
    );
}

#[test]
fn the_list_of_batches_is_filtered_ordered_and_read_part_by_part() {
    let mut script = STARTED.to_owned() + "! broker audit id=B 0:0..9 1:5..9\n";
    for n in 0..6 {
        let (partition, topic) = (n % 2, if n == 5 { "audit" } else { "orders" });
        script += &format!(
            r#"
            > POST /v1/groups/g/batches
            + {{"epoch": 1, "batch_time": "2026-11-30T08:5{n}:00Z", "key": "k{n}", "ranges":
            +  [{{"topic": "{topic}", "partition": {partition}, "from_offset": {n}, "until_offset": {}}}]}}
            201 {{"batch": "{}", "..": 0}}
            ! clock +1m
            "#,
            n + 1,
            n + 1
        );
    }
    let numbers = [
        ("", "6 5 4 3 2 1", "null"),
        ("?order=asc", "1 2 3 4 5 6", "null"),
        ("?limit=2", "6 5", "\"5\""),
        ("?limit=2&cursor=5", "4 3", "\"3\""),
        ("?limit=2&cursor=3", "2 1", "null"),
        ("?limit=4&order=asc", "1 2 3 4", "\"4\""),
        ("?limit=4&order=asc&cursor=4", "5 6", "null"),
        ("?topic=orders", "5 4 3 2 1", "null"),
        ("?topic=audit", "6", "null"),
        ("?topic=nothing", "", "null"),
        ("?partition=1", "6 4 2", "null"),
        ("?topic=orders&partition=1", "4 2", "null"),
        ("?topic=orders&partition=1&limit=1", "4", "\"3\""),
        ("?topic=orders&partition=1&limit=1&cursor=3", "2", "null"),
        ("?from=2026-11-30T09:01:00Z&to=2026-11-30T09:04:00Z", "4 3 2", "null"),
        ("?from=2026-11-30T09:05:00Z", "6", "null"),
        ("?to=2026-11-30T09:00:00Z", "", "null"),
        ("?batch_from=2026-11-30T08:51:00Z&batch_to=2026-11-30T08:53:00Z", "3 2", "null"),
        ("?batch_from=1796028900000", "6", "null"),
    ];
    for (query, wanted, next) in numbers {
        let batches: Vec<String> =
            wanted.split_whitespace().map(|n| format!(r#"{{"batch": "{n}", "..": 0}}"#)).collect();
        script += &format!(
            "> GET /v1/groups/g/batches{query}\n200 {{\"batches\": [{}], \"next\": {next}}}\n",
            batches.join(", ")
        );
    }
    script += r#"
        > GET /v1/groups/g/batches?topic=audit
        200 {"batches": [{"batch": "6", "seq": "8", "batch_time": "2026-11-30T08:55:00Z",
         "recorded_at": "2026-11-30T09:05:00Z", "epoch": "1", "key": "k5", "ranges": [{"topic": "audit",
         "partition": 1, "from_offset": "5", "until_offset": "6"}], "notes": [{"topic": "audit", "partition": 1,
         "note": "first", "from_offset": "5", "until_offset": "6"}]}], "next": null}
        > GET /v1/groups/g/batches?partition=-1
        400 invalid {"detail": "partition \"-1\": a partition is 0 to 2147483647", "field": "partition",
         "value": "-1", "limit": "a partition is 0 to 2147483647"}
        > GET /v1/groups/g/batches?partition=2147483648
        400 invalid {"detail": "partition \"2147483648\": a partition is 0 to 2147483647", "field": "partition",
         "value": "2147483648", "limit": "a partition is 0 to 2147483647"}
        > GET /v1/groups/g/batches?topic=a/b
        400 invalid {"detail": "topic \"a/b\": a topic name has only a-z A-Z 0-9 . _ - and is not . or ..",
         "field": "topic", "value": "a/b", "limit": "a topic name has only a-z A-Z 0-9 . _ - and is not . or .."}
        > GET /v1/groups/g/batches?cursor=x
        400 invalid {"detail": "cursor \"x\": not one that an earlier answer gave", "field": "cursor", "value": "x",
         "limit": "not one that an earlier answer gave"}
        > GET /v1/groups/nobody/batches
        404 unknown-group {"detail": "no group nobody in this journal", "apps": []}
    "#;
    check(&World::scripted(), &script);
}
