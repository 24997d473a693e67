//! The scripted Messages API: it stands in for Anthropic's API, so that the real Claude Code CLIs can be run without
//! an account or a network. It owns the scripts, which answer each conversation by the marker in its prompt, and the
//! record of every request; what is asserted about them is left to the tests.

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

/// How long [`ScriptedModel::seen`] waits before it gives up.
const SEEN_LIMIT: Duration = Duration::from_secs(30);

/// A Messages API on a free port of 127.0.0.1; it ends when it is dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    book: Arc<Book>,
    server: JoinHandle<()>,
}

/// One request to `/v1/messages`, as it came.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The marker of the script that answered it; `None` where no script was meant.
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
    /// When no port can be bound.
    pub async fn start() -> anyhow::Result<Self> {
        let book = Arc::new(Book::default());
        let (address, server) = server::start(Arc::clone(&book)).await?;
        Ok(Self { address, book, server })
    }

    /// What `ANTHROPIC_BASE_URL` has to be.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What to answer after a prompt that contains `marker`: one step per model call. Where several markers match,
    /// the longest is meant; a second script for the same marker replaces the first. Once the steps are used up, a
    /// short text ends the turn.
    pub fn script(&self, marker: &str, steps: Vec<Step>) {
        self.book.lock().scripts.insert(marker.to_owned(), steps);
    }

    /// To write scripts with from elsewhere.
    #[must_use]
    pub fn scripts(&self) -> Scripts {
        Scripts(Arc::clone(&self.book))
    }

    /// Every request so far, in the order in which they came.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.book.lock().requests.clone()
    }

    /// The bodies of the requests that the script of `marker` answered.
    #[must_use]
    pub fn requests_for(&self, marker: &str) -> Vec<Value> {
        let mut requests = self.requests();
        requests.retain(|request| request.marker.as_deref() == Some(marker));
        requests.into_iter().map(|request| request.body).collect()
    }

    /// Waits until a request satisfies `wanted`, be it an earlier one, and returns the first that does.
    ///
    /// # Errors
    /// When none has come after 30 s.
    pub async fn seen(&self, wanted: impl Fn(&Recorded) -> bool) -> anyhow::Result<Recorded> {
        let mut recorded = self.book.recorded.subscribe();
        let search = async {
            loop {
                recorded.borrow_and_update();
                if let Some(found) = self.book.lock().requests.iter().find(|request| wanted(request)) {
                    return Ok(found.clone());
                }
                recorded.changed().await?;
            }
        };
        tokio::time::timeout(SEEN_LIMIT, search).await.unwrap_or_else(|_| {
            let count = self.book.lock().requests.len();
            Err(anyhow::anyhow!("none of {count} requests was the one waited for, in {SEEN_LIMIT:?}"))
        })
    }
}

/// Writes the scripts of a [`ScriptedModel`].
#[derive(Debug, Clone)]
pub struct Scripts(Arc<Book>);

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
struct Book {
    pages: Mutex<Pages>,
    /// Changes whenever a request was recorded.
    recorded: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Pages {
    scripts: HashMap<String, Vec<Step>>,
    requests: Vec<Recorded>,
}

impl Book {
    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request and returns the step that is due in its conversation, with the prefix of its tool ids.
    fn take_down(&self, body: &Value, headers: HashMap<String, String>) -> (Step, String) {
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
