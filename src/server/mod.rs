//! Answers over HTTP (INTERFACE sections 2 and 3): the only place that knows axum.
//!
//! - `problem`: every error that is sent, in one place.
//! - `ask`: what a request asks for, checked; `guard`: who may ask.
//! - `routes`: one file a subject.
//! - `hub`: new entries for those who listen; `looks`: what the broker says, as far as it can be had at once.
//! - `listen`: connections and their end; `note`: where the holder of a journal is found.

mod ask;
mod guard;
mod hub;
mod listen;
mod looks;
mod note;
mod problem;
mod routes;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

pub use self::guard::{Guard, Role, Token};
use self::hub::Hub;
pub use self::listen::{Limits, serve};
use self::looks::Looks;
pub use self::note::{ServerNote, WrittenNote};
pub use self::problem::{Kind, Problem};
pub use self::routes::{opening, router};
use crate::control::Control;

/// Calls that wait for a broker, at once; another one is answered 429.
const BROKER_CALLS: usize = 64;

/// Requests with a large body, at once; others wait for their turn.
const LARGE_BODIES: usize = 16;

/// What all routes share. Clones are cheap and share it.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// use tidelog::server::{App, Guard, Limits, router, serve};
///
/// tokio::runtime::Runtime::new()?.block_on(async {
///     let app = App::new(control, None);
///     let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
///     let guard = Guard::new(listener.local_addr()?, Vec::new(), &[]);
///     let routes = router(app.clone(), guard);
///     app.stop(); // a real one is told so by a signal
///     serve(&listener, routes, app.stopped(), Limits::default()).await;
///     Ok::<_, std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    control: Control,
    brokers: Option<String>,
    looks: Arc<Looks>,
    hub: Arc<Hub>,
    broker_calls: Arc<Semaphore>,
    large_bodies: Arc<Semaphore>,
    stop: watch::Sender<bool>,
}

impl App {
    /// Serves the journal of `control`, and its broker, which `brokers` names.
    pub fn new(control: Control, brokers: Option<String>) -> Self {
        let looks = Looks::new(control.broker.clone());
        let hub = Hub::new(control.journal.clone());
        let broker_calls = Arc::new(Semaphore::new(BROKER_CALLS));
        let large_bodies = Arc::new(Semaphore::new(LARGE_BODIES));
        let stop = watch::Sender::new(false);
        App(Arc::new(Inner { control, brokers, looks, hub, broker_calls, large_bodies, stop }))
    }

    /// Ends listeners and long polls, and then the servers.
    pub fn stop(&self) {
        self.0.stop.send_replace(true);
    }

    /// Returns when [`App::stop`] was called: what a server runs until.
    pub async fn stopped(self) {
        self.stopping().stopped().await;
    }

    /// Tells when [`App::stop`] was called.
    fn stopping(&self) -> Stopping {
        Stopping(self.0.stop.subscribe())
    }

    /// Looks at the groups every `interval`, so that growth, and losses to come, are known before anybody asks. Ends when
    /// the server stops.
    pub async fn watch(&self, interval: Duration) {
        let mut stopping = self.stopping();
        loop {
            tokio::select! {
                () = stopping.stopped() => return,
                () = tokio::time::sleep(interval) => {}
            }
            let groups = self.0.control.journal.with_state(|state| {
                let wanted = state.groups.iter().filter(|(_, group)| !group.retired);
                wanted.map(|(name, _)| name.clone()).collect::<Vec<_>>()
            });
            for group in groups {
                let Some(state) = self.0.control.journal.group(&group) else { continue };
                tokio::select! {
                    () = stopping.stopped() => return,
                    _ = self.0.looks.recent(&group, &state) => {}
                }
            }
        }
    }
}

/// Whether the server is to stop.
struct Stopping(watch::Receiver<bool>);

impl Stopping {
    /// Returns when it is.
    async fn stopped(&mut self) {
        // The sender is gone only with the app.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
