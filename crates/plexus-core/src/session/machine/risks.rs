//! The risk marks of a request. They are computed once, when the approval is created, and stored with it: later readers see what the
//! decider saw, and a list of approvals costs nothing.

use std::path::Path;

use plexus_policy::Call;
use plexus_protocol::{ApprovalKind, RiskMark, visible};
use serde_json::Value;

use super::Machine;
use super::request::ApprovalRequest;

impl Machine {
    /// The marks of a request; `None` for a question or a plan, which does nothing by itself.
    pub(super) fn risks(&self, request: &ApprovalRequest) -> Option<Vec<RiskMark>> {
        if ApprovalKind::of_tool(&request.tool_name) != ApprovalKind::Tool {
            return None;
        }
        let (cwd, input) = (self.cwd_of(&request.tool_use_id), Value::Object(request.input.clone()));
        let home = self.lineage.home(&self.shared.settings);
        let config = &self.row.config;
        // The agent works in its worktree, and the repository that it belongs to is somebody else's project.
        let root =
            config.worktree.as_ref().map_or(config.working_dir.as_str(), |worktree| worktree.path.as_str());
        let call = Call {
            tool_name: &request.tool_name,
            input: &input,
            cwd: Path::new(&cwd),
            home: home.as_deref(),
            now: self.now.unix_secs(),
        };
        let mut marks = plexus_policy::risks(&call, &[Path::new(root)]);
        for mark in &mut marks {
            // It quotes the call.
            if let Some(clean) = visible(&mark.reason) {
                mark.reason = clean;
            }
        }
        Some(marks)
    }
}
