//! `GET /v1/groups/{g}/losses`

use axum::extract::State;
use axum::http::StatusCode;

use super::{Answer, json};
use crate::journal::Order;
use crate::offset::{Offset, Seq, TopicName};
use crate::server::App;
use crate::server::ask::{Ask, bad_cursor};
use crate::wire::{LossLine, LossesAnswer, losses};

/// What tells two lines apart: one entry may note several losses of a partition.
type Place = (Seq, TopicName, u32, Offset);

fn place(line: &LossLine) -> Place {
    (line.seq, line.topic.clone(), line.partition, line.from_offset)
}

/// The open losses and holes of a group.
pub async fn list(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    let (order, limit) = (ask.order()?, ask.limit()?);
    let after = match ask.text("cursor") {
        Some(text) => Some(serde_json::from_str::<Place>(&text).map_err(|_| bad_cursor(&text))?),
        None => None,
    };
    ask.no_more()?;
    let mut lines = losses(&app.state(&group)?);
    if order == Order::Ascending {
        lines.reverse();
    }
    if let Some(after) = after {
        let key = |place: &Place| (std::cmp::Reverse(place.0), place.1.clone(), place.2, place.3);
        let after = key(&after);
        lines.retain(|line| match order {
            Order::Descending => key(&place(line)) > after,
            Order::Ascending => key(&place(line)) < after,
        });
    }
    let more = lines.len() > limit;
    lines.truncate(limit);
    let next = lines.last().filter(|_| more).map(place);
    let next = next.and_then(|place| serde_json::to_string(&place).ok());
    json(StatusCode::OK, &LossesAnswer { losses: lines, next })
}
