//! `tidelog batch`

use clap::Args;

use crate::cli::args::{GroupArg, NestedFormat, NestedOutputArg};
use crate::cli::exit::Failure;
use crate::cli::output::{Out, Rows};
use crate::cli::seat::{Ask, Needs, PlaceArgs, Seat};
use crate::cli::times;
use crate::entry::{Note, NoteKind};
use crate::offset::BatchNumber;
use crate::wire;

const EXAMPLE: &str = "\
Example:
  tidelog batch loader 41
  tidelog batch loader 41 -o json | jq .ranges";

/// Show one batch of a group
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Show {
    #[command(flatten)]
    group: GroupArg,
    /// The batch's number, 1 for the first
    #[arg(value_name = "N")]
    batch: BatchNumber,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    output: NestedOutputArg,
}

impl Show {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        let ask = Ask::of(&group, &format!("/batches/{}", self.batch));
        let answer = Seat::ask_once(&self.place, &Needs::default(), ask)?;
        match self.output.output {
            NestedFormat::Json => answer.print(out),
            NestedFormat::Table => write_table(out, &group.to_string(), &answer.read()?),
        }
    }
}

fn write_table(out: &mut Out, group: &str, batch: &wire::Batch) -> Result<(), Failure> {
    let now = times::now();
    out.line(format!("batch {} of group {group}, seq {}, epoch {}", batch.batch, batch.seq, batch.epoch))?;
    out.line(format!("recorded   {}", times::with_distance(batch.recorded_at, now)))?;
    out.line(format!("batch time {}", times::with_distance(batch.batch_time, now)))?;
    if let Some(key) = &batch.key {
        out.line(format!("key        {}", key.escape_debug()))?;
    }
    let mut rows = Rows::new(&["topic", ">partition", ">from", ">until", ">offsets", "notes"]);
    for range in &batch.ranges {
        let notes = batch.notes.iter().filter(|n| n.topic == *range.topic() && n.partition == range.partition());
        rows.push([
            range.topic().to_string(),
            range.partition().to_string(),
            range.from_offset().to_string(),
            range.until_offset().to_string(),
            range.count().to_string(),
            notes.map(note_text).collect::<Vec<_>>().join(", "),
        ]);
    }
    out.table(rows)
}

fn note_text(note: &Note) -> String {
    let range = format!("[{},{})", note.from_offset, note.until_offset);
    match note.note {
        NoteKind::Hole => format!("hole {range} before it"),
        NoteKind::Overlap => format!("{range} was committed before"),
        NoteKind::Late => "late: the position was past it".to_owned(),
        NoteKind::First => "first of this partition".to_owned(),
    }
}
