//! Rows of machine words in pages, so that growth copies no rows and never needs twice the memory.

/// Rows in a page.
const PAGE: usize = 256;

/// Rows of equal width, identified by number.
#[derive(Debug)]
pub(super) struct Slab {
    width: usize,
    pages: Vec<Box<[u64]>>,
    free: Vec<u32>,
    rows: u32,
}

impl Slab {
    pub(super) fn new(width: usize) -> Slab {
        Slab { width, pages: Vec::new(), free: Vec::new(), rows: 0 }
    }

    /// Bytes of this many rows.
    pub(super) fn bytes(width: usize, rows: usize) -> u64 {
        (rows.next_multiple_of(PAGE) * width * size_of::<u64>()) as u64
    }

    /// Allocates a row of zeros.
    pub(super) fn take(&mut self) -> u32 {
        if let Some(row) = self.free.pop() {
            return row;
        }
        let row = self.rows;
        if row as usize / PAGE >= self.pages.len() {
            self.pages.push(vec![0; PAGE * self.width].into());
        }
        self.rows += 1;
        row
    }

    /// Frees a row.
    pub(super) fn free(&mut self, row: u32) {
        if let Some(words) = self.get_mut(row) {
            words.fill(0);
        }
        self.free.push(row);
    }

    /// Rows ever allocated, including free ones.
    pub(super) fn rows(&self) -> u32 {
        self.rows
    }

    #[inline(always)]
    pub(super) fn get(&self, row: u32) -> Option<&[u64]> {
        let start = row as usize % PAGE * self.width;
        self.pages.get(row as usize / PAGE)?.get(start..start + self.width)
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, row: u32) -> Option<&mut [u64]> {
        let start = row as usize % PAGE * self.width;
        self.pages.get_mut(row as usize / PAGE)?.get_mut(start..start + self.width)
    }
}
