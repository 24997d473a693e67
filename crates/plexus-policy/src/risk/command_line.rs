//! Marks of a Bash command line: follows its wrappers and applies the rules to each command that it may run.

use plexus_protocol::RiskKind;

use super::command_paths::PathScan;
use super::command_rules::{self, program_name, shown};
use super::command_table::CHECKED_OPTIONS;
use super::file_table::ELSEWHERE;
use super::path::Directories;
use super::{Marks, awk, file_modes, git_config, hosts, pattern, quoted, sed, unreadable, variables};
use crate::bash::{self, Line, Script, Unreadable, Word};

/// The maximum number of aliases, and of uses of one, that are followed.
const MAX_ALIASES: usize = 8;

/// Adds the marks of a command line.
pub(super) fn scan(text: &str, dirs: &Directories<'_>, marks: &mut Marks) {
    dirs.mark_cwd(marks);
    variables::mark_secrets(text, marks);
    variables::mark_programs(text, marks);
    for text in variables::with_known_values(text, dirs) {
        version(&text, dirs, marks);
    }
}

/// Adds the marks of a command line, whose variables are replaced by their known values.
fn version(text: &str, dirs: &Directories<'_>, marks: &mut Marks) {
    let script = match bash::read(text, 0) {
        Ok(script) => script,
        Err(Unreadable(why)) => {
            marks.add(RiskKind::Unclear, format!("the command cannot be analysed: {why}"));
            return unreadable::scan(text, dirs, marks);
        }
    };
    let reach = bash::reach(&script);
    if let Some(why) = reach.unseen {
        marks.add(RiskKind::Unclear, format!("the command cannot be analysed completely: {why}"));
    }
    for running in &reach.running_words {
        // Without an option, the reason would be true of every command with a variable in it.
        let checked = |word: &str| CHECKED_OPTIONS.contains(&(running.program.as_str(), word));
        if let Some(word) = running.word.as_deref().filter(|word| word.starts_with('-') && !checked(word)) {
            let command = quoted(&format!("{} {word}", running.program));
            marks.add(RiskKind::Unclear, format!("{command} may run another command"));
        }
    }
    let mut commands: Vec<Vec<Word>> = reach.lines.iter().map(words).collect();
    commands.extend(aliased(&commands));
    for words in &commands {
        command_rules::scan(words, marks);
        hosts::scan(words, marks);
        git_config::scan(words, marks);
        file_modes::scan(words, marks);
        awk::scan(words, dirs, marks);
        sed::scan(words, marks);
        variables::mark_printed(words, marks);
    }
    downloaded_code(&script, &commands, marks);
    let mut paths = PathScan::new(dirs, &commands);
    for words in &commands {
        if !is_elsewhere(words, &commands) {
            paths.command(words, marks);
        }
    }
    for redirect in &script.redirects {
        paths.redirect(redirect, marks);
    }
    if paths.is_exhausted() {
        marks.add(RiskKind::Unclear, "the command has too many words to analyse".to_owned());
    }
}

/// The words of a command that may run.
fn words(line: &Line) -> Vec<Word> {
    if line.known.is_open() {
        line.words.iter().flat_map(pattern::expanded).collect()
    } else {
        line.known.words().map(Word::text).collect()
    }
}

/// The commands that the aliases of a line run, with the words of the commands that use them.
fn aliased(commands: &[Vec<Word>]) -> Vec<Vec<Word>> {
    let name = |words: &[Word]| words.first().and_then(Word::literal).map(str::to_owned);
    let defines = commands.iter().filter(|words| name(words).as_deref() == Some("alias"));
    let aliases = defines.flat_map(|words| &words[1..]).filter_map(|word| word.literal()?.split_once('='));
    let mut found = Vec::new();
    for (alias, value) in aliases.take(MAX_ALIASES) {
        let Ok(script) = bash::read(value, 0) else { continue };
        let uses = commands.iter().filter(|words| name(words).as_deref() == Some(alias));
        let used = uses.filter_map(|words| {
            let mut part = script.parts.last()?.clone();
            part.words.extend_from_slice(&words[1..]);
            Some(Script { parts: vec![part], ..Script::default() })
        });
        let used: Vec<Script> = used.take(MAX_ALIASES).collect();
        for script in used.iter().chain([&script]) {
            found.extend(bash::reach(script).lines.iter().map(self::words));
        }
    }
    found
}

/// Whether a command runs inside one that changes the machine or the file system.
fn is_elsewhere(words: &[Word], commands: &[Vec<Word>]) -> bool {
    commands.iter().any(|outer| {
        let program = outer.first().and_then(Word::literal).map(program_name);
        program.is_some_and(|name| ELSEWHERE.contains(&name.as_str()))
            && outer.len() > words.len()
            && outer.ends_with(words)
    })
}

/// Marks a line that downloads something and runs it: `curl … | sh`, `bash <(curl …)`, `curl -o x …; sh x`.
fn downloaded_code(script: &Script, commands: &[Vec<Word>], marks: &mut Marks) {
    let name = |words: &[Word]| words.first().and_then(Word::literal).map(program_name);
    let Some(fetch) = commands.iter().find(|words| name(words).is_some_and(|name| hosts::downloads(&name)))
    else {
        return;
    };
    let fetched: Vec<&str> =
        fetch[1..].iter().filter_map(Word::literal).filter(|word| !word.starts_with('-')).collect();
    let runs = |words: &[Word]| {
        let Some(program) = name(words).filter(|name| bash::runs_code(name)) else {
            // A downloaded file that is run as a program.
            return words.first().and_then(Word::literal).is_some_and(|word| {
                word.contains('/')
                    && fetched
                        .iter()
                        .any(|file| !file.contains("://") && word.ends_with(file.trim_start_matches("./")))
            });
        };
        let operands: Vec<&Word> =
            words[1..].iter().filter(|word| !word.known_start().starts_with('-')).collect();
        let reads_input = operands.is_empty() && !matches!(program.as_str(), "." | "source" | "eval")
            || bash::program_is_stdin(words);
        reads_input || operands.iter().any(|word| word.literal().is_none_or(|word| fetched.contains(&word)))
    };
    let parts = script.parts.iter().map(|part| part.words.as_slice());
    if let Some(run) = parts.chain(commands.iter().map(Vec::as_slice)).find(|words| runs(words)) {
        let reason = format!("{} downloads code that {} runs", quoted(&shown(fetch)), quoted(&shown(run)));
        marks.add(RiskKind::RunsDownloadedCode, reason);
    }
}
