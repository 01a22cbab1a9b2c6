//! `tidelog serve`, stopped with connections of every kind open.

#![cfg(feature = "cli")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use tidelog::journal::{Journal, Options};
use tidelog::offset::Timestamp;

use crate::program::Program;
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
