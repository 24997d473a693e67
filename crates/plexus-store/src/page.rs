//! Limits a page of rows by its size in bytes, because rows with text from a child may be large.

/// How many bytes the rows of one page have at most, unless one row alone is larger.
const PAGE_BYTES: usize = 1024 * 1024;

/// A page being filled.
pub(crate) struct Page<T> {
    rows: Vec<T>,
    bytes: usize,
}

impl<T> Page<T> {
    pub(crate) fn new() -> Self {
        Self { rows: Vec::new(), bytes: 0 }
    }

    /// Counts a row of this size; returns whether it belongs to the page. The first row always does.
    pub(crate) fn has_room_for(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.rows.is_empty() || self.bytes <= PAGE_BYTES
    }

    pub(crate) fn push(&mut self, row: T) {
        self.rows.push(row);
    }

    pub(crate) fn rows(self) -> Vec<T> {
        self.rows
    }
}
