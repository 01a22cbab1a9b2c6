//! A group of a test: its journal, its broker, its consumers.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidelog::control::{Control, Limits, Mirror, StartRequest};
use tidelog::journal::{Journal, Options};
use tidelog::kafka::{ClientConfig, CommitFailed, Config, Cut, Discovery, JournaledConsumer, KafkaBroker};
use tidelog::offset::{Group, Isolation};
use tidelog::reconcile::Policy;

use crate::kafka_mock::clock;

/// A group of a test.
#[derive(Clone)]
pub struct Setup {
    pub client: ClientConfig,
    pub journal: Journal,
    pub group: Group,
    pub topics: Vec<String>,
    pub cut: Cut,
    pub discovery: Discovery,
    pub isolation: Isolation,
    pub policy: Policy,
}

impl Setup {
    pub fn new(client: ClientConfig, group: &str, topics: &[&str]) -> Setup {
        let mut options = Options::new(clock());
        options.create = true;
        let dir = tempfile::tempdir().expect("a directory").keep();
        Setup {
            client,
            journal: Journal::open(Path::new(&dir), options).expect("a journal"),
            group: Group::new("default", group).expect("legal"),
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            cut: Cut { max_wait: Duration::from_millis(100), ..Cut::default() },
            discovery: Discovery::Every(Duration::from_millis(500)),
            isolation: Isolation::ReadCommitted,
            policy: Policy::default(),
        }
    }

    pub fn control(&self) -> Control {
        Control {
            journal: self.journal.clone(),
            broker: Some(Arc::new(KafkaBroker::new(&self.client, clock()).expect("a client"))),
            limits: Limits { deadline: Duration::from_secs(10), second_look: Duration::from_millis(500) },
            clock: clock(),
            mirror: Mirror::default(),
        }
    }

    pub fn request(&self, owner: &str) -> StartRequest {
        StartRequest {
            group: self.group.clone(),
            topics: self.topics.iter().map(|topic| topic.parse().expect("legal")).collect(),
            owner: owner.to_owned(),
            policy: self.policy.clone(),
            isolation: Some(self.isolation),
            kafka_group: None,
            dry_run: false,
        }
    }

    pub fn begin(&self, owner: &str) -> JournaledConsumer {
        let config = Config { client: self.client.clone(), cut: self.cut, discovery: self.discovery };
        JournaledConsumer::begin(config, self.control(), self.request(owner)).expect("it begins")
    }

    pub fn position(&self, topic: &str, partition: u32) -> Option<i64> {
        let group = self.journal.group(&self.group)?;
        group.positions.get(&topic.parse().expect("legal"), partition).map(|state| state.position.get())
    }
}

/// Reads and commits until `records` records came; returns each as `topic/partition@offset`, in order.
pub fn consume(consumer: &JournaledConsumer, records: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let until = Instant::now() + crate::wait::DEADLINE;
    while seen.len() < records {
        assert!(Instant::now() < until, "only {seen:?} within the deadline; {:?}", consumer.health());
        let Some(batch) = consumer.next_batch(Duration::from_millis(200)).expect("it goes on") else { continue };
        let batch_seen: Vec<String> = batch.records().map(|record| format!("{record:?}")).collect();
        match consumer.commit(batch) {
            Ok(_) => seen.extend(batch_seen),
            Err(CommitFailed::Moved(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    seen
}
