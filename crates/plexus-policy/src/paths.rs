//! Path patterns of rules, and the files that a path in a call denotes. Only this module accesses the file system, and
//! it only resolves symbolic links.

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

use globset::{Glob, GlobBuilder};

/// The pattern of a path rule, in the style of a `.gitignore` line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PathPattern {
    anchor: Anchor,
    /// Without its anchor and without `/` at either end.
    glob: String,
}

/// What a pattern is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Anchor {
    /// `//`: the root of the file system.
    Root,
    /// `~/`
    Home,
    /// `/` or `./`: the project directory itself.
    Base,
    /// No prefix: the project directory; a single name matches at any depth in it.
    Below,
}

/// How far below its base folder a pattern can match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// At the path that it names.
    Fixed,
    /// At any depth.
    Any,
}

impl Depth {
    /// A pattern without a slash matches at any depth.
    fn of(glob: &str) -> Self {
        if glob.contains('/') { Self::Fixed } else { Self::Any }
    }
}

impl PathPattern {
    pub(crate) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let (anchor, skipped) = match text {
            _ if text.starts_with("//") => (Anchor::Root, 2),
            "~" => (Anchor::Home, 1),
            _ if text.starts_with("~/") => (Anchor::Home, 2),
            _ if text.starts_with('~') => {
                return Err((1, "`/` (a rule can only name your own home directory)".into()));
            }
            _ if text.starts_with("./") => (Anchor::Base, 2),
            "." => (Anchor::Base, 1),
            _ if text.starts_with('/') => (Anchor::Base, 1),
            _ if text.starts_with('!') => return Err((0, "a path (a rule cannot exclude paths)".into())),
            _ => (Anchor::Below, 0),
        };
        let rest = &text[skipped..];
        let mut at = skipped;
        for component in rest.split('/') {
            if component == ".." || component == "." {
                return Err((at, "a path without `.` and `..`".into()));
            }
            if component.is_empty() && at != skipped && at < text.len() {
                return Err((at, "a path without `//`".into()));
            }
            at += component.len() + 1;
        }
        // A lone `*` in the parentheses would match the whole tool.
        let glob = match rest.trim_matches('/') {
            "*" if anchor == Anchor::Below => "**".to_owned(),
            glob => glob.to_owned(),
        };
        let pattern = Self { anchor, glob };
        if pattern.anchor == Anchor::Below && pattern.glob.is_empty() {
            return Err((0, "a path".into()));
        }
        match compile(&pattern.glob) {
            Ok(_) => Ok(pattern),
            Err(error) => Err((skipped, format!("a valid pattern ({})", error.kind()))),
        }
    }

    pub(crate) fn is_absolute(&self) -> bool {
        self.anchor == Anchor::Root
    }

    pub(crate) fn anchored(&self, base: &Path, home: Option<&Path>) -> Self {
        self.below(base, home, Depth::of(&self.glob))
    }

    /// The anchoring that Claude Code uses for deny and ask rules: `src/**` matches any `src`.
    pub(crate) fn anchored_widely(&self, base: &Path, home: Option<&Path>) -> Self {
        let folder = self.glob.strip_suffix("/**").unwrap_or(&self.glob);
        self.below(base, home, Depth::of(folder))
    }

    fn below(&self, base: &Path, home: Option<&Path>, depth: Depth) -> Self {
        let folder = match (self.anchor, home) {
            (Anchor::Root, _) | (Anchor::Home, None) => return self.clone(),
            (Anchor::Home, Some(home)) => home,
            (Anchor::Base | Anchor::Below, _) => base,
        };
        // The creator of the rule chose the folder, so its current target is what the rule refers to.
        let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| lexical(folder));
        let Some(folder) = folder.to_str() else { return self.clone() };
        let mut glob = escape(folder.trim_matches('/'));
        let middle = if depth == Depth::Any && self.anchor == Anchor::Below { "**" } else { "" };
        for part in [middle, &self.glob] {
            if !part.is_empty() {
                if !glob.is_empty() {
                    glob.push('/');
                }
                glob.push_str(part);
            }
        }
        Self { anchor: Anchor::Root, glob }
    }

    /// The globs for this pattern and everything below it; none while it is not anchored.
    pub(crate) fn globs(&self) -> Result<Vec<Glob>, globset::Error> {
        if !self.is_absolute() {
            return Ok(Vec::new());
        }
        let mut globs = vec![compile(&format!("/{}", self.glob))?];
        if !self.glob.ends_with("/**") && self.glob != "**" {
            globs.push(compile(&if self.glob.is_empty() {
                "/**".to_owned()
            } else {
                format!("/{}/**", self.glob)
            })?);
        }
        Ok(globs)
    }

    /// The folder that contains every path it matches.
    pub(crate) fn literal_folder(&self) -> PathBuf {
        let mut folder = PathBuf::from("/");
        for component in self.glob.split('/') {
            if component.contains(['*', '?', '[']) {
                break;
            }
            folder.push(component.replace('\\', ""));
        }
        folder
    }

    /// The last component that is a plain name: every matching path contains it. Empty if no component is one.
    pub(crate) fn required_name(&self) -> String {
        let plain = |part: &&str| !part.contains(['*', '?', '[']);
        self.glob.split('/').rfind(plain).map(|part| part.replace('\\', "")).unwrap_or_default()
    }

    /// The same pattern, below the current target of its literal part.
    pub(crate) fn resolved(&self) -> Option<Self> {
        let folder = self.literal_folder();
        let real = resolve(&folder).ok().filter(|real| *real != folder)?;
        let depth = folder.components().count() - 1;
        let rest: Vec<&str> = self.glob.split('/').skip(depth).collect();
        let mut glob = escape(real.to_str()?.trim_matches('/'));
        if !rest.is_empty() {
            glob = format!("{glob}/{}", rest.join("/"));
        }
        Some(Self { anchor: Anchor::Root, glob })
    }

    pub(crate) fn is_within(&self, wide: &Self) -> bool {
        if self == wide {
            return true;
        }
        let folder = wide.glob.strip_suffix("/**").unwrap_or(&wide.glob);
        let plain = self.is_absolute() && wide.is_absolute() && !folder.contains(['*', '?', '[']);
        plain
            && (wide.glob == "**"
                || wide.glob.is_empty()
                || self.glob.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let anchor = match self.anchor {
            Anchor::Root => "//",
            Anchor::Home => "~/",
            Anchor::Base => "./",
            Anchor::Below => "",
        };
        write!(f, "{anchor}{}", self.glob)
    }
}

/// Braces have no meaning in a `.gitignore`.
fn compile(glob: &str) -> Result<Glob, globset::Error> {
    let mut text = String::with_capacity(glob.len());
    let mut escaped = false;
    for c in glob.chars() {
        if matches!(c, '{' | '}' | ',') && !escaped {
            text.push('\\');
        }
        escaped = c == '\\' && !escaped;
        text.push(c);
    }
    GlobBuilder::new(&text).literal_separator(true).backslash_escape(true).build()
}

fn escape(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for c in path.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '{' | '}' | ',' | '!') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// The files that a path in a call denotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The path as written, with `..` removed lexically.
    pub(crate) lexical: PathBuf,
    /// The target of that path, and the target if `..` follows links, as in a shell.
    pub(crate) real: Vec<PathBuf>,
}

/// Resolves `path` relative to `cwd`; `None` if the target cannot be known.
pub(crate) fn target(path: &Path, cwd: &Path) -> Option<Target> {
    let raw = cwd.join(path);
    if !raw.is_absolute() || raw.as_os_str().as_encoded_bytes().contains(&0) {
        return None;
    }
    let lexical = lexical(&raw);
    let mut real = vec![resolve(&lexical).ok()?];
    if raw.components().any(|component| component == Component::ParentDir) {
        let through_links = resolve(&raw).ok()?;
        if !real.contains(&through_links) {
            real.push(through_links);
        }
    }
    Some(Target { lexical, real })
}

/// A path without `.` and `..`, computed lexically.
pub(crate) fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

/// The maximum number of symbolic links to follow.
const MAX_LINKS: usize = 40;

/// The target of a path, even if its last components do not exist yet. A dangling link is followed too.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    resolve_with(path, MAX_LINKS)
}

fn resolve_with(path: &Path, links: usize) -> io::Result<PathBuf> {
    match std::fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        done => return done,
    }
    let (Some(parent), Some(Component::Normal(name))) = (path.parent(), path.components().next_back()) else {
        // `missing/..` has no well-defined target.
        return Err(io::ErrorKind::NotFound.into());
    };
    let path = resolve_with(parent, links)?.join(name);
    match std::fs::read_link(&path) {
        Ok(to) if links > 0 => resolve_with(&path.with_file_name("").join(to), links - 1),
        Ok(_) => Err(io::ErrorKind::NotFound.into()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {
            Ok(path)
        }
        Err(error) => Err(error),
    }
}
