//! Plans and receipts for people: a sentence, then a table.

use crate::cli::args::words_of;
use crate::cli::exit::Failure;
use crate::cli::output::{Out, Rows, or_dash};
use crate::cli::times;
use crate::offset::Group;
use crate::rollback::Outcome;
use crate::wire::{ExecutedAnswer, KafkaAnswer, KafkaWord, PlanAnswer};

/// A plan: what it does in a sentence, partition by partition, and what keeps it from being executed.
pub fn plan(out: &mut Out, group: &Group, target: &str, plan: &PlanAnswer) -> Result<(), Failure> {
    out.line(sentence(group, target, plan))?;
    let mut rows =
        Rows::new(&["topic", ">part", ">position", ">target", ">start", "outcome", ">again", ">skipped", ">lost"]);
    for partition in &plan.partitions {
        rows.push([
            partition.topic.to_string(),
            partition.partition.to_string(),
            partition.position.to_string(),
            or_dash(partition.target),
            partition.start.to_string(),
            partition.outcome.as_str().to_owned(),
            partition.replayed.0.to_string(),
            partition.skipped.0.to_string(),
            partition.lost.0.to_string(),
        ]);
        if !matches!(partition.outcome, Outcome::Exact | Outcome::Unchanged) {
            rows.strike();
        }
    }
    out.table(rows)?;
    if plan.clock_uncertain {
        out.line(
            "The machine's clock and the journal's differ by over a minute: a batch number is surer than a time.",
        )?;
    }
    Ok(())
}

/// Whether executing a plan changes nothing at all.
pub fn leaves_all(plan: &PlanAnswer) -> bool {
    plan.nothing_to_do && !plan.execute.hold && !plan.execute.kafka
}

/// What a plan does: its target on one line, what that costs on the next, and what it does besides.
pub fn sentence(group: &Group, target: &str, plan: &PlanAnswer) -> String {
    let moment = plan.as_of.as_ref().map_or_else(String::new, |moment| {
        let recorded = times::with_distance(moment.recorded_at, times::now());
        format!("\nThat is batch {}, seq {}, recorded {recorded}.", moment.batch, moment.seq)
    });
    let begin = format!("Plan {} for group {group}: {target}.{moment}", plan.plan);
    let does = |it: bool, what: &'static str| if it && plan.executable { what } else { "" };
    let besides = does(plan.execute.hold, "\nThe group is on hold afterwards, until it is released.").to_owned()
        + does(plan.execute.kafka, "\nKafka's committed offsets are set too: the Kafka group has no live members.");
    if plan.nothing_to_do && plan.executable {
        let nothing = if leaves_all(plan) { "There is nothing to do" } else { "Nothing moves" };
        let stays = plan.partitions.iter().any(|partition| partition.outcome.is_unmovable());
        let why = match stays {
            _ if plan.partitions.is_empty() => "all that is in scope is retired",
            true => "what could move is there already",
            false => "it is there already",
        };
        return format!("{begin}\n{nothing}: {why}.{besides}");
    }
    let totals = &plan.totals;
    let moving = plan.partitions.iter().filter(|partition| partition.start != partition.position).count();
    let moves = if plan.executable { "It moves" } else { "It can't be executed as it is; it would move" };
    format!(
        "{begin}\n{moves} {moving} of {} partitions: {} offsets are read again, {} skipped, {} no longer there.{besides}",
        totals.partitions.0, totals.replayed.0, totals.skipped.0, totals.lost.0
    )
}

/// Where each partition would go, as Kafka's own tool writes and reads it; what can't be moved is left out, and said.
pub fn csv(out: &mut Out, plan: &PlanAnswer) -> Result<(), Failure> {
    for partition in &plan.partitions {
        let (topic, number) = (&partition.topic, partition.partition.to_string());
        if partition.outcome.is_unmovable() {
            let why = partition.outcome.as_str();
            tracing::warn!("{topic}/{number} is left out: it is {why}, and has no target");
        } else {
            out.csv([topic.as_str(), &number, &partition.start.to_string()])?;
        }
    }
    Ok(())
}

/// What executing came to; `hold` is whether the group was to be held.
pub fn executed(out: &mut Out, group: &Group, executed: &ExecutedAnswer, hold: bool) -> Result<(), Failure> {
    let moved = match executed.seq {
        None => format!("Nothing moved: what could move of group {group} is there already"),
        Some(seq) => {
            let again = match executed.repeated {
                true => "was moved by this plan before, and nothing was done now",
                false => "is moved",
            };
            format!("Group {group} {again}: seq {seq}, epoch {}", executed.epoch)
        }
    };
    let held = match hold && !executed.repeated {
        true => format!("; it is on hold until tidelog release {}", words_of(group)),
        false => String::new(),
    };
    out.line(format!("{moved}{held}."))?;
    if executed.seq.is_some() {
        let mut rows = Rows::new(&["topic", ">partition", ">old", ">new"]);
        for moved in &executed.partitions {
            let partition = moved.partition.to_string();
            rows.push([moved.topic.to_string(), partition, or_dash(moved.old), or_dash(moved.new)]);
        }
        out.table(rows)?;
    }
    executed.kafka.as_ref().map_or(Ok(()), |set| kafka(out, set))
}

/// What setting Kafka's committed offsets came to.
pub fn kafka(out: &mut Out, set: &KafkaAnswer) -> Result<(), Failure> {
    let name = set.kafka_group.as_deref().unwrap_or("none");
    let seq = set.seq.map(|seq| format!(": seq {seq}")).unwrap_or_default();
    let said = match set.state {
        KafkaWord::Done => format!("are set and were read back{seq}"),
        KafkaWord::Failed => format!("are not all set{seq}"),
        KafkaWord::Pending => "are pending".to_owned(),
    };
    out.line(format!("Kafka's committed offsets of group {name} {said}."))?;
    let mut rows = Rows::new(&["topic", ">partition", ">in Kafka", "error"]);
    for partition in &set.partitions {
        let (topic, number) = (partition.topic.to_string(), partition.partition.to_string());
        rows.push([topic, number, or_dash(partition.offset), or_dash(partition.error.as_ref())]);
        if partition.error.is_some() {
            rows.strike();
        }
    }
    out.table(rows)
}
