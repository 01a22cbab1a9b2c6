//! Results that a consumer keeps in the journal itself: keyed puts, written with the ranges of a batch in the same atomic
//! write (DESIGN section 6).
//!
//! A put says what stands under its key from then on; the one of the newest entry counts. So a batch that is read again
//! after a rollback overwrites what it wrote before, and each result is there exactly once. That holds for results that
//! follow from the records of the batch alone: a counter, a sum or a list that is read, changed and put back would count
//! a replayed record twice.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::offset::Invalid;

/// Bytes of a key, like those of a name: it stands in the database's own keys.
pub const MAX_KEY_BYTES: usize = 255;

/// Bytes of a value: larger things belong into a store of their own, with their address as the result.
pub const MAX_VALUE_BYTES: usize = 1 << 20;

/// Puts of one batch, as many as a batch may have ranges.
pub const MAX_PUTS: usize = 100_000;

/// Bytes of the keys and values of one batch: all other commits wait for its write.
pub const MAX_BYTES: usize = 8 << 20;

/// Puts and removals of one batch, each key once, within the limits above.
///
/// ```
/// use tidelog::results::Puts;
///
/// let mut puts = Puts::new();
/// puts.put("order-17", "shipped")?;
/// puts.remove("order-3")?;
/// assert!(puts.put("order-17", "lost").is_err());
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Puts {
    /// None removes.
    puts: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
}

impl Puts {
    /// None yet.
    pub fn new() -> Self {
        Puts::default()
    }

    /// Adds: `value` stands under `key` from this batch on.
    ///
    /// # Errors
    ///
    /// A key of no or more than [`MAX_KEY_BYTES`] bytes, or one that is here already; a value of more than
    /// [`MAX_VALUE_BYTES`]; more than [`MAX_PUTS`], or than [`MAX_BYTES`] altogether. What was added before stays.
    pub fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Result<(), Invalid> {
        self.add(key.into(), Some(value.into()))
    }

    /// Adds: nothing stands under `key` from this batch on. It need not be there before.
    ///
    /// # Errors
    ///
    /// As [`Puts::put`].
    pub fn remove(&mut self, key: impl Into<Vec<u8>>) -> Result<(), Invalid> {
        self.add(key.into(), None)
    }

    fn add(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Result<(), Invalid> {
        let length = value.as_ref().map_or(0, Vec::len);
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            let why = format!("{} bytes; it has 1 to {MAX_KEY_BYTES}", key.len());
            return Err(Invalid::new("result key", key.escape_ascii(), why));
        }
        let invalid = |why: String| Invalid::new("result", key.escape_ascii(), why);
        if length > MAX_VALUE_BYTES {
            let why = format!("a value of {length} bytes; it has at most {MAX_VALUE_BYTES}: keep it elsewhere");
            return Err(invalid(why));
        }
        if self.puts.len() == MAX_PUTS {
            return Err(invalid(format!("a batch has at most {MAX_PUTS} results; cut smaller batches")));
        }
        let bytes = self.bytes + key.len() + length;
        if bytes > MAX_BYTES {
            let why = format!("{bytes} bytes with it; a batch has at most {MAX_BYTES}: cut smaller batches");
            return Err(invalid(why));
        }
        match self.puts.entry(key) {
            Entry::Vacant(place) => {
                place.insert(value);
                self.bytes = bytes;
                Ok(())
            }
            Entry::Occupied(known) => {
                let why = "twice in one batch; put the last of them only";
                Err(Invalid::new("result key", known.key().escape_ascii(), why))
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.puts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.puts.is_empty()
    }

    /// Keys in their order, each with its value; none where it is removed.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.puts.iter().map(|(key, value)| (key.as_slice(), value.as_deref()))
    }
}

/// Results in the order of their keys.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # let started = tidelog::control::start(&control, request)?;
/// # let time = tidelog::offset::Timestamp::from_millis(1_796_032_800_000);
/// # let range = tidelog::offset::OffsetRange::new("orders".parse()?, 0, "500".parse()?, "542".parse()?)?;
///
/// use tidelog::commit::Commit;
/// use tidelog::results::Puts;
///
/// let mut puts = Puts::new();
/// puts.put("order-17", "shipped")?;
/// puts.put("order-3", "paid")?;
/// control.journal.commit(Commit::new(loader.clone(), started.epoch, time, vec![range])?.with_puts(puts))?;
/// let page = control.journal.results(&loader, b"", None, 1)?;
/// assert_eq!(page.results, [(b"order-17".to_vec(), b"shipped".to_vec())]);
/// assert_eq!(page.next, Some(b"order-3".to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Keys and values.
    pub results: Vec<(Vec<u8>, Vec<u8>)>,
    /// The key to go on from; none if there are no more.
    pub next: Option<Vec<u8>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(put: Result<(), Invalid>) -> String {
        put.unwrap_err().to_string()
    }

    #[test]
    fn each_limit_is_told_and_leaves_what_was_there() {
        let mut puts = Puts::new();
        puts.put([7; MAX_KEY_BYTES], vec![1; MAX_VALUE_BYTES]).unwrap();
        puts.remove("k").unwrap();
        let before = puts.clone();
        assert_eq!(refused(puts.put("", "v")), r#"result key "": 0 bytes; it has 1 to 255"#);
        assert!(refused(puts.put([7; MAX_KEY_BYTES + 1], "v")).ends_with("256 bytes; it has 1 to 255"));
        let large = refused(puts.put("a", vec![1; MAX_VALUE_BYTES + 1]));
        assert_eq!(large, r#"result "a": a value of 1048577 bytes; it has at most 1048576: keep it elsewhere"#);
        let twice = r#"result key "k": twice in one batch; put the last of them only"#;
        assert_eq!([refused(puts.put("k", "v")), refused(puts.remove("k"))], [twice, twice]);
        assert_eq!(puts, before);
    }

    #[test]
    fn a_batch_is_bounded_in_number_and_in_bytes() {
        let mut puts = Puts::new();
        for number in 0..MAX_PUTS as u32 {
            puts.put(number.to_be_bytes(), "").unwrap();
        }
        assert!(refused(puts.put("one more", "")).ends_with("a batch has at most 100000 results; cut smaller batches"));
        assert_eq!(puts.len(), MAX_PUTS);

        let mut puts = Puts::new();
        for number in 0..8u8 {
            puts.put([number], vec![0; MAX_VALUE_BYTES - 1]).unwrap();
        }
        let full = refused(puts.put("x", ""));
        assert_eq!(full, r#"result "x": 8388609 bytes with it; a batch has at most 8388608: cut smaller batches"#);
    }
}
