//! Computes for whom an approval waited and how long, and who or what resolved it.

use plexus_protocol::claudecode::{AnsweredBy, Asked};
use plexus_protocol::{AskedOf, Decider, Right, UnixSeconds};
use plexus_store::ApprovalSpan;

/// A period in which an approval waited for one addressee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) from: UnixSeconds,
    pub(super) to: UnixSeconds,
    pub(super) asked: Asked,
}

/// The waits of an approval, in order: one for each addressee. A pending approval waits until `now`.
pub(super) fn waits(span: &ApprovalSpan, now: UnixSeconds) -> Vec<Wait> {
    let end = span.resolved.as_ref().map_or(now, |end| end.at).max(span.asked_at);
    let mut from = span.asked_at;
    let mut waits = Vec::with_capacity(span.passed.len() + 1);
    for (addressee, left_at) in &span.passed {
        // An addressee that was skipped at once has no time of its own.
        let to = (*left_at).clamp(from, end);
        if to > from {
            waits.push(Wait { from, to, asked: asked(addressee) });
        }
        from = to;
    }
    waits.push(Wait { from, to: end, asked: asked(&span.asked_of) });
    waits
}

/// Whether a person or an agent is asked.
pub(super) fn asked(of: &AskedOf) -> Asked {
    match of {
        AskedOf::Operator => Asked::Person,
        AskedOf::Session { .. } | AskedOf::Parent { .. } => Asked::Agent,
    }
}

/// Who or what resolved an approval. If a rule resolved it, the creator of the rule does not count.
pub(crate) fn answered_by(by: &Decider, right: Right) -> AnsweredBy {
    match (by, right) {
        (_, Right::Rule) => AnsweredBy::Rule,
        (Decider::Operator | Decider::Token { .. }, _) => AnsweredBy::Person,
        (Decider::Session { .. } | Decider::Parent { .. }, _) => AnsweredBy::Agent,
        (Decider::Hub, _) => AnsweredBy::Hub,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use plexus_protocol::{ApprovalId, ApprovalStatus, SessionId};
    use plexus_store::SpanEnd;

    use super::*;

    pub(in crate::history) fn agent() -> AskedOf {
        AskedOf::Parent { id: "agent".to_owned() }
    }

    /// An approval that the operator answered, or that is open.
    pub(in crate::history) fn approval(
        session: SessionId,
        asked_at: u64,
        passed: &[(AskedOf, u64)],
        asked_of: AskedOf,
        resolved_at: Option<u64>,
    ) -> ApprovalSpan {
        ApprovalSpan {
            approval: ApprovalId::random(),
            session,
            tool_name: "Bash".to_owned(),
            asked_at,
            passed: passed.to_vec(),
            asked_of,
            resolved: resolved_at.map(|at| SpanEnd {
                at,
                status: ApprovalStatus::Allowed,
                by: Decider::Operator,
                right: Right::Operator,
            }),
        }
    }

    #[test]
    fn an_approval_waits_for_each_of_its_addressees_in_turn() {
        let id = SessionId::random();
        let wait = |from, to, asked| Wait { from, to, asked };
        let (person, an_agent) = (AskedOf::Operator, agent());
        for (span, expected) in [
            (approval(id, 10, &[], person.clone(), Some(15)), vec![wait(10, 15, Asked::Person)]),
            (approval(id, 10, &[], an_agent.clone(), None), vec![wait(10, 99, Asked::Agent)]),
            (
                approval(id, 10, &[(an_agent.clone(), 12)], person.clone(), Some(20)),
                vec![wait(10, 12, Asked::Agent), wait(12, 20, Asked::Person)],
            ),
            (
                approval(id, 10, &[(an_agent.clone(), 10), (an_agent.clone(), 13)], person.clone(), None),
                vec![wait(10, 13, Asked::Agent), wait(13, 99, Asked::Person)],
            ),
            // Times that contradict each other, as after a change of the clock.
            (
                approval(id, 10, &[(an_agent.clone(), 5), (an_agent, 50)], person.clone(), Some(20)),
                vec![wait(10, 20, Asked::Agent), wait(20, 20, Asked::Person)],
            ),
            (approval(id, 10, &[], person, Some(3)), vec![wait(10, 10, Asked::Person)]),
        ] {
            assert_eq!(waits(&span, 99), expected);
        }
    }

    #[test]
    fn a_rule_answers_in_its_own_name() {
        let session = Decider::Session { id: SessionId::random() };
        for (by, right, expected) in [
            (Decider::Operator, Right::Operator, AnsweredBy::Person),
            (Decider::Operator, Right::Rule, AnsweredBy::Rule),
            (session.clone(), Right::Ancestor, AnsweredBy::Agent),
            (session, Right::Rule, AnsweredBy::Rule),
            (Decider::Hub, Right::Expiry, AnsweredBy::Hub),
            (Decider::Hub, Right::Rule, AnsweredBy::Rule),
        ] {
            assert_eq!(answered_by(&by, right), expected);
        }
    }
}
