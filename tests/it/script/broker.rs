//! A broker that says what its script says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use tidelog::broker::{Ask, Broker, Look, Member, PartitionLook, Seen, TopicLook, TopicSelector, Untold};
use tidelog::offset::{Isolation, Offset, OffsetRange, Timestamp, TopicName, TopicPartition};

use super::words::{self, Words};

/// Answers from what the script said last; never creates anything.
#[derive(Default)]
pub struct ScriptedBroker {
    said: Mutex<Script>,
}

#[derive(Default)]
struct Script {
    cluster: Option<String>,
    topics: BTreeMap<TopicName, TopicLook>,
    once: VecDeque<(TopicName, TopicLook)>,
    times: BTreeMap<TopicPartition, Seen<Offset>>,
    kafka: BTreeMap<TopicPartition, Seen<Offset>>,
    /// Live members of the Kafka group; none in a script is nobody.
    members: Option<Result<Vec<Member>, Untold>>,
    /// Partitions whose committed offsets it refuses to set.
    refused: BTreeSet<TopicPartition>,
    readable: Option<BTreeMap<TopicPartition, Vec<(Offset, Offset)>>>,
    commits: Vec<Box<dyn FnOnce() + Send>>,
}

impl ScriptedBroker {
    fn with<R>(&self, change: impl FnOnce(&mut Script) -> R) -> R {
        change(&mut self.said.lock().expect("no panic under the lock"))
    }

    /// `orders id=A 0:0..520 1:250..400(380) 2:?`
    pub fn say(&self, words: &Words) {
        let (topic, look) = topic_look(words);
        self.with(|script| script.topics.insert(topic, look));
    }

    pub fn say_once(&self, words: &Words) {
        self.with(|script| script.once.push_back(topic_look(words)));
    }

    pub fn cluster(&self, id: &str) {
        self.with(|script| script.cluster = Some(id.to_owned()));
    }

    pub fn times(&self, words: &Words) {
        self.with(|script| script.times = places(words));
    }

    pub fn kafka(&self, words: &Words) {
        self.with(|script| script.kafka = places(words));
    }

    /// Who is in the Kafka group: `a b`, nobody, `?` where it does not answer, or `no` where it refuses to tell.
    pub fn members(&self, words: &Words) {
        let member = |id: &str| Member {
            member_id: id.to_owned(),
            client_id: format!("client-{id}"),
            host: "/127.0.0.1".to_owned(),
        };
        let said = match words.from(1).next() {
            Some("?") => Err(Untold::Silent("timed out".to_owned())),
            Some("no") => Err(Untold::Refused("not authorized".to_owned())),
            _ => Ok(words.from(1).map(member).collect()),
        };
        self.with(|script| script.members = Some(said));
    }

    /// The partitions whose committed offsets it refuses to set from now on.
    pub fn refuses(&self, words: &Words) {
        self.with(|script| script.refused = words.from(1).map(words::at).collect());
    }

    /// What of a log is records, for one who looks into holes: `none`, or `orders/0 100..200 250..260`.
    pub fn readable(&self, words: &Words) {
        self.with(|script| {
            let readable = script.readable.get_or_insert_default();
            if words.text(1) != "none" {
                let ends = |range: &str| range.split_once("..").map(|(from, until)| (known(from), known(until)));
                readable.insert(words::at(words.text(1)), words.from(2).filter_map(ends).collect());
            }
        });
    }

    pub fn after_next_look(&self, commit: impl FnOnce() + Send + 'static) {
        self.with(|script| script.commits.push(Box::new(commit)));
    }

    pub fn has_commits(&self) -> bool {
        self.with(|script| !script.commits.is_empty())
    }

    /// What it says of these topics.
    pub fn answer(&self, names: impl Iterator<Item = TopicName>) -> Look {
        self.with(|script| {
            let once = script.once.pop_front();
            let absent = || TopicLook { id: Seen::Absent, partitions: Seen::Absent };
            let look = |name: TopicName| match &once {
                Some((topic, look)) if *topic == name => (name, look.clone()),
                _ => (name.clone(), script.topics.get(&name).cloned().unwrap_or_else(absent)),
            };
            Look {
                taken_at: Timestamp::default(),
                brokers: "fake:9092".to_owned(),
                cluster_id: script.cluster.clone().map_or(Seen::Absent, Seen::Known),
                topics: names.map(look).collect(),
                listing: Seen::Known(()),
            }
        })
    }
}

impl Broker for ScriptedBroker {
    fn look(&self, ask: &Ask) -> Look {
        let there = self.with(|script| script.topics.clone());
        let there = there.iter().filter(|(_, look)| look.partitions != Seen::Absent).map(|(name, _)| name);
        let names = ask.topics.iter().flat_map(|selector| match selector {
            TopicSelector::Name(name) => vec![name.clone()],
            TopicSelector::Pattern(pattern) => there.clone().filter(|name| pattern.matches(name)).cloned().collect(),
        });
        let look = self.answer(names.collect::<BTreeSet<_>>().into_iter());
        let commits = self.with(|script| std::mem::take(&mut script.commits));
        commits.into_iter().for_each(|commit| commit());
        look
    }

    fn offsets_at(
        &self,
        partitions: &BTreeSet<TopicPartition>,
        _time: Timestamp,
        _deadline: Duration,
    ) -> BTreeMap<TopicPartition, Seen<Offset>> {
        self.with(|script| seen(&script.times, partitions))
    }

    fn committed(
        &self,
        _kafka_group: &str,
        partitions: &BTreeSet<TopicPartition>,
        _deadline: Duration,
    ) -> BTreeMap<TopicPartition, Seen<Offset>> {
        self.with(|script| seen(&script.kafka, partitions))
    }

    fn commit(
        &self,
        _kafka_group: &str,
        offsets: &BTreeMap<TopicPartition, Offset>,
        _deadline: Duration,
    ) -> BTreeMap<TopicPartition, Result<(), String>> {
        self.with(|script| {
            let mut set = |(at, offset): (&TopicPartition, &Offset)| {
                if script.refused.contains(at) {
                    return (at.clone(), Err("Broker: Unknown member".to_owned()));
                }
                script.kafka.insert(at.clone(), Seen::Known(*offset));
                (at.clone(), Ok(()))
            };
            offsets.iter().map(&mut set).collect()
        })
    }

    fn cluster_id(&self, _deadline: Duration) -> Seen<String> {
        self.with(|script| script.cluster.clone()).map_or(Seen::Absent, Seen::Known)
    }

    fn members(&self, _kafka_group: &str, _deadline: Duration) -> Result<Vec<Member>, Untold> {
        self.with(|script| script.members.clone().unwrap_or(Ok(Vec::new())))
    }

    fn brokers(&self) -> &str {
        "fake:9092"
    }

    fn first_readable(
        &self,
        ranges: &[OffsetRange],
        _isolation: Isolation,
        _deadline: Duration,
    ) -> Option<Vec<Seen<Offset>>> {
        self.with(|script| {
            let readable = script.readable.as_ref()?;
            let first = |range: &OffsetRange| {
                let records = readable.get(&range.topic_partition()).into_iter().flatten();
                let mut firsts = records.filter_map(|(from, until)| {
                    let first = *from.max(&range.from_offset());
                    (first < *until.min(&range.until_offset())).then_some(first)
                });
                firsts.next().map_or(Seen::Absent, Seen::Known)
            };
            Some(ranges.iter().map(first).collect())
        })
    }
}

fn seen(
    said: &BTreeMap<TopicPartition, Seen<Offset>>,
    asked: &BTreeSet<TopicPartition>,
) -> BTreeMap<TopicPartition, Seen<Offset>> {
    asked.iter().map(|at| (at.clone(), said.get(at).cloned().unwrap_or(Seen::Absent))).collect()
}

fn known(text: &str) -> Offset {
    words::offset(text).expect("an offset")
}

fn end(text: &str) -> Seen<Offset> {
    if text == "?" { Seen::Failed("no leader".to_owned()) } else { Seen::Known(known(text)) }
}

fn places(words: &Words) -> BTreeMap<TopicPartition, Seen<Offset>> {
    let place = |word: &str| {
        let (place, offset) = word.split_once('=').expect("orders/0=50");
        (words::at(place), if offset == "end" { Seen::Absent } else { end(offset) })
    };
    words.from(1).map(place).collect()
}

fn topic_look(words: &Words) -> (TopicName, TopicLook) {
    let failed = || "timed out".to_owned();
    let look = match words.text(2) {
        "missing" => TopicLook { id: Seen::Absent, partitions: Seen::Absent },
        "error" => TopicLook { id: Seen::Failed(failed()), partitions: Seen::Failed(failed()) },
        id => {
            let id = match id.strip_prefix("id=") {
                Some(id) => Seen::Known(words::topic_id(id)),
                None => Seen::Absent,
            };
            TopicLook { id, partitions: Seen::Known(words.from(3).map(partition).collect()) }
        }
    };
    (TopicName::new(words.text(1)).expect("a topic"), look)
}

/// `0:250..400(380)`, `0:?`, `0:250..?`
fn partition(text: &str) -> (u32, PartitionLook) {
    let (number, log) = text.split_once(':').expect("a partition and its log");
    let (log, readable) = match log.split_once('(') {
        Some((log, readable)) => (log, Some(readable.trim_end_matches(')'))),
        None => (log, None),
    };
    let (earliest, latest) = log.split_once("..").unwrap_or((log, log));
    let readable_end = end(readable.unwrap_or(latest));
    (number.parse().expect("a number"), PartitionLook { earliest: end(earliest), latest: end(latest), readable_end })
}
