//! Patterns in which `*` stands for anything: over names, and over the words of a command.

use crate::bash::{Piece, Word};

/// What separates the words of a command when they are compared: no word can hold it.
pub(crate) const BETWEEN: char = '\0';

/// Whether a text is what the segments say, with anything at all between two of them.
pub(crate) fn matches(segments: &[impl AsRef<str>], text: &str) -> bool {
    let [first, middle @ .., last] = segments else {
        return segments.first().is_some_and(|only| only.as_ref() == text);
    };
    let Some(mut rest) = text.strip_prefix(first.as_ref()) else { return false };
    for segment in middle {
        let Some(at) = rest.find(segment.as_ref()) else { return false };
        rest = &rest[at + segment.as_ref().len()..];
    }
    rest.ends_with(last.as_ref())
}

/// Whether a name fits a pattern with `*` in it.
pub(crate) fn name_matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains('*') {
        return pattern == name;
    }
    let segments: Vec<&str> = pattern.split('*').collect();
    matches(&segments, name)
}

/// How surely something is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Certainty {
    No,
    Maybe,
    Yes,
}

/// The specifier of a Bash rule: words, with `*` for anything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CommandPattern {
    /// What stands between the wildcards, words apart by [`BETWEEN`].
    pub(crate) segments: Vec<String>,
    pub(crate) tail: Tail,
}

/// What may follow the last segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tail {
    /// Nothing.
    End,
    /// Any number of further words (`:*` or ` *` at the end).
    Words,
}

/// The words of a command as far as they are known, for an allow rule.
#[derive(Debug)]
pub(crate) struct KnownLine {
    text: String,
    /// Whether something unknown follows.
    open: bool,
}

impl KnownLine {
    pub(crate) fn new(words: &[Word]) -> Self {
        let mut text = String::new();
        for (at, word) in words.iter().enumerate() {
            if at > 0 {
                text.push(BETWEEN);
            }
            for piece in word.pieces() {
                match piece {
                    Piece::Text(known) => text.push_str(known),
                    Piece::Home | Piece::Any => return Self { text, open: true },
                }
            }
        }
        Self { text, open: false }
    }
}

impl CommandPattern {
    /// Whether every command that the line may turn out to be is meant.
    pub(crate) fn covers(&self, line: &KnownLine) -> bool {
        let simple = self.segments.len() == 1;
        let first = self.segments.first().map_or("", String::as_str);
        match self.tail {
            // What is unknown has to lie within a wildcard at the end.
            Tail::End if line.open => {
                !simple
                    && self.segments.last().is_some_and(String::is_empty)
                    && matches(&self.segments, &line.text)
            }
            Tail::End => matches(&self.segments, &line.text),
            Tail::Words if simple => match line.text.strip_prefix(first) {
                Some("") => !line.open,
                Some(rest) => rest.starts_with(BETWEEN),
                None => false,
            },
            Tail::Words => {
                !line.open && matches(&self.segments, &line.text)
                    || matches(&self.with_more_words(), &line.text)
            }
        }
    }

    /// The segments when at least one further word follows.
    fn with_more_words(&self) -> Vec<String> {
        let mut segments = self.segments.clone();
        if let Some(last) = segments.last_mut() {
            last.push(BETWEEN);
        }
        segments.push(String::new());
        segments
    }

    /// How many words it names in full, before any wildcard.
    pub(crate) fn named_words(&self) -> usize {
        let words = self.segments.first().map_or(0, |first| first.matches(BETWEEN).count());
        match (self.segments.len(), self.tail) {
            (1, Tail::End) => usize::MAX,
            (1, Tail::Words) => words + 1,
            _ => words,
        }
    }

    /// Whether some command that the words may turn out to be is meant.
    pub(crate) fn may_match(&self, words: &[Word]) -> Certainty {
        let line = KnownLine::new(words);
        if !line.open {
            return if self.covers(&line) { Certainty::Yes } else { Certainty::No };
        }
        if self.covers(&line) {
            return Certainty::Yes;
        }
        let more = self.with_more_words();
        let ends: &[String] = &self.segments;
        let possible = possible(ends, words) || self.tail == Tail::Words && possible(&more, words);
        if possible { Certainty::Maybe } else { Certainty::No }
    }
}

/// One character of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Byte(u8),
    Star,
}

/// Whether words with unknown pieces can become what the segments say.
fn possible(segments: &[String], words: &[Word]) -> bool {
    let mut signs = Vec::new();
    for (at, segment) in segments.iter().enumerate() {
        if at > 0 {
            signs.push(Sign::Star);
        }
        signs.extend(segment.bytes().map(Sign::Byte));
    }
    // Which places of the pattern can be reached with what was read so far.
    let mut places = vec![false; signs.len() + 1];
    places[0] = true;
    skip_stars(&signs, &mut places);
    for (at, word) in words.iter().enumerate() {
        // A word that may come to nothing takes the blank before it along.
        if at > 0 && !matches!(word.pieces(), [Piece::Any]) {
            step(&signs, &mut places, 0);
        }
        for piece in word.pieces() {
            match piece {
                Piece::Text(text) => text.bytes().for_each(|byte| step(&signs, &mut places, byte)),
                Piece::Home | Piece::Any => {
                    if let Some(first) = places.iter().position(|reached| *reached) {
                        places[first..].fill(true);
                    }
                }
            }
        }
        if !places.contains(&true) {
            return false;
        }
    }
    places[signs.len()]
}

fn step(signs: &[Sign], places: &mut [bool], byte: u8) {
    for at in (0..places.len()).rev() {
        let stays = places[at] && signs.get(at) == Some(&Sign::Star);
        let comes = at > 0 && places[at - 1] && signs[at - 1] == Sign::Byte(byte);
        places[at] = stays || comes;
    }
    skip_stars(signs, places);
}

fn skip_stars(signs: &[Sign], places: &mut [bool]) {
    for (at, sign) in signs.iter().enumerate() {
        if places[at] && *sign == Sign::Star {
            places[at + 1] = true;
        }
    }
}
