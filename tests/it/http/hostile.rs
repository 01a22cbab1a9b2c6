//! What a client may get wrong, or send on purpose: each is refused by name, changes nothing, and harms nobody else.
//! Over real sockets.

use serde_json::{Value, json};

use super::sockets::{Server, parse};

fn begun() -> Server {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    Server::open(runtime.block_on(super::manners::begun()))
}

/// Sends a body that must be refused as `invalid`, naming `field`.
#[track_caller]
fn refused(server: &Server, path: &str, body: &[u8], field: &str) {
    let told = format!("{path} {}", String::from_utf8_lossy(&body[..body.len().min(300)]));
    let answer = server.ask("POST", path, "content-type: application/json\r\n", body);
    let problem = answer.json();
    assert_eq!((answer.status, answer.problem().as_str()), (400, "invalid"), "{told}: {problem}");
    assert_eq!(problem["field"], field, "{told}: {problem}");
    assert!(
        problem["value"].is_string() && problem["limit"].as_str().is_some_and(|limit| !limit.is_empty()),
        "{problem}"
    );
    server.is_well(2);
}

/// A commit that would be taken, with the value at `pointer` replaced.
fn commit_with(pointer: &str, value: &str) -> Vec<u8> {
    let range = json!({"topic": "orders", "partition": 0, "from_offset": 9, "until_offset": 10, "topic_id": null});
    let mut commit = json!({"epoch": 1, "batch_time": "2026-11-30T10:00:00Z", "key": null, "ranges": [range]});
    *commit.pointer_mut(pointer).expect("it is there") = json!("HERE");
    commit.to_string().replace("\"HERE\"", value).into_bytes()
}

#[test]
fn a_number_is_digits_within_its_limit() {
    let server = begun();
    for pointer in ["/epoch", "/ranges/0/from_offset", "/ranges/0/until_offset"] {
        let field = pointer[1..].replace("/0/", "[0].");
        for value in [
            "9223372036854775808",
            "\"9223372036854775808\"",
            "18446744073709551616",
            "-1",
            "\"-1\"",
            "-1001",
            "1e3",
            "\"1e3\"",
            "1.0",
            "\"1.0\"",
            "9.0e15",
            "\"\"",
            "\" 9\"",
            "\"+9\"",
            "\"0x9\"",
            "\"\u{0669}\"",
            "true",
            "null",
            "[]",
            "{}",
            "\"NaN\"",
        ] {
            refused(&server, "/v1/groups/g/batches", &commit_with(pointer, value), &field);
        }
    }
    for value in ["-1", "1.0", "1e0", "\"0\"", "4294967296", "null", "true"] {
        refused(&server, "/v1/groups/g/batches", &commit_with("/ranges/0/partition", value), "ranges[0].partition");
    }
    refused(&server, "/v1/groups/g/batches", &commit_with("/ranges/0/partition", "2147483648"), "partition");
    for value in
        ["1.5", "\"1.5\"", "\"\"", "9223372036854775808", "-9223372036854775809", "\"+1\"", "\"--1\"", "null", "1e2"]
    {
        let body = format!(r#"{{"to": {{"shift": {value}}}}}"#);
        let field = if value == "null" { "to" } else { "to.shift" };
        refused(&server, "/v1/groups/g/rollback/plan", body.as_bytes(), field);
    }
    refused(&server, "/v1/groups/g/rollback/plan", br#"{"to": {"batch": 0}}"#, "batch");
    for (query, field) in [
        ("batch=0", "batch"),
        ("batch=-1", "batch"),
        ("batch=1e3", "batch"),
        ("batch=1.0", "batch"),
        ("batch=9223372036854775808", "batch"),
        ("batch=", "batch"),
        ("seq=9223372036854775808", "seq"),
        ("seq=9223372036854775807", "seq"),
        ("seq=%2B1", "seq"),
        ("seq=%D9%A1", "seq"),
    ] {
        let answer = server.get(&format!("/v1/groups/g/positions?{query}"));
        assert_eq!((answer.status, &answer.json()["field"]), (400, &json!(field)), "{query}");
    }
    for query in ["limit=-1", "limit=1e1", "limit=", "limit=+1", "limit=99999999999999999999", "limit=1.0"] {
        let answer = server.get(&format!("/v1/groups/g/batches?{query}"));
        assert_eq!((answer.status, &answer.json()["field"]), (400, &json!("limit")), "{query}");
    }
    server.is_well(2);
    // The largest of all is taken.
    let largest = commit_with("/ranges/0/until_offset", "9223372036854775807");
    assert_eq!(server.ask("POST", "/v1/groups/g/batches", "", &largest).status, 201);
}

#[test]
fn a_time_has_a_zone_and_is_no_seconds() {
    let server = begun();
    for value in [
        "\"2026-11-30T10:00:00\"",
        "\"2026-11-30\"",
        "\"10:00:00Z\"",
        "1796032800",
        "\"1796032800000\"",
        "99999999999",
        "-1",
        "253402207200001",
        "9223372036854775808",
        "1796032800000.5",
        "1.7e12",
        "\"10000-01-01T00:00:00Z\"",
        "\"9999-12-31T23:59:59Z\"",
        "\"1969-12-31T23:59:59Z\"",
        "\"2026-13-01T00:00:00Z\"",
        "\"2026-02-30T00:00:00Z\"",
        "\"now\"",
        "\"\"",
        "null",
        "true",
        "[]",
    ] {
        refused(&server, "/v1/groups/g/batches", &commit_with("/batch_time", value), "batch_time");
    }
    for value in [
        "2026-11-30T10:00:00",
        "2026-11-30T10:00:00+01:00",
        "1796032800",
        "-1",
        "99999999999",
        "253402207200001",
        "9223372036854775808",
        "10000-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "1969-12-31T23:59:59Z",
        "",
        "now",
        "1.0e12",
    ] {
        for (path, name) in [("positions", "at"), ("batches", "from"), ("batches", "batch_to"), ("entries", "to")] {
            let answer = server.get(&format!("/v1/groups/g/{path}?{name}={value}"));
            let problem = answer.json();
            assert_eq!((answer.status, &problem["field"]), (400, &json!(name)), "{name}={value}: {problem}");
        }
    }
    server.is_well(2);
}

#[test]
fn a_name_has_its_length_and_no_nul() {
    let server = begun();
    let (longest, longer) = ("x".repeat(255), "x".repeat(256));
    assert_eq!(server.get(&format!("/v1/groups/{longest}")).problem(), "unknown-group");
    // 255 bytes, not characters.
    let wide = "%E2%98%83".repeat(85);
    assert_eq!(server.get(&format!("/v1/groups/{wide}")).problem(), "unknown-group");
    for (target, field) in [
        (format!("/v1/groups/{longer}"), "group"),
        (format!("/v1/groups/{wide}x"), "group"),
        (format!("/v1/groups/g?app={longer}"), "app"),
        ("/v1/groups/g?app=a%00b".to_owned(), "app"),
        ("/v1/groups/%00".to_owned(), "group"),
        ("/v1/groups/%FF".to_owned(), "path"),
        ("/v1/groups/g%FE%FF/batches/1".to_owned(), "path"),
        ("/v1/groups/g?app=%FF".to_owned(), "query"),
        ("/v1/groups/g?%FF=1".to_owned(), "query"),
    ] {
        let answer = server.get(&target);
        assert_eq!((answer.status, &answer.json()["field"]), (400, &json!(field)), "{target}");
    }
    for (query, name) in [("app=a&app=b", "app"), ("limit=1&limit=1", "limit"), ("a%70p=a&app=a", "app"), ("x&x", "x")]
    {
        let problem = server.get(&format!("/v1/groups/g/batches?{query}")).json();
        assert_eq!((&problem["field"], &problem["limit"]), (&json!(name), &json!("given twice")), "{query}");
    }
    for value in [format!("\"{longer}\""), "\"\"".to_owned(), "\"a\\u0000b\"".to_owned()] {
        refused(&server, "/v1/groups/g/batches", &commit_with("/key", &value), "key");
        let start = format!(r#"{{"topics": ["orders"], "owner": {value}}}"#);
        refused(&server, "/v1/groups/g/start", start.as_bytes(), "owner");
        refused(&server, "/v1/groups/g/marks", format!(r#"{{"name": {value}, "actor": "a"}}"#).as_bytes(), "mark");
        refused(&server, "/v1/groups/g/marks", format!(r#"{{"name": "m", "actor": {value}}}"#).as_bytes(), "actor");
    }
    for value in
        ["\"\"", "\"..\"", "\"a b\"", "\"a/b\"", "\"\u{2603}\"", &format!("\"{}\"", "t".repeat(250)), "7", "null"]
    {
        refused(&server, "/v1/groups/g/batches", &commit_with("/ranges/0/topic", value), "ranges[0].topic");
    }
    for value in ["\"\"", "\"x\"", "\"AAAAAAAAAAAAAAAAAAAAAA\"", "7"] {
        refused(&server, "/v1/groups/g/batches", &commit_with("/ranges/0/topic_id", value), "ranges[0].topic_id");
    }
    server.is_well(2);
}

#[test]
fn a_body_is_one_json_value_of_the_right_shape() {
    let server = begun();
    let routes = ["start", "batches", "marks", "rollback/plan", "rollback"].map(|name| format!("/v1/groups/g/{name}"));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for path in &routes {
        for body in ["[]", "null", "7", "\"x\"", "{", "nul", "{7}", "{]", "\u{feff}{}", &deep, "\0"] {
            refused(&server, path, body.as_bytes(), "body");
        }
        refused(&server, path, b"{\"\xff\": 1}", "body");
        refused(&server, path, br#"{"zzz": 1}"#, "zzz");
        let empty = server.ask("POST", path, "content-length: 0\r\n", b"");
        assert_eq!((empty.status, &empty.json()["field"]), (400, &json!("body")), "{path}");
    }
    refused(&server, &routes[0], br#" [["orders"], "o"]"#, "body");
    let good = String::from_utf8(commit_with("/epoch", "1")).expect("text");
    refused(&server, &routes[1], format!("{good} x").as_bytes(), "body");
    refused(&server, &routes[1], format!("{good}{good}").as_bytes(), "body");
    refused(&server, &routes[1], good.replacen("{", "{\"epoch\": 1, ", 1).as_bytes(), "epoch");
    for (path, body, field) in [
        (1, good.replace("\"topic_id\"", "\"topicId\""), "ranges[0].topicId"),
        (1, good.replacen("{", "{\"app\": \"a\", ", 1), "app"),
        (0, r#"{"topics": "orders", "owner": "o"}"#.to_owned(), "topics"),
        (0, r#"{"topics": [7], "owner": "o"}"#.to_owned(), "topics[0]"),
        (0, r#"{"topics": ["t"], "owner": "o", "reset": {"tall": "fail"}}"#.to_owned(), "reset.tall"),
        (0, r#"{"topics": ["t"], "owner": "o", "dry_run": "yes"}"#.to_owned(), "dry_run"),
        (0, r#"{"topics": ["t"], "owner": "o", "app": "a"}"#.to_owned(), "app"),
        (3, r#"{"to": {"moon": true}}"#.to_owned(), "to.moon"),
        (3, r#"{"to": {"undo": 1}}"#.to_owned(), "to.undo"),
        (3, r#"{"to": {"batch": 1, "edge": "middle"}}"#.to_owned(), "to.edge"),
        (3, r#"{"to": {"batch": 1}, "scope": [{"topic": "t", "partition": 1}]}"#.to_owned(), "scope[0].partition"),
        (3, r#"{"to": {"batch": 1}, "actor": "ann"}"#.to_owned(), "actor"),
        (3, r#"{"to": {"duration": "yesterday"}}"#.to_owned(), "duration"),
        (4, r#"{"to": {"batch": 1}, "actor": "ann", "reason": "why", "x": 1}"#.to_owned(), "x"),
    ] {
        refused(&server, &routes[path], body.as_bytes(), field);
    }
}

#[test]
fn bytes_that_are_no_request_end_their_own_connection_only() {
    let server = begun();
    for bytes in [
        &b"\r\n\r\n\r\n"[..],
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1/groups/\xff HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        b"GET /v1/groups/a\0b HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        b"GET /v1/groups HTTP/1.1\r\nhost: localhost\r\nbad header\r\n\r\n",
        b"GET /v1/groups HTTP/1.1\r\nhost: loc\0alhost\r\n\r\n",
        b"POST /v1/groups/g/batches HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/groups/g/batches HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{} ",
        b"POST /v1/groups/g/batches HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ] {
        let mut stream = server.connect();
        std::io::Write::write_all(&mut stream, bytes).expect("the server reads");
        stream.shutdown(std::net::Shutdown::Write).expect("connected");
        let mut answer = Vec::new();
        // It may also be cut off.
        let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
        let told = (String::from_utf8_lossy(bytes), String::from_utf8_lossy(&answer));
        assert!(answer.is_empty() || (400..=505).contains(&parse(&answer).status), "{told:?}");
        server.is_well(2);
    }
    // A body that breaks off is no commit.
    let good = commit_with("/epoch", "1");
    let head =
        format!("POST /v1/groups/g/batches HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", good.len() + 1);
    let mut stream = server.connect();
    std::io::Write::write_all(&mut stream, &[head.as_bytes(), &good].concat()).expect("the server reads");
    stream.shutdown(std::net::Shutdown::Write).expect("connected");
    let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
    server.is_well(2);
    // The same in chunks, whole, is one.
    let chunked = format!(
        "POST /v1/groups/g/batches HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n\
         5\r\n{}\r\n{:x};ext=1\r\n{}\r\n0\r\n\r\n",
        std::str::from_utf8(&good[..5]).expect("text"),
        good.len() - 5,
        std::str::from_utf8(&good[5..]).expect("text"),
    );
    let answer = parse(&server.raw(chunked.as_bytes()));
    assert_eq!((answer.status, &answer.json()["batch"]), (201, &Value::from("2")));
}
