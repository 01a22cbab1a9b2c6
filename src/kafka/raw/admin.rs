//! Requests about the cluster. Each has a time-out, and none makes anything.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka_sys as sys;
use rdkafka_sys::rd_kafka_admin_op_t as Op;

use super::list::element;
use super::{Code, Handle, PartitionList};
use crate::offset::{Group, Isolation, TopicId, TopicName, TopicPartition};

/// What a broker says of the cluster.
#[derive(Debug)]
pub(in crate::kafka) struct Metadata {
    /// A broker that is there: the one that answered, where it is known by its number yet.
    pub(in crate::kafka) broker: i32,
    /// The topics of the answer: all, where all were asked for.
    pub(in crate::kafka) topics: Vec<TopicName>,
}

/// What a broker says of one topic.
#[derive(Debug)]
pub(in crate::kafka) struct Described {
    /// Its id; none where the broker gives none.
    pub(in crate::kafka) id: Option<TopicId>,
    /// Its partitions, each with whether it has a leader.
    pub(in crate::kafka) partitions: BTreeMap<u32, bool>,
}

/// Offsets by partition, each with an error of its own.
pub(in crate::kafka) type Listed = BTreeMap<TopicPartition, Result<i64, Code>>;

/// A request that is under way; the answer is read by `T`'s method.
pub(in crate::kafka) struct Pending {
    queue: NonNull<sys::rd_kafka_queue_t>,
    deadline: Instant,
    _handle: Arc<Handle>,
}

struct Event(NonNull<sys::rd_kafka_event_t>);

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: ours, and not used afterwards.
        unsafe { sys::rd_kafka_event_destroy(self.0.as_ptr()) };
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // SAFETY: ours, and not used afterwards; an answer that comes later is thrown away by librdkafka.
        unsafe { sys::rd_kafka_queue_destroy(self.queue.as_ptr()) };
    }
}

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
        self.ask(timeout, |queue| {
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
        self.ask(timeout, |queue| {
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
        group: &Group,
        partitions: &PartitionList,
        timeout: Duration,
    ) -> Pending {
        let group = CString::new(group.group()).expect("a group name has no NUL");
        let options = Options::new(self, Op::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, timeout);
        self.ask(timeout, |queue| {
            // SAFETY: all are live for the call, which copies what it needs.
            unsafe {
                let mut ask = sys::rd_kafka_ListConsumerGroupOffsets_new(group.as_ptr(), partitions.as_ptr());
                sys::rd_kafka_ListConsumerGroupOffsets(self.as_ptr(), &raw mut ask, 1, options.0.as_ptr(), queue);
                sys::rd_kafka_ListConsumerGroupOffsets_destroy(ask);
            }
        })
    }

    fn ask(self: &Arc<Self>, timeout: Duration, send: impl FnOnce(*mut sys::rd_kafka_queue_t)) -> Pending {
        // SAFETY: live; the queue is ours.
        let queue = unsafe { sys::rd_kafka_queue_new(self.as_ptr()) };
        let queue = NonNull::new(queue).expect("librdkafka never returns a null queue");
        send(queue.as_ptr());
        // librdkafka ends the request itself; this is for the case that it does not.
        let deadline = Instant::now() + timeout + Duration::from_millis(500);
        Pending { queue, deadline, _handle: Arc::clone(self) }
    }
}

impl Pending {
    fn wait(&self) -> Result<Event, Code> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        // SAFETY: live; the event is ours.
        let event = unsafe { sys::rd_kafka_queue_poll(self.queue.as_ptr(), ms(left)) };
        let event = Event(NonNull::new(event).ok_or(Code::TIMED_OUT)?);
        // SAFETY: live.
        Code::check(unsafe { sys::rd_kafka_event_error(event.0.as_ptr()) })?;
        Ok(event)
    }

    /// The answer to [`Handle::describe_topics`].
    pub(in crate::kafka) fn topics(self) -> Result<BTreeMap<TopicName, Result<Described, Code>>, Code> {
        let event = self.wait()?;
        let mut count = 0;
        // SAFETY: what the event holds lives as long as it.
        unsafe {
            let result = sys::rd_kafka_event_DescribeTopics_result(event.0.as_ptr());
            let topics = sys::rd_kafka_DescribeTopics_result_topics(result, &raw mut count);
            let topics = slice(topics.cast_const(), count).iter();
            Ok(topics.filter_map(|topic| described(*topic)).collect())
        }
    }

    /// The answer to [`Handle::list_offsets`].
    pub(in crate::kafka) fn offsets(self) -> Result<Listed, Code> {
        let event = self.wait()?;
        let mut count = 0;
        // SAFETY: what the event holds lives as long as it.
        unsafe {
            let result = sys::rd_kafka_event_ListOffsets_result(event.0.as_ptr());
            let infos = sys::rd_kafka_ListOffsets_result_infos(result, &raw mut count);
            let infos = slice(infos.cast_const(), count).iter();
            Ok(infos.filter_map(|i| element(sys::rd_kafka_ListOffsetsResultInfo_topic_partition(*i))).collect())
        }
    }

    /// The answer to [`Handle::committed`]; a partition without a committed offset has a negative number.
    pub(in crate::kafka) fn group_offsets(self) -> Result<Listed, Code> {
        let event = self.wait()?;
        let mut count = 0;
        // SAFETY: what the event holds lives as long as it; one group was asked for.
        unsafe {
            let result = sys::rd_kafka_event_ListConsumerGroupOffsets_result(event.0.as_ptr());
            let groups = sys::rd_kafka_ListConsumerGroupOffsets_result_groups(result, &raw mut count);
            let Some(group) = slice(groups.cast_const(), count).first() else {
                return Ok(Listed::new());
            };
            let error = sys::rd_kafka_group_result_error(*group);
            if !error.is_null() {
                Code::check(sys::rd_kafka_error_code(error))?;
            }
            let list = sys::rd_kafka_group_result_partitions(*group);
            let elements = slice((*list).elems.cast_const(), (*list).cnt as usize).iter();
            Ok(elements.filter_map(|e| element(e)).collect())
        }
    }
}

/// # Safety
///
/// `topic` points to a live description.
unsafe fn described(topic: *const sys::rd_kafka_TopicDescription_t) -> Option<(TopicName, Result<Described, Code>)> {
    // SAFETY: by the contract; all that is read lives as long as it.
    unsafe {
        let name = TopicName::new(&text(sys::rd_kafka_TopicDescription_name(topic))).ok()?;
        let error = sys::rd_kafka_TopicDescription_error(topic);
        if !error.is_null()
            && let Err(code) = Code::check(sys::rd_kafka_error_code(error))
        {
            return Some((name, Err(code)));
        }
        let id = sys::rd_kafka_TopicDescription_topic_id(topic);
        let high = sys::rd_kafka_Uuid_most_significant_bits(id).to_be_bytes();
        let low = sys::rd_kafka_Uuid_least_significant_bits(id).to_be_bytes();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&high);
        bytes[8..].copy_from_slice(&low);
        let mut count = 0;
        let partitions = sys::rd_kafka_TopicDescription_partitions(topic, &raw mut count);
        let partitions = slice(partitions.cast_const(), count).iter().filter_map(|partition| {
            let number = u32::try_from(sys::rd_kafka_TopicPartitionInfo_partition(*partition)).ok()?;
            Some((number, !sys::rd_kafka_TopicPartitionInfo_leader(*partition).is_null()))
        });
        Some((name, Ok(Described { id: TopicId::from_bytes(bytes), partitions: partitions.collect() })))
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

/// # Safety
///
/// `first` points to `len` live elements, or is null.
unsafe fn slice<'a, T>(first: *const T, len: usize) -> &'a [T] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: by the contract.
    unsafe { std::slice::from_raw_parts(first, len) }
}

/// # Safety
///
/// `text` ends in NUL.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: by the contract.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// librdkafka's milliseconds: at least 1, as 0 has other meanings.
pub(super) fn ms(duration: Duration) -> c_int {
    c_int::try_from(duration.as_millis().max(1)).unwrap_or(c_int::MAX).min(3_600_000)
}
