//! The API of a server, over HTTP/1.1: a connection for each request, as a person may think for minutes in between.

use std::fmt::Display;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

use super::{Ask, Runtime};
use crate::cli::exit::Failure;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a server may take to say that it works.
const HEALTH: Duration = Duration::from_secs(5);
/// How long it may take for anything else: a start looks at the broker twice.
const ANSWER: Duration = Duration::from_secs(60);
/// Bytes of an answer: far more than the largest page has.
const MAX_ANSWER: usize = 1 << 30;

/// A server that works.
pub struct There {
    base: Base,
    health: Health,
    runtime: Runtime,
}

/// Where a server is, and how to be let in.
struct Base {
    /// As it was given, without a slash at the end.
    url: String,
    /// `host:port`.
    address: String,
    /// What stands before the paths of the API, where a proxy wants that.
    prefix: String,
    /// The value of the header.
    token: Option<HeaderValue>,
}

/// What `/healthz` answers.
#[derive(Deserialize)]
struct Health {
    status: String,
    journal: String,
    brokers: Option<String>,
}

impl There {
    /// The server at `url`, once it has said that it works. That question does not carry the token.
    ///
    /// # Errors
    ///
    /// The address is none that this program can ask; nobody is there, does not answer, or is no tidelog.
    pub(super) fn at(url: &str, token: Option<String>) -> Result<There, Failure> {
        Self::within(url, token, HEALTH)
    }

    fn within(url: &str, token: Option<String>, limit: Duration) -> Result<There, Failure> {
        let base = Base::new(url, token)?;
        let runtime = Runtime::new()?;
        let (status, body) = runtime.block_on(base.ask(Ask::get("/healthz"), false, limit))?;
        match serde_json::from_slice::<Health>(&body) {
            Ok(health) if status.is_success() && health.status == "ok" => Ok(There { base, health, runtime }),
            _ => Err(base.unreachable(&format_args!("what answers there ({status}) is no tidelog server"))),
        }
    }

    /// The brokers that it reads from.
    pub(super) fn brokers(&self) -> Option<&str> {
        self.health.brokers.as_deref()
    }

    /// The id of the journal that it holds.
    pub(super) fn journal(&self) -> &str {
        &self.health.journal
    }

    /// Its address, as it was given.
    pub(super) fn url(&self) -> &str {
        &self.base.url
    }

    pub(super) fn ask(&self, ask: Ask) -> Result<(StatusCode, Bytes), Failure> {
        self.runtime.block_on(self.base.ask(ask, true, ANSWER))
    }
}

impl Base {
    fn new(url: &str, token: Option<String>) -> Result<Base, Failure> {
        let wrong = |why: &str| Failure::Usage(format!("server {url}: {why}; write http://HOST:PORT"));
        let uri: Uri = url.parse().map_err(|_| wrong("not an address"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(wrong("this version speaks http only; let a tunnel or a proxy do TLS")),
            _ => return Err(wrong("not an http address")),
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("no host"))?;
        if uri.query().is_some() || uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(wrong("a user or a query has no meaning here"));
        }
        let token = token.map(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| Failure::Usage("the token has characters that no token has".to_owned()))?;
            value.set_sensitive(true);
            Ok::<_, Failure>(value)
        });
        Ok(Base {
            url: url.trim_end_matches('/').to_owned(),
            address: format!("{host}:{}", uri.port_u16().unwrap_or(80)),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            token: token.transpose()?,
        })
    }

    /// Asks, and takes in the whole answer.
    async fn ask(&self, ask: Ask, known: bool, limit: Duration) -> Result<(StatusCode, Bytes), Failure> {
        let changes = ask.changes();
        let mut request = ask.request(&self.prefix).map_err(|error| self.unreachable(&error))?;
        let host = HeaderValue::from_str(&self.address).map_err(|error| self.unreachable(&error))?;
        request.headers_mut().insert(HOST, host);
        if let Some(token) = self.token.as_ref().filter(|_| known) {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        let stream = match tokio::time::timeout(CONNECT, TcpStream::connect(&self.address)).await {
            Ok(connected) => connected.map_err(|error| self.unreachable(&error))?,
            Err(_) => return Err(self.silent(CONNECT, false)),
        };
        match tokio::time::timeout(limit, exchange(stream, request)).await {
            Ok(answered) => answered.map_err(|error| self.unreachable(&error)),
            Err(_) => Err(self.silent(limit, changes)),
        }
    }

    fn unreachable(&self, why: &dyn Display) -> Failure {
        Failure::Unreachable { url: self.url.clone(), why: why.to_string() }
    }

    fn silent(&self, limit: Duration, changes: bool) -> Failure {
        Failure::Silent { url: self.url.clone(), limit, changes }
    }
}

/// Sends the request and reads the whole answer.
async fn exchange(
    stream: TcpStream,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await?;
    connection.abort();
    Ok((status, body.to_bytes()))
}

#[cfg(test)]
mod tests;
