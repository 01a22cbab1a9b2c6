//! Who answers a command that reads or steers: the HTTP API, wherever the journal is. If a server holds it, or one is
//! named, that one is asked (`there`); if nobody does, the journal is opened, and the very same router is asked within
//! this process (`here`). So the answers, the errors and the exit codes are the same either way.

mod ask;
mod here;
mod problem;
mod there;
mod token;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;

pub use self::ask::{Answer, Ask};
use self::here::Here;
pub use self::problem::{Problem, in_flags};
use self::there::There;
use crate::broker::Broker;
use crate::cli::exit::Failure;
use crate::cli::kafka::{self, KafkaArgs};
use crate::cli::opening;
use crate::cli::progress::Waiting;
use crate::control::Limits;
use crate::journal::OpenError;
use crate::server::ServerNote;

/// How long another process is waited for that holds the journal: as long as the journal's own default.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// Between two looks for the note of a server that is about to begin.
const LOCK_POLL: Duration = Duration::from_millis(100);

/// Which journal, and through whom.
#[derive(Debug, Clone, Args)]
pub struct PlaceArgs {
    /// Directory of the journal, where a server that holds it is found too [env: TIDELOG_JOURNAL]
    /// [default: tidelog-journal]
    #[arg(short, long, value_name = "DIR")]
    journal: Option<PathBuf>,
    /// Ask this server in place of a directory, such as http://127.0.0.1:8380 [env: TIDELOG_SERVER]
    #[arg(long, conflicts_with = "journal", value_name = "URL")]
    server: Option<String>,
    /// File with the token for that server, alone or in lines role:name:token [env: TIDELOG_TOKEN, also the token itself]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Where to ask. What a flag says goes before what the environment says, and a server before a directory.
enum Place {
    Server(String),
    Journal(PathBuf),
}

impl PlaceArgs {
    fn place(&self) -> Place {
        let named = |variable| std::env::var_os(variable).filter(|value| !value.is_empty());
        if let Some(url) = &self.server {
            return Place::Server(url.clone());
        }
        if let Some(dir) = &self.journal {
            return Place::Journal(dir.clone());
        }
        match named("TIDELOG_SERVER") {
            Some(url) => Place::Server(url.to_string_lossy().into_owned()),
            None => Place::Journal(named("TIDELOG_JOURNAL").map_or_else(|| "tidelog-journal".into(), PathBuf::from)),
        }
    }
}

/// What a command needs of whoever answers.
#[derive(Default)]
pub struct Needs<'a> {
    /// Whether a journal is made where there is none.
    pub create: bool,
    /// How Kafka is reached, for commands that look at it.
    pub kafka: Option<&'a KafkaArgs>,
    /// Whether the command means nothing without a broker.
    pub must_look: bool,
    /// Whether the command asks no broker: it is only for Kafka's committed offsets, which follow.
    pub unchecked: bool,
    /// How long things may take.
    pub limits: Limits,
}

impl Needs<'_> {
    fn broker(&self) -> Result<Option<Arc<dyn Broker>>, Failure> {
        match self.kafka {
            Some(kafka) if self.must_look => kafka::broker(&kafka.needed()?).map(Some),
            Some(kafka) => kafka.broker(),
            None => Ok(None),
        }
    }
}

/// Whoever answers. Dropped, a journal that was opened for it is closed.
pub enum Seat {
    /// This process, which holds the journal meanwhile.
    Here(Here),
    /// A server.
    There(There),
}

impl Seat {
    /// Finds who answers: the server that is named; else the one that the directory names, if it answers; else this
    /// process, once nobody else holds the journal.
    ///
    /// # Errors
    ///
    /// The server can't be reached, or reads from other brokers than the ones named; the journal can't be opened; it is
    /// in use by a process that doesn't serve it.
    pub fn take(place: &PlaceArgs, needs: &Needs<'_>) -> Result<Seat, Failure> {
        match place.place() {
            Place::Server(url) => {
                let there = There::at(&url, token::given(place.token_file.as_deref())?)?;
                check_brokers(&there, needs)?;
                Ok(Seat::There(there))
            }
            Place::Journal(dir) => Self::of(&dir, needs),
        }
    }

    fn of(dir: &Path, needs: &Needs<'_>) -> Result<Seat, Failure> {
        let (begun, mut broker) = (Instant::now(), None);
        loop {
            if let Some(there) = noted(dir)? {
                check_brokers(&there, needs)?;
                return Ok(Seat::There(there));
            }
            // Before a journal may be made: a command that can't do its work makes none.
            let broker = match &broker {
                None => broker.insert(needs.broker()?).clone(),
                Some(broker) => broker.clone(),
            };
            match opening::within(dir, needs.create, LOCK_POLL) {
                Ok(journal) => return Here::over(journal, broker, needs).map(Seat::Here),
                // Whoever holds it may be about to note where it serves, or about to end.
                Err(Failure::Open(OpenError::InUse { .. })) if begun.elapsed() < LOCK_WAIT => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Takes a seat, asks one thing, and leaves again before the answer is used: whoever reads it may take long.
    pub fn ask_once(place: &PlaceArgs, needs: &Needs<'_>, ask: Ask) -> Result<Answer, Failure> {
        Seat::take(place, needs)?.ask(ask)
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    ///
    /// The problem that was answered in place of it; or there was no answer.
    pub fn ask(&self, ask: Ask) -> Result<Answer, Failure> {
        let waiting = Waiting::begin("waiting for an answer");
        let answer = match self {
            Seat::Here(here) => here.ask(ask),
            Seat::There(there) => there.ask(ask),
        };
        drop(waiting);
        let (status, body) = answer?;
        if status.is_success() { Ok(Answer::new(body)) } else { Err(problem::read(status, &body)) }
    }
}

/// A runtime on this thread. Dropped, it leaves to itself what still waits: for a broker, or a name to be resolved.
struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    fn new() -> Result<Runtime, Failure> {
        let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
        built.map(|runtime| Runtime(Some(runtime))).map_err(|source| Failure::System { what: "starting", source })
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        match &self.0 {
            Some(runtime) => runtime.block_on(future),
            None => unreachable!("it is there until the drop"),
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The server that the note in the journal's directory names; none if there is no note, or it was left behind by a
/// process that was killed.
fn noted(dir: &Path) -> Result<Option<There>, Failure> {
    let note = match ServerNote::read(dir) {
        Ok(Some(note)) => note,
        Ok(None) => return Ok(None),
        Err(error) => {
            tracing::debug!("the note of a server in {} can't be read: {error}", dir.display());
            return Ok(None);
        }
    };
    match There::at(&note.url, Some(note.token)) {
        Ok(there) if there.journal() == note.journal => Ok(Some(there)),
        // Another journal's server has got the port of the one that was killed.
        Ok(there) => {
            tracing::debug!("the note of a server in {} was left behind: {} holds another", dir.display(), there.url());
            Ok(None)
        }
        // A process that is there and does not answer holds the journal: opening it would fail likewise, and say less.
        Err(silent @ Failure::Silent { .. }) if is_alive(note.pid) => Err(silent),
        Err(gone) => {
            tracing::debug!("the note of a server in {} was left behind: {gone}", dir.display());
            Ok(None)
        }
    }
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    // One that may not be signalled is there too.
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Refuses brokers that are not the server's: it would answer for another cluster than the one that was meant.
fn check_brokers(there: &There, needs: &Needs<'_>) -> Result<(), Failure> {
    let Some(kafka) = needs.kafka.filter(|_| !needs.unchecked) else { return Ok(()) };
    if let Some(flag) = kafka.client_flag() {
        let why = "the server has a Kafka client of its own; leave it out";
        return Err(Failure::Usage(format!("{flag}: {why}")));
    }
    // Of a file only the brokers count, as the server reaches them its own way.
    let Some(given) = kafka.brokers()? else { return Ok(()) };
    let given = given.as_str();
    let set = |text: &str| text.split(',').map(|broker| broker.trim().to_owned()).collect::<BTreeSet<_>>();
    let own = there.brokers();
    if own.is_some_and(|own| set(own) == set(given)) {
        return Ok(());
    }
    let own = own.unwrap_or("no broker at all");
    let what = "leave --brokers out (and TIDELOG_BROKERS unset) to go by the server's";
    Err(Failure::Usage(format!("--brokers {given}: the server at {} reads from {own}; {what}", there.url())))
}
