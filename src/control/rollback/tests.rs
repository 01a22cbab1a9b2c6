//! Plans and their execution on a journal, with a broker that says what it is told.

use std::sync::atomic::Ordering;

use super::{ExecuteError, Executed, PlanError, execute, plan};
use crate::control::fake::{self, World};
use crate::control::steer;
use crate::offset::{BatchNumber, Offset, Seq, Timestamp};
use crate::rollback::{Edge, Outcome, Plan, PlanRequest, Target, parse_duration};

fn before(batch: u64) -> Target {
    Target::Batch { batch: BatchNumber::try_from(batch).unwrap(), edge: Edge::Before }
}

fn after(batch: u64) -> Target {
    Target::Batch { batch: BatchNumber::try_from(batch).unwrap(), edge: Edge::After }
}

fn offset(number: u64) -> Offset {
    Offset::try_from(number).unwrap()
}

fn run(world: &World, plan: &Plan) -> Result<Executed, ExecuteError> {
    execute(&world.control, plan.execute.clone(), Some(&plan.id), "ann", "the sink lost a day")
}

fn plan_to(world: &World, to: Target) -> Result<Plan, PlanError> {
    plan(&world.control, PlanRequest::new(world.group.clone(), to))
}

/// Three batches, recorded at 10:00, 11:00 and 12:00; the log holds 0..1000.
fn three_batches() -> World {
    let world = World::new();
    world.start("t", 0);
    for (time, until) in [("10:00", 100), ("11:00", 180), ("12:00", 250)] {
        world.at(time);
        world.commit_to("t", until);
    }
    world.at("12:30");
    world
}

#[test]
fn a_consumer_that_goes_on_changes_nothing_in_a_plan() {
    let world = three_batches();
    let shift = plan_to(&world, Target::Shift(-100)).unwrap();
    let latest = plan_to(&world, Target::Latest).unwrap();
    let back = plan_to(&world, before(2)).unwrap();
    for _ in 0..1_000 {
        world.commit_to("t", world.position("t") + 1);
    }
    world.broker.log("t", 0, 5_000);
    for planned in [&shift, &latest, &back] {
        assert_eq!(plan(&world.control, planned.execute.clone()).unwrap().id, planned.id);
    }
    let done = run(&world, &shift).unwrap();
    assert_eq!((done.moves[0].old, done.moves[0].new), (Some(offset(1_250)), Some(offset(150))));
    assert_eq!(world.position("t"), 150);
    // The reply was lost.
    let again = run(&world, &shift).unwrap();
    assert_eq!(again, Executed { repeated: true, ..done });
    // Another rollback in between: the others are out of date, and say what they would be now.
    let Err(ExecuteError::Outdated(now)) = run(&world, &back) else { panic!("an old plan was executed") };
    assert_eq!(now.partitions[0].position, offset(150));
    assert!(run(&world, &now).is_ok());
    let Err(ExecuteError::Outdated(now)) = run(&world, &latest) else { panic!("an old plan was executed") };
    assert_eq!(now.partitions[0].start, offset(1_000));
}

#[test]
fn the_first_receipt_is_given_again_while_the_broker_is_away() {
    let world = three_batches();
    let planned = plan_to(&world, before(2)).unwrap();
    let done = run(&world, &planned).unwrap();
    world.broker.silent();
    world.commit_to("t", 500);
    assert_eq!(run(&world, &planned).unwrap(), Executed { repeated: true, ..done });
    assert_eq!(world.position("t"), 500);
}

#[test]
fn commits_that_come_while_it_is_executed_do_not_make_it_out_of_date() {
    let world = three_batches();
    let planned = plan_to(&world, Target::Shift(-50)).unwrap();
    let epoch = world.epoch();
    std::thread::scope(|scope| {
        let consumer = scope.spawn(|| {
            let mut committed = 0;
            while world.commit_under(epoch, "t", world.position("t") + 1) {
                committed += 1;
            }
            committed
        });
        while world.position("t") < 260 {
            std::thread::yield_now();
        }
        assert_eq!(run(&world, &planned).unwrap().moves[0].new, Some(offset(200)));
        assert!(consumer.join().unwrap() >= 10, "the consumer is fenced, not before");
    });
    assert_eq!(world.position("t"), 200);
}

#[test]
fn a_recreated_topic_makes_a_plan_out_of_date() {
    let world = three_batches();
    let planned = plan_to(&world, after(1)).unwrap();
    world.broker.recreate("t", 2);
    let Err(ExecuteError::Outdated(now)) = run(&world, &planned) else { panic!("an old plan was executed") };
    assert_eq!(now.partitions[0].outcome, Outcome::Recreated);
    assert!(matches!(run(&world, &now), Err(ExecuteError::Refused(_))));
    assert_eq!(world.position("t"), 250);
}

#[test]
fn data_that_expired_makes_a_plan_out_of_date() {
    let world = three_batches();
    let planned = plan_to(&world, after(1)).unwrap();
    world.broker.log("t", 150, 1_000);
    let Err(ExecuteError::Outdated(now)) = run(&world, &planned) else { panic!("an old plan was executed") };
    assert_eq!((now.partitions[0].outcome, now.partitions[0].lost), (Outcome::Expired, 50));
    assert_eq!(world.position("t"), 250);
}

#[test]
fn an_undo_of_a_rewind_that_was_passed_has_nothing_to_do() {
    let world = three_batches();
    run(&world, &plan_to(&world, Target::Offset(offset(50))).unwrap()).unwrap();
    let undo = plan_to(&world, Target::Undo).unwrap();
    assert_eq!(undo.partitions[0].start, offset(250));
    world.commit_to("t", 700);
    let done = run(&world, &undo).unwrap();
    assert_eq!((done.seq, done.repeated), (None, false));
    assert_eq!(world.position("t"), 700);
}

#[test]
fn an_undo_without_a_plan_takes_the_newest_move() {
    let world = three_batches();
    assert!(matches!(plan_to(&world, Target::Undo), Err(PlanError::NothingToUndo { .. })));
    run(&world, &plan_to(&world, Target::Offset(offset(50))).unwrap()).unwrap();
    let request = PlanRequest::new(world.group.clone(), Target::Undo);
    for expected in [250, 50, 250] {
        execute(&world.control, request.clone(), None, "ann", "undo").unwrap();
        assert_eq!(world.position("t"), expected);
    }
}

#[test]
fn a_commit_time_is_the_state_by_then() {
    // C08
    let world = three_batches();
    let by = |time: &str| plan_to(&world, Target::CommitTime(fake::time(time)));
    assert_eq!(by("10:30").unwrap().partitions[0].start, offset(100));
    assert_eq!(by("11:00").unwrap().partitions[0].start, offset(180));
    assert_eq!(by("11:00").unwrap().moment.unwrap().recorded_at, fake::time("11:00"));
    for late in ["12:00", "13:00", "23:59"] {
        let nothing = by(late).unwrap();
        assert!(nothing.nothing_to_do && nothing.executable(), "{late}");
        assert_eq!(run(&world, &nothing).unwrap().seq, None);
    }
    let Err(PlanError::BeforeHistory { oldest: Some(oldest), .. }) = by("09:59") else { panic!("before history") };
    assert_eq!((oldest.recorded_at, oldest.batch), (fake::time("10:00"), BatchNumber::ZERO.next()));
    assert!(by("09:59").unwrap_err().to_string().contains("10:00:00"));
}

#[test]
fn a_time_that_had_nothing_to_do_does_not_move_a_consumer_that_went_on() {
    let world = three_batches();
    let now = plan_to(&world, Target::CommitTime(fake::time("12:30"))).unwrap();
    let future = plan_to(&world, Target::CommitTime(fake::time("23:00"))).unwrap();
    world.at("12:31");
    world.commit_to("t", 300);
    assert_eq!(run(&world, &future).unwrap().seq, None);
    assert!(matches!(run(&world, &now), Err(ExecuteError::Outdated(_))));
    assert_eq!(world.position("t"), 300);
}

#[test]
fn a_mark_is_a_target_and_the_newest_of_its_name_counts() {
    let world = three_batches();
    let unknown = plan_to(&world, Target::Mark("deploy".to_owned()));
    assert!(matches!(unknown, Err(PlanError::UnknownMark { .. })));
    let mark = || steer::mark(&world.control, &world.group, "deploy", "ann").unwrap();
    mark();
    world.commit_to("t", 400);
    let first = plan_to(&world, Target::Mark("deploy".to_owned())).unwrap();
    assert_eq!(first.partitions[0].start, offset(250));
    mark();
    world.commit_to("t", 500);
    assert_eq!(plan_to(&world, Target::Mark("deploy".to_owned())).unwrap().partitions[0].start, offset(400));
    assert!(matches!(run(&world, &first), Err(ExecuteError::Outdated(_))));
}

#[test]
fn record_times_and_durations_are_asked_of_the_broker() {
    let world = three_batches();
    let hours = Target::Duration(parse_duration("PT2H").unwrap());
    world.broker.record_time("10:30", 120);
    for to in [hours, Target::RecordTime(fake::time("10:30"))] {
        let planned = plan_to(&world, to).unwrap();
        assert_eq!(planned.partitions[0].start, offset(120));
        assert!(matches!(&planned.execute.to, Target::Offsets(_)));
    }
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let world = three_batches();
    let Err(PlanError::UnknownBatch { newest, .. }) = plan_to(&world, after(4)) else { panic!("no batch 4") };
    assert_eq!(newest, BatchNumber::try_from(3).unwrap());
    let scoped = |scope: &str| {
        let mut request = PlanRequest::new(world.group.clone(), after(1));
        request.scope.push(scope.parse().unwrap());
        plan(&world.control, request).unwrap_err().to_string()
    };
    assert_eq!(scoped("u"), "group g has no u");
    assert_eq!(scoped("t:0,7"), "group g has no t/7");
    let above = plan_to(&world, Target::Seq(Seq::try_from(99).unwrap()));
    assert!(matches!(above, Err(PlanError::Invalid(_))));
    // C27
    let mistyped = crate::offset::Group::new("default", "gg").unwrap();
    let error = plan(&world.control, PlanRequest::new(mistyped.clone(), after(1))).unwrap_err();
    assert_eq!(error.to_string(), "no group gg in this journal");
    let elsewhere = crate::offset::Group::new("billing", "g").unwrap();
    let error = execute(&world.control, PlanRequest::new(elsewhere, after(1)), None, "ann", "why").unwrap_err();
    assert_eq!(error.to_string(), "no group g (app billing) in this journal; a group of this name is in app default");
    assert!(world.control.journal.group(&mistyped).is_none());
    let mut kafka = PlanRequest::new(world.group.clone(), after(1));
    kafka.kafka = true;
    assert!(matches!(plan(&world.control, kafka), Err(PlanError::Invalid(_))));
    let nameless = execute(&world.control, PlanRequest::new(world.group.clone(), after(1)), None, "ann", "  ");
    assert!(matches!(nameless, Err(ExecuteError::Plan(PlanError::Invalid(_)))));
}

#[test]
fn one_deleted_topic_refuses_the_whole_or_stays() {
    // C26b
    let world = three_batches();
    world.start("u", 0);
    world.commit_to("u", 40);
    world.broker.delete("u");
    let mut request = PlanRequest::new(world.group.clone(), Target::Offset(offset(0)));
    let refused = plan(&world.control, request.clone()).unwrap();
    assert!(!refused.executable() && refused.why_not().contains("u/0: the broker has no such topic"));
    assert!(matches!(run(&world, &refused), Err(ExecuteError::Refused(_))));
    assert_eq!(world.position("t"), 250);
    request.leave_unmovable = true;
    run(&world, &plan(&world.control, request).unwrap()).unwrap();
    assert_eq!((world.position("t"), world.position("u")), (0, 40));
}

#[test]
fn a_partition_without_a_leader_is_asked_for_again() {
    let world = three_batches();
    world.broker.unknown_for(2);
    assert_eq!(plan_to(&world, after(1)).unwrap().partitions[0].outcome, Outcome::Exact);
    assert_eq!(world.broker.looks.load(Ordering::Relaxed), 3);
    world.broker.unknown_for(1_000);
    let refused = plan_to(&world, after(1)).unwrap();
    assert_eq!(refused.partitions[0].outcome, Outcome::Unknown);
}

#[test]
fn with_the_broker_down_only_unchecked_moves() {
    // C26b
    let mut world = three_batches();
    world.broker.silent();
    let Err(PlanError::BrokerUnavailable { brokers, deadline, unknown, needed }) = plan_to(&world, after(1)) else {
        panic!("no answer is no plan")
    };
    assert_eq!((brokers.as_str(), deadline, unknown.len(), needed), ("fake:9092", fake::DEADLINE, 1, false));
    let unchecked = |to| PlanRequest { unchecked: true, ..PlanRequest::new(world.group.clone(), to) };
    run(&world, &plan(&world.control, unchecked(after(1))).unwrap()).unwrap();
    assert_eq!(world.position("t"), 100);
    assert!(matches!(plan(&world.control, unchecked(Target::Latest)), Err(PlanError::Invalid(_))));
    // No broker at all.
    world.control.broker = None;
    let refused = plan_to(&world, after(2)).unwrap();
    assert_eq!((refused.partitions[0].outcome, refused.executable()), (Outcome::Unchecked, false));
    assert!(matches!(plan_to(&world, Target::Earliest), Err(PlanError::Invalid(_))));
    assert!(matches!(plan_to(&world, Target::RecordTime(Timestamp::default())), Err(PlanError::Invalid(_))));
}

#[test]
fn a_clock_that_was_set_back_is_said() {
    let world = three_batches();
    assert!(!plan_to(&world, after(1)).unwrap().clock_uncertain);
    world.at("11:58");
    assert!(plan_to(&world, after(1)).unwrap().clock_uncertain);
    world.commit_to("t", 300);
    let back = plan_to(&world, after(1)).unwrap();
    assert!(back.clock_uncertain && run(&world, &back).unwrap().clock_uncertain);
}

#[test]
fn a_rollback_can_keep_the_group_stopped() {
    let world = three_batches();
    let request = PlanRequest { hold: true, ..PlanRequest::new(world.group.clone(), before(1)) };
    let done = run(&world, &plan(&world.control, request).unwrap()).unwrap();
    let held = world.control.journal.group(&world.group).unwrap().held.unwrap();
    assert_eq!((held.actor.as_str(), held.seq), ("ann", done.seq.unwrap().next()));
    assert!(!world.commit_under(world.epoch(), "t", 10));
    steer::release(&world.control, &world.group, "ann").unwrap();
    assert!(world.commit_under(world.epoch(), "t", 10));
}

#[test]
fn a_group_is_kept_stopped_also_where_nothing_moves() {
    let world = three_batches();
    let request = PlanRequest { hold: true, ..PlanRequest::new(world.group.clone(), after(3)) };
    let nothing = plan(&world.control, request).unwrap();
    assert!(nothing.nothing_to_do);
    let done = run(&world, &nothing).unwrap();
    let held = || world.control.journal.group(&world.group).unwrap().held.unwrap();
    let first = held();
    // The entry of the hold is none of a move.
    assert_eq!((done.seq, done.moves.len(), first.actor.as_str()), (None, 0, "ann"));
    assert!(!world.commit_under(world.epoch(), "t", 300));
    // Again: it is there and stopped already.
    assert_eq!((run(&world, &nothing).unwrap().seq, held()), (None, first));
}

#[test]
fn a_retired_group_is_not_rolled_back() {
    let world = three_batches();
    steer::retire(&world.control, &world.group, None, "ann").unwrap();
    assert!(matches!(plan_to(&world, after(1)), Err(PlanError::Invalid(_))));
}

#[test]
fn a_late_batch_that_is_open_again_can_be_committed_again() {
    let world = World::new();
    world.start("t", 0);
    world.commit_range("t", 10, 100).unwrap();
    world.commit_range("t", 0, 10).unwrap();
    run(&world, &plan_to(&world, after(1)).unwrap()).unwrap();
    let open = || world.control.journal.group(&world.group).unwrap().positions.open_holes();
    assert_eq!(open(), 1);
    assert!(!world.commit_range("t", 0, 10).unwrap().repeated);
    assert_eq!(open(), 0);
}
