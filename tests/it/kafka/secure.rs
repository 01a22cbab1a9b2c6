//! Certificates for a broker with TLS.

use std::path::{Path, PathBuf};
use std::process::Command;

pub use super::node::{PASSWORD, USER};

/// An authority and a broker's certificate by it, and another authority that knows nothing of them.
pub struct Certificates {
    dir: tempfile::TempDir,
}

impl Certificates {
    /// Makes them, valid for a day.
    pub fn new() -> Certificates {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let authority = |name: &str| {
            let (key, certificate) = (format!("{name}.key"), format!("{name}.pem"));
            let subject = format!("/CN={name}");
            openssl(
                dir.path(),
                &["req", "-x509", "-days", "1", "-subj", &subject, "-keyout", &key, "-out", &certificate],
            );
        };
        authority("ca");
        authority("other-ca");
        let signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1"];
        let broker =
            ["req", "-x509", "-days", "1", "-subj", "/CN=broker", "-keyout", "broker.key", "-out", "broker.crt"];
        openssl(dir.path(), &[&broker[..], &signed].concat());
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).expect("openssl made it");
        let both = read("broker.key") + &read("broker.crt");
        std::fs::write(dir.path().join("broker.pem"), both).expect("a file can be written");
        Certificates { dir }
    }

    /// The broker's key and certificate.
    pub fn broker(&self) -> PathBuf {
        self.dir.path().join("broker.pem")
    }

    /// What clients trust, `ca` or `other-ca`.
    pub fn authority(&self, name: &str) -> String {
        let path = self.dir.path().join(format!("{name}.pem"));
        path.to_str().expect("a temporary path is UTF-8").to_owned()
    }
}

fn openssl(dir: &Path, words: &[&str]) {
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"];
    let done = Command::new("openssl").args(words).args(key).current_dir(dir).output().expect("openssl can be run");
    assert!(done.status.success(), "openssl {words:?}: {}", String::from_utf8_lossy(&done.stderr));
}
