//! The process is killed at each named place: a copy of the directory made there is what it would leave.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::*;

/// Entries acknowledged before a place was reached, written when it was, and the directory then.
type Left = Arc<Mutex<Vec<(&'static str, u64, tempfile::TempDir)>>>;

/// Options that copy `dir` at each named place, with what `acknowledged` says then.
fn copying(dir: &Path, left: &Left, acknowledged: &Arc<AtomicU64>) -> WalOptions {
    let (dir, left, acknowledged) = (dir.to_owned(), left.clone(), acknowledged.clone());
    let crash_at = move |name: &'static str| {
        // Read before the copy is made: meanwhile more may be acknowledged, if this is the helper thread.
        let acknowledged = acknowledged.load(Ordering::SeqCst);
        left.lock().unwrap().push((name, acknowledged, copy(&dir)));
    };
    WalOptions { crash_at: Some(Arc::new(crash_at)), ..options() }
}

/// Checks each copy, and that it can be gone on with.
fn check(left: &Left, sealed: u64) -> BTreeSet<&'static str> {
    let mut names = BTreeSet::new();
    for (name, acknowledged, dir) in left.lock().unwrap().drain(..) {
        names.insert(name);
        let (mut wal, recovered, lens) = open(dir.path(), sealed).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(recovered.last_seq >= seq(acknowledged), "{name}: {acknowledged} were acknowledged, {recovered:?}");
        commit(&mut wal, &[20_000, 20_000, 20_000, 20_000]).unwrap();
        drop(wal);
        let (_, recovered, again) = open(dir.path(), sealed).unwrap_or_else(|error| panic!("{name} again: {error}"));
        assert_eq!((recovered.cut, again.len()), (None, lens.len() + 4), "{name}");
    }
    names
}

#[test]
fn a_kill_at_any_place_loses_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let (left, acknowledged) = (Left::default(), Arc::new(AtomicU64::new(0)));
    drop(Wal::create(dir.path(), options(), UUID).unwrap());
    let (mut wal, ..) = open_with(dir.path(), copying(dir.path(), &left, &acknowledged), 0).unwrap();
    for round in 0..9 {
        commit(&mut wal, &[9_000, 3, 0]).unwrap();
        acknowledged.store(wal.durable().as_u64(), Ordering::SeqCst);
        if round % 3 == 0 {
            wal.note_idle().unwrap();
        }
    }
    let sealed = wal.closed()[0].last;
    drop(wal);
    let mut names = check(&left, 0);

    // Removal, and what recovery itself does: on a log with a torn tail.
    let (mut wal, ..) = open_with(dir.path(), copying(dir.path(), &left, &acknowledged), sealed.as_u64()).unwrap();
    write(&mut wal, &[5, 6_000]).unwrap();
    let torn = wal.position - 1;
    let path = wal.current().path().to_owned();
    drop(wal);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[torn as usize] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let (mut wal, recovered, _) =
        open_with(dir.path(), copying(dir.path(), &left, &acknowledged), sealed.as_u64()).unwrap();
    assert!(recovered.cut.is_some());
    wal.remove_sealed(sealed);
    drop(wal);
    names.extend(check(&left, sealed.as_u64()));

    let expected = "wal-idle wal-idle-written wal-prepare wal-prepare-written wal-prepared wal-recover wal-recover-cut \
                    wal-recover-kept wal-remove wal-removed wal-rotate wal-rotate-begun wal-rotate-closed wal-rotated \
                    wal-sync wal-synced wal-write wal-write-half wal-write-unmarked wal-written";
    assert_eq!(names.into_iter().collect::<Vec<_>>(), expected.split_whitespace().collect::<Vec<_>>());
}
