//! Records: produced, in transactions or not, compacted, and read back.

use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, Message, OwnedHeaders, OwnedMessage};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::{Offset, TopicPartitionList};

use super::TestKafka;
use crate::wait::{DEADLINE, wait_for};

/// What is produced. Without a value it is a tombstone; without a timestamp it is of now.
#[derive(Clone, Default)]
pub struct Record {
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    /// Milliseconds since the epoch.
    pub timestamp: Option<i64>,
    pub headers: Vec<(String, Vec<u8>)>,
}

impl Record {
    pub fn new(value: impl Into<Vec<u8>>) -> Record {
        Record { value: Some(value.into()), ..Record::default() }
    }

    pub fn keyed(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Record {
        Record { key: Some(key.into()), ..Record::new(value) }
    }
}

impl TestKafka {
    /// Produces `n` records with the values "0", "1" ..., and returns their offsets.
    pub fn produce(&self, topic: &str, partition: i32, n: usize) -> Range<i64> {
        self.send(topic, partition, &numbered(n))
    }

    /// Produces `n` records of `size` bytes each.
    pub fn produce_bytes(&self, topic: &str, partition: i32, n: usize, size: usize) -> Range<i64> {
        self.send(topic, partition, &vec![Record::new(vec![b'x'; size]); n])
    }

    /// Produces these records, and returns their offsets.
    pub fn send(&self, topic: &str, partition: i32, records: &[Record]) -> Range<i64> {
        self.send_with(&[], topic, partition, records)
    }

    /// As [`TestKafka::send`], by a producer configured so, for instance with `("compression.type", "zstd")`.
    pub fn send_with(&self, config: &[(&str, &str)], topic: &str, partition: i32, records: &[Record]) -> Range<i64> {
        send(&producer(self.client_config(), config), topic, partition, records)
    }

    /// Begins a transaction. Dropped, it stays open for ten minutes.
    pub fn begin(&self, transactional_id: &str) -> Transaction<'_> {
        let config = [("transactional.id", transactional_id), ("transaction.timeout.ms", "600000")];
        let producer = producer(self.client_config(), &config);
        producer.init_transactions(DEADLINE).expect("transactions can be used");
        producer.begin_transaction().expect("a transaction can begin");
        Transaction { kafka: self, producer, touched: Vec::new() }
    }

    /// All that a reader of committed records gets of a partition, from its start to its end now.
    pub fn read(&self, topic: &str, partition: i32) -> Vec<OwnedMessage> {
        let consumer: BaseConsumer = self
            .client_config()
            .set("group.id", "harness")
            .set("isolation.level", "read_committed")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .create()
            .expect("a consumer can be made");
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Beginning).expect("a legal offset");
        consumer.assign(&list).expect("a partition can be assigned");
        let mut messages = Vec::new();
        loop {
            match consumer.poll(DEADLINE).expect("the broker answers") {
                Ok(message) => messages.push(message.detach()),
                Err(KafkaError::PartitionEOF(_)) => return messages,
                Err(error) => panic!("read {topic}/{partition}: {error}"),
            }
        }
    }

    /// The offsets that [`TestKafka::read`] gets.
    pub fn readable(&self, topic: &str, partition: i32) -> Vec<i64> {
        self.read(topic, partition).iter().map(Message::offset).collect()
    }

    /// Compacts the partition: waits until each key that it holds now is left once. All records need a key. Returns the
    /// offsets left; fillers with the key `filler` follow them. Takes about two seconds.
    pub fn compact(&self, topic: &str, partition: i32) -> Vec<i64> {
        let config = [("cleanup.policy", "compact"), ("segment.ms", "1"), ("min.cleanable.dirty.ratio", "0")];
        self.set_config(topic, &config);
        let (_, end) = self.watermarks(topic, partition);
        wait_for("each key left once", DEADLINE, || {
            // The newest segment is never compacted, and a segment ends when a record comes after its time.
            self.send(topic, partition, &[Record::keyed("filler", "")]);
            let mut left = self.read(topic, partition);
            left.retain(|message| message.offset() < end);
            let offsets = left.iter().map(Message::offset).collect::<Vec<_>>();
            let mut keys: Vec<_> = left.iter().map(|message| message.key().expect("a record with a key")).collect();
            keys.sort_unstable();
            if keys.windows(2).any(|pair| pair[0] == pair[1]) { Err(offsets) } else { Ok(offsets) }
        })
    }
}

/// A transaction of a producer of its own.
pub struct Transaction<'a> {
    kafka: &'a TestKafka,
    producer: BaseProducer<Deliveries>,
    touched: Vec<(String, i32)>,
}

impl Transaction<'_> {
    /// Produces `n` records with the values "0", "1" ..., and returns their offsets. They are on the broker then.
    pub fn produce(&mut self, topic: &str, partition: i32, n: usize) -> Range<i64> {
        self.touched.push((topic.to_owned(), partition));
        send(&self.producer, topic, partition, &numbered(n))
    }

    /// Commits, and waits until the marker is in each partition: it takes one offset there.
    pub fn commit(self) {
        self.end(|producer| producer.commit_transaction(DEADLINE));
    }

    /// Aborts, and waits until the marker is in each partition: it takes one offset there.
    pub fn abort(self) {
        self.end(|producer| producer.abort_transaction(DEADLINE));
    }

    fn end(mut self, end: impl FnOnce(&BaseProducer<Deliveries>) -> Result<(), KafkaError>) {
        self.touched.sort();
        self.touched.dedup();
        let latest = |(topic, partition): &(String, i32)| self.kafka.watermarks(topic, *partition).1;
        let before: Vec<i64> = self.touched.iter().map(latest).collect();
        end(&self.producer).expect("a transaction can end");
        for (place, before) in self.touched.iter().zip(before) {
            wait_for("the transaction's marker", DEADLINE, || match latest(place) {
                now if now > before => Ok(()),
                now => Err(now),
            });
        }
    }
}

/// Collects what became of each record.
#[derive(Default)]
struct Deliveries(Mutex<Vec<Result<i64, KafkaError>>>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let result = result.as_ref().map(Message::offset).map_err(|(error, _)| error.clone());
        self.0.lock().expect("nothing panics while it holds this").push(result);
    }
}

fn producer(mut config: ClientConfig, more: &[(&str, &str)]) -> BaseProducer<Deliveries> {
    config.set("linger.ms", "0").set("message.timeout.ms", DEADLINE.as_millis().to_string());
    for (key, value) in more {
        config.set(*key, *value);
    }
    config.create_with_context(Deliveries::default()).expect("a producer can be made")
}

fn numbered(n: usize) -> Vec<Record> {
    (0..n).map(|i| Record::new(i.to_string())).collect()
}

fn send(producer: &BaseProducer<Deliveries>, topic: &str, partition: i32, records: &[Record]) -> Range<i64> {
    for Record { key, value, timestamp, headers } in records {
        let mut next = BaseRecord::<Vec<u8>, Vec<u8>>::to(topic).partition(partition);
        next.key = key.as_ref();
        next.payload = value.as_ref();
        next.timestamp = *timestamp;
        if !headers.is_empty() {
            let insert = |all: OwnedHeaders, (key, value): &(String, Vec<u8>)| {
                all.insert(Header { key, value: Some(value.as_slice()) })
            };
            next.headers = Some(headers.iter().fold(OwnedHeaders::new(), insert));
        }
        while let Err((error, again)) = producer.send(next) {
            assert_eq!(error.rdkafka_error_code(), Some(RDKafkaErrorCode::QueueFull), "produce to {topic}: {error}");
            producer.poll(Duration::from_millis(10));
            next = again;
        }
    }
    // Not flush(), which takes a tenth of a second at least.
    wait_for("all records delivered or failed", 2 * DEADLINE, || {
        producer.poll(Duration::from_millis(10));
        if producer.in_flight_count() == 0 { Ok(()) } else { Err(producer.in_flight_count()) }
    });
    let delivered = std::mem::take(&mut *producer.context().0.lock().expect("nothing panics while it holds this"));
    let offsets: Vec<i64> = delivered
        .into_iter()
        .map(|result| result.unwrap_or_else(|error| panic!("produce to {topic}/{partition}: {error}")))
        .collect();
    assert_eq!(offsets.len(), records.len(), "each record is reported once");
    match (offsets.iter().min(), offsets.iter().max()) {
        (Some(first), Some(last)) => *first..last + 1,
        _ => 0..0,
    }
}
