//! Scripts: what happens to a few groups, as entries.

use proptest::prelude::*;

use crate::commit::{self, Checked, Commit};
use crate::entry::*;
use crate::journal::codec::puts;
use crate::journal::store::Sealer;
use crate::offset::*;
use crate::positions::State;
use crate::results::Puts;

/// One step; numbers are brought into range when it is played.
#[derive(Debug, Clone)]
pub enum Step {
    /// A batch: partitions, how far from the position it begins, how much it reads.
    Commit { group: usize, picks: Vec<(u32, i64, u64)>, key: bool, behind: i64 },
    /// A batch over this many partitions.
    Wide { group: usize, partitions: u32 },
    /// An entry of another kind.
    Other { group: usize, kind: usize, amount: u64 },
    /// What was pushed is sealed.
    Seal,
    /// The store is closed, with what is not sealed, and opened again.
    Reopen,
}

pub fn steps(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    let pick = (0u32..6, prop_oneof![8 => Just(0i64), 1 => -50..50i64], prop_oneof![0u64..1000, 0..1u64 << 40]);
    let commit = (0usize..3, proptest::collection::vec(pick, 1..10), any::<bool>(), 0i64..100_000)
        .prop_map(|(group, picks, key, behind)| Step::Commit { group, picks, key, behind });
    let step = prop_oneof![
        80 => commit,
        1 => (0usize..3, 1000u32..5000).prop_map(|(group, partitions)| Step::Wide { group, partitions }),
        10 => (0usize..4, 0usize..13, 0u64..1000).prop_map(|(group, kind, amount)| Step::Other { group, kind, amount }),
        3 => Just(Step::Seal),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, length)
}

pub fn group(index: usize) -> Group {
    Group::new(["default", "a|b", "c/d", "never"][index], "g %1").unwrap()
}

pub fn topic(index: u32) -> TopicName {
    TopicName::new(["zeta", "orders", "a.b"][index as usize % 3]).unwrap()
}

fn offset(number: i64) -> Offset {
    Offset::new(number.max(0)).unwrap()
}

/// Keys that sort and begin like each other.
pub const KEYS: [&[u8]; 8] = [b"\0", b"\0\xff", b"a", b"a\0", b"a\0\0", b"a\x01", b"b", &[0xff; 255]];

/// The results that `entry` has, always the same: half of the batches have some, a few have many, or large ones.
pub fn puts_of(entry: &Entry) -> Puts {
    let (seq, mut puts) = (entry.seq.as_u64(), Puts::new());
    if !matches!(entry.body, Body::Batch(_)) || seq.is_multiple_of(2) {
        return puts;
    }
    for (number, key) in KEYS.into_iter().enumerate().filter(|(number, _)| (seq / 2 + *number as u64).is_multiple_of(3))
    {
        let done = match seq % 7 {
            0 => puts.remove(key),
            // Does not compress: several values.
            1 if number == 2 => {
                let mut mixed = seq;
                let next = |_| {
                    mixed = mixed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    (mixed >> 56) as u8
                };
                puts.put(key, (0..9_000).map(next).collect::<Vec<_>>())
            }
            _ => puts.put(key, format!("{number} of {seq} {}", "x".repeat(seq as usize % 200))),
        };
        done.unwrap();
    }
    if seq % 101 == 3 {
        // More than one list takes, and no two of them alike.
        for number in 0..700u64 {
            puts.put(format!("{:04x} of many", number * 89), (number * seq).to_be_bytes()).unwrap();
        }
    }
    puts
}

/// Takes an entry into the store, with its results.
pub fn push(sealer: &mut Sealer, entry: &Entry) {
    sealer.push(entry, &puts::encode(&puts_of(entry))).unwrap();
}

/// The journal that a script writes.
#[derive(Default)]
pub struct Writer {
    pub state: State,
    pub entries: Vec<Entry>,
}

impl Writer {
    /// Plays a step, if it is one that writes and is possible.
    pub fn play(&mut self, step: &Step) {
        match step {
            Step::Commit { group: index, picks, key, behind } => {
                let state = self.state.groups.get(&group(*index)).cloned().unwrap_or_default();
                let mut ranges: Vec<OffsetRange> = Vec::new();
                for (p, away, size) in picks {
                    let (topic, partition) = (topic(*p), p / 3);
                    let position = state.positions.get(&topic, partition).map_or(7, |p| p.position.get());
                    let from = offset(position + away);
                    let range = OffsetRange::new(topic, partition, from, from.plus(*size)).unwrap();
                    ranges.retain(|other| other.topic_partition() != range.topic_partition());
                    ranges.push(range);
                }
                let key = key.then(|| format!("key-{}", self.entries.len()));
                self.commit(group(*index), ranges, key, *behind);
            }
            Step::Wide { group: index, partitions } => {
                let state = self.state.groups.get(&group(*index)).cloned().unwrap_or_default();
                let range = |partition| {
                    let from =
                        state.positions.get(&topic(0), partition).map_or(offset(5), |partition| partition.position);
                    let size = u64::from(partition).wrapping_mul(0x9e37_79b9) >> 8 & 0xffff;
                    OffsetRange::new(topic(0), partition, from, from.plus(size)).unwrap()
                };
                self.commit(group(*index), (0..*partitions).map(range).collect(), None, 3);
            }
            Step::Other { group: index, kind, amount } => {
                if let Some(body) = self.other(*index, *kind, *amount) {
                    let group = (!matches!(body, Body::Pruned { .. })).then(|| group(*index));
                    let epoch = group.as_ref().and_then(|g| self.state.groups.get(g)).map_or(Epoch::ZERO, |g| g.epoch);
                    let raises = matches!(body, Body::Started { .. } | Body::RolledBack(_));
                    self.append(group, if raises { epoch.next() } else { epoch }, body);
                }
            }
            Step::Seal | Step::Reopen => {}
        }
    }

    fn commit(&mut self, group: Group, ranges: Vec<OffsetRange>, key: Option<String>, behind: i64) {
        if !self.state.groups.contains_key(&group) {
            let started =
                Body::Started { owner: "me".to_owned(), isolation: Isolation::ReadCommitted, kafka_group: None };
            self.append(Some(group.clone()), Epoch::ZERO.next(), started);
        }
        let state = &self.state.groups[&group];
        let time = Timestamp::from_millis(self.state.recorded_at.millis() + 500 - behind);
        let id = TopicId::from_bytes([9; 16]).unwrap();
        let mut commit = Commit::new(group.clone(), state.epoch, time, ranges).unwrap();
        if state.positions.batch.as_u64() < 3 {
            commit = commit
                .with_topic_id(topic(1), state.positions.topics.get(&topic(1)).and_then(|t| t.topic_id).unwrap_or(id));
            commit = commit.with_earliest(TopicPartition::new(topic(1), 0), offset(3));
        }
        if let Some(key) = key {
            commit = commit.with_key(key).unwrap();
        }
        if let Ok(Checked::Append(draft)) = commit::check(&self.state, &commit) {
            self.append(draft.group, draft.epoch, draft.body);
        }
    }

    fn append(&mut self, group: Option<Group>, epoch: Epoch, body: Body) {
        let seq = self.state.seq.next();
        // Several entries share a time; now and then the machine's clock differs.
        let base = self.state.recorded_at.millis().max(1_700_000_000_000);
        let recorded_at = Timestamp::from_millis(base + (seq.get() % 3) * 7);
        let machine_clock = Timestamp::from_millis(recorded_at.millis() - (seq.get() % 11 / 10) * 5000);
        let entry = Entry { seq, recorded_at, machine_clock, group, epoch, body };
        self.state.apply(&entry);
        self.entries.push(entry);
    }

    fn other(&self, index: usize, kind: usize, amount: u64) -> Option<Body> {
        let (actor, reason) = ("op".to_owned(), "why".to_owned());
        let state = self.state.groups.get(&group(index));
        let correction = || state.map(|state| correction(state, amount)).unwrap_or_default();
        let finding = Finding {
            topic: Some(topic(0)),
            partition: Some(1),
            verdict: Verdict::HeadOutOfRange,
            position: None,
            earliest: Some(offset(amount as i64)),
            latest: None,
            start: None,
            loss: None,
            detail: Some("x".repeat(amount as usize * 10)),
        };
        Some(match kind {
            0 => {
                Body::Started { owner: format!("o{amount}"), isolation: Isolation::ReadUncommitted, kafka_group: None }
            }
            1 => Body::Reconciled { findings: vec![finding; 3], correction: correction() },
            2 => Body::PartitionsAdded { findings: vec![finding], correction: correction() },
            3 | 4 => Body::RolledBack(RolledBack {
                plan: format!("p{amount}"),
                target: "t".to_owned(),
                actor,
                reason,
                undoes: None,
                kafka: false,
                correction: correction(),
            }),
            5 => Body::KafkaResult { of: Seq::ZERO.next(), partitions: Vec::new() },
            6 => Body::Held { reason, actor },
            7 | 8 => Body::Released { actor },
            9 => Body::Mark { name: "m".to_owned(), actor },
            10 => Body::LossAcknowledged { of: Seq::try_from(amount % self.state.seq.as_u64().max(1)).unwrap(), actor },
            11 => Body::Imported { source: "s".to_owned(), correction: correction() },
            _ => Body::Pruned { through: Seq::ZERO, actor, groups: Vec::new() },
        })
    }
}

/// Moves each partition somewhere; now and then a topic is another one afterwards, or a partition gone.
fn correction(state: &crate::positions::GroupState, amount: u64) -> Correction {
    let mut correction = Correction::default();
    if amount.is_multiple_of(5) {
        let topic_id = TopicId::from_bytes([amount as u8 | 1; 16]);
        correction.topics.push(TopicChange { topic: topic(amount as u32), topic_id, new_incarnation: true });
    }
    for (at, _, partition) in state.positions.iter().take(100) {
        let new = offset(partition.position.get() - amount as i64);
        let hole = Hole { from_offset: offset(0), until_offset: new, seq: Seq::ZERO.next() };
        correction.moves.push(Move {
            topic: at.topic,
            partition: at.partition,
            topic_id: None,
            old: Some(partition.position),
            new: (!amount.is_multiple_of(7) || at.partition > 0).then_some(new),
            holes: if amount.is_multiple_of(3) && new > Offset::ZERO { vec![hole] } else { Vec::new() },
            replaying_until: Some(partition.position),
        });
    }
    correction
}

impl Writer {
    /// A small batch of `group`.
    pub fn commit_one(&mut self, group: Group, round: u32) {
        let from = offset(i64::from(round) * 10);
        let range = OffsetRange::new(topic(round), round, from, from.plus(10)).unwrap();
        self.commit(group, vec![range], None, 0);
    }
}
