//! What is open again, and what is read again, after a move.

use super::*;

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
fn an_undo_ends_its_own_replay_and_no_other() {
    check(
        "topic t A t/0=0
         commit t/0:0..900
         broker t A 0:0..900
         plan offset 500
         execute
         plan offset 300
         execute
         plan undo
         execute",
        "
        t/0 900 -> 500 exact replayed 400
        seq 3 epoch 2: offset 500
        t/0 900 -> 500 replaying until 900
        t/0 500 -> 300 exact replayed 200
        seq 4 epoch 3: offset 300
        t/0 500 -> 300 replaying until 900
        t/0 300 -> 500 exact
        seq 5 epoch 4: undo of the last move, undoes 4
        t/0 300 -> 500 replaying until 900",
    );
}

#[test]
fn an_undo_that_has_nothing_to_do_leaves_holes_alone() {
    check(
        "topic t A t/0=0
         commit t/0:10..100
         commit t/0:0..10
         commit t/0:100..200
         broker t A 0:0..300
         plan after 1
         execute
         commit t/0:100..300
         plan undo",
        "
        t/0 200 -> 100 exact replayed 110
        seq 5 epoch 2: after batch 1
        t/0 200 -> 100 hole 0..10 replaying until 200
        t/0 300 -> 300 unchanged
        nothing to do",
    );
}

#[test]
fn a_hole_that_a_second_reading_left_stays_open() {
    check(
        "topic t A t/0=0
         commit t/0:0..200
         broker t A 0:0..200
         plan offset 0
         execute
         commit t/0:50..200
         plan after 1",
        "
        t/0 200 -> 0 exact replayed 200
        seq 3 epoch 2: offset 0
        t/0 200 -> 0 replaying until 200
        t/0 200 -> 200 unchanged
        nothing to do",
    );
}
