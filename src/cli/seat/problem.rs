//! What the API answers in place of what was asked: a problem, and the exit code that says so.

use hyper::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::cli::exit::Failure;

/// An error as the API sent it.
#[derive(Debug, Deserialize)]
pub struct Problem {
    /// `/problems/` and a name.
    #[serde(rename = "type")]
    kind: String,
    /// For a person.
    pub detail: String,
    /// What a program needs besides.
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&in_flags(&self.detail))?;
        match self.name() {
            "unauthorized" => f.write_str("; here that is --token-file, or TIDELOG_TOKEN"),
            _ => Ok(()),
        }
    }
}

impl Problem {
    /// The last word of the type.
    pub fn name(&self) -> &str {
        self.kind.trim_start_matches("/problems/")
    }

    /// The field `name` as it came, and as the type that the API writes it from; none where it is not there.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Option<(&Value, T)> {
        let value = self.fields.get(name)?;
        T::deserialize(value).ok().map(|read| (value, read))
    }

    /// The exit code: the table of INTERFACE section 1. What this version does not know is another error.
    pub fn code(&self) -> u8 {
        match self.name() {
            "invalid" => 2,
            "refused" | "held" => 3,
            "fenced" | "key-conflict" | "plan-outdated" | "group-active" => 4,
            "journal-behind" | "journal-damaged" => 6,
            "broker-unavailable" => 7,
            "unknown-group" | "unknown-batch" | "unknown-topic" | "unknown-mark" | "before-history" => 8,
            _ => 1,
        }
    }
}

/// A text of the API in the words of a command: where its last part names a field of the request as what would help, the
/// flag.
pub fn in_flags(text: &str) -> String {
    let Some((why, help)) = text.rsplit_once("; ") else { return text.to_owned() };
    match help.split_once(' ') {
        Some((field @ ("allow_clamp" | "leave_unmovable" | "unchecked"), how)) => {
            format!("{why}; --{} {how}", field.replace('_', "-"))
        }
        _ => text.to_owned(),
    }
}

/// The failure that an answer of this status is.
pub fn read(status: StatusCode, body: &[u8]) -> Failure {
    match serde_json::from_slice(body) {
        Ok(problem) => Failure::Problem(Box::new(problem)),
        Err(_) => Failure::Broken(format!("the server answered {status}, and not in tidelog's words; is it tidelog?")),
    }
}
