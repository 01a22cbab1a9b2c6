//! Opening: the directory, the store, the log, and what the log holds beyond the store replayed through the same fold
//! that runs live; then the threads.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::codec::payload;
use super::codec::record::Names;
use super::error::OpenError;
use super::health::{Health, Progress};
use super::lock::Directory;
use super::published::Published;
use super::refusals::RefusalBook;
use super::sealing::{Job, Sealing};
use super::store::{self, StoreError, StoreOptions};
use super::tail::Tail;
use super::wal::{Recovered, Undecodable, Visited, Wal, WalError, WalOptions};
use super::writer::Writer;
use super::{Durability, Inner, Options};
use crate::offset::{Invalid, Seq};
use crate::positions::State;

/// What helps against damage.
const HELP: &str = "put the directory back from a copy";
/// With less space than this nothing is opened: sled writes while it opens, and must not stop half-way.
const FREE_BYTES_MIN: u64 = 1 << 20;

/// Opens the journal in `dir`, or makes one if the options say so.
pub fn open(dir: &Path, options: Options) -> Result<Inner, OpenError> {
    check(&options)?;
    let directory =
        Directory::take(dir, options.create, &options.holder, options.lock_wait, options.crash_at.as_ref())?;
    check_space(dir)?;
    let store_options = StoreOptions { cache_bytes: options.cache_bytes, crash_at: options.crash_at.clone() };
    let (store, sealer) = store::open(&dir.join("sled"), store_options).map_err(|error| from_store(dir, error))?;
    let sealed = store.sealed();

    let log = dir.join("wal");
    let wal_options = WalOptions { segment_bytes: options.segment_bytes, crash_at: options.crash_at.clone() };
    let mut replay = Replay::new(sealer.state().clone());
    let opened = if directory.created {
        Wal::create(&log, wal_options, directory.uuid).map(|wal| (wal, Recovered { last_seq: Seq::ZERO, cut: None }))
    } else {
        Wal::open(&log, wal_options, directory.uuid, sealed, &mut |shown| replay.take(shown))
    };
    let (wal, recovered) = opened.map_err(|error| from_wal(dir, error))?;
    replay.begin_segment(wal.current().number());
    if directory.created {
        directory.finish_creation(options.crash_at.as_ref())?;
    }
    if let Some(cut) = &recovered.cut {
        tracing::warn!("{cut}");
    }

    let failed = |source| OpenError::Io { file: dir.to_owned(), source };
    let Replay { names, state, tail, .. } = replay;
    let published = Arc::new(Published::new(dir.to_owned(), state.clone(), tail, store));
    let (health, progress) = (Arc::new(Health::default()), Arc::new(Progress::new(finished(&wal, sealed))));
    let stopping = Arc::new(AtomicBool::new(false));
    let (requests, inbox) = channel();
    let (jobs, sealing) = Sealing {
        sealer,
        published: Arc::clone(&published),
        health: Arc::clone(&health),
        progress: Arc::clone(&progress),
        stopping: Arc::clone(&stopping),
        crash_at: options.crash_at,
    }
    .start(requests.clone())
    .map_err(failed)?;
    for closed in wal.closed() {
        // The thread takes jobs until the sender is dropped.
        let _ = jobs.send(Job::Segment(closed.clone()));
    }
    let writer = Writer {
        wal,
        names,
        pending: state,
        published: Arc::clone(&published),
        health: Arc::clone(&health),
        progress,
        sealing: jobs,
        durability: options.durability,
        clock: Arc::clone(&options.clock),
    };
    let writer =
        std::thread::Builder::new().name("tidelog-write".into()).spawn(move || writer.run(&inbox)).map_err(failed)?;
    Ok(Inner {
        published,
        health,
        refusals: RefusalBook::default(),
        clock: options.clock,
        requests,
        stopping,
        writer: Mutex::new(Some(writer)),
        sealing: Mutex::new(Some(sealing)),
        created: directory.created,
        cut: recovered.cut,
        directory,
    })
}

/// The last entry whose seal is finished: a segment that is still in the log may lack the last steps of its seal.
fn finished(wal: &Wal, sealed: Seq) -> Seq {
    wal.closed().front().map_or(sealed, |oldest| sealed.min(oldest.before()))
}

fn check(options: &Options) -> Result<(), Invalid> {
    let (least, most) = (WalOptions::SEGMENT_BYTES_MIN, 1 << 30);
    if !(least..=most).contains(&options.segment_bytes) {
        let why = format!("a segment has {least} to {most} bytes");
        return Err(Invalid::new("segment_bytes", options.segment_bytes, why));
    }
    if options.durability == Durability::Interval(Duration::ZERO) {
        return Err(Invalid::new("durability", "interval 0", "for each commit to be on the device, choose fsync"));
    }
    Ok(())
}

fn check_space(dir: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::Io { file: dir.to_owned(), source };
    let space = rustix::fs::statvfs(dir).map_err(|errno| failed(errno.into()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if free < FREE_BYTES_MIN {
        let why = format!("{free} bytes are free there; it takes {FREE_BYTES_MIN} to open a journal");
        return Err(failed(std::io::Error::new(std::io::ErrorKind::StorageFull, why)));
    }
    Ok(())
}

/// What the log adds to the store.
struct Replay {
    segment: Option<u64>,
    names: Names,
    state: State,
    tail: Tail,
}

impl Replay {
    /// Nothing yet: `state` is the store's.
    fn new(state: State) -> Self {
        let tail = Tail::new(state.seq);
        Replay { segment: None, names: Names::default(), state, tail }
    }

    /// What follows stands in segment `number`.
    fn begin_segment(&mut self, number: u64) {
        if self.segment != Some(number) {
            self.segment = Some(number);
            self.names = Names::default();
            self.tail.begin_segment();
        }
    }

    fn take(&mut self, shown: Visited<'_>) -> Result<(), Undecodable> {
        if shown.first_seq != self.state.seq.next() {
            // A seal takes whole segments.
            let why = format!("seq {} is not expected here: sled/ ends at seq {}", shown.first_seq, self.state.seq);
            return Err(Undecodable(why));
        }
        self.begin_segment(shown.segment.number());
        let (state, tail) = (&mut self.state, &mut self.tail);
        let mut pushed = Ok(());
        payload::decode(shown.first_seq, shown.count, shown.payload, &mut self.names, &mut |entry, record| {
            state.apply(&entry);
            let after = entry.group.as_ref().and_then(|group| state.groups.get(group));
            if pushed.is_ok() {
                pushed = tail.push(&entry, record, after);
            }
        })
        .and(pushed)
        .map_err(|error| Undecodable(error.to_string()))
    }
}

fn from_wal(dir: &Path, error: WalError) -> OpenError {
    match error {
        WalError::Io { path, source, .. } | WalError::NoSpace { path, source, .. } => {
            OpenError::Io { file: path, source }
        }
        WalError::Foreign { path } => {
            let why = format!("{} belongs to another journal", path.display());
            OpenError::Foreign { dir: dir.to_owned(), why }
        }
        WalError::Version { path, found, known } => {
            let why = format!("{} has format version {found}, this program reads version {known}", path.display());
            OpenError::Foreign { dir: dir.to_owned(), why }
        }
        WalError::Damaged { path, offset, why, missing } => {
            OpenError::Damaged { file: path, why: format!("at byte {offset}: {why}; {missing} can't be read; {HELP}") }
        }
        WalError::Gap { dir, missing } => {
            let why = format!("{missing} are neither here nor in sled/, a file is missing; {HELP}");
            OpenError::Damaged { file: dir, why }
        }
        WalError::Behind { dir, last, sealed } => {
            let why = format!(
                "it ends at seq {last}, but sled/ holds entries up to seq {sealed}: one of the two is an older copy, \
                 put both back from the same one"
            );
            OpenError::Damaged { file: dir, why }
        }
        // Not found while opening.
        WalError::TooLarge { .. } | WalError::Poisoned => {
            OpenError::Io { file: dir.join("wal"), source: std::io::Error::other(error) }
        }
    }
}

fn from_store(dir: &Path, error: StoreError) -> OpenError {
    match error {
        StoreError::Io { path, source } => OpenError::Io { file: path, source },
        StoreError::InUse { path } => {
            OpenError::InUse { dir: dir.to_owned(), holder: format!("a process that holds {}", path.display()) }
        }
        StoreError::Damaged { path, what, seqs } => {
            let seqs = match seqs {
                Some((first, last)) => format!("; seqs {first} to {last} can't be read"),
                None => String::new(),
            };
            OpenError::Damaged { file: path, why: format!("{what}{seqs}; {HELP}") }
        }
        StoreError::Newer { .. } => OpenError::Foreign { dir: dir.to_owned(), why: error.to_string() },
        // Not found while opening.
        StoreError::Unstorable { .. } | StoreError::Poisoned { .. } => {
            OpenError::Io { file: dir.join("sled"), source: std::io::Error::other(error) }
        }
    }
}
