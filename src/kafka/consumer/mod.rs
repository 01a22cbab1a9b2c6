//! A consumer whose positions live in the journal.

mod batch;
mod config;
mod cutter;
mod error;
mod handover;
mod positions;
mod scout;
mod steer;
mod worker;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::batch::CutBatch;
pub use self::batch::{Batch, Record};
pub use self::config::{Config, Cut, Discovery, Health};
use self::cutter::Cutter;
pub use self::error::{BeginError, CommitFailed, Moved, StopReason};
use self::handover::Handover;
use self::scout::{Order, Scout};
use self::steer::{Start, Steer};
use self::worker::Worker;
use super::raw::Reader;
use crate::commit::{Receipt, Refused};
use crate::control::{Control, Kept, StartRequest, Started};
use crate::journal::{CommitError, Journal};
use crate::offset::{BatchNumber, Group, Isolation};
use crate::positions::GroupState;
use crate::results::Puts;

/// How long a stop may take; what has not ended by then is left to itself: a look waits for a silent broker, and writes
/// nothing that matters to a process that ends.
const STOP_WAIT: Duration = Duration::from_secs(4);

/// Hands out batches of a group's topics and commits them to the journal.
///
/// Ranges are contiguous for each partition, so it never makes a hole, in whatever order batches are committed; several
/// tasks may have one in hand. Shared by reference. A thread of its own reads, another one looks at the broker.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let cluster = tidelog::kafka::mock::Mock::new(1)?;
/// # let orders = tidelog::offset::TopicPartition::new("orders".parse()?, 0);
/// # cluster.create_topic(&orders.topic, 1)?;
/// # cluster.produce(&orders, [(None, "a"), (None, "b")])?;
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use tidelog::control::{Control, StartRequest};
/// use tidelog::kafka::{Config, Cut, Discovery, JournaledConsumer, KafkaBroker};
/// use tidelog::offset::Group;
///
/// let broker = Arc::new(KafkaBroker::new(&cluster.config(), clock.clone())?);
/// let control = Control::new(journal, Some(broker), clock);
/// let group = Group::new("default", "loader")?;
/// let request = StartRequest::new(group, vec!["orders".parse()?], "loader-1"); // the owner: one name for each process
/// let cut = Cut { max_wait: Duration::from_millis(50), ..Cut::default() };
/// let config = Config { client: cluster.config(), cut, discovery: Discovery::default() };
/// let consumer = JournaledConsumer::begin(config, control, request)?;
/// let batch = consumer.next_batch(Duration::from_secs(30))?.ok_or("there are records")?;
/// for record in batch.records() {
///     println!("{} {:?}", record.offset(), record.payload());
/// }
/// let read = batch.len();
/// let receipt = consumer.commit(batch)?; // by value, so not twice
/// assert_eq!((receipt.batch.get(), read > 0), (1, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct JournaledConsumer {
    journal: Journal,
    group: Group,
    owner: String,
    handover: Arc<Handover>,
    stop: Arc<AtomicBool>,
    orders: mpsc::Sender<Order>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    started: Started,
    /// Kafka's committed offsets follow as long as this is there.
    mirror: Mutex<Option<Kept>>,
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
        let mirror = Mutex::new(control.mirror.keep(&control));
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
        Ok(JournaledConsumer { journal, group, owner, handover, stop, orders, threads, started, mirror })
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
        self.commit_with(batch, Puts::new())
    }

    /// Writes the batch's ranges and its results to the journal, all of it or nothing; returns when they are durable.
    /// Blocks.
    ///
    /// Exactly once: after a kill at any moment the results in the journal are those of the records below the positions;
    /// what a rollback brings again overwrites what it wrote before, under the same keys. Key the results by what they
    /// come from, and compute them from the batch's records alone ([`results`](crate::results)).
    ///
    /// # Errors
    ///
    /// See [`CommitFailed`]. Then no result was written; but see [`Journal::commit`] on a write that failed.
    pub fn commit_with(&self, batch: Batch, puts: Puts) -> Result<Receipt, CommitFailed> {
        let batch = self.current(batch)?;
        let done = self.journal.commit(batch.commit(&self.group, puts));
        self.settle(batch.into_cut(), done)
    }

    /// [`commit`](JournaledConsumer::commit) without blocking the thread. If it is cancelled, the batch is handed out
    /// again, whether it was committed or not.
    ///
    /// # Errors
    ///
    /// See [`CommitFailed`].
    pub async fn commit_async(&self, batch: Batch) -> Result<Receipt, CommitFailed> {
        self.commit_with_async(batch, Puts::new()).await
    }

    /// [`commit_with`](JournaledConsumer::commit_with) without blocking the thread; cancelled as
    /// [`commit_async`](JournaledConsumer::commit_async) is.
    ///
    /// # Errors
    ///
    /// See [`CommitFailed`].
    pub async fn commit_with_async(&self, batch: Batch, puts: Puts) -> Result<Receipt, CommitFailed> {
        let batch = self.current(batch)?;
        let done = self.journal.commit_async(batch.commit(&self.group, puts)).await;
        self.settle(batch.into_cut(), done)
    }

    /// The batch, unless its records are handed out again: the journal would take it where the epoch is the same still, as
    /// after a hold.
    fn current(&self, batch: Batch) -> Result<Batch, CommitFailed> {
        if self.handover.is_current(batch.generation()) {
            return Ok(batch);
        }
        drop_for_good(batch);
        self.is_anothers()?;
        Err(CommitFailed::Moved(Moved::TakenAnew))
    }

    fn settle(&self, cut: Box<CutBatch>, done: Result<Receipt, CommitError>) -> Result<Receipt, CommitFailed> {
        let generation = cut.generation;
        match done {
            Ok(receipt) => {
                self.handover.done(generation);
                Ok(receipt)
            }
            Err(CommitError::Refused(refused)) => match refused {
                Refused::Fenced { .. } | Refused::OtherIncarnation { .. } => {
                    self.handover.done(generation);
                    self.is_anothers()?;
                    Err(CommitFailed::Moved(Moved::Refused(refused)))
                }
                // Released by now, perhaps, under the same epoch: only this tells the reading thread to begin anew.
                Refused::Held { .. } => {
                    self.handover.give_up(generation);
                    Err(CommitFailed::Moved(Moved::Refused(refused)))
                }
                Refused::Invalid(_)
                | Refused::UnknownGroup { .. }
                | Refused::JournalBehind { .. }
                | Refused::KeyConflict { .. }
                | Refused::TooLarge { .. } => {
                    self.handover.give_back(cut);
                    Err(CommitFailed::Refused(refused))
                }
            },
            Err(CommitError::Unavailable(error)) => {
                self.handover.end(StopReason::Journal(error.to_string()));
                Err(CommitFailed::Journal(error))
            }
        }
    }

    /// Stops where another process has the group.
    fn is_anothers(&self) -> Result<(), StopReason> {
        let owned = |group: &GroupState| (group.owner.clone(), group.epoch);
        match self.journal.with_state(|state| state.groups.get(&self.group).map(owned)) {
            Some((Some(owner), epoch)) if owner != self.owner => {
                let reason = StopReason::Fenced { owner, epoch };
                self.handover.end(reason.clone());
                Err(reason)
            }
            _ => Ok(()),
        }
    }

    /// How it is.
    pub fn health(&self) -> Health {
        self.handover.health()
    }

    /// Stops reading, within a few seconds whatever the broker does. Batches in hands can still be committed; Kafka's
    /// committed offsets follow no further, unless another consumer or a server of this process keeps them.
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
        drop(self.mirror.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Drop for JournaledConsumer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn drop_for_good(batch: Batch) {
    drop(batch.into_cut());
}
