//! `tidelog mark`

use clap::Args;

use crate::cli::args::{GroupArg, NestedFormat, NestedOutputArg};
use crate::cli::exit::Failure;
use crate::cli::opening;
use crate::cli::output::Out;
use crate::cli::seat::{Ask, Needs, PlaceArgs, Seat};
use crate::wire::{Entry, MarkBody};

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
    place: PlaceArgs,
    #[command(flatten)]
    output: NestedOutputArg,
}

impl Mark {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let body = MarkBody { name: self.name.clone(), actor: Some(opening::actor(self.actor)) };
        let ask = Ask::of(&self.group.group()?, "/marks").post(&body)?;
        let answer = Seat::ask_once(&self.place, &Needs::default(), ask)?;
        match self.output.output {
            NestedFormat::Json => answer.print(out),
            NestedFormat::Table => out.line(format!("marked {:?} at seq {}", self.name, answer.read::<Entry>()?.seq)),
        }
    }
}
