//! The paths in the words of a command line. Commands are examined in order, so that a `cd` applies to the commands after it.

use std::collections::HashSet;
use std::path::PathBuf;

use super::Marks;
use super::command_rules::program_name;
use super::file_table::{ELSEWHERE, PATTERN_PROGRAMS, READERS, TEXT_OPTIONS, TEXT_PROGRAMS};
use super::path::{Access, Directories};
use crate::bash::{self, Piece, Redirect, Word};
use crate::paths::lexical;

/// The maximum number of words to examine.
const MAX_WORDS: usize = 3_000;

/// Examines the words of commands for paths.
pub(super) struct PathScan<'a> {
    dirs: &'a Directories<'a>,
    /// The directory after the latest `cd`.
    cwd: PathBuf,
    /// The programs that are named by a path, also behind wrappers.
    programs: HashSet<String>,
    words_left: usize,
}

impl<'a> PathScan<'a> {
    pub(super) fn new(dirs: &'a Directories<'a>, commands: &[Vec<Word>]) -> Self {
        let names = commands.iter().filter_map(|words| words.first()?.literal());
        let programs = names.filter(|name| name.contains('/')).map(str::to_owned).collect();
        Self { dirs, cwd: dirs.cwd.to_owned(), programs, words_left: MAX_WORDS }
    }

    /// Whether the command line had more than [`MAX_WORDS`] words.
    pub(super) fn is_exhausted(&self) -> bool {
        self.words_left == 0
    }

    /// Adds the marks of the file that a redirection opens. Redirections are examined after all commands, so every `cd` applies.
    pub(super) fn redirect(&mut self, redirect: &Redirect, marks: &mut Marks) {
        let access = match redirect.access {
            bash::Access::Read => Access::Read,
            bash::Access::Write => Access::Write,
        };
        self.word(&redirect.target, access, marks);
    }

    /// Adds the marks of the files that a command names.
    pub(super) fn command(&mut self, words: &[Word], marks: &mut Marks) {
        let Some(program) = words.first() else { return };
        let Some(name) = program.literal() else { return };
        if name.contains('/') {
            self.word(program, Access::Run, marks);
        }
        let name = program_name(name);
        if TEXT_PROGRAMS.contains(&name.as_str()) {
            return;
        }
        if ELSEWHERE.contains(&name.as_str()) {
            // Only what is mounted from here: `-v /host:/container`.
            let mounts = |word: &&Word| {
                word.known_start().starts_with(['/', '~', '.']) && word.known_start().contains(':')
            };
            return words[1..].iter().filter(mounts).for_each(|word| self.word(word, Access::Unknown, marks));
        }
        let access = if READERS.contains(&name.as_str()) { Access::Read } else { Access::Unknown };
        let mut pattern_follows = PATTERN_PROGRAMS.contains(&name.as_str());
        let mut text_follows = false;
        for word in &words[1..] {
            let known = word.known_start();
            if std::mem::take(&mut text_follows) {
                continue;
            }
            if known.starts_with('-') {
                text_follows = word.literal().is_some_and(|word| TEXT_OPTIONS.contains(&word));
                pattern_follows &= !text_follows;
            } else if std::mem::take(&mut pattern_follows) {
                continue;
            }
            let runs = word.literal().is_some_and(|word| self.programs.contains(word));
            self.word(word, if runs { Access::Run } else { access }, marks);
        }
        if matches!(name.as_str(), "cd" | "pushd")
            && let Some(to) = words.get(1).and_then(Word::literal).filter(|to| *to != "-")
        {
            self.cwd = lexical(&self.cwd.join(to));
        }
    }

    /// The directories after the latest `cd`.
    fn here(&self) -> Directories<'_> {
        Directories { cwd: &self.cwd, ..*self.dirs }
    }

    fn word(&mut self, word: &Word, access: Access, marks: &mut Marks) {
        let Some(left) = self.words_left.checked_sub(1) else { return };
        self.words_left = left;
        match word.pieces() {
            [Piece::Text(text)] => self.text(text, access, marks),
            [Piece::Home, rest @ ..] => {
                let rest = match rest.first() {
                    Some(Piece::Text(rest)) => rest,
                    _ => "",
                };
                self.here().mark(&format!("~{rest}"), access, marks);
                if let Some(written) = word.pattern() {
                    self.here().mark_pattern(written, marks);
                }
            }
            // A pattern: its directory is known. A variable: its end may be.
            pieces => {
                if let Some((folder, _)) = word.known_start().rsplit_once('/') {
                    self.text(if folder.is_empty() { "/" } else { folder }, access, marks);
                }
                if let [.., Piece::Any, Piece::Text(end)] = pieces {
                    self.here().mark_end(end, marks);
                }
                if let Some(written) = word.pattern() {
                    self.here().mark_pattern(&written.replace(['"', '\'', '\\'], ""), marks);
                }
            }
        }
    }

    fn text(&mut self, text: &str, access: Access, marks: &mut Marks) {
        let text = match text.split_once('=') {
            // `--file=/x`, `of=/x`
            Some((name, value)) if name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)) => {
                value
            }
            _ if text.starts_with('-') => return,
            _ => text,
        };
        // `-d @file`, `/host:/container`
        let text = text.strip_prefix('@').unwrap_or(text);
        let text =
            if text.starts_with(['/', '~', '.']) { text.split(':').next().unwrap_or(text) } else { text };
        if !text.contains("://") && !text.contains(char::is_whitespace) {
            self.here().mark(text, access, marks);
        }
    }
}
