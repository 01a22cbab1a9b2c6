//! Cases of commits: fenced, late, twice, of no legal shape, at once.

use crate::script::check;

#[test]
fn c03b_a_commit_under_the_epoch_before_a_rollback_is_fenced() {
    check(
        "
        broker orders id=A 0:0..1000
        start g owner=a topics=orders
        commit g orders/0 0..500
        commit g orders/0 500..900
        execute g offset 500
        commit g orders/0 900..910 epoch=1
        commit g orders/0 900..910 epoch=3
        reopen
        commit g orders/0 900..910 epoch=1
        positions g
        history g
        epoch g
        commit g orders/0 500..910 epoch=2
        positions g
        epoch g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4
        executed seq 5 epoch 2
        orders/0 900 -> 500 replaying to 900
        refused: fenced: read under epoch 1, but group g is at epoch 2 (rolled_back by ann, seq 5); start again
        refused: epoch 3 is above 2, the newest of group g: this journal is an older copy of the one that the consumer started from
        refused: fenced: read under epoch 1, but group g is at epoch 2 (rolled_back by ann, seq 5); start again
        orders/0 500 replaying to 900
        3 batch 1 orders/0 [0,500) (epoch 1)
        4 batch 2 orders/0 [500,900) (epoch 1)
        epoch 2 by rolled_back ann seq 5, owner a, not picked up
        batch 3 seq 6
        orders/0 910
        epoch 2 by rolled_back ann seq 5, owner a, picked up by a
        ",
    );
}

#[test]
fn c14_late_and_repeated_and_overlapping_batches() {
    check(
        "
        broker orders id=A 0:0..500
        start g owner=a topics=orders
        commit g orders/0 100..200
        positions g
        commit g orders/0 0..100
        positions g
        commit g orders/0 0..100
        clock +1m
        commit g orders/0 0..100
        commit g orders/0 150..250
        positions g
        history g
        losses g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3, hole orders/0 [0,100)
        orders/0 200 hole [0,100)
        batch 2 seq 4, late orders/0 [0,100)
        orders/0 200
        batch 2 seq 4 again, late orders/0 [0,100)
        batch 3 seq 5, late orders/0 [0,100)
        batch 4 seq 6, overlap orders/0 [150,200)
        orders/0 250
        3 batch 1 orders/0 [100,200), hole orders/0 [0,100) (epoch 1)
        4 batch 2 orders/0 [0,100), late orders/0 [0,100) (epoch 1)
        5 batch 3 orders/0 [0,100), late orders/0 [0,100) (epoch 1)
        6 batch 4 orders/0 [150,250), overlap orders/0 [150,200) (epoch 1)
        ",
    );
}

#[test]
fn c14_tasks_at_once_leave_no_hole_and_one_order() {
    check(
        "
        broker orders id=A 0:0..2000
        readable orders/0 0..2000
        start g owner=a topics=orders
        tasks g orders/0 8x25
        positions g
        start g owner=a topics=orders
        reopen
        positions g
        losses g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        200 batches, 0 looks, epoch 1 -> 1
        orders/0 2000
        started epoch 1 seq 202
        orders/0 from 2000 in_range
        orders/0 2000
        ",
    );
}

#[test]
fn c14c_the_owner_that_was_replaced_is_fenced() {
    check(
        "
        broker orders id=A 0:0..1000
        start g owner=a topics=orders
        commit g orders/0 0..500
        start g owner=b topics=orders
        commit g orders/0 500..510 epoch=1
        look g owner=a topics=orders
        commit g orders/0 500..510 epoch=2
        start g owner=b topics=orders
        positions g
        epoch g
        entries g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        started epoch 2 seq 4
        orders/0 from 500 in_range
        refused: fenced: read under epoch 1, but group g is at epoch 2 (started by b, seq 4); start again
        refused: group g was started by b, epoch 2; a is no longer its owner
        batch 2 seq 5
        started epoch 2 seq 5
        orders/0 from 510 in_range
        orders/0 510
        epoch 2 by started b seq 4, owner b, picked up by b
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,500) (epoch 1)
        4 started by b (epoch 2)
        5 batch 2 orders/0 [500,510) (epoch 2)
        ",
    );
}

#[test]
fn c11_sentinels_refuse_the_whole_batch() {
    check(
        "
        broker orders id=A 0:0..100 1:0..100 2:0..100
        start g owner=a topics=orders
        commit g orders/0 -1001..10
        commit g orders/0 0..-1
        commit g orders/0 10..5
        commit g orders/0 0..-2
        commit g orders/0 0..10 orders/1 0..-1001 orders/2 0..10
        commit g orders/0 0..10 orders/0 20..30
        commit g orders/0 0..10 orders/0 5..30
        commit g orders/2147483648 0..10
        commit g
        commit h orders/0 0..10
        commit g orders/0 0..9223372036854775807
        positions g
        commit g orders/0 0..10 orders/0 10..30
        entries g
        ",
        r#"
        started epoch 1 seq 2
        orders/0 from 0 new_group
        orders/1 from 0 new_group
        orders/2 from 0 new_group
        refused: offset "-1001": negative (Kafka's markers -1, -2 and -1001 are not accepted)
        refused: offset "-1": negative (Kafka's markers -1, -2 and -1001 are not accepted)
        refused: range "orders/0 [10,5)": from_offset is above until_offset
        refused: offset "-2": negative (Kafka's markers -1, -2 and -1001 are not accepted)
        refused: offset "-1001": negative (Kafka's markers -1, -2 and -1001 are not accepted)
        refused: ranges "orders/0 [0,10) and orders/0 [20,30)": one partition twice, and the ranges do not touch; give each partition once
        refused: ranges "orders/0 [0,10) and orders/0 [5,30)": one partition twice, and the ranges do not touch; give each partition once
        refused: partition "2147483648": a partition is 0 to 2147483647
        refused: ranges "0": a batch has 1 to 100000 ranges
        refused: no group h in this journal; start it first
        batch 1 seq 3
        orders/0 9223372036854775807
        orders/1 0
        orders/2 0
        batch 2 seq 4, late orders/0 [0,30)
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0, orders/1 - -> 0, orders/2 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,9223372036854775807) (epoch 1)
        4 batch 2 orders/0 [0,30), late orders/0 [0,30) (epoch 1)
        "#,
    );
}
