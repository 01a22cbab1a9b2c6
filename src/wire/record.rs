//! A Kafka record as JSON.

use std::str;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::offset::{Offset, Timestamp};

/// A record: `topic`, `partition`, `offset`, `timestamp`, `key`, `value`, `headers`. Bytes that are not UTF-8 come in
/// base64 under `key_base64`, `value_base64`, and in a header as `value_base64`.
///
/// ```
/// use tidelog::wire::Record;
///
/// let record = Record {
///     topic: "orders",
///     partition: 0,
///     offset: "7".parse()?,
///     timestamp: None,
///     key: None,
///     value: Some(&[0xff]), // no UTF-8
///     headers: Vec::new(),
/// };
/// assert_eq!(serde_json::to_value(&record)?["value_base64"], "/w==");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Record<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: u32,
    /// The record's own offset.
    pub offset: Offset,
    /// The record's time.
    pub timestamp: Option<Timestamp>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value; none for a tombstone.
    pub value: Option<&'a [u8]>,
    /// Names and values, in order.
    pub headers: Vec<(&'a str, Option<&'a [u8]>)>,
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry("topic", self.topic)?;
        map.serialize_entry("partition", &self.partition)?;
        map.serialize_entry("offset", &self.offset)?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        bytes(&mut map, "key", "key_base64", self.key)?;
        bytes(&mut map, "value", "value_base64", self.value)?;
        map.serialize_entry("headers", &Headers(&self.headers))?;
        map.end()
    }
}

/// Writes `bytes` under `name` if they are UTF-8 or absent, else in base64 under `base64_name`.
fn bytes<M: SerializeMap>(
    map: &mut M,
    name: &'static str,
    base64_name: &'static str,
    bytes: Option<&[u8]>,
) -> Result<(), M::Error> {
    match bytes.map(|bytes| (str::from_utf8(bytes), bytes)) {
        None => map.serialize_entry(name, &None::<()>),
        Some((Ok(text), _)) => map.serialize_entry(name, text),
        Some((Err(_), bytes)) => map.serialize_entry(base64_name, &STANDARD.encode(bytes)),
    }
}

struct Headers<'a>(&'a [(&'a str, Option<&'a [u8]>)]);

impl Serialize for Headers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for (name, value) in self.0 {
            seq.serialize_element(&Header { name, value: *value })?;
        }
        seq.end()
    }
}

struct Header<'a> {
    name: &'a str,
    value: Option<&'a [u8]>,
}

impl Serialize for Header<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("name", self.name)?;
        bytes(&mut map, "value", "value_base64", self.value)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_come_in_base64() {
        let record = Record {
            topic: "orders",
            partition: 3,
            offset: Offset::MAX,
            timestamp: Some(Timestamp::from_millis(1_764_496_800_123)),
            key: Some(b"\xff\x00"),
            value: None,
            headers: vec![("trace", Some(b"abc")), ("bin", Some(b"\x80")), ("none", None)],
        };
        assert_eq!(
            serde_json::to_string(&record).expect("writes"),
            r#"{"topic":"orders","partition":3,"offset":"9223372036854775807","timestamp":"2025-11-30T10:00:00.123Z","key_base64":"/wA=","value":null,"headers":[{"name":"trace","value":"abc"},{"name":"bin","value_base64":"gA=="},{"name":"none","value":null}]}"#
        );
    }
}
