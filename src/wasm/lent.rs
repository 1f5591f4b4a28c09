//! A buffer for what the host returns, which is lent to one request after another: to allocate and to free it takes longer
//! than to search it.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::Deref;

use super::one_thread::OneThread;

/// A longer buffer is not kept.
const LONGEST: usize = 1 << 16;

/// The buffer, while it is not lent.
static SPARE: OneThread<Cell<Vec<u8>>> = OneThread::new(Cell::new(Vec::new()));

/// What the host is called for.
static CALL: OneThread<Cell<Lending>> = OneThread::new(Cell::new(Lending::Unwanted));

#[derive(Clone, Copy)]
enum Lending {
    Unwanted,
    Wanted,
    /// The buffer was handed to the host: where it is, and its capacity.
    Lent(*mut u8, usize),
}

/// Bytes that the host returned, in a buffer that is given back when they are dropped.
pub(super) struct Lent(pub(super) Vec<u8>);

impl Deref for Lent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let (given, spare) = (std::mem::take(&mut self.0), SPARE.take());
        let is_better = given.capacity() > spare.capacity() && given.capacity() <= LONGEST;
        SPARE.set(if is_better { given } else { spare });
    }
}

/// What the next call of the host returns may go into the buffer.
pub(super) fn want() {
    CALL.set(Lending::Wanted);
}

/// Memory of so many bytes for the host: a boxed slice of that size, or the buffer.
pub(super) fn allocate(size: usize) -> *mut u8 {
    if matches!(CALL.get(), Lending::Wanted) {
        let spare = SPARE.take();
        if (1..=spare.capacity()).contains(&size) {
            let mut spare = ManuallyDrop::new(spare);
            CALL.set(Lending::Lent(spare.as_mut_ptr(), spare.capacity()));
            return spare.as_mut_ptr();
        }
        SPARE.set(spare);
    }
    Box::into_raw(Box::<[u8]>::new_uninit_slice(size)).cast()
}

/// The capacity of the buffer, if the call that has just returned put its bytes there.
pub(super) fn capacity(bytes: *mut u8) -> Option<usize> {
    match CALL.replace(Lending::Unwanted) {
        Lending::Lent(buffer, capacity) if buffer == bytes => Some(capacity),
        _ => None,
    }
}
