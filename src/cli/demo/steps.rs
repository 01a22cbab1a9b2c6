//! The steps: each says what it does, does it, and checks what came of it.

use std::time::{Duration, Instant};

use super::say;
use super::world::{BATCH, Committed, PARTITIONS, World, broken};
use crate::cli::exit::Failure;
use crate::cli::output::Out;
use crate::cli::stop::Stop;
use crate::control;
use crate::entry::Verdict;
use crate::kafka::JournaledConsumer;
use crate::offset::{BatchNumber, TopicPartition};
use crate::rollback::{Edge, PlanRequest, Target};
use crate::wire::PlanAnswer;

/// How long a step may wait for records.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often the consumer looks for new topics.
const DISCOVERY: Duration = Duration::from_millis(300);

/// One of them.
type Step = fn(&World, &mut Out, &Stop) -> Result<(), Failure>;

/// All steps, in order; ends early, and well, when the process is told to stop.
pub fn all(world: &World, out: &mut Out, stop: &Stop) -> Result<(), Failure> {
    const STEPS: [Step; 5] = [consume, lose, start_again, take_in, roll_back];
    // What the mock can't do.
    const REAL: [Step; 2] = [grow, make_again];
    let more = if world.real().is_some() { REAL.as_slice() } else { &[] };
    for step in STEPS.iter().chain(more) {
        if stop.is_asked() {
            return Ok(());
        }
        step(world, out, stop)?;
    }
    if !stop.is_asked() {
        say(out, "All steps came out right.")?;
    }
    Ok(())
}

fn orders(world: &World, partition: u32) -> TopicPartition {
    TopicPartition::new(world.orders.clone(), partition)
}

/// A step's result must hold: else the demo ends with an error.
fn must(holds: bool, what: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(broken(format!("the demo went wrong: {}", what()))) }
}

/// Takes and commits batches until `count` records came, telling each; fewer if the process is told to stop.
fn take(
    world: &World,
    consumer: &JournaledConsumer,
    out: &mut Out,
    stop: &Stop,
    count: usize,
) -> Result<Vec<Committed>, Failure> {
    let (begun, mut taken, mut records) = (Instant::now(), Vec::new(), 0);
    while records < count && !stop.is_asked() {
        must(begun.elapsed() < PATIENCE, || format!("only {records} of {count} records came"))?;
        let Some(batch) = world.next(consumer, Duration::from_millis(100))? else { continue };
        let Some(batch) = world.commit(consumer, batch)? else { continue };
        records += batch.records;
        say(out, format!("   batch {}: {} records, {}", batch.number, batch.records, batch.ranges))?;
        taken.push(batch);
    }
    Ok(taken)
}

fn consume(world: &World, out: &mut Out, stop: &Stop) -> Result<(), Failure> {
    let (group, pattern) = (&world.group, world.pattern());
    say(out, format!("1. Group {group} reads {pattern}, and commits each batch to the journal."))?;
    for partition in 0..PARTITIONS {
        world.produce(&orders(world, partition), 300, 40)?;
    }
    let (_, consumer) = world.start(DISCOVERY)?;
    take(world, &consumer, out, stop, 3 * BATCH)?;
    consumer.stop();
    let there = (0..PARTITIONS).all(|partition| world.position(&orders(world, partition)).get() == 300);
    must(there || stop.is_asked(), || "the positions are not where reading ended".to_owned())
}

fn lose(world: &World, out: &mut Out, stop: &Stop) -> Result<(), Failure> {
    let at = orders(world, 1);
    say(out, format!("2. While it is stopped, retention removes the head of {at}."))?;
    let before = world.position(&at);
    world.produce(&at, 1_000, 10_000)?;
    if let Some(topics) = world.real() {
        topics.shorten(&at, before.plus(500)).map_err(broken)?;
    }
    let (started, consumer) = world.start(DISCOVERY)?;
    let found = started.findings.iter().find(|finding| finding.verdict == Verdict::HeadOutOfRange);
    let finding = found.ok_or_else(|| broken("the demo went wrong: the loss was not found"))?;
    say(out, format!("   found at the start: {}", finding))?;
    let start = finding.start.unwrap_or_default();
    let loss = finding.loss.is_some_and(|loss| loss.from_offset == before && loss.until_offset == start);
    must(loss && start > before, || format!("the loss is not [{before},{start})"))?;
    let noted = world.control.journal.group(&world.group).is_some_and(|group| group.losses.len() == 1);
    must(noted, || "the loss is not in the journal".to_owned())?;
    let left = usize::try_from(1_300 - start.get()).unwrap_or_default();
    say(out, format!("   the rest, {left} records, is read:"))?;
    take(world, &consumer, out, stop, left)?;
    consumer.stop();
    must(world.position(&at).get() == 1_300 || stop.is_asked(), || "the rest was not read to its end".to_owned())
}

fn start_again(world: &World, out: &mut Out, stop: &Stop) -> Result<(), Failure> {
    say(out, "3. Stopped and started again, it goes on where it was.")?;
    let at = orders(world, 0);
    let before = world.position(&at);
    world.produce(&at, 50, 40)?;
    let (started, consumer) = world.start(DISCOVERY)?;
    must(started.findings.is_empty(), || "there is nothing to find".to_owned())?;
    let taken = take(world, &consumer, out, stop, 50)?;
    consumer.stop();
    let first = taken.first().and_then(|batch| batch.from.iter().find(|(other, _)| *other == at));
    must(first.is_some_and(|(_, from)| *from == before) || stop.is_asked(), || format!("it did not go on at {before}"))
}

fn take_in(world: &World, out: &mut Out, stop: &Stop) -> Result<(), Failure> {
    say(out, format!("4. A new topic of the pattern, {}, is taken in while it reads.", world.late))?;
    let (_, consumer) = world.start(DISCOVERY)?;
    world.create_late()?;
    let at = TopicPartition::new(world.late.clone(), 0);
    world.produce(&at, 100, 40)?;
    let taken = take(world, &consumer, out, stop, 100)?;
    consumer.stop();
    let first = taken.first().and_then(|batch| batch.from.iter().find(|(other, _)| *other == at));
    must(first.is_some_and(|(_, from)| from.get() == 0) || stop.is_asked(), || {
        "it was not read from its start".to_owned()
    })
}

fn roll_back(world: &World, out: &mut Out, stop: &Stop) -> Result<(), Failure> {
    let newest = world.control.journal.group(&world.group).map(|group| group.positions.batch).unwrap_or_default();
    let batch = BatchNumber::new((newest.get() - 1).max(1))?;
    say(out, format!("5. The operator rolls it back to before batch {batch}, while it runs. The plan first:"))?;
    let (_, consumer) = world.start(DISCOVERY)?;
    let request = PlanRequest::new(world.group.clone(), Target::Batch { batch, edge: Edge::Before });
    let plan = control::plan(&world.control, request)?;
    crate::cli::rollback::show::plan(
        out,
        &world.group,
        &format!("to before batch {batch}"),
        &PlanAnswer::new(&world.group, &plan),
    )?;
    must(plan.executable() && !plan.nothing_to_do, || plan.why_not())?;
    let executed =
        control::execute(&world.control, plan.execute.clone(), Some(&plan.id), "demo", "to show a rollback")?;
    let seq = executed.seq.ok_or_else(|| broken("the demo went wrong: nothing was rolled back"))?;
    say(
        out,
        format!("   done, seq {seq}, epoch {}; the consumer moves by itself, the records come again:", executed.epoch),
    )?;
    let again = usize::try_from(plan.totals().replayed).unwrap_or_default();
    let taken = take(world, &consumer, out, stop, again)?;
    consumer.stop();
    let records: usize = taken.iter().map(|batch| batch.records).sum();
    must(records == again || stop.is_asked(), || format!("{records} records came again, not {again}"))
}

fn grow(world: &World, out: &mut Out, stop: &Stop) -> Result<(), Failure> {
    let Some(topics) = world.real() else { return Ok(()) };
    say(out, format!("6. {} grows by a partition while it reads; the new one is read from its start.", world.orders))?;
    let (_, consumer) = world.start(DISCOVERY)?;
    let at = orders(world, PARTITIONS);
    topics.grow(&world.orders, PARTITIONS as u16 + 1).map_err(broken)?;
    world.produce(&at, 80, 40)?;
    let taken = take(world, &consumer, out, stop, 80)?;
    consumer.stop();
    let first = taken.first().and_then(|batch| batch.from.iter().find(|(other, _)| *other == at));
    must(first.is_some_and(|(_, from)| from.get() == 0) || stop.is_asked(), || {
        format!("{at} was not read from its start")
    })
}

fn make_again(world: &World, out: &mut Out, stop: &Stop) -> Result<(), Failure> {
    let Some(topics) = world.real() else { return Ok(()) };
    say(out, format!("7. While it is stopped, {} is deleted and made again, with more records.", world.late))?;
    let at = TopicPartition::new(world.late.clone(), 0);
    topics.recreate(&world.late, 1).map_err(broken)?;
    world.produce(&at, 150, 40)?;
    let (started, consumer) = world.start(DISCOVERY)?;
    let found = started.findings.iter().find(|finding| finding.verdict == Verdict::TopicRecreated);
    let finding = found.ok_or_else(|| broken("the demo went wrong: that it is another topic was not found"))?;
    say(out, format!("   found at the start: {finding}"))?;
    take(world, &consumer, out, stop, 150)?;
    consumer.stop();
    must(world.position(&at).get() == 150 || stop.is_asked(), || format!("{at} was not read from its start to its end"))
}
