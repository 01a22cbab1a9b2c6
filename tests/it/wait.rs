//! Waiting for the thing itself, with a deadline.

use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for two loaded cores; a test that is right never gets near it.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Asks `probe` until it answers `Ok`; panics after `deadline`, with what was waited for and the last `Err`.
#[track_caller]
pub fn wait_for<T, E: Debug>(what: &str, deadline: Duration, mut probe: impl FnMut() -> Result<T, E>) -> T {
    let end = Instant::now() + deadline;
    loop {
        match probe() {
            Ok(value) => return value,
            Err(last) if Instant::now() >= end => panic!("{what}: not within {deadline:?}; last seen: {last:?}"),
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}
