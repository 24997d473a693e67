//! Cuts and wraps text by its display width. Text of agents is escaped, as everywhere (`crate::terminal`); in the input of a call every
//! invisible character is escaped.

use plexus_protocol::visible;
use unicode_width::UnicodeWidthChar as _;

use crate::terminal::safe;

/// A tab in a log.
const TAB: &str = "    ";
/// A tab in an input.
const VISIBLE_TAB: &str = "→   ";
/// A trailing blank in an input.
const TRAILING_BLANK: char = '·';
/// The maximum number of combining marks on one character of an input.
const MARKS: usize = 3;
/// A newline within one row.
const NEWLINE: char = '⏎';

/// `text` escaped for drawing, with its newlines. Characters whose width terminals disagree about are escaped, or dropped if they only
/// select a variant of the same glyph.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in safe(text).chars() {
        match c {
            '\t' => out.push_str(TAB),
            '\u{fe00}'..='\u{fe0f}' => {}
            c if is_joining(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// `text` escaped for drawing in one line.
pub(crate) fn one_line(text: &str) -> String {
    clean(text).replace('\n', "⏎")
}

/// `text` of an input in one row, with every character visible: tabs, newlines, trailing blanks and unusual spaces are marked, invisible
/// and misleading characters are escaped as `\u{…}`, and so are the marks themselves.
///
/// The result is unambiguous: backslashes before an escape, and before a literal `u{`, are doubled.
pub(crate) fn exact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut blanks, mut backslashes, mut marks) = (0, 0, 0);
    // A combining mark on a space or symbol makes another symbol of it.
    let mut takes_marks = false;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c.width() == Some(0) {
            marks += 1;
        } else {
            (marks, takes_marks) = (0, c.is_alphanumeric());
        }
        let escaped = (marks > 0 && !takes_marks) || marks > MARKS || is_written_out(c);
        let doubled = escaped || (c == 'u' && rest.peek() == Some(&'{'));
        if c != '\\' {
            let times = if doubled { 2 } else { 1 };
            out.extend(std::iter::repeat_n('\\', times * std::mem::take(&mut backslashes)));
        }
        if c != ' ' {
            let filler = if c == NEWLINE_CHARACTER { TRAILING_BLANK } else { ' ' };
            out.extend(std::iter::repeat_n(filler, std::mem::take(&mut blanks)));
        }
        match c {
            ' ' => blanks += 1,
            '\\' => backslashes += 1,
            '\t' => out.push_str(VISIBLE_TAB),
            NEWLINE_CHARACTER => out.push(NEWLINE),
            c if escaped => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out.extend(std::iter::repeat_n('\\', backslashes));
    out.extend(std::iter::repeat_n(TRAILING_BLANK, blanks));
    out
}

/// Whether a character of an input is escaped.
fn is_written_out(c: char) -> bool {
    !c.is_ascii_graphic()
        && (matches!(c, '→' | TRAILING_BLANK | NEWLINE) || is_unseen(c) || is_joining(c) || is_misleading(c))
}

/// Whether the hub escapes this character.
pub(super) fn is_misleading(c: char) -> bool {
    visible(c.encode_utf8(&mut [0; 4])).is_some()
}

/// Halves of flags, skin tones and parts of Korean syllables: terminals disagree about their width after other characters.
fn is_joining(c: char) -> bool {
    matches!(c, '\u{1160}'..='\u{11ff}' | '\u{d7b0}'..='\u{d7ff}' | '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f3fb}'..='\u{1f3ff}')
}

const NEWLINE_CHARACTER: char = '\n';

/// Unusual spaces and invisible characters.
fn is_unseen(c: char) -> bool {
    (c.is_whitespace() && !matches!(c, ' ' | '\t' | '\n'))
        || matches!(c, '\u{34f}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{e000}'..='\u{f8ff}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{f0000}'..)
}

/// The maximum width of a text: some terminals draw arrows, dots and lines two columns wide.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

fn columns_of(c: char) -> usize {
    c.width_cjk().unwrap_or(0)
}

/// Cuts an escaped line into pieces of at most `width` columns.
pub(crate) fn wrap(line: &str, width: usize) -> Vec<String> {
    let width = width.max(2);
    let mut pieces = Vec::new();
    let (mut piece, mut used) = (String::new(), 0);
    for c in line.chars() {
        let wide = columns_of(c);
        if used + wide > width {
            pieces.push(std::mem::take(&mut piece));
            used = 0;
        }
        piece.push(c);
        used += wide;
    }
    pieces.push(piece);
    pieces
}

/// The end of an escaped line, in at most `width` columns.
pub(crate) fn end(line: &str, width: usize) -> &str {
    let mut left = width;
    let mut from = line.len();
    for (at, c) in line.char_indices().rev() {
        let Some(rest) = left.checked_sub(columns_of(c)) else { break };
        (left, from) = (rest, at);
    }
    line.get(from..).unwrap_or_default()
}

/// The start of an escaped line, in at most `width` columns.
pub(crate) fn cut(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let mut left = width.saturating_sub(columns("…"));
    let fits = |c: &char| {
        let fits = columns_of(*c) <= left;
        left = left.saturating_sub(columns_of(*c));
        fits
    };
    let mut kept: String = line.chars().take_while(fits).collect();
    if width > 0 {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_child_writes_moves_the_cursor_or_hides() {
        assert_eq!(
            clean("a\u{1b}[2J\r\u{202e}b\u{61c}c\td\n"),
            "a\\u{1b}[2J\\u{d}\\u{202e}b\\u{61c}c    d\n"
        );
        assert_eq!(one_line("a\nb"), "a⏎b");
        assert_eq!(clean("\u{1f1f7}\u{1f1f2} 👍\u{1f3fd} ❤\u{fe0f}"), "\\u{1f1f7}\\u{1f1f2} 👍\\u{1f3fd} ❤");
    }

    #[test]
    fn every_character_of_an_input_can_be_seen() {
        for (text, shown) in [
            ("rm\u{a0}-r", "rm\\u{a0}-r"),
            ("rm\u{3000}-r\u{2009}x\u{205f}\u{1680}", "rm\\u{3000}-r\\u{2009}x\\u{205f}\\u{1680}"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("a\u{fe0f}\u{34f}\u{2800}b", "a\\u{fe0f}\\u{34f}\\u{2800}b"),
            ("a\tb  ", "a→   b··"),
            ("a  \nb", "a··⏎b"),
            ("→ · ⏎", "\\u{2192} \\u{b7} \\u{23ce}"),
            ("plain text, grüße 日本 e\u{301}", "plain text, grüße 日本 e\u{301}"),
            ("   ", "···"),
            ("\u{1f1f7}\u{1f1f2}", "\\u{1f1f7}\\u{1f1f2}"),
            ("👍\u{1f3fd}", "👍\\u{1f3fd}"),
            ("\u{1100}\u{1161}", "\u{1100}\\u{1161}"),
            ("a \u{332}b-\u{338}\u{301}", "a \\u{332}b-\\u{338}\\u{301}"),
            ("\u{338}a", "\\u{338}a"),
            ("a\\u{a0}b\\x \\\\ \\", "a\\\\u{a0}b\\x \\\\ \\"),
            ("\\\u{a0} \\\\u{", "\\\\\\u{a0} \\\\\\\\u{"),
        ] {
            assert_eq!(exact(text), shown, "{text:?}");
        }
    }

    #[test]
    fn lines_are_cut_by_columns_not_by_bytes() {
        assert_eq!(wrap("aあい", 3), ["aあ", "い"]);
        assert_eq!(wrap("", 3), [""]);
        assert_eq!(wrap("→→→", 4), ["→→", "→"], "wherever these are two columns wide");
        assert_eq!(cut("あいう", 4), "あ…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!([end("abc", 2), end("aあ", 2), end("aあ", 1), end("abc", 9)], ["bc", "あ", "", "abc"]);
        assert_eq!(wrap(&"x".repeat(1_000_000), 80).len(), 12_500);
    }
}
