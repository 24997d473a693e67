//! Signing in at the console: a code that is good once and for half a minute is exchanged for a token of its own. The code
//! travels in a file that only this user, and no agent, can read; its file goes when the code does.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plexus_protocol::console::SignedIn;
use plexus_protocol::token::TokenRight;
use plexus_protocol::{Decider, Error, ErrorKind, TokenName};
use plexus_store::{Change, TokenRow};
use tokio::time::{Instant, sleep_until};

use crate::Hub;
use crate::clock::now;
use crate::hub::store_error;
use crate::secret::{new_token, token_hash};

/// How long a code is good.
pub(crate) const GOOD_FOR: Duration = Duration::from_secs(30);

/// How long whoever signed in stays so.
const SIGNED_IN_SECS: u64 = 24 * 60 * 60;

/// What the files that carry codes are called, before their number.
const PREFIX: &str = "console-";

/// The codes that were given out and not used yet, by their hash.
#[derive(Debug, Default)]
pub(crate) struct Links(Mutex<HashMap<String, Link>>);

#[derive(Debug)]
struct Link {
    until: Instant,
    file: PathBuf,
}

impl Drop for Link {
    fn drop(&mut self) {
        // What is left of one is good for nothing, and goes with the next hub.
        let _ = fs::remove_file(&self.file);
    }
}

/// A code, and the file that leads a browser to it.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) code: String,
    pub(crate) file: PathBuf,
}

impl Links {
    fn take(&self, code: &str) -> bool {
        let link = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&token_hash(code));
        link.is_some_and(|link| Instant::now() < link.until)
    }

    fn keep(&self, code: &str, link: Link) {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.insert(token_hash(code), link);
    }

    fn forget_old(&self) {
        let now = Instant::now();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, link| now < link.until);
    }
}

/// Removes what a hub that was killed left of such files.
pub(crate) fn sweep(data_dir: &Path) {
    let entries = fs::read_dir(data_dir).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(".html")) {
            // Nobody can use it any more.
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Hub {
    /// A fresh code for the page at `url`, and a file that takes a browser there.
    pub(crate) fn give_link(self: &Arc<Self>, url: &str) -> Result<Given, Error> {
        let internal = |error: &dyn std::fmt::Display| Error::new(ErrorKind::Internal, error.to_string());
        let code = new_token().map_err(|error| internal(&error))?;
        let number = new_token().map_err(|error| internal(&error))?;
        let file =
            self.settings().data_dir.join(format!("{PREFIX}{}.html", number.get(..8).unwrap_or_default()));
        write(&file, &page(&format!("{url}/#login={code}"))).map_err(|error| internal(&error))?;
        let until = Instant::now() + GOOD_FOR;
        self.links().keep(&code, Link { until, file: file.clone() });
        let hub = Arc::clone(self);
        self.meanwhile(async move {
            sleep_until(until).await;
            hub.links().forget_old();
        });
        Ok(Given { code, file })
    }

    /// Exchanges a code for a token; `None` for one that was used, has grown old or never was.
    ///
    /// # Errors
    /// When the token cannot be stored; the code is used up all the same.
    pub async fn sign_in(&self, code: &str) -> Result<Option<SignedIn>, Error> {
        if !self.links().take(code) {
            return Ok(None);
        }
        let token = new_token().map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
        let hash = token_hash(&token);
        let name = TokenName::try_from(format!("{PREFIX}{}", hash.get(..8).unwrap_or_default()))
            .map_err(|why| Error::new(ErrorKind::Internal, why.to_string()))?;
        let (created_at, expires_at) = (now(), now().saturating_add(SIGNED_IN_SECS));
        let row = TokenRow {
            name: name.clone(),
            right: TokenRight::Operator,
            created_at,
            expires_at: Some(expires_at),
        };
        let change = Change::MakeToken { token: row, hash, by: Decider::Operator };
        self.commit(vec![change]).await.map_err(store_error)?;
        Ok(Some(SignedIn { name, token, expires_at }))
    }
}

/// A page that leads on by itself, and says nothing to the page it leads to.
fn page(url: &str) -> String {
    format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\"><title>Plexus</title>\n"
    )
}

fn write(path: &Path, content: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_good_once_and_until_its_time_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let links = Links::default();
        let give = |code: &str, until| {
            let file = dir.path().join(code);
            write(&file, "a page").unwrap();
            links.keep(code, Link { until, file });
        };
        give("first", Instant::now() + GOOD_FOR);
        assert!(!links.take("other") && links.take("first") && !links.take("first"));
        assert!(!dir.path().join("first").exists(), "its file goes with it");
        give("second", Instant::now());
        assert!(!links.take("second"));
        give("third", Instant::now());
        give("fourth", Instant::now() + GOOD_FOR);
        links.forget_old();
        assert!(!dir.path().join("third").exists() && dir.path().join("fourth").exists());
    }

    #[test]
    fn what_was_left_is_swept_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["console-1a2b.html", "plexus.db", "console-notes.txt"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        sweep(dir.path());
        let left: Vec<bool> = ["console-1a2b.html", "plexus.db", "console-notes.txt"]
            .map(|name| dir.path().join(name).exists())
            .into();
        assert_eq!(left, [false, true, true]);
    }
}
