//! `POST /v1/groups/{g}/marks`, `/hold`, `/release`, `/retire`, `POST /v1/losses/{seq}/acknowledge`: what an operator does to
//! a group in one entry, which is the answer.

use axum::extract::State;
use axum::http::StatusCode;

use super::{Answer, blocking, json};
use crate::control::{self, Control, SteerError};
use crate::offset::Seq;
use crate::server::App;
use crate::server::ask::Ask;
use crate::wire::{AcknowledgeBody, Entry, HoldBody, MarkBody, ReleaseBody, RetireBody};

/// Names the present state of a group.
pub async fn mark(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    ask.no_more()?;
    let MarkBody { name, actor } = ask.body()?;
    let actor = ask.actor(actor);
    done(&app, move |control| control::mark(control, &group, &name, &actor)).await
}

/// Stops a group.
pub async fn hold(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    ask.no_more()?;
    let HoldBody { reason, actor } = ask.body()?;
    let actor = ask.actor(actor);
    done(&app, move |control| control::hold(control, &group, &actor, &reason)).await
}

/// Frees a group.
pub async fn release(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    ask.no_more()?;
    let ReleaseBody { actor } = ask.body()?;
    let actor = ask.actor(actor);
    done(&app, move |control| control::release(control, &group, &actor)).await
}

/// Lets a topic of a group go, or the whole group.
pub async fn retire(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    ask.no_more()?;
    let RetireBody { topic, actor } = ask.body()?;
    let actor = ask.actor(actor);
    done(&app, move |control| control::retire(control, &group, topic.as_ref(), &actor)).await
}

/// Says that the losses, or the holes, of an entry were seen.
pub async fn acknowledge(State(app): State<App>, ask: Ask) -> Answer {
    let seq = ask.part::<Seq>("seq")?;
    ask.no_more()?;
    let AcknowledgeBody { actor } = ask.body()?;
    let actor = ask.actor(actor);
    done(&app, move |control| control::acknowledge(control, seq, &actor)).await
}

/// Does it, and answers with its entry.
async fn done(
    app: &App,
    steer: impl FnOnce(&Control) -> Result<crate::entry::Entry, SteerError> + Send + 'static,
) -> Answer {
    let control = app.control().clone();
    let entry = blocking(move || Ok(steer(&control)?)).await?;
    json(StatusCode::CREATED, &Entry::from(entry))
}
