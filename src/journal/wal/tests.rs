//! A log as a list of texts: what a test writes, what it does to the files, and what opens afterwards.

mod crash;
mod damage;
mod rotation;

use std::path::{Path, PathBuf};

use super::segment::{IN_USE, path_of};
use super::{Recovered, Wal, WalError, WalOptions};
use crate::offset::Seq;

pub const UUID: [u8; 16] = *b"a journal's uuid";

pub fn seq(n: u64) -> Seq {
    Seq::try_from(n).unwrap()
}

pub fn options() -> WalOptions {
    WalOptions { segment_bytes: 64 << 10, crash_at: None }
}

/// The text of entry `n`, `len` bytes long: another one for each number and place in it.
pub fn text(n: u64, len: usize) -> Vec<u8> {
    (0..len).map(|at| (n as usize * 31 + at * 7) as u8).collect()
}

/// Commits the next entries as one group of records of one entry each.
pub fn commit(wal: &mut Wal, lens: &[usize]) -> Result<(), WalError> {
    write(wal, lens)?;
    wal.sync()
}

pub fn write(wal: &mut Wal, lens: &[usize]) -> Result<(), WalError> {
    let first = wal.last_seq().as_u64() + 1;
    for (n, len) in (first..).zip(lens) {
        let payload = text(n, *len);
        if !wal.stage(1, &payload)? {
            wal.write()?;
            wal.sync()?;
            wal.rotate(payload.len())?;
            assert!(wal.stage(1, &payload)?, "a new segment has room for what it was made for");
        }
    }
    wal.write()
}

/// The lengths of the entries in the log; each is checked to be the text of its number.
pub fn open(dir: &Path, sealed: u64) -> Result<(Wal, Recovered, Vec<usize>), WalError> {
    open_with(dir, options(), sealed)
}

pub fn open_with(dir: &Path, options: WalOptions, sealed: u64) -> Result<(Wal, Recovered, Vec<usize>), WalError> {
    let mut lens = Vec::new();
    let (wal, recovered) = Wal::open(dir, options, UUID, seq(sealed), &mut |shown| {
        assert_eq!(shown.count, 1);
        assert_eq!(shown.payload, text(shown.first_seq.as_u64(), shown.payload.len()), "entry {}", shown.first_seq);
        lens.push(shown.payload.len());
        Ok(())
    })?;
    Ok((wal, recovered, lens))
}

/// Where the first segment is.
pub fn first_file(dir: &Path) -> PathBuf {
    path_of(dir, 1, IN_USE)
}

/// Opens a copy of the log in which the first segment holds `bytes`.
pub fn open_bytes(bytes: &[u8]) -> Result<(Wal, Recovered, Vec<usize>, tempfile::TempDir), WalError> {
    let copy = tempfile::tempdir().unwrap();
    std::fs::write(first_file(copy.path()), bytes).unwrap();
    let (wal, recovered, lens) = open(copy.path(), 0)?;
    Ok((wal, recovered, lens, copy))
}

/// Copies a log, as another process would find it if this one were killed now.
pub fn copy(dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(dir).unwrap() {
        let file = file.unwrap();
        // The helper thread may rename or remove it meanwhile; then a killed process would leave it so.
        let _ = std::fs::copy(file.path(), copy.path().join(file.file_name()));
    }
    copy
}

#[test]
fn what_was_committed_is_shown_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = Wal::create(dir.path(), options(), UUID).unwrap();
    commit(&mut wal, &[10, 0, 3]).unwrap();
    commit(&mut wal, &[5000]).unwrap();
    assert_eq!((wal.last_seq(), wal.durable()), (seq(4), seq(4)));
    wal.close().unwrap();
    let (mut wal, recovered, lens) = open(dir.path(), 0).unwrap();
    assert_eq!((recovered, lens), (Recovered { last_seq: seq(4), cut: None }, vec![10, 0, 3, 5000]));
    commit(&mut wal, &[7]).unwrap();
    drop(wal);
    let (_, recovered, lens) = open(dir.path(), 0).unwrap();
    assert_eq!((recovered, lens), (Recovered { last_seq: seq(5), cut: None }, vec![10, 0, 3, 5000, 7]));
}

#[test]
fn a_record_of_several_entries_is_one_frame() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = Wal::create(dir.path(), options(), UUID).unwrap();
    assert!(wal.stage(3, b"three").unwrap() && wal.stage(2, b"two").unwrap());
    wal.write().unwrap();
    wal.sync().unwrap();
    assert_eq!(wal.last_seq(), seq(5));
    drop(wal);
    let mut shown = Vec::new();
    Wal::open(dir.path(), options(), UUID, seq(0), &mut |frame| {
        shown.push((frame.first_seq, frame.count, frame.payload.to_vec()));
        Ok(())
    })
    .unwrap();
    assert_eq!(shown, [(seq(1), 3, b"three".to_vec()), (seq(4), 2, b"two".to_vec())]);
}

#[test]
fn a_record_beyond_the_limits_is_refused_and_the_log_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = Wal::create(dir.path(), options(), UUID).unwrap();
    assert!(matches!(wal.stage(70_000, b""), Err(WalError::TooLarge { entries: 70_000, bytes: 0 })));
    commit(&mut wal, &[1]).unwrap();
}

#[test]
fn the_last_group_is_called_durable_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = Wal::create(dir.path(), options(), UUID).unwrap();
    let bytes = || std::fs::read(first_file(dir.path())).unwrap();
    let new = bytes();
    wal.note_idle().unwrap();
    assert!(bytes() == new, "nothing was committed");
    write(&mut wal, &[10]).unwrap();
    let unsynced = bytes();
    wal.note_idle().unwrap();
    assert!(bytes() == unsynced, "what is not on the device is not called so");
    wal.sync().unwrap();
    wal.note_idle().unwrap();
    let noted = bytes();
    assert!(noted != unsynced);
    wal.note_idle().unwrap();
    assert!(bytes() == noted, "once is enough");
}
