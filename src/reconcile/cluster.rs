//! Verdict 1: is this the cluster that the group's positions belong to?

use crate::broker::Seen;
use crate::entry::{Finding, Verdict};
use crate::reconcile::Why;
use crate::reconcile::ruling::Ruling;

impl Ruling<'_> {
    /// Whether topics can be judged at all. A cluster's id learned for a group without one is adopted; one that the
    /// operator accepted makes every topic another incarnation.
    pub(super) fn judge_cluster(&mut self) -> bool {
        let known = self.question.state.and_then(|state| state.cluster_id.as_ref());
        let look = &self.question.observed.look;
        match (known, &look.cluster_id) {
            (_, Seen::Failed(error)) => {
                self.unsettle(None, None, Why::Unknown(format!("the cluster's id: {error}")));
                return false;
            }
            (Some(known), Seen::Absent) => {
                let why = format!("{} gave no cluster id, and the group belongs to {known}", look.brokers);
                self.unsettle(None, None, Why::Unknown(why));
                return false;
            }
            (None, Seen::Absent) => {}
            (None, Seen::Known(id)) => self.reconciled.correction.cluster_id = Some(id.clone()),
            (Some(known), Seen::Known(id)) if known == id => {}
            (Some(known), Seen::Known(id)) if self.question.policy.accept_cluster.as_ref() == Some(id) => {
                self.reconciled.correction.cluster_id = Some(id.clone());
                self.accepted = Some(format!("cluster {id}, was {known}; accepted"));
            }
            (Some(known), Seen::Known(id)) => {
                let detail = format!(
                    "the group belongs to cluster {known}, but {} is cluster {id}; \
                     to move the group there accept it by that id",
                    look.brokers
                );
                self.refuse(Finding { detail: Some(detail), ..finding(Verdict::OtherCluster) });
                return false;
            }
        }
        true
    }
}

/// A finding about everything, without values yet.
pub(super) fn finding(verdict: Verdict) -> Finding {
    Finding {
        topic: None,
        partition: None,
        verdict,
        position: None,
        earliest: None,
        latest: None,
        start: None,
        loss: None,
        detail: None,
    }
}
