//! Words that may be commands, for deny and ask rules: the operands of a command that is not known to treat them as
//! data, and the text inside those operands. `wildcard` compares them with a rule; the result is at most a possible
//! match.

use super::data::tokens;
use super::reach::{MAX_ARGUMENTS, MAX_DEPTH, Reach};
use super::reader;
use super::script::Word;
use crate::command_pattern::BETWEEN;

/// The furthest position in a word at which the attached value of a short option may start.
const ATTACHED: usize = 6;

/// Operands that may be a command, starting at any of them.
#[derive(Debug, Default)]
pub(crate) struct Suspect {
    /// The words, separated by [`BETWEEN`].
    pub(crate) text: String,
    /// The offsets at which a command may start, including the name in a path.
    pub(crate) starts: Vec<usize>,
    /// Whether an unknown part follows.
    pub(crate) open: bool,
}

impl Suspect {
    fn push(&mut self, token: &str) {
        if !self.text.is_empty() {
            self.text.push(BETWEEN);
        }
        let from = self.text.len();
        self.starts.push(from + token.rfind('/').map_or(0, |slash| slash + 1));
        // The value of a short option may be part of the word, after other letters: `-qcrm`.
        if token.starts_with('-') && !token.starts_with("--") {
            let attached = 2..token.len().min(ATTACHED);
            self.starts.extend(attached.filter(|at| token.is_char_boundary(*at)).map(|at| from + at));
        }
        self.text.push_str(token);
    }
}

impl Reach {
    /// Adds the same command without the options before its first operand: `git --no-pager push` is a `git push`, and
    /// so is what `git-push` runs.
    pub(super) fn behind_options(&mut self, name: &str, words: &[Word]) {
        let text = |at: usize| words.get(at).and_then(Word::literal).unwrap_or_default();
        // The builtins in zsh's module `zsh/files` have this prefix.
        if let Some(builtin) = name.strip_prefix("zf_") {
            let mut plain = words.to_vec();
            plain[0] = Word::text(builtin);
            self.line(&plain);
        }
        // Some file systems do not distinguish `RM` from `rm`.
        if name.bytes().any(|b| b.is_ascii_uppercase()) {
            let mut plain = words.to_vec();
            plain[0] = Word::text(&name.to_ascii_lowercase());
            self.line(&plain);
        }
        if let Some(subcommand) = name.strip_prefix("git-") {
            let mut plain = vec![Word::text("git"), Word::text(subcommand)];
            plain.extend_from_slice(&words[1..]);
            self.line(&plain);
        }
        let mut all_options = true;
        for at in 2..words.len().min(MAX_ARGUMENTS) {
            let is_option = |at: usize| text(at).starts_with(['-', '+']);
            if !is_option(at - 1) {
                // It may be the value of the option before it; otherwise it is the first operand.
                if !is_option(at - 2) {
                    return;
                }
                all_options = false;
            }
            if text(at).is_empty() || is_option(at) {
                continue;
            }
            if all_options {
                let mut plain = vec![Word::text(name)];
                plain.extend_from_slice(&words[at..]);
                self.line(&plain);
            } else {
                let mut suspect = Suspect::default();
                suspect.push(name);
                suspect.open = !words[at..].iter().all(|word| {
                    word.literal().is_some_and(|word| {
                        suspect.push(word);
                        true
                    })
                });
                suspect.starts.truncate(1);
                self.suspects.push(suspect);
            }
        }
    }

    /// Records the operands of a command that may run them, and the text inside them.
    pub(super) fn suspect<'w>(&mut self, operands: impl Iterator<Item = &'w Word>, depth: usize) {
        let mut suspect = Suspect::default();
        for word in operands {
            let Some(text) = word.literal() else {
                suspect.open = true;
                self.suspects.push(std::mem::take(&mut suspect));
                continue;
            };
            tokens(text).for_each(|token| suspect.push(token));
            // Quotes inside it may hide a name.
            if depth < MAX_DEPTH
                && text.contains([' ', '\t', '\n', ';', '\\', '\'', '"'])
                && let Ok(script) = reader::read(text, depth)
            {
                for part in script.parts {
                    let mut inside = Suspect::default();
                    part.words.iter().map_while(Word::literal).for_each(|word| inside.push(word));
                    self.suspects.push(inside);
                }
            }
        }
        if !suspect.starts.is_empty() {
            self.suspects.push(suspect);
        }
    }
}
