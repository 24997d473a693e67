//! `plexus host add`: creates a role of the database for another machine, and prints or writes what that machine needs to join.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use clap::Args;
use plexus_protocol::host::AddResult;
use serde_json::json;

use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg};
use crate::output;
use crate::settings::DataDirArg;

const SETTINGS: &str = "plexus.toml";
const PASSWORD: &str = "store-password";
/// Where the password file is on the other machine, as far as this one can know.
const ELSEWHERE: &str = "/home/USER/.local/share/plexus/store-password";

/// Arguments of `plexus host add`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plexus host add gpu-1 --out gpu-1\n  plexus host add --renew gpu-1")]
pub(super) struct AddArgs {
    /// The name of the host.
    #[arg(value_name = "NAME")]
    host: String,
    /// Create a new password for a host that was added before, and admit it again if it was declared lost. Its hub has to restart.
    #[arg(long)]
    renew: bool,
    /// Write `plexus.toml` and the password to new files in this directory, which only you can read, instead of printing them.
    #[arg(long, value_name = "DIR", conflicts_with = "json")]
    out: Option<PathBuf>,
    #[command(flatten)]
    data_dir: DataDirArg,
    #[command(flatten)]
    json: JsonArg,
}

pub(super) async fn run(args: &AddArgs) -> Result<(), ExpectedError> {
    let AddArgs { host, renew, out, data_dir, json } = args;
    let out = out.as_deref().map(Out::prepare).transpose()?;
    let hub = HubClient::reach(data_dir).await?;
    let added: AddResult = hub.call_with_timeout("host.add", json!({"host": host, "renew": renew})).await?;
    let AddResult::Ok { url, password, local, .. } = &added;
    match &out {
        Some(out) => {
            out.write(&section(url, &out.path(PASSWORD), host), password).map_err(|failed| {
                ExpectedError::System(format!(
                    "{failed}. The role exists, but its password is lost: run `plexus host add --renew {host}`"
                ))
            })?;
            output::say(&format!(
                "plexus: wrote {SETTINGS} and {PASSWORD} to {}. Move both to the data directory of {host}, and set `password_file` in {SETTINGS} to the new path of {PASSWORD}",
                out.dir.display()
            ));
        }
        None if json.json => output::json(&added),
        None => {
            let section = section(url, Path::new(ELSEWHERE), host);
            output::print(&format!(
                "{section}\n# Write this line to the password file, and run chmod 600 on it:\n{password}\n"
            ));
        }
    }
    if *local {
        output::say(
            "plexus: the address in `url` is valid on this machine only; replace it with one that the other machine can reach",
        );
    }
    Ok(())
}

/// The section of `plexus.toml`.
fn section(url: &str, password_file: &Path, host: &str) -> String {
    // A string of JSON is also one of TOML.
    let quoted = |text: &str| json!(text).to_string();
    let password_file = quoted(&password_file.to_string_lossy());
    format!("[store]\nurl = {}\npassword_file = {password_file}\nhost = {}\n", quoted(url), quoted(host))
}

/// The directory for the files.
struct Out {
    dir: PathBuf,
}

impl Out {
    /// Creates the directory. Existing files are not replaced, and must be found before the password is created.
    fn prepare(dir: &Path) -> Result<Self, ExpectedError> {
        let failed = |error: io::Error| ExpectedError::System(unwritable(dir, &error));
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        let dir = dir.canonicalize().map_err(failed)?;
        for name in [SETTINGS, PASSWORD] {
            if dir.join(name).symlink_metadata().is_ok() {
                return Err(ExpectedError::Usage(format!(
                    "{} already exists: move it away, or pass another directory to --out",
                    dir.join(name).display()
                )));
            }
        }
        Ok(Self { dir })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes both files. The error says which one failed, and why.
    fn write(&self, section: &str, password: &str) -> Result<(), String> {
        for (name, text) in [(SETTINGS, section), (PASSWORD, &format!("{password}\n"))] {
            let path = self.path(name);
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            file.and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(|error| unwritable(&path, &error))?;
        }
        Ok(())
    }
}

fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}
