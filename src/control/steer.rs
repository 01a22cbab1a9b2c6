//! The small things that an operator does to a group: name its state, stop and free it, let it go, see a loss. Each is
//! one entry.

use super::{Control, UnknownGroup, check_reason};
use crate::entry::{Body, Draft, Entry};
use crate::journal::{DecideError, ReadError, WriteError};
use crate::offset::{Group, Invalid, Seq, TopicName, free_name};
use crate::positions::{GroupState, Hold, State};

/// Why it was not done. Nothing has changed.
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
/// # let _commit = |from: i64, until: i64| -> Result<_, Box<dyn std::error::Error>> {
/// #     use tidelog::offset::{Offset, OffsetRange, Timestamp};
/// #     let range = OffsetRange::new("orders".parse()?, 0, Offset::new(from)?, Offset::new(until)?)?;
/// #     let time = Timestamp::from_millis(1_796_032_800_000 + from);
/// #     Ok(control.journal.commit(tidelog::commit::Commit::new(loader.clone(), started.epoch, time, vec![range])?)?)
/// # };
/// use tidelog::control::{SteerError, hold, release};
///
/// hold(&control, &loader, "ann", "mending the sink")?;
/// let again = hold(&control, &loader, "bob", "me too");
/// assert!(matches!(again, Err(SteerError::Held { hold, .. }) if hold.actor == "ann"));
/// release(&control, &loader, "ann")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
pub enum SteerError {
    /// The journal has no such group.
    #[error(transparent)]
    UnknownGroup(#[from] UnknownGroup),
    /// The group has no such topic.
    #[error("group {group} has no {topic}")]
    UnknownTopic {
        /// The group.
        group: Group,
        /// The topic.
        topic: TopicName,
    },
    /// The group is on hold already.
    #[error("group {group} is on hold since {} by {}: {}", hold.since, hold.actor, hold.reason)]
    Held {
        /// The group.
        group: Group,
        /// By whom, since when, why.
        hold: Hold,
    },
    /// A name or a state that does not allow it.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// History could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It could not be made durable.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Names the present state of the group: a target of later rollbacks. Of marks of one name the newest counts.
pub fn mark(control: &Control, group: &Group, name: &str, actor: &str) -> Result<Entry, SteerError> {
    free_name("mark", name)?;
    free_name("actor", actor)?;
    let (name, actor) = (name.to_owned(), actor.to_owned());
    steer(control, group, move |_| Ok(Body::Mark { name, actor }))
}

/// Stops the group: starts and commits are refused until it is released.
pub fn hold(control: &Control, group: &Group, actor: &str, reason: &str) -> Result<Entry, SteerError> {
    free_name("actor", actor)?;
    check_reason(reason)?;
    let (actor, reason, name) = (actor.to_owned(), reason.to_owned(), group.clone());
    steer(control, group, move |group| match &group.held {
        Some(hold) => Err(SteerError::Held { group: name, hold: hold.clone() }),
        None => Ok(Body::Held { reason, actor }),
    })
}

/// Frees a group that is on hold.
pub fn release(control: &Control, group: &Group, actor: &str) -> Result<Entry, SteerError> {
    free_name("actor", actor)?;
    let (actor, name) = (actor.to_owned(), group.clone());
    steer(control, group, move |group| match &group.held {
        Some(_) => Ok(Body::Released { actor }),
        None => Err(Invalid::new("group", name, "not on hold").into()),
    })
}

/// Takes a topic, or the whole group, out of lists, alarms and rollbacks. Its history stays; a start that names it
/// brings it back.
pub fn retire(control: &Control, group: &Group, topic: Option<&TopicName>, actor: &str) -> Result<Entry, SteerError> {
    free_name("actor", actor)?;
    let (actor, topic, name) = (actor.to_owned(), topic.cloned(), group.clone());
    steer(control, group, move |group| {
        let retired = match &topic {
            None => group.retired,
            Some(topic) => match group.positions.topics.get(topic) {
                Some(known) => known.retired,
                None => return Err(SteerError::UnknownTopic { group: name, topic: topic.clone() }),
            },
        };
        if retired {
            let (what, value) = match &topic {
                Some(topic) => ("topic", topic.to_string()),
                None => ("group", name.to_string()),
            };
            return Err(Invalid::new(what, value, "retired already").into());
        }
        Ok(Body::Retired { topic, actor })
    })
}

/// Says that an operator has seen the losses, or the holes, that entry `of` made: they are closed.
pub fn acknowledge(control: &Control, of: Seq, actor: &str) -> Result<Entry, SteerError> {
    free_name("actor", actor)?;
    let none = move || Invalid::new("seq", of, "no loss or hole of this entry is open");
    let group = control.journal.entry(of)?.and_then(|entry| entry.group).ok_or_else(none)?;
    let actor = actor.to_owned();
    steer(control, &group, move |group| {
        let lost = group.losses.iter().any(|open| open.seq == of);
        let open = || group.positions.iter().any(|(_, _, partition)| partition.holes.iter().any(|h| h.seq == of));
        if lost || open() { Ok(Body::LossAcknowledged { of, actor }) } else { Err(none().into()) }
    })
}

/// Appends the entry that `decision` makes of the group's state.
fn steer(
    control: &Control,
    group: &Group,
    decision: impl FnOnce(&GroupState) -> Result<Body, SteerError> + Send + 'static,
) -> Result<Entry, SteerError> {
    let name = group.clone();
    let decided = control.journal.decide(move |state: &State| {
        let Some(group) = state.groups.get(&name) else {
            return Err(SteerError::from(UnknownGroup::new(state, &name)));
        };
        let body = decision(group)?;
        Ok((vec![Draft { group: Some(name), epoch: group.epoch, body }], ()))
    });
    match decided {
        Ok((entries, ())) => match entries.into_iter().next() {
            Some(entry) => Ok(entry),
            None => unreachable!("a decision of one draft appends one entry"),
        },
        Err(DecideError::Refused(refused)) => Err(refused),
        Err(DecideError::Unavailable(error)) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::fake::World;
    use crate::offset::Offset;

    fn world() -> World {
        let world = World::new();
        world.start("t", 0);
        world.commit_range("t", 0, 100).unwrap();
        world
    }

    fn state(world: &World) -> GroupState {
        world.control.journal.group(&world.group).unwrap()
    }

    #[test]
    fn none_of_it_makes_a_group() {
        let World { control, .. } = &world();
        let mistyped = Group::new("default", "gg").unwrap();
        let results = [
            mark(control, &mistyped, "m", "ann"),
            hold(control, &mistyped, "ann", "why"),
            release(control, &mistyped, "ann"),
            retire(control, &mistyped, None, "ann"),
        ];
        for result in results {
            assert!(matches!(result, Err(SteerError::UnknownGroup(_))), "{result:?}");
        }
        assert!(control.journal.group(&mistyped).is_none());
    }

    #[test]
    fn names_are_checked() {
        let World { control, group, .. } = &world();
        assert!(matches!(mark(control, group, "", "ann"), Err(SteerError::Invalid(_))));
        assert!(matches!(mark(control, group, "m", "a\0"), Err(SteerError::Invalid(_))));
        assert!(matches!(hold(control, group, "ann", " "), Err(SteerError::Invalid(_))));
        assert!(matches!(hold(control, group, "ann", &"x".repeat(1_001)), Err(SteerError::Invalid(_))));
    }

    #[test]
    fn a_held_group_takes_no_commits_until_it_is_released() {
        let world = world();
        let held = hold(&world.control, &world.group, "ann", "mending the sink").unwrap();
        assert!(world.commit_range("t", 100, 110).is_err());
        let again = hold(&world.control, &world.group, "bob", "me too").unwrap_err();
        let SteerError::Held { hold: first, .. } = &again else { panic!("held twice") };
        assert_eq!((first.actor.as_str(), first.seq), ("ann", held.seq));
        assert!(again.to_string().contains("by ann: mending the sink"));
        release(&world.control, &world.group, "ann").unwrap();
        assert!(world.commit_range("t", 100, 110).is_ok());
        assert!(matches!(release(&world.control, &world.group, "ann"), Err(SteerError::Invalid(_))));
    }

    #[test]
    fn a_topic_or_a_group_is_retired_once() {
        let world = world();
        let World { control, group, .. } = &world;
        let (known, unknown) = ("t".parse().unwrap(), "u".parse().unwrap());
        assert!(matches!(retire(control, group, Some(&unknown), "ann"), Err(SteerError::UnknownTopic { .. })));
        retire(control, group, Some(&known), "ann").unwrap();
        assert!(matches!(retire(control, group, Some(&known), "ann"), Err(SteerError::Invalid(_))));
        assert!(world.commit_range("t", 100, 110).is_err());
        retire(control, group, None, "ann").unwrap();
        assert!(matches!(retire(control, group, None, "ann"), Err(SteerError::Invalid(_))));
        assert!(state(&world).retired);
    }

    #[test]
    fn a_hole_and_a_loss_are_acknowledged_by_their_entry() {
        let world = world();
        let hole = world.commit_range("t", 120, 130).unwrap().seq;
        let request = crate::rollback::PlanRequest::new(
            world.group.clone(),
            crate::rollback::Target::Offset(Offset::try_from(200).unwrap()),
        );
        let loss = crate::control::execute(&world.control, request, None, "ann", "skip").unwrap().seq.unwrap();
        assert_eq!((state(&world).positions.open_holes(), state(&world).losses.len()), (1, 1));
        for of in [hole, loss] {
            let epoch = acknowledge(&world.control, of, "ann").unwrap().epoch;
            assert_eq!(epoch, state(&world).epoch);
            assert!(matches!(acknowledge(&world.control, of, "ann"), Err(SteerError::Invalid(_))));
        }
        assert_eq!((state(&world).positions.open_holes(), state(&world).losses.len()), (0, 0));
        assert!(matches!(acknowledge(&world.control, Seq::MAX, "ann"), Err(SteerError::Invalid(_))));
    }
}
