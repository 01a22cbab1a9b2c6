//! Reads of a segment whose content is not trusted yet: frame by frame, and past the first bad one for frames that
//! tell whether it was durable.

use std::ops::Range;

use super::error::WalError;
use super::frame::{FRAME_BYTES, FRAMES_AT, Frame, Kind};
use super::segment::Segment;
use crate::offset::Seq;

/// What is read at once.
const WINDOW: usize = 256 * 1024;

/// A stretch of the file in memory.
#[derive(Default)]
struct Window {
    bytes: Vec<u8>,
    at: u64,
}

impl Window {
    /// Makes `range` of the file one piece in memory, and more of what follows it; the caller has checked that it lies
    /// within the file.
    fn get(&mut self, segment: &Segment, range: Range<u64>) -> Result<&[u8], WalError> {
        if range.start < self.at || range.end > self.at + self.bytes.len() as u64 {
            let end = range.end.max(range.start + WINDOW as u64).min(segment.size());
            self.bytes.resize((end - range.start) as usize, 0);
            self.at = range.start;
            if let Err(error) = segment.read(&mut self.bytes, range.start) {
                self.bytes.clear();
                return Err(error);
            }
        }
        Ok(self.within(range))
    }

    fn within(&self, range: Range<u64>) -> &[u8] {
        &self.bytes[(range.start - self.at) as usize..(range.end - self.at) as usize]
    }
}

/// What comes next in a segment.
pub enum Step {
    /// A whole frame that continues the chain.
    Frame {
        /// Its head.
        frame: Frame,
        /// Where it begins.
        offset: u64,
    },
    /// No such frame: the end of what was written, or damage; says what stands there.
    End(&'static str),
}

/// Goes through the frames of a segment in order, with one window of it in memory.
pub struct FrameReader<'a> {
    segment: &'a Segment,
    window: Window,
    position: u64,
    payload: Range<u64>,
    chain: u32,
    next_seq: Seq,
}

impl<'a> FrameReader<'a> {
    /// Before the first frame of `segment`.
    pub fn new(segment: &'a Segment) -> Self {
        FrameReader {
            segment,
            window: Window::default(),
            position: FRAMES_AT,
            payload: FRAMES_AT..FRAMES_AT,
            chain: segment.seed(),
            next_seq: segment.first_seq(),
        }
    }

    /// The next frame. After an end it stays there.
    pub fn next(&mut self) -> Result<Step, WalError> {
        let offset = self.position;
        let head_end = offset + FRAME_BYTES as u64;
        if head_end > self.segment.size() {
            return Ok(Step::End("the end of the file"));
        }
        let mut head = [0; FRAME_BYTES];
        head.copy_from_slice(self.window.get(self.segment, offset..head_end)?);
        if head == [0; FRAME_BYTES] {
            return Ok(Step::End("zeros"));
        }
        let Some(frame) = Frame::decode(&head, self.segment.size() - head_end) else {
            return Ok(Step::End("no frame"));
        };
        if frame.prev != self.chain || frame.first_seq != self.next_seq {
            return Ok(Step::End("a frame that does not continue the one before"));
        }
        let payload = head_end..head_end + frame.len as u64;
        // One piece from the head on, so that the window moves forward only.
        let bytes = &self.window.get(self.segment, offset..payload.end)?[FRAME_BYTES..];
        if crc32c::crc32c_append(Frame::head_crc(self.segment.seed(), &head), bytes) != frame.crc {
            return Ok(Step::End("a frame's checksum does not match"));
        }
        self.position = payload.end;
        self.payload = payload;
        self.chain = frame.crc;
        self.next_seq = frame.next_seq();
        Ok(Step::Frame { frame, offset })
    }

    /// The payload of the frame that [`Self::next`] gave.
    pub fn payload(&self) -> &[u8] {
        if self.payload.is_empty() { &[] } else { self.window.within(self.payload.clone()) }
    }

    /// Where the next frame begins or would begin.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The checksum of the last frame.
    pub fn chain(&self) -> u32 {
        self.chain
    }

    /// The seq that the next entry has or would have.
    pub fn next_seq(&self) -> Seq {
        self.next_seq
    }
}

/// What stands behind the first place that holds no good frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Rest {
    /// Where the last byte that is not zero ends; none if all are zero.
    pub end: Option<u64>,
    /// The highest seq that a whole frame there calls durable.
    pub durable: Option<Seq>,
    /// The highest seq of an entry in a whole frame there.
    pub last: Option<Seq>,
}

/// Looks through all of `segment` from `from` on, where the entry `next_seq` was expected.
///
/// A frame's length can be damaged, so frames are looked for at each byte. Whether a place can hold one is seen from
/// its head; then its checksum decides.
pub fn rest(segment: &Segment, from: u64, next_seq: Seq) -> Result<Rest, WalError> {
    let mut rest = Rest::default();
    let (mut window, mut payload) = (Window::default(), Window::default());
    let mut after_frame = from;
    let mut begin = from;
    while begin < segment.size() {
        let end = (begin + WINDOW as u64).min(segment.size());
        let bytes = window.get(segment, begin..(end + FRAME_BYTES as u64).min(segment.size()))?;
        if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
            rest.end = Some(begin + last as u64 + 1);
            let heads = bytes.windows(FRAME_BYTES).take((end - begin) as usize);
            for (head, at) in heads.zip(begin..) {
                if at < after_frame {
                    continue;
                }
                if let Some(frame) = frame_at(segment, head, at, next_seq, &mut payload)? {
                    after_frame = at + frame.total();
                    rest.durable = rest.durable.max(Some(frame.durable));
                    if frame.kind == Kind::Entries {
                        rest.last = rest.last.max(Some(frame.first_seq.plus(u64::from(frame.count) - 1)));
                    }
                }
            }
        }
        begin = end;
    }
    Ok(rest)
}

/// The frame of entries from `next_seq` on, or behind them, that begins with `head` at `at`.
fn frame_at(
    segment: &Segment,
    head: &[u8],
    at: u64,
    next_seq: Seq,
    payload: &mut Window,
) -> Result<Option<Frame>, WalError> {
    // Nearly all places are told from one byte.
    if !(Kind::Entries as u8..=Kind::Closed as u8).contains(&head[12]) {
        return Ok(None);
    }
    let mut bytes = [0; FRAME_BYTES];
    bytes.copy_from_slice(head);
    let begin = at + FRAME_BYTES as u64;
    let Some(frame) = Frame::decode(&bytes, segment.size() - begin).filter(|frame| frame.first_seq >= next_seq) else {
        return Ok(None);
    };
    let bytes_of_payload = payload.get(segment, begin..begin + frame.len as u64)?;
    let crc = crc32c::crc32c_append(Frame::head_crc(segment.seed(), &bytes), bytes_of_payload);
    Ok((crc == frame.crc).then_some(frame))
}
