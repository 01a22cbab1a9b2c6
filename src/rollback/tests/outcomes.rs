//! What the broker says of a target, and what the flags allow.

use super::*;

#[test]
fn expired_goes_to_the_earliest_only_if_allowed() {
    check_after_batches(
        "broker t A 0:150..300 1:0..30
         plan after 1
         execute
         plan after 1 allow_clamp
         broker t A 0:160..300 1:0..30
         execute",
        "
        t/0 250 -> 100 start 150 expired replayed 100 lost 50
        t/1 30 -> 10 exact replayed 20
        refused: t/0: offsets 100 to 150 are no longer there; allow_clamp starts at 150
        t/0: offsets 100 to 150 are no longer there; allow_clamp starts at 150
        t/0 250 -> 100 start 150 expired replayed 100 lost 50
        t/1 30 -> 10 exact replayed 20
        seq 5 epoch 2: after batch 1
        t/0 250 -> 160 replaying until 250
        t/1 30 -> 10 replaying until 30
        loss t/0 100..160 expired",
    );
}

#[test]
fn data_that_expires_after_the_plan_makes_it_another_one() {
    check_after_batches(
        "plan after 1 in t:0 allow_clamp
         broker t A 0:150..300 1:0..30
         execute",
        "
        t/0 250 -> 100 exact replayed 150
        outdated
        t/0 250 -> 100 start 150 expired replayed 100 lost 50",
    );
}

#[test]
fn earliest_is_settled_at_execution_and_what_is_gone_is_a_loss() {
    check(
        "topic t A t/0=0
         commit t/0:0..100
         broker t A 0:50..300
         plan earliest
         broker t A 0:120..300
         execute",
        "
        t/0 100 -> 50 exact replayed 50
        seq 3 epoch 2: earliest
        t/0 100 -> 120
        loss t/0 100..120 expired",
    );
}

#[test]
fn a_log_that_is_shorter_than_the_target_is_beyond_end() {
    check_after_batches(
        "broker t A 0:0..90 1:0..30
         plan after 1
         plan after 1 allow_clamp
         broker t A 0:0..95 1:0..30
         execute",
        "
        t/0 250 -> 100 start 90 beyond_end replayed 160
        t/1 30 -> 10 exact replayed 20
        refused: t/0: 100 is past the end of the log; allow_clamp starts at 90, the end
        t/0 250 -> 100 start 90 beyond_end replayed 160
        t/1 30 -> 10 exact replayed 20
        seq 5 epoch 2: after batch 1
        t/0 250 -> 95 replaying until 250
        t/1 30 -> 10 replaying until 30",
    );
}

#[test]
fn a_recreated_topic_is_no_target_and_stays_if_told_to() {
    // C02: the journal knows, or only the broker does.
    check_after_batches(
        "recreated t B t/0=0 t/1=0
         broker t B 0:0..5 1:0..5
         topic u C u/0=0
         commit u/0:0..10
         broker u C 0:0..10
         plan after 1
         plan after 1 leave_unmovable
         execute
         plan offset 0 in t",
        "
        t/0 0 -> - start 0 recreated
        t/1 0 -> - start 0 recreated
        u/0 10 -> 0 younger replayed 10
        refused: t/0: the topic was deleted and created again since, its old offsets mean nothing now; leave_unmovable leaves it where it is and moves the others
        refused: t/1: the topic was deleted and created again since, its old offsets mean nothing now; leave_unmovable leaves it where it is and moves the others
        t/0 0 -> - start 0 recreated
        t/1 0 -> - start 0 recreated
        u/0 10 -> 0 younger replayed 10
        seq 8 epoch 3: after batch 1
        u/0 10 -> 0 replaying until 10
        t/0 0 -> 0 unchanged
        t/1 0 -> 0 unchanged
        nothing to do",
    );
    check_after_batches(
        "plan after 1 in t:0 leave_unmovable
         broker t B 0:0..5
         execute",
        "
        t/0 250 -> 100 exact replayed 150
        outdated
        t/0 250 -> - start 250 recreated
        nothing to do",
    );
}

#[test]
fn an_old_answer_of_the_broker_is_unknown() {
    check_after_batches(
        "recreated t B t/0=0 t/1=0
         broker t A 0:0..300 1:0..30
         plan offset 0 leave_unmovable
         broker t - 0:0..300 1:0..30
         plan offset 0 leave_unmovable
         broker t B 0:0..300
         plan offset 0 leave_unmovable",
        "
        t/0 0 -> - start 0 unknown
        t/1 0 -> - start 0 unknown
        nothing to do
        t/0 0 -> - start 0 unknown
        t/1 0 -> - start 0 unknown
        nothing to do
        t/0 0 -> 0 unchanged
        t/1 0 -> - start 0 unknown
        nothing to do",
    );
}

#[test]
fn what_can_not_move_refuses_the_whole_or_stays() {
    // C26b
    check_after_batches(
        "topic u C u/0=0
         topic v D v/0=0
         commit u/0:0..10 v/0:0..10
         broker u missing
         broker v D 0:?
         plan offset 5
         execute
         plan offset 5 leave_unmovable
         execute
         positions",
        "
        t/0 250 -> 5 exact replayed 245
        t/1 30 -> 5 exact replayed 25
        u/0 10 -> - start 10 missing
        v/0 10 -> - start 10 unknown
        refused: u/0: the broker has no such topic; leave_unmovable leaves it where it is and moves the others
        refused: v/0: the broker did not say where it is (no leader); leave_unmovable leaves it where it is and moves the others
        u/0: the broker has no such topic; leave_unmovable leaves it where it is and moves the others
        v/0: the broker did not say where it is (no leader); leave_unmovable leaves it where it is and moves the others
        t/0 250 -> 5 exact replayed 245
        t/1 30 -> 5 exact replayed 25
        u/0 10 -> - start 10 missing
        v/0 10 -> - start 10 unknown
        seq 8 epoch 2: offset 5
        t/0 250 -> 5 replaying until 250
        t/1 30 -> 5 replaying until 30
        t/0 5 replaying until 250
        t/1 5 replaying until 30
        u/0 10
        v/0 10",
    );
}

#[test]
fn unmovable_partitions_of_a_relative_target_stay_in_its_offsets() {
    check_after_batches(
        "broker t A 0:0..300 1:?
         plan shift -10 leave_unmovable
         execute
         plan shift -10 leave_unmovable
         broker t A 0:0..300 1:0..30
         execute",
        "
        t/0 250 -> 240 exact replayed 10
        t/1 30 -> - start 30 unknown
        seq 5 epoch 2: given offsets of 2 partitions
        t/0 250 -> 240 replaying until 250
        t/0 240 -> 230 exact replayed 10
        t/1 30 -> - start 30 unknown
        outdated
        t/0 240 -> 230 exact replayed 10
        t/1 30 -> 30 unchanged",
    );
}

#[test]
fn without_a_look_it_moves_only_if_told_to() {
    check_after_batches(
        "broker t missing
         plan after 1 unchecked
         execute",
        "
        t/0 250 -> 100 unchecked replayed 150
        t/1 30 -> 10 unchecked replayed 20
        seq 5 epoch 2: after batch 1
        t/0 250 -> 100 replaying until 250
        t/1 30 -> 10 replaying until 30",
    );
    check(
        "topic t A t/0=0
         commit t/0:0..10
         plan offset 5",
        "
        t/0 10 -> 5 unchecked replayed 5
        refused: t/0: no broker was asked; unchecked moves it all the same, and the next start looks",
    );
}

#[test]
fn a_partition_that_was_not_there_yet_goes_to_its_first_position() {
    check_after_batches(
        "topic t A t/2=12
         commit t/2:12..40
         broker t A 0:0..300 1:0..30 2:12..40
         plan after 3
         broker t A 0:0..300 1:0..30 2:20..40
         plan after 3",
        "
        t/0 250 -> 250 unchanged
        t/1 30 -> 30 unchanged
        t/2 40 -> 12 younger replayed 28
        t/0 250 -> 250 unchanged
        t/1 30 -> 30 unchanged
        t/2 40 -> 12 start 20 expired replayed 20 lost 8
        refused: t/2: offsets 12 to 20 are no longer there; allow_clamp starts at 20",
    );
}

#[test]
fn an_offset_past_the_end_is_executed_where_the_plan_found_the_end() {
    check_after_batches(
        "plan offset 500 in t:0 allow_clamp
         broker t A 0:0..310 1:0..30
         execute",
        "
        t/0 250 -> 500 start 300 beyond_end skipped 50
        seq 5 epoch 2: t/0 to 300
        t/0 250 -> 300
        loss t/0 250..300 skipped",
    );
}

#[test]
fn a_position_that_rose_since_the_look_is_not_past_the_end() {
    // C26
    let mut world = after_batches();
    let request = request(&["shift", "0"]);
    let looked = world.looked(&request);
    world.commit(&["t/0:250..310"]);
    let planned = plan(&request, world.group(), &world.meaning(&request.to), looked.as_ref());
    assert_eq!(planned.partitions[0].outcome, Outcome::Unchanged);
    let planned = plan(&request, world.group(), &world.meaning(&request.to), world.looked(&request).as_ref());
    assert_eq!(planned.partitions[0].outcome, Outcome::BeyondEnd);
}

#[test]
fn another_cluster_says_nothing_of_this_group() {
    let mut world = after_batches();
    world.states.last_mut().unwrap().groups.get_mut(&group()).unwrap().cluster_id = Some("own".to_owned());
    for (seen, outcome) in [("own", Outcome::Exact), ("other", Outcome::Unknown)] {
        world.look.as_mut().unwrap().cluster_id = Seen::Known(seen.to_owned());
        assert_eq!(world.plan(&request(&["after", "1"])).partitions[0].outcome, outcome, "{seen}");
    }
}

/// A rollback takes no partition out of the positions: one that a stray commit named stays as it is.
#[test]
fn a_partition_that_the_topic_has_not_is_left_where_it_is() {
    check(
        "topic t A t/0=0
         commit t/0:0..10
         commit t/7:0..100
         broker t A 0:0..10
         plan before 2
         plan before 2 leave_unmovable
         plan before 1 leave_unmovable
         execute",
        "
        t/0 10 -> 10 unchanged
        t/7 100 -> - start 100 unknown
        refused: t/7: the broker did not say where it is (the broker lists fewer partitions than the group has); \
        leave_unmovable leaves it where it is and moves the others
        nothing to do
        t/0 10 -> 10 unchanged
        t/7 100 -> - start 100 unknown
        nothing to do
        t/0 10 -> 0 exact replayed 10
        t/7 100 -> - start 100 unknown
        seq 4 epoch 2: before batch 1
        t/0 10 -> 0 replaying until 10",
    );
}
