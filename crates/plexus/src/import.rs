//! `plexus import`: lists the rules, MCP servers, agents and skills of the user's own Claude Code configuration, and imports the
//! chosen ones. The hub reads the files; this verb shows them, and names the content that was shown by its digest.

use std::io::IsTerminal as _;

use clap::{Args, ValueEnum};
use plexus_protocol::claudecode::{ImportItem, ImportKind, ImportResult, ImportState, ImportsResult};
use serde_json::json;

use crate::confirm_loss::YesArg;
use crate::error::ExpectedError;
use crate::escape::exact;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::output;
use crate::plural::counted;
use crate::review::confirm::{Confirmed, is_interactive, line, prompt, yes_or_no};
use crate::review::{Row, Tone};
use crate::settings::DataDirArg;
use crate::suggest::closest;
use crate::table::{Align, Table};
use crate::terminal::{one_line, size};
use crate::typed::Typed;

/// Arguments of `plexus import`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without entries, it lists them and, at a terminal, asks which ones to import. Each entry is shown in full before you confirm.\n\
    Imported rules apply to every session at once. Imported servers and agents are copied, and the sessions that you create from then on load \
    them (`plexus run --no-imported` does not). A later change of your configuration has no effect until you import it again.\n\n\
    Examples:\n  plexus import\n  plexus import rules 'Bash(npm test:*)'\n  plexus import servers --all\n  plexus import --remove agents reviewer"
)]
pub(crate) struct ImportArgs {
    /// What to list or import [default: everything].
    #[arg(value_enum)]
    pub(crate) kind: Option<KindArg>,
    /// The names of the entries; for rules, their text.
    #[arg(value_name = "ENTRY")]
    pub(crate) entries: Vec<String>,
    /// Import all entries that can be imported.
    #[arg(long, conflicts_with_all = ["entries", "remove"])]
    pub(crate) all: bool,
    /// Remove imported entries. Sessions that have them keep them.
    #[arg(long, requires = "entries")]
    pub(crate) remove: bool,
    #[command(flatten)]
    pub(crate) yes: YesArg,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// What to import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindArg {
    /// Allow and ask rules of `settings.json`.
    Rules,
    /// MCP servers of `.claude.json`.
    Servers,
    /// Agents of `agents/`.
    Agents,
    /// Skills of `skills/`.
    Skills,
}

impl KindArg {
    fn kind(self) -> ImportKind {
        match self {
            Self::Rules => ImportKind::Rule,
            Self::Servers => ImportKind::Server,
            Self::Agents => ImportKind::Agent,
            Self::Skills => ImportKind::Skill,
        }
    }
}

/// Lists, imports or removes entries.
pub(crate) fn run(args: &ImportArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        if args.remove {
            return remove(args, &hub).await;
        }
        let ImportsResult::Ok { dir, mut items } =
            hub.call_with_timeout("claudecode.imports", json!({})).await?;
        items.retain(|item| args.kind.is_none_or(|kind| kind.kind() == item.kind));
        let chosen = if args.all {
            items.iter().filter(|item| is_open(item)).collect()
        } else if let (Some(_), false) = (args.kind, args.entries.is_empty()) {
            named(&items, &args.entries)?
        } else {
            match list(args, &dir, &items).await {
                Some(chosen) => chosen,
                None => return Ok(()),
            }
        };
        if chosen.is_empty() {
            output::say("plexus: nothing to import");
            return Ok(());
        }
        confirm(args.yes, &chosen).await?;
        let take = chosen
            .iter()
            .map(|item| json!({"kind": item.kind, "name": item.name, "digest": item.digest}))
            .collect::<Vec<_>>();
        let imported: ImportResult =
            hub.call_with_timeout("claudecode.import", json!({"take": take})).await?;
        report(args, &imported);
        Ok(())
    })
}

/// Whether an entry can be imported and is not.
fn is_open(item: &ImportItem) -> bool {
    matches!(item.state, ImportState::New | ImportState::Changed)
}

/// The entries with these names that are not imported yet.
fn named<'a>(items: &'a [ImportItem], names: &[String]) -> Result<Vec<&'a ImportItem>, ExpectedError> {
    let mut chosen = Vec::new();
    for name in names {
        let of_name: Vec<&ImportItem> = items.iter().filter(|item| item.name == *name).collect();
        if of_name.is_empty() {
            let hint = match closest(name, items.iter().map(|item| item.name.as_str())) {
                Some(meant) => format!("did you mean `{}`?", one_line(meant, 200)),
                None => "`plexus import` lists the entries".to_owned(),
            };
            return Err(ExpectedError::Refused(format!("no entry `{}`; {hint}", one_line(name, 200))));
        }
        let open: Vec<&ImportItem> = of_name.iter().copied().filter(|item| is_open(item)).collect();
        if let (true, Some(item)) = (open.is_empty(), of_name.first()) {
            let name = one_line(name, 200);
            match (item.state, &item.reason) {
                (ImportState::Imported, _) => {
                    output::say(&format!("plexus: `{name}` is already imported"));
                }
                (_, reason) => {
                    let reason = one_line(reason.as_deref().unwrap_or("nothing is left to import"), 400);
                    return Err(ExpectedError::Refused(format!("cannot import `{name}`: {reason}")));
                }
            }
        }
        chosen.extend(open);
    }
    Ok(chosen)
}

/// Prints the entries. At a terminal, asks which ones to import; `None` if nobody was asked.
async fn list<'a>(args: &ImportArgs, dir: &str, items: &'a [ImportItem]) -> Option<Vec<&'a ImportItem>> {
    if args.json.json {
        output::json(&items);
        return None;
    }
    if items.is_empty() {
        output::say(&format!("plexus: nothing to import in {}", one_line(dir, 400)));
        return None;
    }
    let width = if std::io::stdout().is_terminal() { size().0 } else { usize::MAX };
    output::print(&table(items, width));
    let open: Vec<&ImportItem> = items.iter().filter(|item| is_open(item)).collect();
    if open.is_empty() {
        return None;
    }
    if !is_interactive() {
        output::say(
            "plexus: import entries with `plexus import rules|servers|agents ENTRY…` or --all; remove one with `plexus import --remove`",
        );
        return None;
    }
    let mut typed = Typed::new();
    typed.discard();
    loop {
        prompt("Import which? Numbers such as 1 3-5, a for all, Enter for none: ");
        match selection(&line(&mut typed).await.unwrap_or_default(), open.len()) {
            Ok(numbers) => return Some(numbers.into_iter().filter_map(|at| open.get(at).copied()).collect()),
            Err(why) => output::say(&format!("plexus: {why}")),
        }
    }
}

/// The positions that a typed selection names, from 0.
fn selection(typed: &str, count: usize) -> Result<Vec<usize>, String> {
    if typed == "a" {
        return Ok((0..count).collect());
    }
    let mut chosen = Vec::new();
    for part in typed.split([' ', ',']).filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        match (from.parse::<usize>(), to.parse::<usize>()) {
            (Ok(from), Ok(to)) if 1 <= from && from <= to && to <= count => chosen.extend(from - 1..to),
            _ => return Err(format!("`{}` is not a number from 1 to {count}", one_line(part, 40))),
        }
    }
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

/// The longest description of an entry in the list.
const MAX_SHOWN: usize = 120;

/// The entries, with a number for each that can be chosen.
fn table(items: &[ImportItem], width: usize) -> String {
    let mut table = Table::new(&[
        ("#", Align::Right),
        ("KIND", Align::Left),
        ("NAME", Align::Left),
        ("STATE", Align::Left),
        ("WHAT IT DOES", Align::Left),
    ]);
    let mut number = 0;
    for item in items {
        number += usize::from(is_open(item));
        let does = match (&item.reason, item.does.as_str()) {
            (Some(reason), "") => reason.clone(),
            (Some(reason), does) => format!("{does}: {reason}"),
            (None, does) => does.to_owned(),
        };
        // Advice is shown in full; what an entry does is shown in full before it is imported.
        let most = if item.reason.is_some() { usize::MAX } else { MAX_SHOWN };
        table.row([
            if is_open(item) { number.to_string() } else { String::new() },
            item.kind.as_str().to_owned(),
            one_line(&exact(&item.name), 60),
            state(item.state).to_owned(),
            one_line(&exact(&does), most),
        ]);
    }
    table.wrapped(width)
}

fn state(state: ImportState) -> &'static str {
    match state {
        ImportState::New => "new",
        ImportState::Imported => "imported",
        ImportState::Changed => "changed",
        ImportState::Gone => "gone",
        ImportState::Refused => "not possible",
    }
}

/// Shows the entries in full and asks.
async fn confirm(yes: YesArg, chosen: &[&ImportItem]) -> Result<(), ExpectedError> {
    if yes.yes {
        return Ok(());
    }
    if !is_interactive() {
        let message =
            format!("{} would be imported. Pass --yes to import without a terminal", entries(chosen.len()));
        return Err(ExpectedError::Usage(message));
    }
    let rows: Vec<Row> = chosen.iter().flat_map(|item| rows(item)).collect();
    let question = format!("Import {}? y imports, n cancels: ", entries(chosen.len()));
    match yes_or_no(&mut Typed::new(), &rows, &question).await {
        Confirmed::Yes => Ok(()),
        Confirmed::No => Err(ExpectedError::Interrupted("nothing was imported".to_owned())),
    }
}

/// One entry in full.
fn rows(item: &ImportItem) -> Vec<Row> {
    let effect = match item.kind {
        ImportKind::Rule => format!("{} in every session", item.does),
        ImportKind::Server => {
            "a server that agents start or connect to without approval; its tools need approval".to_owned()
        }
        ImportKind::Agent | ImportKind::Skill => String::new(),
    };
    let title = format!("{} {}", item.kind.as_str(), state(item.state));
    let mut rows = vec![Row::new(Tone::Strong, &title), Row::exact(Tone::Plain, "  ", &item.name)];
    if !effect.is_empty() {
        rows.push(Row::led(Tone::Dim, "  ", &effect));
    }
    if item.kind != ImportKind::Rule {
        rows.extend(item.does.lines().map(|line| Row::exact(Tone::Command, "  | ", line)));
    }
    rows.extend(
        item.text.iter().flat_map(|text| text.lines()).map(|line| Row::exact(Tone::Plain, "  > ", line)),
    );
    for (lead, names) in [("  with: ", &item.with), ("  not imported: ", &item.left_out)] {
        if !names.is_empty() {
            rows.push(Row::exact(Tone::Dim, lead, &names.join(", ")));
        }
    }
    rows
}

fn entries(count: usize) -> String {
    counted(count, "entry", "entries")
}

/// Removes imported entries.
async fn remove(args: &ImportArgs, hub: &HubClient) -> Result<(), ExpectedError> {
    let Some(kind) = args.kind.map(KindArg::kind) else {
        return Err(ExpectedError::Usage("--remove needs a kind and an entry".to_owned()));
    };
    let names: Vec<String> = args.entries.iter().map(|name| one_line(&exact(name), 200)).collect();
    args.yes.confirm(&format!("Remove the imported {} {}?", kind.as_str(), names.join(", "))).await?;
    let remove: Vec<_> = args.entries.iter().map(|name| json!({"kind": kind, "name": name})).collect();
    let removed: ImportResult = hub.call_with_timeout("claudecode.import", json!({"remove": remove})).await?;
    report(args, &removed);
    Ok(())
}

fn report(args: &ImportArgs, result: &ImportResult) {
    if args.json.json {
        return output::json(result);
    }
    let ImportResult::Ok { taken, removed } = result;
    for (act, entries) in [("imported", taken), ("removed", removed)] {
        for entry in entries {
            output::print(&format!("{act} {} {}", entry.kind.as_str(), one_line(&exact(&entry.name), 200)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_names_entries_by_number() {
        assert_eq!(selection("", 3), Ok(vec![]));
        assert_eq!(selection("a", 3), Ok(vec![0, 1, 2]));
        assert_eq!(selection("3, 1-2 2", 3), Ok(vec![0, 1, 2]));
        for invalid in ["0", "4", "2-1", "x", "1-", "-1"] {
            assert!(selection(invalid, 3).is_err(), "{invalid}");
        }
    }

    #[test]
    fn an_entry_is_shown_in_full_and_escaped() {
        let item = ImportItem {
            kind: ImportKind::Server,
            name: "db".to_owned(),
            state: ImportState::New,
            does: format!("sh -c '{}\u{1b}[2J'", "x".repeat(300)),
            file: ".claude.json".to_owned(),
            digest: None,
            text: None,
            with: vec!["env KEY".to_owned()],
            left_out: Vec::new(),
            reason: None,
        };
        let shown: String = rows(&item).iter().map(|row| format!("{}{}\n", row.lead, row.text)).collect();
        assert!(shown.contains(&"x".repeat(300)) && shown.contains("with: env KEY"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}
