//! A request to the API, and its answer.

use std::fmt::Display;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Method, Request, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::args::quoted;
use crate::cli::exit::Failure;
use crate::cli::output::Out;
use crate::offset::{Group, Offset, TopicPartition};

/// What is asked: a method, a path, parameters, a body.
pub struct Ask {
    method: Method,
    path: String,
    query: String,
    body: Bytes,
}

impl Ask {
    /// Reads at `path`.
    pub fn get(path: &str) -> Ask {
        Ask { method: Method::GET, path: path.to_owned(), query: String::new(), body: Bytes::new() }
    }

    /// Reads at `rest` below the group.
    pub fn of(group: &Group, rest: &str) -> Ask {
        let app = (group.app() != Group::DEFAULT_APP).then_some(group.app());
        Ask::get(&format!("/v1/groups/{}{rest}", encoded(group.group()))).with("app", app)
    }

    /// Reads who read the offset of a partition.
    pub fn reading(at: &TopicPartition, offset: Offset) -> Ask {
        // Names of topics have no character that a path could not hold, but they have dots.
        let topic = encoded(at.topic.as_str());
        Ask::get(&format!("/v1/topics/{topic}/partitions/{}/offsets/{offset}", at.partition))
    }

    /// Posts this body in place of reading.
    pub fn post(mut self, body: &impl Serialize) -> Result<Ask, Failure> {
        let body = serde_json::to_vec(body).map_err(|error| Failure::Broken(format!("a request: {error}")))?;
        (self.method, self.body) = (Method::POST, body.into());
        Ok(self)
    }

    /// The same with a parameter, where there is a value for it.
    pub fn with(mut self, name: &str, value: Option<impl Display>) -> Ask {
        if let Some(value) = value {
            let separator = if self.query.is_empty() { '?' } else { '&' };
            self.query.push_str(&format!("{separator}{name}={}", encoded(&value.to_string())));
        }
        self
    }

    /// Whether it may change something.
    pub fn changes(&self) -> bool {
        self.method == Method::POST && !self.path.ends_with("/plan")
    }

    /// The request, below `base`.
    pub fn request(self, base: &str) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        Request::builder()
            .method(self.method)
            .uri(format!("{base}{}{}", self.path, self.query))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(self.body))
    }
}

fn encoded(text: &str) -> impl Display {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// What was answered, as it came.
pub struct Answer(Bytes);

/// One list of an answer.
pub struct List {
    elements: Vec<Value>,
    next: Option<String>,
}

impl Answer {
    pub(super) fn new(body: Bytes) -> Answer {
        Answer(body)
    }

    /// The answer as the type that the API writes it from.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.0).map_err(|error| not_understood(&error))
    }

    /// Prints the object as it came, on one line.
    pub fn print(&self, out: &mut Out) -> Result<(), Failure> {
        out.bytes(self.0.trim_ascii())?;
        out.bytes(b"\n")
    }

    /// The list that the answer has under `name`.
    pub fn list(&self, name: &str) -> Result<List, Failure> {
        let mut answer: Value = self.read()?;
        let mut field = |name: &str| answer.get_mut(name).map(Value::take);
        let elements = field(name).unwrap_or_default();
        let next = field("next").unwrap_or_default();
        Ok(List { elements: read(elements)?, next: read(next)? })
    }
}

impl List {
    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Where the next part begins.
    pub fn next(&self) -> Option<&str> {
        self.next.as_deref()
    }

    /// The elements as the type that the API writes them from.
    pub fn read<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, Failure> {
        std::mem::take(&mut self.elements).into_iter().map(read).collect()
    }

    /// Prints each element as it came, on a line of its own.
    pub fn print(&self, out: &mut Out) -> Result<(), Failure> {
        self.elements.iter().try_for_each(|element| out.json(element))
    }

    /// Says how to go on; on standard error, as results are a list and nothing else.
    pub fn say_next(&self, out: &mut Out) -> Result<(), Failure> {
        out.flush()?;
        if let Some(next) = &self.next {
            tracing::info!("there is more: --cursor {}", quoted(next));
        }
        Ok(())
    }
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| not_understood(&error))
}

fn not_understood(error: &serde_json::Error) -> Failure {
    Failure::Broken(format!("the answer can't be read ({error}); is the server of another version?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_path_and_values_the_query() {
        let group = Group::new("a&b", "x/y%?#|: ü.").unwrap();
        let ask = Ask::of(&group, "/batches").with("limit", Some(5)).with("cursor", None::<u8>).with("at", Some("+1"));
        let request = ask.request("http://h:1").unwrap();
        let expected = "http://h:1/v1/groups/x%2Fy%25%3F%23%7C%3A%20%C3%BC%2E/batches?app=a%26b&limit=5&at=%2B1";
        assert_eq!(request.uri().to_string(), expected);
        let default = Group::new("default", "g").unwrap();
        assert_eq!(Ask::of(&default, "").request("").unwrap().uri().to_string(), "/v1/groups/g");
    }

    #[test]
    fn a_plan_changes_nothing() {
        let group = Group::new("default", "plan").unwrap();
        let posted = |rest: &str| Ask::of(&group, rest).post(&()).unwrap().changes();
        assert_eq!([posted("/rollback/plan"), posted("/rollback"), posted("/start")], [false, true, true]);
        assert!(!Ask::of(&group, "").changes());
    }
}
