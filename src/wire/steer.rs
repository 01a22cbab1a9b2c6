//! The small things that an operator asks for, as bodies. Each is answered with its entry.

use serde::{Deserialize, Serialize};

use crate::offset::TopicName;

/// Gives the present state of a group a name.
///
/// ```
/// use tidelog::wire::MarkBody;
///
/// let body = MarkBody { name: "before deploy 42".to_owned(), actor: Some("ann".to_owned()) };
/// assert_eq!(serde_json::to_string(&body)?, r#"{"name":"before deploy 42","actor":"ann"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// ```
/// use tidelog::wire::HoldBody;
///
/// let body: HoldBody = serde_json::from_str(r#"{"reason": "mending the sink", "actor": "ann"}"#)?;
/// assert_eq!(body.reason, "mending the sink");
/// assert!(serde_json::from_str::<HoldBody>(r#"{"actor": "ann"}"#).is_err()); // it wants a reason
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// ```
/// use tidelog::wire::ReleaseBody;
///
/// assert_eq!(serde_json::from_str::<ReleaseBody>("{}")?, ReleaseBody { actor: None });
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseBody {
    /// Who; the server says it where nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

/// Takes a topic, or the whole group, out of lists, alarms and rollbacks.
///
/// ```
/// use tidelog::wire::RetireBody;
///
/// let body: RetireBody = serde_json::from_str(r#"{"topic": "orders", "actor": "ann"}"#)?;
/// assert_eq!(body.topic, Some("orders".parse()?)); // the group stays
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
///
/// ```
/// use tidelog::wire::AcknowledgeBody;
///
/// let body = AcknowledgeBody { actor: Some("ann".to_owned()) };
/// assert_eq!(serde_json::to_string(&body)?, r#"{"actor":"ann"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcknowledgeBody {
    /// Who; the server says it where nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}
