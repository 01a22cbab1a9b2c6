//! How clients are made.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::offset::Invalid;

/// A client that could not be made.
///
/// ```
/// # let clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// use tidelog::kafka::{ClientConfig, KafkaBroker};
///
/// let config = ClientConfig::new("localhost:9092")?.with("fetch.moon.bytes", "1")?;
/// let error = KafkaBroker::new(&config, clock).err().ok_or("librdkafka does not know it")?;
/// assert_eq!(error.property.as_deref(), Some("fetch.moon.bytes"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
pub(super) const REFUSED: [(&str, &str); 12] = [
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
        for broker in brokers.split(',') {
            // librdkafka cuts a port to 16 bits, and so connects elsewhere.
            let port = broker.trim().rsplit_once(':').map(|(_, port)| port).filter(|port| !port.contains(']'));
            if port.is_some_and(|port| port.parse::<u16>().map_or(true, |port| port == 0)) {
                return Err(Invalid::new("brokers", broker.trim(), "a port is 1 to 65535"));
            }
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

    /// Refuses what no client can be made of: more than this build can do, and files that are not there.
    pub(super) fn check(&self) -> Result<(), ClientError> {
        let failed = |(property, why): (&str, String)| ClientError {
            brokers: self.brokers.clone(),
            property: Some(property.to_owned()),
            why,
        };
        check_build(&self.properties, cfg!(feature = "tls")).map_err(failed)?;
        FILES.iter().try_for_each(|name| match self.properties.get(*name) {
            Some(path) => check_file(path).map_err(|why| failed((name, why))),
            None => Ok(()),
        })
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

/// Properties that name a file, or a directory.
const FILES: [&str; 5] =
    ["ssl.ca.location", "ssl.certificate.location", "ssl.crl.location", "ssl.key.location", "ssl.keystore.location"];

/// How a Java keystore begins.
const JKS_MAGIC: [u8; 4] = [0xfe, 0xed, 0xfe, 0xed];

const NO_TLS: &str = "this tidelog is built without TLS: build it with --features tls";
const NO_KERBEROS: &str =
    "PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 are there; Kafka's default, GSSAPI (Kerberos), is not";

/// What a build can't do: `tls` says whether it has TLS.
fn check_build(properties: &BTreeMap<String, String>, tls: bool) -> Result<(), (&str, String)> {
    let get = |name: &str| properties.get(name).map(|value| value.trim().to_ascii_uppercase());
    let protocol = get("security.protocol").unwrap_or_default();
    if !tls && matches!(protocol.as_str(), "SSL" | "SASL_SSL") {
        return Err(("security.protocol", NO_TLS.to_owned()));
    }
    if let Some(name) = properties.keys().find(|name| !tls && name.starts_with("ssl.")) {
        return Err((name, NO_TLS.to_owned()));
    }
    if !protocol.starts_with("SASL_") {
        return Ok(());
    }
    match get("sasl.mechanisms").or_else(|| get("sasl.mechanism")).as_deref() {
        None | Some("" | "GSSAPI") => Err(("sasl.mechanism", NO_KERBEROS.to_owned())),
        Some("PLAIN") => Ok(()),
        Some(_) if !tls => Err(("sasl.mechanism", NO_TLS.to_owned())),
        Some(_) => Ok(()),
    }
}

fn check_file(path: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{path}: {error}");
    if path == "probe" || Path::new(path).is_dir() {
        return Ok(());
    }
    let mut begin = Vec::new();
    File::open(path).and_then(|file| file.take(4).read_to_end(&mut begin)).map_err(failed)?;
    match begin == JKS_MAGIC {
        true => Err(format!("{path}: a JKS keystore, which librdkafka can't read; make it PKCS12 or PEM")),
        false => Ok(()),
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
    fn a_build_says_what_it_can_not_do() {
        let check = |lines: &[(&str, &str)], tls| {
            let properties = lines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            check_build(&properties, tls).map_err(|(name, why)| format!("{name}: {why}"))
        };
        let scram = [("security.protocol", "SASL_PLAINTEXT"), ("sasl.mechanism", "SCRAM-SHA-256")];
        for lines in
            [&[("security.protocol", "sasl_ssl")][..], &[("security.protocol", "SSL")], &scram, &[("ssl.key.pem", "x")]]
        {
            let error = check(lines, false).unwrap_err();
            assert!(error.starts_with(lines.last().unwrap().0) && error.contains("--features tls"), "{error}");
        }
        assert!(check(&scram, true).is_ok());
        assert!(check(&[("security.protocol", "sasl_plaintext"), ("sasl.mechanisms", "plain")], false).is_ok());
        for tls in [true, false] {
            let error = check(&[("security.protocol", "sasl_plaintext")], tls).unwrap_err();
            assert!(error.contains("GSSAPI"), "{error}");
        }
    }

    #[test]
    fn files_are_there_and_no_java_keystores() {
        let dir = tempfile::tempdir().unwrap();
        let keystore = dir.path().join("a.jks");
        std::fs::write(&keystore, [0xfe, 0xed, 0xfe, 0xed, 0, 0]).unwrap();
        assert!(check_file(keystore.to_str().unwrap()).unwrap_err().contains("JKS"));
        assert!(check_file(dir.path().to_str().unwrap()).is_ok());
        let missing = check_file(dir.path().join("no.pem").to_str().unwrap()).unwrap_err();
        assert!(missing.contains("no.pem: No such file"), "{missing}");
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
