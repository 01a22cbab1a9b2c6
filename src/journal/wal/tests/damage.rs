//! Damaged bytes: cut where they belong to the last group, refused where they don't.

use super::*;
use crate::journal::wal::frame::{FRAME_BYTES, FRAMES_AT, MARKS_AT};
use crate::journal::wal::{Cut, Seqs};

const EARLIER: [usize; 4] = [40, 9, 0, 70];
const LAST: [usize; 3] = [30, 0, 50];

/// A log with two groups that were called durable and a last one that was not; its bytes, and where the last group
/// begins and ends.
fn three_groups(idle: bool) -> (Vec<u8>, usize, usize) {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = Wal::create(dir.path(), options(), UUID).unwrap();
    commit(&mut wal, &EARLIER[..2]).unwrap();
    commit(&mut wal, &EARLIER[2..]).unwrap();
    let begin = wal.position as usize;
    commit(&mut wal, &LAST).unwrap();
    let end = wal.position as usize;
    if idle {
        wal.note_idle().unwrap();
    }
    drop(wal);
    (std::fs::read(first_file(dir.path())).unwrap(), begin, end)
}

/// Checks that `bytes` open with the earlier groups and the first `kept` entries of the last one, and that the log can
/// be gone on with.
fn check_cut(bytes: &[u8], kept: usize, offset: usize, seqs: Seqs) {
    let (mut wal, recovered, lens, copy) = open_bytes(bytes).unwrap();
    let all: Vec<usize> = EARLIER.into_iter().chain(LAST.into_iter().take(kept)).collect();
    assert_eq!(lens, all);
    let cut = Cut { path: first_file(copy.path()), offset: offset as u64, seqs };
    assert_eq!(recovered, Recovered { last_seq: seq(all.len() as u64), cut: Some(cut) });
    commit(&mut wal, &[1, 2]).unwrap();
    drop(wal);
    let (_, recovered, lens) = open(copy.path(), 0).unwrap();
    assert_eq!(recovered.cut, None);
    assert_eq!(lens, [&all[..], &[1, 2]].concat());
}

/// The missing seqs of the error that `bytes` open with.
fn missing(bytes: &[u8]) -> Seqs {
    match open_bytes(bytes) {
        Err(WalError::Damaged { missing, .. }) => missing,
        Err(error) => panic!("another error: {error}"),
        Ok((_, recovered, lens, _)) => panic!("opened with {lens:?}, {recovered:?}"),
    }
}

/// How many whole entries of the last group end at or before `at`.
fn kept_before(begin: usize, at: usize) -> (usize, usize) {
    let (mut end, mut kept) = (begin, 0);
    for len in LAST {
        if end + FRAME_BYTES + len > at {
            break;
        }
        end += FRAME_BYTES + len;
        kept += 1;
    }
    (kept, end)
}

#[test]
fn a_last_group_torn_at_any_byte_is_cut() {
    let (whole, begin, end) = three_groups(false);
    for (filling, step) in [(0, 1), (0xa7, 7)] {
        for torn_at in (begin + 1..end).step_by(step) {
            let mut bytes = whole.clone();
            bytes[torn_at..end].fill(filling);
            // A frame that ends in zeros is whole without them.
            let first_changed = (torn_at..end).find(|at| bytes[*at] != whole[*at]).unwrap_or(end);
            let (kept, offset) = kept_before(begin, first_changed);
            if bytes[offset..].iter().any(|byte| *byte != 0) {
                check_cut(&bytes, kept, offset, Seqs::from(seq(5 + kept as u64)));
            } else {
                let (_, recovered, lens, _copy) = open_bytes(&bytes).unwrap();
                assert_eq!((recovered.cut, lens.len()), (None, 4 + kept), "torn at {torn_at}");
            }
        }
    }
}

#[test]
fn a_flip_in_the_last_group_is_cut_with_what_follows_it() {
    let (whole, begin, end) = three_groups(false);
    for at in begin..end {
        let (kept, offset) = kept_before(begin, at);
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        let last = (kept < 2).then(|| seq(7));
        check_cut(&bytes, kept, offset, Seqs { first: seq(5 + kept as u64), last });
    }
}

#[test]
fn a_flip_in_an_earlier_group_is_refused() {
    let (whole, begin, _) = three_groups(false);
    for at in FRAMES_AT as usize..begin {
        for flip in [0x01, 0x80] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            let missing = missing(&bytes);
            assert!((1..=4).contains(&missing.first.as_u64()) && missing.last == Some(seq(4)), "{missing} at {at}");
        }
    }
}

#[test]
fn a_flip_anywhere_is_refused_once_the_log_was_idle() {
    let (whole, _, end) = three_groups(true);
    for at in FRAMES_AT as usize..end {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x04;
        assert_eq!(missing(&bytes).last, Some(seq(7)), "at {at}");
    }
}

#[test]
fn a_flip_in_the_header_is_refused() {
    let (whole, ..) = three_groups(false);
    for at in 0..64 {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        assert_eq!(missing(&bytes), Seqs::from(seq(1)), "at {at}");
    }
}

#[test]
fn a_durable_group_that_became_zeros_is_refused() {
    let (whole, begin, end) = three_groups(false);
    for (from, to, first) in [(FRAMES_AT as usize, begin, 1), (FRAMES_AT as usize, end, 1), (begin - 1, end, 4)] {
        let mut bytes = whole.clone();
        bytes[from..to].fill(0);
        assert_eq!(missing(&bytes), Seqs::new(seq(first), seq(4)));
    }
    // Without the marks, a tail of zeros can't be told from one that was never written; all else can.
    let mut bytes = whole.clone();
    bytes[MARKS_AT[0] as usize..FRAMES_AT as usize].fill(0xff);
    assert_eq!(open_bytes(&bytes).unwrap().2.len(), 7);
    bytes[begin - 1] ^= 1;
    assert_eq!(missing(&bytes), Seqs::new(seq(4), seq(4)));
}

#[test]
fn garbage_behind_the_last_frame_is_cut() {
    let (mut bytes, _, end) = three_groups(true);
    bytes[end + FRAME_BYTES + 100] = 1;
    check_cut(&bytes, 3, end + FRAME_BYTES, Seqs::from(seq(8)));
    let last = bytes.len() - 1;
    bytes[last] = 1;
    check_cut(&bytes, 3, end + FRAME_BYTES, Seqs::from(seq(8)));
}

#[test]
fn a_huge_length_asks_for_no_memory() {
    let (whole, begin, _) = three_groups(false);
    for length in [u32::MAX, 1 << 30, whole.len() as u32] {
        let mut bytes = whole.clone();
        bytes[FRAMES_AT as usize..][..4].copy_from_slice(&length.to_le_bytes());
        assert_eq!(missing(&bytes), Seqs::new(seq(1), seq(4)));
        let mut bytes = whole.clone();
        bytes[begin..][..4].copy_from_slice(&length.to_le_bytes());
        check_cut(&bytes, 0, begin, Seqs::new(seq(5), seq(7)));
    }
}

#[test]
fn a_file_that_was_cut_or_grew_is_refused() {
    let (whole, begin, _) = three_groups(false);
    assert_eq!(missing(&whole[..begin]), Seqs::from(seq(5)));
    assert_eq!(missing(&whole[..whole.len() - 1]), Seqs::from(seq(8)));
    assert_eq!(missing(&[&whole[..], &[0]].concat()), Seqs::from(seq(8)));
    for len in [0, 10, 64, 5000] {
        assert_eq!(missing(&whole[..len]), Seqs::from(seq(1)));
    }
}

#[test]
fn a_payload_that_holds_a_frame_is_no_frame() {
    // Someone commits a key with the bytes of a frame that calls everything durable, and the group is torn.
    let (donor, begin, end) = three_groups(true);
    let dir = tempfile::tempdir().unwrap();
    let mut wal = Wal::create(dir.path(), options(), *b"another journal!").unwrap();
    wal.stage(1, &donor[begin..end + FRAME_BYTES]).unwrap();
    wal.write().unwrap();
    drop(wal);
    let mut bytes = std::fs::read(first_file(dir.path())).unwrap();
    bytes[FRAMES_AT as usize] ^= 1;
    std::fs::write(first_file(dir.path()), bytes).unwrap();
    let (_, recovered) =
        Wal::open(dir.path(), options(), *b"another journal!", seq(0), &mut |_| panic!("nothing is whole")).unwrap();
    assert_eq!(recovered.cut.unwrap().seqs, Seqs::from(seq(1)));
}

/// All ways in which a power cut can leave the pages of the last group: each new, or as it was before.
#[test]
fn after_a_power_cut_the_durable_groups_are_there_and_whole_entries_of_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = Wal::create(dir.path(), options(), UUID).unwrap();
    commit(&mut wal, &EARLIER).unwrap();
    let before = std::fs::read(first_file(dir.path())).unwrap();
    let last = [3000, 100, 100, 6000, 10, 4096, 900, 5000];
    write(&mut wal, &last).unwrap();
    drop(wal);
    let after = std::fs::read(first_file(dir.path())).unwrap();
    let all = [&EARLIER[..], &last].concat();

    let pages: Vec<usize> =
        (0..after.len() / 4096).filter(|p| before[p * 4096..][..4096] != after[p * 4096..][..4096]).collect();
    assert_eq!(pages.len(), 6, "the marks' page and five of the frames");
    for subset in 0..1u32 << pages.len() {
        let mut bytes = before.clone();
        for (bit, page) in pages.iter().enumerate().filter(|(bit, _)| subset & (1 << bit) != 0) {
            assert!(bit < 32);
            bytes[page * 4096..][..4096].copy_from_slice(&after[page * 4096..][..4096]);
        }
        let (mut wal, _, lens, copy) = open_bytes(&bytes).unwrap();
        assert!(lens.len() >= EARLIER.len() && lens == all[..lens.len()], "{subset:b}: {lens:?}");
        commit(&mut wal, &[11]).unwrap();
        drop(wal);
        let (_, recovered, again) = open(copy.path(), 0).unwrap();
        assert_eq!((recovered.cut, again), (None, [&lens[..], &[11]].concat()), "{subset:b}");
    }
}
