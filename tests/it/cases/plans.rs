//! Cases of plans: refused for a partition, executed once, out of date, of a group that is none.

use crate::script::check;

fn at_its_own_offsets(target: &str) -> String {
    format!(
        "
        broker orders id=A 0:0..1000
        times orders/0=420
        start g owner=a topics=orders
        commit g orders/0 0..400
        commit g orders/0 400..500
        plan g {target}
        commit g orders/0 500..510
        broker orders id=A 0:0..2000
        times orders/0=430
        execute last
        execute last
        reopen
        execute last
        close
        execute last
        positions g
        "
    )
}

#[test]
fn c26d_a_shift_is_executed_once_at_the_offsets_of_its_plan() {
    check(
        &at_its_own_offsets("shift -100"),
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4
        orders/0 500 -> 400 exact replayed 100
        batch 3 seq 5
        executed seq 6 epoch 2
        orders/0 510 -> 400 replaying to 510
        executed seq 6 epoch 2 again
        orders/0 510 -> 400 replaying to 510
        executed seq 6 epoch 2 again
        orders/0 510 -> 400 replaying to 510
        executed seq 6 epoch 2 again
        orders/0 510 -> 400 replaying to 510
        orders/0 400 replaying to 510
        ",
    );
}

#[test]
fn c26d_to_the_latest_is_executed_once_at_the_offsets_of_its_plan() {
    check(
        &at_its_own_offsets("latest"),
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4
        orders/0 500 -> 1000 exact skipped 500
        batch 3 seq 5
        executed seq 6 epoch 2
        orders/0 510 -> 1000
        executed seq 6 epoch 2 again
        orders/0 510 -> 1000
        executed seq 6 epoch 2 again
        orders/0 510 -> 1000
        executed seq 6 epoch 2 again
        orders/0 510 -> 1000
        orders/0 1000
        ",
    );
}

#[test]
fn c26d_to_before_a_batch_is_executed_once_at_the_offsets_of_its_plan() {
    check(
        &at_its_own_offsets("before 2"),
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4
        to seq 3 batch 1 of 2026-11-30T09:00:00Z
        orders/0 500 -> 400 exact replayed 100
        batch 3 seq 5
        executed seq 6 epoch 2
        orders/0 510 -> 400 replaying to 510
        executed seq 6 epoch 2 again
        orders/0 510 -> 400 replaying to 510
        executed seq 6 epoch 2 again
        orders/0 510 -> 400 replaying to 510
        executed seq 6 epoch 2 again
        orders/0 510 -> 400 replaying to 510
        orders/0 400 replaying to 510
        ",
    );
}

#[test]
fn c26d_to_the_records_of_a_time_is_executed_once_at_the_offsets_of_its_plan() {
    check(
        &at_its_own_offsets("records 2026-11-30T08:00:00Z"),
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4
        orders/0 500 -> 420 exact replayed 80
        batch 3 seq 5
        executed seq 6 epoch 2
        orders/0 510 -> 420 replaying to 510
        executed seq 6 epoch 2 again
        orders/0 510 -> 420 replaying to 510
        executed seq 6 epoch 2 again
        orders/0 510 -> 420 replaying to 510
        executed seq 6 epoch 2 again
        orders/0 510 -> 420 replaying to 510
        orders/0 420 replaying to 510
        ",
    );
}

#[test]
fn c26d_to_given_offsets_is_executed_once_at_the_offsets_of_its_plan() {
    check(
        &at_its_own_offsets("offsets orders/0:450"),
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4
        orders/0 500 -> 450 exact replayed 50
        batch 3 seq 5
        executed seq 6 epoch 2
        orders/0 510 -> 450 replaying to 510
        executed seq 6 epoch 2 again
        orders/0 510 -> 450 replaying to 510
        executed seq 6 epoch 2 again
        orders/0 510 -> 450 replaying to 510
        executed seq 6 epoch 2 again
        orders/0 510 -> 450 replaying to 510
        orders/0 450 replaying to 510
        ",
    );
}

#[test]
fn c26d_an_undo_never_goes_below_the_position() {
    check(
        "
        broker orders id=A 0:0..2000
        start g owner=a topics=orders
        commit g orders/0 0..900
        execute g offset 500
        plan g undo
        commit g orders/0 500..600
        execute last
        execute last
        execute g offset 500
        commit g orders/0 500..1200
        plan g undo
        execute last
        positions g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        executed seq 4 epoch 2
        orders/0 900 -> 500 replaying to 900
        orders/0 500 -> 900 exact
        batch 2 seq 5
        executed seq 6 epoch 3
        orders/0 600 -> 900
        executed seq 6 epoch 3 again
        orders/0 600 -> 900
        executed seq 7 epoch 4
        orders/0 900 -> 500 replaying to 900
        batch 3 seq 8
        orders/0 1200 -> 1200 unchanged
        nothing to do
        nothing done, epoch 4
        orders/0 1200
        ",
    );
}

#[test]
fn c26d_another_move_or_topic_makes_a_plan_out_of_date() {
    check(
        "
        broker orders id=A 0:0..2000
        start g owner=a topics=orders
        commit g orders/0 0..900
        plan g before 1
        execute g offset 700
        execute last
        plan g before 1
        broker orders id=B 0:0..2000
        execute last
        broker orders id=A 0:100..2000
        execute last
        broker orders id=A 0:0..2000
        execute last
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        to seq 2 batch 0 of 2026-11-30T09:00:00Z
        orders/0 900 -> 0 exact replayed 900
        executed seq 4 epoch 2
        orders/0 900 -> 700 replaying to 900
        refused: the plan is out of date; it is p-6ba0ae2de50b8784 now
        to seq 2 batch 0 of 2026-11-30T09:00:00Z
        orders/0 700 -> 0 exact replayed 700
        refused: the plan is out of date; it is p-34c27599d6268843 now
        refused: the plan is out of date; it is p-6fe76fd75d80018d now
        executed seq 5 epoch 3
        orders/0 700 -> 0 replaying to 900
        ",
    );
}

#[test]
fn c27_a_mistyped_group_is_not_made_by_anything() {
    check(
        "
        broker orders id=A 0:0..100
        start g owner=a topics=orders
        plan gg earliest
        plan gg committed 2027-11-30T10:00:00Z
        execute gg undo
        execute gg before 1 unchecked
        commit gg orders/0 0..1
        mark gg m
        hold gg why
        release gg
        retire gg
        positions gg
        look gg topics=orders
        start gg
        start gg topics=orders dry
        groups
        reopen
        groups
        ",
        r#"
        started epoch 1 seq 2
        orders/0 from 0 new_group
        refused: no group gg in this journal
        refused: no group gg in this journal
        refused: no group gg in this journal
        refused: no group gg in this journal
        refused: no group gg in this journal; start it first
        refused: no group gg in this journal
        refused: no group gg in this journal
        refused: no group gg in this journal
        refused: no group gg in this journal
        refused: no group gg
        refused: no group gg
        refused: topics "[]": a new group needs a topic or a pattern
        started epoch 1 seq 2
        orders/0 from 0 new_group
        "g"
        "g"
        "#,
    );
}
