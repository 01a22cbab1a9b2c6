//! The records that are plain values (versioned, checksummed, bincode: [`codec::value`](crate::journal::codec::value)).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::entry::{Body, Entry};
use crate::journal::codec::results::Place;
use crate::offset::{Offset, Seq, Timestamp, TopicName};
use crate::positions::GroupState;

/// `m`: written last; makes a seal valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sealed {
    /// The newest sealed entry.
    pub seq: Seq,
    /// Its time.
    pub recorded_at: Timestamp,
    /// The number of the seal: 0 for a store that was just made.
    pub seal: u64,
    /// Names of groups.
    pub groups: u32,
    /// Topics, each incarnation by itself.
    pub topics: u32,
    /// Groups that have a state.
    pub states: u32,
}

/// `s`: a group as of a seal.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SealedGroup {
    /// Its id: a value that sits under another key is noticed.
    pub id: u32,
    /// Its state.
    pub state: GroupState,
    /// Its newest entry that is no batch; 0 if there is none.
    pub last_other: Seq,
    /// What decides when the next snapshot is due.
    pub pace: Pace,
    /// Its runs of results, the oldest first.
    pub runs: Vec<Run>,
    /// What its blocks have read.
    pub reach: Reach,
}

/// The results of consecutive seals, in the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The seal that wrote it: its name.
    pub seal: u64,
    /// The oldest batch that it holds results of.
    pub first: Seq,
    /// How many results it holds, removals included.
    pub puts: u64,
    /// What they take, about.
    pub bytes: u64,
    /// What it begins with.
    pub begin: Place,
    /// Its last key.
    pub end: Vec<u8>,
}

/// The highest `until_offset` of each partition in a group's blocks, over all incarnations of its topic: it only rises.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reach(BTreeMap<TopicName, BTreeMap<u32, Offset>>);

impl Reach {
    /// Of one partition; 0 where nothing was read.
    pub fn of(&self, topic: &TopicName, partition: u32) -> u64 {
        self.0.get(topic).and_then(|partitions| partitions.get(&partition)).map_or(0, |reach| reach.as_u64())
    }

    /// Sets that of one partition.
    pub fn set(&mut self, topic: &TopicName, partition: u32, reach: u64) {
        // It came from an offset.
        let reach = Offset::try_from(reach).unwrap_or(Offset::MAX);
        match self.0.get_mut(topic) {
            Some(partitions) => drop(partitions.insert(partition, reach)),
            None => drop(self.0.insert(topic.clone(), BTreeMap::from([(partition, reach)]))),
        }
    }

    /// Takes in a block's batches.
    pub fn raise(&mut self, entries: &[Entry]) {
        let batches = entries.iter().filter_map(|entry| match &entry.body {
            Body::Batch(batch) => Some(batch),
            _ => None,
        });
        for range in batches.flat_map(|batch| &batch.ranges) {
            if range.until_offset().as_u64() > self.of(range.topic(), range.partition()) {
                self.set(range.topic(), range.partition(), range.until_offset().as_u64());
            }
        }
    }
}

/// How much a reader would fold from the newest snapshot on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pace {
    /// Bytes of blocks and other entries since then.
    pub since: u64,
    /// Bytes of that snapshot.
    pub snapshot: u64,
}

/// `x`: an entry that is no batch. They are linked, so that a missing one is noticed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Other {
    /// The one before it in its group; 0 if it is the first.
    pub before: Seq,
    /// The entry.
    pub entry: Entry,
}
