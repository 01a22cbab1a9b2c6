//! A consumer whose positions live in the journal: reads a topic, commits each batch, and goes on at the right record when
//! it is started again. On a cluster inside this program; with a real one, only the brokers' addresses differ.
//!
//!     cargo run --example consume

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidelog::control::{Control, StartRequest};
use tidelog::journal::{Clock, Journal, Options};
use tidelog::kafka::mock::Mock;
use tidelog::kafka::{ClientConfig, Config, Cut, Discovery, JournaledConsumer, KafkaBroker};
use tidelog::offset::{Group, Timestamp, TopicPartition};

/// How long the next records are waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A consumer of `orders` over the journal in `dir`.
fn consumer(client: &ClientConfig, dir: &Path, owner: &str) -> Result<JournaledConsumer, Box<dyn Error>> {
    let clock: Clock = Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(since.as_millis() as i64)
    });
    let options = Options { create: true, ..Options::new(Arc::clone(&clock)) };
    let broker = Arc::new(KafkaBroker::new(client, Arc::clone(&clock))?);
    let control = Control::new(Journal::open(dir, options)?, Some(broker), clock);
    // One owner for each process: a newer one fences those before it.
    let request = StartRequest::new(Group::new("default", "loader")?, vec!["orders".parse()?], owner);
    let cut = Cut { max_wait: Duration::from_millis(100), ..Cut::default() };
    let config = Config { client: client.clone(), cut, discovery: Discovery::default() };
    Ok(JournaledConsumer::begin(config, control, request)?)
}

/// Reads until `count` records were processed and committed.
fn read(consumer: &JournaledConsumer, count: usize, read: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    let begun = read.len();
    while read.len() < begun + count {
        let batch = consumer.next_batch(PATIENCE)?.ok_or("no records came")?;
        // First the result, here a list, ...
        for record in batch.records() {
            read.push(String::from_utf8_lossy(record.payload().unwrap_or_default()).into_owned());
        }
        // ... then the position; by value, so that no batch is committed twice.
        let receipt = consumer.commit(batch)?;
        println!("batch {} is committed; {} records read", receipt.batch, read.len());
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let cluster = Mock::new(1)?;
    let orders = TopicPartition::new("orders".parse()?, 0);
    cluster.create_topic(&orders.topic, 1)?;
    let produce = |numbers: std::ops::Range<u32>| {
        let values: Vec<String> = numbers.map(|number| number.to_string()).collect();
        cluster.produce(&orders, values.iter().map(|value| (None, value.as_str())))
    };
    let dir = tempfile::tempdir()?;
    let journal = dir.path().join("journal");
    let mut seen = Vec::new();

    produce(0..1_000)?;
    let first = consumer(&cluster.config(), &journal, "loader-1")?;
    read(&first, 1_000, &mut seen)?;
    drop(first); // the journal is another process's now, or the next one's

    produce(1_000..1_500)?;
    let second = consumer(&cluster.config(), &journal, "loader-2")?;
    println!("started again at {}", second.started().positions[0].offset);
    read(&second, 500, &mut seen)?;

    // Each record once, in order.
    let expected: Vec<String> = (0..1_500).map(|number: u32| number.to_string()).collect();
    if seen == expected { Ok(()) } else { Err("records are missing, or came twice".into()) }
}
