//! The journal against a plain fold: whatever is done to it, sealed and reopened in between, its contents are those of
//! the entries that it acknowledged.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use proptest::prelude::*;
use tidelog::commit::{Commit, Refused};
use tidelog::entry::{
    Body, Cause, Correction, Draft, Entry, Finding, Hole, KafkaOutcome, Loss, Move, RolledBack, TopicChange, Verdict,
};
use tidelog::journal::{AsOf, CommitError, Journal, Options, Order};
use tidelog::offset::{
    BatchNumber, Epoch, Group, Isolation, Offset, OffsetRange, Seq, Timestamp, TopicId, TopicName, TopicPartition,
};
use tidelog::positions::{GroupState, Positions, State};

/// One thing done to the journal; small numbers choose among what is there.
#[derive(Debug, Clone)]
enum Op {
    Commit { group: u8, parts: Vec<(u8, i64, i64)>, key: Option<u8> },
    StaleCommit { group: u8 },
    Start { group: u8, owner: u8 },
    Grow { group: u8, part: u8, at: i64 },
    Move { group: u8, parts: Vec<(u8, i64)>, undoes: bool },
    Correct { group: u8, part: u8, to: i64, expired: bool },
    Recreate { group: u8, topic: u8, id: u8 },
    Steer { group: u8, what: u8 },
    Several { group: u8 },
    Seal,
    Reopen,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let group = 0u8..4;
    let parts = prop::collection::btree_map(0u8..8, (-3i64..4, 0i64..50), 1..6)
        .prop_map(|parts| parts.into_iter().map(|(part, (shift, size))| (part, shift, size)).collect());
    let op = prop_oneof![
        12 => (group.clone(), parts, prop::option::weighted(0.3, 0u8..4))
            .prop_map(|(group, parts, key)| Op::Commit { group, parts, key }),
        1 => group.clone().prop_map(|group| Op::StaleCommit { group }),
        2 => (group.clone(), 0u8..3).prop_map(|(group, owner)| Op::Start { group, owner }),
        1 => (group.clone(), 0u8..8, 0i64..40).prop_map(|(group, part, at)| Op::Grow { group, part, at }),
        2 => (group.clone(), prop::collection::btree_map(0u8..8, 0i64..200, 1..4), any::<bool>())
            .prop_map(|(group, parts, undoes)| Op::Move { group, parts: parts.into_iter().collect(), undoes }),
        1 => (group.clone(), 0u8..8, 0i64..200, any::<bool>())
            .prop_map(|(group, part, to, expired)| Op::Correct { group, part, to, expired }),
        1 => (group.clone(), 0u8..2, 1u8..9).prop_map(|(group, topic, id)| Op::Recreate { group, topic, id }),
        2 => (group.clone(), 0u8..6).prop_map(|(group, what)| Op::Steer { group, what }),
        1 => group.prop_map(|group| Op::Several { group }),
        1 => Just(Op::Seal),
        1 => Just(Op::Reopen),
    ];
    prop::collection::vec(op, 1..120)
}

fn group(number: u8) -> Group {
    // Names that a separator or an escape in a key would confuse.
    let (app, name) =
        [("default", "g"), ("default", "g/1"), ("a|b", "g"), ("a", "b|g\u{2603}%2F")][usize::from(number % 4)];
    Group::new(app, name).expect("legal names")
}

fn topic(number: u8) -> TopicName {
    TopicName::new(["orders", "orders-2"][usize::from(number % 2)]).expect("a legal name")
}

fn part(number: u8) -> (TopicName, u32) {
    (topic(number / 4), u32::from(number % 4))
}

fn offset(number: i64) -> Offset {
    Offset::new(number.max(0)).expect("not negative")
}

/// The journal under test beside what it must hold.
struct Run {
    dir: tempfile::TempDir,
    clock: Arc<AtomicI64>,
    journal: Option<Journal>,
    state: State,
    entries: Vec<Entry>,
}

impl Run {
    fn new() -> Run {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let clock = Arc::new(AtomicI64::new(1_700_000_000_000));
        let journal = Some(open(dir.path(), &clock));
        Run { dir, clock, journal, state: State::default(), entries: Vec::new() }
    }

    fn journal(&self) -> &Journal {
        self.journal.as_ref().expect("it is open between operations")
    }

    fn take(&mut self, appended: Vec<Entry>) {
        for entry in appended {
            self.state.apply(&entry);
            self.entries.push(entry);
        }
    }

    fn append(&mut self, drafts: Vec<Draft>) {
        let (appended, ()) =
            self.journal().decide::<_, Refused>(move |_| Ok((drafts, ()))).expect("the journal takes it");
        self.take(appended);
    }

    fn present(&self, number: u8) -> GroupState {
        self.state.groups.get(&group(number)).cloned().unwrap_or_default()
    }

    fn draft(&self, number: u8, raise: u64, body: Body) -> Draft {
        Draft { group: Some(group(number)), epoch: self.present(number).epoch.plus(raise), body }
    }

    fn moved(&self, number: u8, at: u8, to: i64, hole: bool) -> Move {
        let (topic, partition) = part(at);
        let present = self.present(number);
        let known = present.positions.get(&topic, partition);
        let new = offset(to);
        let mut holes: Vec<Hole> = known.map(|known| known.holes.clone()).unwrap_or_default();
        holes.retain(|hole| hole.until_offset <= new);
        if hole && to > 5 && holes.last().is_none_or(|last| last.until_offset.get() < to - 3) {
            holes.push(Hole { from_offset: offset(to - 2), until_offset: offset(to - 1), seq: self.state.seq });
        }
        let old = known.map(|known| known.position);
        let replaying_until = old.filter(|old| *old > new);
        let topic_id = present.positions.topics.get(&topic).and_then(|topic| topic.topic_id);
        Move { topic, partition, topic_id, old, new: Some(new), holes, replaying_until }
    }

    fn run(&mut self, op: &Op) {
        // The machine's clock jumps about, backwards too.
        let step = [-40, 0, 1, 7, 1000][self.entries.len() % 5];
        self.clock.fetch_add(step, Ordering::Relaxed);
        match op {
            Op::Commit { group: number, parts, key } => self.commit(*number, parts, *key),
            Op::StaleCommit { group: number } => {
                let epoch = self.present(*number).epoch;
                if epoch > Epoch::ZERO {
                    let stale = Epoch::new(epoch.get() - 1).expect("not negative");
                    let range = OffsetRange::new(topic(0), 0, offset(0), offset(1)).expect("a legal range");
                    let commit = Commit::new(group(*number), stale, Timestamp::from_millis(1), vec![range]);
                    let refused = self.journal().commit(commit.expect("a legal commit"));
                    assert!(matches!(refused, Err(CommitError::Refused(_))), "{refused:?}");
                }
            }
            Op::Start { group: number, owner } => {
                let isolation = Isolation::ReadUncommitted;
                let body = Body::Started { owner: format!("owner-{owner}"), isolation, kafka_group: None };
                self.append(vec![self.draft(*number, 1, body)]);
            }
            Op::Grow { group: number, part: at, at: position } => {
                let (topic, partition) = part(*at);
                if self.present(*number).positions.get(&topic, partition).is_none() {
                    let moves = vec![self.moved(*number, *at, *position, false)];
                    let correction = Correction { moves, ..Correction::default() };
                    let body = Body::PartitionsAdded { findings: Vec::new(), correction };
                    self.append(vec![self.draft(*number, 0, body)]);
                }
            }
            Op::Move { group: number, parts, undoes } => {
                let mut moves: Vec<Move> =
                    parts.iter().map(|(at, to)| self.moved(*number, *at, *to, to % 3 == 0)).collect();
                moves.sort_by_key(Move::topic_partition);
                let losses = moves.iter().filter_map(|moved| {
                    let (old, new) = (moved.old?, moved.new?);
                    (new > old).then(|| Loss {
                        topic: moved.topic.clone(),
                        partition: moved.partition,
                        from_offset: old,
                        until_offset: new,
                        cause: Cause::Skipped,
                    })
                });
                let losses = losses.collect();
                let body = Body::RolledBack(RolledBack {
                    plan: format!("p-{}", self.entries.len()),
                    target: "offsets".into(),
                    actor: "ops".into(),
                    reason: "test".into(),
                    undoes: self.present(*number).last_move.filter(|_| *undoes),
                    kafka: *undoes,
                    correction: Correction { moves, losses, ..Correction::default() },
                });
                self.append(vec![self.draft(*number, 1, body)]);
            }
            Op::Correct { group: number, part: at, to, expired } => {
                let moved = self.moved(*number, *at, *to, false);
                let finding = Finding {
                    topic: Some(moved.topic.clone()),
                    partition: Some(moved.partition),
                    verdict: Verdict::HeadOutOfRange,
                    position: moved.old,
                    earliest: moved.new,
                    latest: None,
                    start: moved.new,
                    loss: None,
                    detail: expired.then(|| "found in a test".to_owned()),
                };
                let lower = moved.old.is_some_and(|old| moved.new.is_some_and(|new| new < old));
                let cluster_id = expired.then(|| "cluster".to_owned());
                let correction = Correction { moves: vec![moved], cluster_id, ..Correction::default() };
                let body = Body::Reconciled { findings: vec![finding], correction };
                self.append(vec![self.draft(*number, u64::from(lower), body)]);
            }
            Op::Recreate { group: number, topic: which, id } => {
                let topic_id = TopicId::from_bytes([*id; 16]);
                let change = TopicChange { topic: topic(*which), topic_id, new_incarnation: true };
                let mut moved = self.moved(*number, which * 4, 0, false);
                (moved.topic_id, moved.replaying_until) = (topic_id, None);
                let correction = Correction { topics: vec![change], moves: vec![moved], ..Correction::default() };
                let body = Body::Reconciled { findings: Vec::new(), correction };
                self.append(vec![self.draft(*number, 1, body)]);
            }
            Op::Steer { group: number, what } => {
                let actor = || "ops".to_owned();
                let newest = self.state.seq;
                let body = match what {
                    0 => Body::Held { reason: "sink is down".into(), actor: actor() },
                    1 => Body::Released { actor: actor() },
                    2 => Body::Retired { topic: Some(topic(1)), actor: actor() },
                    3 => Body::Mark { name: format!("deploy {newest}"), actor: actor() },
                    4 => Body::LossAcknowledged { of: newest, actor: actor() },
                    _ => Body::KafkaResult {
                        of: newest,
                        partitions: vec![KafkaOutcome {
                            topic: topic(0),
                            partition: 0,
                            offset: Some(offset(7)),
                            error: Some("UNKNOWN_MEMBER_ID".into()),
                        }],
                    },
                };
                self.append(vec![self.draft(*number, 0, body)]);
            }
            Op::Several { group: number } => {
                let started =
                    Body::Started { owner: "several".into(), isolation: Isolation::ReadCommitted, kafka_group: None };
                let drafts = vec![
                    self.draft(*number, 1, started),
                    self.draft(*number, 1, Body::Mark { name: "after start".into(), actor: "ops".into() }),
                ];
                self.append(drafts);
            }
            Op::Seal => self.journal().seal().expect("a seal"),
            Op::Reopen => {
                let journal = self.journal.take().expect("it is open between operations");
                // Half of the time without a seal: what the log holds is replayed.
                if self.entries.len().is_multiple_of(2) {
                    journal.close().expect("a clean close");
                } else {
                    drop(journal);
                }
                self.journal = Some(open(self.dir.path(), &self.clock));
                self.compare();
            }
        }
    }

    fn commit(&mut self, number: u8, parts: &[(u8, i64, i64)], key: Option<u8>) {
        let present = self.present(number);
        let ranges: Vec<OffsetRange> = parts
            .iter()
            .map(|(at, shift, size)| {
                let (topic, partition) = part(*at);
                let position = present.positions.get(&topic, partition).map_or(10, |known| known.position.get());
                // Mostly where the position is; sometimes above (a hole), below (late or an overlap).
                let from = if shift.abs() == 3 { position + shift * 4 } else { position };
                OffsetRange::new(topic, partition, offset(from), offset(from.max(0) + size)).expect("a legal range")
            })
            .collect();
        let time = Timestamp::from_millis(self.clock.load(Ordering::Relaxed) - 500);
        let mut commit = Commit::new(group(number), present.epoch, time, ranges)
            .expect("each partition once")
            .with_earliest(TopicPartition::new(topic(0), 0), offset(4));
        if let Some(key) = key {
            commit = commit.with_key(format!("key-{key}")).expect("a legal key");
        }
        let before = self.state.seq;
        match self.journal().commit(commit) {
            Ok(receipt) if receipt.repeated => assert!(receipt.seq <= before),
            Ok(receipt) => {
                assert_eq!(receipt.seq, before.next());
                let entry = self.journal().entry(receipt.seq).expect("a read").expect("it was acknowledged");
                self.take(vec![entry]);
            }
            Err(CommitError::Refused(_)) => {}
            Err(CommitError::Unavailable(error)) => panic!("{error}"),
        }
    }

    /// Everything that can be asked, against the plain fold.
    fn compare(&self) {
        let journal = self.journal();
        assert_eq!(journal.with_state(State::clone), self.state);
        let newest_first: Vec<&Entry> = self.entries.iter().rev().collect();
        assert_eq!(walk(journal, None, Seq::ZERO, Order::Ascending).iter().collect::<Vec<_>>(), {
            self.entries.iter().collect::<Vec<_>>()
        });
        assert_eq!(walk(journal, None, Seq::MAX, Order::Descending).iter().collect::<Vec<_>>(), newest_first);
        let mut folds: BTreeMap<Group, AsOf> = BTreeMap::new();
        for entry in &self.entries {
            assert_eq!(journal.entry(entry.seq).expect("a read").as_ref(), Some(entry));
            let group = entry.group.clone().expect("these kinds have a group");
            let fold = folds.entry(group).or_insert_with(|| AsOf {
                seq: Seq::ZERO,
                recorded_at: Timestamp::default(),
                positions: Positions::default(),
            });
            (fold.seq, fold.recorded_at) = (entry.seq, entry.recorded_at);
            fold.positions.apply(entry);
            for (group, fold) in &folds {
                let as_of = journal.positions_as_of(group, entry.seq).expect("a read");
                assert_eq!(as_of.as_ref(), Some(fold), "{group} as of {}", entry.seq);
            }
        }
        for number in 0..4 {
            self.compare_group(&group(number));
        }
    }

    fn compare_group(&self, group: &Group) {
        let journal = self.journal();
        let of_group: Vec<&Entry> = self.entries.iter().filter(|entry| entry.group.as_ref() == Some(group)).collect();
        let middle = Seq::new(self.state.seq.get() / 2).expect("not negative");
        let from_middle: Vec<&Entry> = of_group.iter().copied().filter(|entry| entry.seq >= middle).collect();
        let walked = walk(journal, Some(group), middle, Order::Ascending);
        assert_eq!(walked.iter().collect::<Vec<_>>(), from_middle);
        let down: Vec<&Entry> = of_group.iter().rev().copied().filter(|entry| entry.seq <= middle).collect();
        let walked = walk(journal, Some(group), middle, Order::Descending);
        assert_eq!(walked.iter().collect::<Vec<_>>(), down);

        let number = |entry: &Entry| match &entry.body {
            Body::Batch(batch) => Some(batch.batch),
            _ => None,
        };
        let batches: Vec<&Entry> = of_group.iter().copied().filter(|entry| number(entry).is_some()).collect();
        let from = BatchNumber::new(batches.len() as i64 / 2).expect("not negative");
        for order in [Order::Ascending, Order::Descending] {
            let mut walked = Vec::new();
            let visited = journal.visit_batches(group, from, order, &mut |entry| {
                walked.push(entry);
                ControlFlow::Continue(())
            });
            visited.expect("a read");
            if order == Order::Descending {
                walked.reverse();
            }
            let expected: Vec<&Entry> = batches
                .iter()
                .copied()
                .filter(|entry| match order {
                    Order::Ascending => number(entry) >= Some(from),
                    Order::Descending => number(entry) <= Some(from),
                })
                .collect();
            assert_eq!(walked.iter().collect::<Vec<_>>(), expected, "{order:?} from {from}");
        }
        for entry in &of_group {
            for time in [entry.recorded_at, Timestamp::from_millis(entry.recorded_at.millis() - 1)] {
                let expected = of_group.iter().rev().find(|other| other.recorded_at <= time).map(|other| other.seq);
                assert_eq!(journal.seq_at(Some(group), time).expect("a read"), expected, "{time}");
            }
        }
        let oldest = journal.oldest(group).expect("a read");
        assert_eq!(oldest.as_ref(), of_group.first().copied());
        let missing = journal.batch(group, BatchNumber::new(batches.len() as i64 + 1).expect("not negative"));
        assert_eq!(missing.expect("a read"), None);
    }
}

fn open(dir: &Path, clock: &Arc<AtomicI64>) -> Journal {
    let clock = Arc::clone(clock);
    let mut options = Options::new(Arc::new(move || Timestamp::from_millis(clock.load(Ordering::Relaxed))));
    (options.create, options.segment_bytes) = (true, 1 << 16);
    Journal::open(dir, options).expect("the journal opens")
}

fn walk(journal: &Journal, group: Option<&Group>, from: Seq, order: Order) -> Vec<Entry> {
    let mut walked = Vec::new();
    let visited = journal.visit_entries(group, from, order, &mut |entry| {
        walked.push(entry);
        ControlFlow::Continue(())
    });
    visited.expect("a read");
    walked
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn contents_are_the_fold_of_what_was_acknowledged(ops in ops()) {
        let mut run = Run::new();
        for op in &ops {
            run.run(op);
        }
        run.compare();
        run.journal().seal().expect("a seal");
        run.compare();
    }
}
