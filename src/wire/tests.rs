//! The shapes of INTERFACE, section 3: JSON in, JSON out.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::*;
use crate::offset::{Group, Isolation};
use crate::reconcile::{HoleReset, NewGroup};
use crate::rollback::{Edge, Target};

fn group() -> Group {
    Group::new("default", "loader").unwrap()
}

/// Reads `text` as an answer, and asserts that it is written again with the same fields in the same order.
#[track_caller]
fn there_and_back<T: Serialize + DeserializeOwned>(text: &str) {
    let plain: Value = serde_json::from_str(text).unwrap();
    let answer: T = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&answer).unwrap(), plain.to_string());
}

fn error_of<T: DeserializeOwned>(text: &str) -> String {
    match serde_json::from_str::<T>(text) {
        Ok(_) => panic!("taken: {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn counts_are_written_as_strings_and_read_from_both() {
    assert_eq!(serde_json::to_string(&Count(u64::MAX)).unwrap(), r#""18446744073709551615""#);
    assert_eq!(serde_json::from_str::<Vec<Count>>(r#"["7", 7]"#).unwrap(), [Count(7), Count(7)]);
    for wrong in ["-1", "1.5", r#""x""#, "null"] {
        error_of::<Count>(wrong);
    }
}

#[test]
fn a_start_is_asked_for_with_everything_or_with_little() {
    let full = r#"{"topics": ["orders", "^audit-.*"], "owner": "loader@host1:4711",
        "new_group": {"offsets": [{"topic": "orders", "partition": 0, "offset": "5"}]},
        "reset": {"head": "fail", "tail": "latest", "recreated": "earliest", "missing": "skip", "hole": "skip"},
        "isolation": "read_uncommitted", "kafka_group": "lag", "accept_cluster": "GlwF", "dry_run": true}"#;
    there_and_back::<StartBody>(full);
    let request = serde_json::from_str::<StartBody>(full).unwrap().request(group()).unwrap();
    assert_eq!(format!("{:?} {}", request.topics, request.owner), "[orders, ^audit-.*] loader@host1:4711");
    assert!(matches!(&request.policy.new_group, NewGroup::Offsets(offsets) if offsets.len() == 1));
    assert_eq!(request.policy.reset.hole, HoleReset::Skip);
    assert_eq!(request.policy.accept_cluster.as_deref(), Some("GlwF"));
    assert_eq!((request.isolation, request.dry_run), (Some(Isolation::ReadUncommitted), true));

    let little = r#"{"topics": ["orders"], "owner": "o", "isolation": null, "accept_cluster": null}"#;
    let request = serde_json::from_str::<StartBody>(little).unwrap().request(group()).unwrap();
    assert_eq!((request.policy, request.isolation, request.dry_run), (Default::default(), None, false));

    let body: StartBody = serde_json::from_str(r#"{"topics": ["a b"], "owner": "o"}"#).unwrap();
    assert!(body.request(group()).unwrap_err().to_string().contains("a b"));
    assert!(error_of::<StartBody>(r#"{"owner": "o"}"#).contains("topics"));
    assert!(error_of::<StartBody>(r#"{"topics": ["t"]}"#).contains("owner"));
    assert!(error_of::<StartBody>(r#"{"topics": ["t"], "owner": "o", "app": "a"}"#).contains("app"));
}

#[test]
fn a_start_is_answered_as_a_list_or_as_sparks_map() {
    let text = r#"{"group": "loader", "app": "default", "epoch": "3", "seq": "120", "cluster_id": "GlwF",
        "positions": [{"topic": "orders", "partition": 0, "topic_id": null, "offset": "9007199254740993",
            "verdict": "in_range", "earliest": "0", "latest": "520", "readable_end": "520", "replaying_until": null},
            {"topic": "orders", "partition": 10, "topic_id": null, "offset": "250", "verdict": "head_out_of_range",
            "earliest": "250", "latest": "400", "readable_end": "400", "replaying_until": "300"}],
        "findings": [{"topic": "orders", "partition": 10, "verdict": "head_out_of_range", "position": "100",
            "earliest": "250", "latest": "400", "start": "250",
            "loss": {"from_offset": "100", "until_offset": "250"}, "detail": null}]}"#;
    there_and_back::<StartAnswer>(text);
    let spark = serde_json::from_str::<StartAnswer>(text).unwrap().spark();
    let map = serde_json::to_string(&spark).unwrap();
    assert_eq!(map, r#"{"orders":{"0":9007199254740993,"10":250}}"#);
    assert_eq!(serde_json::from_str::<SparkOffsets>(&map).unwrap(), spark);
}

#[test]
fn a_group_by_itself_is_a_summary_and_more() {
    let summary = r#""group": "loader", "app": "default", "epoch": "3", "state": "held",
        "held": {"reason": "r", "actor": "ann", "since": "2026-11-30T10:00:00Z", "seq": "7"}, "owner": "o",
        "picked_up": {"epoch": "3", "owner": null, "at": "2026-11-30T10:00:00Z"}, "isolation": "read_committed",
        "cluster_id": null, "kafka_group": "loader", "last_batch": {"batch": "7", "seq": "121", "batch_time": null,
            "recorded_at": "2026-11-30T10:00:00Z"},
        "topics": [{"topic": "orders", "partitions": 2, "retired": false}], "open_holes": "0", "losses_open": "1""#;
    there_and_back::<GroupSummary>(&format!("{{{summary}}}"));
    there_and_back::<GroupAnswer>(&format!(
        r#"{{{summary}, "growth": [{{"topic": "orders", "partition": 2}}],
        "losses_to_come": [{{"topic": "orders", "partition": 0, "from_offset": "0", "until_offset": "5"}}],
        "mirror": {{"written_at": "2026-11-30T10:00:00Z", "error": null, "failures": "2"}},
        "members": [{{"member_id": "m", "client_id": "c", "host": "/h"}}],
        "last_fenced": {{"at": "2026-11-30T10:00:00Z", "epoch": "2",
            "ranges": [{{"topic": "orders", "partition": 0, "from_offset": "0", "until_offset": "5"}}]}},
        "fenced_total": "1"}}"#
    ));
    there_and_back::<GroupsAnswer>(&format!(r#"{{"groups": [{{{summary}}}], "next": null}}"#));
    there_and_back::<BatchesAnswer>(r#"{"batches": [], "next": "41"}"#);
    there_and_back::<EntriesAnswer>(r#"{"entries": [], "next": "120"}"#);
}

#[test]
fn positions_and_losses() {
    let hole = r#"{"from_offset": "1", "until_offset": "2", "seq": "3", "cause": "hole", "acknowledged_by": null}"#;
    there_and_back::<PositionsAnswer>(&format!(
        r#"{{"group": "loader", "app": "default", "epoch": "3",
        "as_of": {{"seq": "9", "batch": "7", "recorded_at": "2026-11-30T10:00:00Z", "clock_uncertain": false}},
        "positions": [{{"topic": "orders", "partition": 0, "offset": "5", "topic_id": null, "earliest": "0",
            "latest": "9", "readable_end": "9", "lag": "4", "broker_seen_at": "2026-11-30T10:00:00Z",
            "replaying_until": null, "holes": [{hole}], "last_batch": "7", "last_batch_time": null}}]}}"#
    ));
    there_and_back::<LossesAnswer>(
        r#"{"losses": [{"topic": "orders", "partition": 1, "from_offset": "3", "until_offset": "7", "seq": "2",
            "cause": "expired", "recorded_at": null, "acknowledged_by": null}], "next": null}"#,
    );
}

#[test]
fn a_plan_carries_the_body_that_executes_it() {
    let execute = r#"{"to": {"batch": "41", "edge": "before"}, "scope": [{"topic": "orders", "partitions": [0, 1]}],
        "kafka": false, "allow_clamp": true, "leave_unmovable": false, "unchecked": false, "hold": true,
        "plan": "p-9f3c"}"#;
    let text = format!(
        r#"{{"group": "loader", "app": "default", "plan": "p-9f3c", "executable": false, "nothing_to_do": false,
        "refusals": [{{"topic": "orders", "partition": 0, "outcome": "beyond_end", "why": "w"}}], "epoch": "3",
        "as_of": {{"seq": "9", "batch": "7", "recorded_at": "2026-11-30T10:00:00Z", "clock_uncertain": false}},
        "clock_uncertain": false, "partitions": [{{"topic": "orders", "partition": 0, "position": "9", "target": null,
            "start": "9", "outcome": "unchanged", "replayed": "0", "skipped": "0", "lost": "0"}}],
        "totals": {{"replayed": "0", "skipped": "0", "lost": "0", "partitions": "1"}}, "members": [],
        "execute": {execute}}}"#
    );
    there_and_back::<PlanAnswer>(&text);
    let plan: PlanAnswer = serde_json::from_str(&text).unwrap();
    let body = ExecuteBody::new(plan.execute.clone(), "ann".to_owned(), "why".to_owned());
    let sent = serde_json::to_string(&body).unwrap();
    let (again, actor, reason) = serde_json::from_str::<ExecuteBody>(&sent).unwrap().split();
    assert_eq!((&again, actor.as_str(), reason.as_str()), (&plan.execute, "ann", "why"));
    let request = again.request(group()).unwrap();
    assert!(matches!(request.to, Target::Batch { edge: Edge::Before, .. }));
    assert!(request.allow_clamp && request.hold && !request.unchecked);

    assert!(error_of::<ExecuteBody>(r#"{"to": {"undo": true}, "actor": "a"}"#).contains("reason"));
    assert!(error_of::<ExecuteBody>(r#"{"to": {"undo": true}, "actor": "a", "reason": "r", "x": 1}"#).contains('x'));
    assert!(error_of::<RollbackBody>(r#"{"to": {"undo": true}, "actor": "a"}"#).contains("actor"));
    there_and_back::<ExecutedAnswer>(
        r#"{"seq": "130", "epoch": "4", "repeated": false, "clock_uncertain": false,
        "partitions": [{"topic": "orders", "partition": 0, "old": "9", "new": null}], "kafka": null}"#,
    );
}

#[test]
fn what_an_operator_sends_has_no_field_too_many() {
    there_and_back::<MarkBody>(r#"{"name": "before deploy 42"}"#);
    there_and_back::<MarkBody>(r#"{"name": "before deploy 42", "actor": "ann"}"#);
    there_and_back::<HoldBody>(r#"{"reason": "mending the sink", "actor": "ann"}"#);
    there_and_back::<ReleaseBody>(r#"{"actor": "ann"}"#);
    there_and_back::<RetireBody>(r#"{"topic": "orders", "actor": "ann"}"#);
    there_and_back::<AcknowledgeBody>(r#"{"actor": "ann"}"#);
    assert_eq!(serde_json::from_str::<RetireBody>(r#"{"actor": "ann"}"#).unwrap().topic, None);
    assert!(error_of::<MarkBody>(r#"{"name": "m", "app": "a"}"#).contains("app"));
    assert!(error_of::<HoldBody>(r#"{"actor": "ann"}"#).contains("reason"));
}
