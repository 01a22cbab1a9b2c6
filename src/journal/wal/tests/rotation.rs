//! Segments: how they follow one another, go, and are missed.

use super::*;
use crate::journal::wal::Seqs;
use crate::journal::wal::segment::{PREPARED, numbers};

/// A log with three closed segments and a current one, and the first seq of each; entries of 10,000 bytes.
fn four_segments() -> (tempfile::TempDir, Vec<u64>) {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = Wal::create(dir.path(), options(), UUID).unwrap();
    while wal.closed().len() < 3 {
        commit(&mut wal, &[10_000]).unwrap();
    }
    let mut firsts: Vec<u64> = wal.closed().iter().map(|closed| closed.segment.first_seq().as_u64()).collect();
    firsts.push(wal.current().first_seq().as_u64());
    assert_eq!(firsts, [1, 6, 11, 16]);
    wal.close().unwrap();
    (dir, firsts)
}

fn check_gap(dir: &Path, sealed: u64, expected: Seqs) {
    match open(dir, sealed).map(|(_, recovered, _)| recovered) {
        Err(WalError::Gap { missing, .. }) => assert_eq!(missing, expected),
        other => panic!("no gap: {other:?}"),
    }
}

#[test]
fn entries_go_on_from_segment_to_segment() {
    let (dir, _) = four_segments();
    let (wal, recovered, lens) = open(dir.path(), 0).unwrap();
    assert_eq!((recovered.last_seq, lens), (seq(16), vec![10_000; 16]));
    let closed: Vec<_> = wal.closed().iter().map(|c| (c.segment.first_seq().as_u64(), c.last.as_u64())).collect();
    assert_eq!(closed, [(1, 5), (6, 10), (11, 15)]);
    let mut seen = Vec::new();
    let mut visit = |shown: super::super::Visited<'_>| {
        seen.push(shown.first_seq.as_u64());
        Ok(())
    };
    wal.closed()[1].segment.visit(wal.closed()[1].last, &mut visit).unwrap();
    assert_eq!(seen, [6, 7, 8, 9, 10]);
}

#[test]
fn sealed_segments_are_removed_and_not_missed() {
    let (dir, _) = four_segments();
    let (mut wal, ..) = open(dir.path(), 0).unwrap();
    wal.remove_sealed(seq(9));
    assert_eq!(wal.closed().len(), 2);
    drop(wal);
    assert_eq!(numbers(dir.path(), IN_USE).unwrap(), [2, 3, 4]);
    // Sealed, but a crash came before they were removed: unread, and kept until their seals are finished.
    let (mut wal, _, lens) = open(dir.path(), 15).unwrap();
    assert_eq!(
        (wal.closed().iter().map(|closed| closed.last).collect::<Vec<_>>(), lens.len()),
        (vec![seq(10), seq(15)], 1)
    );
    assert_eq!((wal.closed()[0].before(), wal.closed()[1].before()), (seq(5), seq(10)));
    wal.remove_sealed(seq(14));
    assert_eq!(wal.closed().len(), 1);
    drop(wal);
    assert_eq!(numbers(dir.path(), IN_USE).unwrap(), [3, 4]);
    // One that can't be opened is removed: the history does not need it.
    std::fs::write(path_of(dir.path(), 3, IN_USE), b"nothing of use").unwrap();
    let (wal, recovered, lens) = open(dir.path(), 15).unwrap();
    assert_eq!((wal.closed().len(), recovered.last_seq, lens.len()), (0, seq(16), 1));
    drop(wal);
    assert_eq!(numbers(dir.path(), IN_USE).unwrap(), [4]);
}

#[test]
fn a_missing_segment_is_refused_and_its_entries_named() {
    for (number, expected) in
        [(1, Seqs::new(seq(1), seq(5))), (3, Seqs::new(seq(11), seq(15))), (4, Seqs::from(seq(16)))]
    {
        let (dir, _) = four_segments();
        std::fs::remove_file(path_of(dir.path(), number, IN_USE)).unwrap();
        check_gap(dir.path(), 0, expected);
    }
    let (dir, _) = four_segments();
    check_gap(tempfile::tempdir().unwrap().path(), 16, Seqs::from(seq(17)));
    std::fs::remove_file(path_of(dir.path(), 1, IN_USE)).unwrap();
    check_gap(dir.path(), 3, Seqs::new(seq(4), seq(5)));
    assert_eq!(open(dir.path(), 5).unwrap().2.len(), 11, "those were sealed");
}

#[test]
fn a_damaged_header_names_what_it_hides() {
    let (dir, _) = four_segments();
    std::fs::write(path_of(dir.path(), 3, IN_USE), vec![0; 65536]).unwrap();
    let Err(WalError::Damaged { missing, .. }) = open(dir.path(), 0) else { panic!("opened") };
    assert_eq!(missing, Seqs::new(seq(11), seq(15)));
}

#[test]
fn damage_in_a_closed_segment_is_refused_to_its_end() {
    let (dir, _) = four_segments();
    let path = path_of(dir.path(), 3, IN_USE);
    let mut bytes = std::fs::read(&path).unwrap();
    // The last group of that segment: no frame in it comes later, but the next segment does.
    bytes[8192 + 4 * 10_032 + 100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let Err(WalError::Damaged { path: named, offset, missing, .. }) = open(dir.path(), 0) else { panic!("opened") };
    assert_eq!((named, offset, missing), (path, 8192 + 4 * 10_032, Seqs::new(seq(15), seq(15))));
}

#[test]
fn a_log_of_another_journal_or_of_an_older_copy_is_refused() {
    let (dir, _) = four_segments();
    let opened = Wal::open(dir.path(), options(), *b"another journal!", seq(0), &mut |_| Ok(()));
    assert!(matches!(opened.map(|_| ()), Err(WalError::Foreign { .. })));
    let Err(WalError::Behind { last, sealed, .. }) = open(dir.path(), 17) else { panic!("opened") };
    assert_eq!((last, sealed), (seq(16), seq(17)));
    assert!(matches!(Wal::create(dir.path(), options(), UUID).map(|_| ()), Err(WalError::Foreign { .. })));
}

#[test]
fn a_record_larger_than_a_segment_gets_a_segment_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = Wal::create(dir.path(), options(), UUID).unwrap();
    commit(&mut wal, &[200_000]).unwrap();
    assert_eq!(wal.closed().len(), 0, "the first one held nothing");
    commit(&mut wal, &[1, 300_000, 1]).unwrap();
    drop(wal);
    assert_eq!(open(dir.path(), 0).unwrap().2, [200_000, 1, 300_000, 1]);
}

#[test]
fn rotating_an_empty_segment_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = Wal::create(dir.path(), options(), UUID).unwrap();
    wal.rotate(0).unwrap();
    commit(&mut wal, &[1]).unwrap();
    wal.rotate(0).unwrap();
    wal.rotate(0).unwrap();
    wal.remove_sealed(seq(1));
    wal.close().unwrap();
    assert_eq!(numbers(dir.path(), IN_USE).unwrap(), [2]);
    assert_eq!(numbers(dir.path(), PREPARED).unwrap(), [] as [u64; 0]);
    let (_, recovered, lens) = open(dir.path(), 1).unwrap();
    assert_eq!((recovered.last_seq, lens.len()), (seq(1), 0));
}

#[test]
fn when_the_next_segment_can_not_be_made_nothing_is_lost_and_no_more_is_taken() {
    let (dir, _) = four_segments();
    let (mut wal, ..) = open(dir.path(), 0).unwrap();
    let away = dir.path().with_extension("away");
    std::fs::rename(dir.path(), &away).unwrap();
    let error = (0..).find_map(|_| commit(&mut wal, &[10_000]).err()).unwrap();
    assert!(matches!(error, WalError::Io { .. }), "{error}");
    assert_eq!(wal.durable(), seq(20));
    assert!(matches!(wal.stage(1, b""), Err(WalError::Poisoned)));
    assert!(matches!(wal.sync(), Err(WalError::Poisoned)));
    drop(wal);
    std::fs::rename(&away, dir.path()).unwrap();
    assert_eq!(open(dir.path(), 0).unwrap().2.len(), 20);
}

#[test]
fn space_that_was_freed_before_the_next_segment_is_needed_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = Wal::create(dir.path(), options(), UUID).unwrap();
    // A full disk, for the segment that is made beforehand; the failed attempt removes the file.
    let full = path_of(dir.path(), 2, PREPARED);
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    wal.helper.order(2, 16 << 10);
    while full.is_symlink() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    commit(&mut wal, &[1]).unwrap();
    wal.rotate(0).unwrap();
    commit(&mut wal, &[1]).unwrap();
    assert_eq!(wal.current().number(), 2);
}
