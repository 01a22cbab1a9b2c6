//! `GET /v1/groups`, `GET /v1/groups/{g}`

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;

use super::{Answer, blocking, json};
use crate::journal::{Fenced, Journal, Order};
use crate::offset::{Epoch, Group, Invalid, Timestamp};
use crate::positions::GroupState;
use crate::server::ask::{Ask, bad_cursor};
use crate::server::looks::{growth, losses_to_come};
use crate::server::{App, Kind, Problem};
use crate::wire::{Batch, Count, GroupAnswer, GroupSummary, GroupsAnswer, Grown, LastFenced};

/// The longest that a poll waits.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// All groups, by app and name.
pub async fn list(State(app): State<App>, mut ask: Ask) -> Answer {
    let (only, limit) = (ask.text("app"), ask.limit()?);
    let order = match ask.text("order").as_deref() {
        None | Some("asc") => Order::Ascending,
        Some("desc") => Order::Descending,
        Some(other) => return Err(Problem::invalid("order", other, "asc or desc")),
    };
    let after = ask.text("cursor").map(|text| read_cursor(&text)).transpose()?;
    ask.no_more()?;
    let journal = app.control().journal.clone();
    let now = (app.control().clock)();
    let page = blocking(move || page(&journal, only.as_deref(), limit, order, after.as_ref(), now)).await?;
    json(StatusCode::OK, &page)
}

fn page(
    journal: &Journal,
    only: Option<&str>,
    limit: usize,
    order: Order,
    after: Option<&Group>,
    now: Timestamp,
) -> Result<GroupsAnswer, Problem> {
    // Summed up under the lock, not copied: a group's state may be large.
    let mut found: Vec<(Group, GroupSummary)> = journal.with_state(|state| {
        let wanted = |(group, _): &(&Group, &GroupState)| {
            let beyond = after.is_none_or(|after| match order {
                Order::Ascending => *group > after,
                Order::Descending => *group < after,
            });
            beyond && only.is_none_or(|app| app == group.app())
        };
        let groups = state.groups.iter().filter(wanted);
        let sum_up =
            |(group, state): (&Group, &GroupState)| (group.clone(), GroupSummary::new(group, state, None, now));
        match order {
            Order::Ascending => groups.take(limit + 1).map(sum_up).collect(),
            Order::Descending => groups.rev().take(limit + 1).map(sum_up).collect(),
        }
    });
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|(group, _)| cursor(group));
    let whole = |(group, summary)| with_last_batch(journal, &group, summary);
    let groups = found.into_iter().map(whole).collect::<Result<_, Problem>>()?;
    Ok(GroupsAnswer { groups, next })
}

/// The summary with what only history knows of the newest batch.
fn with_last_batch(journal: &Journal, group: &Group, mut summary: GroupSummary) -> Result<GroupSummary, Problem> {
    if let Some(last) = &mut summary.last_batch
        && let Some(entry) = journal.batch(group, last.batch)?
        && let Some(batch) = Batch::of(entry)
    {
        (last.seq, last.batch_time) = (Some(batch.seq), Some(batch.batch_time));
    }
    Ok(summary)
}

/// The group that a page ends with, as JSON, as both names are free text.
fn cursor(group: &Group) -> String {
    serde_json::json!([group.app(), group.group()]).to_string()
}

fn read_cursor(text: &str) -> Result<Group, Problem> {
    let names: (String, String) = serde_json::from_str(text).map_err(|_| bad_cursor(text))?;
    Group::new(&names.0, &names.1).map_err(|_| bad_cursor(text))
}

/// One group; with `epoch_above` once its epoch is above that, or after `wait`.
pub async fn one(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    let above = ask.param::<Epoch>("epoch_above")?;
    let wait = ask.text("wait");
    ask.no_more()?;
    let wait = match (&wait, above) {
        (None, _) => Duration::ZERO,
        (Some(text), Some(_)) => read_wait(text)?,
        (Some(text), None) => return Err(Problem::invalid("wait", text, "goes with epoch_above only")),
    };
    if let Some(above) = above {
        risen(&app, &group, above, wait).await?;
    }
    let state = app.state(&group)?;
    let (mut grown, mut to_come) = (Vec::new(), Vec::new());
    if let Some(look) = app.0.looks.known(&group) {
        let new = growth(&state, &look).into_iter();
        grown.extend(new.map(|at| Grown { topic: at.topic, partition: at.partition }));
        to_come = losses_to_come(&state, &look);
    }
    let members = app.0.looks.members(&group);
    let journal = app.control().journal.clone();
    let now = (app.control().clock)();
    let followed = state.kafka_group.is_some() && app.control().broker.is_some();
    let mirror = followed.then(|| app.control().mirror.status(&group).into());
    let answer = blocking(move || {
        let refusals = journal.refusals(&group);
        let fenced_total = refusals.of(Kind::Fenced.name());
        Ok(GroupAnswer {
            summary: with_last_batch(&journal, &group, GroupSummary::new(&group, &state, None, now))?,
            growth: grown,
            losses_to_come: to_come,
            mirror,
            members,
            last_fenced: refusals.last_fenced.map(|Fenced { at, epoch, ranges }| LastFenced { at, epoch, ranges }),
            fenced_total: Count(fenced_total),
        })
    });
    json(StatusCode::OK, &answer.await?)
}

/// Returns once the group's epoch is above `epoch`, `wait` is over, or the server stops.
async fn risen(app: &App, group: &Group, epoch: Epoch, wait: Duration) -> Result<(), Problem> {
    let mut steered = app.0.hub.steered();
    let mut stopping = app.stopping();
    let watch = async {
        loop {
            let present = app.control().journal.with_state(|state| state.groups.get(group).map(|group| group.epoch));
            match present {
                None => return Err(Problem::unknown_group(&app.control().journal, group)),
                Some(present) if present > epoch => return Ok(()),
                Some(_) => {}
            }
            if steered.changed().await.is_err() {
                return Ok(());
            }
        }
    };
    tokio::select! {
        risen = watch => risen,
        () = tokio::time::sleep(wait) => Ok(()),
        () = stopping.stopped() => Ok(()),
    }
}

/// Reads `30s` or `500ms`.
fn read_wait(text: &str) -> Result<Duration, Problem> {
    let limit = "a number with ms or s, such as 30s, at most 60s";
    let read = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten();
    let millis = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(digits), _) => read(digits),
        (None, Some(digits)) => read(digits).and_then(|seconds| seconds.checked_mul(1_000)),
        (None, None) => None,
    };
    match millis.map(Duration::from_millis) {
        Some(wait) if wait <= MAX_WAIT => Ok(wait),
        _ => Err(Invalid::new("wait", text, limit).into()),
    }
}
