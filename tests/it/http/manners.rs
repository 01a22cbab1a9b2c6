//! What every route does alike: methods, unknown parameters, HEAD, health.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use super::world::World;

const OFFSET: &str = "/v1/topics/orders/partitions/0/offsets/7";

/// Each route, with what it allows, and the parameters that it takes.
pub const ROUTES: [(&str, &str, &[&str]); 22] = [
    ("/v1/groups", "GET", &["app", "limit", "cursor", "order"]),
    ("/v1/groups/g", "GET", &["app", "epoch_above", "wait"]),
    ("/v1/groups/g/positions", "GET", &["app", "at", "batch", "seq"]),
    (
        "/v1/groups/g/batches",
        "GET",
        &["app", "topic", "partition", "from", "to", "batch_from", "batch_to", "cursor", "limit", "order"],
    ),
    ("/v1/groups/g/batches/1", "GET", &["app"]),
    ("/v1/groups/g/entries", "GET", &["app", "from", "to", "cursor", "limit", "order"]),
    ("/v1/groups/g/losses", "GET", &["app", "cursor", "limit", "order"]),
    (OFFSET, "GET", &["app", "group", "cursor", "limit", "order"]),
    ("/v1/stream", "GET", &[]),
    ("/metrics", "GET", &[]),
    ("/healthz", "GET", &[]),
    ("/readyz", "GET", &[]),
    ("/v1/groups/g/start", "POST", &["app", "format"]),
    ("/v1/groups/g/batches", "POST", &["app"]),
    ("/v1/groups/g/marks", "POST", &["app"]),
    ("/v1/groups/g/rollback/plan", "POST", &["app"]),
    ("/v1/groups/g/rollback", "POST", &["app"]),
    ("/v1/groups/g/hold", "POST", &["app"]),
    ("/v1/groups/g/release", "POST", &["app"]),
    ("/v1/groups/g/retire", "POST", &["app"]),
    ("/v1/losses/3/acknowledge", "POST", &[]),
    ("/v1/rollbacks/3/kafka", "POST", &[]),
];

/// A group with one batch and one hole.
pub async fn begun() -> World {
    let world = World::alone();
    world.want(200, "POST", "/v1/groups/g/start", r#"{"topics": ["orders"], "owner": "o"}"#).await;
    let range = json!([{"topic": "orders", "partition": 0, "from_offset": 5, "until_offset": 9}]);
    let commit = json!({"epoch": 1, "batch_time": "2026-11-30T09:00:00Z", "ranges": range}).to_string();
    world.want(201, "POST", "/v1/groups/g/batches", &commit).await;
    world
}

#[tokio::test]
async fn another_method_is_told_which_ones_there_are() {
    let world = begun().await;
    for (path, _, _) in ROUTES {
        let mut allowed: Vec<&str> = ROUTES.iter().filter(|route| route.0 == path).map(|route| route.1).collect();
        if allowed.contains(&"GET") {
            allowed.push("HEAD");
        }
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
            if allowed.contains(&method) {
                continue;
            }
            let answer = world.ask(method, path, "").await;
            let mut told: Vec<&str> = answer.header("allow").split(',').map(str::trim).collect();
            told.sort_unstable();
            allowed.sort_unstable();
            assert_eq!((answer.status, told), (405, allowed.clone()), "{method} {path}");
            if method != "HEAD" {
                assert_eq!(answer.problem(), "method-not-allowed", "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let world = begun().await;
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v2/groups",
        "/v1/group",
        "/v1/groups/g/batches/1/ranges",
        "/v1/groups/g/rollback/plans",
        "/healthz/x",
        "/v1/stream/",
        "/V1/groups",
    ] {
        for method in ["GET", "POST", "PUT"] {
            let answer = world.ask(method, path, "").await;
            assert_eq!((answer.status, answer.problem().as_str()), (404, "not-found"), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn each_route_takes_its_parameters_and_no_other() {
    let world = begun().await;
    let mut names: Vec<&str> = ROUTES.iter().flat_map(|route| route.2).copied().collect();
    names.extend(["App", "offset", "group", "x", ""]);
    for (path, method, taken) in ROUTES {
        for name in &names {
            let known = taken.contains(name);
            // A value that some parameter would refuse: it is refused for the value, not for the name.
            let query = format!("{path}?{name}=%00");
            if known || path != "/v1/stream" {
                let answer = world.ask(method, &query, "{}").await;
                let told = answer.json();
                let unknown = told["limit"] == "an unknown query parameter";
                assert!(unknown != known || answer.status == 200, "{method} {query}: {told}");
                if unknown {
                    assert_eq!((answer.status, &told["field"]), (400, &json!(name)), "{method} {query}");
                }
            }
        }
    }
    let answer = world.get("/v1/stream?x=1").await;
    assert_eq!((answer.status, &answer.json()["field"]), (400, &json!("x")));
}

#[tokio::test]
async fn head_says_what_get_says_without_the_body() {
    let world = begun().await;
    for (path, method, _) in ROUTES {
        if method != "GET" || path == "/v1/stream" {
            continue;
        }
        for target in [path.to_owned(), format!("{path}?x=1"), path.replace("/g", "/nobody")] {
            let (get, head) = (world.get(&target).await, world.ask("HEAD", &target, "").await);
            assert_eq!((get.status, get.body.is_empty(), head.body.len()), (head.status, false, 0), "{target}");
            assert_eq!(get.header("content-type"), head.header("content-type"), "{target}");
            assert_eq!(head.header("content-length"), get.body.len().to_string(), "{target}");
        }
    }
}

#[tokio::test]
async fn a_body_that_has_no_place_is_not_looked_at() {
    let world = begun().await;
    let request = Request::get("/v1/groups/g").body(Body::from("not JSON")).expect("a request");
    assert_eq!(world.send(request).await.status, 200);
}

#[tokio::test]
async fn health_is_about_the_process_and_readiness_about_the_journal() {
    let world = begun().await;
    let health = world.want(200, "GET", "/healthz", "").await;
    let (version, journal) = (env!("CARGO_PKG_VERSION"), world.journal().id());
    assert_eq!(health, json!({"status": "ok", "version": version, "journal": journal, "brokers": null}));
    assert_eq!(world.want(200, "GET", "/readyz", "").await, json!({"status": "ready"}));

    // The log can't go on: its directory is gone when the next segment is due.
    std::fs::rename(world.path().join("wal"), world.path().join("away")).expect("renamed");
    let range =
        |partition: u32| json!({"topic": "orders", "partition": partition, "from_offset": 5, "until_offset": 9});
    let ranges: Vec<Value> = (0..5_000).map(range).collect();
    let mut refused = None;
    for n in 0..100 {
        let commit = json!({"epoch": 1, "batch_time": 1_796_000_000_000_i64 + n, "ranges": ranges}).to_string();
        let answer = world.ask("POST", "/v1/groups/g/batches", &commit).await;
        if answer.status != 201 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("the log ends");
    assert_eq!((refused.status, refused.problem().as_str()), (503, "journal-read-only"));
    let again = world.ask("POST", "/v1/groups/g/marks", r#"{"name": "m", "actor": "ann"}"#).await;
    assert_eq!((again.status, again.problem().as_str()), (503, "journal-read-only"));
    let ready = world.get("/readyz").await;
    assert_eq!((ready.status, ready.problem().as_str()), (503, "journal-read-only"));
    assert_eq!(ready.json()["detail"], refused.json()["detail"], "the first failure is what everybody is told");
    world.want(200, "GET", "/healthz", "").await;
    world.want(200, "GET", "/v1/groups/g/batches", "").await;
    world.want(200, "GET", "/v1/groups/g/positions", "").await;
}
