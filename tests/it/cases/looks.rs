//! Cases of looks: refusals that repeat, answers that flap, topics that are missing, a log that is still written.

use crate::script::check;

#[test]
fn c12_a_refusal_repeats_and_a_correction_happens_once() {
    check(
        "
        broker orders no-id 0:0..1000
        start g owner=a topics=orders
        commit g orders/0 0..1000
        broker orders no-id 0:0..5
        start g owner=b topics=orders tail=fail
        start g owner=b topics=orders tail=fail
        start g owner=b topics=orders tail=fail
        positions g
        start g owner=b topics=orders
        start g owner=b topics=orders
        start g owner=b topics=orders
        entries g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        refused: group g can't start: orders/0: tail_out_of_range, was at 1000, the log holds [0,5) (the log ends below the position)
        refused: group g can't start: orders/0: tail_out_of_range, was at 1000, the log holds [0,5) (the log ends below the position)
        refused: group g can't start: orders/0: tail_out_of_range, was at 1000, the log holds [0,5) (the log ends below the position)
        orders/0 1000
        started epoch 2 seq 5
        orders/0 from 0 tail_out_of_range
        found orders/0 tail_out_of_range 1000 -> 0 in 0..5: the log ends below the position, and no topic id tells whether it is the same
        started epoch 2 seq 5
        orders/0 from 0 in_range
        started epoch 2 seq 5
        orders/0 from 0 in_range
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,1000) (epoch 1)
        4 started by b (epoch 2)
        5 reconciled, orders/0 1000 -> 0 (epoch 2)
        ",
    );
}

#[test]
fn c12_each_policy_that_fails_repeats_itself() {
    check(
        "
        broker orders id=A 0:0..100
        start g owner=a topics=orders
        commit g orders/0 0..50
        commit g orders/0 60..100
        broker orders id=A 0:55..300
        readable orders/0 0..300
        start g owner=b topics=orders hole=fail
        start g owner=b topics=orders hole=fail
        start g owner=b topics=orders head=fail
        broker orders id=A 0:200..300
        start g owner=b topics=orders head=fail
        start g owner=b topics=orders head=fail
        broker orders id=B 0:0..3
        start g owner=b topics=orders recreated=fail
        start g owner=b topics=orders recreated=fail
        broker orders missing
        start g owner=b topics=orders
        start g owner=b topics=orders
        start g owner=b topics=orders missing=skip
        positions g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4, hole orders/0 [50,60)
        refused: group g can't start: orders/0: unread_hole, was at 100, the log holds [55,300) ([55, 60) was never read)
        refused: group g can't start: orders/0: unread_hole, was at 100, the log holds [55,300) ([55, 60) was never read)
        started epoch 2 seq 6
        orders/0 from 55 unread_hole
        found orders/0 unread_hole 100 -> 55 in 55..300: [55, 60) was never read
        refused: group g can't start: orders/0: head_out_of_range, was at 55, the log holds [200,300)
        refused: group g can't start: orders/0: head_out_of_range, was at 55, the log holds [200,300)
        refused: group g can't start: orders/0: topic_recreated, was at 55, the log holds [0,3) (topic id QkJCQkJCQkJCQkJCQkJCQg, was QUFBQUFBQUFBQUFBQUFBQQ)
        refused: group g can't start: orders/0: topic_recreated, was at 55, the log holds [0,3) (topic id QkJCQkJCQkJCQkJCQkJCQg, was QUFBQUFBQUFBQUFBQUFBQQ)
        refused: group g can't start: orders: topic_missing (no such topic on fake:9092; its positions are kept)
        refused: group g can't start: orders: topic_missing (no such topic on fake:9092; its positions are kept)
        started epoch 2 seq 6
        found orders topic_missing - -> - in -..-: no such topic on fake:9092; its positions are kept
        orders/0 55
        ",
    );
}

#[test]
fn c12b_an_open_transaction_is_no_lost_tail() {
    check(
        "
        broker orders id=A 0:0..17(10)
        start g owner=a topics=orders isolation=uncommitted
        commit g orders/0 0..17
        start g owner=b topics=orders
        start g owner=b topics=orders isolation=committed
        lag g
        entries g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group readable to 10
        batch 1 seq 3
        started epoch 2 seq 4
        orders/0 from 17 in_range readable to 10
        started epoch 3 seq 5
        orders/0 from 17 in_range readable to 10
        orders/0 at 17 end 10 lag 0
        1 started by a uncommitted (epoch 1)
        2 reconciled, orders/0 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,17) (epoch 1)
        4 started by b uncommitted (epoch 2)
        5 started by b (epoch 3)
        ",
    );
}

#[test]
fn c13_looks_that_flap_correct_nothing() {
    check(
        "
        broker orders id=A 0:0..520 1:0..9 2:0..9 3:0..9
        start g owner=a topics=orders
        commit g orders/0 0..500 orders/1 0..9 orders/2 0..9 orders/3 0..9
        flap orders id=A 0:0..480 1:0..9 2:0..9 3:0..9
        start g owner=a topics=orders
        flap orders id=A 0:0..0 1:0..9 2:0..9 3:0..9
        start g owner=a topics=orders
        flap orders id=A 0:0..520 1:0..9
        start g owner=a topics=orders
        flap orders error
        start g owner=a topics=orders
        flap orders missing
        start g owner=a topics=orders
        flap orders no-id 0:0..5 1:0..5 2:0..5 3:0..5
        start g owner=a topics=orders
        flap orders id=B 0:0..5 1:0..5 2:0..5 3:0..5
        start g owner=a topics=orders
        flap orders id=A 0:? 1:0..9 2:0..9 3:0..9
        flap orders id=A 0:0..480 1:0..9 2:0..9 3:0..9
        start g owner=a topics=orders
        entries g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        orders/1 from 0 new_group
        orders/2 from 0 new_group
        orders/3 from 0 new_group
        batch 1 seq 3
        started epoch 1 seq 3
        orders/0 from 500 in_range
        orders/1 from 9 in_range
        orders/2 from 9 in_range
        orders/3 from 9 in_range
        started epoch 1 seq 3
        orders/0 from 500 in_range
        orders/1 from 9 in_range
        orders/2 from 9 in_range
        orders/3 from 9 in_range
        started epoch 1 seq 3
        orders/0 from 500 in_range
        orders/1 from 9 in_range
        orders/2 from 9 in_range
        orders/3 from 9 in_range
        started epoch 1 seq 3
        orders/0 from 500 in_range
        orders/1 from 9 in_range
        orders/2 from 9 in_range
        orders/3 from 9 in_range
        started epoch 1 seq 3
        orders/0 from 500 in_range
        orders/1 from 9 in_range
        orders/2 from 9 in_range
        orders/3 from 9 in_range
        started epoch 1 seq 3
        orders/0 from 500 in_range
        orders/1 from 9 in_range
        orders/2 from 9 in_range
        orders/3 from 9 in_range
        started epoch 1 seq 3
        orders/0 from 500 in_range
        orders/1 from 9 in_range
        orders/2 from 9 in_range
        orders/3 from 9 in_range
        started epoch 1 seq 3
        orders/0 from 500 in_range
        orders/1 from 9 in_range
        orders/2 from 9 in_range
        orders/3 from 9 in_range
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0, orders/1 - -> 0, orders/2 - -> 0, orders/3 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,500) orders/1 [0,9) orders/2 [0,9) orders/3 [0,9) (epoch 1)
        ",
    );
}

#[test]
fn c13_an_answer_that_stays_without_its_values_is_unknown_and_never_a_reset() {
    check(
        "
        broker orders id=A 0:0..520 1:0..9
        start g owner=a topics=orders
        commit g orders/0 0..500
        broker orders error
        start g owner=a topics=orders
        broker orders id=A 0:0..520
        start g owner=a topics=orders
        broker orders no-id 0:0..5 1:0..5
        start g owner=a topics=orders
        broker orders id=A 0:0..? 1:0..9
        look g owner=a topics=orders
        positions g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        orders/1 from 0 new_group
        batch 1 seq 3
        refused: fake:9092 did not settle where to start within 0.25 s: orders: timed out
        refused: fake:9092 did not settle where to start within 0.25 s: orders/1: the journal has partition 1, but fake:9092 lists 1 partitions under the same topic id; if that stays so, a commit named it by mistake: once the topic has 2 partitions, the group can start
        refused: fake:9092 did not settle where to start within 0.25 s: orders: no id in the answer, it is known by QUFBQUFBQUFBQUFBQUFBQQ
        looked epoch 1 seq 3
        unsettled orders/0: latest: no leader
        orders/0 500
        orders/1 0
        ",
    );
}

#[test]
fn c13_a_former_id_is_an_old_answer() {
    check(
        "
        broker orders id=A 0:0..520
        start g owner=a topics=orders
        broker orders id=B 0:0..30
        start g owner=b topics=orders
        commit g orders/0 0..30
        broker orders id=A 0:0..520
        start g owner=c topics=orders
        plan g offset 10
        positions g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        started epoch 2 seq 4
        orders/0 from 0 topic_recreated
        found orders/0 topic_recreated 0 -> 0 in 0..30: topic id QkJCQkJCQkJCQkJCQkJCQg, was QUFBQUFBQUFBQUFBQUFBQQ
        batch 1 seq 5
        refused: fake:9092 did not settle where to start within 0.25 s: orders: the answer is of a former topic, id QUFBQUFBQUFBQUFBQUFBQQ
        orders/0 30 -> - start 30 unknown
        not executable: orders/0: the broker did not say where it is (the broker answers for a topic that is no more); leave_unmovable leaves it where it is and moves the others
        nothing to do
        orders/0 30
        ",
    );
}

#[test]
fn c17_a_missing_topic_stays_missing_and_keeps_its_position() {
    check(
        "
        broker orders id=A 0:0..100
        broker other id=B 0:0..100
        start g owner=a topics=orders,other
        commit g orders/0 0..100 other/0 0..100
        broker orders missing
        start g owner=b topics=orders,other
        start g owner=b
        look g owner=a topics=orders,other
        plan g before 1
        lag g
        start g owner=b topics=orders,other missing=skip
        positions g
        start h owner=b topics=nothing
        start h owner=b topics=^nothing.* missing=skip
        groups
        ",
        r#"
        started epoch 1 seq 2
        orders/0 from 0 new_group
        other/0 from 0 new_group
        batch 1 seq 3
        refused: group g can't start: orders: topic_missing (no such topic on fake:9092; its positions are kept)
        refused: group g can't start: orders: topic_missing (no such topic on fake:9092; its positions are kept)
        looked epoch 1 seq 3
        found orders topic_missing - -> - in -..-: no such topic on fake:9092; its positions are kept
        to seq 2 batch 0 of 2026-11-30T09:00:00Z
        orders/0 100 -> - start 100 missing
        other/0 100 -> 0 exact replayed 100
        not executable: orders/0: the broker has no such topic; leave_unmovable leaves it where it is and moves the others
        orders/0 at 100 end - lag -
        other/0 at 100 end 100 lag 0
        started epoch 2 seq 4
        other/0 from 100 in_range
        found orders topic_missing - -> - in -..-: no such topic on fake:9092; its positions are kept
        orders/0 100
        other/0 100
        refused: group h can't start: nothing: topic_missing (no such topic on fake:9092)
        refused: group h can't start: topic_missing (no topic matches ^nothing.*)
        "g"
        "#,
    );
}

#[test]
fn c26_a_position_that_rises_between_the_looks_is_in_range() {
    check(
        "
        broker orders id=A 0:0..500
        start g owner=a topics=orders
        commit g orders/0 0..500
        meanwhile g orders/0 500..505
        start g owner=a topics=orders
        lag g
        meanwhile g orders/0 505..510
        look g owner=a topics=orders
        plan g latest
        entries g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        started epoch 1 seq 4
        orders/0 from 505 in_range
        orders/0 at 505 end 500 lag 0
        looked epoch 1 seq 5
        orders/0 510 -> 500 exact replayed 10
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,500) (epoch 1)
        4 batch 2 orders/0 [500,505) (epoch 1)
        5 batch 3 orders/0 [505,510) (epoch 1)
        ",
    );
}
