//! `tidelog positions`

use std::time::{Duration, Instant};

use clap::Args;

use crate::cli::args::{Format, GroupArg, OutputArg};
use crate::cli::exit::Failure;
use crate::cli::kafka::KafkaArgs;
use crate::cli::output::{Out, Rows, or_dash};
use crate::cli::seat::{Ask, Needs, PlaceArgs, Seat};
use crate::cli::times;
use crate::offset::{BatchNumber, Group, Seq, Timestamp};
use crate::wire::{AsOf, GroupAnswer, GroupWord, Position, PositionsAnswer};

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
    place: PlaceArgs,
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

/// How long a broker that was named is waited for: as long as a start waits.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two questions, where the answer came without what the broker says.
const PAUSE: Duration = Duration::from_millis(200);

impl Show {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        let Moment { at, batch, seq } = self.moment;
        let past = at.is_some() || batch.is_some() || seq.is_some();
        // What a broker says now means nothing for the past.
        let needs = Needs { kafka: (!past).then_some(&self.kafka), ..Needs::default() };
        let ask = || Ask::of(&group, "/positions").with("at", at).with("batch", batch).with("seq", seq);
        let seat = Seat::take(&self.place, &needs)?;
        let mut answer = seat.ask(ask())?;
        let mut positions: PositionsAnswer = answer.read()?;
        if !past && self.kafka.is_given() && is_wanted(&seat, &group)? {
            let begun = Instant::now();
            while is_without_broker(&positions) && begun.elapsed() < PATIENCE {
                std::thread::sleep(PAUSE);
                answer = seat.ask(ask())?;
                positions = answer.read()?;
            }
            if is_without_broker(&positions) {
                tracing::warn!("the broker did not answer; what it would say is left out");
            }
        }
        drop(seat);
        match self.output.output {
            Format::Json => answer.print(out),
            Format::Csv => positions.positions.iter().try_for_each(|line| {
                out.csv([line.topic.as_str(), &line.partition.to_string(), &line.offset.to_string()])
            }),
            Format::Table => write_table(out, &positions, times::now()),
        }
    }
}

/// Whether there is anything to ask a broker about: it is not asked about retired topics.
fn is_wanted(seat: &Seat, group: &Group) -> Result<bool, Failure> {
    let GroupAnswer { summary, .. } = seat.ask(Ask::of(group, ""))?.read()?;
    Ok(summary.state != GroupWord::Retired && summary.topics.iter().any(|topic| !topic.retired))
}

/// Whether the broker has said nothing of any position. The API gives at once what the journal knows, and goes on asking.
fn is_without_broker(answer: &PositionsAnswer) -> bool {
    !answer.positions.is_empty() && answer.positions.iter().all(|line| line.broker_seen_at.is_none())
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
