//! Columns: numbers and bytes of one kind together, which compress better than records do. The byte length of each, then
//! their bytes, all under zstd where that is shorter. Some may be left empty where they would hold zeros only.

use super::varint::{self, Reader};
use super::{CodecError, compress};

/// Appends the columns; those of `elided` are left empty where they hold zeros only. More than `limit` bytes are refused.
pub fn put<const N: usize>(
    out: &mut Vec<u8>,
    mut columns: [Vec<u8>; N],
    elided: &[usize],
    limit: u64,
) -> Result<(), CodecError> {
    let mut plain = Vec::with_capacity(2 * N + columns.iter().map(Vec::len).sum::<usize>());
    for (index, column) in columns.iter_mut().enumerate() {
        if elided.contains(&index) && column.iter().all(|byte| *byte == 0) {
            column.clear();
        }
        varint::put(&mut plain, column.len() as u64);
    }
    for column in &columns {
        plain.extend_from_slice(column);
    }
    if plain.len() as u64 > limit {
        return Err(CodecError::TooLarge { bytes: plain.len() as u64, limit });
    }
    compress::put(out, &plain);
    Ok(())
}

/// What is left of columns that are being read.
#[derive(Debug)]
pub struct Columns<const N: usize> {
    plain: Vec<u8>,
    columns: [Column; N],
}

/// What is left of a column; `zeros` if it was left empty, as all of it is zero.
#[derive(Debug, Clone, Copy, Default)]
struct Column {
    at: usize,
    end: usize,
    zeros: bool,
}

impl<const N: usize> Columns<N> {
    /// What [`put`] wrote; all of `reader` belongs to it.
    pub fn take(reader: &mut Reader<'_>, elided: &[usize], limit: u64) -> Result<Columns<N>, CodecError> {
        let plain = compress::take(reader, limit)?;
        let mut lengths = Reader::new(&plain);
        let mut columns = [Column::default(); N];
        for column in &mut columns {
            column.end = usize::try_from(lengths.take()?).map_err(|_| CodecError::Malformed("a column too long"))?;
        }
        let mut at = plain.len() - lengths.rest().len();
        for (index, column) in columns.iter_mut().enumerate() {
            let end = at.checked_add(column.end).filter(|end| *end <= plain.len());
            let end = end.ok_or(CodecError::Malformed("a column longer than the block"))?;
            *column = Column { at, end, zeros: at == end && elided.contains(&index) };
            at = end;
        }
        if at != plain.len() {
            return Err(CodecError::Malformed("longer than its content"));
        }
        Ok(Columns { plain, columns })
    }

    /// What `read` takes from the front of a column.
    pub fn read<T>(
        &mut self,
        column: usize,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, CodecError>,
    ) -> Result<T, CodecError> {
        let column = &mut self.columns[column];
        if column.zeros {
            return read(&mut Reader::new(&[0]));
        }
        let mut reader = Reader::new(&self.plain[column.at..column.end]);
        let value = read(&mut reader)?;
        column.at = column.end - reader.rest().len();
        Ok(value)
    }

    /// The next number of a column.
    #[inline]
    pub fn number(&mut self, column: usize) -> Result<u64, CodecError> {
        let place = &mut self.columns[column];
        // Most numbers have one byte.
        match self.plain[place.at..place.end].first() {
            Some(&byte) if byte < 0x80 => {
                place.at += 1;
                Ok(u64::from(byte))
            }
            _ if place.zeros => Ok(0),
            _ => self.read(column, |reader| reader.take()),
        }
    }

    /// The next signed number of a column.
    #[inline]
    pub fn signed(&mut self, column: usize) -> Result<i64, CodecError> {
        self.number(column).map(varint::signed)
    }

    /// The next number of a column, which stays there.
    pub fn peek(&self, column: usize) -> Result<u64, CodecError> {
        match self.columns[column] {
            Column { zeros: true, .. } => Ok(0),
            Column { at, end, .. } => Reader::new(&self.plain[at..end]).take(),
        }
    }

    /// How many bytes are left of a column; of one that holds zeros only, as many as one likes.
    pub fn left(&self, column: usize) -> usize {
        match self.columns[column] {
            Column { zeros: true, .. } => usize::MAX,
            Column { at, end, .. } => end - at,
        }
    }

    /// Whether nothing is left of a column.
    pub fn is_empty(&self, column: usize) -> bool {
        self.columns[column].at == self.columns[column].end
    }

    /// At the end every column is used up.
    pub fn finish(&self) -> Result<(), CodecError> {
        match self.columns.iter().all(|column| column.at == column.end) {
            true => Ok(()),
            false => Err(CodecError::Malformed("longer than its content")),
        }
    }
}
