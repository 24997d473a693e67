//! The verbs, one file each.

pub(crate) mod read_file;
