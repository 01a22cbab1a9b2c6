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
use crate::journal::Journal;
use crate::server::{App, Guard, router};

/// An open journal with the API over it; closed when dropped.
pub struct Here {
    app: App,
    runtime: Runtime,
    journal: Journal,
}

impl Here {
    pub(super) fn over(journal: Journal, broker: Option<Arc<dyn Broker>>, needs: &Needs<'_>) -> Result<Here, Failure> {
        let mut control = opening::control(journal.clone(), broker);
        control.limits = needs.limits;
        let brokers = needs.kafka.map(KafkaArgs::brokers).transpose()?.flatten();
        Ok(Here { app: App::new(control, brokers), runtime: Runtime::new()?, journal })
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
        // What was done is durable already; what closing tidies up is nothing that was asked for.
        opening::close(self.journal.clone());
    }
}
