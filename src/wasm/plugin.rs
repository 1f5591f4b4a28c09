//! What the host tells of a root: a configuration of the plugin in this VM.

use super::abi;
use super::calls::{HostCall, answer as read_answer};
use super::vm::worker;
use diana_core::port::Property;
use diana_worker::Root;

/// Takes its configuration, of so many bytes. Whether it is in force.
pub(super) fn configure(id: u32, root: &mut Root, size: usize) -> bool {
    let text = abi::buffer(abi::PLUGIN_CONFIGURATION, size).unwrap_or_default();
    let root_id = abi::property(Property::new(&["plugin_root_id"]).encoded());
    root.configure(&text, &root_id.unwrap_or_default(), worker(), &HostCall { root: id })
}

/// Its timer fires.
pub(super) fn tick(id: u32, root: &mut Root) {
    root.tick(worker(), &HostCall { root: id });
}

/// A call of it is answered, by so many headers and bytes.
pub(super) fn answer(id: u32, root: &mut Root, token: u32, (headers, size): (usize, usize)) {
    read_answer(headers, size, |answer| {
        root.answer(token, answer, worker(), &HostCall { root: id });
    });
}

/// It has ended.
pub(super) fn end(id: u32, mut root: Root) {
    root.end(worker(), &HostCall { root: id });
}
