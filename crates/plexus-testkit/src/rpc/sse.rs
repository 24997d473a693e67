//! Reading server-sent events, whatever pieces they come in.

/// Gathers pieces of a stream into events.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: String,
}

impl Events {
    /// Takes the next piece and returns the data of every event it completes. Events without data are left out.
    pub(super) fn push(&mut self, piece: &[u8]) -> Vec<String> {
        let mut events = Vec::new();
        for &byte in piece {
            if byte != b'\n' {
                self.line.push(byte);
                continue;
            }
            let line = String::from_utf8_lossy(&self.line);
            let line = line.trim_end_matches('\r');
            if let Some(data) = line.strip_prefix("data:") {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            } else if line.is_empty() && !self.data.is_empty() {
                events.push(std::mem::take(&mut self.data));
            }
            self.line.clear();
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_however_the_stream_is_cut() {
        let stream = "id: 1\ndata: {\"a\":\ndata: \"ü\"}\n\nretry: 5000\n\n: ping\r\n\r\nevent: message\r\ndata:x\r\n\r\n";
        for cut in 0..=stream.len() {
            let mut events = Events::default();
            let (first, second) = stream.as_bytes().split_at(cut);
            let mut seen = events.push(first);
            seen.extend(events.push(second));
            assert_eq!(seen, ["{\"a\":\n\"ü\"}", "x"]);
        }
    }
}
