//! Files of a prompt: their types, detected from their contents, and the limits on their number and size. The command line
//! applies the same checks before it sends a file to a hub.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The maximum number of files of one prompt.
pub const MAX_ATTACHMENTS: usize = 20;
/// The maximum size of an image. In base64 it has 5 MiB, the largest image that the model accepts.
pub const MAX_IMAGE_BYTES: usize = 3_932_160;
/// The maximum size of a text file.
pub const MAX_TEXT_FILE_BYTES: usize = 1024 * 1024;
/// The maximum size of all files of one prompt. In base64 they fit into a request of 16 MiB.
pub const MAX_ATTACHED_BYTES: usize = 10 * 1024 * 1024;
/// The maximum length of a file's name, in bytes.
pub const MAX_FILE_NAME_BYTES: usize = 255;

/// A file for a prompt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachmentGiven {
    /// The name of the file, without its directory.
    pub name: String,
    /// `image/png`, `image/jpeg`, `image/gif`, `image/webp`, `application/pdf` or `text/plain`.
    pub media_type: String,
    /// The contents, in base64.
    pub data: String,
}

/// A file of a prompt, without its contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachmentView {
    /// Its name.
    pub name: String,
    /// Its type.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
}

/// A type of file that a prompt can contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileType {
    /// A PNG image.
    Png,
    /// A JPEG image.
    Jpeg,
    /// A GIF image.
    Gif,
    /// A WebP image.
    Webp,
    /// A PDF document.
    Pdf,
    /// Text in UTF-8.
    Text,
}

/// How the model receives a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// As an image.
    Image,
    /// As a document.
    Document,
    /// As text.
    Text,
}

/// Why a file cannot be attached to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileProblem {
    /// Its type is not supported.
    UnknownType,
    /// It is too large.
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit for files of its type.
        limit: usize,
    },
    /// It is empty.
    Empty,
}

impl std::fmt::Display for FileProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownType => f.write_str(
                "is neither an image (PNG, JPEG, GIF, WebP) nor a PDF document nor text in UTF-8; only these can be attached",
            ),
            Self::TooLarge { bytes, limit } => {
                write!(f, "has {bytes} bytes; the maximum for a file of its type is {limit}")
            }
            Self::Empty => f.write_str("is empty"),
        }
    }
}

impl FileType {
    /// Detects the type of a file from its contents.
    pub fn detect(contents: &[u8]) -> Option<Self> {
        let magic: [(&[u8], Self); 5] = [
            (b"\x89PNG\r\n\x1a\n", Self::Png),
            (b"\xff\xd8\xff", Self::Jpeg),
            (b"GIF87a", Self::Gif),
            (b"GIF89a", Self::Gif),
            (b"%PDF-", Self::Pdf),
        ];
        if let Some((_, found)) = magic.into_iter().find(|(start, _)| contents.starts_with(start)) {
            return Some(found);
        }
        if contents.starts_with(b"RIFF") && contents.get(8..12) == Some(b"WEBP") {
            return Some(Self::Webp);
        }
        // A file with a NUL character is not text for a model.
        let is_text = !contents.contains(&0) && std::str::from_utf8(contents).is_ok();
        is_text.then_some(Self::Text)
    }

    /// The type of a file that a prompt can contain, from its contents.
    pub fn check(contents: &[u8]) -> Result<Self, FileProblem> {
        if contents.is_empty() {
            return Err(FileProblem::Empty);
        }
        let found = Self::detect(contents).ok_or(FileProblem::UnknownType)?;
        let (bytes, limit) = (contents.len(), found.limit());
        if bytes > limit { Err(FileProblem::TooLarge { bytes, limit }) } else { Ok(found) }
    }

    /// The type with this media type. Every kind of text is sent as plain text.
    pub fn named(media_type: &str) -> Option<Self> {
        let binary = [Self::Png, Self::Jpeg, Self::Gif, Self::Webp, Self::Pdf];
        let found = binary.into_iter().find(|found| found.media_type() == media_type);
        found.or_else(|| media_type.starts_with("text/").then_some(Self::Text))
    }

    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Pdf => "application/pdf",
            Self::Text => "text/plain",
        }
    }

    /// How the model receives it.
    pub fn kind(self) -> FileKind {
        match self {
            Self::Png | Self::Jpeg | Self::Gif | Self::Webp => FileKind::Image,
            Self::Pdf => FileKind::Document,
            Self::Text => FileKind::Text,
        }
    }

    /// The maximum size of such a file.
    pub fn limit(self) -> usize {
        match self.kind() {
            FileKind::Image => MAX_IMAGE_BYTES,
            FileKind::Document => MAX_ATTACHED_BYTES,
            FileKind::Text => MAX_TEXT_FILE_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contents_of_a_file_prove_its_type() {
        let cases: [(&[u8], Option<FileType>); 9] = [
            (b"\x89PNG\r\n\x1a\nrest", Some(FileType::Png)),
            (b"\xff\xd8\xff\xe0", Some(FileType::Jpeg)),
            (b"GIF89a...", Some(FileType::Gif)),
            (b"RIFF\x00\x00\x00\x00WEBPVP8 ", Some(FileType::Webp)),
            (b"%PDF-1.7\n", Some(FileType::Pdf)),
            ("# Grüße\n".as_bytes(), Some(FileType::Text)),
            (b"RIFF\x00\x00\x00\x00WAVEfmt ", None),
            (b"a\0b", None),
            (b"caf\xe9", None),
        ];
        for (contents, expected) in cases {
            assert_eq!(FileType::detect(contents), expected, "{contents:?}");
        }
    }

    #[test]
    fn a_file_is_bounded_by_its_type() {
        let mut image = b"\x89PNG\r\n\x1a\n".to_vec();
        image.resize(MAX_IMAGE_BYTES, 0);
        assert_eq!(FileType::check(&image), Ok(FileType::Png));
        image.push(0);
        let problem = FileType::check(&image).unwrap_err();
        assert_eq!(problem.to_string(), "has 3932161 bytes; the maximum for a file of its type is 3932160");
        assert_eq!(FileType::check(b""), Err(FileProblem::Empty));
        assert_eq!(FileType::check(b"\0"), Err(FileProblem::UnknownType));
    }

    #[test]
    fn a_type_has_the_name_that_the_model_knows() {
        for known in
            [FileType::Png, FileType::Jpeg, FileType::Gif, FileType::Webp, FileType::Pdf, FileType::Text]
        {
            assert_eq!(FileType::named(known.media_type()), Some(known));
        }
        assert_eq!(FileType::named("text/markdown"), Some(FileType::Text));
        assert_eq!(FileType::named("image/svg+xml"), None);
    }
}
