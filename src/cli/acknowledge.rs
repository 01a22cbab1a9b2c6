//! `tidelog acknowledge`

use clap::Args;

use crate::cli::exit::Failure;
use crate::cli::output::Out;
use crate::cli::seat::Ask;
use crate::cli::steer::SteerArgs;
use crate::offset::Seq;
use crate::wire::AcknowledgeBody;

const EXAMPLE: &str = "\
Example:
  tidelog losses loader
  tidelog acknowledge 120                    the losses and holes of seq 120 were seen

A hole that is acknowledged is closed: it is not looked into again, and a start does not go back to it.";

/// Say that somebody has seen the losses, or the holes, of an entry: they leave the list
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Acknowledge {
    /// The entry that made them, as `tidelog losses` shows it
    #[arg(value_name = "SEQ")]
    seq: Seq,
    #[command(flatten)]
    steer: SteerArgs,
}

impl Acknowledge {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let body = AcknowledgeBody { actor: self.steer.actor() };
        let ask = Ask::get(&format!("/v1/losses/{}/acknowledge", self.seq));
        self.steer.post(out, ask, &body, |entry| format!("seq {} is acknowledged, by seq {}", self.seq, entry.seq))
    }
}
