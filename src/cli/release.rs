//! `tidelog release`

use clap::Args;

use crate::cli::args::GroupArg;
use crate::cli::exit::Failure;
use crate::cli::output::Out;
use crate::cli::seat::Ask;
use crate::cli::steer::SteerArgs;
use crate::wire::ReleaseBody;

const EXAMPLE: &str = "\
Example:
  tidelog release loader";

/// Free a group that is on hold: it goes on at its positions
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Release {
    #[command(flatten)]
    group: GroupArg,
    #[command(flatten)]
    steer: SteerArgs,
}

impl Release {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        let body = ReleaseBody { actor: self.steer.actor() };
        self.steer.post(out, Ask::of(&group, "/release"), &body, |entry| {
            format!("group {group} is released, seq {}", entry.seq)
        })
    }
}
