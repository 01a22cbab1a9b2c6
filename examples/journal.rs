//! A journal without Kafka: a group begins, commits two batches, is asked where it was after the first one, and goes back
//! there. Whoever reads the records, and from where, is no concern of the journal.
//!
//!     cargo run --no-default-features --example journal

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tidelog::commit::Commit;
use tidelog::control::{self, Control, StartRequest};
use tidelog::journal::{Clock, Journal, Options};
use tidelog::offset::{BatchNumber, Epoch, Group, Offset, OffsetRange, Timestamp, TopicName, TopicPartition};
use tidelog::reconcile::{NewGroup, Policy};
use tidelog::rollback::{Edge, PlanRequest, Target};

fn main() -> Result<(), Box<dyn Error>> {
    // The library reads no clock of its own.
    let clock: Clock = Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(since.as_millis() as i64)
    });
    let dir = tempfile::tempdir()?;
    let options = Options { create: true, ..Options::new(Arc::clone(&clock)) };
    let journal = Journal::open(&dir.path().join("journal"), options)?;
    // Without a broker, positions are what the journal says, and nobody checks them.
    let control = Control::new(journal.clone(), None, Arc::clone(&clock));

    // The group begins at offset 500 of one partition.
    let loader = Group::new("default", "loader")?;
    let orders = TopicPartition::new(TopicName::new("orders")?, 0);
    let given = BTreeMap::from([(orders.clone(), Offset::new(500)?)]);
    let request = StartRequest {
        policy: Policy { new_group: NewGroup::Offsets(given), ..Policy::default() },
        ..StartRequest::new(loader.clone(), vec!["orders".parse()?], "example") // the owner: one name for each process
    };
    let started = control::start(&control, request)?;
    println!("{loader} starts at {} under epoch {}", started.positions[0].offset, started.epoch);

    // Two batches: [500,542) and [542,600). Each is on the device when `commit` returns.
    let commit = |epoch: Epoch, from: i64, until: i64| -> Result<_, Box<dyn Error>> {
        let range = OffsetRange::new(orders.topic.clone(), orders.partition, Offset::new(from)?, Offset::new(until)?)?;
        Ok(journal.commit(Commit::new(loader.clone(), epoch, clock(), vec![range])?)?)
    };
    let first = commit(started.epoch, 500, 542)?;
    let second = commit(started.epoch, 542, 600)?;
    println!(
        "committed batch {} as entry {} and batch {} as entry {}",
        first.batch, first.seq, second.batch, second.seq
    );

    // Nothing is overwritten, so every moment can be asked for.
    let then = journal.positions_as_of(&loader, first.seq)?.ok_or("the group was there by then")?;
    let then = then.positions.get(&orders.topic, orders.partition).ok_or("the partition too")?.position;
    println!("after batch 1 it was at {then}");

    // Back to there: first the plan, which changes nothing, then just that plan.
    let to = Target::Batch { batch: BatchNumber::new(1)?, edge: Edge::After };
    let request = PlanRequest { unchecked: true, ..PlanRequest::new(loader.clone(), to) };
    let plan = control::plan(&control, request)?;
    println!("the plan {} reads {} offsets again", plan.id, plan.totals().replayed);
    let executed = control::execute(&control, plan.execute.clone(), Some(&plan.id), "an example", "to show it")?;
    println!("rolled back by entry {}; the epoch is {} now", executed.seq.ok_or("it moved")?, executed.epoch);

    // A consumer that has not heard of it is refused; under the new epoch the batch is read again.
    if commit(started.epoch, 600, 610).is_ok() {
        return Err("a commit under the old epoch was taken".into());
    }
    let again = commit(executed.epoch, 542, 600)?;
    println!("batch {} read it again", again.batch);

    let right = then == Offset::new(542)? && plan.totals().replayed == 58 && again.batch == BatchNumber::new(3)?;
    drop(control);
    journal.close()?;
    if right { Ok(()) } else { Err("the result is not the right one".into()) }
}
