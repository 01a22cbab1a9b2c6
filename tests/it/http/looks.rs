//! What the server asks the broker by itself takes a bounded number of threads, however the broker hangs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tidelog::broker::{Ask, Broker, Look, Member, Seen, Untold};
use tidelog::offset::{Offset, Timestamp, TopicPartition};

use super::world::World;
use crate::script::broker::ScriptedBroker;

/// Questions about members that may be under way at once.
const AT_ONCE: usize = 4;
/// Threads for what blocks; tokio's own limit is 512.
const THREADS: usize = 16;
/// More groups than threads.
const GROUPS: usize = 40;

/// A broker that says everything but who is in a Kafka group, which hangs until it is let go.
#[derive(Default)]
struct Coordinator {
    inner: Arc<ScriptedBroker>,
    hung: Mutex<Hung>,
    changed: Condvar,
}

#[derive(Default)]
struct Hung {
    now: usize,
    most: usize,
    over: bool,
}

impl Broker for Coordinator {
    fn members(&self, _kafka_group: &str, _deadline: Duration) -> Result<Vec<Member>, Untold> {
        let mut hung = self.hung.lock().expect("no panic");
        hung.now += 1;
        hung.most = hung.most.max(hung.now);
        hung = self.changed.wait_while(hung, |hung| !hung.over).expect("no panic");
        hung.now -= 1;
        Ok(Vec::new())
    }

    fn look(&self, ask: &Ask) -> Look {
        self.inner.look(ask)
    }

    fn offsets_at(
        &self,
        at: &BTreeSet<TopicPartition>,
        time: Timestamp,
        deadline: Duration,
    ) -> BTreeMap<TopicPartition, Seen<Offset>> {
        self.inner.offsets_at(at, time, deadline)
    }

    fn committed(
        &self,
        group: &str,
        at: &BTreeSet<TopicPartition>,
        deadline: Duration,
    ) -> BTreeMap<TopicPartition, Seen<Offset>> {
        self.inner.committed(group, at, deadline)
    }

    fn commit(
        &self,
        group: &str,
        offsets: &BTreeMap<TopicPartition, Offset>,
        deadline: Duration,
    ) -> BTreeMap<TopicPartition, Result<(), String>> {
        self.inner.commit(group, offsets, deadline)
    }

    fn cluster_id(&self, deadline: Duration) -> Seen<String> {
        Broker::cluster_id(&*self.inner, deadline)
    }

    fn brokers(&self) -> &str {
        self.inner.brokers()
    }
}

/// Lets all go that hang, also where the test fails: a runtime waits for its threads.
struct LetGo(Arc<Coordinator>);

impl Drop for LetGo {
    fn drop(&mut self) {
        if let Ok(mut hung) = self.0.hung.lock() {
            hung.over = true;
        }
        self.0.changed.notify_all();
    }
}

#[test]
fn a_coordinator_that_hangs_takes_few_threads_and_holds_no_answer_up() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(THREADS).build().expect("a runtime");
    let coordinator = Arc::new(Coordinator::default());
    let _let_go = LetGo(Arc::clone(&coordinator));
    let world = World::over(|_| Some(Arc::clone(&coordinator) as Arc<dyn Broker>));
    let words = crate::script::words::Words::split("broker orders id=A 0:0..520");
    coordinator.inner.say(&words);
    runtime.block_on(async {
        for group in 0..GROUPS {
            let path = format!("/v1/groups/g{group}");
            let start = async {
                let start = r#"{"topics": ["orders"], "owner": "o"}"#;
                world.want(200, "POST", &format!("{path}/start"), start).await;
                let positions = world.want(200, "GET", &format!("{path}/positions"), "").await;
                assert_eq!(positions["positions"][0]["lag"], "520", "of g{group}: {positions}");
                world.want(200, "GET", &path, "").await;
            };
            let answered = tokio::time::timeout(crate::wait::DEADLINE, start).await;
            assert!(answered.is_ok(), "group {group} is not answered: all threads wait");
        }
    });
    let most = coordinator.hung.lock().expect("no panic").most;
    assert!((1..=AT_ONCE).contains(&most), "{most} questions at once");
}
