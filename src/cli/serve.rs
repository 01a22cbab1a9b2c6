//! `tidelog serve`

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use crate::broker::Broker;
use crate::cli::args::{JournalArg, duration};
use crate::cli::exit::Failure;
use crate::cli::hosting::{self, AccessArgs, Hosting, Public, raise_file_limit};
use crate::cli::kafka::KafkaArgs;
use crate::cli::opening;
use crate::cli::stop::Stop;
use crate::journal::Durability;

const EXAMPLE: &str = "\
Examples:
  tidelog serve                                      the journal alone: history, commits, unchecked starts
  tidelog serve -b kafka:9092                        with starts and plans that look at the brokers
  tidelog serve -b kafka:9092 --listen 0.0.0.0:8380 --token-file tokens --allow-host tidelog.example.com
  curl -s http://127.0.0.1:8380/v1/groups

It holds the journal: other commands on this machine go through it by themselves. SIGTERM stops it gracefully.";

/// Serve a journal over HTTP
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Serve {
    #[command(flatten)]
    journal: JournalArg,
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:8380", value_name = "ADDRESS:PORT", help_heading = "HTTP")]
    listen: SocketAddr,
    #[command(flatten)]
    access: AccessArgs,
    /// When a commit counts as done: fsync (on the device), process (handed to the system) or interval=200ms
    #[arg(long, default_value = "fsync", value_parser = opening::durability, value_name = "WHEN")]
    durability: Durability,
    #[command(flatten)]
    kafka: KafkaArgs,
    /// How often to look for new partitions and topics, which are reported and not taken in; 0 is off
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    discovery_interval: Duration,
    /// How long after the first look the second is taken that a correction needs
    #[arg(long, default_value = "3s", value_parser = duration, value_name = "TIME")]
    second_look: Duration,
}

impl Serve {
    pub(super) fn run(self) -> Result<(), Failure> {
        raise_file_limit();
        let broker = self.kafka.broker()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|source| Failure::System { what: "starting", source })?;
        let done = runtime.block_on(self.serve(broker));
        // A call that still waits for a silent broker is left to itself: it has written nothing.
        runtime.shutdown_background();
        done
    }

    async fn serve(self, broker: Option<Arc<dyn Broker>>) -> Result<(), Failure> {
        let mut stop = Stop::listen().map_err(|source| Failure::System { what: "listening for signals", source })?;
        let public = Public::bind(self.listen, &self.access).await?;
        let dir = &self.journal.journal;
        let journal = hosting::open(Some(&public), dir, self.durability).await?;
        let looks = broker.is_some() && self.discovery_interval > Duration::ZERO;
        let mut control = opening::control(journal.clone(), broker);
        control.limits.second_look = self.second_look;
        let hosting = Hosting::begin(control, self.kafka.brokers()?, dir, Some(public)).await?;
        let address = hosting.public.unwrap_or(hosting.private);
        tracing::info!("serving {} on http://{address}/v1/groups", dir.display());
        if looks {
            let (app, interval) = (hosting.app().clone(), self.discovery_interval);
            tokio::spawn(async move { app.watch(interval).await });
        }
        stop.asked().await;
        hosting.stop().await;
        journal.close()?;
        stop.end()
    }
}
