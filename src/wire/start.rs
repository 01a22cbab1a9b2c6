//! What a start answers.

use serde::Serialize;

use crate::control::Started;
use crate::entry::{Finding, Verdict};
use crate::offset::{Epoch, Group, Offset, Seq, TopicId, TopicName};

/// Where a group starts, and what was found.
#[derive(Debug, Serialize)]
pub struct StartAnswer<'a> {
    /// The group.
    pub group: &'a str,
    /// Its application.
    pub app: &'a str,
    /// The epoch that commits carry.
    pub epoch: Epoch,
    /// The journal's newest entry.
    pub seq: Seq,
    /// The broker's cluster.
    pub cluster_id: Option<&'a str>,
    /// Where each partition starts.
    pub positions: Vec<StartLine<'a>>,
    /// What was not in order.
    pub findings: &'a [Finding],
}

/// Where one partition starts.
#[derive(Debug, Serialize)]
pub struct StartLine<'a> {
    topic: &'a TopicName,
    partition: u32,
    topic_id: Option<TopicId>,
    offset: Offset,
    verdict: Verdict,
    earliest: Option<Offset>,
    latest: Option<Offset>,
    readable_end: Option<Offset>,
    replaying_until: Option<Offset>,
}

impl<'a> StartAnswer<'a> {
    /// The answer for `group`.
    pub fn new(group: &'a Group, started: &'a Started) -> Self {
        let line = |start: &'a crate::reconcile::StartPosition| StartLine {
            topic: &start.at.topic,
            partition: start.at.partition,
            topic_id: start.topic_id,
            offset: start.offset,
            verdict: start.verdict,
            earliest: start.earliest,
            latest: start.latest,
            readable_end: start.readable_end,
            replaying_until: start.replaying_until,
        };
        StartAnswer {
            group: group.group(),
            app: group.app(),
            epoch: started.epoch,
            seq: started.seq,
            cluster_id: started.cluster_id.as_deref(),
            positions: started.positions.iter().map(line).collect(),
            findings: &started.findings,
        }
    }
}
