//! The forms in which a batch's records are handed to a command or to standard output.

use std::io::{self, Write};

use clap::ValueEnum;

use crate::kafka::Record;
use crate::wire;

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecordFormat {
    /// One JSON object a line: topic, partition, offset, timestamp, key, value, headers
    Json,
    /// The values, each followed by a line break
    Raw,
    /// The values, each preceded by its length in 4 bytes, big-endian; a record without a value is ff ff ff ff
    LengthPrefixed,
}

impl RecordFormat {
    /// Writes one record.
    pub fn write(self, record: &Record<'_>, out: &mut impl Write) -> io::Result<()> {
        match self {
            RecordFormat::Json => {
                serde_json::to_writer(&mut *out, &as_json(record)).map_err(io::Error::from)?;
                out.write_all(b"\n")
            }
            RecordFormat::Raw => write_raw(record.payload(), out),
            RecordFormat::LengthPrefixed => write_length_prefixed(record.payload(), out),
        }
    }
}

fn as_json<'a>(record: &Record<'a>) -> wire::Record<'a> {
    wire::Record {
        topic: record.topic().as_str(),
        partition: record.partition(),
        offset: record.offset(),
        timestamp: record.timestamp(),
        key: record.key(),
        value: record.payload(),
        headers: record.headers(),
    }
}

fn write_raw(value: Option<&[u8]>, out: &mut impl Write) -> io::Result<()> {
    out.write_all(value.unwrap_or_default())?;
    out.write_all(b"\n")
}

fn write_length_prefixed(value: Option<&[u8]>, out: &mut impl Write) -> io::Result<()> {
    let Some(value) = value else { return out.write_all(&(-1_i32).to_be_bytes()) };
    // Kafka's own sizes are i32.
    let length = i32::try_from(value.len()).map_err(|_| io::Error::other("a value of more than 2 GiB"))?;
    out.write_all(&length.to_be_bytes())?;
    out.write_all(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_apart() {
        let mut bytes = Vec::new();
        write_length_prefixed(Some(b"a\n"), &mut bytes).expect("memory");
        write_length_prefixed(None, &mut bytes).expect("memory");
        write_length_prefixed(Some(b""), &mut bytes).expect("memory");
        assert_eq!(bytes, b"\0\0\0\x02a\n\xff\xff\xff\xff\0\0\0\0");
        bytes.clear();
        write_raw(Some(b"a"), &mut bytes).expect("memory");
        write_raw(None, &mut bytes).expect("memory");
        assert_eq!(bytes, b"a\n\n");
    }
}
