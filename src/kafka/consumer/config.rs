//! How a consumer reads, and how it is.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::kafka::ClientConfig;
use crate::offset::{Epoch, Timestamp};

/// When a batch is cut: at whichever limit comes first.
///
/// ```
/// use std::time::Duration;
/// use tidelog::kafka::Cut;
///
/// let cut = Cut { max_wait: Duration::from_millis(200), ..Cut::default() };
/// assert_eq!((cut.max_records.get(), cut.max_bytes.get()), (10_000, 16 << 20));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Records of a batch.
    pub max_records: NonZeroUsize,
    /// Bytes of keys and values; the record that passes it is the last one.
    pub max_bytes: NonZeroUsize,
    /// How long the first record waits for others.
    pub max_wait: Duration,
}

impl Default for Cut {
    /// 10,000 records, 16 MiB, 1 s.
    fn default() -> Self {
        Cut {
            max_records: NonZeroUsize::new(10_000).unwrap_or(NonZeroUsize::MIN),
            max_bytes: NonZeroUsize::new(16 << 20).unwrap_or(NonZeroUsize::MIN),
            max_wait: Duration::from_secs(1),
        }
    }
}

/// How often a running consumer looks for new partitions and topics, and for what became of those it has.
///
/// ```
/// use std::time::Duration;
/// use tidelog::kafka::Discovery;
///
/// assert_eq!(Discovery::default(), Discovery::Every(Duration::from_secs(10)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discovery {
    /// Never by itself; only when a partition's offset is not there any more.
    Off,
    /// At this interval.
    Every(Duration),
}

impl Default for Discovery {
    fn default() -> Self {
        Discovery::Every(Duration::from_secs(10))
    }
}

/// How a consumer reads.
///
/// ```
/// use tidelog::kafka::{ClientConfig, Config, Cut, Discovery};
///
/// let client = ClientConfig::new("localhost:9092")?;
/// let config = Config { client, cut: Cut::default(), discovery: Discovery::default() };
/// assert_eq!(config.client.brokers(), "localhost:9092");
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone)]
pub struct Config {
    /// The cluster; the group's name is what the brokers' access rules see.
    pub client: ClientConfig,
    /// When a batch is cut.
    pub cut: Cut,
    /// How often it looks.
    pub discovery: Discovery,
}

/// How a consumer is.
///
/// ```
/// use tidelog::kafka::Health;
///
/// let health = Health { look_failed: Some("timed out".to_owned()), ..Health::default() };
/// assert!(health.last_look.is_none() && health.problems.is_empty()); // it has not looked yet
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// The epoch that it reads under.
    pub epoch: Epoch,
    /// How often it looks.
    pub discovery: Discovery,
    /// The last look that the broker answered.
    pub last_look: Option<Timestamp>,
    /// Why the newest look failed.
    pub look_failed: Option<String>,
    /// What the newest look found wrong and did not correct: a topic that is gone.
    pub problems: Vec<String>,
    /// The newest error of reading; librdkafka tries again by itself.
    pub reading_failed: Option<String>,
    /// Why it waits with taking new positions: the group is held, or the broker silent.
    pub waiting: Option<String>,
}
