//! Cases of people who keep offsets (cases.md), as a consumer and an operator over HTTP meet them.

use super::table::check;
use super::world::World;

/// One group at 900 of one partition, by process A.
const AT_900: &str = r#"
    ! broker orders id=A 0:0..900
    > POST /v1/groups/g/start {"topics": ["orders"], "owner": "a"}
    200 {"epoch": "1", "..": 0}
    > POST /v1/groups/g/batches
    + {"epoch": 1, "batch_time": "2026-11-30T08:59:58Z",
    +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 500}]}
    201 {"batch": "1", "..": 0}
    > POST /v1/groups/g/batches
    + {"epoch": 1, "batch_time": "2026-11-30T08:59:59Z",
    +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 500, "until_offset": 900}]}
    201 {"batch": "2", "seq": "4", "..": 0}
"#;

fn at_900(script: &str) {
    check(&World::scripted(), &format!("{AT_900}{script}"));
}

#[test]
fn c03b_a_commit_under_the_old_epoch_is_fenced_and_shown_with_the_group() {
    at_900(
        r#"
        > POST /v1/groups/g/rollback {"to": {"batch": 1}, "actor": "ann", "reason": "why"}
        200 {"seq": "5", "epoch": "2", "partitions": [{"topic": "orders", "partition": 0, "old": "900", "new": "500"}], "..": 0}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T09:00:00Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 900, "until_offset": 910}]}
        409 fenced {"epoch": "2", "raised_by": {"kind": "rolled_back", "seq": "5", "by": "ann"}}
        > GET /v1/groups/g/positions
        200 {"as_of": {"seq": "5", "..": 0}, "positions": [{"offset": "500", "replaying_until": "900", "..": 0}], "..": 0}
        > GET /v1/groups/g
        200 {"epoch": "2", "picked_up": {"epoch": "1", "..": 0}, "last_fenced": {"at": "2026-11-30T09:00:00Z",
         "epoch": "1", "ranges": [{"topic": "orders", "partition": 0, "from_offset": "900", "until_offset": "910"}]},
         "fenced_total": "1", "..": 0}
        > GET /v1/groups/g/entries?limit=1
        200 {"entries": [{"kind": "rolled_back", "..": 0}], "next": "*"}
        "#,
    );
}

#[test]
fn c09_names_that_a_separator_or_an_escape_would_confuse_keep_apart() {
    let names = [
        "a%2Fb",
        "a%252Fb",
        "100%25",
        "a%20b",
        "a%2Bb",
        "x%23y",
        "%E2%98%83",
        "..",
        "%2E",
        "%25FF",
        "a%7Cb",
        "a:b",
        "%27",
        "a%0Ab",
        "%20a",
        "a%3Fb",
        "a+c",
    ];
    let mut script = "! broker orders id=A 0:0..1000\n".to_owned();
    for (index, name) in names.iter().enumerate() {
        script += &format!(
            r#"
            > POST /v1/groups/{name}/start {{"topics": ["orders"], "owner": "a"}}
            200 {{"epoch": "1", "..": 0}}
            > POST /v1/groups/{name}/batches
            + {{"epoch": 1, "batch_time": "2026-11-30T09:00:00Z",
            +  "ranges": [{{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": {}}}]}}
            201 {{"batch": "1", "..": 0}}
            "#,
            index + 1
        );
    }
    for (index, name) in names.iter().enumerate() {
        let end = index + 1;
        script += &format!(
            r#"
            > GET /v1/groups/{name}/batches
            200 {{"batches": [{{"ranges": [{{"from_offset": "0", "until_offset": "{end}", "..": 0}}], "..": 0}}], "next": null}}
            > POST /v1/groups/{name}/rollback {{"to": {{"batch": 1, "edge": "before"}}, "actor": "ann", "reason": "why"}}
            200 {{"partitions": [{{"old": "{end}", "new": "0", "..": 0}}], "..": 0}}
            > GET /v1/groups/{name}/positions
            200 {{"epoch": "2", "positions": [{{"offset": "0", "..": 0}}], "..": 0}}
            "#
        );
    }
    script += r#"
        > GET /v1/groups/a%2fb
        200 {"group": "a/b", "epoch": "2", "..": 0}
        > GET /v1/groups/a+b
        200 {"group": "a+b", "..": 0}
        > GET /v1/groups/a/b
        404 not-found
        > POST /v1/groups/a/b/batches {}
        404 not-found
        > GET /v1/groups/
        400 invalid {"field": "group", "..": 0}
        > GET /v1/groups//positions
        400 invalid {"field": "group", "..": 0}
        > POST /v1/groups//start {"topics": ["orders"], "owner": "a"}
        400 invalid {"field": "group", "..": 0}
        > GET /v1/groups/%FF
        400 invalid
        > POST /v1/groups/%FF/start {"topics": ["orders"], "owner": "a"}
        400 invalid
        > GET /v1/groups/a%00b
        400 invalid {"field": "group", "..": 0}
        > POST /v1/groups/a%00b/start {"topics": ["orders"], "owner": "a"}
        400 invalid {"field": "group", "..": 0}
        > GET /v1/groups/g?app=%FF
        400 invalid
        > GET /v1/groups/g?app=
        400 invalid {"field": "app", "..": 0}
        > GET /v1/groups/g?app=a%00b
        400 invalid {"field": "app", "..": 0}
    "#;
    let world = World::scripted();
    check(&world, &script);
    let mut decoded = vec![
        "a/b", "a%2Fb", "100%", "a b", "a+b", "x#y", "\u{2603}", "..", ".", "%FF", "a|b", "a:b", "'", "a\nb", " a",
        "a?b", "a+c",
    ];
    decoded.sort_unstable();
    let state = world.state();
    let groups: Vec<&str> = state.groups.keys().map(|group| group.group()).collect();
    assert_eq!(groups, decoded);
}

#[test]
fn c10_times_need_a_zone_and_a_plus_sign_is_escaped() {
    let world = World::alone();
    let begin = r#"
        ! clock 2020-10-31T18:30:00Z
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "a"}
        200 {"seq": "1", "..": 0}
        ! clock 2020-11-01T00:00:00Z
        > POST /v1/groups/g/marks {"name": "m", "actor": "ann"}
        201 {"seq": "2", "recorded_at": "2020-11-01T00:00:00Z", "..": 0}
        > GET /v1/groups/g/positions?at=2020-11-01T00:00:00+05:30
        400 invalid {"field": "at", "value": "2020-11-01T00:00:00 05:30", "limit": "$hint"}
        > GET /v1/groups/g/positions?at=2020-11-01T00:00:00%2B05:30
        200 {"as_of": {"seq": "1", "recorded_at": "2020-10-31T18:30:00Z", "..": 0}, "..": 0}
        > GET /v1/groups/g/positions?at=1604169000000
        200 {"as_of": {"seq": "1", "..": 0}, "..": 0}
        > GET /v1/groups/g/positions?at=1604168999999
        404 before-history
        > GET /v1/groups/g/positions?at=2020-11-01T00:00:00Z
        200 {"as_of": {"seq": "2", "..": 0}, "..": 0}
        > GET /v1/groups/g/positions?at=2020-11-01T00:00:00
        400 invalid {"field": "at", "value": "2020-11-01T00:00:00", "limit": "no zone; write 2026-11-30T10:00:00Z or 2026-11-30T10:00:00+01:00"}
    "#;
    check(&world, begin);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let hinted = runtime.block_on(world.get("/v1/groups/g/positions?at=2020-11-01T00:00:00+05:30"));
    assert!(hinted.json()["detail"].as_str().is_some_and(|detail| detail.contains("%2B")), "{}", hinted.json());
}

#[test]
fn c14c_of_two_processes_the_older_one_is_fenced() {
    at_900(
        r#"
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "b"}
        200 {"epoch": "2", "positions": [{"offset": "900", "..": 0}], "..": 0}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T09:00:00Z",
        +  "ranges": [{"topic": "orders", "partition": 0, "from_offset": 900, "until_offset": 910}]}
        409 fenced {"epoch": "2", "raised_by": {"kind": "started", "seq": "5", "by": "b"}}
        > GET /v1/groups/g/entries?order=asc
        200 {"entries": [{"kind": "started", "owner": "a", "epoch": "1", "..": 0}, {"kind": "reconciled", "..": 0},
         {"kind": "batch", "..": 0}, {"kind": "batch", "..": 0}, {"kind": "started", "owner": "b", "epoch": "2", "..": 0}],
         "next": null}
        "#,
    );
}

#[test]
fn c25_numbers_beyond_a_double_go_there_and_back_and_others_are_refused() {
    check(
        &World::alone(),
        r#"
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "a", "new_group": {"offsets": [{"topic": "orders", "partition": 0, "offset": 9007199254740993}]}}
        200 {"positions": [{"offset": "9007199254740993", "..": 0}], "..": 0}
        > POST /v1/groups/g/batches
        + {"epoch": 1, "batch_time": "2026-11-30T09:00:00Z", "ranges":
        +  [{"topic": "orders", "partition": 0, "from_offset": "9007199254740993", "until_offset": 9223372036854775807}]}
        201 {"seq": "3", "..": 0}
        > GET /v1/groups/g/positions
        200 {"positions": [{"offset": "9223372036854775807", "..": 0}], "..": 0}
        > POST /v1/groups/g/rollback {"to": {"offset": "9007199254740993"}, "unchecked": true, "actor": "ann", "reason": "why"}
        200 {"partitions": [{"old": "9223372036854775807", "new": "9007199254740993", "..": 0}], "..": 0}
        > GET /v1/groups/g/positions
        200 {"positions": [{"offset": "9007199254740993", "..": 0}], "..": 0}
        > POST /v1/groups/g/start?format=spark {"topics": ["orders"], "owner": "a"}
        200 {"orders": {"0": 9007199254740993}}
        > POST /v1/groups/g/rollback/plan {"to": {"offset": 1e3}, "unchecked": true}
        400 invalid {"field": "to.offset", "..": 0}
        > POST /v1/groups/g/rollback/plan {"to": {"offset": -1}, "unchecked": true}
        400 invalid {"field": "to.offset", "..": 0}
        > POST /v1/groups/g/rollback/plan {"to": {"offset": 9223372036854775808}, "unchecked": true}
        400 invalid {"field": "to.offset", "..": 0}
        > POST /v1/groups/g/rollback/plan {"to": {"offset": "9223372036854775808"}, "unchecked": true}
        400 invalid {"field": "to.offset", "..": 0}
        "#,
    );
}

#[test]
fn c27_a_mistyped_group_is_not_made() {
    let world = World::scripted();
    check(
        &world,
        &format!(
            r#"{AT_900}
            > POST /v1/groups/G/rollback/plan {{"to": {{"batch": 1}}}}
            404 unknown-group {{"apps": []}}
            > POST /v1/groups/G/rollback {{"to": {{"batch": 1}}, "actor": "ann", "reason": "why"}}
            404 unknown-group {{"apps": []}}
            > POST /v1/groups/g/rollback?app=other {{"to": {{"batch": 1}}, "actor": "ann", "reason": "why"}}
            404 unknown-group {{"apps": ["default"]}}
            > GET /v1/groups
            200 {{"groups": [{{"group": "g", "app": "default", "..": 0}}], "next": null}}
            "#
        ),
    );
    assert_eq!(world.state().seq.as_u64(), 4);
}
