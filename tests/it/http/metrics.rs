//! `GET /metrics`: OpenMetrics text, with the numbers of the journal and of each group.

use std::collections::BTreeMap;
use std::time::Instant;

use super::world::World;
use crate::wait::DEADLINE;

async fn text(world: &World) -> String {
    let answer = world.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    String::from_utf8(answer.body.to_vec()).expect("text")
}

#[tokio::test]
async fn groups_and_the_journal_are_counted() {
    let world = World::scripted();
    world.change("broker orders id=A 0:0..520 1:0..520");
    world.want(200, "POST", "/v1/groups/g/start", r#"{"topics": ["orders"], "owner": "o"}"#).await;
    world.want(200, "POST", "/v1/groups/g/start?app=b%22%5C", r#"{"topics": ["orders"], "owner": "o"}"#).await;
    let commit = |epoch: u64| {
        format!(
            r#"{{"epoch": {epoch}, "batch_time": "2026-11-30T09:00:00Z",
                "ranges": [{{"topic": "orders", "partition": 0, "from_offset": 10, "until_offset": 100}}]}}"#
        )
    };
    world.want(201, "POST", "/v1/groups/g/batches", &commit(1)).await;
    world.want(409, "POST", "/v1/groups/g/batches", &commit(0)).await;
    let back = r#"{"to": {"offset": 50}, "actor": "ann", "reason": "why"}"#;
    world.want(200, "POST", "/v1/groups/g/rollback", back).await;
    // The lag is that of a look that somebody took.
    world.want(200, "GET", "/v1/groups/g/positions", "").await;
    let told = text(&world).await;
    for line in [
        "tidelog_journal_seq 6",
        "tidelog_journal_read_only 0",
        r#"tidelog_group_state{app="default",group="g",state="replaying"} 1"#,
        r#"tidelog_group_epoch{app="default",group="g"} 2"#,
        r#"tidelog_group_batch{app="default",group="g"} 1"#,
        r#"tidelog_group_last_batch_time_seconds{app="default",group="g"} 1796029200.0"#,
        r#"tidelog_group_partitions{app="default",group="g"} 2"#,
        r#"tidelog_group_replaying_partitions{app="default",group="g"} 1"#,
        r#"tidelog_group_open_holes{app="default",group="g"} 1"#,
        r#"tidelog_group_open_losses{app="default",group="g"} 1"#,
        r#"tidelog_group_lag{app="default",group="g"} 940"#,
        r#"tidelog_group_refused_commits_total{app="default",group="g",problem="fenced"} 1"#,
        r#"tidelog_group_refused_commits_total{app="default",group="g",problem="held"} 0"#,
        r#"tidelog_group_mirror_failures_total{app="default",group="g"} 0"#,
        r#"tidelog_group_epoch{app="b\"\\",group="g"} 1"#,
    ] {
        assert!(told.lines().any(|other| other == line), "{line}:\n{told}");
    }
    let size = |part: &str| {
        let line =
            told.lines().find(|line| line.starts_with(&format!("tidelog_journal_size_bytes{{part=\"{part}\"}} ")));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).unwrap_or_else(|| panic!("{part}:\n{told}"))
    };
    assert!(size("wal") >= 64 << 10 && size("sled") > 0);
    assert!(told.ends_with("# EOF\n"), "{told}");
    // Of a partition without a leader nobody knows the lag; and a retired group is out of the alarms.
    world.change("broker orders id=A 0:0..520 1:?");
    let deadline = Instant::now() + DEADLINE;
    while text(&world).await.contains(r#"tidelog_group_lag{app="default",group="g"}"#) {
        assert!(Instant::now() < deadline, "{}", text(&world).await);
        // Takes a new look, once the last one is old enough.
        world.want(200, "GET", "/v1/groups/g/positions", "").await;
    }
    world.change("retire g");
    assert!(!text(&world).await.contains(r#"app="default",group="g""#));
}

#[tokio::test]
async fn refused_commits_are_counted_by_the_problem_that_they_are_told() {
    let world = World::alone();
    world.want(200, "POST", "/v1/groups/g/start", r#"{"topics": ["orders"], "owner": "o"}"#).await;
    let commit = |epoch: u64, key: &str, until: u64| {
        format!(
            r#"{{"epoch": {epoch}, "batch_time": "2026-11-30T09:00:00Z", "key": "{key}",
                "ranges": [{{"topic": "orders", "partition": 0, "from_offset": 0, "until_offset": {until}}}]}}"#
        )
    };
    let mut expected = BTreeMap::new();
    let mut refused = async |status: u16, body: &str| {
        let problem = world.want(status, "POST", "/v1/groups/g/batches", body).await;
        let kind =
            problem["type"].as_str().and_then(|kind| kind.strip_prefix("/problems/")).expect("a type").to_owned();
        *expected.entry(kind).or_insert(0) += 1;
    };
    world.want(201, "POST", "/v1/groups/g/batches", &commit(1, "k", 5)).await;
    refused(409, &commit(1, "k", 6)).await;
    refused(409, &commit(0, "l", 5)).await;
    refused(409, &commit(9, "l", 5)).await;
    world.want(201, "POST", "/v1/groups/g/hold", r#"{"reason": "why"}"#).await;
    refused(409, &commit(1, "l", 5)).await;
    refused(409, &commit(1, "l", 5)).await;
    world.want(201, "POST", "/v1/groups/g/release", r#"{}"#).await;
    world.want(201, "POST", "/v1/groups/g/retire", r#"{"topic": "orders"}"#).await;
    refused(400, &commit(1, "l", 5)).await;
    // What is no commit at all, too.
    refused(400, &commit(1, "l", 5).replace("orders", "no topic")).await;
    refused(400, "{").await;
    // Of a group that the journal does not have nothing is kept, or names would fill the memory.
    world.want(404, "POST", "/v1/groups/none/batches", &commit(1, "l", 5)).await;
    let told = text(&world).await;
    for (kind, count) in
        [("fenced", 1), ("held", 2), ("invalid", 3), ("journal-behind", 1), ("key-conflict", 1), ("too-large", 0)]
    {
        assert_eq!(expected.get(kind).copied().unwrap_or(0), count, "{kind}");
        let line =
            format!(r#"tidelog_group_refused_commits_total{{app="default",group="g",problem="{kind}"}} {count}"#);
        assert!(told.lines().any(|other| other == line), "{line}:\n{told}");
    }
    assert!(!told.contains(r#"group="none""#), "{told}");
}

#[tokio::test]
async fn without_a_broker_there_is_no_lag_and_no_mirror() {
    let world = World::alone();
    world.want(200, "POST", "/v1/groups/g/start", r#"{"topics": ["orders"], "owner": "o"}"#).await;
    let told = text(&world).await;
    assert!(!told.contains("tidelog_group_lag{") && !told.contains("tidelog_group_mirror_failures_total{"), "{told}");
    assert!(told.contains(r#"tidelog_group_state{app="default",group="g",state="new"} 1"#), "{told}");
}
