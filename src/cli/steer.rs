//! What the commands share that make one entry of a group: who does it, where, and how it is shown.

use clap::Args;
use serde::Serialize;

use crate::cli::args::{NestedFormat, NestedOutputArg};
use crate::cli::exit::Failure;
use crate::cli::opening;
use crate::cli::output::Out;
use crate::cli::seat::{Ask, Needs, PlaceArgs, Seat};
use crate::wire::Entry;

/// Who, where, and in which form.
#[derive(Debug, Args)]
pub struct SteerArgs {
    /// Who does this [default: the login name]
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    output: NestedOutputArg,
}

impl SteerArgs {
    /// Who acts.
    pub fn actor(&self) -> String {
        opening::actor(self.actor.clone())
    }

    /// Posts `body`, and shows the entry that it made, or what `sentence` says of it.
    pub fn post(
        &self,
        out: &mut Out,
        ask: Ask,
        body: &impl Serialize,
        sentence: impl FnOnce(&Entry) -> String,
    ) -> Result<(), Failure> {
        let answer = Seat::ask_once(&self.place, &Needs::default(), ask.post(body)?)?;
        match self.output.output {
            NestedFormat::Json => answer.print(out),
            NestedFormat::Table => out.line(sentence(&answer.read()?)),
        }
    }
}
