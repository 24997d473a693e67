//! What others wrote, made fit for a terminal: nothing that moves a cursor, hides a line, turns the reading order around
//! or piles up in one cell. All text that the hub tells goes through here before it is drawn.

use std::borrow::Cow;

use plexus_protocol::visible;
use unicode_width::UnicodeWidthChar as _;

/// How many marks may stand on one character; real writing needs no more.
const MARKS: usize = 3;
/// What a tab is shown as.
const TAB: &str = "    ";

/// `text` as it may be drawn, its lines still apart.
pub(crate) fn clean(text: &str) -> String {
    let shown = visible(text).map_or(Cow::Borrowed(text), Cow::Owned);
    let mut out = String::with_capacity(shown.len());
    let mut marks = 0;
    for c in shown.chars() {
        match c {
            '\n' => out.push(c),
            '\t' => out.push_str(TAB),
            _ if is_hidden(c) => out.extend(c.escape_unicode()),
            _ if c.width() == Some(0) => {
                marks += 1;
                if marks > MARKS {
                    out.extend(c.escape_unicode());
                } else {
                    out.push(c);
                }
                continue;
            }
            _ => out.push(c),
        }
        marks = 0;
    }
    out
}

/// `text` as it may be drawn in one line.
pub(crate) fn one_line(text: &str) -> String {
    clean(text).replace('\n', "⏎")
}

/// Characters that show as nothing, or change how others show, beyond those that the hub escapes.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
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
        let zalgo = format!("e{}", "\u{301}".repeat(1000));
        let shown = clean(&zalgo);
        assert_eq!(shown.matches('\u{301}').count(), MARKS);
        assert_eq!(one_line("a\nb"), "a⏎b");
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
