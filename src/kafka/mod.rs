//! The only place that knows librdkafka: looks at a cluster, and consumers whose positions live in the journal.
//!
//! - [`ClientConfig`]: how clients are made; the settings that could lose or create something are not for sale.
//! - [`Properties`]: a properties file of a Java client or of librdkafka, as a client of ours takes it.
//! - [`KafkaBroker`]: [`crate::broker::Broker`] over a cluster.
//! - [`JournaledConsumer`]: hands out batches and commits them to the journal.
//! - [`mock`]: librdkafka's own mock cluster, for a demonstration and for tests.
//!
//! Ground first: `raw` wraps librdkafka's functions one by one and is the only place in the crate with `unsafe`.

mod broker;
mod config;
mod consumer;
mod coordinator;
mod hole;
pub mod mock;
mod properties;
#[allow(unsafe_code, reason = "each call into librdkafka is wrapped in the smallest function")]
mod raw;
mod topics;

pub use self::broker::KafkaBroker;
pub use self::config::{ClientConfig, ClientError};
pub use self::consumer::{
    Batch, BeginError, CommitFailed, Config, Cut, Discovery, Health, JournaledConsumer, Moved, Record, StopReason,
};
pub use self::properties::Properties;
pub use self::topics::{OwnTopics, TopicError};
