//! The risk mark of a call that is similar to a denied one. Unlike the other marks it depends on the audit log, so it is computed
//! when an approval is read with its context, and never stored.

use plexus_protocol::loopback::Like;
use plexus_protocol::{Approval, ApprovalStatus, Denial, RiskKind, RiskMark};

/// Adds a mark for the newest denial of the same call, or else of a similar call, before all other marks.
pub(crate) fn add_mark(approval: &mut Approval, similar: &[Like]) {
    let mut denied = similar.iter().filter(|like| like.status == ApprovalStatus::Denied);
    // A denial of the same call is more informative.
    let Some(denial) = denied.clone().find(|like| like.same).or_else(|| denied.next()) else { return };
    let reason = if denial.same {
        "the same call was denied before".to_owned()
    } else {
        format!("a similar call was denied before: `{}`", denial.summary)
    };
    let denial = Denial { at: denial.at, by: denial.by.clone(), message: denial.message.clone() };
    let mark = RiskMark { denial: Some(denial), ..RiskMark::new(RiskKind::DeniedBefore, reason) };
    approval.risks.get_or_insert_default().insert(0, mark);
}

#[cfg(test)]
mod tests {
    use plexus_protocol::Decider;
    use serde_json::json;

    use super::*;

    fn same_input(like: Like) -> Like {
        Like { same: true, ..like }
    }

    fn like(at: u64, status: ApprovalStatus) -> Like {
        let (by, message) = (Decider::Operator, Some("not now".to_owned()));
        Like { at, status, by, message, same: false, edited: false, summary: format!("git push {at}") }
    }

    fn marks(similar: &[Like]) -> serde_json::Value {
        let id = "0b5c0000-0000-4000-8000-000000000000";
        let mut approval: Approval = serde_json::from_value(json!({
            "id": id, "session_id": id, "session_name": "a", "kind": "tool", "tool_name": "Bash", "tool_use_id": "t",
            "input": {}, "status": "pending", "created_at": 0, "asked_of": {"kind": "operator"}, "cwd": "/",
            "risks": [{"kind": "network", "reason": "r"}],
        }))
        .expect("an approval");
        add_mark(&mut approval, similar);
        json!(approval.risks)
    }

    #[test]
    fn the_newest_denial_is_named_first_and_an_identical_call_before_a_similar_one() {
        use ApprovalStatus::{Allowed, Denied, Expired};
        let denial = |at: u64| json!({"at": at, "by": {"kind": "operator"}, "message": "not now"});
        let network = json!({"kind": "network", "reason": "r"});
        let similar = |at: u64| {
            let reason = format!("a similar call was denied before: `git push {at}`");
            json!({"kind": "denied_before", "reason": reason, "denial": denial(at)})
        };
        let same = json!({"kind": "denied_before", "reason": "the same call was denied before", "denial": denial(3)});
        assert_eq!(marks(&[same_input(like(9, Allowed)), like(8, Expired)]), json!([network]));
        assert_eq!(
            marks(&[same_input(like(9, Allowed)), like(8, Denied), like(7, Denied)]),
            json!([similar(8), network])
        );
        assert_eq!(marks(&[like(8, Denied), same_input(like(3, Denied))]), json!([same, network]));
    }
}
