//! New entries on their way to those who listen: read from the journal once, written as events once, whatever the number
//! of listeners.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::{broadcast, watch};

use crate::entry::{Body, Entry};
use crate::history;
use crate::journal::{Journal, Order, ReadError};
use crate::offset::Seq;
use crate::wire;

/// Events that a listener may be behind before it is dropped; it comes back with the id of its last one.
const BEHIND: usize = 1_024;
/// A larger event is not kept for slow listeners: they read it from the journal.
const KEPT_BYTES: usize = 64 << 10;
/// Entries that are read at once.
const PAGE: usize = 512;
/// Ranges of them, after which a page ends.
const PAGE_RANGES: usize = 20_000;
/// Pause after a page, so that many commits a second wake each listener a few times only.
const PAUSE: Duration = Duration::from_millis(2);

/// An entry as an event.
#[derive(Debug, Clone)]
pub struct Event {
    /// The entry.
    pub seq: Seq,
    /// Its text; none if that is too large to be kept.
    pub text: Option<Bytes>,
}

/// Tells listeners of new entries. It reads only while somebody listens.
pub struct Hub {
    journal: Journal,
    events: broadcast::Sender<Event>,
    /// The newest entry that is no batch: only such a one raises an epoch.
    steered: watch::Sender<Seq>,
    running: AtomicBool,
}

impl Hub {
    /// A hub of `journal`; its task begins with the first listener.
    pub fn new(journal: Journal) -> Arc<Self> {
        let newest = journal.with_state(|state| state.seq);
        let (events, steered) = (broadcast::Sender::new(BEHIND), watch::Sender::new(newest));
        Arc::new(Hub { journal, events, steered, running: AtomicBool::new(false) })
    }

    /// Every event from now on.
    pub fn events(self: &Arc<Self>) -> broadcast::Receiver<Event> {
        let receiver = self.events.subscribe();
        self.run();
        receiver
    }

    /// Changes whenever an entry is published that is no batch.
    pub fn steered(self: &Arc<Self>) -> watch::Receiver<Seq> {
        let receiver = self.steered.subscribe();
        self.run();
        receiver
    }

    fn run(self: &Arc<Self>) {
        if self.running.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut newest = self.journal.subscribe();
        let mut told = *newest.borrow_and_update();
        let hub = Arc::downgrade(self);
        tokio::spawn(async move {
            while newest.changed().await.is_ok() {
                loop {
                    let seq = *newest.borrow_and_update();
                    let Some(hub) = hub.upgrade() else { return };
                    if !hub.is_listened_to() {
                        told = seq;
                    }
                    if told >= seq {
                        break;
                    }
                    let telling = Arc::clone(&hub);
                    let read = tokio::task::spawn_blocking(move || telling.tell(told)).await;
                    match read {
                        Ok(Ok(last)) => told = last,
                        // Listeners notice by the gap, and end when they can't read it themselves; polls look anew.
                        Ok(Err(_)) | Err(_) => {
                            told = seq;
                            hub.steered.send_replace(seq);
                        }
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        });
    }

    fn is_listened_to(&self) -> bool {
        self.events.receiver_count() > 0 || self.steered.receiver_count() > 0
    }

    /// Tells of a page of entries after `told`; returns the last.
    fn tell(&self, told: Seq) -> Result<Seq, ReadError> {
        let (mut last, mut steered) = (told, None);
        for entry in page(&self.journal, told)? {
            last = entry.seq;
            if !matches!(entry.body, Body::Batch(_)) {
                steered = Some(last);
            }
            // Asked for each: a listener that came a moment ago counts on every event from then on.
            if self.events.receiver_count() > 0 {
                let text = text(entry);
                let text = (text.len() <= KEPT_BYTES).then_some(text);
                // Nobody may be left by now.
                let _ = self.events.send(Event { seq: last, text });
            }
        }
        if let Some(seq) = steered {
            self.steered.send_replace(seq);
        }
        Ok(last)
    }
}

/// The entries after `told`, a page of them.
pub fn page(journal: &Journal, told: Seq) -> Result<Vec<Entry>, ReadError> {
    let (mut entries, mut ranges) = (Vec::new(), 0);
    journal.visit_entries(None, told.next(), Order::Ascending, &mut |entry| {
        ranges += history::size(&entry);
        entries.push(entry);
        if entries.len() < PAGE && ranges < PAGE_RANGES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(entries)
}

/// An entry as the text of an event: its id is the seq, its name the kind.
pub fn text(entry: Entry) -> Bytes {
    let (seq, kind) = (entry.seq, entry.body.kind());
    let mut text = format!("id: {seq}\nevent: {kind}\ndata: ").into_bytes();
    // JSON has no bare line break, and writing to memory does not fail.
    let _ = serde_json::to_writer(&mut text, &wire::Entry::from(entry));
    text.extend_from_slice(b"\n\n");
    text.into()
}
