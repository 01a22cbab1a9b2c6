//! The words of the field as types: offsets, ranges, topic-partitions, groups, times.
//!
//! Numbers of 64 bits are written as strings in text formats, as a reader with doubles (a browser, jq) would round
//! them, and read from strings or integers; in binary formats they are plain integers. All are at most `i64::MAX`,
//! Kafka's own limit.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{self, Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

/// A value from outside that is not what it should be: says what, which value, which limit.
///
/// ```
/// use tidelog::offset::Offset;
///
/// let error = "1e3".parse::<Offset>().unwrap_err();
/// assert_eq!((&*error.what, &*error.value), ("offset", "1e3"));
/// assert!(error.to_string().contains("digits only"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value:?}: {why}")]
pub struct Invalid {
    /// The field or thing, as a user would name it.
    pub what: Cow<'static, str>,
    /// The value as it came, cut to a readable length.
    pub value: String,
    /// The rule that it breaks, with the limit.
    pub why: Cow<'static, str>,
}

impl Invalid {
    /// An error about `value`, cut to 80 characters.
    pub fn new(
        what: impl Into<Cow<'static, str>>,
        value: impl fmt::Display,
        why: impl Into<Cow<'static, str>>,
    ) -> Self {
        let value = value.to_string();
        let value = match value.char_indices().nth(80) {
            Some((end, _)) => format!("{}...", &value[..end]),
            None => value,
        };
        Invalid { what: what.into(), value, why: why.into() }
    }
}

/// Reads decimal digits and nothing else: no sign, no exponent, no blank.
fn parse_digits(what: &'static str, text: &str) -> Result<u64, Invalid> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Invalid::new(what, text, "not a whole number of digits only, 0 to 9223372036854775807"));
    }
    match text.parse::<u64>() {
        Ok(number) if number <= i64::MAX as u64 => Ok(number),
        _ => Err(Invalid::new(what, text, "larger than 9223372036854775807")),
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(u64);

        impl $name {
            /// Zero.
            pub const ZERO: $name = $name(0);
            /// The largest value, Kafka's limit.
            pub const MAX: $name = $name(i64::MAX as u64);

            /// The number, if it is not negative (Kafka's sentinels -1, -2, -1001 are no values).
            pub fn new(number: i64) -> Result<Self, Invalid> {
                u64::try_from(number).map($name).map_err(|_| {
                    Invalid::new($what, number, "negative (Kafka's markers -1, -2 and -1001 are not accepted)")
                })
            }

            /// The number as Kafka's type.
            pub const fn get(self) -> i64 {
                self.0 as i64
            }

            /// The number without a sign.
            pub const fn as_u64(self) -> u64 {
                self.0
            }

            /// The number plus `count`, at most [`Self::MAX`].
            pub fn plus(self, count: u64) -> Self {
                $name(self.0.saturating_add(count).min(i64::MAX as u64))
            }

            /// How far this is above `lower`; 0 if it is not.
            pub fn since(self, lower: Self) -> u64 {
                self.0.saturating_sub(lower.0)
            }

            /// The following number.
            pub fn next(self) -> Self {
                self.plus(1)
            }

            /// The number before; 0 has none and stays.
            pub const fn previous(self) -> Self {
                $name(self.0.saturating_sub(1))
            }
        }

        impl TryFrom<u64> for $name {
            type Error = Invalid;
            fn try_from(number: u64) -> Result<Self, Invalid> {
                if number > i64::MAX as u64 {
                    return Err(Invalid::new($what, number, "larger than 9223372036854775807"));
                }
                Ok($name(number))
            }
        }

        impl FromStr for $name {
            type Err = Invalid;
            fn from_str(text: &str) -> Result<Self, Invalid> {
                parse_digits($what, text).map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(&self.0)
                } else {
                    serializer.serialize_u64(self.0)
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    deserializer.deserialize_any(NumberVisitor($what)).map($name)
                } else {
                    $name::try_from(u64::deserialize(deserializer)?).map_err(de::Error::custom)
                }
            }
        }
    };
}

/// Reads a number from a string of digits or an integer, in text formats.
struct NumberVisitor(&'static str);

impl Visitor<'_> for NumberVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: a string of digits or an integer, 0 to 9223372036854775807", self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        parse_digits(self.0, text).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        if number > i64::MAX as u64 {
            return Err(E::custom(Invalid::new(self.0, number, "larger than 9223372036854775807")));
        }
        Ok(number)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        u64::try_from(number).map_err(|_| E::custom(Invalid::new(self.0, number, "negative")))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<u64, E> {
        Err(E::custom(Invalid::new(self.0, number, "a fraction or an exponent; write digits only")))
    }
}

number!(
    /// A position in a partition, always *the next offset to read*.
    ///
    /// ```
    /// use tidelog::offset::Offset;
    ///
    /// let next: Offset = "9007199254740993".parse()?; // a double would round it
    /// assert_eq!(next.plus(10).since(next), 10);
    /// assert!(Offset::new(-1).is_err());
    /// # Ok::<(), tidelog::offset::Invalid>(())
    /// ```
    Offset, "offset");
number!(
    /// The number of an entry, 1, 2, 3 ... over the whole journal, without gaps. 0 is "before the first entry".
    ///
    /// ```
    /// use tidelog::offset::Seq;
    ///
    /// assert_eq!(Seq::ZERO.next(), Seq::new(1)?); // the first entry
    /// # Ok::<(), tidelog::offset::Invalid>(())
    /// ```
    Seq, "seq");
number!(
    /// The number of a batch, 1, 2, 3 ... within its group. 0 is "no batch yet".
    ///
    /// ```
    /// use tidelog::offset::BatchNumber;
    ///
    /// assert_eq!("7".parse::<BatchNumber>()?.next().get(), 8);
    /// # Ok::<(), tidelog::offset::Invalid>(())
    /// ```
    BatchNumber, "batch");
number!(
    /// The fencing number of a group: 1 after its first start, raised as DESIGN section 2 says. A commit carries the
    /// epoch that it was read under.
    ///
    /// ```
    /// use tidelog::offset::Epoch;
    ///
    /// assert!(Epoch::ZERO.next() > Epoch::ZERO); // after the first start
    /// ```
    Epoch, "epoch");

/// A moment, in milliseconds since 1970-01-01 UTC.
///
/// In text formats written as RFC 3339 in UTC; read from RFC 3339 with a zone, or from an integer of milliseconds
/// that is at least 10^11 (less is likely seconds).
///
/// ```
/// use tidelog::offset::Timestamp;
///
/// let time: Timestamp = "2020-11-01T00:00:00+05:30".parse()?;
/// assert_eq!(time.millis(), 1_604_169_000_000);
/// assert_eq!(time.to_string(), "2020-10-31T18:30:00Z");
/// assert!("2020-11-01T00:00:00".parse::<Timestamp>().is_err()); // without a zone
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

const OUT_OF_RANGE: &str = "before 1970, or past 9999-12-30T22:00:00Z";

impl Timestamp {
    /// Below this an epoch number is taken for seconds and refused (it would be before 1973-03-03).
    pub const MIN_MILLIS: i64 = 100_000_000_000;
    /// 9999-12-30T22:00:00Z, the last moment that RFC 3339 can write in every zone.
    pub const MAX_MILLIS: i64 = 253_402_207_200_000;

    /// The moment `millis` milliseconds after the epoch, brought into the range that can be written.
    pub fn from_millis(millis: i64) -> Self {
        Timestamp(millis.clamp(0, Self::MAX_MILLIS))
    }

    /// The moment that an integer from outside means; refuses what is likely seconds, and what lies past [`Self::MAX_MILLIS`].
    pub fn from_outside(millis: i64) -> Result<Self, Invalid> {
        if millis < Self::MIN_MILLIS {
            return Err(Invalid::new(
                "time",
                millis,
                "below 100000000000, so likely seconds; times are milliseconds since the epoch, or RFC 3339",
            ));
        }
        if millis > Self::MAX_MILLIS {
            return Err(Invalid::new("time", millis, OUT_OF_RANGE));
        }
        Ok(Timestamp(millis))
    }

    /// Milliseconds since the epoch.
    pub const fn millis(self) -> i64 {
        self.0
    }
}

impl FromStr for Timestamp {
    type Err = Invalid;

    /// Reads RFC 3339 with a zone. A time without a zone is refused: it would be guessed.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let parsed: jiff::Timestamp = text.parse().map_err(|_| {
            let local = text.trim_end_matches(['Z', 'z']);
            // Behind the date, whose own dashes are no sign of one.
            let zone = local != text || text.get(10..).is_some_and(|time| time.contains(['+', '-']));
            let why = match local.parse::<jiff::civil::DateTime>() {
                Ok(_) if zone => OUT_OF_RANGE,
                Ok(_) => "no zone; write 2026-11-30T10:00:00Z or 2026-11-30T10:00:00+01:00",
                Err(_) => "not RFC 3339 with a zone, such as 2026-11-30T10:00:00Z",
            };
            Invalid::new("time", text, why)
        })?;
        let millis = parsed.as_millisecond();
        if !(0..=Self::MAX_MILLIS).contains(&millis) {
            return Err(Invalid::new("time", text, OUT_OF_RANGE));
        }
        Ok(Timestamp(millis))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => fmt::Display::fmt(&time, f),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { serializer.serialize_i64(self.0) }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimeVisitor;
        impl Visitor<'_> for TimeVisitor {
            type Value = Timestamp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time: RFC 3339 with a zone, or an integer of milliseconds since the epoch")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, millis: i64) -> Result<Timestamp, E> {
                Timestamp::from_outside(millis).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, millis: u64) -> Result<Timestamp, E> {
                let millis = i64::try_from(millis).unwrap_or(i64::MAX);
                Timestamp::from_outside(millis).map_err(E::custom)
            }
        }
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(TimeVisitor)
        } else {
            let millis = i64::deserialize(deserializer)?;
            if !(0..=Timestamp::MAX_MILLIS).contains(&millis) {
                return Err(de::Error::custom("a time out of range"));
            }
            Ok(Timestamp(millis))
        }
    }
}

/// A topic's name under Kafka's rule: 1 to 249 of `a-z A-Z 0-9 . _ -`, and not `.` or `..`.
///
/// ```
/// use tidelog::offset::TopicName;
///
/// assert_eq!(TopicName::new("orders")?.as_str(), "orders");
/// assert!(TopicName::new("a/b").is_err());
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct TopicName(Arc<str>);

impl TopicName {
    /// The name, checked.
    pub fn new(name: &str) -> Result<Self, Invalid> {
        let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if name.is_empty() || name.len() > 249 {
            return Err(Invalid::new("topic", name, format!("{} bytes; a topic name has 1 to 249", name.len())));
        }
        if name == "." || name == ".." || !name.bytes().all(legal) {
            return Err(Invalid::new("topic", name, "a topic name has only a-z A-Z 0-9 . _ - and is not . or .."));
        }
        Ok(TopicName(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TopicName {
    type Error = Invalid;
    fn try_from(name: String) -> Result<Self, Invalid> {
        TopicName::new(&name)
    }
}

impl FromStr for TopicName {
    type Err = Invalid;
    fn from_str(name: &str) -> Result<Self, Invalid> {
        TopicName::new(name)
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One partition of a topic, ordered by topic, then number. Shown as `orders/0`.
///
/// ```
/// use tidelog::offset::{TopicName, TopicPartition};
///
/// let at = TopicPartition::new(TopicName::new("orders")?, 3);
/// assert_eq!(at.to_string(), "orders/3");
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TopicPartition {
    /// The topic.
    pub topic: TopicName,
    /// The partition's number.
    pub partition: u32,
}

impl TopicPartition {
    /// The partition `partition` of `topic`.
    pub fn new(topic: TopicName, partition: u32) -> Self {
        TopicPartition { topic, partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.partition)
    }
}

impl fmt::Debug for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A partition number from outside: 0 to 2^31-1, Kafka's type.
pub fn partition_number(number: i64) -> Result<u32, Invalid> {
    match u32::try_from(number) {
        Ok(partition) if number <= i64::from(i32::MAX) => Ok(partition),
        _ => Err(Invalid::new("partition", number, "a partition is 0 to 2147483647")),
    }
}

/// Kafka's UUID of a topic: a topic that was deleted and created again has another one. Shown as Kafka's own tools do:
/// base64 in the URL-safe alphabet, without padding.
///
/// ```
/// use tidelog::offset::TopicId;
///
/// let id: TopicId = "QUFBQUFBQUFBQUFBQUFBQQ".parse()?;
/// assert_eq!(id.as_bytes(), b"AAAAAAAAAAAAAAAA");
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId([u8; 16]);

impl TopicId {
    /// The id of these bytes; the zero id is Kafka's "no id" and is none here.
    pub fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(TopicId(bytes))
    }

    /// The 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl FromStr for TopicId {
    type Err = Invalid;

    /// Reads both base64 alphabets, with or without padding, as librdkafka prints the one and Kafka the other.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        use base64::Engine as _;
        let plain = text.trim_end_matches('=').replace('+', "-").replace('/', "_");
        base64::engine::general_purpose::URL_SAFE_NO_PAD
            .decode(plain)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .and_then(TopicId::from_bytes)
            .ok_or_else(|| Invalid::new("topic_id", text, "not 16 bytes in base64, or the zero id"))
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use base64::Engine as _;
        f.pad(&base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for TopicId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for TopicId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
        } else {
            TopicId::from_bytes(<[u8; 16]>::deserialize(deserializer)?)
                .ok_or_else(|| de::Error::custom("the zero topic id"))
        }
    }
}

/// A consumer group of an application. Both names are free UTF-8 of 1 to 255 bytes without NUL.
///
/// ```
/// use tidelog::offset::Group;
///
/// let loader = Group::new("default", "loader")?;
/// assert_eq!(loader.to_string(), "loader");
/// assert_ne!(loader, Group::new("billing", "loader")?);
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawGroup")]
pub struct Group {
    app: Arc<str>,
    group: Arc<str>,
}

#[derive(Deserialize)]
struct RawGroup {
    app: String,
    group: String,
}

impl TryFrom<RawGroup> for Group {
    type Error = Invalid;
    fn try_from(raw: RawGroup) -> Result<Self, Invalid> {
        Group::new(&raw.app, &raw.group)
    }
}

impl Group {
    /// The application that is meant when none is named.
    pub const DEFAULT_APP: &'static str = "default";

    /// The group `group` of `app`, names checked.
    pub fn new(app: &str, group: &str) -> Result<Self, Invalid> {
        free_name("app", app)?;
        free_name("group", group)?;
        Ok(Group { app: app.into(), group: group.into() })
    }

    /// The application's name.
    pub fn app(&self) -> &str {
        &self.app
    }

    /// The group's name.
    pub fn group(&self) -> &str {
        &self.group
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if &*self.app == Group::DEFAULT_APP {
            f.write_str(&self.group)
        } else {
            write!(f, "{} (app {})", self.group, self.app)
        }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Checks a free name (group, app, owner, actor, mark, key): 1 to 255 bytes of UTF-8 without NUL.
pub fn free_name(what: &'static str, name: &str) -> Result<(), Invalid> {
    if name.is_empty() || name.len() > 255 {
        return Err(Invalid::new(what, name, format!("{} bytes; it has 1 to 255", name.len())));
    }
    if name.contains('\0') {
        return Err(Invalid::new(what, name.replace('\0', "\\0"), "holds a NUL"));
    }
    Ok(())
}

/// The offsets `[from_offset, until_offset)` of one topic-partition, half-open.
///
/// `from_offset` is where reading began, which is the previous range's `until_offset`, not the first record's own
/// number; equal ends are legal (an idle partition in a batch).
///
/// ```
/// use tidelog::offset::{Offset, OffsetRange, TopicName};
///
/// let range = OffsetRange::new(TopicName::new("orders")?, 0, Offset::new(500)?, Offset::new(542)?)?;
/// assert_eq!((range.to_string().as_str(), range.count()), ("orders/0 [500,542)", 42));
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawRange")]
pub struct OffsetRange {
    topic: TopicName,
    partition: u32,
    from_offset: Offset,
    until_offset: Offset,
}

#[derive(Deserialize)]
struct RawRange {
    topic: TopicName,
    partition: u32,
    from_offset: Offset,
    until_offset: Offset,
}

impl TryFrom<RawRange> for OffsetRange {
    type Error = Invalid;
    fn try_from(raw: RawRange) -> Result<Self, Invalid> {
        OffsetRange::new(raw.topic, raw.partition, raw.from_offset, raw.until_offset)
    }
}

impl OffsetRange {
    /// The range, if `from_offset <= until_offset` and the partition is one of Kafka's.
    pub fn new(topic: TopicName, partition: u32, from_offset: Offset, until_offset: Offset) -> Result<Self, Invalid> {
        partition_number(i64::from(partition))?;
        if from_offset > until_offset {
            return Err(Invalid::new(
                "range",
                format_args!("{topic}/{partition} [{from_offset},{until_offset})"),
                "from_offset is above until_offset",
            ));
        }
        Ok(OffsetRange { topic, partition, from_offset, until_offset })
    }

    /// Makes it the range of the same topic-partition from `from_offset` to `until_offset`.
    pub(crate) fn move_to(&mut self, from_offset: Offset, until_offset: Offset) -> Result<(), Invalid> {
        if from_offset > until_offset {
            let range = format_args!("[{from_offset},{until_offset})").to_string();
            return Err(Invalid::new("range", range, "from_offset is above until_offset"));
        }
        (self.from_offset, self.until_offset) = (from_offset, until_offset);
        Ok(())
    }

    /// The topic.
    pub fn topic(&self) -> &TopicName {
        &self.topic
    }

    /// The partition's number.
    pub fn partition(&self) -> u32 {
        self.partition
    }

    /// The topic-partition.
    pub fn topic_partition(&self) -> TopicPartition {
        TopicPartition::new(self.topic.clone(), self.partition)
    }

    /// Where reading began.
    pub fn from_offset(&self) -> Offset {
        self.from_offset
    }

    /// The next offset to read.
    pub fn until_offset(&self) -> Offset {
        self.until_offset
    }

    /// How many offsets it spans: an upper bound of its records.
    pub fn count(&self) -> u64 {
        self.until_offset.since(self.from_offset)
    }
}

impl fmt::Display for OffsetRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} [{},{})", self.topic, self.partition, self.from_offset, self.until_offset)
    }
}

impl fmt::Debug for OffsetRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a consumer reads: only committed records, or all.
///
/// ```
/// use tidelog::offset::Isolation;
///
/// assert_eq!(Isolation::default(), Isolation::ReadCommitted); // as a new group has it
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Records of committed transactions only: up to the last stable offset.
    #[default]
    ReadCommitted,
    /// All records: up to the high watermark.
    ReadUncommitted,
}
