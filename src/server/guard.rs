//! Who may ask: tokens with roles, and no page of a foreign site through somebody's browser.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::{Kind, Problem};
use crate::offset::{Invalid, free_name};

/// Bytes of a path with its query; more is no name of ours.
const MAX_URI: usize = 16 << 10;
/// Bytes of all headers.
const MAX_HEADERS: usize = 32 << 10;

/// What a caller may do; each role may what those before it may.
///
/// ```
/// use tidelog::server::Role;
///
/// assert!(Role::Read < Role::Commit && Role::Commit < Role::Operate);
/// assert_eq!(Role::default().as_str(), "read");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Role {
    /// Look.
    #[default]
    Read,
    /// Start, commit, mark.
    Commit,
    /// Move, stop and free groups.
    Operate,
}

impl Role {
    /// The word of a token file.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Read => "read",
            Role::Commit => "commit",
            Role::Operate => "operate",
        }
    }
}

/// Who asks.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// What they may do.
    pub role: Role,
    /// The name of their token, where there is one.
    pub name: Option<String>,
}

/// A token and what it allows.
///
/// ```
/// use tidelog::server::{Guard, Token};
///
/// let tokens = Token::read("# for the loaders\ncommit:loader:0123456789abcdef\n")?;
/// let guard = Guard::new(([0, 0, 0, 0], 8380).into(), tokens, &["tidelog.example.com".to_owned()]);
/// # let _ = guard;
/// # Ok::<(), tidelog::offset::Invalid>(())
/// ```
#[derive(Clone)]
pub struct Token {
    role: Role,
    name: String,
    secret: String,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} token {}", self.role.as_str(), self.name)
    }
}

impl Token {
    /// A token of 16 to 255 characters that a header can hold.
    pub fn new(role: Role, name: &str, secret: &str) -> Result<Self, Invalid> {
        free_name("token's name", name)?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/=".contains(&b);
        if !(16..=255).contains(&secret.len()) || !secret.bytes().all(plain) {
            let why = "a token has 16 to 255 of a-z A-Z 0-9 - . _ ~ + / =";
            return Err(Invalid::new("token of", name, why));
        }
        Ok(Token { role, name: name.to_owned(), secret: secret.to_owned() })
    }

    /// Reads a token file: a line `role:name:token` each; blank lines and those that begin with `#` are left out.
    ///
    /// # Errors
    ///
    /// A line that is none, by its number and without its secret; or no token at all.
    pub fn read(text: &str) -> Result<Vec<Token>, Invalid> {
        let mut tokens = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: &'static str| Invalid::new("token file", format_args!("line {}", index + 1), why);
            let parts: Vec<&str> = line.splitn(3, ':').collect();
            let [role, name, secret] = parts[..] else { return Err(wrong("not role:name:token")) };
            let role = match role {
                "read" => Role::Read,
                "commit" => Role::Commit,
                "operate" => Role::Operate,
                _ => return Err(wrong("the role is read, commit or operate")),
            };
            tokens.push(Token::new(role, name, secret)?);
        }
        if tokens.is_empty() {
            return Err(Invalid::new("token file", "", "holds no token; write lines role:name:token"));
        }
        Ok(tokens)
    }

    /// Whether `given` is the secret; takes as long for every one of its length.
    fn is(&self, given: &str) -> bool {
        let (own, given) = (self.secret.as_bytes(), given.as_bytes());
        own.len() == given.len() && own.iter().zip(given).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

/// The checks before a request is looked at.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// use axum::{body::Body, http::Request};
/// use tidelog::server::{App, Guard, Token, router};
/// use tower::ServiceExt;
///
/// tokio::runtime::Runtime::new()?.block_on(async {
///     let guard = Guard::new(([127, 0, 0, 1], 8380).into(), Token::read("read:ann:0123456789abcdef")?, &[]);
///     let request = Request::get("/v1/groups").header("host", "localhost:8380").body(Body::empty())?;
///     let response = router(App::new(control, None), guard).oneshot(request).await?;
///     assert_eq!(response.status(), 401); // no token
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// None where everybody may do everything.
    tokens: Vec<Token>,
    /// Names that this server is reached by; none where that is not checked.
    hosts: Option<Vec<String>>,
    /// Those of them that were given by name.
    allowed: Vec<String>,
}

impl Guard {
    /// No check at all: for calls from within the process.
    pub fn trusted() -> Self {
        Guard::default()
    }

    /// For a server that listens at `address`: asks for one of `tokens` where there are any, and takes the names of
    /// loopback, of the address, and of `hosts` as its own.
    pub fn new(address: SocketAddr, tokens: Vec<Token>, hosts: &[String]) -> Self {
        let mut own: Vec<String> = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).into();
        own.push(match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        });
        let allowed: Vec<String> = hosts.iter().map(|host| without_port(host)).collect();
        own.extend(allowed.iter().cloned());
        Guard { tokens, hosts: Some(own), allowed }
    }

    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<Caller, Problem> {
        if uri.path_and_query().is_some_and(|path| path.as_str().len() > MAX_URI) {
            let detail = format!("the path and query have more than {MAX_URI} bytes");
            return Err(Problem::new(Kind::UriTooLong, detail).with("limit", MAX_URI));
        }
        if headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>() > MAX_HEADERS {
            let detail = format!("the headers have more than {MAX_HEADERS} bytes");
            return Err(Problem::new(Kind::HeadersTooLarge, detail).with("limit", MAX_HEADERS));
        }
        self.check_host(uri, headers)?;
        if self.tokens.is_empty() || uri.path() == "/healthz" || uri.path() == "/readyz" {
            return Ok(Caller { role: Role::Operate, name: None });
        }
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let Some(given) = given else {
            return Err(Problem::new(Kind::Unauthorized, "no token; send the header Authorization: Bearer TOKEN"));
        };
        match self.tokens.iter().find(|token| token.is(given)) {
            Some(token) => Ok(Caller { role: token.role, name: Some(token.name.clone()) }),
            None => Err(Problem::new(Kind::Unauthorized, "the token is none of this server's")),
        }
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(own) = &self.hosts else { return Ok(()) };
        let foreign = |what: &str, value: &str| {
            let detail = format!("{what} {value:?} is none of this server's names; --allow-host takes one in");
            Problem::new(Kind::Forbidden, detail).with("field", what).with("value", value)
        };
        let text = |name: header::HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let host = uri.authority().map(axum::http::uri::Authority::as_str).or_else(|| text(header::HOST));
        let host = host.unwrap_or_default();
        if !own.contains(&without_port(host)) {
            return Err(foreign("Host", host));
        }
        match text(header::ORIGIN) {
            None => Ok(()),
            Some(origin) => {
                // A page of ours, and not one that another port of this machine serves; behind a proxy, by its name.
                let from = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
                match from {
                    Some(from) if from.eq_ignore_ascii_case(host) || self.allowed.contains(&without_port(from)) => {
                        Ok(())
                    }
                    _ => Err(foreign("Origin", origin)),
                }
            }
        }
    }
}

/// A host without its port, in lower case.
fn without_port(host: &str) -> String {
    let end = match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => colon,
        _ => host.len(),
    };
    host[..end].to_ascii_lowercase()
}

/// Lets a request through that the guard has nothing against, with its caller noted.
pub async fn stand(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    match guard.check(request.uri(), request.headers()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Lets a request through whose caller has at least `role`.
pub async fn at_least(State(role): State<Role>, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>().cloned().unwrap_or_default();
    if caller.role >= role {
        return next.run(request).await;
    }
    let (has, wants) = (caller.role.as_str(), role.as_str());
    let detail = format!("this wants a token with the role {wants}; yours has {has}");
    Problem::new(Kind::Forbidden, detail).with("role", has).with("needed", wants).into_response()
}
