//! One segment file: its name, its making, its header, and reads of frames at a known place.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{Seqs, WalError};
use super::frame::{BadHeader, FRAMES_AT, Frame, HEADER_BYTES, Header, Kind, MARK_BYTES, MARKS_AT, VERSION};
use super::scan::{FrameReader, Step};
use crate::offset::Seq;

/// Ending of a segment's name.
pub const IN_USE: &str = "wal";
/// Ending of the name of a segment that is not in use yet.
pub const PREPARED: &str = "next";

/// The path of segment `number`.
pub fn path_of(dir: &Path, number: u64, ending: &str) -> PathBuf {
    dir.join(format!("{number:016}.{ending}"))
}

/// The numbers of the segments in `dir` with this ending, ascending.
pub fn numbers(dir: &Path, ending: &str) -> Result<Vec<u64>, WalError> {
    let list = || -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for file in std::fs::read_dir(dir)? {
            let name = file?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(ending)?.strip_suffix('.'));
            numbers.extend(number.filter(|number| number.len() == 16).and_then(|number| number.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    };
    list().map_err(|source| WalError::io("list", dir, source))
}

/// Makes names in `dir` survive a power cut: those made, changed or removed so far.
pub fn sync_dir(dir: &Path) -> Result<(), WalError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|source| WalError::io("sync", dir, source))
}

/// Writes a file of `size` zeros, on the device when this returns. Zeros, not a hole and not reserved blocks: a write
/// into them then changes no metadata, and finds no full disk.
pub fn write_zeros(path: &Path, size: u64) -> Result<(), WalError> {
    let chunk = vec![0; 256 * 1024];
    let write = || -> io::Result<()> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        let mut written = 0;
        while written < size {
            let len = (size - written).min(chunk.len() as u64);
            file.write_all_at(&chunk[..len as usize], written)?;
            written += len;
        }
        file.sync_all()
    };
    write().map_err(|source| {
        // What was written of it would only keep the disk full.
        let _ = std::fs::remove_file(path);
        WalError::io("make", path, source)
    })
}

/// An open segment. Cheap to clone; reads from any thread while the log goes on, also after the file was removed.
#[derive(Debug, Clone)]
pub struct Segment {
    file: Arc<File>,
    path: Arc<Path>,
    header: Header,
    seed: u32,
}

impl Segment {
    /// Opens the segment at `path`, checked against its name, its size and the journal's uuid. `missing` is what can't
    /// be read if it is damaged.
    pub fn open(path: &Path, number: u64, uuid: [u8; 16], missing: impl Fn() -> Seqs) -> Result<Segment, WalError> {
        let read = || -> io::Result<(File, [u8; HEADER_BYTES], u64)> {
            let file = OpenOptions::new().read(true).write(true).open(path)?;
            let size = file.metadata()?.len();
            let mut bytes = [0; HEADER_BYTES];
            if size >= FRAMES_AT {
                file.read_exact_at(&mut bytes, 0)?;
            }
            Ok((file, bytes, size))
        };
        let (file, bytes, size) = read().map_err(|source| WalError::io("open", path, source))?;
        let (header, seed) = Header::decode(&bytes).map_err(|bad| match bad {
            BadHeader::Damaged(why) => WalError::damaged(path, 0, why, missing()),
            BadHeader::Version(found) => WalError::Version { path: path.to_owned(), found, known: VERSION },
        })?;
        if header.uuid != uuid {
            return Err(WalError::Foreign { path: path.to_owned() });
        }
        if header.number != number {
            let why = format!("it is segment {} under the name of another", header.number);
            return Err(WalError::damaged(path, 0, why, missing()));
        }
        if size != header.size {
            // The frames that are left tell where the missing ones begin.
            let left = Header { size, ..header };
            let left = Segment { file: Arc::new(file), path: path.into(), header: left, seed };
            let mut frames = left.frames();
            while let Ok(Step::Frame { .. }) = frames.next() {}
            let why = format!("{size} bytes long, but it was {}", header.size);
            return Err(WalError::damaged(path, frames.position(), why, Seqs::from(frames.next_seq())));
        }
        let segment = Segment { file: Arc::new(file), path: path.into(), header, seed };
        Ok(segment)
    }

    /// Puts the header into the prepared file at `path`; durable when this returns.
    pub fn begin(path: &Path, header: Header) -> Result<Segment, WalError> {
        let write = || -> io::Result<File> {
            let file = OpenOptions::new().read(true).write(true).open(path)?;
            file.write_all_at(&header.encode(), 0)?;
            file.sync_data()?;
            Ok(file)
        };
        let file = write().map_err(|source| WalError::io("begin", path, source))?;
        let bytes = header.encode();
        let seed = u32::from_le_bytes([bytes[60], bytes[61], bytes[62], bytes[63]]);
        Ok(Segment { file: Arc::new(file), path: path.into(), header, seed })
    }

    /// The same under the name that its number has while in use; the new name is durable when this returns.
    pub fn put_in_use(self, dir: &Path) -> Result<Segment, WalError> {
        let path = path_of(dir, self.header.number, IN_USE);
        std::fs::rename(&self.path, &path).map_err(|source| WalError::io("rename", &self.path, source))?;
        sync_dir(dir)?;
        Ok(Segment { path: path.into(), ..self })
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.header.number
    }

    /// The seq of the first entry that it holds or will hold.
    pub fn first_seq(&self) -> Seq {
        self.header.first_seq
    }

    /// The journal that it belongs to.
    pub(super) fn uuid(&self) -> [u8; 16] {
        self.header.uuid
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.header.size
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the checksums of frames and marks begin with.
    pub(super) fn seed(&self) -> u32 {
        self.seed
    }

    /// Its frames, from the first on.
    pub(super) fn frames(&self) -> FrameReader<'_> {
        FrameReader::new(self)
    }

    /// What the marks call durable; none where neither can be read.
    pub(super) fn marked(&self) -> Result<Option<Seq>, WalError> {
        let mut marked = None;
        for at in MARKS_AT {
            let mut bytes = [0; MARK_BYTES];
            self.read(&mut bytes, at)?;
            marked = marked.max(super::frame::decode_mark(self.seed, &bytes));
        }
        Ok(marked)
    }

    /// Fills `bytes` from the file at `at`.
    pub(super) fn read(&self, bytes: &mut [u8], at: u64) -> Result<(), WalError> {
        self.file.read_exact_at(bytes, at).map_err(|source| WalError::io("read", &self.path, source))
    }

    /// Writes `bytes` to the file at `at`.
    pub(super) fn write(&self, bytes: &[u8], at: u64) -> Result<(), WalError> {
        self.file.write_all_at(bytes, at).map_err(|source| WalError::io("write", &self.path, source))
    }

    /// Makes what was written so far durable.
    pub(super) fn sync(&self) -> Result<(), WalError> {
        self.file.sync_data().map_err(|source| WalError::io("sync", &self.path, source))
    }

    /// Hands each frame with entries to `visit`, in order, up to the entry `last`: how a closed segment is sealed.
    pub fn visit(&self, last: Seq, visit: &mut Visit<'_>) -> Result<(), WalError> {
        let mut frames = self.frames();
        while frames.next_seq() <= last {
            let missing = Seqs::new(frames.next_seq(), last);
            match frames.next()? {
                Step::Frame { frame, offset } => self.show(&frames, frame, offset, visit)?,
                Step::End(why) => return Err(WalError::damaged(&self.path, frames.position(), why, missing)),
            }
        }
        Ok(())
    }

    /// Hands one frame that `frames` stands behind to `visit`.
    pub(super) fn show(
        &self,
        frames: &FrameReader<'_>,
        frame: Frame,
        offset: u64,
        visit: &mut Visit<'_>,
    ) -> Result<(), WalError> {
        if frame.kind != Kind::Entries {
            return Ok(());
        }
        let payload = frames.payload();
        let Frame { first_seq, count, .. } = frame;
        visit(Visited { segment: self, first_seq, count, payload }).map_err(|Undecodable(why)| {
            WalError::damaged(&self.path, offset, why, Seqs::new(first_seq, first_seq.plus(u64::from(count) - 1)))
        })
    }
}

/// One frame with entries, as recovery and [`Segment::visit`] show it.
#[derive(Debug)]
pub struct Visited<'a> {
    /// The segment that it stands in.
    pub segment: &'a Segment,
    /// The seq of its first entry.
    pub first_seq: Seq,
    /// How many entries it holds.
    pub count: u16,
    /// What was staged.
    pub payload: &'a [u8],
}

/// A payload whose checksum is right, but that can't be understood: says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecodable(pub String);

/// What frames are shown to.
pub type Visit<'v> = dyn FnMut(Visited<'_>) -> Result<(), Undecodable> + 'v;
