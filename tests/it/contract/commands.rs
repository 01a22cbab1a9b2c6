//! Commands, flags and environment variables, by clap's own definition of them.

use std::collections::BTreeSet;

use clap::{Arg, Command, CommandFactory as _};
use tidelog::cli::Cli;

use super::{lines, same};

/// A command; then a line a flag, as `--brokers -b --bootstrap-server $TIDELOG_BROKERS` or `--output -o table|json`, or a
/// word, as `GROUP`.
const LISTED: &str = include_str!("commands.txt");

/// Commands, flags and words that INTERFACE names and that later versions bring.
const LATER: &str = include_str!("later.txt");

fn show(argument: &Arg) -> String {
    let mut text = match (argument.get_long(), argument.get_short()) {
        (Some(long), Some(short)) => format!("--{long} -{short}"),
        (Some(long), None) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => argument.get_value_names().unwrap_or_default().join(" "),
    };
    for alias in argument.get_all_aliases().unwrap_or_default() {
        text += &format!(" --{alias}");
    }
    // Where a flag goes before a variable that has a weight of its own, the program reads it itself and its help says so.
    let help = argument.get_long_help().or(argument.get_help()).map(|help| help.to_string()).unwrap_or_default();
    let told = help.split("[env: ").nth(1).and_then(|rest| rest.split([']', ',']).next()).map(str::to_owned);
    if let Some(variable) = argument.get_env().map(|name| name.to_string_lossy().into_owned()).or(told) {
        text += &format!(" ${variable}");
    }
    let values = argument.get_possible_values();
    if argument.get_action().takes_values() && !values.is_empty() {
        let names: Vec<_> = values.iter().map(|value| value.get_name()).collect();
        text += &format!(" {}", names.join("|"));
    }
    text
}

fn there() -> BTreeSet<String> {
    let mut program = Cli::command();
    program.build();
    let of = |command: &Command, name: &str| {
        let shown =
            command.get_arguments().filter(|argument| argument.get_id() != "help" && argument.get_id() != "version");
        shown.map(|argument| format!("{name} {}", show(argument))).chain([name.to_owned()]).collect::<Vec<_>>()
    };
    let common: BTreeSet<String> = of(&program, "").into_iter().collect();
    let mut there: BTreeSet<String> = common.iter().map(|flag| format!("tidelog{flag}")).collect();
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        let own = of(command, command.get_name());
        let global = |flag: &String| common.contains(flag.trim_start_matches(command.get_name()));
        there.extend(own.into_iter().filter(|flag| flag == command.get_name() || !global(flag)));
    }
    there
}

fn listed(text: &str) -> BTreeSet<String> {
    let mut command = "";
    let mut found = BTreeSet::new();
    for line in lines(text) {
        match line.strip_prefix("  ") {
            Some(flag) => found.insert(format!("{command} {}", flag.trim())),
            None => {
                command = line;
                found.insert(command.to_owned())
            }
        };
    }
    found
}

#[test]
fn every_command_has_the_flags_that_are_listed_and_no_other() {
    same(&listed(LISTED), &there(), "commands and flags");
}

#[test]
fn what_is_listed_as_later_is_not_there_yet() {
    let there = there();
    let later: Vec<&str> = lines(LATER).filter(|line| !line.contains(" /")).collect();
    assert!(!later.is_empty());
    let here: Vec<_> = later
        .iter()
        .filter(|name| {
            there
                .iter()
                .any(|one| one.strip_prefix(**name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
        })
        .collect();
    assert!(here.is_empty(), "these have come: move them from later.txt to commands.txt: {here:?}");
}

#[test]
fn the_version_names_the_format() {
    let version = Cli::command().render_version();
    assert!(version.contains("journal format 1"), "{version}");
}
