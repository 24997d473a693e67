//! Escapes text for a terminal. The text of an agent can contain characters that move the cursor, hide a line or reverse the reading
//! order. All output passes through here, even if the hub has escaped it already. In the input of a call, every invisible character is
//! escaped ([`exact`]).

use std::borrow::Cow;

use plexus_protocol::visible;
use unicode_width::UnicodeWidthChar as _;

/// A tab in a log.
const TAB: &str = "    ";
/// A tab in an input.
const VISIBLE_TAB: &str = "→   ";
/// A trailing blank in an input.
const TRAILING_BLANK: char = '·';
/// The maximum number of combining marks on one character; natural languages need no more.
const MARKS: usize = 3;
/// A newline within one row.
const NEWLINE: char = '⏎';
const NEWLINE_CHARACTER: char = '\n';

/// Escapes every misleading character and every combining mark above the maximum. Newlines and tabs stay.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    let shown = visible(text).map_or(Cow::Borrowed(text), Cow::Owned);
    if !shown.chars().any(is_mark) {
        return shown;
    }
    let mut marks = 0;
    let mut out = String::with_capacity(shown.len());
    for c in shown.chars() {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        if marks > MARKS {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Whether it combines with the character before.
fn is_mark(c: char) -> bool {
    c.width() == Some(0)
}

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
pub(crate) fn is_misleading(c: char) -> bool {
    visible(c.encode_utf8(&mut [0; 4])).is_some()
}

/// Halves of flags, skin tones and parts of Korean syllables: terminals disagree about their width after other characters.
fn is_joining(c: char) -> bool {
    matches!(c, '\u{1160}'..='\u{11ff}' | '\u{d7b0}'..='\u{d7ff}' | '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f3fb}'..='\u{1f3ff}')
}

/// Unusual spaces and invisible characters.
fn is_unseen(c: char) -> bool {
    (c.is_whitespace() && !matches!(c, ' ' | '\t' | '\n'))
        || matches!(c, '\u{34f}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{e000}'..='\u{f8ff}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{f0000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_an_agent_moves_the_cursor_or_reverses_the_line() {
        let hostile = "ok\u{1b}[2K\r\u{9b}31m\u{202e}evil\u{061c}\u{2066}\u{7f}\u{0}";
        for shown in [safe(hostile).into_owned(), one_line(hostile)] {
            assert!(shown.starts_with("ok\\u{1b}[2K\\u{d}\\u{9b}31m\\u{202e}evil\\u{61c}"), "{shown}");
            assert!(!shown.chars().any(char::is_control), "{shown}");
        }
        let zalgo = format!("e{}", "\u{301}".repeat(1000));
        assert_eq!(safe(&zalgo).matches('\u{301}').count(), MARKS);
        assert_eq!(safe("e\u{301}\tx\n"), "e\u{301}\tx\n");
    }

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
}
