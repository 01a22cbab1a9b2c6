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
///
/// ```
/// # let look = tidelog::broker::Look {
/// #     taken_at: "2026-11-30T10:00:00Z".parse()?,
/// #     brokers: "localhost:9092".to_owned(),
/// #     cluster_id: Seen::Failed("timed out".to_owned()),
/// #     topics: [].into(),
/// #     listing: Seen::Absent,
/// # };
/// use tidelog::broker::Seen;
/// use tidelog::offset::Group;
/// use tidelog::reconcile::{Decision, Holes, Observed, Occasion, Policy, Question, Starter, decide};
///
/// let decision = decide(&Question {
///     group: &Group::new("default", "loader")?,
///     state: None,
///     topics: &["orders".parse()?],
///     observed: &Observed { look, positions: Default::default() }, // the broker timed out
///     earlier: None,
///     holes: &Holes::NotLooked,
///     firsts: &[].into(),
///     policy: &Policy::default(),
///     occasion: Occasion::Start(Starter { owner: "me", isolation: None, kafka_group: None }),
/// });
/// assert!(matches!(decision, Decision::LookAgain { .. })); // never a reset
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
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
///
/// ```
/// use tidelog::broker::{Look, Seen};
/// use tidelog::positions::Positions;
/// use tidelog::reconcile::Observed;
///
/// let positions = Positions::default(); // read first
/// let (taken_at, brokers) = ("2026-11-30T10:00:00Z".parse()?, "localhost:9092".to_owned());
/// let cluster_id = Seen::Known("GlwF".to_owned());
/// let look = Look { taken_at, brokers, cluster_id, topics: [].into(), listing: Seen::Absent };
/// let observed = Observed { look, positions };
/// assert_eq!(observed.look.cluster_id.known().map(String::as_str), Some("GlwF"));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// What the broker said.
    pub look: Look,
    /// The group's positions, read *before* the look: a position that moved since says nothing about what it saw.
    pub positions: Positions,
}

/// Who asks.
///
/// ```
/// # use tidelog::broker::{Look, Seen, TopicLook};
/// # let topic = TopicLook { id: Seen::Absent, partitions: Seen::Failed("timed out".to_owned()) };
/// # let look = Look {
/// #     taken_at: "2026-11-30T10:00:00Z".parse()?,
/// #     brokers: "localhost:9092".to_owned(),
/// #     cluster_id: Seen::Absent,
/// #     topics: [("orders".parse()?, topic)].into(),
/// #     listing: Seen::Absent,
/// # };
/// # let (loader, topics) = (tidelog::offset::Group::new("default", "loader")?, ["orders".parse()?]);
/// # let observed = &tidelog::reconcile::Observed { look, positions: Default::default() };
/// # let (holes, policy, firsts) = (&tidelog::reconcile::Holes::NotLooked, &Default::default(), &[].into());
/// # let (group, state, topics, earlier) = (&loader, None, &topics, None);
/// use tidelog::offset::TopicPartition;
/// use tidelog::reconcile::{Decision, Occasion, Question, Starter, decide};
///
/// // The broker did not say: a start waits, a consumer that runs goes on.
/// let ask = |occasion| decide(&Question { group, state, topics, observed, earlier, holes, firsts, policy, occasion });
/// let start = Occasion::Start(Starter { owner: "me", isolation: None, kafka_group: None });
/// assert!(matches!(ask(start), Decision::LookAgain { .. }));
/// let assigned = [TopicPartition::new("orders".parse()?, 0)].into();
/// assert!(matches!(ask(Occasion::Running { assigned: &assigned, undoubted: None }), Decision::Decided(_)));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
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
///
/// ```
/// use tidelog::broker::Seen;
/// use tidelog::offset::OffsetRange;
/// use tidelog::reconcile::{Holes, LookedInto};
///
/// let range = OffsetRange::new("orders".parse()?, 0, "498".parse()?, "500".parse()?)?;
/// let holes = Holes::Looked(vec![LookedInto { range, first_readable: Seen::Absent }]); // compacted away: no loss
/// assert_ne!(holes, Holes::NotLooked);
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Holes {
    /// Nobody looked: they stay open, and `unread_hole` is not asked.
    NotLooked,
    /// These were looked into; one that was not must be before a start.
    Looked(Vec<LookedInto>),
}

/// A hole that was looked into, with the group's isolation.
///
/// ```
/// use tidelog::broker::Seen;
/// use tidelog::offset::OffsetRange;
/// use tidelog::reconcile::LookedInto;
///
/// let range = OffsetRange::new("orders".parse()?, 0, "498".parse()?, "500".parse()?)?;
/// let looked = LookedInto { range, first_readable: Seen::Known("499".parse()?) };
/// let first = looked.first_readable.known().ok_or("it holds one")?;
/// assert!(looked.range.from_offset() <= *first && *first < looked.range.until_offset());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LookedInto {
    /// The hole, or a range that covers it.
    pub range: OffsetRange,
    /// Its first readable record; absent where it holds none.
    pub first_readable: Seen<Offset>,
}

/// What a question comes to.
///
/// ```
/// use tidelog::offset::Group;
/// use tidelog::reconcile::{Decision, NewGroup, Policy, Starter, unchecked};
///
/// let policy = Policy { new_group: NewGroup::Fail, ..Policy::default() };
/// let starter = Starter { owner: "me", isolation: None, kafka_group: None };
/// let decision = unchecked(&Group::new("default", "loader")?, None, &["orders".parse()?], &policy, starter)?;
/// assert!(matches!(decision, Decision::Refused { findings } if findings.len() == 1));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
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
///
/// ```
/// # let starter = tidelog::reconcile::Starter { owner: "me", isolation: None, kafka_group: None };
/// use tidelog::offset::Group;
/// use tidelog::reconcile::{Decision, Policy, unchecked};
///
/// let (loader, topics) = (Group::new("default", "loader")?, ["orders".parse()?]);
/// match unchecked(&loader, None, &topics, &Policy::default(), starter)? {
///     Decision::Decided(decided) => {
///         let kinds: Vec<_> = decided.drafts.iter().map(|draft| draft.body.kind()).collect();
///         assert_eq!((decided.epoch.get(), kinds), (1, vec!["started"]));
///     }
///     Decision::Refused { .. } | Decision::LookAgain { .. } => panic!("without a broker all is taken as it is"),
/// }
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
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
///
/// ```
/// # let starter = tidelog::reconcile::Starter { owner: "me", isolation: None, kafka_group: None };
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// use tidelog::entry::Verdict;
/// use tidelog::offset::TopicPartition;
/// use tidelog::reconcile::{Decision, NewGroup, Policy, unchecked};
///
/// let at = TopicPartition::new("orders".parse()?, 0);
/// let policy = Policy { new_group: NewGroup::Offsets([(at.clone(), "500".parse()?)].into()), ..Policy::default() };
/// let decision = unchecked(&loader, None, &["orders".parse()?], &policy, starter)?;
/// let Decision::Decided(decided) = decision else { panic!("{decision:?}") };
/// let start = &decided.starts[0];
/// assert_eq!((&start.at, start.offset.get(), start.verdict), (&at, 500, Verdict::Unchecked));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
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
///
/// ```
/// use tidelog::reconcile::{Unsettled, Why};
///
/// let why = Why::Unknown("timed out".to_owned());
/// let unsettled = Unsettled { topic: Some("orders".parse()?), partition: Some(0), why };
/// assert_eq!(unsettled.to_string(), "orders/0: timed out");
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
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
///
/// ```
/// use tidelog::entry::Verdict;
/// use tidelog::reconcile::Why;
///
/// let why = Why::Once(Verdict::TopicRecreated);
/// assert_eq!(why.to_string(), "topic_recreated, seen once; a second look must agree");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Verdict 4: the broker did not say, in these words.
    Unknown(String),
    /// Seen once; a second look must agree.
    Once(Verdict),
    /// What an open hole holds was not answered yet, or can't be.
    Hole {
        /// The hole.
        from_offset: Offset,
        /// Its end.
        until_offset: Offset,
        /// In these words.
        error: String,
    },
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
            Why::Hole { from_offset, until_offset, error } => {
                write!(f, "the hole [{from_offset}, {until_offset}): {error}")
            }
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
