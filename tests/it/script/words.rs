//! The words of a script's line, and what they stand for.

use std::collections::BTreeMap;
use std::time::Duration;

use tidelog::offset::{
    BatchNumber, Group, Invalid, Offset, OffsetRange, Timestamp, TopicId, TopicName, TopicPartition,
};
use tidelog::reconcile::NewGroup;
use tidelog::rollback::{Edge, PlanRequest, Target, parse_duration};

/// A line's words.
pub struct Words(Vec<String>);

impl Words {
    /// Splits at blanks; a word that begins with `"`, or whose value does, is a JSON string up to the closing one.
    pub fn split(line: &str) -> Words {
        let mut words = Vec::new();
        let mut rest = line.trim_start();
        while !rest.is_empty() {
            let quote = rest.find('"').filter(|quote| !rest[..*quote].contains(char::is_whitespace));
            let (word, end) = match quote {
                Some(quote) => {
                    let mut values = serde_json::Deserializer::from_str(&rest[quote..]).into_iter::<String>();
                    let value = values.next().expect("a string").expect("a JSON string");
                    (format!("{}{value}", &rest[..quote]), quote + values.byte_offset())
                }
                None => {
                    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                    (rest[..end].to_owned(), end)
                }
            };
            words.push(word);
            rest = rest[end..].trim_start();
        }
        Words(words)
    }

    pub fn first(&self) -> &str {
        &self.0[0]
    }

    pub fn get(&self, index: usize) -> Option<&str> {
        self.0.get(index).map(String::as_str)
    }

    pub fn text(&self, index: usize) -> &str {
        self.get(index).unwrap_or_else(|| panic!("{:?} has no word {index}", self.0))
    }

    pub fn from(&self, index: usize) -> impl Iterator<Item = &str> {
        self.0.iter().skip(index).map(String::as_str)
    }

    /// `name=value` words, after the group.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.from(2).filter_map(|word| word.split_once('='))
    }

    pub fn option(&self, name: &str) -> Option<&str> {
        self.options().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.from(2).any(|word| word == name)
    }

    /// The group of the default app that the second word names.
    pub fn group(&self) -> Result<Group, String> {
        Group::new(Group::DEFAULT_APP, self.text(1)).map_err(|error| error.to_string())
    }

    /// `orders/0 500..542 orders/0-99 0..1`
    pub fn ranges(&self) -> Result<Vec<OffsetRange>, String> {
        let mut ranges = Vec::new();
        for (index, word) in self.0.iter().enumerate().skip(2) {
            let Some((from, until)) = word.split_once("..").filter(|_| !word.contains('=')) else { continue };
            let (topic, numbers) = self.text(index - 1).split_once('/').expect("a partition before its range");
            let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
            let (first, last): (u32, u32) = (first.parse().expect("a partition"), last.parse().expect("a partition"));
            let topic = TopicName::new(topic).map_err(|error| error.to_string())?;
            for partition in first..=last {
                let at = TopicPartition::new(topic.clone(), partition);
                let range = offset(from).and_then(|from| range(&at, from, offset(until)?));
                ranges.push(range.map_err(|error| error.to_string())?);
            }
        }
        Ok(ranges)
    }

    /// `g before 7 clamp leave unchecked hold scope=orders:0,1`
    pub fn plan_request(&self) -> Result<PlanRequest, String> {
        let text = |error: Invalid| error.to_string();
        let batch = || self.text(3).parse::<BatchNumber>().map_err(text);
        let time = || self.text(3).parse::<Timestamp>().map_err(text);
        let to = match self.text(2) {
            "before" => Target::Batch { batch: batch()?, edge: Edge::Before },
            "after" => Target::Batch { batch: batch()?, edge: Edge::After },
            "committed" => Target::CommitTime(time()?),
            "mark" => Target::Mark(self.text(3).to_owned()),
            "seq" => Target::Seq(self.text(3).parse().map_err(text)?),
            "undo" => Target::Undo,
            "earliest" => Target::Earliest,
            "latest" => Target::Latest,
            "offset" => Target::Offset(offset(self.text(3)).map_err(text)?),
            "shift" => Target::Shift(self.text(3).parse().expect("a number")),
            "records" => Target::RecordTime(time()?),
            "duration" => Target::Duration(parse_duration(self.text(3)).map_err(text)?),
            "offsets" => match given_offsets(self.text(3)) {
                NewGroup::Offsets(offsets) => Target::Offsets(offsets),
                other => panic!("no offsets: {other:?}"),
            },
            other => panic!("no target {other}"),
        };
        let scope = self.option("scope").into_iter().flat_map(|scope| scope.split(';'));
        Ok(PlanRequest {
            scope: scope.map(|scope| scope.parse().map_err(text)).collect::<Result<_, _>>()?,
            allow_clamp: self.flag("clamp"),
            leave_unmovable: self.flag("leave"),
            unchecked: self.flag("unchecked"),
            hold: self.flag("hold"),
            ..PlanRequest::new(self.group()?, to)
        })
    }
}

/// `orders/0`
pub fn at(text: &str) -> TopicPartition {
    let (topic, partition) = text.split_once('/').unwrap_or_else(|| panic!("{text:?} is no topic/partition"));
    TopicPartition::new(topic.parse().expect("a topic"), partition.parse().expect("a partition"))
}

pub fn topic_id(text: &str) -> TopicId {
    TopicId::from_bytes([text.as_bytes()[0]; 16]).expect("not zero")
}

/// An offset as a program of Kafka's world has it: a signed number.
pub fn offset(text: &str) -> Result<Offset, Invalid> {
    Offset::new(text.parse().unwrap_or_else(|_| panic!("{text:?} is no number of 64 bits")))
}

pub fn range(at: &TopicPartition, from: Offset, until: Offset) -> Result<OffsetRange, Invalid> {
    OffsetRange::new(at.topic.clone(), at.partition, from, until)
}

/// `orders/0:5,orders/1:7`
pub fn given_offsets(text: &str) -> NewGroup {
    let given = text.split(',').map(|given| given.split_once(':').expect("orders/0:5"));
    let offsets: BTreeMap<_, _> = given.map(|(place, to)| (at(place), offset(to).expect("an offset"))).collect();
    NewGroup::Offsets(offsets)
}

/// `+1h`, `-90s`, or a time.
pub fn moved(now: i64, text: &str) -> i64 {
    let Some(unit) = text.strip_prefix(['+', '-']) else {
        return text.parse::<Timestamp>().expect("a time").millis();
    };
    let (number, unit) = unit.split_at(unit.len() - 1);
    let seconds: u64 = number.parse().expect("a number");
    let seconds = match unit {
        "h" => seconds * 3_600,
        "m" => seconds * 60,
        _ => seconds,
    };
    let by = i64::try_from(Duration::from_secs(seconds).as_millis()).expect("small");
    if text.starts_with('-') { now - by } else { now + by }
}
