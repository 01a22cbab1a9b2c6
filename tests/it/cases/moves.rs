//! Moves and what follows them: undo of undo, keys, late batches, clocks, restarts of the same owner.

use crate::script::check;

#[test]
fn a_key_is_free_again_after_a_rollback_across_reopen_and_seal() {
    check(
        "
        broker orders id=A 0:0..1000
        start g owner=a topics=orders
        commit g orders/0 0..10 key=a
        commit g orders/0 10..20 key=b
        seal
        commit g orders/0 10..21 key=b
        reopen
        commit g orders/0 10..20 key=b
        execute g before 2
        close
        commit g orders/0 10..21 key=b
        reopen
        commit g orders/0 10..21 key=b
        commit g orders/0 0..10 key=a
        commit g orders/0 10..20 key=b
        history g
        ",
        r#"
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4
        refused: key "b" was used for batch 2 with other ranges
        batch 2 seq 4 again
        executed seq 5 epoch 2
        orders/0 20 -> 10 replaying to 20
        batch 3 seq 6
        batch 3 seq 6 again
        batch 1 seq 3 again
        refused: key "b" was used for batch 3 with other ranges
        3 batch 1 orders/0 [0,10) key "a" (epoch 1)
        4 batch 2 orders/0 [10,20) key "b" (epoch 1)
        6 batch 3 orders/0 [10,21) key "b" (epoch 2)
        "#,
    );
}

#[test]
fn a_late_batch_after_a_rollback_fills_what_is_open_again() {
    check(
        "
        broker orders id=A 0:0..1000
        readable orders/0 0..1000
        start g owner=a topics=orders
        commit g orders/0 100..200
        commit g orders/0 0..100
        commit g orders/0 200..300
        execute g after 1
        positions g
        commit g orders/0 0..100
        positions g
        commit g orders/0 200..300
        positions g
        start g owner=b topics=orders
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3, hole orders/0 [0,100)
        batch 2 seq 4, late orders/0 [0,100)
        batch 3 seq 5
        executed seq 6 epoch 2
        orders/0 300 -> 200 hole [0,100) replaying to 300
        orders/0 200 hole [0,100) replaying to 300
        batch 4 seq 7, late orders/0 [0,100)
        orders/0 200 replaying to 300
        batch 5 seq 8
        orders/0 300
        started epoch 3 seq 9
        orders/0 from 300 in_range
        ",
    );
}

#[test]
fn a_retired_topic_is_out_of_starts_and_rollbacks_until_it_is_named() {
    check(
        "
        broker a id=A 0:0..100
        broker b id=B 0:0..100
        start g owner=a topics=a,b
        commit g a/0 0..50 b/0 0..50
        retire g b
        retire g b
        commit g a/0 50..60 b/0 50..60
        start g owner=b topics=^.*
        plan g before 1
        plan g before 1 scope=b
        execute g before 1
        start g owner=b topics=a,b
        positions g
        retire g
        start g owner=b
        entries g
        ",
        r#"
        started epoch 1 seq 2
        a/0 from 0 new_group
        b/0 from 0 new_group
        batch 1 seq 3
        4 retired b by ann (epoch 1)
        refused: topic "b": retired already
        refused: topic "b": retired in this group; a start that names it brings it back
        started epoch 2 seq 5
        a/0 from 50 in_range
        to seq 2 batch 0 of 2026-11-30T09:00:00Z
        a/0 50 -> 0 exact replayed 50
        refused: topic "b": retired in this group; a start that names it brings it back
        executed seq 6 epoch 3
        a/0 50 -> 0 replaying to 50
        started epoch 3 seq 8
        a/0 from 0 in_range replaying to 50
        b/0 from 50 in_range
        a/0 0 replaying to 50
        b/0 50
        9 retired - by ann (epoch 3)
        started epoch 4 seq 10
        a/0 from 0 in_range replaying to 50
        b/0 from 50 in_range
        1 started by a (epoch 1)
        2 reconciled, a/0 - -> 0, b/0 - -> 0 (epoch 1)
        3 batch 1 a/0 [0,50) b/0 [0,50) (epoch 1)
        4 retired b by ann (epoch 1)
        5 started by b (epoch 2)
        6 rolled_back before batch 1, a/0 50 -> 0 replaying to 50 (epoch 3)
        7 started by b (epoch 3)
        8 reconciled (epoch 3)
        9 retired - by ann (epoch 3)
        10 started by b (epoch 4)
        "#,
    );
}

#[test]
fn an_undo_of_an_undo_is_a_redo_also_after_reopening() {
    check(
        "
        broker orders id=A 0:0..1000
        start g owner=a topics=orders
        plan g undo
        commit g orders/0 0..900
        execute g offset 500
        reopen
        execute g undo
        close
        execute g undo
        positions g
        seal
        execute g undo
        entries g
        losses g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        refused: nothing to undo: group g was never moved
        batch 1 seq 3
        executed seq 4 epoch 2
        orders/0 900 -> 500 replaying to 900
        executed seq 5 epoch 3
        orders/0 500 -> 900
        executed seq 6 epoch 4
        orders/0 900 -> 500 replaying to 900
        orders/0 500 replaying to 900
        executed seq 7 epoch 5
        orders/0 500 -> 900
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,900) (epoch 1)
        4 rolled_back offset 500, orders/0 900 -> 500 replaying to 900 (epoch 2)
        5 rolled_back undo of the last move, orders/0 500 -> 900, undoes 4 (epoch 3)
        6 rolled_back undo of the last move, orders/0 900 -> 500 replaying to 900, undoes 5 (epoch 4)
        7 rolled_back undo of the last move, orders/0 500 -> 900, undoes 6 (epoch 5)
        ",
    );
}

#[test]
fn a_forward_move_and_its_undo() {
    check(
        "
        broker orders id=A 0:0..1000
        start g owner=a topics=orders
        commit g orders/0 0..100
        execute g latest
        losses g
        commit g orders/0 1000..1000
        plan g undo
        execute last
        positions g
        losses g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        executed seq 4 epoch 2
        orders/0 100 -> 1000
        orders/0 [100,1000) skipped seq 4
        batch 2 seq 5
        orders/0 1000 -> 100 exact replayed 900
        executed seq 6 epoch 3
        orders/0 1000 -> 100 replaying to 1000
        orders/0 100 replaying to 1000
        ",
    );
}

#[test]
fn a_clock_that_goes_backwards() {
    check(
        "
        broker orders id=A 0:0..1000
        start g owner=a topics=orders
        clock 2026-11-30T10:00:00Z
        commit g orders/0 0..10
        clock -2h
        commit g orders/0 10..20
        plan g committed 2026-11-30T09:59:59Z
        plan g committed 2026-11-30T10:00:00Z
        plan g after 1
        execute last
        reopen
        entries g times
        clock 2026-11-30T10:30:00Z
        commit g orders/0 10..20
        plan g committed 2026-11-30T10:00:00Z
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4
        refused: committed by 2026-11-30T09:59:59Z is before the history of group g: its oldest batch is 1, recorded at 2026-11-30T10:00:00Z
        orders/0 20 -> 20 unchanged
        nothing to do
        clock uncertain
        to seq 3 batch 1 of 2026-11-30T10:00:00Z
        orders/0 20 -> 10 exact replayed 10
        clock uncertain
        executed seq 5 epoch 2, clock uncertain
        orders/0 20 -> 10 replaying to 20
        2026-11-30T09:00:00Z 1 started by a (epoch 1)
        2026-11-30T09:00:00Z 2 reconciled, orders/0 - -> 0 (epoch 1)
        2026-11-30T10:00:00Z 3 batch 1 orders/0 [0,10) (epoch 1)
        2026-11-30T10:00:00Z 4 batch 2 orders/0 [10,20) (epoch 1)
        2026-11-30T10:00:00Z 5 rolled_back after batch 1, orders/0 20 -> 10 replaying to 20 (epoch 2)
        batch 3 seq 6
        to seq 5 batch 2 of 2026-11-30T10:00:00Z
        orders/0 20 -> 10 exact replayed 10
        clock uncertain
        ",
    );
}

#[test]
fn the_same_owner_starts_again_after_a_rollback() {
    check(
        "
        broker orders id=A 0:0..1000
        start g owner=a topics=orders
        commit g orders/0 0..900
        execute g offset 500
        epoch g
        commit g orders/0 900..910 epoch=1
        start g owner=a topics=orders
        epoch g
        commit g orders/0 500..510 epoch=2
        epoch g
        start g owner=a topics=orders isolation=uncommitted
        commit g orders/0 510..520 epoch=2
        entries g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        executed seq 4 epoch 2
        orders/0 900 -> 500 replaying to 900
        epoch 2 by rolled_back ann seq 4, owner a, not picked up
        refused: fenced: read under epoch 1, but group g is at epoch 2 (rolled_back by ann, seq 4); start again
        started epoch 2 seq 5
        orders/0 from 500 in_range replaying to 900
        epoch 2 by rolled_back ann seq 4, owner a, picked up by a
        batch 2 seq 6
        epoch 2 by rolled_back ann seq 4, owner a, picked up by a
        started epoch 3 seq 7
        orders/0 from 510 in_range replaying to 900
        refused: fenced: read under epoch 2, but group g is at epoch 3 (started by a, seq 7); start again
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,900) (epoch 1)
        4 rolled_back offset 500, orders/0 900 -> 500 replaying to 900 (epoch 2)
        5 started by a (epoch 2)
        6 batch 2 orders/0 [500,510) (epoch 2)
        7 started by a uncommitted (epoch 3)
        ",
    );
}

#[test]
fn a_held_group_is_stopped_until_it_is_released() {
    check(
        "
        broker orders id=A 0:0..1000
        start g owner=a topics=orders
        commit g orders/0 0..900
        plan g before 1 hold
        execute last
        start g owner=a topics=orders
        commit g orders/0 0..10
        commit g orders/0 0..10 epoch=1
        execute g offset 100
        release g
        release g
        start g owner=a topics=orders
        entries g
        ",
        r#"
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        to seq 2 batch 0 of 2026-11-30T09:00:00Z
        orders/0 900 -> 0 exact replayed 900
        executed seq 4 epoch 2
        orders/0 900 -> 0 replaying to 900
        refused: group g is on hold since 2026-11-30T09:00:00Z by ann: why
        refused: group g is on hold since 2026-11-30T09:00:00Z by ann: why
        refused: group g is on hold since 2026-11-30T09:00:00Z by ann: why
        executed seq 6 epoch 3
        orders/0 0 -> 100 replaying to 900
        7 released by ann (epoch 3)
        refused: group "g": not on hold
        started epoch 3 seq 8
        orders/0 from 100 in_range replaying to 900
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,900) (epoch 1)
        4 rolled_back before batch 1, orders/0 900 -> 0 replaying to 900 (epoch 2)
        5 held by ann: why (epoch 2)
        6 rolled_back offset 100, orders/0 0 -> 100 replaying to 900, lost orders/0 [0,100) skipped (epoch 3)
        7 released by ann (epoch 3)
        8 started by a (epoch 3)
        "#,
    );
}

#[test]
fn a_forward_move_is_picked_up_by_a_start_of_the_same_owner() {
    check(
        "
        broker orders id=A 0:0..1000
        start g owner=a topics=orders
        execute g latest
        epoch g
        start g owner=a topics=orders dry
        epoch g
        start g owner=a topics=orders
        epoch g
        start g owner=a topics=orders
        broker orders id=B 0:0..10
        start g owner=a topics=orders
        epoch g
        no-broker
        execute g offset 5 unchecked
        epoch g
        start g
        epoch g
        entries g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        executed seq 3 epoch 2
        orders/0 0 -> 1000
        epoch 2 by rolled_back ann seq 3, owner a, not picked up
        started epoch 2 seq 3
        orders/0 from 1000 in_range
        epoch 2 by rolled_back ann seq 3, owner a, not picked up
        started epoch 2 seq 4
        orders/0 from 1000 in_range
        epoch 2 by rolled_back ann seq 3, owner a, picked up by a
        started epoch 2 seq 4
        orders/0 from 1000 in_range
        started epoch 3 seq 5
        orders/0 from 0 topic_recreated
        found orders/0 topic_recreated 1000 -> 0 in 0..10: topic id QkJCQkJCQkJCQkJCQkJCQg, was QUFBQUFBQUFBQUFBQUFBQQ
        epoch 3 by reconciled a seq 5, owner a, picked up by a
        executed seq 6 epoch 4
        orders/0 0 -> 5
        epoch 4 by rolled_back ann seq 6, owner a, not picked up
        started epoch 4 seq 7
        orders/0 from 5 unchecked
        epoch 4 by rolled_back ann seq 6, owner a, picked up by a
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0 (epoch 1)
        3 rolled_back latest, orders/0 0 -> 1000, lost orders/0 [0,1000) skipped (epoch 2)
        4 started by a (epoch 2)
        5 reconciled, orders is another topic, orders/0 1000 -> 0 (epoch 3)
        6 rolled_back offset 5, orders/0 0 -> 5, lost orders/0 [0,5) skipped (epoch 4)
        7 started by a (epoch 4)
        ",
    );
}
