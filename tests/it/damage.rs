//! A full disk, lost files, changed bytes: refused or told, never a shorter journal.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tidelog::journal::{CommitError, Journal, OpenError};

use crate::journal::{entries, nth, options, start, started};

/// A journal that was left without a close after `count` commits, some of them sealed.
fn left(dir: &Path, count: i64) {
    let journal = started(dir, options());
    for n in 0..count {
        journal.commit(nth(n, 50)).expect("a commit");
    }
}

/// The segments of the log, oldest first.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir.join("wal")).expect("the log").map(|file| file.expect("a file").path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "wal")).collect();
    files.sort();
    files
}

fn only_segment(dir: &Path) -> PathBuf {
    let mut segments = segments(dir);
    assert_eq!(segments.len(), 1);
    segments.remove(0)
}

/// The file and the text of the damage that the journal is refused for.
fn damage(dir: &Path) -> (PathBuf, String) {
    match Journal::open(dir, options()) {
        Err(OpenError::Damaged { file, why }) => (file, why),
        Err(error) => panic!("another error: {error}"),
        Ok(journal) => panic!("opened with {} entries", entries(&journal)),
    }
}

#[test]
fn damage_of_the_log_is_refused_with_the_file_the_entries_and_what_helps() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    left(dir.path(), 20);
    let segment = only_segment(dir.path());
    let whole: Vec<u8> = fs::read(&segment).expect("a read");
    // The frames begin at 8192.
    let middle = (8192 + whole.iter().rposition(|byte| *byte != 0).expect("frames")) / 2;

    let mut flipped = whole.clone();
    flipped[middle] ^= 1;
    let mut zeroed = whole.clone();
    zeroed[middle..].fill(0);
    let mut emptied = whole.clone();
    emptied.fill(0);
    for bytes in [&flipped[..], &zeroed, &emptied, &whole[..middle], &[]] {
        fs::write(&segment, bytes).expect("a write");
        let (file, why) = damage(dir.path());
        assert_eq!(file, segment);
        assert!(why.contains("seqs ") && why.contains("can't be read; put the directory back"), "{why}");
        assert_eq!(damage(dir.path()).1, why, "a refusal changes nothing");
    }
    fs::write(&segment, &whole).expect("a write");
    assert_eq!(entries(&Journal::open(dir.path(), options()).expect("it opens")), 21);
}

#[test]
fn a_torn_last_group_is_cut_and_said() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let journal = started(dir.path(), options());
    journal.commit(nth(0, 3)).expect("a commit");
    let copy = dir.path().join("copy");
    copy_dir(dir.path(), &copy);
    drop(journal);
    let segment = only_segment(&copy);
    let mut bytes = fs::read(&segment).expect("a read");
    let last = bytes.iter().rposition(|byte| *byte != 0).expect("frames");
    bytes[last] ^= 1;
    fs::write(&segment, bytes).expect("a write");
    let journal = Journal::open(&copy, options()).expect("it opens");
    let cut = journal.cut().expect("a cut").clone();
    assert_eq!((&cut.path, cut.seqs.first.as_u64(), entries(&journal)), (&segment, 2, 1));
    assert!(cut.to_string().contains("seqs from 2 on"), "{cut}");
    assert_eq!(journal.commit(nth(0, 3)).expect("a commit").seq.as_u64(), 2);
    drop(journal);
    assert_eq!(Journal::open(&copy, options()).expect("it opens").cut(), None);
}

#[test]
fn a_lost_part_is_refused_never_opened_as_a_new_or_a_shorter_journal() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let whole = root.path().join("whole");
    left(&whole, 200);
    let sealed = Journal::open(&whole, options()).expect("it opens");
    sealed.seal().expect("a seal");
    sealed.commit(nth(200, 1)).expect("a commit");
    drop(sealed);
    let older = root.path().join("older");
    copy_dir(&whole, &older);
    let journal = Journal::open(&whole, options()).expect("it opens");
    for n in 201..400 {
        journal.commit(nth(n, 50)).expect("a commit");
    }
    journal.close().expect("a clean close");

    type Harm = fn(&Path, &Path);
    let harms: [(&str, Harm, &str); 7] = [
        ("the database is gone", |dir, _| fs::remove_dir_all(dir.join("sled")).expect("removed"), "missing"),
        ("its file is gone", |dir, _| fs::remove_file(dir.join("sled/db")).expect("removed"), "sled/db"),
        ("the log is gone", |dir, _| fs::remove_dir_all(dir.join("wal")).expect("removed"), "missing"),
        (
            "its files are gone",
            |dir, _| segments(dir).iter().for_each(|f| fs::remove_file(f).expect("removed")),
            "seqs from 402 on",
        ),
        (
            "the marker was changed",
            |dir, _| fs::write(dir.join("FORMAT"), "tidelog journal\nformat 1\n").expect("written"),
            "FORMAT",
        ),
        (
            "the log is of an older copy",
            |dir, older| {
                fs::remove_dir_all(dir.join("wal")).expect("removed");
                copy_dir(&older.join("wal"), &dir.join("wal"));
            },
            "older copy",
        ),
        (
            "the database is of an older copy",
            |dir, older| {
                fs::remove_dir_all(dir.join("sled")).expect("removed");
                copy_dir(&older.join("sled"), &dir.join("sled"));
            },
            "neither here nor in sled",
        ),
    ];
    for (what, harm, expected) in harms {
        let dir = root.path().join(what);
        copy_dir(&whole, &dir);
        harm(&dir, &older);
        let (file, why) = damage(&dir);
        assert!(format!("{}: {why}", file.display()).contains(expected), "{what}: {}: {why}", file.display());
        assert!(why.contains("put "), "{what}: no help in {why}");
    }
    assert_eq!(entries(&Journal::open(&whole, options()).expect("it opens")), 401);
    assert_eq!(entries(&Journal::open(&older, options()).expect("it opens")), 202);
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true if target == *to => {}
            true if to.starts_with(&path) => {}
            true => copy_dir(&path, &target),
            false => drop(fs::copy(&path, &target).expect("a copy")),
        }
    }
}

#[test]
fn when_the_log_can_not_go_on_commits_fail_and_reads_do_not() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let dir = root.path().join("journal");
    let journal = started(&dir, options());
    fs::rename(dir.join("wal"), root.path().join("away")).expect("renamed");
    let mut acknowledged = 1;
    let error = loop {
        match journal.commit(nth(acknowledged - 1, 50)) {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, CommitError::Unavailable(why) if why.to_string().contains("read-only")), "{error}");
    let again = journal.commit(nth(acknowledged, 50)).expect_err("read-only");
    assert_eq!(again.to_string(), error.to_string(), "the first failure is what everybody is told");
    assert_eq!((entries(&journal) as i64, journal.read_only().is_some()), (acknowledged, true));
    assert!(journal.close().is_err());
    fs::rename(root.path().join("away"), dir.join("wal")).expect("renamed");
    let journal = Journal::open(&dir, options()).expect("it opens");
    assert_eq!(entries(&journal) as i64, acknowledged);
    journal.commit(nth(acknowledged - 1, 50)).expect("a commit");
}

/// A small file system in memory.
struct Disk(PathBuf);

impl Disk {
    fn mounted(at: PathBuf) -> Disk {
        fs::create_dir(&at).expect("a mount point");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=12m", "tidelog"]).arg(&at).status();
        assert!(mounted.is_ok_and(|status| status.success()), "mount: this test wants Linux and root");
        Disk(at)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let status = Command::new("umount").arg(&self.0).status();
        assert!(std::thread::panicking() || status.is_ok_and(|status| status.success()), "umount {:?}", self.0);
    }
}

#[test]
fn a_full_disk_is_an_error_of_the_commit_and_gone_when_there_is_space() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let disk = Disk::mounted(root.path().join("disk"));
    let dir = disk.0.join("journal");
    let journal = Journal::open(&dir, options()).expect("it opens");
    start(&journal);
    let ballast = disk.0.join("ballast");
    // Fails when the disk is full, which is what it is for.
    let filled = fs::write(&ballast, vec![1; 64 << 20]);
    assert!(filled.is_err(), "the disk is larger than thought");
    let mut acknowledged = 1;
    let error = loop {
        match journal.commit(nth(acknowledged - 1, 50)) {
            Ok(_) => acknowledged += 1,
            Err(error) => break error.to_string(),
        }
        assert!(acknowledged < 100_000, "a full disk takes them all");
    };
    assert!(error.contains("space") || error.contains("sealing"), "{error}");
    assert_eq!((entries(&journal) as i64, journal.read_only().is_some()), (acknowledged, true));
    assert!(journal.close().is_err());
    let full = Journal::open(&dir, options()).err().expect("the disk is full").to_string();
    assert!(full.contains("bytes are free"), "{full}");
    fs::remove_file(&ballast).expect("removed");
    let journal = Journal::open(&dir, options()).expect("it opens");
    assert_eq!(entries(&journal) as i64, acknowledged);
    journal.commit(nth(acknowledged - 1, 50)).expect("a commit");
    journal.close().expect("a clean close");
}
