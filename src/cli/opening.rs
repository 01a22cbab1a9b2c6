//! Opening the journal, and who acts on it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::broker::Broker;
use crate::cli::args::duration;
use crate::cli::exit::Failure;
use crate::cli::progress::Waiting;
use crate::cli::times;
use crate::control::Control;
use crate::journal::{Durability, Journal, Options};

/// Opens the journal, or makes one and says so.
pub fn or_new(dir: &Path, durability: Durability) -> Result<Journal, Failure> {
    open(dir, Options { create: true, durability, ..options() })
}

/// Opens a journal that is there, or with `create` makes one and says so; waits for another holder up to `wait`.
pub fn within(dir: &Path, create: bool, wait: Duration) -> Result<Journal, Failure> {
    open(dir, Options { create, lock_wait: wait, ..options() })
}

fn options() -> Options {
    let command = std::env::args().nth(1).unwrap_or_default();
    let holder = format!("process {} (tidelog {command})", std::process::id());
    Options { holder, ..Options::new(Arc::new(times::now)) }
}

fn open(dir: &Path, options: Options) -> Result<Journal, Failure> {
    let waiting = Waiting::begin(format!("opening the journal in {}", dir.display()));
    let journal = Journal::open(dir, options);
    drop(waiting);
    let journal = journal?;
    if journal.created() {
        let full = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        tracing::warn!("made a new journal in {}", full.display());
    }
    Ok(journal)
}

/// The journal and a broker, to be steered.
pub fn control(journal: Journal, broker: Option<Arc<dyn Broker>>) -> Control {
    Control::new(journal, broker, Arc::new(times::now))
}

/// Reads `fsync`, `process` or `interval=TIME`.
pub fn durability(text: &str) -> Result<Durability, String> {
    match (text, text.strip_prefix("interval=")) {
        ("fsync", _) => Ok(Durability::Fsync),
        ("process", _) => Ok(Durability::Process),
        (_, Some(time)) => match duration(time)? {
            Duration::ZERO => Err("an interval above 0".to_owned()),
            time => Ok(Durability::Interval(time)),
        },
        _ => Err("write fsync, process or interval=200ms".to_owned()),
    }
}

/// Closes a journal that was only read: a failure to tidy up changes no answer.
pub fn close(journal: Journal) {
    if let Err(error) = journal.close() {
        tracing::warn!("{error}");
    }
}

/// Who acts: what was given, else the login name.
pub fn actor(given: Option<String>) -> String {
    let named = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    given
        .or_else(|| named("LOGNAME"))
        .or_else(|| named("USER"))
        .unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
}
