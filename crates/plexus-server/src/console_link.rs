//! `console.link`: creates a link to the console that signs in the first person who opens it. The link is in a page on
//! disk that only this user, and no agent, can read. The page is deleted with its code.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plexus_core::{Activation, Admitted, Audience, CODE_VALID_FOR, Hub, Method, Needs};
use plexus_protocol::console::{LinkParams, LinkResult};
use plexus_protocol::{Error, ErrorKind};

/// The prefix of the file names of sign-in pages.
const PREFIX: &str = "console-";

/// The namespace `console`.
pub(crate) struct ConsoleLink;

impl Activation<Hub> for ConsoleLink {
    fn methods(&self) -> Vec<Method> {
        vec![Method::new(
            "console.link",
            "Creates a link that signs in to the web console. It works once, within 30 seconds.",
            Audience::Programs,
            Needs::Rule,
            link,
        )]
    }
}

async fn link(hub: Arc<Hub>, _: Admitted, params: LinkParams) -> Result<LinkResult, Error> {
    let url = params.url.unwrap_or_else(|| hub.address().url.clone());
    let url = url.trim_end_matches('/');
    let plain = |c: char| c.is_ascii_alphanumeric() || ":/.-_[]".contains(c);
    if !(url.starts_with("http://") || url.starts_with("https://")) || !url.chars().all(plain) {
        return Err(Error::invalid("url", "must be a URL such as https://hub.example:8443"));
    }
    let mut path = PathBuf::new();
    let link = |code: &str| format!("{url}/#login={code}");
    let code = hub.issue_sign_in_code(|code| {
        let page = SignInPage::create(&hub.settings().data_dir, &link(code))
            .map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
        path.clone_from(&page.path);
        Ok(page)
    })?;
    Ok(LinkResult::Ok {
        link: link(&code),
        file: path.display().to_string(),
        expires_in_secs: CODE_VALID_FOR.as_secs(),
    })
}

/// A page on disk that leads a browser to the console.
struct SignInPage {
    path: PathBuf,
}

impl SignInPage {
    fn create(data_dir: &Path, link: &str) -> io::Result<Self> {
        let number = plexus_core::new_token().map_err(io::Error::other)?;
        let path = data_dir.join(format!("{PREFIX}{}.html", number.get(..8).unwrap_or_default()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        // Without a referrer, the console does not learn the path of this page.
        writeln!(
            file,
            "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
             <meta http-equiv=\"refresh\" content=\"0; url={link}\"><title>Plexus</title>"
        )?;
        Ok(Self { path })
    }
}

impl Drop for SignInPage {
    fn drop(&mut self) {
        // A remaining page is useless without its code, and the next hub deletes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Deletes the pages that a killed hub left.
pub(crate) fn remove_old_pages(data_dir: &Path) {
    let entries = fs::read_dir(data_dir).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(".html")) {
            // A remaining page is useless: its code expired with the hub.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_private_and_removed_when_it_is_dropped() {
        use std::os::unix::fs::PermissionsExt as _;

        let dir = tempfile::tempdir().unwrap();
        let page = SignInPage::create(dir.path(), "http://127.0.0.1:1/#login=code").unwrap();
        let path = page.path.clone();
        assert!(fs::read_to_string(&path).unwrap().contains("url=http://127.0.0.1:1/#login=code"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(page);
        assert!(!path.exists());
    }

    #[test]
    fn old_pages_are_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["console-1a2b.html", "plexus.db", "console-notes.txt"];
        names.iter().for_each(|name| fs::write(dir.path().join(name), "").unwrap());
        remove_old_pages(dir.path());
        assert_eq!(names.map(|name| dir.path().join(name).exists()), [false, true, true]);
    }
}
