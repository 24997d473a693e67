//! Patterns in which `*` stands for anything: over names, and over the words of a command.

use crate::bash::{Piece, Suspect, Word, base_name};

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

/// The words of a command as far as they are known.
#[derive(Debug)]
pub(crate) struct KnownLine {
    text: String,
    rest: Rest,
}

/// What follows what is known.
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

    /// Whether something unknown follows.
    pub(crate) fn is_open(&self) -> bool {
        self.rest == Rest::Unknown
    }

    /// Its words, where all of them are known.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.text.split(BETWEEN)
    }

    /// The same with the command's bare name, where it is given by its path: `/bin/rm` is `rm`.
    fn by_base_name(&self) -> Option<&str> {
        let name = self.text.split(BETWEEN).next()?;
        name.rfind('/').map(|slash| &self.text[slash + 1..])
    }
}

impl CommandPattern {
    /// Whether every command that the line may turn out to be is meant.
    pub(crate) fn covers(&self, line: &KnownLine) -> bool {
        self.covers_text(&line.text, line.rest)
    }

    fn covers_text(&self, text: &str, rest: Rest) -> bool {
        let [first, others @ ..] = self.segments.as_slice() else { return false };
        let Some(behind) = text.strip_prefix(first.as_str()) else { return false };
        match (self.tail, others) {
            (Tail::End, []) => behind.is_empty() && rest == Rest::Nothing,
            // What is unknown has to lie within a wildcard at the end.
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

    /// The segments when at least one further word follows.
    fn with_more_words(&self) -> Vec<String> {
        let mut segments = self.segments.clone();
        if let Some(last) = segments.last_mut() {
            last.push(BETWEEN);
        }
        segments.push(String::new());
        segments
    }

    /// Whether it may be meant by some of the operands of a command that runs them.
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

    /// Whether it leaves open which command it means, and this word of one as well: `* --version` means no `rm x --version`.
    pub(crate) fn leaves_open(&self, word: &Word) -> bool {
        let spelled =
            |word: &str| self.segments.iter().flat_map(|text| text.split(BETWEEN)).any(|w| w == word);
        self.segments.first().is_some_and(String::is_empty)
            && word.literal().is_none_or(|word| !word.starts_with('-') && !spelled(word))
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

    /// Whether some command that the line may turn out to be is meant; `words` are all of its words if it is open.
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

    /// Whether what is known of a line does not rule the pattern out at once.
    fn could_begin(&self, text: &str) -> bool {
        // A word that may come to nothing takes the blank before it along.
        let text = text.strip_suffix(BETWEEN).unwrap_or(text);
        self.segments.first().is_some_and(|first| first.starts_with(text) || text.starts_with(first.as_str()))
    }

    fn could_become(&self, words: &[Word]) -> bool {
        possible(&self.segments, words)
            || self.tail == Tail::Words && possible(&self.with_more_words(), words)
    }
}

/// How much of a command is compared letter by letter; what follows is taken for anything.
const COMPARED: usize = 1024;

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
    let mut compared = 0;
    for (at, word) in words.iter().enumerate() {
        if compared > COMPARED {
            return places.contains(&true);
        }
        // A word that may come to nothing takes the blank before it along.
        if at > 0 && !matches!(word.pieces(), [Piece::Any]) {
            step(&signs, &mut places, 0);
        }
        for piece in word.pieces() {
            match piece {
                Piece::Text(text) => {
                    compared += text.len();
                    text.bytes().take(COMPARED).for_each(|byte| step(&signs, &mut places, byte));
                }
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
