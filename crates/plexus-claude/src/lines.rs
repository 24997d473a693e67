//! Splits a byte stream into lines, however the stream is divided into chunks.
//!
//! The splitter owns the incomplete line of a stream and the offsets of all lines. It never holds a line over its limit
//! in memory: it drops the bytes and reports only the range in the stream. [`parse_oversized`](crate::parse_oversized)
//! reads that range again from the stored stream.

/// The buffer capacity kept after a line is complete. The rest is freed, because a hub has many children.
const KEPT_CAPACITY: usize = 64 * 1024;

/// Splits a byte stream into lines.
#[derive(Debug)]
pub struct LineSplitter {
    max_line: usize,
    /// The start of the incomplete line, which is the end of the last complete one.
    start: u64,
    unfinished: Unfinished,
}

#[derive(Debug)]
enum Unfinished {
    Held(Vec<u8>),
    /// The line exceeded the limit: only its length so far is known.
    Dropped(u64),
}

/// One line of the stream, without its newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line within the limit.
    Whole {
        /// The line without its newline, and without a preceding carriage return.
        bytes: &'a [u8],
        /// The stream offset of its first byte.
        start: u64,
        /// The stream offset after its newline.
        end: u64,
    },
    /// A line over the limit. Only its range is known.
    Oversized {
        /// The stream offset of its first byte.
        start: u64,
        /// Its length without the newline.
        len: u64,
        /// The stream offset after its newline.
        end: u64,
    },
}

impl LineSplitter {
    /// Creates a splitter for a stream that is read from `offset`, the start of a line. Lines of more than `max_line`
    /// bytes become [`Line::Oversized`].
    pub fn new(offset: u64, max_line: usize) -> Self {
        Self { max_line, start: offset, unfinished: Unfinished::Held(Vec::new()) }
    }

    /// Consumes the next chunk of the stream and calls `each` for every line that ends in it.
    pub fn feed(&mut self, chunk: &[u8], mut each: impl FnMut(Line<'_>)) {
        let mut rest = chunk;
        while let Some(at) = rest.iter().position(|&byte| byte == b'\n') {
            self.finish(&rest[..at], &mut each);
            rest = &rest[at + 1..];
        }
        self.extend(rest);
    }

    /// The stream offset after the last complete line, at which to resume after a restart.
    pub fn offset(&self) -> u64 {
        self.start
    }

    /// Completes the current line with `tail`, the bytes before a newline.
    fn finish(&mut self, tail: &[u8], each: &mut impl FnMut(Line<'_>)) {
        let start = self.start;
        // Most lines lie within one chunk and are passed on without a copy.
        let in_chunk = matches!(&self.unfinished, Unfinished::Held(held) if held.is_empty())
            && tail.len() <= self.max_line;
        if !in_chunk {
            self.extend(tail);
        }
        match &mut self.unfinished {
            Unfinished::Held(held) => {
                let line = if in_chunk { tail } else { held.as_slice() };
                let end = start + line.len() as u64 + 1;
                self.start = end;
                each(Line::Whole { bytes: line.strip_suffix(b"\r").unwrap_or(line), start, end });
                held.clear();
                held.shrink_to(KEPT_CAPACITY);
            }
            Unfinished::Dropped(len) => {
                let (len, end) = (*len, start + *len + 1);
                self.start = end;
                self.unfinished = Unfinished::Held(Vec::new());
                each(Line::Oversized { start, len, end });
            }
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        match &mut self.unfinished {
            Unfinished::Held(held) if held.len() + bytes.len() > self.max_line => {
                self.unfinished = Unfinished::Dropped((held.len() + bytes.len()) as u64);
            }
            Unfinished::Held(held) => held.extend_from_slice(bytes),
            Unfinished::Dropped(len) => *len += bytes.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]], max_line: usize) -> (Vec<String>, u64) {
        let mut splitter = LineSplitter::new(100, max_line);
        let mut seen = Vec::new();
        for chunk in chunks {
            splitter.feed(chunk, |line| {
                seen.push(match line {
                    Line::Whole { bytes, start, end } => {
                        format!("{}@{start}..{end}", String::from_utf8_lossy(bytes))
                    }
                    Line::Oversized { start, len, end } => format!("<{len}>@{start}..{end}"),
                });
            });
        }
        (seen, splitter.offset())
    }

    #[test]
    fn a_character_split_over_two_chunks_is_whole_again() {
        let bytes = "é\n".as_bytes();
        assert_eq!(split(&[&bytes[..1], &bytes[1..]], 10), (vec!["é@100..103".into()], 103));
    }

    #[test]
    fn an_incomplete_line_is_neither_returned_nor_counted() {
        assert_eq!(split(&[b"one\ntw"], 10), (vec!["one@100..104".into()], 104));
    }

    #[test]
    fn a_carriage_return_is_stripped_but_counted() {
        assert_eq!(split(&[b"a\r", b"\n\r\n\n"], 10).0, ["a@100..103", "@103..105", "@105..106"]);
    }

    #[test]
    fn a_line_over_the_limit_is_reported_as_a_range_and_the_next_is_read() {
        let expected = ["<5>@100..106", "1234@106..111"];
        assert_eq!(split(&[b"12345\n1234\n"], 4).0, expected);
        assert_eq!(split(&[b"12", b"34", b"5", b"\n1234\n"], 4).0, expected);
    }

    #[test]
    fn an_oversized_line_takes_no_memory() {
        let mut splitter = LineSplitter::new(0, 1000);
        for _ in 0..10_000 {
            splitter.feed(&[b'x'; 100], |_| unreachable!("no line has ended"));
        }
        assert!(matches!(splitter.unfinished, Unfinished::Dropped(1_000_000)));
    }
}
