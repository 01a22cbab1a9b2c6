//! The small things that an operator asks for, as bodies. Each is answered with its entry.

use serde::{Deserialize, Serialize};

use crate::offset::TopicName;

/// Gives the present state of a group a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarkBody {
    /// The name.
    pub name: String,
    /// Who; the server says it where nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

/// Stops a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldBody {
    /// Why.
    pub reason: String,
    /// Who; the server says it where nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

/// Frees a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseBody {
    /// Who; the server says it where nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

/// Takes a topic, or the whole group, out of lists, alarms and rollbacks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetireBody {
    /// The topic; the whole group without one.
    #[serde(default)]
    pub topic: Option<TopicName>,
    /// Who; the server says it where nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

/// Says that somebody has seen the losses or holes of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcknowledgeBody {
    /// Who; the server says it where nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}
