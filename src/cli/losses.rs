//! `tidelog losses`

use clap::Args;

use crate::cli::args::{Format, GroupArg, ListArgs, OutputArg};
use crate::cli::exit::Failure;
use crate::cli::output::{Out, Rows, or_dash};
use crate::cli::seat::{Ask, Needs, PlaceArgs, Seat};
use crate::cli::times;
use crate::wire::LossLine;

const EXAMPLE: &str = "\
Example:
  tidelog losses loader
  tidelog losses loader -o json | jq -r 'select(.cause == \"expired\") | .topic'

A loss is an upper bound: the range may hold transaction markers or compacted offsets that were no records. A hole is \
open until a late batch fills it or a look at the broker shows that nothing is in it.";

/// List what a group will never read, and its open holes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Losses {
    #[command(flatten)]
    group: GroupArg,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    output: OutputArg,
    #[command(flatten)]
    list: ListArgs,
}

impl Losses {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        let ask = self.list.of(Ask::of(&group, "/losses"));
        let mut list = Seat::ask_once(&self.place, &Needs::default(), ask)?.list("losses")?;
        match self.output.output {
            Format::Json => list.print(out)?,
            Format::Csv => write_csv(out, &list.read()?)?,
            Format::Table if list.is_empty() => tracing::info!("group {group} has no open losses and no open holes"),
            Format::Table => out.table(table(&list.read()?))?,
        }
        list.say_next(out)
    }
}

fn table(lines: &[LossLine]) -> Rows {
    let now = times::now();
    let mut rows = Rows::new(&["cause", "topic", ">partition", ">from", ">until", ">seq", "noted"]);
    for line in lines {
        rows.push([
            line.cause.clone(),
            line.topic.to_string(),
            line.partition.to_string(),
            line.from_offset.to_string(),
            line.until_offset.to_string(),
            line.seq.to_string(),
            or_dash(line.recorded_at.map(|at| times::with_distance(at, now))),
        ]);
    }
    rows
}

fn write_csv(out: &mut Out, lines: &[LossLine]) -> Result<(), Failure> {
    out.csv(["seq", "cause", "topic", "partition", "from_offset", "until_offset", "recorded_at"])?;
    lines.iter().try_for_each(|line| {
        let row = [
            line.seq.to_string(),
            line.cause.clone(),
            line.topic.to_string(),
            line.partition.to_string(),
            line.from_offset.to_string(),
            line.until_offset.to_string(),
            line.recorded_at.map_or_else(String::new, |at| at.to_string()),
        ];
        out.csv(row.iter().map(String::as_str))
    })
}
