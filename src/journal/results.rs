//! What a group's results are, now and as of a batch ([`results`](crate::results)).

use std::ops::ControlFlow;

use super::{Journal, ResultsError};
use crate::offset::{BatchNumber, Group, Invalid, Seq};
use crate::results::Page;

/// Results of one page.
pub const MAX_PAGE: usize = 10_000;
/// Bytes of the values of a page: past it the page ends.
const MAX_PAGE_BYTES: usize = 16 << 20;
/// Keys that one page looks at: many may be removed, or not there yet as of the batch.
const MAX_WALK: usize = 100_000;

impl Journal {
    /// The group's result under `key`; none if there is none, or it was removed.
    ///
    /// It is what the group's newest batch that speaks of the key says, whether the group was moved back since or not:
    /// moving a group changes no result, replaying does.
    ///
    /// # Errors
    ///
    /// The group is unknown, or the journal damaged.
    pub fn result(&self, group: &Group, key: &[u8]) -> Result<Option<Vec<u8>>, ResultsError> {
        let upto = self.results_upto(group, None)?;
        Ok(self.0.published.result(group, key, upto)?)
    }

    /// The same as it was right after `batch` was recorded: what the newest batch recorded by then said.
    ///
    /// # Errors
    ///
    /// The group or the batch is unknown, or the journal damaged.
    pub fn result_as_of(&self, group: &Group, key: &[u8], batch: BatchNumber) -> Result<Option<Vec<u8>>, ResultsError> {
        let upto = self.results_upto(group, Some(batch))?;
        Ok(self.0.published.result(group, key, upto)?)
    }

    /// The group's results from key `from` on, in the order of their keys, at most `limit`: now, or as of a batch. A page
    /// is of one moment; it ends early, with the key to go on from, past 16 MiB of values and after 100,000 keys that
    /// hold nothing.
    ///
    /// # Errors
    ///
    /// The group or the batch is unknown, the limit not in 1 to [`MAX_PAGE`], or the journal damaged.
    pub fn results(
        &self,
        group: &Group,
        from: &[u8],
        as_of: Option<BatchNumber>,
        limit: usize,
    ) -> Result<Page, ResultsError> {
        if !(1..=MAX_PAGE).contains(&limit) {
            return Err(Invalid::new("limit", limit, format!("a page has 1 to {MAX_PAGE} results")).into());
        }
        let published = &self.0.published;
        let upto = self.results_upto(group, as_of)?;
        let (mut page, mut bytes, mut walked) = (Page::default(), 0, 0);
        published.visit_results(group, from, upto, &mut |key, value| {
            if page.results.len() == limit || bytes >= MAX_PAGE_BYTES || walked == MAX_WALK {
                page.next = Some(key);
                return ControlFlow::Break(());
            }
            walked += 1;
            if let Some(value) = value {
                bytes += value.len();
                page.results.push((key, value));
            }
            ControlFlow::Continue(())
        })?;
        Ok(page)
    }

    /// The entry up to which results count.
    fn results_upto(&self, group: &Group, as_of: Option<BatchNumber>) -> Result<Seq, ResultsError> {
        let known = self.with_state(|state| Some((state.seq, state.groups.get(group)?.positions.batch)));
        let Some((seq, newest)) = known else { return Err(ResultsError::UnknownGroup { group: group.clone() }) };
        let Some(batch) = as_of else { return Ok(seq) };
        match self.batch(group, batch)? {
            Some(entry) => Ok(entry.seq),
            None => Err(ResultsError::UnknownBatch { group: group.clone(), batch, newest }),
        }
    }
}
