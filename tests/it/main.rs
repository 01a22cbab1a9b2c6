//! All integration tests in one binary, a module a subject.

mod crash;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "kafka")]
mod kafka_harness;
mod model;
mod tidy;
#[cfg(feature = "kafka")]
mod wait;
