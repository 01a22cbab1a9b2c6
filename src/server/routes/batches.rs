//! `GET` and `POST /v1/groups/{g}/batches`, `GET /v1/groups/{g}/batches/{n}`

use std::collections::BTreeSet;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;

use super::{Answer, blocking, internal, json};
use crate::broker::{Ask as BrokerAsk, Look, Seen, TopicSelector};
use crate::commit::{Commit, Refused};
use crate::control::UnknownGroup;
use crate::entry::Entry;
use crate::history::{self, BatchFilter};
use crate::journal::{CommitError, Journal};
use crate::offset::{BatchNumber, Group, OffsetRange, TopicName, TopicPartition};
use crate::server::ask::{Ask, read_partition};
use crate::server::{App, Kind, Problem};
use crate::wire::{Batch, BatchesAnswer, CommitBody, ReceiptAnswer};

/// How long the broker is asked about partitions that the group does not have.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// Before it is asked again about one that it does not have.
const SECOND_LOOK: Duration = Duration::from_millis(300);

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
    let journal = &app.control().journal;
    let body = ask.body().and_then(|body: CommitBody| Ok(body.commit(group.clone())?));
    let commit = match body {
        Ok(commit) => with_earliest(&app, &group, commit).await,
        Err(problem) => Err(problem),
    };
    let commit = commit.inspect_err(|problem| {
        if problem.kind == Kind::Invalid {
            journal.note_invalid(&group);
        }
    })?;
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

/// Adds what the broker says is the earliest of the partitions that the group does not have yet: below it there is no hole.
/// A partition that the broker does not have is refused, as no start could get past it; a broker that says nothing is not
/// waited for.
async fn with_earliest(app: &App, group: &Group, mut commit: Commit) -> Result<Commit, Problem> {
    let broker = app.control().broker.clone().filter(|_| !app.0.looks.is_silent(group));
    let Some(broker) = broker else { return Ok(commit) };
    let new = app.control().journal.with_state(|state| {
        let group = state.groups.get(group)?;
        let new = |range: &&OffsetRange| group.positions.get(range.topic(), range.partition()).is_none();
        let new = commit.ranges().iter().filter(new).map(OffsetRange::topic_partition).collect::<Vec<_>>();
        (!new.is_empty()).then_some((new, group.isolation))
    });
    let Some((new, isolation)) = new else { return Ok(commit) };
    let topics: BTreeSet<TopicName> = new.iter().map(|at| at.topic.clone()).collect();
    let topics = topics.into_iter().map(TopicSelector::Name).collect();
    let ask = BrokerAsk { topics, isolation, deadline: FIRST_LOOK };
    for last in [false, true] {
        let (broker, ask) = (broker.clone(), ask.clone());
        let look = blocking(move || Ok(broker.look(&ask))).await?;
        let missing = new.iter().find_map(|at| missing(&look, at).map(|why| (at, why)));
        let Some((at, why)) = missing else {
            for at in &new {
                let known = look.topics.get(&at.topic).and_then(|topic| topic.partitions.known()?.get(&at.partition));
                if let Some(earliest) = known.and_then(|partition| partition.earliest.known()) {
                    commit = commit.with_earliest(at.clone(), *earliest);
                }
            }
            return Ok(commit);
        };
        if last {
            return Err(Problem::invalid("ranges", at, why));
        }
        // Just after a topic has grown a broker may answer as before.
        tokio::time::sleep(SECOND_LOOK).await;
    }
    Ok(commit)
}

/// Why the partition is none, where the broker said so.
fn missing(look: &Look, at: &TopicPartition) -> Option<String> {
    match &look.topics.get(&at.topic)?.partitions {
        Seen::Known(partitions) if partitions.contains_key(&at.partition) => None,
        Seen::Known(partitions) => Some(format!(
            "the group has no such partition, and {} lists {} of {}",
            look.brokers,
            partitions.len(),
            at.topic
        )),
        Seen::Absent => Some(format!("the group has no such topic, and {} has none", look.brokers)),
        Seen::Failed(_) => None,
    }
}
