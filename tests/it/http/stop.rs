//! `tidelog serve` at its begin and at its end: not ready before the journal is open, and stopped with connections of every kind open.

#![cfg(feature = "cli")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidelog::journal::{Journal, Options};
use tidelog::offset::Timestamp;

use crate::program::{Http, Program};
use crate::wait::{DEADLINE, wait_for};

#[test]
fn sigterm_ends_it_within_its_bound_whatever_is_open() {
    let program = Program::new("");
    let serving = program.spawn(&["serve", "--listen", "127.0.0.1:0"]);
    let note: Value = wait_for("server.json", DEADLINE, || {
        let text = std::fs::read(program.path("journal/server.json")).map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|error| error.to_string())
    });
    let address = note["url"].as_str().and_then(|url| url.strip_prefix("http://")).expect("a URL").to_owned();
    let token = note["token"].as_str().expect("a token");
    let request = |method: &str, target: &str, length: usize| {
        format!(
            "{method} {target} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    let send = |text: &str| {
        let mut stream = TcpStream::connect(&address).expect("it listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
        stream.write_all(text.as_bytes()).expect("it reads");
        stream
    };
    let first = |stream: &mut TcpStream| {
        let mut bytes = [0; 4_096];
        let read = stream.read(&mut bytes).expect("an answer");
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    };
    let start = r#"{"topics": ["orders"], "owner": "o"}"#;
    let mut idle = vec![send(&(request("POST", "/v1/groups/g/start", start.len()) + start))];
    assert!(first(&mut idle[0]).starts_with("HTTP/1.1 200"));
    for _ in 0..20 {
        let mut stream = send(&request("GET", "/v1/groups", 0));
        assert!(first(&mut stream).starts_with("HTTP/1.1 200"));
        idle.push(stream);
    }
    let mut streams: Vec<_> = (0..20).map(|_| send(&request("GET", "/v1/stream", 0))).collect();
    for stream in &mut streams {
        assert!(first(stream).starts_with("HTTP/1.1 200"));
    }
    let mut polls: Vec<_> = (0..20).map(|_| send(&request("GET", "/v1/groups/g?epoch_above=1&wait=60s", 0))).collect();
    let heads: Vec<_> = (0..20).map(|_| send("POST /v1/groups/g/batches HTTP/1.1\r\nhost: loc")).collect();
    let bodies: Vec<_> =
        (0..20).map(|_| send(&(request("POST", "/v1/groups/g/batches", 500) + "{\"epoch\": 1,"))).collect();
    // The last of them has been taken in once a later one is answered.
    let mark = r#"{"name": "m"}"#;
    let mut last = send(&(request("POST", "/v1/groups/g/marks", mark.len()) + mark));
    assert!(first(&mut last).starts_with("HTTP/1.1 201"));

    // Ends within 10 s.
    let done = serving.terminate();
    assert_eq!(done.code, 0, "{done:?}");
    for poll in &mut polls {
        assert!(first(poll).starts_with("HTTP/1.1 200"), "a long poll is answered, not cut off");
    }
    drop((idle, streams, heads, bodies));
    assert!(!program.path("journal/server.json").exists());
    let mut options = Options::new(std::sync::Arc::new(|| Timestamp::from_millis(0)));
    options.lock_wait = Duration::ZERO;
    let journal = Journal::open(&program.path("journal"), options).expect("it opens at once");
    assert!(journal.cut().is_none(), "the journal was not closed");
    assert_eq!(journal.with_state(|state| state.seq.as_u64()), 2);
}

#[test]
fn while_the_journal_is_being_opened_it_is_not_ready() {
    // Held by somebody else for a moment, as by the process before under a supervisor.
    let program = Program::new("");
    crate::cli::journal_of(&program, 1);
    let clock = Arc::new(|| Timestamp::from_millis(1_796_040_000_000));
    let held = Journal::open(&program.path("journal"), Options::new(clock)).expect("opened");
    let address = crate::program::free_address();
    let serving = program.spawn(&["serve", "--listen", &address]);
    let http = Http::new(&address);
    wait_for("the address", DEADLINE, || TcpStream::connect(&address).map(drop));
    assert_eq!(http.get("/healthz").0, 200);
    let (status, problem) = http.get("/readyz");
    assert_eq!((status, &problem["type"]), (503, &"/problems/journal-read-only".into()));
    assert!(problem["detail"].to_string().contains("being opened"), "{problem}");
    assert_eq!(http.get("/v1/groups").0, 503);
    drop(held);
    wait_for("readiness", DEADLINE, || match http.get("/readyz").0 {
        200 => Ok(()),
        other => Err(other),
    });
    assert_eq!(http.get("/v1/groups").0, 200);
    assert_eq!(serving.terminate().code, 0);
}

#[test]
fn an_address_that_is_taken_makes_no_journal() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    let program = Program::new("");
    let said = program.fails(1, &["serve", "--listen", &address]);
    assert!(said.contains(&address), "{said}");
    assert!(!program.path("journal").exists());
}
