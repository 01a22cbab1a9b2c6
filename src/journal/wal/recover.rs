//! Opening a log: which segments count, whether what they hold is whole, and what was never acknowledged.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};

use super::error::{Seqs, WalError};
use super::frame::{FRAMES_AT, Kind};
use super::scan::{self, Step};
use super::segment::{self, IN_USE, PREPARED, Segment, Visit, path_of};
use super::{ClosedSegment, Wal, WalOptions, before};
use crate::offset::Seq;

/// What opening found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The last entry.
    pub last_seq: Seq,
    /// What was cut, if anything: worth telling.
    pub cut: Option<Cut>,
}

/// The rest of a group of writes that an unclean stop left torn. Nothing in it was acknowledged, unless it was damaged
/// afterwards, which can't be told from torn.
///
/// ```
/// use tidelog::journal::{Cut, Seqs};
///
/// let cut = Cut { path: "wal/1".into(), offset: 4096, seqs: Seqs::from("7".parse()?) };
/// assert!(cut.to_string().ends_with("torn: seqs from 7 on, at byte 4096 of wal/1"));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The file.
    pub path: PathBuf,
    /// Where the first torn byte is.
    pub offset: u64,
    /// The entries that stood there, as far as they can be seen.
    pub seqs: Seqs,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cut { path, offset, seqs } = self;
        write!(
            f,
            "cut the last group of writes, which an unclean stop left torn: {seqs}, at byte {offset} of {}",
            path.display()
        )
    }
}

impl Wal {
    /// Opens the log in `dir` and hands its records to `visit`, in order, one at a time in memory. `sealed` is the last
    /// entry that the journal's history holds: segments up to there are not read but kept, first among the closed ones,
    /// until [`Wal::remove_sealed`] says that their seals are finished. The first records shown may be at or below it.
    ///
    /// # Errors
    ///
    /// All that is not a torn group at the very end: see [`WalError`]. Nothing was changed then.
    pub fn open(
        dir: &Path,
        options: WalOptions,
        uuid: [u8; 16],
        sealed: Seq,
        visit: &mut Visit<'_>,
    ) -> Result<(Wal, Recovered), WalError> {
        let (mut segments, older) = unsealed(dir, uuid, sealed)?;
        let last =
            segments.pop().ok_or_else(|| WalError::Gap { dir: dir.to_owned(), missing: Seqs::from(sealed.next()) })?;
        let (mut closed, no_longer_needed) = sealed_ones(dir, uuid, older, segments.first().unwrap_or(&last));
        let mut segments = segments.into_iter().peekable();
        while let Some(segment) = segments.next() {
            let next = segments.peek().unwrap_or(&last);
            read_closed(dir, &segment, next, visit)?;
            closed.push_back(ClosedSegment { segment, last: before(next.first_seq()) });
        }
        let tail = read_last(&last, visit)?;
        if before(tail.next_seq) < sealed {
            return Err(WalError::Behind { dir: dir.to_owned(), last: before(tail.next_seq), sealed });
        }
        let (current, rotated) =
            if tail.closed { (finish_rotation(dir, &last, &tail)?, true) } else { (last.clone(), false) };
        if rotated {
            closed.push_back(ClosedSegment { segment: last, last: before(tail.next_seq) });
        }

        // Nothing is written before this line.
        let recovered = Recovered { last_seq: before(tail.next_seq), cut: tail.cut.clone() };
        let mut wal = Wal::at_begin_of(current, dir, uuid, options.bounded(), closed)?;
        if !rotated {
            wal.resume(&tail)?;
        }
        remove_prepared(dir)?;
        for number in no_longer_needed {
            wal.helper.remove(number);
        }
        Ok((wal, recovered))
    }

    /// Goes on behind the tail: what may not be on the device is written again (after a failed fdatasync the system
    /// may hold it for clean), what is torn becomes zeros, and only then more is written.
    fn resume(&mut self, tail: &Tail) -> Result<(), WalError> {
        self.position = tail.position;
        self.chain = tail.chain;
        self.staged_chain = tail.chain;
        self.next_seq = tail.next_seq;
        self.staged_next = tail.next_seq;
        self.claimed = tail.claimed;
        self.marked = tail.marked;
        self.durable = before(tail.next_seq);
        if self.claimed == self.durable && tail.end <= tail.position {
            return Ok(());
        }
        self.crash_point("wal-recover");
        let mut chunk = vec![0; 64 * 1024];
        let mut at = tail.unsure_from;
        while at < tail.position {
            let len = (tail.position - at).min(chunk.len() as u64) as usize;
            self.current.read(&mut chunk[..len], at)?;
            self.current.write(&chunk[..len], at)?;
            at += len as u64;
        }
        self.crash_point("wal-recover-kept");
        chunk.fill(0);
        while at < tail.end {
            let len = (tail.end - at).min(chunk.len() as u64) as usize;
            self.current.write(&chunk[..len], at)?;
            at += len as u64;
        }
        self.current.sync()?;
        self.crash_point("wal-recover-cut");
        self.note_idle()
    }
}

/// The end of the last segment.
struct Tail {
    /// Where the next frame goes.
    position: u64,
    /// Checksum of the last frame.
    chain: u32,
    /// The next entry.
    next_seq: Seq,
    /// The last entry that a frame calls durable.
    claimed: Seq,
    /// The last entry that a mark calls durable.
    marked: Seq,
    /// Where the frames begin that no later one calls durable.
    unsure_from: u64,
    /// Where the last byte behind `position` that is not zero ends.
    end: u64,
    /// Whether the segment says that another one follows.
    closed: bool,
    /// What is behind `position`.
    cut: Option<Cut>,
}

/// The segments with entries above `sealed`, and the last one in any case, ascending; and the numbers of the others.
fn unsealed(dir: &Path, uuid: [u8; 16], sealed: Seq) -> Result<(Vec<Segment>, Vec<u64>), WalError> {
    let mut numbers = segment::numbers(dir, IN_USE)?;
    let mut segments: Vec<Segment> = Vec::new();
    while let Some(number) = numbers.pop() {
        let missing = || Seqs {
            first: end_of_segment_before(dir, uuid, number).unwrap_or(sealed.next()),
            last: segments.last().map(|next| before(next.first_seq())),
        };
        let segment = Segment::open(&path_of(dir, number, IN_USE), number, uuid, missing)?;
        let enough = segment.first_seq() <= sealed.next();
        segments.push(segment);
        if enough {
            break;
        }
    }
    segments.reverse();
    if let Some(first) = segments.first().map(Segment::first_seq).filter(|first| *first > sealed.next()) {
        return Err(WalError::Gap { dir: dir.to_owned(), missing: Seqs::new(sealed.next(), before(first)) });
    }
    Ok((segments, numbers))
}

/// The segments of `numbers`, all of whose entries are sealed, as far as they can be opened, ascending; and the numbers of
/// those that can't or that hold none: the history does not need them. `next` is the first segment behind them.
fn sealed_ones(dir: &Path, uuid: [u8; 16], numbers: Vec<u64>, next: &Segment) -> (VecDeque<ClosedSegment>, Vec<u64>) {
    let (mut closed, mut no_longer_needed) = (VecDeque::new(), Vec::new());
    let mut end = next.first_seq();
    for number in numbers.into_iter().rev() {
        match Segment::open(&path_of(dir, number, IN_USE), number, uuid, || Seqs::from(Seq::ZERO)) {
            Ok(segment) if segment.first_seq() < end => {
                let last = before(end);
                end = segment.first_seq();
                closed.push_front(ClosedSegment { segment, last });
            }
            Ok(_) | Err(_) => no_longer_needed.push(number),
        }
    }
    (closed, no_longer_needed)
}

/// The seq that follows the last one of the segment before `number`, if that can be read: for an error's text.
fn end_of_segment_before(dir: &Path, uuid: [u8; 16], number: u64) -> Option<Seq> {
    let number = number.checked_sub(1)?;
    let segment = Segment::open(&path_of(dir, number, IN_USE), number, uuid, || Seqs::from(Seq::ZERO)).ok()?;
    let mut frames = segment.frames();
    while let Step::Frame { .. } = frames.next().ok()? {}
    Some(frames.next_seq())
}

/// Shows a segment that another one follows: all of it was durable before `next` was begun.
fn read_closed(dir: &Path, segment: &Segment, next: &Segment, visit: &mut Visit<'_>) -> Result<(), WalError> {
    let mut frames = segment.frames();
    while frames.next_seq() < next.first_seq() {
        let missing = Seqs::new(frames.next_seq(), before(next.first_seq()));
        let why = match frames.next()? {
            Step::Frame { frame: closing, .. } if closing.kind == Kind::Closed => "closed",
            Step::Frame { frame, offset } => {
                segment.show(&frames, frame, offset, visit)?;
                continue;
            }
            Step::End(why) => why,
        };
        if segment.number() + 1 < next.number() {
            return Err(WalError::Gap { dir: dir.to_owned(), missing });
        }
        return Err(WalError::damaged(segment.path(), frames.position(), why, missing));
    }
    if frames.next_seq() > next.first_seq() {
        let why = format!("it begins with seq {}, but the one before ends later", next.first_seq());
        return Err(WalError::damaged(next.path(), 0, why, Seqs::from(next.first_seq())));
    }
    Ok(())
}

/// Shows the last segment up to its first place without a good frame, and judges what is there.
fn read_last(segment: &Segment, visit: &mut Visit<'_>) -> Result<Tail, WalError> {
    let mut frames = segment.frames();
    let mut claimed = before(segment.first_seq());
    let mut unsure_from = FRAMES_AT;
    let (mut closed, mut why) = (false, "");
    while !closed && why.is_empty() {
        match frames.next()? {
            Step::Frame { frame, offset } => {
                if frame.durable > claimed {
                    claimed = frame.durable;
                    unsure_from = offset;
                }
                closed = frame.kind == Kind::Closed;
                segment.show(&frames, frame, offset, visit)?;
            }
            Step::End(found) => why = found,
        }
    }
    let (position, next_seq) = (frames.position(), frames.next_seq());
    let rest = if closed { scan::Rest::default() } else { scan::rest(segment, position, next_seq)? };
    let marked = segment.marked()?.unwrap_or(before(segment.first_seq()));
    if let Some(durable) = rest.durable.max(Some(marked)).filter(|durable| *durable >= next_seq) {
        return Err(WalError::damaged(segment.path(), position, why, Seqs::new(next_seq, durable)));
    }
    let cut = rest.end.map(|_| Cut {
        path: segment.path().to_owned(),
        offset: position,
        seqs: Seqs { first: next_seq, last: rest.last },
    });
    let (chain, end) = (frames.chain(), rest.end.unwrap_or(position));
    Ok(Tail { position, chain, next_seq, claimed, marked, unsure_from, end, closed, cut })
}

/// Puts in use what follows a segment that is closed: a crash came between the two.
fn finish_rotation(dir: &Path, last: &Segment, tail: &Tail) -> Result<Segment, WalError> {
    let number = last.number() + 1;
    let missing = Seqs::from(tail.next_seq);
    let path = path_of(dir, number, PREPARED);
    if !path.exists() {
        return Err(WalError::Gap { dir: dir.to_owned(), missing });
    }
    let uuid = last.uuid();
    let next = Segment::open(&path, number, uuid, || missing)?;
    if next.first_seq() != tail.next_seq {
        let why = format!("it begins with seq {}, not {}", next.first_seq(), tail.next_seq);
        return Err(WalError::damaged(&path, 0, why, missing));
    }
    next.put_in_use(dir)
}

/// Removes segments that were made beforehand: they may not be complete.
fn remove_prepared(dir: &Path) -> Result<(), WalError> {
    for number in segment::numbers(dir, PREPARED)? {
        let path = path_of(dir, number, PREPARED);
        std::fs::remove_file(&path).map_err(|source| WalError::io("remove", &path, source))?;
    }
    Ok(())
}
