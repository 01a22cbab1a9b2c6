//! `GET /healthz`, `GET /readyz`

use axum::extract::State;
use axum::http::StatusCode;
use serde_json::json;

use super::{Answer, json};
use crate::server::ask::Ask;
use crate::server::{App, Kind, Problem};

/// The process works; which version, which journal it holds, and which broker it asks.
pub async fn healthz(State(app): State<App>, ask: Ask) -> Answer {
    ask.no_more()?;
    let journal = app.control().journal.id();
    let version = env!("CARGO_PKG_VERSION");
    let body = json!({ "status": "ok", "version": version, "journal": journal, "brokers": app.0.brokers });
    json(StatusCode::OK, &body)
}

/// The journal takes writes.
pub async fn readyz(State(app): State<App>, ask: Ask) -> Answer {
    ask.no_more()?;
    match app.control().journal.read_only() {
        None => json(StatusCode::OK, &json!({ "status": "ready" })),
        Some(error) => Err(Problem::new(Kind::JournalReadOnly, error.to_string())),
    }
}
