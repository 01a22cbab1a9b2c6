//! Topics of one's own on a real cluster: made, filled, shortened, grown, made again and removed, for a demonstration.
//! Nothing else in tidelog makes or changes a topic.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication, TopicResult};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Offset as Native, TopicPartitionList};

use super::{ClientConfig, ClientError};
use crate::offset::{Offset, TopicName, TopicPartition};

/// One request to the cluster.
const REQUEST: Duration = Duration::from_secs(10);
/// Until what was asked for can be seen by a client.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// The cluster did not do it.
///
/// ```
/// use tidelog::kafka::{OwnTopics, mock::Mock};
/// use tidelog::offset::TopicPartition;
///
/// let cluster = Mock::new(1)?;
/// let topics = OwnTopics::new(&cluster.config())?;
/// let at = TopicPartition::new("orders".parse()?, 0);
/// let error = topics.produce(&at, &["x".repeat(2 << 20)]).unwrap_err(); // larger than a record may be
/// assert!(error.to_string().starts_with("writing to orders/0: "), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}: {why}")]
pub struct TopicError {
    what: String,
    why: String,
}

fn failed(what: impl Into<String>, why: impl ToString) -> TopicError {
    TopicError { what: what.into(), why: why.to_string() }
}

/// The topics that were made through it; [`OwnTopics::remove`] removes them.
///
/// ```
/// use tidelog::kafka::{OwnTopics, mock::Mock};
///
/// let cluster = Mock::new(1)?;
/// let topics = OwnTopics::new(&cluster.config())?;
/// assert!(topics.remove().is_ok()); // it has made none
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OwnTopics {
    config: ClientConfig,
    admin: AdminClient<DefaultClientContext>,
    looker: BaseConsumer,
    made: Mutex<BTreeSet<TopicName>>,
}

impl OwnTopics {
    /// Nothing made yet. Connects by itself, later.
    pub fn new(config: &ClientConfig) -> Result<Self, ClientError> {
        let native = native(config);
        let wrong = |error: KafkaError| ClientError {
            brokers: config.brokers().to_owned(),
            property: None,
            why: error.to_string(),
        };
        Ok(OwnTopics {
            config: config.clone(),
            admin: native.create().map_err(wrong)?,
            looker: native.create().map_err(wrong)?,
            made: Mutex::default(),
        })
    }

    /// Makes a topic without replicas; returns when each partition has a leader.
    ///
    /// # Errors
    ///
    /// It is there already, which then is none of ours; or the cluster says no.
    pub fn create(&self, topic: &TopicName, partitions: u16) -> Result<(), TopicError> {
        let what = || format!("making topic {topic}");
        let new = NewTopic::new(topic.as_str(), i32::from(partitions), TopicReplication::Fixed(1));
        let answers = wait(self.admin.create_topics([&new], &options()));
        // Ours from here on, also where the answer was lost and it may be there all the same; not where the cluster said no.
        let refused = answers.as_ref().is_ok_and(|answers| answers.iter().any(Result::is_err));
        if !refused {
            self.made.lock().unwrap_or_else(PoisonError::into_inner).insert(topic.clone());
        }
        done(what(), answers)?;
        self.settle(topic, Some(partitions), &what())
    }

    /// Adds partitions until there are `partitions`.
    pub fn grow(&self, topic: &TopicName, partitions: u16) -> Result<(), TopicError> {
        let what = format!("growing topic {topic}");
        let new = NewPartitions::new(topic.as_str(), usize::from(partitions));
        done(what.clone(), wait(self.admin.create_partitions([&new], &options())))?;
        self.settle(topic, Some(partitions), &what)
    }

    /// Deletes a topic and makes it again: the same name, another topic.
    pub fn recreate(&self, topic: &TopicName, partitions: u16) -> Result<(), TopicError> {
        self.delete(topic)?;
        self.create(topic, partitions)
    }

    /// Removes what is below `before`, as retention does.
    pub fn shorten(&self, at: &TopicPartition, before: Offset) -> Result<(), TopicError> {
        let what = || format!("removing the head of {at}");
        let mut list = TopicPartitionList::new();
        let offset = Native::Offset(before.get());
        list.add_partition_offset(at.topic.as_str(), at.partition.cast_signed(), offset)
            .map_err(|error| failed(what(), error))?;
        let answer = wait(self.admin.delete_records(&list, &options())).map_err(|error| failed(what(), error))?;
        answer.elements().iter().try_for_each(|element| element.error()).map_err(|error| failed(what(), error))
    }

    /// Writes records of these values; returns when the brokers have them.
    pub fn produce(&self, at: &TopicPartition, values: &[String]) -> Result<(), TopicError> {
        let what = || format!("writing to {at}");
        // A new one each time knows the partitions that there are now.
        let producer: BaseProducer = native(&self.config).create().map_err(|error| failed(what(), error))?;
        for value in values {
            let mut record =
                BaseRecord::<str, str>::to(at.topic.as_str()).partition(at.partition.cast_signed()).payload(value);
            while let Err((error, again)) = producer.send(record) {
                if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                    return Err(failed(what(), error));
                }
                producer.poll(PAUSE);
                record = again;
            }
        }
        producer.flush(PATIENCE).map_err(|error| failed(what(), error))
    }

    fn delete(&self, topic: &TopicName) -> Result<(), TopicError> {
        let what = format!("removing topic {topic}");
        done(what.clone(), wait(self.admin.delete_topics(&[topic.as_str()], &options())))?;
        self.made.lock().unwrap_or_else(PoisonError::into_inner).remove(topic);
        self.settle(topic, None, &what)
    }

    /// Removes every topic that was made; tries all of them.
    ///
    /// # Errors
    ///
    /// The first one that could not be removed, by name.
    pub fn remove(&self) -> Result<(), TopicError> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let gone: Vec<_> = made.iter().map(|topic| self.delete(topic)).collect();
        gone.into_iter().collect()
    }

    /// Waits until a client sees `partitions` with a leader each; none for no topic at all.
    fn settle(&self, topic: &TopicName, partitions: Option<u16>, what: &str) -> Result<(), TopicError> {
        let begun = Instant::now();
        loop {
            let metadata = self.looker.fetch_metadata(Some(topic.as_str()), REQUEST);
            let seen = metadata.map_err(|error| failed(what, error))?;
            let leaders = seen
                .topics()
                .first()
                .filter(|topic| topic.error().is_none())
                .map(|topic| topic.partitions().iter().filter(|partition| partition.leader() >= 0).count());
            if leaders == partitions.map(usize::from) {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(failed(what, format!("not there after {} s", PATIENCE.as_secs())));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Properties of a client that does not read records.
fn native(config: &ClientConfig) -> rdkafka::ClientConfig {
    const OF_READERS: [&str; 5] = [
        "auto.offset.reset",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "fetch.wait.max.ms",
    ];
    let mut native = rdkafka::ClientConfig::new();
    for (name, value) in config.properties(&[]).into_iter().filter(|(name, _)| !OF_READERS.contains(name)) {
        native.set(name, value);
    }
    native
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(REQUEST)).operation_timeout(Some(REQUEST))
}

/// Waits for an answer, on this thread.
fn wait<T>(answer: impl Future<Output = Result<T, KafkaError>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    runtime.block_on(answer).map_err(|error| error.to_string())
}

fn done(what: String, answers: Result<Vec<TopicResult>, String>) -> Result<(), TopicError> {
    for answer in answers.map_err(|why| failed(what.clone(), why))? {
        answer.map_err(|(_, code)| failed(what.clone(), code))?;
    }
    Ok(())
}
