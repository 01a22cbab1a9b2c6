//! librdkafka's list of partitions with offsets.

use std::ffi::{CStr, CString};
use std::ptr::NonNull;

use rdkafka_sys as sys;

use super::Code;
use crate::offset::{Offset, TopicName, TopicPartition};

/// Partitions, each with a number that the request gives a meaning, and an error of its own.
pub(in crate::kafka) struct PartitionList(NonNull<sys::rd_kafka_topic_partition_list_t>);

// SAFETY: plain memory of its own.
unsafe impl Send for PartitionList {}

impl PartitionList {
    /// An empty list with room for `len`.
    pub(in crate::kafka) fn with_capacity(len: usize) -> PartitionList {
        let len = i32::try_from(len).unwrap_or(i32::MAX);
        // SAFETY: makes a new object; librdkafka aborts the process where memory ends, it never returns null.
        let list = unsafe { sys::rd_kafka_topic_partition_list_new(len) };
        PartitionList(NonNull::new(list).expect("librdkafka never returns a null list"))
    }

    /// A list of these partitions, all with `number`.
    pub(in crate::kafka) fn of<'a>(
        partitions: impl ExactSizeIterator<Item = &'a TopicPartition>,
        number: i64,
    ) -> PartitionList {
        let mut list = PartitionList::with_capacity(partitions.len());
        for at in partitions {
            list.push(at, number);
        }
        list
    }

    /// Adds a partition with a number.
    pub(in crate::kafka) fn push(&mut self, at: &TopicPartition, number: i64) {
        let topic = CString::new(at.topic.as_str()).expect("a topic name has no NUL");
        // SAFETY: the list is live, the name is copied; the element stays where it is until the next addition.
        unsafe {
            let element =
                sys::rd_kafka_topic_partition_list_add(self.0.as_ptr(), topic.as_ptr(), at.partition.cast_signed());
            (*element).offset = number;
        }
    }

    /// Adds a partition where reading begins.
    pub(in crate::kafka) fn push_offset(&mut self, at: &TopicPartition, offset: Offset) {
        self.push(at, offset.get());
    }

    /// Whether it holds none.
    pub(in crate::kafka) fn is_empty(&self) -> bool {
        // SAFETY: live.
        unsafe { self.0.as_ref() }.cnt == 0
    }

    pub(super) fn as_ptr(&self) -> *mut sys::rd_kafka_topic_partition_list_t {
        self.0.as_ptr()
    }
}

impl Drop for PartitionList {
    fn drop(&mut self) {
        // SAFETY: ours, and not used afterwards.
        unsafe { sys::rd_kafka_topic_partition_list_destroy(self.0.as_ptr()) };
    }
}

/// Reads an element: the partition, where its name is legal, with its number or its error.
///
/// # Safety
///
/// `element` points to a live element.
pub(super) unsafe fn element(
    element: *const sys::rd_kafka_topic_partition_t,
) -> Option<(TopicPartition, Result<i64, Code>)> {
    // SAFETY: by the contract; its name ends in NUL.
    let (element, name) = unsafe { (&*element, CStr::from_ptr((*element).topic)) };
    let topic = TopicName::new(name.to_str().ok()?).ok()?;
    let partition = u32::try_from(element.partition).ok()?;
    let value = Code::check(element.err).map(|()| element.offset);
    Some((TopicPartition::new(topic, partition), value))
}
