//! Offsets by partition in a file, as `kafka-consumer-groups` writes and reads them: `topic,partition,offset` or
//! `group,topic,partition,offset`, no header.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::cli::csv::{Row, RowError, Rows};
use crate::cli::exit::Failure;
use crate::commit::MAX_PARTITIONS;
use crate::message::{NAMED, few};
use crate::offset::{Group, Invalid, Offset, TopicName, TopicPartition, partition_number};

/// Rows of a file, those of other groups included.
const MAX_ROWS: u64 = 1_000_000;

/// Reads the offsets of `group` from the file that `flag` names, or from standard input for `-`. All of the file is
/// checked; rows of other groups are left out, and said.
///
/// # Errors
///
/// A file that is not there; a row that is none, with its place; a partition named twice; no row for the group at all.
pub fn read(flag: &str, path: &Path, group: &Group) -> Result<BTreeMap<TopicPartition, Offset>, Failure> {
    let name = match is_stdin(path) {
        true => format!("{flag} - (standard input)"),
        false => format!("{flag} {}", path.display()),
    };
    let opened: Box<dyn BufRead> = match is_stdin(path) {
        true => Box::new(io::stdin().lock()),
        false => match File::open(path) {
            Ok(file) => Box::new(BufReader::new(file)),
            Err(error) => return Err(Failure::Usage(format!("{name}: {error}"))),
        },
    };
    let offsets = Offsets::read(opened, group).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    if !offsets.others.is_empty() {
        let rows = offsets.rows - offsets.known.len() as u64;
        tracing::warn!("{name}: {rows} rows of other groups are left out: {}", offsets.others_text());
    }
    Ok(offsets.known.into_iter().map(|(at, (offset, _))| (at, offset)).collect())
}

/// Whether a file's name means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Why a file is refused.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error(transparent)]
    Row(#[from] RowError),
    #[error("line {line}, column {column}: {why}")]
    Value { line: u64, column: usize, why: Invalid },
    #[error("line {line}: {why}")]
    Line { line: u64, why: String },
    #[error("{0}")]
    Whole(String),
}

/// What a file holds for one group.
#[derive(Debug, Default)]
struct Offsets {
    /// Each offset with its line.
    known: BTreeMap<TopicPartition, (Offset, u64)>,
    rows: u64,
    /// How many columns each row has.
    columns: Option<usize>,
    /// The other groups.
    others: BTreeSet<String>,
}

impl Offsets {
    fn read(input: impl BufRead, group: &Group) -> Result<Offsets, FileError> {
        let mut offsets = Offsets::default();
        let mut rows = Rows::new(input);
        while let Some(row) = rows.next()? {
            offsets.take(&row, group)?;
        }
        if offsets.rows == 0 {
            return Err(FileError::Whole("holds no row".to_owned()));
        }
        if offsets.known.is_empty() {
            let others = offsets.others_text();
            return Err(FileError::Whole(format!("no row is of group {}; it names {others}", group.group())));
        }
        Ok(offsets)
    }

    fn take(&mut self, row: &Row, group: &Group) -> Result<(), FileError> {
        let Row { line, fields } = row;
        let refuse = |why: String| FileError::Line { line: *line, why };
        // Kafka's tool ends with a blank line.
        if fields.len() == 1 && fields[0].is_empty() {
            return Ok(());
        }
        let (own, topic, partition, offset) = match &fields[..] {
            [topic, partition, offset] => (None, topic, partition, offset),
            [group, topic, partition, offset] => (Some(group), topic, partition, offset),
            fields => {
                let why = "a row is topic,partition,offset or group,topic,partition,offset";
                return Err(refuse(format!("{} columns; {why}", fields.len())));
            }
        };
        if let Some(before) = self.columns.replace(fields.len()).filter(|before| *before != fields.len()) {
            return Err(refuse(format!("{} columns, where the rows before have {before}", fields.len())));
        }
        if self.rows == 0 && [partition, offset].iter().all(|text| !text.contains(|c: char| c.is_ascii_digit())) {
            return Err(refuse("looks like a header; begin with the first row, as Kafka's tool does".to_owned()));
        }
        let first = fields.len() - 2;
        let value = |column: usize| move |why| FileError::Value { line: *line, column, why };
        let at = TopicPartition::new(
            TopicName::new(topic).map_err(value(first))?,
            number(partition).and_then(partition_number).map_err(value(first + 1))?,
        );
        let offset = checked(offset).map_err(value(first + 2))?;
        self.rows += 1;
        if self.rows > MAX_ROWS {
            return Err(refuse(format!("more than {MAX_ROWS} rows")));
        }
        if let Some(other) = own.filter(|own| *own != group.group()) {
            self.others.insert(other.clone());
            return Ok(());
        }
        if self.known.len() == MAX_PARTITIONS {
            return Err(refuse(format!("more than {MAX_PARTITIONS} partitions, which is the most that a group has")));
        }
        match self.known.entry(at) {
            Entry::Vacant(place) => drop(place.insert((offset, *line))),
            Entry::Occupied(place) => {
                return Err(refuse(format!("{} a second time; it is on line {} too", place.key(), place.get().1)));
            }
        }
        Ok(())
    }

    fn others_text(&self) -> String {
        few(self.others.iter().map(|name| format!("{name:?}")), NAMED, ", ")
    }
}

/// A partition's number as it came.
fn number(text: &str) -> Result<i64, Invalid> {
    text.parse().map_err(|_| Invalid::new("partition", text, "not a whole number; a partition is 0 to 2147483647"))
}

/// An offset; a sentinel of Kafka's is told as one.
fn checked(text: &str) -> Result<Offset, Invalid> {
    match text.parse::<i64>() {
        Ok(negative) if negative < 0 => Offset::new(negative),
        _ => text.parse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let group = Group::new("default", "a,\"b\"").unwrap();
        let offsets = Offsets::read(text.as_bytes(), &group).map_err(|error| error.to_string())?;
        let known = offsets.known.iter().map(|(at, (offset, _))| format!("{at} {offset}"));
        Ok(known.chain((!offsets.others.is_empty()).then(|| offsets.others_text())).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn offsets_with_and_without_a_group() {
        assert_eq!(read("t,1,9223372036854775807\nt,0,5\n").as_deref(), Ok("t/0 5; t/1 9223372036854775807"));
        assert_eq!(read("\nt,0,5\r\n\r\nt,1,6\n\n").as_deref(), Ok("t/0 5; t/1 6"));
        assert_eq!(read("\"a,\"\"b\"\"\",t,0,5\nother,t,0,7\n").as_deref(), Ok("t/0 5; \"other\""));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, said) in [
            ("", "holds no row"),
            ("t,0\n", "line 1: 2 columns; a row is topic,partition,offset"),
            ("\n\n", "holds no row"),
            ("g,t,0,5,6\n", "line 1: 5 columns"),
            ("t,0,5\nt,1,5,\n", "line 2: 4 columns, where the rows before have 3"),
            ("topic,partition,offset\nt,0,5\n", "line 1: looks like a header"),
            ("group,topic,partition,offset\n", "line 1: looks like a header"),
            ("t,0,-1\n", "line 1, column 3: offset \"-1\": negative (Kafka's markers"),
            ("t,0,5\nt,1,-1001\n", "line 2, column 3: offset \"-1001\": negative"),
            ("t,0,9223372036854775808\n", "line 1, column 3: offset \"9223372036854775808\": larger than"),
            ("t,0,1e3\n", "line 1, column 3: offset \"1e3\": not a whole number"),
            ("t,0,+5\n", "line 1, column 3: offset \"+5\": not a whole number"),
            ("t, 0, 5\n", "line 1, column 2: partition \" 0\": not a whole number"),
            ("t, 0,5\n", "line 1, column 2: partition \" 0\": not a whole number"),
            ("t,-1,5\n", "line 1, column 2: partition \"-1\": a partition is 0 to 2147483647"),
            ("t,2147483648,5\n", "line 1, column 2: partition \"2147483648\": a partition is"),
            ("a b,0,5\n", "line 1, column 1: topic \"a b\": a topic name has only"),
            ("g,a b,0,5\n", "line 1, column 2: topic \"a b\""),
            ("t,0,5\nu,0,6\nt,0,5\n", "line 3: t/0 a second time; it is on line 1 too"),
            ("other,t,0,5\n", "no row is of group a,\"b\"; it names \"other\""),
            // Rows of others are checked too: a file that is wrong anywhere is not half right.
            ("\"a,\"\"b\"\"\",t,0,5\nother,t,0,x\n", "line 2, column 4: offset \"x\""),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(said), "{text:?}: {said}: {error}");
        }
    }

    #[test]
    fn a_file_that_is_too_long_is_refused_where_it_is() {
        struct Endless(u64, Vec<u8>);
        impl io::Read for Endless {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                if self.1.is_empty() {
                    self.1 = format!("t,{},0\n", self.0).into_bytes();
                    self.0 += 1;
                }
                let count = into.len().min(self.1.len());
                into[..count].copy_from_slice(&self.1[..count]);
                self.1.drain(..count);
                Ok(count)
            }
        }
        let group = Group::new("default", "g").unwrap();
        let error = Offsets::read(BufReader::new(Endless(0, Vec::new())), &group).unwrap_err();
        assert!(error.to_string().starts_with("line 200001: more than 200000 partitions"), "{error}");
    }
}
