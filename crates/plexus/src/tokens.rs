//! `plexus tokens`: lists, creates and revokes the tokens by which other people and programs use the hub.

use clap::{Args, Subcommand, ValueEnum};
use plexus_protocol::token::{ListResult, NewResult, RevokeResult, Token, TokenRight};
use serde_json::json;

use crate::durations::{left, seconds};
use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::output;
use crate::removal::{Removal, RemovalArgs, Target};
use crate::settings::DataDirArg;
use crate::suggest::closest;
use crate::table::{Align, Table};
use crate::terminal::{age, now, one_line};

/// Arguments of `plexus tokens`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  plexus tokens\n  plexus tokens new phone --right decide --for 30d\n  plexus tokens rm phone"
)]
pub(crate) struct TokensArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<TokensVerb>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

/// Subcommands of `plexus tokens`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokensVerb {
    /// Create a token and print it. It is shown only once.
    New(NewArgs),
    /// Revoke tokens. Their open connections are closed.
    Rm(RmArgs),
}

/// Arguments of `plexus tokens` without a subcommand.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Arguments of `plexus tokens new`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus tokens new phone --right decide --for 30d")]
pub(crate) struct NewArgs {
    /// The name of the token.
    #[arg(value_name = "NAME")]
    pub(crate) token: String,
    /// What its holder may do.
    #[arg(long, value_enum, default_value = "read")]
    pub(crate) right: RightArg,
    /// How long it is valid, such as 15m, 12h or 30d [default: until revoked].
    #[arg(long = "for", value_name = "DURATION", value_parser = seconds)]
    pub(crate) seconds: Option<u64>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// The right of a new token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RightArg {
    /// Reads sessions, events, approvals and metrics.
    Read,
    /// Reads and answers approvals.
    Decide,
    /// Everything that you may do.
    Operator,
}

impl From<RightArg> for TokenRight {
    fn from(right: RightArg) -> Self {
        match right {
            RightArg::Read => Self::Read,
            RightArg::Decide => Self::Decide,
            RightArg::Operator => Self::Operator,
        }
    }
}

/// Arguments of `plexus tokens rm`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus tokens rm phone")]
pub(crate) struct RmArgs {
    /// The names of the tokens, from `plexus tokens`.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) tokens: Vec<String>,
    #[command(flatten)]
    pub(crate) flags: RemovalArgs,
}

/// Lists, creates or revokes tokens.
pub(crate) fn run(args: &TokensArgs) -> Result<(), ExpectedError> {
    match &args.verb {
        None => block_on(list(&args.list)),
        Some(TokensVerb::New(args)) => block_on(create(args)),
        Some(TokensVerb::Rm(args)) => block_on(revoke(args)),
    }
}

async fn list(args: &ListArgs) -> Result<(), ExpectedError> {
    let hub = HubClient::reach(&args.data_dir).await?;
    let tokens = tokens(&hub).await?;
    if args.json.json {
        output::json(&tokens);
    } else if tokens.is_empty() {
        output::say("plexus: no tokens; `plexus tokens new NAME` creates one");
    } else {
        output::print(&table(&tokens));
    }
    Ok(())
}

async fn tokens(hub: &HubClient) -> Result<Vec<Token>, ExpectedError> {
    let ListResult::Ok { tokens } = hub.call_with_timeout("token.list", json!({})).await?;
    Ok(tokens)
}

fn table(tokens: &[Token]) -> String {
    let mut table = Table::new(&[
        ("NAME", Align::Left),
        ("RIGHT", Align::Left),
        ("CREATED", Align::Left),
        ("EXPIRES", Align::Left),
    ]);
    for token in tokens {
        let right = match token.right {
            TokenRight::Read => "read",
            TokenRight::Decide => "decide",
            TokenRight::Operator => "operator",
        };
        table.row([
            one_line(&token.name.to_string(), 60),
            right.to_owned(),
            format!("{} ago", age(now().saturating_sub(token.created_at))),
            left(token.expires_at),
        ]);
    }
    table.to_string()
}

async fn create(args: &NewArgs) -> Result<(), ExpectedError> {
    let hub = HubClient::reach(&args.data_dir).await?;
    let mut new = json!({"name": args.token, "right": TokenRight::from(args.right)});
    if let Some(seconds) = args.seconds {
        new["expires_secs"] = seconds.into();
    }
    let created: NewResult = hub.call_with_timeout("token.new", new).await?;
    if args.json.json {
        output::json(&created);
        return Ok(());
    }
    let NewResult::Created { name, token, expires_at } = created;
    // Only the token is on stdout, so that it can be piped.
    output::say(&format!("plexus: the token `{name}` expires {}; it is shown only once:", left(expires_at)));
    output::print(&token);
    Ok(())
}

async fn revoke(args: &RmArgs) -> Result<(), ExpectedError> {
    let hub = HubClient::reach(&args.flags.data_dir).await?;
    let known: Vec<String> = tokens(&hub).await?.iter().map(|token| token.name.to_string()).collect();
    if let Some(unknown) = args.tokens.iter().find(|name| !known.contains(name)) {
        let hint = match closest(unknown, known.iter().map(String::as_str)) {
            Some(name) => format!("did you mean `{name}`?"),
            None => "`plexus tokens` lists the tokens".to_owned(),
        };
        return Err(ExpectedError::Refused(format!("no token `{}`; {hint}", one_line(unknown, 60))));
    }
    let which = if args.tokens.len() == 1 { "it" } else { "them" };
    let target = |name: &String| Target { name: name.clone(), params: json!({"name": name}) };
    let removal = Removal {
        question: format!("Revoke {}? Connections that use {which} are closed.", args.tokens.join(", ")),
        method: "token.revoke",
        targets: args.tokens.iter().map(target).collect(),
    };
    args.flags.remove(&hub, removal, |name, _: &RevokeResult| format!("revoked {name}")).await
}
