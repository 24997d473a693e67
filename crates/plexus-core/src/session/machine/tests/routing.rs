//! The first addressee of an approval request.

use plexus_protocol::claudecode::PolicyName;
use plexus_protocol::{AskedOf, EscalationReason, Principal};
use plexus_store::SessionRow;

use super::fixtures::{ask, bash};
use super::harness::{Harness, Setup};
use crate::test_support::session_row;

/// A root, a lead and a worker. The lead may allow calls that match `scope`.
fn tree(scope: &[&str], change: impl Fn(&mut SessionRow, &mut SessionRow)) -> (Harness, AskedOf, AskedOf) {
    let (mut root, mut lead) = (session_row("root"), session_row("lead"));
    lead.answers_to = AskedOf::Session { id: root.id };
    for session in [&mut root, &mut lead] {
        session.config.hub_tools = true;
        session.config.approve_scope = vec!["Bash".to_owned()];
    }
    lead.config.approve_scope = scope.iter().map(|rule| (*rule).to_owned()).collect();
    change(&mut root, &mut lead);
    let mut setup = Setup::policy(PolicyName::AskAll);
    setup.row.answers_to = AskedOf::Session { id: lead.id };
    let (of_root, of_lead) = (AskedOf::Session { id: root.id }, AskedOf::Session { id: lead.id });
    setup.ancestors = vec![root, lead];
    (setup.working(), of_root, of_lead)
}

fn ask_about(harness: &mut Harness, command: &str) -> AskedOf {
    harness.line(bash("t", command));
    harness.line(ask("t", command));
    harness.asked("t").approval.asked_of.clone()
}

#[test]
fn approvals_of_a_root_session_go_to_its_creator() {
    for answers_to in [AskedOf::Operator, AskedOf::Parent { id: "outside".to_owned() }] {
        let mut setup = Setup::policy(PolicyName::AskAll);
        setup.row.answers_to = answers_to.clone();
        let mut harness = setup.working();
        assert_eq!(ask_about(&mut harness, "ls"), answers_to);
    }
}

#[test]
fn the_nearest_ancestor_that_may_allow_the_call_is_asked() {
    let (mut harness, _, lead) = tree(&["Bash(ls:*)"], |_, _| {});
    assert_eq!(ask_about(&mut harness, "ls"), lead);
    let (mut harness, root, _) = tree(&["Bash(ls:*)"], |_, _| {});
    assert_eq!(ask_about(&mut harness, "rm x"), root, "beyond the scope of the lead");
    let (mut harness, _, _) = tree(&["Bash(ls:*)"], |root, _| root.config.approve_scope.clear());
    assert_eq!(
        ask_about(&mut harness, "ls"),
        AskedOf::Operator,
        "a lead may allow no more than its own ancestors"
    );
    let (mut harness, root, _) = tree(&["Bash"], |_, lead| lead.deleted_at = Some(1));
    assert_eq!(ask_about(&mut harness, "ls"), root, "a deleted session decides nothing");
}

#[test]
fn an_absent_ancestor_is_passed_over_unless_it_can_be_woken() {
    let (mut harness, root, lead) = tree(&["Bash"], |_, _| {});
    let settings =
        crate::Settings { present_for: std::time::Duration::ZERO, ..crate::test_support::settings() };
    let escalation = std::sync::Arc::new(crate::escalation::Escalation::new(&settings));
    let AskedOf::Session { id } = root else { panic!("{root:?}") };
    let present = escalation.enter(&Principal::Session { id, run: 1 });
    harness.machine.shared.escalation = std::sync::Arc::clone(&escalation);
    assert_eq!(ask_about(&mut harness, "ls"), root);
    let approval = &harness.asked("t").approval;
    assert_eq!(approval.passed.len(), 1);
    assert_eq!(
        (approval.passed[0].from.clone(), approval.passed[0].why),
        (Some(lead), EscalationReason::Absent)
    );
    drop(present);

    let (mut harness, _, lead) = tree(&["Bash"], |_, lead| lead.config.wake = true);
    harness.machine.shared.escalation = escalation;
    assert_eq!(ask_about(&mut harness, "ls"), lead, "it can be woken");
}

#[test]
fn the_time_until_escalation_is_the_nearest_setting_of_the_lineage() {
    for (of_root, of_lead, expected) in [(None, None, 120), (Some(7), None, 7), (Some(7), Some(3), 3)] {
        let (mut harness, ..) = tree(&["Bash"], |root, lead| {
            root.config.escalate_after_secs = of_root;
            lead.config.escalate_after_secs = of_lead;
        });
        ask_about(&mut harness, "ls");
        assert_eq!(harness.asked("t").approval.passes_on_at, Some(1_000_000 + expected));
    }
}

#[test]
fn an_approval_of_the_operator_does_not_escalate() {
    let mut harness = Setup::policy(PolicyName::AskAll).working();
    ask_about(&mut harness, "ls");
    assert_eq!(harness.asked("t").approval.passes_on_at, None);
}
