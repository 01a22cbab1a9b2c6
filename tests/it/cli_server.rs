//! The commands that read or steer, through a server: what they print, say and end with is the same as without one.

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tidelog::entry::{Body, Draft};
use tidelog::journal::{Journal, Options};
use tidelog::kafka::mock::Mock;
use tidelog::offset::{Epoch, Group, Isolation, Timestamp};

use crate::cli::journal_of;
use crate::kafka_mock::{at, name};
use crate::program::{Done, Program, Running, record, text};
use crate::wait::{DEADLINE, wait_for};

/// A program's journal, and the server that holds it, if one does.
struct Way {
    program: Program,
    _server: Option<Running>,
    /// Flags that each command gets.
    flags: Vec<String>,
}

impl Way {
    fn done(&self, words: &[&str]) -> Done {
        let mut command = self.program.command(words);
        command.args(&self.flags).env_remove("TIDELOG_BROKERS");
        done(&mut command)
    }

    /// Exit code, output and messages, with times as words and blanks as one: they differ from one run to the next.
    fn shown(&self, words: &[&str]) -> String {
        let Done { code, out, err } = self.done(words);
        // What librdkafka says by itself is said where it runs.
        let err: String =
            err.lines().filter(|line| !line.contains("[thrd:")).map(|line| line.to_owned() + "\n").collect();
        let text = format!("exit {code}\n{out}{err}");
        let begin = "20XX-XX-XXT".len();
        let is_time = |word: &str| word.len() > begin && word.starts_with("20") && word.as_bytes()[begin - 1] == b'T';
        let mut shown = String::new();
        for word in text.split_whitespace() {
            let pieces = word.split('"').map(|piece| if is_time(piece) { "TIME" } else { piece });
            shown += &(pieces.collect::<Vec<_>>().join("\"") + " ");
        }
        // A distance, `(5 min ago)` or `(now)`, may be broken over two lines of a cell and so change the order of words:
        // without it, and sorted.
        let distance = ["(now)", "ago)", "min", "min)", "s", "s)", "h", "h)", "d", "d)"];
        // It may end a sentence.
        let is_distance = |word: &&str| {
            distance.contains(&word.trim_end_matches('.')) || word.starts_with('(') && word[1..].parse::<u64>().is_ok()
        };
        let mut plain: Vec<&str> = shown.split(' ').collect();
        if plain.iter().any(&is_distance) {
            plain.retain(|word| !is_distance(word));
            // All but the exit code.
            plain[2..].sort_unstable();
        }
        plain.join(" ")
    }
}

fn done(command: &mut Command) -> Done {
    let output = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Done { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// Begins to serve the program's journal, and waits until it can be found.
fn serve(program: &Program, more: &[&str]) -> Running {
    let note = program.path("journal/server.json");
    let running = program.spawn(&[&["serve", "--listen", "127.0.0.1:0"], more].concat());
    wait_for("the server", DEADLINE, || note.exists().then_some(()).ok_or("no note"));
    running
}

fn note(program: &Program) -> Value {
    let text = std::fs::read_to_string(program.path("journal/server.json")).expect("a note");
    serde_json::from_str(&text).expect("JSON")
}

/// Writes a token file, and returns its path.
fn token_file(program: &Program, token: &str) -> String {
    let path = program.path("token");
    std::fs::write(&path, token).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

/// The same journal, asked without a server, through the one that is found, and through one that is named.
fn three_ways(original: &Program, brokers: &[&str]) -> [Way; 3] {
    let copy = || {
        let program = Program::new("");
        let status = Command::new("cp").arg("-r").args([original.path("journal"), program.path("journal")]).status();
        assert!(status.expect("cp runs").success());
        program
    };
    let mut ways = [(); 3].map(|()| Way { program: copy(), _server: None, flags: Vec::new() });
    for way in &mut ways[1..] {
        way._server = Some(serve(&way.program, &[&["--second-look", "100ms"], brokers].concat()));
    }
    let named = &mut ways[2];
    let note = note(&named.program);
    let token = token_file(&named.program, &text(&note["token"]));
    named.flags = ["--server", &text(&note["url"]), "--token-file", &token].map(str::to_owned).into();
    // It must not be found by its directory.
    std::fs::remove_file(named.program.path("journal/server.json")).expect("removed");
    ways
}

/// Runs the commands in order in each way, and compares; each must end with its code.
fn compare(ways: &[Way; 3], table: &[(i32, &[&str])]) {
    let run = |way: &Way| table.iter().map(|(_, words)| way.shown(words)).collect::<Vec<_>>();
    let [here, found, named] = std::thread::scope(|scope| {
        let runs = [0, 1, 2].map(|index| scope.spawn(move || run(&ways[index])));
        runs.map(|run| run.join().expect("it runs"))
    });
    for (index, (code, words)) in table.iter().enumerate() {
        assert!(here[index].starts_with(&format!("exit {code} ")), "{words:?}: {}", here[index]);
        assert_eq!(here[index], found[index], "{words:?}");
        assert_eq!(here[index], named[index], "{words:?}, by its name");
    }
}

/// Adds a group with a name that no path can hold as it is, on hold.
fn add_a_held_group(journal: &Path) {
    let clock = Arc::new(|| Timestamp::from_millis(1_796_040_000_000));
    let journal = Journal::open(journal, Options::new(clock)).expect("opened");
    let group = Group::new("other app", "we/ird %?#|ü").expect("legal");
    let draft = |body| Draft { group: Some(group.clone()), epoch: Epoch::ZERO.next(), body };
    let drafts = vec![
        draft(Body::Started { owner: "b".to_owned(), isolation: Isolation::ReadCommitted, kafka_group: None }),
        draft(Body::Held { reason: "mending the sink".to_owned(), actor: "ann".to_owned() }),
    ];
    journal.decide(move |_| Ok::<_, std::convert::Infallible>((drafts, ()))).expect("appended");
    journal.close().expect("closed");
}

#[test]
fn each_command_says_the_same_with_a_server_and_without() {
    const WEIRD: &[&str] = &["we/ird %?#|ü", "--app", "other app"];
    let original = Program::new("");
    journal_of(&original, 6);
    add_a_held_group(&original.path("journal"));
    let ways = three_ways(&original, &[]);
    let execute = ["--execute", "--reason", "a test", "--actor", "me"];
    let plan: &[&str] = &["rollback", "g", "--unchecked", "--to-batch", "3", "--before"];
    let long: Vec<Vec<&str>> = vec![
        [&["positions"], WEIRD].concat(),
        [&["positions"], WEIRD, &["-o", "json"]].concat(),
        [&["history"], WEIRD].concat(),
        [&["losses"], WEIRD].concat(),
        [&["entries"], WEIRD, &["-o", "json"]].concat(),
        [&["mark"], WEIRD, &["here", "--actor", "me"]].concat(),
        [plan, &["-o", "json"]].concat(),
        [plan, &execute, &["--plan", "p-0000"]].concat(),
        [plan, &execute, &["--plan", "p-0000", "-o", "json"]].concat(),
        [plan, &execute, &["--yes"]].concat(),
        [plan, &execute, &["--yes", "-o", "json"]].concat(),
        [&["rollback", "g", "--unchecked", "--undo", "--yes", "-o", "json"], &execute[..]].concat(),
        [&["rollback", "g", "--to-batch", "3", "--yes"], &execute[..]].concat(),
    ];
    let table: &[(i32, &[&str])] = &[
        (0, &["groups"]),
        (0, &["groups", "-o", "json"]),
        (0, &["groups", "-o", "csv", "--order", "desc"]),
        (0, &["groups", "--app", "nobody's"]),
        (0, &["groups", "--limit", "1"]),
        (0, &["groups", "--cursor", r#"["default","g"]"#]),
        (2, &["groups", "--cursor", "x"]),
        (0, &["positions", "g"]),
        (0, &["positions", "g", "-o", "json"]),
        (0, &["positions", "g", "-o", "csv"]),
        (0, &["positions", "g", "--batch", "3"]),
        (0, &["positions", "g", "--seq", "3", "-o", "json"]),
        (0, &["positions", "g", "--at", "2026-11-30T10:03:59+00:00"]),
        (2, &["positions", "g", "--batch", "0"]),
        (2, &["positions", "g", "--seq", "1000"]),
        (8, &["positions", "g", "--batch", "7"]),
        (8, &["positions", "g", "--at", "2020-01-01T00:00:00Z"]),
        (8, &["positions", "h"]),
        (8, &["positions", "g", "--app", "other"]),
        (0, &long[0]),
        (0, &long[1]),
        (0, &["history", "g"]),
        (0, &["history", "g", "-o", "json", "--topic", "orders", "--partition", "1"]),
        (0, &["history", "g", "-o", "csv", "--limit", "2", "--order", "asc"]),
        (0, &["history", "g", "--from", "2026-11-30T10:02:00Z", "--to", "2026-11-30T10:05:00Z", "--cursor", "4"]),
        (0, &["history", "g", "--batch-from", "2026-11-30T10:06:00+00:00", "--batch-to", "2026-11-30T11:00:00Z"]),
        (2, &["history", "g", "--topic", "orders", "--partition", "2147483648"]),
        (8, &["history", "h"]),
        (0, &long[2]),
        (0, &["batch", "g", "3"]),
        (0, &["batch", "g", "3", "-o", "json"]),
        (2, &["batch", "g", "0"]),
        (8, &["batch", "g", "7"]),
        (0, &["losses", "g"]),
        (0, &["losses", "g", "-o", "json", "--order", "asc", "--limit", "1"]),
        (0, &["losses", "g", "-o", "csv"]),
        (2, &["losses", "g", "--cursor", "1"]),
        (8, &["losses", "h"]),
        (0, &long[3]),
        (0, &["entries", "g"]),
        (0, &["entries", "g", "-o", "json", "--limit", "3", "--cursor", "7"]),
        (0, &long[4]),
        (0, &["readers", "orders", "0", "5"]),
        (0, &["readers", "orders", "0", "5", "-o", "json", "--order", "asc", "--limit", "1"]),
        (0, &["readers", "orders", "1", "0", "-o", "csv", "--group", "g", "--app", "default"]),
        (0, &["readers", "orders", "1", "9223372036854775807"]),
        (0, &["readers", "orders", "0", "5", "--cursor", "3"]),
        (2, &["readers", "orders", "0", "5", "--cursor", "x"]),
        (2, &["readers", "orders", "2147483648", "5"]),
        (2, &["readers", "orders", "0", "-1"]),
        (8, &["readers", "nothing", "0", "5"]),
        (8, &["readers", "orders", "0", "5", "--group", "h"]),
        (0, &["mark", "g", "before deploy 42", "--actor", "me", "-o", "json"]),
        (0, &long[5]),
        (2, &["mark", "g", "", "--actor", "me"]),
        (8, &["mark", "h", "x"]),
        (0, plan),
        (0, &long[6]),
        (0, &["rollback", "g", "--unchecked", "--to-mark", "before deploy 42"]),
        // Without a broker nothing is moved unless that is asked for.
        (3, &["rollback", "g", "--to-batch", "3"]),
        (3, &["rollback", "g", "--to-batch", "3", "-o", "json"]),
        (3, &["rollback", "g", "--unchecked", "--undo"]),
        (8, &["rollback", "g", "--unchecked", "--to-mark", "nobody's"]),
        (8, &["rollback", "g", "--unchecked", "--to-batch", "7"]),
        (8, &["rollback", "g", "--unchecked", "--to-batch", "1", "--topic", "other"]),
        (8, &["rollback", "g", "--unchecked", "--to-commit-time", "2020-01-01T00:00:00Z"]),
        (8, &["rollback", "h", "--unchecked", "--undo"]),
        (2, &["rollback", "g", "--unchecked", "--to-latest"]),
        (2, &["rollback", "g", "--unchecked", "--to-seq", "1000"]),
        (4, &long[7]),
        (4, &long[8]),
        (3, &long[12]),
        (0, &long[9]),
        // What was there is there already.
        (0, &long[10]),
        (0, &long[11]),
        (0, &["hold", "g", "--reason", "mending", "--actor", "me"]),
        (3, &["hold", "g", "--reason", "mending too", "--actor", "you"]),
        (2, &["hold", "g", "--reason", " ", "--actor", "me"]),
        (8, &["hold", "h", "--reason", "mending", "--actor", "me"]),
        (0, &["release", "g", "--actor", "me", "-o", "json"]),
        (2, &["release", "g", "--actor", "me"]),
        (0, &["acknowledge", "2", "--actor", "me"]),
        (2, &["acknowledge", "2", "--actor", "me"]),
        (2, &["acknowledge", "9999", "--actor", "me"]),
        (8, &["retire", "g", "-t", "other", "--actor", "me"]),
        (0, &["retire", "g", "-t", "orders", "--actor", "me", "-o", "json"]),
        (0, &["retire", "g", "--actor", "me"]),
        (2, &["retire", "g", "--actor", "me"]),
        (0, &["entries", "g", "--limit", "9"]),
    ];
    compare(&ways, table);
}

#[test]
fn commands_that_look_at_the_broker_say_the_same_too() {
    let mock = Mock::new(1).expect("a mock starts");
    mock.create_topic(&name("orders"), 2).expect("made");
    mock.produce(&at("orders", 1), (0..10).map(|_| (None, "value"))).expect("produced");
    let brokers = mock.config().brokers().to_owned();
    let original = Program::new(&brokers);
    original.ok(&["start", "g", "-t", "orders", "--owner", "first"]);
    add_a_held_group(&original.path("journal"));
    let ways = three_ways(&original, &["-b", &brokers]);
    let b = brokers.as_str();
    compare(
        &ways,
        &[
            (0, &["start", "g", "-b", b, "-t", "orders", "--owner", "second"]),
            (0, &["start", "g", "-b", b, "-t", "orders", "--owner", "second", "-o", "json"]),
            (0, &["start", "h", "-b", b, "-t", "^ord", "--owner", "o", "--new-group", "latest", "--dry-run"]),
            (0, &["start", "h", "-b", b, "-t", "^ord", "--owner", "o", "--new-group", "latest", "-o", "json"]),
            (3, &["start", "i", "-b", b, "-t", "nowhere", "--owner", "o"]),
            (3, &["start", "we/ird %?#|ü", "--app", "other app", "-b", b, "-t", "orders", "--owner", "o"]),
            (2, &["start", "i", "-b", b, "-t", "orders", "--owner", ""]),
            (0, &["positions", "g", "-b", b]),
            (0, &["positions", "h", "-b", b, "-o", "csv"]),
            (0, &["rollback", "h", "-b", b, "--to-earliest"]),
            (0, &["rollback", "h", "-b", b, "--to-offset", "2", "--topic", "orders:1", "-o", "json"]),
            (3, &["rollback", "h", "-b", b, "--to-offset", "20", "--topic", "orders:1"]),
            (0, &["rollback", "h", "-b", b, "--to-earliest", "--execute", "--yes", "--reason", "r", "--actor", "me"]),
        ],
    );
    // What the server reads from is as good as said, in any order, and nothing else is.
    let [_, found, _] = &ways;
    for words in [&["start", "g", "-t", "orders", "--owner", "second"][..], &["positions", "g"]] {
        let done = found.done(words);
        assert_eq!(done.code, 0, "{done:?}");
    }
    for words in [
        &["start", "g", "-t", "orders", "-b", "elsewhere:9092"][..],
        &["positions", "g", "-b", "elsewhere:9092"],
        &["rollback", "g", "--to-latest", "-b", "elsewhere:9092"],
    ] {
        let Done { code, err, .. } = found.done(words);
        assert!(code == 2 && err.contains("elsewhere:9092") && err.contains(b), "{code} {err}");
    }
    let own_client = found.done(&["positions", "g", "-b", b, "-X", "client.id=x"]);
    assert!(own_client.code == 2 && own_client.err.contains("-X client.id"), "{own_client:?}");
}

#[test]
fn a_broker_that_is_silent_is_7_with_a_server_and_without() {
    let original = Program::new("");
    journal_of(&original, 1);
    let brokers = "127.0.0.1:1";
    let ways = three_ways(&original, &["-b", brokers]);
    compare(&ways, &[(7, &["start", "g", "-b", brokers, "-t", "orders", "--owner", "o"])]);
}

fn with_a_server() -> (Program, Running) {
    let program = Program::new("");
    journal_of(&program, 1);
    let running = serve(&program, &[]);
    (program, running)
}

#[test]
fn a_note_that_was_left_behind_is_passed_over() {
    let (program, running) = with_a_server();
    running.kill();
    assert!(program.path("journal/server.json").exists());
    assert!(program.ok(&["groups"]).contains('g'));
    // Neither does a stranger at that port, or a note that is none, stand in the way.
    let stranger = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", stranger.local_addr().expect("bound"));
    std::thread::spawn(move || while stranger.accept().is_ok() {});
    // Nor the server of another journal that has got the port by now, which holds a group of the same name.
    let (other, others) = with_a_server();
    let at = |url: &str| {
        let mut left = note(&program);
        left["url"] = url.into();
        left["token"] = note(&other)["token"].clone();
        left["pid"] = std::process::id().into();
        left.to_string()
    };
    let before = other.kinds("g");
    for left in [at(&url), at(&text(&note(&other)["url"])), "{}".to_owned(), "{".to_owned()] {
        std::fs::write(program.path("journal/server.json"), left).expect("written");
        program.ok(&["mark", "g", "here"]);
    }
    assert_eq!(program.kinds("g").iter().filter(|kind| *kind == "mark").count(), 4);
    assert_eq!(other.kinds("g"), before);
    assert_eq!(others.terminate().code, 0);
}

#[test]
fn a_copy_of_a_served_journal_is_not_taken_for_it() {
    // Somebody looks into a copy, and rolls it back to try: the live group must not move.
    let (serving, running) = with_a_server();
    let copy = Program::new("");
    let copied = Command::new("cp").arg("-a").args([serving.path("journal"), copy.path("journal")]).status();
    assert!(copied.expect("cp can be run").success());
    assert!(copy.path("journal/server.json").exists(), "the note came along");
    let back =
        ["rollback", "g", "--unchecked", "--to-batch", "1", "--before", "--execute", "--yes", "--reason", "a try"];
    let before = serving.kinds("g");
    copy.ok(&back);
    assert_eq!(copy.kinds("g").last().map(String::as_str), Some("rolled_back"));
    assert_eq!(serving.kinds("g"), before);
    assert_eq!(running.terminate().code, 0);
}

#[test]
fn a_holder_that_is_about_to_serve_is_waited_for() {
    let (serving, running) = with_a_server();
    let program = Program::new("");
    journal_of(&program, 1);
    let clock = Arc::new(|| Timestamp::from_millis(1_796_040_000_000));
    let held = Journal::open(&program.path("journal"), Options::new(clock)).expect("opened");
    let command = program.spawn(&["positions", "g"]);
    std::thread::sleep(Duration::from_millis(300));
    let mut note = note(&serving);
    let directory = std::fs::metadata(program.path("journal")).expect("it is there");
    note["directory"] = format!("{}:{}", directory.dev(), directory.ino()).into();
    std::fs::write(program.path("journal/server.json"), note.to_string()).expect("written");
    let done = command.finish(DEADLINE);
    assert_eq!(done.code, 0, "{done:?}");
    drop(held);
    // A server that ends takes its note along.
    assert_eq!(running.terminate().code, 0);
    assert!(!serving.path("journal/server.json").exists());
    serving.ok(&["groups"]);
}

#[test]
fn a_server_that_hangs_is_told_within_seconds() {
    let (program, running) = with_a_server();
    let pid = note(&program)["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).expect("a pid");
    kill_process(pid, Signal::STOP).expect("it runs");
    let begun = Instant::now();
    let said = program.fails(1, &["groups"]);
    assert!(said.contains("did not answer within 5s"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    kill_process(pid, Signal::CONT).expect("it runs");
    program.ok(&["groups"]);
    drop(running);
}

#[test]
fn a_consumer_at_work_is_asked_and_rolled_back_through_itself() {
    let mock = Mock::new(1).expect("a mock starts");
    mock.create_topic(&name("orders"), 1).expect("made");
    mock.produce(&at("orders", 0), (0..10).map(|_| (None, "value"))).expect("produced");
    let program = Program::new(mock.config().brokers());
    let mut running = program.spawn(&["consume", "-g", "g", "-t", "orders", "--max-wait", "50ms"]);
    running.read_until(|line| record(line) == "orders/0@9");
    wait_for("its commit", DEADLINE, || match program.positions("g").as_str() {
        "orders/0 10" => Ok(()),
        other => Err(other.to_owned()),
    });
    program.ok(&["mark", "g", "here"]);
    program.ok(&["rollback", "g", "--to-offset", "5", "--execute", "--yes", "--reason", "a test"]);
    running.read_until(|line| record(line) == "orders/0@5");
    let done = running.terminate();
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(program.kinds("g").iter().filter(|kind| *kind == "rolled_back" || *kind == "mark").count(), 2);
}

/// A port that nobody listens at.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port()
}

#[test]
fn tokens_are_for_the_server_that_is_named() {
    let program = Program::new("");
    journal_of(&program, 1);
    let roles = "read:page:rrrrrrrrrrrrrrrr\ncommit:loader:cccccccccccccccc\n";
    std::fs::write(program.path("tokens"), roles).expect("written");
    let url = format!("http://127.0.0.1:{}", free_port());
    let address = url.trim_start_matches("http://");
    let _server = program.spawn(&["serve", "--listen", address, "--token-file", "tokens"]);
    let note = program.path("journal/server.json");
    wait_for("the server", DEADLINE, || note.exists().then_some(()).ok_or("no note"));

    let file = |text: &str| token_file(&program, text);
    let server = ["--server", url.as_str()];
    assert!(program.fails(1, &["groups", server[0], server[1]]).contains("no token"));
    for (text, code) in [("wwwwwwwwwwwwwwww", 1), ("rrrrrrrrrrrrrrrr\n", 0), (roles, 0)] {
        let done = program.run(&["groups", server[0], server[1], "--token-file", &file(text)]);
        assert_eq!(done.code, code, "{text}: {done:?}");
    }
    let mark = ["mark", "g", "here", server[0], server[1], "--token-file"];
    let reader = program.fails(1, &[&mark[..], &[&file("rrrrrrrrrrrrrrrr")]].concat());
    assert!(reader.contains("role"), "{reader}");
    program.ok(&[&mark[..], &[&file(roles)]].concat());
    program.fails(1, &[&mark[..], &["nowhere"]].concat());
    program.fails(2, &[&mark[..], &[&file("\n")]].concat());

    // The environment says the same, and what a flag says goes before it.
    let by_environment = |token: &str, words: &[&str]| {
        done(program.command(words).env("TIDELOG_SERVER", &url).env("TIDELOG_TOKEN", token))
    };
    assert_eq!(by_environment("rrrrrrrrrrrrrrrr", &["groups"]).code, 0);
    assert_eq!(by_environment(&file(roles), &["groups"]).code, 0);
    assert_eq!(by_environment("wwwwwwwwwwwwwwww", &["groups"]).code, 1);
    let elsewhere: PathBuf = program.path("elsewhere");
    let elsewhere = by_environment("", &["groups", "-j", elsewhere.to_str().expect("UTF-8")]);
    assert!(elsewhere.code == 6 && elsewhere.err.contains("elsewhere"), "{elsewhere:?}");
}

#[test]
fn a_server_that_is_not_there_is_1_and_an_address_that_is_none_2() {
    let program = Program::new("");
    let nobody = format!("http://127.0.0.1:{}", free_port());
    for words in [&["groups"][..], &["positions", "g"], &["mark", "g", "x"], &["rollback", "g", "--undo"]] {
        let said = program.fails(1, &[words, &["--server", &nobody]].concat());
        assert!(said.contains(&nobody) && said.contains("can't be reached"), "{words:?}: {said}");
    }
    assert!(program.fails(2, &["groups", "--server", "https://h"]).contains("http only"));
    assert!(program.fails(2, &["groups", "--server", &nobody, "-j", "x"]).contains("cannot be used with"));
    assert!(!program.path("journal").exists());
}
