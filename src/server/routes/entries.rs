//! `GET /v1/groups/{g}/entries`

use axum::extract::State;
use axum::http::StatusCode;

use super::{Answer, blocking, json};
use crate::history;
use crate::offset::Seq;
use crate::server::App;
use crate::server::ask::Ask;
use crate::wire::{EntriesAnswer, Entry};

/// The entries of a group, of every kind.
pub async fn list(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    let window = ask.window()?;
    let after = ask.cursor::<Seq>()?;
    ask.no_more()?;
    app.known(&group)?;
    let journal = app.control().journal.clone();
    blocking(move || {
        let page = history::entries(&journal, Some(&group), &window, after)?;
        let entries = page.entries.into_iter().map(Entry::from).collect();
        json(StatusCode::OK, &EntriesAnswer { entries, next: page.next.map(|next| next.to_string()) })
    })
    .await
}
