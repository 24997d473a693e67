//! Tells places outside the data directory how far the record goes, so that a record that was rewritten as a whole, with
//! hashes that fit, is found out as well. Each is told once a second at most; whoever decides never waits for it.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use plexus_protocol::audit::AuditHead;
use serde_json::json;
use tokio::sync::{Mutex, watch};

use crate::clock::now;

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
    pub(crate) async fn keep(&self) {
        join_all(self.places.iter().map(|kept| self.keep_one(kept))).await;
    }

    /// Tells each place the latest head, unless it has it.
    pub(crate) async fn tell(&self) {
        join_all(self.places.iter().map(|kept| kept.tell(&self.latest))).await;
    }

    async fn keep_one(&self, kept: &Kept) {
        let mut news = self.latest.subscribe();
        news.mark_changed();
        let mut pause = BETWEEN;
        while news.changed().await.is_ok() {
            match kept.tell(&self.latest).await {
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
    async fn tell(&self, latest: &watch::Sender<AuditHead>) -> Told {
        let mut told = self.told.lock().await;
        let head = latest.borrow().clone();
        if head.number <= *told {
            return Told::Yes;
        }
        let line = json!({"number": head.number, "hash": head.hash, "at": now()}).to_string();
        let place = self.place.clone();
        let done = tokio::task::spawn_blocking(move || match place {
            Place::File(path) => append(&path, &line).map_err(|error| format!("{}: {error}", path.display())),
            // The address may be a secret: it is not logged.
            Place::Webhook(url) => post(&url, &line).map_err(|error| format!("the webhook: {error}")),
        });
        match done.await.unwrap_or_else(|error| Err(error.to_string())) {
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

fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    // A line that broke off, on a full disk for instance, must not spoil this one.
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let begin = if last == [b'\n'] { "" } else { "\n" };
    file.write_all(format!("{begin}{line}\n").as_bytes())?;
    file.sync_data()
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
