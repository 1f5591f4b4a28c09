//! TLS to Redis as in the comments of the files: the issuer and the name of the certificate are
//! verified.

use super::cluster::Cluster;
use super::sentinel::Sentinels;
use super::{Servers, gateway, reach_redis, start};
use crate::harness::{Certificates, Gateway, eventually, shipped_text};

const RULES: &str = "
limits: [{Url: /, rules: [{actor: all, unit: day, rpu: 40, algo: W, scope: global}]}]
";

/// A gateway with TLS, as in a comment of the file. It trusts this authority, and requires `name`
/// in the certificate.
fn secure<W: Servers>(way: &W, authority: &Certificates, name: &str) -> Gateway {
    let file = shipped_text(&format!("envoy/redis/{}.yaml", W::FILE));
    let (_, comment) = file.split_once("# For a Redis with TLS:\n").expect("the file shows TLS");
    let (comment, _) = comment.split_once("\n\n").unwrap();
    let trusted = authority.folder().join("ca.pem");
    let block = comment
        .replace("    # ", "    ")
        .replace("/etc/ssl/certs/ca-certificates.crt", trusted.to_str().unwrap())
        .replace("redis.example.com", name);
    gateway(way, &[(comment, &block)], RULES)
}

#[track_caller]
fn verify<W: Servers>(start_servers: impl Fn(&Certificates) -> W, name: &str) {
    let [certificates, strangers] =
        ["own", "strangers"].map(|of| Certificates::new(&format!("{name}-{of}")));
    certificates.sign("redis", "DNS:redis.example.com");
    let way = start_servers(&certificates);
    for (authority, name) in
        [(&strangers, "redis.example.com"), (&certificates, "other.example.com")]
    {
        let envoy = secure(&way, authority, name).start();
        assert_eq!(envoy.get("/", &[]).status, 200);
        eventually("certificates to be refused", || {
            let refused = envoy.stat("cluster.redis.ssl.fail_verify_error")?
                + envoy.stat("cluster.redis.ssl.fail_verify_san")?;
            (refused > 0).then_some(())
        });
        assert_eq!(super::super::mode(&envoy, "fleet"), 0);
    }
    let gateway = secure(&way, &certificates, "redis.example.com");
    let fleet = start(way, &gateway);
    reach_redis(&fleet, "/");
    fleet.assert_unharmed();
}

#[test]
fn cluster_certificates_are_verified() {
    verify(|certificates| Cluster::start(Some(certificates)), "cluster");
}

#[test]
fn sentinel_certificates_are_verified() {
    verify(|certificates| Sentinels::start(Some(certificates)), "sentinel");
}
