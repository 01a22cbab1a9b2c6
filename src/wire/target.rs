//! The target of a rollback as JSON.

use std::collections::BTreeMap;

use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::offset::{BatchNumber, Invalid, Offset, Seq, Timestamp, TopicName, TopicPartition};
use crate::rollback::{self, Edge, Target};

/// A target: one of the fields is set; `edge` goes with `batch`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct To {
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<BatchNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edge: Option<EdgeWord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<Seq>,
    #[serde(skip_serializing_if = "is_false")]
    undo: bool,
    #[serde(skip_serializing_if = "is_false")]
    earliest: bool,
    #[serde(skip_serializing_if = "is_false")]
    latest: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<Offset>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shift: Option<Shift>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offsets: Option<Vec<OffsetLine>>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EdgeWord {
    Before,
    After,
}

/// An offset of a partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffsetLine {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
    /// The offset.
    pub offset: Offset,
}

/// The only number that may be negative: a string, or an integer, like the others.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shift(i64);

impl Serialize for Shift {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Shift {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "shift: a string of digits or an integer, which may be negative")]
        enum Either {
            Number(i64),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(number) => Ok(Shift(number)),
            Either::Text(text) => {
                let digits = text.strip_prefix('-').unwrap_or(&text);
                let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
                let number = text.parse().ok().filter(|_| plain);
                let why = "not a whole number between -9223372036854775808 and 9223372036854775807";
                number.map(Shift).ok_or_else(|| de::Error::custom(Invalid::new("shift", &text, why)))
            }
        }
    }
}

impl From<&Target> for To {
    fn from(target: &Target) -> Self {
        let mut to = To::default();
        match target {
            Target::Batch { batch, edge } => {
                to.batch = Some(*batch);
                to.edge = Some(match edge {
                    Edge::Before => EdgeWord::Before,
                    Edge::After => EdgeWord::After,
                });
            }
            Target::CommitTime(time) => to.commit_time = Some(*time),
            Target::Mark(name) => to.mark = Some(name.clone()),
            Target::Seq(seq) => to.seq = Some(*seq),
            Target::Undo => to.undo = true,
            Target::Earliest => to.earliest = true,
            Target::Latest => to.latest = true,
            Target::Offset(offset) => to.offset = Some(*offset),
            Target::Shift(shift) => to.shift = Some(Shift(*shift)),
            Target::RecordTime(time) => to.record_time = Some(*time),
            Target::Duration(duration) => to.duration = Some(format!("PT{}S", duration.as_secs())),
            Target::Offsets(offsets) => {
                let line = |(at, offset): (&TopicPartition, &Offset)| OffsetLine {
                    topic: at.topic.clone(),
                    partition: at.partition,
                    offset: *offset,
                };
                to.offsets = Some(offsets.iter().map(line).collect());
            }
        }
        to
    }
}

impl To {
    /// The target that is set.
    ///
    /// # Errors
    ///
    /// None is, or several are, or its value is none.
    pub fn target(self) -> Result<Target, Invalid> {
        let edge = match self.edge {
            Some(EdgeWord::Before) => Edge::Before,
            Some(EdgeWord::After) | None => Edge::After,
        };
        let duration = self.duration.as_deref().map(rollback::parse_duration).transpose()?;
        let offsets = self.offsets.map(offsets).transpose()?;
        let with_edge = self.edge.is_some() && self.batch.is_none();
        let given = [
            self.batch.map(|batch| Target::Batch { batch, edge }),
            self.commit_time.map(Target::CommitTime),
            self.mark.map(Target::Mark),
            self.seq.map(Target::Seq),
            self.undo.then_some(Target::Undo),
            self.earliest.then_some(Target::Earliest),
            self.latest.then_some(Target::Latest),
            self.offset.map(Target::Offset),
            self.shift.map(|shift| Target::Shift(shift.0)),
            self.record_time.map(Target::RecordTime),
            duration.map(Target::Duration),
            offsets.map(Target::Offsets),
        ];
        let mut given = given.into_iter().flatten();
        match (given.next(), given.count(), with_edge) {
            (Some(target), 0, false) => Ok(target),
            (_, _, true) => Err(Invalid::new("to", "edge", "goes with a batch only")),
            (None, _, _) => Err(Invalid::new("to", "", "names no target; give exactly one")),
            (Some(_), more, _) => Err(Invalid::new("to", more + 1, "targets at once; give exactly one")),
        }
    }
}

fn offsets(lines: Vec<OffsetLine>) -> Result<BTreeMap<TopicPartition, Offset>, Invalid> {
    let mut offsets = BTreeMap::new();
    for line in lines {
        let at = TopicPartition::new(line.topic, line.partition);
        if offsets.insert(at.clone(), line.offset).is_some() {
            return Err(Invalid::new("offsets", at, "named twice"));
        }
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let to: To = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let target = to.target().map_err(|error| error.to_string())?;
        let again = serde_json::to_string(&To::from(&target)).map_err(|error| error.to_string())?;
        Ok(format!("{target} {again}"))
    }

    #[test]
    fn exactly_one_target_is_read_and_written() {
        let max = "9223372036854775807";
        for (text, expected) in [
            (r#"{"batch": "41", "edge": "before"}"#.to_owned(), r#"before batch 41 {"batch":"41","edge":"before"}"#),
            (r#"{"batch": 41}"#.to_owned(), r#"after batch 41 {"batch":"41","edge":"after"}"#),
            (r#"{"shift": "-100"}"#.to_owned(), r#"shift -100 {"shift":"-100"}"#),
            (r#"{"undo": true}"#.to_owned(), r#"undo of the last move {"undo":true}"#),
            (format!(r#"{{"offset": {max}}}"#), r#"offset 9223372036854775807 {"offset":"9223372036854775807"}"#),
            (
                r#"{"offsets": [{"topic": "t", "partition": 0, "offset": 5}]}"#.to_owned(),
                r#"t/0 to 5 {"offsets":[{"topic":"t","partition":0,"offset":"5"}]}"#,
            ),
        ] {
            assert_eq!(read(&text).as_deref(), Ok(expected));
        }
        for wrong in [
            "{}",
            r#"{"undo": true, "latest": true}"#,
            r#"{"edge": "before", "latest": true}"#,
            r#"{"offset": -1}"#,
            r#"{"offset": 1e3}"#,
            r#"{"shift": "+1"}"#,
            r#"{"offset": "9223372036854775808"}"#,
            r#"{"moon": true}"#,
            r#"{"offsets": [{"topic": "t", "partition": 0, "offset": 5}, {"topic": "t", "partition": 0, "offset": 6}]}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
