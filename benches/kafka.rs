//! Against a real broker, in one run each: commits with Kafka's committed offsets following and without; the start map of
//! many partitions against one watermark query for each; a start with 1,000 open holes in a partition, near each other
//! and far apart; and a million records of 1 KiB through `JournaledConsumer` against a plain loop that commits to Kafka at
//! the same points.
//!
//!     tests/run kafka_harness && cargo bench --bench kafka [-- PARTITIONS RECORDS]      (default: 2000 1000000)

#[allow(dead_code, unused_imports, reason = "the harness of the tests, of which a part is used here")]
#[path = "../tests/it/kafka/mod.rs"]
mod kafka;
#[path = "../tests/it/wait.rs"]
mod wait;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::config::ClientConfig as Native;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{Message, Offset as NativeOffset, TopicPartitionList};
use tidelog::broker::{Broker, TopicSelector};
use tidelog::commit::Commit;
use tidelog::control::{self, Control, StartRequest};
use tidelog::journal::{Clock, Journal, Options};
use tidelog::kafka::{ClientConfig, Config, Cut, Discovery, JournaledConsumer, KafkaBroker};
use tidelog::offset::{Group, Offset, OffsetRange, Timestamp};

use crate::kafka::TestKafka;

const BATCH: usize = 10_000;
const RECORD_BYTES: usize = 1_024;
const PARTITIONS_READ: i32 = 4;
const ROUNDS: usize = 5;

fn clock() -> Clock {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        Timestamp::from_millis(since.as_millis() as i64)
    })
}

fn control(dir: &Path, client: &ClientConfig) -> Control {
    let mut options = Options::new(clock());
    options.create = true;
    let journal = Journal::open(dir, options).expect("the journal opens");
    let broker: Arc<dyn Broker> = Arc::new(KafkaBroker::new(client, clock()).expect("a client"));
    Control::new(journal, Some(broker), clock())
}

fn request(topic: &str, owner: &str) -> StartRequest {
    let group = Group::new("bench", "loader").expect("legal names");
    StartRequest::new(group, vec![topic.parse::<TopicSelector>().expect("a topic")], owner)
}

fn start_map(kafka: &TestKafka, partitions: i32) {
    let topic = kafka.unique("map");
    kafka.create_topic(&topic, partitions, &[]);
    let client = ClientConfig::new(kafka.brokers()).expect("brokers");
    let dir = tempfile::tempdir_in(".").expect("a temporary directory");
    let control = control(dir.path(), &client);
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let begun = Instant::now();
        let started = control::start(&control, request(&topic, &format!("owner-{round}"))).expect("a start");
        times.push(begun.elapsed());
        assert_eq!(started.positions.len(), partitions as usize);
    }
    let native: BaseConsumer = Native::new()
        .set("bootstrap.servers", kafka.brokers())
        .set("allow.auto.create.topics", "false")
        .create()
        .expect("a client");
    native.fetch_metadata(Some(&topic), Duration::from_secs(10)).expect("metadata");
    let mut one_by_one = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for partition in 0..partitions {
            native.fetch_watermarks(&topic, partition, Duration::from_secs(10)).expect("watermarks");
        }
        one_by_one.push(begun.elapsed());
    }
    let (ours, theirs) = (median(&mut times), median(&mut one_by_one));
    println!(
        "start map of {partitions} partitions: {ours:.2?} (the first, of a new group, {:.2?}); one watermark query each: \
         {theirs:.2?}; {:.1} times (goal 10)",
        times.last().copied().unwrap_or_default(),
        theirs.as_secs_f64() / ours.as_secs_f64()
    );
}

/// A start that looks into 1,000 holes of a partition, none of which holds a readable record: each is the offset of one of
/// a transaction that was aborted. Between two of them lie so many records of 1 KiB.
fn open_holes(kafka: &TestKafka, apart: usize) {
    const HOLES: i64 = 1_000;
    let topic = kafka.unique("holes");
    kafka.create_topic(&topic, 1, &[]);
    let mut transaction = kafka.begin(&kafka.unique("tx"));
    for _ in 0..HOLES {
        kafka.produce_bytes(&topic, 0, apart, RECORD_BYTES);
        transaction.produce(&topic, 0, 1);
    }
    transaction.abort();
    let client = ClientConfig::new(kafka.brokers()).expect("brokers");
    let dir = tempfile::tempdir_in(".").expect("a temporary directory");
    let control = control(dir.path(), &client);
    let group = Group::new("bench", "loader").expect("legal names");
    let epoch = control::start(&control, request(&topic, "a")).expect("a start").epoch;
    let offset = |number: i64| Offset::new(number).expect("not negative");
    for n in 0..=HOLES {
        let from = n * (apart as i64 + 1);
        let until = if n == HOLES { from } else { from + apart as i64 };
        let range = OffsetRange::new(topic.parse().expect("legal"), 0, offset(from), offset(until)).expect("a range");
        let commit = Commit::new(group.clone(), epoch, clock()(), vec![range]).expect("legal");
        control.journal.commit(commit).expect("taken");
    }
    let open = |control: &Control| control.journal.group(&group).expect("there").positions.open_holes();
    assert_eq!(open(&control), HOLES as usize);
    let begun = Instant::now();
    let started = control::start(&control, request(&topic, "b")).expect("a start");
    let elapsed = begun.elapsed();
    assert_eq!((started.findings.len(), open(&control)), (0, 0));
    println!("a start with {HOLES} open holes, {apart} KiB apart: {elapsed:.2?}");
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ours(kafka: &TestKafka, topic: &str, records: usize) -> Duration {
    let client = ClientConfig::new(kafka.brokers()).expect("brokers");
    let dir = tempfile::tempdir_in(".").expect("a temporary directory");
    let config = Config {
        client: client.clone(),
        cut: Cut { max_records: NonZeroUsize::new(BATCH).expect("not zero"), ..Cut::default() },
        discovery: Discovery::default(),
    };
    let begun = Instant::now();
    let consumer = JournaledConsumer::begin(config, control(dir.path(), &client), request(topic, "bench"));
    let consumer = consumer.expect("a consumer");
    let (mut read, mut bytes, mut first) = (0, 0, None);
    while read < records {
        let Some(batch) = consumer.next_batch(Duration::from_secs(10)).expect("batches") else {
            panic!("only {read} records came")
        };
        first.get_or_insert_with(Instant::now);
        read += batch.len();
        bytes += batch.records().map(|record| record.payload().map_or(0, <[u8]>::len)).sum::<usize>();
        consumer.commit(batch).expect("a commit");
    }
    let elapsed = begun.elapsed();
    assert_eq!((read, bytes), (records, records * RECORD_BYTES));
    consumer.stop();
    elapsed
}

fn plain(kafka: &TestKafka, topic: &str, records: usize, group: &str) -> Duration {
    let begun = Instant::now();
    let consumer: BaseConsumer = Native::new()
        .set("bootstrap.servers", kafka.brokers())
        .set("group.id", group)
        .set("enable.auto.commit", "false")
        .set("allow.auto.create.topics", "false")
        .create()
        .expect("a client");
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS_READ {
        list.add_partition_offset(topic, partition, NativeOffset::Beginning).expect("a legal offset");
    }
    consumer.assign(&list).expect("an assignment");
    let (mut read, mut bytes, mut next) = (0, 0, [0i64; PARTITIONS_READ as usize]);
    while read < records {
        let message = consumer.poll(Duration::from_secs(10)).expect("a record in time").expect("a record");
        bytes += message.payload().map_or(0, <[u8]>::len);
        next[message.partition() as usize] = message.offset() + 1;
        read += 1;
        if read % BATCH == 0 {
            let mut list = TopicPartitionList::new();
            for (partition, offset) in next.iter().enumerate() {
                list.add_partition_offset(topic, partition as i32, NativeOffset::Offset(*offset)).expect("legal");
            }
            consumer.commit(&list, CommitMode::Sync).expect("a commit");
        }
    }
    let elapsed = begun.elapsed();
    assert_eq!(bytes, records * RECORD_BYTES);
    elapsed
}

fn consume(kafka: &TestKafka, records: usize) {
    let topic = kafka.unique("million");
    kafka.create_topic(&topic, PARTITIONS_READ, &[]);
    for partition in 0..PARTITIONS_READ {
        let mut left = records / PARTITIONS_READ as usize;
        while left > 0 {
            let now = left.min(25_000);
            kafka.produce_bytes(&topic, partition, now, RECORD_BYTES);
            left -= now;
        }
    }
    let records = records / PARTITIONS_READ as usize * PARTITIONS_READ as usize;
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    // The first round of each warms the broker's page cache and is not counted.
    for round in 0..=ROUNDS {
        let (a, b) = (ours(kafka, &topic, records), plain(kafka, &topic, records, &format!("plain-{round}")));
        println!("  round {round}: JournaledConsumer {a:.2?}, plain {b:.2?}");
        if round > 0 {
            mine.push(a);
            theirs.push(b);
        }
    }
    let (mine, theirs) = (median(&mut mine), median(&mut theirs));
    let rate = |time: Duration| records as f64 / time.as_secs_f64();
    println!(
        "{records} records of 1 KiB, {BATCH} a batch: JournaledConsumer {:.0}/s, plain loop with Kafka commits {:.0}/s; \
         ratio of rates {:.3} (goal 0.97)",
        rate(mine),
        rate(theirs),
        theirs.as_secs_f64() / mine.as_secs_f64()
    );
}

/// Commits of 4 ranges a second, by one committer and by 64, with Kafka's committed offsets following and without.
fn mirror(kafka: &TestKafka) {
    const SECONDS: u64 = 3;
    let topic = kafka.unique("mirror");
    kafka.create_topic(&topic, 4, &[]);
    for committers in [1, 64] {
        let mut rates = [Vec::new(), Vec::new()];
        for round in 0..2 * ROUNDS {
            let follows = round % 2 == 1;
            let client = ClientConfig::new(kafka.brokers()).expect("brokers");
            let dir = tempfile::tempdir_in(".").expect("a temporary directory");
            let control = control(dir.path(), &client);
            let kept = follows.then(|| control.mirror.keep(&control).expect("a broker"));
            let name = kafka.unique("mirror-group");
            let group = Group::new("default", &name).expect("legal");
            let started = control::start(&control, StartRequest { group: group.clone(), ..request(&topic, "bench") });
            let epoch = started.expect("a start").epoch;
            let (next, begun) = (std::sync::atomic::AtomicU64::new(0), Instant::now());
            std::thread::scope(|scope| {
                for _ in 0..committers {
                    scope.spawn(|| {
                        while begun.elapsed() < Duration::from_secs(SECONDS) {
                            let from = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                            let offset = |number: u64| Offset::try_from(number).expect("small");
                            let range = |partition| {
                                let topic = topic.parse().expect("legal");
                                OffsetRange::new(topic, partition, offset(from), offset(from + 1)).expect("a range")
                            };
                            let ranges = (0..4).map(range).collect();
                            let commit = Commit::new(group.clone(), epoch, clock()(), ranges).expect("legal");
                            control.journal.commit(commit).expect("a commit");
                        }
                    });
                }
            });
            let commits = next.into_inner();
            let rate = commits as f64 / begun.elapsed().as_secs_f64();
            drop(kept);
            if follows {
                assert_eq!(kafka.committed(&name, &topic, 3), i64::try_from(commits).ok(), "Kafka has followed");
            }
            rates[usize::from(follows)].push(rate as u64);
        }
        let median = |rates: &mut Vec<u64>| {
            rates.sort_unstable();
            rates[rates.len() / 2]
        };
        let [off, on] = &mut rates;
        let (off, on) = (median(off), median(on));
        println!(
            "{committers} committers, 4 ranges a commit: {off}/s without the mirror, {on}/s with it; ratio {:.3}",
            on as f64 / off as f64
        );
    }
}

fn main() {
    let arguments: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let (partitions, records) = match arguments[..] {
        [partitions, records] => (partitions as i32, records as usize),
        _ => (2_000, 1_000_000),
    };
    let kafka = TestKafka::shared();
    mirror(kafka);
    start_map(kafka, partitions);
    open_holes(kafka, 1);
    open_holes(kafka, 1_000);
    consume(kafka, records);
}
