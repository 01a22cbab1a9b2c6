//! `GET /v1/groups/{g}?epoch_above=&wait=`: how a consumer over HTTP learns of a rollback at once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::world::World;
use crate::wait::DEADLINE;

const START: &str = r#"{"topics": ["orders"], "owner": "o", "new_group": {"offsets": [{"topic": "orders", "partition": 0, "offset": 0}]}}"#;

async fn started() -> World {
    let world = World::alone();
    world.want(200, "POST", "/v1/groups/g/start", START).await;
    world
}

/// Asks in a task of its own, and returns once the request has been looked at.
async fn poll(world: &std::sync::Arc<World>, query: &str) -> tokio::task::JoinHandle<Value> {
    let (asking, target) = (std::sync::Arc::clone(world), format!("/v1/groups/g?{query}"));
    let task = tokio::spawn(async move { asking.want(200, "GET", &target, "").await });
    // One thread: the task runs until it waits.
    tokio::task::yield_now().await;
    task
}

async fn answer(task: tokio::task::JoinHandle<Value>) -> Value {
    tokio::time::timeout(DEADLINE, task).await.expect("an answer").expect("no panic")
}

#[tokio::test]
async fn a_poll_ends_when_the_epoch_rises_and_not_before() {
    let world = std::sync::Arc::new(started().await);
    let polls = [poll(&world, "epoch_above=1&wait=60s").await, poll(&world, "epoch_above=1&wait=60000ms").await];
    let range = json!([{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 9}]);
    let commit = json!({"epoch": 1, "batch_time": "2026-11-30T09:00:00Z", "ranges": range}).to_string();
    world.want(201, "POST", "/v1/groups/g/batches", &commit).await;
    world.want(201, "POST", "/v1/groups/g/marks", r#"{"name": "m", "actor": "ann"}"#).await;
    world.want(200, "POST", "/v1/groups/h/start", START).await;
    let rollback = r#"{"to": {"offset": 3}, "unchecked": true, "actor": "ann", "reason": "why"}"#;
    world.want(200, "POST", "/v1/groups/g/rollback", rollback).await;
    for poll in polls {
        assert_eq!(answer(poll).await["epoch"], "2", "another answer came before the rollback");
    }
    let begun = Instant::now();
    let late = answer(poll(&world, "epoch_above=1&wait=60s").await).await;
    assert_eq!((late["epoch"].as_str(), &late["picked_up"]["epoch"]), (Some("2"), &json!("1")));
    assert!(begun.elapsed() < DEADLINE);
}

#[tokio::test]
async fn a_poll_ends_after_its_time_with_what_there_is() {
    let world = std::sync::Arc::new(started().await);
    let begun = Instant::now();
    let group = answer(poll(&world, "epoch_above=1&wait=200ms").await).await;
    assert_eq!(group["epoch"], "1");
    assert!(begun.elapsed() >= Duration::from_millis(200), "{:?}", begun.elapsed());
    // Without `wait` it does not wait at all.
    assert_eq!(answer(poll(&world, "epoch_above=9223372036854775807").await).await["epoch"], "1");
}

#[tokio::test]
async fn a_poll_ends_when_the_server_stops() {
    let world = std::sync::Arc::new(started().await);
    let asking = poll(&world, "epoch_above=1&wait=60s").await;
    world.app.stop();
    assert_eq!(answer(asking).await["epoch"], "1");
}

#[tokio::test]
async fn a_poll_that_can_not_be_is_refused() {
    let world = started().await;
    for (query, field) in [
        ("wait=10s", "wait"),
        ("epoch_above=1&wait=61s", "wait"),
        ("epoch_above=1&wait=60001ms", "wait"),
        ("epoch_above=1&wait=10", "wait"),
        ("epoch_above=1&wait=s", "wait"),
        ("epoch_above=1&wait=-1s", "wait"),
        ("epoch_above=1&wait=1e3ms", "wait"),
        ("epoch_above=1&wait=99999999999999999999s", "wait"),
        ("epoch_above=-1&wait=1s", "epoch_above"),
        ("epoch_above=x", "epoch_above"),
        ("epoch_above=9223372036854775808", "epoch_above"),
        ("epoch=1", "epoch"),
    ] {
        let problem = world.want(400, "GET", &format!("/v1/groups/g?{query}"), "").await;
        assert_eq!(problem["field"], field, "{query}: {problem}");
    }
    let unknown = world.want(404, "GET", "/v1/groups/h?epoch_above=0&wait=60s", "").await;
    assert_eq!(unknown["type"], "/problems/unknown-group");
}
