//! `POST /v1/groups/{g}/hold`, `/release`, `/retire`, `POST /v1/losses/{seq}/acknowledge`: an operator's entries.

use super::table::check;
use super::world::World;

#[test]
fn an_operator_stops_frees_and_lets_go_a_group_and_sees_a_loss() {
    check(
        &World::scripted(),
        r#"
        ! broker orders id=A 0:7..520
        > POST /v1/groups/g/start {"topics": ["orders"], "owner": "o", "new_group": {"offsets": [{"topic": "orders", "partition": 0, "offset": 9}]}}
        200 {"epoch": "1", "..": 0}
        > POST /v1/groups/g/rollback {"to": {"offset": 20}, "actor": "ann", "reason": "why"}
        200 {"seq": "3", "..": 0}
        > POST /v1/losses/3/acknowledge {"actor": "ann"}
        201 {"seq": "4", "group": "g", "app": "default", "recorded_at": "2026-11-30T09:00:00Z",
         "machine_clock": "2026-11-30T09:00:00Z", "epoch": "2", "kind": "loss_acknowledged", "of": "3", "actor": "ann"}
        > POST /v1/losses/3/acknowledge {"actor": "ann"}
        400 invalid {"field": "seq", "value": "3", "limit": "*"}
        > POST /v1/losses/x/acknowledge {"actor": "ann"}
        400 invalid {"field": "seq", "value": "x", "limit": "*"}
        > POST /v1/groups/g/release {"actor": "ann"}
        400 invalid {"field": "group", "value": "g", "limit": "not on hold"}
        > POST /v1/groups/g/hold {"reason": "mending the sink", "actor": "ann"}
        201 {"seq": "5", "kind": "held", "reason": "mending the sink", "actor": "ann", "..": 0}
        > POST /v1/groups/g/hold {"reason": "again", "actor": "bob"}
        409 held {"held": {"reason": "mending the sink", "actor": "ann", "since": "2026-11-30T09:00:00Z", "seq": "5"}}
        > POST /v1/groups/g/hold {"reason": "", "actor": "bob"}
        400 invalid {"field": "reason", "..": 0}
        > POST /v1/groups/g/release {"actor": "bob"}
        201 {"seq": "6", "kind": "released", "actor": "bob", "..": 0}
        > POST /v1/groups/g/retire {"topic": "nothing", "actor": "ann"}
        404 unknown-topic {"..": 0}
        > POST /v1/groups/g/retire {"topic": "orders", "actor": "ann"}
        201 {"seq": "7", "kind": "retired", "topic": "orders", "..": 0}
        > POST /v1/groups/g/retire {"actor": "ann"}
        201 {"seq": "8", "kind": "retired", "topic": null, "..": 0}
        > POST /v1/groups/g/retire {"actor": "ann"}
        400 invalid {"field": "group", "..": 0}
        > POST /v1/groups/nobody/hold {"reason": "why", "actor": "ann"}
        404 unknown-group {"apps": []}
        "#,
    );
}
