//! Follows wrappers for deny and ask rules. It finds every command that a command line may run through them, and in
//! doubt includes too many. If more may run than it can find, it reports the reason.

use super::allow_wrappers::{Alone, Inner, is_harmless, unwrap};
use super::data::{is_interpreter, may_run_commands, names_program_variable, takes_data};
use super::deny_wrappers::{Inside, insides, may_take_next};
use super::hazards::{HazardKind, hazards};
use super::known_names::SHELLS;
use super::reader;
use super::script::{Doubt, Part, Script, Word, base_name};
use super::suspects::Suspect;
use crate::command_pattern::KnownLine;

/// How many of a runner's arguments are searched for its command.
pub(super) const MAX_ARGUMENTS: usize = 40;

/// The maximum number of commands to examine.
const MAX_LINES: usize = 200;

const TOO_MANY: &str = "it runs too many commands to check";

/// The maximum nesting depth of command lines inside arguments.
pub(super) const MAX_DEPTH: usize = 6;

/// Everything that a script may run, as far as it is visible.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// Every command that may run.
    pub(crate) lines: Vec<Line>,
    /// Words among the operands of a command that may run them.
    pub(crate) suspects: Vec<Suspect>,
    /// Why further commands may run.
    pub(crate) unseen: Option<&'static str>,
    /// Commands with a word that may run a further command, or whose further words are unknown.
    pub(crate) running_words: Vec<RunningWord>,
}

/// A word that may run a command.
#[derive(Debug)]
pub(crate) struct RunningWord {
    pub(crate) program: String,
    /// The word; `None` if it is unknown, or if any word of the command may run one.
    pub(crate) word: Option<String>,
}

/// A command that may run.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) known: KnownLine,
    /// Its words, if not all of them are known.
    pub(crate) words: Vec<Word>,
}

/// Follows a script through all its wrappers.
pub(crate) fn reach(script: &Script) -> Reach {
    let mut reach = Reach::default();
    reach.script(script, 0);
    reach
}

impl Reach {
    /// Why further commands may run than those listed.
    pub(crate) fn why_incomplete(&self) -> Option<&'static str> {
        self.unseen
            .or_else(|| (!self.running_words.is_empty()).then_some("an argument may run another command"))
    }

    fn script(&mut self, script: &Script, depth: usize) {
        for doubt in &script.doubts {
            if let Doubt::Unseen(why) = doubt {
                self.unseen = self.unseen.or(Some(why));
            }
        }
        for part in &script.parts {
            if part.words.is_empty() {
                self.scripts_named(part);
                let named_programs =
                    part.assignments.iter().filter(|assignment| names_program_variable(&assignment.name));
                self.suspect(named_programs.map(|assignment| &assignment.value), depth);
            } else {
                self.part(part, depth);
            }
        }
    }

    /// Finds variables that name code to load before the command, set before it or by it.
    fn scripts_named(&mut self, part: &Part) {
        let set = part.assignments.iter().map(|assignment| assignment.name.as_str());
        let sets = |word: &Word| {
            let name = word.literal().map(base_name);
            matches!(name, Some("export" | "declare" | "typeset" | "local" | "readonly" | "env"))
        };
        let words = if part.words.first().is_some_and(sets) { &part.words[1..] } else { &[] };
        let by_words = words.iter().filter_map(|word| word.known_start().split_once('='));
        for name in set.chain(by_words.map(|(name, _)| name)) {
            match name {
                "BASH_ENV" | "ENV" | "LD_PRELOAD" | "ZDOTDIR" => {
                    self.unseen = self.unseen.or(Some("a variable names a script that a shell runs"));
                }
                // A shell that traces expands this variable before each command.
                "PS4" | "PROMPT4" => {
                    self.unseen = self.unseen.or(Some("a variable may contain a command that a shell runs"));
                }
                _ => {}
            }
        }
    }

    pub(super) fn line(&mut self, words: &[Word]) {
        if self.lines.len() >= MAX_LINES {
            self.unseen = self.unseen.or(Some(TOO_MANY));
            return;
        }
        let known = KnownLine::new(words);
        let words = if known.is_open() { words.to_vec() } else { Vec::new() };
        self.lines.push(Line { known, words });
    }

    fn part(&mut self, part: &Part, depth: usize) {
        if self.lines.len() >= MAX_LINES {
            self.unseen = self.unseen.or(Some(TOO_MANY));
            return;
        }
        self.line(&part.words);
        self.scripts_named(part);
        let Some(name) = part.words[0].literal().map(base_name) else {
            self.unseen = self.unseen.or(Some("a command's name is not known before it runs"));
            return;
        };
        if name.contains("{}") {
            self.unseen = self.unseen.or(Some("a command's name is not known before it runs"));
        }
        self.behind_options(name, &part.words);
        let has = |text: &str| part.words[1..].iter().any(|word| word.literal() == Some(text));
        if name == "git" && (has("for-each-repo") || has("subtree") && has("push")) {
            self.unseen = self.unseen.or(Some("git runs another git command"));
        }
        // A copy of a program may run under another name.
        if matches!(name, "cp" | "ln" | "mv" | "install" | "link" | "rsync") {
            self.suspect(part.words[1..].iter().filter(|word| word.known_start().contains("bin/")), depth);
        }
        if let Some(inner) = unwrap(part) {
            return match inner {
                _ if depth >= MAX_DEPTH => self.unseen = self.unseen.or(Some("it is nested too deeply")),
                Inner::Part(inner) => self.part(&inner, depth + 1),
                Inner::Script(script) => self.script(&script, depth + 1),
            };
        }
        let insides = insides(&part.words);
        // The commands that these run are followed below.
        let followed =
            !insides.is_empty() || matches!(name, "find" | "fd" | "fdfind" | "trap" | "eval" | "exec");
        if !followed {
            let runs = hazards(&part.words).into_iter().filter(|hazard| hazard.kind == HazardKind::Runs);
            let word = |at: usize| part.words.get(at).and_then(Word::literal).map(str::to_owned);
            let found = runs.map(|hazard| RunningWord { program: name.to_owned(), word: word(hazard.at) });
            self.running_words.extend(found);
        }
        if SHELLS.contains(&name) {
            self.shell(part, depth);
        }
        if is_interpreter(name) && part.words[1..].iter().chain(&part.stdin).any(may_run_commands) {
            self.unseen = self.unseen.or(Some("a program in the command line may run another command"));
        }
        let only_options = || part.words[1..].iter().all(|word| word.known_start().starts_with('-'));
        if matches!(name, "at" | "batch" | "crontab") || name == "parallel" && only_options() {
            self.unseen = self.unseen.or(Some("it reads commands that are not in the command line"));
        }
        for (from, inside) in &insides {
            self.runner(part, *from, *inside, depth);
        }
        // A program may run the value of a variable: a pager, an editor, a compiler.
        let risky = part.assignments.iter().filter(|assignment| !is_harmless(assignment, Alone::No));
        self.suspect(risky.map(|assignment| &assignment.value), depth);
        if !takes_data(&part.words) {
            let operands = if insides.is_empty() { &part.words[1..] } else { &[] };
            self.suspect(operands.iter().chain(&part.stdin), depth);
        }
    }

    /// A shell without a command or a file reads its input.
    fn shell(&mut self, part: &Part, depth: usize) {
        if let Some(text) = part.stdin.as_ref().and_then(Word::literal) {
            self.text(text, depth);
        }
        let named = |word: &Word| {
            word.literal().is_some_and(|w| {
                !w.is_empty()
                    && !w.starts_with(['-', '+'])
                    && !w.starts_with("/dev/")
                    && !w.starts_with("/proc/")
            })
        };
        if !part.words[1..].iter().any(named) || program_is_stdin(&part.words) {
            self.unseen = self.unseen.or(Some("a shell reads commands that are not in the command line"));
        }
    }

    /// Follows a runner: the words from `from` on, up to the first word that can only be a command, may be what it
    /// runs.
    fn runner(&mut self, part: &Part, from: usize, inside: Inside, depth: usize) {
        if depth >= MAX_DEPTH {
            self.unseen = self.unseen.or(Some("it is nested too deeply"));
            return;
        }
        let name = part.words[0].literal().map(base_name).unwrap_or_default();
        if part.words.len().saturating_sub(from) > MAX_ARGUMENTS && inside == Inside::Anywhere {
            self.unseen = self.unseen.or(Some("a wrapper has too many arguments to check"));
        }
        let replaced = replacement(name, &part.words);
        let is_line = |word: &&Word| word.literal().is_some_and(|text| text.contains([' ', ';', '&', '|']));
        let begins = |text: &str| replaced.is_some_and(|mark| text.trim_start().starts_with(mark));
        if part.words[from..].iter().filter(is_line).any(|word| begins(word.known_start())) {
            self.unseen = self.unseen.or(Some("a wrapper's command is not known before it runs"));
        }
        let mut operands = 0;
        for at in (from..part.words.len()).take(MAX_ARGUMENTS) {
            match part.words[at].literal() {
                Some(text) if begins(text) => {
                    self.unseen = self.unseen.or(Some("a wrapper's command is not known before it runs"));
                }
                Some(text) if text.contains([' ', '\t', '\n', ';', '&', '|', '$', '`', '(', '<', '>']) => {
                    self.text(text, depth);
                    self.suspect(std::iter::once(&part.words[at]), depth);
                }
                Some(text) if text.starts_with('-') => {
                    self.suspect(std::iter::once(&part.words[at]), depth);
                    // `--exec=rm -rf`: a command attached to the option itself.
                    if let Some((_, value)) = text.split_once('=') {
                        self.text(value, depth);
                    }
                }
                Some(text) => {
                    let mut words: Vec<Word> = part.words[at..].iter().take(MAX_ARGUMENTS).cloned().collect();
                    // What follows is ambiguous, so it counts as unknown for this command.
                    if inside == Inside::Anywhere || adds_operands(name) {
                        words.push(Word::unknown());
                    }
                    if inside == Inside::Anywhere {
                        self.line(&words);
                        continue;
                    }
                    self.part(&Part { words, ..Part::default() }, depth + 1);
                    let previous = part.words[at - 1].literal().unwrap_or_default();
                    let is_value = at > from && may_take_next(name, previous);
                    operands += usize::from(!is_value && !text.contains('='));
                    if matches!(inside, Inside::Behind(own) if operands > own) {
                        break;
                    }
                }
                None => self.unseen = self.unseen.or(Some("a wrapper's command is not known before it runs")),
            }
        }
        let all: Option<Vec<&str>> = part.words[from..].iter().map(Word::literal).collect();
        if let Some(all) = all.filter(|all| all.len() > 1 && (inside == Inside::Anywhere || joins(name))) {
            self.text(&all.join(" "), depth);
        }
    }

    /// Follows a command line inside an argument.
    fn text(&mut self, text: &str, depth: usize) {
        if depth >= MAX_DEPTH {
            self.unseen = self.unseen.or(Some("it is nested too deeply"));
            return;
        }
        match reader::read(text, depth) {
            Ok(script) => self.script(&script, depth + 1),
            Err(super::Unreadable(why)) => self.unseen = self.unseen.or(Some(why)),
        }
    }
}

/// The placeholder that `xargs` replaces with a line of its input.
fn replacement<'w>(name: &str, words: &'w [Word]) -> Option<&'w str> {
    let text = |at: usize| words.get(at).and_then(Word::literal);
    let at = (1..words.len()).find(|at| text(*at).is_some_and(|word| word.starts_with("-I")))?;
    let mark = text(at)?.strip_prefix("-I").filter(|mark| !mark.is_empty()).or_else(|| text(at + 1))?;
    (name == "xargs" && !mark.is_empty()).then_some(mark)
}

/// Wrappers that add operands to the command.
fn adds_operands(name: &str) -> bool {
    matches!(name, "xargs" | "entr" | "sem" | "zrun")
}

/// Wrappers that join their operands to one line for a shell.
fn joins(name: &str) -> bool {
    matches!(name, "ssh" | "watch" | "su" | "sg" | "entr" | "autossh" | "nodemon" | "watchexec" | "reflex")
}

/// Whether a shell or an interpreter runs its input although operands follow: `bash -s a`, `python3 - a`, `sh /dev/stdin a`.
pub(crate) fn program_is_stdin(words: &[Word]) -> bool {
    let is_shell = words.first().and_then(Word::literal).map(base_name).is_some_and(|n| SHELLS.contains(&n));
    let mut rest = words.iter().skip(1).filter_map(Word::literal);
    while let Some(word) = rest.next() {
        match word {
            "-" if !is_shell => return true,
            "-" | "--" => continue,
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" if is_shell => {
                rest.next();
            }
            _ if word.starts_with("--") || word.starts_with('+') => {}
            _ if word.starts_with('-') => {
                if is_shell && word.contains('c') {
                    return false;
                }
                if is_shell && word.contains('s') {
                    return true;
                }
            }
            _ => return word.starts_with("/dev/") || word.starts_with("/proc/"),
        }
    }
    false
}
