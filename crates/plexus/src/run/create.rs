//! The parameters of `claudecode.create`, from the arguments and the files that they name.

use std::collections::BTreeMap;
use std::path::PathBuf;

use plexus_protocol::SessionId;
use serde_json::{Value, json};

use super::{RunArgs, free_name, given};
use crate::error::{ExpectedError, system};
use crate::terminal_session::{OutputMode, output_mode};
use crate::{attachments, environment};

/// A session to be created. All files that the arguments name have been read.
pub(super) struct NewSession {
    pub(super) name: String,
    pub(super) dir: PathBuf,
    prompt: Option<String>,
    /// The other parameters.
    params: Value,
}

impl NewSession {
    /// Reads the environment and the files.
    pub(super) fn read(args: &RunArgs) -> Result<Self, ExpectedError> {
        let mut env = environment::chosen(std::env::vars_os(), &args.env).map_err(|name| {
            ExpectedError::Usage(format!("--env {name}: the variable is not set or not UTF-8"))
        })?;
        if args.host.is_some() || !args.labels.is_empty() {
            // PATH, HOME and the others are those of this machine.
            env.retain(|(name, _)| args.env.contains(name));
        }
        let dir = match &args.dir {
            Some(dir) => std::path::absolute(dir).map_err(system)?,
            None => std::env::current_dir().map_err(system)?,
        };
        let name = args.name.clone().unwrap_or_else(free_name);
        let prompt = args.prompt.as_deref().map(given::prompt).transpose()?;
        let mut params = json!({"env": env.into_iter().collect::<BTreeMap<_, _>>()});
        let attachments = attachments::read(&args.attach)?;
        if !attachments.is_empty() {
            params["attachments"] = Value::Array(attachments);
        }
        if let Some(file) = &args.mcp {
            params["mcp_servers"] = json!(given::mcp_servers(file)?);
        }
        if let Some(file) = &args.hooks {
            params["hooks"] = json!(given::hooks(file)?);
        }
        add_flags(&mut params, args);
        Ok(Self { name, dir, prompt, params })
    }

    /// The parameters. `resume` is the Claude Code session to continue.
    pub(super) fn params(&self, resume: Option<SessionId>) -> Result<Value, ExpectedError> {
        let no_prompt = || ExpectedError::Usage("give a prompt as well".to_owned());
        let mut params = self.params.clone();
        params["name"] = json!(self.name);
        params["working_dir"] = json!(self.dir);
        params["prompt"] = json!(self.prompt.as_ref().ok_or_else(no_prompt)?);
        if let Some(session) = resume {
            params["resume"] = json!(session);
        }
        Ok(params)
    }
}

fn add_flags(params: &mut Value, args: &RunArgs) {
    if !args.labels.is_empty() {
        params["labels"] = json!(args.labels);
    }
    if output_mode(args.json) == OutputMode::Terminal && !args.detach {
        params["deltas"] = json!(true);
    }
    if args.worktree {
        params["isolation"] = json!("worktree");
    }
    if let Some(amount) = args.budget {
        params["budget"] = json!({"cost_usd": amount});
    }
    if args.trust {
        params["trust_project"] = json!(true);
    }
    if args.no_imported {
        params["imported"] = json!(false);
    }
    for (key, value) in [
        ("host", &args.host),
        ("model", &args.model),
        ("permission_mode", &args.mode),
        ("policy", &args.policy),
        ("append_system_prompt", &args.append_system_prompt),
    ] {
        if let Some(value) = value {
            params[key] = json!(value);
        }
    }
}
