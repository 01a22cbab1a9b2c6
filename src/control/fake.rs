//! A journal of one group, a clock that is set by hand, and a fake broker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::broker::{Ask, Broker, Look, Member, PartitionLook, Seen, TopicLook, Untold};
use crate::commit::{Commit, Receipt};
use crate::control::{Control, Limits, Mirror};
use crate::entry::{Body, Correction, Draft, Move, TopicChange};
use crate::journal::{Clock, CommitError, Durability, Journal, Options};
use crate::offset::{Epoch, Group, Offset, OffsetRange, Timestamp, TopicId, TopicName, TopicPartition};

pub const DEADLINE: Duration = Duration::from_millis(400);

pub fn time(hours: &str) -> Timestamp {
    format!("2026-11-30T{hours}:00Z").parse().unwrap()
}

fn topic(name: &str) -> TopicName {
    name.parse().unwrap()
}

fn topic_id(number: u8) -> TopicId {
    TopicId::from_bytes([number; 16]).unwrap()
}

fn offset(number: u64) -> Offset {
    Offset::try_from(number).unwrap()
}

pub struct World {
    pub control: Control,
    pub broker: Arc<FakeBroker>,
    pub group: Group,
    clock: Arc<AtomicI64>,
    _dir: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let millis = Arc::new(AtomicI64::new(time("09:00").millis()));
        let told = Arc::clone(&millis);
        let clock: Clock = Arc::new(move || Timestamp::from_millis(told.load(Ordering::Relaxed)));
        let mut options = Options::new(Arc::clone(&clock));
        options.create = true;
        options.durability = Durability::Process;
        let journal = Journal::open(dir.path(), options).unwrap();
        let broker = Arc::new(FakeBroker::default());
        let limits = Limits { deadline: DEADLINE, second_look: Duration::ZERO };
        let control = Control { journal, broker: Some(broker.clone()), limits, clock, mirror: Mirror::default() };
        World { control, broker, group: Group::new("default", "g").unwrap(), clock: millis, _dir: dir }
    }

    pub fn at(&self, hours: &str) {
        self.clock.store(time(hours).millis(), Ordering::Relaxed);
    }

    /// Brings in a topic of one partition, at `position`; the broker has 1,000 records of it.
    pub fn start(&self, name: &str, position: u64) {
        let name = topic(name);
        self.broker.topics.lock().unwrap().insert(name.clone(), (topic_id(1), 0, 1_000));
        let change = TopicChange { topic: name.clone(), topic_id: Some(topic_id(1)), new_incarnation: false };
        let first = Move {
            topic: name,
            partition: 0,
            topic_id: Some(topic_id(1)),
            old: None,
            new: Some(offset(position)),
            holes: Vec::new(),
            replaying_until: None,
        };
        let correction = Correction { topics: vec![change], moves: vec![first], ..Correction::default() };
        let body = Body::Reconciled { findings: Vec::new(), correction };
        let group = Some(self.group.clone());
        let draft = Draft { group, epoch: Epoch::ZERO.next(), body };
        self.control.journal.decide(move |_| Ok::<_, ()>((vec![draft], ()))).unwrap();
    }

    pub fn position(&self, name: &str) -> u64 {
        let group = self.control.journal.group(&self.group).unwrap();
        group.positions.get(&topic(name), 0).unwrap().position.as_u64()
    }

    pub fn epoch(&self) -> Epoch {
        self.control.journal.group(&self.group).unwrap().epoch
    }

    /// Commits from the position on; whether it was taken.
    pub fn commit_under(&self, epoch: Epoch, name: &str, until: u64) -> bool {
        self.commit(epoch, name, self.position(name).min(until), until).is_ok()
    }

    pub fn commit_range(&self, name: &str, from: u64, until: u64) -> Result<Receipt, CommitError> {
        self.commit(self.epoch(), name, from, until)
    }

    fn commit(&self, epoch: Epoch, name: &str, from: u64, until: u64) -> Result<Receipt, CommitError> {
        let range = OffsetRange::new(topic(name), 0, offset(from), offset(until)).unwrap();
        let commit = Commit::new(self.group.clone(), epoch, (self.control.clock)(), vec![range]).unwrap();
        self.control.journal.commit(commit)
    }

    pub fn commit_to(&self, name: &str, until: u64) {
        assert!(self.commit_under(self.epoch(), name, until), "a commit of the script is refused");
    }
}

/// Says what it is told. Each topic has one partition.
#[derive(Default)]
pub struct FakeBroker {
    topics: Mutex<BTreeMap<TopicName, (TopicId, u64, u64)>>,
    times: Mutex<BTreeMap<Timestamp, u64>>,
    silent: Mutex<bool>,
    unknown: AtomicUsize,
    /// The groups of Kafka.
    pub kafka: Mutex<FakeGroups>,
    /// How often it was looked at.
    pub looks: AtomicUsize,
}

/// What it holds of Kafka's own groups.
pub struct FakeGroups {
    pub committed: BTreeMap<(String, TopicPartition), Offset>,
    pub members: Result<Vec<Member>, Untold>,
    pub cluster_id: Seen<String>,
    /// Topics whose offsets it refuses to set.
    pub refuses: BTreeSet<TopicName>,
    /// How long each question about its groups may take.
    pub waits: Vec<Duration>,
    /// The offsets of each request to set some.
    pub writes: Vec<Vec<u64>>,
    /// What happens while the next of them is under way.
    pub during: Option<Box<dyn FnOnce() + Send>>,
}

impl Default for FakeGroups {
    fn default() -> Self {
        let (committed, refuses, writes, waits) = Default::default();
        let members = Ok(Vec::new());
        FakeGroups { committed, members, cluster_id: Seen::Absent, refuses, waits, writes, during: None }
    }
}

impl FakeBroker {
    /// What Kafka holds as committed for group `g`.
    pub fn held(&self, name: &str) -> Option<u64> {
        let at = TopicPartition::new(topic(name), 0);
        self.kafka.lock().unwrap().committed.get(&("g".to_owned(), at)).map(|offset| offset.as_u64())
    }

    pub fn log(&self, name: &str, earliest: u64, latest: u64) {
        let mut topics = self.topics.lock().unwrap();
        let found = topics.get_mut(&topic(name)).unwrap();
        *found = (found.0, earliest, latest);
    }

    pub fn recreate(&self, name: &str, id: u8) {
        self.topics.lock().unwrap().insert(topic(name), (topic_id(id), 0, 1_000));
    }

    pub fn delete(&self, name: &str) {
        self.topics.lock().unwrap().remove(&topic(name));
    }

    pub fn record_time(&self, hours: &str, first: u64) {
        self.times.lock().unwrap().insert(time(hours), first);
    }

    /// From now on nothing is answered.
    pub fn silent(&self) {
        *self.silent.lock().unwrap() = true;
    }

    /// No partition has a leader for so many looks.
    pub fn unknown_for(&self, looks: usize) {
        self.unknown.store(looks, Ordering::Relaxed);
    }
}

fn failed<T>() -> Seen<T> {
    Seen::Failed("timed out".to_owned())
}

impl Broker for FakeBroker {
    fn look(&self, ask: &Ask) -> Look {
        self.looks.fetch_add(1, Ordering::Relaxed);
        let silent = *self.silent.lock().unwrap();
        let unknown = self.unknown.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        let topics = self.topics.lock().unwrap();
        let seen = |name: &TopicName| match topics.get(name) {
            _ if silent => TopicLook { id: failed(), partitions: failed() },
            None => TopicLook { id: Seen::Absent, partitions: Seen::Absent },
            Some((id, earliest, latest)) => {
                let end = |end: u64| if unknown.is_ok() { failed() } else { Seen::Known(offset(end)) };
                let (earliest, latest, readable_end) = (end(*earliest), end(*latest), end(*latest));
                let partition = PartitionLook { earliest, latest, readable_end };
                TopicLook { id: Seen::Known(*id), partitions: Seen::Known([(0, partition)].into()) }
            }
        };
        let asked = ask.topics.iter().map(|selector| topic(&selector.to_string()));
        Look {
            taken_at: Timestamp::default(),
            brokers: "fake:9092".to_owned(),
            cluster_id: Seen::Absent,
            topics: asked.map(|name| (name.clone(), seen(&name))).collect(),
            listing: Seen::Known(()),
        }
    }

    fn offsets_at(
        &self,
        partitions: &BTreeSet<TopicPartition>,
        time: Timestamp,
        _deadline: Duration,
    ) -> BTreeMap<TopicPartition, Seen<Offset>> {
        let found = self.times.lock().unwrap().get(&time).map_or(Seen::Absent, |first| Seen::Known(offset(*first)));
        partitions.iter().map(|at| (at.clone(), found.clone())).collect()
    }

    fn committed(
        &self,
        kafka_group: &str,
        partitions: &BTreeSet<TopicPartition>,
        deadline: Duration,
    ) -> BTreeMap<TopicPartition, Seen<Offset>> {
        let mut kafka = self.kafka.lock().unwrap();
        kafka.waits.push(deadline);
        let held = |at: &TopicPartition| kafka.committed.get(&(kafka_group.to_owned(), at.clone())).copied();
        partitions.iter().map(|at| (at.clone(), held(at).map_or(Seen::Absent, Seen::Known))).collect()
    }

    fn commit(
        &self,
        kafka_group: &str,
        offsets: &BTreeMap<TopicPartition, Offset>,
        deadline: Duration,
    ) -> BTreeMap<TopicPartition, Result<(), String>> {
        let during = self.kafka.lock().unwrap().during.take();
        during.into_iter().for_each(|during| during());
        let mut kafka = self.kafka.lock().unwrap();
        kafka.waits.push(deadline);
        kafka.writes.push(offsets.values().map(|offset| offset.as_u64()).collect());
        let mut done = BTreeMap::new();
        for (at, offset) in offsets {
            let refused = kafka.refuses.contains(&at.topic);
            if !refused {
                kafka.committed.insert((kafka_group.to_owned(), at.clone()), *offset);
            }
            done.insert(at.clone(), if refused { Err("unknown member".to_owned()) } else { Ok(()) });
        }
        done
    }

    fn cluster_id(&self, deadline: Duration) -> Seen<String> {
        let mut kafka = self.kafka.lock().unwrap();
        kafka.waits.push(deadline);
        kafka.cluster_id.clone()
    }

    fn members(&self, _kafka_group: &str, deadline: Duration) -> Result<Vec<Member>, Untold> {
        let mut kafka = self.kafka.lock().unwrap();
        kafka.waits.push(deadline);
        kafka.members.clone()
    }

    fn brokers(&self) -> &str {
        "fake:9092"
    }
}
