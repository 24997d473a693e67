//! Formats an approval or an edited input as rows that show every character of it. `watch`, `run`, `attach`, `approve`, `approvals` and
//! `demo` all use these rows; colours and paging are left to them.

pub(crate) mod approval;
pub(crate) mod change;
pub(crate) mod confirm;
pub(crate) mod diff;
pub(crate) mod original;
pub(crate) mod page;
pub(crate) mod question;
pub(crate) mod risk;
pub(crate) mod row;
pub(crate) mod width;

pub(crate) use approval::rows;
pub(crate) use page::{Pager, Seen};
pub(crate) use row::{Row, Tone, fit};

use plexus_protocol::Approval;
use plexus_protocol::loopback::TargetFile;

/// An approval that was read in full, with the affected file.
#[derive(Debug, Clone)]
pub(crate) struct Reviewed {
    pub(crate) approval: Approval,
    /// The affected file as the hub read it. The client never reads it, because it may run on another machine.
    pub(crate) file: Option<TargetFile>,
}

impl Reviewed {
    /// Parses the result of `loopback.get` with `context`.
    pub(crate) fn read(mut found: serde_json::Value) -> Result<Self, serde_json::Error> {
        let mut approval: Approval = serde_json::from_value(found["approval"].take())?;
        // The hub has no digest for a budget request; the client computes one.
        if approval.digest.is_none() && !approval.truncated {
            approval.digest = Some(original::digest(&approval));
        }
        let file = serde_json::from_value(found["file"].take())?;
        Ok(Self { approval, file })
    }
}
