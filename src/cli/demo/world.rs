//! What the demo plays with: a mock cluster, a journal, a group of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::broker::{Broker, KafkaGroup, TopicSelector};
use crate::cli::exit::Failure;
use crate::cli::kafka::broker;
use crate::cli::{opening, times};
use crate::control::{Control, StartRequest, Started};
use crate::journal::Journal;
use crate::kafka::{
    Batch, ClientConfig, CommitFailed, Config, Cut, Discovery, JournaledConsumer, OwnTopics, mock::Mock,
};
use crate::offset::{BatchNumber, Group, Offset, TopicName, TopicPartition};
use crate::reconcile::Policy;

/// Partitions of the first topic.
pub const PARTITIONS: u32 = 3;
/// Records of a batch.
pub const BATCH: usize = 300;

/// The mock cluster, the journal and the group.
pub struct World {
    pub group: Group,
    pub orders: TopicName,
    pub late: TopicName,
    pub control: Control,
    client: ClientConfig,
    // Last, as the clients talk to it until they end.
    cluster: Cluster,
}

/// Where the records are.
enum Cluster {
    /// librdkafka's mock, inside this process.
    Mock(Mock),
    /// A real one, with topics of our own.
    Real(OwnTopics),
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Cluster::Real(topics) = self
            && let Err(error) = topics.remove()
        {
            tracing::warn!("{error}; remove it by hand");
        }
    }
}

/// A committed batch, for a line.
pub struct Committed {
    pub number: BatchNumber,
    pub ranges: String,
    pub records: usize,
    /// The first offset of the batch, by partition.
    pub from: Vec<(TopicPartition, Offset)>,
}

impl World {
    /// A new cluster and a new group over `journal`: the mock's id differs each time, so groups of earlier runs belong to
    /// clusters that are no more.
    pub fn new(journal: Journal, real: Option<ClientConfig>) -> Result<World, Failure> {
        let (cluster, client, prefix) = match real {
            None => {
                let mock = Mock::new(1).map_err(broken)?;
                let client = mock.config();
                (Cluster::Mock(mock), client, None)
            }
            Some(client) => (Cluster::Real(OwnTopics::new(&client).map_err(broken)?), client, Some("tidelog-demo")),
        };
        let broker: Arc<dyn Broker> = broker(&client)?;
        let mut random = [0; 3];
        // Without randomness the time alone names the group.
        let _ = getrandom::fill(&mut random);
        let name = format!("demo-{}-{:02x}{:02x}{:02x}", times::now().millis() / 1000, random[0], random[1], random[2]);
        // On a real cluster a name that nobody else has; alone, a short one.
        let orders = match prefix {
            None => TopicName::new("orders")?,
            Some(prefix) => TopicName::new(&format!("{prefix}-{}-orders", name.trim_start_matches("demo-")))?,
        };
        let late = TopicName::new(&format!("{orders}-returned"))?;
        let world = World {
            group: Group::new(Group::DEFAULT_APP, &name)?,
            orders,
            late,
            control: opening::control(journal, Some(broker)),
            client,
            cluster,
        };
        world.create(&world.orders, PARTITIONS as u16)?;
        Ok(world)
    }

    /// The brokers, as a client names them.
    pub fn brokers(&self) -> String {
        self.client.brokers().to_owned()
    }

    /// The topics of a real cluster, which can do more than the mock.
    pub fn real(&self) -> Option<&OwnTopics> {
        match &self.cluster {
            Cluster::Mock(_) => None,
            Cluster::Real(topics) => Some(topics),
        }
    }

    fn create(&self, topic: &TopicName, partitions: u16) -> Result<(), Failure> {
        match &self.cluster {
            Cluster::Mock(mock) => mock.create_topic(topic, partitions).map_err(broken),
            Cluster::Real(topics) => topics.create(topic, partitions).map_err(broken),
        }
    }

    /// Makes the topic that the pattern takes in later.
    pub fn create_late(&self) -> Result<(), Failure> {
        self.create(&self.late, 1)
    }

    /// What the group reads.
    pub fn pattern(&self) -> String {
        format!("^{}.*", self.orders)
    }

    /// Writes `count` records of about `bytes` bytes.
    pub fn produce(&self, at: &TopicPartition, count: u32, bytes: usize) -> Result<(), Failure> {
        let filler = "x".repeat(bytes);
        let values: Vec<String> =
            (0..count).map(|number| format!("{{\"order\":{number},\"note\":\"{filler}\"}}")).collect();
        match &self.cluster {
            Cluster::Mock(mock) => mock.produce(at, values.iter().map(|value| (None, value.as_str()))).map_err(broken),
            Cluster::Real(topics) => topics.produce(at, &values).map_err(broken),
        }
    }

    /// Starts the group as a new process would, and begins to read.
    pub fn start(&self, discovery: Duration) -> Result<(Started, JournaledConsumer), Failure> {
        let request = StartRequest {
            group: self.group.clone(),
            topics: vec![self.pattern().parse::<TopicSelector>()?],
            owner: format!("{}@demo:{}", self.group.group(), Instant::now().elapsed().as_nanos() + self.newest()),
            policy: Policy::default(),
            isolation: None,
            // The demo leaves nothing in a cluster.
            kafka_group: Some(KafkaGroup::Off),
            dry_run: false,
        };
        let config = Config {
            client: self.client.clone(),
            cut: Cut {
                max_records: std::num::NonZeroUsize::new(BATCH).unwrap_or(std::num::NonZeroUsize::MIN),
                max_wait: Duration::from_millis(200),
                ..Cut::default()
            },
            discovery: Discovery::Every(discovery),
        };
        let consumer = JournaledConsumer::begin(config, self.control.clone(), request)?;
        Ok((consumer.started().clone(), consumer))
    }

    fn newest(&self) -> u128 {
        u128::from(self.control.journal.with_state(|state| state.seq).as_u64())
    }

    /// The next batch, if one comes in time.
    pub fn next(&self, consumer: &JournaledConsumer, wait: Duration) -> Result<Option<Batch>, Failure> {
        consumer.next_batch(wait).map_err(broken)
    }

    /// Commits a batch; none if the group was moved meanwhile.
    pub fn commit(&self, consumer: &JournaledConsumer, batch: Batch) -> Result<Option<Committed>, Failure> {
        let ranges: Vec<String> = batch.ranges().iter().map(ToString::to_string).collect();
        let from = batch.ranges().iter().map(|range| (range.topic_partition(), range.from_offset())).collect();
        let records = batch.len();
        match consumer.commit(batch) {
            Ok(receipt) => Ok(Some(Committed { number: receipt.batch, ranges: ranges.join(", "), records, from })),
            Err(CommitFailed::Moved(_)) => Ok(None),
            Err(error) => Err(broken(error)),
        }
    }

    /// Where the group continues; 0 for a partition that it has not.
    pub fn position(&self, at: &TopicPartition) -> Offset {
        let group = self.control.journal.group(&self.group);
        let position = group.and_then(|group| group.positions.get(&at.topic, at.partition).map(|p| p.position));
        position.unwrap_or_default()
    }
}

/// What must not happen in the demo.
pub fn broken(error: impl ToString) -> Failure {
    Failure::Broken(error.to_string())
}
