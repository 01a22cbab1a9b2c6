//! `tidelog history`

use clap::Args;

use crate::cli::args::{Format, GroupArg, JournalArg, OutputArg, PageArgs};
use crate::cli::exit::Failure;
use crate::cli::output::{Out, Rows};
use crate::cli::{opening, times};
use crate::history::{self, BatchFilter, Window};
use crate::offset::{BatchNumber, OffsetRange, Timestamp, TopicName};
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
    journal: JournalArg,
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

impl PageArgs {
    /// The window that is asked for.
    pub fn window(&self) -> Window {
        Window { order: self.order.into(), from: self.from, to: self.to, limit: usize::from(self.limit) }
    }

    /// The cursor as the number that it is.
    pub fn after<N: std::str::FromStr>(&self) -> Result<Option<N>, Failure> {
        let wrong = |text: &str| Failure::Usage(format!("--cursor {text}: not one that an earlier answer gave"));
        self.cursor.as_deref().map(|text| text.parse().map_err(|_| wrong(text))).transpose()
    }
}

/// Says how to go on; on standard error, as results are a list and nothing else.
pub fn say_next(next: Option<impl std::fmt::Display>) {
    if let Some(next) = next {
        tracing::info!("there is more: --cursor {next}");
    }
}

impl History {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        let after = self.page.after::<BatchNumber>()?;
        let journal = opening::existing(&self.journal.journal)?;
        opening::group_state(&journal, &group)?;
        let filter = BatchFilter {
            topic: self.topic,
            partition: self.partition,
            batch_from: self.batch_from,
            batch_to: self.batch_to,
        };
        let page = history::batches(&journal, &group, &self.page.window(), &filter, after)?;
        opening::close(journal);
        let batches: Vec<wire::Batch> = page.entries.into_iter().filter_map(wire::Batch::of).collect();
        match self.output.output {
            Format::Json => batches.iter().try_for_each(|batch| out.json(batch))?,
            Format::Csv => write_csv(out, &batches)?,
            Format::Table if batches.is_empty() => tracing::info!("no batches"),
            Format::Table => out.table(table(&batches))?,
        }
        out.flush()?;
        say_next(page.next);
        Ok(())
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
    const SHOWN: usize = 2;
    let mut text = ranges.iter().take(SHOWN).map(OffsetRange::to_string).collect::<Vec<_>>().join(", ");
    if ranges.len() > SHOWN {
        text.push_str(&format!(" and {} more", ranges.len() - SHOWN));
    }
    text
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
