//! Offsets as CSV, both ways, by the built program, without a broker.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::cli::journal_of;
use crate::program::{Program, text};

fn with_group() -> Program {
    let program = Program::new("127.0.0.1:1");
    journal_of(&program, 3);
    program
}

fn file(program: &Program, name: &str, content: impl AsRef<[u8]>) -> String {
    fs::write(program.path(name), content).expect("a file can be written");
    name.to_owned()
}

#[test]
fn a_plan_goes_out_as_csv_and_comes_back_as_a_target() {
    let program = with_group();
    assert_eq!(program.positions("g"), "orders/0 20, orders/1 10");
    let to = ["rollback", "g", "--unchecked", "--to-batch", "1"];
    let exported = program.run(&[&to[..], &["--export"]].concat());
    assert_eq!((exported.code, exported.out.as_str()), (0, "orders,0,10\norders,1,0\n"), "{}", exported.err);
    let csv = file(&program, "offsets.csv", &exported.out);
    let back = ["rollback", "g", "--unchecked", "--from-file", &csv];
    let plan = program.json(&back);
    assert_eq!(plan["execute"]["to"]["offsets"][1]["offset"], "0", "{plan}");
    program.ok(&[&back[..], &["--execute", "--yes", "--reason", "a test"]].concat());
    assert_eq!(program.positions("g"), "orders/0 10, orders/1 0");
    // What it is at already is in the plan too, and changes nothing.
    assert_eq!(program.ok(&[&back[..], &["--export"]].concat()), exported.out);
    assert!(program.ok(&back).contains("nothing to do"));
}

#[test]
fn a_file_moves_only_what_it_names() {
    let program = with_group();
    let mut command =
        program.command(&["rollback", "g", "--unchecked", "--from-file", "-", "--execute", "--yes", "--reason", "why"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let rows = "\u{feff}other,orders,0,9\r\ng,orders,1,4\r\n\"an, other\",orders,0,7\r\n";
    child.stdin.take().expect("piped").write_all(rows.as_bytes()).expect("it reads");
    let done = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    assert!(said.contains("2 rows of other groups are left out: \"an, other\", \"other\""), "{said}");
    assert_eq!(program.positions("g"), "orders/0 20, orders/1 4");
    // A scope takes less of it; what the group does not have is refused, by name.
    let csv = file(&program, "both.csv", "orders,0,1\norders,1,1\n");
    let scoped = program.ok(&["rollback", "g", "--unchecked", "--from-file", &csv, "--topic", "orders:0", "--export"]);
    assert_eq!(scoped, "orders,0,1\n");
    let csv = file(&program, "more.csv", "orders,0,1\norders,7,1\n");
    let unknown = program.fails(8, &["rollback", "g", "--unchecked", "--from-file", &csv]);
    assert!(unknown.contains("orders/7"), "{unknown}");
}

#[test]
fn a_file_that_is_wrong_is_refused_by_place_and_does_nothing() {
    let program = with_group();
    let before = program.kinds("g");
    let million: String = (0..1_000_000).map(|n| format!("orders,{n},0\n")).collect();
    for (content, said) in [
        (&b""[..], "holds no row"),
        (b"orders,0,1\norders,1,-2\n", "line 2, column 3: offset \"-2\": negative"),
        (b"orders,0,1\norders,\xff,2\n", "line 2, column 2: not UTF-8"),
        (b"orders,0,1\n\"orders,1,2\n", "line 2, column 1: a quote is opened and never closed"),
        (b"other,orders,0,1\n", "no row is of group g; it names \"other\""),
        (million.as_bytes(), "line 200001: more than 200000 partitions"),
    ] {
        let csv = file(&program, "bad.csv", content);
        for words in [
            &["rollback", "g", "--unchecked", "--execute", "--yes", "--reason", "x", "--from-file", &csv][..],
            &["import", "g", "--positions", &csv],
        ] {
            let err = program.fails(2, words);
            assert!(err.contains(said) && err.contains("bad.csv"), "{words:?}: {said:?} is not in {err}");
        }
    }
    for (path, said) in [("nowhere.csv", "No such file"), (".", "directory"), ("/dev/zero", "2000 bytes")] {
        let err = program.fails(2, &["rollback", "g", "--unchecked", "--from-file", path]);
        assert!(err.contains(said) && err.contains(path), "{path}: {err}");
    }
    assert_eq!(program.kinds("g"), before);
}

#[test]
fn an_export_is_csv_and_executes_nothing() {
    let program = Program::new("127.0.0.1:1");
    journal_of(&program, 1);
    let to = ["rollback", "g", "--to-offset", "1", "--unchecked"];
    let (plan, before) = (text(&program.json(&to)["plan"]), program.kinds("g"));
    for (flag, words) in [
        ("--execute", &["--execute", "--reason", "x"][..]),
        ("--reason", &["--reason", "x", "--plan", &plan]),
        ("--plan", &["--plan", &plan]),
        ("--actor", &["--actor", "me"]),
        ("--yes", &["--yes"]),
        ("--output", &["-o", "json"]),
        ("--repeat-kafka", &["--repeat-kafka", "1"]),
    ] {
        let err = program.fails(2, &[&to[..], &["--export"], words].concat());
        assert!(err.contains("cannot be used with") && err.contains(flag), "{words:?}: {err}");
    }
    assert_eq!(program.kinds("g"), before);
}

#[test]
fn what_sets_kafka_again_takes_no_flag_that_it_would_not_heed() {
    let program = Program::new("127.0.0.1:1");
    journal_of(&program, 1);
    for flag in [
        &["--export"][..],
        &["--before"],
        &["--after"],
        &["--hold"],
        &["--reason", "x"],
        &["--actor", "me"],
        &["--plan", "p-0"],
        &["--yes"],
    ] {
        let err = program.fails(2, &[&["rollback", "g", "--repeat-kafka", "1"], flag].concat());
        assert!(err.contains("cannot be used with") && err.contains(flag[0]), "{flag:?}: {err}");
    }
}

#[test]
fn a_new_group_comes_from_a_file() {
    let program = Program::new("127.0.0.1:1");
    let csv = file(&program, "redis.csv", "orders,0,500\naudit,3,7\n");
    let import = |more: &[&str]| program.run(&[&["import", "--positions", &csv, "loader"], more].concat());
    let dry = import(&["--dry-run"]);
    assert!(dry.code == 0 && dry.out.contains("would have 2 positions from redis.csv"), "{dry:?}");
    assert!(!program.path("journal").exists(), "a dry run makes no journal");
    let done = import(&[]);
    assert!(done.code == 0 && done.out.contains("loader has 2 positions from redis.csv: seq 1"), "{done:?}");
    assert!(done.err.contains("made a new journal in"), "{}", done.err);
    assert_eq!(program.positions("loader"), "audit/3 7, orders/0 500");
    let entries = program.lines(&["entries", "loader"]);
    assert_eq!(
        [&entries[0]["kind"], &entries[0]["source"], &entries[0]["epoch"]].map(text),
        ["imported", "redis.csv", "0"]
    );
    // A group that is there is rolled back, not overwritten.
    for more in [&[][..], &["--dry-run"]] {
        let again = import(more);
        assert!(again.code == 3 && again.err.contains("tidelog rollback loader --from-file redis.csv"), "{again:?}");
    }
    assert_eq!(program.kinds("loader"), ["imported"]);
    // The journal is somebody's.
    let server = program.spawn(&["serve", "--listen", "127.0.0.1:0"]);
    program.wait_served();
    let taken = program.fails(5, &["import", "--positions", &csv, "another"]);
    assert!(taken.contains("in use"), "{taken}");
    server.kill();
    // A whole journal is another matter.
    let whole = program.fails(2, &["import", "loader"]);
    assert!(whole.contains("--positions") && whole.contains("whole journals"), "{whole}");
}
