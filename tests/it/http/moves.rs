//! Cases of holes and moves (cases.md, C14b and C26b to C26e) over HTTP.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::table::check;
use super::world::World;

#[test]
fn c14b_a_hole_that_a_crash_left_is_read_first() {
    check(
        &World::scripted(),
        r#"
        ! broker orders id=A 0:0..10000
        ! readable orders/0 0..10000
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "a"}
        200 {"epoch": "1", "..": 0}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T09:00:00Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 100, "until_offset": 200}]}
        201 {"notes": [{"topic": "orders", "partition": 0, "note": "hole", "from_offset": "0", "until_offset": "100"}], "..": 0}
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "b"}
        200 {"epoch": "2", "positions": [{"offset": "0", "verdict": "unread_hole", "..": 0}],
         "findings": [{"verdict": "unread_hole", "position": "200", "start": "0", "..": 0}], "..": 0}
        > POST /v1/groups/g/batches
        + {"epoch": 2, "batch_time": "2026-11-30T09:00:01Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 500}]}
        201 {"notes": [], "..": 0}
        > POST /v1/groups/g/batches
        + {"epoch": 2, "batch_time": "2026-11-30T09:00:02Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 9000, "until_offset": 9100}]}
        201 {"notes": [{"note": "hole", "from_offset": "500", "until_offset": "9000", "..": 0}], "..": 0}
        > POST /v1/groups/g/batches
        + {"epoch": 2, "batch_time": "2026-11-30T09:00:03Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 500, "until_offset": 542}]}
        201 {"notes": [{"note": "late", "from_offset": "500", "until_offset": "542", "..": 0}], "..": 0}
        > GET /v1/groups/g/losses
        200 {"losses": [{"cause": "hole", "from_offset": "542", "until_offset": "9000", "..": 0}], "next": null}
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "c"}
        200 {"positions": [{"offset": "542", "verdict": "unread_hole", "..": 0}], "..": 0}
        "#,
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c14b_tasks_that_commit_out_of_order_are_no_trouble() {
    const TASKS: u64 = 8;
    const EACH: u64 = 25;
    let world = Arc::new(World::scripted());
    world.change("broker orders id=A 0:0..520");
    world.want(200, "POST", "/v1/groups/g/start", r#"{"topics": ["orders"], "owner": "a"}"#).await;
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let world = Arc::clone(&world);
        tasks.spawn(async move {
            for index in (0..EACH).rev() {
                let from = (index * TASKS + task) * 10;
                let range =
                    json!([{"topic": "orders", "partition": 0, "from_offset": from, "until_offset": from + 10}]);
                let commit = json!({"epoch": 1, "batch_time": 1_796_000_000_000 + from, "ranges": range});
                world.want(201, "POST", "/v1/groups/g/batches", &commit.to_string()).await;
            }
        });
    }
    for _ in 0..10 {
        world.want(200, "GET", "/v1/groups/g/positions", "").await;
    }
    tasks.join_all().await;
    let group = world.want(200, "GET", "/v1/groups/g", "").await;
    assert_eq!(
        (&group["epoch"], &group["open_holes"], &group["fenced_total"]),
        (&json!("1"), &json!("0"), &json!("0"))
    );
    let positions = world.want(200, "GET", "/v1/groups/g/positions", "").await;
    assert_eq!(positions["positions"][0]["offset"], (TASKS * EACH * 10).to_string());
    let batches = world.want(200, "GET", "/v1/groups/g/batches?order=asc&limit=1000", "").await;
    let numbers: Vec<&str> =
        batches["batches"].as_array().expect("a list").iter().map(|b| b["batch"].as_str().expect("a number")).collect();
    assert_eq!(numbers, (1..=TASKS * EACH).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(world.state().seq.as_u64(), 2 + TASKS * EACH, "an entry besides the start and the batches");
}

#[test]
fn c26b_a_topic_that_is_gone_keeps_the_whole_where_it_is_unless_it_may_be_left() {
    check(
        &World::scripted(),
        r#"
        ! broker a id=A 0:0..100
        ! broker b id=B 0:0..100 1:0..100
        > POST /v1/groups/g/start {"topics": ["a", "b"], "owner": "o"}
        200 {"epoch": "1", "..": 0}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T09:00:00Z", "ranges": [
        +   {"topic": "a", "partition": 0, "from_offset": 0, "until_offset": 50},
        +   {"topic": "b", "partition": 0, "from_offset": 0, "until_offset": 50},
        +   {"topic": "b", "partition": 1, "from_offset": 0, "until_offset": 50}]}
        201 {"batch": "1", "..": 0}
        ! broker a missing
        > POST /v1/groups/g/rollback {"to": {"offset": 10}, "actor": "ann", "reason": "why"}
        409 refused {"plan": {"executable": false, "refusals": [{"topic": "a", "partition": 0, "outcome": "missing", "why": "*"}], "..": 0}}
        ! broker a id=A 0:0..100
        ! broker b id=B 0:0..100 1:?
        > POST /v1/groups/g/rollback {"to": {"offset": 10}, "actor": "ann", "reason": "why"}
        409 refused {"plan": {"executable": false, "refusals": [{"topic": "b", "partition": 1, "outcome": "unknown", "why": "*"}], "..": 0}}
        > POST /v1/groups/g/rollback {"to": {"offset": 10}, "leave_unmovable": true, "actor": "ann", "reason": "why"}
        200 {"epoch": "2", "partitions": [{"topic": "a", "partition": 0, "old": "50", "new": "10"}, {"topic": "b", "partition": 0, "old": "50", "new": "10"}], "..": 0}
        ! broker a error
        ! broker b error
        > POST /v1/groups/g/rollback {"to": {"offset": 5}, "actor": "ann", "reason": "why"}
        503 broker-unavailable {"brokers": "fake:9092", "deadline_ms": 250, "unknown": [
         {"topic": "a", "partition": 0}, {"topic": "b", "partition": 0}, {"topic": "b", "partition": 1}]}
        > POST /v1/groups/g/rollback {"to": {"offset": 5}, "unchecked": true, "actor": "ann", "reason": "why"}
        200 {"epoch": "3", "partitions": ["*", "*", {"topic": "b", "partition": 1, "old": "50", "new": "5"}], "..": 0}
        ! broker a id=A 0:20..100
        ! broker b id=B 0:0..100 1:0..100
        > POST /v1/groups/g/start {"topics": ["a", "b"], "owner": "o"}
        200 {"epoch": "3", "findings": [{"topic": "a", "verdict": "head_out_of_range", "position": "5", "start": "20", "..": 0}], "..": 0}
        "#,
    );
}

#[test]
fn c26c_before_a_batch_is_the_lower_of_its_begin_and_the_position() {
    check(
        &World::scripted(),
        r#"
        ! broker orders id=A 0:0..200
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o"}
        200 {"epoch": "1", "..": 0}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T09:00:00Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 100}]}
        201 {"batch": "1", "..": 0}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T09:00:01Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 50, "until_offset": 150}]}
        201 {"batch": "2", "..": 0}
        > POST /v1/groups/g/rollback {"to": {"batch": 2, "edge": "before"}, "actor": "ann", "reason": "why"}
        200 {"partitions": [{"topic": "orders", "partition": 0, "old": "150", "new": "50"}], "..": 0}
        "#,
    );
}

/// A plan's own request is executed once, at the plan's offsets, while the consumer goes on.
#[test]
fn c26d_a_plan_is_done_once_while_the_consumer_goes_on() {
    for (to, executed, new) in [
        (r#"{"shift": -100}"#, r#"{"offsets": [{"topic": "orders", "partition": 0, "offset": "800"}]}"#, "800"),
        (r#"{"latest": true}"#, r#"{"offsets": [{"topic": "orders", "partition": 0, "offset": "1300"}]}"#, "1300"),
    ] {
        check(
            &World::scripted(),
            &format!(
                r#"
                ! broker orders id=A 0:0..1300
                > POST /v1/groups/g/start {{"topics": ["orders"], "owner": "o"}}
                200 {{"epoch": "1", "..": 0}}
                > POST /v1/groups/g/batches
                + {{"epoch": 1, "batch_time": "2026-11-30T09:00:00Z",
                +  "ranges": [{{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 900}}]}}
                201 {{"batch": "1", "..": 0}}
                > POST /v1/groups/g/rollback/plan {{"to": {to}}}
                200 {{"plan": "$plan", "execute": {{"to": {executed}, "plan": "$plan", "..": 0}}, "..": 0}}
                > POST /v1/groups/g/batches
                + {{"epoch": 1, "batch_time": "2026-11-30T09:00:01Z",
                +  "ranges": [{{"topic": "orders", "partition": 0, "from_offset": 900, "until_offset": 1200}}]}}
                201 {{"batch": "2", "seq": "4", "..": 0}}
                > POST /v1/groups/g/rollback {{"to": {executed}, "plan": $plan, "actor": "ann", "reason": "why"}}
                200 {{"seq": "5", "epoch": "2", "repeated": false, "partitions": [{{"old": "1200", "new": "{new}", "..": 0}}], "..": 0}}
                > POST /v1/groups/g/rollback {{"to": {executed}, "plan": $plan, "actor": "ann", "reason": "why"}}
                200 {{"seq": "5", "epoch": "2", "repeated": true, "partitions": [{{"old": "1200", "new": "{new}", "..": 0}}], "..": 0}}
                "#
            ),
        );
    }
    check(
        &World::scripted(),
        r#"
        ! broker orders id=A 0:0..1300
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o"}
        200 {"epoch": "1", "..": 0}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T09:00:00Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 900}]}
        201 {"batch": "1", "..": 0}
        > POST /v1/groups/g/rollback {"to": {"offset": 500}, "actor": "ann", "reason": "why"}
        200 {"epoch": "2", "seq": "4", "..": 0}
        > POST /v1/groups/g/batches
        + {"epoch": 2, "batch_time": "2026-11-30T09:00:01Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 500, "until_offset": 1200}]}
        201 {"batch": "2", "seq": "5", "..": 0}
        > POST /v1/groups/g/rollback/plan {"to": {"undo": true}}
        200 {"nothing_to_do": true, "partitions": [{"position": "1200", "start": "1200", "outcome": "unchanged", "..": 0}], "..": 0}
        > POST /v1/groups/g/rollback {"to": {"undo": true}, "actor": "ann", "reason": "why"}
        200 {"seq": null, "epoch": "2", "..": 0}
        "#,
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c26e_an_idle_consumer_is_at_its_new_place_within_a_second() {
    let world = Arc::new(World::scripted());
    world.change("broker orders id=A 0:0..900");
    let start = r#"{"topics": ["orders"], "owner": "a"}"#;
    world.want(200, "POST", "/v1/groups/g/start", start).await;
    let range = json!([{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 900}]);
    let commit = json!({"epoch": 1, "batch_time": "2026-11-30T09:00:00Z", "ranges": range}).to_string();
    world.want(201, "POST", "/v1/groups/g/batches", &commit).await;

    let consumer = Arc::clone(&world);
    let idle = tokio::spawn(async move {
        let group = consumer.want(200, "GET", "/v1/groups/g?epoch_above=1&wait=60s", "").await;
        assert_eq!(group["epoch"], "2");
        let not_yet = group["picked_up"]["epoch"].clone();
        let started = consumer.want(200, "POST", "/v1/groups/g/start", start).await;
        (not_yet, started["positions"][0]["offset"].clone(), Instant::now())
    });
    let rollback = r#"{"to": {"offset": 500}, "actor": "ann", "reason": "why"}"#;
    world.want(200, "POST", "/v1/groups/g/rollback", rollback).await;
    let rolled_back = Instant::now();
    let (not_yet, offset, there) = idle.await.expect("no panic");
    assert_eq!((not_yet, offset), (json!("1"), json!("500")));
    assert!(there.saturating_duration_since(rolled_back) < Duration::from_secs(1));
    let group = world.want(200, "GET", "/v1/groups/g", "").await;
    assert_eq!(
        (&group["epoch"], &group["picked_up"]["epoch"]),
        (&json!("2"), &json!("2")),
        "the same owner: no new epoch"
    );
}
