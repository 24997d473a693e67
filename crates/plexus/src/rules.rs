//! `plexus rules`: lists the rules in force, and removes rules. `plexus allow` adds them.

use clap::{Args, Subcommand};
use plexus_protocol::claudecode::SessionView;
use plexus_protocol::policy::{Effect, ListResult, RevokeResult, RuleView};
use plexus_protocol::{Decider, SessionId};
use serde_json::json;

use crate::durations::left;
use crate::error::ExpectedError;
use crate::escape::exact;
use crate::hub::{HubClient, JsonArg, block_on, named};
use crate::output;
use crate::removal::{Removal, RemovalArgs, Target};
use crate::settings::DataDirArg;
use crate::table::{Align, Table};
use crate::terminal::one_line;

/// Arguments of `plexus rules`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  plexus rules\n  plexus rules --session fixer\n  plexus rules rm 7\n  plexus allow 'Bash(npm test:*)'"
)]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<RulesVerb>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

/// Subcommands of `plexus rules`.
#[derive(Debug, Subcommand)]
pub(crate) enum RulesVerb {
    /// Remove rules.
    Rm(RmArgs),
}

/// Arguments of `plexus rules` without a subcommand.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only the rules that apply to this session.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Arguments of `plexus rules rm`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus rules rm 7")]
pub(crate) struct RmArgs {
    /// The numbers of the rules, from `plexus rules`.
    #[arg(required = true, value_name = "ID")]
    pub(crate) numbers: Vec<u64>,
    #[command(flatten)]
    pub(crate) flags: RemovalArgs,
}

/// Lists or removes rules.
pub(crate) fn run(args: &RulesArgs) -> Result<(), ExpectedError> {
    match &args.verb {
        None => block_on(list(&args.list)),
        Some(RulesVerb::Rm(args)) => block_on(remove(args)),
    }
}

async fn list(args: &ListArgs) -> Result<(), ExpectedError> {
    let hub = HubClient::reach(&args.data_dir).await?;
    let of = args.session.as_deref().map_or_else(|| json!({}), named);
    let ListResult::Ok { rules } = hub.call_with_timeout("policy.list", of).await?;
    if args.json.json {
        output::json(&rules);
    } else if rules.is_empty() {
        output::say("plexus: no rules; `plexus allow RULE` adds one");
    } else {
        output::print(&table(&rules, &hub.all_sessions().await?));
    }
    Ok(())
}

async fn remove(args: &RmArgs) -> Result<(), ExpectedError> {
    let hub = HubClient::reach(&args.flags.data_dir).await?;
    let ListResult::Ok { rules } = hub.call_with_timeout("policy.list", json!({})).await?;
    let known = |number: &u64| rules.iter().find(|rule| rule.number == *number);
    if let Some(unknown) = args.numbers.iter().find(|number| known(number).is_none()) {
        return Err(ExpectedError::Refused(format!(
            "there is no rule {unknown}; `plexus rules` lists the rules"
        )));
    }
    let named: Vec<String> = args.numbers.iter().filter_map(known).map(described).collect();
    let target = |number: &u64| Target { name: number.to_string(), params: json!({"number": number}) };
    let removal = Removal {
        question: format!("Remove {}?", named.join(", ")),
        method: "policy.revoke",
        targets: args.numbers.iter().map(target).collect(),
    };
    args.flags.remove(&hub, removal, |number, _: &RevokeResult| format!("removed rule {number}")).await
}

fn described(rule: &RuleView) -> String {
    format!("rule {} ({} {})", rule.number, effect(rule.effect), one_line(&exact(&rule.rule), 200))
}

fn table(rules: &[RuleView], sessions: &[SessionView]) -> String {
    let mut table = Table::new(&[
        ("ID", Align::Right),
        ("EFFECT", Align::Left),
        ("SESSION", Align::Left),
        ("EXPIRES", Align::Left),
        ("BY", Align::Left),
        ("RULE", Align::Left),
    ]);
    for rule in rules {
        let scope = rule.session_id.map(|id| label(id, sessions));
        table.row([
            rule.number.to_string(),
            effect(rule.effect).to_owned(),
            scope.unwrap_or_else(|| "(every)".to_owned()),
            left(rule.expires_at),
            by(&rule.made_by, sessions),
            one_line(&exact(&rule.rule), 200),
        ]);
    }
    table.to_string()
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Allow => "allow",
        Effect::Deny => "deny",
        Effect::Ask => "ask",
    }
}

/// The path of a session, or its id if it does not exist.
pub(crate) fn label(id: SessionId, sessions: &[SessionView]) -> String {
    match sessions.iter().find(|session| session.id == id) {
        Some(session) => session.path.clone(),
        None => id.to_string(),
    }
}

/// Who did something, with the path of a session instead of its id: `session:lead/fixer`. The kind always precedes the name, so a session
/// with the name `you` or `hub` is not taken for another decider.
pub(crate) fn by(decider: &Decider, sessions: &[SessionView]) -> String {
    let key = match decider {
        Decider::Operator => "you".to_owned(),
        Decider::Session { id } => match sessions.iter().find(|session| session.id == *id) {
            Some(session) => format!("session:{}", session.path),
            None => decider.key(),
        },
        Decider::Token { .. } | Decider::Parent { .. } | Decider::Hub => decider.key(),
    };
    one_line(&key, 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_cannot_imitate_another_decider() {
        let id = "00000000-0000-4000-8000-000000000001";
        for name in ["you", "operator", "Operator", "hub", "HUB"] {
            let session = json!({
                "id": id, "name": name, "path": name, "status": "running", "turn": 1, "working_dir": "/work", "channel": "control",
                "loopback_enabled": true, "policy": "own_course", "permission_mode": "default", "hub_tools": false,
                "answers_to": {"kind": "operator"}, "depth": 0, "pending_approvals": 0, "cost_usd": 0.0,
                "tree": {"sessions": 1, "running": 0, "pending_approvals": 0, "cost_usd": 0.0},
                "head": {"tree_id": id, "node_id": id}, "created_at": 0,
            });
            let sessions: Vec<SessionView> = vec![serde_json::from_value(session).unwrap()];
            let decider = Decider::Session { id: sessions[0].id };
            assert_eq!(by(&decider, &sessions), format!("session:{name}"));
        }
        assert_eq!(by(&Decider::Operator, &[]), "you");
    }
}
