//! Starts and looks over a scripted broker: each look is one line of the script, the last one again and again.

mod holes;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::*;
use crate::broker::{Ask, Look, Member, Seen, Untold};
use crate::commit::Commit;
use crate::control::{self, Limits};
use crate::entry::{Body, Verdict};
use crate::journal::{Clock, CommitError, Journal, Options, Order};
use crate::offset::{BatchNumber, Offset, OffsetRange, Timestamp, TopicPartition};
use crate::reconcile::tests::script;

/// Answers look after look from a script, and calls what a test wants done after a look.
struct ScriptedBroker {
    looks: Mutex<Vec<String>>,
    asked: Mutex<Vec<Ask>>,
    after_look: Box<dyn Fn(usize) + Send + Sync>,
    /// What looking into a range tells, where it can.
    readable: Option<fn(&OffsetRange) -> Seen<Offset>>,
    firsts: Seen<Offset>,
}

impl Broker for ScriptedBroker {
    fn look(&self, ask: &Ask) -> Look {
        let mut looks = self.looks.lock().unwrap();
        let text = if looks.len() > 1 { looks.remove(0) } else { looks[0].clone() };
        drop(looks);
        let taken = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(ask.clone());
            asked.len()
        };
        (self.after_look)(taken);
        script::look(&text)
    }

    fn offsets_at(
        &self,
        partitions: &BTreeSet<TopicPartition>,
        _time: Timestamp,
        _deadline: Duration,
    ) -> BTreeMap<TopicPartition, Seen<Offset>> {
        partitions.iter().map(|at| (at.clone(), self.firsts.clone())).collect()
    }

    fn committed(
        &self,
        _kafka_group: &str,
        partitions: &BTreeSet<TopicPartition>,
        _deadline: Duration,
    ) -> BTreeMap<TopicPartition, Seen<Offset>> {
        partitions.iter().map(|at| (at.clone(), self.firsts.clone())).collect()
    }

    fn commit(
        &self,
        _kafka_group: &str,
        offsets: &BTreeMap<TopicPartition, Offset>,
        _deadline: Duration,
    ) -> BTreeMap<TopicPartition, Result<(), String>> {
        offsets.keys().map(|at| (at.clone(), Err("not asked for in these tests".to_owned()))).collect()
    }

    fn cluster_id(&self, _deadline: Duration) -> Seen<String> {
        Seen::Absent
    }

    fn members(&self, _kafka_group: &str, _deadline: Duration) -> Result<Vec<Member>, Untold> {
        Ok(Vec::new())
    }

    fn brokers(&self) -> &str {
        "fake:9092"
    }

    fn first_readable(
        &self,
        ranges: &[OffsetRange],
        _isolation: Isolation,
        _deadline: Duration,
    ) -> Option<Vec<Seen<Offset>>> {
        self.readable.map(|first| ranges.iter().map(first).collect())
    }
}

struct Scene {
    control: Control,
    _dir: tempfile::TempDir,
}

fn journal() -> (Journal, Clock, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let clock: Clock = Arc::new(|| Timestamp::from_millis(1_800_000_000_000));
    let mut options = Options::new(Arc::clone(&clock));
    options.create = true;
    (Journal::open(dir.path(), options).unwrap(), clock, dir)
}

impl Scene {
    fn new(looks: &[&str]) -> Self {
        Scene::with(looks, |broker, _| broker)
    }

    fn with(looks: &[&str], change: impl FnOnce(ScriptedBroker, &Journal) -> ScriptedBroker) -> Self {
        let (journal, clock, dir) = journal();
        let broker = ScriptedBroker {
            looks: Mutex::new(looks.iter().map(|look| (*look).to_owned()).collect()),
            asked: Mutex::default(),
            after_look: Box::new(|_| {}),
            readable: None,
            firsts: Seen::Absent,
        };
        let broker = change(broker, &journal);
        let limits = Limits { deadline: Duration::from_millis(600), second_look: Duration::from_millis(20) };
        Scene {
            control: Control { journal, broker: Some(Arc::new(broker)), limits, clock, mirror: Default::default() },
            _dir: dir,
        }
    }

    fn start(&self, owner: &str, topics: &str, policy: &str) -> Result<Started, StartError> {
        start(&self.control, request(owner, topics, policy))
    }

    fn position(&self, at: &str) -> Offset {
        let at = script::at(at);
        let group = self.control.journal.group(&script::group()).unwrap();
        group.positions.get(&at.topic, at.partition).unwrap().position
    }

    fn entries(&self) -> String {
        let mut kinds = Vec::new();
        let mut visit = |entry: crate::entry::Entry| {
            kinds.push(entry.body.kind());
            std::ops::ControlFlow::Continue(())
        };
        self.control.journal.visit_entries(None, Seq::ZERO, Order::Ascending, &mut visit).unwrap();
        kinds.join(" ")
    }
}

fn request(owner: &str, topics: &str, policy: &str) -> StartRequest {
    StartRequest {
        group: script::group(),
        topics: script::selectors(topics.split_whitespace()),
        owner: owner.to_owned(),
        policy: script::policy(policy),
        isolation: None,
        kafka_group: None,
        dry_run: false,
    }
}

fn commit(journal: &Journal, epoch: Epoch, at: &str, from: u64, until: u64) -> Result<(), CommitError> {
    let at = script::at(at);
    let offset = |n| Offset::try_from(n).unwrap();
    let range = OffsetRange::new(at.topic, at.partition, offset(from), offset(until)).unwrap();
    let commit = Commit::new(script::group(), epoch, Timestamp::default(), vec![range]).unwrap();
    journal.commit(commit).map(|_| ())
}

/// What a start says, in a line.
fn told(result: &Result<Started, StartError>) -> String {
    match result {
        Ok(started) => {
            let mut text = format!("epoch {} seq {}", started.epoch, started.seq);
            for start in &started.positions {
                write!(text, " {}@{} {}", start.at, start.offset, start.verdict.as_str()).unwrap();
            }
            text
        }
        Err(error) => error.to_string(),
    }
}

fn given(position: u64) -> String {
    format!(r#"new_group={{"offsets":[{{"topic":"t","partition":0,"offset":{position}}}]}}"#)
}

#[test]
fn c12_a_refusal_is_the_same_three_times_and_then_one_correction() {
    let scene = Scene::new(&["C t 0=0..1000", "C t 0=0..5"]);
    assert_eq!(told(&scene.start("A", "t", &given(1000))), "epoch 1 seq 2 t/0@1000 new_group");
    for _ in 0..3 {
        let refused = scene.start("B", "t", "tail=fail");
        assert_eq!(
            told(&refused),
            "group g can't start: t/0: tail_out_of_range, was at 1000, the log holds [0,5) (the log ends below the position)"
        );
        assert_eq!(scene.entries(), "started reconciled");
        assert_eq!(scene.position("t/0").as_u64(), 1000);
    }
    assert_eq!(told(&scene.start("A", "t", "")), "epoch 2 seq 3 t/0@0 tail_out_of_range");
    for _ in 0..2 {
        assert_eq!(told(&scene.start("A", "t", "")), "epoch 2 seq 3 t/0@0 in_range");
    }
    assert_eq!(scene.entries(), "started reconciled reconciled");
}

#[test]
fn c13_a_first_answer_that_is_short_corrects_nothing() {
    for first in
        ["C t#1 0=0..480", "C t#1 0=0..0", "C t#1 0=?", "C t#1 ?", "? t#1 0=0..0", "C t#1 missing", "C t#2 0=0..7"]
    {
        let scene = Scene::new(&["C t#1 0=0..520", first, "C t#1 0=0..520"]);
        scene.start("A", "t", &given(500)).unwrap();
        assert_eq!(told(&scene.start("A", "t", "")), "epoch 1 seq 2 t/0@500 in_range", "{first}");
        assert_eq!(scene.entries(), "started reconciled", "{first}");
    }
    // Two of four partitions under the same id.
    let all = "C t#1 0=0..9 1=0..9 2=0..9 3=0..9";
    let scene = Scene::new(&[all, "C t#1 0=0..9 1=0..9", "C t#1 0=0..9 1=0..9", all]);
    scene.start("A", "t", "").unwrap();
    assert_eq!(
        told(&scene.start("A", "t", "")),
        "epoch 1 seq 2 t/0@0 in_range t/1@0 in_range t/2@0 in_range t/3@0 in_range"
    );
}

#[test]
fn a_correction_waits_for_the_second_look() {
    let mut scene = Scene::new(&["C t#1 0=0..520", "C t#1 0=0..5"]);
    scene.start("A", "t", &given(500)).unwrap();
    scene.control.limits.second_look = Duration::from_millis(120);
    let begun = Instant::now();
    assert_eq!(told(&scene.start("A", "t", "")), "epoch 2 seq 3 t/0@5 truncated");
    assert!(begun.elapsed() >= Duration::from_millis(120), "{:?}", begun.elapsed());
    // A second look that comes after the deadline is no fault of the broker's.
    let mut scene = Scene::new(&["C t#1 0=0..520", "C t#1 0=0..5"]);
    scene.start("A", "t", &given(500)).unwrap();
    scene.control.limits = Limits { deadline: Duration::from_millis(100), second_look: Duration::from_millis(200) };
    assert_eq!(told(&scene.start("A", "t", "")), "epoch 2 seq 3 t/0@5 truncated");
}

#[test]
fn a_look_that_follows_too_soon_is_no_second_one() {
    let mut scene = Scene::new(&["C t#1 0=0..520", "? t#1 0=0..5", "C t#1 0=0..5"]);
    scene.start("A", "t", &given(500)).unwrap();
    scene.control.limits.second_look = Duration::from_millis(300);
    let begun = Instant::now();
    assert_eq!(told(&scene.start("A", "t", "")), "epoch 2 seq 3 t/0@5 truncated");
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
}

#[test]
fn a_broker_that_says_nothing_is_unavailable_at_the_deadline() {
    let scene = Scene::new(&["C t#1 0=0..520 1=0..3", "C t#1 0=? 1=0..3"]);
    scene.start("A", "t", "").unwrap();
    let begun = Instant::now();
    assert_eq!(
        told(&scene.start("B", "t", "")),
        "b:9092 did not settle where to start within 0.6 s: t/0: earliest: timed out"
    );
    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
    assert_eq!(scene.entries(), "started reconciled");
}

#[test]
fn c14b_commits_between_look_and_decision_are_in_range() {
    // The group is at 500; while the broker's answer 0..500 is under way 500..510 is committed.
    let scene = Scene::with(&["C t#1 0=0..500"], |broker, journal| {
        let journal = journal.clone();
        let after_look = move |taken: usize| {
            if taken > 1 {
                let from = 490 + 10 * taken as u64 - 10;
                commit(&journal, "1".parse().unwrap(), "t/0", from, from + 10).unwrap();
            }
        };
        ScriptedBroker { after_look: Box::new(after_look), ..broker }
    });
    scene.start("A", "t", &given(500)).unwrap();
    assert_eq!(told(&scene.start("A", "t", "")), "epoch 1 seq 3 t/0@510 in_range");
}

#[test]
fn c14c_two_owners_at_once_get_two_epochs_and_the_positions_once() {
    let scene = Scene::new(&["C t#1 0=0..520"]);
    let starts: Vec<_> = std::thread::scope(|scope| {
        let spawned: Vec<_> = ["A", "B"].map(|owner| scope.spawn(|| scene.start(owner, "t", "").unwrap())).into();
        spawned.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let mut epochs: Vec<_> = starts.iter().map(|started| started.epoch.as_u64()).collect();
    epochs.sort_unstable();
    assert_eq!(epochs, [1, 2]);
    assert_eq!(scene.entries(), "started reconciled started");
    // The first one is fenced: its commits, and its looks.
    let older = starts.iter().find(|started| started.epoch.as_u64() == 1).unwrap();
    assert!(commit(&scene.control.journal, older.epoch, "t/0", 0, 10).is_err());
    let present = scene.control.journal.group(&script::group()).unwrap().owner.unwrap();
    let fenced = if present == "A" { "B" } else { "A" };
    let looked = look_while_running(&scene.control, &request(fenced, "t", ""), &BTreeSet::new(), None);
    assert_eq!(
        looked.unwrap_err().to_string(),
        format!("group g was started by {present}, epoch 2; {fenced} is no longer its owner")
    );
}

#[test]
fn a_restart_never_takes_a_group_back_from_an_owner_that_started_meanwhile() {
    // A rollback has moved the group; while A, which goes on by itself, looks at the broker, B starts.
    let scene = Scene::with(&["C t#1 0=0..520"], |broker, journal| {
        let journal = journal.clone();
        let after_look = move |taken: usize| {
            if taken == 2 {
                let (epoch, body) = (
                    "2".parse().unwrap(),
                    Body::Started { owner: "B".into(), isolation: Isolation::default(), kafka_group: None },
                );
                let draft = Draft { group: Some(script::group()), epoch, body };
                journal.decide(move |_| Ok::<_, ()>((vec![draft], ()))).unwrap();
            }
        };
        ScriptedBroker { after_look: Box::new(after_look), ..broker }
    });
    scene.start("A", "t", "").unwrap();
    for _ in 0..2 {
        let again = start_again(&scene.control, request("A", "t", ""));
        let Err(LookError::Fenced(fenced)) = again else { panic!("{again:?}") };
        assert_eq!((fenced.owner.as_str(), fenced.epoch.as_u64(), fenced.by.as_str()), ("B", 2, "A"));
    }
    assert_eq!(scene.entries(), "started reconciled started");
    // B goes on; and whoever starts as a process does takes it over.
    assert_eq!(start_again(&scene.control, request("B", "t", "")).unwrap().epoch.as_u64(), 2);
    assert_eq!(told(&scene.start("A", "t", "")), "epoch 3 seq 4 t/0@0 in_range");
    let unknown = StartRequest { group: Group::new("default", "none").unwrap(), ..request("A", "t", "") };
    assert!(matches!(start_again(&scene.control, unknown), Err(LookError::UnknownGroup(_))));
}

#[test]
fn a_dry_run_says_the_same_and_writes_nothing() {
    let scene = Scene::new(&["C t#1 0=0..520"]);
    let dry = StartRequest { dry_run: true, ..request("A", "t", "") };
    assert_eq!(told(&start(&scene.control, dry)), "epoch 1 seq 0 t/0@0 new_group");
    assert_eq!(scene.entries(), "");
}

#[test]
fn a_held_group_is_not_started_and_nobody_is_asked() {
    let scene = Scene::new(&["C t#1 0=0..520"]);
    scene.start("A", "t", "").unwrap();
    control::hold(&scene.control, &script::group(), "op", "mend the sink").unwrap();
    let held = told(&scene.start("A", "t", ""));
    assert!(held.starts_with("group g is on hold since ") && held.ends_with(" by op: mend the sink"), "{held}");
    let looked = look_while_running(&scene.control, &request("A", "t", ""), &BTreeSet::new(), None);
    assert!(matches!(looked, Err(LookError::Start(StartError::Held { .. }))));
}

#[test]
fn a_request_that_cannot_be_is_told_at_once() {
    let scene = Scene::new(&["C t#1 0=0..520"]);
    assert_eq!(told(&scene.start("A", "", "")), r#"topics "[]": a new group needs a topic or a pattern"#);
    assert_eq!(told(&scene.start("", "t", "")), r#"owner "": 0 bytes; it has 1 to 255"#);
    assert_eq!(
        told(&scene.start("A", "u", &given(5))),
        r#"new_group.offsets "t/0": of a topic that the start does not ask for"#
    );
}

#[test]
fn a_new_group_begins_at_what_the_broker_knows() {
    for policy in ["new_group=kafka", "new_group=2026-11-30T10:00:00Z"] {
        let scene = Scene::with(&["C t#1 0=0..520"], |broker, _| ScriptedBroker {
            firsts: Seen::Known("42".parse().unwrap()),
            ..broker
        });
        assert_eq!(told(&scene.start("A", "t", policy)), "epoch 1 seq 2 t/0@42 new_group");
    }
}

#[test]
fn without_a_broker_positions_are_unchecked() {
    let mut scene = Scene::new(&["C t#1 0=0..520"]);
    scene.start("A", "t", &given(500)).unwrap();
    scene.control.broker = None;
    assert_eq!(told(&scene.start("B", "", "")), "epoch 2 seq 3 t/0@500 unchecked");
    assert_eq!(told(&scene.start("B", "^t", "")), r#"topics "^t": a pattern needs a broker; name the topics"#);
}

#[test]
fn c15b_c18_a_running_consumer_learns_of_growth_expiry_and_recreation_in_one_call() {
    let scene = Scene::new(&["C t 0=0..520 1=0..9", "C t 0=510..520 1=0..9 2=0..3 u 0=4..9", "C t 0=0..800"]);
    let request = request("A", "^[tu]$", &given(500));
    start(&scene.control, request.clone()).unwrap();
    let assigned = BTreeSet::from([script::at("t/0"), script::at("t/1")]);
    let looked = look_while_running(&scene.control, &request, &assigned, None).unwrap();
    let shown: Vec<_> =
        looked.positions.iter().map(|s| format!("{}@{} {}", s.at, s.offset, s.verdict.as_str())).collect();
    assert_eq!(shown, ["t/0@510 head_out_of_range", "t/2@0 partition_added", "u/0@4 partition_added"]);
    assert_eq!((looked.epoch.as_u64(), looked.unsettled), (1, Vec::new()));
    let looked = look_while_running(&scene.control, &request, &assigned, Some(looked.batch)).unwrap();
    let shown: Vec<_> =
        looked.positions.iter().map(|s| format!("{}@{} {}", s.at, s.offset, s.verdict.as_str())).collect();
    assert_eq!(shown, ["t/0@0 topic_recreated"]);
    assert_eq!(looked.epoch.as_u64(), 2);
    assert_eq!(scene.entries(), "started reconciled reconciled partitions_added reconciled");
}

fn looks_twice(second: &str) -> (Scene, Looked) {
    // A topic has grown while another one was recreated, which the policy forbids.
    let scene = Scene::new(&["C t#1 0=0..520 u#2 0=0..9", "C t#1 0=0..520 1=4..9 u#3 0=0..3", second]);
    let request = request("A", "t u", "recreated=fail");
    start(&scene.control, request.clone()).unwrap();
    let assigned = BTreeSet::from([script::at("t/0"), script::at("u/0")]);
    let looked = look_while_running(&scene.control, &request, &assigned, None).unwrap();
    let shown: Vec<_> = looked.positions.iter().map(|start| format!("{}@{}", start.at, start.offset)).collect();
    assert_eq!(shown, ["t/1@4"]);
    assert_eq!((scene.position("t/1").as_u64(), scene.position("u/0").as_u64()), (4, 0));
    assert_eq!(scene.entries(), "started reconciled partitions_added");
    (scene, looked)
}

#[test]
fn a_second_look_that_is_refused_keeps_what_the_first_one_journaled() {
    let (_scene, looked) = looks_twice("D t#1 0=0..520 1=4..9 u#3 0=0..3");
    assert!(!looked.unsettled.is_empty());
}

#[test]
fn a_correction_that_the_policy_forbids_keeps_no_growth_from_being_journaled() {
    let (scene, looked) = looks_twice("C t#1 0=0..520 1=4..9 u#3 0=0..3");
    let refused: Vec<_> = looked.refused.iter().map(|finding| finding.verdict).collect();
    assert_eq!((refused, looked.unsettled), (vec![Verdict::TopicRecreated], Vec::new()));
    // The same in one look: nobody has to see twice that the log's start has passed the position.
    let looks = ["C t#1 0=0..9 u#2 0=0..9", "C t#1 0=5..9 u#2 0=0..9 1=0..3"];
    let scene = {
        drop(scene);
        Scene::new(&looks)
    };
    let request = request("A", "t u", "head=fail");
    start(&scene.control, request.clone()).unwrap();
    let assigned = BTreeSet::from([script::at("t/0"), script::at("u/0")]);
    for grown in [vec![script::at("u/1")], vec![]] {
        let looked = look_while_running(&scene.control, &request, &assigned, None).unwrap();
        assert_eq!(looked.positions.into_iter().map(|start| start.at).collect::<Vec<_>>(), grown);
        assert_eq!(looked.refused[0].verdict, Verdict::HeadOutOfRange);
    }
    assert_eq!(scene.entries(), "started reconciled partitions_added");
}
