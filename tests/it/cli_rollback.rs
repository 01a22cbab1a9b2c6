//! What `rollback` says to a person, by the built program.

use tidelog::kafka::mock::Mock;

use crate::cli::journal_of;
use crate::kafka_mock::name;
use crate::program::Program;

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
