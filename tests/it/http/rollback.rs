//! `POST /v1/groups/{g}/rollback/plan`, `POST /v1/groups/{g}/rollback`: a look at what would be done, and doing it.

use axum::body::Body;
use axum::http::Request;

use super::table::check;
use super::world::World;

/// Two batches of two partitions an hour apart, at 100/50 and 200/100.
const TWO_BATCHES: &str = r#"
    ! broker orders id=A 0:0..520 1:0..520
    > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o"}
    200 {"epoch": "1", "seq": "2", "..": 0}
    > POST /v1/groups/g/batches
    + {"epoch": 1, "batch_time": "2026-11-30T08:59:59Z", "ranges": [
    +   {"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": 100},
    +   {"topic": "orders", "partition": 1, "from_offset": 0, "until_offset": 50}]}
    201 {"batch": "1", "seq": "3", "..": 0}
    > POST /v1/groups/g/marks {"name": "before deploy 42", "actor": "ann"}
    201 {"seq": "4", "..": 0}
    ! clock +1h
    > POST /v1/groups/g/batches
    + {"epoch": 1, "batch_time": "2026-11-30T09:59:59Z", "ranges": [
    +   {"topic": "orders", "partition": 0, "from_offset": 100, "until_offset": 200},
    +   {"topic": "orders", "partition": 1, "from_offset": 50, "until_offset": 100}]}
    201 {"batch": "2", "seq": "5", "..": 0}
"#;

#[test]
fn a_plan_says_all_that_its_execution_does_and_is_executed_once() {
    check(
        &World::scripted(),
        &(TWO_BATCHES.to_owned()
            + r#"
        > POST /v1/groups/g/rollback/plan {"to": {"batch": "2", "edge": "before"}, "scope": [{"topic": "orders", "partitions": [0, 1]}]}
        200 {"group": "g", "app": "default", "plan": "$plan", "executable": true, "nothing_to_do": false,
         "refusals": [], "epoch": "1", "as_of": {"seq": "4", "batch": "1", "recorded_at": "2026-11-30T09:00:00Z",
         "clock_uncertain": false}, "clock_uncertain": false, "partitions": [{"topic": "orders", "partition": 0,
         "position": "200", "target": "100", "start": "100", "outcome": "exact", "replayed": "100", "skipped": "0",
         "lost": "0"}, {"topic": "orders", "partition": 1, "position": "100", "target": "50", "start": "50",
         "outcome": "exact", "replayed": "50", "skipped": "0", "lost": "0"}], "totals": {"replayed": "150",
         "skipped": "0", "lost": "0", "partitions": "2"}, "members": [], "execute": {"to": {"batch": "2",
         "edge": "before"}, "scope": [{"topic": "orders", "partitions": [0, 1]}], "kafka": false,
         "allow_clamp": false, "leave_unmovable": false, "unchecked": false, "hold": false,
         "plan": "$plan"}}
        > POST /v1/groups/g/rollback {"to": {"batch": "2", "edge": "before"}, "scope": [{"topic": "orders", "partitions": [0, 1]}], "plan": $plan, "actor": "ann", "reason": "a bad deploy"}
        200 {"seq": "6", "epoch": "2", "repeated": false, "clock_uncertain": false, "partitions": [{"topic": "orders",
         "partition": 0, "old": "200", "new": "100"}, {"topic": "orders", "partition": 1, "old": "100", "new": "50"}],
         "kafka": null}
        > POST /v1/groups/g/rollback {"to": {"batch": "2", "edge": "before"}, "scope": [{"topic": "orders", "partitions": [0, 1]}], "plan": $plan, "actor": "ann", "reason": "a bad deploy"}
        200 {"seq": "6", "epoch": "2", "repeated": true, "clock_uncertain": false, "partitions": [{"topic": "orders",
         "partition": 0, "old": "200", "new": "100"}, {"topic": "orders", "partition": 1, "old": "100", "new": "50"}],
         "kafka": null}
        > GET /v1/groups/g/entries?limit=1
        200 {"entries": [{"seq": "6", "group": "g", "app": "default", "recorded_at": "2026-11-30T10:00:00Z",
         "machine_clock": "2026-11-30T10:00:00Z", "epoch": "2", "kind": "rolled_back", "plan": "$plan",
         "target": "before batch 2", "actor": "ann", "reason": "a bad deploy", "undoes": null, "kafka": null,
         "topics": [], "moves": [{"topic": "orders", "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ",
         "old": "200", "new": "100", "holes": [], "replaying_until": "200"}, {"topic": "orders", "partition": 1,
         "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "old": "100", "new": "50", "holes": [], "replaying_until": "100"}],
         "losses": [], "cluster_id": null}], "next": "6"}
        > GET /v1/groups/g/positions
        200 {"group": "g", "app": "default", "epoch": "2", "as_of": {"seq": "6", "batch": "2",
         "recorded_at": "2026-11-30T10:00:00Z", "clock_uncertain": false}, "positions": [{"topic": "orders",
         "partition": 0, "offset": "100", "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "earliest": "0", "latest": "520",
         "readable_end": "520", "lag": "420", "broker_seen_at": "1970-01-01T00:00:00Z", "replaying_until": "200",
         "holes": [], "last_batch": "2", "last_batch_time": "2026-11-30T09:59:59Z"}, {"topic": "orders",
         "partition": 1, "offset": "50", "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "earliest": "0", "latest": "520",
         "readable_end": "520", "lag": "470", "broker_seen_at": "1970-01-01T00:00:00Z", "replaying_until": "100",
         "holes": [], "last_batch": "2", "last_batch_time": "2026-11-30T09:59:59Z"}]}
        > POST /v1/groups/g/rollback/plan {"to": {"batch": 1}}
        200 {"group": "g", "app": "default", "plan": "$nothing", "executable": true, "nothing_to_do": true,
         "refusals": [], "epoch": "2", "as_of": {"seq": "3", "batch": "1", "recorded_at": "2026-11-30T09:00:00Z",
         "clock_uncertain": false}, "clock_uncertain": false, "partitions": [{"topic": "orders", "partition": 0,
         "position": "100", "target": "100", "start": "100", "outcome": "unchanged", "replayed": "0", "skipped": "0",
         "lost": "0"}, {"topic": "orders", "partition": 1, "position": "50", "target": "50", "start": "50",
         "outcome": "unchanged", "replayed": "0", "skipped": "0", "lost": "0"}], "totals": {"replayed": "0",
         "skipped": "0", "lost": "0", "partitions": "2"}, "members": [], "execute": {"to": {"batch": "1",
         "edge": "after"}, "scope": [], "kafka": false, "allow_clamp": false, "leave_unmovable": false,
         "unchecked": false, "hold": false, "plan": "$nothing"}}
        > POST /v1/groups/g/rollback {"to": {"batch": 1}, "actor": "ann", "reason": "again"}
        200 {"seq": null, "epoch": "2", "repeated": false, "clock_uncertain": false, "partitions": [], "kafka": null}
        > POST /v1/groups/g/rollback/plan {"to": {"offset": 10}}
        200 {"plan": "$ten", "epoch": "2", "..": 0}
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "another"}
        200 {"epoch": "3", "seq": "7", "..": 0}
        > POST /v1/groups/g/rollback {"to": {"offset": 10}, "plan": $ten, "actor": "ann", "reason": "too late"}
        409 plan-outdated {"plan": {"plan": "$ten_again", "epoch": "3", "partitions": ["*", "*"], "..": 0}}
        > POST /v1/groups/g/rollback {"to": {"offset": 10}, "plan": "p-0000000000000000", "actor": "ann", "reason": "made up"}
        409 plan-outdated {"plan": {"plan": "$ten_again", "epoch": "3", "..": 0}}
        > POST /v1/groups/g/rollback {"to": {"undo": true}, "hold": true, "actor": "ann", "reason": "back"}
        200 {"seq": "8", "epoch": "4", "repeated": false, "clock_uncertain": false, "partitions": [{"topic": "orders",
         "partition": 0, "old": "100", "new": "200"}, {"topic": "orders", "partition": 1, "old": "50", "new": "100"}],
         "kafka": null}
        > GET /v1/groups/g/entries?limit=2
        200 {"entries": [{"seq": "9", "group": "g", "app": "default", "recorded_at": "2026-11-30T10:00:00Z",
         "machine_clock": "2026-11-30T10:00:00Z", "epoch": "4", "kind": "held", "reason": "back", "actor": "ann"},
         {"seq": "8", "group": "g", "app": "default", "recorded_at": "2026-11-30T10:00:00Z",
         "machine_clock": "2026-11-30T10:00:00Z", "epoch": "4", "kind": "rolled_back", "plan": "*",
         "target": "undo of the last move", "actor": "ann", "reason": "back", "undoes": "6", "kafka": null,
         "topics": [], "moves": [{"topic": "orders", "partition": 0, "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ",
         "old": "100", "new": "200", "holes": [], "replaying_until": null}, {"topic": "orders", "partition": 1,
         "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ", "old": "50", "new": "100", "holes": [], "replaying_until": null}],
         "losses": [], "cluster_id": null}], "next": "8"}
        "#),
    );
}

#[test]
fn a_plan_that_is_refused_says_why_and_what_would_allow_it() {
    check(
        &World::scripted(),
        &(TWO_BATCHES.to_owned()
            + r#"
        ! broker orders id=A 0:120..520 1:0..520
        > POST /v1/groups/g/rollback/plan {"to": {"batch": 1}}
        200 {"group": "g", "app": "default", "plan": "$refused", "executable": false,
         "nothing_to_do": false, "refusals": [{"topic": "orders", "partition": 0, "outcome": "expired",
         "why": "orders/0: offsets 100 to 120 are no longer there; allow_clamp starts at 120"}], "epoch": "1",
         "as_of": {"seq": "3", "batch": "1", "recorded_at": "2026-11-30T09:00:00Z", "clock_uncertain": false},
         "clock_uncertain": false, "partitions": [{"topic": "orders", "partition": 0, "position": "200",
         "target": "100", "start": "120", "outcome": "expired", "replayed": "80", "skipped": "0", "lost": "20"},
         {"topic": "orders", "partition": 1, "position": "100", "target": "50", "start": "50", "outcome": "exact",
         "replayed": "50", "skipped": "0", "lost": "0"}], "totals": {"replayed": "130", "skipped": "0", "lost": "20",
         "partitions": "2"}, "members": [], "execute": {"to": {"batch": "1", "edge": "after"}, "scope": [],
         "kafka": false, "allow_clamp": false, "leave_unmovable": false, "unchecked": false, "hold": false,
         "plan": "$refused"}}
        > POST /v1/groups/g/rollback {"to": {"batch": 1}, "actor": "ann", "reason": "why"}
        409 refused {"detail": "orders/0: offsets 100 to 120 are no longer there; allow_clamp starts at 120",
         "plan": {"group": "g", "app": "default", "plan": "$refused", "executable": false,
         "nothing_to_do": false, "refusals": [{"topic": "orders", "partition": 0, "outcome": "expired",
         "why": "orders/0: offsets 100 to 120 are no longer there; allow_clamp starts at 120"}], "epoch": "1",
         "as_of": {"seq": "3", "batch": "1", "recorded_at": "2026-11-30T09:00:00Z", "clock_uncertain": false},
         "clock_uncertain": false, "partitions": [{"topic": "orders", "partition": 0, "position": "200",
         "target": "100", "start": "120", "outcome": "expired", "replayed": "80", "skipped": "0", "lost": "20"},
         {"topic": "orders", "partition": 1, "position": "100", "target": "50", "start": "50", "outcome": "exact",
         "replayed": "50", "skipped": "0", "lost": "0"}], "totals": {"replayed": "130", "skipped": "0", "lost": "20",
         "partitions": "2"}, "members": [], "execute": {"to": {"batch": "1", "edge": "after"}, "scope": [],
         "kafka": false, "allow_clamp": false, "leave_unmovable": false, "unchecked": false, "hold": false,
         "plan": "$refused"}}}
        > POST /v1/groups/g/rollback/plan {"to": {"batch": 1}, "allow_clamp": true}
        200 {"group": "g", "app": "default", "plan": "$clamped", "executable": true, "nothing_to_do": false,
         "refusals": [], "epoch": "1", "as_of": {"seq": "3", "batch": "1", "recorded_at": "2026-11-30T09:00:00Z",
         "clock_uncertain": false}, "clock_uncertain": false, "partitions": [{"topic": "orders", "partition": 0,
         "position": "200", "target": "100", "start": "120", "outcome": "expired", "replayed": "80", "skipped": "0",
         "lost": "20"}, {"topic": "orders", "partition": 1, "position": "100", "target": "50", "start": "50",
         "outcome": "exact", "replayed": "50", "skipped": "0", "lost": "0"}], "totals": {"replayed": "130",
         "skipped": "0", "lost": "20", "partitions": "2"}, "members": [], "execute": {"to": {"batch": "1",
         "edge": "after"}, "scope": [], "kafka": false, "allow_clamp": true, "leave_unmovable": false,
         "unchecked": false, "hold": false, "plan": "$clamped"}}
        > POST /v1/groups/g/rollback/plan {"to": {"undo": true}}
        409 refused {"detail": "nothing to undo: group g was never moved", "refusal": "nothing-to-undo"}
        > POST /v1/groups/g/rollback/plan {"to": {"batch": 3}}
        404 unknown-batch {"detail": "group g has no batch 3; its newest is 2", "newest": "2"}
        > POST /v1/groups/g/rollback/plan {"to": {"batch": 0}}
        400 invalid {"detail": "batch \"0\": batches are numbered from 1 on", "field": "batch", "value": "0",
         "limit": "batches are numbered from 1 on"}
        > POST /v1/groups/g/rollback/plan {"to": {"mark": "nothing"}}
        404 unknown-mark {"detail": "group g has no mark \"nothing\"", "mark": "nothing"}
        > POST /v1/groups/g/rollback/plan {"to": {"commit_time": "2026-11-30T08:00:00Z"}}
        404 before-history
         {"detail": "committed by 2026-11-30T08:00:00Z is before the history of group g: its oldest batch is 1, recorded at 2026-11-30T09:00:00Z",
         "oldest": {"batch": "1", "seq": "3", "recorded_at": "2026-11-30T09:00:00Z"}}
        > POST /v1/groups/g/rollback/plan {"to": {"batch": 1}, "scope": [{"topic": "nothing"}]}
        404 unknown-topic {"detail": "group g has no nothing", "topic": "nothing", "partition": null}
        > POST /v1/groups/g/rollback/plan {"to": {"batch": 1}, "scope": [{"topic": "orders", "partitions": [1, 7]}]}
        404 unknown-topic {"detail": "group g has no orders/7", "topic": "orders", "partition": 7}
        > POST /v1/groups/g/rollback/plan {"to": {"batch": 1}, "kafka": true, "unchecked": true}
        400 invalid {"detail": "unchecked \"true\": to set Kafka's committed offsets the broker must be asked",
         "field": "unchecked", "value": "true", "limit": "to set Kafka's committed offsets the broker must be asked"}
        > POST /v1/groups/g/rollback/plan {"to": {}}
        400 invalid {"detail": "to \"\": names no target; give exactly one", "field": "to", "value": "",
         "limit": "names no target; give exactly one"}
        > POST /v1/groups/g/rollback/plan {"to": {"batch": 1, "seq": 2}}
        400 invalid {"detail": "to \"2\": targets at once; give exactly one", "field": "to", "value": "2",
         "limit": "targets at once; give exactly one"}
        > POST /v1/groups/g/rollback/plan {"to": {"edge": "after", "latest": true}}
        400 invalid {"detail": "to \"edge\": goes with a batch only", "field": "to", "value": "edge",
         "limit": "goes with a batch only"}
        > POST /v1/groups/g/rollback {"to": {"batch": 1}, "actor": "", "reason": "why"}
        400 invalid {"detail": "actor \"\": 0 bytes; it has 1 to 255", "field": "actor", "value": "",
         "limit": "0 bytes; it has 1 to 255"}
        > POST /v1/groups/g/rollback {"to": {"batch": 1}, "actor": "ann", "reason": " "}
        400 invalid {"detail": "reason \" \": a reason has 1 to 1000 bytes and no NUL", "field": "reason",
         "value": " ", "limit": "a reason has 1 to 1000 bytes and no NUL"}
        > POST /v1/groups/g/rollback {"to": {"batch": 1}, "actor": "ann"}
        400 invalid {"detail": "reason: missing field `reason`", "field": "reason", "value": "",
         "limit": "missing field `reason`"}
        > POST /v1/groups/g/rollback {"to": {"batch": 1}, "reason": "why"}
        400 invalid {"detail": "actor: missing field `actor`", "field": "actor", "value": "",
         "limit": "missing field `actor`"}
        > POST /v1/groups/nobody/rollback/plan {"to": {"batch": 1}}
        404 unknown-group {"detail": "no group nobody in this journal", "apps": []}
        > POST /v1/groups/nobody/rollback {"to": {"batch": 1}, "actor": "ann", "reason": "why"}
        404 unknown-group {"detail": "no group nobody in this journal", "apps": []}
        ! broker orders error
        > POST /v1/groups/g/rollback/plan {"to": {"latest": true}}
        503 broker-unavailable {"detail": "no answer from fake:9092 within 250ms", "brokers": "fake:9092",
         "deadline_ms": 250, "unknown": [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 1}]}
        > POST /v1/groups/g/rollback/plan {"to": {"batch": 1}}
        503 broker-unavailable
         {"detail": "no answer from fake:9092 within 250ms; unchecked moves the group without asking, and the next start looks",
         "brokers": "fake:9092", "deadline_ms": 250, "unknown": [{"topic": "orders", "partition": 0},
         {"topic": "orders", "partition": 1}]}
        > POST /v1/groups/g/rollback/plan {"to": {"batch": 1}, "unchecked": true}
        200 {"group": "g", "app": "default", "plan": "$unchecked", "executable": true, "nothing_to_do": false,
         "refusals": [], "epoch": "1", "as_of": {"seq": "3", "batch": "1", "recorded_at": "2026-11-30T09:00:00Z",
         "clock_uncertain": false}, "clock_uncertain": false, "partitions": [{"topic": "orders", "partition": 0,
         "position": "200", "target": "100", "start": "100", "outcome": "unchecked", "replayed": "100",
         "skipped": "0", "lost": "0"}, {"topic": "orders", "partition": 1, "position": "100", "target": "50",
         "start": "50", "outcome": "unchecked", "replayed": "50", "skipped": "0", "lost": "0"}],
         "totals": {"replayed": "150", "skipped": "0", "lost": "0", "partitions": "2"}, "members": [],
         "execute": {"to": {"batch": "1", "edge": "after"}, "scope": [], "kafka": false, "allow_clamp": false,
         "leave_unmovable": false, "unchecked": true, "hold": false, "plan": "$unchecked"}}
        > POST /v1/groups/g/rollback/plan {"to": {"latest": true}, "unchecked": true}
        400 invalid {"detail": "unchecked \"latest\": this target can't be found without asking the broker",
         "field": "unchecked", "value": "latest", "limit": "this target can't be found without asking the broker"}
        > GET /v1/groups
        200 {"groups": [{"group": "g", "app": "default", "epoch": "1", "state": "active", "held": null, "owner": "o",
         "picked_up": {"epoch": "1", "owner": "o", "at": "2026-11-30T09:00:00Z"}, "isolation": "read_committed",
         "cluster_id": null, "kafka_group": "g", "last_batch": {"batch": "2", "seq": "5", "batch_time": "2026-11-30T09:59:59Z",
         "recorded_at": "2026-11-30T10:00:00Z"}, "topics": [{"topic": "orders", "partitions": 2, "retired": false}],
         "open_holes": "0", "losses_open": "0"}], "next": null}
        "#),
    );
}

/// Each target, and where it sends the two partitions from 200 and 100.
#[test]
fn every_target_goes_where_it_says() {
    let mut script = TWO_BATCHES.to_owned() + "! times orders/0=33 orders/1=end\n";
    for (to, executed, starts) in [
        (r#"{"batch": "2", "edge": "before"}"#, r#"{"batch": "2", "edge": "before"}"#, "100 50"),
        (r#"{"batch": 1, "edge": "after"}"#, r#"{"batch": "1", "edge": "after"}"#, "100 50"),
        (r#"{"batch": "1", "edge": "before"}"#, r#"{"batch": "1", "edge": "before"}"#, "0 0"),
        (r#"{"commit_time": "2026-11-30T09:30:00Z"}"#, r#"{"commit_time": "2026-11-30T09:30:00Z"}"#, "100 50"),
        (r#"{"commit_time": 1796031000000}"#, r#"{"commit_time": "2026-11-30T09:30:00Z"}"#, "100 50"),
        (r#"{"mark": "before deploy 42"}"#, r#"{"mark": "before deploy 42"}"#, "100 50"),
        (r#"{"seq": 2}"#, r#"{"seq": "2"}"#, "0 0"),
        (r#"{"earliest": true}"#, r#"{"earliest": true}"#, "0 0"),
        (r#"{"latest": true}"#, r#"{"offsets": "*"}"#, "520 520"),
        (r#"{"offset": "17"}"#, r#"{"offset": "17"}"#, "17 17"),
        (r#"{"shift": -50}"#, r#"{"offsets": "*"}"#, "150 50"),
        (r#"{"shift": "20"}"#, r#"{"offsets": "*"}"#, "220 120"),
        (r#"{"record_time": "2026-11-30T00:00:00Z"}"#, r#"{"offsets": "*"}"#, "33 520"),
        (r#"{"duration": "PT1H"}"#, r#"{"offsets": "*"}"#, "33 520"),
        (
            r#"{"offsets": [{"topic": "orders", "partition": 0, "offset": 5}]}"#,
            r#"{"offsets": [{"topic": "orders", "partition": 0, "offset": "5"}]}"#,
            "5",
        ),
    ] {
        let starts = starts.split(' ').map(|start| format!(r#"{{"start": "{start}", "..": 0}}"#)).collect::<Vec<_>>();
        script += &format!(
            "> POST /v1/groups/g/rollback/plan {{\"to\": {to}, \"allow_clamp\": true}}\n200 {{\"partitions\": [{}], \
             \"execute\": {{\"to\": {executed}, \"..\": 0}}, \"..\": 0}}\n",
            starts.join(", ")
        );
    }
    script += "> GET /v1/groups/g/positions?seq=5\n200 {\"epoch\": \"1\", \"..\": 0}\n";
    check(&World::scripted(), &script);
}

#[test]
fn where_there_is_nothing_to_do_nothing_is_done() {
    let world = World::scripted();
    check(
        &world,
        &(TWO_BATCHES.to_owned()
            + r#"
        > POST /v1/groups/g/rollback/plan {"to": {"batch": 2}}
        200 {"group": "g", "app": "default", "plan": "$plan", "executable": true, "nothing_to_do": true,
         "refusals": [], "epoch": "1", "as_of": {"seq": "5", "batch": "2", "recorded_at": "2026-11-30T10:00:00Z",
         "clock_uncertain": false}, "clock_uncertain": false, "partitions": [{"topic": "orders", "partition": 0,
         "position": "200", "target": "200", "start": "200", "outcome": "unchanged", "replayed": "0", "skipped": "0",
         "lost": "0"}, {"topic": "orders", "partition": 1, "position": "100", "target": "100", "start": "100",
         "outcome": "unchanged", "replayed": "0", "skipped": "0", "lost": "0"}], "totals": {"replayed": "0",
         "skipped": "0", "lost": "0", "partitions": "2"}, "members": [], "execute": {"to": {"batch": "2",
         "edge": "after"}, "scope": [], "kafka": false, "allow_clamp": false, "leave_unmovable": false,
         "unchecked": false, "hold": false, "plan": "$plan"}}
        > POST /v1/groups/g/rollback {"to": {"batch": 2}, "actor": "ann", "reason": "why"}
        200 {"seq": null, "epoch": "1", "repeated": false, "clock_uncertain": false, "partitions": [], "kafka": null}
        > POST /v1/groups/g/rollback {"to": {"batch": 2}, "plan": $plan, "actor": "ann", "reason": "why"}
        200 {"seq": null, "epoch": "1", "repeated": false, "clock_uncertain": false, "partitions": [], "kafka": null}
        "#),
    );
    assert_eq!(world.state().seq.as_u64(), 5, "an entry was made");
}

/// Who is in the Kafka group: refused is a policy's word, and no answer is none.
#[test]
fn a_coordinator_that_does_not_answer_is_unavailable_and_one_that_refuses_is_not() {
    check(
        &World::scripted(),
        &(TWO_BATCHES.to_owned()
            + r#"
        > POST /v1/groups/g/rollback {"to": {"batch": 1}, "kafka": true, "actor": "ann", "reason": "why"}
        200 {"seq": "6", "kafka": {"state": "done", "..": 0}, "..": 0}
        ! members ?
        > POST /v1/groups/g/rollback/plan {"to": {"offset": 5}, "kafka": true}
        503 broker-unavailable {"detail": "no answer from fake:9092 within 250ms", "brokers": "fake:9092",
         "deadline_ms": 250, "unknown": [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 1}]}
        > POST /v1/rollbacks/6/kafka {}
        503 broker-unavailable {"detail": "*", "brokers": "fake:9092", "deadline_ms": 250, "unknown": []}
        ! members no
        > POST /v1/groups/g/rollback/plan {"to": {"offset": 5}, "kafka": true}
        200 {"executable": false, "refusals": ["*"], "..": 0}
        > POST /v1/rollbacks/6/kafka {}
        409 refused {"detail": "Kafka does not tell the members of group g: not authorized",
         "refusal": "members-unknown", "kafka_group": "g"}
        "#),
    );
}

#[tokio::test]
async fn without_a_plan_nothing_is_executed() {
    // A repeat after a lost reply would move the group twice.
    let world = World::alone();
    let start = r#"{"topics": ["orders"], "owner": "o", "new_group": {"offsets": [{"topic": "orders", "partition": 0, "offset": 9}]}}"#;
    world.want(200, "POST", "/v1/groups/g/start", start).await;
    let before = world.state();
    let order = r#"{"to": {"offset": 5}, "unchecked": true, "actor": "ann", "reason": "why"}"#;
    let request = Request::post("/v1/groups/g/rollback").body(Body::from(order)).expect("a request");
    let answer = world.send(request).await;
    assert_eq!((answer.status, answer.json()["field"].clone()), (400, "plan".into()));
    assert_eq!(world.state(), before);
}

/// DESIGN 7: a group with live members makes the plan not executable, by name.
#[test]
fn live_members_are_in_the_way_also_where_nothing_moves() {
    let world = World::scripted();
    let live = r#"Kafka group g has live members: m (client client-m, host /127.0.0.1); stop them (one that was killed counts as live for 45 s)"#;
    let refused = r#""executable": false, "nothing_to_do": true, "members": [{"member_id": "m", "..": 0}]"#;
    check(
        &world,
        &(TWO_BATCHES.to_owned()
            + &format!(
                r#"
        ! members m
        > POST /v1/groups/g/rollback/plan {{"to": {{"batch": 2}}, "kafka": true, "hold": true}}
        200 {{"plan": "$plan", {refused}, "refusals": [{{"topic": null, "partition": null, "outcome": null, "why": "{live}"}}], "..": 0}}
        > POST /v1/groups/g/rollback {{"to": {{"batch": 2}}, "kafka": true, "hold": true, "plan": $plan, "actor": "ann", "reason": "why"}}
        409 group-active {{"detail": "{live}", "members": [{{"member_id": "m", "..": 0}}], "plan": {{{refused}, "..": 0}}}}
        ! members no
        > POST /v1/groups/g/rollback {{"to": {{"batch": 2}}, "kafka": true, "hold": true, "plan": $plan, "actor": "ann", "reason": "why"}}
        409 refused {{"detail": "Kafka does not tell the members of group g: not authorized", "..": 0}}
        ! members ?
        > POST /v1/groups/g/rollback {{"to": {{"batch": 2}}, "kafka": true, "hold": true, "plan": $plan, "actor": "ann", "reason": "why"}}
        503 broker-unavailable {{"..": 0}}
        "#
            )),
    );
    assert_eq!(world.state().seq.as_u64(), 5, "an entry was made");
}

/// The entry of the hold is in the history; the answer's `seq` is that of a move, and there was none.
#[test]
fn a_hold_is_made_also_where_nothing_moves() {
    check(
        &World::scripted(),
        &(TWO_BATCHES.to_owned()
            + r#"
        > POST /v1/groups/g/rollback {"to": {"batch": 2}, "hold": true, "actor": "ann", "reason": "why"}
        200 {"seq": null, "epoch": "1", "repeated": false, "clock_uncertain": false, "partitions": [], "kafka": null}
        > GET /v1/groups/g/entries?limit=1
        200 {"entries": [{"seq": "6", "kind": "held", "actor": "ann", "reason": "why", "..": 0}], "..": 0}
        > POST /v1/groups/g/rollback {"to": {"batch": 2}, "kafka": true, "actor": "ann", "reason": "why"}
        200 {"seq": null, "kafka": {"of": null, "seq": null, "state": "done", "..": 0}, "..": 0}
        "#),
    );
}
