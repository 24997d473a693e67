//! The `system` lines of the child: its version and mode, background tasks, compactions, and whether it is idle.

use plexus_claude::{System, TooOld, Version};
use plexus_protocol::claudecode::PermissionMode;
use plexus_protocol::{ErrorKind, Object};
use plexus_store::{Change, RunKey};
use serde_json::{Value, json};

use super::lines::Batch;
use super::progress::Compaction;
use super::{Cause, Machine};

impl Machine {
    /// Stops a process that is too old before its first call.
    fn on_version(&mut self, reported: Option<Version>, batch: &mut Batch) {
        let (Some(process), Some(version)) = (self.process.as_mut(), reported) else { return };
        process.version = Some(version);
        if let Err(too_old) = version.check() {
            let message = format!("{too_old}: {}", TooOld::FIX);
            batch.after.alarm = Some(Cause::Failed(ErrorKind::ClaudeTooOld.as_str(), message));
        }
    }

    /// A message about the process or the session, not about the conversation.
    pub(super) fn on_system(&mut self, key: RunKey, system: System, batch: &mut Batch) {
        let text = |name: &str| system.data.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        match system.subtype.as_str() {
            "session_state_changed" => {
                if let Some(turn) = self.turn.as_mut() {
                    turn.progress.reports_idle = true;
                }
                let over = text("state") == "idle"
                    && self.turn.as_ref().is_some_and(|turn| turn.progress.is_over_when_idle());
                if over {
                    self.end_turn_by_result(key, batch);
                }
                return;
            }
            "init" => {
                if self.is_spent(key.run) {
                    return;
                }
                self.ensure_turn(key.run, &mut batch.changes);
                self.on_mode(key, &text("permissionMode"), batch);
                self.on_version(reported_version(&system.data), batch);
            }
            "status" if system.data.get("permissionMode").is_some_and(Value::is_string) => {
                self.on_mode(key, &text("permissionMode"), batch);
            }
            "compact_boundary" => {
                if let Some(turn) = self.turn.as_mut() {
                    let details = system.data.get("compact_metadata").and_then(Value::as_object).cloned();
                    turn.progress.compaction = Compaction::AwaitingSummary(details.unwrap_or_default());
                }
            }
            "task_started" => {
                let ends_by_itself = matches!(text("task_type").as_str(), "local_agent" | "local_workflow");
                if let Some(turn) = self.turn.as_mut().filter(|_| ends_by_itself) {
                    turn.progress.tasks.insert(text("task_id"));
                }
            }
            "task_notification" => self.task_ended(&text("task_id")),
            "task_updated" => {
                let status =
                    system.data.get("patch").and_then(|patch| patch.get("status")).and_then(Value::as_str);
                if matches!(status, Some("completed" | "failed" | "killed")) {
                    self.task_ended(&text("task_id"));
                }
            }
            _ => {}
        }
        self.note(&system.subtype, Value::Object(system.data), batch);
    }

    /// The child reports its mode. A looser mode than the stored one ends it. A stricter mode, such as planning on its own
    /// initiative, is stored.
    fn on_mode(&mut self, key: RunKey, reported: &str, batch: &mut Batch) {
        let expected = self.row.config.permission_mode;
        let mode = PermissionMode::named(reported);
        let is_first = self.progress_mut().init_seen.replace(key.run) != Some(key.run);
        match mode {
            Some(mode) if mode == expected || self.is_mode_requested(mode) => {}
            Some(mode) if mode.looseness() < expected.looseness() && !is_first => {
                self.row.config.permission_mode = mode;
                batch.changes.push(Change::Configure(self.row.id, Box::new(self.row.config.clone())));
                self.note("mode_changed", json!({"mode": reported, "by": "agent"}), batch);
            }
            _ => {
                let message = format!("the agent is in mode `{reported}` instead of `{}`", expected.as_str());
                batch.after.alarm = Some(Cause::Failed("wrong_mode", message));
            }
        }
    }

    fn task_ended(&mut self, task_id: &str) {
        if let Some(turn) = self.turn.as_mut() {
            turn.progress.tasks.remove(task_id);
        }
    }
}

/// The version in the answer to `initialize` (from 2.1.296 on) or in the first line of a turn.
pub(super) fn reported_version(data: &Object) -> Option<Version> {
    Version::parse(data.get("claude_code_version")?.as_str()?)
}
