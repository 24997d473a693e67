//! What a person sees before deciding: an approval, or an edited input, as rows that show every character of it. `watch`, `run`,
//! `attach`, `approve`, `approvals` and `demo` all show these rows; how they are painted and paged is left to each of them.

pub(crate) mod approval;
pub(crate) mod change;
pub(crate) mod diff;
pub(crate) mod original;
pub(crate) mod page;
pub(crate) mod question;
pub(crate) mod row;
pub(crate) mod width;

pub(crate) use approval::rows;
pub(crate) use page::{Reading, Seen};
pub(crate) use row::{Row, Tone, fit};

use plexus_protocol::Approval;
use plexus_protocol::loopback::TargetFile;

/// An approval read in full, with what is known about it.
#[derive(Debug, Clone)]
pub(crate) struct Reviewed {
    pub(crate) approval: Approval,
    /// The file the call is about to change, as the hub read it. The client never reads it: it may run elsewhere.
    pub(crate) file: Option<TargetFile>,
}

impl Reviewed {
    /// From what `loopback.get` says with `context`.
    pub(crate) fn read(mut found: serde_json::Value) -> Result<Self, serde_json::Error> {
        let mut approval: Approval = serde_json::from_value(found["approval"].take())?;
        // The hub has no digest for a budget request. The client's own still names what was read.
        if approval.digest.is_none() && !approval.truncated {
            approval.digest = Some(original::digest(&approval));
        }
        let file = serde_json::from_value(found["file"].take())?;
        Ok(Self { approval, file })
    }
}
