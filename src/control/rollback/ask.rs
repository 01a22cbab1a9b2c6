//! What a target means, with the broker's answer to it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::PlanError;
use super::resolve::{self, Sought};
use crate::broker::{Ask, Broker, Look, Seen, TopicSelector};
use crate::control::Control;
use crate::offset::{Invalid, TopicPartition};
use crate::positions::GroupState;
use crate::rollback::{self, Looked, Meaning, Outcome, PlanRequest};

/// The pause before a broker that did not say everything is asked again; doubled each time, within the deadline.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// What a target means, with the broker's answer.
pub struct Asked {
    pub meaning: Meaning,
    pub looked: Option<Looked>,
}

impl Asked {
    /// Asks history, then the broker where there is one to ask and something to ask it. `group` is read before, so that
    /// no position seems to be past the end of its log.
    pub fn new(control: &Control, request: &PlanRequest, group: &GroupState) -> Result<Self, PlanError> {
        request.check_names(group).map_err(|wrong| PlanError::wrong_name(&request.group, wrong))?;
        let sought = resolve::target(control, request, group)?;
        let nothing_to_move = request.partitions(group).next().is_none();
        match (sought, &control.broker) {
            _ if nothing_to_move => Ok(Asked { meaning: Meaning::Present, looked: None }),
            (Sought::Known(Meaning::Present), _) => Ok(Asked { meaning: Meaning::Present, looked: None }),
            (sought, Some(broker)) if !request.unchecked => ask(control, &**broker, request, group, sought),
            (Sought::Known(meaning), _) if !request.to.needs_broker() => Ok(Asked { meaning, looked: None }),
            (Sought::Known(_) | Sought::RecordsFrom(_), _) => {
                Err(Invalid::new("to", &request.to, "this target needs a broker to ask, and none is set").into())
            }
        }
    }
}

/// Asks the broker, again while some of it is unknown and there is time.
fn ask(
    control: &Control,
    broker: &dyn Broker,
    request: &PlanRequest,
    group: &GroupState,
    sought: Sought,
) -> Result<Asked, PlanError> {
    let deadline = control.limits.deadline;
    let begin = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let partitions: BTreeSet<_> = request.partitions(group).map(|(at, _, _)| at).collect();
        let look = broker.look(&Ask {
            topics: topics(&partitions),
            isolation: group.isolation,
            deadline: deadline.saturating_sub(begin.elapsed()),
        });
        let meaning = match &sought {
            Sought::Known(meaning) => meaning.clone(),
            Sought::RecordsFrom(time) => {
                let left = deadline.saturating_sub(begin.elapsed());
                Meaning::RecordTime(broker.offsets_at(&partitions, *time, left))
            }
        };
        let looked = Looked { look, before: group.positions.clone() };
        let plan = rollback::plan(request, group, &meaning, Some(&looked));
        let all_said = plan.partitions.iter().all(|partition| partition.outcome != Outcome::Unknown);
        let in_time = begin.elapsed() + pause < deadline;
        if !all_said && !in_time && is_silent(&looked.look) {
            return Err(PlanError::BrokerUnavailable {
                brokers: looked.look.brokers,
                deadline,
                unknown: partitions.into_iter().collect(),
                needed: request.to.needs_broker() || request.kafka,
            });
        }
        if all_said || !in_time {
            return Ok(Asked { meaning, looked: Some(looked) });
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
}

fn topics(partitions: &BTreeSet<TopicPartition>) -> Vec<TopicSelector> {
    let names: BTreeSet<_> = partitions.iter().map(|at| &at.topic).collect();
    names.into_iter().cloned().map(TopicSelector::Name).collect()
}

/// Whether the broker said nothing of any topic.
fn is_silent(look: &Look) -> bool {
    look.topics.values().all(|topic| matches!(topic.partitions, Seen::Failed(_)))
}
