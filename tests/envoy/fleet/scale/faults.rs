//! Faults of a Redis that is several, under load: as those of a single one, and after a failover at most one further
//! limit is let through, since replicas lag behind.

use std::time::Duration;

use super::cluster::Cluster;
use super::sentinel::Sentinels;
use super::shards::Shards;
use super::{GATEWAYS, gateway, start};
use crate::fleet::faults::print_head;
use crate::fleet::faults::trial::{Fault, RECOVERY, RULES, try_out};
use crate::harness::{Redis, alone};

/// Envoy asks a node of a cluster once a second who has which keys, and another one if that does not answer.
const RELEARNT: Duration = Duration::from_secs(2);

#[test]
fn of_a_cluster() {
    alone();
    let cluster = Cluster::start(None);
    let gateway = gateway(&cluster, &[], RULES);
    let mut fleet = start(cluster, &gateway);
    fleet.comes_together("/hot");
    fleet.redis.nodes.find_caller();
    print_head();
    let lost = Fault::<Cluster> {
        name: "a primary killed",
        cut_off: GATEWAYS,
        kept_from: GATEWAYS,
        recovery: RECOVERY + RELEARNT,
        emptied: 1,
        begin: &|fleet| fleet.redis.strike(Redis::kill),
        end: &|fleet| fleet.redis.has_taken_over(),
        failure: None,
    };
    try_out(&mut fleet, &lost);
    fleet.redis.heals();
    let hung = Fault::<Cluster> {
        name: "a primary stopped",
        begin: &|fleet| fleet.redis.strike(|node| node.freeze()),
        ..lost
    };
    try_out(&mut fleet, &hung);
    fleet.redis.heals();
    let planned = Fault::<Cluster> {
        name: "a planned failover",
        cut_off: 0,
        emptied: 0,
        begin: &|fleet| fleet.redis.fail_over(),
        end: &|_| {},
        ..lost
    };
    try_out(&mut fleet, &planned);
    let moved = Fault::<Cluster> {
        name: "a slot that moves",
        begin: &|fleet| fleet.redis.begin_to_move(),
        end: &|fleet| fleet.redis.has_moved(),
        ..planned
    };
    try_out(&mut fleet, &moved);
    fleet.assert_unharmed();
}

#[test]
fn of_shards() {
    alone();
    let shards = Shards::start();
    let gateway = gateway(&shards, &[], RULES);
    let mut fleet = start(shards, &gateway);
    fleet.comes_together("/hot");
    fleet.redis.nodes.find_caller();
    print_head();
    let hung = Fault::<Shards> {
        name: "a shard stopped",
        cut_off: GATEWAYS,
        kept_from: GATEWAYS,
        recovery: RECOVERY,
        emptied: 0,
        begin: &|fleet| fleet.redis.strike(|node| node.freeze()),
        end: &|fleet| fleet.redis.nodes.revive(),
        failure: None,
    };
    try_out(&mut fleet, &hung);
    let lost = Fault::<Shards> {
        name: "a shard killed, and started empty",
        emptied: 1,
        begin: &|fleet| fleet.redis.strike(Redis::kill),
        end: &|fleet| fleet.redis.nodes.revive(),
        ..hung
    };
    try_out(&mut fleet, &lost);
    fleet.assert_unharmed();
}

#[test]
fn of_whom_sentinels_name() {
    alone();
    let sentinels = Sentinels::start(None);
    let gateway = gateway(&sentinels, &[], RULES);
    let mut fleet = start(sentinels, &gateway);
    fleet.comes_together("/hot");
    print_head();
    let lost = Fault::<Sentinels> {
        name: "the primary killed",
        cut_off: GATEWAYS,
        kept_from: GATEWAYS,
        recovery: RECOVERY,
        emptied: 1,
        begin: &|fleet| fleet.redis.strike(Redis::kill),
        end: &|fleet| fleet.redis.has_taken_over(),
        failure: None,
    };
    try_out(&mut fleet, &lost);
    fleet.redis.heals();
    let hung = Fault::<Sentinels> {
        name: "the primary stopped",
        begin: &|fleet| fleet.redis.strike(|node| node.freeze()),
        ..lost
    };
    try_out(&mut fleet, &hung);
    fleet.redis.heals();
    let planned = Fault::<Sentinels> {
        name: "a planned failover",
        cut_off: 0,
        begin: &|fleet| fleet.redis.fail_over(),
        end: &|fleet| fleet.redis.has_taken_over(),
        ..lost
    };
    try_out(&mut fleet, &planned);
    fleet.assert_unharmed();
}
