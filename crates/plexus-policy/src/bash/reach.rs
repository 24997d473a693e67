//! Wrappers, for deny and ask rules: everything that a command line may run through them is brought to light, rather too
//! much than too little. What stays in the dark is said to be there.

use super::commands::{RUN_BEHIND, RUNNERS, SHELLS};
use super::hazards::{HazardKind, hazards};
use super::reader;
use super::script::{Doubt, Part, Script, Word, base_name};
use super::unwrap::{Inner, unwrap};
use crate::wildcard::KnownLine;

/// How far into a runner's arguments its command is looked for.
const LOOKED_THROUGH: usize = 40;

/// How many commands are looked at.
const MAX_LINES: usize = 200;

/// How deep command lines inside arguments are followed.
const MAX_DEPTH: usize = 6;

/// Everything that a script may run, as far as it can be seen.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// Each command that may run.
    pub(crate) lines: Vec<Line>,
    /// Why more may run than that.
    pub(crate) unseen: Option<&'static str>,
}

/// A command that may run.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) known: KnownLine,
    /// Its words, where not all of them are known.
    pub(crate) words: Vec<Word>,
}

/// Follows a script through all its wrappers.
pub(crate) fn reach(script: &Script) -> Reach {
    let mut reach = Reach::default();
    reach.script(script, 0);
    reach
}

impl Reach {
    fn script(&mut self, script: &Script, depth: usize) {
        for doubt in &script.doubts {
            if let Doubt::Unseen(why) = doubt {
                self.unseen = self.unseen.or(Some(why));
            }
        }
        for part in &script.parts {
            if !part.words.is_empty() {
                self.part(part, depth);
            }
        }
    }

    fn line(&mut self, words: &[Word]) {
        if self.lines.len() >= MAX_LINES {
            self.unseen = self.unseen.or(Some("it runs too many commands to look at"));
            return;
        }
        let known = KnownLine::new(words);
        let words = if known.is_open() { words.to_vec() } else { Vec::new() };
        self.lines.push(Line { known, words });
    }

    fn part(&mut self, part: &Part, depth: usize) {
        self.line(&part.words);
        let Some(name) = part.words[0].literal().map(base_name) else {
            self.unseen = self.unseen.or(Some("a command's name is not known before it runs"));
            return;
        };
        if let Some(inner) = unwrap(part) {
            return match inner {
                _ if depth >= MAX_DEPTH => self.unseen = self.unseen.or(Some("it is nested too deeply")),
                Inner::Part(inner) => self.part(&inner, depth + 1),
                Inner::Script(script) => self.script(&script, depth + 1),
            };
        }
        // What these would run is followed below.
        let followed = matches!(name, "find" | "fd" | "fdfind" | "trap" | "eval" | "exec");
        if !followed && hazards(&part.words).iter().any(|hazard| hazard.kind == HazardKind::Runs) {
            self.unseen = self.unseen.or(Some("an argument may run another command"));
        }
        if SHELLS.contains(&name) {
            self.shell(part, depth);
        }
        let is_command =
            |word: &Word| word.literal().is_none_or(|word| word.starts_with('-') && word.contains('c'));
        if RUNNERS.contains(&name) && (!SHELLS.contains(&name) || part.words[1..].iter().any(is_command)) {
            self.runner(part, 1, depth);
        } else if let Some((_, behind)) = RUN_BEHIND.iter().find(|(runner, _)| *runner == name) {
            let behind = |word: &Word| word.literal().is_some_and(|word| behind.contains(&word));
            if let Some(at) = part.words.iter().position(behind) {
                self.runner(part, at + 1, depth);
            }
        }
    }

    /// A shell that is given neither a command nor a file reads its input.
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
        if !part.words[1..].iter().any(named) {
            self.unseen = self.unseen.or(Some("a shell reads commands that are not written here"));
        }
    }

    /// Whatever stands from there on may be what it runs.
    fn runner(&mut self, part: &Part, from: usize, depth: usize) {
        if part.words.len() - from > LOOKED_THROUGH {
            self.unseen = self.unseen.or(Some("a wrapper has too many arguments to look through"));
        }
        for at in (from..part.words.len()).take(LOOKED_THROUGH) {
            match part.words[at].literal() {
                Some(text) if text.contains([' ', '\t', '\n', ';', '&', '|', '$', '`', '(', '<', '>']) => {
                    self.text(text, depth)
                }
                Some(text) if text.starts_with('-') => {
                    // `--exec=rm -rf`: a command behind the option itself.
                    if let Some((_, value)) = text.split_once('=') {
                        self.text(value, depth);
                    }
                }
                Some(_) => {
                    // What follows may be many things: it is unknown, as far as this command is concerned.
                    let mut words: Vec<Word> =
                        part.words[at..].iter().take(LOOKED_THROUGH).cloned().collect();
                    words.push(Word::unknown());
                    self.line(&words);
                }
                None => self.unseen = self.unseen.or(Some("a wrapper's command is not known before it runs")),
            }
        }
        let all: Option<Vec<&str>> = part.words[from..].iter().map(Word::literal).collect();
        if let Some(all) = all.filter(|all| all.len() > 1) {
            self.text(&all.join(" "), depth);
        }
    }

    /// A command line inside an argument.
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
