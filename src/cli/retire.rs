//! `tidelog retire`

use clap::Args;

use crate::cli::args::GroupArg;
use crate::cli::exit::Failure;
use crate::cli::output::Out;
use crate::cli::seat::Ask;
use crate::cli::steer::SteerArgs;
use crate::offset::TopicName;
use crate::wire::RetireBody;

const EXAMPLE: &str = "\
Example:
  tidelog retire loader -t orders-old        only this topic
  tidelog retire loader                      the whole group

Its history stays. A start that names it brings it back at its old position.";

/// Let a topic of a group go, or the whole group: out of lists, alarms and rollbacks
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Retire {
    #[command(flatten)]
    group: GroupArg,
    /// Only this topic
    #[arg(short, long, value_name = "TOPIC")]
    topic: Option<TopicName>,
    #[command(flatten)]
    steer: SteerArgs,
}

impl Retire {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        let what = match &self.topic {
            Some(topic) => format!("topic {topic} of group {group}"),
            None => format!("group {group}"),
        };
        let body = RetireBody { topic: self.topic, actor: self.steer.actor() };
        self.steer.post(out, Ask::of(&group, "/retire"), &body, |entry| format!("{what} is retired, seq {}", entry.seq))
    }
}
