//! The commands that read and steer a journal, by the built program, without a broker.

use std::convert::Infallible;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::Value;
use tidelog::commit::Commit;
use tidelog::entry::{Body, Cause, Correction, Draft, Loss, Move, TopicChange};
use tidelog::journal::{Journal, Options};
use tidelog::offset::{Epoch, Group, Isolation, Offset, OffsetRange, Timestamp, TopicName};

use crate::program::{Program, text};

fn offset(number: i64) -> Offset {
    Offset::new(number).expect("not negative")
}

/// 2026-11-30T10:00:00Z.
const TEN: i64 = 1_796_032_800_000;

/// A journal with group `g`: a start and first positions at ten o'clock, then a batch each minute.
pub fn journal_of(program: &Program, batches: i64) {
    let time = Arc::new(AtomicI64::new(TEN));
    let clock = Arc::clone(&time);
    let clock = Arc::new(move || Timestamp::from_millis(clock.load(Ordering::Relaxed)));
    let options = Options { create: true, ..Options::new(clock) };
    let journal = Journal::open(&program.path("journal"), options).expect("a new journal");
    let group = Group::new("default", "g").expect("legal");
    let topic: TopicName = "orders".parse().expect("legal");
    let epoch = Epoch::ZERO.next();
    let first = |partition: u32| Move {
        topic: topic.clone(),
        partition,
        topic_id: None,
        old: None,
        new: Some(offset(0)),
        holes: Vec::new(),
        replaying_until: None,
    };
    let loss = Loss {
        topic: topic.clone(),
        partition: 1,
        from_offset: offset(3),
        until_offset: offset(7),
        cause: Cause::Expired,
    };
    let correction = Correction {
        topics: vec![TopicChange { topic: topic.clone(), topic_id: None, new_incarnation: false }],
        moves: vec![first(0), first(1)],
        losses: vec![loss],
        cluster_id: None,
    };
    let draft = |body| Draft { group: Some(group.clone()), epoch, body };
    let drafts = vec![
        draft(Body::Started { owner: "a".to_owned(), isolation: Isolation::ReadCommitted, kafka_group: None }),
        draft(Body::Reconciled { findings: Vec::new(), correction }),
    ];
    journal.decide(move |_| Ok::<_, Infallible>((drafts, ()))).expect("appended");
    for batch in 0..batches {
        time.fetch_add(60_000, Ordering::Relaxed);
        let now = Timestamp::from_millis(time.load(Ordering::Relaxed));
        let partition = u32::from(batch % 3 == 2);
        let at = if partition == 1 { batch / 3 * 10 } else { (batch - batch / 3) * 10 };
        let range = OffsetRange::new(topic.clone(), partition, offset(at), offset(at + 10)).expect("legal");
        journal.commit(Commit::new(group.clone(), epoch, now, vec![range]).expect("legal")).expect("taken");
    }
    journal.close().expect("closed");
}

fn with_batches(batches: i64) -> Program {
    let program = Program::new("127.0.0.1:1");
    journal_of(&program, batches);
    program
}

#[test]
fn wrong_usage_is_2_and_says_what_is_wrong() {
    let program = Program::new("127.0.0.1:1");
    for (words, said) in [
        (&["frobnicate"][..], "frobnicate"),
        (&["positions"], "<GROUP>"),
        (&["positions", "g", "--at", "2026-11-30T10:00:00"], "zone"),
        (&["positions", "g", "--batch", "-1"], "-1"),
        (&["positions", "g", "--batch", "1", "--seq", "1"], "cannot be used with"),
        (&["positions", ""], "1 to 255"),
        (&["batch", "g", "1", "-o", "csv"], "csv"),
        (&["entries", "g", "-o", "csv"], "csv"),
        (&["history", "g", "--limit", "0"], "0"),
        (&["history", "g", "--limit", "1001"], "1001"),
        (&["history", "g", "--cursor", "x"], "--cursor"),
        (&["rollback", "g"], "where to"),
        (&["rollback", "g", "--to-batch", "3", "--to-latest"], "cannot be used with"),
        (&["rollback", "g", "--to-latest", "--before"], "--to-batch"),
        (&["rollback", "g", "--undo", "--execute"], "--reason"),
        (&["rollback", "g", "--undo", "--yes"], "--execute"),
        (&["rollback", "g", "--undo", "--execute", "--reason", "x"], "--plan or --yes"),
        (&["rollback", "g", "--undo", "--execute", "--reason", "x", "--plan", "nowhere"], "neither"),
        (&["rollback", "g", "--to-offset", "9223372036854775808"], "larger than 9223372036854775807"),
        (&["rollback", "g", "--to-offset", "1e3"], "digits"),
        (&["rollback", "g", "--undo", "--topic", "orders:"], "orders:"),
        (&["start", "g"], "--topic"),
        (&["start", "g", "-t", "a b"], "a-z"),
        (&["start", "g", "-t", "a", "--reset-head", "latest"], "earliest or fail"),
        (&["start", "g", "-t", "a", "--new-group", "yesterday"], "earliest, latest"),
        (&["start", "g", "-t", "a", "-X", "novalue"], "KEY=VALUE"),
        (
            &["consume", "-g", "g", "-t", "a", "--max-records", "0"],
            "'0' for '--max-records <N>': a whole number from 1 to",
        ),
        (&["start", "g", "-t", "a", "-X", "foo=bar"], "property foo: No such configuration property: \"foo\""),
        (&["consume", "-g", "g", "-t", "a", "--format", "raw"], "COMMAND"),
        (&["consume", "-g", "g", "-t", "a", "--durability", "never"], "fsync"),
        (&["completions", "tcsh"], "tcsh"),
    ] {
        let err = program.fails(2, words);
        assert!(err.contains(said), "{words:?}: {said:?} is not in {err}");
        assert!(!program.path("journal").exists(), "{words:?}");
    }
}

#[test]
fn help_has_an_example_for_each_command() {
    let program = Program::new("127.0.0.1:1");
    let commands =
        ["consume", "serve", "start", "groups", "positions", "history", "batch", "losses", "entries", "mark"];
    for command in commands.into_iter().chain(["rollback", "import", "completions", "man"]) {
        let help = program.ok(&[command, "--help"]);
        assert!(help.contains("Example") && help.contains(&format!("tidelog {command}")), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{command}: {help}");
        // Those that own the journal, or need none, can't be sent elsewhere.
        assert_eq!(
            help.contains("--server <URL>"),
            !["consume", "serve", "import", "completions", "man"].contains(&command),
            "{command}"
        );
    }
    assert!(program.ok(&["--version"]).contains("journal format 1"));
    assert!(program.ok(&["completions", "bash"]).contains("rollback"));
}

#[test]
fn only_commands_that_begin_something_make_a_journal() {
    let program = Program::new("127.0.0.1:1");
    for words in [
        &["groups"][..],
        &["positions", "g"],
        &["history", "g"],
        &["batch", "g", "1"],
        &["losses", "g"],
        &["entries", "g"],
        &["mark", "g", "x"],
        &["rollback", "g", "--undo", "--unchecked"],
    ] {
        let err = program.fails(6, words);
        assert!(err.contains("no journal in"), "{words:?}: {err}");
    }
    assert!(!program.path("journal").exists());
}

#[test]
fn a_group_that_is_not_there_is_8_and_its_namesakes_are_told() {
    let program = with_batches(1);
    for words in [&["positions", "h"][..], &["history", "h"], &["mark", "h", "x"], &["losses", "h"]] {
        assert!(program.fails(8, words).contains("no group h"));
    }
    assert!(program.fails(8, &["positions", "g", "--app", "other"]).contains("default"));
    assert!(program.fails(8, &["batch", "g", "7"]).contains("its newest is 1"));
    let early = program.fails(8, &["positions", "g", "--at", "2020-01-01T00:00:00Z"]);
    assert!(early.contains("2026-11-30T10:00:00Z"), "{early}");
}

#[test]
fn history_is_paged_filtered_and_newest_first() {
    let program = with_batches(9);
    let numbers = |more: &[&str]| -> Vec<String> {
        let lines = program.lines(&[&["history", "g"], more].concat());
        lines.iter().map(|batch| text(&batch["batch"])).collect()
    };
    assert_eq!(numbers(&["--limit", "3"]), ["9", "8", "7"]);
    let told = program.run(&["history", "g", "--limit", "3", "-o", "json"]).err;
    assert!(told.contains("--cursor 7"), "{told}");
    assert_eq!(numbers(&["--limit", "3", "--cursor", "7"]), ["6", "5", "4"]);
    assert_eq!(numbers(&["--limit", "5", "--cursor", "4"]), ["3", "2", "1"]);
    assert_eq!(numbers(&["--cursor", "1"]), [""; 0]);
    assert_eq!(numbers(&["--order", "asc", "--limit", "2", "--cursor", "3"]), ["4", "5"]);
    // Each interval is half-open.
    let between = ["--from", "2026-11-30T10:02:00Z", "--to", "2026-11-30T10:05:00Z"];
    assert_eq!(numbers(&between), ["4", "3", "2"]);
    assert_eq!(numbers(&[&between[..], &["--order", "asc"]].concat()), ["2", "3", "4"]);
    assert_eq!(numbers(&["--topic", "orders", "--partition", "1"]), ["9", "6", "3"]);
    assert_eq!(numbers(&["--topic", "other"]), [""; 0]);
    assert_eq!(numbers(&["--batch-from", "2026-11-30T10:09:00Z"]), ["9"]);
    let first = &program.lines(&["history", "g", "--order", "asc", "--limit", "1"])[0];
    let names: Vec<&str> = first.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(names, ["batch", "seq", "batch_time", "recorded_at", "epoch", "key", "ranges", "notes"]);
    assert_eq!(
        first["ranges"].to_string(),
        r#"[{"topic":"orders","partition":0,"from_offset":"0","until_offset":"10"}]"#
    );
    let csv = program.ok(&["history", "g", "-o", "csv", "--limit", "1"]);
    assert_eq!(csv.lines().last(), Some("9,11,2026-11-30T10:09:00Z,2026-11-30T10:09:00Z,orders,1,20,30"));
}

#[test]
fn positions_now_and_then() {
    let program = with_batches(6);
    assert_eq!(program.positions("g"), "orders/0 40, orders/1 20");
    let then = |more: &[&str]| {
        let answer = program.json(&[&["positions", "g"], more].concat());
        crate::program::starts(&answer["positions"]) + " of batch " + &text(&answer["as_of"]["batch"])
    };
    assert_eq!(then(&["--batch", "3"]), "orders/0 20, orders/1 10 of batch 3");
    assert_eq!(then(&["--seq", "3"]), "orders/0 10, orders/1 0 of batch 1");
    assert_eq!(then(&["--at", "2026-11-30T10:03:59+00:00"]), "orders/0 20, orders/1 10 of batch 3");
    assert_eq!(then(&["--at", "2026-11-30T10:00:00Z"]), "orders/0 0, orders/1 0 of batch 0");
    assert_eq!(program.ok(&["positions", "g", "-o", "csv"]), "orders,0,40\norders,1,20\n");
}

#[test]
fn entries_of_every_kind_carry_their_own_fields() {
    let program = with_batches(2);
    program.ok(&["mark", "g", "before deploy 42", "--actor", "me"]);
    assert_eq!(program.kinds("g"), ["started", "reconciled", "batch", "batch", "mark"]);
    let entries = program.lines(&["entries", "g"]);
    assert_eq!([&entries[0]["name"], &entries[0]["actor"]].map(text), ["before deploy 42", "me"]);
    assert_eq!(text(&entries[1]["ranges"][0]["until_offset"]), "20");
    assert_eq!(text(&entries[3]["losses"][0]["cause"]), "expired");
    assert_eq!(entries[4]["owner"], "a");
    let page = program.lines(&["entries", "g", "--limit", "2", "--cursor", "4"]);
    assert_eq!(page.iter().map(|entry| text(&entry["seq"])).collect::<Vec<_>>(), ["3", "2"]);
    assert_eq!(program.losses("g"), ["orders/1 [3,7) expired"]);
    let group = &program.lines(&["groups"])[0];
    assert_eq!([&group["group"], &group["app"], &group["losses_open"]].map(text), ["g", "default", "1"]);
    assert_eq!(text(&group["last_batch"]["batch"]), "2");
}

#[test]
fn tables_fit_100_columns_and_are_plain_where_nobody_looks() {
    let program = with_batches(7);
    for words in [
        &["groups"][..],
        &["positions", "g"],
        &["history", "g"],
        &["batch", "g", "1"],
        &["losses", "g"],
        &["entries", "g"],
        &["rollback", "g", "--to-batch", "1", "--unchecked"],
    ] {
        let out = program.ok(words);
        assert!(!out.contains('\x1b'), "{words:?}: {out}");
        assert!(!out.contains(" ; "), "{words:?}: an empty part: {out}");
        assert!(out.lines().all(|line| line.chars().count() <= 100 && line == line.trim_end()), "{words:?}: {out}");
    }
    assert!(program.ok(&["groups", "--color", "always"]).contains('\x1b'));
}

#[test]
fn a_plan_changes_nothing_and_is_executed_once() {
    let program = with_batches(6);
    let plan = ["rollback", "g", "--to-batch", "3", "--before", "--unchecked"];
    let shown = program.ok(&plan);
    assert!(shown.contains("before batch 3") && shown.contains("orders"), "{shown}");
    let answer = program.json(&plan);
    assert_eq!(answer["executable"], true);
    assert_eq!(text(&answer["totals"]["replayed"]), "40");
    assert_eq!(program.positions("g"), "orders/0 40, orders/1 20");

    let file = program.path("plan.json");
    std::fs::write(&file, answer.to_string()).expect("written");
    let file = file.to_str().expect("UTF-8");
    let execute = ["rollback", "g", "--plan", file, "--execute", "--reason", "a test", "--actor", "me"];
    let done = program.json(&execute);
    assert_eq!((done["repeated"].clone(), text(&done["epoch"])), (Value::Bool(false), "2".to_owned()));
    assert_eq!(program.positions("g"), "orders/0 20, orders/1 0");
    let again = program.json(&execute);
    assert_eq!((again["repeated"].clone(), &again["seq"]), (Value::Bool(true), &done["seq"]));
    program.fails(2, &[&execute[..], &["--allow-clamp"]].concat());

    // Its id does too; another plan's does not.
    let outdated = ["rollback", "g", "--to-batch", "5", "--unchecked", "--execute", "--reason", "x", "--plan"];
    program.fails(4, &[&outdated[..], &["p-0000"]].concat());
    program.ok(&["rollback", "g", "--undo", "--unchecked", "--execute", "--yes", "--reason", "a test"]);
    assert_eq!(program.positions("g"), "orders/0 40, orders/1 20");
    let newest = &program.lines(&["entries", "g", "--limit", "1"])[0];
    assert_eq!([&newest["kind"], &newest["reason"]].map(text), ["rolled_back", "a test"]);
}

#[test]
fn marks_are_targets_and_what_is_not_there_is_8() {
    let program = with_batches(2);
    let mark = |name| program.run(&["mark", "g", name, "--log-format", "text"]);
    let first = mark("here");
    assert!(first.code == 0 && !first.err.contains("shadowed"), "{first:?}");
    assert!(!mark("other").err.contains("shadowed"));
    let again = mark("here");
    assert!(again.code == 0 && again.err.contains("older mark \"here\", of seq 5, is shadowed"), "{again:?}");
    let nothing = program.ok(&["rollback", "g", "--to-mark", "here", "--unchecked"]);
    assert!(nothing.contains("nothing to do"), "{nothing}");
    program.fails(8, &["rollback", "g", "--to-mark", "there", "--unchecked"]);
    program.fails(8, &["rollback", "g", "--to-batch", "3", "--unchecked"]);
    program.fails(8, &["rollback", "g", "--to-batch", "1", "--topic", "other", "--unchecked"]);
    program.fails(8, &["rollback", "h", "--undo", "--unchecked"]);
    program.fails(3, &["rollback", "g", "--undo", "--unchecked"]);
    // Without a broker nothing is moved unless that is asked for.
    let mut command = program.command(&["rollback", "g", "--to-batch", "1"]);
    let refused = command.env_remove("TIDELOG_BROKERS").output().expect("runs");
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let program = with_batches(900);
    let mut command = program.command(&["entries", "g", "--limit", "1000", "-o", "json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
    drop(child.stdout.take());
    let done = child.wait_with_output().expect("ends");
    assert_eq!((done.status.code(), String::from_utf8_lossy(&done.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn a_journal_that_is_in_use_is_5_and_the_holder_is_named() {
    let program = with_batches(1);
    let clock = Arc::new(|| Timestamp::from_millis(TEN));
    let options = Options { holder: "a test".to_owned(), ..Options::new(clock) };
    let held = Journal::open(&program.path("journal"), options).expect("opened");
    let told = program.fails(5, &["groups"]);
    assert!(told.contains("a test"), "{told}");
    drop(held);
    program.ok(&["groups"]);
}

#[test]
fn messages_are_json_where_that_is_asked_for() {
    let program = Program::new("127.0.0.1:1");
    let err = program.fails(6, &["groups", "--log-format", "json"]);
    let line: Value = serde_json::from_str(err.trim()).unwrap_or_else(|error| panic!("{error}: {err}"));
    assert_eq!(line["level"], "ERROR");
    // Each line of all that is said, also where the arguments are wrong.
    for words in [
        &["frobnicate", "--log-format", "json"][..],
        &["--log-format=json", "positions"],
        &["start", "g", "-t", "a", "--log-format", "json", "-X", "secret"],
        &["start", "g", "-t", "a", "--log-format", "json", "-vv"],
    ] {
        let err = program.run(words).err;
        let lines: Vec<Value> = err.lines().map(|line| serde_json::from_str(line).expect(&err)).collect();
        assert!(lines.iter().all(|line| line["level"].is_string() && line["message"].is_string()), "{words:?}: {err}");
        assert!(lines.iter().any(|line| line["level"] == "ERROR"), "{words:?}: {err}");
        assert!(!err.contains("secret"), "{err}");
    }
    let help = program.run(&["--log-format", "json", "--help"]);
    assert!(help.code == 0 && help.out.contains("Usage:") && help.err.is_empty(), "{help:?}");
}

#[test]
fn the_manual_names_every_command() {
    use clap::CommandFactory as _;
    let program = Program::new("127.0.0.1:1");
    let page = program.ok(&["man"]);
    program.ok(&["man", "man1"]);
    for command in tidelog::cli::Cli::command().get_subcommands() {
        let name = command.get_name();
        assert!(page.contains(&format!("tidelog\\-{name}(1)")), "{name} is not in {page}");
        let page = std::fs::read_to_string(program.path(&format!("man1/tidelog-{name}.1"))).expect(name);
        assert!(page.contains(".SH SYNOPSIS") && page.contains(name), "{page}");
    }
    assert!(std::fs::read_to_string(program.path("man1/tidelog.1")).is_ok());
    std::fs::write(program.path("file"), "").expect("a file can be written");
    let err = program.fails(1, &["man", "file/man1"]);
    assert!(err.contains("file/man1"), "{err}");
}

#[test]
fn a_properties_file_that_is_wrong_is_refused_by_name() {
    let program = Program::new("127.0.0.1:1");
    let file = program.path("client.properties");
    let long = "client.id=a\n".repeat(1_000_000);
    let jaas = "sasl.mechanism=PLAIN\nsasl.jaas.config=o.PlainLoginModule required username=\"u\" password=\"secret;\n";
    for (text, said) in [
        (&b"client.id=\xff"[..], "not UTF-8"),
        (b"ssl.truststore.location=a.jks\nssl.truststore.password=secret", "no JKS truststore"),
        (b"ssl.provider=secret", "property \"ssl.provider\": librdkafka has nothing like it"),
        (b"security.protocol=SASL_PLAINTEXT\nsasl.username=u\nsasl.password=secret", "sasl.mechanism: PLAIN, SCRAM"),
        (jaas.as_bytes(), "a quote is never closed"),
        (b"socket.timeout.ms=soon", "socket.timeout.ms"),
        (b"x=\\u12", "line \"1\""),
        (long.as_bytes(), "at most 1048576 bytes"),
    ] {
        std::fs::write(&file, text).expect("a file can be written");
        let err = program.fails(2, &["start", "g", "-t", "a", "--kafka-config", "client.properties"]);
        assert!(err.contains(said) && !err.contains("secret"), "{said}: {err}");
        assert!(!program.path("journal").exists());
    }
    let err = program.fails(2, &["start", "g", "-t", "a", "--kafka-config", "nowhere"]);
    assert!(err.contains("--kafka-config nowhere: No such file"), "{err}");
    std::fs::write(&file, "client.id=a").expect("a file can be written");
    let err = program.fails(2, &["serve", "--kafka-config", "client.properties"]);
    assert!(err.contains("no bootstrap.servers"), "{err}");
    let err = program.fails(2, &["start", "g", "-t", "a", "-X", "group.id=x"]);
    assert!(err.contains("group.id"), "{err}");
}

#[test]
fn an_operator_stops_a_group_and_frees_it_and_lets_losses_and_topics_go() {
    let program = with_batches(3);
    let held = program.json(&["hold", "g", "--reason", "mending the sink", "--actor", "ann"]);
    assert_eq!((text(&held["kind"]), text(&held["reason"])), ("held".into(), "mending the sink".into()));
    assert_eq!(program.lines(&["groups"])[0]["held"]["actor"], "ann");
    let refused = program.fails(3, &["start", "g", "-b", "127.0.0.1:1", "-t", "orders"]);
    assert!(refused.contains("on hold") && refused.contains("ann: mending the sink"), "{refused}");
    program.ok(&["release", "g"]);
    assert!(program.lines(&["groups"])[0]["held"].is_null());
    // Stopped together with a move.
    let back =
        ["rollback", "g", "--unchecked", "--to-batch", "1", "--hold", "--execute", "--yes", "--reason", "a test"];
    program.ok(&back);
    assert_eq!(program.kinds("g").split_off(6), ["released", "rolled_back", "held"]);

    let seq = text(&program.lines(&["losses", "g"])[0]["seq"]);
    program.ok(&["acknowledge", &seq]);
    assert_eq!(program.losses("g"), [""; 0]);
    program.ok(&["retire", "g", "-t", "orders"]);
    assert_eq!(program.lines(&["groups"])[0]["topics"][0]["retired"], true);
}
