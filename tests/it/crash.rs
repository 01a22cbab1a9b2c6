//! Killed processes and power cuts: what was acknowledged is there afterwards, all of a batch or none of it, and nothing
//! that was never written.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidelog::commit::Commit;
use tidelog::entry::{Body, Correction, Draft, Entry, Move, RolledBack};
use tidelog::journal::{Journal, Options, Order};
use tidelog::offset::{Epoch, Group, Isolation, Offset, OffsetRange, Seq, Timestamp, TopicName};
use tidelog::positions::State;

const DIR: &str = "TIDELOG_TEST_CRASH_DIR";
const POINT: &str = "TIDELOG_TEST_CRASH_POINT";
const BATCHES: &str = "TIDELOG_TEST_CRASH_BATCHES";
/// Small, so that a few hundred batches go through many rotations and seals.
const SEGMENT_BYTES: u64 = 16 << 10;
const GROUPS: u64 = 3;
const PARTITIONS: u32 = 3;

fn group(number: u64) -> Group {
    Group::new("crash", &format!("g{number}")).expect("a legal name")
}

/// Entry number `seq` is always the same, so that a reader knows what must be there without being told: the groups
/// start, then commit in turn; each 50th entry moves its group back.
fn nth(state: &State, seq: u64) -> Step {
    let group = group(seq % GROUPS);
    let Some(present) = state.groups.get(&group) else {
        let body = Body::Started { owner: format!("owner-{seq}"), isolation: Isolation::ReadCommitted };
        return Step::Decide(Draft { group: Some(group), epoch: Epoch::ZERO.next(), body });
    };
    let topic = TopicName::new("t").expect("a legal name");
    let position = |partition| present.positions.get(&topic, partition).map_or(Offset::ZERO, |known| known.position);
    if seq.is_multiple_of(50) {
        let moves = (0..PARTITIONS).filter_map(|partition| {
            let known = present.positions.get(&topic, partition)?;
            let new = Offset::new((known.position.get() - 5).max(0)).expect("not negative");
            Some(Move {
                topic: topic.clone(),
                partition,
                topic_id: None,
                old: Some(known.position),
                new: Some(new),
                holes: Vec::new(),
                replaying_until: Some(known.position),
            })
        });
        let body = Body::RolledBack(RolledBack {
            plan: format!("p-{seq}"),
            target: "shift -5".into(),
            actor: "ops".into(),
            reason: "a test".into(),
            undoes: None,
            kafka: false,
            correction: Correction { moves: moves.collect(), ..Correction::default() },
        });
        return Step::Decide(Draft { group: Some(group), epoch: present.epoch.next(), body });
    }
    let ranges = (0..PARTITIONS).map(|partition| {
        let from = position(partition);
        OffsetRange::new(topic.clone(), partition, from, from.plus(seq % 7)).expect("a legal range")
    });
    let commit = Commit::new(group, present.epoch, Timestamp::from_millis(seq as i64), ranges.collect());
    let commit = commit.expect("each partition once").with_key(format!("key-{seq}")).expect("a legal key");
    Step::Commit(commit)
}

enum Step {
    Commit(Commit),
    Decide(Draft),
}

fn options() -> Options {
    let clock = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        Timestamp::from_millis(since.as_millis() as i64)
    };
    let mut options = Options::new(Arc::new(clock));
    (options.create, options.segment_bytes) = (true, SEGMENT_BYTES);
    options
}

/// The child: goes on with the journal and prints the seq of each acknowledged entry; dies at the given point.
fn child(dir: &Path) {
    let mut options = options();
    let point = std::env::var(POINT).ok().map(|text| text.parse::<Point>().expect("a point"));
    let passed = Arc::new(Mutex::new(BTreeMap::<&str, u64>::new()));
    let counts = Arc::clone(&passed);
    options.crash_at = Some(Arc::new(move |name| {
        let mut counts = counts.lock().expect("no panic");
        let count = counts.entry(name).or_default();
        *count += 1;
        if point.as_ref().is_some_and(|point| point.name == name && point.nth == *count) {
            std::process::abort();
        }
    }));
    let journal = Journal::open(dir, options).expect("the journal opens");
    let last: u64 = std::env::var(BATCHES).expect("set with the directory").parse().expect("a number");
    let mut out = std::io::stdout().lock();
    let mut say = |text: String| out.write_all(text.as_bytes()).and_then(|()| out.flush()).expect("a reader");
    say(format!("seq open {}\n", journal.with_state(|state| state.seq)));
    loop {
        let seq = journal.with_state(|state| state.seq).as_u64() + 1;
        if seq > last {
            break;
        }
        match journal.with_state(|state| nth(state, seq)) {
            Step::Commit(commit) => {
                let receipt = journal.commit(commit).expect("a commit");
                assert_eq!(receipt.seq, seq_of(seq));
            }
            Step::Decide(draft) => {
                journal.decide::<(), String>(move |_| Ok((vec![draft], ()))).expect("an entry");
            }
        }
        say(format!("seq {seq}\n"));
    }
    journal.close().expect("a clean close");
    for (name, count) in passed.lock().expect("no panic").iter() {
        say(format!("passed {name}:{count}\n"));
    }
    say("seq done\n".to_owned());
}

/// Where a child dies: when it comes to the place of this name for the nth time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    name: String,
    nth: u64,
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.name, self.nth)
    }
}

impl std::str::FromStr for Point {
    type Err = String;
    fn from_str(text: &str) -> Result<Point, String> {
        // The names of the store's own points hold a colon.
        let (name, nth) = text.rsplit_once(':').ok_or(text)?;
        Ok(Point { name: name.to_owned(), nth: nth.parse().map_err(|_| text)? })
    }
}

fn seq_of(seq: u64) -> Seq {
    Seq::try_from(seq).expect("small")
}

fn spawn(test: &str, dir: &Path, point: Option<&Point>, batches: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("the test binary"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(DIR, dir);
    command.env(BATCHES, batches.to_string()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(point) = point {
        command.env(POINT, point.to_string());
    }
    command.spawn().expect("the test binary starts")
}

/// What a child said before it ended: the newest seq that was acknowledged, and whether it came to its end.
struct Said {
    acknowledged: u64,
    done: bool,
    /// The places that it came through, each with how often.
    passed: Vec<Point>,
}

fn read(said: &str) -> Said {
    let mut all = Said { acknowledged: 0, done: false, passed: Vec::new() };
    // The harness writes on the same line; a torn last line has no end.
    for line in said.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        if let Some((_, point)) = line.trim_end().rsplit_once("passed ") {
            all.passed.push(point.parse::<Point>().expect("a point"));
        }
        let Some((_, word)) = line.trim_end().rsplit_once("seq ") else { continue };
        match word.strip_prefix("open ").unwrap_or(word).parse() {
            Ok(seq) => all.acknowledged = seq,
            Err(_) => all.done |= word == "done",
        }
    }
    all
}

fn run(test: &str, dir: &Path, point: Option<&Point>, batches: u64) -> Said {
    let mut child = spawn(test, dir, point, batches);
    let mut said = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut said).expect("text");
    let status = child.wait().expect("the child ends");
    let said = read(&said);
    assert_eq!(status.success(), said.done, "a child that ends by itself is done, any other was killed: {status}");
    said
}

/// The journal in `dir` holds exactly the first entries of the script, at least those acknowledged and at most one more.
fn check(dir: &Path, acknowledged: u64, what: &str) {
    let journal = Journal::open(dir, options()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut model = State::default();
    let mut entries: Vec<Entry> = Vec::new();
    let walked = journal.visit_entries(None, Seq::ZERO, Order::Ascending, &mut |entry| {
        entries.push(entry);
        ControlFlow::Continue(())
    });
    walked.unwrap_or_else(|error| panic!("{what}: {error}"));
    let count = entries.len() as u64;
    assert!((acknowledged..=acknowledged + 1).contains(&count), "{what}: {count} entries, {acknowledged} acknowledged");
    for entry in &entries {
        let expected = match nth(&model, model.seq.as_u64() + 1) {
            Step::Decide(draft) => (draft.group, draft.epoch, draft.body),
            Step::Commit(commit) => match tidelog::commit::check(&model, &commit) {
                Ok(tidelog::commit::Checked::Append(draft)) => (draft.group, draft.epoch, draft.body),
                other => panic!("{what}: {other:?}"),
            },
        };
        assert_eq!((entry.group.clone(), entry.epoch, entry.body.clone()), expected, "{what}: seq {}", entry.seq);
        model.apply(entry);
    }
    assert_eq!(journal.with_state(State::clone), model, "{what}");
    for number in 0..GROUPS {
        let as_of = journal.positions_as_of(&group(number), Seq::MAX).unwrap_or_else(|e| panic!("{what}: {e}"));
        let expected = model.groups.get(&group(number)).map(|group| group.positions.clone());
        assert_eq!(as_of.map(|as_of| as_of.positions), expected, "{what}");
    }
}

#[test]
fn each_kill_point_keeps_what_was_acknowledged() {
    if let Some(dir) = std::env::var_os(DIR) {
        return child(Path::new(&dir));
    }
    const TEST: &str = "crash::each_kill_point_keeps_what_was_acknowledged";
    // Enough for several rotations, seals, and a seal at the close.
    let batches = 500;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let whole = run(TEST, dir.path(), None, batches);
    check(dir.path(), batches, "not killed");
    let mut killed = BTreeMap::<String, u32>::new();
    let mut kill = |dir: &Path, point: &Point| {
        let said = run(TEST, dir, Some(point), batches);
        *killed.entry(point.name.clone()).or_default() += u32::from(!said.done);
        said
    };
    for Point { name, nth: count } in &whole.passed {
        for nth in BTreeSet::from([1, count / 2, *count]) {
            let point = Point { name: name.clone(), nth };
            let dir = tempfile::tempdir().expect("a temporary directory");
            let first = kill(dir.path(), &point);
            // Killed again while opening what the first kill left, or going on from there.
            if nth == 1 {
                let second = kill(dir.path(), &point);
                let what = format!("killed at {point}, then again");
                check(dir.path(), second.acknowledged.max(first.acknowledged), &what);
            } else {
                check(dir.path(), first.acknowledged, &format!("killed at {point}"));
            }
        }
    }
    // What only an open of a killed journal comes through: a torn end of the log, a seal that was not finished.
    let middle = |name: &str| {
        let passed = whole.passed.iter().find(|point| point.name == name).expect("a place of the whole run");
        Point { name: name.to_owned(), nth: passed.nth.div_ceil(2) }
    };
    for before in [middle("wal-write-half"), middle("seal: old states")] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        kill(dir.path(), &before);
        let opened = run(TEST, dir.path(), None, batches);
        for Point { name, nth: count } in opened.passed {
            if whole.passed.iter().any(|point| point.name == name) {
                continue;
            }
            for nth in BTreeSet::from([1, count]) {
                let point = Point { name: name.clone(), nth };
                let dir = tempfile::tempdir().expect("a temporary directory");
                let first = kill(dir.path(), &before);
                let second = kill(dir.path(), &point);
                let what = format!("killed at {before}, then at {point}");
                check(dir.path(), second.acknowledged.max(first.acknowledged), &what);
            }
        }
    }
    for part in ["seal: index", "seal: data", "seal: valid", "seal: old states", "sweep: ", "wal-recover", "wal-rotate"]
    {
        let times: u32 = killed.iter().filter(|(name, _)| name.starts_with(part)).map(|(_, times)| times).sum();
        assert!(times > 0, "never killed at {part:?}, only at {killed:?}");
    }
    let killed: u32 = killed.values().sum();
    assert!(killed > 50, "only {killed} kills: the hook is not called at each write");
}

#[test]
fn a_killed_process_loses_nothing_acknowledged() {
    if let Some(dir) = std::env::var_os(DIR) {
        return child(Path::new(&dir));
    }
    const TEST: &str = "crash::a_killed_process_loses_nothing_acknowledged";
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut acknowledged = 0;
    for round in 0..200 {
        let mut child = spawn(TEST, dir.path(), None, u64::MAX >> 1);
        let mut said = BufReader::new(child.stdout.take().expect("piped"));
        // Killed after a while that differs: in the middle of opening, of a commit, of a seal.
        let mut lines = String::new();
        for _ in 0..(round * 37) % 300 {
            said.read_line(&mut lines).expect("text");
        }
        child.kill().expect("a kill");
        said.read_to_string(&mut lines).expect("text");
        child.wait().expect("the child ends");
        acknowledged = acknowledged.max(read(&lines).acknowledged);
        if round % 10 == 9 {
            check(dir.path(), acknowledged, &format!("round {round}"));
            acknowledged = Journal::open(dir.path(), options()).expect("it opens").with_state(|s| s.seq).as_u64();
        }
    }
    assert!(acknowledged > 2_000, "only {acknowledged} entries in 200 rounds");
}

/// A file system of its own whose device can be copied at any moment, as a power cut would leave it.
struct Device {
    image: PathBuf,
    mount: PathBuf,
}

impl Device {
    fn mounted(image: PathBuf, mount: PathBuf) -> Device {
        std::fs::create_dir_all(&mount).expect("a mount point");
        tool("mount", &["-o", "loop", image.to_str().expect("UTF-8"), mount.to_str().expect("UTF-8")]);
        Device { image, mount }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let status = Command::new("umount").arg(&self.mount).status();
        assert!(std::thread::panicking() || status.is_ok_and(|status| status.success()), "umount {:?}", self.mount);
    }
}

fn tool(name: &str, args: &[&str]) {
    let done = Command::new(name).args(args).output();
    let done = done.unwrap_or_else(|error| panic!("{name}: {error}; this test wants Linux, root and e2fsprogs"));
    assert!(done.status.success(), "{name} {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_power_cut_loses_nothing_acknowledged() {
    if let Some(dir) = std::env::var_os(DIR) {
        return child(Path::new(&dir));
    }
    const TEST: &str = "crash::a_power_cut_loses_nothing_acknowledged";
    let root = tempfile::tempdir().expect("a temporary directory");
    let image = root.path().join("disk.img");
    let file = std::fs::File::create(&image).expect("an image");
    file.set_len(256 << 20).expect("a sparse file");
    tool("mkfs.ext4", &["-q", "-F", image.to_str().expect("UTF-8")]);
    let device = Device::mounted(image, root.path().join("disk"));
    let journal = device.mount.join("journal");
    let mut child = spawn(TEST, &journal, None, u64::MAX >> 1);
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    let pid = child.id().to_string();
    let mut lines = String::new();
    for cut in 0..20 {
        for _ in 0..200 + 61 * (cut % 7) {
            said.read_line(&mut lines).expect("text");
        }
        tool("kill", &["-STOP", &pid]);
        // What the stopped child has acknowledged but we have not read yet only makes the check weaker by those.
        let acknowledged = read(&lines).acknowledged;
        let copy = root.path().join("copy.img");
        // The file system's own cache is not in the image: only what was written to the device.
        std::fs::copy(&device.image, &copy).expect("a copy");
        tool("kill", &["-CONT", &pid]);
        let cut_off = Device::mounted(copy, root.path().join("cut"));
        check_at_least(&cut_off.mount.join("journal"), acknowledged, &format!("cut {cut}"));
    }
    child.kill().expect("a kill");
    child.wait().expect("the child ends");
}

/// Like [`check`], for a child that went on acknowledging while its answers waited in the pipe.
fn check_at_least(dir: &Path, acknowledged: u64, what: &str) {
    let journal = Journal::open(dir, options()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let newest = journal.with_state(|state| state.seq).as_u64();
    drop(journal);
    assert!(newest >= acknowledged, "{what}: {newest} entries, {acknowledged} acknowledged");
    check(dir, newest, what);
}

#[test]
fn a_second_process_is_told_who_holds_the_journal() {
    if let Some(dir) = std::env::var_os(DIR) {
        return child(Path::new(&dir));
    }
    const TEST: &str = "crash::a_second_process_is_told_who_holds_the_journal";
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut child = spawn(TEST, dir.path(), None, u64::MAX >> 1);
    let mut line = String::new();
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    while !line.contains("seq") {
        said.read_line(&mut line).expect("text");
    }
    let mut options = options();
    options.lock_wait = Duration::from_millis(50);
    let refused = Journal::open(dir.path(), options.clone()).err().expect("the child holds it").to_string();
    assert!(refused.contains(&child.id().to_string()), "{refused}");
    child.kill().expect("a kill");
    child.wait().expect("the child ends");
    // A restart under a supervisor waits a moment for the lock, and takes over.
    options.lock_wait = Duration::from_secs(5);
    Journal::open(dir.path(), options).expect("nobody holds it any more");
}
