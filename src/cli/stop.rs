//! Being told to stop: SIGTERM ends a command gracefully with exit 0, SIGINT likewise with 130; a second one at once.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cli::exit::Failure;

/// Whether, and by which signal, the process was told to stop.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<Option<Signal>>);

/// The signals that stop a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// A supervisor's.
    Term,
    /// Ctrl-C.
    Int,
}

impl Stop {
    /// Listens from now on, within a tokio runtime.
    pub fn listen() -> io::Result<Stop> {
        let (tell, stop) = watch::channel(None);
        let mut term = signal(SignalKind::terminate())?;
        let mut int = signal(SignalKind::interrupt())?;
        tokio::spawn(async move {
            loop {
                let told = tokio::select! {
                    _ = term.recv() => Signal::Term,
                    _ = int.recv() => Signal::Int,
                };
                if tell.borrow().is_some() {
                    tracing::warn!("stopping at once; what is committed is safe");
                    std::process::exit(i32::from(Failure::Interrupted.code()));
                }
                tracing::info!("stopping");
                tell.send_replace(Some(told));
            }
        });
        Ok(Stop(stop))
    }

    /// Returns when the process is told to stop; at once if it was.
    pub async fn asked(&mut self) {
        // The sender lives as long as the runtime; without it nothing can be asked any more.
        if self.0.wait_for(Option::is_some).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether the process was told to stop.
    pub fn is_asked(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// What a graceful stop ends with.
    pub fn end(&self) -> Result<(), Failure> {
        match *self.0.borrow() {
            Some(Signal::Int) => Err(Failure::Interrupted),
            Some(Signal::Term) | None => Ok(()),
        }
    }
}
