//! `tidelog hold`

use clap::Args;

use crate::cli::args::{GroupArg, words_of};
use crate::cli::exit::Failure;
use crate::cli::output::Out;
use crate::cli::seat::Ask;
use crate::cli::steer::SteerArgs;
use crate::wire::HoldBody;

const EXAMPLE: &str = "\
Example:
  tidelog hold loader --reason \"mending the sink\"
  tidelog rollback loader -b kafka:9092 --to-batch 41 --before
  tidelog release loader

A consumer that runs keeps what it has committed; its next commit is refused, and it waits for the release.";

/// Stop a group: starts and commits are refused until it is released
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Hold {
    #[command(flatten)]
    group: GroupArg,
    /// Why, for those who find it stopped
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    steer: SteerArgs,
}

impl Hold {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        let body = HoldBody { reason: self.reason, actor: Some(self.steer.actor()) };
        self.steer.post(out, Ask::of(&group, "/hold"), &body, |entry| {
            let release = words_of(&group);
            format!("group {group} is on hold from seq {} on; tidelog release {release} frees it", entry.seq)
        })
    }
}
