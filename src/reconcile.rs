//! The decision of DESIGN section 5: a group's state, what looks at the broker saw, and a policy go in; start positions,
//! findings and the entries to append come out. Pure: no clock, no broker, no journal.
//!
//! The verdicts, per topic then partition, in the order in which they are asked:
//!
//! | # | verdict | asked in | default start |
//! |---|---|---|---|
//! | 1 | `other_cluster` | `cluster` | refuse until the operator accepts the cluster by its id |
//! | 2 | `topic_missing` | `topic` | refuse |
//! | 3 | `topic_recreated` | `topic` | earliest of the new one |
//! | 4 | `unknown` | everywhere | look again, never a reset |
//! | 5 | `truncated`, `tail_out_of_range` | `position` | latest; without topic ids earliest |
//! | 6 | `head_out_of_range` | `position` | earliest, with a loss |
//! | 7 | `unread_hole` | `position` | the hole's lower end |
//! | 8 | `partition_added` | `partition` | its earliest |
//! | 9 | `new_group` | `partition` | as the policy says |
//! | 10 | `in_range` | `position` | the position |
//!
//! 2, 3 and 5 are believed only when an earlier look saw the same. What is lost of a recreated topic is not knowable, as
//! nobody can ask how far it had come: its open holes are noted as lost, and the part of the new one that expired.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::broker::{Look, Seen, TopicSelector};
use crate::entry::{Draft, Finding, Verdict};
use crate::offset::{BatchNumber, Epoch, Group, Offset, OffsetRange, TopicId, TopicName, TopicPartition};
use crate::positions::{GroupState, Positions};

mod cluster;
mod holes;
mod partition;
mod policy;
mod position;
mod ruling;
mod starter;
mod topic;
mod unchecked;

#[cfg(test)]
pub(crate) mod tests;

pub use self::holes::to_look_into;
pub use self::policy::{HeadReset, HoleReset, MissingReset, NewGroup, Policy, RecreatedReset, Reset, TailReset};
use self::ruling::Ruling;
pub use self::starter::Starter;
pub use self::topic::{asked_names, new_group_partitions};
pub use self::unchecked::unchecked;

/// All that a decision is made from.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The group.
    pub group: &'a Group,
    /// Its state now; none where the journal has no such group.
    pub state: Option<&'a GroupState>,
    /// What the group wants to read; empty means all topics that it has and that are not retired.
    pub topics: &'a [TopicSelector],
    /// The newest look.
    pub observed: &'a Observed,
    /// A look long enough before it to tell what stays from what flaps.
    pub earlier: Option<&'a Observed>,
    /// Which holes were looked into.
    pub holes: &'a Holes,
    /// What the broker answered for a new group that begins at a time or at Kafka's committed offsets.
    pub firsts: &'a BTreeMap<TopicPartition, Seen<Offset>>,
    /// What may be done.
    pub policy: &'a Policy,
    /// Who asks.
    pub occasion: Occasion<'a>,
}

/// A look, and where the group was when it was taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// What the broker said.
    pub look: Look,
    /// The group's positions, read *before* the look: a position that moved since says nothing about what it saw.
    pub positions: Positions,
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub enum Occasion<'a> {
    /// A process starts the group: all that it asks for must be settled.
    Start(Starter<'a>),
    /// A consumer that runs: what is not settled is left for the next look, and holes are not asked.
    Running {
        /// The partitions that it reads.
        assigned: &'a BTreeSet<TopicPartition>,
        /// The group's newest batch at the last look that left nothing unsettled: later ones are in doubt if a topic
        /// turns out to be another one.
        undoubted: Option<BatchNumber>,
    },
}

/// What is known of the open holes.
#[derive(Debug, Clone, PartialEq)]
pub enum Holes {
    /// Nobody looked: they stay open, and `unread_hole` is not asked.
    NotLooked,
    /// These were looked into; one that was not must be before a start.
    Looked(Vec<LookedInto>),
}

/// A hole that was looked into, with the group's isolation.
#[derive(Debug, Clone, PartialEq)]
pub struct LookedInto {
    /// The hole, or a range that covers it.
    pub range: OffsetRange,
    /// Its first readable record; absent where it holds none.
    pub first_readable: Seen<Offset>,
}

/// What a question comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Not all values are known, or not yet seen twice: nothing is decided.
    LookAgain {
        /// What is missing.
        unsettled: Vec<Unsettled>,
    },
    /// A policy forbids it: nothing is written, and the next start is told the same.
    Refused {
        /// All that was found; those without a start are in the way.
        findings: Vec<Finding>,
    },
    /// Where to start.
    Decided(Decided),
}

/// Where to start, and what to append before the first record is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// The group's epoch afterwards.
    pub epoch: Epoch,
    /// What was found; nothing where all is in range.
    pub findings: Vec<Finding>,
    /// At a start, each partition that was asked for; while running, those that are new or were moved.
    pub starts: Vec<StartPosition>,
    /// The entries: none, or `started`, `reconciled` and `partitions_added` as needed, in this order.
    pub drafts: Vec<Draft>,
    /// While running: what the next look has to settle. Empty at a start.
    pub unsettled: Vec<Unsettled>,
    /// While running: what a policy forbids to correct. It stays as it is, and keeps nothing else from being settled.
    /// Empty at a start, which is refused as a whole.
    pub refused: Vec<Finding>,
}

/// Where one partition starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartPosition {
    /// The partition.
    pub at: TopicPartition,
    /// The topic's id, where one is known.
    pub topic_id: Option<TopicId>,
    /// The first offset to read.
    pub offset: Offset,
    /// The first of its verdicts, in the table's order.
    pub verdict: Verdict,
    /// The broker's log start offset.
    pub earliest: Option<Offset>,
    /// The broker's high watermark.
    pub latest: Option<Offset>,
    /// What the group can read up to.
    pub readable_end: Option<Offset>,
    /// Up to here records are read again after a rollback.
    pub replaying_until: Option<Offset>,
}

/// Something that a look did not settle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsettled {
    /// The topic; none where the whole cluster is meant.
    pub topic: Option<TopicName>,
    /// The partition; none where the whole topic is meant.
    pub partition: Option<u32>,
    /// Why.
    pub why: Why,
}

/// Why something is not settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Verdict 4: the broker did not say, in these words.
    Unknown(String),
    /// Seen once; a second look must agree.
    Once(Verdict),
}

impl fmt::Display for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.topic, self.partition) {
            (Some(topic), Some(partition)) => write!(f, "{topic}/{partition}: ")?,
            (Some(topic), None) => write!(f, "{topic}: ")?,
            (None, _) => {}
        }
        fmt::Display::fmt(&self.why, f)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Unknown(why) => f.write_str(why),
            Why::Once(verdict) => write!(f, "{}, seen once; a second look must agree", verdict.as_str()),
        }
    }
}

/// Decides. While running it always answers [`Decision::Decided`], except where the cluster itself is in question.
pub fn decide(question: &Question<'_>) -> Decision {
    let mut ruling = Ruling::new(question);
    if !ruling.judge_cluster() {
        return ruling.stop();
    }
    for (name, known) in topic::asked(question, &mut ruling) {
        ruling.judge_topic(&name, known);
    }
    ruling.finish()
}

impl Question<'_> {
    /// Whether a process starts, in contrast to one that runs.
    fn starting(&self) -> bool {
        matches!(self.occasion, Occasion::Start(_))
    }

    /// Whether the group has a position of anything.
    fn has_positions(&self) -> bool {
        self.state.is_some_and(|state| state.positions.topics.values().any(|topic| !topic.partitions.is_empty()))
    }

    /// Whether the partition is one that is asked about: at a start all are, while running those that are read.
    fn reads(&self, topic: &TopicName, partition: u32) -> bool {
        match self.occasion {
            Occasion::Start(_) => true,
            Occasion::Running { assigned, .. } => assigned.contains(&TopicPartition::new(topic.clone(), partition)),
        }
    }
}
