//! The roots and streams that the host has told of, by its numbers.
//!
//! A stream is made when its request comes, and only if it may have something left to do then, which few have: most requests go
//! on, and nothing is kept of them. The latest stream has a place of its own, where finding it costs nothing.
//!
//! The host calls about one thing at a time. If it did not, a call within a call would find nothing to do.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::one_thread::OneThread;
use diana_worker::{Instance, Root, Stream};
use hashbrown::HashTable;

/// Boxed, since a table has up to twice as many places as it needs, and while it grows half as many again.
type Streams = HashTable<Box<Stream>>;

/// The number of no context.
const NOBODY: u32 = 0;

static ROOTS: OneThread<RefCell<Vec<(u32, Root)>>> = OneThread::new(RefCell::new(Vec::new()));
/// The stream that has begun, and its root: the host goes on with its request.
static BEGUN: OneThread<Cell<(u32, u32)>> = OneThread::new(Cell::new((NOBODY, NOBODY)));
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
    // It may have other rules afterwards.
    begin_early(BEGUN.replace((NOBODY, NOBODY)));
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

/// A stream begins.
pub(super) fn begin_stream(id: u32, root: u32) {
    let before = BEGUN.replace((id, root));
    if before.0 != NOBODY {
        begin_early(before);
    }
}

/// Makes a stream whose request does not come before anything else happens: it is judged by what its root has in force now.
#[inline(never)]
fn begin_early((id, root): (u32, u32)) {
    let Ok(roots) = ROOTS.try_borrow() else { return };
    if let Some(instance) = instance_of(&roots, root) {
        keep(Stream::new(instance.clone(), id));
    }
}

#[inline(always)]
fn instance_of(roots: &[(u32, Root)], id: u32) -> Option<&Rc<Instance>> {
    roots.iter().find(|(known, _)| *known == id).and_then(|(_, root)| root.instance())
}

/// The request of a stream has come. Whether it goes on.
pub(super) fn request(
    id: u32,
    begin: impl FnOnce(&Rc<Instance>, u32) -> (bool, Option<Stream>),
    go_on: impl FnOnce(&mut Stream) -> bool,
) -> bool {
    let (begun, root) = BEGUN.get();
    if begun != id {
        return with_stream(id, go_on).unwrap_or(true);
    }
    BEGUN.set((NOBODY, NOBODY));
    let Ok(roots) = ROOTS.try_borrow() else { return true };
    let Some(instance) = instance_of(&roots, root) else { return true };
    let (goes_on, stream) = begin(instance, id);
    if let Some(stream) = stream {
        keep_latest(stream);
    }
    goes_on
}

/// Keeps a stream until nothing is left to do.
#[inline(never)]
fn keep_latest(stream: Stream) {
    if stream.is_open()
        && let Ok(mut latest) = LATEST.try_borrow_mut()
        && let Some(before) = latest.replace(stream)
    {
        keep(before);
    }
}

/// A stream has ended.
pub(super) fn end_stream(id: u32, end: impl FnOnce(&mut Stream)) {
    if BEGUN.get().0 == id {
        // Its request has never come.
        BEGUN.set((NOBODY, NOBODY));
    }
    with_stream(id, end);
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
