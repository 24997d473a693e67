//! Tells places outside the data directory how far the record goes, so that a record that was rewritten as a whole, with
//! hashes that fit, is found out as well. Each is told once a second at most; whoever decides never waits for it.

use std::path::PathBuf;
use std::time::Duration;

use futures::future::join_all;
use plexus_files::AppendLine;
use plexus_protocol::audit::AuditHead;
use serde_json::json;
use tokio::sync::{Mutex, watch};

use crate::clock::now;
use crate::files::Files;

/// Between two heads for one place; a place that fails is left alone for longer and longer.
const BETWEEN: Duration = Duration::from_secs(1);
const LONGEST_BETWEEN: Duration = Duration::from_secs(60);
/// How long a webhook may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Where heads go.
#[derive(Debug, Clone)]
enum Place {
    /// A line at the end of a file.
    File(PathBuf),
    /// A POST.
    Webhook(String),
}

/// The places, and what they have to be told.
pub(crate) struct Heads {
    places: Vec<Kept>,
    latest: watch::Sender<AuditHead>,
}

struct Kept {
    place: Place,
    /// The number of the last head that it has.
    told: Mutex<u64>,
}

impl Heads {
    pub(crate) fn at(file: Option<PathBuf>, webhook: Option<String>) -> Self {
        let places = file.map(Place::File).into_iter().chain(webhook.map(Place::Webhook));
        let places = places.map(|place| Kept { place, told: Mutex::default() }).collect();
        Self { places, latest: watch::Sender::new(AuditHead::start()) }
    }

    /// The record goes this far now.
    pub(crate) fn moved(&self, head: &AuditHead) {
        self.latest.send_replace(head.clone());
    }

    /// Tells each place each head that there is a second for; never ends.
    pub(crate) async fn keep(&self, files: &Files) {
        join_all(self.places.iter().map(|kept| self.keep_one(kept, files))).await;
    }

    /// Tells each place the latest head, unless it has it.
    pub(crate) async fn tell(&self, files: &Files) {
        join_all(self.places.iter().map(|kept| kept.tell(&self.latest, files))).await;
    }

    async fn keep_one(&self, kept: &Kept, files: &Files) {
        let mut news = self.latest.subscribe();
        news.mark_changed();
        let mut pause = BETWEEN;
        while news.changed().await.is_ok() {
            match kept.tell(&self.latest, files).await {
                Told::Yes => pause = BETWEEN,
                Told::No => {
                    // The next time it is told whatever is the latest then.
                    news.mark_changed();
                    pause = (pause * 2).min(LONGEST_BETWEEN);
                }
            }
            tokio::time::sleep(pause).await;
        }
    }
}

/// Whether a place has the latest head.
enum Told {
    Yes,
    No,
}

impl Kept {
    async fn tell(&self, latest: &watch::Sender<AuditHead>, files: &Files) -> Told {
        let mut told = self.told.lock().await;
        let head = latest.borrow().clone();
        if head.number <= *told {
            return Told::Yes;
        }
        let line = json!({"number": head.number, "hash": head.hash, "at": now()}).to_string();
        let done = match self.place.clone() {
            Place::File(path) => append(files, path, line).await,
            Place::Webhook(url) => {
                let posted = tokio::task::spawn_blocking(move || post(&url, &line)).await;
                // The address may be a secret: it is not logged.
                let posted = posted.map_err(|error| error.to_string());
                posted.and_then(|posted| posted.map_err(|error| format!("the webhook: {error}")))
            }
        };
        match done {
            Ok(()) => {
                *told = head.number;
                Told::Yes
            }
            Err(error) => {
                tracing::warn!(%error, "the head of the record could not be told");
                Told::No
            }
        }
    }
}

/// By a helper process: the file may lie where a child can put a link in its place.
async fn append(files: &Files, path: PathBuf, line: String) -> Result<(), String> {
    let at = format!("{}: ", path.display());
    let appended = files.call(AppendLine { path, line }, None, &mut tokio::io::sink()).await;
    appended.map_err(|error| format!("{at}{error}"))?.map_err(|error| format!("{at}{error}"))
}

fn post(url: &str, line: &str) -> Result<(), ureq::Error> {
    let tls = ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::PlatformVerifier).build();
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(ANSWERS_WITHIN))
        // Whoever answers with another address is not who was meant.
        .max_redirects(0)
        .tls_config(tls)
        .build();
    let request = ureq::Agent::new_with_config(config).post(url).content_type("application/json");
    let status = request.send(line)?.status();
    if status.is_success() { Ok(()) } else { Err(ureq::Error::StatusCode(status.as_u16())) }
}
