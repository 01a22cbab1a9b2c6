//! A cluster that wants TLS and a password, by the built program.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::kafka::secure::{Certificates, PASSWORD, USER};
use crate::kafka::{Options, TestKafka};
use crate::program::{Done, Program};

/// The cluster that the tests here share; it ends with the process.
fn secure() -> &'static (TestKafka, Certificates) {
    static SECURE: OnceLock<(TestKafka, Certificates)> = OnceLock::new();
    SECURE.get_or_init(|| {
        let certificates = Certificates::new();
        let broker = certificates.broker();
        (TestKafka::start(Options { secure: Some(&broker), ..Options::default() }), certificates)
    })
}

/// A Java client's file.
fn java(program: &Program, mechanism: &str, password: &str, authority: &str) -> String {
    let module = if mechanism == "PLAIN" { "plain.PlainLoginModule" } else { "scram.ScramLoginModule" };
    let text = format!(
        "# A consumer's\nbootstrap.servers={}\nsecurity.protocol=SASL_SSL\nsasl.mechanism={mechanism}\n\
         sasl.jaas.config=org.apache.kafka.common.security.{module} required \\\n  username=\"{USER}\" \\\n  \
         password=\"{password}\";\nssl.truststore.type=PEM\nssl.truststore.location={authority}\n\
         group.id=mine\nkey.deserializer=org.apache.kafka.common.serialization.StringDeserializer\n\
         request.timeout.ms=20000\ninterceptor.classes=com.example.Audit\n",
        secure().0.secure_brokers()
    );
    fs::write(program.path("client.properties"), text).expect("a file can be written");
    "client.properties".to_owned()
}

/// Runs it without brokers from the environment: the file has them.
fn run(program: &Program, words: &[&str]) -> Done {
    let mut command = program.command(words);
    let done = command.env_remove("TIDELOG_BROKERS").output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Done { code: done.status.code().unwrap_or(-1), out: text(done.stdout), err: text(done.stderr) }
}

#[test]
fn a_java_clients_file_is_all_that_is_needed() {
    let (kafka, certificates) = secure();
    let topic = kafka.unique("secure");
    kafka.create_topic(&topic, 1, &[]);
    kafka.produce(&topic, 0, 10);
    for mechanism in ["PLAIN", "SCRAM-SHA-256"] {
        let program = Program::new("unused");
        let file = java(&program, mechanism, PASSWORD, &certificates.authority("ca"));
        let read = ["consume", "--kafka-config", &file, "-g", "g", "-t", &topic, "--until-latest", "-vv"];
        let done = run(&program, &read);
        assert_eq!((done.code, done.out.lines().count()), (0, 10), "{mechanism}: {}", done.err);
        assert!(!done.err.contains(PASSWORD), "a password in {}", done.err);
        // What the file holds in vain is told.
        for said in ["group.id is left out, it is tidelog's own", "nothing like it: interceptor.classes"] {
            assert_eq!(done.err.matches(said).count(), 1, "{said}: {}", done.err);
        }
        // What is given beside the file counts before it.
        let wrong = run(&program, &["start", "g", "--kafka-config", &file, "-t", &topic, "-X", "sasl.password=no"]);
        assert_eq!(wrong.code, 7, "{}", wrong.err);
    }
}

#[test]
fn librdkafkas_properties_do_too_and_a_server_keeps_its_password() {
    let (kafka, certificates) = secure();
    let topic = kafka.unique("secure");
    kafka.create_topic(&topic, 1, &[]);
    let program = Program::new("unused");
    let (ca, brokers) = (format!("ssl.ca.location={}", certificates.authority("ca")), kafka.secure_brokers());
    let (user, password) = (format!("sasl.username={USER}"), format!("sasl.password={PASSWORD}"));
    let client = [&ca, &user, &password, "security.protocol=sasl_ssl", "sasl.mechanism=PLAIN"];
    let client: Vec<&str> = client.iter().flat_map(|property| ["-X", property]).collect();
    let start = [&["start", "g", "-b", &brokers, "-t", &topic], &client[..]].concat();
    let begun = run(&program, &start);
    assert_eq!(begun.code, 0, "{}", begun.err);
    // A certificate of the client's own, as Java keeps it.
    let store = ["-genkeypair", "-keyalg", "EC", "-dname", "CN=me", "-storetype", "PKCS12", "-storepass", "changeit"];
    let made = Command::new("keytool").args(store).args(["-keystore", "me.p12"]).current_dir(program.path("")).output();
    assert!(made.expect("keytool is in every Java").status.success());
    let with = |password| [&start[..], &["-X", "ssl.keystore.location=me.p12", "-X", password]].concat();
    let own = run(&program, &with("ssl.keystore.password=changeit"));
    assert_eq!(own.code, 0, "{}", own.err);
    let wrong = run(&program, &with("ssl.keystore.password=not-it"));
    assert!(wrong.code == 2 && wrong.err.contains("ssl.keystore.location"), "{wrong:?}");
    assert!(!wrong.err.contains("not-it"), "{}", wrong.err);
    let serve = [&["serve", "-b", &brokers, "--listen", "127.0.0.1:0", "-vv"], &client[..]].concat();
    let server = program.spawn(&serve);
    program.wait_served();
    for words in [&["groups", "-o", "json"][..], &["positions", "g", "-o", "json"], &["entries", "g", "-o", "json"]] {
        let done = run(&program, words);
        assert!(done.code == 0 && !done.out.contains(PASSWORD), "{words:?}: {done:?}");
    }
    let done = server.terminate();
    assert!(done.code == 0 && !done.err.contains(PASSWORD), "{done:?}");
}

#[test]
fn a_java_truststore_is_refused_with_a_command_that_converts_it() {
    let (kafka, certificates) = secure();
    let topic = kafka.unique("secure");
    kafka.create_topic(&topic, 1, &[]);
    let program = Program::new("unused");
    let keytool = |words: &[&str]| {
        let store = ["-keystore", "trust.jks", "-storepass", "changeit"];
        let done = Command::new("keytool").args(words).args(store).current_dir(program.path("")).output();
        let done = done.expect("keytool is in every Java");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        done.stdout
    };
    let ca = certificates.authority("ca");
    keytool(&["-importcert", "-noprompt", "-alias", "ca", "-storetype", "JKS", "-file", &ca]);
    let file = java(&program, "PLAIN", PASSWORD, "trust.jks");
    let path = program.path(&file);
    let text = fs::read_to_string(&path).expect("it is there");
    let jks = text.replace("ssl.truststore.type=PEM", "ssl.truststore.type=JKS\nssl.truststore.password=changeit");
    fs::write(&path, jks).expect("a file can be written");
    let start = ["start", "g", "--kafka-config", &file, "-t", &topic];
    let done = run(&program, &start);
    assert!(done.code == 2 && done.err.contains("keytool -list -rfc -keystore FILE > ca.pem"), "{done:?}");
    fs::write(program.path("ca.pem"), keytool(&["-list", "-rfc"])).expect("a file can be written");
    let done = run(&program, &[&start[..], &["-X", "ssl.ca.location=ca.pem"]].concat());
    assert!(done.code == 2, "the file is refused by itself: {done:?}");
    fs::write(&path, text.replace("trust.jks", "ca.pem")).expect("a file can be written");
    let done = run(&program, &start);
    assert_eq!(done.code, 0, "{}", done.err);
}

#[test]
fn what_keeps_a_client_out_is_told_in_time() {
    let (kafka, certificates) = secure();
    let topic = kafka.unique("secure");
    kafka.create_topic(&topic, 1, &[]);
    let program = Program::new("unused");
    let address = kafka.secure_brokers();
    for (mechanism, password, authority, said) in [
        ("PLAIN", "not-the-password", "ca", "uthentication failed"),
        ("SCRAM-SHA-256", "not-the-password", "ca", "uthentication failed"),
        ("PLAIN", PASSWORD, "other-ca", "certificate verify failed"),
    ] {
        let file = java(&program, mechanism, password, &certificates.authority(authority));
        let begun = Instant::now();
        let done = run(&program, &["start", "g", "--kafka-config", &file, "-t", &topic, "-q"]);
        assert_eq!(done.code, 7, "{}", done.err);
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        assert!(done.err.contains(said) && done.err.contains(&address), "{said} at {address}: {}", done.err);
        assert!(!done.err.contains(password), "{}", done.err);
    }
    let file = java(&program, "PLAIN", PASSWORD, "no-such.pem");
    let done = run(&program, &["start", "g", "--kafka-config", &file, "-t", &topic]);
    assert!(done.code == 2 && done.err.contains("ssl.ca.location: no-such.pem: No such file"), "{done:?}");
    assert!(!done.err.contains(PASSWORD), "{}", done.err);
}
