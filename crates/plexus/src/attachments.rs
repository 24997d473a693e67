//! The attachments of a prompt: reads the files with the rights of the user, checks their types and sizes before a hub is reached, and
//! formats the attachments of stored prompts. The hub checks the files again.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plexus_protocol::{FileType, MAX_ATTACHED_BYTES, MAX_ATTACHMENTS};
use serde_json::{Value, json};

use crate::error::ExpectedError;
use crate::terminal::one_line;

/// The longest name that is shown.
const NAME: usize = 100;

/// Reads the files, as the parameter `attachments` of a prompt.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Value>, ExpectedError> {
    if paths.len() > MAX_ATTACHMENTS {
        let message = format!("a prompt can have at most {MAX_ATTACHMENTS} files; you gave {}", paths.len());
        return Err(ExpectedError::Usage(message));
    }
    let mut total = 0;
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let (bytes, file) = read_one(path)
            .map_err(|why| ExpectedError::Usage(format!("cannot attach {}: {why}", path.display())))?;
        total += bytes;
        if total > MAX_ATTACHED_BYTES {
            let message = format!(
                "cannot attach {}: the files of a prompt can have at most {} in all",
                path.display(),
                size(MAX_ATTACHED_BYTES as u64)
            );
            return Err(ExpectedError::Usage(message));
        }
        files.push(file);
    }
    Ok(files)
}

fn read_one(path: &Path) -> Result<(usize, Value), String> {
    let kind = std::fs::metadata(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "the file does not exist".to_owned(),
        _ => error.to_string(),
    })?;
    // Opening a FIFO would wait for its writer.
    match kind {
        kind if kind.is_dir() => return Err("it is a directory; name a file".to_owned()),
        kind if !kind.is_file() => return Err("it is not a regular file".to_owned()),
        kind if kind.len() > MAX_ATTACHED_BYTES as u64 => {
            let limit = size(MAX_ATTACHED_BYTES as u64);
            return Err(format!(
                "it has {}; the files of a prompt can have at most {limit}",
                size(kind.len())
            ));
        }
        _ => {}
    }
    let mut contents = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_ATTACHED_BYTES as u64 + 1).read_to_end(&mut contents).map_err(|error| error.to_string())?;
    let found = FileType::check(&contents).map_err(|problem| format!("the file {problem}"))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let data = STANDARD.encode(&contents);
    Ok((contents.len(), json!({"name": name, "media_type": found.media_type(), "data": data})))
}

/// The lines about the files of an event, one each; `None` if it has none.
pub(crate) fn lines(attachments: &Value) -> Option<String> {
    let lines: Vec<String> = attachments.as_array()?.iter().map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn line(file: &Value) -> String {
    let text = |name: &str| one_line(file[name].as_str().unwrap_or_default(), NAME);
    format!("+ {} ({}, {})", text("name"), text("media_type"), size(file["bytes"].as_u64().unwrap_or(0)))
}

/// A size for people.
fn size(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", tenths(1024)),
        _ => format!("{} MiB", tenths(1_048_576)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &Path) -> String {
        match read(&[path.to_owned()]) {
            Err(ExpectedError::Usage(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_is_read_with_the_type_that_its_contents_prove() {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("shot.txt");
        std::fs::write(&image, b"\x89PNG\r\n\x1a\nrest").unwrap();
        let files = read(&[image]).unwrap();
        assert_eq!((&files[0]["name"], &files[0]["media_type"]), (&json!("shot.txt"), &json!("image/png")));
    }

    #[test]
    fn a_file_that_cannot_be_attached_is_explained() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert!(refused(&path("missing")).ends_with("missing: the file does not exist"));
        assert!(refused(folder.path()).ends_with("it is a directory; name a file"));
        std::fs::write(path("a.zip"), b"PK\x03\x04\0").unwrap();
        assert!(refused(&path("a.zip")).contains("neither an image (PNG, JPEG, GIF, WebP) nor a PDF"));
        std::fs::write(path("empty"), b"").unwrap();
        assert!(refused(&path("empty")).ends_with("the file is empty"));
        File::create(path("huge")).unwrap().set_len(20 * 1024 * 1024).unwrap();
        assert!(
            refused(&path("huge"))
                .ends_with("it has 20.0 MiB; the files of a prompt can have at most 10.0 MiB")
        );
        std::fs::write(path("long.txt"), vec![b'x'; 1024 * 1024]).unwrap();
        let many = vec![path("long.txt"); 11];
        assert!(matches!(read(&many), Err(ExpectedError::Usage(why)) if why.contains("10.0 MiB in all")));
        assert!(
            matches!(read(&vec![path("x"); 21]), Err(ExpectedError::Usage(why)) if why.contains("at most 20"))
        );
    }

    #[test]
    fn the_name_of_a_file_is_escaped() {
        let files = json!([{"name": "a\u{1b}[2K.png", "media_type": "image/png", "bytes": 1536}]);
        let shown = lines(&files).unwrap();
        assert!(shown.ends_with(".png (image/png, 1.5 KiB)") && !shown.contains('\u{1b}'), "{shown}");
        assert_eq!(lines(&json!([])), None);
        assert_eq!(lines(&Value::Null), None);
    }
}
