//! One batch after the other, from the consumer to its command or to standard output, then to the journal.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;

use crate::cli::child::{BatchCommand, Worked};
use crate::cli::exit::Failure;
use crate::cli::records::RecordFormat;
use crate::cli::stop::Stop;
use crate::commit::Receipt;
use crate::fingerprint::fnv1a;
use crate::journal::CommitError;
use crate::kafka::{Batch, CommitFailed, JournaledConsumer};
use crate::offset::{BatchNumber, Group, OffsetRange, TopicId, TopicName};

/// What is written to standard output at once, in bytes.
const CHUNK: usize = 64 << 10;
/// How long a reader of standard output that does not read may hold up a stop.
const GRACE: Duration = Duration::from_secs(2);

/// Whoever works on the batches.
pub struct Hands {
    group: Group,
    command: Option<BatchCommand>,
}

/// What became of a batch.
pub enum Handed {
    /// It is in the journal.
    Committed {
        /// The journal's answer.
        receipt: Receipt,
        /// How many records it had.
        records: usize,
    },
    /// The group was moved meanwhile; the consumer goes on from the new positions.
    Dropped,
    /// The process is to stop, and the batch was not finished.
    Stopped,
}

impl Hands {
    /// The command, or standard output.
    pub fn new(group: Group, command: Option<BatchCommand>) -> Self {
        Hands { group, command }
    }

    /// Has the batch worked on, then commits it.
    pub async fn work(
        &mut self,
        consumer: &JournaledConsumer,
        mut batch: Batch,
        stop: &mut Stop,
    ) -> Result<Handed, Failure> {
        let worked = match &self.command {
            // Markers and aborted records alone are nothing to work on.
            _ if batch.is_empty() => Worked::Done,
            Some(command) => {
                let key = key(&self.group, batch.ranges(), batch.topic_ids());
                batch.set_key(key.as_str())?;
                command.work(&self.group, &batch, &key, stop).await?
            }
            None => print(&batch, stop).await?,
        };
        if worked == Worked::Stopped {
            tracing::info!("batch {} is not committed; it is read again", batch.number());
            return Ok(Handed::Stopped);
        }
        let (number, records) = (batch.number(), batch.len());
        match consumer.commit_async(batch).await {
            Ok(receipt) => {
                tracing::debug!("batch {} committed, seq {}, {records} records", receipt.batch, receipt.seq);
                Ok(Handed::Committed { receipt, records })
            }
            Err(CommitFailed::Moved(refused)) => {
                tracing::warn!("batch {number} is dropped: {refused}; going on from the new positions");
                Ok(Handed::Dropped)
            }
            Err(CommitFailed::Stopped(reason)) => Err(super::stopped(reason)),
            Err(CommitFailed::Refused(refused)) => Err(CommitError::Refused(refused).into()),
            Err(CommitFailed::Journal(error)) => Err(error.into()),
        }
    }
}

/// Writes the batch to standard output as JSON lines and flushes it.
async fn print(batch: &Batch, stop: &mut Stop) -> Result<Worked, Failure> {
    let write = async {
        let mut stdout = tokio::io::stdout();
        let mut chunk = Vec::with_capacity(CHUNK + (CHUNK >> 2));
        for record in batch.records() {
            RecordFormat::Json.write(&record, &mut chunk)?;
            if chunk.len() >= CHUNK {
                stdout.write_all(&chunk).await?;
                chunk.clear();
            }
        }
        stdout.write_all(&chunk).await?;
        stdout.flush().await
    };
    let held_up = async {
        stop.asked().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        written = write => written.map(|()| Worked::Done).map_err(Failure::Output),
        () = held_up => Ok(Worked::Stopped),
    }
}

/// A key that the same ranges of the same group and topics always have, and those of a topic made again have not. For
/// sinks that know what they have seen, and for the journal likewise.
fn key(group: &Group, ranges: &[OffsetRange], topic_ids: &BTreeMap<TopicName, TopicId>) -> String {
    let mut bytes = format!("{}\0{}\0", group.app(), group.group()).into_bytes();
    for range in ranges {
        bytes.extend_from_slice(range.to_string().as_bytes());
        bytes.push(0);
        bytes.extend(topic_ids.get(range.topic()).into_iter().flat_map(TopicId::as_bytes));
    }
    format!("{:016x}", fnv1a(&bytes))
}

/// Tells now and then how far it is, where somebody looks.
pub struct Progress {
    group: Group,
    /// Whether somebody looks.
    wanted: bool,
    batches: u64,
    records: u64,
    newest: BatchNumber,
    /// The batches and the records that were told, and when.
    told: (u64, u64, Instant),
}

impl Progress {
    /// How often, at most.
    pub const INTERVAL: Duration = Duration::from_secs(10);

    /// Nothing so far. It is told on a terminal, or where it was asked for.
    pub fn new(group: Group, asked_for: bool) -> Self {
        let wanted = asked_for || io::stderr().is_terminal();
        Progress { group, wanted, batches: 0, records: 0, newest: BatchNumber::ZERO, told: (0, 0, Instant::now()) }
    }

    /// A batch more.
    pub fn add(&mut self, receipt: &Receipt, records: usize) {
        self.batches += 1;
        self.records += records as u64;
        self.newest = receipt.batch;
    }

    /// Tells, if there is something new; at the end in any case.
    pub fn tell(&mut self, end: bool) {
        let (batches, records, since) = self.told;
        if !self.wanted || (self.batches == batches && !end) {
            return;
        }
        let rate = (self.records - records) as f64 / since.elapsed().as_secs_f64().max(0.001);
        self.told = (self.batches, self.records, Instant::now());
        let Progress { group, batches, records, newest, .. } = self;
        let rate = if end { String::new() } else { format!(", {rate:.0} a second") };
        tracing::info!(
            "group {group}: {batches} batches with {records} records committed{rate}, the newest is batch {newest}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offset::{Offset, TopicName};

    #[test]
    fn a_key_is_the_same_for_the_same_ranges_and_no_others() {
        let group = |name: &str| Group::new("default", name).expect("legal");
        let range = |from: i64, until: i64| {
            let offset = |number| Offset::new(number).expect("positive");
            OffsetRange::new(TopicName::new("t").expect("legal"), 0, offset(from), offset(until)).expect("legal")
        };
        let none = BTreeMap::new();
        let first = key(&group("a"), &[range(0, 10)], &none);
        assert_eq!(first, key(&group("a"), &[range(0, 10)], &none));
        assert_eq!(first.len(), 16);
        assert_ne!(first, key(&group("b"), &[range(0, 10)], &none));
        assert_ne!(first, key(&group("a"), &[range(0, 11)], &none));
        let made_again = [(range(0, 10).topic().clone(), TopicId::from_bytes([7; 16]).expect("not zero"))].into();
        assert_ne!(first, key(&group("a"), &[range(0, 10)], &made_again));
    }
}
