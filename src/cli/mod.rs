//! The command line: one file a command, and what they share. `main.rs` is the shell around it.

mod acknowledge;
pub mod args;
mod batch;
mod child;
mod completions;
mod consume;
mod csv;
mod demo;
mod entries;
pub mod exit;
mod groups;
mod history;
mod hold;
mod hosting;
mod import;
mod kafka;
mod losses;
mod man;
mod mark;
pub mod messages;
mod offsets_file;
mod opening;
pub mod output;
mod policy;
mod positions;
mod progress;
mod readers;
mod records;
mod release;
mod retire;
mod rollback;
mod seat;
mod serve;
mod start;
mod steer;
mod stop;
mod times;

use clap::{Parser, Subcommand};

use self::exit::Failure;
use self::output::Out;

/// The program's version with the journal format's, as `--version` prints it.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (journal format 1)");

const LONG_ABOUT: &str = "\
Keeps the offsets of Kafka consumers in a local, append-only journal: where each partition goes on, what every batch \
read and when, what was lost, and the way back to any earlier batch.";

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 another error; 2 wrong usage; 3 refused by a policy; 4 conflict; 5 journal in use by another \
process; 6 no journal there, or a damaged one; 7 broker not reachable; 8 no such group, batch, topic, mark or time; \
9 the batch command gave up; 130 after Ctrl-C, everything flushed.

Results go to standard output, messages to standard error.";

/// The arguments.
#[derive(Debug, Parser)]
#[command(name = "tidelog", version = VERSION, about = "A journal of Kafka consumer offsets", long_about = LONG_ABOUT)]
#[command(after_long_help = EXIT_CODES, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// Flags that every command takes.
    #[command(flatten)]
    pub common: args::Common,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the main job on a broker inside this program
    Demo(demo::Demo),
    /// Read topics, hand out batches, commit each to the journal
    Consume(consume::Consume),
    /// Serve a journal over HTTP
    Serve(serve::Serve),
    /// Reconcile a group with the broker and print where it starts
    Start(start::Start),
    /// List the groups of the journal
    Groups(groups::Groups),
    /// Show where a group goes on, now or at an earlier moment
    Positions(positions::Show),
    /// List the batches of a group
    History(history::History),
    /// Show one batch of a group
    Batch(batch::Show),
    /// List what a group will never read, and its open holes
    Losses(losses::Losses),
    /// List the entries of a group, of every kind
    Entries(entries::Entries),
    /// List the batches that read an offset, of every group, and when
    Readers(readers::Readers),
    /// Give the present state of a group a name to roll back to
    Mark(mark::Mark),
    /// Take a group back to where it was, or to where you want it: prints the plan, --execute does it
    Rollback(rollback::Rollback),
    /// Stop a group: starts and commits are refused until it is released
    Hold(hold::Hold),
    /// Free a group that is on hold: it goes on at its positions
    Release(release::Release),
    /// Let a topic of a group go, or the whole group: out of lists, alarms and rollbacks
    Retire(retire::Retire),
    /// Say that somebody has seen the losses, or the holes, of an entry: they leave the list
    Acknowledge(acknowledge::Acknowledge),
    /// Take over a new group's positions from another store
    Import(import::Import),
    /// Print a shell's completions
    Completions(completions::Completions),
    /// Print the manual page, or write one for each command into a directory
    Man(man::Man),
}

/// Carries out a command; results go to `out`.
///
/// # Errors
///
/// Whatever ends it early; [`Failure::code`] is the exit code.
pub fn run(arguments: Cli, out: &mut Out) -> Result<(), Failure> {
    match arguments.command {
        Command::Demo(command) => command.run(out),
        Command::Consume(command) => command.run(arguments.common.verbose > 0),
        Command::Serve(command) => command.run(),
        Command::Start(command) => command.run(out),
        Command::Groups(command) => command.run(out),
        Command::Positions(command) => command.run(out),
        Command::History(command) => command.run(out),
        Command::Batch(command) => command.run(out),
        Command::Losses(command) => command.run(out),
        Command::Entries(command) => command.run(out),
        Command::Readers(command) => command.run(out),
        Command::Mark(command) => command.run(out),
        Command::Rollback(command) => command.run(out),
        Command::Hold(command) => command.run(out),
        Command::Release(command) => command.run(out),
        Command::Retire(command) => command.run(out),
        Command::Acknowledge(command) => command.run(out),
        Command::Import(command) => command.run(out),
        Command::Completions(command) => command.run(out),
        Command::Man(command) => command.run(out),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_sound_and_the_version_names_the_format() {
        Cli::command().debug_assert();
        assert!(VERSION.ends_with(&format!("(journal format {})", crate::journal::FORMAT_VERSION)));
    }
}
