//! Problems: their names, statuses, and the fields that a program needs.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use axum::response::IntoResponse as _;
use tidelog::broker::{Ask, Broker, Look, Member, Seen, Untold};
use tidelog::journal::{ReadError, WriteError};
use tidelog::offset::{Group, Offset, Seq, Timestamp, TopicPartition};
use tidelog::server::{Guard, Limits, Problem, Role, Token};

use super::{fields, lines, same};
use crate::http::sockets::Server;
use crate::http::table::check;
use crate::http::world::{Answer, World};

/// `fenced 409 epoch raised_by.kind`
const LISTED: &str = include_str!("problems.txt");

/// A broker whose client has a fault of ours.
struct Broken;

impl Broker for Broken {
    fn look(&self, _ask: &Ask) -> Look {
        panic!("a fault of ours, on purpose")
    }

    fn offsets_at(
        &self,
        _partitions: &BTreeSet<TopicPartition>,
        _time: Timestamp,
        _deadline: std::time::Duration,
    ) -> std::collections::BTreeMap<TopicPartition, Seen<Offset>> {
        std::collections::BTreeMap::new()
    }

    fn committed(
        &self,
        _kafka_group: &str,
        _partitions: &BTreeSet<TopicPartition>,
        _deadline: std::time::Duration,
    ) -> std::collections::BTreeMap<TopicPartition, Seen<Offset>> {
        std::collections::BTreeMap::new()
    }

    fn commit(
        &self,
        _kafka_group: &str,
        _offsets: &std::collections::BTreeMap<TopicPartition, Offset>,
        _deadline: std::time::Duration,
    ) -> std::collections::BTreeMap<TopicPartition, Result<(), String>> {
        std::collections::BTreeMap::new()
    }

    fn cluster_id(&self, _deadline: std::time::Duration) -> Seen<String> {
        Seen::Absent
    }

    fn members(&self, _kafka_group: &str, _deadline: std::time::Duration) -> Result<Vec<Member>, Untold> {
        Ok(Vec::new())
    }

    fn brokers(&self) -> &str {
        "broken:9092"
    }
}

/// Notes a problem's name with its status and fields; what a problem carries of a plan is a plan's.
fn note(answer: &Answer, found: &mut BTreeSet<String>) {
    let problem = answer.problem();
    let name = format!("{problem} {}", answer.status);
    let json = answer.json();
    assert_eq!(json["status"], answer.status, "{json}");
    found.insert(name.clone());
    let mut names = BTreeSet::new();
    fields(&json, "", &mut names);
    let own = |field: &String| {
        !["type", "title", "status", "detail"].contains(&field.as_str())
            && !["plan.", "findings[].", "first.", "members[]."].iter().any(|part| field.starts_with(part))
    };
    found.extend(names.into_iter().filter(own).map(|field| format!("{name} {field}")));
}

async fn told(problem: Problem) -> Answer {
    let (parts, body) = problem.into_response().into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body in memory");
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

#[test]
fn every_problem_has_its_name_its_status_and_its_fields() {
    let world = World::scripted();
    check(
        &world,
        r#"
        ! broker orders id=A 0:0..520
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o"}
        200
        > POST /v1/groups/g/start?app=other {"topics": ["orders"], "owner": "o"}
        200
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T09:00:00Z", "key": "k",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 100}]}
        201
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o2"}
        200
        > POST /v1/groups/held/start {"topics": ["orders"], "owner": "o"}
        200
        ! hold held why
        "#,
    );
    let commit = |epoch: u64, key: &str, id: &str, until: u64| {
        format!(
            r#"{{"epoch": {epoch}, "batch_time": "2026-11-30T09:00:00Z", "key": "{key}", "ranges": [
             {{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": {until}, "topic_id": "{id}"}}]}}"#
        )
    };
    let (own, other) = ("QUFBQUFBQUFBQUFBQUFBQQ", "QkJCQkJCQkJCQkJCQkJCQg");
    let execute = |more: &str| format!(r#"{{"to": {{"offset": 900}}, "actor": "ann", "reason": "why"{more}}}"#);
    let long = format!("/v1/groups?app={}", "x".repeat(20_000));
    let mut found = BTreeSet::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for (name, method, target, body) in [
        ("invalid", "GET", "/v1/groups?x=1", String::new()),
        ("invalid", "POST", "/v1/groups/g/batches", "{}".to_owned()),
        ("unknown-group", "GET", "/v1/groups/g?app=third", String::new()),
        ("unknown-group", "POST", "/v1/groups/g/batches?app=third", commit(1, "k", own, 1)),
        ("unknown-group", "POST", "/v1/groups/g/marks?app=third", r#"{"name": "m"}"#.to_owned()),
        ("unknown-batch", "GET", "/v1/groups/g/batches/7", String::new()),
        ("unknown-batch", "POST", "/v1/groups/g/rollback/plan", r#"{"to": {"batch": 7}}"#.to_owned()),
        (
            "unknown-topic",
            "POST",
            "/v1/groups/g/rollback/plan",
            r#"{"to": {"offset": 1}, "scope": [{"topic": "x"}]}"#.to_owned(),
        ),
        ("unknown-mark", "POST", "/v1/groups/g/rollback/plan", r#"{"to": {"mark": "m"}}"#.to_owned()),
        ("before-history", "GET", "/v1/groups/g/positions?seq=0", String::new()),
        (
            "before-history",
            "POST",
            "/v1/groups/g/rollback/plan",
            r#"{"to": {"commit_time": "2020-01-01T00:00:00Z"}}"#.to_owned(),
        ),
        ("fenced", "POST", "/v1/groups/g/batches", commit(1, "l", own, 1)),
        ("fenced", "POST", "/v1/groups/g/batches", commit(2, "l", other, 1)),
        ("journal-behind", "POST", "/v1/groups/g/batches", commit(3, "l", own, 1)),
        ("key-conflict", "POST", "/v1/groups/g/batches", commit(2, "k", own, 1)),
        ("held", "POST", "/v1/groups/held/batches", commit(1, "k", own, 1)),
        ("held", "POST", "/v1/groups/held/start", r#"{"topics": ["orders"], "owner": "o"}"#.to_owned()),
        (
            "plan-outdated",
            "POST",
            "/v1/groups/g/rollback",
            execute(r#", "allow_clamp": true, "plan": "p-0000000000000000""#),
        ),
        ("refused", "POST", "/v1/groups/g/rollback", execute("")),
        ("refused", "POST", "/v1/groups/g/rollback/plan", r#"{"to": {"undo": true}}"#.to_owned()),
        (
            "refused",
            "POST",
            "/v1/groups/new/start",
            r#"{"topics": ["orders"], "owner": "o", "new_group": "fail"}"#.to_owned(),
        ),
        ("too-large", "POST", "/v1/groups/g/batches", " ".repeat((16 << 20) + 1)),
        ("too-large", "GET", &long, String::new()),
        ("not-found", "GET", "/v1/nothing", String::new()),
        ("method-not-allowed", "PUT", "/v1/groups", String::new()),
    ] {
        let answer = runtime.block_on(world.ask(method, target, &body));
        assert_eq!(answer.problem(), name, "{method} {:.60} {body:.60}: {}", target, answer.json());
        note(&answer, &mut found);
    }
    // Live members of the Kafka group, members that Kafka does not tell, and a coordinator that does not answer.
    let kafka =
        |offset: u64| format!(r#"{{"to": {{"offset": {offset}}}, "kafka": true, "actor": "ann", "reason": "why"}}"#);
    assert_eq!(runtime.block_on(world.ask("POST", "/v1/groups/g/rollback", &kafka(50))).status, 200);
    let moved = world.journal().group(&Group::new("default", "g").expect("a name")).and_then(|group| group.last_move);
    let again = format!("/v1/rollbacks/{}/kafka", moved.expect("a move"));
    for members in ["members m", "members no", "members ?"] {
        world.change(members);
        note(&runtime.block_on(world.ask("POST", "/v1/groups/g/rollback", &kafka(60))), &mut found);
        note(&runtime.block_on(world.ask("POST", &again, "{}")), &mut found);
    }
    let large =
        Request::get("/v1/groups").header("x-large", "y".repeat(40_000)).body(Body::empty()).expect("a request");
    note(&runtime.block_on(world.send(large)), &mut found);
    world.change("broker orders error");
    for (target, body) in
        [("start", r#"{"topics": ["orders"], "owner": "o3"}"#), ("rollback/plan", r#"{"to": {"latest": true}}"#)]
    {
        note(&runtime.block_on(world.ask("POST", &format!("/v1/groups/g/{target}"), body)), &mut found);
    }
    let broken = World::over(|_| Some(Arc::new(Broken)));
    let start = r#"{"topics": ["orders"], "owner": "o"}"#;
    note(&runtime.block_on(broken.ask("POST", "/v1/groups/g/start", start)), &mut found);
    // A damaged journal is made in `damage`; here is what is told of it.
    let seq = Some(Seq::new(7).expect("small"));
    let damaged = ReadError { file: "sled/db".into(), why: "checksum; run a command".into(), seq };
    note(&runtime.block_on(told(damaged.into())), &mut found);
    note(&runtime.block_on(told(WriteError::ReadOnly { why: "the disk is full".into() }.into())), &mut found);

    let token = Token::new(Role::Read, "page", "read-read-read-read").expect("a token");
    let guard = |address: SocketAddr| Guard::new(address, vec![token], &[]);
    let server = Server::start(World::alone(), guard, Limits { connections: 1, ..Limits::default() });
    note(&server.get("/v1/groups"), &mut found);
    // One connection at a time: the last one may still be on its way out.
    let ask = |headers: &str, name: &str| {
        crate::wait::wait_for(name, crate::wait::DEADLINE, || {
            let answer = server.ask("POST", "/v1/groups/g/marks", headers, b"");
            if answer.problem() == name { Ok(answer) } else { Err(answer.status) }
        })
    };
    note(&ask("authorization: Bearer read-read-read-read\r\n", "forbidden"), &mut found);
    note(&ask("host: evil.com\r\n", "forbidden"), &mut found);
    let held = server.connect();
    let refused = crate::wait::wait_for("a refusal", crate::wait::DEADLINE, || {
        let mut bytes = Vec::new();
        match std::io::Read::read_to_end(&mut server.connect(), &mut bytes) {
            Ok(_) if !bytes.is_empty() => Ok(crate::http::sockets::parse(&bytes)),
            other => Err(format!("{other:?}")),
        }
    });
    note(&refused, &mut found);
    drop(held);

    let mut listed = BTreeSet::new();
    for line in lines(LISTED) {
        let mut words = line.split_whitespace();
        let name = format!("{} {}", words.next().expect("a name"), words.next().expect("a status"));
        listed.extend(words.map(|field| format!("{name} {field}")));
        listed.insert(name);
    }
    same(&listed, &found, "problems");
}
