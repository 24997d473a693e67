//! Parses any bytes in any split: nothing panics, and the split makes no difference.
//!
//! The first byte of the input is the limit for a line, the second seeds how the rest is cut into chunks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plexus_claude::{Incoming, Line, LineSplitter, parse, parse_oversized, sent_id};

fn read(stream: &[u8], max_line: usize, mut next_chunk: impl FnMut() -> usize) -> (Vec<Incoming>, u64) {
    let mut splitter = LineSplitter::new(0, max_line);
    let (mut seen, mut rest) = (Vec::new(), stream);
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(next_chunk().clamp(1, rest.len()));
        rest = after;
        splitter.feed(chunk, |line| {
            seen.push(match line {
                Line::Whole { bytes, .. } => {
                    sent_id(bytes);
                    // Every line is also parsed as an oversized one.
                    parse_oversized(bytes, bytes.len() as u64);
                    parse(bytes)
                }
                Line::Oversized { start, len, .. } => parse_oversized(&stream[start as usize..], len),
            });
        });
    }
    (seen, splitter.offset())
}

fuzz_target!(|data: &[u8]| {
    let [max_line, seed, stream @ ..] = data else { return };
    let max_line = 8 * usize::from(*max_line);
    let mut seed = u32::from(*seed);
    let any_size = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as usize % 32
    };
    assert_eq!(read(stream, max_line, any_size), read(stream, max_line, || usize::MAX));
});
