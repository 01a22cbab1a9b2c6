//! A running consumer's own looks.

use crate::reconcile::tests::script::check;

#[test]
fn c05_growth_and_new_topics_of_a_pattern_are_journaled_and_read() {
    check(
        "have C t#1 0@5 1@6
         look C t#1 0=0..10 1=0..10 2=0..3 u#2 0=4..9
         run t/0 t/1 : ^[tu]$",
        "epoch 1
         t/2 0 partition_added
         u/0 4 partition_added
         found partition_added t/2 start 0
         found partition_added u/0 start 4 loss [0,4)
         partitions_added u#2 t/2 none->0 u/0 none->4 expired u/0[0,4)",
    );
}

#[test]
fn only_what_it_reads_is_judged() {
    check(
        "have C t#1 0@5 1@100 v#3 0@1
         look C t#1 0=0..10 1=250..400 v#4 0=0..1
         look C t#1 0=0..10 1=250..400 v#4 0=0..1
         run t/0 : t v",
        "epoch 1",
    );
}

#[test]
fn c15b_a_recreated_topic_starts_again_and_names_the_batches_in_doubt() {
    check(
        "have C t 0@500 1@4
         commit t/0 500..510
         look C t 0=0..800
         commit t/0 510..520
         commit t/0 520..530
         look C t 0=0..800
         run t/0 : t",
        "epoch 2
         t/0 0 topic_recreated
         found topic_recreated t/0 at 530 start 0 \
         (1 partitions, had 2; batches 2..3 may have been read from the one or the other)
         found topic_recreated t/1 at 4 \
         (1 partitions, had 2; batches 2..3 may have been read from the one or the other; this partition is no more)
         reconciled t! t/0 530->0 t/1 4->none",
    );
}

#[test]
fn c15b_a_deleted_topic_is_said_and_nothing_changes() {
    check(
        "have C t#1 0@500 u#2 0@1
         look C t#1 missing u#2 0=0..1 1=0..1
         run t/0 u/0 : t u
         look C t#1 missing u#2 0=0..1 1=0..1
         run t/0 u/0 : t u",
        "epoch 1
         u/1 0 partition_added
         found partition_added u/1 start 0
         partitions_added u/1 none->0
         unsettled t: topic_missing, seen once; a second look must agree
         epoch 1
         found topic_missing t (no such topic on b:9092; its positions are kept)",
    );
}

#[test]
fn c15b_what_expired_is_a_loss_and_reading_goes_on_also_there() {
    check(
        "have C t#1 0@500 1@4
         look C t#1 0=600..800 1=?
         run t/0 t/1 : t",
        "epoch 1
         t/0 600 head_out_of_range
         found head_out_of_range t/0 at 500 start 600 loss [500,600)
         reconciled t/0 500->600 expired t/0[500,600)
         unsettled t/1: earliest: timed out",
    );
    check(
        "have C t#1 0@500 1@4
         look C t#1 0=600..800 1=?
         policy head=fail
         run t/0 t/1 : t",
        "epoch 1
         refused found head_out_of_range t/0 at 500 loss [500,600)
         unsettled t/1: earliest: timed out",
    );
}

#[test]
fn holes_are_only_closed_or_turned_into_losses() {
    check(
        "have C t#1 0@500[10,20)[100,200)[300,400)
         look C t#1 0=15..520
         holes t/0[100,200)=none t/0[300,400)=300
         run t/0 : t",
        "epoch 1
         reconciled t/0 500->500[15,20)[300,400) expired t/0[10,15)",
    );
}

#[test]
fn a_list_of_topics_that_fails_keeps_nothing_else_from_being_settled() {
    check(
        "have C t#1 0@500
         look C t#1 0=600..800 nolist
         run t/0 : ^t
         look ? t#1 0=700..800
         run t/0 : ^t",
        "epoch 1
         t/0 600 head_out_of_range
         found head_out_of_range t/0 at 500 start 600 loss [500,600)
         reconciled t/0 500->600 expired t/0[500,600)
         unsettled the list of topics: timed out
         again the cluster's id: timed out",
    );
}

#[test]
fn a_retired_topic_is_not_looked_at() {
    check(
        "have C t#1 0@500 u#2 0@1
         retire t
         look C t#1 0=600..800 u#2 0=0..1
         run t/0 u/0 : t u",
        "epoch 1",
    );
}
