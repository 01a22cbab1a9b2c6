//! Cases of rollbacks: to a batch, a commit time, past what is gone; keys and ranges that come again.

use crate::script::check;

#[test]
fn c04_to_before_a_batch_and_after_it() {
    check(
        "
        broker orders id=A 0:0..10
        start g owner=a topics=orders
        commit g orders/0 0..10
        start g owner=b topics=orders
        plan g before 1
        execute last
        start g owner=b topics=orders
        plan g after 1
        execute last
        start g owner=b topics=orders
        entries g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        started epoch 2 seq 4
        orders/0 from 10 in_range
        to seq 2 batch 0 of 2026-11-30T09:00:00Z
        orders/0 10 -> 0 exact replayed 10
        executed seq 5 epoch 3
        orders/0 10 -> 0 replaying to 10
        started epoch 3 seq 6
        orders/0 from 0 in_range replaying to 10
        to seq 3 batch 1 of 2026-11-30T09:00:00Z
        orders/0 0 -> 10 exact skipped 10
        executed seq 7 epoch 4
        orders/0 0 -> 10
        started epoch 4 seq 8
        orders/0 from 10 in_range
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,10) (epoch 1)
        4 started by b (epoch 2)
        5 rolled_back before batch 1, orders/0 10 -> 0 replaying to 10 (epoch 3)
        6 started by b (epoch 3)
        7 rolled_back after batch 1, orders/0 0 -> 10, lost orders/0 [0,10) skipped (epoch 4)
        8 started by b (epoch 4)
        ",
    );
}

const SEVEN: &str = "
    broker orders id=A 0:0..1000
    start g owner=a topics=orders
    commit g orders/0 0..500 key=j
    commit g orders/0 500..542 key=k
    execute g before 2
";

#[test]
fn c04b_the_same_key_and_range_is_a_new_batch() {
    check(
        &format!(
            "{SEVEN}
            commit g orders/0 500..542 key=k
            commit g orders/0 500..542 key=k
            reopen
            commit g orders/0 500..542 key=k
            close
            commit g orders/0 500..542 key=k
            commit g orders/0 0..500 key=j
            positions g
            history g
            "
        ),
        r#"
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4
        executed seq 5 epoch 2
        orders/0 542 -> 500 replaying to 542
        batch 3 seq 6
        batch 3 seq 6 again
        batch 3 seq 6 again
        batch 3 seq 6 again
        batch 1 seq 3 again
        orders/0 542
        3 batch 1 orders/0 [0,500) key "j" (epoch 1)
        4 batch 2 orders/0 [500,542) key "k" (epoch 1)
        6 batch 3 orders/0 [500,542) key "k" (epoch 2)
        "#,
    );
}

#[test]
fn c04b_the_same_range_without_a_key_is_a_new_batch() {
    check(
        "
        broker orders id=A 0:0..1000
        start g owner=a topics=orders
        commit g orders/0 0..500
        commit g orders/0 500..542
        execute g before 2
        commit g orders/0 500..542
        positions g
        commit g orders/0 500..542
        reopen
        commit g orders/0 500..542
        history g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4
        executed seq 5 epoch 2
        orders/0 542 -> 500 replaying to 542
        batch 3 seq 6
        orders/0 542
        batch 3 seq 6 again
        batch 3 seq 6 again
        3 batch 1 orders/0 [0,500) (epoch 1)
        4 batch 2 orders/0 [500,542) (epoch 1)
        6 batch 3 orders/0 [500,542) (epoch 2)
        ",
    );
}

#[test]
fn c04b_the_range_cut_otherwise_under_the_same_key_is_a_new_batch() {
    check(
        &format!(
            "{SEVEN}
            commit g orders/0 500..550 key=k
            commit g orders/0 500..550 key=k
            commit g orders/0 500..542 key=k
            positions g
            "
        ),
        r#"
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4
        executed seq 5 epoch 2
        orders/0 542 -> 500 replaying to 542
        batch 3 seq 6
        batch 3 seq 6 again
        refused: key "k" was used for batch 3 with other ranges
        orders/0 550
        "#,
    );
}

#[test]
fn c04b_under_the_old_epoch_it_is_fenced() {
    check(
        &format!(
            "{SEVEN}
            commit g orders/0 500..542 key=k epoch=1
            positions g
            history g
            "
        ),
        r#"
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4
        executed seq 5 epoch 2
        orders/0 542 -> 500 replaying to 542
        refused: fenced: read under epoch 1, but group g is at epoch 2 (rolled_back by ann, seq 5); start again
        orders/0 500 replaying to 542
        3 batch 1 orders/0 [0,500) key "j" (epoch 1)
        4 batch 2 orders/0 [500,542) key "k" (epoch 1)
        "#,
    );
}

#[test]
fn c08_commit_times() {
    check(
        "
        broker orders id=A 0:0..180
        start g owner=a topics=orders
        clock 2026-11-30T10:00:00Z
        commit g orders/0 0..100
        clock 2026-11-30T11:00:00Z
        commit g orders/0 100..180
        clock 2026-11-30T11:30:00Z
        plan g committed 2026-11-30T10:30:00Z
        plan g committed 2026-11-30T12:00:00Z
        execute last
        plan g committed 2027-11-30T10:00:00Z
        execute last
        plan g committed 2026-11-30T08:00:00Z
        plan g committed 2026-11-30T09:30:00Z
        plan g committed 2026-11-30T10:00:00Z
        plan g committed 2026-11-30T09:59:59.999Z
        plan g committed 2026-11-30T11:00:00Z
        plan g committed 2026-11-30T10:59:59.999Z
        execute g committed 2026-11-30T10:30:00Z
        positions g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4
        to seq 3 batch 1 of 2026-11-30T10:00:00Z
        orders/0 180 -> 100 exact replayed 80
        orders/0 180 -> 180 unchanged
        nothing to do
        nothing done, epoch 1
        orders/0 180 -> 180 unchanged
        nothing to do
        nothing done, epoch 1
        refused: committed by 2026-11-30T08:00:00Z is before the history of group g: its oldest batch is 1, recorded at 2026-11-30T10:00:00Z
        refused: committed by 2026-11-30T09:30:00Z is before the history of group g: its oldest batch is 1, recorded at 2026-11-30T10:00:00Z
        to seq 3 batch 1 of 2026-11-30T10:00:00Z
        orders/0 180 -> 100 exact replayed 80
        refused: committed by 2026-11-30T09:59:59.999Z is before the history of group g: its oldest batch is 1, recorded at 2026-11-30T10:00:00Z
        orders/0 180 -> 180 unchanged
        nothing to do
        to seq 3 batch 1 of 2026-11-30T10:00:00Z
        orders/0 180 -> 100 exact replayed 80
        executed seq 5 epoch 2
        orders/0 180 -> 100 replaying to 180
        orders/0 100 replaying to 180
        ",
    );
}

#[test]
fn c26b_one_topic_of_three_was_deleted() {
    check(
        "
        broker a id=A 0:0..100
        broker b id=B 0:0..100
        broker c id=C 0:0..100
        start g owner=a topics=a,b,c
        commit g a/0 0..100 b/0 0..100 c/0 0..100
        broker b missing
        execute g before 1
        positions g
        plan g before 1 leave
        execute last
        positions g
        execute g before 1 unchecked scope=b
        positions g
        start g owner=a topics=a,c
        broker b id=B 0:0..100
        start g owner=a topics=a,b,c
        ",
        "
        started epoch 1 seq 2
        a/0 from 0 new_group
        b/0 from 0 new_group
        c/0 from 0 new_group
        batch 1 seq 3
        refused: b/0: the broker has no such topic; leave_unmovable leaves it where it is and moves the others
        a/0 100
        b/0 100
        c/0 100
        to seq 2 batch 0 of 2026-11-30T09:00:00Z
        a/0 100 -> 0 exact replayed 100
        b/0 100 -> - start 100 missing
        c/0 100 -> 0 exact replayed 100
        executed seq 4 epoch 2
        a/0 100 -> 0 replaying to 100
        c/0 100 -> 0 replaying to 100
        a/0 0 replaying to 100
        b/0 100
        c/0 0 replaying to 100
        executed seq 5 epoch 3
        b/0 100 -> 0 replaying to 100
        a/0 0 replaying to 100
        b/0 0 replaying to 100
        c/0 0 replaying to 100
        started epoch 3 seq 6
        a/0 from 0 in_range replaying to 100
        c/0 from 0 in_range replaying to 100
        started epoch 3 seq 6
        a/0 from 0 in_range replaying to 100
        b/0 from 0 in_range replaying to 100
        c/0 from 0 in_range replaying to 100
        ",
    );
}

#[test]
fn c26b_one_partition_has_no_leader() {
    check(
        "
        broker a id=A 0:0..100 1:0..100
        start g owner=a topics=a
        commit g a/0 0..100 a/1 0..100
        broker a id=A 0:0..100 1:?
        execute g before 1
        plan g before 1 leave
        execute last
        positions g
        ",
        "
        started epoch 1 seq 2
        a/0 from 0 new_group
        a/1 from 0 new_group
        batch 1 seq 3
        refused: a/1: the broker did not say where it is (no leader); leave_unmovable leaves it where it is and moves the others
        to seq 2 batch 0 of 2026-11-30T09:00:00Z
        a/0 100 -> 0 exact replayed 100
        a/1 100 -> - start 100 unknown
        executed seq 4 epoch 2
        a/0 100 -> 0 replaying to 100
        a/0 0 replaying to 100
        a/1 100
        ",
    );
}

#[test]
fn c26b_the_broker_is_down() {
    check(
        "
        broker a id=A 0:0..100 1:0..100
        start g owner=a topics=a
        commit g a/0 0..80 a/1 0..80
        broker a error
        execute g before 1
        execute g latest
        execute g latest unchecked
        plan g before 1 unchecked
        execute last
        broker a id=A 0:50..100 1:0..100
        start g owner=a topics=a
        losses g
        ",
        r#"
        started epoch 1 seq 2
        a/0 from 0 new_group
        a/1 from 0 new_group
        batch 1 seq 3
        refused: no answer from fake:9092 within 250ms; unchecked moves the group without asking, and the next start looks
        refused: no answer from fake:9092 within 250ms
        refused: unchecked "latest": this target can't be found without asking the broker
        to seq 2 batch 0 of 2026-11-30T09:00:00Z
        a/0 80 -> 0 unchecked replayed 80
        a/1 80 -> 0 unchecked replayed 80
        executed seq 4 epoch 2
        a/0 80 -> 0 replaying to 80
        a/1 80 -> 0 replaying to 80
        started epoch 2 seq 6
        a/0 from 50 head_out_of_range replaying to 80
        a/1 from 0 in_range replaying to 80
        found a/0 head_out_of_range 0 -> 50 in 50..100 lost [0,50)
        a/0 [0,50) expired seq 6
        "#,
    );
}

#[test]
fn c26c_before_a_batch_that_overlapped_goes_to_its_own_begin() {
    check(
        "
        broker orders id=A 0:0..500
        start g owner=a topics=orders
        commit g orders/0 0..100
        commit g orders/0 50..150
        plan g before 2
        plan g after 2
        execute g before 2
        positions g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4, overlap orders/0 [50,100)
        to seq 3 batch 1 of 2026-11-30T09:00:00Z
        orders/0 150 -> 50 exact replayed 100
        to seq 4 batch 2 of 2026-11-30T09:00:00Z
        orders/0 150 -> 150 unchanged
        nothing to do
        executed seq 5 epoch 2
        orders/0 150 -> 50 replaying to 150
        orders/0 50 replaying to 150
        ",
    );
}
