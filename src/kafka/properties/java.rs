//! Java's properties as librdkafka's: those that have another name there, or another way.

use std::collections::BTreeMap;

use super::jaas::{self, Login};
use crate::offset::Invalid;

/// The same under another name.
const RENAMED: [(&str, &str); 7] = [
    ("request.timeout.ms", "socket.timeout.ms"),
    ("fetch.max.wait.ms", "fetch.wait.max.ms"),
    ("send.buffer.bytes", "socket.send.buffer.bytes"),
    ("receive.buffer.bytes", "socket.receive.buffer.bytes"),
    ("sasl.mechanism", "sasl.mechanisms"),
    ("ssl.truststore.certificates", "ssl.ca.pem"),
    ("ssl.keystore.key", "ssl.key.pem"),
];

/// Where Java writes -1 for the system's own, or for never, librdkafka writes 0.
const MINUS_ONE_IS_ZERO: [&str; 3] =
    ["socket.send.buffer.bytes", "socket.receive.buffer.bytes", "connections.max.idle.ms"];

/// Translates what is Java's; the rest stays as it is. Where both names are given librdkafka's own counts. `before` is what
/// the result is added to.
///
/// # Errors
///
/// A property that has no counterpart with this value. No error holds a value.
pub(super) fn translate(
    given: BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Invalid> {
    let mut all = Translation(given);
    for (java, ours) in RENAMED {
        all.rename(java, &[ours]);
    }
    all.rename("ssl.keystore.certificate.chain", &["ssl.certificate.pem"]);
    for name in MINUS_ONE_IS_ZERO {
        if let Some(value) = all.0.get_mut(name).filter(|value| value.trim() == "-1") {
            "0".clone_into(value);
        }
    }
    if let Some(protocol) = all.0.get_mut("security.protocol") {
        *protocol = protocol.trim().to_ascii_lowercase();
    }
    if let Some(algorithm) = all.0.get_mut("ssl.endpoint.identification.algorithm") {
        // Java's way to say that the host's name is not compared.
        *algorithm =
            if algorithm.trim().is_empty() { "none".to_owned() } else { algorithm.trim().to_ascii_lowercase() };
    }
    all.protocols()?;
    all.truststore()?;
    all.keystore()?;
    all.login(before)?;
    Ok(all.0)
}

struct Translation(BTreeMap<String, String>);

impl Translation {
    fn rename(&mut self, java: &str, ours: &[&str]) {
        if let Some(value) = self.0.remove(java) {
            for name in ours {
                self.0.entry((*name).to_owned()).or_insert_with(|| value.clone());
            }
        }
    }

    /// librdkafka takes TLS 1.2 and 1.3 and can't be told otherwise.
    fn protocols(&mut self) -> Result<(), Invalid> {
        if let Some(list) = self.0.remove("ssl.enabled.protocols") {
            let mut names: Vec<_> = list.split(',').map(str::trim).collect();
            names.sort_unstable();
            if names != ["TLSv1.2", "TLSv1.3"] {
                let why = "TLSv1.2 and TLSv1.3 are taken, both; other lists can't be kept to";
                return Err(Invalid::new("property", "ssl.enabled.protocols", why));
            }
        }
        match self.0.remove("ssl.protocol").as_deref().map(str::trim) {
            None | Some("TLS" | "TLSv1.2" | "TLSv1.3") => Ok(()),
            Some(_) => Err(Invalid::new("property", "ssl.protocol", "TLSv1.2 and TLSv1.3 are taken, no others")),
        }
    }

    fn truststore(&mut self) -> Result<(), Invalid> {
        let kind = self.0.remove("ssl.truststore.type").map(|kind| kind.trim().to_ascii_uppercase());
        // A file of certificates has none.
        let _password = self.0.remove("ssl.truststore.password");
        let Some(location) = self.0.remove("ssl.truststore.location") else { return Ok(()) };
        match kind.as_deref() {
            Some("PEM") => {
                self.0.entry("ssl.ca.location".to_owned()).or_insert(location);
                Ok(())
            }
            _ if self.0.contains_key("ssl.ca.location") => Ok(()),
            kind => {
                let kind = kind.unwrap_or("JKS");
                let how = "write its certificates to a file, keytool -list -rfc -keystore FILE > ca.pem, and give \
                           ssl.ca.location=ca.pem";
                let why = format!("librdkafka reads no {kind} truststore: {how}");
                Err(Invalid::new("property", "ssl.truststore.location", why))
            }
        }
    }

    fn keystore(&mut self) -> Result<(), Invalid> {
        match self.0.remove("ssl.keystore.type").map(|kind| kind.trim().to_ascii_uppercase()).as_deref() {
            // Without a type it is librdkafka's own property, or a Java keystore, which the file itself tells.
            None | Some("PKCS12") => Ok(()),
            Some("PEM") => {
                self.rename("ssl.keystore.location", &["ssl.key.location", "ssl.certificate.location"]);
                Ok(())
            }
            Some(kind) => {
                let how = "make it PKCS12: keytool -importkeystore -srckeystore FILE -destkeystore client.p12 \
                           -deststoretype pkcs12";
                let why = format!("librdkafka reads no {kind} keystore: {how}");
                Err(Invalid::new("property", "ssl.keystore.location", why))
            }
        }
    }

    fn login(&mut self, before: &BTreeMap<String, String>) -> Result<(), Invalid> {
        const NAME: &str = "sasl.jaas.config";
        let Some(text) = self.0.remove(NAME) else { return Ok(()) };
        let login = jaas::login(&text).map_err(|why| Invalid::new("property", NAME, why))?;
        let mechanism = self.0.get("sasl.mechanisms").or_else(|| before.get("sasl.mechanisms"));
        let mechanism = mechanism.map(|mechanism| mechanism.trim().to_ascii_uppercase());
        let (username, password, fits) = match login {
            Login::Plain { username, password } => (username, password, mechanism.as_deref() == Some("PLAIN")),
            Login::Scram { username, password } => {
                (username, password, mechanism.is_some_and(|mechanism| mechanism.starts_with("SCRAM-")))
            }
        };
        if !fits {
            let why = "its login module is not the one of sasl.mechanism: PlainLoginModule goes with PLAIN, \
                       ScramLoginModule with SCRAM-SHA-256 and SCRAM-SHA-512";
            return Err(Invalid::new("property", NAME, why));
        }
        self.0.entry("sasl.username".to_owned()).or_insert(username);
        self.0.entry("sasl.password".to_owned()).or_insert(password);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<String, String> {
        let split =
            |line: &&str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap();
        let translated =
            translate(lines.iter().map(split).collect(), &BTreeMap::new()).map_err(|error| error.to_string())?;
        Ok(translated.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("|"))
    }

    #[test]
    fn java_names_become_librdkafkas() {
        const SCRAM: &str = "sasl.jaas.config=o.ScramLoginModule required username=\"u\" password=\"p\";";
        for (lines, expected) in [
            (
                &["request.timeout.ms=5", "receive.buffer.bytes=-1"][..],
                "socket.receive.buffer.bytes=0|socket.timeout.ms=5",
            ),
            (&["request.timeout.ms=5", "socket.timeout.ms=7"], "socket.timeout.ms=7"),
            (
                &["security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-512", SCRAM],
                "sasl.mechanisms=SCRAM-SHA-512|sasl.password=p|sasl.username=u|security.protocol=sasl_ssl",
            ),
            (&["ssl.truststore.type=PEM", "ssl.truststore.location=ca.pem"], "ssl.ca.location=ca.pem"),
            (&["ssl.truststore.location=a.jks", "ssl.ca.location=ca.pem"], "ssl.ca.location=ca.pem"),
            (
                &["ssl.keystore.type=PKCS12", "ssl.keystore.location=a.p12", "ssl.keystore.password=x"],
                "ssl.keystore.location=a.p12|ssl.keystore.password=x",
            ),
            (
                &["ssl.keystore.type=PEM", "ssl.keystore.location=a.pem"],
                "ssl.certificate.location=a.pem|ssl.key.location=a.pem",
            ),
            (&["ssl.endpoint.identification.algorithm="], "ssl.endpoint.identification.algorithm=none"),
            (&["ssl.enabled.protocols=TLSv1.3, TLSv1.2", "ssl.protocol=TLSv1.3"], ""),
        ] {
            assert_eq!(read(lines).as_deref(), Ok(expected), "{lines:?}");
        }
    }

    #[test]
    fn what_has_no_counterpart_is_refused_by_name_and_never_shows_a_value() {
        for (lines, said) in [
            (&["ssl.truststore.location=secret.jks", "ssl.truststore.password=secret"][..], "no JKS truststore"),
            (&["ssl.truststore.type=PKCS12", "ssl.truststore.location=secret"], "no PKCS12 truststore"),
            (&["ssl.keystore.type=jks", "ssl.keystore.location=secret"], "no JKS keystore"),
            (&["ssl.enabled.protocols=TLSv1.3"], "ssl.enabled.protocols"),
            (&["ssl.protocol=SSLv3"], "ssl.protocol"),
            (
                &[
                    "sasl.mechanism=PLAIN",
                    "sasl.jaas.config=o.ScramLoginModule required username=\"u\" password=\"secret\";",
                ],
                "ScramLoginModule with",
            ),
            (&["sasl.jaas.config=o.OAuthBearerLoginModule required;"], "OAuthBearerLoginModule"),
        ] {
            let error = read(lines).unwrap_err();
            assert!(error.contains(said) && !error.contains("secret"), "{lines:?}: {error}");
        }
    }
}
