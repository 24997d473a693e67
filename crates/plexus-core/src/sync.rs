//! The locks of the approval book. Under a name of their own, so that `explore/` can put its scheduler's in their place.

pub(crate) use std::sync::{Mutex, PoisonError};
