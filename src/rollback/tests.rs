//! Scripts and what they say: one for each target, outcome and flag.

mod properties;
mod world;

use self::world::World;

#[track_caller]
fn check(script: &str, expected: &str) {
    let mut world = World::new();
    let said: String = script.lines().map(str::trim).filter(|l| !l.is_empty()).map(|line| world.run(line)).collect();
    let expected: String = expected.lines().map(|line| format!("{}\n", line.trim())).skip(1).collect();
    let expected = expected.trim_end_matches('\n');
    assert_eq!(said.trim_end_matches('\n'), expected, "\nsaid:\n{said}");
}

const BATCHES: &str = "
    topic t A t/0=0 t/1=0
    commit t/0:0..100 t/1:0..10
    commit t/0:100..180
    commit t/0:180..250 t/1:10..30
    broker t A 0:0..300 1:0..30
";

#[track_caller]
fn check_after_batches(script: &str, expected: &str) {
    check(&format!("{BATCHES}{script}"), expected);
}

#[test]
fn after_a_batch_it_stays_done_and_before_it_is_done_again() {
    check_after_batches(
        "plan after 1
         execute
         positions",
        "
        t/0 250 -> 100 exact replayed 150
        t/1 30 -> 10 exact replayed 20
        seq 5 epoch 2: after batch 1
        t/0 250 -> 100 replaying until 250
        t/1 30 -> 10 replaying until 30
        t/0 100 replaying until 250
        t/1 10 replaying until 30",
    );
    check_after_batches(
        "plan before 3
         execute",
        "
        t/0 250 -> 180 exact replayed 70
        t/1 30 -> 10 exact replayed 20
        seq 5 epoch 2: before batch 3
        t/0 250 -> 180 replaying until 250
        t/1 30 -> 10 replaying until 30",
    );
}

#[test]
fn before_a_batch_that_overlapped_goes_to_its_own_begin() {
    // C26c
    check(
        "topic t A t/0=0
         commit t/0:0..100
         commit t/0:50..150
         broker t A 0:0..150
         plan before 2",
        "
        t/0 150 -> 50 exact replayed 100",
    );
}

#[test]
fn before_the_batch_that_brought_a_partition_goes_to_where_it_began() {
    check(
        "topic t A t/0=0
         commit t/0:0..10 t/1:40..50
         broker t A 0:0..10 1:0..50
         plan before 1",
        "
        t/0 10 -> 0 exact replayed 10
        t/1 50 -> 40 exact replayed 10",
    );
}

#[test]
fn batches_that_were_rolled_back_stay_targets() {
    check_after_batches(
        "plan after 1
         execute
         plan after 3
         execute
         positions",
        "
        t/0 250 -> 100 exact replayed 150
        t/1 30 -> 10 exact replayed 20
        seq 5 epoch 2: after batch 1
        t/0 250 -> 100 replaying until 250
        t/1 30 -> 10 replaying until 30
        t/0 100 -> 250 exact skipped 150
        t/1 10 -> 30 exact skipped 20
        seq 6 epoch 3: after batch 3
        t/0 100 -> 250
        t/1 10 -> 30
        loss t/0 100..250 skipped
        loss t/1 10..30 skipped
        t/0 250
        t/1 30",
    );
}

#[test]
fn a_scope_moves_no_more_than_it_names() {
    check_after_batches(
        "plan seq 2 in t:1
         execute
         positions",
        "
        t/1 30 -> 10 exact replayed 20
        seq 5 epoch 2: after seq 2
        t/1 30 -> 10 replaying until 30
        t/0 250
        t/1 10 replaying until 30",
    );
}

#[test]
fn a_time_after_everything_has_nothing_to_do_and_asks_nobody() {
    // C08
    check_after_batches(
        "broker t missing
         plan now
         execute
         commit t/0:250..260
         execute",
        "
        t/0 250 -> 250 unchanged
        t/1 30 -> 30 unchanged
        nothing to do
        nothing done
        nothing done",
    );
}

#[test]
fn an_undo_goes_forward_to_where_the_group_was_and_twice_is_redo() {
    check_after_batches(
        "plan after 1
         execute
         commit t/0:100..120
         plan undo
         execute
         plan undo
         execute",
        "
        t/0 250 -> 100 exact replayed 150
        t/1 30 -> 10 exact replayed 20
        seq 5 epoch 2: after batch 1
        t/0 250 -> 100 replaying until 250
        t/1 30 -> 10 replaying until 30
        t/0 120 -> 250 exact
        t/1 10 -> 30 exact
        seq 7 epoch 3: undo of the last move, undoes 5
        t/0 120 -> 250
        t/1 10 -> 30
        t/0 250 -> 120 exact replayed 130
        t/1 30 -> 10 exact replayed 20
        seq 8 epoch 4: undo of the last move, undoes 7
        t/0 250 -> 120 replaying until 250
        t/1 30 -> 10 replaying until 30",
    );
}

#[test]
fn an_undo_of_a_rewind_never_goes_below_the_position() {
    // C26d: the consumer passes the old position between plan and execution.
    check(
        "topic t A t/0=0
         commit t/0:0..900
         broker t A 0:0..2000
         plan offset 500
         execute
         plan undo
         commit t/0:500..1200
         execute
         plan undo",
        "
        t/0 900 -> 500 exact replayed 400
        seq 3 epoch 2: offset 500
        t/0 900 -> 500 replaying until 900
        t/0 500 -> 900 exact
        nothing done
        t/0 1200 -> 1200 unchanged
        nothing to do",
    );
}

#[test]
fn an_undo_of_a_skip_goes_back_and_what_was_skipped_is_no_loss_any_more() {
    check(
        "topic t A t/0=0
         commit t/0:0..100
         broker t A 0:0..900
         plan latest
         execute
         commit t/0:900..900
         plan undo
         execute",
        "
        t/0 100 -> 900 exact skipped 800
        seq 3 epoch 2: t/0 to 900
        t/0 100 -> 900
        loss t/0 100..900 skipped
        t/0 900 -> 100 exact replayed 800
        seq 5 epoch 3: undo of the last move, undoes 3
        t/0 900 -> 100 replaying until 900",
    );
}

#[test]
fn relative_targets_are_executed_at_the_offsets_of_the_plan() {
    // C26d
    check(
        "topic t A t/0=0
         commit t/0:0..500
         broker t A 0:0..600
         plan shift -100
         commit t/0:500..550
         broker t A 0:0..700
         execute
         execute
         plan latest
         commit t/0:400..450
         broker t A 0:0..800
         execute
         plan shift -1000
         plan shift 1000 allow_clamp
         broker t A 0:0..900
         execute",
        "
        t/0 500 -> 400 exact replayed 100
        seq 4 epoch 2: t/0 to 400
        t/0 550 -> 400 replaying until 550
        repeated: seq 4
        t/0 400 -> 700 exact skipped 300
        seq 6 epoch 3: t/0 to 700
        t/0 450 -> 700
        loss t/0 450..700 skipped
        t/0 700 -> 0 exact replayed 700
        t/0 700 -> 1700 start 800 beyond_end skipped 100
        seq 7 epoch 4: t/0 to 800
        t/0 700 -> 800
        loss t/0 700..800 skipped",
    );
}

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
fn record_times_are_offsets_by_then() {
    check_after_batches(
        "times t/0=120 t/1=end
         plan time
         plan time allow_clamp
         times t/0=130
         broker t A 0:0..310 1:0..35
         execute
         times t/1=?
         plan time",
        "
        t/0 250 -> 120 exact replayed 130
        t/1 30 -> - start 30 beyond_end
        refused: t/1: the time is after the last record; allow_clamp starts at 30, the end
        t/0 250 -> 120 exact replayed 130
        t/1 30 -> - start 30 beyond_end
        seq 5 epoch 2: given offsets of 2 partitions
        t/0 250 -> 120 replaying until 250
        t/0 120 -> 130 exact skipped 10
        t/1 30 -> - start 30 unknown
        refused: t/1: the broker did not say where it is (timed out); leave_unmovable leaves it where it is and moves the others",
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
fn a_retired_topic_is_out_of_plans() {
    check_after_batches(
        "topic u C u/0=0
         retire t
         broker u C 0:0..10
         plan offset 0",
        "
        u/0 0 -> 0 unchanged
        nothing to do",
    );
}

#[test]
fn a_list_moves_what_it_names() {
    check_after_batches(
        "plan offsets t/1=7
         execute
         plan offsets t/1=8,t/0=1 in t:0",
        "
        t/1 30 -> 7 exact replayed 23
        seq 5 epoch 2: t/1 to 7
        t/1 30 -> 7 replaying until 30
        t/0 250 -> 1 exact replayed 249",
    );
}

#[test]
fn holes_that_were_open_at_the_target_are_open_again() {
    check(
        "topic t A t/0=0
         commit t/0:10..100
         commit t/0:0..10
         commit t/0:120..200
         positions
         broker t A 0:0..200
         plan after 1
         execute
         plan offset 150
         execute
         plan undo
         execute",
        "
        t/0 200 hole 100..120
        t/0 200 -> 100 exact replayed 110
        seq 5 epoch 2: after batch 1
        t/0 200 -> 100 hole 0..10 replaying until 200
        t/0 100 -> 150 exact skipped 50
        seq 6 epoch 3: offset 150
        t/0 100 -> 150 hole 0..10 replaying until 200
        loss t/0 100..150 skipped
        t/0 150 -> 100 exact replayed 50
        seq 7 epoch 4: undo of the last move, undoes 6
        t/0 150 -> 100 hole 0..10 replaying until 200",
    );
}

#[test]
fn a_late_batch_is_undone_where_the_position_stays() {
    check(
        "topic t A t/0=0
         commit t/0:10..100
         commit t/0:0..10
         broker t A 0:0..200
         plan after 1
         execute
         positions",
        "
        t/0 100 -> 100 exact replayed 10
        seq 4 epoch 2: after batch 1
        t/0 100 -> 100 hole 0..10
        t/0 100 hole 0..10",
    );
}

#[test]
fn a_hole_that_was_acknowledged_opens_again_with_the_state_before() {
    check(
        "topic t A t/0=0
         commit t/0:0..10
         commit t/0:20..30
         commit t/0:30..50
         acknowledge 3
         broker t A 0:0..50
         plan after 2
         execute
         plan shift -5
         execute",
        "
        t/0 50 -> 30 exact replayed 30
        seq 6 epoch 2: after batch 2
        t/0 50 -> 30 hole 10..20 replaying until 50
        t/0 30 -> 25 exact replayed 5
        seq 7 epoch 3: t/0 to 25
        t/0 30 -> 25 hole 10..20 replaying until 50",
    );
}

#[test]
fn a_second_rewind_replays_up_to_the_highest() {
    check_after_batches(
        "plan after 1 in t:0
         execute
         commit t/0:100..150
         plan offset 50 in t:0
         execute
         commit t/0:50..260
         positions",
        "
        t/0 250 -> 100 exact replayed 150
        seq 5 epoch 2: after batch 1
        t/0 250 -> 100 replaying until 250
        t/0 150 -> 50 exact replayed 100
        seq 7 epoch 3: offset 50
        t/0 150 -> 50 replaying until 250
        t/0 260
        t/1 30",
    );
}

#[test]
fn with_hold_the_group_is_stopped_in_the_same_append() {
    check_after_batches(
        "plan after 1 in t:1 hold
         execute
         execute
         plan offset 0 in t:1 hold
         execute",
        "
        t/1 30 -> 10 exact replayed 20
        seq 5 epoch 2: after batch 1
        t/1 30 -> 10 replaying until 30
        seq 6 epoch 2: held
        repeated: seq 5
        t/1 10 -> 0 exact replayed 10
        seq 7 epoch 3: offset 0
        t/1 10 -> 0 replaying until 30",
    );
}
