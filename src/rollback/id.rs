//! The id of a plan.

use std::fmt::Write as _;

use super::step::Step;
use super::{Meaning, Outcome, PlanRequest};
use crate::fingerprint::fnv1a;
use crate::offset::TopicName;
use crate::positions::GroupState;

/// The id of the plan that `steps` make: everything that its execution depends on, and nothing that a consumer changes
/// by going on.
///
/// It is no secret and no proof, only a comparison.
pub fn of(request: &PlanRequest, group: &GroupState, meaning: &Meaning, steps: &[Step]) -> String {
    let PlanRequest { group: name, to: _, scope: _, kafka, allow_clamp, leave_unmovable, unchecked, hold } = request;
    let mut text = format!("{}\0{}\0{}", name.app(), name.group(), group.epoch);
    let flags = [*kafka, *allow_clamp, *leave_unmovable, *unchecked, *hold];
    text.extend(flags.map(|flag| if flag { '1' } else { '0' }));
    let mut topic: Option<&TopicName> = None;
    for step in steps {
        let at = &step.planned.at;
        if topic != Some(&at.topic) {
            topic = Some(&at.topic);
            let id = step.topic_id.map(|id| id.to_string()).unwrap_or_default();
            push(&mut text, format_args!("\0{} {id}", at.topic));
        }
        push(&mut text, format_args!("\0{} {}", at.partition, place(request, meaning, step)));
    }
    format!("p-{:016x}", fnv1a(text.as_bytes()))
}

/// Where a partition would go and why; as a word where that is settled at execution.
fn place(request: &PlanRequest, meaning: &Meaning, step: &Step) -> String {
    let planned = &step.planned;
    let start = match meaning {
        Meaning::Present => "present".to_owned(),
        Meaning::Earliest => "earliest".to_owned(),
        Meaning::Undo { of, .. } => format!("undo {of}"),
        _ => planned.start.to_string(),
    };
    match planned.outcome {
        Outcome::Exact | Outcome::Unchanged => start,
        // Likewise the earliest, for what would begin before offset 0.
        Outcome::Expired if request.allow_clamp && planned.target.is_none() => start,
        // With a plan that goes to the end, the end is given to execute, and is exact then.
        Outcome::BeyondEnd if request.allow_clamp && !meaning.is_of_history() => start,
        Outcome::Younger | Outcome::Unchecked => format!("{} {start}", planned.outcome.as_str()),
        Outcome::Expired | Outcome::BeyondEnd | Outcome::Recreated | Outcome::Missing | Outcome::Unknown => {
            planned.outcome.as_str().to_owned()
        }
    }
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = text.write_fmt(arguments);
}
