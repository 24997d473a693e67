//! Decodes the bytes of a terminal into keys and pastes. A terminal also sends replies (device attributes, colours, versions) on the same
//! stream. They are parsed as control sequences and dropped, so that no letter of a reply counts as a key. Keys with Alt, which arrive
//! as escape sequences, are dropped as well.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use vte::{Params, Parser, Perform};

/// The maximum size of a paste.
const PASTE_BYTES: usize = 64 * 1024;

const CTRL_C: u8 = 0x03;
const ESCAPE: u8 = 0x1b;

/// An input of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// A text was pasted.
    Paste(String),
}

/// The state of the decoder.
#[derive(Default)]
pub(crate) struct Decoder {
    parser: Parser,
    found: Found,
    character: Character,
    last: Option<u8>,
}

/// The position in a UTF-8 character.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Character {
    /// Between two characters.
    #[default]
    Whole,
    /// After the first byte of a possible control character.
    MayBeControl,
    /// This many bytes are missing.
    Rest(u8),
}

impl Decoder {
    /// Decodes the next bytes and returns the completed inputs.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        for byte in bytes {
            // Ctrl-C works even inside an unfinished sequence, because it only quits.
            if *byte == CTRL_C {
                self.abandon();
                self.found.key(KeyCode::Char('c'), KeyModifiers::CONTROL);
            } else {
                self.byte(*byte);
            }
        }
        self.last = bytes.last().copied().or(self.last);
        std::mem::take(&mut self.found.inputs)
    }

    /// Decodes one byte. A control character of one byte is passed to the parser as its escape sequence: `0x9b` is `ESC [`.
    fn byte(&mut self, byte: u8) {
        let Self { parser, found, character, .. } = self;
        let is_control = (0x80..=0x9f).contains(&byte);
        *character = match (*character, byte) {
            (Character::Whole | Character::MayBeControl, _) if is_control && found.paste.is_none() => {
                parser.advance(found, &[ESCAPE, byte - 0x40]);
                Character::Whole
            }
            (Character::Whole, 0xc2) => Character::MayBeControl,
            (Character::MayBeControl, _) => {
                parser.advance(found, &[0xc2, byte]);
                Character::Whole
            }
            (before, _) => {
                parser.advance(found, &[byte]);
                match (before, byte) {
                    (_, 0xc3..=0xdf) => Character::Rest(1),
                    (_, 0xe0..=0xef) => Character::Rest(2),
                    (_, 0xf0..=0xf4) => Character::Rest(3),
                    (Character::Rest(more @ 2..), 0x80..=0xbf) => Character::Rest(more - 1),
                    _ => Character::Whole,
                }
            }
        };
    }

    /// Whether the last byte is an escape: the Esc key or the start of a sequence.
    pub(crate) fn ends_with_escape(&self) -> bool {
        self.last == Some(ESCAPE)
    }

    /// The last escape was the Esc key.
    pub(crate) fn escape(&mut self) -> Vec<Input> {
        self.abandon();
        self.found.key(KeyCode::Esc, KeyModifiers::NONE);
        std::mem::take(&mut self.found.inputs)
    }

    /// Drops an unfinished sequence, so that a key such as Alt-] does not swallow later keys. A paste continues until its end, because its
    /// text must never count as keys.
    pub(crate) fn abandon(&mut self) {
        self.parser = Parser::new();
        self.character = Character::Whole;
        self.found.shifted = false;
        self.last = None;
    }
}

/// The results of the parser.
#[derive(Default)]
struct Found {
    inputs: Vec<Input>,
    /// The text of an unfinished paste.
    paste: Option<String>,
    /// `ESC O` came: the next character is part of a function key.
    shifted: bool,
}

impl Found {
    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        if self.paste.is_none() || modifiers == KeyModifiers::CONTROL && code == KeyCode::Char('c') {
            self.inputs.push(Input::Key(KeyEvent::new(code, modifiers)));
        }
    }

    fn arrow(&mut self, letter: char) {
        match letter {
            'A' => self.key(KeyCode::Up, KeyModifiers::NONE),
            'B' => self.key(KeyCode::Down, KeyModifiers::NONE),
            _ => {}
        }
    }

    fn pasted(&mut self, c: char) {
        if let Some(paste) = &mut self.paste
            && paste.len() < PASTE_BYTES
        {
            paste.push(c);
        }
    }
}

impl Perform for Found {
    fn print(&mut self, c: char) {
        if std::mem::take(&mut self.shifted) {
            self.arrow(c);
        } else if self.paste.is_some() {
            self.pasted(c);
        } else if c == '\u{7f}' {
            self.key(KeyCode::Backspace, KeyModifiers::NONE);
        } else {
            self.key(KeyCode::Char(c), KeyModifiers::NONE);
        }
    }

    fn execute(&mut self, byte: u8) {
        self.shifted = false;
        match byte {
            b'\r' | b'\n' | b'\t' if self.paste.is_some() => {
                self.pasted(if byte == b'\t' { '\t' } else { '\n' });
            }
            b'\r' => self.key(KeyCode::Enter, KeyModifiers::NONE),
            b'\t' => self.key(KeyCode::Tab, KeyModifiers::NONE),
            0x08 => self.key(KeyCode::Backspace, KeyModifiers::NONE),
            0x01..=0x1a => self.key(KeyCode::Char(char::from(byte + b'a' - 1)), KeyModifiers::CONTROL),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: char) {
        self.shifted = false;
        if ignore || !intermediates.is_empty() {
            return;
        }
        let params: Vec<u16> = params.iter().filter_map(|param| param.first().copied()).collect();
        match (action, &*params) {
            ('~', [200]) => self.paste = Some(String::new()),
            ('~', [201]) => self.inputs.extend(self.paste.take().map(Input::Paste)),
            ('~', [5]) => self.key(KeyCode::PageUp, KeyModifiers::NONE),
            ('~', [6]) => self.key(KeyCode::PageDown, KeyModifiers::NONE),
            (letter, [0 | 1]) => self.arrow(letter),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignore: bool, byte: u8) {
        self.shifted = byte == b'O' && intermediates.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Vec<Input> {
        Decoder::default().feed(bytes)
    }

    fn key(code: KeyCode) -> Input {
        Input::Key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn each_key_is_decoded() {
        for (bytes, code) in [
            ("a", KeyCode::Char('a')),
            ("é", KeyCode::Char('é')),
            ("\u{a9}", KeyCode::Char('\u{a9}')),
            ("日", KeyCode::Char('日')),
            ("\u{201c}", KeyCode::Char('\u{201c}')),
            ("👍", KeyCode::Char('👍')),
            ("E", KeyCode::Char('E')),
            ("\r", KeyCode::Enter),
            ("\t", KeyCode::Tab),
            ("\u{7f}", KeyCode::Backspace),
            ("\u{8}", KeyCode::Backspace),
            ("\u{1b}[A", KeyCode::Up),
            ("\u{1b}OB", KeyCode::Down),
            ("\u{1b}[5~", KeyCode::PageUp),
            ("\u{1b}[6~", KeyCode::PageDown),
        ] {
            assert_eq!(decoded(bytes.as_bytes()), [key(code)], "{bytes:?}");
        }
        let control = KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(decoded(&[0x15]), [Input::Key(control)]);
    }

    /// Replies and keys that hold the letters of answers.
    const NO_KEYS: &[&str] = &[
        "\u{1b}P1$r0;a;d;y\u{1b}\\",
        "\u{1b}P>|term(y)\u{1b}\\",
        "\u{1b}P1+r6161=79\u{1b}\\",
        "\u{1b}]11;rgb:aaaa/dddd/eeee\u{7}",
        "\u{1b}]52;c;eWVz\u{1b}\\",
        "\u{1b}_Ga=y;a\u{1b}\\",
        "\u{1b}^yes\u{1b}\\",
        "\u{1b}Xaaa\u{1b}\\",
        "\u{1b}[?62;22c",
        "\u{1b}[>0;276;0c",
        "\u{1b}[?2026;2$y",
        "\u{1b}[24;80R",
        "\u{1b}[4;600;800t",
        "\u{1b}[I",
        "\u{1b}[<0;10;10M",
        "\u{1b}[97;3u",
        "\u{1b}y",
        "\u{1b}a",
        "\u{1b}[1;3A",
        "\u{1b}OP",
    ];

    #[test]
    fn replies_of_the_terminal_and_keys_with_alt_are_ignored() {
        for sequence in NO_KEYS {
            assert_is_only_j(format!("{sequence}j").as_bytes());
        }
        // With control characters of one byte each, and with these as UTF-8.
        for sequence in [&b"\x90$ra;y\x9c"[..], b"\x9d11;a\x9c", b"\x9fGa\x9c", b"\x9b?2026;2$y", b"\x9b>0;a"]
        {
            assert_is_only_j(&[sequence, b"j"].concat());
            let utf8: String = sequence.iter().copied().map(char::from).collect();
            assert_is_only_j(format!("{utf8}j").as_bytes());
        }
    }

    #[track_caller]
    fn assert_is_only_j(bytes: &[u8]) {
        let found = decoded(bytes);
        assert_eq!(found, [key(KeyCode::Char('j'))], "{bytes:?}");
        // However it is cut into reads.
        let mut decoder = Decoder::default();
        let pieces: Vec<Input> = bytes.iter().flat_map(|byte| decoder.feed(&[*byte])).collect();
        assert_eq!(pieces, found, "{bytes:?}");
    }

    #[test]
    fn a_paste_is_always_text() {
        let found = decoded("\u{1b}[200~a\u{1b}[Ay\rq\u{1b}[201~j".as_bytes());
        assert_eq!(found, [Input::Paste("ay\nq".to_owned()), key(KeyCode::Char('j'))]);
        let found = decoded("\u{1b}[200~é\u{9b}201~a\r\u{1b}[201~".as_bytes());
        assert_eq!(found, [Input::Paste("é201~a\n".to_owned())], "only ESC [ 201 ~ ends a paste");
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(b"\x1b[200~a"), []);
        decoder.abandon();
        assert_eq!(decoder.feed(b"y"), [], "a pause does not end a paste");
        assert_eq!(decoder.feed(b"\x1b[201~"), [Input::Paste("ay".to_owned())]);
    }

    #[test]
    fn an_escape_alone_is_a_key_and_a_sequence_that_never_ends_is_forgotten() {
        let mut decoder = Decoder::default();
        assert_eq!((decoder.feed(b"\x1b"), decoder.ends_with_escape()), (vec![], true));
        assert_eq!(decoder.escape(), [key(KeyCode::Esc)]);
        assert!(!decoder.ends_with_escape());
        assert_eq!(decoder.feed(b"a"), [key(KeyCode::Char('a'))]);
        assert_eq!(decoder.feed(b"\x1b]aaa"), []);
        let leave = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(decoder.feed(b"\x03"), [Input::Key(leave)], "Ctrl-C always leaves");
        assert_eq!(decoder.feed(b"\x1b]aaa"), []);
        decoder.abandon();
        assert_eq!(decoder.feed(b"j"), [key(KeyCode::Char('j'))]);
    }
}
