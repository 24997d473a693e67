//! File work in directories that agents can write, done by a helper process in the same sandbox as the agents
//! (`docs/design/24-the-file-helper.md`).
//!
//! An agent can replace any directory below its working directory with a link to the data directory while the hub works
//! there. In the sandbox the data directory is empty, so such a link leads nowhere. The hub sends one [`Verb`] to each
//! helper process ([`Helper::call`]); the process performs it ([`serve`]), answers and exits. The hub kills it when its
//! time is up.

mod client;
mod frame;
mod process;
mod request;
mod verbs;

pub use client::{Helper, HelperError};
pub use process::{ServeError, serve};
pub use request::{Input, Kind, Output, Request, Verb};
pub use verbs::read_file::{FileError, FileRead, ReadFile};
