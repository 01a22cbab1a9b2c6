//! `GET /v1/groups/{g}/positions`

use std::ops::ControlFlow;

use axum::extract::State;
use axum::http::StatusCode;
use serde_json::json;

use super::{Answer, batches, blocking, json};
use crate::control;
use crate::journal::{Journal, Order};
use crate::offset::{BatchNumber, Group, Seq, Timestamp};
use crate::server::ask::Ask;
use crate::server::{App, Kind, Problem};
use crate::wire::{AsOf, PositionsAnswer};

/// A moment of the past.
enum Moment {
    At(Timestamp),
    Batch(BatchNumber),
    Seq(Seq),
}

/// Where a group goes on now, or went on at a moment of the past.
pub async fn show(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    let given =
        [ask.time("at")?.map(Moment::At), ask.param("batch")?.map(Moment::Batch), ask.param("seq")?.map(Moment::Seq)];
    ask.no_more()?;
    let mut given = given.into_iter().flatten();
    let moment = given.next();
    if given.next().is_some() {
        return Err(Problem::invalid("at", "", "give one of at, batch and seq"));
    }
    // Positions and the newest entry of one moment.
    let journal = &app.control().journal;
    let present = journal.with_state(|state| state.groups.get(&group).map(|group| (group.clone(), state.seq)));
    let (state, newest) = present.ok_or_else(|| Problem::unknown_group(journal, &group))?;
    let look = match moment {
        None => app.0.looks.recent(&group, &state).await,
        Some(_) => None,
    };
    let control = app.control().clone();
    let answer = blocking(move || {
        let journal = &control.journal;
        let as_of = |seq, batch| -> Result<AsOf, Problem> {
            let recorded_at = journal.entry(seq)?.map(|entry| entry.recorded_at).unwrap_or_default();
            let clock_uncertain = control::clock_uncertain(&control, Some(seq))?;
            Ok(AsOf { seq, batch, recorded_at, clock_uncertain })
        };
        let Some(moment) = moment else {
            let seq = last_entry(journal, &group, newest)?;
            let as_of = as_of(seq, state.positions.batch)?;
            return Ok(PositionsAnswer::present(&group, &state, as_of, look.as_deref()));
        };
        let (seq, words) = match moment {
            Moment::Batch(batch) => (Some(batches::entry(journal, &group, batch)?.seq), format!("batch {batch}")),
            Moment::At(time) => (journal.seq_at(Some(&group), time)?, time.to_string()),
            Moment::Seq(seq) => {
                let newest = journal.with_state(|state| state.seq);
                if seq > newest {
                    let limit = format!("above {newest}, the newest entry of this journal");
                    return Err(Problem::invalid("seq", seq, limit));
                }
                (Some(seq), format!("seq {seq}"))
            }
        };
        let past = seq.map(|seq| journal.positions_as_of(&group, seq)).transpose()?.flatten();
        let Some(past) = past else { return Err(before_history(journal, &group, &words)?) };
        let as_of = as_of(past.seq, past.positions.batch)?;
        Ok(PositionsAnswer::past(&group, state.epoch, as_of, &past.positions))
    });
    json(StatusCode::OK, &answer.await?)
}

/// The group's last entry at or before `seq`.
fn last_entry(journal: &Journal, group: &Group, seq: Seq) -> Result<Seq, Problem> {
    let mut last = Seq::ZERO;
    journal.visit_entries(Some(group), seq, Order::Descending, &mut |entry| {
        last = entry.seq;
        ControlFlow::Break(())
    })?;
    Ok(last)
}

/// Says that `moment` is before the oldest entry that is kept.
fn before_history(journal: &Journal, group: &Group, moment: &str) -> Result<Problem, Problem> {
    let oldest = journal.oldest(group)?;
    let told = match &oldest {
        Some(oldest) => {
            format!("its oldest entry is seq {}, recorded at {}", oldest.seq, oldest.recorded_at)
        }
        None => "it has no entries".to_owned(),
    };
    let oldest = oldest.map(|oldest| json!({ "seq": oldest.seq, "recorded_at": oldest.recorded_at }));
    let detail = format!("{moment} is before the history of group {group}: {told}");
    Ok(Problem::new(Kind::BeforeHistory, detail).with("oldest", oldest))
}
