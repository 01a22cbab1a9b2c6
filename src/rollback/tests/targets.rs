//! Where each kind of target goes.

use super::*;

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
         execute
         plan undo",
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
        t/1 30 -> 10 replaying until 30
        t/0 120 -> 250 exact
        t/1 10 -> 30 exact",
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
fn an_undo_of_a_skip_goes_back_and_what_was_skipped_is_no_loss_until_it_is_skipped_again() {
    check(
        "topic t A t/0=0
         commit t/0:0..100
         broker t A 0:0..900
         plan latest
         execute
         commit t/0:900..900
         plan undo
         execute
         plan undo
         execute",
        "
        t/0 100 -> 900 exact skipped 800
        seq 3 epoch 2: t/0 to 900
        t/0 100 -> 900
        loss t/0 100..900 skipped
        t/0 900 -> 100 exact replayed 800
        seq 5 epoch 3: undo of the last move, undoes 3
        t/0 900 -> 100 replaying until 900
        t/0 100 -> 900 exact skipped 800
        seq 6 epoch 4: undo of the last move, undoes 5
        t/0 100 -> 900
        loss t/0 100..900 skipped",
    );
}

/// As what is past the end: a typing error is no way to begin anew.
#[test]
fn a_shift_below_0_goes_to_the_earliest_only_if_allowed() {
    check(
        "topic t A t/0=0 t/1=0
         commit t/0:0..50 t/1:0..500
         broker t A 0:0..600 1:0..600
         plan shift -100
         execute
         plan shift -100 allow_clamp
         commit t/0:50..60
         broker t A 0:20..600 1:0..600
         execute
         plan shift -100 allow_clamp
         execute",
        "
        t/0 50 -> - start 0 expired replayed 50
        t/1 500 -> 400 exact replayed 100
        refused: t/0: it would go below offset 0; allow_clamp starts at 0
        t/0: it would go below offset 0; allow_clamp starts at 0
        t/0 50 -> - start 0 expired replayed 50
        t/1 500 -> 400 exact replayed 100
        outdated
        t/0 60 -> 0 start 20 expired replayed 40 lost 20
        t/1 500 -> 400 exact replayed 100
        t/0 60 -> - start 20 expired replayed 40
        t/1 500 -> 400 exact replayed 100
        seq 4 epoch 2: given offsets of 2 partitions
        t/0 60 -> 20 replaying until 60
        t/1 500 -> 400 replaying until 500",
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
         plan shift -700
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
        t/0 700 -> - start 0 expired replayed 700
        refused: t/0: it would go below offset 0; allow_clamp starts at 0
        t/0 700 -> 0 exact replayed 700
        t/0 700 -> 1700 start 800 beyond_end skipped 100
        seq 7 epoch 4: t/0 to 800
        t/0 700 -> 800
        loss t/0 700..800 skipped",
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
