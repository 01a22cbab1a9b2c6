//! Servers that are none, are silent, or answer.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use super::*;

const WELL: &str = r#"{"status":"ok","journal":"j","version":"0","brokers":"k:9092"}"#;

/// A server on a port of its own that gives these answers, one to a connection; what it was sent, in the end.
fn server(answers: &'static [&'static str]) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = move || {
        let answer = |answer: &&str| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut sent = [0; 4096];
            let length = stream.read(&mut sent).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&sent[..length]).to_ascii_lowercase()
        };
        answers.iter().map(answer).collect()
    };
    (url, std::thread::spawn(serve))
}

fn said(url: &str) -> (u8, String) {
    match There::within(url, None, Duration::from_millis(300)) {
        Ok(_) => panic!("{url} is taken for a server"),
        Err(failure) => (failure.code(), failure.to_string()),
    }
}

#[test]
fn an_address_that_can_not_be_asked_is_wrong_usage() {
    for (url, why) in [
        ("https://h:1", "http only"),
        ("127.0.0.1:8380", "not an http address"),
        ("h", "not an http address"),
        ("http://", "not an address"),
        ("http://h:1/?app=a", "no meaning"),
        ("http://me:secret@h:1", "no meaning"),
        ("http://h h", "not an address"),
    ] {
        let (code, text) = said(url);
        assert!(code == 2 && text.contains(why), "{url}: {code} {text}");
    }
    let Err(failure) = There::at("http://127.0.0.1:1", Some("to\nken".to_owned())) else { panic!("taken") };
    assert_eq!((failure.code(), failure.to_string().contains("to\n")), (2, false));
}

#[test]
fn nobody_and_strangers_and_the_silent_are_told_apart() {
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let (code, text) = said(&gone);
    assert!(code == 1 && text.contains("refused") && text.contains(&gone), "{text}");

    for stranger in ["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", "SSH-2.0-OpenSSH\r\n", ""] {
        let (url, served) = server(Vec::leak(vec![stranger]));
        let (code, text) = said(&url);
        assert!(code == 1 && text.contains("can't be reached"), "{stranger}: {text}");
        served.join().unwrap();
    }

    // It accepts, as the system does for a process that hangs, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let (code, text) = said(&url);
    assert!(code == 1 && text.contains("did not answer within 300ms"), "{text}");
}

#[test]
fn the_token_goes_with_each_question_but_the_first() {
    let health = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{WELL}", WELL.len());
    let problem = r#"{"type":"/problems/held","title":"t","status":409,"detail":"d"}"#;
    let held = format!("HTTP/1.1 409 Conflict\r\ncontent-length: {}\r\n\r\n{problem}", problem.len());
    let (url, served) = server(Vec::leak(vec![&*health.leak(), &*held.leak()]));
    let there = There::at(&format!("{url}/tide/"), Some("0123456789abcdef".to_owned())).unwrap();
    assert_eq!((there.brokers(), there.url()), (Some("k:9092"), format!("{url}/tide").as_str()));
    let (status, body) = there.ask(Ask::get("/v1/groups").with("limit", Some(5))).unwrap();
    let failure = crate::cli::seat::problem::read(status, &body);
    assert_eq!((failure.code(), failure.to_string().as_str()), (3, "d"));
    let sent = served.join().unwrap();
    assert!(sent[0].starts_with("get /tide/healthz http/1.1\r\n") && !sent[0].contains("0123456789abcdef"), "{sent:?}");
    let host = format!("host: {}\r\n", url.trim_start_matches("http://"));
    assert!(sent[1].starts_with("get /tide/v1/groups?limit=5 http/1.1\r\n") && sent[1].contains(&host), "{sent:?}");
    assert!(sent[1].contains("authorization: bearer 0123456789abcdef"), "{sent:?}");
}
