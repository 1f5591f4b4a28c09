//! Faults of several Redis servers under load. After a failover at most one further limit is
//! admitted, since replicas lag.

use super::cluster::Cluster;
use super::sentinel::Sentinels;
use super::shards::Shards;
use super::{Fleet, Servers, gateway, start};
use crate::harness::{PASSWORD, Redis};
use crate::load::fleet::measure::{Fault, RULES, measure, print_head};

/// Servers with replicas that take over.
pub trait Replicated: Servers {
    /// Applies a fault to the primary with the counted caller.
    fn apply_fault(&mut self, how: impl FnOnce(&mut Redis));

    /// Waits until a replica has taken over.
    fn has_taken_over(&self);

    /// Waits until the proxies of the gateways know the new primary, if they have to discover it
    /// themselves.
    fn wait_until_known(_fleet: &Fleet<Self>)
    where
        Self: Sized,
    {
    }

    /// Repairs the faulty server, and waits until all replicas follow.
    fn heals(&mut self);
}

/// Starts gateways, and counts one caller.
#[track_caller]
fn under_load<S: Servers>(servers: S) -> Fleet<S> {
    let gateway = gateway(&servers, &[], RULES);
    let fleet = start(servers, &gateway);
    fleet.load_until_together("/hot");
    print_head();
    fleet
}

/// Kills a primary, and stops another one.
#[track_caller]
fn lose_primaries<S: Replicated>(fleet: &mut Fleet<S>) {
    let killed = Fault::<S> {
        name: "a primary killed",
        losses: 1,
        begin: &|fleet| fleet.redis.apply_fault(Redis::kill),
        end: &|fleet| {
            fleet.redis.has_taken_over();
            S::wait_until_known(fleet);
        },
        failure: None,
    };
    let stopped = Fault::<S> {
        name: "a primary stopped (SIGSTOP)",
        begin: &|fleet| fleet.redis.apply_fault(|node| node.freeze()),
        ..killed
    };
    for fault in [killed, stopped] {
        measure(fleet, &fault);
        fleet.redis.heals();
    }
}

#[test]
fn cluster_faults_fail_no_request() {
    let mut fleet = under_load(Cluster::start(None));
    fleet.redis.nodes.find_caller();
    lose_primaries(&mut fleet);
    let planned = Fault::<Cluster> {
        name: "a planned failover",
        losses: 0,
        begin: &|fleet| fleet.redis.fail_over(),
        end: &|_| {},
        failure: None,
    };
    measure(&mut fleet, &planned);
    let moved = Fault::<Cluster> {
        name: "a slot that moves",
        begin: &|fleet| fleet.redis.begin_to_move(),
        end: &|fleet| fleet.redis.has_moved(),
        ..planned
    };
    measure(&mut fleet, &moved);
    fleet.assert_unharmed();
}

#[test]
fn shard_faults_fail_no_request() {
    let mut fleet = under_load(Shards::start());
    fleet.redis.nodes.find_caller();
    let stopped = Fault::<Shards> {
        name: "a shard stopped (SIGSTOP)",
        losses: 0,
        begin: &|fleet| fleet.redis.apply_fault(|node| node.freeze()),
        end: &|fleet| fleet.redis.nodes.revive(),
        failure: None,
    };
    measure(&mut fleet, &stopped);
    let killed = Fault::<Shards> {
        name: "a shard killed, and started empty",
        losses: 1,
        begin: &|fleet| fleet.redis.apply_fault(Redis::kill),
        ..stopped
    };
    measure(&mut fleet, &killed);
    fleet.redis.nodes.revive();
    let locked = Fault::<Shards> {
        name: "shards want another password",
        losses: 0,
        begin: &|fleet| fleet.redis.nodes.change_password("simsim", ["USER", "diana"]),
        // Envoy does not authenticate again on an open connection.
        end: &|fleet| fleet.redis.nodes.change_password(PASSWORD, ["TYPE", "normal"]),
        // Redis then treats it as the user `default`, which may only read roles.
        failure: Some("noperm"),
    };
    measure(&mut fleet, &locked);
    fleet.assert_unharmed();
}

#[test]
fn sentinel_faults_fail_no_request() {
    let mut fleet = under_load(Sentinels::start(None));
    lose_primaries(&mut fleet);
    let planned = Fault::<Sentinels> {
        name: "a planned failover",
        // The new primary lacks the counts since its last replication.
        losses: 1,
        begin: &|fleet| fleet.redis.fail_over(),
        end: &|fleet| {
            fleet.redis.has_taken_over();
            fleet.redis.wait_until_complete();
            Sentinels::wait_until_known(fleet);
        },
        failure: None,
    };
    measure(&mut fleet, &planned);
    fleet.assert_unharmed();
}
