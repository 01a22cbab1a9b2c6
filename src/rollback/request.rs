//! What an operator asks for, and the checks of it that need no broker.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::Target;
use crate::offset::{BatchNumber, Group, Invalid, TopicName, TopicPartition, partition_number};
use crate::positions::{GroupState, PartitionState, TopicState};

/// What an operator asks for: a target, a scope, and what may happen on the way.
///
/// ```
/// use tidelog::offset::Group;
/// use tidelog::rollback::{PlanRequest, Target};
///
/// let request = PlanRequest::new(Group::new("default", "loader")?, Target::Latest);
/// assert!(request.check().is_ok());
/// let unchecked = PlanRequest { unchecked: true, ..request };
/// assert!(unchecked.check().is_err()); // only the broker knows the end
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PlanRequest {
    /// The group.
    pub group: Group,
    /// Where it is to go.
    pub to: Target,
    /// What of it; empty for the whole group.
    pub scope: Vec<Scope>,
    /// Whether Kafka's committed offsets are set as part of it, waited for and read back.
    pub kafka: bool,
    /// Whether `expired` and `beyond_end` go where they can.
    pub allow_clamp: bool,
    /// Whether `recreated`, `missing` and `unknown` stay where they are, and the others go.
    pub leave_unmovable: bool,
    /// Whether the broker is not asked, and the next start sees to it.
    pub unchecked: bool,
    /// Whether the group is kept stopped afterwards, until it is released.
    pub hold: bool,
}

impl PlanRequest {
    /// The whole of `group` to `to`, with nothing allowed on the way.
    ///
    /// ```
    /// use tidelog::offset::Group;
    /// use tidelog::rollback::{PlanRequest, Target};
    ///
    /// let group = Group::new("default", "loader")?;
    /// let request = PlanRequest {
    ///     scope: vec!["orders:0,1".parse()?],
    ///     allow_clamp: true,
    ///     ..PlanRequest::new(group, Target::Shift(-100))
    /// };
    /// assert!(request.check().is_ok());
    /// # Ok::<(), tidelog::offset::Invalid>(())
    /// ```
    pub fn new(group: Group, to: Target) -> Self {
        PlanRequest {
            group,
            to,
            scope: Vec::new(),
            kafka: false,
            allow_clamp: false,
            leave_unmovable: false,
            unchecked: false,
            hold: false,
        }
    }

    /// Refuses what no group could do.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.kafka && self.unchecked {
            return Err(Invalid::new("unchecked", true, "to set Kafka's committed offsets the broker must be asked"));
        }
        if self.unchecked && self.to.needs_broker() {
            return Err(Invalid::new("unchecked", &self.to, "this target can't be found without asking the broker"));
        }
        match &self.to {
            Target::Batch { batch: BatchNumber::ZERO, .. } => {
                Err(Invalid::new("batch", 0, "batches are numbered from 1 on"))
            }
            Target::Offsets(offsets) if offsets.is_empty() => {
                Err(Invalid::new("offsets", 0, "names no partition at all"))
            }
            _ => Ok(()),
        }
    }

    /// The group's partitions that the request is about: in its scope, in its list where it has one, and not retired.
    pub fn partitions<'a>(
        &self,
        group: &'a GroupState,
    ) -> impl Iterator<Item = (TopicPartition, &'a TopicState, &'a PartitionState)> {
        group.positions.iter().filter(|(at, topic, _)| {
            let listed = match &self.to {
                Target::Offsets(offsets) => offsets.contains_key(at),
                _ => true,
            };
            listed && !topic.retired && self.in_scope(at)
        })
    }

    fn in_scope(&self, at: &TopicPartition) -> bool {
        self.scope.is_empty()
            || self.scope.iter().any(|scope| {
                scope.topic == at.topic && scope.partitions.as_ref().is_none_or(|some| some.contains(&at.partition))
            })
    }

    /// Checks that the group, and each topic and partition that the request names, is there and not retired.
    pub fn check_names(&self, group: &GroupState) -> Result<(), WrongName> {
        if group.retired {
            let why = "retired; a start brings it back";
            return Err(WrongName::Retired(Invalid::new("group", &self.group, why)));
        }
        for Scope { topic, partitions } in &self.scope {
            check_name(group, topic, None)?;
            partitions.iter().flatten().try_for_each(|partition| check_name(group, topic, Some(*partition)))?;
        }
        if let Target::Offsets(offsets) = &self.to {
            let listed = offsets.keys().filter(|at| self.in_scope(at));
            listed.into_iter().try_for_each(|at| check_name(group, &at.topic, Some(at.partition)))?;
        }
        Ok(())
    }
}

/// A group, topic or partition that can't be rolled back.
///
/// ```
/// use tidelog::offset::Group;
/// use tidelog::positions::GroupState;
/// use tidelog::rollback::{PlanRequest, Target, WrongName};
///
/// let all = PlanRequest::new(Group::new("default", "loader")?, Target::Undo);
/// let request = PlanRequest { scope: vec!["orders".parse()?], ..all };
/// let wrong = request.check_names(&GroupState::default()).unwrap_err();
/// assert_eq!(wrong, WrongName::Unknown { topic: "orders".parse()?, partition: None });
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongName {
    /// The group has it not.
    #[error("no {topic}{} in this group", partition.map(|p| format!("/{p}")).unwrap_or_default())]
    Unknown {
        /// The topic.
        topic: TopicName,
        /// The partition, where it is that.
        partition: Option<u32>,
    },
    /// It, or the group, is no longer wanted.
    #[error(transparent)]
    Retired(Invalid),
}

fn check_name(group: &GroupState, topic: &TopicName, partition: Option<u32>) -> Result<(), WrongName> {
    let known = group.positions.topics.get(topic);
    if known.is_none_or(|known| partition.is_some_and(|number| !known.partitions.contains_key(&number))) {
        return Err(WrongName::Unknown { topic: topic.clone(), partition });
    }
    if known.is_some_and(|known| known.retired) {
        return Err(WrongName::Retired(Invalid::new(
            "topic",
            topic,
            "retired in this group; a start that names it brings it back",
        )));
    }
    Ok(())
}

/// A topic, or some of its partitions: what a rollback is limited to.
///
/// ```
/// use tidelog::rollback::Scope;
///
/// let scope: Scope = "orders:0,1".parse()?;
/// assert_eq!(scope.partitions.map(|partitions| partitions.len()), Some(2));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The topic.
    pub topic: TopicName,
    /// The partitions; none for all that the group has.
    pub partitions: Option<BTreeSet<u32>>,
}

impl FromStr for Scope {
    type Err = Invalid;

    /// Reads `topic` or `topic:0,1,2`.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let Some((topic, numbers)) = text.split_once(':') else {
            return Ok(Scope { topic: TopicName::new(text)?, partitions: None });
        };
        let number = |number: &str| match number.parse::<i64>() {
            Ok(number) => partition_number(number),
            Err(_) => Err(Invalid::new("topic", text, "not of the form topic:0,1,2")),
        };
        let partitions = numbers.split(',').map(number).collect::<Result<_, _>>()?;
        Ok(Scope { topic: TopicName::new(topic)?, partitions: Some(partitions) })
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.topic, f)?;
        for (index, partition) in self.partitions.iter().flatten().enumerate() {
            write!(f, "{}{partition}", if index == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_written_as_it_is_read() {
        for text in ["orders", "orders:0", "orders:0,1,12"] {
            assert_eq!(text.parse::<Scope>().unwrap().to_string(), text);
        }
        for wrong in ["", "orders:", "orders:a", "orders:-1", "a b:0"] {
            assert!(wrong.parse::<Scope>().is_err(), "{wrong}");
        }
    }
}
