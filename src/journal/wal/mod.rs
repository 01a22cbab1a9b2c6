//! The write-ahead log: it decides what is acknowledged.
//!
//! A record (one or more entries, all there or none) is *staged* into the group that is being put together, the group
//! is *written* with one system call, and one fdatasync makes it durable. A segment is a file of real zeros, on the
//! device before it is used, so that making a group durable changes no metadata and finds no full disk; the next one
//! is made by a helper thread, and a full disk shows when it is needed.
//!
//! # What is cut and what is refused
//!
//! After a power cut any part of the last group may be missing, and parts behind it may be there: that is cut, and
//! said ([`Cut`]). Everything before the last group was on the device, so damage there is an error
//! ([`WalError::Damaged`]). The two are told apart by what is written *later* than the place in question: each frame
//! says which entry was durable before its group, and so do two marks in a page of their own (a tail that turned to
//! zeros leaves no later frame). When nothing is committed for a while, and at a clean close, an empty frame calls the
//! last group durable too.
//!
//! A segment ends with a frame that says so, written once the next segment is on the device: a log whose newest
//! segment is gone does not pass for a shorter one. Frames are chained by checksums within a segment, and begin with
//! the journal's uuid, so that neither old nor foreign bytes continue it.
//!
//! # After an error
//!
//! A failed write or fdatasync is never tried again, as the system may have dropped what it could not write: the log
//! takes nothing more ([`WalError::Poisoned`]) until it is opened again. Opening writes once more what it can't know to
//! be on the device.

mod error;
mod frame;
mod prepare;
mod recover;
mod scan;
mod segment;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::CrashHook;
use crate::offset::Seq;

pub use error::{Seqs, WalError};
use frame::FRAME_BYTES;
pub use frame::{MAX_COUNT, MAX_PAYLOAD};
pub use recover::{Cut, Recovered};
pub use segment::{Segment, Undecodable, Visited};

use frame::{FRAMES_AT, Frame, Header, Kind, MARKS_AT};
use prepare::Helper;

/// How a log is written.
#[derive(Clone)]
pub struct WalOptions {
    /// Bytes of a segment. One in use keeps the size that it was made with.
    pub segment_bytes: u64,
    /// Called at named places around each write, also by the helper thread.
    pub crash_at: Option<CrashHook>,
}

impl WalOptions {
    /// 16 MiB: sealed in well under a second, and a disk has room for a few.
    pub const SEGMENT_BYTES: u64 = 16 << 20;
    /// The least, for tests: half of it are the header and the marks.
    pub const SEGMENT_BYTES_MIN: u64 = 16 << 10;
    /// Size of a segment that was not made beforehand: the first one, that of a close. Written in a few milliseconds.
    const UNPREPARED_BYTES: u64 = 1 << 20;
}

impl Default for WalOptions {
    fn default() -> Self {
        WalOptions { segment_bytes: Self::SEGMENT_BYTES, crash_at: None }
    }
}

/// A segment that takes no more entries. It holds those from [`Segment::first_seq`] to `last`; none, if `last` is below.
#[derive(Debug, Clone)]
pub struct ClosedSegment {
    /// The segment.
    pub segment: Segment,
    /// Its last entry.
    pub last: Seq,
}

impl ClosedSegment {
    /// The last entry before it; 0 if it holds the first.
    pub fn before(&self) -> Seq {
        before(self.segment.first_seq())
    }
}

/// The log of one journal, open for writing. Its owner holds the journal's lock.
pub struct Wal {
    dir: PathBuf,
    uuid: [u8; 16],
    options: WalOptions,
    helper: Helper,
    closed: VecDeque<ClosedSegment>,
    current: Segment,
    // What is written: up to where, the last frame's checksum, the next entry.
    position: u64,
    chain: u32,
    next_seq: Seq,
    // The group that is being put together, and its last frame's checksum and next entry.
    staged: Vec<u8>,
    staged_chain: u32,
    staged_next: Seq,
    // The last entry on the device, and the last that some frame or mark calls so.
    durable: Seq,
    claimed: Seq,
    marked: Seq,
    mark: usize,
    poisoned: bool,
}

impl Wal {
    /// Makes the log of a new journal in `dir`, which must not exist or be empty. The caller syncs the parent directory.
    pub fn create(dir: &Path, options: WalOptions, uuid: [u8; 16]) -> Result<Wal, WalError> {
        std::fs::create_dir_all(dir).map_err(|source| WalError::io("make", dir, source))?;
        if let Some(number) = segment::numbers(dir, segment::IN_USE)?.first() {
            return Err(WalError::Foreign { path: segment::path_of(dir, *number, segment::IN_USE) });
        }
        let options = options.bounded();
        let size = WalOptions::UNPREPARED_BYTES.min(options.segment_bytes);
        let path = segment::path_of(dir, 1, segment::PREPARED);
        segment::write_zeros(&path, size)?;
        let header = Header { number: 1, first_seq: Seq::ZERO.next(), size, uuid };
        let current = Segment::begin(&path, header)?.put_in_use(dir)?;
        Self::at_begin_of(current, dir, uuid, options, VecDeque::new())
    }

    fn at_begin_of(
        current: Segment,
        dir: &Path,
        uuid: [u8; 16],
        options: WalOptions,
        closed: VecDeque<ClosedSegment>,
    ) -> Result<Wal, WalError> {
        let next_seq = current.first_seq();
        let durable = before(next_seq);
        let chain = current.seed();
        Ok(Wal {
            helper: Helper::start(dir, options.crash_at.clone())?,
            dir: dir.to_owned(),
            uuid,
            options,
            closed,
            current,
            position: FRAMES_AT,
            chain,
            next_seq,
            staged: Vec::new(),
            staged_chain: chain,
            staged_next: next_seq,
            durable,
            claimed: durable,
            marked: durable,
            mark: 0,
            poisoned: false,
        })
    }

    /// The segment that takes entries now. A record goes into the segment that is current when it is staged.
    pub fn current(&self) -> &Segment {
        &self.current
    }

    /// The last entry that was written; 0 before the first.
    pub fn last_seq(&self) -> Seq {
        before(self.next_seq)
    }

    /// The last entry that is on the device.
    pub fn durable(&self) -> Seq {
        self.durable
    }

    /// Adds the next `count` entries to the group; either all of them survive a crash or none. Whether they fit the
    /// current segment: if not, nothing was added; write and sync what is staged, [`Self::rotate`], and stage again.
    ///
    /// # Errors
    ///
    /// [`WalError::TooLarge`], which leaves the log usable.
    pub fn stage(&mut self, count: usize, payload: &[u8]) -> Result<bool, WalError> {
        assert!(count > 0, "a record holds entries");
        self.check_usable()?;
        let small_enough = u16::try_from(count).ok().filter(|_| payload.len() <= MAX_PAYLOAD);
        let Some(count) = small_enough else {
            return Err(WalError::TooLarge { entries: count, bytes: payload.len() });
        };
        // The frame that closes the segment always has room.
        let end = self.position + (self.staged.len() + 2 * FRAME_BYTES + payload.len()) as u64;
        if end > self.current.size() {
            return Ok(false);
        }
        self.staged_chain = Frame::encode(
            &mut self.staged,
            self.current.seed(),
            self.staged_chain,
            Kind::Entries,
            (self.staged_next, count),
            self.durable,
            payload,
        );
        self.staged_next = self.staged_next.plus(u64::from(count));
        Ok(true)
    }

    /// Hands the staged group to the system: it survives a killed process from here on.
    pub fn write(&mut self) -> Result<(), WalError> {
        self.check_usable()?;
        if self.staged.is_empty() {
            return Ok(());
        }
        self.poisoning(Self::try_write)
    }

    fn try_write(&mut self) -> Result<(), WalError> {
        self.crash_point("wal-write");
        let mut begin = 0;
        if self.options.crash_at.is_some() {
            // A test wants to see half a group, too.
            begin = self.staged.len() / 2;
            self.current.write(&self.staged[..begin], self.position)?;
            self.crash_point("wal-write-half");
        }
        self.current.write(&self.staged[begin..], self.position + begin as u64)?;
        self.crash_point("wal-write-unmarked");
        self.write_mark()?;
        self.crash_point("wal-written");
        self.position += self.staged.len() as u64;
        self.staged.clear();
        self.chain = self.staged_chain;
        self.next_seq = self.staged_next;
        self.claimed = self.durable;
        if self.position > self.current.size() / 2 {
            self.helper.order(self.current.number() + 1, self.options.segment_bytes);
        }
        Ok(())
    }

    /// Notes what is durable in the page of the marks, in turn, so that a torn one leaves the other.
    fn write_mark(&mut self) -> Result<(), WalError> {
        if self.marked < self.durable {
            self.mark ^= 1;
            self.current.write(&frame::encode_mark(self.current.seed(), self.durable), MARKS_AT[self.mark])?;
            self.marked = self.durable;
        }
        Ok(())
    }

    /// Makes what was written durable, with one fdatasync; with none if it is already.
    pub fn sync(&mut self) -> Result<(), WalError> {
        self.check_usable()?;
        if self.durable == self.last_seq() {
            return Ok(());
        }
        self.poisoning(|wal| {
            wal.crash_point("wal-sync");
            wal.current.sync()?;
            wal.durable = wal.last_seq();
            wal.crash_point("wal-synced");
            Ok(())
        })
    }

    /// Calls the last group durable, if it is and nothing says so yet: damage in it is told from a torn write then. For
    /// the caller to do when nothing was committed for a while.
    pub fn note_idle(&mut self) -> Result<(), WalError> {
        self.check_usable()?;
        assert!(self.staged.is_empty(), "idle means that nothing waits to be written");
        if self.claimed == self.durable || self.durable != self.last_seq() {
            return Ok(());
        }
        self.poisoning(|wal| {
            wal.crash_point("wal-idle");
            // Without room for it, the mark alone has to do.
            if wal.position + 2 * FRAME_BYTES as u64 <= wal.current.size() {
                wal.write_empty(Kind::Idle)?;
            }
            wal.write_mark()?;
            wal.claimed = wal.durable;
            wal.crash_point("wal-idle-written");
            Ok(())
        })
    }

    fn write_empty(&mut self, kind: Kind) -> Result<(), WalError> {
        let mut bytes = Vec::with_capacity(FRAME_BYTES);
        let (seed, seqs) = (self.current.seed(), (self.next_seq, 0));
        self.chain = Frame::encode(&mut bytes, seed, self.chain, kind, seqs, self.durable, &[]);
        self.staged_chain = self.chain;
        self.current.write(&bytes, self.position)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Closes the current segment, all durable, and goes on in the next one, which takes a payload of `at_least` bytes.
    /// Nothing may be staged. Returns the closed one, if it holds entries. A current segment without entries stays, if it
    /// is large enough.
    ///
    /// # Errors
    ///
    /// [`WalError::NoSpace`] if the next segment could not be made. The log takes no more then, but nothing is lost.
    pub fn rotate(&mut self, at_least: usize) -> Result<Option<ClosedSegment>, WalError> {
        self.check_usable()?;
        assert!(self.staged.is_empty(), "what is staged belongs to the current segment");
        let size = FRAMES_AT + (2 * FRAME_BYTES + at_least) as u64;
        if self.next_seq == self.current.first_seq() && size <= self.current.size() {
            return Ok(None);
        }
        self.sync()?;
        self.poisoning(|wal| wal.try_rotate(size))
    }

    fn try_rotate(&mut self, at_least: u64) -> Result<Option<ClosedSegment>, WalError> {
        let number = self.current.number() + 1;
        self.crash_point("wal-rotate");
        // Not made beforehand: the journal is being closed, or a record needs a larger one than usual.
        let unprepared = WalOptions::UNPREPARED_BYTES.min(self.options.segment_bytes);
        let mut size = self.helper.take(number, unprepared.max(at_least))?;
        if size < at_least {
            size = self.helper.take(number, at_least)?;
        }
        let header = Header { number, first_seq: self.next_seq, size, uuid: self.uuid };
        let next = Segment::begin(&segment::path_of(&self.dir, number, segment::PREPARED), header)?;
        self.crash_point("wal-rotate-begun");
        // From this frame on the next segment must be there; one that still has its first name is put in use by recovery.
        self.write_empty(Kind::Closed)?;
        self.current.sync()?;
        self.crash_point("wal-rotate-closed");
        let next = next.put_in_use(&self.dir)?;
        self.crash_point("wal-rotated");

        let last = self.last_seq();
        let closed = ClosedSegment { segment: std::mem::replace(&mut self.current, next), last };
        let closed = if closed.segment.first_seq() > last {
            self.helper.remove(closed.segment.number());
            None
        } else {
            self.closed.push_back(closed.clone());
            Some(closed)
        };
        self.position = FRAMES_AT;
        self.chain = self.current.seed();
        self.staged_chain = self.chain;
        // The new header says that all before it is durable.
        self.claimed = self.durable;
        self.marked = self.durable;
        Ok(closed)
    }

    /// The closed segments that were not removed yet, oldest first.
    pub fn closed(&self) -> &VecDeque<ClosedSegment> {
        &self.closed
    }

    /// Removes the oldest closed segments up to `sealed`, some time later: their seals are finished.
    pub fn remove_sealed(&mut self, sealed: Seq) {
        while let Some(oldest) = self.closed.pop_front_if(|oldest| oldest.last <= sealed) {
            self.helper.remove(oldest.segment.number());
        }
    }

    /// Makes all durable, and says so there: damage found later is told from a torn write.
    pub fn close(&mut self) -> Result<(), WalError> {
        self.write()?;
        self.sync()?;
        self.note_idle()?;
        self.poisoning(|wal| wal.current.sync())
    }

    fn check_usable(&self) -> Result<(), WalError> {
        if self.poisoned { Err(WalError::Poisoned) } else { Ok(()) }
    }

    /// Does `step`; after an error nothing more is written.
    fn poisoning<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, WalError>) -> Result<T, WalError> {
        let result = step(self);
        self.poisoned |= result.is_err();
        result
    }

    fn crash_point(&self, name: &'static str) {
        if let Some(crash_at) = &self.options.crash_at {
            crash_at(name);
        }
    }
}

impl WalOptions {
    fn bounded(mut self) -> Self {
        self.segment_bytes = self.segment_bytes.max(Self::SEGMENT_BYTES_MIN);
        self
    }
}

/// The seq before `seq`, which is not 0.
fn before(seq: Seq) -> Seq {
    Seq::try_from(seq.as_u64().saturating_sub(1)).unwrap_or(Seq::ZERO)
}
