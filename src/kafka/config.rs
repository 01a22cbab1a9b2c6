//! How clients are made.

use std::collections::BTreeMap;
use std::fmt;

use crate::offset::Invalid;

/// A client that could not be made.
#[derive(Debug, Clone, thiserror::Error)]
#[error("no Kafka client for {brokers}: {why}")]
pub struct ClientError {
    /// The brokers that it was to talk to.
    pub brokers: String,
    /// The property that librdkafka does not take.
    pub property: Option<String>,
    /// librdkafka's reason.
    pub why: String,
}

/// Brokers and librdkafka's properties.
///
/// Every client made from it has `allow.auto.create.topics=false` (asking about a topic never makes one),
/// `auto.offset.reset=error` (librdkafka never chooses a position), `enable.auto.commit=false` and
/// `enable.auto.offset.store=false`. These, and what follows from the group, can't be given.
///
/// ```
/// use tidelog::kafka::ClientConfig;
///
/// let client = ClientConfig::new("localhost:9092")?.with("client.id", "loader")?;
/// assert_eq!(client.brokers(), "localhost:9092");
/// assert!(client.with("auto.offset.reset", "latest").is_err()); // it could lose data
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Clone)]
pub struct ClientConfig {
    brokers: String,
    properties: BTreeMap<String, String>,
}

/// Set on every client.
const ALWAYS: [(&str, &str); 5] = [
    ("allow.auto.create.topics", "false"),
    ("auto.offset.reset", "error"),
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("enable.partition.eof", "false"),
];

/// Set where not given otherwise. librdkafka's own maximum of 10 s is as long as a look may take; and a fetch that waits for
/// records, 500 ms by default, holds up the first fetch from the new positions after a rollback.
const UNLESS_GIVEN: [(&str, &str); 2] = [("reconnect.backoff.max.ms", "1000"), ("fetch.wait.max.ms", "100")];

/// Ours to set: by [`ALWAYS`], by the group that reads, or by the brokers.
const REFUSED: [(&str, &str); 12] = [
    ("allow.auto.create.topics", "it is always false: asking about a topic must not make one"),
    ("auto.offset.reset", "it is always error: positions come from the journal"),
    ("enable.auto.commit", "it is always false: batches are committed to the journal"),
    ("auto.commit.enable", "it is always false: batches are committed to the journal"),
    ("enable.auto.offset.store", "it is always false: batches are committed to the journal"),
    ("enable.partition.eof", "it is set as the client needs it"),
    ("isolation.level", "it belongs to the group; set it when the group is started"),
    ("group.id", "it is the group's own name"),
    ("group.protocol", "partitions are assigned, never subscribed to"),
    ("bootstrap.servers", "give the brokers by themselves"),
    ("metadata.broker.list", "give the brokers by themselves"),
    ("log.queue", "log lines go to tracing"),
];

impl ClientConfig {
    /// Clients of the cluster that is found through `brokers`: `host:port`, several separated by commas.
    pub fn new(brokers: impl Into<String>) -> Result<Self, Invalid> {
        let brokers = brokers.into();
        if brokers.trim().is_empty() || brokers.contains('\0') {
            return Err(Invalid::new("brokers", brokers, "empty; give host:port, several separated by commas"));
        }
        Ok(ClientConfig { brokers, properties: BTreeMap::new() })
    }

    /// The same with one of librdkafka's properties, such as `security.protocol`.
    ///
    /// # Errors
    ///
    /// A property that is ours to set, or text with a NUL. Names that librdkafka does not know are found when a client is
    /// made.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Result<Self, Invalid> {
        let (name, value) = (name.into(), value.into());
        if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            return Err(Invalid::new("property", name, *why));
        }
        if name.contains('\0') || value.contains('\0') {
            return Err(Invalid::new("property", name.replace('\0', "\\0"), "holds a NUL"));
        }
        self.properties.insert(name, value);
        Ok(self)
    }

    /// The brokers, as given.
    pub fn brokers(&self) -> &str {
        &self.brokers
    }

    /// All properties of a client: the given ones, then `own`, which decide.
    pub(super) fn properties<'a>(&'a self, own: &[(&'a str, &'a str)]) -> BTreeMap<&'a str, &'a str> {
        let mut properties = BTreeMap::from(UNLESS_GIVEN);
        properties.extend(self.properties.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        properties.insert("bootstrap.servers", &self.brokers);
        properties.extend(ALWAYS);
        properties.extend(own.iter().copied());
        properties
    }
}

impl fmt::Debug for ClientConfig {
    /// Without values: they may be passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("brokers", &self.brokers)
            .field("properties", &self.properties.keys().collect::<Vec<_>>())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_can_not_be_given() {
        let config = ClientConfig::new("127.0.0.1:9092").unwrap();
        for name in ["auto.offset.reset", "enable.auto.commit", "group.id", "isolation.level", "bootstrap.servers"] {
            let error = config.clone().with(name, "x").unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
        assert!(ClientConfig::new(" ").is_err());
    }

    #[test]
    fn own_properties_decide_and_values_stay_out_of_debug() {
        let config = ClientConfig::new("h:1").unwrap().with("sasl.password", "secret").unwrap();
        let properties = config.properties(&[("enable.partition.eof", "true")]);
        assert_eq!(properties["enable.partition.eof"], "true");
        assert_eq!(properties["allow.auto.create.topics"], "false");
        assert_eq!(properties["bootstrap.servers"], "h:1");
        let shown = format!("{config:?}");
        assert!(shown.contains("sasl.password") && !shown.contains("secret"), "{shown}");
    }
}
