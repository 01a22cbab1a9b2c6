//! The public face (INTERFACE) as lists of names in `contract/`: what is listed must be there, and what is there must be
//! listed. A name that goes, changes or comes without a line there fails here.

mod answers;
#[cfg(feature = "cli")]
mod commands;
#[cfg(feature = "cli")]
mod exits;
mod problems;

use std::collections::BTreeSet;

use serde_json::Value;

/// The lines of a list that hold something.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Compares what is with what is listed, and prints all that is where they differ.
#[track_caller]
fn same(listed: &BTreeSet<String>, there: &BTreeSet<String>, what: &str) {
    let missing: Vec<_> = listed.difference(there).collect();
    let unlisted: Vec<_> = there.difference(listed).collect();
    let whole: String = there.iter().map(|name| format!("{name}\n")).collect();
    assert!(
        missing.is_empty() && unlisted.is_empty(),
        "{what}\nlisted, but not there: {missing:#?}\nthere, but not listed: {unlisted:#?}\nall that is there:\n{whole}"
    );
}

/// The names of all fields of `value`, as `positions[].offset`; an entry's own under its kind.
fn fields(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            let kind = object.get("kind").and_then(Value::as_str);
            let at = match (kind, object.contains_key("machine_clock")) {
                (Some(kind), true) => format!("{at}<{kind}>"),
                _ => at.to_owned(),
            };
            for (name, value) in object {
                let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                found.insert(at.clone());
                fields(value, &at, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| fields(value, &format!("{at}[]"), found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
