//! What a command line comes to once it is read: the simple commands in it, the files it opens, and the doubts that
//! remain. Plain data; `reader` makes it, `unwrap` and `reach` look at it.

/// Everything that a command line may do, in the order it is written.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Every simple command, however deep it stands.
    pub(crate) parts: Vec<Part>,
    /// Every file that is opened by a redirection.
    pub(crate) redirects: Vec<Redirect>,
    /// What keeps the words above from being the whole story.
    pub(crate) doubts: Vec<Doubt>,
}

impl Script {
    /// How many of its commands may change the directory that relative paths begin in.
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
    /// What a here-document or here-string gives it to read.
    pub(crate) stdin: Option<Word>,
}

/// `name=value` before a command or alone.
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

/// What a redirection does to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Why the commands that are written down are not all there is to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Commands may run that are not among the parts.
    Unseen(&'static str),
    /// The words of the parts may not mean what they say.
    Shifted(&'static str),
}

impl Doubt {
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Unseen(why) | Self::Shifted(why) => why,
        }
    }
}

/// One word after quotes are removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pieces: Vec<Piece>,
    expansion: Expansion,
    /// Nothing is known of what follows.
    blurred: bool,
    /// Some of it comes from a variable or a command, and not only from a pattern of file names.
    computed: bool,
}

/// A stretch of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Exactly this.
    Text(String),
    /// The home directory (`~`).
    Home,
    /// Nobody knows before it runs.
    Any,
}

/// What may become of a word that is not all text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Expansion {
    /// It stays one word.
    #[default]
    One,
    /// It may become several, all of which begin with what is known.
    Each,
    /// It may become several or none, and nothing is known of the later ones.
    Many,
}

impl Word {
    pub(crate) fn text(text: &str) -> Self {
        Self { pieces: vec![Piece::Text(text.to_owned())], ..Self::default() }
    }

    /// A word, or several, of which nothing is known.
    pub(crate) fn unknown() -> Self {
        Self { pieces: vec![Piece::Any], expansion: Expansion::Many, computed: true, ..Self::default() }
    }

    /// Makes the rest of the word unknown, whatever is pushed.
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

    /// Whether some of it comes from a variable or a command: such a part may hold any path.
    pub(crate) fn is_computed(&self) -> bool {
        self.computed
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    pub(crate) fn expansion(&self) -> Expansion {
        self.expansion
    }

    /// The word, where all of it is known.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The text it certainly begins with.
    pub(crate) fn known_start(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Text(text)) => text,
            _ => "",
        }
    }
}

/// The last component of a command's name: `rm` of `/bin/rm`.
pub(crate) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
