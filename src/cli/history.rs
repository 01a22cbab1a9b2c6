//! `tidelog history`

use clap::Args;

use crate::cli::args::{Format, GroupArg, OutputArg, PageArgs};
use crate::cli::exit::Failure;
use crate::cli::output::{Out, Rows};
use crate::cli::seat::{Ask, Needs, PlaceArgs, Seat};
use crate::cli::times;
use crate::message::few;
use crate::offset::{OffsetRange, Timestamp, TopicName};
use crate::wire;

const EXAMPLE: &str = "\
Example:
  tidelog history loader
  tidelog history loader --topic orders --partition 0 --from 2026-11-30T00:00:00Z
  tidelog history loader -o json --limit 1000 | jq -r .batch

csv has one row for each range, under a header.";

/// List the batches of a group
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct History {
    #[command(flatten)]
    group: GroupArg,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    output: OutputArg,
    #[command(flatten)]
    page: PageArgs,
    /// Only batches with a range of this topic
    #[arg(short, long, value_name = "TOPIC")]
    topic: Option<TopicName>,
    /// Only batches with a range of this partition
    #[arg(long, requires = "topic", value_name = "N")]
    partition: Option<u32>,
    /// Only batches with a batch time at or after
    #[arg(long, value_name = "TIME")]
    batch_from: Option<Timestamp>,
    /// Only batches with a batch time before
    #[arg(long, value_name = "TIME")]
    batch_to: Option<Timestamp>,
}

impl History {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let ask = Ask::of(&self.group.group()?, "/batches").with("topic", self.topic).with("partition", self.partition);
        let ask = self.page.of(ask.with("batch_from", self.batch_from).with("batch_to", self.batch_to))?;
        let mut list = Seat::ask_once(&self.place, &Needs::default(), ask)?.list("batches")?;
        match self.output.output {
            Format::Json => list.print(out)?,
            Format::Csv => write_csv(out, &list.read()?)?,
            Format::Table if list.is_empty() => tracing::info!("no batches"),
            Format::Table => out.table(table(&list.read()?))?,
        }
        list.say_next(out)
    }
}

fn table(batches: &[wire::Batch]) -> Rows {
    let now = times::now();
    let mut rows = Rows::new(&[">batch", "recorded", ">offsets", "ranges", "notes"]);
    for batch in batches {
        let offsets: u64 = batch.ranges.iter().map(OffsetRange::count).sum();
        rows.push([
            batch.batch.to_string(),
            times::with_distance(batch.recorded_at, now),
            offsets.to_string(),
            some_of(&batch.ranges),
            notes(batch),
        ]);
    }
    rows
}

/// The first ranges, and how many more there are.
pub fn some_of(ranges: &[OffsetRange]) -> String {
    few(ranges, 2, ", ")
}

/// What a batch's notes say, each kind once.
fn notes(batch: &wire::Batch) -> String {
    use crate::entry::NoteKind::{First, Hole, Late, Overlap};
    let mut words = Vec::new();
    for (kind, word) in [(First, "first"), (Hole, "hole"), (Overlap, "overlap"), (Late, "late")] {
        match batch.notes.iter().filter(|note| note.note == kind).count() {
            0 => {}
            1 => words.push(word.to_owned()),
            count => words.push(format!("{count} {word}")),
        }
    }
    words.join(", ")
}

fn write_csv(out: &mut Out, batches: &[wire::Batch]) -> Result<(), Failure> {
    out.csv(["batch", "seq", "recorded_at", "batch_time", "topic", "partition", "from_offset", "until_offset"])?;
    for batch in batches {
        let own = [
            batch.batch.to_string(),
            batch.seq.to_string(),
            batch.recorded_at.to_string(),
            batch.batch_time.to_string(),
        ];
        for range in &batch.ranges {
            let of_range = [
                range.topic().to_string(),
                range.partition().to_string(),
                range.from_offset().to_string(),
                range.until_offset().to_string(),
            ];
            out.csv(own.iter().chain(&of_range).map(String::as_str))?;
        }
    }
    Ok(())
}
