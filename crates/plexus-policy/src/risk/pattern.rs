//! Braces and file name patterns in words: which words and names a shell may create from them.

use super::file_table::NOT_CREDENTIALS;
use crate::bash::{self, Word};
use crate::wildcard::name_matches;

/// The maximum number of words that one word with braces becomes.
const MAX_WORDS: usize = 64;
/// Longer names are not compared with patterns.
const MAX_NAME: usize = 100;

/// The words that a word becomes by its braces: `{a,b}/c` is `a/c` and `b/c`.
pub(super) fn expanded(word: &Word) -> Vec<Word> {
    let Some(source) = word.pattern().filter(|source| source.contains('{')) else {
        return vec![word.clone()];
    };
    let mut done = Vec::new();
    let mut open = vec![source.to_owned()];
    while let Some(source) = open.pop() {
        match first_braces(&source) {
            Some((before, alternatives, behind)) if open.len() + done.len() < MAX_WORDS => {
                let whole = alternatives.iter().rev().map(|one| format!("{before}{one}{behind}"));
                open.extend(whole);
            }
            _ => done.push(source),
        }
    }
    let text = format!("x {}", done.join(" "));
    match bash::read(&text, 0) {
        Ok(mut script) if !script.parts.is_empty() => script.parts.swap_remove(0).words.split_off(1),
        _ => vec![word.clone()],
    }
}

/// The first braces with a comma, outside quotes: the text before them, the alternatives, the text after them.
fn first_braces(source: &str) -> Option<(&str, Vec<&str>, &str)> {
    let bytes = source.as_bytes();
    let mut opened: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut quote = None;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (quote, byte) {
            (Some(open), byte) if open == *byte => quote = None,
            (Some(_), _) => {}
            (None, b'\\') => at += 1,
            (None, b'\'' | b'"') => quote = Some(*byte),
            (None, b'{') => opened.push((at, Vec::new())),
            (None, b',') => {
                if let Some((_, commas)) = opened.last_mut() {
                    commas.push(at);
                }
            }
            (None, b'}') => {
                if let Some((start, commas)) = opened.pop()
                    && !commas.is_empty()
                    && !source[..start].ends_with('$')
                {
                    let mut from = start + 1;
                    let mut alternatives = Vec::new();
                    for comma in commas.into_iter().chain([at]) {
                        alternatives.push(&source[from..comma]);
                        from = comma + 1;
                    }
                    return Some((&source[..start], alternatives, &source[at + 1..]));
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether a file name pattern is likely meant for one of these names. A pattern such as `*.json` also matches some of them, but
/// is too common for a mark.
pub(super) fn may_match_any(glob: &str, names: &[&str]) -> bool {
    if !is_pattern(glob) || NOT_CREDENTIALS.iter().any(|name| name_matches(name, glob)) {
        return false;
    }
    let extension = |name: &str| name.rsplit_once('.').map(|(_, end)| end.to_owned());
    names.iter().filter(|name| !name.contains('/')).any(|name| {
        if glob.starts_with('.') && !name.starts_with('*') || !glob.contains('*') {
            return meet(glob, name);
        }
        // `*.pe?`
        match (extension(glob), name.strip_prefix("*.")) {
            (Some(end), Some(name)) => is_pattern(&end) && !end.contains('*') && meet(&end, name),
            _ => false,
        }
    })
}

/// Whether a file name pattern without `*` matches `..`.
pub(super) fn may_match_parent(glob: &str) -> bool {
    is_pattern(glob) && !glob.contains('*') && glob.starts_with('.') && meet(glob, "..")
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '[']) && !name.contains(['$', '`']) && name.len() <= MAX_NAME
}

/// One place in a pattern.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Any text.
    Any,
    /// Any character, as of `?` and `[…]`.
    One,
    Char(char),
}

/// Whether a name exists that both patterns match. A set `[…]` counts as any character.
fn meet(a: &str, b: &str) -> bool {
    let (a, b) = (places(a), places(b));
    // `reached[j]`: the first `i` places of `a` and the first `j` of `b` can match the same text.
    let mut reached = vec![vec![false; b.len() + 1]; a.len() + 1];
    reached[0][0] = true;
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            if !reached[i][j] {
                continue;
            }
            let (left, right) = (a.get(i).copied(), b.get(j).copied());
            if left == Some(Place::Any) {
                reached[i + 1][j] = true;
            }
            if right == Some(Place::Any) {
                reached[i][j + 1] = true;
            }
            match (left, right) {
                (Some(Place::Any), Some(right)) if right != Place::Any => reached[i][j + 1] = true,
                (Some(left), Some(Place::Any)) if left != Place::Any => reached[i + 1][j] = true,
                (Some(Place::Char(left)), Some(Place::Char(right))) if left != right => {}
                (Some(left), Some(right)) if left != Place::Any && right != Place::Any => {
                    reached[i + 1][j + 1] = true;
                }
                _ => {}
            }
        }
    }
    reached[a.len()][b.len()]
}

fn places(pattern: &str) -> Vec<Place> {
    let mut places = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        places.push(match c {
            '*' => Place::Any,
            '?' => Place::One,
            '[' => {
                chars.by_ref().skip(1).find(|c| *c == ']');
                Place::One
            }
            c => Place::Char(c),
        });
    }
    places
}
