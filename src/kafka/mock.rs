//! librdkafka's mock cluster: a few real sockets on loopback, in milliseconds and without Java; for a demonstration and for
//! tests.
//!
//! It has produce, fetch, metadata, offsets of begin and end, and group offsets. It has none of the admin requests that
//! make or change something (a call waits out its time-out), a topic can't grow or be deleted, a look-up by time
//! finds nothing, and the log's start moves only past 5 MiB or 100,000 records of a partition.

use std::time::Duration;

use rdkafka::config::ClientConfig as Native;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer as _};

use super::ClientConfig;
use crate::offset::{TopicName, TopicPartition};

/// A request of the mock failed.
///
/// ```
/// use tidelog::kafka::mock::Mock;
///
/// let (cluster, orders) = (Mock::new(1)?, "orders".parse()?);
/// cluster.create_topic(&orders, 1)?;
/// let error = cluster.create_topic(&orders, 1).unwrap_err(); // it is there
/// assert!(error.to_string().starts_with("mock cluster: "), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[error("mock cluster: {0}")]
pub struct MockError(String);

impl From<KafkaError> for MockError {
    fn from(error: KafkaError) -> Self {
        MockError(error.to_string())
    }
}

/// A kind of request that errors can be injected into.
///
/// ```
/// # let clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// # let cluster = tidelog::kafka::mock::Mock::new(1)?;
/// # let broker = tidelog::kafka::KafkaBroker::new(&cluster.config(), clock)?;
/// use std::time::Duration;
/// use tidelog::broker::{Broker, Seen};
/// use tidelog::kafka::mock::{Fault, Request};
/// use tidelog::offset::TopicPartition;
///
/// let orders = TopicPartition::new("orders".parse()?, 0);
/// cluster.create_topic(&orders.topic, 1)?;
/// cluster.fail(Request::OffsetFetch, &[Fault::Unknown]);
/// let committed = broker.committed("loader", &[orders.clone()].into(), Duration::from_secs(10));
/// assert!(matches!(committed[&orders], Seen::Failed(_))); // in contrast to Absent
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Which topics and leaders there are.
    Metadata,
    /// The log's ends.
    ListOffsets,
    /// Records.
    Fetch,
    /// Where a group's coordinator is.
    FindCoordinator,
    /// A group's committed offsets.
    OffsetFetch,
}

/// What a broker answers instead.
///
/// ```
/// # let clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// # let cluster = tidelog::kafka::mock::Mock::new(1)?;
/// # let broker = tidelog::kafka::KafkaBroker::new(&cluster.config(), clock)?;
/// # let orders = tidelog::offset::TopicPartition::new("orders".parse()?, 0);
/// # cluster.create_topic(&orders.topic, 1)?;
/// # let (topics, isolation) = (vec!["orders".parse()?], tidelog::offset::Isolation::default());
/// # let ask = tidelog::broker::Ask { topics, isolation, deadline: std::time::Duration::from_secs(10) };
/// use tidelog::broker::Broker;
/// use tidelog::kafka::mock::{Fault, Request};
///
/// cluster.fail(Request::ListOffsets, &[Fault::NotLeader]); // once: the broker is asked again
/// let look = broker.look(&ask);
/// let partition = &look.topics[&orders.topic].partitions.known().ok_or("they are known")?[&0];
/// assert_eq!(partition.latest.known().map(|latest| latest.get()), Some(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Not the leader of the partition.
    NotLeader,
    /// No such topic.
    UnknownTopic,
    /// The offset is not in the log.
    OutOfRange,
    /// Not the coordinator of the group.
    NotCoordinator,
    /// The broker has a problem of its own.
    Unknown,
}

/// A cluster; it ends when dropped.
///
/// ```
/// use tidelog::broker::{Ask, Broker};
/// use tidelog::kafka::{KafkaBroker, mock::Mock};
/// use tidelog::offset::{Isolation, Timestamp, TopicPartition};
///
/// let cluster = Mock::new(1)?;
/// let orders = TopicPartition::new("orders".parse()?, 0);
/// cluster.create_topic(&orders.topic, 1)?;
/// cluster.produce(&orders, [(None, "the first"), (Some("key"), "the second")])?;
///
/// let clock = std::sync::Arc::new(|| Timestamp::from_millis(1_796_032_800_000));
/// let broker = KafkaBroker::new(&cluster.config(), clock)?;
/// let ask = Ask {
///     topics: vec!["orders".parse()?],
///     isolation: Isolation::default(),
///     deadline: std::time::Duration::from_secs(10),
/// };
/// let look = broker.look(&ask);
/// let partition = &look.topics[&orders.topic].partitions.known().ok_or("they are known")?[&0];
/// assert_eq!(partition.latest.known().map(|latest| latest.get()), Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Mock {
    cluster: MockCluster<'static, DefaultProducerContext>,
    brokers: i32,
    producer: BaseProducer,
}

impl Mock {
    /// A cluster of this many brokers, numbered from 1.
    pub fn new(brokers: u16) -> Result<Mock, MockError> {
        let cluster = MockCluster::new(i32::from(brokers))?;
        let producer = Native::new()
            .set("bootstrap.servers", cluster.bootstrap_servers())
            .set("allow.auto.create.topics", "false")
            .set("linger.ms", "0")
            .create()?;
        Ok(Mock { cluster, brokers: i32::from(brokers), producer })
    }

    /// Its brokers: host:port, several separated by commas.
    pub fn brokers(&self) -> String {
        self.cluster.bootstrap_servers()
    }

    /// Clients of this cluster.
    pub fn config(&self) -> ClientConfig {
        ClientConfig::new(self.cluster.bootstrap_servers()).expect("a cluster has brokers")
    }

    /// Makes a topic; an existing one is an error.
    pub fn create_topic(&self, topic: &TopicName, partitions: u16) -> Result<(), MockError> {
        Ok(self.cluster.create_topic(topic.as_str(), i32::from(partitions), self.brokers.min(3))?)
    }

    /// Writes records, and returns when the brokers have them.
    pub fn produce<'a>(
        &self,
        at: &TopicPartition,
        records: impl IntoIterator<Item = (Option<&'a str>, &'a str)>,
    ) -> Result<(), MockError> {
        for (key, value) in records {
            let mut record =
                BaseRecord::<str, str>::to(at.topic.as_str()).partition(at.partition.cast_signed()).payload(value);
            record.key = key;
            while let Err((error, again)) = self.producer.send(record) {
                if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                    return Err(error.into());
                }
                self.producer.poll(Duration::from_millis(10));
                record = again;
            }
        }
        Ok(self.producer.flush(Duration::from_secs(10))?)
    }

    /// Makes the next requests of this kind fail, one each.
    pub fn fail(&self, request: Request, faults: &[Fault]) {
        use rdkafka_sys::rd_kafka_resp_err_t as Raw;
        let errors: Vec<Raw> = faults
            .iter()
            .map(|fault| match fault {
                Fault::NotLeader => Raw::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                Fault::UnknownTopic => Raw::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
                Fault::OutOfRange => Raw::RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE,
                Fault::NotCoordinator => Raw::RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
                Fault::Unknown => Raw::RD_KAFKA_RESP_ERR_UNKNOWN,
            })
            .collect();
        self.cluster.request_errors(request.key(), &errors);
    }

    /// Takes the leader away from a partition, or gives it to broker 1.
    pub fn set_leader(&self, at: &TopicPartition, there: bool) -> Result<(), MockError> {
        let leader = there.then_some(1);
        Ok(self.cluster.partition_leader(at.topic.as_str(), at.partition.cast_signed(), leader)?)
    }

    /// Takes a broker off the network, or puts it back.
    pub fn set_broker(&self, broker: u16, up: bool) -> Result<(), MockError> {
        let broker = i32::from(broker);
        let done = if up { self.cluster.broker_up(broker) } else { self.cluster.broker_down(broker) };
        Ok(done?)
    }

    /// Makes a broker answer so much later.
    pub fn set_delay(&self, broker: u16, delay: Duration) -> Result<(), MockError> {
        Ok(self.cluster.broker_round_trip_time(i32::from(broker), delay)?)
    }
}

impl Request {
    fn key(self) -> rdkafka_sys::RDKafkaApiKey {
        use rdkafka_sys::RDKafkaApiKey as Key;
        match self {
            Request::Metadata => Key::Metadata,
            Request::ListOffsets => Key::ListOffsets,
            Request::Fetch => Key::Fetch,
            Request::FindCoordinator => Key::FindCoordinator,
            Request::OffsetFetch => Key::OffsetFetch,
        }
    }
}
