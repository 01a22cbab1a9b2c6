//! The API within this process, over a journal that nobody else holds.

use std::fmt::Display;
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Bytes;
use tower::ServiceExt;

use super::{Ask, Needs, Runtime};
use crate::broker::Broker;
use crate::cli::exit::Failure;
use crate::cli::kafka::KafkaArgs;
use crate::cli::opening;
use crate::control::Control;
use crate::journal::Journal;
use crate::offset::Seq;
use crate::server::{App, Guard, router};

/// An open journal with the API over it; closed when dropped.
pub struct Here {
    app: App,
    runtime: Runtime,
    control: Control,
    /// The newest entry when it was opened.
    since: Seq,
}

impl Here {
    pub(super) fn over(journal: Journal, broker: Option<Arc<dyn Broker>>, needs: &Needs<'_>) -> Result<Here, Failure> {
        let mut control = opening::control(journal, broker);
        control.limits = needs.limits;
        let since = control.journal.with_state(|state| state.seq);
        let brokers = needs.kafka.map(KafkaArgs::brokers).transpose()?.flatten();
        Ok(Here { app: App::new(control.clone(), brokers), runtime: Runtime::new()?, control, since })
    }

    pub(super) fn ask(&self, ask: Ask) -> Result<(StatusCode, Bytes), Failure> {
        let broken = |why: &dyn Display| Failure::Broken(format!("a request within this process: {why}"));
        let request = ask.request("").map_err(|error| broken(&error))?;
        self.runtime.block_on(async {
            let Ok(response) = router(self.app.clone(), Guard::trusted()).oneshot(request).await;
            let status = response.status();
            let body = response.into_body().collect().await.map_err(|error| broken(&error))?;
            Ok((status, body.to_bytes()))
        })
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        // Kafka's committed offsets follow what was done. That is durable already; what closing tidies up is nothing that was asked for.
        self.control.mirror.catch_up(&self.control, self.since);
        opening::close(self.control.journal.clone());
    }
}
