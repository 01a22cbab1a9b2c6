//! Flags that several commands share, and how their values are read.

use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cli::exit::Failure;
use crate::cli::seat::Ask;
use crate::offset::{Group, Invalid, Isolation, Seq, Timestamp};

/// Flags that every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Messages")]
pub struct Common {
    /// When results and messages are coloured (NO_COLOR is heeded)
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
    /// More messages on stderr: -v details, -vv everything, libraries too (RUST_LOG is heeded)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Only errors on stderr
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// How messages on stderr are written
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub log_format: LogFormat,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Whether what is written to `stream` is coloured.
    pub fn applies_to(self, stream: &impl IsTerminal) -> bool {
        let unwanted = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => stream.is_terminal() && !unwanted() && !dumb(),
        }
    }
}

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Which journal.
#[derive(Debug, Clone, Args)]
pub struct JournalArg {
    /// Directory of the journal
    #[arg(short, long, env = "TIDELOG_JOURNAL", default_value = "tidelog-journal", value_name = "DIR")]
    pub journal: PathBuf,
}

/// The group, as the first word of a command.
#[derive(Debug, Clone, Args)]
pub struct GroupArg {
    /// The group
    #[arg(value_name = "GROUP")]
    group: String,
    /// The application that the group belongs to
    #[arg(long, default_value = Group::DEFAULT_APP, value_name = "NAME")]
    app: String,
}

impl GroupArg {
    /// The group that is meant, names checked.
    pub fn group(&self) -> Result<Group, Invalid> {
        Group::new(&self.app, &self.group)
    }
}

/// How results are written.
#[derive(Debug, Clone, Args)]
pub struct OutputArg {
    /// How results are written: json has one object a line for lists, and 64-bit numbers as strings
    #[arg(short, long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub output: Format,
}

/// How results of a command whose answer is no list of flat rows are written.
#[derive(Debug, Clone, Args)]
pub struct NestedOutputArg {
    /// How results are written: json has one object a line for lists, and 64-bit numbers as strings
    #[arg(short, long, value_enum, default_value_t = NestedFormat::Table, value_name = "FORMAT")]
    pub output: NestedFormat,
}

/// The forms of a list of flat rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people, at most 100 columns wide
    Table,
    /// The HTTP API's fields
    Json,
    /// Comma-separated, quoted only where needed
    Csv,
}

/// The forms of anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NestedFormat {
    /// For people, at most 100 columns wide
    Table,
    /// The HTTP API's fields
    Json,
}

/// A part of a list: how much, from where, in which order.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Which part")]
pub struct ListArgs {
    /// At most so many, 1 to 1000
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000), value_name = "N")]
    limit: u16,
    /// Go on where an earlier answer ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// In which order [default: desc; of groups, which go by their names, asc]
    #[arg(long, value_enum, value_name = "ORDER")]
    order: Option<OrderArg>,
}

impl ListArgs {
    /// The same, from another cursor on.
    pub fn after(&self, cursor: &str) -> ListArgs {
        ListArgs { cursor: Some(cursor.to_owned()), ..self.clone() }
    }

    /// The request for this part of the list.
    pub fn of(&self, ask: Ask) -> Ask {
        let order = self.order.map(|order| match order {
            OrderArg::Asc => "asc",
            OrderArg::Desc => "desc",
        });
        ask.with("limit", Some(self.limit)).with("cursor", self.cursor.as_ref()).with("order", order)
    }
}

/// A part of a list of what was recorded.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Which part")]
pub struct PageArgs {
    #[command(flatten)]
    list: ListArgs,
    /// Recorded at or after this time (RFC 3339 with a zone)
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Recorded before this time (RFC 3339 with a zone)
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
}

impl PageArgs {
    /// The request for this part of the list, whose cursors are numbers.
    ///
    /// # Errors
    ///
    /// The cursor is none: told before a journal is opened for it.
    pub fn of(&self, ask: Ask) -> Result<Ask, Failure> {
        if let Some(text) = self.list.cursor.as_deref().filter(|text| text.parse::<Seq>().is_err()) {
            return Err(Failure::Usage(format!("--cursor {text}: not one that an earlier answer gave")));
        }
        Ok(self.list.of(ask).with("from", self.from).with("to", self.to))
    }
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    /// Newest first
    Desc,
    /// Oldest first
    Asc,
}

/// What a group reads, in Kafka's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum IsolationArg {
    /// Records of committed transactions only
    ReadCommitted,
    /// All records
    ReadUncommitted,
}

impl From<IsolationArg> for Isolation {
    fn from(arg: IsolationArg) -> Isolation {
        match arg {
            IsolationArg::ReadCommitted => Isolation::ReadCommitted,
            IsolationArg::ReadUncommitted => Isolation::ReadUncommitted,
        }
    }
}

/// Reads a span of time: a number with `ms`, `s`, `m` or `h`; `0` alone needs no unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "write a number with ms, s, m or h, such as 500ms or 10s")?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("the unit is missing or not one of ms, s, m, h; write 500ms or 10s".to_owned()),
    };
    match number.checked_mul(millis) {
        Some(millis) if millis <= 24 * 3_600_000 => Ok(Duration::from_millis(millis)),
        _ => Err("at most 24h".to_owned()),
    }
}

/// Reads a count that is not 0.
pub fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| format!("a whole number from 1 to {}", usize::MAX))
}

/// Reads a size in bytes: a number, alone or with `KiB`, `MiB` or `GiB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "write a number of bytes, such as 65536 or 16MiB")?;
    let shift = match unit.trim_start() {
        "" | "B" => 0,
        "KiB" | "k" | "K" => 10,
        "MiB" | "m" | "M" => 20,
        "GiB" | "g" | "G" => 30,
        _ => return Err("the unit is not one of KiB, MiB, GiB".to_owned()),
    };
    match number.checked_mul(1 << shift) {
        Some(bytes) if (1..=1 << 30).contains(&bytes) => Ok(bytes),
        _ => Err("1 byte to 1GiB".to_owned()),
    }
}

/// A word as a shell takes it, to be pasted.
pub fn quoted(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/');
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The words by which a command names the group, to be pasted into a shell.
pub fn words_of(group: &Group) -> String {
    let name = quoted(group.group());
    match group.app() {
        Group::DEFAULT_APP => name,
        app => format!("{name} --app {}", quoted(app)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_to_type_can_be_pasted_into_a_shell() {
        assert_eq!(quoted("41"), "41");
        assert_eq!(quoted(r#"["default","it's"]"#), r#"'["default","it'\''s"]'"#);
        assert_eq!(quoted(""), "''");
        let words = |app: &str, group: &str| words_of(&Group::new(app, group).unwrap());
        assert_eq!(words("default", "a/b.c-d"), "a/b.c-d");
        assert_eq!(words("my app", "say \"x\""), "'say \"x\"' --app 'my app'");
    }

    #[test]
    fn spans_of_time_need_a_unit() {
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for bad in ["10", "", "s", "-1s", "1e3s", "25h", "99999999999999999999s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_count_is_at_least_one() {
        assert_eq!(count("7").map(NonZeroUsize::get), Ok(7));
        for bad in ["0", "-1", "", "1e3", "99999999999999999999"] {
            assert!(count(bad).is_err_and(|why| why.contains("from 1 to")), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes("16MiB"), Ok(16 << 20));
        assert_eq!(bytes("1"), Ok(1));
        for bad in ["0", "-1", "16MB", "2GiB", "x", ""] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
