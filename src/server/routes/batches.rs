//! `GET` and `POST /v1/groups/{g}/batches`, `GET /v1/groups/{g}/batches/{n}`

use axum::extract::State;
use axum::http::StatusCode;

use super::{Answer, blocking, internal, json};
use crate::commit::{Commit, Refused};
use crate::control::UnknownGroup;
use crate::entry::Entry;
use crate::history::{self, BatchFilter};
use crate::journal::{CommitError, Journal};
use crate::offset::{BatchNumber, Group, TopicPartition, partition_number};
use crate::server::ask::Ask;
use crate::server::{App, Kind, Problem};
use crate::wire::{Batch, BatchesAnswer, CommitBody, ReceiptAnswer};

/// The batches of a group.
pub async fn list(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    let window = ask.window()?;
    let partition = ask.text("partition").map(|text| read_partition(&text)).transpose()?;
    let filter = BatchFilter {
        topic: ask.param("topic")?,
        partition,
        batch_from: ask.time("batch_from")?,
        batch_to: ask.time("batch_to")?,
    };
    let after = ask.cursor::<BatchNumber>()?;
    ask.no_more()?;
    app.known(&group)?;
    let journal = app.control().journal.clone();
    blocking(move || {
        let page = history::batches(&journal, &group, &window, &filter, after)?;
        let batches = page.entries.into_iter().filter_map(Batch::of).collect();
        json(StatusCode::OK, &BatchesAnswer { batches, next: page.next.map(|next| next.to_string()) })
    })
    .await
}

fn read_partition(text: &str) -> Result<u32, Problem> {
    let wrong = || Problem::invalid("partition", text, "a partition is 0 to 2147483647");
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits).ok_or_else(wrong)?;
    partition_number(number).map_err(|_| wrong())
}

/// One batch.
pub async fn one(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    let batch = ask.part::<BatchNumber>("batch")?;
    ask.no_more()?;
    app.known(&group)?;
    let journal = app.control().journal.clone();
    let entry = blocking(move || entry(&journal, &group, batch)).await?;
    match Batch::of(entry) {
        Some(batch) => json(StatusCode::OK, &batch),
        None => Err(internal(&"the entry of a batch is none")),
    }
}

/// The entry of a batch of a group that is there.
pub fn entry(journal: &Journal, group: &Group, batch: BatchNumber) -> Result<Entry, Problem> {
    if batch == BatchNumber::ZERO {
        return Err(Problem::invalid("batch", batch, "batches are numbered from 1"));
    }
    let newest = journal.with_state(|state| state.groups.get(group).map(|group| group.positions.batch));
    let newest = newest.unwrap_or_default();
    journal.batch(group, batch)?.ok_or_else(|| {
        let detail = match newest {
            BatchNumber::ZERO => format!("group {group} has no batch yet"),
            newest if batch > newest => format!("no batch {batch} of group {group}; its newest is {newest}"),
            newest => format!("batch {batch} of group {group} is no longer kept; its newest is {newest}"),
        };
        let kind = if batch > newest { Kind::UnknownBatch } else { Kind::BeforeHistory };
        Problem::new(kind, detail).with("newest", newest)
    })
}

/// Commits a batch; answered once it is as durable as the journal was opened for.
pub async fn commit(State(app): State<App>, mut ask: Ask) -> Answer {
    let group = ask.group()?;
    ask.no_more()?;
    let body: CommitBody = ask.body()?;
    let commit = with_earliest(&app, &group, body.commit(group.clone())?);
    let journal = &app.control().journal;
    let receipt = journal.commit_async(commit).await.map_err(|error| {
        let unknown = matches!(error, CommitError::Refused(Refused::UnknownGroup { .. }));
        let problem = Problem::from(error);
        if !unknown {
            return problem;
        }
        problem.with("apps", journal.with_state(|state| UnknownGroup::new(state, &group).apps))
    })?;
    let status = if receipt.repeated { StatusCode::OK } else { StatusCode::CREATED };
    json(status, &ReceiptAnswer::from(receipt))
}

/// What the last look knew as earliest of the partitions that the group does not have yet: below it there is no hole.
fn with_earliest(app: &App, group: &Group, mut commit: Commit) -> Commit {
    let new: Vec<TopicPartition> = app.control().journal.with_state(|state| {
        let Some(state) = state.groups.get(group) else { return Vec::new() };
        let new =
            commit.ranges().iter().filter(|range| state.positions.get(range.topic(), range.partition()).is_none());
        new.map(|range| TopicPartition::new(range.topic().clone(), range.partition())).collect()
    });
    if new.is_empty() {
        return commit;
    }
    let Some(look) = app.0.looks.known(group) else { return commit };
    for at in new {
        let partition = look.topics.get(&at.topic).and_then(|topic| topic.partitions.known()?.get(&at.partition));
        if let Some(earliest) = partition.and_then(|partition| partition.earliest.known()) {
            commit = commit.with_earliest(at, *earliest);
        }
    }
    commit
}
