//! Entries and batches as JSON.

use serde::{Deserialize, Serialize};

use crate::entry::{self, Body, Correction, Finding, KafkaOutcome, Note};
use crate::offset::{BatchNumber, Epoch, Isolation, OffsetRange, Seq, Timestamp, TopicName};
use crate::wire::KafkaWord;

/// A batch: `batch`, `seq`, `batch_time`, `recorded_at`, `epoch`, `key`, `ranges`, `notes`.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let at = tidelog::offset::TopicPartition::new("orders".parse()?, 0);
/// # let mut request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # request.policy.new_group = tidelog::reconcile::NewGroup::Offsets([(at, "500".parse()?)].into());
/// # let started = tidelog::control::start(&control, request)?;
/// # let commit = |from: i64, until: i64| -> Result<_, Box<dyn std::error::Error>> {
/// #     use tidelog::offset::{Offset, OffsetRange, Timestamp};
/// #     let range = OffsetRange::new("orders".parse()?, 0, Offset::new(from)?, Offset::new(until)?)?;
/// #     let time = Timestamp::from_millis(1_796_032_800_000 + from);
/// #     Ok(control.journal.commit(tidelog::commit::Commit::new(loader.clone(), started.epoch, time, vec![range])?)?)
/// # };
/// use tidelog::wire::Batch;
///
/// let receipt = commit(500, 542)?;
/// let entry = control.journal.batch(&loader, receipt.batch)?.ok_or("it is there")?;
/// let batch = serde_json::to_value(Batch::of(entry))?;
/// assert_eq!(batch["ranges"][0]["until_offset"], "542");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Batch {
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
    pub key: Option<String>,
    /// What was read.
    pub ranges: Vec<OffsetRange>,
    /// Holes, overlaps, late and first ranges.
    pub notes: Vec<Note>,
}

impl Batch {
    /// The batch that `entry` is; none if it is of another kind.
    pub fn of(entry: entry::Entry) -> Option<Self> {
        let entry::Entry { seq, recorded_at, epoch, body, .. } = entry;
        let Body::Batch(entry::Batch { batch, batch_time, key, ranges, notes, firsts: _, topic_ids: _ }) = body else {
            return None;
        };
        Some(Batch { batch, seq, batch_time, recorded_at, epoch, key, ranges, notes })
    }
}

/// An entry: `seq`, `group`, `app`, `recorded_at`, `machine_clock`, `epoch`, `kind`, and the fields of its kind.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let at = tidelog::offset::TopicPartition::new("orders".parse()?, 0);
/// # let mut request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # request.policy.new_group = tidelog::reconcile::NewGroup::Offsets([(at, "500".parse()?)].into());
/// # let started = tidelog::control::start(&control, request)?;
/// # let commit = |from: i64, until: i64| -> Result<_, Box<dyn std::error::Error>> {
/// #     use tidelog::offset::{Offset, OffsetRange, Timestamp};
/// #     let range = OffsetRange::new("orders".parse()?, 0, Offset::new(from)?, Offset::new(until)?)?;
/// #     let time = Timestamp::from_millis(1_796_032_800_000 + from);
/// #     Ok(control.journal.commit(tidelog::commit::Commit::new(loader.clone(), started.epoch, time, vec![range])?)?)
/// # };
/// use tidelog::wire::Entry;
///
/// let receipt = commit(500, 542)?;
/// let entry = control.journal.entry(receipt.seq)?.ok_or("it is there")?;
/// let entry = serde_json::to_value(Entry::from(entry))?;
/// assert_eq!((&entry["kind"], &entry["seq"], &entry["batch"]), (&"batch".into(), &"3".into(), &"1".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number.
    pub seq: Seq,
    /// The group that it concerns; null for `pruned`.
    pub group: Option<String>,
    /// That group's application.
    pub app: Option<String>,
    /// When the journal took it.
    pub recorded_at: Timestamp,
    /// What the machine's own clock said then.
    pub machine_clock: Timestamp,
    /// The group's epoch after it; for a batch the one it was read under.
    pub epoch: Epoch,
    /// `kind`, and what only that kind has.
    #[serde(flatten)]
    pub own: Own,
}

impl From<entry::Entry> for Entry {
    fn from(entry: entry::Entry) -> Self {
        let entry::Entry { seq, recorded_at, machine_clock, group, epoch, body } = entry;
        Entry {
            seq,
            group: group.as_ref().map(|group| group.group().to_owned()),
            app: group.as_ref().map(|group| group.app().to_owned()),
            recorded_at,
            machine_clock,
            epoch,
            own: body.into(),
        }
    }
}

/// A kind of entry with its own fields. They are those of [`Body`], which says what each means; a correction's stand
/// among them.
///
/// ```
/// use tidelog::wire::Own;
///
/// let own: Own = serde_json::from_str(r#"{"kind": "mark", "name": "before deploy 42", "actor": "ann"}"#)?;
/// assert_eq!(own.kind(), "mark");
/// assert!(matches!(own, Own::Mark { name, .. } if name == "before deploy 42"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Own {
    Batch {
        batch: BatchNumber,
        batch_time: Timestamp,
        key: Option<String>,
        ranges: Vec<OffsetRange>,
        notes: Vec<Note>,
    },
    Started {
        owner: String,
        isolation: Isolation,
        kafka_group: Option<String>,
    },
    Reconciled {
        findings: Vec<Finding>,
        #[serde(flatten)]
        correction: Correction,
    },
    PartitionsAdded {
        findings: Vec<Finding>,
        #[serde(flatten)]
        correction: Correction,
    },
    RolledBack {
        plan: String,
        target: String,
        actor: String,
        reason: String,
        undoes: Option<Seq>,
        kafka: Option<KafkaWord>,
        #[serde(flatten)]
        correction: Correction,
    },
    KafkaResult {
        of: Seq,
        partitions: Vec<KafkaOutcome>,
    },
    Held {
        reason: String,
        actor: String,
    },
    Released {
        actor: String,
    },
    Retired {
        topic: Option<TopicName>,
        actor: String,
    },
    Mark {
        name: String,
        actor: String,
    },
    LossAcknowledged {
        of: Seq,
        actor: String,
    },
    Imported {
        source: String,
        #[serde(flatten)]
        correction: Correction,
    },
    Pruned {
        through: Seq,
        actor: String,
    },
}

impl From<Body> for Own {
    fn from(body: Body) -> Self {
        match body {
            Body::Batch(entry::Batch { batch, batch_time, key, ranges, notes, firsts: _, topic_ids: _ }) => {
                Own::Batch { batch, batch_time, key, ranges, notes }
            }
            Body::Started { owner, isolation, kafka_group } => Own::Started { owner, isolation, kafka_group },
            Body::Reconciled { findings, correction } => Own::Reconciled { findings, correction },
            Body::PartitionsAdded { findings, correction } => Own::PartitionsAdded { findings, correction },
            Body::RolledBack(entry::RolledBack { plan, target, actor, reason, undoes, kafka, correction }) => {
                let kafka = kafka.then_some(KafkaWord::Pending);
                Own::RolledBack { plan, target, actor, reason, undoes, kafka, correction }
            }
            Body::KafkaResult { of, partitions } => Own::KafkaResult { of, partitions },
            Body::Held { reason, actor } => Own::Held { reason, actor },
            Body::Released { actor } => Own::Released { actor },
            Body::Retired { topic, actor } => Own::Retired { topic, actor },
            Body::Mark { name, actor } => Own::Mark { name, actor },
            Body::LossAcknowledged { of, actor } => Own::LossAcknowledged { of, actor },
            Body::Imported { source, correction } => Own::Imported { source, correction },
            // The states that it carries are the journal's own business, and as large as the journal has groups.
            Body::Pruned { through, actor, groups: _ } => Own::Pruned { through, actor },
        }
    }
}

impl Own {
    /// The kind's name, as on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Own::Batch { .. } => "batch",
            Own::Started { .. } => "started",
            Own::Reconciled { .. } => "reconciled",
            Own::PartitionsAdded { .. } => "partitions_added",
            Own::RolledBack { .. } => "rolled_back",
            Own::KafkaResult { .. } => "kafka_result",
            Own::Held { .. } => "held",
            Own::Released { .. } => "released",
            Own::Retired { .. } => "retired",
            Own::Mark { .. } => "mark",
            Own::LossAcknowledged { .. } => "loss_acknowledged",
            Own::Imported { .. } => "imported",
            Own::Pruned { .. } => "pruned",
        }
    }
}

#[cfg(test)]
mod tests;
