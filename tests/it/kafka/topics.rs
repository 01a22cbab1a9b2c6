//! Topics: made, grown, deleted, expired; and what the broker says of them.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use rdkafka::admin::{
    AdminOptions, AlterConfig, ConfigSource, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication, TopicResult,
};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{Offset, TopicPartitionList};

use super::TestKafka;
use crate::wait::{DEADLINE, wait_for};

/// One request: a broker that does not answer in this time is asked again.
const REQUEST: Duration = Duration::from_secs(5);

impl TestKafka {
    /// Creates a topic without replicas, and waits until each partition has a leader that answers.
    pub fn create_topic(&self, topic: &str, partitions: i32, config: &[(&str, &str)]) {
        self.create(NewTopic::new(topic, partitions, TopicReplication::Fixed(1)), config);
    }

    /// Creates a topic whose partition `p` lives on the brokers `replicas[p]`, led by the first of them.
    pub fn create_topic_on(&self, topic: &str, replicas: &[&[i32]], config: &[(&str, &str)]) {
        let partitions = replicas.len() as i32;
        self.create(NewTopic::new(topic, partitions, TopicReplication::Variable(replicas)), config);
    }

    fn create<'a>(&self, mut topic: NewTopic<'a>, config: &[(&'a str, &'a str)]) {
        for (key, value) in config {
            topic = topic.set(key, value);
        }
        let done = block_on(self.admin.create_topics([&topic], &options()));
        expect_done("create a topic", done);
        self.wait_partitions(topic.name, topic.num_partitions);
    }

    /// Adds partitions until there are `partitions`.
    pub fn grow(&self, topic: &str, partitions: i32) {
        let new = NewPartitions::new(topic, partitions as usize);
        expect_done("grow a topic", block_on(self.admin.create_partitions([&new], &options())));
        self.wait_partitions(topic, partitions);
    }

    /// Deletes a topic and waits until no broker knows it.
    pub fn delete_topic(&self, topic: &str) {
        expect_done("delete a topic", block_on(self.admin.delete_topics(&[topic], &options())));
        wait_for("the topic gone", DEADLINE, || self.leaders(topic).map_or(Ok(()), Err));
    }

    /// Deletes a topic and creates it again: same name, another topic id, offsets from 0.
    pub fn recreate_topic(&self, topic: &str, partitions: i32, config: &[(&str, &str)]) {
        self.delete_topic(topic);
        self.create_topic(topic, partitions, config);
    }

    /// Whether the cluster has this topic. Asking does not create it.
    pub fn has_topic(&self, topic: &str) -> bool {
        self.leaders(topic).is_some()
    }

    /// The topic's id as Kafka's tools print it.
    pub fn topic_id(&self, topic: &str) -> String {
        let text = self.tool("org.apache.kafka.tools.TopicCommand", &["--describe", "--topic", topic]);
        let (_, rest) = text.split_once("TopicId: ").expect("TopicCommand prints the topic's id");
        rest.split_whitespace().next().expect("an id after its label").to_owned()
    }

    /// Sets configuration of a topic, beside what was set before.
    pub fn set_config(&self, topic: &str, config: &[(&str, &str)]) {
        let resource = ResourceSpecifier::Topic(topic);
        let before = block_on(self.admin.describe_configs([&resource], &options())).expect("configuration is answered");
        let before = before.into_iter().next().expect("one answer for one topic").expect("the topic is there");
        // The request replaces all; librdkafka's Rust face has no other.
        let mut new = AlterConfig::new(resource);
        for entry in before.entries.iter().filter(|entry| entry.source == ConfigSource::DynamicTopic) {
            new = new.set(&entry.name, entry.value.as_deref().unwrap_or_default());
        }
        for (key, value) in config {
            new = new.set(key, value);
        }
        let done = block_on(self.admin.alter_configs([&new], &options())).expect("configuration is taken");
        done.into_iter().for_each(|result| drop(result.expect("configuration is valid")));
    }

    /// Moves the log's start: records below `before` are gone when it returns.
    pub fn delete_records(&self, topic: &str, partition: i32, before: i64) {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(before)).expect("a legal offset");
        let done = block_on(self.admin.delete_records(&list, &options())).expect("records can be deleted");
        done.elements()[0].error().expect("records can be deleted");
        wait_for("the log's start moved", DEADLINE, || match self.watermarks(topic, partition) {
            (earliest, _) if earliest >= before => Ok(()),
            marks => Err(marks),
        });
    }

    /// Lets retention remove all that is in the topic now: earliest becomes latest. Takes a second or two;
    /// retention is off afterwards.
    pub fn expire(&self, topic: &str, partitions: i32) {
        self.set_config(topic, &[("retention.ms", "1")]);
        for partition in 0..partitions {
            wait_for("everything expired", DEADLINE, || match self.watermarks(topic, partition) {
                (earliest, latest) if earliest == latest => Ok(()),
                marks => Err(marks),
            });
        }
        self.set_config(topic, &[("retention.ms", "-1")]);
    }

    /// Log start and high watermark.
    pub fn watermarks(&self, topic: &str, partition: i32) -> (i64, i64) {
        ends(&self.looker, topic, partition)
    }

    /// What a reader of committed records can read up to.
    pub fn last_stable(&self, topic: &str, partition: i32) -> i64 {
        let mut config = self.client_config();
        let committed: BaseConsumer =
            config.set("isolation.level", "read_committed").create().expect("a consumer can be made");
        ends(&committed, topic, partition).1
    }

    /// The broker that leads a partition, if one does.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<i32> {
        let leaders = self.leaders(topic).expect("the topic is there");
        let leader = *leaders.get(&partition).expect("the partition is there");
        (leader >= 0).then_some(leader)
    }

    /// The leader of each partition, -1 where there is none; nothing if there is no such topic.
    fn leaders(&self, topic: &str) -> Option<BTreeMap<i32, i32>> {
        wait_for("an answer about a topic", DEADLINE, || {
            let metadata = self.looker.fetch_metadata(Some(topic), REQUEST).map_err(|e| e.to_string())?;
            let topic = metadata.topics().first().ok_or("not in the answer")?;
            match topic.error() {
                None => Ok(Some(topic.partitions().iter().map(|p| (p.id(), p.leader())).collect())),
                Some(RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) => Ok(None),
                Some(error) => Err(format!("{error:?}")),
            }
        })
    }

    fn wait_partitions(&self, topic: &str, partitions: i32) {
        wait_for("all partitions on the broker", DEADLINE, || match self.leaders(topic) {
            Some(leaders) if leaders.len() == partitions as usize => Ok(()),
            leaders => Err(leaders),
        });
        for partition in 0..partitions {
            self.watermarks(topic, partition);
        }
    }
}

/// Asks until the leader answers: just after a change it may deny that it leads.
fn ends(consumer: &BaseConsumer, topic: &str, partition: i32) -> (i64, i64) {
    wait_for("a partition's ends", DEADLINE, || {
        consumer.fetch_watermarks(topic, partition, REQUEST).map_err(|e| e.to_string())
    })
}

pub fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(DEADLINE)).operation_timeout(Some(DEADLINE))
}

pub fn expect_done(what: &str, results: Result<Vec<TopicResult>, KafkaError>) {
    for result in results.unwrap_or_else(|error| panic!("{what}: {error}")) {
        result.unwrap_or_else(|(name, error)| panic!("{what} {name}: {error}"));
    }
}

/// Runs an admin request, whose future is woken by librdkafka's own thread and ends with the request's time-out. Needs no
/// runtime, so it can be called within one.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
