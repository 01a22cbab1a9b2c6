//! The command that works on a batch: one process a batch, records on its standard input, exit 0 commits.

use std::cell::Cell;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin};

use crate::cli::exit::Failure;
use crate::cli::records::RecordFormat;
use crate::cli::stop::Stop;
use crate::kafka::Batch;
use crate::offset::Group;

/// What is written to the child at once, in bytes: a pipe's size.
const CHUNK: usize = 64 << 10;
/// The first pause before a batch is tried again; doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long a command may go on after SIGTERM or SIGINT before it is told to end, and then before it is killed. Together
/// with the rest of a graceful stop this stays within 10 seconds.
const GRACE: Duration = Duration::from_secs(3);
const LAST_GRACE: Duration = Duration::from_millis(500);
/// What fits into one variable of the environment: Linux refuses 128 KiB.
const LONGEST_VARIABLE: usize = 120_000;

/// A command, and how often it may fail.
#[derive(Debug, Clone)]
pub struct BatchCommand {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// How records are written to it.
    pub format: RecordFormat,
    /// How often a batch is tried again.
    pub retries: u32,
}

/// How a batch fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worked {
    /// The command succeeded.
    Done,
    /// The process is to stop, and the command did not finish.
    Stopped,
}

impl BatchCommand {
    /// Hands `batch` to the command until it succeeds.
    ///
    /// # Errors
    ///
    /// It failed once and `retries` times more, or could not be started at all.
    pub async fn work(&self, group: &Group, batch: &Batch, key: &str, stop: &mut Stop) -> Result<Worked, Failure> {
        let mut pause = FIRST_PAUSE;
        let mut failed = 0;
        loop {
            let ended = match self.attempt(group, batch, key, stop).await {
                Ok(Some(status)) if status.success() => return Ok(Worked::Done),
                Ok(Some(status)) => format!("{status}"),
                Ok(None) => return Ok(Worked::Stopped),
                Err(error) if is_lasting(&error) => {
                    return Err(Failure::GaveUp(format!("{:?} can't be run: {error}", self.words.join(" "))));
                }
                Err(error) => format!("it could not be run: {error}"),
            };
            if stop.is_asked() {
                return Ok(Worked::Stopped);
            }
            if failed == self.retries {
                let command = self.words.join(" ");
                let times = failed + 1;
                return Err(Failure::GaveUp(format!(
                    "batch {} of group {group} is not committed: {command:?} failed {times} times, last: {ended}",
                    batch.number()
                )));
            }
            failed += 1;
            tracing::warn!("batch {}: {ended}; again in {pause:?} ({failed} of {})", batch.number(), self.retries);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop.asked() => return Ok(Worked::Stopped),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Runs the command once; none if it had to be ended because the process stops.
    async fn attempt(
        &self,
        group: &Group,
        batch: &Batch,
        key: &str,
        stop: &mut Stop,
    ) -> io::Result<Option<ExitStatus>> {
        let mut child = self.spawn(group, batch, key)?;
        let mut input = child.stdin.take();
        let fed_whole = Cell::new(false);
        let ended = {
            let work = async {
                // A command that has enough closes its input, or ends: only its exit status counts.
                tokio::select! {
                    status = child.wait() => return status,
                    fed = feed(&mut input, batch, self.format) => match fed {
                        Ok(()) => fed_whole.set(true),
                        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                        Err(error) => return Err(error),
                    },
                }
                drop(input.take());
                child.wait().await
            };
            tokio::pin!(work);
            tokio::select! {
                status = &mut work => Some(status),
                // It is fed on meanwhile. Whoever stops us may have stopped the command too: exit 0 of one that was not
                // given all of its batch would say too much.
                () = stop.asked() => match tokio::time::timeout(GRACE, &mut work).await {
                    Ok(Ok(status)) if status.success() && !fed_whole.get() => return Ok(None),
                    ended => ended.ok(),
                },
            }
        };
        match ended {
            Some(status) => status.map(Some),
            None => end(child).await,
        }
    }

    fn spawn(&self, group: &Group, batch: &Batch, key: &str) -> io::Result<Child> {
        let Some((program, arguments)) = self.words.split_first() else {
            return Err(io::Error::other("no command"));
        };
        let mut command = tokio::process::Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-C is for us: a command that ended by it in the middle of its batch might call that a success.
            .process_group(0)
            .env("TIDELOG_GROUP", group.group())
            .env("TIDELOG_APP", group.app())
            .env("TIDELOG_BATCH", batch.number().to_string())
            .env("TIDELOG_BATCH_TIME", batch.batch_time().to_string())
            .env("TIDELOG_EPOCH", batch.epoch().to_string())
            .env("TIDELOG_KEY", key)
            .env("TIDELOG_REPLAYING", if batch.is_replaying() { "1" } else { "0" })
            .env_remove("TIDELOG_RANGES");
        let ranges = serde_json::to_string(batch.ranges())?;
        if ranges.len() <= LONGEST_VARIABLE {
            command.env("TIDELOG_RANGES", ranges);
        } else {
            tracing::warn!("batch {}: too many ranges for a variable; TIDELOG_RANGES is not set", batch.number());
        }
        command.spawn()
    }
}

/// Writes the records to the child.
async fn feed(input: &mut Option<ChildStdin>, batch: &Batch, format: RecordFormat) -> io::Result<()> {
    let Some(input) = input else { return Ok(()) };
    let mut chunk = Vec::with_capacity(CHUNK + (CHUNK >> 2));
    let mut records = batch.records();
    loop {
        // Records are borrowed from the batch and not held while waiting.
        let more = fill(&mut chunk, &mut records, format)?;
        input.write_all(&chunk).await?;
        chunk.clear();
        if !more {
            return input.flush().await;
        }
    }
}

fn fill<'a>(
    chunk: &mut Vec<u8>,
    records: &mut impl Iterator<Item = crate::kafka::Record<'a>>,
    format: RecordFormat,
) -> io::Result<bool> {
    while chunk.len() < CHUNK {
        let Some(record) = records.next() else { return Ok(false) };
        format.write(&record, chunk)?;
    }
    Ok(true)
}

/// Whether trying again is pointless.
fn is_lasting(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// Tells the command to end, then kills it: its batch is not committed, whatever its exit status.
async fn end(mut child: Child) -> io::Result<Option<ExitStatus>> {
    tracing::warn!("the command goes on; telling it to end");
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    if tokio::time::timeout(LAST_GRACE, child.wait()).await.is_err() {
        child.kill().await?;
    }
    Ok(None)
}
