//! Text in columns: cut and wrapped by how wide it is drawn. What others wrote is made harmless on the way, as everywhere on
//! a terminal (`crate::terminal`).

use unicode_width::UnicodeWidthChar as _;

use crate::terminal::safe;

/// What a tab is shown as.
const TAB: &str = "    ";

/// `text` as it may be drawn, its lines still apart.
pub(crate) fn clean(text: &str) -> String {
    safe(text).replace('\t', TAB)
}

/// `text` as it may be drawn in one line.
pub(crate) fn one_line(text: &str) -> String {
    clean(text).replace('\n', "⏎")
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
    fn lines_are_cut_by_columns_not_by_bytes() {
        assert_eq!(wrap("aあい", 3), ["aあ", "い"]);
        assert_eq!(wrap("", 3), [""]);
        assert_eq!(cut("あいう", 4), "あ…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(wrap(&"x".repeat(1_000_000), 80).len(), 12_500);
    }
}
