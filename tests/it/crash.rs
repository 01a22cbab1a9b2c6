//! Killed processes and power cuts: what was acknowledged is there afterwards, all of a batch or none of it, and nothing
//! that was never written.

mod points;
mod power;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use tidelog::commit::Commit;
use tidelog::entry::{Body, Correction, Draft, Entry, Move, RolledBack, TopicChange};
use tidelog::journal::{Journal, Options, Order};
use tidelog::offset::{Epoch, Group, Isolation, Offset, OffsetRange, Seq, Timestamp, TopicId, TopicName};
use tidelog::positions::{GroupState, State};
use tidelog::results::Puts;

const DIR: &str = "TIDELOG_TEST_CRASH_DIR";
const POINT: &str = "TIDELOG_TEST_CRASH_POINT";
const BATCHES: &str = "TIDELOG_TEST_CRASH_BATCHES";
/// Small, so that a few hundred batches go through many rotations and seals.
const SEGMENT_BYTES: u64 = 16 << 10;
const GROUPS: u64 = 4;
const PARTITIONS: u32 = 3;
/// Partitions of a wide batch: it takes several values.
const WIDE: u32 = 600;
/// Partitions of a wider one: what a seal writes of it takes more than one chunk.
const WIDER: u32 = 3_000;

fn group(number: u64) -> Group {
    Group::new("crash", &format!("g{number}")).expect("a legal name")
}

fn topic(name: &str) -> TopicName {
    TopicName::new(name).expect("a legal name")
}

/// Entry number `seq` is always the same, so that a reader knows what must be there without being told: groups start,
/// one of them late, then commit in turn, now and then a batch of many partitions, which takes several values in sled
/// and a snapshot; between them marks, a move back, and a topic that is made again.
fn nth(state: &State, seq: u64) -> Step {
    let group = group(if seq % 29 == 28 { GROUPS - 1 } else { seq % (GROUPS - 1) });
    let Some(present) = state.groups.get(&group) else {
        let body =
            Body::Started { owner: format!("owner-{seq}"), isolation: Isolation::ReadCommitted, kafka_group: None };
        return Step::Decide(Draft { group: Some(group), epoch: Epoch::ZERO.next(), body });
    };
    let decide = |epoch, body| Step::Decide(Draft { group: Some(group.clone()), epoch, body });
    let actor = "ops".to_owned();
    match seq % 50 {
        0 => return decide(present.epoch.next(), Body::RolledBack(moved_back(present, seq))),
        17 => return decide(present.epoch, Body::Mark { name: format!("m-{seq}"), actor }),
        40 => {
            let body = Body::Reconciled { findings: Vec::new(), correction: made_again(present, seq) };
            return decide(present.epoch.next(), body);
        }
        _ => {}
    }
    let (topic, partitions) = match seq % 200 {
        10 => (topic("wide"), WIDE),
        44 => (topic("wide"), WIDER),
        _ => (topic("t"), PARTITIONS),
    };
    let ranges = (0..partitions).map(|partition| {
        let from = present.positions.get(&topic, partition).map_or(Offset::ZERO, |known| known.position);
        let size = (seq * 7919 + u64::from(partition) * 104_729) % 5_000;
        OffsetRange::new(topic.clone(), partition, from, from.plus(size)).expect("a legal range")
    });
    let commit = Commit::new(group, present.epoch, Timestamp::from_millis(seq as i64), ranges.collect());
    let commit = commit.expect("each partition once").with_key(format!("key-{seq}")).expect("a legal key");
    Step::Commit(commit.with_puts(puts(seq)))
}

/// The results of batch `seq`: two of three have some, and now and then one has a value that takes several of sled's, or
/// more of them than one list of results takes.
fn puts(seq: u64) -> Puts {
    let mut puts = Puts::new();
    let few = (0..6).filter(|key| (seq + key).is_multiple_of(3)).map(|key| (format!("key-{key}"), seq % 7));
    let many = (0..900).filter(|_| seq == 31 || seq % 300 == 31).map(|key| (format!("{key:05} of many"), 1));
    for (key, of_value) in few.filter(|_| seq % 3 < 2).chain(many) {
        let done = match of_value {
            0 => puts.remove(key),
            1 if seq % 25 == 8 => {
                let mixed = (0..700u64).flat_map(|n| (n * seq).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
                puts.put(key, mixed.collect::<Vec<_>>())
            }
            _ => puts.put(key, format!("of {seq}")),
        };
        done.expect("within the limits");
    }
    puts
}

/// Five offsets back, in each partition of the narrow topic.
fn moved_back(present: &GroupState, seq: u64) -> RolledBack {
    let topic = topic("t");
    let moves = (0..PARTITIONS).filter_map(|partition| {
        let known = present.positions.get(&topic, partition)?;
        Some(Move {
            topic: topic.clone(),
            partition,
            topic_id: None,
            old: Some(known.position),
            new: Some(Offset::new((known.position.get() - 5).max(0)).expect("not negative")),
            holes: Vec::new(),
            replaying_until: Some(known.position),
        })
    });
    RolledBack {
        plan: format!("p-{seq}"),
        target: "shift -5".into(),
        actor: "ops".into(),
        reason: "a test".into(),
        undoes: None,
        kafka: false,
        correction: Correction { moves: moves.collect(), ..Correction::default() },
    }
}

/// The narrow topic under another id, its partitions at the begin.
fn made_again(present: &GroupState, seq: u64) -> Correction {
    let (topic, topic_id) = (topic("t"), TopicId::from_bytes([1 + seq as u8 % 200; 16]));
    let moves = (0..PARTITIONS).map(|partition| Move {
        topic: topic.clone(),
        partition,
        topic_id,
        old: present.positions.get(&topic, partition).map(|known| known.position),
        new: Some(Offset::ZERO),
        holes: Vec::new(),
        replaying_until: None,
    });
    let change = TopicChange { topic: topic.clone(), topic_id, new_incarnation: true };
    Correction { topics: vec![change], moves: moves.collect(), ..Correction::default() }
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
    let mut results: BTreeMap<Group, BTreeMap<Vec<u8>, Vec<u8>>> = BTreeMap::new();
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
                Ok(tidelog::commit::Checked::Append(draft)) => {
                    let known = results.entry(commit.group().clone()).or_default();
                    for (key, value) in commit.puts().iter() {
                        match value {
                            Some(value) => drop(known.insert(key.to_vec(), value.to_vec())),
                            None => drop(known.remove(key)),
                        }
                    }
                    (draft.group, draft.epoch, draft.body)
                }
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
        if model.groups.contains_key(&group(number)) {
            let page = journal.results(&group(number), &[], None, 10_000).unwrap_or_else(|e| panic!("{what}: {e}"));
            let found = BTreeMap::from_iter(page.results);
            let expected = results.remove(&group(number)).unwrap_or_default();
            assert!(found == expected && page.next.is_none(), "{what}: {} of {}", found.len(), expected.len());
        }
    }
}
