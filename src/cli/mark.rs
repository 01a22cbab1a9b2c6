//! `tidelog mark`

use clap::Args;

use crate::cli::args::{GroupArg, JournalArg, NestedFormat, NestedOutputArg};
use crate::cli::exit::Failure;
use crate::cli::opening;
use crate::cli::output::Out;
use crate::control;
use crate::wire;

const EXAMPLE: &str = "\
Example:
  tidelog mark loader \"before deploy 42\"
  tidelog rollback loader --to-mark \"before deploy 42\"";

/// Give the present state of a group a name to roll back to
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Mark {
    #[command(flatten)]
    group: GroupArg,
    /// The name, 1 to 255 bytes
    #[arg(value_name = "NAME")]
    name: String,
    /// Who does this [default: the login name]
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    #[command(flatten)]
    journal: JournalArg,
    #[command(flatten)]
    output: NestedOutputArg,
}

impl Mark {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        let journal = opening::existing(&self.journal.journal)?;
        let control = opening::control(journal.clone(), None);
        let entry = control::mark(&control, &group, &self.name, &opening::actor(self.actor))?;
        if let Some(older) = control::shadowed_mark(&journal, &group, &self.name, entry.seq)? {
            tracing::warn!("an older mark {:?}, of seq {older}, is shadowed: --to-seq {older} goes there", self.name);
        }
        drop(control);
        journal.close()?;
        match self.output.output {
            NestedFormat::Json => out.json(&wire::Entry::from(&entry)),
            NestedFormat::Table => out.line(format!("marked {:?} at seq {}", self.name, entry.seq)),
        }
    }
}
