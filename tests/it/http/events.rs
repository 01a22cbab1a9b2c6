//! `GET /v1/stream`: every entry as an event, without a gap.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::entries::make_every_kind;
use super::listeners::Listener;
use super::sockets::Server;
use super::world::World;

fn commit(n: u64) -> String {
    let range = json!([{"topic": "orders", "partition": 0, "from_offset": n * 10, "until_offset": n * 10 + 10}]);
    json!({"epoch": 1, "batch_time": 1_796_000_000_000 + n, "ranges": range}).to_string()
}

const START: &str = r#"{"topics": ["orders"], "owner": "o"}"#;

#[test]
fn every_kind_arrives_as_the_list_has_it() {
    let server = Server::open(World::scripted());
    let newest = |server: &Server| server.world.state().seq.as_u64();
    let mut live = server.runtime().block_on(Listener::connect(server.address, None));
    make_every_kind(&server.world);
    let total = newest(&server);
    let mut listed: Vec<Value> = ["g", "h"]
        .iter()
        .flat_map(|group| {
            let answer = server.get(&format!("/v1/groups/{group}/entries?order=asc&limit=1000")).json();
            answer["entries"].as_array().expect("a list").clone()
        })
        .collect();
    let seq = |entry: &Value| entry["seq"].as_str().expect("a text").parse::<u64>().expect("a number");
    listed.sort_by_key(seq);
    let later = server.runtime().block_on(Listener::connect(server.address, Some("0")));
    for listener in [&mut live, &mut { later }] {
        let mut kinds = Vec::new();
        for n in 1..=total {
            let event = server.runtime().block_on(listener.next()).expect("an event");
            let data: Value = serde_json::from_str(&event.data).expect("JSON");
            assert_eq!((event.id.as_str(), data["seq"].as_str()), (n.to_string().as_str(), Some(event.id.as_str())));
            assert_eq!(data["kind"], event.event);
            // What prunes a journal belongs to no group.
            match listed.iter().find(|entry| seq(entry) == n) {
                Some(entry) => assert_eq!(data, *entry),
                None => assert_eq!(
                    (&data["kind"], &data["group"], &data["app"]),
                    (&json!("pruned"), &Value::Null, &Value::Null)
                ),
            }
            kinds.push(event.event);
        }
        kinds.sort_unstable();
        kinds.dedup();
        let all = "batch held imported kafka_result loss_acknowledged mark partitions_added pruned reconciled released retired \
                   rolled_back started";
        assert_eq!(kinds.join(" "), all);
    }
}

#[test]
fn a_listener_that_comes_back_with_its_last_id_misses_nothing_while_commits_go_on() {
    const BATCHES: u64 = 600;
    let server = Server::open(World::alone());
    assert_eq!(server.ask("POST", "/v1/groups/g/start", "", START.as_bytes()).status, 200);
    let world = &server.world;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            for n in 0..BATCHES {
                runtime.block_on(world.want(201, "POST", "/v1/groups/g/batches", &commit(n)));
            }
        });
        server.runtime().block_on(async {
            let mut seen: Vec<u64> = vec![0];
            while seen.len() as u64 <= BATCHES + 1 {
                let last = seen.last().expect("not empty").to_string();
                let mut listener = Listener::connect(server.address, Some(&last)).await;
                for _ in 0..37 {
                    if seen.len() as u64 > BATCHES + 1 {
                        break;
                    }
                    seen.push(listener.next().await.expect("an event").id.parse().expect("a number"));
                }
            }
            assert_eq!(seen, (0..=BATCHES + 1).collect::<Vec<_>>());
        });
    });
}

#[test]
fn an_id_beyond_the_newest_is_told_to_begin_again() {
    let server = Server::open(World::alone());
    assert_eq!(server.ask("POST", "/v1/groups/g/start", "", START.as_bytes()).status, 200);
    server.runtime().block_on(async {
        for last in ["2", "9223372036854775807"] {
            let mut listener = Listener::connect(server.address, Some(last)).await;
            let reset = listener.next().await.expect("an event");
            assert_eq!(
                (reset.id.as_str(), reset.event.as_str(), reset.data.as_str()),
                ("1", "reset", r#"{"newest":"1"}"#)
            );
            let next = server.world.state().seq.as_u64() + 1;
            server.world.want(201, "POST", "/v1/groups/g/marks", r#"{"name": "m", "actor": "ann"}"#).await;
            let event = listener.next().await.expect("an event");
            assert_eq!((event.id, event.event.as_str()), (next.to_string(), "mark"));
            // The second one begins where the first has ended.
            if last == "2" {
                assert_eq!(next, 2);
                break;
            }
        }
    });
    for wrong in ["-1", "x", "", "1.0", "9223372036854775808", "1 "] {
        let answer = server.ask("GET", "/v1/stream", &format!("Last-Event-ID:{wrong}x\r\n"), b"");
        assert_eq!((answer.status, &answer.json()["field"]), (400, &json!("Last-Event-ID")), "{wrong:?}");
    }
}

/// What an in-process listener has been sent so far.
async fn chunk(body: &mut Body) -> Option<String> {
    let frame = body.frame().await?.expect("it does not fail");
    Some(String::from_utf8(frame.into_data().expect("data").to_vec()).expect("text"))
}

#[tokio::test(start_paused = true)]
async fn a_comment_comes_every_15_seconds_and_whoever_takes_nothing_is_dropped() {
    let world = World::alone();
    world.want(200, "POST", "/v1/groups/g/start", START).await;
    let request = || Request::get("/v1/stream").body(Body::empty()).expect("a request");
    let response = world.open(request()).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-store");
    let mut body = response.into_body();
    assert_eq!(chunk(&mut body).await.as_deref(), Some(": tidelog\n\n"));
    let begun = tokio::time::Instant::now();
    assert_eq!(chunk(&mut body).await.as_deref(), Some(":\n\n"));
    let waited = begun.elapsed();
    assert!((Duration::from_secs(14)..Duration::from_secs(17)).contains(&waited), "{waited:?}");
    // Nobody reads: the few chunks that wait for it are all it gets.
    tokio::time::sleep(Duration::from_secs(150)).await;
    let mut left = 0;
    while chunk(&mut body).await.is_some() {
        left += 1;
        assert!(left < 8, "it is still listened to");
    }
}
