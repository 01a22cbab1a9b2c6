//! Java's `sasl.jaas.config`: a login module with its options, as
//! `org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="...";`

use std::collections::BTreeMap;
use std::fmt;

/// Who logs in, and by what. Its `Debug` shows no password.
#[derive(PartialEq)]
pub(super) enum Login {
    /// By PLAIN.
    Plain { username: String, password: String },
    /// By one of SCRAM's mechanisms.
    Scram { username: String, password: String },
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Login::Plain { username, .. } => write!(f, "Plain {username}"),
            Login::Scram { username, .. } => write!(f, "Scram {username}"),
        }
    }
}

/// Reads the value; an error never holds a part of it but the module's name.
pub(super) fn login(text: &str) -> Result<Login, String> {
    let mut words = words(text)?.into_iter();
    let module = words.next().ok_or("empty")?;
    let name = module.rsplit('.').next().unwrap_or(&module).to_owned();
    if !matches!(name.as_str(), "PlainLoginModule" | "ScramLoginModule") {
        return Err(format!("the login module {name} has no counterpart; PlainLoginModule and ScramLoginModule have"));
    }
    let _required = words.next();
    let mut options = BTreeMap::new();
    loop {
        match (words.next().as_deref(), words.next().as_deref(), words.next()) {
            (Some(";"), None, _) => break,
            (Some(";"), Some(_), _) => return Err("more than one login module".to_owned()),
            (Some(option), Some("="), Some(value)) => drop(options.insert(option.to_owned(), value)),
            _ => return Err("write MODULE required username=\"...\" password=\"...\";".to_owned()),
        }
    }
    let mut needed = |option| options.remove(option).ok_or(format!("{name} has no {option}"));
    let (username, password) = (needed("username")?, needed("password")?);
    if let Some(other) = options.keys().next() {
        return Err(format!("{name} has the option {other}, which has no counterpart"));
    }
    Ok(match name.as_str() {
        "PlainLoginModule" => Login::Plain { username, password },
        _ => Login::Scram { username, password },
    })
}

/// Words, quoted texts, `=` and `;`.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            c if c.is_whitespace() => {}
            '=' | ';' => words.push(c.to_string()),
            '"' | '\'' => {
                let mut word = String::new();
                loop {
                    match rest.next().ok_or("a quote is never closed")? {
                        end if end == c => break,
                        '\\' => word.push(rest.next().ok_or("a quote is never closed")?),
                        other => word.push(other),
                    }
                }
                words.push(word);
            }
            c => {
                let mut word = String::from(c);
                while let Some(next) = rest.next_if(|c| !c.is_whitespace() && !matches!(c, '=' | ';' | '"')) {
                    word.push(next);
                }
                words.push(word);
            }
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_read() {
        let scram = "org.apache.kafka.common.security.scram.ScramLoginModule required\n  username=\"alice\" \
                     password=\"p;=\\\"w\";";
        let (username, password) = ("alice".to_owned(), "p;=\"w".to_owned());
        assert_eq!(login(scram), Ok(Login::Scram { username, password }));
        let plain = "org.apache.kafka.common.security.plain.PlainLoginModule required username=a password='b c' ;";
        assert_eq!(login(plain), Ok(Login::Plain { username: "a".to_owned(), password: "b c".to_owned() }));
    }

    #[test]
    fn what_is_no_login_of_ours_is_said_without_the_password() {
        let plain = "x.PlainLoginModule required username=\"a\"";
        for (text, said) in [
            ("com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;".to_owned(), "Krb5LoginModule"),
            (format!("{plain} password=\"secret\""), "write MODULE"),
            (format!("{plain} password=\"secret;"), "never closed"),
            (format!("{plain};"), "no password"),
            (format!("{plain} password=\"secret\" tokenauth=\"true\";"), "tokenauth"),
            (format!("{plain} password=\"secret\"; {plain};"), "more than one"),
            (String::new(), "empty"),
        ] {
            let error = login(&text).unwrap_err();
            assert!(error.contains(said) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
