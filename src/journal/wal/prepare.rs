//! The log's helper thread: makes the next segment before it is needed and removes those that no longer are, so that
//! a commit waits for neither.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::error::WalError;
use super::segment::{IN_USE, PREPARED, path_of, sync_dir, write_zeros};
use crate::journal::CrashHook;

enum Order {
    Prepare { number: u64, size: u64 },
    Remove { number: u64 },
}

/// Handle of the thread. Dropping it waits until the thread has done what it was told.
pub struct Helper {
    // None only while dropping.
    orders: Option<Sender<Order>>,
    prepared: Receiver<Result<u64, WalError>>,
    thread: Option<JoinHandle<()>>,
    ordered: Option<u64>,
}

impl Helper {
    /// Starts the thread for the log in `dir`.
    pub fn start(dir: &Path, crash_at: Option<CrashHook>) -> Result<Helper, WalError> {
        let (orders, inbox) = channel();
        let (outbox, prepared) = channel();
        let worker = Worker { dir: dir.to_owned(), crash_at };
        let thread = std::thread::Builder::new()
            .name("tidelog-wal".into())
            .spawn(move || {
                for order in inbox {
                    match order {
                        // The receiver is gone only when the log is being dropped.
                        Order::Prepare { number, size } => drop(outbox.send(worker.prepare(number, size))),
                        Order::Remove { number } => worker.remove(number),
                    }
                }
            })
            .map_err(|source| WalError::io("start the helper thread of", dir, source))?;
        Ok(Helper { orders: Some(orders), prepared, thread: Some(thread), ordered: None })
    }

    /// Orders segment `number` with `size` bytes, unless it is ordered already.
    pub fn order(&mut self, number: u64, size: u64) {
        if self.ordered != Some(number) {
            self.ordered = Some(number);
            self.send(Order::Prepare { number, size });
        }
    }

    /// Waits for segment `number` and returns its size; orders it with `size` bytes if it was not ordered.
    pub fn take(&mut self, number: u64, size: u64) -> Result<u64, WalError> {
        let beforehand = self.ordered == Some(number);
        match self.take_ordered(number, size) {
            // That was some time ago: by now there may be space.
            Err(WalError::NoSpace { .. }) if beforehand => self.take_ordered(number, size),
            taken => taken,
        }
    }

    fn take_ordered(&mut self, number: u64, size: u64) -> Result<u64, WalError> {
        self.order(number, size);
        self.ordered = None;
        // The thread ends before its handle only by a panic.
        self.prepared.recv().unwrap_or(Err(WalError::Poisoned))
    }

    /// Has segment `number` removed, some time later. One that could not be removed is found again at the next open.
    pub fn remove(&self, number: u64) {
        self.send(Order::Remove { number });
    }

    fn send(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // Fails only after a panic of the thread; then the next `take` tells.
            let _ = orders.send(order);
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    dir: PathBuf,
    crash_at: Option<CrashHook>,
}

impl Worker {
    fn prepare(&self, number: u64, size: u64) -> Result<u64, WalError> {
        self.crash_point("wal-prepare");
        write_zeros(&path_of(&self.dir, number, PREPARED), size)?;
        self.crash_point("wal-prepare-written");
        sync_dir(&self.dir)?;
        self.crash_point("wal-prepared");
        Ok(size)
    }

    fn remove(&self, number: u64) {
        let path = path_of(&self.dir, number, IN_USE);
        self.crash_point("wal-remove");
        // Synced one by one: after a power cut never a newer one is gone while an older one is there.
        let removed = std::fs::remove_file(&path).map_err(|source| WalError::io("remove", &path, source));
        if let Err(error) = removed.and_then(|()| sync_dir(&self.dir)) {
            tracing::warn!(%error, "a sealed segment stays for now");
        }
        self.crash_point("wal-removed");
    }

    fn crash_point(&self, name: &'static str) {
        if let Some(crash_at) = &self.crash_at {
            crash_at(name);
        }
    }
}
