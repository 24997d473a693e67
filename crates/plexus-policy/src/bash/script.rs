//! The result of parsing a command line: its simple commands, the files it opens, and the remaining doubts. It is plain
//! data; `reader` creates it, `allow_wrappers` and `reach` examine it.

/// Everything that a command line may do, in source order.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Every simple command, at any nesting depth.
    pub(crate) parts: Vec<Part>,
    /// Every file that a redirection opens.
    pub(crate) redirects: Vec<Redirect>,
    /// Why the fields above may be incomplete.
    pub(crate) doubts: Vec<Doubt>,
}

impl Script {
    /// The number of its commands that may change the directory that relative paths start in.
    pub(crate) fn moves(&self) -> usize {
        let moves = |word: &Word| matches!(word.literal(), Some("cd" | "chdir" | "pushd" | "popd"));
        self.parts.iter().filter(|part| part.words.iter().any(moves)).count()
    }
}

/// One simple command: `NAME=value … word word …`. A part without words only assigns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Word>,
    /// The text of its here-document or here-string.
    pub(crate) stdin: Option<Word>,
}

/// `name=value`, before a command or alone.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) value: Word,
}

/// A file that a redirection opens.
#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) access: Access,
    pub(crate) target: Word,
}

/// How a redirection accesses its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Why the listed commands may be incomplete or misleading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Commands that are not among the parts may run.
    Unseen(&'static str),
    /// The words of the parts may not show what runs.
    Shifted(&'static str),
}

impl Doubt {
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Unseen(why) | Self::Shifted(why) => why,
        }
    }
}

/// One word after quote removal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pieces: Vec<Piece>,
    expansion: Expansion,
    /// The rest of the word is unknown.
    blurred: bool,
    /// Some of it comes from a variable or a command, and not only from a file name pattern.
    computed: bool,
    /// The source text, if the word contains a file name pattern or braces.
    pattern: Option<String>,
}

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Exactly this text.
    Text(String),
    /// The home directory (`~`).
    Home,
    /// Unknown before the command runs.
    Any,
}

/// What a word with unknown pieces may expand to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Expansion {
    /// One word.
    #[default]
    One,
    /// Possibly several words, each of which starts with the known text.
    Each,
    /// Possibly several words or none; the later ones are unknown.
    Many,
}

impl Word {
    pub(crate) fn text(text: &str) -> Self {
        Self { pieces: vec![Piece::Text(text.to_owned())], ..Self::default() }
    }

    /// One or several words of which nothing is known.
    pub(crate) fn unknown() -> Self {
        Self { pieces: vec![Piece::Any], expansion: Expansion::Many, computed: true, ..Self::default() }
    }

    /// Marks the rest of the word as unknown, whatever is pushed later.
    pub(crate) fn blur(&mut self) {
        self.push(Piece::Any, Expansion::One);
        self.blurred = true;
    }

    pub(crate) fn push_str(&mut self, text: &str) {
        if self.blurred {
            return;
        }
        match self.pieces.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }

    pub(crate) fn push(&mut self, piece: Piece, expansion: Expansion) {
        let piece_is_computed = piece == Piece::Any && expansion != Expansion::Each;
        if !self.blurred && (piece != Piece::Any || self.pieces.last() != Some(&Piece::Any)) {
            self.pieces.push(piece);
        }
        self.computed |= piece_is_computed;
        self.expansion = self.expansion.max(expansion);
    }

    /// Whether some of it comes from a variable or a command: such a piece may contain any path.
    pub(crate) fn is_computed(&self) -> bool {
        self.computed
    }

    /// The source text, with its quotes, of a word that contains a file name pattern or braces.
    pub(crate) fn pattern(&self) -> Option<&str> {
        self.pattern.as_deref()
    }

    pub(crate) fn set_pattern(&mut self, source: &str) {
        self.pattern = Some(source.to_owned());
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    pub(crate) fn expansion(&self) -> Expansion {
        self.expansion
    }

    /// The word, if all of it is known.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The text that it certainly starts with.
    pub(crate) fn known_start(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Text(text)) => text,
            _ => "",
        }
    }
}

/// The last component of a command's name: `rm` for `/bin/rm`.
pub(crate) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
