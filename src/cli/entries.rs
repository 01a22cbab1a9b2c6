//! `tidelog entries`

use clap::Args;

use crate::cli::args::{GroupArg, NestedFormat, NestedOutputArg, PageArgs};
use crate::cli::exit::Failure;
use crate::cli::history::some_of;
use crate::cli::output::{Out, Rows};
use crate::cli::seat::{Ask, Needs, PlaceArgs, Seat};
use crate::cli::times;
use crate::entry::{Correction, Finding};
use crate::wire::{Entry, Own};

const EXAMPLE: &str = "\
Example:
  tidelog entries loader
  tidelog entries loader --order asc --from 2026-11-30T00:00:00Z
  tidelog entries loader -o json | jq 'select(.kind == \"rolled_back\")'";

/// List the entries of a group, of every kind
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Entries {
    #[command(flatten)]
    group: GroupArg,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    output: NestedOutputArg,
    #[command(flatten)]
    page: PageArgs,
}

impl Entries {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let ask = self.page.of(Ask::of(&self.group.group()?, "/entries"))?;
        let mut list = Seat::ask_once(&self.place, &Needs::default(), ask)?.list("entries")?;
        match self.output.output {
            NestedFormat::Json => list.print(out)?,
            NestedFormat::Table if list.is_empty() => tracing::info!("no entries"),
            NestedFormat::Table => out.table(table(&list.read()?))?,
        }
        list.say_next(out)
    }
}

fn table(entries: &[Entry]) -> Rows {
    let now = times::now();
    let mut rows = Rows::new(&[">seq", "recorded", "kind", ">epoch", "what"]);
    for entry in entries {
        rows.push([
            entry.seq.to_string(),
            times::with_distance(entry.recorded_at, now),
            entry.own.kind().to_owned(),
            entry.epoch.to_string(),
            summary(&entry.own),
        ]);
        if matches!(entry.own, Own::RolledBack { .. } | Own::Held { .. }) {
            rows.strike();
        }
    }
    rows
}

/// An entry in one line.
fn summary(own: &Own) -> String {
    match own {
        Own::Batch { batch, ranges, .. } => format!("batch {batch}: {}", some_of(ranges)),
        Own::Started { owner, .. } => format!("by {owner}"),
        Own::Reconciled { findings, correction } | Own::PartitionsAdded { findings, correction } => {
            [verdicts(findings), correction_text(correction)].join("; ")
        }
        Own::RolledBack { target, actor, reason, correction, .. } => {
            format!("to {target} by {actor}: {reason}; {}", correction_text(correction))
        }
        Own::KafkaResult { of, partitions } => {
            let failed = partitions.iter().filter(|outcome| outcome.error.is_some()).count();
            format!("of seq {of}: {} set, {failed} failed", partitions.len() - failed)
        }
        Own::Held { reason, actor } => format!("by {actor}: {reason}"),
        Own::Released { actor } => format!("by {actor}"),
        Own::Retired { topic: Some(topic), actor } => format!("{topic} by {actor}"),
        Own::Retired { topic: None, actor } => format!("the group, by {actor}"),
        Own::Mark { name, actor } => format!("{name:?} by {actor}"),
        Own::LossAcknowledged { of, actor } => format!("seq {of} by {actor}"),
        Own::Imported { source, correction } => format!("from {source}; {}", correction_text(correction)),
        Own::Pruned { through, actor } => format!("up to seq {through} by {actor}"),
    }
}

/// Each verdict once, with how often it was found.
fn verdicts(findings: &[Finding]) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for finding in findings {
        *counts.entry(finding.verdict).or_insert(0) += 1;
    }
    let word = |(verdict, count): (&crate::entry::Verdict, &i32)| match count {
        1 => verdict.as_str().to_owned(),
        count => format!("{count} {}", verdict.as_str()),
    };
    counts.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn correction_text(correction: &Correction) -> String {
    let moved = match correction.moves.as_slice() {
        [] => "no position set".to_owned(),
        [one] => {
            let from = one.old.map_or_else(String::new, |old| format!("{old} -> "));
            let to = one.new.map_or_else(|| "gone".to_owned(), |new| new.to_string());
            format!("{}/{} {from}{to}", one.topic, one.partition)
        }
        moves => format!("{} partitions set", moves.len()),
    };
    match correction.losses.len() {
        0 => moved,
        1 => format!("{moved}, 1 loss"),
        count => format!("{moved}, {count} losses"),
    }
}
