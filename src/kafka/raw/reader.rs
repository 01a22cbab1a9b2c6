//! A client that reads partitions from given offsets, never as a member of a group.

use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

use rdkafka_sys as sys;

use super::pending::ms;
use super::{Code, Handle, Message, PartitionList};
use crate::kafka::config::{ClientConfig, ClientError};
use crate::offset::{Group, Isolation};

/// Records that are taken from librdkafka at once.
const CHUNK: usize = 1_000;

/// Reads assigned partitions.
pub(in crate::kafka) struct Reader {
    queue: NonNull<sys::rd_kafka_queue_t>,
    chunk: Vec<*mut sys::rd_kafka_message_t>,
    handle: Arc<Handle>,
}

// SAFETY: the queue is librdkafka's and thread-safe; `chunk` is empty between calls.
unsafe impl Send for Reader {}

/// What a partition delivered.
pub(in crate::kafka) enum Event {
    /// A record.
    Record(Message),
    /// All up to the message's offset has been read: an end of the log, or of what is stable. Transaction markers,
    /// aborted and compacted records below it are passed.
    End(Message),
    /// The partition stopped: its offset is not there.
    NoPosition(Message),
    /// Something else went wrong; librdkafka tries again by itself.
    Failed(Message, Code),
}

impl Reader {
    /// A reader for the group: its name is what the brokers' access rules see.
    pub(in crate::kafka) fn new(
        config: &ClientConfig,
        group: &Group,
        isolation: Isolation,
    ) -> Result<Reader, ClientError> {
        let isolation = match isolation {
            Isolation::ReadCommitted => "read_committed",
            Isolation::ReadUncommitted => "read_uncommitted",
        };
        let own = [
            ("group.id", group.group()),
            ("isolation.level", isolation),
            // The only way to learn that what lies behind the last record (markers, aborted records) is passed.
            ("enable.partition.eof", "true"),
        ];
        let handle = Arc::new(Handle::new(config, &own)?);
        // SAFETY: a live client of the consumer kind with a group, so it has the queue, which is ours to give back.
        let queue = unsafe {
            sys::rd_kafka_poll_set_consumer(handle.as_ptr());
            sys::rd_kafka_queue_get_consumer(handle.as_ptr())
        };
        let queue = NonNull::new(queue).expect("a consumer with a group has a queue");
        Ok(Reader { queue, chunk: Vec::with_capacity(CHUNK), handle })
    }

    /// The client, to be held as long as any of its messages.
    pub(in crate::kafka) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    /// Reads these partitions from these offsets, and no others. Nothing of an earlier assignment is delivered after it.
    pub(in crate::kafka) fn assign(&self, starts: &PartitionList) -> Result<(), Code> {
        // SAFETY: live; the list is copied.
        Code::check(unsafe { sys::rd_kafka_assign(self.handle.as_ptr(), starts.as_ptr()) })
    }

    /// Reads none.
    pub(in crate::kafka) fn unassign_all(&self) -> Result<(), Code> {
        // SAFETY: live; null is none.
        Code::check(unsafe { sys::rd_kafka_assign(self.handle.as_ptr(), ptr::null()) })
    }

    /// Reads these partitions too; none of them may be assigned.
    pub(in crate::kafka) fn add(&self, starts: &PartitionList) -> Result<(), Code> {
        // SAFETY: live; the list is copied, the error is ours.
        Code::check_object(unsafe { sys::rd_kafka_incremental_assign(self.handle.as_ptr(), starts.as_ptr()) })
    }

    /// Stops reading these partitions, all of which are assigned.
    pub(in crate::kafka) fn remove(&self, partitions: &PartitionList) -> Result<(), Code> {
        // SAFETY: as above.
        Code::check_object(unsafe { sys::rd_kafka_incremental_unassign(self.handle.as_ptr(), partitions.as_ptr()) })
    }

    /// Waits at most `timeout` for something, and gives at most `max` of what is there.
    pub(in crate::kafka) fn poll(&mut self, timeout: Duration, max: usize, events: &mut Vec<Event>) {
        // librdkafka waits until it has as many as are asked for, so one is waited for, and the rest is taken.
        self.take(ms(timeout), 1, events);
        if !events.is_empty() && max > 1 {
            self.take(0, (max - 1).min(CHUNK), events);
        }
    }

    fn take(&mut self, timeout_ms: i32, max: usize, events: &mut Vec<Event>) {
        // SAFETY: there is room for `CHUNK` pointers; as many as are returned have been written, and are ours.
        unsafe {
            let taken = sys::rd_kafka_consume_batch_queue(
                self.queue.as_ptr(),
                timeout_ms,
                self.chunk.as_mut_ptr(),
                max.min(CHUNK),
            );
            self.chunk.set_len(usize::try_from(taken).unwrap_or(0));
        }
        events.extend(self.chunk.drain(..).filter_map(NonNull::new).map(|message| {
            // SAFETY: live and ours. Its client outlives it: `events` and batches are dropped before their handle.
            let message = unsafe { Message::from_raw(message) };
            match message.check() {
                Ok(()) => Event::Record(message),
                Err(Code::PARTITION_EOF) => Event::End(message),
                Err(Code::NO_POSITION) => Event::NoPosition(message),
                Err(code) => Event::Failed(message, code),
            }
        }));
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: ours, and not used afterwards.
        unsafe { sys::rd_kafka_queue_destroy(self.queue.as_ptr()) };
    }
}
