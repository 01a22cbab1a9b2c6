//! A consumer whose positions live in the journal.

mod batch;
mod cutter;
mod handover;
mod scout;
mod steer;
mod worker;

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::batch::CutBatch;
pub use self::batch::{Batch, Record};
use self::cutter::Cutter;
use self::handover::Handover;
use self::scout::{Order, Scout};
use self::steer::{Start, Steer};
use self::worker::Worker;
use super::raw::Reader;
use super::{ClientConfig, ClientError};
use crate::commit::{Commit, Receipt, Refused};
use crate::control::{Control, StartError, StartRequest, Started};
use crate::journal::{CommitError, Journal, WriteError};
use crate::offset::{BatchNumber, Epoch, Group, Isolation, Timestamp};

/// How long a stop may take; what has not ended by then is left to itself: a look waits for a silent broker, and writes
/// nothing that matters to a process that ends.
const STOP_WAIT: Duration = Duration::from_secs(4);

/// When a batch is cut: at whichever limit comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Records of a batch.
    pub max_records: NonZeroUsize,
    /// Bytes of keys and values; the record that passes it is the last one.
    pub max_bytes: NonZeroUsize,
    /// How long the first record waits for others.
    pub max_wait: Duration,
}

impl Default for Cut {
    /// 10,000 records, 16 MiB, 1 s.
    fn default() -> Self {
        Cut {
            max_records: NonZeroUsize::new(10_000).unwrap_or(NonZeroUsize::MIN),
            max_bytes: NonZeroUsize::new(16 << 20).unwrap_or(NonZeroUsize::MIN),
            max_wait: Duration::from_secs(1),
        }
    }
}

/// How often a running consumer looks for new partitions and topics, and for what became of those it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discovery {
    /// Never by itself; only when a partition's offset is not there any more.
    Off,
    /// At this interval.
    Every(Duration),
}

impl Default for Discovery {
    fn default() -> Self {
        Discovery::Every(Duration::from_secs(10))
    }
}

/// How a consumer reads.
#[derive(Debug, Clone)]
pub struct Config {
    /// The cluster; the group's name is what the brokers' access rules see.
    pub client: ClientConfig,
    /// When a batch is cut.
    pub cut: Cut,
    /// How often it looks.
    pub discovery: Discovery,
}

/// How a consumer is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// The epoch that it reads under.
    pub epoch: Epoch,
    /// How often it looks.
    pub discovery: Discovery,
    /// The last look that the broker answered.
    pub last_look: Option<Timestamp>,
    /// Why the newest look failed.
    pub look_failed: Option<String>,
    /// What the newest look found wrong and did not correct: a topic that is gone.
    pub problems: Vec<String>,
    /// The newest error of reading; librdkafka tries again by itself.
    pub reading_failed: Option<String>,
    /// Why it waits with taking new positions: the group is held, or the broker silent.
    pub waiting: Option<String>,
}

/// Why there are no more batches.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    /// It was told to stop.
    #[error("the consumer was stopped")]
    Stopped,
    /// Another process started the group.
    #[error("{owner} has started the group (epoch {epoch}); this consumer stops")]
    Fenced {
        /// That process.
        owner: String,
        /// The group's epoch.
        epoch: Epoch,
    },
    /// The positions can't be taken: a policy or the journal forbids it.
    #[error("{0}")]
    Refused(String),
    /// The journal takes no more writes.
    #[error("{0}")]
    Journal(String),
    /// Something that must not happen.
    #[error("{0}")]
    Broken(String),
}

/// Why a consumer could not begin.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// There is no start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is no client.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The system gives no thread.
    #[error("no thread for the consumer: {0}")]
    Thread(#[from] std::io::Error),
}

/// What became of a batch that has no receipt. The journal is unchanged by it.
#[derive(Debug, thiserror::Error)]
pub enum CommitFailed {
    /// The group was moved since the batch was read. The batch is dropped; the consumer takes the new positions by itself
    /// and goes on: ask for the next batch.
    #[error("dropped: {0}; the consumer goes on from the new positions")]
    Moved(Refused),
    /// Another process has the group, or the consumer can't go on.
    #[error(transparent)]
    Stopped(#[from] StopReason),
    /// Refused for a reason of its own; the batch is handed out again.
    #[error(transparent)]
    Refused(Refused),
    /// The journal could not make it durable.
    #[error(transparent)]
    Journal(#[from] WriteError),
}

/// Hands out batches of a group's topics and commits them to the journal.
///
/// Ranges are contiguous for each partition, so it never makes a hole, in whatever order batches are committed; several
/// tasks may have one in hand. Shared by reference. A thread of its own reads, another one looks at the broker.
pub struct JournaledConsumer {
    journal: Journal,
    group: Group,
    owner: String,
    handover: Arc<Handover>,
    stop: Arc<AtomicBool>,
    orders: mpsc::Sender<Order>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    started: Started,
}

impl JournaledConsumer {
    /// Starts the group as `request` says, with `control`'s journal and broker, and reads from where it continues. The
    /// first record of each partition is the planned one, or the first readable above it.
    ///
    /// The same request is made again, as the same owner, when the group is moved; an owner is one consumer. Blocks as
    /// [`start`](crate::control::start()) does.
    ///
    /// # Errors
    ///
    /// The start was refused, or no client can be made of the properties.
    pub fn begin(config: Config, control: Control, request: StartRequest) -> Result<JournaledConsumer, BeginError> {
        let Control { journal, clock, .. } = control.clone();
        let StartRequest { group, owner, .. } = request.clone();
        let newest = journal.subscribe();
        let steer = Arc::new(Steer::new(control, request));
        let started = steer.start()?;
        let start = Start::from(started.clone());
        let isolation = journal.group(&group).map_or(Isolation::default(), |group| group.isolation);
        let reader = Reader::new(&config.client, &group, isolation)?;
        if config.discovery == Discovery::Off {
            tracing::warn!("looking for new partitions and topics is off: they are found at the next start");
        }
        let (handover, stop) = (Arc::new(Handover::default()), Arc::new(AtomicBool::new(false)));
        handover.set_health(|health| health.discovery = config.discovery);
        let (orders, scouts_orders) = mpsc::channel();
        let (reports, workers_reports) = mpsc::channel();
        let assigned = scout::Assigned::default();
        let scout = Scout {
            steer: Arc::clone(&steer),
            discovery: config.discovery,
            clock: Arc::clone(&clock),
            assigned: Arc::clone(&assigned),
            handover: Arc::clone(&handover),
            orders: scouts_orders,
            reports,
        };
        let worker = Worker {
            cutter: Cutter::new(config.cut, Arc::clone(reader.handle())),
            reader,
            journal: journal.clone(),
            group: group.clone(),
            owner: owner.clone(),
            clock,
            steer,
            handover: Arc::clone(&handover),
            assigned,
            orders: orders.clone(),
            reports: workers_reports,
            stop: Arc::clone(&stop),
            newest,
            epoch: start.epoch,
            number: BatchNumber::ZERO,
            order: 0,
            generation: 0,
            ask_again: None,
        };
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let threads = vec![
            named("kafka-look").spawn(move || scout.run())?,
            named("kafka-read").spawn(move || {
                let handover = Arc::clone(&worker.handover);
                let ended = catch_unwind(AssertUnwindSafe(|| worker.run(&start)));
                if ended.is_err() {
                    handover.end(StopReason::Broken("the reading thread panicked".to_owned()));
                }
            })?,
        ];
        let threads = Mutex::new(threads);
        Ok(JournaledConsumer { journal, group, owner, handover, stop, orders, threads, started })
    }

    /// What its first start came to.
    pub fn started(&self) -> &Started {
        &self.started
    }

    /// The next batch, or none within `timeout`. Blocks.
    ///
    /// # Errors
    ///
    /// There will be no more, and why.
    pub fn next_batch(&self, timeout: Duration) -> Result<Option<Batch>, StopReason> {
        let until = Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.handover.take_within(left)? {
                Some(batch) if self.is_overtaken(&batch) => drop_for_good(batch),
                other => return Ok(other),
            }
        }
    }

    /// The next batch, whenever it comes. May be cancelled; no batch is lost by that.
    ///
    /// # Errors
    ///
    /// There will be no more, and why.
    pub async fn next_batch_async(&self) -> Result<Batch, StopReason> {
        loop {
            match self.handover.taken().await? {
                batch if self.is_overtaken(&batch) => drop_for_good(batch),
                batch => return Ok(batch),
            }
        }
    }

    /// Whether the group was moved since the batch was read: it would be processed for nothing.
    fn is_overtaken(&self, batch: &Batch) -> bool {
        let epoch = self.journal.with_state(|state| state.groups.get(&self.group).map(|group| group.epoch));
        epoch.is_some_and(|epoch| epoch > batch.epoch())
    }

    /// Writes the batch's ranges to the journal; returns when they are durable. Blocks.
    ///
    /// # Errors
    ///
    /// See [`CommitFailed`].
    pub fn commit(&self, batch: Batch) -> Result<Receipt, CommitFailed> {
        let (cut, key) = batch.into_parts();
        let done = self.journal.commit(commit_of(&self.group, &cut, key));
        self.settle(cut, done)
    }

    /// The same without blocking the thread.
    ///
    /// # Errors
    ///
    /// See [`CommitFailed`].
    pub async fn commit_async(&self, batch: Batch) -> Result<Receipt, CommitFailed> {
        let (cut, key) = batch.into_parts();
        let done = self.journal.commit_async(commit_of(&self.group, &cut, key)).await;
        self.settle(cut, done)
    }

    fn settle(&self, cut: Box<CutBatch>, done: Result<Receipt, CommitError>) -> Result<Receipt, CommitFailed> {
        let generation = cut.generation;
        match done {
            Ok(receipt) => {
                self.handover.done(generation);
                Ok(receipt)
            }
            Err(CommitError::Refused(refused)) => {
                let fenced = matches!(refused, Refused::Fenced { .. } | Refused::OtherIncarnation { .. });
                if !fenced {
                    self.handover.give_back(cut);
                    return Err(CommitFailed::Refused(refused));
                }
                self.handover.done(generation);
                let state = self
                    .journal
                    .with_state(|state| state.groups.get(&self.group).map(|group| (group.owner.clone(), group.epoch)));
                match state {
                    Some((Some(owner), epoch)) if owner != self.owner => {
                        let reason = StopReason::Fenced { owner, epoch };
                        self.handover.end(reason.clone());
                        Err(CommitFailed::Stopped(reason))
                    }
                    _ => Err(CommitFailed::Moved(refused)),
                }
            }
            Err(CommitError::Unavailable(error)) => {
                self.handover.end(StopReason::Journal(error.to_string()));
                Err(CommitFailed::Journal(error))
            }
        }
    }

    /// How it is.
    pub fn health(&self) -> Health {
        self.handover.health()
    }

    /// Stops reading, within a few seconds whatever the broker does. Batches in hands can still be committed.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.handover.end(StopReason::Stopped);
        let _ = self.orders.send(Order::Stop);
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let until = Instant::now() + STOP_WAIT;
        for thread in threads {
            while !thread.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
            if !thread.is_finished() {
                let name = thread.thread().name().unwrap_or_default().to_owned();
                tracing::info!("thread {name} did not end within {STOP_WAIT:?}; it is left to itself");
            } else if thread.join().is_err() {
                tracing::error!("a thread of the consumer panicked");
            }
        }
    }
}

impl Drop for JournaledConsumer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn drop_for_good(batch: Batch) {
    drop(batch.into_parts());
}

/// The commit of a batch.
fn commit_of(group: &Group, cut: &CutBatch, key: Option<String>) -> Commit {
    let commit = Commit::new(group.clone(), cut.epoch, cut.batch_time, cut.ranges.clone());
    let mut commit = commit.expect("a batch has ranges, one for each partition");
    for (topic, id) in &cut.topic_ids {
        commit = commit.with_topic_id(topic.clone(), *id);
    }
    match key {
        Some(key) => commit.with_key(key).expect("a key is checked when it is set"),
        None => commit,
    }
}
