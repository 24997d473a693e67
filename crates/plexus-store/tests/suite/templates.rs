//! Templates for new sessions.

use std::sync::Arc;

use plexus_protocol::audit::AuditKind;
use plexus_protocol::template::Template;
use plexus_protocol::{Decider, TemplateName};
use plexus_store::{AuditFilter, AuditFrom, Change, Refusal, Store};
use serde_json::json;

use crate::common::*;

fn template_name(text: &str) -> TemplateName {
    TemplateName::try_from(text.to_owned()).unwrap()
}

fn template(prompt: &str) -> Template {
    serde_json::from_value(json!({
        "prompt": prompt, "policy": "ask_all", "isolation": "worktree", "budget": {"cost_usd": 0.5},
        "mcp_servers": {"db": {"type": "stdio", "command": "db", "env": {"KEY": "A-SECRET"}}},
    }))
    .unwrap()
}

fn saves(name: &str, template: Template) -> Change {
    Change::SaveTemplate { name: template_name(name), template: Box::new(template), by: Decider::Operator }
}

pub async fn a_template_is_stored_replaced_and_deleted_with_audit_entries(store: Arc<dyn Store>) {
    commit(&*store, saves("b", template("one"))).await;
    commit(&*store, saves("a", template("two"))).await;
    store.commit(NOW + 5, vec![saves("b", template("three"))]).await.unwrap();
    let listed = store.templates().await.unwrap();
    let shown: Vec<_> = listed.iter().map(|row| (row.name.as_str(), row.saved_at)).collect();
    assert_eq!(shown, [("a", NOW), ("b", NOW + 5)]);
    let found = store.template(&template_name("b")).await.unwrap().unwrap();
    assert_eq!(found.template, template("three"), "read as it was written, with its secrets");

    let delete = || Change::DeleteTemplate { name: template_name("b"), by: Decider::Operator };
    commit(&*store, delete()).await;
    assert!(store.template(&template_name("b")).await.unwrap().is_none());
    assert!(
        matches!(refused(&*store, delete()).await, Refusal::NoSuchTemplate(name) if name.as_str() == "b")
    );

    let filter = AuditFilter { kind: Some(AuditKind::Template), ..AuditFilter::default() };
    let logged = store.audit(filter, AuditFrom::After(0), 10).await.unwrap();
    let acts: Vec<_> = logged.iter().map(|row| row.entry.status.as_str()).collect();
    assert_eq!(acts, ["saved", "saved", "saved", "deleted"]);
    let text = serde_json::to_string(&logged).unwrap();
    assert!(text.contains("\"db\"") && !text.contains("A-SECRET") && !text.contains("three"), "{text}");
}

pub async fn the_number_of_templates_is_limited(store: Arc<dyn Store>) {
    for n in 0..100 {
        commit(&*store, saves(&format!("t{n}"), Template::default())).await;
    }
    let one_more = refused(&*store, saves("more", Template::default())).await;
    assert!(matches!(one_more, Refusal::TooManyTemplates(100)));
    commit(&*store, saves("t7", template("replaced"))).await;
}
