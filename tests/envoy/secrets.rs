//! The password of Redis in a secret of Envoy, which the native module reads since Envoy 1.40.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::harness::{Envoy, Gateway, PASSWORD, Redis, eventually, is_native, secret};

fn rules(password: &str) -> String {
    format!(
        "
redis: {{cluster: diana_redis, timeout: 1s, {password}}}
limits: [{{Url: /, rules: [{{actor: account, unit: day, rpu: 2, algo: W, scope: global}}]}}]"
    )
}

/// Waits until the gateway counts in Redis.
#[track_caller]
fn counts_in_redis(envoy: &Envoy) {
    let mode = |name: &str| envoy.metric(&format!("mode.{name}")).unwrap_or(0);
    eventually("the gateway to count in Redis", || {
        envoy.get("/", &[("x-account-id", "bob")]);
        (mode("fleet") > 0 && mode("gateway") == 0).then_some(())
    });
    assert_eq!(envoy.statuses(3, "/", &[("x-account-id", "ann")]), [200, 200, 503]);
}

#[test]
fn password_of_redis_is_a_static_secret() {
    if !is_native() {
        return;
    }
    let redis = Redis::with_password(PASSWORD);
    let text = rules("password_secret: {name: redis_password}");
    let gateway = Gateway::with(&text).redis(redis.port).secret("redis_password", PASSWORD);
    let envoy = gateway.start();
    // From the first request on.
    assert_eq!(envoy.statuses(3, "/", &[("x-account-id", "eve")]), [200, 200, 503]);
    assert!(!envoy.log().contains("is unavailable"), "{}", envoy.log());
    counts_in_redis(&envoy);
    envoy.assert_unharmed();
}

fn deliver(file: &Path, password: &str) {
    let mut resource = secret("redis_password", password);
    resource["@type"] =
        "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret".into();
    let new = file.with_extension("new");
    fs::write(&new, json!({"resources": [resource]}).to_string()).unwrap();
    fs::rename(new, file).unwrap();
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.json", std::process::id()))
}

#[test]
fn password_by_sds_changes_without_an_update() {
    if !is_native() {
        return;
    }
    let (redis, file) = (Redis::with_password(PASSWORD), file("secret"));
    deliver(&file, "wrong");
    let sds = json!({"path_config_source": {"path": file}, "resource_api_version": "V3"});
    let text = rules(&format!("password_secret: {{name: redis_password, sds: '{sds}'}}"));
    let envoy = Gateway::with(&text).workers(2).redis(redis.port).start();
    eventually("the wrong password", || {
        envoy.get("/", &[("x-account-id", "bob")]);
        envoy.log().contains("WRONGPASS").then_some(())
    });
    deliver(&file, PASSWORD);
    counts_in_redis(&envoy);
    assert_eq!(envoy.stat("listener_manager.listener_modified"), Some(0));
    fs::remove_file(file).unwrap();
    envoy.assert_unharmed();
}

/// Older releases accept a document that also has `password_env`.
#[test]
fn secret_that_envoy_lacks_is_refused() {
    if !is_native() {
        return;
    }
    let envoy = Gateway::with("limits: []").start();
    let info = envoy.admin("/server_info").unwrap().body;
    let is_older = ["/1.38.", "/1.39."].iter().any(|version| info.contains(version));
    let reason = match is_older {
        true => "redis.password_secret: needs Envoy 1.40 or later; use `password_env`",
        false => "redis.password_secret: Envoy has no static secret `missing`, or cannot use `sds`",
    };
    let refused = ["name: missing", "name: missing, sds: '{\"unknown\": 1}'"];
    for (count, secret) in (1..).zip(refused) {
        envoy.put(&Gateway::with(&rules(&format!("password_secret: {{{secret}}}"))));
        eventually(reason, || (envoy.log().matches(reason).count() == count).then_some(()));
    }
    let both = rules("password_env: PASSWORD, password_secret: {name: missing}");
    if is_older {
        envoy.update(&Gateway::with(&both));
    }
    envoy.assert_unharmed();
}
