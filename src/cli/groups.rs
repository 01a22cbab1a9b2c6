//! `tidelog groups`

use clap::Args;

use crate::cli::args::{Format, ListArgs, OutputArg};
use crate::cli::exit::Failure;
use crate::cli::output::{Out, Rows, or_dash};
use crate::cli::seat::{Ask, Needs, PlaceArgs, Seat};
use crate::cli::times;
use crate::wire::{GroupSummary, GroupWord};

const EXAMPLE: &str = "\
Example:
  tidelog groups
  tidelog groups -o json | jq -r 'select(.state == \"held\") | .group'";

/// List the groups of the journal
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Groups {
    #[command(flatten)]
    place: PlaceArgs,
    /// Only groups of this application
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    #[command(flatten)]
    output: OutputArg,
    #[command(flatten)]
    list: ListArgs,
}

impl Groups {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let ask = self.list.of(Ask::get("/v1/groups").with("app", self.app));
        let mut list = Seat::ask_once(&self.place, &Needs::default(), ask)?.list("groups")?;
        match self.output.output {
            Format::Json => list.print(out)?,
            Format::Csv => write_csv(out, &list.read()?)?,
            Format::Table if list.is_empty() => tracing::info!("no groups yet"),
            Format::Table => out.table(table(&list.read()?))?,
        }
        list.say_next(out)
    }
}

fn table(summaries: &[GroupSummary]) -> Rows {
    let now = times::now();
    let mut rows = Rows::new(&["group", "state", ">epoch", ">batch", "last commit", ">topics", ">losses", ">holes"]);
    for summary in summaries {
        let name = match summary.app.as_str() {
            crate::offset::Group::DEFAULT_APP => summary.group.clone(),
            app => format!("{} (app {app})", summary.group),
        };
        let last = summary.last_batch.as_ref();
        rows.push([
            name,
            summary.state.as_str().to_owned(),
            summary.epoch.to_string(),
            or_dash(last.map(|last| last.batch)),
            or_dash(last.and_then(|last| last.recorded_at).map(|at| times::with_distance(at, now))),
            summary.topics.len().to_string(),
            summary.losses_open.0.to_string(),
            summary.open_holes.0.to_string(),
        ]);
        if summary.state == GroupWord::Held || summary.losses_open.0 > 0 {
            rows.strike();
        }
    }
    rows
}

fn write_csv(out: &mut Out, summaries: &[GroupSummary]) -> Result<(), Failure> {
    out.csv(["group", "app", "state", "epoch", "batch", "recorded_at", "losses_open", "open_holes"])?;
    for summary in summaries {
        let last = summary.last_batch.as_ref();
        let text = |value: Option<String>| value.unwrap_or_default();
        let row = [
            summary.group.clone(),
            summary.app.clone(),
            summary.state.as_str().to_owned(),
            summary.epoch.to_string(),
            text(last.map(|last| last.batch.to_string())),
            text(last.and_then(|last| last.recorded_at).map(|at| at.to_string())),
            summary.losses_open.0.to_string(),
            summary.open_holes.0.to_string(),
        ];
        out.csv(row.iter().map(String::as_str))?;
    }
    Ok(())
}
