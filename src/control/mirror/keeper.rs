//! The thread that keeps Kafka's committed offsets behind the journal.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Mirror, changed, lock};
use crate::control::Control;
use crate::offset::{Group, Seq};
use crate::positions::GroupState;

/// Between two rounds: a fast consumer costs Kafka ten writes a second, whatever its commits.
const PACE: Duration = Duration::from_millis(100);
/// How often Kafka is told everything again: it forgets an offset that was not set for `offsets.retention.minutes`, 7 days
/// by default, if nobody is in the group.
const AGAIN: Duration = Duration::from_secs(3600);
/// How long its end may take; then it is left to itself, as it waits for a silent broker.
const STOP_WAIT: Duration = Duration::from_secs(3);

/// Kafka's committed offsets are kept as long as this lives. Dropped, what is due is told to Kafka, within 3 seconds.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # #[cfg(feature = "kafka")] {
/// use std::sync::Arc;
/// use tidelog::control::Control;
/// use tidelog::kafka::{KafkaBroker, mock::Mock};
///
/// let cluster = Mock::new(1)?;
/// let broker = KafkaBroker::new(&cluster.config(), clock.clone())?;
/// let control = Control::new(journal, Some(Arc::new(broker)), clock);
/// let kept = control.mirror.keep(&control);
/// assert!(kept.is_some()); // Kafka follows until it is dropped
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Kept {
    _keeper: Arc<Keeper>,
}

impl Kept {
    pub(super) fn of(keeper: Arc<Keeper>) -> Self {
        Kept { _keeper: keeper }
    }
}

pub(super) struct Keeper {
    mirror: Mirror,
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Keeper {
    /// None where the system gives no thread, which is told.
    pub(super) fn begin(mirror: Mirror, control: Control, since: Seq) -> Option<Keeper> {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, again) = (rolled_back(&control), Instant::now() + AGAIN);
        let (stops, ours) = (Arc::clone(&stop), mirror.clone());
        let mut rounds = Rounds { mirror: ours, control, stop: stops, since, seen: Seq::ZERO, told, again };
        match thread::Builder::new().name("kafka-mirror".to_owned()).spawn(move || rounds.run()) {
            Ok(thread) => Some(Keeper { mirror, stop, thread: Mutex::new(Some(thread)) }),
            Err(error) => {
                tracing::warn!("Kafka's committed offsets do not follow: no thread for that: {error}");
                None
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *lock(&self.mirror.0.since) = None;
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = lock(&self.thread).take() else { return };
        thread.thread().unpark();
        let until = Instant::now() + STOP_WAIT;
        while !thread.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        if !thread.is_finished() {
            tracing::info!("Kafka's committed offsets were not told in time; they follow with the next commit");
        } else if thread.join().is_err() {
            tracing::error!("the thread that tells Kafka the committed offsets panicked");
        }
    }
}

/// The groups whose newest move is a rollback that nobody has picked up yet: Kafka may not know it.
fn rolled_back(control: &Control) -> BTreeMap<Group, Seq> {
    control.journal.with_state(|state| {
        let waits = |group: &GroupState| {
            let picked_up = group.picked_up.as_ref().is_some_and(|picked_up| picked_up.epoch == group.epoch);
            !picked_up && group.raised_by.as_ref().is_some_and(|raised| Some(raised.seq) == group.last_move)
        };
        let waiting = state.groups.iter().filter(|(_, group)| waits(group));
        waiting.map(|(name, _)| (name.clone(), Seq::ZERO)).collect()
    })
}

struct Rounds {
    mirror: Mirror,
    control: Control,
    stop: Arc<AtomicBool>,
    /// The journal's newest entry when this began.
    since: Seq,
    /// The journal's newest entry of the last round that left nothing to do.
    seen: Seq,
    /// The newest entry of each group that Kafka knows of.
    told: BTreeMap<Group, Seq>,
    /// When all of them are told again.
    again: Instant,
}

impl Rounds {
    fn run(&mut self) {
        loop {
            let stopping = self.stop.load(Ordering::Relaxed);
            if stopping {
                self.mirror.try_at_once();
            }
            self.round();
            if stopping {
                return;
            }
            thread::park_timeout(PACE);
        }
    }

    fn round(&mut self) {
        if Instant::now() >= self.again {
            self.again = Instant::now() + AGAIN;
            self.tell_again();
        }
        for group in std::mem::take(&mut *lock(&self.mirror.0.again)) {
            self.told.insert(group, Seq::ZERO);
            self.seen = Seq::ZERO;
        }
        let newest = self.control.journal.with_state(|state| state.seq);
        let Some(broker) = self.control.broker.clone().filter(|_| newest > self.seen) else { return };
        let mut all = true;
        let mut changed = changed(&self.control, |group| self.told.get(group).copied().unwrap_or(self.since));
        // Those that failed may take long, and are last.
        changed.sort_by_key(|(group, _)| self.mirror.status(group).error.is_some());
        for (group, seq) in changed {
            match self.mirror.follow(&self.control, &*broker, &group) {
                Ok(known) => {
                    self.told.insert(group, known.min(seq));
                }
                Err(_) => all = false,
            }
        }
        if all {
            self.seen = newest;
        }
    }

    /// Has all groups that Kafka knows of told again.
    fn tell_again(&mut self) {
        self.mirror.forget();
        self.told.values_mut().for_each(|told| *told = Seq::ZERO);
        self.seen = Seq::ZERO;
    }
}
