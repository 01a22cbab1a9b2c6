//! Entries and batches as JSON.

use serde::Serialize;

use crate::entry::{self, Body, Correction, Finding, KafkaOutcome, Loss, Move, Note, TopicChange};
use crate::offset::{BatchNumber, Epoch, Isolation, OffsetRange, Seq, Timestamp, TopicName};

/// A batch: `batch`, `seq`, `batch_time`, `recorded_at`, `epoch`, `key`, `ranges`, `notes`.
#[derive(Debug, Serialize)]
pub struct Batch<'a> {
    /// Its number within the group.
    pub batch: BatchNumber,
    /// Its entry.
    pub seq: Seq,
    /// When the consumer cut it.
    pub batch_time: Timestamp,
    /// When the journal took it.
    pub recorded_at: Timestamp,
    /// The epoch that it was read under.
    pub epoch: Epoch,
    /// The idempotency key.
    pub key: Option<&'a str>,
    /// What was read.
    pub ranges: &'a [OffsetRange],
    /// Holes, overlaps, late and first ranges.
    pub notes: &'a [Note],
}

impl<'a> Batch<'a> {
    /// The batch that `entry` is; none if it is of another kind.
    pub fn of(entry: &'a entry::Entry) -> Option<Self> {
        let Body::Batch(batch) = &entry.body else { return None };
        Some(Batch {
            batch: batch.batch,
            seq: entry.seq,
            batch_time: batch.batch_time,
            recorded_at: entry.recorded_at,
            epoch: entry.epoch,
            key: batch.key.as_deref(),
            ranges: &batch.ranges,
            notes: &batch.notes,
        })
    }
}

/// An entry: `seq`, `kind`, `group`, `app`, `recorded_at`, `machine_clock`, `epoch`, and the fields of its kind.
#[derive(Debug, Serialize)]
pub struct Entry<'a> {
    seq: Seq,
    kind: &'static str,
    group: Option<&'a str>,
    app: Option<&'a str>,
    recorded_at: Timestamp,
    machine_clock: Timestamp,
    epoch: Epoch,
    #[serde(flatten)]
    own: Own<'a>,
}

impl<'a> From<&'a entry::Entry> for Entry<'a> {
    fn from(entry: &'a entry::Entry) -> Self {
        Entry {
            seq: entry.seq,
            kind: entry.body.kind(),
            group: entry.group.as_ref().map(|group| group.group()),
            app: entry.group.as_ref().map(|group| group.app()),
            recorded_at: entry.recorded_at,
            machine_clock: entry.machine_clock,
            epoch: entry.epoch,
            own: Own::of(&entry.body),
        }
    }
}

/// The fields of a kind.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Own<'a> {
    Batch {
        batch: BatchNumber,
        batch_time: Timestamp,
        key: Option<&'a str>,
        ranges: &'a [OffsetRange],
        notes: &'a [Note],
    },
    Started {
        owner: &'a str,
        isolation: Isolation,
    },
    Found {
        findings: &'a [Finding],
        #[serde(flatten)]
        change: Change<'a>,
    },
    RolledBack {
        plan: &'a str,
        target: &'a str,
        actor: &'a str,
        reason: &'a str,
        undoes: Option<Seq>,
        kafka: bool,
        #[serde(flatten)]
        change: Change<'a>,
    },
    KafkaResult {
        of: Seq,
        partitions: &'a [KafkaOutcome],
    },
    Held {
        reason: &'a str,
        actor: &'a str,
    },
    By {
        actor: &'a str,
    },
    Retired {
        topic: Option<&'a TopicName>,
        actor: &'a str,
    },
    Mark {
        name: &'a str,
        actor: &'a str,
    },
    Acknowledged {
        of: Seq,
        actor: &'a str,
    },
    Imported {
        source: &'a str,
        #[serde(flatten)]
        change: Change<'a>,
    },
    Pruned {
        through: Seq,
        actor: &'a str,
    },
}

/// A correction's fields.
#[derive(Debug, Serialize)]
struct Change<'a> {
    topics: &'a [TopicChange],
    moves: &'a [Move],
    losses: &'a [Loss],
    cluster_id: Option<&'a str>,
}

impl<'a> From<&'a Correction> for Change<'a> {
    fn from(correction: &'a Correction) -> Self {
        Change {
            topics: &correction.topics,
            moves: &correction.moves,
            losses: &correction.losses,
            cluster_id: correction.cluster_id.as_deref(),
        }
    }
}

impl<'a> Own<'a> {
    fn of(body: &'a Body) -> Self {
        match body {
            Body::Batch(b) => Own::Batch {
                batch: b.batch,
                batch_time: b.batch_time,
                key: b.key.as_deref(),
                ranges: &b.ranges,
                notes: &b.notes,
            },
            Body::Started { owner, isolation } => Own::Started { owner, isolation: *isolation },
            Body::Reconciled { findings, correction } | Body::PartitionsAdded { findings, correction } => {
                Own::Found { findings, change: correction.into() }
            }
            Body::RolledBack(r) => Own::RolledBack {
                plan: &r.plan,
                target: &r.target,
                actor: &r.actor,
                reason: &r.reason,
                undoes: r.undoes,
                kafka: r.kafka,
                change: (&r.correction).into(),
            },
            Body::KafkaResult { of, partitions } => Own::KafkaResult { of: *of, partitions },
            Body::Held { reason, actor } => Own::Held { reason, actor },
            Body::Released { actor } => Own::By { actor },
            Body::Retired { topic, actor } => Own::Retired { topic: topic.as_ref(), actor },
            Body::Mark { name, actor } => Own::Mark { name, actor },
            Body::LossAcknowledged { of, actor } => Own::Acknowledged { of: *of, actor },
            Body::Imported { source, correction } => Own::Imported { source, change: correction.into() },
            // The states that it carries are the journal's own business, and as large as the journal has groups.
            Body::Pruned { through, actor, groups: _ } => Own::Pruned { through: *through, actor },
        }
    }
}
