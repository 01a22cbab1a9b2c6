//! What is shown on a terminal and nowhere else. Python lends one.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::cli::journal_of;
use crate::program::Program;

/// Runs the program with all its streams on a terminal; what the terminal got.
fn on_terminal(program: &Program, words: &[&str], environment: &[(&str, &str)]) -> String {
    typed(program, words, environment, "")
}

/// Runs the program likewise, for somebody who types this.
pub fn typed(program: &Program, words: &[&str], environment: &[(&str, &str)], keys: &str) -> String {
    const SPAWN: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut command = Command::new("python3");
    command.args(["-c", SPAWN, env!("CARGO_BIN_EXE_tidelog")]).args(words).current_dir(program.path(""));
    command.env("TIDELOG_JOURNAL", program.path("journal")).env("TERM", "xterm").env_remove("RUST_LOG");
    command.env_remove("NO_COLOR").envs(environment.iter().copied());
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("python3 can be run");
    child.stdin.take().expect("piped").write_all(keys.as_bytes()).expect("it reads");
    let done = child.wait_with_output().expect("it ends");
    String::from_utf8(done.stdout).expect("UTF-8")
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let program = Program::new("127.0.0.1:1");
    journal_of(&program, 1);
    let plain = [("NO_COLOR", "1")];
    for (words, environment, coloured) in [
        (&["groups"][..], &[][..], true),
        (&["groups"], &plain, false),
        (&["groups"], &[("TERM", "dumb")], false),
        (&["groups", "--color", "never"], &[], false),
        (&["groups", "--color", "always"], &plain, true),
        // Messages too.
        (&["positions", "nobody"], &[], true),
        (&["positions", "nobody"], &plain, false),
    ] {
        let shown = on_terminal(&program, words, environment);
        assert_eq!(shown.contains("\x1b["), coloured, "{words:?} {environment:?}: {shown:?}");
    }
}

#[test]
fn a_long_wait_is_counted_on_a_terminal_and_logged_once_elsewhere() {
    let program = Program::new("127.0.0.1:1");
    journal_of(&program, 1);
    let words = ["rollback", "g", "--to-batch", "1", "--before", "-b", "127.0.0.1:1"];
    let (shown, quiet, json, logged) = std::thread::scope(|scope| {
        // Each has a journal of its own, as they wait at the same time.
        let run = |more: &'static [&'static str]| {
            let program = Program::new("127.0.0.1:1");
            journal_of(&program, 1);
            scope.spawn(move || on_terminal(&program, &[&words, more].concat(), &[]))
        };
        let (shown, quiet, json) = (run(&[]), run(&["-q"]), run(&["--log-format", "json"]));
        let logged = program.fails(7, &words);
        (shown.join().unwrap(), quiet.join().unwrap(), json.join().unwrap(), logged)
    });
    // Counted up in one place, and gone before the error.
    let seconds = shown.split("\r\x1b[Kwaiting for an answer, ").skip(1);
    let seconds: Vec<u64> = seconds.filter_map(|rest| rest.split(' ').next()?.parse().ok()).collect();
    assert!(seconds.len() >= 2 && seconds.is_sorted() && seconds.first() < seconds.last(), "{shown:?}");
    let (_, end) = shown.rsplit_once("\r\x1b[K").expect("lines are erased");
    assert!(end.contains("error: ") || end.contains("error:\x1b"), "{shown:?}");
    assert!(!end.contains("waiting"), "{shown:?}");
    assert!(end.contains("; --unchecked moves the group without asking"), "{shown:?}");
    assert!(!quiet.contains("waiting") && !json.contains("\x1b[K"), "{quiet:?} {json:?}");
    assert_eq!(logged.matches("waiting for an answer ...").count(), 1, "{logged}");
    assert!(!logged.contains('\r'), "{logged:?}");
}

#[test]
fn a_hold_is_asked_about_also_where_nothing_moves() {
    let program = Program::new("127.0.0.1:1");
    journal_of(&program, 1);
    let nothing = ["rollback", "g", "--unchecked", "--to-batch", "1", "--execute", "--reason", "x", "--color", "never"];
    let before = program.kinds("g");
    let idle = on_terminal(&program, &nothing, &[]);
    assert!(idle.contains("There is nothing to do") && !idle.contains("Do this?"), "{idle}");
    for format in ["table", "json"] {
        let asked = typed(&program, &[&nothing[..], &["--hold", "-o", format]].concat(), &[], "n\n");
        assert!(asked.contains("Nothing moves: ") && asked.contains("The group is on hold afterwards"), "{asked}");
        assert!(asked.contains("Do this?") && asked.contains("declined; nothing has changed"), "{asked}");
        assert_eq!(program.kinds("g"), before);
    }
    let done = typed(&program, &[&nothing[..], &["--hold"]].concat(), &[], "y\n");
    assert!(done.contains("Nothing moved: ") && !done.contains("is moved"), "{done}");
    assert_eq!(program.kinds("g").last().map(String::as_str), Some("held"));
}
