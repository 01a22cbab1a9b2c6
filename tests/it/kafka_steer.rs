//! Starts and looks of a consumer, straight over the decision: what tests of the consumer steer by.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tidelog::broker::{Ask, Broker, TopicSelector};
use tidelog::entry::Verdict;
use tidelog::journal::{Journal, Options};
use tidelog::kafka::{
    ClientConfig, Config, Cut, Discovery, JournaledConsumer, KafkaBroker, Start, StartAt, Steer, SteerError,
};
use tidelog::offset::{Group, Isolation};
use tidelog::reconcile::{Decided, Decision, Holes, Observed, Occasion, Policy, Question, decide};

use crate::kafka_mock::clock;

pub struct TestSteer {
    journal: Journal,
    broker: KafkaBroker,
    group: Group,
    topics: Vec<TopicSelector>,
    owner: String,
    isolation: Isolation,
    second_look: Duration,
    /// The looks of the last while, oldest first.
    looks: Mutex<Vec<(Instant, Observed)>>,
}

impl TestSteer {
    fn observe(&self) -> Observed {
        let positions = self.journal.group(&self.group).map(|group| group.positions).unwrap_or_default();
        let ask = Ask { topics: self.topics.clone(), isolation: self.isolation, deadline: Duration::from_secs(5) };
        Observed { look: self.broker.look(&ask), positions }
    }

    fn decide(&self, observed: &Observed, earlier: Option<&Observed>, occasion: Occasion<'_>) -> Decision {
        let state = self.journal.group(&self.group);
        decide(&Question {
            group: &self.group,
            state: state.as_ref(),
            topics: &self.topics,
            observed,
            earlier,
            holes: &Holes::Looked(Vec::new()),
            firsts: &BTreeMap::new(),
            policy: &Policy::default(),
            occasion,
        })
    }

    fn write(&self, decided: Decided) -> Start {
        let drafts = decided.drafts;
        self.journal.decide(move |_| Ok::<_, Infallible>((drafts, ()))).expect("the journal takes it");
        let starts = decided.starts.into_iter().map(|start| StartAt {
            at: start.at,
            topic_id: start.topic_id,
            offset: start.offset,
            replaying_until: start.replaying_until,
        });
        let missing = decided.findings.iter().filter(|finding| finding.verdict == Verdict::TopicMissing);
        let problems = missing.map(|finding| format!("{:?}: {}", finding.topic, finding.verdict.as_str()));
        let unsettled = decided.unsettled.iter().map(ToString::to_string);
        Start { epoch: decided.epoch, starts: starts.collect(), problems: problems.chain(unsettled).collect() }
    }
}

impl Steer for TestSteer {
    fn start(&self) -> Result<Start, SteerError> {
        if let Some(hold) = self.journal.group(&self.group).and_then(|group| group.held) {
            return Err(SteerError::Held(hold.reason));
        }
        let occasion = Occasion::Start { owner: &self.owner, isolation: Some(self.isolation) };
        let mut earlier = None;
        for _ in 0..10 {
            let observed = self.observe();
            match self.decide(&observed, earlier.as_ref(), occasion) {
                Decision::LookAgain { .. } => {
                    earlier.get_or_insert(observed);
                    std::thread::sleep(self.second_look);
                }
                Decision::Refused { findings } => return Err(SteerError::Refused(format!("{findings:?}"))),
                Decision::Decided(decided) => return Ok(self.write(decided)),
            }
        }
        Err(SteerError::Unavailable("not settled".to_owned()))
    }

    fn look(&self, assigned: &BTreeSet<tidelog::offset::TopicPartition>) -> Result<Start, SteerError> {
        let observed = self.observe();
        let mut looks = self.looks.lock().expect("no panic inside");
        looks.retain(|(when, _)| when.elapsed() < self.second_look * 10);
        let earlier = looks.iter().find(|(when, _)| when.elapsed() >= self.second_look).map(|(_, look)| look.clone());
        looks.push((Instant::now(), observed.clone()));
        match self.decide(&observed, earlier.as_ref(), Occasion::Running { assigned, undoubted: None }) {
            Decision::LookAgain { unsettled } => Err(SteerError::Unavailable(format!("{unsettled:?}"))),
            Decision::Refused { findings } => Err(SteerError::Unavailable(format!("{findings:?}"))),
            Decision::Decided(decided) => Ok(self.write(decided)),
        }
    }
}

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
        }
    }

    pub fn steer(&self, owner: &str) -> Arc<dyn Steer> {
        Arc::new(TestSteer {
            journal: self.journal.clone(),
            broker: KafkaBroker::new(&self.client, clock()).expect("a client"),
            group: self.group.clone(),
            topics: self.topics.iter().map(|topic| topic.parse().expect("legal")).collect(),
            owner: owner.to_owned(),
            isolation: self.isolation,
            second_look: Duration::from_millis(500),
            looks: Mutex::default(),
        })
    }

    pub fn begin(&self, owner: &str) -> JournaledConsumer {
        let config = Config {
            client: self.client.clone(),
            group: self.group.clone(),
            owner: owner.to_owned(),
            cut: self.cut,
            discovery: self.discovery,
            clock: clock(),
        };
        JournaledConsumer::begin(config, self.journal.clone(), self.steer(owner)).expect("it begins")
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
            Err(tidelog::kafka::CommitFailed::Moved(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    seen
}
