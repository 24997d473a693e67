//! Images in a diff, as base64. The type is detected from the content, because a child chooses the file name. SVG is shown
//! as text.

use plexus_protocol::worktree::ImageDiff;
use plexus_protocol::{FileKind, FileType};

use crate::lines::Contents;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Both versions of an image; `None` if the newest version is not an image.
pub(crate) fn compared(contents: &Contents) -> Option<ImageDiff> {
    let Contents { old, new } = contents;
    let media_type = media_type(if new.is_empty() { old } else { new })?;
    let encoded = |content: &[u8]| self::media_type(content).map(|_| base64(content));
    Some(ImageDiff { media_type: media_type.to_owned(), old: encoded(old), new: encoded(new) })
}

fn media_type(content: &[u8]) -> Option<&'static str> {
    FileType::detect(content).filter(|found| found.kind() == FileKind::Image).map(FileType::media_type)
}

fn base64(content: &[u8]) -> String {
    let mut text = String::with_capacity(content.len().div_ceil(3) * 4);
    for piece in content.chunks(3) {
        let bits = piece.iter().fold(0, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - piece.len()));
        for place in 0..4 {
            let digit = BASE64[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= piece.len() { digit.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_the_standard_form() {
        for (content, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(content.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }

    #[test]
    fn a_picture_is_recognised_by_its_content() {
        let png = [&[0x89][..], b"PNG\r\n\x1a\n", b"rest"].concat();
        let shown = compared(&Contents { old: Vec::new(), new: png.clone() }).unwrap();
        assert_eq!((&*shown.media_type, shown.old.is_none(), shown.new.is_some()), ("image/png", true, true));
        assert!(compared(&Contents { old: png, new: b"<svg onload=alert(1)>".to_vec() }).is_none());
    }
}
