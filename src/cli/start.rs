//! `tidelog start`

use clap::Args;

use crate::cli::args::{GroupArg, JournalArg, NestedFormat, NestedOutputArg};
use crate::cli::exit::Failure;
use crate::cli::kafka::{KafkaArgs, broker};
use crate::cli::opening;
use crate::cli::output::{Out, Rows, or_dash};
use crate::cli::policy::PolicyArgs;
use crate::control::{self, StartRequest, Started};
use crate::entry::Verdict;
use crate::journal::Durability;
use crate::offset::Group;
use crate::wire::StartAnswer;

const EXAMPLE: &str = "\
Examples:
  tidelog start loader -b kafka:9092 -t orders -t '^audit-.*'
  tidelog start loader -b kafka:9092 -t orders --dry-run            say what would be done, write nothing

Repairs positions that can't stay, takes in new partitions, journals both, raises the epoch, and prints where each \
partition starts. A policy that says fail refuses with exit 3, the same each time, and writes nothing.";

/// Reconcile a group with the broker and print where it starts
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Start {
    #[command(flatten)]
    group: GroupArg,
    /// Write nothing: only say what a start would do
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    journal: JournalArg,
    #[command(flatten)]
    output: NestedOutputArg,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    kafka: KafkaArgs,
}

impl Start {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        let broker = broker(&self.kafka.needed()?)?;
        let journal = if self.dry_run {
            opening::existing(&self.journal.journal)?
        } else {
            opening::or_new(&self.journal.journal, Durability::Fsync)?
        };
        let mut control = opening::control(journal.clone(), Some(broker));
        control.limits.second_look = self.policy.second_look;
        let started = control::start(&control, self.policy.request(&group, self.dry_run))?;
        drop(control);
        opening::close(journal);
        match self.output.output {
            NestedFormat::Json => out.json(&StartAnswer::new(&group, started)),
            NestedFormat::Table => write_table(out, &group, &started, self.dry_run),
        }
    }
}

impl PolicyArgs {
    /// The start that is asked for.
    pub fn request(&self, group: &Group, dry_run: bool) -> StartRequest {
        StartRequest {
            group: group.clone(),
            topics: self.topics.clone(),
            owner: self.owner(group),
            policy: self.policy(),
            isolation: self.isolation.map(Into::into),
            dry_run,
        }
    }
}

fn write_table(out: &mut Out, group: &Group, started: &Started, dry_run: bool) -> Result<(), Failure> {
    let would = if dry_run { "would start" } else { "starts" };
    out.line(format!("group {group} {would} under epoch {}, seq {}", started.epoch, started.seq))?;
    let mut rows = Rows::new(&["topic", ">part", ">offset", "verdict", ">earliest", ">latest", ">readable end"]);
    for start in &started.positions {
        rows.push([
            start.at.topic.to_string(),
            start.at.partition.to_string(),
            start.offset.to_string(),
            start.verdict.as_str().to_owned(),
            or_dash(start.earliest),
            or_dash(start.latest),
            or_dash(start.readable_end),
        ]);
        if !matches!(start.verdict, Verdict::InRange | Verdict::NewGroup) {
            rows.strike();
        }
    }
    out.table(rows)?;
    started.findings.iter().try_for_each(|finding| out.line(finding.to_string()))
}
