//! A properties file of a Kafka client, Java's or librdkafka's: how it is written, and what it comes to.

mod jaas;
mod java;
mod syntax;

use std::collections::BTreeMap;

use self::java::translate;
use super::config::REFUSED;
use super::raw;
use crate::offset::Invalid;

/// What a consumer of Kafka's has and one of ours has not, as positions come from the journal and partitions are assigned.
/// librdkafka knows some of these names; they would do nothing, or fail on the values that Java takes.
const OURS: [(&str, &str); 15] = [
    ("auto.commit.interval.ms", "batches are committed to the journal"),
    ("enable.auto.offset.store", "batches are committed to the journal"),
    ("exclude.internal.topics", "a pattern never matches names that begin with __"),
    ("group.instance.id", "partitions are assigned, never subscribed to"),
    ("group.remote.assignor", "partitions are assigned, never subscribed to"),
    ("heartbeat.interval.ms", "partitions are assigned, never subscribed to"),
    ("key.deserializer", "keys are bytes"),
    ("key.serializer", "keys are bytes"),
    ("max.poll.interval.ms", "partitions are assigned, never subscribed to"),
    ("max.poll.records", "a batch is cut by records, bytes and time"),
    ("partition.assignment.strategy", "partitions are assigned, never subscribed to"),
    ("session.timeout.ms", "partitions are assigned, never subscribed to"),
    ("transactional.id", "nothing is produced"),
    ("value.deserializer", "values are bytes"),
    ("value.serializer", "values are bytes"),
];

/// Leaving one of these out could weaken security, or mean another value than the file seems to hold.
const NEVER_LEFT_OUT: [&str; 4] = ["security.", "ssl.", "sasl.", "config.providers"];

/// What a properties file comes to.
///
/// ```
/// use tidelog::kafka::Properties;
///
/// let text = "bootstrap.servers = localhost:9092\nclient.id = loader\nauto.offset.reset = latest\n";
/// let file = Properties::read(text)?;
/// assert_eq!(file.brokers.as_deref(), Some("localhost:9092"));
/// assert_eq!(file.properties["client.id"], "loader");
/// assert_eq!(file.own[0].0, "auto.offset.reset"); // left out, with the reason
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Default)]
pub struct Properties {
    /// `bootstrap.servers`, where the file has it.
    pub brokers: Option<String>,
    /// librdkafka's properties, Java's names translated. Their values may be passwords.
    pub properties: BTreeMap<String, String>,
    /// What the file sets and is tidelog's own to set, each with the reason: left out.
    pub own: Vec<(String, &'static str)>,
    /// What librdkafka has nothing like: left out.
    pub unknown: Vec<String>,
}

impl Properties {
    /// Reads the text of a file, written as Java's properties files are. Of two lines with one name the later counts.
    ///
    /// # Errors
    ///
    /// A line that can't be read; a property that can't be translated, or left out, without weakening security. No error
    /// holds a value.
    pub fn read(text: &str) -> Result<Properties, Invalid> {
        let mut given = syntax::parse(text)?;
        let brokers = given.remove("metadata.broker.list");
        let brokers = given.remove("bootstrap.servers").or(brokers);
        let mut own = Vec::new();
        for (name, why) in REFUSED.iter().chain(&OURS) {
            if given.remove(*name).is_some() {
                own.push(((*name).to_owned(), *why));
            }
        }
        own.sort();
        let mut properties = translate(given, &BTreeMap::new())?;
        let mut unknown: Vec<String> = properties.keys().filter(|name| !raw::is_property(name)).cloned().collect();
        unknown.retain(|name| properties.remove(name).is_some());
        match unknown.iter().find(|name| NEVER_LEFT_OUT.iter().any(|begin| name.starts_with(begin))) {
            Some(name) => {
                let why =
                    "librdkafka has nothing like it, and leaving it out may weaken security; take it out yourself";
                Err(Invalid::new("property", name, why))
            }
            None => Ok(Properties { brokers, properties, own, unknown }),
        }
    }

    /// The same with these, which count before the file's; Java's names are translated. What is tidelog's own, and what
    /// librdkafka has nothing like, stays among them: a client is refused with it.
    pub fn with(mut self, given: BTreeMap<String, String>) -> Result<Properties, Invalid> {
        let more = translate(given, &self.properties)?;
        self.properties.extend(more);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let read = Properties::read(text).map_err(|error| error.to_string())?;
        Ok(read.properties.iter().map(|(name, value)| format!("{name}={value}")).collect())
    }

    #[test]
    fn what_is_not_for_the_client_is_told_apart() {
        let text = "bootstrap.servers=h:1\nclient.id=me\ngroup.id=g\nmax.poll.records=5\ninterceptor.classes=a.B\n\
                    session.timeout.ms=1\nrequest.timeout.ms=1000\n";
        let read = Properties::read(text).unwrap();
        assert_eq!(read.brokers.as_deref(), Some("h:1"));
        let own: Vec<_> = read.own.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(own, ["group.id", "max.poll.records", "session.timeout.ms"]);
        assert_eq!(read.unknown, ["interceptor.classes"]);
        let kept: Vec<_> = read.properties.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(kept, ["client.id=me", "socket.timeout.ms=1000"]);
    }

    #[test]
    fn security_is_never_left_out() {
        for name in ["ssl.provider", "sasl.login.callback.handler.class", "security.providers", "config.providers"] {
            let error = read(&format!("{name}=secret")).unwrap_err();
            assert!(error.contains(name) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn what_is_given_beside_the_file_counts_before_it() {
        let file = Properties::read("sasl.mechanism=PLAIN\nsasl.password=old\nsocket.timeout.ms=7").unwrap();
        let jaas = "o.PlainLoginModule required username=\"u\" password=\"new\";";
        let given =
            [("sasl.jaas.config", jaas), ("request.timeout.ms", "9")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        let both = file.with(BTreeMap::from(given)).unwrap().properties;
        assert_eq!([&both["sasl.password"], &both["socket.timeout.ms"]], ["new", "9"]);
    }

    #[test]
    fn librdkafkas_own_names_are_taken_as_they_are() {
        let text = "security.protocol=SSL\nssl.ca.location=/ca.pem\nsocket.timeout.ms=7\nreconnect.backoff.ms = 3";
        let kept =
            ["reconnect.backoff.ms=3", "security.protocol=ssl", "socket.timeout.ms=7", "ssl.ca.location=/ca.pem"];
        assert_eq!(read(text).unwrap(), kept);
    }
}
