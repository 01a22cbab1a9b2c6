//! The directory of a journal: who owns it, and that it is one (DESIGN section 9, promises 4 and 5).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::OpenError;
use super::{CrashHook, crash_point};

/// The version of everything that a journal's directory holds.
pub const FORMAT_VERSION: u32 = 1;

const MAGIC: &str = "tidelog journal";
const FORMAT: &str = "FORMAT";
/// Stands where a journal is being made, until it is whole: nothing was acknowledged by then.
const CREATING: &str = "FORMAT.creating";
const LOCK: &str = "LOCK";
/// What a journal consists of besides: without one of them it is damaged.
const PARTS: [&str; 2] = ["wal", "sled"];
/// Where the archive files of seals belong. No answer comes from them, so a missing directory is made again.
const ARCHIVE: &str = "archive";
/// Between two looks at a lock that somebody holds.
const LOCK_POLL: Duration = Duration::from_millis(10);
/// More than any holder writes about itself.
const MAX_TEXT: u64 = 4096;

/// The directory, owned until this is dropped.
#[derive(Debug)]
pub struct Directory {
    /// Where.
    pub path: PathBuf,
    /// The journal's own id: its parts name it, so that parts of two journals are never mixed.
    pub uuid: [u8; 16],
    /// Whether this open made it. It becomes a journal by [`Directory::finish_creation`].
    pub created: bool,
    _lock: File,
}

impl Directory {
    /// Takes the directory: waits for the lock up to `wait`, checks that it is a journal of this version, or begins one
    /// where there is nothing and `create` is set. The directory of archive files is there afterwards. `crash_at` is told
    /// each write.
    ///
    /// # Errors
    ///
    /// [`OpenError::NotThere`], [`OpenError::InUse`] with what the holder said of itself, [`OpenError::Foreign`],
    /// [`OpenError::Damaged`] if a part is missing.
    pub fn take(
        path: &Path,
        create: bool,
        holder: &str,
        wait: Duration,
        crash_at: Option<&CrashHook>,
    ) -> Result<Directory, OpenError> {
        match Found::at(path)? {
            Found::Nothing if !create => return Err(OpenError::NotThere { dir: path.to_owned() }),
            Found::Nothing => make_directories(path)?,
            Found::Foreign(why) => return Err(OpenError::Foreign { dir: path.to_owned(), why }),
            Found::Journal => {}
        }
        crash_point(crash_at, "open: lock");
        let lock = lock(path, holder, wait)?;
        // Looked at again: whoever held the lock may have made a journal meanwhile, or lost the marker of one.
        let (uuid, created) = match Found::at(path)? {
            Found::Journal => {
                let format = path.join(FORMAT);
                let text = fs::read_to_string(&format).map_err(|source| io_error(&format, source))?;
                (parse(path, &text)?, false)
            }
            Found::Nothing if create => (begin_creation(path, crash_at)?, true),
            Found::Nothing => return Err(OpenError::NotThere { dir: path.to_owned() }),
            Found::Foreign(why) => return Err(OpenError::Foreign { dir: path.to_owned(), why }),
        };
        if !created {
            for part in PARTS {
                if !path.join(part).is_dir() {
                    return Err(OpenError::Damaged {
                        file: path.join(part),
                        why: "it is missing; put it back from a copy".into(),
                    });
                }
            }
        }
        make_archive(path, crash_at)?;
        Ok(Directory { path: path.to_owned(), uuid, created, _lock: lock })
    }

    /// Makes the directory a journal: from now on it is opened as one, and a missing part is damage. Called once all
    /// parts are there and durable.
    pub fn finish_creation(&self, crash_at: Option<&CrashHook>) -> Result<(), OpenError> {
        sync_directory(&self.path)?;
        crash_point(crash_at, "create: finish");
        fs::rename(self.path.join(CREATING), self.path.join(FORMAT))
            .map_err(|source| io_error(&self.path.join(FORMAT), source))?;
        crash_point(crash_at, "create: named");
        sync_directory(&self.path)?;
        // The directory's own name, too.
        parent_of(&self.path).map_or(Ok(()), sync_directory)
    }
}

/// Makes the directory with all that it lies in, and makes their names durable.
fn make_directories(path: &Path) -> Result<(), OpenError> {
    let missing = made_for(path);
    fs::create_dir_all(path).map_err(|source| io_error(path, source))?;
    missing.into_iter().filter_map(parent_of).try_for_each(sync_directory)
}

/// The directories up from `path` that are not there.
fn made_for(path: &Path) -> Vec<&Path> {
    std::iter::successors(Some(path), |below| parent_of(below)).take_while(|name| !name.exists()).collect()
}

/// Where the name of `path` stands.
fn parent_of(path: &Path) -> Option<&Path> {
    path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

/// What a directory is, as far as its names tell.
enum Found {
    /// Not there, empty, or an unfinished creation.
    Nothing,
    /// It has the marker of a journal.
    Journal,
    /// Something else.
    Foreign(String),
}

impl Found {
    fn at(path: &Path) -> Result<Found, OpenError> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Ok(Found::Foreign("it is a file, not a directory".into()));
            }
            Err(source) => return Err(io_error(path, source)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| io_error(path, source))?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        let has = |name: &str| names.iter().any(|other| other == name);
        if has(FORMAT) {
            return Ok(Found::Journal);
        }
        // A lock file alone is what a crash leaves right after the directory was made.
        if has(CREATING) || names.iter().all(|name| name == LOCK) {
            return Ok(Found::Nothing);
        }
        names.sort();
        names.truncate(5);
        Ok(Found::Foreign(format!(
            "it has no file {FORMAT}, but holds {}; name an empty directory, or put the file back from a copy",
            names.join(", ")
        )))
    }
}

fn lock(path: &Path, holder: &str, wait: Duration) -> Result<File, OpenError> {
    let name = path.join(LOCK);
    let failed = |source| io_error(&name, source);
    let mut file =
        OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&name).map_err(failed)?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if begun.elapsed() < wait => std::thread::sleep(LOCK_POLL),
            Err(TryLockError::WouldBlock) => {
                let mut said = String::new();
                // What can't be read is no reason to hide that the journal is in use.
                let read = file.take(MAX_TEXT).read_to_string(&mut said);
                let holder = match read {
                    Ok(_) if !said.trim().is_empty() => said.trim().to_owned(),
                    _ => "another process, which has not said its name yet".to_owned(),
                };
                return Err(OpenError::InUse { dir: path.to_owned(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
    file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{holder}")).map_err(failed)?;
    Ok(file)
}

/// Clears what an unfinished creation left, and marks a new one.
fn begin_creation(path: &Path, crash_at: Option<&CrashHook>) -> Result<[u8; 16], OpenError> {
    crash_point(crash_at, "create: begin");
    for part in [&PARTS[..], &[ARCHIVE]].concat() {
        let part = path.join(part);
        match fs::remove_dir_all(&part) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(io_error(&part, source)),
            Ok(()) | Err(_) => {}
        }
    }
    let mut uuid = [0; 16];
    getrandom::fill(&mut uuid).map_err(|error| io_error(path, io::Error::other(error.to_string())))?;
    let marker = path.join(CREATING);
    crash_point(crash_at, "create: marker");
    let mut file = File::create(&marker).map_err(|source| io_error(&marker, source))?;
    file.write_all(render(&uuid).as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|source| io_error(&marker, source))?;
    sync_directory(path)?;
    crash_point(crash_at, "create: marked");
    Ok(uuid)
}

/// Makes the directory of archive files, unless it is there, and makes its name durable.
fn make_archive(path: &Path, crash_at: Option<&CrashHook>) -> Result<(), OpenError> {
    let archive = path.join(ARCHIVE);
    if archive.is_dir() {
        return Ok(());
    }
    crash_point(crash_at, "open: archive");
    fs::create_dir(&archive).map_err(|source| io_error(&archive, source))?;
    sync_directory(path)
}

fn render(uuid: &[u8; 16]) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let head = format!("{MAGIC}\nformat {FORMAT_VERSION}\nuuid {hex}\n");
    format!("{head}crc32c {:08x}\n", crc32c::crc32c(head.as_bytes()))
}

fn parse(path: &Path, text: &str) -> Result<[u8; 16], OpenError> {
    let mut lines = text.lines();
    if lines.next() != Some(MAGIC) {
        let why = format!("its file {FORMAT} does not begin with {MAGIC:?}");
        return Err(OpenError::Foreign { dir: path.to_owned(), why });
    }
    let version = lines.next().and_then(|line| line.strip_prefix("format ")?.parse::<u32>().ok());
    if let Some(other) = version.filter(|version| *version != FORMAT_VERSION) {
        let why = format!("it has format {other}, this program reads format {FORMAT_VERSION}");
        return Err(OpenError::Foreign { dir: path.to_owned(), why });
    }
    let hex = lines.next().and_then(|line| line.strip_prefix("uuid ")).unwrap_or_default();
    let byte = |index: usize| u8::from_str_radix(hex.get(2 * index..2 * index + 2)?, 16).ok();
    let mut uuid = [0; 16];
    for (index, place) in uuid.iter_mut().enumerate() {
        *place = byte(index).unwrap_or_default();
    }
    if text != render(&uuid) {
        return Err(OpenError::Damaged {
            file: path.join(FORMAT),
            why: "its content is not what was written; put it back from a copy".into(),
        });
    }
    Ok(uuid)
}

/// Makes the names in a directory durable.
pub fn sync_directory(path: &Path) -> Result<(), OpenError> {
    File::open(path).and_then(|directory| directory.sync_all()).map_err(|source| io_error(path, source))
}

fn io_error(file: &Path, source: io::Error) -> OpenError {
    OpenError::Io { file: file.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(path: &Path, create: bool) -> Result<Directory, OpenError> {
        Directory::take(path, create, "a test", Duration::ZERO, None)
    }

    fn make(path: &Path) -> [u8; 16] {
        let directory = take(path, true).unwrap();
        assert!(directory.created);
        for part in PARTS {
            fs::create_dir(path.join(part)).unwrap();
        }
        directory.finish_creation(None).unwrap();
        directory.uuid
    }

    #[test]
    fn golden_format() {
        let text = "tidelog journal\nformat 1\nuuid 000102030405060708090a0b0c0d0e0f\ncrc32c 5842af02\n";
        let uuid = std::array::from_fn(|index| index as u8);
        assert_eq!(render(&uuid), text);
        assert_eq!(parse(Path::new("j"), text).unwrap(), uuid);
    }

    #[test]
    fn a_journal_is_made_once_and_taken_by_one() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("below/journal");
        assert!(matches!(take(&path, false), Err(OpenError::NotThere { .. })));
        let uuid = make(&path);
        let first = take(&path, true).unwrap();
        assert_eq!((first.created, first.uuid), (false, uuid));
        let second = take(&path, true).unwrap_err().to_string();
        assert!(second.ends_with("is in use by a test"), "{second}");
        drop(first);
        take(&path, false).unwrap();
    }

    #[test]
    fn an_unfinished_creation_is_begun_again_and_a_lost_marker_is_not() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("journal");
        drop(take(&path, true).unwrap());
        fs::create_dir_all(path.join("wal/rest")).unwrap();
        fs::create_dir_all(path.join("archive/rest")).unwrap();
        assert!(matches!(take(&path, false), Err(OpenError::NotThere { .. })));
        make(&path);
        assert!(!path.join("wal/rest").exists() && !path.join("archive/rest").exists());

        fs::remove_file(path.join(FORMAT)).unwrap();
        let lost = take(&path, true).unwrap_err();
        assert!(
            matches!(lost, OpenError::Foreign { .. }) && lost.to_string().contains("LOCK, archive, sled, wal"),
            "{lost}"
        );
    }

    #[test]
    fn a_missing_archive_is_made_again_and_a_present_one_is_kept() {
        let root = tempfile::tempdir().unwrap();
        make(root.path());
        fs::remove_dir(root.path().join(ARCHIVE)).unwrap();
        take(root.path(), false).unwrap();
        fs::write(root.path().join("archive/file"), "kept").unwrap();
        take(root.path(), false).unwrap();
        assert_eq!(fs::read_to_string(root.path().join("archive/file")).unwrap(), "kept");
    }

    #[test]
    fn what_came_while_the_lock_was_waited_for_is_not_cleared() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("journal");
        fs::create_dir(&path).unwrap();
        let held = lock(&path, "another", Duration::ZERO).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| Directory::take(&path, true, "a test", Duration::from_secs(20), None));
            std::thread::sleep(10 * LOCK_POLL);
            fs::create_dir_all(path.join("wal/rest")).unwrap();
            drop(held);
            let refused = waiting.join().unwrap().unwrap_err();
            assert!(matches!(refused, OpenError::Foreign { .. }), "{refused}");
        });
        assert!(path.join("wal/rest").exists());
    }

    #[test]
    fn the_name_of_each_directory_that_is_made_is_made_durable() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b/c");
        assert_eq!(made_for(&path), [&path, &root.path().join("a/b"), &root.path().join("a")]);
        make_directories(&path).unwrap();
        assert_eq!(made_for(&path), [] as [&Path; 0]);
        assert_eq!(made_for(Path::new("none such/b")), [Path::new("none such/b"), Path::new("none such")]);
    }

    #[test]
    fn what_is_foreign_damaged_or_incomplete_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("journal");
        make(&path);
        let text = fs::read_to_string(path.join(FORMAT)).unwrap();
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(path.join(FORMAT), bytes).unwrap();
            assert!(take(&path, true).is_err(), "bit {bit}");
        }
        fs::write(path.join(FORMAT), text.replace("format 1", "format 2")).unwrap();
        let newer = take(&path, true).unwrap_err();
        assert!(newer.to_string().contains("has format 2, this program reads format 1"), "{newer}");
        fs::write(path.join(FORMAT), &text).unwrap();
        take(&path, true).unwrap();
        fs::remove_dir(path.join("sled")).unwrap();
        assert!(matches!(take(&path, true), Err(OpenError::Damaged { .. })));

        let other = root.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("notes.txt"), "mine").unwrap();
        let foreign = take(&other, true).unwrap_err();
        assert!(foreign.to_string().contains("holds notes.txt"), "{foreign}");
        assert!(matches!(take(&other.join("notes.txt"), true), Err(OpenError::Foreign { .. })));
    }
}
