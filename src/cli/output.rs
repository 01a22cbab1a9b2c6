//! Results on standard output: tables of at most 100 columns, JSON lines, CSV.

use std::io::{self, BufWriter, Write};

use comfy_table::{Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table};
use serde::Serialize;

use crate::cli::exit::Failure;

/// How wide a table may get where no terminal says otherwise.
const WIDTH: u16 = 100;
/// A terminal narrower than this is not believed.
const NARROWEST: u16 = 40;

/// Standard output, or what stands for it in a test.
pub struct Out {
    stream: BufWriter<Box<dyn Write + Send>>,
    color: bool,
}

impl Out {
    /// Writes to `stream`, coloured or not.
    pub fn new(stream: Box<dyn Write + Send>, color: bool) -> Self {
        Out { stream: BufWriter::new(stream), color }
    }

    /// Writes one line of text.
    pub fn line(&mut self, text: impl AsRef<str>) -> Result<(), Failure> {
        writeln!(self.stream, "{}", text.as_ref()).map_err(Failure::Output)
    }

    /// Writes one JSON object on a line of its own.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.stream, value).map_err(|error| Failure::Output(error.into()))?;
        self.stream.write_all(b"\n").map_err(Failure::Output)
    }

    /// Writes one row of CSV; a field is quoted only where it must be.
    pub fn csv<'a>(&mut self, fields: impl IntoIterator<Item = &'a str>) -> Result<(), Failure> {
        let row = fields.into_iter().map(csv_field).collect::<Vec<_>>().join(",");
        self.line(row)
    }

    /// Writes a table; nothing if it has no rows.
    pub fn table(&mut self, rows: Rows) -> Result<(), Failure> {
        if rows.rows.is_empty() {
            return Ok(());
        }
        let text = rows.render(self.color);
        self.line(text)
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(bytes).map_err(Failure::Output)
    }

    /// Hands what was written to the system.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.stream.flush().map_err(Failure::Output)
    }
}

fn csv_field(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// What is known of a value that may not be there.
pub fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// The rows of a table. Columns whose title begins with `>` are numbers, set to the right.
pub struct Rows {
    titles: &'static [&'static str],
    rows: Vec<Vec<String>>,
    /// Rows that are worth a second look.
    striking: Vec<usize>,
}

impl Rows {
    /// A table with these titles.
    pub fn new(titles: &'static [&'static str]) -> Self {
        Rows { titles, rows: Vec::new(), striking: Vec::new() }
    }

    /// Adds a row, one text for each title.
    pub fn push<const N: usize>(&mut self, row: [String; N]) {
        debug_assert_eq!(N, self.titles.len(), "a cell for each title");
        self.rows.push(row.into());
    }

    /// Makes the row pushed last stand out.
    pub fn strike(&mut self) {
        self.striking.push(self.rows.len().saturating_sub(1));
    }

    fn render(self, color: bool) -> String {
        let mut table = Table::new();
        table.load_preset(comfy_table::presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        // A terminal's own width, where standard output is one.
        // One that does not know its size, or says that it has next to none, is no measure.
        table.set_width(table.width().filter(|width| *width >= NARROWEST).unwrap_or(WIDTH));
        if color {
            table.enforce_styling();
        }
        let title = |title: &&str| {
            let cell = Cell::new(title.trim_start_matches('>'));
            if color { cell.add_attribute(Attribute::Bold) } else { cell }
        };
        table.set_header(self.titles.iter().map(title));
        for (index, row) in self.rows.into_iter().enumerate() {
            let striking = color && self.striking.contains(&index);
            table.add_row(row.into_iter().map(|text| {
                // A control character from outside (a reason, a topic cannot, a group can) must not steer a terminal.
                let text: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
                let cell = Cell::new(text);
                if striking { cell.fg(comfy_table::Color::Yellow) } else { cell }
            }));
        }
        for (column, title) in table.column_iter_mut().zip(self.titles) {
            column.set_padding((0, 2));
            if title.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
                // A number that is broken over two lines is read wrongly.
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        table.trim_fmt()
    }
}

/// Whether `error` says that the reader of our output has gone.
pub fn is_broken_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_quotes_only_what_must_be() {
        assert_eq!(csv_field("a b"), "a b");
        assert_eq!(csv_field("a,b"), "\"a,b\"");
        assert_eq!(csv_field("say \"x\""), "\"say \"\"x\"\"\"");
    }

    #[test]
    fn a_table_fits_100_columns_and_breaks_no_number() {
        let mut rows = Rows::new(&["group", ">offset", "topics"]);
        rows.push(["g".repeat(90), "9223372036854775807".to_owned(), "t".repeat(90)]);
        let text = rows.render(false);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("9223372036854775807"), "{text}");
    }
}
