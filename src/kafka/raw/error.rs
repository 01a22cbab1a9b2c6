//! librdkafka's error codes.

use std::ffi::CStr;
use std::fmt;

use rdkafka_sys as sys;
use rdkafka_sys::rd_kafka_resp_err_t as Raw;

/// An error of librdkafka or of a broker.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::kafka) struct Code(Raw);

impl Code {
    pub(in crate::kafka) const TIMED_OUT: Code = Code(Raw::RD_KAFKA_RESP_ERR__TIMED_OUT);
    pub(in crate::kafka) const PARTITION_EOF: Code = Code(Raw::RD_KAFKA_RESP_ERR__PARTITION_EOF);
    pub(in crate::kafka) const NO_POSITION: Code = Code(Raw::RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET);

    pub(in crate::kafka) const NOT_COORDINATOR: Code = Code(Raw::RD_KAFKA_RESP_ERR_NOT_COORDINATOR);
    pub(in crate::kafka) const UNKNOWN_MEMBER: Code = Code(Raw::RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID);

    /// Fails if `raw` is an error.
    pub(super) fn check(raw: Raw) -> Result<(), Code> {
        match raw {
            Raw::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
            raw => Err(Code(raw)),
        }
    }

    /// Takes over an error object; null is none.
    pub(super) fn check_object(error: *mut sys::rd_kafka_error_t) -> Result<(), Code> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: the object is ours, and not used afterwards.
        let code = unsafe { sys::rd_kafka_error_code(error) };
        unsafe { sys::rd_kafka_error_destroy(error) };
        Err(Code(code))
    }

    /// Whether a broker says that there is no such topic or partition.
    pub(in crate::kafka) fn is_unknown(self) -> bool {
        matches!(
            self.0,
            Raw::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART
                | Raw::RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC
                | Raw::RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION
                | Raw::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_ID
        )
    }

    /// Whether a group's coordinator is only being made, or has just moved.
    pub(in crate::kafka) fn is_about_coordinators(self) -> bool {
        matches!(
            self.0,
            Raw::RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS
                | Raw::RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE
                | Raw::RD_KAFKA_RESP_ERR_NOT_COORDINATOR
        )
    }

    /// Whether there was no answer in time from whoever has it; any other error is an answer.
    pub(in crate::kafka) fn is_silence(self) -> bool {
        self.is_about_coordinators()
            || matches!(
                self.0,
                Raw::RD_KAFKA_RESP_ERR__TIMED_OUT
                    | Raw::RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE
                    | Raw::RD_KAFKA_RESP_ERR__TRANSPORT
                    | Raw::RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN
                    | Raw::RD_KAFKA_RESP_ERR__RESOLVE
                    | Raw::RD_KAFKA_RESP_ERR__WAIT_COORD
                    | Raw::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT
            )
    }

    /// Whether Kafka has no group of this name.
    pub(in crate::kafka) fn is_no_such_group(self) -> bool {
        self.0 == Raw::RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND
    }

    /// Whether the topic itself is missing, by the broker's own word.
    pub(in crate::kafka) fn is_no_such_topic(self) -> bool {
        self.0 == Raw::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART
    }

    /// Whether the client's idea of who leads may just be old: a topic was made, grew, or changed its leader.
    pub(in crate::kafka) fn is_about_leaders(self) -> bool {
        self.is_unknown()
            || matches!(
                self.0,
                Raw::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION
                    | Raw::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE
                    | Raw::RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH
                    | Raw::RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH
            )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: both give static text.
        let text = unsafe { CStr::from_ptr(sys::rd_kafka_err2str(self.0)) };
        f.write_str(&text.to_string_lossy())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: static text.
        let name = unsafe { CStr::from_ptr(sys::rd_kafka_err2name(self.0)) };
        f.write_str(&name.to_string_lossy())
    }
}
