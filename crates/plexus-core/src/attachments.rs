//! The files of a prompt: checks what a caller gives, and converts them to the blocks of a conversation node and back. A node stores the
//! bytes once; every other part of the hub has only the names, types and sizes. The names and limits are in `plexus-protocol`.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plexus_claude::{AttachedFile, FileContents};
use plexus_protocol::{
    AttachmentGiven, AttachmentView, Error, ErrorKind, FileKind, FileType, MAX_ATTACHED_BYTES,
    MAX_ATTACHMENTS, MAX_FILE_NAME_BYTES, Principal,
};
use serde_json::{Value, json};

const FIELD: &str = "attachments";

/// The files of a prompt. Clones share the bytes.
pub(crate) type Attachments = Arc<[Attachment]>;

/// A file of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attachment {
    name: String,
    file_type: FileType,
    /// Its size.
    bytes: u64,
    /// The text of a text file; the base64 of other files.
    contents: String,
}

impl Attachment {
    /// What it is, without its contents.
    pub(crate) fn view(&self) -> AttachmentView {
        let media_type = self.file_type.media_type().to_owned();
        AttachmentView { name: self.name.clone(), media_type, bytes: self.bytes }
    }

    /// For a message to Claude Code.
    pub(crate) fn to_send(&self) -> AttachedFile<'_> {
        let contents = match self.file_type.kind() {
            FileKind::Image => {
                FileContents::Image { media_type: self.file_type.media_type(), data: &self.contents }
            }
            FileKind::Document => FileContents::Pdf(&self.contents),
            FileKind::Text => FileContents::Text(&self.contents),
        };
        AttachedFile { name: &self.name, contents }
    }

    /// Whether Claude Code passes it to the model in a message that it receives during a turn.
    pub(crate) fn reaches_a_running_turn(&self) -> bool {
        self.file_type.kind() != FileKind::Document
    }

    /// The name of the file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// As a block of a conversation node.
    pub(crate) fn block(&self) -> Value {
        let Self { name, bytes, contents, .. } = self;
        let media_type = self.file_type.media_type();
        let source = || json!({"type": "base64", "media_type": media_type, "data": contents});
        match self.file_type.kind() {
            FileKind::Image => json!({"type": "image", "name": name, "bytes": bytes, "source": source()}),
            FileKind::Document => {
                json!({"type": "document", "name": name, "bytes": bytes, "source": source()})
            }
            FileKind::Text => {
                json!({"type": "file", "name": name, "bytes": bytes, "media_type": media_type, "text": contents})
            }
        }
    }

    /// From a block of a conversation node; `None` for other blocks.
    fn from_block(block: &Value) -> Option<Self> {
        let (media_type, contents) = match block["type"].as_str()? {
            "image" | "document" => (&block["source"]["media_type"], &block["source"]["data"]),
            "file" => (&block["media_type"], &block["text"]),
            _ => return None,
        };
        Some(Self {
            name: block["name"].as_str()?.to_owned(),
            file_type: FileType::named(media_type.as_str()?)?,
            bytes: block["bytes"].as_u64()?,
            contents: contents.as_str()?.to_owned(),
        })
    }
}

/// The files in the content of a prompt's node.
pub(crate) fn stored(content: &Value) -> Attachments {
    content.as_array().into_iter().flatten().filter_map(Attachment::from_block).collect()
}

/// The files that a caller gives with a prompt. An agent would have to write the base64 itself: it names a path in the prompt instead.
pub(crate) fn given(caller: &Principal, given: Option<Vec<AttachmentGiven>>) -> Result<Attachments, Error> {
    let given = given.unwrap_or_default();
    if !given.is_empty() && matches!(caller, Principal::Session { .. } | Principal::Parent { .. }) {
        let message = "an agent cannot attach files; name the path of the file in the prompt instead";
        return Err(Error::new(ErrorKind::Forbidden, message).with("field", FIELD));
    }
    check(given)
}

fn check(given: Vec<AttachmentGiven>) -> Result<Attachments, Error> {
    if given.len() > MAX_ATTACHMENTS {
        let message =
            format!("a prompt can have at most {MAX_ATTACHMENTS} files, and this one has {}", given.len());
        return Err(Error::new(ErrorKind::TooLarge, message).with("field", FIELD));
    }
    let mut total = 0;
    let mut files = Vec::with_capacity(given.len());
    for (i, file) in given.into_iter().enumerate() {
        let file = check_file(i, file)?;
        total += file.bytes;
        if total > MAX_ATTACHED_BYTES as u64 {
            let message = format!(
                "the files of a prompt can have at most {MAX_ATTACHED_BYTES} bytes in all, and `{}` exceeds that",
                file.name
            );
            return Err(Error::new(ErrorKind::TooLarge, message).with("field", FIELD));
        }
        files.push(file);
    }
    Ok(files.into())
}

fn check_file(i: usize, given: AttachmentGiven) -> Result<Attachment, Error> {
    let AttachmentGiven { name, media_type, data } = given;
    let field = |part: &str| format!("{FIELD}[{i}].{part}");
    if name.trim().is_empty() || name.len() > MAX_FILE_NAME_BYTES || name.chars().any(char::is_control) {
        let why = format!("must have 1 to {MAX_FILE_NAME_BYTES} bytes and no control characters");
        return Err(Error::invalid(&field("name"), why));
    }
    let Ok(contents) = STANDARD.decode(&data) else {
        return Err(Error::invalid(&field("data"), format!("the data of `{name}` is not valid base64")));
    };
    let found = FileType::check(&contents).map_err(|problem| {
        let kind = match problem {
            plexus_protocol::FileProblem::TooLarge { .. } => ErrorKind::TooLarge,
            _ => ErrorKind::InvalidParams,
        };
        Error::new(kind, format!("`{name}` {problem}")).with("field", field("data"))
    })?;
    // The type that is shown is the type that is sent.
    if FileType::named(&media_type) != Some(found) {
        let why = format!("`{name}` is {}, not {media_type}", found.media_type());
        return Err(Error::invalid(&field("media_type"), why));
    }
    let bytes = contents.len() as u64;
    let contents = match found.kind() {
        FileKind::Text => String::from_utf8(contents)
            .map_err(|_| Error::invalid(&field("data"), format!("`{name}` is not valid UTF-8")))?,
        // The encoding of the given bytes, whatever the caller's encoder left in unused bits.
        FileKind::Image | FileKind::Document => STANDARD.encode(&contents),
    };
    Ok(Attachment { name, file_type: found, bytes, contents })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    fn file(name: &str, media_type: &str, contents: &[u8]) -> AttachmentGiven {
        let data = STANDARD.encode(contents);
        AttachmentGiven { name: name.to_owned(), media_type: media_type.to_owned(), data }
    }

    fn refused(files: Vec<AttachmentGiven>) -> Error {
        check(files).expect_err("refused")
    }

    #[test]
    fn a_file_survives_its_node_unchanged() {
        let given = vec![
            file("a.png", "image/png", PNG),
            file("b.pdf", "application/pdf", b"%PDF-1.7\n"),
            file("@c.md", "text/markdown", "/compact é".as_bytes()),
        ];
        let files = check(given).unwrap();
        let mut content = vec![json!({"type": "text", "text": "look"})];
        content.extend(files.iter().map(Attachment::block));
        assert_eq!(stored(&Value::Array(content)), files);
        let views: Vec<_> = files.iter().map(Attachment::view).collect();
        assert_eq!(
            (views[2].name.as_str(), views[2].media_type.as_str(), views[2].bytes),
            ("@c.md", "text/plain", 11)
        );
        let reach: Vec<bool> = files.iter().map(Attachment::reaches_a_running_turn).collect();
        assert_eq!(reach, [true, false, true]);
    }

    #[test]
    fn a_wrong_file_is_named_with_what_works() {
        let claimed = refused(vec![file("x", "image/png", PNG), file("shot.png", "image/jpeg", PNG)]);
        assert_eq!(claimed.details["field"], "attachments[1].media_type");
        assert!(claimed.message.contains("`shot.png` is image/png, not image/jpeg"), "{claimed}");
        let unknown = refused(vec![file("a.zip", "application/zip", b"PK\x03\x04\0")]);
        assert!(unknown.message.contains("`a.zip` is neither an image (PNG"), "{unknown}");
        let hostile = refused(vec![file("a\nb", "text/plain", b"x")]);
        assert_eq!(hostile.details["field"], "attachments[0].name");
        let broken = AttachmentGiven { data: "%".to_owned(), ..file("a", "text/plain", b"") };
        assert_eq!(refused(vec![broken]).details["field"], "attachments[0].data");
        assert!(refused(vec![file("a", "text/plain", b"")]).message.contains("is empty"));
    }

    #[test]
    fn number_and_size_are_bounded() {
        let many = vec![file("a", "text/plain", b"x"); MAX_ATTACHMENTS + 1];
        assert_eq!(refused(many).kind, ErrorKind::TooLarge);
        let text = vec![b'x'; plexus_protocol::MAX_TEXT_FILE_BYTES];
        let full = vec![file("a", "text/plain", &text); 10];
        assert_eq!(check(full.clone()).unwrap().len(), 10);
        let over = [full, vec![file("last", "text/plain", b"x")]].concat();
        let over = refused(over);
        assert!(over.kind == ErrorKind::TooLarge && over.message.contains("`last`"), "{over}");
    }
}
