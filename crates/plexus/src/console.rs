//! `plexus console`: opens the web console, signed in. The link reaches the browser in a file that only this user can read, because other
//! users can see command lines.

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
    after_help = "The link signs in the first browser that opens it, once, within 30 seconds. The tab stays signed in for a day; `plexus tokens` \
    shows its token, and `plexus tokens rm` signs it out.\n\nExamples:\n  plexus console\n  plexus console --print           for a browser on another machine, through a tunnel\n  \
    plexus console --url https://hub.example:8443   for a phone (docs/console.md)"
)]
pub(crate) struct ConsoleArgs {
    /// Print the link instead of opening a browser.
    #[arg(long)]
    pub(crate) print: bool,
    /// The address of the hub for the browser, if it differs from where the hub listens; implies --print.
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
                        "plexus: opening the console in your browser; `plexus console --print` prints a link instead",
                    );
                    return Ok(());
                }
                Err(error) => {
                    output::say(&format!("plexus: cannot open a browser ({error}); open this link yourself:"))
                }
            }
        }
        output::print(&link);
        output::say(&format!("plexus: the link works once, within {expires_in_secs} seconds"));
        Ok(())
    })
}

/// Opens a file with the desktop's default program.
pub(crate) fn open(file: &str) -> io::Result<()> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(opener);
    let status = command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(io::Error::other(format!("{opener}: {status}"))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(io::Error::other(format!("{opener} is not installed")))
        }
        Err(error) => Err(error),
    }
}
