//! Changes of a running Envoy, through the files that it watches.

use std::fs;

use serde_json::Value;

use super::bootstrap::{Gateway, with_socket_in};
use super::envoy::{CLUSTER, Envoy, LISTENER, Process, resources, write};
use super::wait::eventually;

impl Envoy {
    /// Replaces the gateway in the listener's file. Envoy applies it in the background.
    pub fn put(&self, gateway: &Gateway) {
        assert_eq!(self.name, gateway.name, "its Envoy is its own");
        self.put_listeners(&[gateway.listener(&self.folder)]);
    }

    /// Replaces the gateway and further listeners in the file.
    pub fn put_beside(&self, gateway: &Gateway, others: &[Value]) {
        let mut all = with_socket_in(&self.folder, others);
        all.push(gateway.listener(&self.folder));
        self.put_listeners(&all);
    }

    /// Replaces the gateway in the listener's file, and waits until Envoy has accepted it.
    #[track_caller]
    pub fn update(&self, gateway: &Gateway) {
        let accepted = || self.stat("listener_manager.lds.update_success");
        let before = accepted();
        self.put(gateway);
        eventually("Envoy to accept the update", || (accepted() > before).then_some(()));
    }
}

impl Process {
    /// Replaces the clusters in their file, and waits until Envoy has accepted them.
    #[track_caller]
    pub fn put_clusters(&self, clusters: &[Value]) {
        let accepted = || self.stat("cluster_manager.cds.update_success");
        let before = accepted();
        self.replace("cds.json", &resources(CLUSTER, clusters));
        eventually("Envoy to accept the clusters", || (accepted() > before).then_some(()));
    }

    /// Replaces the listeners in their file.
    pub(super) fn put_listeners(&self, listeners: &[Value]) {
        self.replace("lds.json", &resources(LISTENER, listeners));
    }

    /// Atomically, since Envoy could otherwise read half a file.
    fn replace(&self, name: &str, content: &Value) {
        let part = self.folder.join("part");
        write(&part, content);
        fs::rename(part, self.folder.join(name)).unwrap();
    }
}
