//! A record as librdkafka received it: owned, and not copied.

use std::ffi::{CStr, c_void};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use rdkafka_sys as sys;

use super::Code;

/// A record. It keeps the client's receive buffer alive, so whoever holds it holds the client too (see `Records`).
pub(in crate::kafka) struct Message(NonNull<sys::rd_kafka_message_t>);

// SAFETY: librdkafka's messages may be used and destroyed on any thread; what is read through a shared reference is not
// written any more, except the headers on their first use, which `headers` guards.
unsafe impl Send for Message {}
unsafe impl Sync for Message {}

/// The headers of a record, in their order: name and value.
pub(in crate::kafka) type Headers<'a> = Vec<(&'a str, Option<&'a [u8]>)>;

impl Message {
    /// Takes over what librdkafka gave.
    ///
    /// # Safety
    ///
    /// `message` is live and nobody else's, and its client outlives it.
    pub(super) unsafe fn from_raw(message: NonNull<sys::rd_kafka_message_t>) -> Message {
        Message(message)
    }

    fn raw(&self) -> &sys::rd_kafka_message_t {
        // SAFETY: live as long as `self`.
        unsafe { self.0.as_ref() }
    }

    /// Fails where this is an error and no record.
    pub(super) fn check(&self) -> Result<(), Code> {
        Code::check(self.raw().err)
    }

    /// What a partition is told apart by, as long as nothing is assigned or unassigned: no text is compared.
    pub(in crate::kafka) fn place(&self) -> (usize, i32) {
        (self.raw().rkt.addr(), self.raw().partition)
    }

    /// The topic's name; empty where an error belongs to none.
    pub(in crate::kafka) fn topic(&self) -> &str {
        if self.raw().rkt.is_null() {
            return "";
        }
        // SAFETY: the topic lives as long as the message; its name ends in NUL.
        unsafe { CStr::from_ptr(sys::rd_kafka_topic_name(self.raw().rkt)) }.to_str().unwrap_or_default()
    }

    /// Its own offset; for an error the offset that the error is about.
    pub(in crate::kafka) fn offset(&self) -> i64 {
        self.raw().offset
    }

    /// Bytes of key and value.
    pub(in crate::kafka) fn size(&self) -> usize {
        self.raw().len.saturating_add(self.raw().key_len)
    }

    /// The key, where it has one.
    pub(in crate::kafka) fn key(&self) -> Option<&[u8]> {
        // SAFETY: librdkafka's pointer and length, live as long as the message.
        unsafe { bytes(self.raw().key, self.raw().key_len) }
    }

    /// The value; none for a tombstone.
    pub(in crate::kafka) fn payload(&self) -> Option<&[u8]> {
        // SAFETY: as above.
        unsafe { bytes(self.raw().payload, self.raw().len) }
    }

    /// Milliseconds since the epoch, where the record has a time.
    pub(in crate::kafka) fn timestamp(&self) -> Option<i64> {
        let mut kind = sys::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: live.
        let time = unsafe { sys::rd_kafka_message_timestamp(self.0.as_ptr(), &raw mut kind) };
        (kind != sys::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE && time >= 0).then_some(time)
    }

    /// The headers. `guard` is one for all users of this message: the first use unpacks them in place.
    pub(in crate::kafka) fn headers(&self, guard: &Mutex<()>) -> Headers<'_> {
        let mut headers = ptr::null_mut();
        let unpacked = {
            let _guard = guard.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: live; written under the guard only.
            unsafe { sys::rd_kafka_message_headers(self.0.as_ptr(), &raw mut headers) }
        };
        let mut all = Headers::new();
        if Code::check(unpacked).is_err() {
            return all;
        }
        loop {
            let (mut name, mut value, mut len) = (ptr::null(), ptr::null(), 0);
            // SAFETY: the headers live as long as the message and do not change any more.
            unsafe {
                let found =
                    sys::rd_kafka_header_get_all(headers, all.len(), &raw mut name, &raw mut value, &raw mut len);
                if Code::check(found).is_err() {
                    return all;
                }
                let name = CStr::from_ptr(name).to_str().unwrap_or("(not UTF-8)");
                all.push((name, bytes(value, len)));
            }
        }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: ours, and not used afterwards.
        unsafe { sys::rd_kafka_message_destroy(self.0.as_ptr()) };
    }
}

/// # Safety
///
/// `first` points to `len` bytes that live for `'a`, or is null.
unsafe fn bytes<'a>(first: *const c_void, len: usize) -> Option<&'a [u8]> {
    // SAFETY: by the contract.
    (!first.is_null()).then(|| unsafe { std::slice::from_raw_parts(first.cast::<u8>(), len) })
}
