//! A rough search of text that the Bash parser rejects, so that a `rm -rf` in it is still marked. It splits the text at every
//! separator and ignores quotes; the caller has already marked the text as unclear.

use super::command_rules;
use super::path::{Access, Directories};
use super::{Marks, hosts};
use crate::bash::Word;

/// How much of the text is searched.
const MAX_BYTES: usize = 20_000;
/// The maximum number of words that are compared with rules.
const MAX_WORDS: usize = 2_000;
/// The maximum number of words of one command.
const MAX_COMMAND: usize = 40;

/// Words that another command follows.
const BEFORE_COMMANDS: &[&str] = &[
    "!", "command", "do", "doas", "else", "env", "eval", "exec", "if", "nice", "nohup", "sudo", "then",
    "time", "while", "xargs", "{",
];

/// Adds the marks of everything that looks like a command or a path.
pub(super) fn scan(text: &str, dirs: &Directories<'_>, marks: &mut Marks) {
    let text = &text[..text.floor_char_boundary(MAX_BYTES)];
    let mut left = MAX_WORDS;
    for segment in text.split(['\n', ';', '&', '|', '(', ')', '`']) {
        let words: Vec<Word> = segment
            .split_whitespace()
            .take(left.min(MAX_COMMAND))
            .map(|word| Word::text(word.trim_matches(['"', '\'', '$', '{', '}', ',', '[', ']'])))
            .collect();
        left -= words.len();
        let mut starts_here = true;
        for at in 0..words.len() {
            let word = words[at].literal().unwrap_or_default();
            if starts_here && command_rules::is_known(word) {
                command_rules::scan(&words[at..], marks);
            }
            if starts_here {
                hosts::scan(&words[at..], marks);
            }
            starts_here =
                BEFORE_COMMANDS.contains(&word) || word.contains('=') || word.starts_with('-') && starts_here;
            if at > 0 && word.contains(['/', '.']) && !word.contains("://") {
                dirs.mark(word.trim_start_matches(['<', '>', '@', '!']), Access::Unknown, marks);
            }
        }
    }
}
