//! `claudecode.import`: imports entries of the user's own Claude Code configuration, with exactly the content that the
//! operator has seen, and removes imported entries.

use std::sync::Arc;

use plexus_protocol::audit::{AuditEntry, AuditKind};
use plexus_protocol::claudecode::{
    ImportKind, ImportParams, ImportRef, ImportResult, ImportState, ImportTake,
};
use plexus_protocol::policy::{RuleGiven, RuleView};
use plexus_protocol::{Decider, Error, Principal};
use plexus_store::Change;
use serde_json::json;

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::loading::{Candidate, Content, rule_state};
use crate::method::Audience;
use crate::policy::RuleContext;
use plexus_book::now;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.import",
        "Imports rules, MCP servers and agents from the user's own Claude Code configuration, as \
         `claudecode.imports` showed them, or removes them.",
        Audience::Programs,
        Needs::Rule,
        import,
    )
}

async fn import(hub: Arc<Hub>, caller: Admitted, params: ImportParams) -> Result<ImportResult, Error> {
    let ImportParams { take, remove } = params;
    if take.is_empty() && remove.is_empty() {
        return Err(Error::invalid(
            "take",
            "is empty, and so is `remove`; pass the entries to import or to remove",
        ));
    }
    let imports = &hub.parts().imports;
    let candidates = match take.is_empty() {
        true => Vec::new(),
        false => imports.candidates(hub.files()).await?,
    };
    let chosen = imports.chosen(&candidates, &take)?;
    imports.check(&chosen, &remove)?;
    let in_force = hub.policy().in_force.list(None);
    let mut changes = new_rules(&hub, &caller.principal, &chosen, &in_force)?;
    changes.extend(revoked(&hub, &caller.principal, &remove, &in_force)?);
    let taken: Vec<ImportRef> =
        take.into_iter().map(|ImportTake { kind, name, .. }| ImportRef { kind, name }).collect();
    let act = AuditEntry {
        detail: json!({"taken": taken, "removed": remove}).as_object().cloned(),
        ..AuditEntry::of_caller(now(), AuditKind::Policy, "imported", &caller.principal)
    };
    changes.push(Change::Audit(Box::new(act)));
    // Imported rules decide about later calls only. Open approvals stay open, because the operator has not seen their
    // calls together with the rules.
    hub.commit(changes).await.map_err(store_error)?;
    imports.change(&chosen, &remove)?;
    Ok(ImportResult::Ok { taken, removed: remove })
}

/// The chosen rules that are not in force yet.
fn new_rules(
    hub: &Hub,
    principal: &Principal,
    chosen: &[&Candidate],
    in_force: &[RuleView],
) -> Result<Vec<Change>, Error> {
    let mut rules = Vec::new();
    for candidate in chosen {
        let Ok(Content::Rule(rule)) = &candidate.content else { continue };
        let state = rule_state(rule, in_force);
        if state == ImportState::New {
            rules.push(RuleGiven { rule: rule.text.clone(), effect: rule.effect, expires_at: None });
        }
    }
    let home = hub.settings().home.as_deref();
    RuleContext { principal, session: None, base: "/", home }.rules(&rules, "take")
}

/// The changes that revoke the rules to remove.
fn revoked(
    hub: &Hub,
    principal: &Principal,
    remove: &[ImportRef],
    in_force: &[RuleView],
) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    for (i, removed) in remove.iter().enumerate().filter(|(_, removed)| removed.kind == ImportKind::Rule) {
        let numbers = hub.parts().imports.rules_to_remove(&removed.name, in_force);
        if numbers.is_empty() {
            let why = format!("`{}` is not an imported rule", removed.name);
            return Err(Error::invalid(&format!("remove[{i}]"), why));
        }
        let by = Decider::from(principal);
        changes.extend(numbers.into_iter().map(|number| Change::RevokeRule { number, by: by.clone() }));
    }
    Ok(changes)
}
