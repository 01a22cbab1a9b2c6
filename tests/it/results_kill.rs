//! Results in the journal, exactly once: a consumer on a real broker that writes them with its positions is killed at any
//! step, again and again, with a rollback and a replay in the middle. After each kill the results are those of the records
//! below the positions, each of its newest run; at the end each record has its result once.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tidelog::entry::{Body, Correction, Draft, Move, RolledBack};
use tidelog::journal::{Journal, Options, Order};
use tidelog::kafka::{Batch, ClientConfig, CommitFailed, Cut, Discovery, JournaledConsumer};
use tidelog::offset::{BatchNumber, Group, Isolation, Offset};
use tidelog::reconcile::Policy;
use tidelog::results::Puts;

use crate::kafka::TestKafka;
use crate::kafka_group::Setup;
use crate::kafka_mock::{clock, name};

const DIR: &str = "TIDELOG_TEST_RESULTS_DIR";
const BROKERS: &str = "TIDELOG_TEST_RESULTS_BROKERS";
const TOPIC: &str = "TIDELOG_TEST_RESULTS_TOPIC";
const KILL: &str = "TIDELOG_TEST_RESULTS_KILL";

const PARTITIONS: i32 = 3;
const RECORDS: i64 = 400;

/// Where a child is killed, once it has committed a batch: at the nth time that it comes to a place of its own or of the
/// journal; or by the parent, when it has said so many words.
const KILLS: [(&str, u64); 18] = [
    ("taken", 1),
    ("computed", 1),
    ("committed", 1),
    ("said", 3),
    ("wal-write", 1),
    ("wal-write-half", 1),
    ("wal-written", 2),
    ("wal-sync", 1),
    ("wal-synced", 1),
    ("wal-rotate-closed", 1),
    ("said", 8),
    ("seal: results", 1),
    ("seal: index", 1),
    ("seal: data", 1),
    ("seal: valid", 1),
    ("seal: old states", 1),
    ("wal-removed", 1),
    ("said", 11),
];

fn group() -> Group {
    Group::new("default", "g").expect("a legal name")
}

fn open(dir: &Path, crash_at: Option<Arc<dyn Fn(&'static str) + Send + Sync>>) -> Journal {
    // Small segments: one takes two or three batches.
    let options = Options { create: true, segment_bytes: 16 << 10, crash_at, ..Options::new(clock()) };
    Journal::open(dir, options).expect("the journal opens")
}

/// What is kept of a batch: each record under its own name, and under that of one of ten things, of which the newest
/// counts; both tell under which epoch they were read. Large, so that the journal seals often.
fn results(batch: &Batch) -> Puts {
    let epoch = batch.epoch();
    let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.expect("each has one")).into_owned();
    let mut newest: BTreeMap<String, String> = BTreeMap::new();
    for record in batch.records() {
        let at = format!("{}@{}", record.partition(), record.offset());
        newest.insert(format!("{} {}", record.partition(), text(record.key())), format!("{at} {epoch}"));
        newest.insert(at, format!("{} {epoch}", text(record.payload())));
    }
    let mut puts = Puts::new();
    newest.into_iter().for_each(|(key, value)| puts.put(key, value).expect("within the limits"));
    puts
}

/// The child: reads to the end, and tells each step; dies at the given one.
fn child(dir: &Path) {
    let from_env = |name| std::env::var(name).expect("set with the directory");
    let kill = std::env::var(KILL).ok().map(|kill| {
        let (place, nth) = kill.rsplit_once('*').expect("a place and how often");
        (place.to_owned(), nth.parse::<u64>().expect("a number"))
    });
    let (armed, passed) = (Arc::new(AtomicBool::new(false)), AtomicU64::new(0));
    let is_armed = Arc::clone(&armed);
    let step = Arc::new(move |at: &'static str| {
        if let Some((place, nth)) = &kill
            && *place == at
            && is_armed.load(Ordering::SeqCst)
            && passed.fetch_add(1, Ordering::SeqCst) + 1 == *nth
        {
            std::process::abort();
        }
    });
    let hook = Arc::clone(&step);
    let journal = open(dir, Some(Arc::new(move |at| hook(at))));
    let setup = Setup {
        client: ClientConfig::new(from_env(BROKERS)).expect("brokers"),
        journal: journal.clone(),
        group: group(),
        topics: vec![from_env(TOPIC)],
        cut: Cut {
            max_records: NonZeroUsize::new(7).expect("not zero"),
            max_wait: Duration::from_millis(20),
            ..Cut::default()
        },
        discovery: Discovery::Off,
        isolation: Isolation::ReadCommitted,
        policy: Policy::default(),
    };
    let consumer = setup.begin(&format!("process {}", std::process::id()));
    let mut out = std::io::stdout().lock();
    let mut say = |word: &str| writeln!(out, "word {word}").and_then(|()| out.flush()).expect("a reader");
    while read_to(&journal, &from_env(TOPIC)) < i64::from(PARTITIONS) * RECORDS {
        let Some(batch) = consumer.next_batch(Duration::from_millis(200)).expect("it goes on") else { continue };
        step("taken");
        say("taken");
        let puts = results(&batch);
        step("computed");
        commit(&consumer, batch, puts);
        step("committed");
        say("committed");
        armed.store(true, Ordering::SeqCst);
    }
    consumer.stop();
    say("done");
}

fn commit(consumer: &JournaledConsumer, batch: Batch, puts: Puts) {
    match consumer.commit_with(batch, puts) {
        Ok(_) | Err(CommitFailed::Moved(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// The sum of all positions.
fn read_to(journal: &Journal, topic: &str) -> i64 {
    let group = journal.group(&group()).expect("it has started");
    let position = |partition| group.positions.get(&name(topic), partition).map_or(0, |known| known.position.get());
    (0..PARTITIONS as u32).map(position).sum()
}

fn spawn(test: &str, dir: &Path, kafka: &TestKafka, topic: &str, kill: Option<(&str, u64)>) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("the test binary"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(DIR, dir).env(TOPIC, topic);
    command.env(BROKERS, kafka.brokers()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some((place, nth)) = kill {
        command.env(KILL, format!("{place}*{nth}"));
    }
    command.spawn().expect("the test binary starts")
}

/// Runs a child; whether it was killed, and not done before.
fn run(test: &str, dir: &Path, kafka: &TestKafka, topic: &str, kill: Option<(&str, u64)>) -> bool {
    let mut child = spawn(test, dir, kafka, topic, kill);
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    let mut text = String::new();
    if let Some(("said", words)) = kill {
        while text.matches("word ").count() < words as usize && said.read_line(&mut text).expect("text") > 0 {}
        child.kill().expect("a kill");
    }
    said.read_to_string(&mut text).expect("text");
    let status = child.wait().expect("the child ends");
    assert_eq!(status.success(), text.contains("word done"), "{kill:?}: {status}: {text}");
    !status.success()
}

/// The results are exactly what the batches in the journal say, in its order: each record that any batch has read has its
/// result, of the last batch that read it; no other has.
fn check(dir: &Path, topic: &str, what: &str) -> BTreeMap<String, String> {
    let journal = open(dir, None);
    let mut expected: BTreeMap<String, String> = BTreeMap::new();
    let visited = journal.visit_batches(&group(), BatchNumber::ZERO, Order::Ascending, &mut |entry| {
        let Body::Batch(batch) = &entry.body else { panic!("{what}: no batch") };
        for range in &batch.ranges {
            for offset in range.from_offset().get()..range.until_offset().get() {
                let at = format!("{}@{offset}", range.partition());
                let (thing, value) = record(range.partition(), offset);
                expected.insert(format!("{} {thing}", range.partition()), format!("{at} {}", entry.epoch));
                expected.insert(at, format!("{value} {}", entry.epoch));
            }
        }
        ControlFlow::Continue(())
    });
    visited.expect("a read");
    let page = journal.results(&group(), b"", None, 10_000).expect("a page");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let found: BTreeMap<String, String> = page.results.into_iter().map(|(k, v)| (text(k), text(v))).collect();
    let differ = |key: &&String| found.get(*key) != expected.get(*key);
    let wrong: Vec<&String> = found.keys().chain(expected.keys()).filter(differ).take(5).collect();
    assert!(wrong.is_empty(), "{what}: {wrong:?} of {} results", found.len());
    // Below the positions each has one.
    let state = journal.group(&group()).expect("it has started");
    for partition in 0..PARTITIONS as u32 {
        let position = state.positions.get(&name(topic), partition).map_or(0, |known| known.position.get());
        let missing = (0..position).find(|offset| !found.contains_key(&format!("{partition}@{offset}")));
        assert_eq!(missing, None, "{what}: below position {position} of {partition}");
    }
    found
}

/// Key and value of a record.
fn record(partition: u32, offset: i64) -> (String, String) {
    (format!("thing {}", offset % 10), format!("{partition}/{offset} {}", "x".repeat(300)))
}

/// Takes each partition back to a third of what was read.
fn roll_back(dir: &Path, topic: &str) -> Vec<i64> {
    let (journal, topic) = (open(dir, None), name(topic));
    let (_, to) = journal
        .decide::<_, String>(move |state| {
            let present = &state.groups[&group()];
            let known = &present.positions.topics[&topic];
            let moves = known.partitions.iter().map(|(partition, at)| Move {
                topic: topic.clone(),
                partition: *partition,
                topic_id: known.topic_id,
                old: Some(at.position),
                new: Some(Offset::new(at.position.get() / 3).expect("not negative")),
                holes: Vec::new(),
                replaying_until: Some(at.position),
            });
            let correction = Correction { moves: moves.collect(), ..Correction::default() };
            let to = correction.moves.iter().map(|moved| moved.new.unwrap_or_default().get()).collect::<Vec<_>>();
            let rolled_back = RolledBack {
                plan: "test".into(),
                target: "test".into(),
                actor: "test".into(),
                reason: "test".into(),
                undoes: None,
                kafka: false,
                correction,
            };
            let (group, epoch) = (Some(group()), present.epoch.next());
            Ok((vec![Draft { group, epoch, body: Body::RolledBack(rolled_back) }], to))
        })
        .expect("a move");
    to
}

#[test]
fn killed_at_any_step_results_and_positions_always_agree() {
    if let Some(dir) = std::env::var_os(DIR) {
        return child(Path::new(&dir));
    }
    const TEST: &str = "results_kill::killed_at_any_step_results_and_positions_always_agree";
    let kafka = TestKafka::shared();
    let topic = kafka.unique("results");
    kafka.create_topic(&topic, PARTITIONS, &[]);
    for partition in 0..PARTITIONS {
        let records = (0..RECORDS).map(|offset| {
            let (key, value) = record(partition as u32, offset);
            crate::kafka::Record::keyed(key, value)
        });
        kafka.send(&topic, partition, &records.collect::<Vec<_>>());
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut kills = 0;
    let mut rounds = |when: &str| {
        for (place, nth) in KILLS {
            let killed = run(TEST, dir.path(), kafka, &topic, Some((place, nth)));
            kills += u32::from(killed);
            check(dir.path(), &topic, &format!("{when}, killed at {place} {nth}"));
        }
    };
    rounds("first");
    let moved_to = roll_back(dir.path(), &topic);
    let before = check(dir.path(), &topic, "rolled back");
    rounds("replaying");
    assert!(!run(TEST, dir.path(), kafka, &topic, None));
    let after = check(dir.path(), &topic, "at the end");
    println!("{kills} kills, moved back to {moved_to:?}");
    assert!(kills >= 30, "only {kills} kills");
    assert_eq!(after.len() as i64, i64::from(PARTITIONS) * (RECORDS + 10), "each record, and each thing, once");
    // What was read before the rollback and above it was overwritten; what is below stayed.
    for (key, value) in &before {
        let Some((partition, offset)) = key.split_once('@') else { continue };
        let to = moved_to[partition.parse::<usize>().expect("digits")];
        let replayed = offset.parse::<i64>().expect("digits") >= to;
        assert_eq!(after[key] != *value, replayed, "{key}");
    }
}
