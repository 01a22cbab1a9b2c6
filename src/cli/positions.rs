//! `tidelog positions`

use std::sync::Arc;

use clap::Args;

use crate::broker::{Ask, Broker, Look, Seen, TopicSelector};
use crate::cli::args::{Format, GroupArg, JournalArg, OutputArg};
use crate::cli::exit::Failure;
use crate::cli::kafka::KafkaArgs;
use crate::cli::output::{Out, Rows, or_dash};
use crate::cli::{opening, times};
use crate::control::{Limits, clock_uncertain};
use crate::journal::{Clock, Journal};
use crate::offset::{BatchNumber, Group, Seq, Timestamp};
use crate::positions::GroupState;
use crate::wire::{AsOf, Position, PositionsAnswer};

const EXAMPLE: &str = "\
Example:
  tidelog positions loader
  tidelog positions loader -b kafka:9092                    with the logs' ends and the lag
  tidelog positions loader --at 2026-11-30T09:00:00Z
  tidelog positions loader --batch 41 -o csv > before.csv

csv is `topic,partition,offset` without a header, as kafka-consumer-groups reads it.";

/// Show where a group goes on, now or at an earlier moment
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Show {
    #[command(flatten)]
    group: GroupArg,
    #[command(flatten)]
    journal: JournalArg,
    #[command(flatten)]
    moment: Moment,
    #[command(flatten)]
    output: OutputArg,
    #[command(flatten)]
    kafka: KafkaArgs,
}

/// An earlier moment.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct Moment {
    /// As it was at this time (RFC 3339 with a zone): what was committed by then
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// As it was right after this batch
    #[arg(long, value_name = "N")]
    batch: Option<BatchNumber>,
    /// As it was right after this entry of the journal
    #[arg(long, value_name = "SEQ")]
    seq: Option<Seq>,
}

impl Show {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        let journal = opening::existing(&self.journal.journal)?;
        let state = opening::group_state(&journal, &group)?;
        let broker = if self.moment.is_given() { None } else { self.kafka.broker()? };
        let answer = match self.moment.seq(&journal, &group)? {
            Some(seq) => {
                let Some(past) = journal.positions_as_of(&group, seq)? else {
                    return Err(before_history(&journal, &group, &format!("seq {seq}"))?);
                };
                let as_of = as_of(&journal, past.seq, past.positions.batch)?;
                PositionsAnswer::past(&group, state.epoch, as_of, &past.positions)
            }
            None => {
                let newest = journal.seq_at(Some(&group), Timestamp::from_millis(i64::MAX))?.unwrap_or_default();
                let as_of = as_of(&journal, newest, state.positions.batch)?;
                // The positions are read before the logs' ends: a lag is never negative.
                let look = broker.map(|broker| look(broker.as_ref(), &state));
                PositionsAnswer::present(&group, &state, as_of, look.as_ref())
            }
        };
        opening::close(journal);
        match self.output.output {
            Format::Json => out.json(&answer),
            Format::Csv => answer.positions.iter().try_for_each(|line| {
                out.csv([line.topic.as_str(), &line.partition.to_string(), &line.offset.to_string()])
            }),
            Format::Table => write_table(out, &answer, times::now()),
        }
    }
}

/// What the broker says of the group's topics; what it does not answer is left out, and said.
fn look(broker: &dyn Broker, state: &GroupState) -> Look {
    let topics = state.positions.topics.iter().filter(|(_, topic)| !topic.retired);
    let topics = topics.map(|(name, _)| TopicSelector::Name(name.clone())).collect();
    let look = broker.look(&Ask { topics, isolation: state.isolation, deadline: Limits::default().deadline });
    if look.topics.values().any(|topic| matches!(topic.partitions, Seen::Failed(_))) {
        tracing::warn!("{} did not answer for all topics; what it would say is left out", look.brokers);
    }
    look
}

impl Moment {
    fn is_given(&self) -> bool {
        self.at.is_some() || self.batch.is_some() || self.seq.is_some()
    }

    /// The entry that the moment follows; none for now.
    fn seq(&self, journal: &Journal, group: &Group) -> Result<Option<Seq>, Failure> {
        if let Some(batch) = self.batch {
            return Ok(Some(opening::batch_entry(journal, group, batch)?.seq));
        }
        if let Some(time) = self.at {
            return match journal.seq_at(Some(group), time)? {
                Some(seq) => Ok(Some(seq)),
                None => Err(before_history(journal, group, &time.to_string())?),
            };
        }
        Ok(self.seq)
    }
}

/// Says that `moment` is before the oldest entry that is kept.
fn before_history(journal: &Journal, group: &Group, moment: &str) -> Result<Failure, Failure> {
    Ok(Failure::NotFound(match journal.oldest(group)? {
        Some(oldest) => format!(
            "{moment} is before the oldest entry of group {group}: seq {}, recorded at {}",
            oldest.seq, oldest.recorded_at
        ),
        None => format!("group {group} has no entries"),
    }))
}

fn as_of(journal: &Journal, seq: Seq, batch: BatchNumber) -> Result<AsOf, Failure> {
    let recorded_at = journal.entry(seq)?.map(|entry| entry.recorded_at).unwrap_or_default();
    let clock: Clock = Arc::new(times::now);
    let clock_uncertain = clock_uncertain(journal, &clock, Some(seq))?;
    Ok(AsOf { seq, batch, recorded_at, clock_uncertain })
}

fn write_table(out: &mut Out, answer: &PositionsAnswer, now: Timestamp) -> Result<(), Failure> {
    let AsOf { seq, batch, recorded_at, clock_uncertain } = &answer.as_of;
    let batch = if *batch == BatchNumber::ZERO { "no batch yet".to_owned() } else { format!("batch {batch}") };
    let recorded = times::with_distance(*recorded_at, now);
    out.line(format!("group {}: {batch}, seq {seq}, recorded {recorded}", answer.group))?;
    if *clock_uncertain {
        tracing::warn!("the machine's clock and the journal's differed by over a minute; batch numbers are surer");
    }
    let mut rows = Rows::new(&["topic", ">part", ">offset", ">end", ">lag", ">holes", ">batch", "batch time", "notes"]);
    for line in &answer.positions {
        rows.push([
            line.topic.to_string(),
            line.partition.to_string(),
            line.offset.to_string(),
            or_dash(line.readable_end),
            or_dash(line.lag.map(|lag| lag.0)),
            line.holes.len().to_string(),
            or_dash(line.last_batch),
            or_dash(line.last_batch_time.map(|time| times::with_distance(time, now))),
            notes(line),
        ]);
        if !line.holes.is_empty() {
            rows.strike();
        }
    }
    out.table(rows)
}

/// What else an operator should know of a partition.
fn notes(line: &Position) -> String {
    let replaying = line.replaying_until.map(|until| format!("replaying until {until}"));
    // Lag counts what can be read: without this a transaction that hangs would look healthy.
    let behind = line.latest.zip(line.readable_end).map(|(latest, end)| latest.since(end)).filter(|count| *count > 0);
    let waiting = behind.map(|count| format!("{count} behind an open transaction"));
    replaying.into_iter().chain(waiting).collect::<Vec<_>>().join(", ")
}
