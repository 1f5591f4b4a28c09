//! What a running Envoy is told anew, by the files that it watches.

use std::fs;

use serde_json::Value;

use super::bootstrap::Gateway;
use super::envoy::{Envoy, write};
use super::wait::eventually;

impl Envoy {
    /// Puts another gateway into the listener's file; Envoy takes it up by itself.
    pub fn put(&self, gateway: &Gateway) {
        self.replace("lds.json", &gateway.listeners(&self.folder));
    }

    /// Puts another gateway's clusters into their file, and waits until Envoy has accepted them.
    #[track_caller]
    pub fn put_clusters(&self, gateway: &Gateway) {
        let accepted = || self.stat("cluster_manager.cds.update_success");
        let before = accepted();
        self.replace("cds.json", &gateway.clusters_in_file());
        eventually("Envoy to accept the clusters", || (accepted() > before).then_some(()));
    }

    /// In one step, or Envoy would read half a file.
    fn replace(&self, name: &str, content: &Value) {
        let part = self.folder.join("part");
        write(&part, content);
        fs::rename(part, self.folder.join(name)).unwrap();
    }

    /// Puts another gateway into the listener's file, and waits until Envoy has accepted it.
    #[track_caller]
    pub fn update(&self, gateway: &Gateway) {
        let accepted = || self.stat("listener_manager.lds.update_success");
        let before = accepted();
        self.put(gateway);
        eventually("Envoy to accept the update", || (accepted() > before).then_some(()));
    }
}
