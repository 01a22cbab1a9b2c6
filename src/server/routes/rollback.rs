//! `POST /v1/groups/{g}/rollback/plan`, `POST /v1/groups/{g}/rollback`, `POST /v1/rollbacks/{seq}/kafka`

use axum::extract::State;
use axum::http::StatusCode;

use super::{Answer, json};
use crate::control;
use crate::offset::Seq;
use crate::server::ask::Ask;
use crate::server::{App, Problem};
use crate::wire::{ExecuteBody, ExecutedAnswer, KafkaAnswer, KafkaBody, PlanAnswer, RollbackBody};

/// What a rollback would do.
pub async fn plan(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    ask.no_more()?;
    let body: RollbackBody = ask.body()?;
    let request = body.request(group.clone())?;
    let plan = app.with_broker(move |control| control::plan(control, request)).await?;
    json(StatusCode::OK, &PlanAnswer::new(&group, &plan))
}

/// Does what a plan gave to execute.
pub async fn execute(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    ask.no_more()?;
    let (rollback, actor, reason) = ask.body::<ExecuteBody>()?.split();
    // Without it a repeat after a lost reply would move the group twice.
    let plan = rollback.plan.clone();
    let plan = plan.ok_or_else(|| Problem::invalid("plan", "", "missing: send what a plan gave as execute"))?;
    let request = rollback.request(group)?;
    let executed =
        app.with_broker(move |control| control::execute(control, request, Some(&plan), &actor, &reason)).await?;
    json(StatusCode::OK, &ExecutedAnswer::from(&executed))
}

/// Sets Kafka's committed offsets for a rollback, again or for the first time.
pub async fn kafka(State(app): State<App>, ask: Ask) -> Answer {
    let seq = ask.part::<Seq>("seq")?;
    ask.no_more()?;
    let KafkaBody {} = ask.body()?;
    let set = app.with_broker(move |control| control::set_kafka(control, seq)).await?;
    json(StatusCode::OK, &KafkaAnswer::from(&set))
}
