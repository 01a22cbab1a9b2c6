//! `POST /v1/groups/{g}/marks`

use axum::extract::State;
use axum::http::StatusCode;

use super::{Answer, blocking, json};
use crate::control;
use crate::server::App;
use crate::server::ask::Ask;
use crate::wire::{Entry, MarkBody};

/// Names the present state of a group.
pub async fn mark(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    ask.no_more()?;
    let MarkBody { name, actor } = ask.body()?;
    let actor = ask.actor(actor)?;
    let control = app.control().clone();
    let entry = blocking(move || Ok(control::mark(&control, &group, &name, &actor)?)).await?;
    json(StatusCode::CREATED, &Entry::from(entry))
}
