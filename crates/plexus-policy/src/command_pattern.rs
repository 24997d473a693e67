//! The pattern of a Bash rule, compared with the words of a command. `*` matches anything; `wildcard` compares plain text.

use crate::bash::{Piece, Suspect, Word, base_name};
use crate::wildcard::matches;

/// Separates the words of a command during a comparison: no word can contain it.
pub(crate) const BETWEEN: char = '\0';

/// How certain a match is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Certainty {
    No,
    Maybe,
    Yes,
}

/// The specifier of a Bash rule: words, with `*` for anything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CommandPattern {
    /// The text between the wildcards, with words separated by [`BETWEEN`].
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

/// The known words of a command.
#[derive(Debug)]
pub(crate) struct KnownLine {
    text: String,
    rest: Rest,
}

/// What follows the known part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Nothing,
    Unknown,
}

impl KnownLine {
    pub(crate) fn new(words: &[Word]) -> Self {
        let mut text = String::with_capacity(words.len() * 12);
        for (at, word) in words.iter().enumerate() {
            if at > 0 {
                text.push(BETWEEN);
            }
            for piece in word.pieces() {
                match piece {
                    Piece::Text(known) => text.push_str(known),
                    Piece::Home | Piece::Any => return Self { text, rest: Rest::Unknown },
                }
            }
        }
        Self { text, rest: Rest::Nothing }
    }

    /// Whether an unknown part follows.
    pub(crate) fn is_open(&self) -> bool {
        self.rest == Rest::Unknown
    }

    /// Its words, if all of them are known.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.text.split(BETWEEN)
    }

    /// The same with the base name of a command given by its path: `/bin/rm` is `rm`.
    fn by_base_name(&self) -> Option<&str> {
        let name = self.text.split(BETWEEN).next()?;
        name.rfind('/').map(|slash| &self.text[slash + 1..])
    }
}

impl CommandPattern {
    /// Whether the pattern matches every command that the line may become.
    pub(crate) fn covers(&self, line: &KnownLine) -> bool {
        self.covers_text(&line.text, line.rest)
    }

    fn covers_text(&self, text: &str, rest: Rest) -> bool {
        let [first, others @ ..] = self.segments.as_slice() else { return false };
        let Some(behind) = text.strip_prefix(first.as_str()) else { return false };
        match (self.tail, others) {
            (Tail::End, []) => behind.is_empty() && rest == Rest::Nothing,
            // The unknown part must fall within a wildcard at the end.
            (Tail::End, [.., last]) => {
                (rest == Rest::Nothing || last.is_empty()) && matches(&self.segments, text)
            }
            (Tail::Words, []) => behind.starts_with(BETWEEN) || behind.is_empty() && rest == Rest::Nothing,
            (Tail::Words, _) => {
                rest == Rest::Nothing && matches(&self.segments, text)
                    || matches(&self.with_more_words(), text)
            }
        }
    }

    /// The segments if at least one further word follows.
    fn with_more_words(&self) -> Vec<String> {
        let mut segments = self.segments.clone();
        if let Some(last) = segments.last_mut() {
            last.push(BETWEEN);
        }
        segments.push(String::new());
        segments
    }

    /// Whether it may match some operands of a command that runs them.
    pub(crate) fn stands_in(&self, suspect: &Suspect) -> bool {
        let Some(first) = self.segments.first().filter(|first| !first.is_empty()) else { return false };
        suspect.starts.iter().any(|start| {
            let text = &suspect.text[*start..];
            match text.strip_prefix(first.as_str()) {
                Some(behind) => self.segments.len() > 1 || behind.is_empty() || behind.starts_with(BETWEEN),
                None => {
                    suspect.open && first.strip_prefix(text).is_some_and(|rest| rest.starts_with(BETWEEN))
                }
            }
        })
    }

    /// Whether a wildcard covers both the command name and this word: `* --version` does not match `rm x --version`.
    pub(crate) fn leaves_open(&self, word: &Word) -> bool {
        let spelled =
            |word: &str| self.segments.iter().flat_map(|text| text.split(BETWEEN)).any(|w| w == word);
        self.segments.first().is_some_and(String::is_empty)
            && word.literal().is_none_or(|word| !word.starts_with('-') && !spelled(word))
    }

    /// The number of words it names completely, before any wildcard.
    pub(crate) fn named_words(&self) -> usize {
        let words = self.segments.first().map_or(0, |first| first.matches(BETWEEN).count());
        match (self.segments.len(), self.tail) {
            (1, Tail::End) => usize::MAX,
            (1, Tail::Words) => words + 1,
            _ => words,
        }
    }

    /// Whether the pattern matches some command that the line may become; `words` are all of its words if it is open.
    pub(crate) fn may_match(&self, line: &KnownLine, words: &[Word]) -> Certainty {
        let by_base_name = line.by_base_name();
        if self.covers(line) || by_base_name.is_some_and(|text| self.covers_text(text, line.rest)) {
            return Certainty::Yes;
        }
        if line.rest == Rest::Nothing {
            return Certainty::No;
        }
        if self.could_begin(&line.text) && self.could_become(words) {
            return Certainty::Maybe;
        }
        if by_base_name.is_some_and(|text| self.could_begin(text)) {
            let mut words = words.to_vec();
            words[0] = Word::text(words[0].literal().map(base_name).unwrap_or_default());
            if self.could_become(&words) {
                return Certainty::Maybe;
            }
        }
        Certainty::No
    }

    /// Whether the known part of a line does not rule the pattern out immediately.
    fn could_begin(&self, text: &str) -> bool {
        // A word that may expand to nothing also removes the blank before it.
        let text = text.strip_suffix(BETWEEN).unwrap_or(text);
        self.segments.first().is_some_and(|first| first.starts_with(text) || text.starts_with(first.as_str()))
    }

    fn could_become(&self, words: &[Word]) -> bool {
        possible(&self.segments, words)
            || self.tail == Tail::Words && possible(&self.with_more_words(), words)
    }
}

/// How much of a command is compared exactly; the rest counts as unknown.
const COMPARED: usize = 1024;

/// One character of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Byte(u8),
    Star,
}

/// Whether words with unknown pieces can expand to the segments.
fn possible(segments: &[String], words: &[Word]) -> bool {
    let mut signs = Vec::new();
    for (at, segment) in segments.iter().enumerate() {
        if at > 0 {
            signs.push(Sign::Star);
        }
        signs.extend(segment.bytes().map(Sign::Byte));
    }
    // The pattern positions that are reachable with the input so far.
    let mut reached = vec![false; signs.len() + 1];
    reached[0] = true;
    skip_stars(&signs, &mut reached);
    let mut compared = 0;
    for (at, word) in words.iter().enumerate() {
        if compared > COMPARED {
            return reached.contains(&true);
        }
        // A word that may expand to nothing also removes the blank before it.
        if at > 0 && !matches!(word.pieces(), [Piece::Any]) {
            step(&signs, &mut reached, 0);
        }
        for piece in word.pieces() {
            match piece {
                Piece::Text(text) => {
                    compared += text.len();
                    text.bytes().take(COMPARED).for_each(|byte| step(&signs, &mut reached, byte));
                }
                Piece::Home | Piece::Any => {
                    if let Some(first) = reached.iter().position(|reached| *reached) {
                        reached[first..].fill(true);
                    }
                }
            }
        }
        if !reached.contains(&true) {
            return false;
        }
    }
    reached[signs.len()]
}

fn step(signs: &[Sign], reached: &mut [bool], byte: u8) {
    for at in (0..reached.len()).rev() {
        let stays = reached[at] && signs.get(at) == Some(&Sign::Star);
        let comes = at > 0 && reached[at - 1] && signs[at - 1] == Sign::Byte(byte);
        reached[at] = stays || comes;
    }
    skip_stars(signs, reached);
}

fn skip_stars(signs: &[Sign], reached: &mut [bool]) {
    for (at, sign) in signs.iter().enumerate() {
        if reached[at] && *sign == Sign::Star {
            reached[at + 1] = true;
        }
    }
}
