//! `plexus transcript`: prints the whole conversation of a session.

use std::io::IsTerminal as _;

use clap::{Args, ValueEnum};
use plexus_protocol::claudecode::TranscriptResult;
use serde_json::json;

use crate::error::{ExpectedError, system};
use crate::hub::{HubClient, block_on};
use crate::settings::DataDirArg;
use crate::{escape, output};

/// The format of the output.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// Markdown, with the decisions in line.
    Markdown,
    /// One node of the conversation as JSON per line, with its decisions.
    Jsonl,
    /// A page for a browser, with the decisions in line.
    Html,
}

/// Arguments of `plexus transcript`.
#[derive(Debug, Args)]
#[command(after_help = "Markdown and HTML contain control and bidirectional characters as escapes such as \
        \\u{1b}.\n\nExamples:\n  plexus transcript fixer\n  plexus transcript fixer --format html > \
        fixer.html")]
pub(crate) struct TranscriptArgs {
    /// The session, by name, path or id.
    pub(crate) name: String,
    /// The format of the output.
    #[arg(long, value_enum, default_value = "markdown")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
}

/// Prints the conversation in parts.
pub(crate) fn run(args: &TranscriptArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        let session = hub.session(&args.name).await?;
        let format = args.format.to_possible_value().map(|value| value.get_name().to_owned());
        let mut from = Some(0);
        while let Some(place) = from {
            let params = json!({"session_id": session.id, "format": format, "from": place});
            let TranscriptResult::Ok { text, next } = hub.call("claudecode.transcript", params).await?;
            // The file may be printed to a terminal later. JSON escapes control characters itself.
            let shown = match args.format {
                Format::Jsonl if !std::io::stdout().is_terminal() => text.as_str().into(),
                Format::Markdown | Format::Jsonl | Format::Html => escape::safe(&text),
            };
            output::write(&shown).map_err(system)?;
            from = next;
        }
        Ok(())
    })
}
