//! Faults of a Redis that is several, under load: as those of a single one, and after a failover at most one further
//! limit is let through, since replicas lag behind.

use std::time::Duration;

use super::cluster::Cluster;
use super::sentinel::Sentinels;
use super::shards::Shards;
use super::{Fleet, GATEWAYS, Way, gateway, start};
use crate::harness::{PASSWORD, Redis, alone};
use crate::load::fleet::faults::print_head;
use crate::load::fleet::faults::trial::{Fault, RECOVERY, RULES, try_out};

/// Once a second Envoy asks some node of the cluster who has which keys, for half a second at most. One of six is the
/// one that hangs: four times in a row in one of a thousand trials.
const RELEARNT: Duration = Duration::from_secs(6);

/// Whose replicas take over.
pub trait Replicated: Way {
    /// Strikes the primary that has the caller under test.
    fn strike(&mut self, how: impl FnOnce(&mut Redis));

    /// Waits until a replica has taken over.
    fn has_taken_over(&self);

    /// Waits until the gateways know who has taken over. Nothing, where they are told by whoever they ask.
    fn is_known(_fleet: &Fleet<Self>)
    where
        Self: Sized,
    {
    }

    /// Waits until all is as it was, but for who is the primary.
    fn heals(&mut self);
}

/// Starts gateways, and counts one caller.
#[track_caller]
fn under_load<W: Way>(way: W) -> Fleet<W> {
    let gateway = gateway(&way, &[], RULES);
    let fleet = start(way, &gateway);
    fleet.comes_together("/hot");
    print_head();
    fleet
}

/// That a primary is killed, and that another one hangs.
#[track_caller]
fn lose_primaries<W: Replicated>(fleet: &mut Fleet<W>, recovery: Duration) {
    let killed = Fault::<W> {
        name: "a primary killed",
        cut_off: GATEWAYS,
        kept_from: GATEWAYS,
        emptied: 1,
        recovery,
        begin: &|fleet| fleet.redis.strike(Redis::kill),
        end: &|fleet| {
            fleet.redis.has_taken_over();
            W::is_known(fleet);
        },
        failure: None,
    };
    let hung = Fault::<W> {
        name: "a primary stopped (SIGSTOP)",
        begin: &|fleet| fleet.redis.strike(|node| node.freeze()),
        ..killed
    };
    for fault in [killed, hung] {
        try_out(fleet, &fault);
        fleet.redis.heals();
    }
}

/// What gateways may notice of what nobody does by force, if nothing is lost.
fn by_plan<W>(name: &'static str) -> Fault<'static, W> {
    Fault {
        name,
        cut_off: 0,
        kept_from: GATEWAYS,
        emptied: 0,
        recovery: RECOVERY,
        begin: &|_| {},
        end: &|_| {},
        failure: None,
    }
}

#[test]
fn of_a_cluster() {
    alone();
    let mut fleet = under_load(Cluster::start(None));
    fleet.redis.nodes.find_caller();
    lose_primaries(&mut fleet, RECOVERY + RELEARNT);
    let planned = by_plan::<Cluster>("a planned failover");
    try_out(&mut fleet, &Fault { begin: &|fleet| fleet.redis.fail_over(), ..planned });
    let moved = Fault::<Cluster> {
        begin: &|fleet| fleet.redis.begin_to_move(),
        end: &|fleet| fleet.redis.has_moved(),
        ..by_plan("a slot that moves")
    };
    try_out(&mut fleet, &moved);
    fleet.assert_unharmed();
}

#[test]
fn of_shards() {
    alone();
    let mut fleet = under_load(Shards::start());
    fleet.redis.nodes.find_caller();
    let hung = Fault::<Shards> {
        name: "a shard stopped (SIGSTOP)",
        cut_off: GATEWAYS,
        kept_from: GATEWAYS,
        emptied: 0,
        recovery: RECOVERY,
        begin: &|fleet| fleet.redis.strike(|node| node.freeze()),
        end: &|fleet| fleet.redis.nodes.revive(),
        failure: None,
    };
    try_out(&mut fleet, &hung);
    let killed = Fault::<Shards> {
        name: "a shard killed, and started empty",
        emptied: 1,
        begin: &|fleet| fleet.redis.strike(Redis::kill),
        ..hung
    };
    try_out(&mut fleet, &killed);
    fleet.redis.nodes.revive();
    let locked = Fault::<Shards> {
        name: "shards want another password",
        emptied: 0,
        begin: &|fleet| fleet.redis.nodes.change_password("simsim", ["USER", "diana"]),
        // Envoy does not log in anew on a connection that it has.
        end: &|fleet| fleet.redis.nodes.change_password(PASSWORD, ["TYPE", "normal"]),
        // It is then taken for `default`, who may only ask for roles.
        failure: Some("noperm"),
        ..hung
    };
    try_out(&mut fleet, &locked);
    fleet.assert_unharmed();
}

#[test]
fn of_whom_sentinels_name() {
    alone();
    let mut fleet = under_load(Sentinels::start(None));
    lose_primaries(&mut fleet, RECOVERY);
    let planned = Fault::<Sentinels> {
        // What the old primary counts until its replicas leave it, the new one does not know.
        emptied: 1,
        begin: &|fleet| fleet.redis.fail_over(),
        end: &|fleet| {
            fleet.redis.has_taken_over();
            fleet.redis.is_whole();
            Sentinels::is_known(fleet);
        },
        ..by_plan("a planned failover")
    };
    try_out(&mut fleet, &planned);
    fleet.assert_unharmed();
}
