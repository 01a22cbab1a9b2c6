//! Rows of comma-separated values, read strictly: what is not CSV is said with its place, never taken for something near it.

use std::io::{self, BufRead, Read};

/// Bytes of a row: a group and a topic of the longest, every character of them quoted, and two numbers have 1,100.
const MAX_ROW_BYTES: usize = 2_000;

/// The rows of a text, one by one; no more than one of them is held.
pub struct Rows<R> {
    input: R,
    /// Lines read so far.
    lines: u64,
}

/// A row, and the line that it begins on.
#[derive(Debug, PartialEq)]
pub struct Row {
    /// The line, from 1 on.
    pub line: u64,
    /// The values, quotes resolved.
    pub fields: Vec<String>,
}

/// Why there is no row.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// The system could not read on.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What is there is no row.
    #[error("line {line}{}: {why}", column.map(|column| format!(", column {column}")).unwrap_or_default())]
    Broken {
        /// The line that the row begins on.
        line: u64,
        /// The value, from 1 on, where it is about one.
        column: Option<usize>,
        /// What is wrong, and what to do.
        why: String,
    },
}

impl<R: BufRead> Rows<R> {
    /// The rows of `input`. A byte order mark in front is passed over.
    pub fn new(input: R) -> Self {
        Rows { input, lines: 0 }
    }

    /// The next row; none at the end. A line may end in LF or CR LF, the last one in neither.
    pub fn next(&mut self) -> Result<Option<Row>, RowError> {
        let line = self.lines + 1;
        let broken = |column, why: String| RowError::Broken { line, column, why };
        let mut bytes = Vec::new();
        loop {
            let room = MAX_ROW_BYTES + 1 - bytes.len();
            let read = self.input.by_ref().take(room as u64).read_until(b'\n', &mut bytes)?;
            self.lines += 1;
            if bytes.len() > MAX_ROW_BYTES {
                return Err(broken(
                    None,
                    format!("a row of more than {MAX_ROW_BYTES} bytes; is a quote never closed?"),
                ));
            }
            if bytes.is_empty() {
                return Ok(None);
            }
            let ended = read == 0 || !bytes.ends_with(b"\n");
            let row = std::str::from_utf8(&bytes).map_err(|error| {
                let before = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b',').count();
                broken(Some(before + 1), "not UTF-8; save the file as UTF-8".to_owned())
            })?;
            let row = if line == 1 { row.trim_start_matches('\u{feff}') } else { row };
            let row = row.strip_suffix('\n').map_or(row, |row| row.strip_suffix('\r').unwrap_or(row));
            match fields(row) {
                Ok(fields) => return Ok(Some(Row { line, fields })),
                Err((_, Flaw::Open)) if !ended => {}
                Err((column, flaw)) => return Err(broken(Some(column), flaw.text().to_owned())),
            }
        }
    }
}

/// What is wrong with a value.
#[derive(Debug, PartialEq)]
enum Flaw {
    Open,
    Behind,
    Inside,
}

impl Flaw {
    fn text(&self) -> &'static str {
        match self {
            Flaw::Open => "a quote is opened and never closed",
            Flaw::Behind => "text behind the closing quote; a quote inside a quoted value is written twice",
            Flaw::Inside => "a quote inside a value that does not begin with one; quote the value, and write it twice",
        }
    }
}

/// The values of one row; or the column, from 1 on, that is none.
fn fields(row: &str) -> Result<Vec<String>, (usize, Flaw)> {
    let mut fields = Vec::new();
    let mut rest = row;
    loop {
        let column = fields.len() + 1;
        let behind = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (field, behind) = unquoted(quoted).ok_or((column, Flaw::Open))?;
                fields.push(field);
                behind
            }
            None => {
                let (field, behind) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                if field.contains('"') {
                    return Err((column, Flaw::Inside));
                }
                fields.push(field.to_owned());
                behind
            }
        };
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None if behind.is_empty() => return Ok(fields),
            None => return Err((column, Flaw::Behind)),
        }
    }
}

/// A value up to its closing quote, and what is behind that; none without one.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (part, behind) = rest.split_once('"')?;
        field.push_str(part);
        match behind.strip_prefix('"') {
            Some(next) => {
                field.push('"');
                rest = next;
            }
            None => return Some((field, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Result<Vec<Vec<String>>, String> {
        let mut rows = Rows::new(text);
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(|error| error.to_string())? {
            found.push(row.fields);
        }
        Ok(found)
    }

    #[test]
    fn rows_are_read_with_either_end_of_line_and_with_quotes() {
        let two = Ok(vec![vec!["a".to_owned(), "1".to_owned()], vec!["b".to_owned(), "2".to_owned()]]);
        for text in ["a,1\nb,2\n", "a,1\r\nb,2", "\"a\",1\n\"b\",\"2\"\n", "\u{feff}a,1\nb,2"] {
            assert_eq!(all(text.as_bytes()), two, "{text:?}");
        }
        assert_eq!(all(b""), Ok(vec![]));
        assert_eq!(all(b"\n"), Ok(vec![vec![String::new()]]));
        let odd = all(b"\"say \"\"x\"\", y\r\nz\",\n").unwrap();
        assert_eq!(odd, [["say \"x\", y\r\nz", ""]]);
    }

    #[test]
    fn what_is_no_row_is_said_with_its_place() {
        for (text, said) in [
            (&b"a,1\n\"b,2\nc,3\n"[..], "line 2, column 1: a quote is opened and never closed"),
            (b"a,\"1\"2\n", "line 1, column 2: text behind"),
            (b"a,1\nb\"c,2", "line 2, column 1: a quote inside"),
            (b"a,1\na,\xff\n", "line 2, column 2: not UTF-8"),
            (b"a,1\n\"b\nc\",2\nd,\"\n", "line 4, column 2: a quote"),
        ] {
            let error = all(text).unwrap_err();
            assert!(error.starts_with(said), "{said}: {error}");
        }
        // An endless line is not waited for.
        let mut endless = Rows::new(io::BufReader::new(io::repeat(b'"')));
        assert!(endless.next().unwrap_err().to_string().contains("2000 bytes"));
    }
}
