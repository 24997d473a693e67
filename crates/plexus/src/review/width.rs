//! Text in columns: cut and wrapped by how wide it is drawn. What others wrote is made harmless on the way, as everywhere on
//! a terminal (`crate::terminal`); the input of a call is written so that every character of it can be seen.

use unicode_width::UnicodeWidthChar as _;

use crate::terminal::safe;

/// What a tab is shown as in text that nobody decides about.
const TAB: &str = "    ";
/// What a tab is shown as in an input.
const VISIBLE_TAB: &str = "→   ";
/// What a blank at the end of a line is shown as in an input.
const TRAILING_BLANK: char = '·';
/// What a newline within one row is shown as.
const NEWLINE: char = '⏎';

/// `text` as it may be drawn, its lines still apart.
pub(crate) fn clean(text: &str) -> String {
    safe(text).replace('\t', TAB)
}

/// `text` as it may be drawn in one line.
pub(crate) fn one_line(text: &str) -> String {
    clean(text).replace('\n', "⏎")
}

/// `text` of an input in one row, with nothing in it that cannot be seen: tabs, newlines, blanks at the end of a line and spaces
/// that are none are marked, characters that show as nothing are written as `\u{…}`, and so are our own marks.
pub(crate) fn exact(text: &str) -> String {
    let safe = safe(text);
    let mut out = String::with_capacity(safe.len());
    let mut blanks = 0;
    for c in safe.chars() {
        if c == ' ' {
            blanks += 1;
            continue;
        }
        let filler = if c == NEWLINE_CHARACTER { TRAILING_BLANK } else { ' ' };
        out.extend(std::iter::repeat_n(filler, std::mem::take(&mut blanks)));
        match c {
            '\t' => out.push_str(VISIBLE_TAB),
            NEWLINE_CHARACTER => out.push(NEWLINE),
            '→' | TRAILING_BLANK | NEWLINE => out.extend(c.escape_unicode()),
            c if is_unseen(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out.extend(std::iter::repeat_n(TRAILING_BLANK, blanks));
    out
}

const NEWLINE_CHARACTER: char = '\n';

/// Spaces other than the plain one, and characters that take part in no writing and are drawn as nothing.
fn is_unseen(c: char) -> bool {
    (c.is_whitespace() && !matches!(c, ' ' | '\t' | '\n'))
        || matches!(c, '\u{34f}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{e000}'..='\u{f8ff}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{f0000}'..)
}

/// Cuts a line that was made clean into pieces that fit into `width` columns.
pub(crate) fn wrap(line: &str, width: usize) -> Vec<String> {
    let width = width.max(2);
    let mut pieces = Vec::new();
    let (mut piece, mut used) = (String::new(), 0);
    for c in line.chars() {
        let wide = c.width().unwrap_or(0);
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

/// The beginning of a line that was made clean, in at most `width` columns.
pub(crate) fn cut(line: &str, width: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    let kept: String = line.chars().take_while(fits).collect();
    if kept.len() == line.len() {
        return kept;
    }
    let mut kept = kept;
    if width > 0 {
        kept.pop();
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
        ] {
            assert_eq!(exact(text), shown, "{text:?}");
        }
    }

    #[test]
    fn lines_are_cut_by_columns_not_by_bytes() {
        assert_eq!(wrap("aあい", 3), ["aあ", "い"]);
        assert_eq!(wrap("", 3), [""]);
        assert_eq!(cut("あいう", 4), "あ…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(wrap(&"x".repeat(1_000_000), 80).len(), 12_500);
    }
}
