//! The cost of a turn while it runs. Claude Code reports it with a result, which most turns have only at their end. So the hub asks for the
//! total of the process when a call reaches the gate, one request at a time: while the tool runs or waits for approval, Claude Code has time to
//! answer. Without a gate it asks when the tool has finished. The answer is only shown: budgets use the results.

use plexus_protocol::Object;
use serde_json::Value;

use super::Machine;
use super::lines::Batch;
use super::process::Phase;

/// The beginning of the ids of these requests.
pub(super) const COST_REQUEST: &str = "plexus-cost-";

/// Whether a process can be asked for its cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CostRequest {
    #[default]
    Possible,
    /// It has not answered yet.
    Sent,
    /// It has refused, or its answer could not be read.
    Unsupported,
}

impl Machine {
    /// The model call that requested this tool call has its cost now.
    pub(super) fn ask_for_cost(&mut self, tool_use_id: &str, batch: &mut Batch) {
        let Some(process) = self.process.as_mut().filter(|process| process.phase == Phase::Ready) else {
            return;
        };
        if self.turn.is_some() && process.cost_request == CostRequest::Possible {
            process.cost_request = CostRequest::Sent;
            batch.after.lines.push(plexus_claude::get_session_cost(&format!("{COST_REQUEST}{tool_use_id}")));
        }
    }

    pub(super) fn on_cost<E>(&mut self, answer: &Result<Object, E>) {
        let total = answer.as_ref().ok().and_then(|answer| answer.get("text")?.as_str().and_then(total));
        if let Some(process) = self.process.as_mut() {
            process.cost_request =
                if total.is_some() { CostRequest::Possible } else { CostRequest::Unsupported };
        }
        if let (Some(turn), Some(total)) = (self.turn.as_mut(), total) {
            turn.progress.running_cost = Some(total);
        }
    }
}

/// The amount in a text such as `Total cost:            $0.0184`.
fn total(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once("Total cost:")?;
    let amount = rest.trim_start().strip_prefix('$')?;
    let end = amount.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(amount.len());
    amount[..end].parse().ok().filter(|total: &f64| total.is_finite())
}

/// The cost of a running turn so far, from its stored progress.
pub(crate) fn cost_so_far(progress: &Value) -> Option<f64> {
    let number = |name: &str| progress.get(name).and_then(Value::as_f64);
    let reported = progress.get("result").is_some_and(|result| !result.is_null());
    let with_result = number("cost_now").filter(|_| reported);
    // A result is later and exact; the text is rounded.
    let total = with_result.into_iter().chain(number("running_cost")).reduce(f64::max)?;
    Some((total - number("cost_before")?).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_total_is_read_from_the_text() {
        let text = "Total cost:            $0.0184 (costs may be inaccurate)\nTotal duration (API):  1.2s\n";
        assert_eq!(total(text), Some(0.0184));
        assert_eq!(total("Total cost: $12"), Some(12.0));
        for other in ["", "Total cost:", "Total cost: €1", "Total cost: $", "Total cost: $1.2.3", "$1"] {
            assert_eq!(total(other), None, "{other}");
        }
    }

    #[test]
    fn the_cost_grows_with_each_report() {
        let cost = |result: Value, running: Value| {
            let progress =
                json!({"result": result, "cost_now": 1.5, "cost_before": 1.0, "running_cost": running});
            cost_so_far(&progress)
        };
        assert_eq!(cost(Value::Null, Value::Null), None, "`cost_now` belongs to the turn before");
        assert_eq!(cost(json!({}), Value::Null), Some(0.5));
        assert_eq!(cost_so_far(&Value::Null), None, "before its process started");
        assert_eq!(cost(Value::Null, json!(1.25)), Some(0.25));
        assert_eq!(cost(json!({}), json!(1.25)), Some(0.5), "the result is later");
        assert_eq!(cost(json!({}), json!(2.0)), Some(1.0), "more was spent since the result");
        assert_eq!(cost(Value::Null, json!(0.5)), Some(0.0), "of an earlier process");
    }
}
