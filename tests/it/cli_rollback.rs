//! What `rollback` says to a person, by the built program.

use tidelog::kafka::mock::Mock;

use crate::cli::journal_of;
use crate::kafka_mock::name;
use crate::program::{Program, text};

#[test]
fn a_plan_that_is_refused_names_the_flag_that_would_help() {
    let mock = Mock::new(1).expect("a mock starts");
    let program = Program::new(mock.config().brokers());
    journal_of(&program, 1);
    let refused = |help: &str, words: &[&str]| {
        let execute = ["--execute", "--yes", "--reason", "x"];
        for words in [words.to_vec(), [words, &execute].concat()] {
            let err = program.fails(3, &words);
            assert!(err.contains(&format!("; {help}")), "{words:?}: {err}");
        }
    };
    let to: &[&str] = &["rollback", "g", "--to-offset", "5"];
    refused("--leave-unmovable leaves it where it is and moves the others", to);
    mock.create_topic(&name("orders"), 2).expect("made");
    refused("--allow-clamp starts at 0, the end", to);
    let plan = program.json(&[to, &["--allow-clamp"]].concat());
    assert_eq!(plan["executable"], true, "{plan}");
    refused("--unchecked moves it all the same, and the next start looks", &[to, &["-b", ""]].concat());
}

#[test]
fn a_receipt_says_what_is_on_hold_and_what_has_moved() {
    let program = Program::new("127.0.0.1:1");
    journal_of(&program, 1);
    let to = |offset: &'static str| ["rollback", "g", "--unchecked", "--to-offset", offset, "--hold"];
    let execute = ["--execute", "--yes", "--reason", "x"];
    program.ok(&[&to("0")[..5], &execute].concat());
    let plan = program.ok(&to("0"));
    assert!(plan.contains("Nothing moves: ") && plan.contains("on hold afterwards"), "{plan}");
    let epoch = program.json(&["positions", "g"])["epoch"].clone();
    let done = program.ok(&[&to("0")[..], &execute].concat());
    assert!(done.contains("Nothing moved: ") && !done.contains("is moved"), "{done}");
    assert!(done.contains("; it is on hold until tidelog release g."), "{done}");
    assert_eq!(program.kinds("g").last().map(String::as_str), Some("held"));
    // It is held already: nothing at all is done.
    let again = program.json(&[&to("0")[..], &execute].concat());
    assert_eq!((&again["seq"], &again["epoch"]), (&serde_json::Value::Null, &epoch));
    let moved = program.ok(&[&to("3")[..], &execute].concat());
    assert!(moved.contains("Group g is moved: seq ") && moved.contains("; it is on hold until"), "{moved}");
    let entries = program.lines(&["entries", "g", "--limit", "1"]);
    assert_eq!(text(&entries[0]["kind"]), "rolled_back");
}
