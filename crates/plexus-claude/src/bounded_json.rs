//! Makes JSON text safe to read with bounded memory.
//!
//! [`BoundedJson`] sits between a reader and serde_json. It truncates every string after a number of characters, because
//! serde_json collects a whole string before a caller can reject it, and truncates numbers likewise. It fails at
//! extreme nesting, because even skipped values cost a byte per level. It replaces an escaped lone surrogate with U+FFFD:
//! JavaScript writes one for text that was cut inside an emoji, and serde_json rejects it.

use std::io::{self, Read};

/// How much raw text is kept to display if it is not JSON.
pub(crate) const HEAD: usize = 4096;

/// The nesting depth at which reading fails.
const MAX_DEPTH: usize = 64 * 1024;

/// The maximum number of digits to keep, which is as many as the largest number can have.
const MAX_DIGITS: usize = 300;

const REPLACEMENT: &[u8] = b"\\ufffd";

/// A reader that forwards JSON with every string truncated after `limit` characters.
pub(crate) struct BoundedJson<R> {
    inner: R,
    limit: usize,
    state: State,
    depth: usize,
    /// The number of digits of the current number so far, kept or not.
    digits: usize,
    /// The last byte forwarded outside strings.
    last_between: u8,
    /// The number of characters of the current string so far, kept or not.
    chars: usize,
    /// Whether the character that is being forwarded byte by byte is kept.
    keeping: bool,
    /// An escaped high surrogate that waits for its low surrogate.
    high: Option<[u8; 6]>,
    head: Vec<u8>,
    ready: Vec<u8>,
    forwarded: usize,
}

#[derive(Clone, Copy)]
enum State {
    Between,
    InString,
    Backslash,
    /// Inside `\uXXXX`, with this many of its six bytes read.
    Unicode([u8; 6], usize),
}

impl<R: Read> BoundedJson<R> {
    pub(crate) fn new(inner: R, limit: usize) -> Self {
        Self {
            inner,
            limit,
            state: State::Between,
            depth: 0,
            digits: 0,
            last_between: 0,
            chars: 0,
            keeping: false,
            high: None,
            head: Vec::new(),
            ready: Vec::new(),
            forwarded: 0,
        }
    }

    /// The first bytes of the unmodified text.
    pub(crate) fn head(self) -> Vec<u8> {
        let Self { inner, mut head, .. } = self;
        let missing = HEAD - head.len();
        // A read error is ignored: the text is invalid in any case.
        let _ = inner.take(missing as u64).read_to_end(&mut head);
        head
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match self.state {
                State::Between => self.between(byte)?,
                State::InString => match byte {
                    b'"' => {
                        self.drop_lone_half();
                        self.ready.push(byte);
                        self.state = State::Between;
                    }
                    b'\\' => self.state = State::Backslash,
                    0x80..=0xBF => {
                        if self.keeping {
                            self.ready.push(byte);
                        }
                    }
                    _ => {
                        self.drop_lone_half();
                        self.character(&[byte]);
                        if !self.keeping {
                            // The rest of this string is dropped, so skip to its possible end.
                            let end =
                                rest.iter().position(|&b| matches!(b, b'"' | b'\\')).unwrap_or(rest.len());
                            rest = &rest[end..];
                        }
                    }
                },
                State::Backslash if byte == b'u' => {
                    self.state = State::Unicode([b'\\', b'u', 0, 0, 0, 0], 2);
                }
                State::Backslash => {
                    self.drop_lone_half();
                    self.character(&[b'\\', byte]);
                    self.state = State::InString;
                }
                State::Unicode(mut escape, read) => {
                    escape[read] = byte;
                    if read == 5 {
                        self.unicode(escape);
                        self.state = State::InString;
                    } else {
                        self.state = State::Unicode(escape, read + 1);
                    }
                }
            }
        }
        Ok(())
    }

    fn between(&mut self, byte: u8) -> io::Result<()> {
        match byte {
            b'0'..=b'9' => {
                self.digits += 1;
                // The first digit after a point or an exponent is kept, because the number would be invalid without it.
                if self.digits > MAX_DIGITS && self.last_between.is_ascii_digit() {
                    return Ok(());
                }
            }
            b'.' | b'e' | b'E' | b'+' | b'-' => {}
            _ => self.digits = 0,
        }
        self.last_between = byte;
        self.ready.push(byte);
        match byte {
            b'"' => {
                self.state = State::InString;
                self.chars = 0;
            }
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "nested too deeply"));
                }
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        Ok(())
    }

    /// Handles one character of a string, or its first byte.
    fn character(&mut self, bytes: &[u8]) {
        self.keeping = self.chars < self.limit;
        self.chars = self.chars.saturating_add(1);
        if self.keeping {
            self.ready.extend_from_slice(bytes);
        }
    }

    fn unicode(&mut self, escape: [u8; 6]) {
        let code = std::str::from_utf8(&escape[2..]).ok().and_then(|hex| u16::from_str_radix(hex, 16).ok());
        match code {
            Some(0xD800..=0xDBFF) => {
                self.drop_lone_half();
                self.high = Some(escape);
            }
            Some(0xDC00..=0xDFFF) => match self.high.take() {
                Some(high) => self.character(&[high, escape].concat()),
                None => self.character(REPLACEMENT),
            },
            _ => {
                self.drop_lone_half();
                self.character(&escape);
            }
        }
    }

    fn drop_lone_half(&mut self) {
        if self.high.take().is_some() {
            self.character(REPLACEMENT);
        }
    }
}

impl<R: Read> Read for BoundedJson<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.forwarded == self.ready.len() {
            let mut chunk = [0; 8192];
            let read = self.inner.read(&mut chunk)?;
            if read == 0 {
                return Ok(0);
            }
            let chunk = &chunk[..read];
            self.head.extend_from_slice(&chunk[..read.min(HEAD - self.head.len())]);
            self.ready.clear();
            self.forwarded = 0;
            self.take(chunk)?;
        }
        let passing = buf.len().min(self.ready.len() - self.forwarded);
        buf[..passing].copy_from_slice(&self.ready[self.forwarded..self.forwarded + passing]);
        self.forwarded += passing;
        Ok(passing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(text: &str, limit: usize) -> String {
        let mut out = String::new();
        BoundedJson::new(text.as_bytes(), limit).read_to_string(&mut out).unwrap();
        out
    }

    #[test]
    fn strings_are_cut_between_characters_and_all_else_is_left_alone() {
        assert_eq!(bounded(r#"{"a":[1,"漢漢漢"],"bcdef":"\n\t\"x"}"#, 2), r#"{"a":[1,"漢漢"],"bc":"\n\t"}"#);
    }

    #[test]
    fn a_quote_in_the_part_that_is_cut_does_not_end_the_string() {
        assert_eq!(bounded(r#"["abc\"],[\\",2]"#, 1), r#"["a",2]"#);
    }

    #[test]
    fn half_a_surrogate_pair_becomes_a_replacement_and_a_whole_pair_stays() {
        let text = r#"["\ud83d","\ud83d\ude00","\ude00","\ud83d\ud83d\ude00x","\ud83dx","\ud83d\n"]"#;
        let repaired = r#"["\ufffd","\ud83d\ude00","\ufffd","\ufffd\ud83d\ude00x","\ufffdx","\ufffd\n"]"#;
        assert_eq!(bounded(text, 100), repaired);
        // A surrogate pair is one character, so the cut never leaves half of it.
        assert_eq!(bounded(r#"["a\ud83d\ude00"]"#, 1), r#"["a"]"#);
    }

    #[test]
    fn nesting_over_the_limit_is_an_error() {
        let mut out = String::new();
        assert!(BoundedJson::new("[".repeat(MAX_DEPTH + 1).as_bytes(), 1).read_to_string(&mut out).is_err());
    }
}
