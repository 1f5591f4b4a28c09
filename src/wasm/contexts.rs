//! The roots and streams that the host has told of, by its numbers.
//!
//! Most streams have nothing left to do once their request goes on, and are not kept from then on. Nearly all requests come
//! before another stream begins, so the latest stream has a place of its own, where finding it costs nothing.
//!
//! The host calls about one thing at a time. If it did not, a call within a call would find nothing to do.

use std::cell::RefCell;

use super::one_thread::OneThread;
use diana_worker::{Root, Stream};
use hashbrown::HashTable;

/// Boxed, since a table has up to twice as many places as it needs, and while it grows half as many again.
type Streams = HashTable<Box<Stream>>;

static ROOTS: OneThread<RefCell<Vec<(u32, Root)>>> = OneThread::new(RefCell::new(Vec::new()));
static LATEST: OneThread<RefCell<Option<Stream>>> = OneThread::new(RefCell::new(None));
static EARLIER: OneThread<RefCell<Streams>> = OneThread::new(RefCell::new(HashTable::new()));

/// A root begins, which is not configured yet.
pub(super) fn begin_root(id: u32) {
    // The host tells of a root once more that it begins if its configuration was refused, and comes again.
    if !is_root(id)
        && let Ok(mut roots) = ROOTS.try_borrow_mut()
    {
        roots.push((id, Root::default()));
    }
}

/// Does something with a root, if there is such a one.
pub(super) fn with_root<T>(id: u32, act: impl FnOnce(&mut Root) -> T) -> Option<T> {
    let mut roots = ROOTS.try_borrow_mut().ok()?;
    roots.iter_mut().find(|(known, _)| *known == id).map(|(_, root)| act(root))
}

/// Whether this is a root, not a stream. There are few.
pub(super) fn is_root(id: u32) -> bool {
    ROOTS.try_borrow().is_ok_and(|roots| roots.iter().any(|(known, _)| *known == id))
}

/// Takes a root that ends, if there is such a one.
#[inline(never)]
pub(super) fn take_root(id: u32) -> Option<Root> {
    let mut roots = ROOTS.try_borrow_mut().ok()?;
    let place = roots.iter().position(|(known, _)| *known == id)?;
    Some(roots.swap_remove(place).1)
}

/// A stream begins. It is judged by what its root has in force now.
pub(super) fn begin_stream(id: u32, root: u32) {
    let Some(Some(instance)) = with_root(root, |root| root.instance()) else { return };
    let Ok(mut latest) = LATEST.try_borrow_mut() else { return };
    if let Some(before) = latest.replace(Stream::new(instance, id)) {
        keep(before);
    }
}

/// Does something with a stream of which something may be left to do, and forgets it if nothing is left then.
pub(super) fn with_stream<T>(id: u32, act: impl FnOnce(&mut Stream) -> T) -> Option<T> {
    let mut latest = LATEST.try_borrow_mut().ok()?;
    let Some(stream) = latest.as_mut().filter(|stream| stream.id() == id) else {
        drop(latest);
        return with_earlier(id, act);
    };
    let result = act(stream);
    if !stream.is_open() {
        *latest = None;
    }
    Some(result)
}

fn with_earlier<T>(id: u32, act: impl FnOnce(&mut Stream) -> T) -> Option<T> {
    let mut streams = EARLIER.try_borrow_mut().ok()?;
    // Which spares most calls the search.
    if streams.is_empty() {
        return None;
    }
    let mut found = streams.find_entry(hash(id), |stream| stream.id() == id).ok()?;
    let result = act(found.get_mut());
    if !found.get().is_open() {
        found.remove();
    }
    Some(result)
}

#[inline(never)]
fn keep(stream: Stream) {
    if let Ok(mut streams) = EARLIER.try_borrow_mut() {
        streams.insert_unique(hash(stream.id()), Box::new(stream), |other| hash(other.id()));
    }
}

/// The numbers follow each other, and a table takes the topmost bits as well as the lowest.
fn hash(id: u32) -> u64 {
    u64::from(id).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
