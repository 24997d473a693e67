//! The scripted Messages API. It replaces Anthropic's API, so that the real Claude Code CLIs run without an account or a network. It owns the
//! scripts, which answer each conversation by the marker in its prompt, and a record of every request. The tests check the record.

mod answer;
mod conversation;
mod server;
mod step;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use answer::{INPUT_TOKENS, OUTPUT_TOKENS};
pub use conversation::{ToolResult, tool_results};
pub use step::{Hold, Step, Tool};

/// The time limit of [`ScriptedModel::seen`].
const SEEN_LIMIT: Duration = Duration::from_secs(30);

/// A Messages API on a free port of 127.0.0.1. Dropping it stops it.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

/// One request to `/v1/messages`, unchanged.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The marker of the script that answered it. `None` if no script matched.
    pub marker: Option<String>,
    /// The step of that script, from 0.
    pub step: usize,
    /// The request body.
    pub body: Value,
    /// The request headers, names in lower case.
    pub headers: HashMap<String, String>,
}

impl ScriptedModel {
    /// Starts the API on a free port.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn start() -> anyhow::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (address, server) = server::start(Arc::clone(&shared)).await?;
        Ok(Self { address, shared, server })
    }

    /// The value for `ANTHROPIC_BASE_URL`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the answers to a prompt that contains `marker`: one step per model request. If several markers match, the longest wins. A second
    /// script for the same marker replaces the first. After the last step, a short text ends the turn.
    pub fn script(&self, marker: &str, steps: Vec<Step>) {
        self.shared.lock().scripts.insert(marker.to_owned(), steps);
    }

    /// A handle that can set scripts.
    #[must_use]
    pub fn scripts(&self) -> Scripts {
        Scripts(Arc::clone(&self.shared))
    }

    /// Every request so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().requests.clone()
    }

    /// The bodies of the requests that the script of `marker` answered.
    #[must_use]
    pub fn requests_for(&self, marker: &str) -> Vec<Value> {
        let mut requests = self.requests();
        requests.retain(|request| request.marker.as_deref() == Some(marker));
        requests.into_iter().map(|request| request.body).collect()
    }

    /// Waits until a request satisfies `wanted`, and returns the first that does. It also checks earlier requests.
    ///
    /// # Errors
    /// If there is none after 30 s.
    pub async fn seen(&self, wanted: impl Fn(&Recorded) -> bool) -> anyhow::Result<Recorded> {
        let mut recorded = self.shared.recorded.subscribe();
        let search = async {
            loop {
                recorded.borrow_and_update();
                if let Some(found) = self.shared.lock().requests.iter().find(|request| wanted(request)) {
                    return Ok(found.clone());
                }
                recorded.changed().await?;
            }
        };
        tokio::time::timeout(SEEN_LIMIT, search).await.unwrap_or_else(|_| {
            let count = self.shared.lock().requests.len();
            Err(anyhow::anyhow!("none of {count} requests was the one waited for, in {SEEN_LIMIT:?}"))
        })
    }
}

/// Sets the scripts of a [`ScriptedModel`].
#[derive(Debug, Clone)]
pub struct Scripts(Arc<Shared>);

impl Scripts {
    /// As [`ScriptedModel::script`].
    pub fn script(&self, marker: &str, steps: Vec<Step>) {
        self.0.lock().scripts.insert(marker.to_owned(), steps);
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The scripts and the record, shared with the server's tasks.
#[derive(Debug, Default)]
struct Shared {
    pages: Mutex<Contents>,
    /// Notifies after each recorded request.
    recorded: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Contents {
    scripts: HashMap<String, Vec<Step>>,
    requests: Vec<Recorded>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request. Returns the step that is due in its conversation, with the prefix of its tool ids.
    fn record(&self, body: &Value, headers: HashMap<String, String>) -> (Step, String) {
        let mut pages = self.lock();
        let due = conversation::due(body, pages.scripts.keys().map(String::as_str));
        let (marker, index) = due.map_or((None, 0), |due| (Some(due.marker.to_owned()), due.step));
        let step = match marker.as_ref().and_then(|marker| pages.scripts.get(marker)) {
            Some(steps) => steps.get(index).cloned().unwrap_or_else(|| Step::text("(the script has ended)")),
            None => Step::text("(no script for this conversation)"),
        };
        let ids = step::id_prefix(marker.as_deref().unwrap_or("none"), index);
        pages.requests.push(Recorded { marker, step: index, body: body.clone(), headers });
        drop(pages);
        self.recorded.send_replace(());
        (step, ids)
    }
}
