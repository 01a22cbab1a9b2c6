//! `tidelog completions`

use clap::{Args, CommandFactory};

use crate::cli::Cli;
use crate::cli::exit::Failure;
use crate::cli::output::Out;

const EXAMPLE: &str = "\
Example:
  tidelog completions bash > ~/.local/share/bash-completion/completions/tidelog
  tidelog completions fish > ~/.config/fish/completions/tidelog.fish";

/// Print a shell's completions
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

impl Completions {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "tidelog", &mut script);
        out.bytes(&script)
    }
}
