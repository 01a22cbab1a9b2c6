//! Long waits, told: a line on the terminal that counts seconds and goes away, or one message where nobody looks.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A wait shorter than this is not told on a terminal.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
/// A wait shorter than this is not logged.
const LOGGED_AFTER: Duration = Duration::from_secs(3);

/// Whether lines may be shown: set once, with the messages.
static SHOWS: AtomicBool = AtomicBool::new(false);
/// Whether a line stands on the terminal now. Whoever writes to standard error takes it away first.
static SHOWN: Mutex<bool> = Mutex::new(false);

/// Lets waits be shown on standard error, if it is a terminal that can erase a line.
pub(super) fn allow(wanted: bool) {
    let dumb = std::env::var_os("TERM").is_none_or(|value| value == "dumb");
    SHOWS.store(wanted && !dumb && io::stderr().is_terminal(), Ordering::Relaxed);
}

/// A wait. Dropped, it is over.
pub struct Waiting(Option<(mpsc::Sender<()>, JoinHandle<()>)>);

impl Waiting {
    /// Begins to wait for what `what` says, such as `opening the journal`.
    pub fn begin(what: impl Into<String>) -> Waiting {
        let (over, wait) = mpsc::channel();
        let what = what.into();
        let tell = move || match SHOWS.load(Ordering::Relaxed) {
            true => show(&what, &wait),
            false => log(&what, &wait),
        };
        // Without a thread the wait is as long, and silent.
        let thread = std::thread::Builder::new().name("waiting".to_owned()).spawn(tell);
        Waiting(thread.ok().map(|thread| (over, thread)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((over, thread)) = self.0.take() {
            drop(over);
            // It has nothing left to do but to take its line away.
            let _ = thread.join();
        }
    }
}

fn show(what: &str, over: &mpsc::Receiver<()>) {
    let begun = Instant::now();
    while over.recv_timeout(SHOWN_AFTER) == Err(RecvTimeoutError::Timeout) {
        let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = begun.elapsed().as_secs();
        // A terminal that does not take it is no reason to stop.
        *shown = write!(io::stderr(), "\r\x1b[K{what}, {seconds} s").is_ok();
    }
    erase(&mut SHOWN.lock().unwrap_or_else(PoisonError::into_inner));
}

fn log(what: &str, over: &mpsc::Receiver<()>) {
    if over.recv_timeout(LOGGED_AFTER) == Err(RecvTimeoutError::Timeout) {
        tracing::info!("{what} ...");
    }
}

fn erase(shown: &mut bool) {
    if std::mem::take(shown) {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

/// Standard error for messages: never behind a line of a wait.
pub(super) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Held over the write, so that no line comes between.
        let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
        erase(&mut shown);
        io::stderr().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
