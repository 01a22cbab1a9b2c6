//! `tidelog start`

use clap::Args;

use crate::cli::args::{GroupArg, NestedFormat, NestedOutputArg};
use crate::cli::exit::Failure;
use crate::cli::kafka::KafkaArgs;
use crate::cli::output::{Out, Rows, or_dash};
use crate::cli::policy::PolicyArgs;
use crate::cli::seat::{Ask, Needs, PlaceArgs, Seat};
use crate::control::Limits;
use crate::entry::Verdict;
use crate::offset::Group;
use crate::wire::{GroupAnswer, GroupSummary, StartAnswer};

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
    place: PlaceArgs,
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
        let limits = Limits { second_look: self.policy.second_look, ..Limits::default() };
        let needs =
            Needs { create: !self.dry_run, kafka: Some(&self.kafka), must_look: true, unchecked: false, limits };
        let ask = Ask::of(&group, "/start").post(&self.policy.body(&group, self.dry_run))?;
        let seat = Seat::take(&self.place, &needs)?;
        let before = seat.ask(Ask::of(&group, "")).and_then(|answer| answer.read::<GroupAnswer>()).ok();
        let answer = seat.ask(ask)?;
        drop(seat);
        let epoch = answer.read::<StartAnswer>()?.epoch;
        if let Some(GroupSummary { owner: Some(owner), epoch: old, .. }) = before.map(|group| group.summary)
            && epoch > old
            && !self.dry_run
        {
            tracing::warn!(
                "{owner}, which had started the group, is fenced: if it still runs, its next commit is refused"
            );
        }
        match self.output.output {
            NestedFormat::Json => answer.print(out),
            NestedFormat::Table => write_table(out, &group, &answer.read()?, self.dry_run),
        }
    }
}

fn write_table(out: &mut Out, group: &Group, started: &StartAnswer, dry_run: bool) -> Result<(), Failure> {
    out.line(match dry_run {
        true => format!("group {group} would start under epoch {}", started.epoch),
        false => format!("group {group} starts under epoch {}, seq {}", started.epoch, started.seq),
    })?;
    let mut rows = Rows::new(&["topic", ">part", ">offset", "verdict", ">earliest", ">latest", ">readable end"]);
    for start in &started.positions {
        rows.push([
            start.topic.to_string(),
            start.partition.to_string(),
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
