//! `tidelog mark`

use clap::Args;

use crate::cli::args::GroupArg;
use crate::cli::exit::Failure;
use crate::cli::output::Out;
use crate::cli::seat::{Ask, Needs, Seat};
use crate::cli::steer::SteerArgs;
use crate::offset::{Group, Seq};
use crate::rollback::{PlanRequest, Target};
use crate::wire::{MarkBody, PlanAnswer, RollbackBody};

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
    #[command(flatten)]
    steer: SteerArgs,
}

impl Mark {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        let body = MarkBody { name: self.name.clone(), actor: Some(self.steer.actor()) };
        let older = older(&Seat::take(&self.steer.place, &Needs::default())?, &group, &self.name);
        let ask = Ask::of(&group, "/marks");
        self.steer.post(out, ask, &body, |entry| format!("marked {:?} at seq {}", self.name, entry.seq))?;
        if let Some(seq) = older {
            tracing::warn!("an older mark {:?}, of seq {seq}, is shadowed; --to-seq {seq} goes there", self.name);
        }
        Ok(())
    }
}

/// The mark of this name so far: the moment that a rollback to it would go to.
fn older(seat: &Seat, group: &Group, name: &str) -> Option<Seq> {
    let mut request = PlanRequest::new(group.clone(), Target::Mark(name.to_owned()));
    request.unchecked = true;
    let ask = Ask::of(group, "/rollback/plan").post(&RollbackBody::new(&request, None)).ok()?;
    seat.ask(ask).ok()?.read::<PlanAnswer>().ok()?.as_of.map(|as_of| as_of.seq)
}
