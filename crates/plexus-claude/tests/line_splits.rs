//! A stream gives the same messages, however it is split into chunks.

use plexus_claude::{Incoming, Line, LineSplitter, parse, parse_oversized};
use proptest::collection::vec;
use proptest::prelude::*;

const MAX_LINE: usize = 120;

fn line() -> impl Strategy<Value = Vec<u8>> {
    let fixture: Vec<Vec<u8>> =
        include_str!("fixtures/2.1.325.jsonl").lines().map(|line| line.into()).collect();
    let text = any::<String>().prop_map(|text| {
        let message = serde_json::json!({"role": "user", "content": text});
        serde_json::json!({"type": "user", "uuid": "é漢🎈", "message": message}).to_string().into_bytes()
    });
    let other = "\\{\"type\":\"[a-z]{1,8}\",\"é\":\"[é漢🎈a]{0,40}\"\\}\r?".prop_map(String::into_bytes);
    let rubbish = vec(any::<u8>().prop_filter("a newline ends it", |&byte| byte != b'\n'), 0..200);
    let blank = "[ \t\r]{0,3}".prop_map(String::into_bytes);
    prop_oneof![proptest::sample::select(fixture), text, other, rubbish, blank]
}

/// The messages of the stream with their ranges, and the final offset.
fn read(stream: &[u8], chunks: &[&[u8]]) -> (Vec<(u64, u64, Incoming)>, u64) {
    let mut splitter = LineSplitter::new(0, MAX_LINE);
    let mut seen = Vec::new();
    for chunk in chunks {
        splitter.feed(chunk, |line| {
            seen.push(match line {
                Line::Whole { bytes, start, end } => (start, end, parse(bytes)),
                Line::Oversized { start, len, end } => {
                    (start, end, parse_oversized(&stream[start as usize..], len))
                }
            });
        });
    }
    (seen, splitter.offset())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_of_any_stream_gives_the_same_messages(
        lines in vec(line(), 0..12),
        unfinished in line(),
        cuts in vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let mut stream: Vec<u8> = lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect();
        let whole_lines = stream.len() as u64;
        stream.extend(unfinished);

        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let chunks: Vec<_> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();

        let at_once = read(&stream, &[&stream]);
        prop_assert_eq!(&read(&stream, &chunks), &at_once);
        let bytes: Vec<_> = stream.chunks(1).collect();
        prop_assert_eq!(&read(&stream, &bytes), &at_once);

        prop_assert_eq!(at_once.1, whole_lines);
        let expected: Vec<_> = lines.iter().map(|line| {
            if line.len() > MAX_LINE {
                parse_oversized(&line[..], line.len() as u64)
            } else {
                parse(line)
            }
        }).collect();
        let messages: Vec<_> = at_once.0.into_iter().map(|(_, _, message)| message).collect();
        // A carriage return at the end is white space in JSON. It is visible only in garbage.
        let strip = |message| match message {
            Incoming::Rubbish { text } => Incoming::Rubbish { text: text.trim_end_matches('\r').to_owned() },
            other => other,
        };
        let strip = |messages: Vec<Incoming>| messages.into_iter().map(strip).collect::<Vec<_>>();
        prop_assert_eq!(strip(messages), strip(expected));
    }
}
