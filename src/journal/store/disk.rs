//! sled, tamed: opened on a thread of its own, panics caught, written in chunks that are each made durable, records cut
//! into values that never become files of their own (DESIGN section 9 tells what was measured).

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::error::StoreError;
use super::keys;
use crate::journal::codec::varint::{self, Reader};
use crate::journal::codec::{CodecError, value};
use crate::journal::{CrashHook, crash_point};

/// The largest value: larger ones may become files that sled never syncs.
pub const MAX_VALUE: usize = 4096;
/// The largest record that fits one value: the count of pieces takes a byte.
pub const MAX_SINGLE: usize = MAX_VALUE - 1;
/// One `apply_batch`: small enough that readers don't feel it.
const CHUNK: usize = 64 << 10;

/// How long sled's own lock may be held by a handle that was dropped; no other process holds it, as the journal's lock says.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// Between two tries.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// Key (of the first piece) and bytes of a record.
pub type Record = (Vec<u8>, Vec<u8>);

/// Keys and what becomes of them; none is a deletion.
pub type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The open database.
pub struct Disk {
    dir: PathBuf,
    db: sled::Db,
    file: File,
    dir_file: File,
    crash_at: Option<CrashHook>,
}

impl Disk {
    /// Opens or creates the database in `dir`.
    pub fn open(dir: &Path, cache_bytes: u64, crash_at: Option<CrashHook>) -> Result<Disk, StoreError> {
        let io_error = |path: &Path, source| StoreError::Io { path: path.to_owned(), source };
        fs::create_dir_all(dir).map_err(|e| io_error(dir, e))?;
        // A process killed while it opened leaves half a snapshot, which would fail every later open.
        for file in fs::read_dir(dir).map_err(|e| io_error(dir, e))? {
            let path = file.map_err(|e| io_error(dir, e))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("snap.") && name.ends_with(".generating") {
                crash_point(crash_at.as_ref(), "open: torn snapshot");
                fs::remove_file(&path).map_err(|e| io_error(&path, e))?;
            }
        }
        let path = dir.join("db");
        crash_point(crash_at.as_ref(), "open: sled");
        let begun = Instant::now();
        let db = loop {
            match open_sled(dir, cache_bytes) {
                // A handle that was just dropped still holds the lock until its threads have ended.
                Err(StoreError::InUse { .. }) if begun.elapsed() < LOCK_WAIT => thread::sleep(LOCK_POLL),
                opened => break opened?,
            }
        };
        let file = File::open(&path).map_err(|e| io_error(&path, e))?;
        let dir_file = File::open(dir).map_err(|e| io_error(dir, e))?;
        let disk = Disk { dir: dir.to_owned(), db, file, dir_file, crash_at };
        crash_point(disk.crash_at.as_ref(), "open: sled opened");
        disk.sync()?;
        Ok(disk)
    }

    /// The file that holds the data, for messages.
    pub fn path(&self) -> PathBuf {
        self.dir.join("db")
    }

    /// An error about the record at `key`.
    pub fn codec_error(&self, key: &[u8], error: CodecError) -> StoreError {
        StoreError::codec(self.path(), keys::describe(key), error)
    }

    /// An error about something that is missing or contradicts the rest.
    pub fn damaged(&self, what: impl Into<String>) -> StoreError {
        StoreError::Damaged { path: self.path(), what: what.into(), seqs: None }
    }

    fn call<T>(&self, call: impl FnOnce(&sled::Db) -> Result<T, sled::Error>) -> Result<T, StoreError> {
        match catch_unwind(AssertUnwindSafe(|| call(&self.db))) {
            Ok(result) => result.map_err(|e| from_sled(&self.path(), e)),
            Err(panic) => Err(self.damaged(panic_text(&*panic))),
        }
    }

    /// The record whose first piece is at `key`; none if there is none.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.call(|db| db.get(key))? {
            Some(first) => self.join(key, &first).map(Some),
            None => Ok(None),
        }
    }

    /// The record at `key`, as a value.
    pub fn value<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        let Some(bytes) = self.get(key)? else {
            return Ok(None);
        };
        value::decode(&bytes).map(Some).map_err(|e| self.codec_error(key, e))
    }

    /// Key and bytes of the last record below `end` that shares its first `prefix` bytes.
    pub fn record_before(&self, end: &[u8], prefix: usize) -> Result<Option<Record>, StoreError> {
        let found = self.call(|db| db.get_lt(end))?;
        let Some((key, value)) = found.filter(|(key, _)| key.get(..prefix) == end.get(..prefix)) else {
            return Ok(None);
        };
        if keys::piece_of(&key) == Some(0) {
            let bytes = self.join(&key, &value)?;
            return Ok(Some((key.to_vec(), bytes)));
        }
        let key = keys::piece(&key, 0);
        match self.get(&key)? {
            Some(bytes) => Ok(Some((key, bytes))),
            None => Err(self.damaged(format!("{}: its first piece is missing", keys::describe(&key)))),
        }
    }

    /// The key of the last record below `end` that shares its first `prefix` bytes.
    #[cfg(test)]
    pub fn key_before(&self, end: &[u8], prefix: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.call(|db| db.get_lt(end))?;
        Ok(found.filter(|(key, _)| key.get(..prefix) == end.get(..prefix)).map(|(key, _)| keys::piece(&key, 0)))
    }

    /// The key of the first record at or above `start` that shares its first `prefix` bytes.
    pub fn key_from(&self, start: &[u8], prefix: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.call(|db| db.range(start..).next().transpose())?;
        Ok(found.filter(|(key, _)| key.get(..prefix) == start.get(..prefix)).map(|(key, _)| keys::piece(&key, 0)))
    }

    /// Visits all keys in `range`, ascending.
    pub fn each_key(
        &self,
        range: Range<Vec<u8>>,
        visit: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut keys = self.db.range(range).keys();
        while let Some(key) = self.call(|_| keys.next().transpose())? {
            visit(&key)?;
        }
        Ok(())
    }

    /// Whether it holds nothing at all.
    pub fn is_empty(&self) -> Result<bool, StoreError> {
        Ok(self.call(|db| db.iter().next().transpose())?.is_none())
    }

    fn join(&self, key: &[u8], first: &[u8]) -> Result<Vec<u8>, StoreError> {
        let mut reader = Reader::new(first);
        let count = reader.take().map_err(|e| self.codec_error(key, e))?;
        let mut bytes = reader.rest().to_vec();
        for piece in 1..count {
            let number = keys::Piece::try_from(piece);
            let number = number.map_err(|_| self.codec_error(key, CodecError::Malformed("too many pieces")))?;
            let missing = || self.damaged(format!("{}: piece {piece} of {count} is missing", keys::describe(key)));
            bytes.extend_from_slice(&self.call(|db| db.get(keys::piece(key, number)))?.ok_or_else(missing)?);
        }
        Ok(bytes)
    }

    /// Writes in key order, in chunks; each is durable before the next is begun. `point` is told to the crash hook.
    pub fn write(&self, point: &'static str, writes: Writes) -> Result<(), StoreError> {
        let (mut batch, mut bytes) = (sled::Batch::default(), 0);
        for (key, value) in writes {
            // A removal is work on what was there.
            let size = key.len() + value.as_ref().map_or(MAX_VALUE, Vec::len);
            if bytes > 0 && bytes + size > CHUNK {
                self.write_chunk(point, std::mem::take(&mut batch))?;
                bytes = 0;
            }
            bytes += size;
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        if bytes > 0 {
            self.write_chunk(point, batch)?;
        }
        Ok(())
    }

    fn write_chunk(&self, point: &'static str, batch: sled::Batch) -> Result<(), StoreError> {
        crash_point(self.crash_at.as_ref(), point);
        self.call(|db| db.apply_batch(batch))?;
        self.sync()
    }

    /// sled's flush hands the data to the system; only the fsync makes it durable.
    fn sync(&self) -> Result<(), StoreError> {
        self.call(|db| db.flush())?;
        let io_error = |source| StoreError::Io { path: self.path(), source };
        self.file.sync_data().map_err(io_error)?;
        self.dir_file.sync_all().map_err(io_error)
    }
}

/// Adds the record `bytes` at `key`, cut into values.
///
/// A record of several pieces is never replaced by a shorter one: no caller overwrites one.
pub fn put(writes: &mut Writes, key: &[u8], bytes: &[u8]) {
    let mut first = Vec::with_capacity(MAX_VALUE.min(bytes.len() + 4));
    // The count itself takes one to three bytes.
    for width in 1..=3 {
        first.clear();
        varint::put(&mut first, (bytes.len() + width).div_ceil(MAX_VALUE) as u64);
        if first.len() == width {
            break;
        }
    }
    let (head, mut rest) = bytes.split_at((MAX_VALUE - first.len()).min(bytes.len()));
    first.extend_from_slice(head);
    writes.insert(key.to_vec(), Some(first));
    let mut piece = 1;
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(MAX_VALUE.min(rest.len()));
        writes.insert(keys::piece(key, piece), Some(head.to_vec()));
        (rest, piece) = (tail, piece + 1);
    }
}

fn open_sled(dir: &Path, cache_bytes: u64) -> Result<sled::Db, StoreError> {
    let config =
        sled::Config::new().path(dir).cache_capacity(cache_bytes.clamp(8 << 20, 64 << 20)).flush_every_ms(None);
    let path = dir.join("db");
    // A panic inside sled while it opens damaged files ends this thread only.
    let opener = thread::Builder::new()
        .name("tidelog-open".to_owned())
        .spawn(move || config.open())
        .map_err(|source| StoreError::Io { path: dir.to_owned(), source })?;
    match opener.join() {
        Ok(opened) => opened.map_err(|e| from_sled(&path, e)),
        Err(panic) => Err(StoreError::Damaged { path, what: panic_text(&*panic), seqs: None }),
    }
}

fn from_sled(path: &Path, error: sled::Error) -> StoreError {
    let path = path.to_owned();
    match error {
        sled::Error::Io(source) if source.to_string().contains("could not acquire lock") => StoreError::InUse { path },
        sled::Error::Io(source) if source.kind() == io::ErrorKind::Other => {
            StoreError::Damaged { path, what: source.to_string(), seqs: None }
        }
        sled::Error::Io(source) => StoreError::Io { path, source },
        other => StoreError::Damaged { path, what: other.to_string(), seqs: None },
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("sled panicked: {}", text.unwrap_or("without a message"))
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").field("dir", &self.dir).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_every_size_come_back_and_no_value_is_large() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::open(dir.path(), 0, None).unwrap();
        let sizes = [0, 1, 4094, 4095, 4096, 8190, 8191, 8192, 8193, 600_000];
        let mut writes = Writes::new();
        for (index, size) in sizes.into_iter().enumerate() {
            put(&mut writes, &keys::block(1, index as u64), &vec![index as u8; size]);
        }
        assert!(writes.values().all(|value| value.as_ref().is_some_and(|v| v.len() <= MAX_VALUE)));
        let last_piece = keys::piece(&keys::block(1, 9), 1);
        disk.write("test", writes).unwrap();
        for (index, size) in sizes.into_iter().enumerate() {
            assert_eq!(disk.get(&keys::block(1, index as u64)).unwrap(), Some(vec![index as u8; size]));
        }
        assert_eq!(fs::read_dir(dir.path().join("blobs")).unwrap().count(), 0);
        disk.write("test", [(last_piece, None)].into()).unwrap();
        assert!(matches!(disk.get(&keys::block(1, 9)), Err(StoreError::Damaged { .. })));
    }

    #[test]
    fn a_second_handle_is_told_so_and_a_torn_snapshot_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::open(dir.path(), 0, None).unwrap();
        assert!(matches!(Disk::open(dir.path(), 0, None), Err(StoreError::InUse { .. })));
        drop(disk);
        let torn = dir.path().join("snap.0000000000000001.generating");
        fs::write(&torn, b"half").unwrap();
        Disk::open(dir.path(), 0, None).unwrap();
        assert!(!torn.exists());
    }
}
