//! Cases of data that is gone: expired, recreated, grown, on another cluster.

use crate::script::check;

#[test]
fn c01_expired_head() {
    check(
        "
        broker orders id=A 0:0..300 1:0..50
        start g owner=a topics=orders
        commit g orders/0 0..100 orders/1 0..50
        broker orders id=A 0:250..400 1:0..50
        start g owner=b topics=orders
        start g owner=b topics=orders
        reopen
        positions g
        losses g
        entries g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        orders/1 from 0 new_group
        batch 1 seq 3
        started epoch 2 seq 5
        orders/0 from 250 head_out_of_range
        orders/1 from 50 in_range
        found orders/0 head_out_of_range 100 -> 250 in 250..400 lost [100,250)
        started epoch 2 seq 5
        orders/0 from 250 in_range
        orders/1 from 50 in_range
        orders/0 250
        orders/1 50
        orders/0 [100,250) expired seq 5
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0, orders/1 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,100) orders/1 [0,50) (epoch 1)
        4 started by b (epoch 2)
        5 reconciled, orders/0 100 -> 250, lost orders/0 [100,250) expired (epoch 2)
        ",
    );
}

#[test]
fn c01_expired_head_of_a_log_that_is_empty() {
    check(
        "
        broker orders id=A 0:0..300 1:0..50
        start g owner=a topics=orders
        commit g orders/0 0..100 orders/1 0..50
        broker orders id=A 0:400..400 1:0..50
        start g owner=b topics=orders tail=latest
        positions g
        losses g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        orders/1 from 0 new_group
        batch 1 seq 3
        started epoch 2 seq 5
        orders/0 from 400 head_out_of_range
        orders/1 from 50 in_range
        found orders/0 head_out_of_range 100 -> 400 in 400..400 lost [100,400)
        orders/0 400
        orders/1 50
        orders/0 [100,400) expired seq 5
        ",
    );
}

#[test]
fn c02_recreated_topic() {
    check(
        "
        broker orders id=A 0:0..1000
        start g owner=a topics=orders
        commit g orders/0 0..600
        commit g orders/0 600..1000
        broker orders id=B 0:0..5
        start g owner=b topics=orders
        positions g
        losses g
        history g
        positions g @batch=1
        plan g after 1
        plan g before 2 leave
        execute g after 1
        commit g orders/0 0..5 id=orders:A
        commit g orders/0 0..5 id=orders:B
        plan g after 3
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4
        started epoch 2 seq 6
        orders/0 from 0 topic_recreated
        found orders/0 topic_recreated 1000 -> 0 in 0..5: topic id QkJCQkJCQkJCQkJCQkJCQg, was QUFBQUFBQUFBQUFBQUFBQQ
        orders/0 0
        3 batch 1 orders/0 [0,600) (epoch 1)
        4 batch 2 orders/0 [600,1000) (epoch 1)
        orders/0 600
        to seq 3 batch 1 of 2026-11-30T09:00:00Z
        orders/0 0 -> - start 0 recreated
        not executable: orders/0: the topic was deleted and created again since, its old offsets mean nothing now; leave_unmovable leaves it where it is and moves the others
        nothing to do
        to seq 3 batch 1 of 2026-11-30T09:00:00Z
        orders/0 0 -> - start 0 recreated
        nothing to do
        refused: orders/0: the topic was deleted and created again since, its old offsets mean nothing now; leave_unmovable leaves it where it is and moves the others
        refused: fenced: orders was read under topic id QUFBQUFBQUFBQUFBQUFBQQ, but is QkJCQkJCQkJCQkJCQkJCQg now; start group g again
        batch 3 seq 7
        to seq 7 batch 3 of 2026-11-30T09:00:00Z
        orders/0 5 -> 5 unchanged
        nothing to do
        ",
    );
}

#[test]
fn c02_recreated_topic_that_is_empty() {
    check(
        "
        broker orders id=A 0:0..1000 1:0..9
        start g owner=a topics=orders
        commit g orders/0 0..1000
        broker orders id=B 0:0..0
        start g owner=b topics=orders
        start g owner=b topics=orders
        positions g
        entries g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        orders/1 from 0 new_group
        batch 1 seq 3
        started epoch 2 seq 5
        orders/0 from 0 topic_recreated
        found orders/0 topic_recreated 1000 -> 0 in 0..0: topic id QkJCQkJCQkJCQkJCQkJCQg, was QUFBQUFBQUFBQUFBQUFBQQ
        found orders/1 topic_recreated 0 -> - in -..-: topic id QkJCQkJCQkJCQkJCQkJCQg, was QUFBQUFBQUFBQUFBQUFBQQ; this partition is no more
        started epoch 2 seq 5
        orders/0 from 0 in_range
        orders/0 0
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0, orders/1 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,1000) (epoch 1)
        4 started by b (epoch 2)
        5 reconciled, orders is another topic, orders/0 1000 -> 0, orders/1 0 -> - (epoch 2)
        ",
    );
}

#[test]
fn c05_growth_at_a_start_begins_at_the_new_partitions_earliest() {
    for policy in ["", "new=latest tail=latest", "new=fail"] {
        check(
            &format!(
                "
                broker orders id=A 0:0..100 1:0..100
                start g owner=a topics=orders
                commit g orders/0 0..100 orders/1 0..100
                broker orders id=A 0:0..100 1:0..100 2:0..37 3:12..40
                start g owner=b topics=orders {policy}
                losses g
                entries g
                "
            ),
            "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        orders/1 from 0 new_group
        batch 1 seq 3
        started epoch 2 seq 5
        orders/0 from 100 in_range
        orders/1 from 100 in_range
        orders/2 from 0 partition_added
        orders/3 from 12 partition_added
        found orders/2 partition_added - -> 0 in 0..37
        found orders/3 partition_added - -> 12 in 12..40 lost [0,12)
        orders/3 [0,12) expired seq 5
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0, orders/1 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,100) orders/1 [0,100) (epoch 1)
        4 started by b (epoch 2)
        5 partitions_added, orders/2 - -> 0, orders/3 - -> 12, lost orders/3 [0,12) expired (epoch 2)
        ",
        );
    }
}

#[test]
fn c05_growth_while_running_is_in_the_journal_before_it_is_read() {
    check(
        "
        broker orders id=A 0:0..100 1:0..100
        start g owner=a topics=orders
        broker orders id=A 0:0..100 1:0..100 2:0..37 3:12..40
        look g owner=a topics=orders
        look g owner=a topics=orders
        commit g orders/2 0..37 orders/3 12..40
        positions g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        orders/1 from 0 new_group
        looked epoch 1 seq 3
        orders/2 from 0 partition_added
        orders/3 from 12 partition_added
        found orders/2 partition_added - -> 0 in 0..37
        found orders/3 partition_added - -> 12 in 12..40 lost [0,12)
        looked epoch 1 seq 3
        batch 1 seq 4
        orders/0 0
        orders/1 0
        orders/2 37
        orders/3 40
        ",
    );
}

#[test]
fn another_cluster_is_refused_until_it_is_accepted_by_its_id() {
    check(
        "
        cluster X
        broker orders id=A 0:0..500
        start g owner=a topics=orders
        commit g orders/0 0..500
        cluster Y
        start g owner=b topics=orders
        start g owner=b topics=orders
        plan g before 1
        start g owner=b topics=orders cluster=Z
        start g owner=b topics=orders cluster=Y
        plan g after 1
        entries g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        refused: group g can't start: other_cluster (the group belongs to cluster X, but fake:9092 is cluster Y; to move the group there accept it by that id)
        refused: group g can't start: other_cluster (the group belongs to cluster X, but fake:9092 is cluster Y; to move the group there accept it by that id)
        to seq 2 batch 0 of 2026-11-30T09:00:00Z
        orders/0 500 -> - start 500 unknown
        not executable: orders/0: the broker did not say where it is (the broker belongs to cluster Y, the group to X); leave_unmovable leaves it where it is and moves the others
        nothing to do
        refused: group g can't start: other_cluster (the group belongs to cluster X, but fake:9092 is cluster Y; to move the group there accept it by that id)
        started epoch 2 seq 5
        orders/0 from 0 other_cluster
        found orders/0 other_cluster 500 -> 0 in 0..500: cluster Y, was X; accepted
        to seq 3 batch 1 of 2026-11-30T09:00:00Z
        orders/0 0 -> - start 0 recreated
        not executable: orders/0: the topic was deleted and created again since, its old offsets mean nothing now; leave_unmovable leaves it where it is and moves the others
        nothing to do
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0, cluster X (epoch 1)
        3 batch 1 orders/0 [0,500) (epoch 1)
        4 started by b (epoch 2)
        5 reconciled, orders is another topic, orders/0 500 -> 0, cluster Y (epoch 2)
        ",
    );
}
