//! Requests that are under way, and their answers.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka_sys as sys;

use super::list::element;
use super::{Code, Handle};
use crate::broker::Member;
use crate::offset::{TopicId, TopicName, TopicPartition};

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

impl Pending {
    /// Sends a request whose answer goes to a queue of its own, and is waited for so long.
    pub(super) fn send(handle: &Arc<Handle>, wait: Duration, send: impl FnOnce(*mut sys::rd_kafka_queue_t)) -> Pending {
        // SAFETY: live; the queue is ours.
        let queue = unsafe { sys::rd_kafka_queue_new(handle.as_ptr()) };
        let queue = NonNull::new(queue).expect("librdkafka never returns a null queue");
        send(queue.as_ptr());
        Pending { queue, deadline: Instant::now() + wait, _handle: Arc::clone(handle) }
    }

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
            group_partitions(slice(groups.cast_const(), count))
        }
    }

    /// The answer to [`Handle::alter_committed`]: each partition has an error of its own, also where the event has none.
    pub(in crate::kafka) fn altered(self) -> Result<Listed, Code> {
        let event = self.wait()?;
        let mut count = 0;
        // SAFETY: what the event holds lives as long as it; one group was asked for.
        unsafe {
            let result = sys::rd_kafka_event_AlterConsumerGroupOffsets_result(event.0.as_ptr());
            let groups = sys::rd_kafka_AlterConsumerGroupOffsets_result_groups(result, &raw mut count);
            group_partitions(slice(groups.cast_const(), count))
        }
    }

    /// The answer to [`Handle::describe_group`]; a group that is not there has no members.
    pub(in crate::kafka) fn members(self) -> Result<Vec<Member>, Code> {
        let event = self.wait()?;
        let mut count = 0;
        // SAFETY: what the event holds lives as long as it; one group was asked for.
        unsafe {
            let result = sys::rd_kafka_event_DescribeConsumerGroups_result(event.0.as_ptr());
            let groups = sys::rd_kafka_DescribeConsumerGroups_result_groups(result, &raw mut count);
            let Some(group) = slice(groups.cast_const(), count).first() else {
                return Err(Code::TIMED_OUT);
            };
            let error = sys::rd_kafka_ConsumerGroupDescription_error(*group);
            if !error.is_null() {
                Code::check(sys::rd_kafka_error_code(error))?;
            }
            let members = 0..sys::rd_kafka_ConsumerGroupDescription_member_count(*group);
            let member = |index| {
                let member = sys::rd_kafka_ConsumerGroupDescription_member(*group, index);
                Member {
                    member_id: text_or_empty(sys::rd_kafka_MemberDescription_consumer_id(member)),
                    client_id: text_or_empty(sys::rd_kafka_MemberDescription_client_id(member)),
                    host: text_or_empty(sys::rd_kafka_MemberDescription_host(member)),
                }
            };
            Ok(members.map(member).collect())
        }
    }
}

/// The partitions of the only group of an answer.
///
/// # Safety
///
/// The groups are live.
unsafe fn group_partitions(groups: &[*const sys::rd_kafka_group_result_t]) -> Result<Listed, Code> {
    let Some(group) = groups.first() else {
        return Ok(Listed::new());
    };
    // SAFETY: by the contract; all that is read lives as long as the group.
    unsafe {
        let error = sys::rd_kafka_group_result_error(*group);
        if !error.is_null() {
            Code::check(sys::rd_kafka_error_code(error))?;
        }
        let list = sys::rd_kafka_group_result_partitions(*group);
        let elements = slice((*list).elems.cast_const(), (*list).cnt as usize).iter();
        Ok(elements.filter_map(|e| element(e)).collect())
    }
}

/// # Safety
///
/// `text` ends in NUL, or is null.
unsafe fn text_or_empty(shown: *const c_char) -> String {
    // SAFETY: by the contract.
    if shown.is_null() { String::new() } else { unsafe { text(shown) } }
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

/// # Safety
///
/// `first` points to `len` live elements, or is null.
pub(super) unsafe fn slice<'a, T>(first: *const T, len: usize) -> &'a [T] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: by the contract.
    unsafe { std::slice::from_raw_parts(first, len) }
}

/// # Safety
///
/// `text` ends in NUL.
pub(super) unsafe fn text(text: *const c_char) -> String {
    // SAFETY: by the contract.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// librdkafka's milliseconds: at least 1, as 0 has other meanings.
pub(super) fn ms(duration: Duration) -> c_int {
    c_int::try_from(duration.as_millis().max(1)).unwrap_or(c_int::MAX).min(3_600_000)
}
