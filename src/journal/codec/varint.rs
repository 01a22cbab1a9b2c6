//! Numbers of varying length: seven bits a byte, lowest first, the high bit says that another byte follows. Signed ones
//! are zigzagged, so that small negative numbers are short too.

use super::CodecError;

/// Appends `number`: 1 to 10 bytes.
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed `number`: 0, -1, 1, -2 become 0, 1, 2, 3.
pub fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// The signed number that [`put_signed`] wrote as `number`.
pub fn signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Reads what [`put`] and [`put_signed`] wrote, from the front, never past the end.
#[derive(Debug, Clone, Default)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A reader of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader(bytes)
    }

    /// What has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Whether all was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next number.
    pub fn take(&mut self) -> Result<u64, CodecError> {
        let mut number = 0u64;
        for (index, &byte) in self.0.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            if index == 9 && bits > 1 {
                return Err(CodecError::Malformed("a number of more than 64 bits"));
            }
            number |= bits << (7 * index);
            if byte < 0x80 {
                self.0 = &self.0[index + 1..];
                return Ok(number);
            }
        }
        Err(CodecError::Malformed("a number has no end"))
    }

    /// The next signed number.
    pub fn take_signed(&mut self) -> Result<i64, CodecError> {
        self.take().map(signed)
    }

    /// The next number, which counts or names things that fit in memory here.
    pub fn take_u32(&mut self) -> Result<u32, CodecError> {
        u32::try_from(self.take()?).map_err(|_| CodecError::Malformed("a number of more than 32 bits"))
    }

    /// The next `length` bytes.
    pub fn take_bytes(&mut self, length: u64) -> Result<&'a [u8], CodecError> {
        let split = usize::try_from(length).ok().and_then(|length| self.0.split_at_checked(length));
        let (bytes, rest) = split.ok_or(CodecError::Malformed("shorter than its length says"))?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Nothing may be left.
    pub fn finish(&self) -> Result<(), CodecError> {
        if self.is_empty() { Ok(()) } else { Err(CodecError::Malformed("longer than its content")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let mut out = Vec::new();
        for number in [0, 127, 128, 300, u64::MAX] {
            put(&mut out, number);
        }
        for number in [0, -1, 1, i64::MIN] {
            put_signed(&mut out, number);
        }
        let max = [0xff; 9];
        let mut golden = vec![0, 127, 0x80, 1, 0xac, 2];
        golden.extend(max);
        golden.extend([1, 0, 1, 2]);
        golden.extend(max);
        golden.push(1);
        assert_eq!(out, golden);
        let mut reader = Reader::new(&out);
        for number in [0, 127, 128, 300, u64::MAX] {
            assert_eq!(reader.take(), Ok(number));
        }
        for number in [0, -1, 1, i64::MIN] {
            assert_eq!(reader.take_signed(), Ok(number));
        }
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn ends_and_lengths_are_not_trusted() {
        assert!(Reader::new(&[0x80]).take().is_err());
        assert!(Reader::new(&[0xff; 10]).take().is_err());
        assert!(Reader::new(&[1, 2]).take_bytes(1 << 62).is_err());
        assert!(Reader::new(&[1]).finish().is_err());
    }
}
