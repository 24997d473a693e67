//! Cuts and wraps escaped text (`crate::escape`) by its display width.

use unicode_width::UnicodeWidthChar as _;

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

/// Cuts an escaped line at blanks into pieces of at most `width` columns. A longer word is cut.
pub(crate) fn wrap_words(line: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let used = pieces.last().map_or(0, |piece| columns(piece));
        let room = width.saturating_sub(used + usize::from(used > 0));
        if columns(word) <= room {
            if let Some(piece) = pieces.last_mut() {
                piece.push_str(if used > 0 { " " } else { "" });
                piece.push_str(word);
            }
            continue;
        }
        pieces.pop_if(|piece| piece.is_empty());
        pieces.extend(wrap(word, width));
    }
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
    fn lines_are_cut_by_columns_not_by_bytes() {
        assert_eq!(wrap("aあい", 3), ["aあ", "い"]);
        assert_eq!(wrap("", 3), [""]);
        assert_eq!(wrap_words("ab cd  efghijk l", 5), ["ab cd", "efghi", "jk l"]);
        assert_eq!(wrap_words("", 5), [""]);
        assert_eq!(wrap("→→→", 4), ["→→", "→"], "wherever these are two columns wide");
        assert_eq!(cut("あいう", 4), "あ…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!([end("abc", 2), end("aあ", 2), end("aあ", 1), end("abc", 9)], ["bc", "あ", "", "abc"]);
        assert_eq!(wrap(&"x".repeat(1_000_000), 80).len(), 12_500);
    }
}
