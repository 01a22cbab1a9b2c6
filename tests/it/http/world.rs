//! A server in this process: a journal in a temporary directory, a clock that can be set, and no broker, a scripted one,
//! or any other.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, Response};
use serde_json::Value;
use tidelog::broker::Broker;
use tidelog::control::{Control, Limits, Mirror};
use tidelog::journal::{Clock, Durability, Journal, Options};
use tidelog::offset::{Group, Timestamp};
use tidelog::positions::State;
use tidelog::server::{App, Guard, router};
use tower::ServiceExt as _;

use crate::script::broker::ScriptedBroker;
use crate::script::words::Words;

/// Where the clock begins.
pub const BEGIN: &str = "2026-11-30T09:00:00Z";

/// A journal, served.
pub struct World {
    pub app: App,
    pub control: Control,
    /// Where a script changes what the broker says; nobody asks it unless the world was made with it.
    pub scripted: Arc<ScriptedBroker>,
    millis: Arc<AtomicI64>,
    router: Router,
    dir: tempfile::TempDir,
}

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {} {text}", self.status))
    }

    /// A header's text; nothing if it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("ASCII"))
    }

    /// The last word of a problem's type; nothing if this is no problem.
    pub fn problem(&self) -> String {
        if self.header("content-type") != "application/problem+json" {
            return String::new();
        }
        let kind = self.json()["type"].as_str().expect("a text").to_owned();
        kind.strip_prefix("/problems/").expect("a problem's address").to_owned()
    }
}

impl World {
    /// Without a broker.
    pub fn alone() -> World {
        World::over(|_| None)
    }

    /// With a broker that says what a script says.
    pub fn scripted() -> World {
        World::over(|scripted| Some(scripted))
    }

    /// With whatever broker `choose` makes.
    pub fn over(choose: impl FnOnce(Arc<ScriptedBroker>) -> Option<Arc<dyn Broker>>) -> World {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let begin: Timestamp = BEGIN.parse().expect("a time");
        let millis = Arc::new(AtomicI64::new(begin.millis()));
        let told = Arc::clone(&millis);
        let clock: Clock = Arc::new(move || Timestamp::from_millis(told.load(Ordering::Relaxed)));
        let mut options = Options::new(Arc::clone(&clock));
        (options.create, options.durability) = (true, Durability::Process);
        options.segment_bytes = 64 << 10;
        let journal = Journal::open(&dir.path().join("journal"), options).expect("the journal opens");
        let scripted = Arc::new(ScriptedBroker::default());
        let broker = choose(Arc::clone(&scripted));
        let limits = Limits { deadline: Duration::from_millis(250), second_look: Duration::ZERO };
        let control = Control { journal, broker, limits, clock, mirror: Mirror::default() };
        let app = App::new(control.clone(), control.broker.as_ref().map(|_| "fake:9092".to_owned()));
        let router = router(app.clone(), Guard::trusted());
        World { app, control, scripted, millis, router, dir }
    }

    pub fn journal(&self) -> &Journal {
        &self.control.journal
    }

    /// The journal's directory.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("journal")
    }

    /// The whole state of the journal.
    pub fn state(&self) -> State {
        self.journal().with_state(State::clone)
    }

    /// Sends a request, with a body of JSON where `body` is not empty.
    pub async fn ask(&self, method: &str, target: &str, body: &str) -> Answer {
        let body = match target.split('?').next().is_some_and(|path| path.ends_with("/rollback")) {
            true => self.planned(target, body).await,
            false => body.to_owned(),
        };
        self.send(request(method, target, &body)).await
    }

    /// The body of an execution with the id of its plan, as an operator asks for that first; left as it is where it names
    /// one, or can't be planned.
    async fn planned(&self, target: &str, body: &str) -> String {
        let Ok(Value::Object(mut order)) = serde_json::from_str::<Value>(body) else { return body.to_owned() };
        if order.contains_key("plan") {
            return body.to_owned();
        }
        let mut plan = order.clone();
        plan.retain(|name, _| name != "actor" && name != "reason");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let answer =
            self.send(request("POST", &format!("{path}/plan?{query}"), &Value::Object(plan).to_string())).await;
        let id = if answer.status == 200 { answer.json()["plan"].clone() } else { "p-none".into() };
        order.insert("plan".to_owned(), id);
        Value::Object(order).to_string()
    }

    /// Sends a request as it is; the body of its answer is still to be read.
    pub async fn open(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.expect("a router answers all")
    }

    /// Sends a request as it is.
    pub async fn send(&self, request: Request<Body>) -> Answer {
        let (parts, body) = self.open(request).await.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body in memory");
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub async fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, "").await
    }

    /// Sends a request that must be answered with this status; its JSON.
    pub async fn want(&self, status: u16, method: &str, target: &str, body: &str) -> Value {
        let answer = self.ask(method, target, body).await;
        let text = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status, status, "{method} {target} {body}: {text}");
        answer.json()
    }

    /// Changes the world, by a line of a script: `clock +1h`, `hold g why`, or what a scripted broker says.
    pub fn change(&self, line: &str) {
        let words = Words::split(line);
        let group = || Group::new(Group::DEFAULT_APP, words.text(1)).expect("a name");
        match words.first() {
            "broker" => self.scripted.say(&words),
            "cluster" => self.scripted.cluster(words.text(1)),
            "times" => self.scripted.times(&words),
            "kafka" => self.scripted.kafka(&words),
            "members" => self.scripted.members(&words),
            "refuses" => self.scripted.refuses(&words),
            "readable" => self.scripted.readable(&words),
            "clock" => {
                let now = self.millis.load(Ordering::Relaxed);
                self.millis.store(crate::script::words::moved(now, words.text(1)), Ordering::Relaxed);
            }
            "hold" => drop(tidelog::control::hold(&self.control, &group(), "ann", words.text(2)).expect("a hold")),
            "release" => drop(tidelog::control::release(&self.control, &group(), "ann").expect("a release")),
            "retire" => {
                let topic = words.get(2).map(|topic| topic.parse().expect("a topic"));
                drop(tidelog::control::retire(&self.control, &group(), topic.as_ref(), "ann").expect("a retirement"));
            }
            "acknowledge" => {
                let seq = words.text(1).parse().expect("a seq");
                drop(tidelog::control::acknowledge(&self.control, seq, "ann").expect("an acknowledgement"));
            }
            "seal" => self.journal().seal().expect("a seal"),
            other => panic!("no change {other}"),
        }
    }
}

fn request(method: &str, target: &str, body: &str) -> Request<Body> {
    let request = Request::builder().method(Method::from_bytes(method.as_bytes()).expect("a method")).uri(target);
    request.body(Body::from(body.to_owned())).expect("a request")
}
