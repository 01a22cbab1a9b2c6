//! `tidelog readers`

use clap::Args;

use crate::cli::args::{Format, ListArgs, OutputArg};
use crate::cli::exit::Failure;
use crate::cli::output::{Out, Rows, or_dash};
use crate::cli::seat::{Ask, Needs, PlaceArgs, Seat};
use crate::cli::times;
use crate::offset::{Group, Offset, TopicName, TopicPartition};
use crate::wire::Reader;

const EXAMPLE: &str = "\
Example:
  tidelog readers orders 0 4711
  tidelog readers orders 0 4711 --group loader -o json | jq -r .batch

A batch that was rolled back has read the offset all the same: an offset that was read twice has two rows. Offsets of a \
topic that was made again begin anew: the topic id tells whose offset was read.";

/// List the batches that read an offset, of every group, and when
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Readers {
    /// The topic
    #[arg(value_name = "TOPIC")]
    topic: TopicName,
    /// The partition
    #[arg(value_name = "PARTITION")]
    partition: u32,
    /// The offset
    #[arg(value_name = "OFFSET")]
    offset: Offset,
    #[command(flatten)]
    place: PlaceArgs,
    /// Only batches of groups of this name
    #[arg(short, long, value_name = "NAME")]
    group: Option<String>,
    /// Only batches of this application's groups
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    #[command(flatten)]
    output: OutputArg,
    #[command(flatten)]
    list: ListArgs,
}

impl Readers {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let at = TopicPartition::new(self.topic.clone(), self.partition);
        let ask = |list: &ListArgs| {
            let ask = Ask::reading(&at, self.offset).with("group", self.group.as_ref());
            list.of(ask.with("app", self.app.as_ref()))
        };
        let seat = Seat::take(&self.place, &Needs::default())?;
        let mut list = seat.ask(ask(&self.list))?.list("readers")?;
        // A server looks at so much of the history at once: the answer is the first part that holds something.
        while let Some(next) = list.next().filter(|_| list.is_empty()) {
            list = seat.ask(ask(&self.list.after(next)))?.list("readers")?;
        }
        drop(seat);
        match self.output.output {
            Format::Json => list.print(out)?,
            Format::Csv => write_csv(out, &list.read()?)?,
            Format::Table if list.is_empty() => tracing::info!("no batch read offset {} of {at}", self.offset),
            Format::Table => out.table(table(&list.read()?))?,
        }
        list.say_next(out)
    }
}

fn table(readers: &[Reader]) -> Rows {
    let now = times::now();
    let mut rows = Rows::new(&["group", ">batch", "recorded", ">from", ">until", ">epoch", "topic id"]);
    for reader in readers {
        let name = match reader.app.as_str() {
            Group::DEFAULT_APP => reader.group.clone(),
            app => format!("{} (app {app})", reader.group),
        };
        rows.push([
            name,
            reader.batch.to_string(),
            times::with_distance(reader.recorded_at, now),
            reader.range.from_offset().to_string(),
            reader.range.until_offset().to_string(),
            reader.epoch.to_string(),
            or_dash(reader.topic_id),
        ]);
    }
    rows
}

fn write_csv(out: &mut Out, readers: &[Reader]) -> Result<(), Failure> {
    let titles = ["group", "app", "batch", "seq", "recorded_at", "batch_time", "epoch", "topic_id"];
    out.csv(titles.into_iter().chain(["from_offset", "until_offset"]))?;
    readers.iter().try_for_each(|reader| {
        let row = [
            reader.group.clone(),
            reader.app.clone(),
            reader.batch.to_string(),
            reader.seq.to_string(),
            reader.recorded_at.to_string(),
            reader.batch_time.to_string(),
            reader.epoch.to_string(),
            reader.topic_id.map_or_else(String::new, |id| id.to_string()),
            reader.range.from_offset().to_string(),
            reader.range.until_offset().to_string(),
        ];
        out.csv(row.iter().map(String::as_str))
    })
}
