//! The gateways' user in envoy/redis/users.conf has no unused permissions. The module `topologies`
//! tests that they suffice.

use std::fs;
use std::path::Path;

use crate::harness::users;

/// Diana's commands, and those of Envoy to a Redis Cluster.
const OTHER_COMMANDS: [&str; 4] = ["evalsha", "eval", "cluster|slots", "asking"];

#[test]
fn redis_user_has_only_the_rights_that_are_used() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/redis/protocol/script");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let script: String = files.map(|file| fs::read_to_string(file).unwrap()).collect();
    let users = users();
    let user = users.iter().find(|user| user.starts_with("user diana ")).unwrap();
    assert!(user.contains(" ~diana:* resetchannels -@all "), "{user}");
    for right in user.split(' ').filter_map(|word| word.strip_prefix('+')) {
        let is_called = script.contains(&format!("'{}'", right.to_uppercase()));
        assert!(is_called || OTHER_COMMANDS.contains(&right), "nobody needs +{right}");
    }
}
