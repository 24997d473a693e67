//! Marks git settings that may make git run or contact something else, for one command (`git -c`) or for later ones (`git config`).
//! The table lists the harmless settings: git has many that run a program, and new versions add more.

use plexus_protocol::RiskKind;

use super::command_rules::{program_name, shown};
use super::command_table::VALUE_OPTIONS;
use super::file_table::HARMLESS_PROGRAMS;
use super::{Marks, quoted};
use crate::bash::Word;
use crate::wildcard::name_matches;

/// Settings that neither run a program nor change what git contacts, overwrites or deletes. Names are in lower case.
const HARMLESS_KEYS: &[&str] = &[
    "advice.*",
    "apply.*",
    "author.*",
    "blame.*",
    "branch.*.description",
    "branch.*.merge",
    "branch.*.rebase",
    "branch.autosetupmerge",
    "branch.autosetuprebase",
    "branch.sort",
    "checkout.*",
    "clone.defaultremotename",
    "color.*",
    "column.*",
    "commit.cleanup",
    "commit.gpgsign",
    "commit.status",
    "commit.verbose",
    "committer.*",
    "core.abbrev",
    "core.autocrlf",
    "core.bigfilethreshold",
    "core.commentchar",
    "core.compression",
    "core.eol",
    "core.excludesfile",
    "core.filemode",
    "core.fscache",
    "core.ignorecase",
    "core.longpaths",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.quotepath",
    "core.safecrlf",
    "core.symlinks",
    "core.untrackedcache",
    "core.whitespace",
    "diff.algorithm",
    "diff.colormoved*",
    "diff.context",
    "diff.ignoresubmodules",
    "diff.indentheuristic",
    "diff.interhunkcontext",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "diff.submodule",
    "diff.suppressblankempty",
    "diff.wserrorhighlight",
    "feature.*",
    "fetch.*",
    "format.pretty",
    "gc.auto",
    "grep.*",
    "http.lowspeed*",
    "http.postbuffer",
    "http.version",
    "i18n.*",
    "index.*",
    "init.defaultbranch",
    "lfs.fetch*",
    "log.*",
    "merge.autostash",
    "merge.conflictstyle",
    "merge.directoryrenames",
    "merge.ff",
    "merge.log",
    "merge.renamelimit",
    "merge.renames",
    "merge.stat",
    "merge.verbosity",
    "notes.displayref",
    "pack.*",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "push.followtags",
    "rebase.autosquash",
    "rebase.autostash",
    "rebase.stat",
    "rerere.*",
    "stash.*",
    "status.*",
    "submodule.fetchjobs",
    "submodule.recurse",
    "tag.gpgsign",
    "tag.sort",
    "user.*",
    "versionsort.*",
];

/// Settings that name a program. Common pagers and editors are harmless.
const PROGRAM_KEYS: &[&str] = &["core.editor", "core.pager", "pager.*", "sequence.editor"];

/// Options of `git config` that only read.
const READS: &[&str] = &[
    "-l",
    "--list",
    "--get",
    "--get-all",
    "--get-regexp",
    "--get-urlmatch",
    "--get-color",
    "--get-colorbool",
];

/// Adds the marks of the settings of a git command.
pub(super) fn scan(words: &[Word], marks: &mut Marks) {
    if words.first().and_then(Word::literal).map(program_name).as_deref() != Some("git") {
        return;
    }
    let with_value = VALUE_OPTIONS.iter().find(|(name, _)| *name == "git").map_or(&[][..], |(_, list)| list);
    let mut settings = Vec::new();
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|word| word.known_start().starts_with('-')) {
        let option = word.known_start();
        if matches!(word.literal(), Some("-c" | "--config-env")) {
            settings.extend(words.get(at + 1).map(|word| Setting::of(word, word.known_start())));
        } else if let Some(setting) = option.strip_prefix("--config-env=") {
            settings.push(Setting::of(word, setting));
        }
        at += 1 + usize::from(word.literal().is_some_and(|word| with_value.contains(&word)));
    }
    let subcommand = words.get(at).and_then(Word::literal).unwrap_or_default();
    let behind = words.get(at + 1..).unwrap_or_default();
    if subcommand == "clone" {
        let options = behind.iter().zip(behind.iter().skip(1));
        let named = options.filter(|(option, _)| matches!(option.literal(), Some("-c" | "--config")));
        settings.extend(named.map(|(_, setting)| Setting::of(setting, setting.known_start())));
        let attached = |word: &'_ Word| word.known_start().starts_with("--config=");
        settings.extend(
            behind
                .iter()
                .filter(|word| attached(word))
                .map(|word| Setting::of(word, word.known_start().trim_start_matches("--config="))),
        );
    }
    for setting in settings {
        setting.mark(subcommand, &shown(words), marks);
    }
    if subcommand == "config" {
        stored(behind, &shown(words), marks);
    }
}

/// A setting of one command: `key=value`.
struct Setting {
    /// In lower case; `None` if it is not known before the command runs.
    key: Option<String>,
    value: String,
}

impl Setting {
    fn of(word: &Word, text: &str) -> Self {
        let is_whole = word.literal().is_some();
        match text.split_once('=') {
            Some((key, value)) => Self { key: Some(key.to_ascii_lowercase()), value: value.to_owned() },
            None => Self { key: is_whole.then(|| text.to_ascii_lowercase()), value: "true".to_owned() },
        }
    }

    fn mark(&self, subcommand: &str, command: &str, marks: &mut Marks) {
        let command = quoted(command);
        let Some(key) = self.key.as_deref() else {
            marks.add(RiskKind::Unclear, format!("{command} has a setting that is not known before it runs"));
            return;
        };
        let overwrites = name_matches("remote.*.push", key) && self.value.starts_with(['+', ':']);
        if subcommand == "push" && (overwrites || name_matches("remote.*.mirror", key)) {
            marks.add(RiskKind::ForcePush, format!("{command} overwrites remote branches"));
        } else if subcommand == "clean" && key == "clean.requireforce" {
            marks.add(RiskKind::RecursiveDelete, format!("{command} deletes untracked files"));
        } else if !is_harmless(key, &self.value) {
            let reason = format!("{command}: {} may make git run another command", quoted(key));
            marks.add(RiskKind::Unclear, reason);
        }
    }
}

/// Adds the marks of `git config`.
fn stored(words: &[Word], command: &str, marks: &mut Marks) {
    let command = quoted(command);
    let is = |word: &Word, list: &[&str]| word.literal().is_some_and(|word| list.contains(&word));
    if words.iter().any(|word| is(word, READS)) {
        return;
    }
    let with_value = ["-f", "--file", "--blob", "-t", "--type", "--default", "--comment", "--value"];
    let mut operands = Vec::new();
    let mut skip = false;
    for word in words {
        if std::mem::take(&mut skip) {
            continue;
        }
        if word.known_start().starts_with('-') {
            skip = is(word, &with_value);
        } else {
            operands.push(word);
        }
    }
    let verb = operands.first().copied().and_then(Word::literal);
    let key = match verb {
        Some("get" | "list" | "get-color" | "get-colorbool") => return,
        Some("set" | "unset" | "rename-section" | "remove-section") => operands.get(1),
        _ => operands.first(),
    };
    let edits = verb == Some("edit") || words.iter().any(|word| is(word, &["-e", "--edit"]));
    let changes =
        ["--add", "--replace-all", "--unset", "--unset-all", "--rename-section", "--remove-section"];
    let writes = operands.len() > 1 || words.iter().any(|word| is(word, &changes));
    match key.map(|key| (key, key.literal())) {
        _ if edits => {
            marks.add(RiskKind::RunsLater, format!("{command} changes what git runs or contacts later"))
        }
        Some((_, Some(key))) if writes => {
            let value = operands.last().copied().and_then(Word::literal).unwrap_or("?");
            if !is_harmless(&key.to_ascii_lowercase(), value) {
                marks.add(RiskKind::RunsLater, format!("{command} changes what git runs or contacts later"));
            }
        }
        Some((_, None)) if writes => {
            marks.add(
                RiskKind::Unclear,
                format!("{command} changes a setting that is not known before it runs"),
            );
        }
        _ => {}
    }
}

fn is_harmless(key: &str, value: &str) -> bool {
    HARMLESS_KEYS.iter().any(|pattern| name_matches(pattern, key))
        || PROGRAM_KEYS.iter().any(|pattern| name_matches(pattern, key)) && HARMLESS_PROGRAMS.contains(&value)
}
