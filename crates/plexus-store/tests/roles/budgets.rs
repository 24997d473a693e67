//! Budgets of sessions above those of a runner.

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{ApprovalStatus, AskedOf};
use plexus_store::{Change, Ledger as _, OpenFilter, RunKey, RunState, Store as _, StoreError};

use crate::Hosts;
use crate::common::{NOW, ends, new_session};

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_spends_the_budget_above_and_cannot_raise_it() {
    let test = "a_runner_spends_the_budget_above_and_cannot_raise_it";
    let Some(hosts) = Hosts::new(test).await else { return };
    // Another child of `boss`, which has reserved 20.
    let mut new = new_session("sibling");
    (new.host, new.answers_to) = (hosts.one.host().cloned(), AskedOf::Session { id: hosts.boss.session });
    let sibling = new.id;
    let granted = Change::SetBudget(sibling, vec![(BudgetLimit::ToolCalls, 20)]);
    hosts.one.commit(NOW, vec![Change::CreateSession(Box::new(new)), granted]).await.unwrap();
    let set = |what: &str| {
        format!("UPDATE budgets SET {what} WHERE session = '{{boss}}' AND kind = 'tool_calls' RETURNING 1")
    };
    let spend = set("used = used + 1, own = own + 1");
    hosts.refuses("raise", &set("granted = granted + 1"), &spend);
    hosts.refuses("use less", &set("used = used - 1"), &spend);
    hosts.refuses("have used less", &set("own = own - 1"), &spend);
    hosts.refuses("release what others have reserved", &set("below = 19"), &set("below = 20"));
    let grant = |session: &str| {
        format!("INSERT INTO budgets (session, kind, granted) VALUES ('{session}', 'turns', 5) RETURNING 1")
    };
    hosts.refuses("grant", &grant("{boss}"), &grant("{worker}"));
    let other = format!("UPDATE budgets SET used = used + 1 WHERE session = '{sibling}' RETURNING 1");
    hosts.refuses("spend beside", &other, &spend);

    // The hub of the runner spends through the rules of the store, and asks for more in the name of the session above.
    hosts
        .two
        .commit(NOW, vec![Change::SetBudget(hosts.child, vec![(BudgetLimit::ToolCalls, 75)])])
        .await
        .unwrap();
    hosts.two.commit(NOW, vec![Change::Spend(hosts.child, BudgetLimit::ToolCalls, 75)]).await.unwrap();
    let used =
        "SELECT used, own, below, granted FROM budgets WHERE session = '{boss}' AND kind = 'tool_calls'";
    assert_eq!(hosts.prints("plexus", used).unwrap(), "80|5|95|100");
    let refused =
        hosts.two.commit(NOW, vec![Change::SetBudget(hosts.child, vec![(BudgetLimit::ToolCalls, 76)])]).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    hosts.two.commit(NOW, vec![Change::DeleteSession(hosts.child)]).await.unwrap();
    assert_eq!(hosts.prints("plexus", used).unwrap(), "80|80|20|100");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_above_is_asked_for_by_the_runner_and_decided_by_others() {
    let test = "a_budget_above_is_asked_for_by_the_runner_and_decided_by_others";
    let Some(hosts) = Hosts::new(test).await else { return };
    let (boss, child) = (hosts.boss.session, hosts.child);
    hosts.one.commit(NOW, vec![Change::SetBudget(boss, vec![(BudgetLimit::CostUsd, 1)])]).await.unwrap();
    hosts.one.commit(NOW, vec![Change::Spend(boss, BudgetLimit::CostUsd, 1)]).await.unwrap();
    let key = RunKey { session: child, run: 1 };
    let start = vec![
        Change::StartRun { key, state: RunState::Starting, token_hash: None },
        Change::StartTurn { session: child, turn: 1, prompt: "go".to_owned(), woken_to: None },
        Change::AskBudget(child),
    ];
    let asked = hosts.two.commit(NOW, start).await.unwrap();
    let approval = asked.held[0].approval;
    let allow = format!(
        "UPDATE approvals SET status = 'allowed', decision = '{{}}', resolved_at = 1 WHERE id = '{approval}' RETURNING 1"
    );
    hosts.refuses("allow it", &allow, &allow.replace("allowed", "withdrawn"));
    // No rule and nobody beside allows it: its text says so.
    let ask = |text: &str| {
        format!(
            "INSERT INTO approvals (id, number, session, run, turn, tool_use_id, asked_of, channel, question) SELECT '0000000a-0000-4000-8000-000000000000', 0, '{{boss}}', 1, 0, 'budget:turns', 'operator', 'control', \
             '{{\"id\":\"0000000a-0000-4000-8000-000000000000\",\"session_id\":\"{{boss}}\",\"tool_use_id\":\"budget:turns\",\"kind\":\"budget\",\"tool_name\":\"budget\",{text}}}' RETURNING 1"
        )
    };
    let operator = "\"asked_of\":{\"kind\":\"operator\"}";
    let plain = ask(&format!("\"beyond_rules\":true,{operator}"));
    hosts.refuses("ask by rule", &ask(operator), &plain);
    hosts.refuses(
        "ask itself",
        &ask("\"beyond_rules\":true,\"asked_of\":{\"kind\":\"session\",\"id\":\"{worker}\"}"),
        &plain,
    );
    hosts.refuses("add a decider", &ask(&format!("\"beyond_rules\":true,\"passed\":[],{operator}")), &plain);
    let event = |kind: &str, turn: u64, seq: &str| {
        let text = format!(
            "{{\"type\":\"{kind}\",\"approval_id\":\"{approval}\",\"tool_use_id\":\"budget:cost_usd\"}}"
        );
        let next = format!(
            "SELECT coalesce(max(seq) + 1, 0) FROM event_numbers WHERE session = '{{boss}}' AND turn = {turn}"
        );
        let sql = format!("INSERT INTO events VALUES ('{{boss}}', {turn}, {seq}, '{text}', 1)");
        hosts.prints(&hosts.role(), &sql.replace("next", &format!("({next})")))
    };
    event("approval_requested", 0, "next").unwrap();
    event("content", 0, "next").unwrap_err();
    event("approval_requested", 1, "next").unwrap_err();
    event("approval_requested", 0, "next + 1").unwrap_err();
    event("approval_requested", 0, "9223372036854775807").unwrap_err();
    let open = hosts.one.open_approvals(OpenFilter::All).await.unwrap();
    assert!(
        open.iter().any(|row| row.approval.id == approval && row.approval.session_id == boss),
        "{open:?}"
    );
    // No call waits any more: the hub of the runner withdraws it.
    hosts.two.commit(NOW, vec![ends(child, 1)]).await.unwrap();
    let row = hosts.one.approval(approval).await.unwrap().unwrap();
    assert_eq!(row.approval.status, ApprovalStatus::Withdrawn);
}
