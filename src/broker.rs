//! What a look at the broker holds, and the trait that takes one. Each value is known, absent (the leader said so) or
//! failed; nothing has a default, and only known and absent may correct anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::offset::{
    Invalid, Isolation, Offset, OffsetRange, Timestamp, TopicId, TopicName, TopicPartition, free_name,
};

/// A value that a broker was asked for.
///
/// ```
/// use tidelog::broker::Seen;
///
/// assert_eq!(Seen::Known(5).known(), Some(&5));
/// // That a broker did not answer says nothing of what there is.
/// assert_eq!(Seen::<u8>::Failed("timed out".to_owned()).known(), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen<T> {
    /// The broker's answer.
    Known(T),
    /// The broker said that there is none.
    Absent,
    /// No answer, or one that says nothing: the error's text.
    Failed(String),
}

impl<T> Seen<T> {
    /// The value, where it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Seen::Known(value) => Some(value),
            Seen::Absent | Seen::Failed(_) => None,
        }
    }
}

/// What a broker said at one moment.
///
/// Made by a [`Broker`]; there is an example.
///
/// ```
/// use std::collections::BTreeMap;
/// use tidelog::broker::{Look, Seen};
/// use tidelog::offset::Timestamp;
///
/// // Of a cluster that nobody could reach a look says nothing, which is not that there is nothing.
/// let failed = || "timed out".to_owned();
/// let (taken_at, brokers) = (Timestamp::from_millis(1_796_032_800_000), "kafka1:9092".to_owned());
/// let (cluster_id, listing) = (Seen::Failed(failed()), Seen::Failed(failed()));
/// let look = Look { taken_at, brokers, cluster_id, topics: BTreeMap::new(), listing };
/// assert!(look.cluster_id.known().is_none() && look.cluster_id != Seen::Absent);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// When, by the machine's clock.
    pub taken_at: Timestamp,
    /// Who was asked, for messages.
    pub brokers: String,
    /// The cluster's id; absent where the broker gives none.
    pub cluster_id: Seen<String>,
    /// Each topic that was asked for by name, and each that a pattern matched.
    pub topics: BTreeMap<TopicName, TopicLook>,
    /// Set where the list of topics that a pattern needs could not be had.
    pub listing: Seen<()>,
}

/// What a broker said of one topic.
///
/// ```
/// use tidelog::broker::{Seen, TopicLook};
///
/// // The broker said that there is no such topic.
/// let gone = TopicLook { id: Seen::Absent, partitions: Seen::Absent };
/// assert_ne!(gone, TopicLook { partitions: Seen::Failed("timed out".to_owned()), ..gone.clone() });
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct TopicLook {
    /// The topic's id; absent where the broker gives none (before 2.8, the mock).
    pub id: Seen<TopicId>,
    /// Its partitions; absent where there is no such topic.
    pub partitions: Seen<BTreeMap<u32, PartitionLook>>,
}

/// What a leader said of one partition.
///
/// ```
/// use tidelog::broker::{PartitionLook, Seen};
/// use tidelog::offset::{Invalid, Offset};
///
/// let seen = |offset: i64| Ok::<_, Invalid>(Seen::Known(Offset::new(offset)?));
/// // A transaction is open since 380: who reads committed records gets no further.
/// let partition = PartitionLook { earliest: seen(250)?, latest: seen(400)?, readable_end: seen(380)? };
/// assert!(partition.readable_end.known() < partition.latest.known());
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionLook {
    /// The log start offset.
    pub earliest: Seen<Offset>,
    /// The high watermark.
    pub latest: Seen<Offset>,
    /// What the group can read up to: the last stable offset for a committed reader, else the high watermark.
    pub readable_end: Seen<Offset>,
}

/// A topic by name, or a pattern of names.
///
/// ```
/// use tidelog::broker::TopicSelector;
///
/// let pattern: TopicSelector = "^orders-.*".parse()?;
/// assert!(pattern.matches(&"orders-eu".parse()?));
/// let name: TopicSelector = "orders".parse()?;
/// assert!(!name.matches(&"orders-eu".parse()?));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Clone)]
pub enum TopicSelector {
    /// One topic.
    Name(TopicName),
    /// All topics whose name matches, except those that begin with `__`.
    Pattern(Pattern),
}

/// A regular expression over topic names that begins with `^`.
///
/// ```
/// use tidelog::broker::TopicSelector;
///
/// let (all, own) = ("^.*".parse()?, "__consumer_offsets".parse()?);
/// // Kafka's own topics are taken in by name only.
/// assert!(matches!(all, TopicSelector::Pattern(pattern) if !pattern.matches(&own)));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Clone)]
pub struct Pattern(regex_lite::Regex);

impl Pattern {
    /// Whether it takes `topic` in.
    pub fn matches(&self, topic: &TopicName) -> bool {
        !topic.as_str().starts_with("__") && self.0.is_match(topic.as_str())
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl FromStr for TopicSelector {
    type Err = Invalid;

    /// Text that begins with `^` is a pattern, any other a name.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        if !text.starts_with('^') {
            return TopicName::new(text).map(TopicSelector::Name);
        }
        if text.len() > 1_000 {
            return Err(Invalid::new("topic", text, "a pattern has at most 1000 bytes"));
        }
        match regex_lite::Regex::new(text) {
            Ok(regex) => Ok(TopicSelector::Pattern(Pattern(regex))),
            Err(error) => Err(Invalid::new("topic", text, format!("not a regular expression: {error}"))),
        }
    }
}

impl TopicSelector {
    /// Whether it takes `topic` in.
    pub fn matches(&self, topic: &TopicName) -> bool {
        match self {
            TopicSelector::Name(name) => name == topic,
            TopicSelector::Pattern(pattern) => pattern.matches(topic),
        }
    }
}

impl fmt::Debug for TopicSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for TopicSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopicSelector::Name(name) => fmt::Display::fmt(name, f),
            TopicSelector::Pattern(pattern) => f.write_str(pattern.0.as_str()),
        }
    }
}

/// What to look at.
///
/// ```
/// use std::time::Duration;
/// use tidelog::broker::Ask;
/// use tidelog::offset::Isolation;
///
/// let topics = vec!["orders".parse()?, "^audit-.*".parse()?];
/// let ask = Ask { topics, isolation: Isolation::ReadCommitted, deadline: Duration::from_secs(10) };
/// let audit = "audit-eu".parse()?;
/// assert!(ask.topics.iter().any(|topic| topic.matches(&audit)));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ask {
    /// The topics.
    pub topics: Vec<TopicSelector>,
    /// Whose readable end.
    pub isolation: Isolation,
    /// How long all of it may take; what has no answer by then is failed.
    pub deadline: Duration,
}

/// Whose committed offsets in Kafka follow a group's positions.
///
/// ```
/// use tidelog::broker::KafkaGroup;
///
/// assert_eq!("none".parse::<KafkaGroup>()?, KafkaGroup::Off);
/// assert_eq!("loader".parse::<KafkaGroup>()?, KafkaGroup::Named("loader".to_owned()));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum KafkaGroup {
    /// Nobody's.
    Off,
    /// Those of the Kafka group of this name, 1 to 255 bytes.
    Named(String),
}

impl FromStr for KafkaGroup {
    type Err = Invalid;

    /// `none` is [`Off`](KafkaGroup::Off), any other text a name.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        free_name("kafka_group", text)?;
        Ok(if text == "none" { KafkaGroup::Off } else { KafkaGroup::Named(text.to_owned()) })
    }
}

impl TryFrom<String> for KafkaGroup {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<KafkaGroup> for String {
    fn from(group: KafkaGroup) -> String {
        match group {
            KafkaGroup::Off => "none".to_owned(),
            KafkaGroup::Named(name) => name,
        }
    }
}

/// A live member of a Kafka group: a consumer that subscribes. One that assigns its partitions itself is none.
///
/// ```
/// use tidelog::broker::Member;
///
/// let json = r#"{"member_id":"loader-5f0c","client_id":"loader","host":"/10.0.0.7"}"#;
/// let member: Member = serde_json::from_str(json)?;
/// assert_eq!(member.to_string(), "loader-5f0c (client loader, host /10.0.0.7)");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its id, which Kafka gives.
    pub member_id: String,
    /// The client's own name.
    pub client_id: String,
    /// Where it runs.
    pub host: String,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (client {}, host {})", self.member_id, self.client_id, self.host)
    }
}

/// Why the members of a Kafka group are not known, in the words of the error.
///
/// ```
/// use tidelog::broker::Untold;
///
/// // It is worth asking again later; what was refused is refused then too.
/// assert_ne!(Untold::Silent("timed out".to_owned()), Untold::Refused("timed out".to_owned()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Untold {
    /// Nobody who knows answered in time.
    Silent(String),
    /// The broker does not tell: it is not allowed, or it can't.
    Refused(String),
}

/// A Kafka cluster as the decisions need it. Calls block, at most for their deadline, and never create a topic.
///
/// A broker of a test's own:
///
/// ```
/// use std::collections::{BTreeMap, BTreeSet};
/// use std::time::Duration;
///
/// use tidelog::broker::{Ask, Broker, Look, Member, PartitionLook, Seen, TopicLook, Untold};
/// use tidelog::offset::{Isolation, Offset, Timestamp, TopicPartition};
///
/// /// One topic, `orders`, of one partition that holds `[250, 400)`.
/// struct Fake;
///
/// impl Broker for Fake {
///     fn look(&self, ask: &Ask) -> Look {
///         let orders = "orders".parse().expect("a legal name");
///         let offset = |number| Seen::Known(Offset::new(number).expect("not negative"));
///         let partition = PartitionLook { earliest: offset(250), latest: offset(400), readable_end: offset(400) };
///         let topic = TopicLook { id: Seen::Absent, partitions: Seen::Known(BTreeMap::from([(0, partition)])) };
///         Look {
///             taken_at: Timestamp::from_millis(1_796_032_800_000),
///             brokers: "fake:9092".to_owned(),
///             cluster_id: Seen::Absent,
///             topics: ask.topics.iter().filter(|asked| asked.matches(&orders)).map(|_| (orders.clone(), topic.clone())).collect(),
///             listing: Seen::Known(()),
///         }
///     }
///
///     fn offsets_at(&self, at: &BTreeSet<TopicPartition>, _: Timestamp, _: Duration) -> BTreeMap<TopicPartition, Seen<Offset>> {
///         at.iter().map(|at| (at.clone(), Seen::Absent)).collect()
///     }
///
///     fn committed(&self, _: &str, at: &BTreeSet<TopicPartition>, _: Duration) -> BTreeMap<TopicPartition, Seen<Offset>> {
///         at.iter().map(|at| (at.clone(), Seen::Absent)).collect()
///     }
///
///     fn commit(&self, _: &str, to: &BTreeMap<TopicPartition, Offset>, _: Duration) -> BTreeMap<TopicPartition, Result<(), String>> {
///         to.keys().map(|at| (at.clone(), Ok(()))).collect()
///     }
///
///     fn cluster_id(&self, _: Duration) -> Seen<String> {
///         Seen::Absent
///     }
///
///     fn members(&self, _: &str, _: Duration) -> Result<Vec<Member>, Untold> {
///         Ok(Vec::new())
///     }
///
///     fn brokers(&self) -> &str {
///         "fake:9092"
///     }
/// }
///
/// let ask = Ask { topics: vec!["^ord".parse()?], isolation: Isolation::default(), deadline: Duration::from_secs(1) };
/// assert_eq!(Fake.look(&ask).topics.len(), 1);
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
pub trait Broker: Send + Sync {
    /// Asks for everything in a few batched requests. Never fails as a whole: what could not be had is failed, value by
    /// value.
    fn look(&self, ask: &Ask) -> Look;

    /// For each partition the first offset whose record's time is at or after `time`; absent where there is none.
    fn offsets_at(
        &self,
        partitions: &BTreeSet<TopicPartition>,
        time: Timestamp,
        deadline: Duration,
    ) -> BTreeMap<TopicPartition, Seen<Offset>>;

    /// The offsets that Kafka holds as committed for its group of this name; absent where it holds none.
    fn committed(
        &self,
        kafka_group: &str,
        partitions: &BTreeSet<TopicPartition>,
        deadline: Duration,
    ) -> BTreeMap<TopicPartition, Seen<Offset>>;

    /// Sets the offsets that Kafka holds as committed for its group of this name, to exactly these: also backwards, and for
    /// a group that Kafka does not know yet. For each partition whether that was done, or why not. Kafka refuses all of
    /// it while the group has live members.
    fn commit(
        &self,
        kafka_group: &str,
        offsets: &BTreeMap<TopicPartition, Offset>,
        deadline: Duration,
    ) -> BTreeMap<TopicPartition, Result<(), String>>;

    /// The cluster that the client is connected to at present; absent where the broker gives no id, failed where none was
    /// reached in time.
    fn cluster_id(&self, deadline: Duration) -> Seen<String>;

    /// The live members of Kafka's group of this name, of whichever protocol; none for a group that Kafka does not know.
    fn members(&self, kafka_group: &str, deadline: Duration) -> Result<Vec<Member>, Untold>;

    /// Who is asked, for messages.
    fn brokers(&self) -> &str;

    /// For each range, in order, the first record in it that is readable under `isolation`; absent where it holds none
    /// (markers, aborted or compacted records). None at all from a broker that can't look into ranges.
    fn first_readable(
        &self,
        _ranges: &[OffsetRange],
        _isolation: Isolation,
        _deadline: Duration,
    ) -> Option<Vec<Seen<Offset>>> {
        None
    }
}
