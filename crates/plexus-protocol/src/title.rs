//! The title of a session: derived from its first prompt, or given by the operator. Both are plain text on one line.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

use crate::text::is_misleading;

/// The maximum number of characters of a derived title.
const DERIVED_CHARS: usize = 80;
/// The maximum number of characters of a title that the operator gives.
pub const MAX_TITLE_CHARS: usize = 200;
/// A shorter sentence, such as a greeting, is not a title by itself.
const SENTENCE_CHARS: usize = 12;
/// A title is cut at the end of a word if that leaves at least this many characters.
const WORDS_CHARS: usize = 40;
/// Only the start of a prompt is read.
const READ_BYTES: usize = 64 * 1024;

/// The title of a session with this first prompt: its first sentence or line, without Markdown. `None` if the prompt has no
/// text.
pub fn title_of(prompt: &str) -> Option<String> {
    let start = &prompt[..prompt.floor_char_boundary(READ_BYTES)];
    let mut code_line = None;
    let mut in_code = false;
    for line in start.split(['\n', '\r', '\u{2028}', '\u{2029}']) {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            in_code = !in_code;
        } else if in_code {
            code_line = code_line.or_else(|| one_line(trimmed));
        } else if let Some(text) = one_line(&without_markup(block_text(trimmed))) {
            return Some(shorten(first_sentence(&text)));
        }
    }
    code_line.map(|line| shorten(&line))
}

/// A title that the operator gave, on one line and without invisible characters; `None` if nothing is left.
pub fn given_title(text: &str) -> Option<String> {
    one_line(text)
}

/// The text on one line, without misleading characters; `None` if it contains neither a letter nor a digit nor a symbol.
fn one_line(text: &str) -> Option<String> {
    let spaced: String =
        text.chars().map(|c| if c.is_whitespace() || is_misleading(c) { ' ' } else { c }).collect();
    let line = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    let says_something = |c: char| c.is_alphanumeric() || (!c.is_ascii() && !c.is_whitespace());
    line.chars().any(says_something).then_some(line)
}

/// A line without the marks of headings, quotes and lists.
fn block_text(line: &str) -> &str {
    let mut rest = line;
    loop {
        let before = rest;
        rest = rest.trim_start();
        if let Some(quoted) = rest.strip_prefix('>') {
            rest = quoted;
        }
        let heading = rest.trim_start_matches('#');
        if heading.len() < rest.len() && heading.starts_with(' ') {
            rest = heading;
        }
        for mark in ["- ", "* ", "+ ", "[ ] ", "[x] "] {
            rest = rest.strip_prefix(mark).unwrap_or(rest);
        }
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if number.len() < rest.len()
            && let Some(item) = number.strip_prefix(". ").or_else(|| number.strip_prefix(") "))
        {
            rest = item;
        }
        if rest == before {
            return rest.trim_end_matches('#').trim_end();
        }
    }
}

/// A line without emphasis, code marks and the addresses of links. Patterns such as `src/**/*.rs` stay.
fn without_markup(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if let Some((label, after)) = link(rest) {
            text.push_str(&label.replace('`', ""));
            rest = after;
            continue;
        }
        let run = rest.len() - rest.trim_start_matches(c).len();
        let (marks, after) = rest.split_at(run);
        let (before, next) = (text.chars().next_back(), after.chars().next());
        let is_word =
            |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '`' | '[' | ']'));
        let is_edge = |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || ".,;:!?)(".contains(c));
        let emphasis =
            (is_edge(before) && is_word(next)) || (!is_edge(before) && is_edge(next) && before != Some('/'));
        match c {
            '`' => {}
            '*' if emphasis => {}
            '~' if run == 2 && emphasis => {}
            _ => text.push_str(marks),
        }
        rest = after;
    }
    text
}

/// The label of the link or image that `text` starts with, and what follows it.
fn link(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("![").or_else(|| text.strip_prefix('['))?;
    let (label, after) = inner.split_once("](")?;
    let (address, rest) = after.split_once(')')?;
    (!label.contains(['[', ']']) && !address.contains(' ')).then_some((label, rest))
}

/// The first sentence of a line, unless it is very short.
fn first_sentence(line: &str) -> &str {
    for (count, (at, c)) in line.char_indices().enumerate() {
        let end = at + c.len_utf8();
        let mut after = line[end..].chars();
        let ends = match c {
            '。' | '！' | '？' | '।' | '؟' => true,
            // Abbreviations are followed by a small letter more often than sentences are.
            '.' | '!' | '?' => after.next() == Some(' ') && after.next().is_some_and(|c| !c.is_lowercase()),
            _ => false,
        };
        if ends && count + 1 >= SENTENCE_CHARS {
            return &line[..end];
        }
    }
    line
}

/// At most [`DERIVED_CHARS`] characters, cut between words where possible, without final punctuation.
fn shorten(text: &str) -> String {
    let text = text.trim_end_matches(['.', ':', ',', ';', '。', ' ']);
    if text.chars().count() <= DERIVED_CHARS {
        return text.to_owned();
    }
    let is_mark = |c: char| {
        use GeneralCategory::{EnclosingMark, NonspacingMark, SpacingMark};
        matches!(c.general_category(), EnclosingMark | NonspacingMark | SpacingMark)
    };
    let ends: Vec<(usize, char)> = text.char_indices().take(DERIVED_CHARS).collect();
    // A character and its accents stay together.
    let cut = ends.iter().rposition(|(_, c)| !is_mark(*c)).unwrap_or(0);
    let kept = &text[..ends[cut].0];
    let words = kept.rfind(' ').map_or(kept, |space| &kept[..space]);
    let kept = if words.chars().count() >= WORDS_CHARS { words } else { kept };
    format!("{}…", kept.trim_end_matches(['.', ':', ',', ';', '(', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_sentence_or_line_of_a_prompt_as_plain_text() {
        for (prompt, title) in [
            ("Fix the parser", "Fix the parser"),
            ("  \n\nFix the parser.\nIt fails on empty input.", "Fix the parser"),
            ("Fix the parser. It fails on empty input.", "Fix the parser"),
            ("Why does the build fail? Please look.", "Why does the build fail?"),
            ("Hi. Please fix the parser", "Hi. Please fix the parser"),
            ("Use a cache, e.g. an LRU, for files. Then measure.", "Use a cache, e.g. an LRU, for files"),
            ("Update to version 2.1.300 today. Then test.", "Update to version 2.1.300 today"),
            ("# Task\n\nDo it", "Task"),
            ("## **Fix** the `parser` ##\nmore", "Fix the parser"),
            ("> - [ ] *Refactor* the [reader](https://a.example/x)", "Refactor the reader"),
            ("1. First step", "First step"),
            ("![logo](a.png) Draw a logo", "logo Draw a logo"),
            ("Format src/**/*.rs and a_b_c with 2 * 3", "Format src/**/*.rs and a_b_c with 2 * 3"),
            ("---\n***\nText", "Text"),
            ("```rust\nfn main() {}\n```\nExplain this function", "Explain this function"),
            ("```rust\n\nfn main() {}\n```", "fn main() {}"),
            ("/review the last commit", "/review the last commit"),
            ("one\ttwo\u{1b}[2K\u{202e}three", "one two [2K three"),
            ("Fix\u{200b} it\r\nnow", "Fix it"),
            ("パーサーを修正してください。空の入力で失敗します。", "パーサーを修正してください"),
            ("修复解析器", "修复解析器"),
            ("ما سبب فشل البناء؟ انظر", "ما سبب فشل البناء؟"),
            ("Почини парсер. Он падает.", "Почини парсер"),
            ("🚀 ship it", "🚀 ship it"),
        ] {
            assert_eq!(title_of(prompt).as_deref(), Some(title), "{prompt:?}");
        }
        for nothing in ["", " \n\t", "---", "```\n```", "\u{200b}\u{1b}", "…\u{0}".trim_start_matches('…')]
        {
            assert_eq!(title_of(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn a_long_line_is_cut_between_words_or_characters() {
        let words = "word ".repeat(100);
        let title = title_of(&words).expect("a title");
        assert_eq!(title, format!("{}…", "word ".repeat(15).trim_end()));
        let one_word = "x".repeat(1_000_000);
        assert_eq!(title_of(&one_word).map(|title| title.chars().count()), Some(DERIVED_CHARS));
        let accents = "e\u{301}".repeat(200);
        let title = title_of(&accents).expect("a title");
        assert!(title.chars().count() <= DERIVED_CHARS && title.ends_with("\u{301}…"), "{title}");
        assert_eq!(title_of(&"字".repeat(200)).map(|title| title.chars().count()), Some(DERIVED_CHARS));
    }

    #[test]
    fn a_given_title_becomes_one_visible_line() {
        assert_eq!(given_title(" Fix\n the  *parser*\u{202e} ").as_deref(), Some("Fix the *parser*"));
        assert_eq!(given_title(" \n"), None);
    }
}
