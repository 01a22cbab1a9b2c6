//! A start without a broker: the journal's positions as they are, each with the verdict `unchecked`.

use crate::broker::TopicSelector;
use crate::entry::{Body, Correction, Draft, Finding, Move, TopicChange, Verdict};
use crate::offset::{Group, Invalid, Offset, TopicId, TopicPartition};
use crate::positions::{GroupState, Positions};
use crate::reconcile::cluster::finding;
use crate::reconcile::topic::asked_names;
use crate::reconcile::{Decided, Decision, NewGroup, Policy, StartPosition, Starter};

/// Answers the positions of the topics asked for, without a look. Makes the group if it is new: given offsets become its
/// positions, without them it has none yet. A retired topic that is named is back.
///
/// # Errors
///
/// A pattern, and a beginning of a new group that only a broker knows.
pub fn unchecked(
    group: &Group,
    state: Option<&GroupState>,
    topics: &[TopicSelector],
    policy: &Policy,
    starter: Starter<'_>,
) -> Result<Decision, Invalid> {
    if let Some(pattern) = topics.iter().find(|selector| matches!(selector, TopicSelector::Pattern(_))) {
        return Err(Invalid::new("topics", pattern, "a pattern needs a broker; name the topics"));
    }
    let none = Positions::default();
    let positions = state.map_or(&none, |state| &state.positions);
    let names = asked_names(topics, positions);
    let mut correction = Correction::default();
    if positions.topics.values().all(|topic| topic.partitions.is_empty()) {
        let needs_broker = |what: &str| Err(Invalid::new("new_group", what, "needs a broker"));
        match &policy.new_group {
            NewGroup::Earliest => {}
            NewGroup::Latest => return needs_broker("latest"),
            NewGroup::Time(time) => return needs_broker(&time.to_string()),
            NewGroup::Kafka => return needs_broker("kafka"),
            NewGroup::Fail => {
                let detail = format!("the group has no position, and new groups are refused ({group})");
                let refusal = Finding { detail: Some(detail), ..finding(Verdict::NewGroup) };
                return Ok(Decision::Refused { findings: vec![refusal] });
            }
            NewGroup::Offsets(offsets) => {
                for (at, offset) in offsets.iter().filter(|(at, _)| names.contains(&at.topic)) {
                    let (topic, partition) = (at.topic.clone(), at.partition);
                    let (new, holes) = (Some(*offset), Vec::new());
                    let moved = Move { topic, partition, topic_id: None, old: None, new, holes, replaying_until: None };
                    correction.moves.push(moved);
                }
            }
        }
    }
    for (name, topic) in positions.topics.iter().filter(|(name, topic)| topic.retired && names.contains(*name)) {
        let (topic, topic_id) = (name.clone(), topic.topic_id);
        correction.topics.push(TopicChange { topic, topic_id, new_incarnation: false });
    }

    let started = starter.entry(group, state);
    let present = state.map_or_else(Default::default, |state| state.epoch);
    let epoch = if starter.takes_over(state) { present.next() } else { present };
    let journaled = positions.iter().filter(|(at, _, _)| names.contains(&at.topic)).map(|(at, topic, partition)| {
        let replaying_until = partition.replaying_until;
        StartPosition { replaying_until, ..start(at, topic.topic_id, partition.position) }
    });
    let given = correction.moves.iter().filter_map(|m| Some(start(m.topic_partition(), None, m.new?)));
    let starts = journaled.chain(given).collect();
    let reconciled = (!correction.is_empty()).then_some(Body::Reconciled { findings: Vec::new(), correction });
    let bodies = [started, reconciled].into_iter().flatten();
    let drafts = bodies.map(|body| Draft { group: Some(group.clone()), epoch, body }).collect();
    let (findings, unsettled, refused) = (Vec::new(), Vec::new(), Vec::new());
    Ok(Decision::Decided(Decided { epoch, findings, starts, drafts, unsettled, refused }))
}

fn start(at: TopicPartition, topic_id: Option<TopicId>, offset: Offset) -> StartPosition {
    let (verdict, earliest, latest) = (Verdict::Unchecked, None, None);
    StartPosition { at, topic_id, offset, verdict, earliest, latest, readable_end: None, replaying_until: None }
}
