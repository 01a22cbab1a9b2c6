//! Exit codes, by running the built program.

use std::sync::Arc;

use tidelog::cli::exit::Failure;
use tidelog::journal::{Journal, Options};
use tidelog::offset::Timestamp;

use crate::program::{Done, Program};
use crate::wait::{DEADLINE, wait_for};

#[test]
fn each_code_says_what_it_is_listed_for() {
    let program = Program::new("127.0.0.1:1");
    program.fails(6, &["groups"]);
    let code = |wanted: i32, words: &[&str]| {
        let done: Done = program.run(words);
        assert_eq!(done.code, wanted, "{words:?}: {done:#?}");
    };
    // A server makes a journal, and a group in it.
    let server = program.spawn(&["serve", "--listen", "127.0.0.1:0"]);
    let note = wait_for("server.json", DEADLINE, || {
        let text = std::fs::read(program.path("journal/server.json")).map_err(|error| error.to_string())?;
        serde_json::from_slice::<serde_json::Value>(&text).map_err(|error| error.to_string())
    });
    let url = note["url"].as_str().expect("a URL").to_owned();
    let started = crate::program::text(&note["token"]);
    let post = |target: &str, body: &str| {
        let address = url.strip_prefix("http://").expect("a URL");
        let mut stream = std::net::TcpStream::connect(address).expect("it listens");
        let head = format!(
            "POST {target} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {started}\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        std::io::Write::write_all(&mut stream, head.as_bytes()).expect("it reads");
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    };
    post(
        "/v1/groups/g/start",
        r#"{"topics": ["t"], "owner": "o", "new_group": {"offsets": [{"topic": "t", "partition": 0, "offset": 5}]}}"#,
    );
    // 0: done. Also where there is nothing to do.
    code(0, &["groups"]);
    code(0, &["rollback", "g", "--to-offset", "5", "--unchecked", "--execute", "--yes", "--reason", "why"]);
    // 1: a server that is not there, or does not let us in.
    code(1, &["groups", "--server", "http://127.0.0.1:1"]);
    code(1, &["groups", "--server", &url]);
    // 2: wrong usage, and what the rules call invalid.
    code(2, &["groups", "--nope"]);
    code(2, &["positions", ""]);
    code(2, &["rollback", "g", "--to-batch", "0", "--unchecked"]);
    // 3: refused.
    code(3, &["rollback", "g", "--undo", "--unchecked"]);
    // 4: the plan is another one by now.
    let outdated = ["--unchecked", "--execute", "--plan", "p-0000000000000000", "--reason", "why"];
    code(4, &[&["rollback", "g", "--to-offset", "3"], &outdated[..]].concat());
    // 8: nothing of that name.
    code(8, &["positions", "nobody"]);
    code(8, &["batch", "g", "7"]);
    code(8, &["rollback", "g", "--to-mark", "m", "--unchecked"]);
    code(8, &["rollback", "g", "--topic", "x", "--to-offset", "3", "--unchecked"]);
    // 5: another server finds the journal in use.
    code(5, &["serve", "--listen", "127.0.0.1:0"]);
    // 130: after SIGINT, closed.
    assert_eq!(server.interrupt().code, 130);
    let mut options = Options::new(Arc::new(|| Timestamp::from_millis(0)));
    options.lock_wait = std::time::Duration::ZERO;
    let journal = Journal::open(&program.path("journal"), options).expect("it opens");
    assert!(journal.cut().is_none());
    // 5 too where the holder serves nothing.
    code(5, &["groups"]);
    drop(journal);
    // 4 for live members: `kafka_offsets`. 7 and 9 want a broker, or its silence for a deadline: `cli` and `cli_consume` run them.
    assert_eq!(Failure::Broker(String::new()).code(), 7);
    assert_eq!(Failure::GaveUp(String::new()).code(), 9);
}
