//! The built program, run as a user runs it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::wait::wait_for;

/// A journal, and the program called for it.
pub struct Program {
    dir: TempDir,
    brokers: String,
}

/// What a call printed, and its exit code.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Program {
    /// A new journal, not made yet, with the brokers that commands which take any are given.
    pub fn new(brokers: &str) -> Program {
        Program { dir: tempfile::tempdir().expect("a temporary directory"), brokers: brokers.to_owned() }
    }

    /// A place beside the journal.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The command with these words; the second look comes soon, as nobody here waits for a lagging broker.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidelog"));
        command.args(words).env("TIDELOG_JOURNAL", self.path("journal")).env_remove("RUST_LOG");
        command.stdin(Stdio::null()).current_dir(self.dir.path());
        if words.first().is_some_and(|name| ["consume", "start", "rollback"].contains(name)) {
            command.env("TIDELOG_BROKERS", &self.brokers);
        }
        if words.first().is_some_and(|name| ["consume", "start"].contains(name)) {
            // Before `--`, where there is one.
            let at = words.iter().position(|word| *word == "--").unwrap_or(words.len());
            let (flags, rest) = words.split_at(at);
            let mut again = Command::new(env!("CARGO_BIN_EXE_tidelog"));
            again.args(flags).args(["--second-look", "100ms"]).args(rest).stdin(Stdio::null());
            again.current_dir(self.dir.path()).env_remove("RUST_LOG");
            again.env("TIDELOG_JOURNAL", self.path("journal")).env("TIDELOG_BROKERS", &self.brokers);
            return again;
        }
        command
    }

    /// Runs a command to its end.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> Done {
        done(self.command(words).output().expect("the program starts"))
    }

    /// Runs a command that must end with 0; what it printed.
    #[track_caller]
    pub fn ok(&self, words: &[&str]) -> String {
        let done = self.run(words);
        assert_eq!(done.code, 0, "{words:?}: {done:#?}");
        done.out
    }

    /// Runs a command that must end with this code; what it said.
    #[track_caller]
    pub fn fails(&self, code: i32, words: &[&str]) -> String {
        let done = self.run(words);
        assert_eq!(done.code, code, "{words:?}: {done:#?}");
        done.err
    }

    /// The single JSON object that a command prints.
    #[track_caller]
    pub fn json(&self, words: &[&str]) -> Value {
        let out = self.ok(&[words, &["-o", "json"]].concat());
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{words:?}: {error}: {out}"))
    }

    /// The JSON objects that a command prints, one a line.
    #[track_caller]
    pub fn lines(&self, words: &[&str]) -> Vec<Value> {
        let out = self.ok(&[words, &["-o", "json"]].concat());
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{words:?}: {error}: {line}"));
        out.lines().map(parse).collect()
    }

    /// Where the group continues: `orders/0 42, orders/1 7`.
    #[track_caller]
    pub fn positions(&self, group: &str) -> String {
        starts(&self.json(&["positions", group])["positions"])
    }

    /// Reads to the present end, committing; the records as `topic/partition@offset`.
    #[track_caller]
    pub fn consume(&self, group: &str, more: &[&str]) -> Vec<String> {
        let out = self.ok(&[&["consume", "-g", group, "--until-latest"], more].concat());
        records(&out)
    }

    /// The kinds of the group's entries, oldest first.
    #[track_caller]
    pub fn kinds(&self, group: &str) -> Vec<String> {
        let entries = self.lines(&["entries", group, "--order", "asc", "--limit", "1000"]);
        entries.iter().map(|entry| text(&entry["kind"])).collect()
    }

    /// The losses and open holes: `orders/1 [100,250) expired`.
    #[track_caller]
    pub fn losses(&self, group: &str) -> Vec<String> {
        let lines = self.lines(&["losses", group, "--order", "asc"]);
        let show = |line: &Value| {
            let [topic, from, until, cause] =
                ["topic", "from_offset", "until_offset", "cause"].map(|name| text(&line[name]));
            format!("{topic}/{} [{from},{until}) {cause}", line["partition"])
        };
        lines.iter().map(show).collect()
    }

    /// Waits until a process holds the journal and serves it.
    pub fn wait_served(&self) {
        let note = self.path("journal").join("server.json");
        wait_for("server.json", Duration::from_secs(10), || std::fs::metadata(&note).map(drop));
    }

    /// Starts a command that goes on until it is stopped.
    pub fn spawn(&self, words: &[&str]) -> Running {
        let mut command = self.command(words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        Running(child)
    }
}

/// A command that runs; killed when dropped.
pub struct Running(Child);

impl From<Child> for Running {
    fn from(child: Child) -> Running {
        Running(child)
    }
}

impl Running {
    /// Calls `see` with each line of standard output until it answers true; fails if the output ends before.
    pub fn read_until(&mut self, mut see: impl FnMut(&str) -> bool) {
        let mut out = BufReader::new(self.0.stdout.as_mut().expect("piped"));
        let mut line = String::new();
        loop {
            line.clear();
            // One line at a time, unbuffered beyond it: what is read ahead would be lost to the next call.
            let read = read_line(&mut out, &mut line);
            assert!(read > 0, "the output ended");
            if see(line.trim_end()) {
                return;
            }
        }
    }

    /// SIGTERM, then its end within 10 s.
    pub fn terminate(self) -> Done {
        kill_process(Pid::from_child(&self.0), Signal::TERM).expect("it runs");
        self.finish(Duration::from_secs(10))
    }

    /// Ctrl-C, then its end within 10 s.
    pub fn interrupt(self) -> Done {
        kill_process(Pid::from_child(&self.0), Signal::INT).expect("it runs");
        self.finish(Duration::from_secs(10))
    }

    /// Its end, within the deadline.
    pub fn finish(mut self, deadline: Duration) -> Done {
        let out = self.0.stdout.take().map(read_in_background);
        let err = self.0.stderr.take().map(read_in_background);
        let status: ExitStatus = wait_for("the program's end", deadline, || {
            self.0.try_wait().expect("a child can be waited for").ok_or("still running")
        });
        let read = |reader: Option<std::thread::JoinHandle<String>>| match reader {
            Some(reader) => reader.join().expect("a reader of a pipe"),
            None => String::new(),
        };
        Done { code: code(status), out: read(out), err: read(err) }
    }

    /// kill -9.
    pub fn kill(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("a child can be waited for");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn read_line(out: &mut BufReader<&mut std::process::ChildStdout>, line: &mut String) -> usize {
    out.read_line(line).expect("text")
}

fn read_in_background(mut pipe: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).expect("text");
        text
    })
}

fn done(output: Output) -> Done {
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Done { code: code(output.status), out: text(output.stdout), err: text(output.stderr) }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(-1)
}

/// A server that is called with one connection a request.
pub struct Http(String);

impl Http {
    /// The server at this address.
    pub fn new(address: &str) -> Http {
        Http(address.to_owned())
    }

    /// Status and body of a GET.
    #[track_caller]
    pub fn get(&self, path: &str) -> (u16, Value) {
        self.call("GET", path, "")
    }

    /// Status and body of a POST.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.call("POST", path, &body.to_string())
    }

    #[track_caller]
    fn call(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(&self.0).expect("the server listens");
        let (host, length) = (&self.0, body.len());
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
        write!(stream, "{head}content-length: {length}\r\n\r\n{body}").expect("the server reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split_whitespace().nth(1).and_then(|code| code.parse().ok()).expect("a status");
        (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
    }
}

/// An address of loopback that was free a moment ago.
pub fn free_address() -> String {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("loopback has free ports");
    listener.local_addr().expect("it is bound").to_string()
}

/// A JSON string's text.
#[track_caller]
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}")).to_owned()
}

/// The offsets of a list of positions: `orders/0 42, orders/1 7`.
pub fn starts(positions: &Value) -> String {
    let positions = positions.as_array().unwrap_or_else(|| panic!("not a list: {positions}"));
    let show = |p: &Value| format!("{}/{} {}", text(&p["topic"]), p["partition"], text(&p["offset"]));
    positions.iter().map(show).collect::<Vec<_>>().join(", ")
}

/// The findings of a start: `orders/1 head_out_of_range 100 -> 250`.
pub fn findings(start: &Value) -> Vec<String> {
    let show = |finding: &Value| {
        let offset = |name: &str| finding[name].as_str().unwrap_or("-").to_owned();
        let (topic, verdict) = (text(&finding["topic"]), text(&finding["verdict"]));
        format!("{topic}/{} {verdict} {} -> {}", finding["partition"], offset("position"), offset("start"))
    };
    start["findings"].as_array().expect("a list").iter().map(show).collect()
}

/// Records that `consume` printed, as `topic/partition@offset`.
pub fn records(out: &str) -> Vec<String> {
    out.lines().map(record).collect()
}

/// One line of them.
pub fn record(line: &str) -> String {
    let record: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let offset = record["offset"].as_str().map_or_else(|| record["offset"].to_string(), str::to_owned);
    format!("{}/{}@{offset}", text(&record["topic"]), record["partition"])
}
