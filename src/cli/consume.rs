//! `tidelog consume`

mod ends;
mod hand;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Args;

use self::ends::Ends;
use self::hand::{Handed, Hands, Progress};
use crate::cli::args::{JournalArg, bytes, count, duration};
use crate::cli::child::BatchCommand;
use crate::cli::exit::Failure;
use crate::cli::hosting::{self, AccessArgs, Hosting, Public};
use crate::cli::kafka::{KafkaArgs, broker};
use crate::cli::opening;
use crate::cli::policy::PolicyArgs;
use crate::cli::progress::Waiting;
use crate::cli::records::RecordFormat;
use crate::cli::stop::Stop;
use crate::control::{self, Control, Started};
use crate::journal::{Durability, Journal};
use crate::kafka::{Config, Cut, Discovery, JournaledConsumer, StopReason};
use crate::offset::Group;

const EXAMPLE: &str = "\
Examples:
  tidelog consume -b kafka:9092 -g loader -t orders | jq -r .value
  tidelog consume -b kafka:9092 -g loader -t orders -- ./load-into-warehouse --batch-file -
  tidelog consume -b kafka:9092 -g loader -t '^audit-.*' --until-latest --format raw -- gzip -c

Without COMMAND records go to standard output as JSON lines; a batch is committed once it is written and flushed. With \
COMMAND each batch is the standard input of a process of its own, which finds TIDELOG_GROUP, _APP, _BATCH, _BATCH_TIME, \
_EPOCH, _KEY, _REPLAYING (0 or 1) and _RANGES (JSON) in its environment: exit 0 commits, anything else is tried again.

SIGTERM stops gracefully with exit 0, Ctrl-C with 130: what is committed is safe, what is not is read again.";

/// Read topics, hand out batches, commit each to the journal
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Consume {
    /// The group
    #[arg(short, long, value_name = "GROUP")]
    group: String,
    /// The application that the group belongs to
    #[arg(long, default_value = Group::DEFAULT_APP, value_name = "NAME")]
    app: String,
    /// Stop at the ends that were readable at the start
    #[arg(long)]
    until_latest: bool,
    #[command(flatten)]
    journal: JournalArg,
    /// When a batch counts as committed: fsync (on the device), process (handed to the system) or interval=200ms
    #[arg(long, default_value = "fsync", value_parser = opening::durability, value_name = "WHEN")]
    durability: Durability,
    /// Records of a batch, at most
    #[arg(long, default_value = "10000", value_parser = count, value_name = "N", help_heading = "Batches")]
    max_records: NonZeroUsize,
    /// Bytes of a batch's keys and values; the record that passes it is its last
    #[arg(long, default_value = "16MiB", value_parser = bytes, value_name = "BYTES", help_heading = "Batches")]
    max_bytes: u64,
    /// How long a batch's first record waits for others
    #[arg(long, default_value = "1s", value_parser = duration, value_name = "TIME", help_heading = "Batches")]
    max_wait: Duration,
    /// How the command gets the records
    #[arg(long, value_enum, default_value_t = RecordFormat::Json, requires = "command", value_name = "FORMAT", help_heading = "Batches")]
    format: RecordFormat,
    /// How often a batch is tried again whose command failed
    #[arg(long, default_value_t = 10, requires = "command", value_name = "N", help_heading = "Batches")]
    retries: u32,
    /// The command that works on a batch, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    kafka: KafkaArgs,
    /// Serve HTTP at this address too, beside the loopback port for this machine's commands; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "HTTP")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    access: AccessArgs,
    /// How often to look for new partitions and topics, and for what became of those there are; 0 is off
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    discovery_interval: Duration,
}

impl Consume {
    pub(super) fn run(self, progress: bool) -> Result<(), Failure> {
        let group = Group::new(&self.app, &self.group)?;
        if self.listen.is_none() && self.access.is_given() {
            return Err(Failure::Usage("--token-file and --allow-host go with --listen".to_owned()));
        }
        let client = self.kafka.needed()?;
        let broker = broker(&client)?;
        let request = self.policy.body(&group, false).request(group.clone())?;
        let config = Config {
            client,
            cut: Cut {
                max_records: self.max_records,
                max_bytes: NonZeroUsize::new(usize::try_from(self.max_bytes).unwrap_or(usize::MAX))
                    .unwrap_or(NonZeroUsize::MIN),
                max_wait: self.max_wait,
            },
            discovery: match self.discovery_interval {
                Duration::ZERO => Discovery::Off,
                interval => Discovery::Every(interval),
            },
        };
        let command = (!self.command.is_empty()).then(|| BatchCommand {
            words: self.command.clone(),
            format: self.format,
            retries: self.retries,
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|source| Failure::System { what: "starting", source })?;
        let (public, journal) = runtime.block_on(async {
            let public = match self.listen {
                Some(address) => Some(Public::bind(address, &self.access).await?),
                None => None,
            };
            let journal = hosting::open(public.as_ref(), &self.journal.journal, self.durability).await?;
            Ok::<_, Failure>((public, journal))
        })?;
        let mut control = opening::control(journal.clone(), Some(broker));
        control.limits.second_look = self.policy.second_look;
        let done = runtime.block_on(async {
            let mut stop =
                Stop::listen().map_err(|source| Failure::System { what: "listening for signals", source })?;
            let (brokers, dir) = (self.kafka.brokers()?, &self.journal.journal);
            let hosting = Hosting::begin(control.clone(), brokers, dir, public).await?;
            if let Some(address) = hosting.public {
                tracing::info!("serving {} on http://{address}/v1/groups", dir.display());
            }
            // Long polls and events end with the signal, while the batch in hand is finished.
            let (app, mut asked) = (hosting.app().clone(), stop.clone());
            tokio::spawn(async move {
                asked.asked().await;
                app.stop();
            });
            let work = Work { control, request, config, until_latest: self.until_latest, progress };
            let done = work.run(&mut Hands::new(group, command), &mut stop).await;
            hosting.stop().await;
            done
        });
        // Whatever still waits for a broker or a blocked pipe is left to itself: all that was acknowledged is durable.
        runtime.shutdown_background();
        let closed = journal.close().map_err(Failure::from);
        done.and(closed)
    }
}

/// A consumer at work.
struct Work {
    control: Control,
    request: control::StartRequest,
    config: Config,
    until_latest: bool,
    progress: bool,
}

impl Work {
    /// Consumes until the end, a failure, or a signal.
    async fn run(self, hands: &mut Hands, stop: &mut Stop) -> Result<(), Failure> {
        let journal = self.control.journal.clone();
        let group = self.request.group.clone();
        let until_latest = self.until_latest;
        let mut progress = Progress::new(group.clone(), self.progress);
        let begin = tokio::task::spawn_blocking(move || self.begin());
        let (started, consumer) = tokio::select! {
            begun = begin => match begun {
                Ok(begun) => begun?,
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            },
            () = stop.asked() => return stop.end(),
        };
        let mut ends = until_latest.then(|| Ends::new(group, &started));
        let done = consume(&consumer, &journal, hands, ends.as_mut(), &mut progress, stop).await;
        progress.tell(true);
        // Blocks for a moment, at most a few seconds if the broker is gone.
        consumer.stop();
        done.and_then(|()| stop.end())
    }

    /// Starts the group, tells what was found, and begins to read.
    fn begin(self) -> Result<(Started, JournaledConsumer), Failure> {
        let group = self.request.group.clone();
        let waiting = Waiting::begin("waiting for the broker");
        let consumer = JournaledConsumer::begin(self.config, self.control, self.request);
        drop(waiting);
        let consumer = consumer?;
        let started = consumer.started().clone();
        let partitions = started.positions.len();
        tracing::info!("group {group} starts with {partitions} partitions under epoch {}", started.epoch);
        Ok((started, consumer))
    }
}

/// Hands out batches and commits them.
async fn consume(
    consumer: &JournaledConsumer,
    journal: &Journal,
    hands: &mut Hands,
    mut ends: Option<&mut Ends>,
    progress: &mut Progress,
    stop: &mut Stop,
) -> Result<(), Failure> {
    let mut newest = journal.subscribe();
    let mut tick = tokio::time::interval(Progress::INTERVAL);
    loop {
        if ends.as_mut().is_some_and(|ends| ends.are_reached(journal)) {
            return Ok(());
        }
        let batch = tokio::select! {
            biased;
            () = stop.asked() => return Ok(()),
            _ = tick.tick() => {
                progress.tell(false);
                continue;
            }
            batch = consumer.next_batch_async() => batch.map_err(stopped)?,
            // What the consumer commits by itself, such as passed markers, may reach the ends too.
            Ok(()) = newest.changed(), if ends.is_some() => continue,
        };
        match hands.work(consumer, batch, stop).await? {
            Handed::Committed { receipt, records } => progress.add(&receipt, records),
            Handed::Dropped => {}
            Handed::Stopped => return Ok(()),
        }
    }
}

/// What it means for the exit code that there are no more batches.
fn stopped(reason: StopReason) -> Failure {
    match reason {
        StopReason::Stopped | StopReason::Refused(_) => Failure::Refused(reason.to_string()),
        StopReason::Fenced { .. } => Failure::Conflict(reason.to_string()),
        StopReason::Journal(_) | StopReason::Broken(_) => Failure::Broken(reason.to_string()),
    }
}
