//! Serving the journal that this process holds: always on a loopback port of its own for the commands of this machine,
//! and on a public address where one is asked for.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::cli::exit::Failure;
use crate::cli::opening;
use crate::control::{Control, Kept};
use crate::journal::{Durability, Journal};
use crate::server::{self, App, Guard, Limits, Role, ServerNote, Token, WrittenNote};

/// Who may reach the server, and how.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "HTTP")]
pub struct AccessArgs {
    /// Tokens that callers need, a line role:name:token each, roles read, commit, operate; wanted where others than
    /// this machine can connect
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A name that this server is reached by, beside loopback's and the listening address; repeatable
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
}

/// A server at work. Stop it with [`Hosting::stop`].
pub struct Hosting {
    app: App,
    /// Where others reach it, if anywhere.
    pub public: Option<SocketAddr>,
    /// Where this machine's commands reach it.
    pub private: SocketAddr,
    servers: Vec<JoinHandle<()>>,
    note: Option<WrittenNote>,
    /// Kafka's committed offsets follow as long as this is there.
    mirror: Option<Kept>,
}

impl Hosting {
    /// Serves `control`'s journal in `dir`, and says where in its `server.json`; also at a public address, where there is
    /// one.
    pub async fn begin(
        control: Control,
        brokers: Option<String>,
        dir: &Path,
        public: Option<Public>,
    ) -> Result<Hosting, Failure> {
        let journal = control.journal.id();
        let mirror = control.mirror.keep(&control);
        let app = App::new(control, brokers);
        let mut servers = Vec::new();
        let mut serve = |listener: TcpListener, guard: Guard| {
            let (router, stopped) = (server::router(app.clone(), guard), app.clone().stopped());
            servers.push(tokio::spawn(async move { server::serve(&listener, router, stopped, limits()).await }));
        };
        let public = public.map(|Public { listener, address, guard }| {
            serve(listener, guard);
            address
        });
        let (listener, private) = bind((Ipv4Addr::LOCALHOST, 0).into()).await?;
        let token = random_token()?;
        serve(listener, Guard::new(private, vec![Token::new(Role::Operate, "this machine", &token)?], &[]));
        let note = ServerNote::new(dir, journal, format!("http://{private}"), token);
        let note = match note.and_then(|note| note.write(dir)) {
            Ok(written) => Some(written),
            Err(error) => {
                tracing::warn!("other commands can't find this process: {}/server.json: {error}", dir.display());
                None
            }
        };
        Ok(Hosting { app, public, private, servers, note, mirror })
    }

    /// What is served.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Ends within a bound: listeners and long polls at once, other requests once they are answered.
    pub async fn stop(self) {
        drop(self.note);
        self.app.stop();
        for server in self.servers {
            // One that panicked has ended too.
            let _ = server.await;
        }
        // What Kafka has not been told yet is told, within a bound.
        let _ = tokio::task::spawn_blocking(move || drop(self.mirror)).await;
    }
}

/// A public address, taken before the journal is opened: who asks meanwhile is told so.
pub struct Public {
    listener: TcpListener,
    /// Where it is, with the port that was free.
    address: SocketAddr,
    guard: Guard,
}

impl Public {
    /// Listens at `address`.
    ///
    /// # Errors
    ///
    /// It is taken, or wants tokens and there are none.
    pub async fn bind(address: SocketAddr, access: &AccessArgs) -> Result<Public, Failure> {
        let tokens = access.tokens(address)?;
        let (listener, address) = bind(address).await?;
        Ok(Public { listener, address, guard: Guard::new(address, tokens, &access.allow_host) })
    }

    /// Waits for `opened`, and tells everybody else to.
    async fn until<T>(&self, opened: impl Future<Output = T>) -> T {
        let (done, waiting) = oneshot::channel::<()>();
        // Answers that are short are not waited for long.
        let limits = Limits { grace: Duration::from_millis(100), ..limits() };
        // Ends with the sender, which says nothing.
        let stop = async { drop(waiting.await) };
        let serving = server::serve(&self.listener, server::opening(self.guard.clone()), stop, limits);
        let opened = async {
            let opened = opened.await;
            drop(done);
            opened
        };
        tokio::join!(serving, opened).1
    }
}

/// Opens the journal in `dir`, or makes one and says so; who asks at the public address meanwhile is told so.
pub async fn open(public: Option<&Public>, dir: &Path, durability: Durability) -> Result<Journal, Failure> {
    let dir = dir.to_owned();
    let opening = tokio::task::spawn_blocking(move || opening::or_new(&dir, durability));
    let opened = match public {
        Some(public) => public.until(opening).await,
        None => opening.await,
    };
    match opened {
        Ok(opened) => opened,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

impl AccessArgs {
    /// Whether anything is given.
    pub fn is_given(&self) -> bool {
        self.token_file.is_some() || !self.allow_host.is_empty()
    }

    fn tokens(&self, address: SocketAddr) -> Result<Vec<Token>, Failure> {
        match &self.token_file {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|source| Failure::File { path: path.clone(), source })?;
                Token::read(&text).map_err(|error| Failure::Usage(format!("--token-file {}: {error}", path.display())))
            }
            None if address.ip().is_loopback() => Ok(Vec::new()),
            None => Err(Failure::Usage(format!(
                "--listen {address}: others than this machine can connect there, so it wants --token-file"
            ))),
        }
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|error| Failure::Broken(format!("can't listen on {address}: {error}")))?;
    let bound = listener.local_addr().map_err(|source| Failure::System { what: "listening", source })?;
    Ok((listener, bound))
}

/// Lets this process have as many connections as the system allows it: shells commonly begin with 1,024. Not for a process
/// that starts others, which would inherit it.
pub fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the limit of open files stays");
    }
}

/// What each of two listeners takes in, so that the journal never lacks a file descriptor because of them.
fn limits() -> Limits {
    /// For the journal, the broker's clients, and what else there is.
    const RESERVE: u64 = 256;
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let room = usize::try_from(files.saturating_sub(RESERVE) / 2).unwrap_or(usize::MAX);
    let Limits { connections, .. } = Limits::default();
    Limits { connections: connections.min(room.max(16)), ..Limits::default() }
}

/// 128 random bits in hexadecimal.
fn random_token() -> Result<String, Failure> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|error| Failure::System { what: "randomness", source: std::io::Error::other(error.to_string()) })?;
    Ok(format!("{:032x}", u128::from_be_bytes(random)))
}
