//! `tidelog man`

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_mangen::Man as Page;

use crate::cli::Cli;
use crate::cli::exit::Failure;
use crate::cli::output::Out;

const EXAMPLE: &str = "\
Examples:
  tidelog man ~/.local/share/man/man1        then: man tidelog-rollback
  tidelog man > tidelog.1                    the main page alone";

/// Print the manual page, or write one for each command into a directory
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Man {
    /// Write the pages into this directory, which is made if it is not there: tidelog.1, tidelog-consume.1 and so on
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        // `help` has no page of its own.
        let program = Cli::command().disable_help_subcommand(true);
        match &self.dir {
            Some(dir) => {
                std::fs::create_dir_all(dir).map_err(|source| Failure::File { path: dir.clone(), source })?;
                clap_mangen::generate_to(program, dir).map_err(|source| Failure::File { path: dir.clone(), source })
            }
            None => {
                let mut page = Vec::new();
                Page::new(program).render(&mut page).map_err(Failure::Output)?;
                out.bytes(&page)
            }
        }
    }
}
