//! `GET /v1/topics/{t}/partitions/{p}/offsets/{o}`: which batches read an offset.

use super::table::check;
use super::world::World;

/// Two groups read `orders`; `g` was rolled back, and the topic then made again.
const READ: &str = r#"
    ! broker orders id=A 0:0..520 1:0..520
    > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o"}
    200 {"epoch": "1", "..": 0}
    > POST /v1/groups/h/start?app=billing {"topics": ["orders"], "owner": "o"}
    200 {"epoch": "1", "..": 0}
    > POST /v1/groups/g/batches
    + {"epoch": 1, "batch_time": "2026-11-30T08:50:00Z", "ranges": [
    +   {"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 42},
    +   {"topic": "orders", "partition": 1, "from_offset": 0, "until_offset": 0}]}
    201 {"batch": "1", "seq": "5", "..": 0}
    ! clock +1m
    > POST /v1/groups/h/batches?app=billing
    + {"epoch": 1, "batch_time": "2026-11-30T08:51:00Z",
    +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 100}]}
    201 {"batch": "1", "seq": "6", "..": 0}
    > POST /v1/groups/g/rollback {"to": {"offset": 10}, "scope": [{"topic": "orders", "partitions": [0]}], "actor": "ann", "reason": "why"}
    200 {"seq": "7", "epoch": "2", "..": 0}
    ! clock +1m
    > POST /v1/groups/g/batches
    + {"epoch": 2, "batch_time": "2026-11-30T08:52:00Z",
    +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 10, "until_offset": 50}]}
    201 {"batch": "2", "seq": "8", "..": 0}
    ! broker orders id=B 0:0..5 1:0..5
    > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o"}
    200 {"epoch": "3", "..": 0}
    ! clock +1m
    > POST /v1/groups/g/batches
    + {"epoch": 3, "batch_time": "2026-11-30T08:53:00Z",
    +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 5}]}
    201 {"batch": "3", "seq": "10", "..": 0}
"#;

#[test]
fn an_offset_has_the_batches_that_read_it_over_groups_rollbacks_and_incarnations() {
    let mut script = READ.to_owned()
        + r#"
        > GET /v1/topics/orders/partitions/0/offsets/20
        200 {"readers": [
         {"group": "g", "app": "default", "batch": "2", "seq": "8", "batch_time": "2026-11-30T08:52:00Z",
          "recorded_at": "2026-11-30T09:02:00Z", "epoch": "2", "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ",
          "range": {"topic": "orders", "partition": 0, "from_offset": "10", "until_offset": "50"}},
         {"group": "h", "app": "billing", "batch": "1", "seq": "6", "batch_time": "2026-11-30T08:51:00Z",
          "recorded_at": "2026-11-30T09:01:00Z", "epoch": "1", "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ",
          "range": {"topic": "orders", "partition": 0, "from_offset": "0", "until_offset": "100"}},
         {"group": "g", "app": "default", "batch": "1", "seq": "5", "batch_time": "2026-11-30T08:50:00Z",
          "recorded_at": "2026-11-30T09:00:00Z", "epoch": "1", "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ",
          "range": {"topic": "orders", "partition": 0, "from_offset": "0", "until_offset": "42"}}], "next": null}
        > GET /v1/topics/orders/partitions/0/offsets/4?limit=1
        200 {"readers": [
         {"group": "g", "app": "default", "batch": "3", "seq": "10", "batch_time": "2026-11-30T08:53:00Z",
          "recorded_at": "2026-11-30T09:03:00Z", "epoch": "3", "topic_id": "QkJCQkJCQkJCQkJCQkJCQg",
          "range": {"topic": "orders", "partition": 0, "from_offset": "0", "until_offset": "5"}}], "next": "7"}
        "#;
    for (query, seqs, next) in [
        ("4", "10 6 5", "null"),
        ("4?order=asc", "5 6 10", "null"),
        ("4?limit=1&cursor=7", "6", "\"6\""),
        ("4?limit=1&cursor=6", "5", "null"),
        ("4?limit=2&order=asc", "5 6", "\"9\""),
        ("4?limit=2&order=asc&cursor=9", "10", "null"),
        ("4?group=g", "10 5", "null"),
        ("4?group=h", "6", "null"),
        ("4?app=billing", "6", "null"),
        ("4?app=billing&group=h&cursor=6", "", "null"),
        ("4?app=nobody", "", "null"),
        // The ends of ranges; the last was read by nobody.
        ("5", "6 5", "null"),
        ("9", "6 5", "null"),
        ("10", "8 6 5", "null"),
        ("41", "8 6 5", "null"),
        ("42", "8 6", "null"),
        ("99", "6", "null"),
        ("100", "", "null"),
        ("9223372036854775807", "", "null"),
    ] {
        let readers: Vec<String> = seqs.split_whitespace().map(|n| format!(r#"{{"seq": "{n}", "..": 0}}"#)).collect();
        script += &format!(
            "> GET /v1/topics/orders/partitions/0/offsets/{query}\n200 {{\"readers\": [{}], \"next\": {next}}}\n",
            readers.join(", ")
        );
    }
    // An idle partition, and one that nobody has.
    for partition in [1, 7] {
        script += &format!(
            "> GET /v1/topics/orders/partitions/{partition}/offsets/0\n200 {{\"readers\": [], \"next\": null}}\n"
        );
    }
    check(&World::scripted(), &script);
}

#[test]
fn what_is_no_topic_partition_offset_or_group_is_said_by_name() {
    check(
        &World::scripted(),
        &(READ.to_owned()
            + r#"
        > GET /v1/topics/ordres/partitions/0/offsets/4
        404 unknown-topic {"detail": "no group of this journal has, or had, topic ordres; GET /v1/groups lists their topics",
         "topic": "ordres"}
        > GET /v1/topics/a%2Fb/partitions/0/offsets/4
        400 invalid {"field": "topic", "value": "a/b", "..": 0}
        > GET /v1/topics/orders/partitions/-1/offsets/4
        400 invalid {"detail": "partition \"-1\": a partition is 0 to 2147483647", "field": "partition", "value": "-1",
         "limit": "a partition is 0 to 2147483647"}
        > GET /v1/topics/orders/partitions/2147483648/offsets/4
        400 invalid {"field": "partition", "value": "2147483648", "..": 0}
        > GET /v1/topics/orders/partitions/0/offsets/-1
        400 invalid {"field": "offset", "value": "-1", "..": 0}
        > GET /v1/topics/orders/partitions/0/offsets/1e3
        400 invalid {"field": "offset", "value": "1e3", "..": 0}
        > GET /v1/topics/orders/partitions/0/offsets/9223372036854775808
        400 invalid {"field": "offset", "value": "9223372036854775808", "..": 0}
        > GET /v1/topics/orders/partitions/0/offsets/4?group=nobody
        404 unknown-group {"detail": "no group nobody in this journal", "apps": []}
        > GET /v1/topics/orders/partitions/0/offsets/4?group=h&app=default
        404 unknown-group {"detail": "no group h of app default in this journal", "apps": ["billing"]}
        > GET /v1/topics/orders/partitions/0/offsets/4?group=
        400 invalid {"field": "group", "value": "", "..": 0}
        > GET /v1/topics/orders/partitions/0/offsets/4?cursor=x
        400 invalid {"field": "cursor", "value": "x", "..": 0}
        > GET /v1/topics/orders/partitions/0/offsets/4?limit=1001
        400 invalid {"field": "limit", "value": "1001", "..": 0}
        > GET /v1/topics/orders/partitions/0/offsets/4?order=up
        400 invalid {"field": "order", "value": "up", "..": 0}
        > GET /v1/topics/orders/partitions/0/offsets
        404 not-found {"detail": "there is nothing at /v1/topics/orders/partitions/0/offsets"}
        "#),
    );
}

#[test]
fn a_retired_topic_keeps_its_readers() {
    check(
        &World::scripted(),
        &(READ.to_owned()
            + r#"
        > POST /v1/groups/g/retire {"topic": "orders", "actor": "ann"}
        201
        > GET /v1/topics/orders/partitions/0/offsets/4?group=g
        200 {"readers": [{"seq": "10", "..": 0}, {"seq": "5", "..": 0}], "next": null}
        "#),
    );
}
