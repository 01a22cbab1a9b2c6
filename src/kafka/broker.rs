//! A look at a cluster, in a few requests, whatever the number of partitions.
//!
//! First one metadata request to whichever broker answers: the cluster's id and, for a pattern, the list of topics. Then that
//! broker is asked about the topics (ids, partitions, leaders: one request), then the leaders for earliest, latest and the
//! last stable offset (three requests a leader, at the same time).
//!
//! Topics are asked about at the broker that answered the first request and not, as librdkafka does by itself, at the
//! controller: a cluster without one (the mock) would never answer. So a topic has no id if and only if a broker's
//! answer says so (before 2.8): nothing has to be guessed from a time-out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::coordinator::{Coordinators, Unanswered};
use super::hole::first_readable;
use super::raw::{Code, Described, Handle, Listed, PartitionList};
use super::{ClientConfig, ClientError};
use crate::broker::{Ask, Broker, Look, Member, PartitionLook, Seen, TopicLook, TopicSelector, Untold};
use crate::journal::Clock;
use crate::offset::{Isolation, Offset, OffsetRange, Timestamp, TopicName, TopicPartition};

/// How long an answer that speaks of another leader is asked again: just after a topic was made or has grown, the client
/// and the brokers do not agree yet.
const LEADERS_SETTLE: Duration = Duration::from_secs(2);
/// Bytes of the records by which Kafka keeps the committed offsets that one request sets: it writes them as one batch, which
/// has at most 1 MiB.
const COMMITTED_BYTES: usize = 512 << 10;
/// What such a record takes beside the names of group and topic, at most.
const COMMITTED_OVERHEAD: usize = 64;
/// The pause before asking again.
const PAUSE: Duration = Duration::from_millis(100);

/// A Kafka cluster, looked at through one client; the coordinators of groups are asked through others.
///
/// ```
/// # let clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// use std::time::Duration;
/// use tidelog::broker::Broker;
/// use tidelog::kafka::{KafkaBroker, mock::Mock};
///
/// let cluster = Mock::new(1)?; // or a real one
/// let broker = KafkaBroker::new(&cluster.config(), clock)?;
/// assert!(broker.cluster_id(Duration::from_secs(10)).known().is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct KafkaBroker {
    handle: Arc<Handle>,
    coordinators: Coordinators,
    config: ClientConfig,
    clock: Clock,
}

impl KafkaBroker {
    /// A client of the cluster. It connects by itself; nothing is asked yet.
    ///
    /// # Errors
    ///
    /// A property that librdkafka does not know or can't use.
    pub fn new(config: &ClientConfig, clock: Clock) -> Result<KafkaBroker, ClientError> {
        let handle = Arc::new(Handle::new(config, &[])?);
        Ok(KafkaBroker { handle, coordinators: Coordinators::new(config)?, config: config.clone(), clock })
    }

    /// An error's text, with what went wrong with a connection.
    fn failed(&self, code: Code) -> String {
        let trouble = self.handle.trouble().map(|trouble| format!(" ({trouble})")).unwrap_or_default();
        format!("{code}{trouble}")
    }

    /// Offsets of `partitions`, asked again within `until` where only the client's idea of the leaders is old.
    fn list_offsets(
        &self,
        partitions: &BTreeSet<TopicPartition>,
        number: i64,
        isolation: Isolation,
        until: Instant,
    ) -> BTreeMap<TopicPartition, Result<i64, String>> {
        let settle = until.min(Instant::now() + LEADERS_SETTLE);
        let mut found = BTreeMap::new();
        let mut missing = partitions.clone();
        loop {
            let answer = self.list_offsets_once(&missing, number, isolation, until);
            let again = Instant::now() + PAUSE < settle;
            missing.retain(|at| {
                let value = match &answer {
                    Ok(listed) => listed.get(at).copied().unwrap_or(Err(Code::TIMED_OUT)),
                    Err(code) => Err(*code),
                };
                match value {
                    Err(code) if again && code.is_about_leaders() => return true,
                    value => found.insert(at.clone(), value.map_err(|code| code.to_string())),
                };
                false
            });
            if missing.is_empty() {
                return found;
            }
            thread::sleep(PAUSE);
        }
    }

    fn list_offsets_once(
        &self,
        partitions: &BTreeSet<TopicPartition>,
        number: i64,
        isolation: Isolation,
        until: Instant,
    ) -> Result<Listed, Code> {
        if partitions.is_empty() {
            return Ok(Listed::new());
        }
        let list = PartitionList::of(partitions.iter(), number);
        self.handle.list_offsets(&list, isolation, left(until)?).offsets()
    }

    /// Asks the coordinator of a group, of the cluster that looks see.
    fn of_coordinator<T>(
        &self,
        until: Instant,
        part: impl Fn(&T) -> Option<Code>,
        ask: impl Fn(&Arc<Handle>, Duration) -> Result<T, Code>,
    ) -> Result<T, Unanswered> {
        self.coordinators.ask(self.handle.cluster_id().as_deref(), until, part, ask)
    }

    /// Sets some committed offsets.
    fn commit_some(
        &self,
        kafka_group: &str,
        offsets: &[(&TopicPartition, &Offset)],
        until: Instant,
    ) -> BTreeMap<TopicPartition, Result<(), String>> {
        let mut list = PartitionList::with_capacity(offsets.len());
        offsets.iter().for_each(|(at, offset)| list.push_offset(at, **offset));
        let ask = |handle: &Arc<Handle>, left| handle.alter_committed(kafka_group, &list, left).altered();
        let answer = self.of_coordinator(until, unsettled, ask);
        let told = |code: Code| match code {
            Code::UNKNOWN_MEMBER => format!("{code}: the Kafka group has live members"),
            code => code.to_string(),
        };
        let result = |at: &TopicPartition| match &answer {
            Ok(listed) => listed.get(at).copied().unwrap_or(Err(Code::TIMED_OUT)).map_err(told),
            Err(unanswered) => Err(unanswered.to_string()),
        };
        offsets.iter().map(|(at, _)| ((*at).clone(), result(at).map(drop))).collect()
    }

    /// The ends of each partition's log.
    fn ends(
        &self,
        partitions: &BTreeSet<TopicPartition>,
        isolation: Isolation,
        until: Instant,
    ) -> BTreeMap<TopicPartition, PartitionLook> {
        let ask = |number, isolation| self.list_offsets(partitions, number, isolation, until);
        let (mut earliest, mut latest, mut stable) = thread::scope(|scope| {
            let latest = scope.spawn(|| ask(Handle::LATEST, Isolation::ReadUncommitted));
            let stable = match isolation {
                Isolation::ReadCommitted => Some(scope.spawn(|| ask(Handle::LATEST, Isolation::ReadCommitted))),
                Isolation::ReadUncommitted => None,
            };
            let earliest = ask(Handle::EARLIEST, Isolation::ReadUncommitted);
            // A panic in one of them is a bug of ours; the look then holds no value of it.
            (earliest, latest.join().unwrap_or_default(), stable.map(|stable| stable.join().unwrap_or_default()))
        });
        let seen = |found: Option<Result<i64, String>>| match found {
            Some(Ok(offset)) => {
                Offset::new(offset).map_or_else(|_| Seen::Failed(format!("the broker answered {offset}")), Seen::Known)
            }
            Some(Err(why)) => Seen::Failed(why),
            None => Seen::Failed("not answered".to_owned()),
        };
        let looks = partitions.iter().map(|at| {
            let latest = seen(latest.remove(at));
            let readable_end = match &mut stable {
                Some(stable) => seen(stable.remove(at)),
                None => latest.clone(),
            };
            (at.clone(), PartitionLook { earliest: seen(earliest.remove(at)), latest, readable_end })
        });
        looks.collect()
    }

    /// What a broker says of these topics.
    fn describe(
        &self,
        broker: i32,
        names: &BTreeSet<TopicName>,
        until: Instant,
    ) -> Result<BTreeMap<TopicName, Result<Described, Code>>, Code> {
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        let names: Vec<TopicName> = names.iter().cloned().collect();
        self.handle.describe_topics(broker, &names, left(until)?).topics()
    }

    fn topic_look(
        &self,
        described: Result<Described, Code>,
        name: &TopicName,
        ends: &mut BTreeMap<TopicPartition, PartitionLook>,
    ) -> TopicLook {
        match described {
            Ok(Described { id, partitions }) => {
                let partitions = partitions.into_iter().map(|(partition, has_leader)| {
                    let at = TopicPartition::new(name.clone(), partition);
                    let failed = || Seen::Failed(if has_leader { "not answered" } else { "no leader" }.to_owned());
                    let look = ends.remove(&at).unwrap_or_else(|| PartitionLook {
                        earliest: failed(),
                        latest: failed(),
                        readable_end: failed(),
                    });
                    (partition, look)
                });
                TopicLook { id: id.map_or(Seen::Absent, Seen::Known), partitions: Seen::Known(partitions.collect()) }
            }
            Err(code) if code.is_no_such_topic() => TopicLook { id: Seen::Absent, partitions: Seen::Absent },
            Err(code) => failed_topic(&code.to_string()),
        }
    }
}

impl Broker for KafkaBroker {
    fn look(&self, ask: &Ask) -> Look {
        let until = Instant::now() + ask.deadline;
        let mut names: BTreeSet<TopicName> = ask.topics.iter().filter_map(named).cloned().collect();
        let listed = ask.topics.iter().any(|topic| named(topic).is_none());
        let look = |cluster_id, topics, listing| Look {
            taken_at: (self.clock)(),
            brokers: self.config.brokers().to_owned(),
            cluster_id,
            topics,
            listing,
        };
        let first = if listed { None } else { names.first() };
        let metadata = match left(until).and_then(|left| self.handle.metadata(first, left)) {
            Ok(metadata) => metadata,
            Err(code) => {
                let why = self.failed(code);
                let topics = names.into_iter().map(|name| (name, failed_topic(&why))).collect();
                return look(Seen::Failed(why.clone()), topics, Seen::Failed(why));
            }
        };
        self.handle.forget_trouble();
        let cluster_id = self.handle.cluster_id().map_or(Seen::Absent, Seen::Known);
        if listed {
            let matched = |name: &TopicName| ask.topics.iter().any(|topic| topic.matches(name));
            names.extend(metadata.topics.into_iter().filter(matched));
        }
        let mut described = match self.describe(metadata.broker, &names, until) {
            Ok(described) => described,
            Err(code) => names.iter().map(|name| (name.clone(), Err(code))).collect(),
        };
        // One partition without a leader would hold up the answer about all others until the time is over.
        let led = described.iter().filter_map(|(name, described)| Some((name, described.as_ref().ok()?)));
        let led = led.flat_map(|(name, described)| {
            let led = described.partitions.iter().filter(|(_, has_leader)| **has_leader);
            led.map(|(partition, _)| TopicPartition::new(name.clone(), *partition))
        });
        let mut ends = self.ends(&led.collect(), ask.isolation, until);
        let topics = names.into_iter().map(|name| {
            let described = described.remove(&name).unwrap_or(Err(Code::TIMED_OUT));
            let topic = self.topic_look(described, &name, &mut ends);
            (name, topic)
        });
        look(cluster_id, topics.collect(), Seen::Known(()))
    }

    fn offsets_at(
        &self,
        partitions: &BTreeSet<TopicPartition>,
        time: Timestamp,
        deadline: Duration,
    ) -> BTreeMap<TopicPartition, Seen<Offset>> {
        let until = Instant::now() + deadline;
        let found = self.list_offsets(partitions, time.millis(), Isolation::ReadUncommitted, until);
        found.into_iter().map(|(at, found)| (at, seen_or_absent(found))).collect()
    }

    fn committed(
        &self,
        kafka_group: &str,
        partitions: &BTreeSet<TopicPartition>,
        deadline: Duration,
    ) -> BTreeMap<TopicPartition, Seen<Offset>> {
        if partitions.is_empty() {
            return BTreeMap::new();
        }
        let list = PartitionList::of(partitions.iter(), -1);
        let until = Instant::now() + deadline;
        let ask = |handle: &Arc<Handle>, left| handle.committed(kafka_group, &list, left).group_offsets();
        let mut answer = self.of_coordinator(until, unsettled, ask);
        let found = partitions.iter().map(|at| {
            let found = match &mut answer {
                Ok(listed) => listed.remove(at).unwrap_or(Err(Code::TIMED_OUT)).map_err(|code| code.to_string()),
                Err(unanswered) => Err(unanswered.to_string()),
            };
            (at.clone(), seen_or_absent(found))
        });
        found.collect()
    }

    fn commit(
        &self,
        kafka_group: &str,
        offsets: &BTreeMap<TopicPartition, Offset>,
        deadline: Duration,
    ) -> BTreeMap<TopicPartition, Result<(), String>> {
        let until = Instant::now() + deadline;
        let offsets: Vec<_> = offsets.iter().collect();
        let longest = offsets.iter().map(|(at, _)| at.topic.as_str().len()).max().unwrap_or_default();
        let at_once = COMMITTED_BYTES / (kafka_group.len() + longest + COMMITTED_OVERHEAD);
        offsets.chunks(at_once.max(1)).flat_map(|some| self.commit_some(kafka_group, some, until)).collect()
    }

    fn cluster_id(&self, deadline: Duration) -> Seen<String> {
        // What a client that has asked before knows; it is asked anew whenever a connection is.
        match self.handle.cluster_id_within(deadline) {
            Ok(id) => id.map_or(Seen::Absent, Seen::Known),
            Err(code) => Seen::Failed(self.failed(code)),
        }
    }

    fn members(&self, kafka_group: &str, deadline: Duration) -> Result<Vec<Member>, Untold> {
        let until = Instant::now() + deadline;
        let ask = |handle: &Arc<Handle>, left| handle.describe_group(kafka_group, left).members();
        match self.of_coordinator(until, |_| None, ask) {
            Ok(members) => Ok(members),
            Err(Unanswered::Code(code, _)) if code.is_no_such_group() => Ok(Vec::new()),
            Err(Unanswered::Code(code, _)) if !code.is_silence() => Err(Untold::Refused(code.to_string())),
            Err(unanswered @ Unanswered::OtherCluster(_)) => Err(Untold::Refused(unanswered.to_string())),
            Err(unanswered) => Err(Untold::Silent(unanswered.to_string())),
        }
    }

    fn brokers(&self) -> &str {
        self.config.brokers()
    }

    fn first_readable(
        &self,
        ranges: &[OffsetRange],
        isolation: Isolation,
        deadline: Duration,
    ) -> Option<Vec<Seen<Offset>>> {
        if ranges.is_empty() {
            return Some(Vec::new());
        }
        let seen = first_readable(&self.config, ranges, isolation, Instant::now() + deadline);
        Some(seen.unwrap_or_else(|error| vec![Seen::Failed(error.to_string()); ranges.len()]))
    }
}

fn named(topic: &TopicSelector) -> Option<&TopicName> {
    match topic {
        TopicSelector::Name(name) => Some(name),
        TopicSelector::Pattern(_) => None,
    }
}

/// A negative number is the broker's "none".
fn seen_or_absent(found: Result<i64, String>) -> Seen<Offset> {
    match found {
        Ok(offset) => Offset::new(offset).map_or(Seen::Absent, Seen::Known),
        Err(why) => Seen::Failed(why),
    }
}

fn failed_topic(why: &str) -> TopicLook {
    TopicLook { id: Seen::Failed(why.to_owned()), partitions: Seen::Failed(why.to_owned()) }
}

/// What a part of the answer says of the coordinator that is no answer yet.
fn unsettled(listed: &Listed) -> Option<Code> {
    let mut codes = listed.values().filter_map(|value| value.err()).filter(|code| code.is_about_coordinators());
    let first = codes.next()?;
    Some(codes.find(|code| *code == Code::NOT_COORDINATOR).unwrap_or(first))
}

/// What is left of the time; none is a time-out.
pub(super) fn left(until: Instant) -> Result<Duration, Code> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Code::TIMED_OUT) } else { Ok(left) }
}
