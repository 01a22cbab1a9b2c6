//! Cases of holes: markers, tasks that commit out of order, stray commits.

use crate::script::check;

#[test]
fn c07_markers_aborted_and_compacted_records() {
    check(
        "
        broker orders id=A 0:0..9
        readable orders/0 0..5 6..8
        start g owner=a topics=orders
        commit g orders/0 0..5
        commit g orders/0 6..9
        commit g orders/0 9..9
        positions g
        start g owner=b topics=orders
        positions g
        execute g offset 5
        positions g
        start g owner=c topics=orders
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4, hole orders/0 [5,6)
        batch 3 seq 5
        orders/0 9 hole [5,6)
        started epoch 2 seq 7
        orders/0 from 9 in_range
        orders/0 9
        executed seq 8 epoch 3
        orders/0 9 -> 5 replaying to 9
        orders/0 5 replaying to 9
        started epoch 4 seq 9
        orders/0 from 5 in_range replaying to 9
        ",
    );
}

#[test]
fn c07_a_compacted_topic_whose_first_record_is_above_the_position() {
    check(
        "
        broker orders id=A 0:0..20
        readable orders/0 7..20
        start g owner=a topics=orders new=orders/0:3
        start g owner=b topics=orders
        commit g orders/0 7..20
        positions g
        start g owner=c topics=orders
        positions g
        losses g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 3 new_group
        started epoch 2 seq 3
        orders/0 from 3 in_range
        batch 1 seq 4, hole orders/0 [3,7)
        orders/0 20 hole [3,7)
        started epoch 3 seq 6
        orders/0 from 20 in_range
        orders/0 20
        ",
    );
}

#[test]
fn c14b_a_hole_that_holds_records_is_read_again_at_the_next_start() {
    check(
        "
        broker orders id=A 0:0..500
        readable orders/0 0..500
        start g owner=a topics=orders
        commit g orders/0 100..200
        reopen
        start g owner=b topics=orders
        commit g orders/0 0..200
        start g owner=c topics=orders
        positions g
        entries g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3, hole orders/0 [0,100)
        started epoch 2 seq 5
        orders/0 from 0 unread_hole
        found orders/0 unread_hole 200 -> 0 in 0..500: [0, 100) was never read
        batch 2 seq 6
        started epoch 3 seq 7
        orders/0 from 200 in_range
        orders/0 200
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0 (epoch 1)
        3 batch 1 orders/0 [100,200), hole orders/0 [0,100) (epoch 1)
        4 started by b (epoch 2)
        5 reconciled, orders/0 200 -> 0 (epoch 2)
        6 batch 2 orders/0 [0,200) (epoch 2)
        7 started by c (epoch 3)
        ",
    );
}

#[test]
fn c14b_a_stray_commit_far_above_opens_a_hole_that_later_ones_fill() {
    check(
        "
        broker orders id=A 0:0..10000
        readable orders/0 0..10000
        start g owner=a topics=orders
        commit g orders/0 0..500
        commit g orders/0 9000..9100
        commit g orders/0 500..700
        positions g
        start g owner=b topics=orders
        commit g orders/0 700..9000
        commit g orders/0 9000..9100
        start g owner=c topics=orders
        positions g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4, hole orders/0 [500,9000)
        batch 3 seq 5, late orders/0 [500,700)
        orders/0 9100 hole [700,9000)
        started epoch 2 seq 7
        orders/0 from 700 unread_hole
        found orders/0 unread_hole 9100 -> 700 in 0..10000: [700, 9000) was never read
        batch 4 seq 8
        batch 5 seq 9
        started epoch 3 seq 10
        orders/0 from 9100 in_range
        orders/0 9100
        ",
    );
}

#[test]
fn c14b_a_hole_that_nobody_can_look_into_stays_open_and_is_said() {
    check(
        "
        broker orders id=A 0:0..500
        start g owner=a topics=orders
        commit g orders/0 100..200
        start g owner=b topics=orders
        losses g
        broker orders id=A 0:60..500
        start g owner=b topics=orders
        losses g
        acknowledge 3
        positions g
        losses g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3, hole orders/0 [0,100)
        started epoch 2 seq 4
        orders/0 from 200 in_range
        orders/0 [0,100) hole seq 3
        started epoch 2 seq 5
        orders/0 from 200 in_range
        orders/0 [0,60) expired seq 5
        orders/0 [60,100) hole seq 3
        6 loss_acknowledged 3 by ann (epoch 2)
        orders/0 200
        orders/0 [0,60) expired seq 5
        ",
    );
}

#[test]
fn c14b_a_hole_that_is_skipped_is_a_loss_once() {
    check(
        "
        broker orders id=A 0:0..500
        readable orders/0 0..500
        start g owner=a topics=orders
        commit g orders/0 100..200
        start g owner=b topics=orders hole=skip
        start g owner=c topics=orders
        losses g
        commit g orders/0 0..100
        losses g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3, hole orders/0 [0,100)
        started epoch 2 seq 5
        orders/0 from 200 unread_hole
        found orders/0 unread_hole 200 -> 200 in 0..500 lost [0,100): [0, 100) was never read
        started epoch 3 seq 6
        orders/0 from 200 in_range
        orders/0 [0,100) unread seq 5
        batch 2 seq 7, late orders/0 [0,100)
        orders/0 [0,100) unread seq 5
        ",
    );
}

#[test]
fn c14b_tasks_out_of_order_through_ten_looks_correct_nothing() {
    check(
        "
        broker orders id=A 0:0..4000
        readable orders/0 0..4000
        start g owner=a topics=orders
        tasks g orders/0 8x50 looks=10
        positions g
        epoch g
        start g owner=a topics=orders
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        400 batches, 10 looks, epoch 1 -> 1
        orders/0 4000
        epoch 1 by started a seq 1, owner a, picked up by a
        started epoch 1 seq 402
        orders/0 from 4000 in_range
        ",
    );
}
