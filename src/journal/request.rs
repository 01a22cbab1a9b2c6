//! What the writer thread is asked to do, and how the one who asked is told.

use std::sync::mpsc::SyncSender;

use super::{DecideError, WriteError};
use crate::entry::{Draft, Entry};
use crate::positions::State;

/// A message to the writer.
pub enum Request {
    /// To decide on the pending state, and append.
    Decide(Box<dyn Decide>),
    /// To move all that the log holds into the store; answered when that is done.
    Seal(SyncSender<Result<(), WriteError>>),
    /// The sealing thread has sealed something, or failed.
    Sealed,
    /// To end, with all durable.
    Stop,
}

/// A decision and its answer, of any type.
pub trait Decide: Send {
    /// Runs the decision: what is to be appended, all or none of it.
    fn decide(&mut self, pending: &State) -> Vec<Draft>;

    /// The results that are written with what it appends, which then is one batch; mostly nothing.
    fn results(&self) -> &[u8];

    /// Told when what was appended is published, as entries, or when it can't be. Told also after a decision that
    /// appended nothing: by then all that it was made on is published.
    fn answer(self: Box<Self>, appended: Result<Vec<Entry>, WriteError>);
}

/// What a decision over `T` and `E` comes to.
pub type Decided<T, E> = Result<(Vec<Entry>, T), DecideError<E>>;

/// A decision `F` whose outcome is told to `R`.
pub struct Decision<F, R, T, E> {
    // None once it has run.
    decision: Option<F>,
    outcome: Option<Result<T, E>>,
    results: Vec<u8>,
    reply: R,
}

impl<F, R, T, E> Decision<F, R, T, E>
where
    F: FnOnce(&State) -> Result<(Vec<Draft>, T), E> + Send + 'static,
    R: FnOnce(Decided<T, E>) + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    /// A request that runs `decision` and tells `reply`. Neither may call the journal: it would wait for itself. `results`
    /// are those of the batch that it appends ([`puts`](super::codec::puts)).
    pub fn request(decision: F, results: Vec<u8>, reply: R) -> Request {
        Request::Decide(Box::new(Decision { decision: Some(decision), outcome: None, results, reply }))
    }
}

impl<F, R, T, E> Decide for Decision<F, R, T, E>
where
    F: FnOnce(&State) -> Result<(Vec<Draft>, T), E> + Send,
    R: FnOnce(Decided<T, E>) + Send,
    T: Send,
    E: Send,
{
    fn decide(&mut self, pending: &State) -> Vec<Draft> {
        let Some(decision) = self.decision.take() else { return Vec::new() };
        match decision(pending) {
            Ok((drafts, value)) => {
                self.outcome = Some(Ok(value));
                drafts
            }
            Err(refused) => {
                self.outcome = Some(Err(refused));
                Vec::new()
            }
        }
    }

    fn results(&self) -> &[u8] {
        &self.results
    }

    fn answer(self: Box<Self>, appended: Result<Vec<Entry>, WriteError>) {
        let reply = self.reply;
        match (appended, self.outcome) {
            (Err(error), _) => reply(Err(DecideError::Unavailable(error))),
            (Ok(entries), Some(Ok(value))) => reply(Ok((entries, value))),
            (Ok(_), Some(Err(refused))) => reply(Err(DecideError::Refused(refused))),
            // It panicked: the one who asked sees that nobody will answer.
            (Ok(_), None) => {}
        }
    }
}
