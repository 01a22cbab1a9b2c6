//! What a start may do by itself, as flags: shared by `start` and `consume`.

use std::time::Duration;

use clap::Args;

use crate::broker::{KafkaGroup, TopicSelector};
use crate::cli::args::{IsolationArg, duration};
use crate::offset::Group;
use crate::reconcile::{HeadReset, HoleReset, MissingReset, NewGroup, RecreatedReset, Reset, TailReset};
use crate::wire::StartBody;

/// The topics, and the policy for each cause.
#[derive(Debug, Clone, Args)]
pub struct PolicyArgs {
    /// A topic, or with a ^ in front a pattern of names such as ^audit-.*; repeatable
    #[arg(short, long = "topic", required = true, value_name = "TOPIC")]
    pub topics: Vec<TopicSelector>,
    /// What the group reads [default: what it read before; a new group read_committed]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub isolation: Option<IsolationArg>,
    /// The name of this process; another name raises the epoch and fences the one before [default: a new one]
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Where a new group begins: earliest, latest, a time (RFC 3339), kafka (its committed offsets) or fail
    #[arg(long, default_value = "earliest", value_name = "WHERE", help_heading = "Where to start")]
    new_group: NewGroup,
    /// When records at the position have expired: earliest or fail
    #[arg(long, default_value = "earliest", value_name = "POLICY", help_heading = "Where to start")]
    reset_head: HeadReset,
    /// When the log ends below the position: earliest, latest or fail. Only fail counts for a topic with an id, which is
    /// known to be the same one: it goes on at the log's end
    #[arg(long, default_value = "earliest", value_name = "POLICY", help_heading = "Where to start")]
    reset_tail: TailReset,
    /// When a topic was deleted and created again: earliest or fail
    #[arg(long, default_value = "earliest", value_name = "POLICY", help_heading = "Where to start")]
    reset_recreated: RecreatedReset,
    /// When a topic is not there: fail or skip
    #[arg(long, default_value = "fail", value_name = "POLICY", help_heading = "Where to start")]
    reset_missing: MissingReset,
    /// When a hole below the position holds records: reread, skip or fail
    #[arg(long, default_value = "reread", value_name = "POLICY", help_heading = "Where to start")]
    reset_hole: HoleReset,
    /// The Kafka group whose committed offsets follow, for lag charts; none for none [default: the one before; at first the
    /// group's own name if its app is default, else none]
    #[arg(long, value_name = "NAME")]
    kafka_group: Option<KafkaGroup>,
    /// Accept this cluster in place of the group's, by its id
    #[arg(long, value_name = "ID", help_heading = "Where to start")]
    accept_cluster: Option<String>,
    /// How long after the first look the second is taken that a correction needs; a server takes its own
    #[arg(long, default_value = "3s", value_parser = duration, value_name = "TIME", help_heading = "Where to start")]
    pub second_look: Duration,
}

impl PolicyArgs {
    /// The start of `group` that is asked for.
    pub fn body(&self, group: &Group, dry_run: bool) -> StartBody {
        StartBody {
            topics: self.topics.iter().map(TopicSelector::to_string).collect(),
            owner: self.owner(group),
            new_group: self.new_group.clone(),
            reset: Reset {
                head: self.reset_head,
                tail: self.reset_tail,
                recreated: self.reset_recreated,
                missing: self.reset_missing,
                hole: self.reset_hole,
            },
            isolation: self.isolation.map(Into::into),
            kafka_group: self.kafka_group.clone(),
            accept_cluster: self.accept_cluster.clone(),
            dry_run,
        }
    }

    /// The name of this process: what was given, else one that no other process has.
    fn owner(&self, group: &Group) -> String {
        self.owner.clone().unwrap_or_else(|| {
            let mut random = [0; 4];
            // Without randomness the process id still tells two processes of one machine apart.
            let _ = getrandom::fill(&mut random);
            let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            let host = if host.trim().is_empty() { "localhost" } else { host.trim() };
            let tail = format!("@{host}:{}-{:08x}", std::process::id(), u32::from_be_bytes(random));
            // A name has at most 255 bytes, and so has a group's.
            let room = 255_usize.saturating_sub(tail.len());
            let begin: String =
                group.group().char_indices().take_while(|(at, c)| at + c.len_utf8() <= room).map(|(_, c)| c).collect();
            begin + &tail
        })
    }
}
