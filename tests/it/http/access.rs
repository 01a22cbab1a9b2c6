//! Who may ask: names of the host, pages of other sites, tokens and their roles. Over real sockets.

use std::net::SocketAddr;

use tidelog::server::{Guard, Limits, Role, Token};

use super::sockets::Server;
use super::world::World;

fn begun() -> World {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(super::manners::begun())
}

#[test]
fn only_the_servers_own_names_reach_it() {
    let guard = |address: SocketAddr| Guard::new(address, Vec::new(), &["Tidelog.example.com".to_owned()]);
    let server = Server::start(begun(), guard, Limits::default());
    let port = server.address.port();
    for host in
        ["localhost", "LOCALHOST", "127.0.0.1", "[::1]", "[::1]:9", "tidelog.example.com", "TIDELOG.example.com:443"]
            .map(str::to_owned)
            .into_iter()
            .chain([format!("localhost:{port}"), format!("127.0.0.1:{port}")])
    {
        let answer = server.ask("GET", "/v1/groups", &format!("Host: {host}\r\n"), b"");
        assert_eq!(answer.status, 200, "{host}");
    }
    for host in [
        "evil.com",
        "localhost.evil.com",
        "evil.com:8380",
        "127.0.0.1.evil.com",
        "127.0.0.2",
        "tidelog.example.com.",
        "example.com",
        "localhost:1:2",
        "",
    ] {
        for (method, target) in
            [("GET", "/v1/groups"), ("POST", "/v1/groups/g/marks"), ("GET", "/healthz"), ("GET", "/x")]
        {
            let answer = server.ask(method, target, &format!("Host: {host}\r\n"), b"{}");
            assert_eq!((answer.status, answer.problem().as_str()), (403, "forbidden"), "{method} {target} {host}");
            assert_eq!(answer.json()["field"], "Host");
        }
    }
    let none = super::sockets::parse(&server.raw(b"GET /v1/groups HTTP/1.0\r\n\r\n"));
    assert_eq!(none.status, 403, "no host at all");
    let absolute = server.ask("GET", "http://evil.com/v1/groups", "Host: localhost\r\n", b"");
    assert_eq!(absolute.status, 403, "the host in the request line counts");
    server.is_well(2);
}

#[test]
fn a_page_of_another_site_reaches_nothing() {
    let guard = |address: SocketAddr| Guard::new(address, Vec::new(), &["tidelog.example.com".to_owned()]);
    let server = Server::start(begun(), guard, Limits::default());
    let mark = br#"{"name": "m", "actor": "ann"}"#;
    // A page of this server, and one of the name that it is reached by through a proxy.
    let own = format!("http://{}", server.address);
    for origin in [&own, "https://tidelog.example.com", "https://tidelog.example.com:8443"] {
        let host = server.address;
        let answer = server.ask("GET", "/v1/groups", &format!("Host: {host}\r\nOrigin: {origin}\r\n"), b"");
        assert_eq!(answer.status, 200, "{origin}");
    }
    for origin in [
        "null",
        "https://evil.com",
        "http://localhost:3000",
        "https://localhost:3000",
        "http://127.0.0.1:1",
        "http://localhost.evil.com",
        "file://",
        "localhost",
        "ftp://localhost",
        "",
    ] {
        for (method, target) in [("GET", "/v1/groups"), ("POST", "/v1/groups/g/marks"), ("GET", "/v1/stream")] {
            let answer = server.ask(method, target, &format!("Origin: {origin}\r\n"), mark);
            assert_eq!((answer.status, answer.problem().as_str()), (403, "forbidden"), "{method} {target} {origin}");
            assert_eq!(answer.json()["field"], "Origin");
        }
    }
    server.is_well(2);
}

const READ: &str = "read-read-read-read";
const COMMIT: &str = "commit-commit-commit";
const OPERATE: &str = "operate-operate-operate";

fn with_tokens() -> Server {
    let tokens = [(Role::Read, "page", READ), (Role::Commit, "loader", COMMIT), (Role::Operate, "ann", OPERATE)]
        .map(|(role, name, secret)| Token::new(role, name, secret).expect("a token"));
    let guard = move |address: SocketAddr| Guard::new(address, tokens.to_vec(), &[]);
    Server::start(begun(), guard, Limits::default())
}

#[test]
fn each_route_wants_its_role() {
    let server = with_tokens();
    // 1: read is enough; 2: commit; 3: operate.
    let routes = [
        ("GET", "/v1/groups", 1),
        ("GET", "/v1/groups/g", 1),
        ("GET", "/v1/groups/g/positions", 1),
        ("GET", "/v1/groups/g/batches", 1),
        ("GET", "/v1/groups/g/batches/1", 1),
        ("GET", "/v1/groups/g/entries", 1),
        ("GET", "/v1/groups/g/losses", 1),
        ("GET", "/v1/stream?x=1", 1),
        ("POST", "/v1/groups/g/rollback/plan", 1),
        ("POST", "/v1/groups/g/start", 2),
        ("POST", "/v1/groups/g/batches", 2),
        ("POST", "/v1/groups/g/marks", 2),
        ("POST", "/v1/groups/g/rollback", 3),
        ("POST", "/v1/groups/g/hold", 3),
        ("POST", "/v1/groups/g/release", 3),
        ("POST", "/v1/groups/g/retire", 3),
        ("POST", "/v1/losses/3/acknowledge", 3),
    ];
    for (method, target, needed) in routes {
        for (role, token) in [(0, ""), (0, "read-read-read-reax"), (0, "read"), (1, READ), (2, COMMIT), (3, OPERATE)] {
            let header = if token.is_empty() { String::new() } else { format!("authorization: Bearer {token}\r\n") };
            // A body that is refused: the route was reached, and nothing is changed.
            let answer = server.ask(method, target, &header, br#"{"x": 1}"#);
            let told = format!("{method} {target} {token:?}: {} {}", answer.status, answer.problem());
            match role {
                0 => {
                    assert_eq!((answer.status, answer.problem().as_str()), (401, "unauthorized"), "{told}");
                    assert_eq!(answer.header("www-authenticate"), "Bearer", "{told}");
                }
                role if role < needed => {
                    assert_eq!((answer.status, answer.problem().as_str()), (403, "forbidden"), "{told}");
                    let words = ["", "read", "commit", "operate"];
                    let json = answer.json();
                    assert_eq!(
                        (&json["role"], &json["needed"]),
                        (&words[role].into(), &words[needed].into()),
                        "{told}"
                    );
                }
                _ => assert!(answer.status == 200 || answer.problem() == "invalid", "{told}"),
            }
        }
    }
    for open in ["/healthz", "/readyz"] {
        assert_eq!(server.get(open).status, 200, "{open} wants no token");
    }
    for (header, status) in [
        (format!("Authorization: bearer {READ}"), 200),
        (format!("Authorization: Basic {READ}"), 401),
        (format!("Authorization: {READ}"), 401),
        (format!("Authorization: Bearer {READ}x"), 401),
        ("Authorization: Bearer ".to_owned(), 401),
        (format!("X-Token: {READ}"), 401),
    ] {
        assert_eq!(server.ask("GET", "/v1/groups", &format!("{header}\r\n"), b"").status, status, "{header}");
    }
    assert_eq!(server.get(&format!("/v1/groups?token={READ}")).status, 401);
    server.is_well(2);
}

#[test]
fn whoever_marks_is_the_token_where_the_body_names_nobody() {
    let server = with_tokens();
    let header = format!("authorization: Bearer {COMMIT}\r\n");
    for (body, actor) in [(r#"{"name": "m"}"#, "loader"), (r#"{"name": "m", "actor": "ann"}"#, "ann")] {
        let answer = server.ask("POST", "/v1/groups/g/marks", &header, body.as_bytes());
        assert_eq!((answer.status, &answer.json()["actor"]), (201, &actor.into()));
    }
}

#[test]
fn a_token_file_is_read_whole_or_refused() {
    let good = format!("# who may what\n\nread:page:{READ}\n  operate:ann:{OPERATE}  \n");
    assert_eq!(Token::read(&good).expect("tokens").len(), 2);
    for (wrong, why) in [
        ("", "no token"),
        ("# nothing\n", "no token"),
        ("admin:ann:0123456789abcdef", "line 1"),
        ("read:page", "line 1"),
        ("\nread:page:0123456789abcdef\nread", "line 3"),
        ("read:page:short", "16 to 255"),
        ("read:page:0123456789 abcdef", "16 to 255"),
    ] {
        let refused = Token::read(wrong).expect_err("refused").to_string();
        assert!(refused.contains(why) && !refused.contains("0123456789"), "{wrong:?}: {refused}");
    }
}
