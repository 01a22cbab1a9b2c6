//! Consumer groups as Kafka sees them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{Offset, TopicPartitionList};

use super::TestKafka;
use super::topics::{block_on, options};
use crate::wait::{DEADLINE, wait_for};

impl TestKafka {
    /// The group's committed offset in Kafka.
    pub fn committed(&self, group: &str, topic: &str, partition: i32) -> Option<i64> {
        let client = self.group_client(group);
        let mut list = TopicPartitionList::new();
        list.add_partition(topic, partition);
        // A coordinator that is just being made says that it is none.
        let list = wait_for("committed offsets", DEADLINE, || client.committed_offsets(list.clone(), DEADLINE));
        let element = &list.elements()[0];
        element.error().expect("the partition is answered");
        element.offset().to_raw().filter(|offset| *offset >= 0)
    }

    /// Sets the group's committed offset in Kafka, as a consumer does that never joined.
    pub fn commit(&self, group: &str, topic: &str, partition: i32, offset: i64) {
        let client = self.group_client(group);
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(offset)).expect("a legal offset");
        wait_for("a commit to Kafka", DEADLINE, || client.commit(&list, CommitMode::Sync));
    }

    /// Lets Kafka forget a group that has no live members.
    pub fn delete_group(&self, group: &str) {
        wait_for("a group deleted", DEADLINE, || {
            let done = block_on(self.admin.delete_groups(&[group], &options())).map_err(|e| e.to_string())?;
            done.into_iter().try_for_each(|result| result.map(drop).map_err(|(_, error)| error.to_string()))
        });
    }

    /// Joins a group as a live member, by the `classic` or the `consumer` protocol, and waits for its partitions.
    pub fn join(&self, group: &str, topic: &str, protocol: &str) -> Member {
        let consumer: BaseConsumer = self
            .client_config()
            .set("group.id", group)
            .set("group.protocol", protocol)
            .set("client.id", "harness-member")
            .set("enable.auto.commit", "false")
            .create()
            .expect("a consumer can be made");
        consumer.subscribe(&[topic]).expect("a topic can be subscribed to");
        wait_for("partitions of the group", DEADLINE, || {
            consumer.poll(Duration::from_millis(50));
            let assigned = consumer.assignment().map_err(|e| e.to_string())?;
            if assigned.count() > 0 { Ok(()) } else { Err("none yet".to_owned()) }
        });
        let leave = Arc::new(AtomicBool::new(false));
        let left = Arc::clone(&leave);
        let thread = thread::spawn(move || {
            while !left.load(Ordering::Relaxed) {
                consumer.poll(Duration::from_millis(50));
            }
        });
        Member { leave, thread: Some(thread) }
    }

    fn group_client(&self, group: &str) -> BaseConsumer {
        self.client_config().set("group.id", group).create().expect("a consumer can be made")
    }
}

/// A live member of a group. Dropped, it leaves the group.
pub struct Member {
    leave: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leave.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a member only polls");
        }
    }
}
