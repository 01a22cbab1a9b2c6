//! Connections: taken in up to a limit, and ended within a bound when the server stops.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::{Kind, Problem};

/// What a server takes in.
///
/// ```
/// use tidelog::server::Limits;
///
/// let limits = Limits { connections: 100, ..Limits::default() };
/// assert_eq!(limits.grace.as_secs(), 5);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at once; another one is answered 429.
    pub connections: usize,
    /// How long the headers of a request may take to come, and how long a connection may idle.
    pub header_time: Duration,
    /// How long requests that are under way may take to end when the server stops.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { connections: 4_096, header_time: Duration::from_secs(30), grace: Duration::from_secs(5) }
    }
}

/// Bytes of a request's line and headers that are read at all; the guard's limits are below it.
const HEAD_BYTES: usize = 128 << 10;
/// Pause after a connection could not be taken in, as when there are no file descriptors left.
const BACK_OFF: Duration = Duration::from_millis(50);

/// Serves `router` on `listener` until `stop` is over; then at most for the grace time more.
pub async fn serve(listener: &TcpListener, router: Router, stop: impl Future<Output = ()>, limits: Limits) {
    let room = Arc::new(Semaphore::new(limits.connections));
    let connections = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    pause(&error).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        match Arc::clone(&room).try_acquire_owned() {
            Ok(place) => take_in(stream, router.clone(), &connections, limits, place),
            Err(_) => drop(tokio::spawn(turn_away(stream, limits.connections))),
        }
    }
    if tokio::time::timeout(limits.grace, connections.shutdown()).await.is_err() {
        tracing::warn!("requests that took longer than {} s were broken off", limits.grace.as_secs_f32());
    }
}

async fn pause(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be taken in");
    tokio::time::sleep(BACK_OFF).await;
}

fn take_in(
    stream: TcpStream,
    router: Router,
    connections: &GracefulShutdown,
    limits: Limits,
    place: OwnedSemaphorePermit,
) {
    // Answers are small, and written as a whole.
    let _ = stream.set_nodelay(true);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let connection = connections.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended early");
        }
        drop(place);
    });
}

/// Answers a connection that there is no room for.
async fn turn_away(mut stream: TcpStream, limit: usize) {
    let detail = format!("this server has {limit} connections, its limit; try again later");
    let response = Problem::new(Kind::TooManyRequests, detail).with("limit", limit).into_response();
    let Ok(body) = axum::body::to_bytes(response.into_body(), HEAD_BYTES).await else { return };
    let head = format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\n\
         connection: close\r\nretry-after: 1\r\n\r\n",
        body.len()
    );
    let write = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body).await?;
        stream.shutdown().await
    };
    // Whoever does not read is not waited for.
    let _ = tokio::time::timeout(Duration::from_secs(1), write).await;
}
