//! `tidelog demo`: the main job on a broker inside the program, a line a step, each step checked.

mod steps;
mod world;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use self::world::World;
use crate::cli::exit::Failure;
use crate::cli::hosting::{AccessArgs, Hosting, Public};
use crate::cli::kafka::{ClientArgs, KafkaArgs};
use crate::cli::opening;
use crate::cli::output::Out;
use crate::cli::stop::Stop;
use crate::journal::Durability;
use crate::offset::TopicPartition;

const EXAMPLE: &str = "\
Examples:
  tidelog demo                        the steps, then it goes on until Ctrl-C
  tidelog demo --exit -j demo         the steps only; the journal stays in ./demo, to be asked:
  tidelog groups -j demo
  tidelog demo -b kafka:9092          on a real cluster, with topics of its own that are removed at the end; also
                                      grows a topic and makes one again

Nothing needs to be installed: without -b the broker is librdkafka's mock cluster, inside this process.";

/// Between two rounds of the producer, once the steps are over.
const ROUND: Duration = Duration::from_secs(1);

/// Show the main job on a broker inside this program, or on yours: consume, lose data, start again, grow, roll back
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Demo {
    /// Keep the journal in this directory [default: a temporary one, removed at the end]
    #[arg(short, long, value_name = "DIR")]
    journal: Option<PathBuf>,
    /// Where its server listens [default: a free port of loopback]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    access: AccessArgs,
    /// Use this cluster, with topics of the demo's own (TIDELOG_BROKERS is not heeded: it may be in earnest)
    #[arg(short, long, visible_alias = "bootstrap-server", value_name = "BROKERS")]
    brokers: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
    /// End after the steps: with 0 only if each came out right
    #[arg(long)]
    exit: bool,
}

impl Demo {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let client = KafkaArgs::of(self.brokers.clone(), self.client.clone()).config()?;
        match &client {
            None => {
                say(out, "tidelog demo: a broker, a producer and a consumer in this process; nothing else is needed.")?
            }
            Some(client) => {
                let brokers = client.brokers();
                say(out, format!("tidelog demo: on {brokers}, with topics of its own, removed at the end."))?
            }
        }
        let temporary = Temporary::unless(self.journal.as_ref())?;
        let dir = self.journal.clone().unwrap_or_else(|| temporary.0.clone().unwrap_or_default());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|source| Failure::System { what: "starting", source })?;
        let stop = runtime
            .block_on(async { Stop::listen() })
            .map_err(|source| Failure::System { what: "listening for signals", source })?;
        let journal = opening::or_new(&dir, Durability::Fsync)?;
        let done = World::new(journal.clone(), client).and_then(|world| {
            let listen = self.listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
            let hosting = runtime.block_on(async {
                let public = Public::bind(listen, &self.access).await?;
                Hosting::begin(world.control.clone(), Some(world.brokers()), &dir, Some(public)).await
            })?;
            let done = self.steps(&world, hosting.public.unwrap_or(hosting.private), out, &stop);
            runtime.block_on(hosting.stop());
            done
        });
        let closed = journal.close().map_err(Failure::from);
        runtime.shutdown_background();
        done.and(closed)?;
        if self.journal.is_some() {
            say(out, format!("The journal is in {0}: tidelog groups -j {0}", dir.display()))?;
        }
        stop.end()
    }
}

impl Demo {
    /// The steps; then, unless it is to end, on and on.
    fn steps(&self, world: &World, address: SocketAddr, out: &mut Out, stop: &Stop) -> Result<(), Failure> {
        steps::all(world, out, stop)?;
        if stop.is_asked() || self.exit {
            return Ok(());
        }
        say(out, format!("All of it over HTTP, and a rollback by your own hand: http://{address}/v1/groups"))?;
        say(out, format!("Group {} goes on, a batch every second. Ctrl-C ends it.", world.group))?;
        go_on(world, out, stop)
    }
}

/// Produces and consumes until the process is told to stop.
fn go_on(world: &World, out: &mut Out, stop: &Stop) -> Result<(), Failure> {
    let (_, consumer) = world.start(Duration::from_millis(500))?;
    let mut round = 0u32;
    while !stop.is_asked() {
        for partition in 0..world::PARTITIONS {
            let at = TopicPartition::new(world.orders.clone(), partition);
            world.produce(&at, 20 + (round * 7 + partition * 11) % 30, 40)?;
        }
        let end = std::time::Instant::now() + ROUND;
        while !stop.is_asked() && std::time::Instant::now() < end {
            if let Some(batch) = world.next(&consumer, Duration::from_millis(100))? {
                let batch = world.commit(&consumer, batch)?;
                if let Some(batch) = batch {
                    say(out, format!("batch {}: {}", batch.number, batch.ranges))?;
                }
            }
        }
        round += 1;
    }
    consumer.stop();
    Ok(())
}

/// Tells a line at once: the reader watches.
fn say(out: &mut Out, text: impl AsRef<str>) -> Result<(), Failure> {
    out.line(text)?;
    out.flush()
}

/// A directory of our own, removed with what is in it.
struct Temporary(Option<PathBuf>);

impl Temporary {
    fn unless(given: Option<&PathBuf>) -> Result<Temporary, Failure> {
        if given.is_some() {
            return Ok(Temporary(None));
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| Failure::System {
            what: "randomness",
            source: std::io::Error::other(error.to_string()),
        })?;
        let name = format!("tidelog-demo-{:016x}", u64::from_be_bytes(random));
        Ok(Temporary(Some(std::env::temp_dir().join(name))))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(dir) = &self.0 {
            // What can't be removed is a temporary directory, which the system removes some day.
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}
