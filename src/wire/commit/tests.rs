//! Commits as they come from outside.

use super::*;

/// The ranges that a body commits, or why it is refused.
fn read(body: &str) -> Result<String, String> {
    let body: CommitBody = serde_json::from_str(body).map_err(|error| error.to_string())?;
    let commit = body.commit(Group::new("default", "loader").unwrap()).map_err(|error| error.to_string())?;
    Ok(commit.ranges().iter().map(OffsetRange::to_string).collect::<Vec<_>>().join(" "))
}

fn with(rest: &str) -> Result<String, String> {
    read(&format!(r#"{{"epoch": "3", "batch_time": "2026-11-30T10:00:00Z", {rest}}}"#))
}

#[test]
fn ranges_and_sparks_pair_are_the_same() {
    let ranges = r#""ranges": [{"topic": "orders", "partition": 1, "from_offset": 7, "until_offset": "7"},
        {"topic": "orders", "partition": 0, "from_offset": "500", "until_offset": 542, "topic_id": null}]"#;
    let spark = r#""spark": {"start": {"orders": {"0": 500, "1": 7}}, "end": {"orders": {"1": 7, "0": 542}}}"#;
    let both = "orders/0 [500,542) orders/1 [7,7)";
    assert_eq!(with(ranges).as_deref(), Ok(both));
    assert_eq!(with(spark).as_deref(), Ok(both));
    assert_eq!(with(&format!(r#""key": "job-17/42", {spark}"#)).as_deref(), Ok(both));
}

#[test]
fn what_can_not_be_committed_is_named() {
    let id = |id: &str| {
        format!(
            r#""ranges": [{{"topic": "t", "partition": 0, "from_offset": 0, "until_offset": 1, "topic_id": "{}"}},
            {{"topic": "t", "partition": 1, "from_offset": 0, "until_offset": 1, "topic_id": "{id}"}}]"#,
            "AAAAAAAAAAAAAAAAAAAAAQ"
        )
    };
    assert_eq!(with(&id("AAAAAAAAAAAAAAAAAAAAAQ")).as_deref(), Ok("t/0 [0,1) t/1 [0,1)"));
    let range = |from: &str, until: &str| {
        format!(r#""ranges": [{{"topic": "t", "partition": 0, "from_offset": {from}, "until_offset": {until}}}]"#)
    };
    let one = r#"{"topic":"t","partition":0,"from_offset":0,"until_offset":1}"#;
    let many = format!(r#""ranges": [{}]"#, vec![one; MAX_RANGES + 1].join(","));
    for (rest, said) in [
        (r#""key": "k""#.to_owned(), "give ranges, or spark"),
        (format!(r#"{}, "spark": {{"start": {{}}, "end": {{}}}}"#, range("0", "1")), "one of the two"),
        (r#""ranges": []"#.to_owned(), "1 to 100000"),
        (many, r#""100001": a batch has at most 100000 ranges"#),
        (range("-1", "5"), "negative"),
        (range("\"-2\"", "5"), "digits only"),
        (range("1.5", "5"), "fraction"),
        (range("5", "4"), "above until_offset"),
        (range("0", "9223372036854775808"), "larger than 9223372036854775807"),
        (r#""spark": {"start": {"t": {"0": -2}}, "end": {"t": {"0": 5}}}"#.to_owned(), "negative"),
        (r#""spark": {"start": {"t": {"0": 1}}, "end": {"t": {"0": 5, "1": 2}}}"#.to_owned(), r#"spark.start "t/1""#),
        (r#""spark": {"start": {"t": {"0": 1}, "u": {"0": 1}}, "end": {"t": {"0": 5}}}"#.to_owned(), r#""u/0""#),
        (r#""spark": {"start": {"a b": {"0": 1}}, "end": {}}"#.to_owned(), "a-z"),
        (id("AAAAAAAAAAAAAAAAAAAAAg"), "t has AAAAAAAAAAAAAAAAAAAAAQ in another range"),
        (format!(r#""key": "", {}"#, range("0", "1")), "1 to 255"),
        (format!(r#""app": "a", {}"#, range("0", "1")), "unknown field `app`"),
        (r#""ranges": [{"topic": "t", "partition": 0, "from": 0, "until": 1}]"#.to_owned(), "unknown field `from`"),
    ] {
        let error = with(&rest).expect_err(said);
        assert!(error.contains(said), "{said:?} is not in {error}");
    }
    for missing in ["epoch", "batch_time"] {
        let body = r#"{"epoch": 3, "batch_time": "2026-11-30T10:00:00Z", "ranges": []}"#;
        let error = read(&body.replace(missing, "key")).expect_err(missing);
        assert!(error.contains(missing) || error.contains("string"), "{error}");
    }
}

#[test]
fn a_receipt_is_that_of_the_interface() {
    let text = concat!(
        r#"{"batch":"7","seq":"121","recorded_at":"2026-11-30T10:00:00.123Z","repeated":false,"notes":[{"topic":"orders","#,
        r#""partition":0,"note":"hole","from_offset":"498","until_offset":"500"}]}"#
    );
    let answer: ReceiptAnswer = serde_json::from_str(text).unwrap();
    let ReceiptAnswer { batch, seq, recorded_at, repeated, notes } = answer;
    let receipt = Receipt { batch, seq, recorded_at, repeated, notes };
    assert_eq!(serde_json::to_string(&ReceiptAnswer::from(receipt)).unwrap(), text);
}
