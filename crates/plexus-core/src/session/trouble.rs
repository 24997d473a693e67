//! What goes wrong between a child and its model: it is made to wait, its calls fail, or it hears nothing at all. A
//! child says the first two itself; the last is noticed by the clock. Kept with the turn, and gone with the next sign
//! of life.

use plexus_claude::Incoming;
use plexus_protocol::{ApprovalStatus, Attention, Event, Object};
use plexus_store::Change;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::owner::{Closing, Owner};
use super::reading::Batch;
use super::run::Phase;

/// Tools that are model calls themselves: a child that waits for one of these waits for a model.
const DELEGATES: [&str; 2] = ["Agent", "Task"];

/// What is wrong between the child and its model, as it was stored with the turn.
pub(crate) fn trouble_of(progress: &Value) -> Option<Attention> {
    serde_json::from_value(progress.get("trouble")?.clone()).ok()?
}

impl Owner {
    /// Whether a line says that the model cannot be reached, or that it can.
    pub(super) fn look_for_trouble(&mut self, message: &Incoming, batch: &mut Batch) {
        let Some(turn) = self.turn.as_mut() else { return };
        let before = turn.progress.trouble;
        turn.progress.trouble = match message {
            Incoming::System(system) if system.subtype == "api_retry" => Some(retry(&system.data)),
            Incoming::Other { kind, data } if kind == "rate_limit_event" && is_rejected(data) => {
                Some(Attention::RateLimited)
            }
            Incoming::KeepAlive | Incoming::Blank => before,
            // What the child says of itself shows that it is there, and nothing of its model.
            Incoming::System(_)
            | Incoming::Other { .. }
            | Incoming::Response(_)
            | Incoming::Cancel { .. }
            | Incoming::Rubbish { .. } => before.filter(|trouble| *trouble != Attention::Stalled),
            Incoming::Request(_)
            | Incoming::Assistant(_)
            | Incoming::User(_)
            | Incoming::Result(_)
            | Incoming::Delta(_) => None,
        };
        if let Some(trouble) = turn.progress.trouble
            && before != Some(trouble)
        {
            batch.changes.extend(self.notice_of(trouble));
        }
    }

    /// From now on the model may take its time, unless it is not the model that is waited for.
    pub(super) fn listen_for_quiet(&mut self) {
        let asked = self.asks.values().any(|ask| ask.status == ApprovalStatus::Pending);
        let works = self.at_work.values().any(|tool| !DELEGATES.contains(&tool.as_str()));
        let waits_for_model = self.turn.is_some() && !asked && !works;
        let after = self.hub.settings().stalled_after;
        if let Some(run) = self.run.as_mut().filter(|run| run.phase == Phase::Ready) {
            run.stall_by = waits_for_model.then(|| Instant::now() + after);
        }
    }

    /// Nothing has come for some time: says so, once, if it is the model that is waited for.
    pub(super) async fn on_quiet(&mut self) -> Result<(), Closing> {
        let due = self.run.as_mut().and_then(|run| run.stall_by.take_if(|by| *by <= Instant::now()));
        let (Some(_), Some(turn)) = (due, self.turn.as_mut()) else { return Ok(()) };
        // One that is known to try again is not silent: it waits as long as it was told to.
        if turn.progress.trouble.is_some() {
            return Ok(());
        }
        turn.progress.trouble = Some(Attention::Stalled);
        let number = turn.number;
        let after = self.hub.settings().stalled_after.as_secs_f64();
        let data = Object::from_iter([("quiet_secs".to_owned(), json!(after))]);
        let event = Event::System { subtype: "stalled".to_owned(), data };
        let mut changes = vec![Change::Event(self.row.id, number, Box::new(event)), self.progress()];
        changes.extend(self.notice_of(Attention::Stalled));
        self.commit_held(changes).await
    }

    /// Whoever answers for the child is told of what may last; one more try of the API is no news.
    fn notice_of(&self, trouble: Attention) -> Option<Change> {
        (trouble != Attention::ApiRetry).then(|| Change::Notice {
            to: self.row.answers_to.key(),
            session: self.row.id,
            data: json!({
                "type": trouble,
                "session_id": self.row.id,
                "session_name": self.row.name,
                "turn": self.event_turn(),
            }),
        })
    }
}

fn retry(data: &Object) -> Attention {
    let limited = data.get("error").is_some_and(|error| error == "rate_limit")
        || data.get("error_status").is_some_and(|status| status == 429);
    if limited { Attention::RateLimited } else { Attention::ApiRetry }
}

fn is_rejected(data: &Object) -> bool {
    data.get("rate_limit_info").and_then(|info| info.get("status")).and_then(Value::as_str)
        == Some("rejected")
}
