//! Parses server-sent events, however the stream is split.

/// An event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Its kind, if that is not `message`.
    pub kind: Option<String>,
    /// Its data.
    pub data: String,
}

/// Assembles chunks of a stream into events.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    event: SseEvent,
}

impl Events {
    /// Accepts the next chunk and returns every event that it completes. Events without data are omitted.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if !part.ends_with(b"\n") {
                break;
            }
            let line = String::from_utf8_lossy(&self.line);
            let line = line.trim_end_matches(['\r', '\n']);
            if let Some(data) = field(line, "data:") {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(data);
            } else if let Some(id) = field(line, "id:") {
                self.event.id = Some(id.to_owned());
            } else if let Some(kind) = field(line, "event:") {
                self.event.kind = Some(kind.to_owned());
            } else if line.is_empty() {
                let event = std::mem::take(&mut self.event);
                events.extend(Some(event).filter(|event| !event.data.is_empty()));
            }
            self.line.clear();
        }
        events
    }
}

fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let value = line.strip_prefix(name)?;
    Some(value.strip_prefix(' ').unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_however_the_stream_is_split() {
        let stream = "id: 1\ndata: {\"a\":\ndata: \"ü\"}\n\nretry: 5000\n\n: ping\r\n\r\nevent: message\r\ndata:x\r\n\r\n";
        for cut in 0..=stream.len() {
            let mut events = Events::default();
            let (first, second) = stream.as_bytes().split_at(cut);
            let mut seen = events.push(first);
            seen.extend(events.push(second));
            let event = |id: Option<&str>, kind: Option<&str>, data: &str| SseEvent {
                id: id.map(str::to_owned),
                kind: kind.map(str::to_owned),
                data: data.to_owned(),
            };
            let wanted = [event(Some("1"), None, "{\"a\":\n\"ü\"}"), event(None, Some("message"), "x")];
            assert_eq!(seen, wanted);
        }
    }
}
