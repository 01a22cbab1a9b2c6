//! Results in the journal itself: a consumer keeps the newest status of each order, written in the same atomic write as its
//! positions. After a kill at any moment the two agree, and records that a rollback brings again overwrite what they wrote
//! before: exactly once, without another database.
//!
//! It needs nothing installed: the broker is librdkafka's mock cluster, inside this process.
//!
//!     cargo run --example results

use std::collections::BTreeMap;
use std::error::Error;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidelog::control::{Control, StartRequest};
use tidelog::journal::{Clock, Journal, Options};
use tidelog::kafka::{Config, Cut, Discovery, JournaledConsumer, KafkaBroker, mock::Mock};
use tidelog::offset::{Group, Timestamp, TopicPartition};
use tidelog::results::Puts;

/// Order and status, in the order in which they happened.
const RECORDS: [(&str, &str); 6] =
    [("o-1", "new"), ("o-2", "new"), ("o-1", "paid"), ("o-3", "new"), ("o-1", "shipped"), ("o-2", "cancelled")];

fn main() -> Result<(), Box<dyn Error>> {
    let mock = Mock::new(1)?;
    mock.create_topic(&"orders".parse()?, 1)?;
    let records = RECORDS.map(|(order, status)| (Some(order), status));
    mock.produce(&TopicPartition::new("orders".parse()?, 0), records)?;

    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let clock: Clock = Arc::new(move || Timestamp::from_millis(now() as i64));
    let dir = tempfile::tempdir()?;
    let options = Options { create: true, ..Options::new(clock.clone()) };
    let journal = Journal::open(&dir.path().join("journal"), options)?;
    let broker = Arc::new(KafkaBroker::new(&mock.config(), clock.clone())?);
    let control = Control::new(journal.clone(), Some(broker), clock);

    let group = Group::new("default", "status")?;
    let owner = format!("status-{}", std::process::id());
    let request = StartRequest::new(group.clone(), vec!["orders".parse()?], owner);
    // Small batches, to have several.
    let cut = Cut { max_records: NonZeroUsize::MIN.saturating_add(2), ..Cut::default() };
    let config = Config { client: mock.config(), cut, discovery: Discovery::default() };
    let consumer = JournaledConsumer::begin(config, control, request)?;

    let mut batches = Vec::new();
    while batches.len() * 3 < RECORDS.len() {
        let batch = consumer.next_batch(Duration::from_secs(10))?.ok_or("no batch within 10 s")?;
        // From the records of this batch alone: the newest status of each order. A key is put once in a batch.
        let newest: BTreeMap<_, _> = batch.records().map(|record| (record.key(), record.payload())).collect();
        let mut puts = Puts::new();
        for (order, status) in newest {
            puts.put(order.ok_or("an order has a name")?, status.ok_or("and a status")?)?;
        }
        batches.push(consumer.commit_with(batch, puts)?.batch);
    }

    let text = |value: Option<Vec<u8>>| value.map(|value| String::from_utf8_lossy(&value).into_owned());
    let now = text(journal.result(&group, b"o-1")?);
    let then = text(journal.result_as_of(&group, b"o-1", batches[0])?);
    println!("o-1 is {now:?}; after batch {} it was {then:?}", batches[0]);
    assert_eq!((now.as_deref(), then.as_deref()), (Some("shipped"), Some("paid")));

    // All of them, page by page, in the order of their keys.
    let page = journal.results(&group, b"", None, 100)?;
    for (order, status) in &page.results {
        println!("{}: {}", String::from_utf8_lossy(order), String::from_utf8_lossy(status));
    }
    assert_eq!((page.results.len(), page.next), (3, None));
    Ok(())
}
