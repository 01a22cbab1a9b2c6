//! Verdict 7, and what else becomes of open holes.

use crate::reconcile::tests::script::check;

const GIVEN: &str = "have C t#1 0@500[100,200)[300,400)
     look C t#1 0=0..520";

#[test]
fn holes_that_nobody_looked_into_stay_open() {
    check(
        &format!("{GIVEN}\nstart A t"),
        "epoch 1
         t/0 500 in_range",
    );
}

#[test]
fn c07_a_hole_without_readable_records_is_closed_and_is_no_finding() {
    check(
        &format!("{GIVEN}\nholes t/0[100,200)=none t/0[300,400)=none\nstart A t"),
        "epoch 1
         t/0 500 in_range
         reconciled t/0 500->500",
    );
    // A batch of a marker, [5,6) unread, an idle one; a compacted log whose first record is above the position.
    check(
        "have C t#1 0@0 1@3
         commit t/0 0..5
         commit t/0 6..9
         commit t/0 9..9
         look C t#1 0=0..12 1=0..20
         holes t/0[5,6)=none
         start A t",
        "epoch 1
         t/0 9 in_range
         t/1 3 in_range
         reconciled t/0 9->9",
    );
}

#[test]
fn c14b_a_readable_hole_is_read_again_skipped_or_refused() {
    let given = format!("{GIVEN}\nholes t/0[100,200)=none t/0[300,400)=301");
    check(
        &format!("{given}\nstart A t"),
        "epoch 2
         t/0 300 unread_hole
         found unread_hole t/0 at 500 start 300 ([300, 400) was never read)
         reconciled t/0 500->300",
    );
    check(
        &format!("{given}\npolicy hole=skip\nstart A t"),
        "epoch 1
         t/0 500 unread_hole
         found unread_hole t/0 at 500 start 500 loss [300,400) ([300, 400) was never read)
         reconciled t/0 500->500 unread t/0[300,400)",
    );
    check(
        &format!("{given}\npolicy hole=fail\nstart A t"),
        "refused
         found unread_hole t/0 at 500 ([300, 400) was never read)",
    );
    check(
        "have C t#1 0@500
         commit t/0 9000..9100
         look C t#1 0=0..9200
         holes t/0[500,9000)=500
         start A t
         commit t/0 500..9000",
        "epoch 2
         t/0 500 unread_hole
         found unread_hole t/0 at 9100 start 500 ([500, 9000) was never read)
         reconciled t/0 9100->500",
    );
}

#[test]
fn a_hole_that_was_not_looked_into_or_changed_since_must_be_before_a_start() {
    check(
        &format!("{GIVEN}\nholes t/0[100,200)=none\nstart A t"),
        "again t/0: the hole [300, 400): not looked into yet",
    );
    check(
        &format!("{GIVEN}\nholes t/0[100,200)=none t/0[300,400)=?\nstart A t"),
        "again t/0: the hole [300, 400): timed out",
    );
    check(
        &format!("{GIVEN}\nholes t/0[100,200)=none t/0[300,400)=301\ncommit t/0 300..350\nstart A t"),
        "again t/0: the hole [350, 400): partly filled since it was looked into",
    );
    check(
        &format!("{GIVEN}\nholes t/0[100,200)=none t/0[300,400)=360\ncommit t/0 350..400\nstart A t"),
        "epoch 1
         t/0 500 in_range
         reconciled t/0 500->500",
    );
}

#[test]
fn what_expired_of_a_hole_is_a_loss() {
    check(
        "have C t#1 0@500[100,200)[300,400)
         look C t#1 0=150..520
         start A t",
        "epoch 1
         t/0 500 in_range
         reconciled t/0 500->500[150,200)[300,400) expired t/0[100,150)",
    );
    check(
        "have C t#1 0@500[100,200)
         look C t#1 0=510..520
         start A t",
        "epoch 1
         t/0 510 head_out_of_range
         found head_out_of_range t/0 at 500 start 510 loss [500,510)
         reconciled t/0 500->510 expired t/0[500,510) expired t/0[100,200)",
    );
}

#[test]
fn verdicts_5_and_7_are_both_listed_and_the_lower_answer_is_the_start() {
    check(
        "have C t#1 0@500[100,200)[300,400)
         look C t#1 0=0..350
         look C t#1 0=0..350
         holes t/0[100,200)=100 t/0[300,350)=none
         start A t",
        "epoch 2
         t/0 100 truncated
         found truncated t/0 at 500 start 100 ([350, 500) was read, but is gone from the log)
         found unread_hole t/0 at 500 start 100 ([100, 200) was never read)
         reconciled t/0 500->100",
    );
}
