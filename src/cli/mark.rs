//! `tidelog mark`

use clap::Args;

use crate::cli::args::{GroupArg, JournalArg, NestedFormat, NestedOutputArg};
use crate::cli::exit::Failure;
use crate::cli::opening;
use crate::cli::output::Out;
use crate::entry::{Body, Draft, Entry};
use crate::journal::{DecideError, Journal};
use crate::offset::{Group, free_name};
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
        let entry = mark(&journal, &group, self.name.clone(), opening::actor(self.actor))?;
        journal.close()?;
        match self.output.output {
            NestedFormat::Json => out.json(&wire::Entry::from(&entry)),
            NestedFormat::Table => out.line(format!("marked {:?} at seq {}", self.name, entry.seq)),
        }
    }
}

fn mark(journal: &Journal, group: &Group, name: String, actor: String) -> Result<Entry, Failure> {
    free_name("mark", &name)?;
    free_name("actor", &actor)?;
    let wanted = group.clone();
    let decided = journal.decide(move |state| match state.groups.get(&wanted) {
        Some(present) => {
            let body = Body::Mark { name, actor };
            Ok((vec![Draft { group: Some(wanted.clone()), epoch: present.epoch, body }], ()))
        }
        None => Err(()),
    });
    match decided {
        Ok((entries, ())) => {
            entries.into_iter().next().ok_or_else(|| Failure::NotFound("the journal returned no entry".to_owned()))
        }
        Err(DecideError::Refused(())) => Err(opening::unknown_group(journal, group)),
        Err(DecideError::Unavailable(error)) => Err(error.into()),
    }
}
