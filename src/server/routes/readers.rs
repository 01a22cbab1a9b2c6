//! `GET /v1/topics/{t}/partitions/{p}/offsets/{o}`

use axum::extract::State;
use axum::http::StatusCode;

use super::{Answer, blocking, json};
use crate::history::{self, OffsetQuery};
use crate::journal::Journal;
use crate::offset::{Group, Seq, TopicName, free_name};
use crate::server::ask::{Ask, read_partition};
use crate::server::{App, Kind, Problem};
use crate::wire::{Reader, ReadersAnswer};

/// The batches, of all groups, that read an offset.
pub async fn list(State(app): State<App>, mut ask: Ask) -> Answer {
    let topic = ask.part::<TopicName>("topic")?;
    let partition = read_partition(ask.name("partition"))?;
    let offset = ask.part("offset")?;
    let (of_app, of_group) = (ask.text("app"), ask.text("group"));
    for (what, name) in [("app", &of_app), ("group", &of_group)] {
        name.as_deref().map_or(Ok(()), |name| free_name(what, name))?;
    }
    let query = OffsetQuery { topic, partition, offset, order: ask.order()?, limit: ask.limit()? };
    let after = ask.cursor::<Seq>()?;
    ask.no_more()?;
    let journal = app.control().journal.clone();
    let groups = groups(&journal, &query.topic, of_app.as_deref(), of_group.as_deref())?;
    blocking(move || {
        let page = history::readers(&journal, groups, &query, after)?;
        let readers = page.readers.into_iter().map(|(group, reading)| Reader::new(&group, reading)).collect();
        json(StatusCode::OK, &ReadersAnswer { readers, next: page.next.map(|next| next.to_string()) })
    })
    .await
}

/// The groups that have, or had, the topic.
///
/// # Errors
///
/// Nobody has; or no group has that name.
fn groups(journal: &Journal, topic: &TopicName, app: Option<&str>, name: Option<&str>) -> Result<Vec<Group>, Problem> {
    journal.with_state(|state| {
        let wanted =
            |group: &&Group| app.is_none_or(|app| app == group.app()) && name.is_none_or(|name| name == group.group());
        // A topic that a group has had stays in its positions, also when it is retired or made again.
        let having = state.groups.iter().filter(|(_, state)| state.positions.topics.contains_key(topic));
        let having: Vec<&Group> = having.map(|(group, _)| group).collect();
        if having.is_empty() {
            let detail =
                format!("no group of this journal has, or had, topic {topic}; GET /v1/groups lists their topics");
            return Err(Problem::new(Kind::UnknownTopic, detail).with("topic", topic));
        }
        if let Some(name) = name
            && !state.groups.keys().any(|group| wanted(&group))
        {
            let of_app = app.map_or_else(String::new, |app| format!(" of app {app}"));
            let apps = state.groups.keys().filter(|group| group.group() == name).map(Group::app);
            let detail = format!("no group {name}{of_app} in this journal");
            return Err(Problem::new(Kind::UnknownGroup, detail).with("apps", apps.collect::<Vec<_>>()));
        }
        Ok(having.into_iter().filter(wanted).cloned().collect())
    })
}
