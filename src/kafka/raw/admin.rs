//! Requests about the cluster. Each has a time-out, and none makes anything.

use std::ffi::{CString, c_char, c_int};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

use rdkafka_sys as sys;
use rdkafka_sys::rd_kafka_admin_op_t as Op;

use super::pending::{ms, slice, text};
use super::{Code, Handle, PartitionList, Pending};
use crate::offset::{Isolation, TopicName};

/// What a broker says of the cluster.
#[derive(Debug)]
pub(in crate::kafka) struct Metadata {
    /// A broker that is there: the one that answered, where it is known by its number yet.
    pub(in crate::kafka) broker: i32,
    /// The topics of the answer: all, where all were asked for.
    pub(in crate::kafka) topics: Vec<TopicName>,
}

/// The time-out that librdkafka is told for a question to a group's coordinator, its largest: one that passed could end the
/// process. Whoever gives up such a question drops the client.
const NEVER: Duration = Duration::from_secs(3_600);

/// The topic of committed offsets. A question about one topic is the least that makes a broker answer with the cluster's id.
const COMMITTED_TOPIC: &str = "__consumer_offsets";

/// librdkafka ends other requests itself, at their time-out. This is waited beyond it, for the case that it does not.
const GRACE: Duration = Duration::from_millis(500);

struct Options(NonNull<sys::rd_kafka_AdminOptions_t>);

impl Options {
    fn new(handle: &Handle, op: Op, timeout: Duration) -> Options {
        // SAFETY: the client is live; the object is new, and null is returned for an unknown operation only.
        let options = unsafe { sys::rd_kafka_AdminOptions_new(handle.as_ptr(), op) };
        let options = Options(NonNull::new(options).expect("the operation is one of librdkafka's"));
        let mut text = [0; 256];
        // SAFETY: live, with a buffer of the given length; the value is in range.
        unsafe {
            sys::rd_kafka_AdminOptions_set_request_timeout(options.0.as_ptr(), ms(timeout), text.as_mut_ptr(), 256);
        }
        options
    }

    /// Asks this broker instead of the controller.
    fn broker(self, id: i32) -> Options {
        let mut text = [0; 256];
        // SAFETY: as above.
        unsafe { sys::rd_kafka_AdminOptions_set_broker(self.0.as_ptr(), id, text.as_mut_ptr(), 256) };
        self
    }

    fn isolation(self, isolation: Isolation) -> Options {
        let level = match isolation {
            Isolation::ReadCommitted => sys::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED,
            Isolation::ReadUncommitted => sys::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED,
        };
        // SAFETY: live.
        let set = unsafe { sys::rd_kafka_AdminOptions_set_isolation_level(self.0.as_ptr(), level) };
        debug_assert!(Code::check_object(set).is_ok(), "offsets have an isolation level");
        self
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: ours, and not used afterwards.
        unsafe { sys::rd_kafka_AdminOptions_destroy(self.0.as_ptr()) };
    }
}

impl Handle {
    /// Asks any broker about one topic, or about all.
    pub(in crate::kafka) fn metadata(&self, topic: Option<&TopicName>, timeout: Duration) -> Result<Metadata, Code> {
        let topic = topic.map(|topic| Topic::new(self, topic));
        let only = topic.as_ref().map_or(ptr::null_mut(), |topic| topic.0.as_ptr());
        let mut answer = ptr::null();
        // SAFETY: client and topic are live; on success `answer` is an object of ours.
        let code = unsafe {
            sys::rd_kafka_metadata(self.as_ptr(), c_int::from(only.is_null()), only, &raw mut answer, ms(timeout))
        };
        Code::check(code)?;
        // SAFETY: live until it is destroyed here; names end in NUL.
        unsafe {
            let topics = slice((*answer).topics.cast_const(), (*answer).topic_cnt as usize);
            let topics = topics.iter().filter_map(|topic| TopicName::new(&text(topic.topic)).ok()).collect();
            // On a fresh client the address that was asked belongs to no broker's number yet.
            let brokers = slice((*answer).brokers.cast_const(), (*answer).broker_cnt as usize);
            let broker = match ((*answer).orig_broker_id, brokers.first()) {
                (-1, Some(first)) => first.id,
                (answered, _) => answered,
            };
            let metadata = Metadata { broker, topics };
            sys::rd_kafka_metadata_destroy(answer);
            Ok(metadata)
        }
    }

    /// The cluster's id of the newest metadata; none where the broker gives none.
    pub(in crate::kafka) fn cluster_id(&self) -> Option<String> {
        // SAFETY: live; the text is ours and ends in NUL.
        unsafe {
            let id = sys::rd_kafka_clusterid(self.as_ptr(), 0);
            let shown = (!id.is_null()).then(|| text(id))?;
            sys::rd_kafka_mem_free(self.as_ptr(), id.cast());
            Some(shown)
        }
    }

    /// The cluster's id, asked for where the client has not heard of it; none where the broker gives none.
    pub(in crate::kafka) fn cluster_id_within(&self, timeout: Duration) -> Result<Option<String>, Code> {
        if let Some(id) = self.cluster_id() {
            return Ok(Some(id));
        }
        self.metadata(Some(&COMMITTED_TOPIC.parse().expect("a legal name")), timeout)?;
        Ok(self.cluster_id())
    }

    /// Asks `broker` about these topics: one metadata request.
    pub(in crate::kafka) fn describe_topics(
        self: &Arc<Self>,
        broker: i32,
        topics: &[TopicName],
        timeout: Duration,
    ) -> Pending {
        let names: Vec<CString> =
            topics.iter().map(|topic| CString::new(topic.as_str()).expect("a topic name has no NUL")).collect();
        let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let options = Options::new(self, Op::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, timeout).broker(broker);
        Pending::send(self, timeout + GRACE, |queue| {
            // SAFETY: all are live for the call, which copies what it needs.
            unsafe {
                let topics = sys::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
                sys::rd_kafka_DescribeTopics(self.as_ptr(), topics, options.0.as_ptr(), queue);
                sys::rd_kafka_TopicCollection_destroy(topics);
            }
        })
    }

    /// Asks the leaders for offsets: by a time, or by [`EARLIEST`](Self::EARLIEST) or [`LATEST`](Self::LATEST).
    pub(in crate::kafka) fn list_offsets(
        self: &Arc<Self>,
        partitions: &PartitionList,
        isolation: Isolation,
        timeout: Duration,
    ) -> Pending {
        let options = Options::new(self, Op::RD_KAFKA_ADMIN_OP_LISTOFFSETS, timeout).isolation(isolation);
        Pending::send(self, timeout + GRACE, |queue| {
            // SAFETY: all are live for the call, which copies what it needs.
            unsafe { sys::rd_kafka_ListOffsets(self.as_ptr(), partitions.as_ptr(), options.0.as_ptr(), queue) };
        })
    }

    /// The log start offset, in [`list_offsets`](Self::list_offsets).
    pub(in crate::kafka) const EARLIEST: i64 = -2;
    /// The log's end under the isolation, in [`list_offsets`](Self::list_offsets).
    pub(in crate::kafka) const LATEST: i64 = -1;

    /// Asks the group's coordinator for its committed offsets of these partitions, of which there must be one.
    pub(in crate::kafka) fn committed(
        self: &Arc<Self>,
        group: &str,
        partitions: &PartitionList,
        timeout: Duration,
    ) -> Pending {
        let group = CString::new(group).expect("a group name has no NUL");
        let options = Options::new(self, Op::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, NEVER);
        Pending::send(self, timeout, |queue| {
            // SAFETY: all are live for the call, which copies what it needs.
            unsafe {
                let mut ask = sys::rd_kafka_ListConsumerGroupOffsets_new(group.as_ptr(), partitions.as_ptr());
                sys::rd_kafka_ListConsumerGroupOffsets(self.as_ptr(), &raw mut ask, 1, options.0.as_ptr(), queue);
                sys::rd_kafka_ListConsumerGroupOffsets_destroy(ask);
            }
        })
    }

    /// Has the group's coordinator set its committed offsets of these partitions, of which there must be one.
    pub(in crate::kafka) fn alter_committed(
        self: &Arc<Self>,
        group: &str,
        offsets: &PartitionList,
        timeout: Duration,
    ) -> Pending {
        let group = CString::new(group).expect("a group name has no NUL");
        let options = Options::new(self, Op::RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS, NEVER);
        Pending::send(self, timeout, |queue| {
            // SAFETY: all are live for the call, which copies what it needs.
            unsafe {
                let mut ask = sys::rd_kafka_AlterConsumerGroupOffsets_new(group.as_ptr(), offsets.as_ptr());
                sys::rd_kafka_AlterConsumerGroupOffsets(self.as_ptr(), &raw mut ask, 1, options.0.as_ptr(), queue);
                sys::rd_kafka_AlterConsumerGroupOffsets_destroy(ask);
            }
        })
    }

    /// Asks the group's coordinator who is in it.
    pub(in crate::kafka) fn describe_group(self: &Arc<Self>, group: &str, timeout: Duration) -> Pending {
        let group = CString::new(group).expect("a group name has no NUL");
        let options = Options::new(self, Op::RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS, NEVER);
        Pending::send(self, timeout, |queue| {
            let mut name = group.as_ptr();
            // SAFETY: all are live for the call, which copies what it needs.
            unsafe {
                sys::rd_kafka_DescribeConsumerGroups(self.as_ptr(), &raw mut name, 1, options.0.as_ptr(), queue);
            }
        })
    }
}

/// A reference to a topic, which a metadata request about one topic wants.
struct Topic(NonNull<sys::rd_kafka_topic_t>);

impl Topic {
    fn new(handle: &Handle, topic: &TopicName) -> Topic {
        let name = CString::new(topic.as_str()).expect("a topic name has no NUL");
        // SAFETY: live; the name is copied; null is returned for an illegal name or configuration only.
        let topic = unsafe { sys::rd_kafka_topic_new(handle.as_ptr(), name.as_ptr(), ptr::null_mut()) };
        Topic(NonNull::new(topic).expect("a checked name is one of librdkafka's"))
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        // SAFETY: ours, and not used afterwards.
        unsafe { sys::rd_kafka_topic_destroy(self.0.as_ptr()) };
    }
}
