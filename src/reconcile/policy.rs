//! What to do about each cause: the words of the command line and of HTTP.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::offset::{Invalid, Offset, Timestamp, TopicName, TopicPartition, partition_number};

/// What a start may do by itself. The default loses nothing that is still readable and never creates a topic.
///
/// ```
/// use tidelog::reconcile::{HeadReset, NewGroup, Policy, Reset};
///
/// // A new group begins at the end; where data expired, nothing is started before somebody has looked.
/// let policy = Policy {
///     new_group: NewGroup::Latest,
///     reset: Reset { head: HeadReset::Fail, ..Reset::default() },
///     ..Policy::default()
/// };
/// assert_eq!(policy.reset.head.as_str(), "fail");
/// assert_eq!("2026-11-30T10:00:00Z".parse::<NewGroup>()?, NewGroup::Time("2026-11-30T10:00:00Z".parse()?));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Where a group begins that has no position at all.
    pub new_group: NewGroup,
    /// What to do where a position can't stay.
    pub reset: Reset,
    /// The id of the cluster that the group may move to.
    pub accept_cluster: Option<String>,
}

/// What to do where a position can't stay, by cause.
///
/// ```
/// use tidelog::reconcile::{HoleReset, Reset, TailReset};
///
/// let reset: Reset = serde_json::from_str(r#"{"tail": "latest", "hole": "skip"}"#)?;
/// assert_eq!(reset, Reset { tail: TailReset::Latest, hole: HoleReset::Skip, ..Reset::default() });
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reset {
    /// The position is below earliest.
    pub head: HeadReset,
    /// The position is above latest.
    pub tail: TailReset,
    /// The topic was deleted and created again.
    pub recreated: RecreatedReset,
    /// The topic is not there.
    pub missing: MissingReset,
    /// A hole below the position holds readable records.
    pub hole: HoleReset,
}

/// An enum whose variants are words, in text as in serde.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal, $limit:literal,
     $($(#[$attribute:meta])* $variant:ident = $word:literal),+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$attribute])* $variant),+ }

        impl $name {
            /// The word, as on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = Invalid;
            fn from_str(text: &str) -> Result<Self, Invalid> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err(Invalid::new($what, text, $limit)),
                }
            }
        }
    };
}

words!(
    /// Where reading goes on when the records at the position have expired.
    ///
    /// ```
    /// use tidelog::reconcile::HeadReset;
    ///
    /// assert_eq!("fail".parse::<HeadReset>()?, HeadReset::Fail);
    /// assert!("latest".parse::<HeadReset>().is_err()); // it would lose what is left
    /// # Ok::<(), tidelog::offset::Invalid>(())
    /// ```
    HeadReset, "reset.head", "earliest or fail",
    /// At the first record that is left; what is between is a loss.
    #[default] Earliest = "earliest",
    /// Nowhere: refuse.
    Fail = "fail"
);
words!(
    /// Where reading goes on when the log ends below the position.
    ///
    /// ```
    /// use tidelog::reconcile::TailReset;
    ///
    /// assert_eq!("latest".parse::<TailReset>()?, TailReset::Latest);
    /// assert_eq!(TailReset::default().as_str(), "earliest");
    /// # Ok::<(), tidelog::offset::Invalid>(())
    /// ```
    TailReset, "reset.tail", "earliest, latest or fail",
    /// At the log's end where topic ids tell that it is the same topic, else at its beginning: it may be another one.
    #[default] Earliest = "earliest",
    /// At the log's end.
    Latest = "latest",
    /// Nowhere: refuse.
    Fail = "fail"
);
words!(
    /// Where reading goes on in a topic that was deleted and created again.
    ///
    /// ```
    /// use tidelog::reconcile::RecreatedReset;
    ///
    /// assert_eq!("fail".parse::<RecreatedReset>()?, RecreatedReset::Fail);
    /// assert_eq!(RecreatedReset::default().as_str(), "earliest");
    /// # Ok::<(), tidelog::offset::Invalid>(())
    /// ```
    RecreatedReset, "reset.recreated", "earliest or fail",
    /// At the new one's beginning.
    #[default] Earliest = "earliest",
    /// Nowhere: refuse.
    Fail = "fail"
);
words!(
    /// What becomes of a topic that is not there.
    ///
    /// ```
    /// use tidelog::reconcile::MissingReset;
    ///
    /// assert_eq!("skip".parse::<MissingReset>()?, MissingReset::Skip);
    /// assert_eq!(MissingReset::default().as_str(), "fail");
    /// # Ok::<(), tidelog::offset::Invalid>(())
    /// ```
    MissingReset, "reset.missing", "fail or skip",
    /// Refuse.
    #[default] Fail = "fail",
    /// Start without it; its positions are kept.
    Skip = "skip"
);
words!(
    /// What becomes of a hole that holds readable records.
    ///
    /// ```
    /// use tidelog::reconcile::HoleReset;
    ///
    /// assert_eq!("skip".parse::<HoleReset>()?, HoleReset::Skip);
    /// assert_eq!(HoleReset::default().as_str(), "reread");
    /// # Ok::<(), tidelog::offset::Invalid>(())
    /// ```
    HoleReset, "reset.hole", "reread, skip or fail",
    /// Reading goes on at its lower end.
    #[default] Reread = "reread",
    /// It is given up: a loss.
    Skip = "skip",
    /// Refuse.
    Fail = "fail"
);

/// Where a new group begins.
///
/// ```
/// use tidelog::reconcile::NewGroup;
///
/// assert_eq!("kafka".parse::<NewGroup>()?, NewGroup::Kafka);
/// let offsets = r#"{"offsets": [{"topic": "orders", "partition": 0, "offset": "500"}]}"#;
/// assert!(matches!(serde_json::from_str(offsets)?, NewGroup::Offsets(offsets) if offsets.len() == 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NewGroup {
    /// At the first record.
    #[default]
    Earliest,
    /// At the end: of what the group can read, as Kafka's own consumer does.
    Latest,
    /// At the first record of that time or later; at the end where there is none.
    Time(Timestamp),
    /// At these offsets; partitions that are not named begin at earliest.
    Offsets(BTreeMap<TopicPartition, Offset>),
    /// At the offsets that Kafka holds as committed for the group; partitions without one begin at earliest.
    Kafka,
    /// Nowhere: refuse.
    Fail,
}

const NEW_GROUP_LIMIT: &str = "earliest, latest, kafka, fail, a time such as 2026-11-30T10:00:00Z, or offsets";

impl FromStr for NewGroup {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text {
            "earliest" => Ok(NewGroup::Earliest),
            "latest" => Ok(NewGroup::Latest),
            "kafka" => Ok(NewGroup::Kafka),
            "fail" => Ok(NewGroup::Fail),
            // What begins with a digit is meant as a time, and told what is wrong with it as one.
            time if time.starts_with(|first: char| first.is_ascii_digit()) => time.parse().map(NewGroup::Time),
            other => Err(Invalid::new("new_group", other, NEW_GROUP_LIMIT)),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenOffset {
    topic: TopicName,
    partition: u32,
    offset: Offset,
}

impl Serialize for NewGroup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            NewGroup::Earliest => serializer.serialize_str("earliest"),
            NewGroup::Latest => serializer.serialize_str("latest"),
            NewGroup::Kafka => serializer.serialize_str("kafka"),
            NewGroup::Fail => serializer.serialize_str("fail"),
            NewGroup::Time(time) => time.serialize(serializer),
            NewGroup::Offsets(offsets) => {
                let given = offsets.iter().map(|(at, offset)| GivenOffset {
                    topic: at.topic.clone(),
                    partition: at.partition,
                    offset: *offset,
                });
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("offsets", &given.collect::<Vec<_>>())?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for NewGroup {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NewGroupVisitor;
        impl<'de> Visitor<'de> for NewGroupVisitor {
            type Value = NewGroup;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(NEW_GROUP_LIMIT)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<NewGroup, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, millis: i64) -> Result<NewGroup, E> {
                Timestamp::from_outside(millis).map(NewGroup::Time).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, millis: u64) -> Result<NewGroup, E> {
                self.visit_i64(i64::try_from(millis).unwrap_or(i64::MAX))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NewGroup, A::Error> {
                let Some(key) = map.next_key::<String>()? else { return Err(de::Error::missing_field("offsets")) };
                if key != "offsets" {
                    return Err(de::Error::unknown_field(&key, &["offsets"]));
                }
                let mut offsets = BTreeMap::new();
                for given in map.next_value::<Vec<GivenOffset>>()? {
                    partition_number(i64::from(given.partition)).map_err(de::Error::custom)?;
                    let at = TopicPartition::new(given.topic, given.partition);
                    if let Some(first) = offsets.insert(at.clone(), given.offset) {
                        let twice = Invalid::new("offsets", &at, format!("given twice, {first} and {}", given.offset));
                        return Err(de::Error::custom(twice));
                    }
                }
                match map.next_key::<String>()? {
                    None => Ok(NewGroup::Offsets(offsets)),
                    Some(key) => Err(de::Error::unknown_field(&key, &["offsets"])),
                }
            }
        }
        deserializer.deserialize_any(NewGroupVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = match serde_json::from_str::<Policy>(text) {
            Ok(policy) => serde_json::to_string(&policy.new_group).unwrap() + " " + &policy_words(&policy.reset),
            Err(error) => error.to_string().split(" at line").next().unwrap().to_owned(),
        };
        assert_eq!(shown, expected, "{text}");
    }

    fn policy_words(reset: &Reset) -> String {
        format!("{} {} {} {} {}", reset.head, reset.tail, reset.recreated, reset.missing, reset.hole)
    }

    #[test]
    fn the_words_are_those_of_the_interface() {
        check("{}", r#""earliest" earliest earliest earliest fail reread"#);
        check(
            r#"{"new_group": "2026-11-30T10:00:00Z", "reset": {"tail": "latest", "hole": "skip", "missing": "skip"}}"#,
            r#""2026-11-30T10:00:00Z" earliest latest earliest skip skip"#,
        );
        check(
            r#"{"new_group": {"offsets": [{"topic": "t", "partition": 1, "offset": "9007199254740993"}]}}"#,
            r#"{"offsets":[{"topic":"t","partition":1,"offset":"9007199254740993"}]} earliest earliest earliest fail reread"#,
        );
        check(r#"{"reset": {"head": "latest"}}"#, "unknown variant `latest`, expected `earliest` or `fail`");
        check(
            r#"{"reset": {"heads": "fail"}}"#,
            "unknown field `heads`, expected one of `head`, `tail`, `recreated`, `missing`, `hole`",
        );
        check(r#"{"new_group": {"offset": []}}"#, "unknown field `offset`, expected `offsets`");
        check(
            r#"{"new_group": {"offsets": [{"topic": "t", "partition": 1, "offset": 1}, {"topic": "t", "partition": 1, "offset": 2}]}}"#,
            r#"offsets "t/1": given twice, 1 and 2"#,
        );
        assert_eq!("latest".parse::<HeadReset>().unwrap_err().to_string(), r#"reset.head "latest": earliest or fail"#);
        assert_eq!("skip".parse::<HoleReset>().unwrap(), HoleReset::Skip);
        assert!("2026-11-30".parse::<NewGroup>().is_err());
    }
}
