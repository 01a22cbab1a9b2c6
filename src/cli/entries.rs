//! `tidelog entries`

use clap::Args;

use crate::cli::args::{GroupArg, JournalArg, NestedFormat, NestedOutputArg, PageArgs};
use crate::cli::exit::Failure;
use crate::cli::history::{say_next, some_of};
use crate::cli::output::{Out, Rows};
use crate::cli::{opening, times};
use crate::entry::{Body, Correction, Entry, Finding};
use crate::history;
use crate::offset::Seq;
use crate::wire;

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
    journal: JournalArg,
    #[command(flatten)]
    output: NestedOutputArg,
    #[command(flatten)]
    page: PageArgs,
}

impl Entries {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        let after = self.page.after::<Seq>()?;
        let journal = opening::existing(&self.journal.journal)?;
        opening::group_state(&journal, &group)?;
        let page = history::entries(&journal, Some(&group), &self.page.window(), after)?;
        opening::close(journal);
        match self.output.output {
            NestedFormat::Json => page.entries.iter().try_for_each(|entry| out.json(&wire::Entry::from(entry)))?,
            NestedFormat::Table if page.entries.is_empty() => tracing::info!("no entries"),
            NestedFormat::Table => out.table(table(&page.entries))?,
        }
        out.flush()?;
        say_next(page.next);
        Ok(())
    }
}

fn table(entries: &[Entry]) -> Rows {
    let now = times::now();
    let mut rows = Rows::new(&[">seq", "recorded", "kind", ">epoch", "what"]);
    for entry in entries {
        rows.push([
            entry.seq.to_string(),
            times::with_distance(entry.recorded_at, now),
            entry.body.kind().to_owned(),
            entry.epoch.to_string(),
            summary(&entry.body),
        ]);
        if matches!(entry.body, Body::RolledBack(_) | Body::Held { .. }) {
            rows.strike();
        }
    }
    rows
}

/// An entry in one line.
fn summary(body: &Body) -> String {
    match body {
        Body::Batch(batch) => format!("batch {}: {}", batch.batch, some_of(&batch.ranges)),
        Body::Started { owner, .. } => format!("by {owner}"),
        Body::Reconciled { findings, correction } | Body::PartitionsAdded { findings, correction } => {
            let parts = [verdicts(findings), correction_text(correction)];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
        }
        Body::RolledBack(moved) => {
            format!("to {} by {}: {}; {}", moved.target, moved.actor, moved.reason, correction_text(&moved.correction))
        }
        Body::KafkaResult { of, partitions } => {
            let failed = partitions.iter().filter(|outcome| outcome.error.is_some()).count();
            format!("of seq {of}: {} set, {failed} failed", partitions.len() - failed)
        }
        Body::Held { reason, actor } => format!("by {actor}: {reason}"),
        Body::Released { actor } => format!("by {actor}"),
        Body::Retired { topic: Some(topic), actor } => format!("{topic} by {actor}"),
        Body::Retired { topic: None, actor } => format!("the group, by {actor}"),
        Body::Mark { name, actor } => format!("{name:?} by {actor}"),
        Body::LossAcknowledged { of, actor } => format!("seq {of} by {actor}"),
        Body::Imported { source, correction } => format!("from {source}; {}", correction_text(correction)),
        Body::Pruned { through, actor, groups: _ } => format!("up to seq {through} by {actor}"),
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
