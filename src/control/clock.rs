//! Whether times can be relied on.

use crate::entry::Entry;
use crate::journal::{Clock, Journal, ReadError};
use crate::offset::Seq;

/// Past this the journal's clock and the machine's are said to differ.
const TOLERANCE_MS: u64 = 60_000;

/// Whether times are not to be relied on: at the journal's newest entry, or at entry `moment`, the journal's clock stood
/// over a minute off the machine's, or the machine's has been set back by so much since.
pub fn clock_uncertain(journal: &Journal, clock: &Clock, moment: Option<Seq>) -> Result<bool, ReadError> {
    let newest = journal.with_state(|state| state.seq);
    let Some(newest) = journal.entry(newest)? else { return Ok(false) };
    let then = match moment {
        Some(seq) => journal.entry(seq)?,
        None => None,
    };
    let apart = |entry: &Entry| entry.recorded_at.millis().abs_diff(entry.machine_clock.millis()) > TOLERANCE_MS;
    let set_back = newest.recorded_at.millis().saturating_sub(clock().millis());
    let set_back = u64::try_from(set_back).is_ok_and(|set_back| set_back > TOLERANCE_MS);
    Ok(set_back || apart(&newest) || then.as_ref().is_some_and(apart))
}
