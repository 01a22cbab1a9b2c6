//! What Kafka is told, and when, by a broker that says what it is told.

mod elsewhere;

use std::collections::BTreeSet;

use super::*;
use crate::broker::{Member, Seen, Untold};
use crate::control::fake::World;
use crate::control::{
    ExecuteError, Import, SetError, StartError, StartRequest, execute, import, plan, retire, set_kafka, start,
};
use crate::entry::Verdict;
use crate::reconcile::Policy;
use crate::rollback::{PlanRequest, Target};

/// A group with `t` at 100, started by A, which Kafka group `g` follows.
fn world() -> World {
    let world = World::new();
    world.start("t", 0);
    begin(&world, world.group.clone(), None).unwrap();
    world.commit_to("t", 100);
    world
}

fn begin(world: &World, group: Group, kafka_group: Option<&str>) -> Result<crate::control::Started, StartError> {
    let request = StartRequest {
        group,
        topics: vec!["t".parse().unwrap()],
        owner: "A".to_owned(),
        policy: Policy::default(),
        isolation: None,
        kafka_group: kafka_group.map(|name| name.parse().unwrap()),
        dry_run: false,
    };
    start(&world.control, request)
}

fn to(world: &World, offset: u64) -> PlanRequest {
    let target = Target::Offset(Offset::try_from(offset).unwrap());
    PlanRequest { kafka: true, ..PlanRequest::new(world.group.clone(), target) }
}

fn follow(world: &World) -> bool {
    let mirror = &world.control.mirror;
    let now = Instant::now();
    lock(&mirror.follower(&world.group).turn).aside.values_mut().for_each(|(when, _)| *when = now);
    mirror.follow(&world.control, &*world.broker, &world.group).is_ok()
}

fn writes(world: &World) -> Vec<Vec<u64>> {
    std::mem::take(&mut world.broker.kafka.lock().unwrap().writes)
}

fn member() -> Result<Vec<Member>, Untold> {
    let named = |name: &str| name.to_owned();
    Ok(vec![Member { member_id: named("m-1"), client_id: named("c"), host: named("/h") }])
}

#[test]
fn kafka_is_told_all_positions_once_then_what_changes() {
    let world = world();
    world.start("u", 7);
    assert!(follow(&world));
    assert_eq!(writes(&world), [[100, 7]]);
    assert!(follow(&world));
    assert!(writes(&world).is_empty(), "nothing has changed");
    world.commit_to("t", 150);
    assert!(follow(&world));
    assert_eq!(writes(&world), [[150]]);
    retire(&world.control, &world.group, Some(&"u".parse().unwrap()), "ann").unwrap();
    world.commit_to("t", 160);
    assert!(follow(&world));
    assert_eq!(writes(&world), [[160]]);
}

#[test]
fn a_rollback_while_a_commit_is_told_is_told_after_it() {
    let world = world();
    let (control, request) = (world.control.clone(), PlanRequest { kafka: false, ..to(&world, 40) });
    let rolled_back = move || drop(execute(&control, request, None, "ann", "why").unwrap());
    world.broker.kafka.lock().unwrap().during = Some(Box::new(rolled_back));
    assert!(follow(&world));
    assert_eq!(writes(&world), [[100], [40]]);
    assert_eq!(world.broker.held("t"), Some(40));
}

fn refuse(world: &World, topics: &[&str]) {
    let topics: BTreeSet<_> = topics.iter().map(|name| name.parse().unwrap()).collect();
    world.broker.kafka.lock().unwrap().refuses = topics;
}

fn follow_in_time(world: &World) -> bool {
    world.control.mirror.follow(&world.control, &*world.broker, &world.group).is_ok()
}

#[test]
fn what_kafka_refuses_is_told_again_and_fails_no_commit() {
    let world = world();
    world.start("u", 7);
    refuse(&world, &["t", "u"]);
    assert!(!follow(&world));
    let status = world.control.mirror.status(&world.group);
    assert_eq!((status.error.as_deref(), status.failures), (Some("t/0: unknown member, u/0: unknown member"), 1));
    // Not before the pause is over, whatever is committed.
    world.commit_to("t", 110);
    assert!(!follow_in_time(&world));
    assert_eq!(writes(&world), [[100, 7]]);
    refuse(&world, &[]);
    assert!(follow(&world));
    assert_eq!(writes(&world), [[110, 7]]);
    let status = world.control.mirror.status(&world.group);
    assert_eq!((status.error, status.failures), (None, 1));
    assert!(status.written_at.is_some());
}

/// As of a topic that is gone: the others follow at once.
#[test]
fn a_partition_that_kafka_always_refuses_holds_nothing_else_up() {
    let world = world();
    world.start("u", 7);
    refuse(&world, &["u"]);
    assert!(!follow_in_time(&world));
    for until in [110, 120, 130] {
        world.commit_to("t", until);
        assert!(!follow_in_time(&world), "u is still to be told");
        assert_eq!(world.broker.held("t"), Some(until));
    }
    assert_eq!(writes(&world), [vec![100, 7], vec![110], vec![120], vec![130]]);
    let is_pending = || {
        let state = world.control.journal.group(&world.group).unwrap();
        world.control.mirror.is_pending(&world.group, &state)
    };
    assert!(!is_pending(), "what Kafka takes it was told");
    assert_eq!(world.control.mirror.status(&world.group).error.as_deref(), Some("u/0: unknown member"));
    // A mark is nothing to tell, and no reason to be behind; what an operator lets go is not waited for.
    crate::control::mark(&world.control, &world.group, "m", "ann").unwrap();
    assert!(is_pending() && !follow_in_time(&world));
    retire(&world.control, &world.group, Some(&"u".parse().unwrap()), "ann").unwrap();
    assert!(follow_in_time(&world) && !is_pending());
    assert_eq!((world.broker.held("u"), world.control.mirror.status(&world.group).error), (None, None));
    crate::control::mark(&world.control, &world.group, "m", "ann").unwrap();
    assert!(follow_in_time(&world) && !is_pending() && writes(&world).is_empty());
}

/// What Kafka holds may be all that is known of the consumer that the group is to replace.
#[test]
fn kafka_is_told_nothing_before_the_first_commit_or_rollback() {
    let world = World::new();
    world.start("t", 0);
    begin(&world, world.group.clone(), None).unwrap();
    assert!(follow(&world) && writes(&world).is_empty());
    execute(&world.control, PlanRequest { kafka: false, ..to(&world, 40) }, None, "ann", "why").unwrap();
    assert!(follow(&world));
    assert_eq!(writes(&world), [[40]]);
}

#[test]
fn a_new_group_is_told_where_kafka_stands() {
    let world = World::new();
    world.start("t", 0);
    let new = Group::new("default", "new").unwrap();
    let at = TopicPartition::new("t".parse().unwrap(), 0);
    let held = Offset::try_from(700).unwrap();
    world.broker.kafka.lock().unwrap().committed.insert(("new".to_owned(), at), held);
    let started = begin(&world, new, None).unwrap();
    assert_eq!(started.positions[0].offset.as_u64(), 0);
    let [finding] = &started.findings[..] else { panic!("{:?}", started.findings) };
    assert_eq!(finding.verdict, Verdict::BehindKafka);
    assert!(finding.detail.as_ref().is_some_and(|detail| detail.contains("--new-group kafka")), "{finding:?}");
}

/// By a process that had no broker, or was killed before it told Kafka.
#[test]
fn a_rollback_that_nobody_has_picked_up_is_told_by_the_next_process() {
    let world = world();
    assert!(follow(&world));
    execute(&world.control, PlanRequest { kafka: false, ..to(&world, 40) }, None, "ann", "why").unwrap();
    let next = Control { mirror: Mirror::default(), ..world.control.clone() };
    drop(next.mirror.keep(&next));
    assert_eq!(world.broker.held("t"), Some(40));
    // What another program has committed meanwhile is not touched once it was picked up.
    begin(&world, world.group.clone(), None).unwrap();
    let held = Offset::try_from(77).unwrap();
    let at = TopicPartition::new("t".parse().unwrap(), 0);
    world.broker.kafka.lock().unwrap().committed.insert(("g".to_owned(), at), held);
    let next = Control { mirror: Mirror::default(), ..world.control.clone() };
    drop(next.mirror.keep(&next));
    assert_eq!(world.broker.held("t"), Some(77));
}

#[test]
fn a_retired_groups_rollback_is_not_repeated_into_anothers_kafka_group() {
    let world = world();
    let done = execute(&world.control, to(&world, 40), None, "ann", "why").unwrap();
    retire(&world.control, &world.group, None, "ann").unwrap();
    let error = set_kafka(&world.control, done.seq.unwrap()).unwrap_err().to_string();
    assert!(error.contains("retired"), "{error}");
}

#[test]
fn kafka_is_set_also_where_nothing_moves_which_is_no_news_to_the_journal() {
    let world = world();
    let planned = plan(&world.control, to(&world, 100)).unwrap();
    assert!(planned.executable() && planned.nothing_to_do, "{planned:?}");
    let before = world.control.journal.with_state(|state| state.seq);
    let done = execute(&world.control, to(&world, 100), Some(&planned.id), "ann", "why").unwrap();
    assert!(done.kafka.is_some_and(|set| set.is_done()));
    assert_eq!((world.broker.held("t"), world.control.journal.with_state(|state| state.seq)), (Some(100), before));
}

#[test]
fn a_group_follows_its_own_name_or_the_one_that_a_start_gives_or_none() {
    let world = world();
    let named = |group: &Group| world.control.journal.group(group).unwrap().kafka_group;
    assert_eq!(named(&world.group).as_deref(), Some("g"));
    let other = Group::new("app", "h").unwrap();
    begin(&world, other.clone(), None).unwrap();
    assert_eq!(named(&other), None, "names of another app are not Kafka's");
    let epoch = world.control.journal.group(&other).unwrap().epoch;
    begin(&world, other.clone(), Some("lag-of-h")).unwrap();
    begin(&world, other.clone(), None).unwrap();
    assert_eq!(named(&other).as_deref(), Some("lag-of-h"), "kept by a start that names none");
    assert_eq!(world.control.journal.group(&other).unwrap().epoch, epoch, "the same owner is not fenced by it");
    begin(&world, world.group.clone(), Some("none")).unwrap();
    assert_eq!(named(&world.group), None);
    world.commit_to("t", 120);
    assert!(follow(&world));
    assert!(writes(&world).is_empty());
}

#[test]
fn two_groups_do_not_write_into_one_kafka_group() {
    let world = world();
    let other = Group::new("app", "h").unwrap();
    let seq = || world.control.journal.with_state(|state| state.seq);
    let before = seq();
    let error = begin(&world, other.clone(), Some("g")).unwrap_err().to_string();
    assert!(error.contains("follow group g"), "{error}");
    assert_eq!(seq(), before);
    retire(&world.control, &world.group, None, "ann").unwrap();
    begin(&world, other, Some("g")).unwrap();
    let error = begin(&world, world.group.clone(), None).unwrap_err().to_string();
    assert!(error.contains("another Kafka group, or none"), "{error}");
}

#[test]
fn a_rollback_with_kafka_sets_reads_back_and_journals() {
    let world = world();
    assert!(follow(&world));
    let done = execute(&world.control, to(&world, 40), None, "ann", "why").unwrap();
    let set = done.kafka.clone().unwrap();
    assert!(set.is_done(), "{set:?}");
    assert_eq!((world.broker.held("t"), world.position("t")), (Some(40), 40));
    assert_eq!(set.partitions[0].offset.map(Offset::as_u64), Some(40));
    assert_eq!(set.seq, Some(done.seq.unwrap().next()));
    assert!(follow(&world));
    assert_eq!(writes(&world), [[100], [40], [40]], "the mirror tells it once more");
    assert!(follow(&world) && writes(&world).is_empty());
    // The plan again: the first receipt, with what came of it.
    let id = world.control.journal.group(&world.group).unwrap().plans.back().unwrap().0.clone();
    let again = execute(&world.control, to(&world, 40), Some(&id), "ann", "why").unwrap();
    assert!(again.repeated);
    assert_eq!(again.kafka, done.kafka);
}

#[test]
fn what_kafka_does_not_take_is_said_by_partition_and_can_be_repeated() {
    let world = world();
    world.start("u", 60);
    world.broker.kafka.lock().unwrap().refuses = BTreeSet::from(["u".parse().unwrap()]);
    let done = execute(&world.control, to(&world, 40), None, "ann", "why").unwrap();
    let set = done.kafka.unwrap();
    let errors: Vec<_> = set.partitions.iter().map(|partition| partition.error.as_deref()).collect();
    assert_eq!((errors, set.is_done()), (vec![None, Some("unknown member")], false));
    assert_eq!((world.position("t"), world.position("u")), (40, 40), "the group has moved");
    world.broker.kafka.lock().unwrap().refuses.clear();
    // The group goes on meanwhile: Kafka is not set back behind it.
    world.commit_to("t", 45);
    let again = set_kafka(&world.control, done.seq.unwrap()).unwrap();
    assert!(again.is_done());
    assert_eq!((world.broker.held("t"), world.broker.held("u")), (Some(45), Some(40)));
    assert!(matches!(set_kafka(&world.control, Seq::MAX), Err(SetError::Invalid(_))));
    assert!(matches!(set_kafka(&world.control, Seq::ZERO.next()), Err(SetError::Invalid(_))));
}

/// C03a
#[test]
fn live_members_keep_a_plan_from_being_executed() {
    let world = world();
    let state = || world.control.journal.group(&world.group).unwrap();
    let before = state();
    let refused = Err(Untold::Refused("not authorized".to_owned()));
    for (members, why) in [(member(), "m-1 (client c, host /h)"), (refused.clone(), "not authorized")] {
        world.broker.kafka.lock().unwrap().members = members.clone();
        let planned = plan(&world.control, to(&world, 40)).unwrap();
        assert!(!planned.executable() && planned.why_not().contains(why), "{planned:?}");
        let error = execute(&world.control, to(&world, 40), Some(&planned.id), "ann", "why").unwrap_err();
        assert_eq!(matches!(error, ExecuteError::Active(_)), members.is_ok(), "{error}");
        assert_eq!(matches!(error, ExecuteError::Refused(_)), members.is_err(), "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(state(), before);
    }
    world.broker.kafka.lock().unwrap().members = Ok(Vec::new());
    let done = execute(&world.control, to(&world, 40), None, "ann", "why").unwrap();
    world.broker.kafka.lock().unwrap().members = member();
    assert!(matches!(set_kafka(&world.control, done.seq.unwrap()), Err(SetError::Active { .. })));
    world.broker.kafka.lock().unwrap().members = refused;
    assert!(matches!(set_kafka(&world.control, done.seq.unwrap()), Err(SetError::Unknown { .. })));
}

#[test]
fn a_kafka_group_is_needed_and_a_broker() {
    let world = world();
    let request = PlanRequest { unchecked: true, ..to(&world, 40) };
    assert!(plan(&world.control, request).unwrap_err().to_string().contains("must be asked"));
    let alone = Control { broker: None, ..world.control.clone() };
    assert!(plan(&alone, to(&world, 40)).is_err());
    begin(&world, world.group.clone(), Some("none")).unwrap();
    let error = plan(&world.control, to(&world, 40)).unwrap_err().to_string();
    assert!(error.contains("started with the Kafka group none"), "{error}");
    // Imported, and never started: no start has left it without one.
    let group = Group::new("default", "loader").unwrap();
    let offsets = [(TopicPartition::new("t".parse().unwrap(), 0), Offset::ZERO)].into();
    let import = Import { group: group.clone(), source: "a file".to_owned(), offsets, seen: None };
    import::import(&world.control.journal, import).unwrap();
    let request = PlanRequest { group, ..to(&world, 40) };
    let error = plan(&world.control, request.clone()).unwrap_err().to_string();
    assert!(error.contains("never started, and a start names its Kafka group"), "{error}");
    begin(&world, request.group.clone(), None).unwrap();
    assert!(plan(&world.control, request).unwrap().executable());
}

#[test]
fn an_older_copy_of_the_journal_is_told_from_what_kafka_holds() {
    let world = world();
    let at = TopicPartition::new("t".parse().unwrap(), 0);
    let hold = |offset: u64| {
        let offset = Offset::try_from(offset).unwrap();
        world.broker.kafka.lock().unwrap().committed.insert(("g".to_owned(), at.clone()), offset);
    };
    let behind = || {
        let started = begin(&world, world.group.clone(), None).unwrap();
        assert_eq!(
            started.positions[0].offset,
            Offset::try_from(world.position("t")).unwrap(),
            "nothing is chosen by it"
        );
        started.findings.iter().filter(|finding| finding.verdict == Verdict::BehindKafka).count()
    };
    let newest = |world: &World| world.control.journal.with_state(|state| state.seq);
    hold(100);
    assert_eq!(behind(), 0);
    let seq = newest(&world);
    hold(900);
    assert_eq!(behind(), 1);
    assert_eq!(newest(&world), seq, "it is not journaled");
    // What a rollback has read again does not count, as Kafka may not have been told.
    hold(100);
    execute(&world.control, PlanRequest { kafka: false, ..to(&world, 40) }, None, "ann", "why").unwrap();
    assert_eq!(behind(), 0);
    hold(101);
    assert_eq!(behind(), 1);
    hold(5_000);
    assert_eq!(behind(), 0, "above the log's end it is of another topic");
    // Nor where this process has not told Kafka yet what came since it began.
    hold(900);
    assert_eq!(behind(), 1);
    *lock(&world.control.mirror.0.since) = Some(newest(&world));
    assert_eq!(behind(), 1);
    world.commit_to("t", 120);
    assert_eq!(behind(), 0);
    assert!(follow(&world));
    hold(900);
    assert_eq!(behind(), 1);
}

#[test]
fn what_is_kept_is_told_without_being_asked_and_at_the_end() {
    let world = world();
    let kept = world.control.mirror.keep(&world.control).unwrap();
    let second = world.control.mirror.keep(&world.control).unwrap();
    assert!(writes(&world).is_empty(), "what was there before is left");
    drop(kept);
    world.commit_to("t", 120);
    drop(second);
    assert_eq!(world.broker.held("t"), Some(120), "told at the end, within its bound");
    world.commit_to("t", 130);
    let since = world.control.journal.with_state(|state| state.seq).previous();
    world.control.mirror.catch_up(&world.control, since);
    assert_eq!(world.broker.held("t"), Some(130));
}

/// A broker that is back just before the end: what it refused is not left until another process commits.
#[test]
fn what_was_refused_is_told_at_the_end_without_a_pause() {
    let world = world();
    let kept = world.control.mirror.keep(&world.control).unwrap();
    let refuse = |topics: &[&str]| {
        world.broker.kafka.lock().unwrap().refuses = topics.iter().map(|topic| topic.parse().unwrap()).collect();
    };
    refuse(&["t"]);
    world.commit_to("t", 110);
    // The third refusal has it set aside for four seconds.
    let begun = Instant::now();
    while world.control.mirror.status(&world.group).failures < 3 {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(10));
    }
    refuse(&[]);
    drop(kept);
    assert_eq!(world.broker.held("t"), Some(110));
}

/// It made no entry, so nothing else has the mirror look at the group.
#[test]
fn what_was_set_although_nothing_moved_is_told_once_more() {
    let world = world();
    assert!(follow(&world));
    let kept = world.control.mirror.keep(&world.control).unwrap();
    let set = execute(&world.control, to(&world, 100), None, "ann", "why").unwrap();
    assert!(set.seq.is_none() && set.kafka.is_some_and(|set| set.is_done()));
    drop(kept);
    assert_eq!(writes(&world), [[100], [100], [100]], "followed, set, told once more");
}

#[test]
fn all_is_told_again_where_kafka_may_have_forgotten() {
    let world = world();
    assert!(follow(&world));
    // After a week, whoever told it.
    world.control.mirror.forget();
    assert!(follow(&world));
    assert_eq!(writes(&world), [[100], [100]]);
    // Of a topic that was deleted and made again, even if the number is the same.
    world.broker.recreate("t", 2);
    world.broker.log("t", 100, 1_000);
    begin(&world, world.group.clone(), None).unwrap();
    assert_eq!(world.position("t"), 100);
    assert!(follow(&world));
    assert_eq!(writes(&world), [[100]]);
}
