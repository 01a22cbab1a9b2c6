//! The routes, one file a subject, and what they share.

mod batches;
mod entries;
mod groups;
mod health;
mod losses;
mod metrics;
mod positions;
mod readers;
mod rollback;
mod start;
mod steer;
mod stream;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

use super::App;
use super::guard::{self, Guard, Role};
use super::problem::{Kind, Problem};
use crate::control::Control;
use crate::offset::Group;
use crate::positions::GroupState;

/// Answers from this size on are compressed when asked.
const COMPRESSED_BYTES: u16 = 1_024;

/// What a route answers.
type Answer = Result<Response, Problem>;

/// All routes, behind the guard.
pub fn router(app: App, guard: Guard) -> Router {
    let role = |role: Role| from_fn_with_state(role, guard::at_least);
    let read = Router::new()
        .route("/metrics", get(metrics::metrics))
        .route("/v1/groups", get(groups::list))
        .route("/v1/groups/{group}", get(groups::one))
        .route("/v1/groups/{group}/positions", get(positions::show))
        .route("/v1/groups/{group}/batches", get(batches::list))
        .route("/v1/groups/{group}/batches/{batch}", get(batches::one))
        .route("/v1/groups/{group}/entries", get(entries::list))
        .route("/v1/groups/{group}/losses", get(losses::list))
        .route("/v1/groups/{group}/rollback/plan", post(rollback::plan))
        .route("/v1/topics/{topic}/partitions/{partition}/offsets/{offset}", get(readers::list))
        .route("/v1/stream", get(stream::listen));
    let commit = Router::new()
        .route("/v1/groups/{group}/start", post(start::start))
        .route("/v1/groups/{group}/batches", post(batches::commit))
        .route("/v1/groups/{group}/marks", post(steer::mark))
        .route_layer(role(Role::Commit));
    let operate = Router::new()
        .route("/v1/groups/{group}/rollback", post(rollback::execute))
        .route("/v1/groups/{group}/hold", post(steer::hold))
        .route("/v1/groups/{group}/release", post(steer::release))
        .route("/v1/groups/{group}/retire", post(steer::retire))
        .route("/v1/rollbacks/{seq}/kafka", post(rollback::kafka))
        .route("/v1/losses/{seq}/acknowledge", post(steer::acknowledge))
        .route_layer(role(Role::Operate));
    let health = Router::new().route("/healthz", get(health::healthz)).route("/readyz", get(health::readyz));
    shielded(Router::new().merge(read).merge(commit).merge(operate).merge(health), guard).with_state(app)
}

/// What is answered while the journal is being opened: the process works, and is not ready.
pub fn opening(guard: Guard) -> Router {
    async fn works() -> Answer {
        json(StatusCode::OK, &serde_json::json!({ "status": "opening", "version": env!("CARGO_PKG_VERSION") }))
    }
    async fn not_yet() -> Problem {
        Problem::new(Kind::JournalReadOnly, "the journal is being opened; try again in a moment")
    }
    Router::new()
        .route("/healthz", get(works))
        .fallback(not_yet)
        .layer(from_fn_with_state(Arc::new(guard), guard::stand))
        .layer(from_fn(numbered))
}

/// What stands around every route.
fn shielded(routes: Router<App>, guard: Guard) -> Router<App> {
    let compressed = SizeAbove::new(COMPRESSED_BYTES).and(NotForContentType::SSE);
    routes
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(Arc::new(guard), guard::stand))
        .layer(CompressionLayer::new().compress_when(compressed))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(numbered))
}

tokio::task_local! {
    /// The request that is answered.
    static REQUEST_ID: u64;
}

/// Gives each request an id, which our mistakes are told and logged with.
async fn numbered(request: Request, next: Next) -> Response {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = REQUEST_ID.scope(id, next.run(request)).await;
    if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(request_id = id, %method, path, "answered 500");
    }
    response.headers_mut().insert(HeaderName::from_static("x-request-id"), HeaderValue::from(id));
    response
}

/// A panic in a handler is our fault; the message went to standard error.
fn panicked(_panic: Box<dyn Any + Send>) -> Response {
    internal(&"a panic").into_response()
}

async fn no_route(uri: Uri) -> Problem {
    // A name of a path can't be empty, so no route matches.
    let mut segments = uri.path().trim_start_matches('/').split('/');
    let begin = [segments.next(), segments.next(), segments.next()];
    if begin == [Some("v1"), Some("groups"), Some("")] {
        return Problem::invalid("group", "", "0 bytes; it has 1 to 255");
    }
    Problem::new(Kind::NotFound, format!("there is nothing at {}", uri.path()))
}

async fn no_method(request: Request) -> Problem {
    let detail = format!("{} does not take {}", request.uri().path(), request.method());
    Problem::new(Kind::MethodNotAllowed, detail)
}

/// An answer of this status.
fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(text) => {
            let mut response = Response::new(Body::from(text));
            *response.status_mut() = status;
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Ok(response)
        }
        Err(error) => Err(internal(&error)),
    }
}

fn internal(error: &dyn std::fmt::Display) -> Problem {
    let id = REQUEST_ID.try_with(u64::to_string).unwrap_or_default();
    tracing::error!(request_id = id, %error, "an answer could not be made");
    let detail = format!("tidelog made a mistake; its log tells more about request {id}");
    Problem::new(Kind::Internal, detail).with("request_id", id)
}

/// Runs what blocks: reads of the store, and calls that wait for the broker.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Problem> + Send + 'static) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(internal(&error)),
        },
    }
}

impl App {
    fn control(&self) -> &Control {
        &self.0.control
    }

    /// Refuses a group that the journal does not have.
    fn known(&self, group: &Group) -> Result<(), Problem> {
        let journal = &self.control().journal;
        match journal.with_state(|state| state.groups.contains_key(group)) {
            true => Ok(()),
            false => Err(Problem::unknown_group(journal, group)),
        }
    }

    /// The group's present state.
    fn state(&self, group: &Group) -> Result<GroupState, Problem> {
        let journal = &self.control().journal;
        journal.group(group).ok_or_else(|| Problem::unknown_group(journal, group))
    }

    /// Runs a call that may wait for the broker; only so many at once.
    async fn with_broker<T: Send + 'static, E: Into<Problem> + Send + 'static>(
        &self,
        call: impl FnOnce(&Control) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Problem> {
        let Ok(place) = Arc::clone(&self.0.broker_calls).try_acquire_owned() else {
            let limit = super::BROKER_CALLS;
            let detail = format!("{limit} starts and rollbacks wait for the broker, the limit; try again later");
            return Err(Problem::new(Kind::TooManyRequests, detail).with("limit", limit));
        };
        let control = self.control().clone();
        blocking(move || {
            let _place = place;
            call(&control).map_err(Into::into)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt as _;

    use super::*;
    use crate::control::fake::World;

    #[tokio::test]
    async fn a_mistake_of_ours_is_told_with_the_requests_id_and_the_next_request_works() {
        let app = App::new(World::new().control, None);
        async fn breaks() -> Answer {
            panic!("a mistake of the test's")
        }
        let broken = Router::new().route("/broken", get(breaks));
        let router = shielded(broken.route("/healthz", get(health::healthz)), Guard::trusted()).with_state(app);
        let call = |path: &str| router.clone().oneshot(Request::get(path).body(Body::empty()).unwrap());

        let response = call("/broken").await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&body["type"], &body["request_id"]), (&"/problems/internal".into(), &id.into()));
        assert!(!body.to_string().contains("of the test's"), "what is logged is not sent: {body}");
        assert_eq!(call("/healthz").await.unwrap().status(), StatusCode::OK);
    }
}
