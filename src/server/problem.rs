//! Errors as problem details (RFC 9457), by the table of INTERFACE section 2: what is sent is made here and nowhere else.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::commit::Refused;
use crate::control::{ExecuteError, PlanError, SetError, StartError, SteerError, UnknownGroup};
use crate::journal::{CommitError, ReadError, WriteError};
use crate::offset::{Group, Invalid};
use crate::positions::Hold;
use crate::reconcile::Unsettled;
use crate::wire::{PlanAnswer, ReceiptAnswer};

/// What went wrong, as a program knows it.
///
/// ```
/// use tidelog::server::Kind;
///
/// // The last word of a problem's `type`: two limits, one name.
/// assert_eq!((Kind::Fenced.name(), Kind::UriTooLong.name()), ("fenced", Kind::TooLarge.name()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Malformed; names field, value and limit.
    Invalid,
    /// No token, or a wrong one.
    Unauthorized,
    /// The token's role is too low, or the Host or the Origin is foreign.
    Forbidden,
    /// The journal has no such group.
    UnknownGroup,
    /// The group has no such batch.
    UnknownBatch,
    /// The group has no such topic or partition.
    UnknownTopic,
    /// The group has no such mark.
    UnknownMark,
    /// Before the oldest entry that is kept, or before the first batch.
    BeforeHistory,
    /// A stale epoch.
    Fenced,
    /// An epoch that this journal has not reached.
    JournalBehind,
    /// The same key with other content.
    KeyConflict,
    /// The group is on hold.
    Held,
    /// The plan is another one by now.
    PlanOutdated,
    /// A Kafka group has live members.
    GroupActive,
    /// A policy or a plan says no.
    Refused,
    /// A body beyond the limit.
    TooLarge,
    /// A path and query beyond the limit.
    UriTooLong,
    /// Headers beyond the limit.
    HeadersTooLarge,
    /// More at once than this server takes.
    TooManyRequests,
    /// No such route.
    NotFound,
    /// Another method.
    MethodNotAllowed,
    /// Our fault.
    Internal,
    /// The broker did not answer in time.
    BrokerUnavailable,
    /// Damage was found while reading.
    JournalDamaged,
    /// An earlier write failed.
    JournalReadOnly,
}

impl Kind {
    /// The last word of the problem's `type`, its status, and its title.
    fn facts(self) -> (&'static str, StatusCode, &'static str) {
        match self {
            Kind::Invalid => ("invalid", StatusCode::BAD_REQUEST, "The request is not what it should be"),
            Kind::Unauthorized => ("unauthorized", StatusCode::UNAUTHORIZED, "A valid token is needed"),
            Kind::Forbidden => ("forbidden", StatusCode::FORBIDDEN, "This is not allowed here"),
            Kind::UnknownGroup => ("unknown-group", StatusCode::NOT_FOUND, "The journal has no such group"),
            Kind::UnknownBatch => ("unknown-batch", StatusCode::NOT_FOUND, "The group has no such batch"),
            Kind::UnknownTopic => ("unknown-topic", StatusCode::NOT_FOUND, "No such topic or partition"),
            Kind::UnknownMark => ("unknown-mark", StatusCode::NOT_FOUND, "The group has no such mark"),
            Kind::BeforeHistory => ("before-history", StatusCode::NOT_FOUND, "That is before what the journal holds"),
            Kind::Fenced => ("fenced", StatusCode::CONFLICT, "The epoch is stale"),
            Kind::JournalBehind => ("journal-behind", StatusCode::CONFLICT, "This journal is an older copy"),
            Kind::KeyConflict => ("key-conflict", StatusCode::CONFLICT, "The key was used for something else"),
            Kind::Held => ("held", StatusCode::CONFLICT, "The group is on hold"),
            Kind::PlanOutdated => ("plan-outdated", StatusCode::CONFLICT, "The plan is another one by now"),
            Kind::GroupActive => ("group-active", StatusCode::CONFLICT, "The Kafka group has live members"),
            Kind::Refused => ("refused", StatusCode::CONFLICT, "Refused by a policy"),
            Kind::TooLarge => ("too-large", StatusCode::PAYLOAD_TOO_LARGE, "That is too large"),
            Kind::UriTooLong => ("too-large", StatusCode::URI_TOO_LONG, "That is too large"),
            Kind::HeadersTooLarge => ("too-large", StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "That is too large"),
            Kind::TooManyRequests => ("too-many-requests", StatusCode::TOO_MANY_REQUESTS, "Too much at once"),
            Kind::NotFound => ("not-found", StatusCode::NOT_FOUND, "There is no such route"),
            Kind::MethodNotAllowed => {
                ("method-not-allowed", StatusCode::METHOD_NOT_ALLOWED, "The route has other methods")
            }
            Kind::Internal => ("internal", StatusCode::INTERNAL_SERVER_ERROR, "tidelog made a mistake"),
            Kind::BrokerUnavailable => {
                ("broker-unavailable", StatusCode::SERVICE_UNAVAILABLE, "The broker did not answer in time")
            }
            Kind::JournalDamaged => ("journal-damaged", StatusCode::INTERNAL_SERVER_ERROR, "The journal is damaged"),
            Kind::JournalReadOnly => {
                ("journal-read-only", StatusCode::SERVICE_UNAVAILABLE, "The journal takes no writes")
            }
        }
    }

    /// The last word of the problem's `type`.
    pub fn name(self) -> &'static str {
        self.facts().0
    }
}

/// An error on its way to a client.
///
/// ```
/// use tidelog::server::{Kind, Problem};
///
/// let problem = Problem::new(Kind::UnknownTopic, "no group has it").with("topic", "orders");
/// assert_eq!(Kind::UnknownTopic.name(), "unknown-topic");
/// # let _ = problem;
/// ```
#[derive(Debug, Clone)]
pub struct Problem {
    /// What went wrong, for a program.
    pub kind: Kind,
    /// The same for a person.
    pub detail: String,
    /// What a program needs besides.
    fields: Map<String, Value>,
}

impl Problem {
    /// A problem without fields of its own.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Problem { kind, detail: detail.into(), fields: Map::new() }
    }

    /// The same with a field; one that can't be written as JSON is a bug, and null.
    pub fn with(mut self, name: &str, value: impl Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.fields.insert(name.to_owned(), value);
        self
    }

    /// A field or parameter that is not what it should be.
    pub fn invalid(field: &str, value: impl std::fmt::Display, limit: impl Into<String>) -> Self {
        Problem::from(Invalid::new(field.to_owned(), value, limit.into()))
    }

    /// The journal has no such group.
    pub fn unknown_group(journal: &crate::journal::Journal, group: &Group) -> Self {
        journal.with_state(|state| UnknownGroup::new(state, group)).into()
    }

    fn held(detail: String, hold: &Hold) -> Self {
        Problem::new(Kind::Held, detail).with("held", hold)
    }

    fn broker(detail: String, brokers: &str, deadline: std::time::Duration, unknown: Value) -> Self {
        Problem::new(Kind::BrokerUnavailable, detail)
            .with("brokers", brokers)
            .with("deadline_ms", u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX))
            .with("unknown", unknown)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (name, status, title) = self.kind.facts();
        let mut body = Map::new();
        body.insert("type".to_owned(), format!("/problems/{name}").into());
        body.insert("title".to_owned(), title.into());
        body.insert("status".to_owned(), status.as_u16().into());
        body.insert("detail".to_owned(), self.detail.into());
        body.extend(self.fields);
        let mut response = Response::new(Body::from(Value::Object(body).to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.kind == Kind::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Problem::new(Kind::Invalid, invalid.to_string())
            .with("field", &invalid.what)
            .with("value", &invalid.value)
            .with("limit", &invalid.why)
    }
}

impl From<UnknownGroup> for Problem {
    fn from(unknown: UnknownGroup) -> Self {
        Problem::new(Kind::UnknownGroup, unknown.to_string()).with("apps", &unknown.apps)
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        tracing::error!(%error, "the journal can't be read");
        Problem::new(Kind::JournalDamaged, error.to_string())
            .with("file", error.file.to_string_lossy())
            .with("seq", error.seq)
    }
}

impl From<WriteError> for Problem {
    fn from(error: WriteError) -> Self {
        match &error {
            WriteError::ReadOnly { .. } => Problem::new(Kind::JournalReadOnly, error.to_string()),
            WriteError::TooLarge { limit, .. } => Problem::new(Kind::TooLarge, error.to_string()).with("limit", limit),
        }
    }
}

impl From<CommitError> for Problem {
    fn from(error: CommitError) -> Self {
        let refused = match error {
            CommitError::Unavailable(error) => return error.into(),
            CommitError::Refused(refused) => refused,
        };
        let detail = refused.to_string();
        match refused {
            Refused::Invalid(invalid) => invalid.into(),
            Refused::UnknownGroup { .. } => Problem::new(Kind::UnknownGroup, detail),
            Refused::Held { hold, .. } => Problem::held(detail, &hold),
            Refused::Fenced { present, raised_by, .. } => {
                Problem::new(Kind::Fenced, detail).with("epoch", present).with("raised_by", raised_by)
            }
            Refused::OtherIncarnation { topic, present, epoch, .. } => Problem::new(Kind::Fenced, detail)
                .with("epoch", epoch)
                .with("raised_by", Value::Null)
                .with("topic", topic)
                .with("topic_id", present),
            Refused::JournalBehind { present, .. } => Problem::new(Kind::JournalBehind, detail).with("epoch", present),
            Refused::KeyConflict { key, first } => {
                let first = ReceiptAnswer::from(first);
                Problem::new(Kind::KeyConflict, detail).with("key", key).with("first", first)
            }
            Refused::TooLarge { limit, .. } => Problem::new(Kind::TooLarge, detail).with("limit", limit),
        }
    }
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Self {
        let detail = error.to_string();
        match error {
            StartError::Held { hold, .. } => Problem::held(detail, &hold),
            StartError::Refused { findings, .. } => Problem::new(Kind::Refused, detail).with("findings", findings),
            StartError::BrokerUnavailable { brokers, deadline, unsettled } => {
                let unknown = unsettled.iter().map(unsettled_line).collect();
                Problem::broker(detail, &brokers, deadline, unknown)
            }
            StartError::Invalid(invalid) => invalid.into(),
            StartError::Unavailable(error) => error.into(),
        }
    }
}

fn unsettled_line(unsettled: &Unsettled) -> Value {
    let Unsettled { topic, partition, why } = unsettled;
    json!({ "topic": topic, "partition": partition, "why": why.to_string() })
}

impl From<PlanError> for Problem {
    fn from(error: PlanError) -> Self {
        let detail = error.to_string();
        match error {
            PlanError::UnknownGroup(unknown) => unknown.into(),
            PlanError::UnknownBatch { newest, .. } => Problem::new(Kind::UnknownBatch, detail).with("newest", newest),
            PlanError::UnknownTopic { topic, partition, .. } => {
                Problem::new(Kind::UnknownTopic, detail).with("topic", topic).with("partition", partition)
            }
            PlanError::UnknownMark { mark, .. } => Problem::new(Kind::UnknownMark, detail).with("mark", mark),
            PlanError::BeforeHistory { oldest, .. } => {
                let oldest = oldest.map(
                    |oldest| json!({ "batch": oldest.batch, "seq": oldest.seq, "recorded_at": oldest.recorded_at }),
                );
                Problem::new(Kind::BeforeHistory, detail).with("oldest", oldest)
            }
            PlanError::NothingToUndo { .. } => Problem::new(Kind::Refused, detail).with("refusal", "nothing-to-undo"),
            PlanError::Invalid(invalid) => invalid.into(),
            PlanError::BrokerUnavailable { brokers, deadline, unknown, .. } => {
                let line = |at: &crate::offset::TopicPartition| json!({ "topic": at.topic, "partition": at.partition });
                Problem::broker(detail, &brokers, deadline, unknown.iter().map(line).collect())
            }
            PlanError::Read(error) => error.into(),
        }
    }
}

impl From<ExecuteError> for Problem {
    fn from(error: ExecuteError) -> Self {
        let detail = error.to_string();
        let (kind, plan) = match error {
            ExecuteError::Plan(error) => return error.into(),
            ExecuteError::Write(error) => return error.into(),
            ExecuteError::Refused(plan) => (Kind::Refused, plan),
            ExecuteError::Outdated(plan) => (Kind::PlanOutdated, plan),
            ExecuteError::Active(plan) => {
                let answer = PlanAnswer::new(&plan.execute.group, &plan);
                return Problem::new(Kind::GroupActive, detail).with("members", plan.members).with("plan", answer);
            }
        };
        Problem::new(kind, detail).with("plan", PlanAnswer::new(&plan.execute.group, &plan))
    }
}

impl From<SetError> for Problem {
    fn from(error: SetError) -> Self {
        let detail = error.to_string();
        match error {
            SetError::Invalid(invalid) => invalid.into(),
            SetError::Active { kafka_group, members } => {
                Problem::new(Kind::GroupActive, detail).with("members", members).with("kafka_group", kafka_group)
            }
            SetError::Unknown { kafka_group, .. } => {
                Problem::new(Kind::Refused, detail).with("refusal", "members-unknown").with("kafka_group", kafka_group)
            }
            SetError::BrokerUnavailable { brokers, deadline, .. } => {
                Problem::broker(detail, &brokers, deadline, Value::Array(Vec::new()))
            }
            SetError::OtherCluster(_) => Problem::new(Kind::Refused, detail).with("refusal", "other-cluster"),
            SetError::Read(error) => error.into(),
            SetError::Write(error) => error.into(),
        }
    }
}

impl From<SteerError> for Problem {
    fn from(error: SteerError) -> Self {
        let detail = error.to_string();
        match error {
            SteerError::UnknownGroup(unknown) => unknown.into(),
            SteerError::UnknownTopic { topic, .. } => Problem::new(Kind::UnknownTopic, detail).with("topic", topic),
            SteerError::Held { hold, .. } => Problem::held(detail, &hold),
            SteerError::Invalid(invalid) => invalid.into(),
            SteerError::Read(error) => error.into(),
            SteerError::Write(error) => error.into(),
        }
    }
}
