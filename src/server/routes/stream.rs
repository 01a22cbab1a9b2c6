//! `GET /v1/stream`: every entry as a server-sent event.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use http_body_util::channel::{Channel, Sender};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::{Answer, blocking};
use crate::offset::Seq;
use crate::server::ask::Ask;
use crate::server::hub::{self, Event};
use crate::server::{App, Problem};

/// How often a comment keeps the connection open.
const COMMENT_EVERY: Duration = Duration::from_secs(15);
/// A listener that takes nothing for so long is dropped.
const STALLED: Duration = Duration::from_secs(30);
/// Chunks that wait for a listener.
const WAITING: usize = 4;
/// Bytes that are sent as one chunk, where there are so many.
const CHUNK: usize = 64 << 10;

/// All entries from now on, or from `Last-Event-ID` on without a gap.
pub async fn listen(State(app): State<App>, headers: HeaderMap, ask: Ask) -> Answer {
    ask.no_more()?;
    let newest = app.control().journal.with_state(|state| state.seq);
    let last = match headers.get("last-event-id") {
        None => None,
        Some(value) => {
            let text = value.to_str().unwrap_or("?");
            let seq = text.parse::<Seq>();
            Some(seq.map_err(|invalid| Problem::invalid("Last-Event-ID", text, invalid.why))?)
        }
    };
    let (sender, body) = Channel::<Bytes, std::convert::Infallible>::new(WAITING);
    let mut listener = Listener { app, sender, told: last.unwrap_or(newest) };
    let reset = (listener.told > newest).then(|| {
        listener.told = newest;
        Bytes::from(format!("id: {newest}\nevent: reset\ndata: {{\"newest\":\"{newest}\"}}\n\n"))
    });
    tokio::spawn(async move {
        // The first bytes tell a listener that it is heard.
        let hello = reset.unwrap_or_else(|| Bytes::from_static(b": tidelog\n\n"));
        if listener.send(hello).await.is_some() {
            let _ = listener.run().await;
        }
    });
    let mut response = Response::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// One listener, and the last entry that it was sent.
struct Listener {
    app: App,
    sender: Sender<Bytes>,
    told: Seq,
}

impl Listener {
    /// Sends entries until the listener is gone or too slow, or the server stops: then there is nothing.
    async fn run(&mut self) -> Option<()> {
        let mut stopping = self.app.stopping();
        // First what the journal holds; then what is new, from a place in the events that was taken before.
        self.catch_up().await?;
        let mut events = self.app.0.hub.events();
        self.catch_up().await?;
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                () = tokio::time::sleep(COMMENT_EVERY) => {
                    self.send(Bytes::from_static(b":\n\n")).await?;
                    // Nothing should be left; if something is, it does not wait for the next entry.
                    self.catch_up().await?;
                    continue;
                }
                () = stopping.stopped() => return None,
            };
            let first = match event {
                Ok(event) => event,
                // Too slow: dropped, it comes back with the id of its last event.
                Err(RecvError::Lagged(_) | RecvError::Closed) => return None,
            };
            let mut chunk = Vec::new();
            self.add(first, &mut chunk).await?;
            while chunk.len() < CHUNK {
                match events.try_recv() {
                    Ok(event) => self.add(event, &mut chunk).await?,
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Lagged(_) | TryRecvError::Closed) => return None,
                }
            }
            if !chunk.is_empty() {
                self.send(chunk.into()).await?;
            }
        }
    }

    /// Adds an event to what is sent next, unless the listener has it.
    async fn add(&mut self, event: Event, chunk: &mut Vec<u8>) -> Option<()> {
        if event.seq <= self.told {
            return Some(());
        }
        match event.text {
            Some(text) if event.seq == self.told.next() => {
                chunk.extend_from_slice(&text);
                self.told = event.seq;
                Some(())
            }
            // Too large to be kept, or one is missing.
            _ => {
                if !chunk.is_empty() {
                    self.send(std::mem::take(chunk).into()).await?;
                }
                self.catch_up().await
            }
        }
    }

    /// Sends what the journal holds after the last entry that was sent.
    async fn catch_up(&mut self) -> Option<()> {
        loop {
            let (journal, told) = (self.app.control().journal.clone(), self.told);
            if told >= journal.with_state(|state| state.seq) {
                return Some(());
            }
            let entries = blocking(move || Ok(hub::page(&journal, told)?)).await.ok()?;
            let last = entries.last()?.seq;
            let mut chunk = Vec::new();
            for entry in entries {
                chunk.extend_from_slice(&hub::text(entry));
                if chunk.len() >= CHUNK {
                    self.send(std::mem::take(&mut chunk).into()).await?;
                }
            }
            if !chunk.is_empty() {
                self.send(chunk.into()).await?;
            }
            self.told = last;
        }
    }

    async fn send(&mut self, chunk: Bytes) -> Option<()> {
        let sent = tokio::time::timeout(STALLED, self.sender.send_data(chunk)).await;
        sent.ok()?.ok()
    }
}
