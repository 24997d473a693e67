//! Applies a template in `claudecode.create`: fills in the parameters that the caller omitted. `create` then checks all
//! parameters again, because directories, budgets and the rules for servers may have changed since the template was saved.

use plexus_protocol::claudecode::{CreateParams, McpServerGiven};
use plexus_protocol::template::Template;
use plexus_protocol::{Error, ErrorKind, Principal, TemplateName};

use crate::Hub;
use crate::callers::access::Admitted;
use crate::errors::store_error;

/// A template that was used for some parameters.
pub(in crate::activations) struct TemplateUse {
    name: TemplateName,
    fields: Vec<&'static str>,
}

impl TemplateUse {
    /// Fills in the parameters from the template that they name; `None` if they name none.
    pub(in crate::activations) async fn fill_in(
        hub: &Hub,
        caller: &Admitted,
        params: &mut CreateParams,
    ) -> Result<Option<Self>, Error> {
        let Some(name) = params.template.take() else { return Ok(None) };
        // An agent could otherwise give a session the operator's MCP servers, with their secrets.
        if !matches!(caller.principal, Principal::Operator | Principal::Token { .. }) {
            let message = "only the operator can use templates";
            return Err(Error::new(ErrorKind::Forbidden, message).with("field", "template"));
        }
        let row = hub.store().template(&name).await.map_err(store_error)?.ok_or_else(|| {
            let message = format!("template `{name}` does not exist; template.list lists all templates");
            Error::new(ErrorKind::TemplateNotFound, message).with("field", "template")
        })?;
        let fields = fill_in(params, row.template);
        Ok(Some(Self { name, fields }))
    }

    /// Adds the name of the template to the error about a parameter that came from it.
    pub(in crate::activations) fn explain(&self, error: Error) -> Error {
        let field = error.details.get("field").and_then(|field| field.as_str()).unwrap_or_default();
        let top = field.split(['.', '[']).next().unwrap_or_default();
        if !self.fields.contains(&top) {
            return error;
        }
        let message =
            format!("{} (from the template `{}`; template.save replaces it)", error.message, self.name);
        Error { message, ..error }.with("template", self.name.to_string())
    }
}

/// Sets the parameters that the caller omitted, and returns their names. The directory of a template is not used: callers always
/// give `working_dir`, and a form only proposes the template's.
pub(super) fn fill_in(params: &mut CreateParams, template: Template) -> Vec<&'static str> {
    let Template { prompt, working_dir: _, model, permission_mode, policy, budget, isolation, mcp_servers } =
        template;
    let servers = (!mcp_servers.is_empty()).then(|| {
        mcp_servers.into_iter().map(|(name, server)| (name, McpServerGiven::from(server))).collect()
    });
    let mut filled = Vec::new();
    fill(&mut params.prompt, prompt, "prompt", &mut filled);
    fill(&mut params.model, model, "model", &mut filled);
    fill(&mut params.permission_mode, permission_mode, "permission_mode", &mut filled);
    fill(&mut params.policy, policy, "policy", &mut filled);
    fill(&mut params.budget, budget, "budget", &mut filled);
    fill(&mut params.isolation, isolation, "isolation", &mut filled);
    fill(&mut params.mcp_servers, servers, "mcp_servers", &mut filled);
    filled
}

fn fill<T>(param: &mut Option<T>, value: Option<T>, field: &'static str, filled: &mut Vec<&'static str>) {
    if param.is_none() && value.is_some() {
        *param = value;
        filled.push(field);
    }
}

#[cfg(test)]
mod tests {
    use plexus_protocol::claudecode::{PermissionMode, PolicyName};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_sets_only_what_the_caller_omitted() {
        let mut params: CreateParams = serde_json::from_value(
            json!({"name": "a", "working_dir": "/w", "model": "own", "prompt": "own"}),
        )
        .expect("parameters");
        let template: Template = serde_json::from_value(json!({
            "prompt": "stored", "working_dir": "/elsewhere", "model": "stored", "permission_mode": "plan",
            "policy": "ask_all", "budget": {"turns": 3}, "isolation": "worktree",
            "mcp_servers": {"db": {"type": "stdio", "command": "db", "env": {"KEY": "secret"}}},
        }))
        .expect("a template");
        let stored = serde_json::to_value(&template).expect("its text");
        assert_eq!(serde_json::from_value::<Template>(stored).expect("the same"), template);
        let filled = fill_in(&mut params, template);
        assert_eq!(filled, ["permission_mode", "policy", "budget", "isolation", "mcp_servers"]);
        assert_eq!((params.model.as_deref(), params.prompt.as_deref()), (Some("own"), Some("own")));
        assert_eq!(params.working_dir, "/w");
        assert_eq!(params.permission_mode, Some(PermissionMode::Plan));
        assert_eq!(params.policy, Some(PolicyName::AskAll));
        let server = &params.mcp_servers.expect("servers")["db"];
        assert_eq!(server.command.as_deref(), Some("db"));
        assert_eq!(server.env.as_ref().expect("its variables")["KEY"], "secret");
    }

    #[test]
    fn an_error_names_the_template_that_a_parameter_came_from() {
        let used = TemplateUse {
            name: TemplateName::try_from("fix".to_owned()).expect("a name"),
            fields: vec!["budget", "mcp_servers"],
        };
        let own = used.explain(Error::invalid("prompt", "is empty"));
        assert!(!own.message.contains("template") && own.details.get("template").is_none(), "{own}");
        for field in ["budget.turns", "mcp_servers.db.command", "budget"] {
            let error = used.explain(Error::invalid(field, "is wrong"));
            assert!(error.message.contains("`fix`"), "{error}");
            assert_eq!(error.details["template"], "fix");
        }
    }
}
