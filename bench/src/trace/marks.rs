//! The timing marks in the log of a hub or a keeper: one line each, with the monotonic clock, the name of the mark, and ids or offsets.

use anyhow::Context as _;
use plexus_agent::TIMING;

/// One mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    /// The monotonic clock in nanoseconds.
    pub(super) at: u64,
    pub(super) name: String,
    /// The offset in the journal or in the outbox that a line reached.
    end: Option<u64>,
    /// What a commit is about.
    step: Option<String>,
    /// The call or the approval.
    id: Option<String>,
}

/// The marks in a log, in the order of time. Other lines are skipped.
pub(super) fn read(log: &str) -> Vec<Mark> {
    let mut marks: Vec<Mark> = log.lines().filter_map(mark).collect();
    marks.sort_by_key(|mark| mark.at);
    marks
}

fn mark(line: &str) -> Option<Mark> {
    let (at, fields) = line.split_once(TIMING)?;
    let at = at.trim().parse().ok()?;
    let field = |name: &str| {
        let mut fields = fields.split_whitespace().filter_map(|field| field.split_once('='));
        fields.find(|(key, _)| *key == name).map(|(_, value)| value.trim_matches('"').to_owned())
    };
    let end = field("end").and_then(|end| end.parse().ok());
    Some(Mark { at, name: field("mark")?, end, step: field("step"), id: field("id") })
}

/// The marks of one period.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window<'a>(&'a [Mark]);

impl<'a> Window<'a> {
    /// The marks from one time to another. `marks` are in the order of time.
    pub(super) fn new(marks: &'a [Mark], from: u64, to: u64) -> Self {
        let first = marks.partition_point(|mark| mark.at < from);
        let last = marks.partition_point(|mark| mark.at <= to);
        Self(marks.get(first..last).unwrap_or_default())
    }

    /// When a line of the journal or the outbox, which ends at this offset, passed this boundary.
    pub(super) fn line(self, name: &str, end: u64) -> anyhow::Result<u64> {
        self.find(name, &end.to_string(), |mark| mark.end.is_some_and(|reached| reached >= end))
    }

    /// When a call or an approval passed this boundary.
    pub(super) fn id(self, name: &str, id: &str) -> anyhow::Result<u64> {
        self.find(name, id, |mark| mark.id.as_deref() == Some(id))
    }

    /// When a commit about a call or an approval passed this boundary.
    pub(super) fn commit(self, name: &str, step: &str, id: &str) -> anyhow::Result<u64> {
        self.find(name, id, |mark| mark.step.as_deref() == Some(step) && mark.id.as_deref() == Some(id))
    }

    /// The last mark of this name before a time, if there is one.
    pub(super) fn last_before(self, name: &str, before: u64) -> Option<u64> {
        self.0.iter().rev().find(|mark| mark.at <= before && mark.name == name).map(|mark| mark.at)
    }

    fn find(self, name: &str, what: &str, matches: impl Fn(&Mark) -> bool) -> anyhow::Result<u64> {
        let found = self.0.iter().find(|mark| mark.name == name && matches(mark));
        found.map(|mark| mark.at).with_context(|| format!("there is no mark `{name}` of {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
2026-11-17T18:31:18.1Z  INFO plexus_core: a line that is not a mark
200 plexus::timing: mark=\"commit_synced\" step=\"gate\" id=\"toolu_1\"
100 plexus::timing: mark=\"lines_parsed\" end=40
150 plexus::timing: mark=\"lines_parsed\" end=90
";

    #[test]
    fn marks_are_found_by_offset_and_by_id() {
        let marks = read(LOG);
        let window = Window::new(&marks, 0, 200);
        assert_eq!(window.line("lines_parsed", 40).unwrap(), 100);
        assert_eq!(window.line("lines_parsed", 41).unwrap(), 150);
        assert_eq!(window.commit("commit_synced", "gate", "toolu_1").unwrap(), 200);
        assert_eq!(window.last_before("lines_parsed", 149), Some(100));
    }

    #[test]
    fn a_missing_mark_is_an_error() {
        let marks = read(LOG);
        assert!(Window::new(&marks, 0, 199).commit("commit_synced", "gate", "toolu_1").is_err());
        assert!(Window::new(&marks, 0, 200).commit("commit_synced", "ask", "toolu_1").is_err());
        assert!(Window::new(&marks, 101, 200).line("lines_parsed", 91).is_err());
    }
}
