//! The ways of a call through the hub, and their stages. A stage ends at a timing mark, and the next stage starts there. So the stages of
//! a call add up to its total time.

use anyhow::ensure;

use super::calls::{Call, Decided};
use super::marks::Window;

/// What a stage consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The next process, thread or task gets the data and a core.
    HandOver,
    /// Computation and reads.
    Work,
    /// The transaction and the disk.
    Store,
}

/// One stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

/// The stages of one call, each with the time at which it ends.
#[derive(Debug)]
pub(super) struct Stages {
    start: u64,
    ends: Vec<(Stage, u64)>,
}

/// A way through the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// A rule allows the call: from the agent's request to the answer.
    Allowed,
    /// The call needs an approval: from the agent's request until a client has the approval.
    Requested,
    /// A client answers: from `respond` until the agent has the answer.
    Answered,
}

impl Path {
    pub(super) const ALL: [Self; 3] = [Self::Allowed, Self::Requested, Self::Answered];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed by a rule",
            Self::Requested => "approval requested",
            Self::Answered => "approval answered",
        }
    }

    /// Whether a call takes this path.
    pub(super) fn is_of(self, call: &Call) -> bool {
        (self == Self::Allowed) == call.decided.is_none()
    }

    /// The total time of a call on this path.
    pub(super) fn total(self, call: &Call) -> u64 {
        let (start, end) = self.period(call);
        end - start
    }

    fn period(self, call: &Call) -> (u64, u64) {
        match (self, &call.decided) {
            (Self::Requested, Some(decided)) => (call.requested_at, decided.shown_at),
            (Self::Answered, Some(decided)) => (decided.sent_at, call.read_at),
            _ => (call.requested_at, call.read_at),
        }
    }

    /// Splits a call of a hub with marks.
    pub(super) fn stages(self, call: &Call) -> anyhow::Result<Stages> {
        let (start, end) = self.period(call);
        let hub = Window::new(&call.hub, start, end);
        let keeper = Window::new(&call.keeper, start, end);
        let mut stages = Stages { start, ends: Vec::new() };
        match (self, &call.decided) {
            (Self::Requested, Some(_)) => {
                stages.read_line(call, hub, keeper)?;
                stages.commit(hub, "ask", &call.tool_use_id)?;
                stages.end("publish, event stream, client reads", Kind::HandOver, end);
            }
            (Self::Answered, Some(Decided { approval, .. })) => {
                stages.end(
                    "HTTP request reaches the method",
                    Kind::HandOver,
                    hub.id("respond_received", approval)?,
                );
                stages.commit(hub, "resolve", approval)?;
                stages.end("publish, owner wakes up", Kind::HandOver, hub.id("answer_taken", approval)?);
                stages.reply(call, hub, keeper, end)?;
            }
            _ => {
                stages.read_line(call, hub, keeper)?;
                stages.end("policy decides", Kind::Work, hub.id("policy_decided", &call.tool_use_id)?);
                stages.commit(hub, "gate", &call.tool_use_id)?;
                let of_commit = |name| hub.commit(name, "gate", &call.tool_use_id);
                stages.end("publish", Kind::Work, of_commit("commit_published")?);
                stages.end("owner wakes up", Kind::HandOver, of_commit("commit_returned")?);
                stages.reply(call, hub, keeper, end)?;
            }
        }
        stages.check(end)?;
        Ok(stages)
    }
}

impl Stages {
    /// The stages with their lengths.
    pub(super) fn lengths(&self) -> impl Iterator<Item = (Stage, u64)> {
        let starts = std::iter::once(self.start).chain(self.ends.iter().map(|(_, end)| *end));
        self.ends.iter().zip(starts).map(|((stage, end), start)| (*stage, end - start))
    }

    /// The sum of the stages.
    pub(super) fn total(&self) -> u64 {
        self.lengths().map(|(_, length)| length).sum()
    }

    fn end(&mut self, name: &'static str, kind: Kind, at: u64) {
        self.ends.push((Stage { name, kind }, at));
    }

    /// From the agent's line to the parsed line.
    fn read_line(&mut self, call: &Call, hub: Window<'_>, keeper: Window<'_>) -> anyhow::Result<()> {
        let line = call.exchange.request_end;
        let written = keeper.line("journal_writing", line)?;
        let parsed = hub.line("lines_parsed", line)?;
        // The hub may already read when the keeper writes the line.
        let reading = hub.last_before("journal_reading", parsed).map_or(written, |at| at.max(written));
        self.end("keeper wakes up", Kind::HandOver, written);
        self.end("journal, owner wakes up", Kind::HandOver, reading);
        self.end("read and parse", Kind::Work, parsed);
        Ok(())
    }

    /// From the input of a commit until the commit is durable.
    fn commit(&mut self, hub: Window<'_>, step: &str, id: &str) -> anyhow::Result<()> {
        self.end("prepare the commit", Kind::Work, hub.commit("commit_queued", step, id)?);
        self.end("writer wakes up", Kind::HandOver, hub.commit("commit_started", step, id)?);
        self.end("transaction", Kind::Store, hub.commit("commit_applied", step, id)?);
        self.end("commit and sync", Kind::Store, hub.commit("commit_synced", step, id)?);
        Ok(())
    }

    /// From the decision in the owner to the agent.
    fn reply(&mut self, call: &Call, hub: Window<'_>, keeper: Window<'_>, end: u64) -> anyhow::Result<()> {
        let line = call.exchange.reply_end;
        self.end("write the outbox", Kind::Work, hub.line("outbox_written", line)?);
        self.end("keeper wakes up and reads", Kind::HandOver, keeper.line("line_sending", line)?);
        self.end("agent wakes up and reads", Kind::HandOver, end);
        Ok(())
    }

    /// Checks that no mark is out of order, and that the stages cover the whole call.
    fn check(&self, end: u64) -> anyhow::Result<()> {
        let mut before = self.start;
        for (Stage { name, .. }, at) in &self.ends {
            ensure!(*at >= before, "the stage `{name}` ends {} ns before it starts", before - at);
            before = *at;
        }
        ensure!(before == end && self.total() == end - self.start, "the stages do not add up to the total");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(ends: &[u64]) -> Stages {
        let stage = Stage { name: "a", kind: Kind::Work };
        Stages { start: 10, ends: ends.iter().map(|end| (stage, *end)).collect() }
    }

    #[test]
    fn stages_add_up_to_the_total() {
        let stages = stages(&[15, 15, 40]);
        assert_eq!(stages.lengths().map(|(_, length)| length).collect::<Vec<_>>(), [5, 0, 25]);
        assert_eq!(stages.total(), 30);
        stages.check(40).unwrap();
    }

    #[test]
    fn a_mark_out_of_order_or_a_gap_is_an_error() {
        assert!(stages(&[15, 14, 40]).check(40).is_err());
        assert!(stages(&[15, 20]).check(40).is_err());
        assert!(stages(&[9, 40]).check(40).is_err());
    }
}
