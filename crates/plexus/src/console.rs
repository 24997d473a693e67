//! `plexus console`: opens the web console, signed in. The link goes to the browser in a file that only this user can read: what
//! stands on a command line, others can see.

use std::io::{self, ErrorKind};
use std::process::{Command, Stdio};

use clap::Args;
use plexus_protocol::console::LinkResult;
use serde_json::json;

use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::output;
use crate::settings::DataDirArg;

/// Arguments of `plexus console`.
#[derive(Debug, Args)]
#[command(
    after_help = "The link signs in whoever opens it first, once, within 30 seconds. The tab stays signed in for a day; `plexus token list` \
    shows it, and `plexus token revoke` signs it out.\n\nExamples:\n  plexus console\n  plexus console --print           for a browser elsewhere, through a tunnel\n  \
    plexus console --url https://hub.example:8443   for a phone (docs/console.md)"
)]
pub(crate) struct ConsoleArgs {
    /// Print the link instead of opening a browser.
    #[arg(long)]
    pub(crate) print: bool,
    /// Where the browser reaches the hub, if not where it listens; implies --print.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Opens the console.
pub(crate) fn run(args: &ConsoleArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        let mut asked = json!({});
        if let Some(url) = &args.url {
            asked["url"] = json!(url);
        }
        let LinkResult::Ok { link, file, expires_in_secs } = hub.call("console.link", asked).await?;
        if let Some(why) = plexus_console::missing() {
            output::say(&format!("plexus: this program was built without the console: {why}"));
        }
        if args.json.json {
            output::json(&json!({"link": link, "file": file, "expires_in_secs": expires_in_secs}));
            return Ok(());
        }
        if !args.print && args.url.is_none() {
            match open(&file) {
                Ok(()) => {
                    output::say(
                        "plexus: the console opens in your browser; `plexus console --print` gives a link instead",
                    );
                    return Ok(());
                }
                Err(error) => {
                    output::say(&format!("plexus: no browser could be opened ({error}); open this yourself:"))
                }
            }
        }
        output::print(&link);
        output::say(&format!("plexus: good once, for {expires_in_secs} seconds"));
        Ok(())
    })
}

/// Has the desktop open a file, as it opens files, and looks whether that went well.
fn open(file: &str) -> io::Result<()> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(opener);
    let status = command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(io::Error::other(format!("{opener}: {status}"))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(io::Error::other(format!("there is no {opener}")))
        }
        Err(error) => Err(error),
    }
}
