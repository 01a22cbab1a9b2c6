//! What a request asks for: its names, parameters and body, each checked, and refused by name where it is not known.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::{Method, header};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;

use super::App;
use super::guard::Caller;
use super::problem::{Kind, Problem};
use crate::history::Window;
use crate::journal::Order;
use crate::offset::{Group, Invalid, Timestamp, partition_number};

/// Bytes of a body: more than a commit of 100,000 ranges needs.
pub const MAX_BODY: usize = 16 << 20;
/// A larger body, or one of unknown size, waits for a place: only so many are in memory at once.
const LARGE_BODY: u64 = 64 << 10;
/// How long a body may take to come.
const BODY_TIME: Duration = Duration::from_secs(30);
/// A larger body is not read a second time for the value that an error is about.
const SHOWN_BODY: usize = 64 << 10;
/// Elements of one page, at most and where nobody says.
const MAX_LIMIT: usize = 1_000;
const DEFAULT_LIMIT: usize = 100;

/// A request, taken in as a whole.
pub struct Ask {
    /// Who asks.
    pub caller: Caller,
    names: Vec<(String, String)>,
    params: Vec<(String, String)>,
    body: Bytes,
    /// Held as long as a large body is.
    _place: Option<OwnedSemaphorePermit>,
}

impl FromRequest<App> for Ask {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let names = RawPathParams::from_request_parts(&mut parts, app)
            .await
            .map_err(|_| Problem::invalid("path", parts.uri.path(), "not UTF-8 once its % escapes are decoded"))?;
        let names = names.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let params = parse_query(parts.uri.query().unwrap_or_default())?;
        let caller = parts.extensions.get::<Caller>().cloned().unwrap_or_default();
        let declared = parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let reads = matches!(parts.method, Method::GET | Method::HEAD);
        let large = !reads && declared.is_none_or(|length| length > LARGE_BODY);
        let place = match large {
            // Closed never; the wait ends with those before, whose time is bounded.
            true => Arc::clone(&app.0.large_bodies).acquire_owned().await.ok(),
            false => None,
        };
        let body = if reads { Bytes::new() } else { read(body, declared).await? };
        Ok(Ask { caller, names, params, body, _place: place })
    }
}

/// Reads a body of at most [`MAX_BODY`] bytes.
async fn read(body: Body, declared: Option<u64>) -> Result<Bytes, Problem> {
    let too_large = || {
        Problem::new(Kind::TooLarge, format!("the body has more than {MAX_BODY} bytes; send several requests"))
            .with("limit", MAX_BODY)
    };
    if declared.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, MAX_BODY)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => {
            let error = error.into_inner();
            if error.is::<http_body_util::LengthLimitError>() {
                return Err(too_large());
            }
            Err(Problem::invalid("body", "", format!("it broke off: {error}")))
        }
        Err(_) => Err(Problem::invalid("body", "", format!("it did not come within {} s", BODY_TIME.as_secs()))),
    }
}

/// The pairs of a query, decoded. A name given twice is refused: one of the two would be ignored.
fn parse_query(query: &str) -> Result<Vec<(String, String)>, Problem> {
    let mut params: Vec<(String, String)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| {
            let text = text.replace('+', " ");
            let decoded = percent_decode_str(&text).decode_utf8().map(|text| text.into_owned());
            decoded.map_err(|_| Problem::invalid("query", pair, "not UTF-8 once its % escapes are decoded"))
        };
        let (name, value) = (decode(name)?, decode(value)?);
        if params.iter().any(|(known, _)| *known == name) {
            return Err(Problem::invalid(&name, value, "given twice"));
        }
        params.push((name, value));
    }
    Ok(params)
}

impl Ask {
    /// A name of the path.
    pub fn name(&self, name: &str) -> &str {
        self.names.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// A value of the path.
    pub fn part<T: FromStr<Err: Into<Problem>>>(&self, name: &str) -> Result<T, Problem> {
        self.name(name).parse().map_err(Into::into)
    }

    /// The group that path and `app` name.
    pub fn group(&mut self) -> Result<Group, Problem> {
        let app = self.text("app").unwrap_or_else(|| Group::DEFAULT_APP.to_owned());
        Ok(Group::new(&app, self.name("group"))?)
    }

    /// Takes a parameter as it came.
    pub fn text(&mut self, name: &str) -> Option<String> {
        let index = self.params.iter().position(|(known, _)| known == name)?;
        Some(self.params.swap_remove(index).1)
    }

    /// Takes a parameter; an error names it.
    pub fn param<T: FromStr<Err = Invalid>>(&mut self, name: &str) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(invalid) => Err(Problem::invalid(name, &invalid.value, invalid.why)),
        }
    }

    /// Takes a time. A plus sign that was not escaped has become a blank by now: says so.
    pub fn time(&mut self, name: &str) -> Result<Option<Timestamp>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let parsed = match text.parse::<i64>() {
            Ok(millis) => Timestamp::from_outside(millis),
            Err(_) => text.parse(),
        };
        parsed.map(Some).map_err(|invalid| {
            let escaped = text.replace(' ', "+").parse::<Timestamp>().is_ok();
            let hint = if escaped && text.contains(' ') { "; write + as %2B in a query" } else { "" };
            Problem::invalid(name, &text, format!("{}{hint}", invalid.why))
        })
    }

    /// Takes `limit`: 1 to 1000, by default 100.
    pub fn limit(&mut self) -> Result<usize, Problem> {
        let Some(text) = self.text("limit") else { return Ok(DEFAULT_LIMIT) };
        match text.parse() {
            Ok(limit) if (1..=MAX_LIMIT).contains(&limit) && text.bytes().all(|b| b.is_ascii_digit()) => Ok(limit),
            _ => Err(Problem::invalid("limit", text, "1 to 1000")),
        }
    }

    /// Takes `order`: `desc`, unless `asc` is asked for.
    pub fn order(&mut self) -> Result<Order, Problem> {
        match self.text("order").as_deref() {
            None | Some("desc") => Ok(Order::Descending),
            Some("asc") => Ok(Order::Ascending),
            Some(other) => Err(Problem::invalid("order", other, "asc or desc")),
        }
    }

    /// Takes `order`, `from`, `to` and `limit`.
    pub fn window(&mut self) -> Result<Window, Problem> {
        Ok(Window { order: self.order()?, from: self.time("from")?, to: self.time("to")?, limit: self.limit()? })
    }

    /// Takes `cursor`, where it is a number.
    pub fn cursor<N: FromStr>(&mut self) -> Result<Option<N>, Problem> {
        let Some(text) = self.text("cursor") else { return Ok(None) };
        text.parse().map(Some).map_err(|_| bad_cursor(&text))
    }

    /// Refuses parameters that nobody has taken.
    pub fn no_more(&self) -> Result<(), Problem> {
        match self.params.first() {
            None => Ok(()),
            Some((name, value)) => Err(Problem::invalid(name, value, "an unknown query parameter")),
        }
    }

    /// Who acts: whom the body names, else the token's name; without either nobody knows.
    pub fn actor(&self, given: Option<String>) -> String {
        given.or_else(|| self.caller.name.clone()).unwrap_or_else(|| "unknown".to_owned())
    }

    /// The body.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        // A list would be taken for the values of the fields, in some order.
        if self.body.trim_ascii_start().first() == Some(&b'[') {
            return Err(Problem::invalid("body", "[", "a list; a body is an object"));
        }
        let mut reader = serde_json::Deserializer::from_slice(&self.body);
        let parsed: T = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let field = meant(&error.path().to_string(), &error.inner().to_string());
            self.wrong_body(&field, error.inner())
        })?;
        reader.end().map_err(|error| self.wrong_body("body", &error))?;
        Ok(parsed)
    }

    /// What is wrong with the field of the body: for a value what its type says, for broken JSON also where.
    fn wrong_body(&self, field: &str, error: &serde_json::Error) -> Problem {
        let mut why = error.to_string();
        if error.is_data() {
            why.truncate(why.rfind(" at line ").unwrap_or(why.len()));
        }
        let value = Invalid::new("", value_at(&self.body, field).unwrap_or_default(), "").value;
        Problem::new(Kind::Invalid, format!("{field}: {why}"))
            .with("field", field)
            .with("value", value)
            .with("limit", why)
    }
}

/// The field that an error at `path` speaks of: one that is missing, unknown or given twice goes by its own name.
fn meant(path: &str, why: &str) -> String {
    // Where the text breaks off before a name, the path ends with a question mark.
    let path = path.strip_suffix('?').map_or(path, |path| path.strip_suffix('.').unwrap_or("."));
    let named =
        ["missing field `", "unknown field `", "duplicate field `"].iter().find_map(|begin| why.strip_prefix(begin));
    match (path, named.and_then(|rest| rest.split('`').next())) {
        (".", None) => "body".to_owned(),
        (".", Some(name)) => name.to_owned(),
        (path, Some(name)) if !path.ends_with(&format!(".{name}")) && path != name => format!("{path}.{name}"),
        (path, _) => path.to_owned(),
    }
}

/// A partition as a query or a path names it.
pub fn read_partition(text: &str) -> Result<u32, Problem> {
    let wrong = || Problem::invalid("partition", text, "a partition is 0 to 2147483647");
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits).ok_or_else(wrong)?;
    partition_number(number).map_err(|_| wrong())
}

/// What a cursor is told that no answer gave.
pub fn bad_cursor(text: &str) -> Problem {
    Problem::invalid("cursor", text, "not one that an earlier answer gave")
}

/// The value that stands at `path` of a body, for an error: found only then.
fn value_at(body: &[u8], path: &str) -> Option<String> {
    if body.len() > SHOWN_BODY {
        return None;
    }
    let whole: serde_json::Value = serde_json::from_slice(body).ok()?;
    let pointer = format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
    let value = whole.pointer(&pointer)?;
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}
