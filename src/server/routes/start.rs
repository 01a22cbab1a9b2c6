//! `POST /v1/groups/{g}/start`

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};

use super::{Answer, json};
use crate::control;
use crate::server::ask::Ask;
use crate::server::{App, Problem};
use crate::wire::{StartAnswer, StartBody};

/// Reconciles a group and answers where to read.
pub async fn start(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    let spark = match ask.text("format").as_deref() {
        None => false,
        Some("spark") => true,
        Some(other) => return Err(Problem::invalid("format", other, "spark, or leave it out")),
    };
    ask.no_more()?;
    let body: StartBody = ask.body()?;
    let request = body.request(group.clone())?;
    if !request.dry_run {
        app.0.looks.remember(&group, &request.topics);
    }
    let started = app.with_broker(move |control| control::start(control, request)).await?;
    let answer = StartAnswer::new(&group, started);
    if !spark {
        return json(StatusCode::OK, &answer);
    }
    // The body is Spark's own form and has no place for it; without it nothing could be committed safely.
    let mut response = json(StatusCode::OK, &answer.spark())?;
    response.headers_mut().insert("tidelog-epoch", HeaderValue::from(answer.epoch.as_u64()));
    Ok(response)
}
