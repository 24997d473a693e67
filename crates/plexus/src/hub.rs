//! The hub for the verbs: connects to its socket, starts it if it is not running, and calls methods with typed results. The
//! transport is in `client`, starting a hub in `up`.

use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use clap::Args;
use plexus_protocol::Approval;
use plexus_protocol::claudecode::{GetResult, ListResult, SessionView};
use plexus_protocol::loopback::{Answered, PendingResult};
use plexus_server::DataDir;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::cli_words::{self, Words};
use crate::client::{CallError, Client};
use crate::error::{ExpectedError, system};
use crate::review::Reviewed;
use crate::settings::DataDirArg;
use crate::suggest::closest_path;
use crate::terminal::one_line;
use crate::up;

/// How long the hub may take for a call that needs no waiting.
pub(crate) const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// The error code for a session that does not exist.
const NO_SESSION: &str = "session_not_found";

/// The `--json` flag of verbs that print.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct JsonArg {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A hub that can be called.
pub(crate) struct HubClient {
    pub(crate) client: Client,
    pub(crate) dir: PathBuf,
}

impl HubClient {
    /// The hub of this data directory, running or not.
    pub(crate) fn of(data_dir: &DataDirArg) -> Result<Self, ExpectedError> {
        let dir = data_dir.resolve()?;
        Ok(Self { client: Client::Operator { socket: DataDir::socket(&dir) }, dir })
    }

    /// The hub of this data directory; starts it if it is not running.
    pub(crate) async fn reach(data_dir: &DataDirArg) -> Result<Self, ExpectedError> {
        let hub = Self::of(data_dir)?;
        up::ensure(&hub).await?;
        Ok(hub)
    }

    /// Calls a method.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<T, ExpectedError> {
        let name = params["name"].as_str().map(str::to_owned);
        let answer = match self.client.call(method, params).await {
            Ok(answer) => answer,
            Err(error) => return Err(self.explain_call(error, name.as_deref()).await),
        };
        serde_json::from_value(answer).map_err(|error| {
            ExpectedError::Refused(format!(
                "the hub's response to {method} is invalid ({error}); it may have another version"
            ))
        })
    }

    /// The sessions that are not archived, a parent before its children.
    pub(crate) async fn sessions(&self) -> Result<Vec<SessionView>, ExpectedError> {
        self.list(json!({})).await
    }

    /// All sessions, a parent before its children.
    pub(crate) async fn all_sessions(&self) -> Result<Vec<SessionView>, ExpectedError> {
        self.list(json!({"archived": true})).await
    }

    async fn list(&self, params: Value) -> Result<Vec<SessionView>, ExpectedError> {
        let ListResult::Ok { sessions } = self.call_with_timeout("claudecode.list", params).await?;
        Ok(sessions)
    }

    /// The session of this name, or of this id.
    pub(crate) async fn session(&self, name: &str) -> Result<SessionView, ExpectedError> {
        let GetResult::Ok { session } = self.call("claudecode.get", named(name)).await?;
        Ok(session)
    }

    /// The open approvals.
    pub(crate) async fn pending(&self) -> Result<Vec<Approval>, ExpectedError> {
        let PendingResult::Ok { approvals } = self.call("loopback.pending", json!({})).await?;
        Ok(approvals)
    }

    /// One approval with its whole input, and the affected file as the hub read it.
    pub(crate) async fn review(&self, id: &str) -> Result<Reviewed, ExpectedError> {
        let found: Value =
            self.call_with_timeout("loopback.get", json!({"approval_id": id, "context": true})).await?;
        Reviewed::read(found).map_err(system)
    }

    /// Answers one approval.
    pub(crate) async fn respond(&self, answer: Value) -> Result<Answered, ExpectedError> {
        self.call_with_timeout("loopback.respond", answer).await
    }

    /// Calls a method that needs no waiting, with a time limit.
    pub(crate) async fn call_with_timeout<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<T, ExpectedError> {
        match tokio::time::timeout(ANSWERED_WITHIN, self.call(method, params)).await {
            Ok(answered) => answered,
            Err(_) => {
                Err(ExpectedError::Lost("it does not respond; it may have handled the call".to_owned()))
            }
        }
    }

    /// Turns the failure of a call into a message for users.
    pub(crate) fn explain(&self, error: CallError) -> ExpectedError {
        match error {
            CallError::NotReached(_) => ExpectedError::NoHub(self.dir.clone()),
            CallError::Lost(why) => ExpectedError::Lost(why),
            CallError::Refused { ref kind, .. } if kind == NO_SESSION => {
                ExpectedError::Refused(format!("{}; `plexus ls` lists the sessions", error.in_words()))
            }
            CallError::Refused { .. } => ExpectedError::Refused(error.in_words()),
        }
    }

    /// All sessions for an error message; none if the hub does not answer.
    async fn all_sessions_json(&self) -> Vec<Value> {
        let list = self.client.call("claudecode.list", json!({"archived": true}));
        let listed = tokio::time::timeout(ANSWERED_WITHIN, list).await.ok().and_then(Result::ok);
        listed
            .and_then(|mut listed| serde_json::from_value(listed["sessions"].take()).ok())
            .unwrap_or_default()
    }

    /// As [`explain`](Self::explain), but suggests the session that a misspelt name probably means.
    async fn explain_call(&self, error: CallError, name: Option<&str>) -> ExpectedError {
        if let CallError::Refused { kind, data, .. } = &error
            && cli_words::chosen() == Words::Cli
            && let Some(limit) = data["limit"].as_str().filter(|_| kind.starts_with("budget_"))
        {
            let sessions = self.all_sessions_json().await;
            let session = sessions.iter().find(|session| session["id"] == data["session_id"]);
            let path = session.and_then(|session| session["path"].as_str()).unwrap_or_default();
            return ExpectedError::Refused(budget_text(limit, one_line(path, 60), data));
        }
        let (CallError::Refused { kind, .. }, Some(name)) = (&error, name) else {
            return self.explain(error);
        };
        if kind != NO_SESSION {
            return self.explain(error);
        }
        let sessions = self.all_sessions_json().await;
        let names = sessions.iter();
        // A path is corrected as a whole, a name alone by the name.
        let key = if name.contains('/') { "path" } else { "name" };
        match closest_path(name, names.filter_map(|session| session[key].as_str())) {
            Some(meant) => ExpectedError::Refused(format!(
                "no session `{}`; did you mean `{}`?",
                one_line(name, 60),
                one_line(meant, 60)
            )),
            None => self.explain(error),
        }
    }
}

/// The error for a budget that is exhausted or too small, in the words of the command line.
fn budget_text(limit: &str, path: String, data: &Value) -> String {
    let (granted, used, left) = (&data["granted"], &data["used"], &data["left"]);
    let unit = match limit {
        "cost_usd" => "dollars",
        "tool_calls" => "tool calls",
        "wall_secs" => "seconds of running time",
        "children" => "sessions below it",
        other => other,
    };
    format!(
        "session `{path}` has {left} of {granted} {unit} left, and used {used}; `plexus claudecode set-budget` grants more \
         (--name {path} --budget '{{\"{limit}\": N}}')"
    )
}

/// The parameters that select a session by name or id.
pub(crate) fn named(name: &str) -> Value {
    match name.parse::<plexus_protocol::SessionId>() {
        Ok(id) => json!({"session_id": id}),
        Err(_) => json!({"name": name}),
    }
}

/// Runs a verb to its end.
pub(crate) fn block_on<T>(verb: impl Future<Output = Result<T, ExpectedError>>) -> Result<T, ExpectedError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    // Boxed, so that the runtime is compiled once and not once per verb.
    let verb: Pin<Box<dyn Future<Output = Result<T, ExpectedError>> + '_>> = Box::pin(verb);
    let outcome = runtime.block_on(verb);
    // A thread may still wait for a line of the terminal.
    runtime.shutdown_background();
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_error_names_the_session_and_the_command_that_grants_more() {
        let data = json!({"limit": "cost_usd", "granted": 2, "used": 2, "left": 0});
        let text = budget_text("cost_usd", "lead/worker".to_owned(), &data);
        assert_eq!(
            text,
            "session `lead/worker` has 0 of 2 dollars left, and used 2; `plexus claudecode set-budget` grants more \
             (--name lead/worker --budget '{\"cost_usd\": N}')"
        );
    }
}
