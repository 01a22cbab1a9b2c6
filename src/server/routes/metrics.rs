//! `GET /metrics`: numbers for charts and alarms, as OpenMetrics text. They are read when they are asked for, so there is
//! nothing to keep in step.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::{Answer, blocking, internal};
use crate::broker::Look;
use crate::journal::FORMAT_VERSION;
use crate::offset::{Group, Offset, Timestamp, TopicName, TopicPartition};
use crate::positions::GroupState;
use crate::server::ask::Ask;
use crate::server::{App, Kind};
use crate::wire::GroupWord;

/// Groups whose numbers are told, by app and name; the rest would make an answer that no scrape reads.
const MAX_GROUPS: usize = 10_000;

/// Why a commit to a group that the journal has can be refused: each is told also while it is 0, as alarms want.
const REFUSALS: [Kind; 6] =
    [Kind::Fenced, Kind::Held, Kind::Invalid, Kind::JournalBehind, Kind::KeyConflict, Kind::TooLarge];

type Labels = Vec<(&'static str, String)>;

/// The numbers of the journal and of each group.
pub async fn metrics(State(app): State<App>, ask: Ask) -> Answer {
    ask.no_more()?;
    let text = blocking(move || {
        let mut registry = Registry::with_prefix("tidelog");
        of_journal(&app, &mut registry);
        Groups::new(&mut registry).fill(&app);
        let mut text = String::new();
        encode(&mut text, &registry).map_err(|error| internal(&error))?;
        Ok(text)
    });
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, kind)], text.await?).into_response())
}

fn of_journal(app: &App, registry: &mut Registry) {
    let journal = &app.control().journal;
    let version = [("version", env!("CARGO_PKG_VERSION").to_owned()), ("journal_format", FORMAT_VERSION.to_string())];
    registry.register("build", "What is running", Info::new(version.to_vec()));
    let mut gauge = |name: &str, help: &str, value: u64| {
        registry.register(name, help, Gauge::<i64>::default().set_to(value));
    };
    gauge("journal_seq", "The newest entry", journal.with_state(|state| state.seq).as_u64());
    gauge("journal_read_only", "1 if an earlier write failed and none is taken", journal.read_only().is_some().into());
    let bytes = Family::<Labels, Gauge>::default();
    for (part, size) in journal.disk_bytes() {
        bytes.get_or_create(&vec![("part", part.to_owned())]).set(i64::try_from(size).unwrap_or(i64::MAX));
    }
    registry.register_with_unit("journal_size", "Files of the journal, by part", Unit::Bytes, bytes);
}

/// A gauge that is told once.
trait SetTo {
    fn set_to(self, value: u64) -> Self;
}

impl SetTo for Gauge<i64> {
    fn set_to(self, value: u64) -> Self {
        self.set(i64::try_from(value).unwrap_or(i64::MAX));
        self
    }
}

/// The numbers that each group has.
struct Groups {
    state: Family<Labels, Gauge>,
    epoch: Family<Labels, Gauge>,
    batches: Family<Labels, Gauge>,
    last_batch: Family<Labels, Gauge<f64, std::sync::atomic::AtomicU64>>,
    partitions: Family<Labels, Gauge>,
    replaying: Family<Labels, Gauge>,
    holes: Family<Labels, Gauge>,
    losses: Family<Labels, Gauge>,
    lag: Family<Labels, Gauge>,
    refused: Family<Labels, Counter>,
    mirror_failures: Family<Labels, Counter>,
}

impl Groups {
    fn new(registry: &mut Registry) -> Self {
        let groups = Groups {
            state: Family::default(),
            epoch: Family::default(),
            batches: Family::default(),
            last_batch: Family::default(),
            partitions: Family::default(),
            replaying: Family::default(),
            holes: Family::default(),
            losses: Family::default(),
            lag: Family::default(),
            refused: Family::default(),
            mirror_failures: Family::default(),
        };
        registry.register("group_state", "1 for the state that the group is in", groups.state.clone());
        registry.register("group_epoch", "The fencing number", groups.epoch.clone());
        registry.register("group_batch", "The newest batch", groups.batches.clone());
        let help = "When the newest batch was recorded";
        registry.register_with_unit("group_last_batch_time", help, Unit::Seconds, groups.last_batch.clone());
        registry.register("group_partitions", "Partitions of topics that are wanted", groups.partitions.clone());
        let help = "Partitions that read again what they had read before a rollback";
        registry.register("group_replaying_partitions", help, groups.replaying.clone());
        registry.register("group_open_holes", "Holes that are open", groups.holes.clone());
        registry.register("group_open_losses", "Losses that nobody has acknowledged", groups.losses.clone());
        let help = "Offsets up to the readable end, where the newest look at the broker knows them of each partition";
        registry.register("group_lag", help, groups.lag.clone());
        let help = "Commits that were refused since the journal was opened, by the problem that they were told";
        registry.register("group_refused_commits", help, groups.refused.clone());
        let help = "Attempts to have Kafka's committed offsets follow that failed";
        registry.register("group_mirror_failures", help, groups.mirror_failures.clone());
        groups
    }

    fn fill(&self, app: &App) {
        let control = app.control();
        let names: Vec<Group> = control.journal.with_state(|state| {
            let wanted = state.groups.iter().filter(|(_, group)| !group.retired);
            wanted.take(MAX_GROUPS).map(|(name, _)| name.clone()).collect()
        });
        for name in names {
            let look = app.0.looks.fresh(&name);
            let now = (control.clock)();
            // Counted where it is: a group is too large to be copied.
            let counted = control.journal.with_state(|state| Some(Counted::new(state.groups.get(&name)?, look, now)));
            if let Some(counted) = counted {
                self.tell(app, &name, &counted);
            }
        }
    }

    fn tell(&self, app: &App, name: &Group, group: &Counted) {
        let labels = vec![("app", name.app().to_owned()), ("group", name.group().to_owned())];
        let set = |family: &Family<Labels, Gauge>, value: u64| {
            family.get_or_create(&labels).set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        let state = [&labels[..], &[("state", group.word.as_str().to_owned())]].concat();
        self.state.get_or_create(&state).set(1);
        set(&self.epoch, group.epoch);
        set(&self.batches, group.batch);
        if let Some(at) = group.last_batch {
            self.last_batch.get_or_create(&labels).set(at.millis() as f64 / 1_000.0);
        }
        set(&self.partitions, group.partitions);
        set(&self.replaying, group.replaying);
        set(&self.holes, group.holes);
        set(&self.losses, group.losses);
        if let Some(lag) = group.lag {
            set(&self.lag, lag);
        }
        let control = app.control();
        let refusals = control.journal.refusals(name);
        for kind in REFUSALS {
            let labels = [&labels[..], &[("problem", kind.name().to_owned())]].concat();
            self.refused.get_or_create(&labels).inc_by(refusals.of(kind.name()));
        }
        if group.has_mirror && control.broker.is_some() {
            self.mirror_failures.get_or_create(&labels).inc_by(control.mirror.status(name).failures);
        }
    }
}

/// The numbers of one group.
struct Counted {
    word: GroupWord,
    epoch: u64,
    batch: u64,
    last_batch: Option<Timestamp>,
    partitions: u64,
    replaying: u64,
    holes: u64,
    losses: u64,
    /// None where it is not known of each partition: a sum that leaves one out would look healthy.
    lag: Option<u64>,
    has_mirror: bool,
}

impl Counted {
    fn new(group: &GroupState, look: Option<Arc<Look>>, now: Timestamp) -> Self {
        let wanted = || group.positions.iter().filter(|(_, topic, _)| !topic.retired);
        let lag = |at: &TopicPartition, position: Offset| {
            let seen = look.as_ref()?.topics.get(&at.topic)?.partitions.known()?.get(&at.partition)?;
            let begin = position.max(*seen.earliest.known()?);
            Some(seen.readable_end.known()?.since(begin))
        };
        let all_lags = || {
            let mut lags = wanted().map(|(at, _, partition)| lag(&at, partition.position));
            lags.try_fold(0_u64, |sum, lag| Some(sum.saturating_add(lag?)))
        };
        let is_wanted = |topic: &TopicName| group.positions.topics.get(topic).is_none_or(|topic| !topic.retired);
        Counted {
            word: GroupWord::of(group, now),
            epoch: group.epoch.as_u64(),
            batch: group.positions.batch.as_u64(),
            last_batch: group.last_batch_recorded_at,
            partitions: wanted().count() as u64,
            replaying: wanted().filter(|(_, _, partition)| partition.replaying_until.is_some()).count() as u64,
            holes: wanted().map(|(_, _, partition)| partition.holes.len() as u64).sum(),
            losses: group.losses.iter().filter(|open| is_wanted(&open.loss.topic)).count() as u64,
            lag: look.is_some().then(all_lags).flatten(),
            has_mirror: group.kafka_group.is_some(),
        }
    }
}
