//! The shell around the command line: arguments, messages, exit codes. Everything else is in the library.

use std::io;
use std::process::ExitCode;

use clap::Parser as _;
use tidelog::cli::{self, Cli};

fn main() -> ExitCode {
    let arguments = match Cli::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return cli::messages::usage(&error),
    };
    cli::messages::set_up(&arguments.common);
    let color = arguments.common.color.applies_to(&io::stdout());
    let mut out = cli::output::Out::new(Box::new(io::stdout()), color);
    let done = cli::run(arguments, &mut out);
    match done.and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // What was found before the failure is a result too.
            let _ = out.flush();
            if !failure.is_quiet() {
                tracing::error!("{failure}");
            }
            // The buffer may hold what a closed pipe did not take; writing it once more at drop is pointless.
            std::mem::forget(out);
            ExitCode::from(failure.code())
        }
    }
}
