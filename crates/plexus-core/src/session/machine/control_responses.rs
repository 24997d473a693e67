//! The child's responses to control requests: to `initialize`, which makes it ready for a prompt, and to changes of its settings.

use plexus_protocol::Object;
use plexus_protocol::claudecode::Channel;
use serde_json::Value;

use super::lines::{Batch, Readiness};
use super::process::{CONNECTING_PAUSE, Phase};
use super::running_cost::COST_REQUEST;
use super::system_lines::reported_version;
use super::{Cause, Effect, Machine};

impl Machine {
    pub(super) fn on_response(&mut self, response: plexus_claude::Response, batch: &mut Batch) {
        if response.request_id.starts_with(COST_REQUEST) {
            return self.on_cost(&response.outcome);
        }
        if let Some(request) = self.requests.remove(&response.request_id) {
            let (change, reply) = self.finish_request(request, response.outcome.map(drop));
            batch.changes.push(change);
            batch.after.replies.push(reply);
            return;
        }
        let asks_over_mcp = self.row.config.loopback_enabled && self.row.config.channel == Channel::Mcp;
        let retry_at = self.now.instant + CONNECTING_PAUSE;
        let Some(process) = self.process.as_mut() else { return };
        match (process.phase, response.outcome) {
            (Phase::Initializing, outcome) if response.request_id == process.initialize_id() => match outcome
            {
                Ok(answer) if asks_over_mcp => {
                    process.version = reported_version(&answer).or(process.version);
                    process.phase = Phase::Connecting { again: None };
                    let run = process.key.run;
                    batch.after.lines.push(plexus_claude::mcp_status(&format!("plexus-mcp-status-{run}")));
                    if let Some(turn) = self.turn.as_mut() {
                        turn.progress.initialized = Some(run);
                    }
                }
                Ok(answer) => {
                    process.version = reported_version(&answer).or(process.version);
                    self.become_ready(batch);
                }
                Err(error) => {
                    let message = format!("the agent rejected supervision: {error}");
                    batch.after.alarm = Some(Cause::Failed("not_initialized", message));
                }
            },
            (Phase::Connecting { .. }, Ok(answer))
                if response.request_id.starts_with("plexus-mcp-status-") =>
            {
                match mcp_status_of(&answer, "plexus").as_deref() {
                    Some("connected") => self.become_ready(batch),
                    Some("failed" | "needs-auth" | "disabled") => {
                        let message = "the agent could not reach Plexus's permission tool".to_owned();
                        batch.after.alarm = Some(Cause::Failed("no_permit_tool", message));
                    }
                    _ => process.phase = Phase::Connecting { again: Some(retry_at) },
                }
            }
            _ => {}
        }
    }

    /// The child can be sent prompts.
    fn become_ready(&mut self, batch: &mut Batch) {
        let changed = self.settings_changed_since_launch();
        let Some(process) = self.process.as_mut() else { return };
        process.phase = Phase::Ready;
        let run = process.key.run;
        self.effects.push(Effect::ReportSandbox);
        batch.after.readiness = Readiness::BecameReady;
        batch.after.lines.extend(changed);
        self.progress_mut().ready = Some(run);
        if self.turn.is_none() {
            batch.changes.push(self.progress());
        }
    }
}

fn mcp_status_of(answer: &Object, server: &str) -> Option<String> {
    let servers = answer.get("mcpServers")?.as_array()?;
    let ours = servers.iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some(server))?;
    ours.get("status")?.as_str().map(str::to_owned)
}
