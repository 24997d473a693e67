//! An approval is resolved once, in any order of changes: the store agrees with a simple model.
#![cfg(test)]

mod common;

use std::collections::HashMap;

use common::*;
use plexus_protocol::{ApprovalId, ApprovalStatus, SessionId};
use plexus_store::{Change, OpenFilter, Refusal, RunKey, Store, StoreError};
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    Ask { call: usize },
    Resolve { nth: usize, status: ApprovalStatus },
    ResolveIfPending { nth: usize, status: ApprovalStatus },
    Settle { call: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let status = prop_oneof![
        Just(ApprovalStatus::Allowed),
        Just(ApprovalStatus::Denied),
        Just(ApprovalStatus::Expired),
        Just(ApprovalStatus::Withdrawn)
    ];
    let step = prop_oneof![
        3 => (0..3_usize).prop_map(|call| Step::Ask { call }),
        3 => (0..6_usize, status.clone()).prop_map(|(nth, status)| Step::Resolve { nth, status }),
        1 => (0..6_usize, status).prop_map(|(nth, status)| Step::ResolveIfPending { nth, status }),
        1 => (0..3_usize).prop_map(|call| Step::Settle { call }),
    ];
    prop::collection::vec(step, 1..40)
}

/// The expected state of the store.
#[derive(Default)]
struct Model {
    asked: Vec<ApprovalId>,
    status: HashMap<ApprovalId, ApprovalStatus>,
    sessions_with_state: HashMap<usize, ApprovalId>,
}

impl Model {
    fn nth(&self, nth: usize) -> Option<ApprovalId> {
        self.asked.get(nth % self.asked.len().max(1)).copied()
    }
}

/// Applies one step to the store and to the model, and compares their results.
async fn take(store: &dyn Store, session: SessionId, model: &mut Model, step: Step) {
    match step {
        Step::Ask { call } => {
            let new = question(session, 1, &format!("call-{call}"));
            let id = new.approval.id;
            let asked = store.commit(NOW, vec![Change::Ask(Box::new(new))]).await;
            if model.sessions_with_state.contains_key(&call) {
                assert!(matches!(asked, Err(StoreError::Refused(Refusal::KeyTaken))), "{asked:?}");
            } else {
                asked.unwrap();
                model.asked.push(id);
                model.sessions_with_state.insert(call, id);
                model.status.insert(id, ApprovalStatus::Pending);
            }
        }
        Step::Resolve { nth, status } => {
            let Some(approval) = model.nth(nth) else { return };
            let decision = if status == ApprovalStatus::Allowed { allowed() } else { denied() };
            let decision = Box::new(decision);
            let resolved = store.commit(NOW, vec![Change::Resolve { approval, status, decision }]).await;
            match model.status[&approval] {
                ApprovalStatus::Pending => {
                    assert_eq!(resolved.unwrap().approvals[0].approval.status, status);
                    model.status.insert(approval, status);
                }
                before => match resolved {
                    Err(StoreError::Refused(Refusal::AlreadyResolved(row))) => {
                        assert_eq!(row.approval.status, before);
                    }
                    other => panic!("{other:?}"),
                },
            }
        }
        Step::ResolveIfPending { nth, status } => {
            let Some(approval) = model.nth(nth) else { return };
            let decision = Box::new(denied());
            let changes = vec![Change::ResolveIfPending { approval, status, decision }];
            // After its deadline.
            let made = store.commit(NOW + 60, changes).await.unwrap();
            let was_pending = model.status[&approval] == ApprovalStatus::Pending;
            assert_eq!(made.events.len(), usize::from(was_pending));
            if was_pending {
                model.status.insert(approval, status);
            }
        }
        Step::Settle { call } => {
            commit(store, Change::ReleaseKeys(RunKey { session, run: 1 }, format!("call-{call}"))).await;
            model.sessions_with_state.remove(&call);
        }
    }
}

/// The whole store agrees with the model.
async fn compare(store: &dyn Store, session: SessionId, model: &Model) {
    let mut resolved_events = HashMap::new();
    for row in store.events(session, 1, 0, u64::MAX).await.unwrap() {
        if row.event.value()["type"] == "approval_resolved" {
            *resolved_events
                .entry(row.event.value()["approval_id"].as_str().unwrap().to_owned())
                .or_insert(0) += 1;
        }
    }
    let mut open = Vec::new();
    for id in &model.asked {
        let status = store.approval(*id).await.unwrap().unwrap().approval.status;
        assert_eq!(status, model.status[id]);
        let told = resolved_events.get(&id.to_string()).copied().unwrap_or(0);
        assert_eq!(told, i32::from(status != ApprovalStatus::Pending));
        if status == ApprovalStatus::Pending {
            open.push(*id);
        }
    }
    let rows = store.open_approvals(OpenFilter::OfSession(session)).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.approval.id).collect::<Vec<_>>(), open);
    let sessions_with_state = store.approvals_without_result(RunKey { session, run: 1 }).await.unwrap();
    assert_eq!(sessions_with_state.len(), model.sessions_with_state.len());
    assert!(
        sessions_with_state
            .iter()
            .all(|row| model.sessions_with_state.values().any(|id| *id == row.approval.id))
    );
}

#[test]
fn in_any_order_of_requests_and_answers_an_approval_is_decided_once() {
    let dir = tempfile::TempDir::new().unwrap();
    let store = open(&dir.path().join("plexus.db"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let cases = ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(cases, |(steps in steps())| {
        runtime.block_on(async {
            let session = create(&store, &SessionId::random().to_string()).await;
            let mut model = Model::default();
            for step in steps {
                take(&store, session, &mut model, step).await;
            }
            compare(&store, session, &model).await;
        });
    });
}
