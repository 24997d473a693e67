//! The files of the web console, built from `ui/` and embedded in the program. If Node was missing when the program was
//! built, the only file is a page that says so. `plexus-server` serves the files.

use std::borrow::Cow;
use std::io::{self, Read as _};

use flate2::read::GzDecoder;
use rust_embed::{EmbeddedFile, RustEmbed};

#[derive(RustEmbed)]
#[folder = "$OUT_DIR/dist"]
struct Built;

/// Why this program has no console; empty if it has one.
const MISSING: &str = env!("PLEXUS_CONSOLE_MISSING");

/// The page that replaces a missing console.
const STAND_IN: &str = include_str!("missing.html");

/// A file of the console.
#[derive(Debug, Clone)]
pub struct File {
    /// Its content.
    pub content: Content,
    /// Its media type.
    pub media_type: &'static str,
    /// Whether its name changes with its content.
    pub immutable: bool,
}

/// The content of a file. The program contains it once, compressed if that is smaller.
#[derive(Debug, Clone)]
pub enum Content {
    /// As it is.
    Plain(Cow<'static, [u8]>),
    /// Compressed with gzip.
    Gzip(Cow<'static, [u8]>),
}

impl Content {
    /// The content for a reader that does not accept gzip.
    ///
    /// # Errors
    /// If it cannot be decompressed.
    pub fn into_plain(self) -> io::Result<Cow<'static, [u8]>> {
        match self {
            Self::Plain(content) => Ok(content),
            Self::Gzip(compressed) => {
                let mut content = Vec::new();
                GzDecoder::new(&*compressed).read_to_end(&mut content)?;
                Ok(Cow::Owned(content))
            }
        }
    }
}

/// The file at this path, which has no leading slash. `index.html` always exists.
pub fn file(path: &str) -> Option<File> {
    if path.ends_with(".gz") {
        return None;
    }
    let data = |EmbeddedFile { data, .. }| data;
    let compressed = Built::get(&format!("{path}.gz")).map(data).map(Content::Gzip);
    let Some(content) = compressed.or_else(|| Built::get(path).map(data).map(Content::Plain)) else {
        return (path == "index.html").then(|| File {
            content: Content::Plain(Cow::Owned(stand_in(MISSING).into_bytes())),
            media_type: "text/html; charset=utf-8",
            immutable: false,
        });
    };
    Some(File { content, media_type: media_type(path)?, immutable: path.starts_with("assets/") })
}

/// Why this program has no console, if it has none.
pub fn missing() -> Option<&'static str> {
    (!MISSING.is_empty()).then_some(MISSING)
}

/// The media type of each kind of file in a build. No other file is served.
fn media_type(path: &str) -> Option<&'static str> {
    Some(match path.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "webmanifest" => "application/manifest+json",
        _ => return None,
    })
}

fn stand_in(why: &str) -> String {
    let why = why.replace('&', "&amp;").replace('<', "&lt;");
    STAND_IN.replace("{{why}}", &why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_page_always_exists_and_other_files_are_not_served() {
        let page = file("index.html").unwrap();
        let content = page.content.into_plain().unwrap();
        assert!(page.media_type.starts_with("text/html") && content.starts_with(b"<!doctype html>"));
        assert!(file("../Cargo.toml").is_none() && file("index.html.gz").is_none() && file("").is_none());
    }

    #[test]
    fn a_program_without_a_console_says_how_to_get_one() {
        let page = stand_in("npm is not installed <here>");
        assert!(page.contains("npm is not installed &lt;here>") && page.contains("cargo build"), "{page}");
    }
}
