//! Rollbacks as JSON: what is asked of a plan, and of its execution.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::offset::{Group, Invalid, TopicName};
use crate::rollback::{PlanRequest, Scope};
use crate::wire::target::To;

/// What is asked for; without the group, which the route or the command names.
///
/// ```
/// use tidelog::offset::Group;
/// use tidelog::rollback::Target;
/// use tidelog::wire::RollbackBody;
///
/// let body: RollbackBody = serde_json::from_str(r#"{"to": {"shift": "-100"}, "scope": [{"topic": "orders"}]}"#)?;
/// let request = body.request(Group::new("default", "loader")?)?;
/// assert_eq!((request.to, request.kafka), (Target::Shift(-100), false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollbackBody {
    /// Exactly one target.
    pub to: To,
    /// What of the group; the whole of it if empty.
    #[serde(default)]
    pub scope: Vec<ScopeBody>,
    /// Whether Kafka's committed offsets are set too.
    #[serde(default)]
    pub kafka: bool,
    /// Whether `expired` and `beyond_end` go where they can.
    #[serde(default)]
    pub allow_clamp: bool,
    /// Whether `recreated`, `missing` and `unknown` stay.
    #[serde(default)]
    pub leave_unmovable: bool,
    /// Whether the broker is not asked.
    #[serde(default)]
    pub unchecked: bool,
    /// Whether the group is kept stopped afterwards.
    #[serde(default)]
    pub hold: bool,
    /// The id of the plan that is to be executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

impl RollbackBody {
    /// The body that asks for `request`.
    pub fn new(request: &PlanRequest, plan: Option<String>) -> Self {
        let scope = |scope: &Scope| ScopeBody { topic: scope.topic.clone(), partitions: scope.partitions.clone() };
        RollbackBody {
            to: To::from(&request.to),
            scope: request.scope.iter().map(scope).collect(),
            kafka: request.kafka,
            allow_clamp: request.allow_clamp,
            leave_unmovable: request.leave_unmovable,
            unchecked: request.unchecked,
            hold: request.hold,
            plan,
        }
    }

    /// The request for `group`.
    ///
    /// # Errors
    ///
    /// No target or several, or one with a value that none can have.
    pub fn request(self, group: Group) -> Result<PlanRequest, Invalid> {
        let scope = |scope: ScopeBody| Scope { topic: scope.topic, partitions: scope.partitions };
        Ok(PlanRequest {
            group,
            to: self.to.target()?,
            scope: self.scope.into_iter().map(scope).collect(),
            kafka: self.kafka,
            allow_clamp: self.allow_clamp,
            leave_unmovable: self.leave_unmovable,
            unchecked: self.unchecked,
            hold: self.hold,
        })
    }
}

/// What executes a plan: its body, with who does it and why.
///
/// ```
/// use tidelog::wire::{ExecuteBody, RollbackBody};
///
/// // `execute` of a plan, as it came:
/// let execute: RollbackBody = serde_json::from_str(r#"{"to": {"undo": true}, "plan": "p-9f3c"}"#)?;
/// let body = ExecuteBody::new(execute.clone(), "ann".to_owned(), "the sink lost its disk".to_owned());
/// assert_eq!(body.split(), (execute, "ann".to_owned(), "the sink lost its disk".to_owned()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecuteBody {
    to: To,
    #[serde(default)]
    scope: Vec<ScopeBody>,
    #[serde(default)]
    kafka: bool,
    #[serde(default)]
    allow_clamp: bool,
    #[serde(default)]
    leave_unmovable: bool,
    #[serde(default)]
    unchecked: bool,
    #[serde(default)]
    hold: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
}

impl ExecuteBody {
    /// The body that executes `plan`.
    pub fn new(plan: RollbackBody, actor: String, reason: String) -> Self {
        let RollbackBody { to, scope, kafka, allow_clamp, leave_unmovable, unchecked, hold, plan } = plan;
        ExecuteBody { to, scope, kafka, allow_clamp, leave_unmovable, unchecked, hold, plan, actor, reason }
    }

    /// What is to be executed, the actor and the reason.
    pub fn split(self) -> (RollbackBody, String, String) {
        let ExecuteBody { to, scope, kafka, allow_clamp, leave_unmovable, unchecked, hold, plan, actor, reason } = self;
        (RollbackBody { to, scope, kafka, allow_clamp, leave_unmovable, unchecked, hold, plan }, actor, reason)
    }
}

/// A topic, or some of its partitions.
///
/// ```
/// use tidelog::wire::ScopeBody;
///
/// let whole: ScopeBody = serde_json::from_str(r#"{"topic": "orders"}"#)?;
/// let some: ScopeBody = serde_json::from_str(r#"{"topic": "orders", "partitions": [0, 1]}"#)?;
/// assert_eq!((whole.partitions, some.partitions), (None, Some([0, 1].into())));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeBody {
    /// The topic.
    pub topic: TopicName,
    /// Its partitions; all where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<BTreeSet<u32>>,
}
