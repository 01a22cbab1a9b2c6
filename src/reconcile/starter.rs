//! The process that starts a group, and the entry that says so.

use crate::broker::KafkaGroup;
use crate::entry::Body;
use crate::offset::{Group, Isolation};
use crate::positions::GroupState;

/// A process that starts a group, and what it wants of it; what it does not name stays as it is.
///
/// ```
/// use tidelog::offset::Group;
/// use tidelog::reconcile::Starter;
///
/// let starter = Starter { owner: "loader@host1:4711", isolation: None, kafka_group: None };
/// let (loader, other) = (Group::new("default", "loader")?, Group::new("billing", "loader")?);
/// assert_eq!(starter.kafka_group(&loader, None).as_deref(), Some("loader"));
/// assert_eq!(starter.kafka_group(&other, None), None); // not of the default app
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Starter<'a> {
    /// The process, by its own name.
    pub owner: &'a str,
    /// What the group reads; a new group reads committed records.
    pub isolation: Option<Isolation>,
    /// The Kafka group whose committed offsets follow.
    pub kafka_group: Option<&'a KafkaGroup>,
}

impl Starter<'_> {
    /// The Kafka group whose committed offsets follow the positions of `group` from this start on: the one that is asked
    /// for, else the one that it has. At a group's first start that is the group's own name if its app is the default
    /// one, else none: groups of several apps may have one name.
    pub fn kafka_group(&self, group: &Group, state: Option<&GroupState>) -> Option<String> {
        match (self.kafka_group, state.filter(|state| state.owner.is_some())) {
            (Some(KafkaGroup::Off), _) => None,
            (Some(KafkaGroup::Named(name)), _) => Some(name.clone()),
            (None, Some(state)) => state.kafka_group.clone(),
            (None, None) => (group.app() == Group::DEFAULT_APP).then(|| group.group().to_owned()),
        }
    }

    /// Whether the start takes the group over, brings it back, or reads otherwise: then the epoch rises.
    pub(super) fn takes_over(&self, state: Option<&GroupState>) -> bool {
        !state.is_some_and(|state| {
            let reads_otherwise = self.isolation.is_some_and(|isolation| isolation != state.isolation);
            state.owner.as_deref() == Some(self.owner) && !reads_otherwise && !state.retired
        })
    }

    /// The entry of a start that takes the group over, changes its Kafka group, or whose owner picks up an epoch that an
    /// operator raised; none where all stays.
    pub(super) fn entry(&self, group: &Group, state: Option<&GroupState>) -> Option<Body> {
        let picked_up = state.and_then(|state| Some(state.picked_up.as_ref()?.epoch == state.epoch)).unwrap_or(false);
        let isolation = self.isolation.or(state.map(|state| state.isolation)).unwrap_or_default();
        let kafka_group = self.kafka_group(group, state);
        let stays = picked_up
            && !self.takes_over(state)
            && state.is_some_and(|state| state.isolation == isolation && state.kafka_group == kafka_group);
        (!stays).then(|| Body::Started { owner: self.owner.to_owned(), isolation, kafka_group })
    }
}
