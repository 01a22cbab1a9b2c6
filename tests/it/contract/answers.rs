//! Routes, their parameters, the fields of their bodies and of their answers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tidelog::offset::Group;

use super::{fields, lines, same};
use crate::http::entries::make_every_kind;
use crate::http::manners::ROUTES;
use crate::http::table::check;
use crate::http::world::World;

/// `GET /v1/groups`, then lines `? parameter`, `> field of the body`, `< field of the answer`.
const LISTED: &str = include_str!("http.txt");

/// What the list has under `mark`, by route.
fn listed(mark: char) -> BTreeSet<String> {
    let mut route = "";
    let mut found = BTreeSet::new();
    for line in lines(LISTED) {
        match line.trim_start().split_once(' ') {
            Some((first, names)) if first.len() == 1 => {
                if first.starts_with(mark) {
                    found.extend(names.split_whitespace().map(|name| format!("{route} {mark} {name}")));
                }
            }
            _ => route = line,
        }
    }
    found
}

/// A group that has everything that an answer can speak of, and one of another app.
fn furnished() -> World {
    let world = World::scripted();
    make_every_kind(&world);
    check(
        &world,
        r#"
        ! cluster X
        ! broker a id=A 0:0..100 1:0..100
        > POST /v1/groups/full/start {"topics": ["a"], "owner": "o"}
        200 {"epoch": "1", "..": 0}
        > POST /v1/groups/full/batches
        + {"epoch": 1, "batch_time": "2026-11-30T09:00:00Z", "key": "k", "ranges": [
        +   {"topic": "a", "partition": 0, "from_offset": 10, "until_offset": 50},
        +   {"topic": "a", "partition": 1, "from_offset": 0, "until_offset": 50}]}
        201
        > POST /v1/groups/full/batches
        + {"epoch": 0, "batch_time": "2026-11-30T09:00:00Z",
        +  "ranges": [{"topic": "a", "partition": 0, "from_offset": 10, "until_offset": 50}]}
        409 fenced {"..": 0}
        ! broker a id=A 0:0..100 1:70..100 2:0..9
        "#,
    );
    world
}

#[test]
fn every_answer_has_the_fields_that_are_listed_and_no_other() {
    let world = furnished();
    let start = r#"{"topics": ["a"], "owner": "o2"}"#;
    let commit = r#"{"epoch": 2, "batch_time": "2026-11-30T09:00:01Z", "ranges": [{"topic": "a", "partition": 0, "from_offset": 60, "until_offset": 70}]}"#;
    let rollback = r#"{"to": {"offset": 5}, "kafka": true, "scope": [{"topic": "a", "partitions": [0, 1]}], "allow_clamp": true, "hold": true, "actor": "ann", "reason": "why"}"#;
    let plan =
        r#"{"to": {"batch": "1", "edge": "before"}, "kafka": true, "scope": [{"topic": "a", "partitions": [0, 1]}]}"#;
    let mut found = BTreeSet::new();
    let mut routes = BTreeSet::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for (route, target, body) in [
        ("", "members m", ""),
        ("GET /v1/groups/{group}/positions", "/v1/groups/full/positions", ""),
        ("GET /v1/groups/{group}/positions", "/v1/groups/full/positions?batch=1", ""),
        // What has grown on the broker, before the start takes it in, and who is in the Kafka group.
        ("GET /v1/groups/{group}", "/v1/groups/full", ""),
        ("POST /v1/losses/{seq}/acknowledge", "/v1/losses/17/acknowledge", r#"{"actor": "ann"}"#),
        ("POST /v1/groups/{group}/start", "/v1/groups/full/start", start),
        ("POST /v1/groups/{group}/batches", "/v1/groups/full/batches", commit),
        ("POST /v1/groups/{group}/batches", "/v1/groups/full/batches", commit),
        ("", "members m", ""),
        ("POST /v1/groups/{group}/rollback/plan", "/v1/groups/full/rollback/plan", plan),
        ("", "members", ""),
        ("POST /v1/groups/{group}/rollback", "/v1/groups/full/rollback", rollback),
        ("POST /v1/rollbacks/{seq}/kafka", "/v1/rollbacks/{moved}/kafka", "{}"),
        ("POST /v1/groups/{group}/marks", "/v1/groups/full/marks", r#"{"name": "m"}"#),
        ("GET /v1/groups", "/v1/groups", ""),
        ("GET /v1/groups/{group}", "/v1/groups/full", ""),
        ("GET /v1/groups/{group}/batches", "/v1/groups/full/batches", ""),
        ("GET /v1/groups/{group}/batches/{batch}", "/v1/groups/full/batches/1", ""),
        ("GET /v1/groups/{group}/entries", "/v1/groups/full/entries", ""),
        ("GET /v1/groups/{group}/entries", "/v1/groups/g/entries", ""),
        ("GET /v1/groups/{group}/entries", "/v1/groups/h/entries", ""),
        ("GET /v1/groups/{group}/losses", "/v1/groups/full/losses", ""),
        ("GET /v1/topics/{topic}/partitions/{partition}/offsets/{offset}", "/v1/topics/a/partitions/0/offsets/20", ""),
        ("POST /v1/groups/{group}/release", "/v1/groups/full/release", r#"{"actor": "ann"}"#),
        ("POST /v1/groups/{group}/hold", "/v1/groups/full/hold", r#"{"reason": "why", "actor": "ann"}"#),
        ("POST /v1/groups/{group}/retire", "/v1/groups/full/retire", r#"{"topic": "a", "actor": "ann"}"#),
        ("GET /healthz", "/healthz", ""),
        ("GET /readyz", "/readyz", ""),
    ] {
        if route.is_empty() {
            world.change(target);
            continue;
        }
        let method = route.split(' ').next().expect("a method");
        let moved =
            world.journal().group(&Group::new("default", "full").expect("a name")).and_then(|full| full.last_move);
        let target = target.replace("{moved}", &moved.unwrap_or_default().to_string());
        let answer = runtime.block_on(world.ask(method, &target, body));
        assert!((200..300).contains(&answer.status), "{method} {target}: {}", answer.json());
        let mut names = BTreeSet::new();
        fields(&answer.json(), "", &mut names);
        found.extend(names.into_iter().map(|name| format!("{route} < {name}")));
        routes.insert(route);
    }
    same(&listed('<'), &found, "fields of answers");
    let named: BTreeSet<&str> = lines(LISTED).filter(|line| !line.starts_with(' ')).collect();
    // Its events are the entries; and text that is no JSON.
    routes.extend(["GET /v1/stream", "GET /metrics"]);
    assert_eq!(routes, named);
}

#[test]
fn every_route_takes_the_parameters_that_are_listed_and_no_other() {
    // That these are taken, and no other, is asked of the server itself in `http::manners`.
    let mut there = BTreeSet::new();
    for (path, method, names) in ROUTES {
        let path = path.replacen("/g", "/{group}", usize::from(path.starts_with("/v1/groups/g")) * 2);
        let path = path.replace("{group}roups", "groups").replace("/batches/1", "/batches/{batch}");
        let path = path.replace("/losses/3", "/losses/{seq}").replace("/rollbacks/3", "/rollbacks/{seq}");
        let path = path.replace("/orders/partitions/0/offsets/7", "/{topic}/partitions/{partition}/offsets/{offset}");
        there.extend(names.iter().map(|name| format!("{method} {path} ? {name}")));
    }
    same(&listed('?'), &there, "parameters");
}

/// What a body may hold, as the server itself tells one who sends something else.
#[test]
fn every_body_takes_the_fields_that_are_listed_and_no_other() {
    let world = furnished();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let bodies = BTreeMap::from([
        ("start", vec![("", "{X}"), ("reset.", r#"{"reset": {X}}"#)]),
        ("batches", vec![("", "{X}"), ("ranges[].", r#"{"ranges": [{X}]}"#), ("spark.", r#"{"spark": {X}}"#)]),
        ("marks", vec![("", "{X}")]),
        ("hold", vec![("", "{X}")]),
        ("release", vec![("", "{X}")]),
        ("retire", vec![("", "{X}")]),
        ("acknowledge", vec![("", "{X}")]),
        ("rollback", vec![("", "{X}")]),
        (
            "rollback/plan",
            vec![
                ("", "{X}"),
                ("to.", r#"{"to": {X}}"#),
                ("to.offsets[].", r#"{"to": {"offsets": [{X}]}}"#),
                ("scope[].", r#"{"scope": [{X}]}"#),
            ],
        ),
    ]);
    let mut there = BTreeSet::new();
    for (path, bodies) in bodies {
        for (prefix, body) in bodies {
            let route = match path {
                "acknowledge" => "/v1/losses/{seq}/acknowledge".to_owned(),
                _ => format!("/v1/groups/{{group}}/{path}"),
            };
            let target = route.replace("{group}", "full").replace("{seq}", "3");
            let answer = runtime.block_on(world.ask("POST", &target, &body.replace('X', "\"zzz\": 1")));
            let problem = answer.json();
            let told = problem["limit"].as_str().unwrap_or_else(|| panic!("{path} {body}: {problem}"));
            // Between backquotes: the unknown one, then all that there are.
            let names = told.split('`').skip(1).step_by(2).skip(1);
            there.extend(names.map(|name| format!("POST {route} > {prefix}{name}")));
        }
    }
    same(&listed('>'), &there, "fields of bodies");
}

/// What INTERFACE names and this version does not have yet.
#[test]
fn routes_that_are_listed_as_later_are_not_there_yet() {
    let world = World::alone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let later: Vec<_> = lines(include_str!("later.txt")).filter_map(|line| line.split_once(" /")).collect();
    assert!(!later.is_empty());
    for (method, path) in later {
        let answer = runtime.block_on(world.ask(method, &format!("/{path}"), "{}"));
        assert_eq!(answer.problem(), "not-found", "{method} /{path} has come: move it from later.txt to http.txt");
    }
}

/// A start that gives offsets takes them in this shape only.
#[test]
fn offsets_of_a_new_group_have_their_shape() {
    let world = World::alone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for (offsets, status) in [
        (r#"[{"topic": "t", "partition": 0, "offset": "7"}]"#, 200),
        (r#"[{"topic": "t", "partition": 0, "offset": "7", "x": 1}]"#, 400),
        (r#"[{"topic": "t", "partition": 0}]"#, 400),
        (r#"{"t": {"0": 7}}"#, 400),
    ] {
        let body =
            format!(r#"{{"topics": ["t"], "owner": "o", "dry_run": true, "new_group": {{"offsets": {offsets}}}}}"#);
        let answer = runtime.block_on(world.ask("POST", "/v1/groups/new/start", &body));
        let told: Value = answer.json();
        assert_eq!(answer.status, status, "{offsets}: {told}");
    }
}
