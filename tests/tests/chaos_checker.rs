//! The checker of the chaos runs with several hubs finds each violation.

use plexus_e2e::chaos::checker::{
    Acknowledged, Audit, Finished, Logged, Ran, Records, Revoked, What, Writer, violations,
};

fn by(host: &str, epoch: u64) -> Option<Writer> {
    Some(Writer { host: host.to_owned(), epoch })
}

fn resolved(approval: &str, call: &str, status: &str, rule: Option<u64>) -> What {
    let [approval, call, status] = [approval, call, status].map(str::to_owned);
    What::Resolved { approval, call, owner: "one".to_owned(), status, rule }
}

fn gate(call: &str, answer: &str, rule: Option<u64>) -> What {
    What::Gate { call: call.to_owned(), owner: "one".to_owned(), answer: answer.to_owned(), rule }
}

fn ran(call: &str, requested_at_ns: u64) -> Ran {
    Ran { call: call.to_owned(), host: "one".to_owned(), requested_at_ns }
}

fn finished(turn: u64) -> Finished {
    Finished { session: "s".to_owned(), turn }
}

/// Records of a run without violations: `a` was allowed by a decider, `b` by a rule that was revoked later, `c` was denied on another host, `d` was held first.
fn sound() -> Records {
    let log = [
        (gate("a", "ask", None), by("one", 1)),
        (What::RuleCreated(1), by("two", 1)),
        (gate("b", "allow", Some(1)), by("one", 1)),
        (resolved("A", "a", "allowed", None), by("one", 2)),
        (What::RuleRevoked(1), by("two", 1)),
        (gate("c", "ask", None), by("one", 2)),
        (resolved("C", "c", "denied", None), by("two", 1)),
        (What::Budget { session: "s".to_owned(), granted: 2, claimed: 2 }, by("one", 2)),
        (gate("d", "held", None), by("one", 2)),
        (gate("d", "allow", None), by("one", 2)),
    ];
    let acknowledged = [("A", "allowed"), ("C", "denied")];
    Records {
        ran: vec![ran("a", 10), ran("b", 20), ran("d", 90)],
        log: log.into_iter().map(|(what, by)| Logged { what, by }).collect(),
        acknowledged: acknowledged
            .map(|(approval, status)| Acknowledged {
                approval: approval.to_owned(),
                status: status.to_owned(),
            })
            .to_vec(),
        revoked: vec![Revoked { rule: 1, at_ns: 50 }],
        feed: vec![1, 2, 3],
        finished: vec![finished(1), finished(2)],
        followers: vec![vec![finished(1), finished(2)], vec![finished(1), finished(2)]],
        audit: Audit { numbers: vec![1, 2], broken: vec![None, None] },
    }
}

/// Changes the sound records; the only violation must contain this text.
fn finds(text: &str, change: impl FnOnce(&mut Records)) {
    let mut records = sound();
    change(&mut records);
    let found = violations(&records);
    assert!(found.len() == 1 && found[0].contains(text), "{text}: {found:#?}");
}

#[test]
fn a_sound_run_has_no_violations() {
    assert_eq!(violations(&sound()), Vec::<String>::new());
}

#[test]
fn a_call_that_nobody_allowed_is_found() {
    finds("nobody allowed it", |records| records.ran.push(ran("c", 30)));
    finds("nobody allowed it", |records| records.ran.push(ran("unknown", 30)));
}

#[test]
fn a_call_that_ran_twice_is_found() {
    finds("a ran 2 times", |records| records.ran.push(ran("a", 30)));
}

#[test]
fn a_call_that_ran_on_another_host_is_found() {
    finds("was allowed by one", |records| records.ran[0].host = "two".to_owned());
}

#[test]
fn a_call_that_another_host_allowed_is_found() {
    let what = resolved("X", "x", "allowed", None);
    finds("was allowed by Some", |records| records.log.push(Logged { what, by: by("two", 1) }));
    let what = gate("x", "allow", None);
    finds("was allowed by Some", |records| records.log.push(Logged { what, by: by("two", 1) }));
}

#[test]
fn a_hub_that_writes_in_an_earlier_epoch_is_found() {
    let what = resolved("X", "x", "denied", None);
    finds("after epoch 2 had started", |records| records.log.push(Logged { what, by: by("one", 1) }));
}

#[test]
fn a_transaction_of_no_hub_is_found() {
    let what = resolved("X", "x", "denied", None);
    finds("no hub has fenced", |records| records.log.push(Logged { what, by: None }));
}

#[test]
fn a_second_decision_is_found() {
    let again = |what| move |records: &mut Records| records.log.push(Logged { what, by: by("one", 2) });
    finds("resolved 2 times", again(resolved("A", "a", "allowed", None)));
    finds("the gate answered b 2 times", again(gate("b", "ask", None)));
}

#[test]
fn a_lost_or_changed_answer_is_found() {
    let told = |approval: &str, status: &str| Acknowledged {
        approval: approval.to_owned(),
        status: status.to_owned(),
    };
    finds("no decision is stored", |records| records.acknowledged.push(told("X", "denied")));
    finds("is stored as denied", |records| records.acknowledged.push(told("C", "allowed")));
}

#[test]
fn an_allow_after_a_revocation_is_found() {
    let late = |what| move |records: &mut Records| records.log.push(Logged { what, by: by("one", 2) });
    finds("allowed x after its revocation", late(gate("x", "allow", Some(1))));
    finds("allowed x after its revocation", late(resolved("X", "x", "allowed", Some(1))));
    finds("requested after a client knew", |records| records.ran[1].requested_at_ns = 51);
}

#[test]
fn an_exceeded_budget_is_found() {
    let what = What::Budget { session: "s".to_owned(), granted: 2, claimed: 3 };
    finds("used 3 of a budget of 2", |records| records.log.push(Logged { what, by: by("one", 2) }));
}

#[test]
fn a_gap_in_the_feed_is_found() {
    finds("gap after entry 3", |records| records.feed.push(5));
    finds("never told of", |records| drop(records.followers[0].pop()));
    finds("twice", |records| records.followers[1].push(finished(1)));
}

#[test]
fn a_broken_audit_chain_is_found() {
    finds("audit.verify on hub 1", |records| records.audit.broken[1] = Some("entry 2".to_owned()));
    finds("the audit log has a gap after entry 0", |records| records.audit.numbers = vec![2]);
}
