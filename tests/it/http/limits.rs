//! Limits on what comes from outside, and what is told when they are passed. Over real sockets.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tidelog::server::{Guard, Limits};

use super::sockets::{Server, parse};
use super::world::World;
use crate::wait::{DEADLINE, wait_for};

const MIB: usize = 1 << 20;

fn begun() -> World {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(super::manners::begun())
}

fn limited(limits: Limits) -> Server {
    Server::start(begun(), |address: SocketAddr| Guard::new(address, Vec::new(), &[]), limits)
}

#[test]
fn a_body_of_more_than_16_mib_is_too_large() {
    let server = Server::open(begun());
    // Declared: told before the body is sent.
    let head = format!("POST /v1/groups/g/batches HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", 17 * MIB);
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).expect("the server reads");
    let mut first = [0; 1_024];
    let read = stream.read(&mut first).expect("an answer");
    let answer = parse(&first[..read]);
    assert_eq!((answer.status, answer.problem().as_str()), (413, "too-large"));
    assert_eq!(answer.json()["limit"], 16 * MIB);
    drop(stream);
    server.is_well(2);

    // Sent whole all the same, or in chunks: told too, though it is not read to its end.
    let chunk = [format!("{MIB:x}\r\n").as_bytes(), &vec![b' '; MIB], b"\r\n"].concat();
    let chunked = "POST /v1/groups/g/batches HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    for (head, part) in [(head.as_str(), vec![b' '; MIB]), (chunked, chunk)] {
        let mut stream = server.connect();
        let mut writing = stream.try_clone().expect("a socket");
        let head = head.to_owned();
        let writer = std::thread::spawn(move || {
            // The server may close before all is sent.
            let _ =
                writing.write_all(head.as_bytes()).and_then(|()| (0..17).try_for_each(|_| writing.write_all(&part)));
        });
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        writer.join().expect("no panic");
        assert_eq!(parse(&answer).status, 413);
        server.is_well(2);
    }
    // 16 MiB are read: blanks are no JSON.
    let answer = server.ask("POST", "/v1/groups/g/batches", "", &vec![b' '; 16 * MIB]);
    assert_eq!((answer.status, answer.problem().as_str()), (400, "invalid"));
    server.is_well(2);
}

#[test]
fn a_commit_has_at_most_100_000_ranges() {
    let server = Server::open(begun());
    let range = |n: usize| json!({"topic": "wide", "partition": n, "from_offset": 0, "until_offset": 1});
    let mut ranges: Vec<_> = (0..100_001).map(range).collect();
    let commit = |ranges: &[serde_json::Value]| {
        json!({"epoch": 1, "batch_time": "2026-11-30T10:00:00Z", "ranges": ranges}).to_string().into_bytes()
    };
    let answer = server.ask("POST", "/v1/groups/g/batches", "", &commit(&ranges));
    let problem = answer.json();
    assert_eq!((answer.status, &problem["field"], &problem["value"]), (400, &json!("ranges"), &json!("100001")));
    server.is_well(2);
    ranges.pop();
    assert_eq!(server.ask("POST", "/v1/groups/g/batches", "", &commit(&ranges)).status, 201);
    server.is_well(3);
}

#[test]
fn long_addresses_and_large_headers_are_too_large() {
    let server = Server::open(begun());
    let near = "x".repeat(16_000);
    assert_eq!(server.get(&format!("/v1/groups?cursor={near}")).problem(), "invalid", "below the limit");
    for length in [17_000, 60_000, 70_000, 100_000] {
        let answer = server.get(&format!("/v1/groups?cursor={}", "x".repeat(length)));
        assert_eq!(answer.status, 414, "{length} bytes");
        if length == 17_000 {
            assert_eq!((answer.problem().as_str(), &answer.json()["limit"]), ("too-large", &json!(16_384)));
        }
    }
    for (lines, length) in [(1, 40_000), (50, 1_000), (1, 100_000), (300, 10), (2, 100_000)] {
        let headers: String = (0..lines).map(|n| format!("x-{n}: {}\r\n", "y".repeat(length))).collect();
        let answer = server.ask("GET", "/v1/groups", &headers, b"");
        assert_eq!(answer.status, 431, "{lines} headers of {length} bytes");
        if length == 40_000 {
            assert_eq!((answer.problem().as_str(), &answer.json()["limit"]), ("too-large", &json!(32_768)));
        }
    }
    server.is_well(2);
}

#[test]
fn one_connection_too_many_is_told_so_and_room_is_made_again() {
    let server = limited(Limits { connections: 3, ..Limits::default() });
    let ask = |stream: &mut std::net::TcpStream| {
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
        let mut first = [0; 1_024];
        let read = stream.read(&mut first)?;
        Ok::<_, std::io::Error>(parse(&first[..read]))
    };
    let mut idle: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for stream in &mut idle {
        assert_eq!(ask(stream).expect("an answer").status, 200);
    }
    // It is told without being asked.
    let mut refused = Vec::new();
    server.connect().read_to_end(&mut refused).expect("an answer");
    let refused = parse(&refused);
    assert_eq!((refused.status, refused.problem().as_str()), (429, "too-many-requests"));
    assert_eq!((&refused.json()["limit"], refused.header("retry-after")), (&json!(3), "1"));
    idle.pop();
    wait_for("room for a connection", DEADLINE, || {
        let answer = ask(&mut server.connect()).map_err(|error| error.to_string())?;
        if answer.status == 200 { Ok(()) } else { Err(answer.status.to_string()) }
    });
    assert_eq!(ask(&mut idle[0]).expect("an answer").status, 200, "the others go on");
    drop(idle);
    wait_for("room again", DEADLINE, || match ask(&mut server.connect()) {
        Ok(answer) if answer.status == 200 => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

#[test]
fn a_head_that_does_not_come_and_an_idle_connection_end_in_time() {
    let server = limited(Limits { header_time: Duration::from_millis(300), ..Limits::default() });
    for (sent, idle) in [("", true), ("GET /v1/gr", false), ("GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n", true)] {
        let mut stream = server.connect();
        stream.write_all(sent.as_bytes()).expect("the server reads");
        let begun = Instant::now();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(begun.elapsed() < DEADLINE, "{sent:?} holds its connection");
        assert!(begun.elapsed() >= Duration::from_millis(200), "{sent:?} was cut off at once");
        if !idle {
            assert!(answer.is_empty() || parse(&answer).status == 408, "{}", String::from_utf8_lossy(&answer));
        }
    }
    server.is_well(2);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_ends_in_time() {
    let world = super::manners::begun().await;
    let (sender, body) = http_body_util::channel::Channel::<axum::body::Bytes, std::convert::Infallible>::new(1);
    let request =
        axum::http::Request::post("/v1/groups/g/batches").body(axum::body::Body::new(body)).expect("a request");
    let answer = world.send(request).await;
    assert_eq!((answer.status, &answer.json()["field"]), (400, &json!("body")));
    drop(sender);
}

#[test]
fn answers_over_1_kib_are_compressed_when_asked() {
    let server = Server::open(begun());
    for n in 0..20 {
        let mark = format!(r#"{{"name": "mark {n}", "actor": "ann"}}"#);
        assert_eq!(server.ask("POST", "/v1/groups/g/marks", "", mark.as_bytes()).status, 201);
    }
    let target = "/v1/groups/g/entries";
    let plain = server.get(target);
    assert!(plain.body.len() > 1_024 && plain.header("content-encoding").is_empty());
    let packed = server.ask("GET", target, "accept-encoding: gzip\r\n", b"");
    assert_eq!((packed.status, packed.header("content-encoding")), (200, "gzip"));
    assert!(packed.body.len() < plain.body.len() / 2);
    let mut gzip = Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("gzip");
    gzip.stdin.take().expect("piped").write_all(&packed.body).expect("gzip reads");
    assert_eq!(gzip.wait_with_output().expect("gzip ends").stdout, plain.body);
    let small = server.ask("GET", "/v1/groups/g/batches", "accept-encoding: gzip\r\n", b"");
    assert!(small.body.len() < 1_024 && small.header("content-encoding").is_empty());
    let refused = server.ask("GET", target, "accept-encoding: gzip;q=0, br\r\n", b"");
    assert_eq!((refused.header("content-encoding"), &refused.body), ("", &plain.body));
    let head = server.ask("HEAD", target, "", b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), plain.body.len().to_string());
}
