//! Requests and the answers to them, as a text that reads like a transcript:
//!
//! ```text
//! ! broker orders id=A 0:0..520               changes the world
//! > POST /v1/groups/g/marks {"name": "m"}     a request, with its body
//! 201 {"seq": "3", "..": 0}                   its answer: a status and JSON, over several lines if need be
//! > POST /v1/groups/g/rollback/plan
//! + {"to": {"batch": "1"}}                    a body that goes on
//! > GET /v1/groups/h
//! 404 unknown-group {"apps": []}              a problem by its name, with the fields of its own
//! ```
//!
//! Answers are compared whole. An object with the field `..` may have others besides; `"*"` stands for any value, and
//! `"$plan"` for any too, which a later `$plan` repeats, in requests as in answers.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::world::{Answer, World};

/// Runs `script`, and compares each answer with what follows its request.
#[track_caller]
pub fn check(world: &World, script: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut kept = BTreeMap::new();
    let (mut said, mut wrong) = (String::new(), 0);
    for step in steps(script) {
        let (method, target, body, expected) = match step {
            Step::Ask { method, target, body, expected } => (method, target, body, expected),
            Step::Change(line) => {
                world.change(line);
                said += &format!("! {line}\n");
                continue;
            }
        };
        let (target, body) = (repeat(target, &kept), repeat(&body, &kept));
        let answer = runtime.block_on(world.ask(method, &target, &body));
        let got = show(&answer);
        said += &format!("> {method} {target} {body}\n{got}\n");
        if let Err(why) = compare(&expected, &answer, &mut kept) {
            wrong += 1;
            said += &format!("^^^ {why}; wanted {expected}\n");
        }
    }
    assert!(wrong == 0, "{wrong} answers are others than wanted; all that was said:\n{said}");
}

enum Step<'a> {
    Change(&'a str),
    Ask { method: &'a str, target: &'a str, body: String, expected: String },
}

fn steps(script: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(change) = line.strip_prefix("! ") {
            steps.push(Step::Change(change));
        } else if let Some(request) = line.strip_prefix("> ") {
            let mut words = request.splitn(3, ' ');
            let method = words.next().expect("a method");
            let target = words.next().expect("a target");
            let body = words.next().unwrap_or_default().to_owned();
            steps.push(Step::Ask { method, target, body, expected: String::new() });
        } else {
            let Some(Step::Ask { body, expected, .. }) = steps.last_mut() else {
                panic!("an answer to nothing: {line}")
            };
            match line.strip_prefix("+ ") {
                Some(more) => body.push_str(more),
                None => *expected += &format!("{line} "),
            }
        }
    }
    steps
}

fn repeat(text: &str, kept: &BTreeMap<String, Value>) -> String {
    kept.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), &value.to_string()))
}

/// An answer as a script would expect it.
fn show(answer: &Answer) -> String {
    let problem = answer.problem();
    if problem.is_empty() {
        return format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body));
    }
    format!("{} {problem} {}", answer.status, Value::Object(own_fields(&answer.json())))
}

/// The fields of a problem besides those that each has.
fn own_fields(problem: &Value) -> Map<String, Value> {
    let fields = problem.as_object().expect("a problem is an object").clone();
    fields.into_iter().filter(|(name, _)| !["type", "title", "status"].contains(&name.as_str())).collect()
}

fn compare(expected: &str, answer: &Answer, kept: &mut BTreeMap<String, Value>) -> Result<(), String> {
    let (status, rest) = expected.trim().split_once(' ').unwrap_or((expected.trim(), ""));
    if status != answer.status.to_string() {
        return Err(format!("the status is {}", answer.status));
    }
    let (kind, text) =
        if rest.starts_with(['{', '[']) { ("", rest) } else { rest.split_once(' ').unwrap_or((rest, "")) };
    if kind != answer.problem() {
        return Err(format!("the problem is {:?}", answer.problem()));
    }
    let wanted: Value = match text.is_empty() {
        true => serde_json::json!({"..": 0}),
        false => serde_json::from_str(text).map_err(|error| format!("what is wanted is no JSON: {error}"))?,
    };
    if kind.is_empty() {
        if answer.header("content-type") != "application/json" {
            return Err(format!("the content type is {:?}", answer.header("content-type")));
        }
        return fits(&wanted, &answer.json(), "", kept);
    }
    let whole = answer.json();
    for field in ["title", "detail"] {
        if whole[field].as_str().is_none_or(str::is_empty) {
            return Err(format!("no {field}"));
        }
    }
    if whole["status"] != answer.status {
        return Err(format!("the status in the body is {}", whole["status"]));
    }
    let mut own = own_fields(&whole);
    // A detail is compared where one is written down.
    if wanted.get("detail").is_none() {
        own.remove("detail");
    }
    fits(&wanted, &Value::Object(own), "", kept)
}

fn fits(wanted: &Value, got: &Value, at: &str, kept: &mut BTreeMap<String, Value>) -> Result<(), String> {
    match (wanted, got) {
        (Value::String(any), _) if any == "*" => Ok(()),
        (Value::String(name), _) if name.starts_with('$') => {
            let known = kept.entry(name[1..].to_owned()).or_insert_with(|| got.clone());
            if known == got { Ok(()) } else { Err(format!("{at} is {got}, {name} was {known}")) }
        }
        (Value::Object(wanted), Value::Object(got)) => {
            for (name, value) in wanted.iter().filter(|(name, _)| *name != "..") {
                let found = got.get(name).ok_or_else(|| format!("{at}/{name} is missing"))?;
                fits(value, found, &format!("{at}/{name}"), kept)?;
            }
            match got.keys().find(|name| !wanted.contains_key(*name)) {
                Some(more) if !wanted.contains_key("..") => Err(format!("{at}/{more} is there too")),
                _ => Ok(()),
            }
        }
        (Value::Array(wanted), Value::Array(got)) if wanted.len() == got.len() => {
            let mut pairs = wanted.iter().zip(got).enumerate();
            pairs.try_for_each(|(index, (wanted, got))| fits(wanted, got, &format!("{at}/{index}"), kept))
        }
        _ if wanted == got => Ok(()),
        _ => Err(format!("{at} is {got}")),
    }
}
