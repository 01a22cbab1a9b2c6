//! `server.json` in the journal's directory: where the process that holds the journal can be asked, for those on the same
//! machine who may read the directory.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file's name.
const NAME: &str = "server.json";
/// More than one of ours has.
const MAX_BYTES: u64 = 4_096;

/// What the file says.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use tidelog::server::ServerNote;
///
/// let (id, url, token) = ("9f3c".to_owned(), "http://127.0.0.1:8380".to_owned(), "0123456789abcdef".to_owned());
/// let note = ServerNote::new(dir.path(), id, url, token)?;
/// let _written = note.write(dir.path())?;
/// assert_eq!(ServerNote::read(dir.path())?, Some(note));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerNote {
    /// Where the server listens, on loopback.
    pub url: String,
    /// The token that it wants there, for everything.
    pub token: String,
    /// The process.
    pub pid: u32,
    /// The journal's id: whoever answers at that address must say the same.
    pub journal: String,
    /// The directory that is held, as the system tells it from others: a copy of it, note and id included, is another one.
    directory: String,
}

impl ServerNote {
    /// A note of this process, for the journal in `directory`.
    ///
    /// # Errors
    ///
    /// The directory can't be looked at.
    pub fn new(directory: &Path, journal: String, url: String, token: String) -> io::Result<Self> {
        Ok(ServerNote { url, token, pid: std::process::id(), journal, directory: identity(directory)? })
    }

    /// Reads the note in a journal's directory; none if there is none, or it came there with a copy of another directory.
    ///
    /// # Errors
    ///
    /// It can't be read, or is no note.
    pub fn read(journal: &Path) -> io::Result<Option<ServerNote>> {
        let path = journal.join(NAME);
        let length = match fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if length > MAX_BYTES {
            return Err(io::Error::other(format!("{} is no note of a server", path.display())));
        }
        let note: ServerNote = serde_json::from_slice(&fs::read(&path)?)?;
        Ok(if note.directory == identity(journal)? { Some(note) } else { None })
    }

    /// Writes the note, readable by the owner only, in place of one that was left behind. It is gone when the returned
    /// value is.
    pub fn write(&self, journal: &Path) -> io::Result<WrittenNote> {
        let path = journal.join(NAME);
        let draft = journal.join("server.json.writing");
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        serde_json::to_writer(&mut file, self)?;
        file.write_all(b"\n")?;
        fs::rename(&draft, &path)?;
        Ok(WrittenNote { path })
    }
}

/// Device and inode.
fn identity(directory: &Path) -> io::Result<String> {
    let metadata = fs::metadata(directory)?;
    Ok(format!("{}:{}", metadata.dev(), metadata.ino()))
}

/// A note that is there; dropped, it is removed.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let (id, url, token) = ("9f3c".to_owned(), "http://127.0.0.1:8380".to_owned(), "0123456789abcdef".to_owned());
/// use tidelog::server::ServerNote;
///
/// let written = ServerNote::new(dir.path(), id, url, token)?.write(dir.path())?;
/// drop(written); // the server has ended
/// assert_eq!(ServerNote::read(dir.path())?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct WrittenNote {
    path: PathBuf,
}

impl Drop for WrittenNote {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, "{} could not be removed", self.path.display());
        }
    }
}
